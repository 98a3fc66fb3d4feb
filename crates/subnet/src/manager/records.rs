//! Records of tables: what the manager has written into ports and switches, as subnet administration answers it.

use softfabric_units::{Guid, Lid};
use softfabric_wire::mad::administration::{
    GuidInfoRecord, LevelMapRecord, MulticastForwardingRecord, PartitionTableRecord,
    VlArbitrationRecord,
};
use softfabric_wire::mad::subnet::GuidInfo;

use super::Manager;
use super::partitions;
use crate::routing::RoutingView;
use crate::subnet::PortRef;

/// The first block of the low table of arbitration.
const LOW_TABLE: u8 = 1;

impl Manager {
    /// The switches in reach, with their identifiers.
    fn switches<'a>(&'a self, view: &'a RoutingView) -> impl Iterator<Item = (PortRef, Lid)> + 'a {
        (0..view.switches()).map(move |switch| {
            let end = PortRef {
                node: view.node(switch),
                port: 0,
            };
            (end, self.lid_of(end))
        })
    }

    /// Lanes of levels, where they are written; `of` limits them to one switch, as there is one for each pair of ports.
    pub(super) fn level_records(&self, view: &RoutingView, of: Option<Lid>) -> Vec<LevelMapRecord> {
        let mut records = Vec::new();
        for (end, lid) in self
            .switches(view)
            .filter(|(_, lid)| of.is_none_or(|of| of == *lid))
        {
            let ports = self.subnet().node(end.node).ports;
            for output in 1..=ports {
                let Some(map) = self.known.levels(end.node, output) else {
                    continue;
                };
                records.extend((0..=ports).map(|input| LevelMapRecord {
                    lid,
                    input,
                    output,
                    map: *map,
                }));
            }
        }
        records
    }

    /// Turns of lanes, where they are written.
    pub(super) fn arbitration_records(&self, view: &RoutingView) -> Vec<VlArbitrationRecord> {
        let mut records = Vec::new();
        for (end, lid) in self.switches(view) {
            for (port, _) in self.subnet().external_ports(end.node) {
                records.extend(
                    self.known
                        .arbitration(port)
                        .map(|entries| VlArbitrationRecord {
                            lid,
                            port: port.port,
                            block: LOW_TABLE,
                            entries: *entries,
                        }),
                );
            }
        }
        records
    }

    /// Partition tables: of ends, and of switches' ports that guard adapters.
    pub(super) fn partition_records(&self, view: &RoutingView) -> Vec<PartitionTableRecord> {
        let mut records = Vec::new();
        let mut add = |lid: Lid, port: PortRef| {
            let keys = self.wanted_keys(port);
            records.extend(
                (0..partitions::blocks(&keys)).map(|block| PartitionTableRecord {
                    lid,
                    block,
                    port: port.port,
                    keys: partitions::block_of(&keys, block),
                }),
            );
        };
        for target in view.targets().iter().filter(|target| target.copy == 0) {
            add(target.lid, target.end);
            let guard = PortRef {
                node: view.node(target.switch as usize),
                port: target.port,
            };
            if target.is_adapter() && self.enforces(guard) {
                add(self.lid_of(guard), guard);
            }
        }
        records
    }

    /// Multicast tables, where they are written.
    pub(super) fn multicast_records(&self, view: &RoutingView) -> Vec<MulticastForwardingRecord> {
        let mut records = Vec::new();
        for (end, lid) in self.switches(view) {
            let blocks = self.known.multicast_blocks(end.node);
            records.extend(blocks.into_iter().map(|((block, position), ports)| {
                MulticastForwardingRecord {
                    lid,
                    position,
                    block,
                    ports,
                }
            }));
        }
        records
    }

    /// The GUIDs of ports: each has its own.
    pub(super) fn guid_records(&self, view: &RoutingView) -> Vec<GuidInfoRecord> {
        let targets = view.targets().iter().filter(|target| target.copy == 0);
        targets
            .map(|target| {
                let mut guids = [Guid(0); 8];
                guids[0] = self.subnet().port(target.end).guid;
                GuidInfoRecord {
                    lid: target.lid,
                    block: 0,
                    guids: GuidInfo { guids },
                }
            })
            .collect()
    }
}
