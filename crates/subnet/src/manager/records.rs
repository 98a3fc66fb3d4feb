//! Records of tables: what the manager has written into ports and switches, as subnet administration answers it.

use std::collections::BTreeMap;

use softfabric_units::{Guid, Lid};
use softfabric_wire::infiniband::VirtualLane;
use softfabric_wire::mad::administration::{
    GuidInfoRecord, LevelMapRecord, MulticastForwardingRecord, PartitionTableRecord,
    VlArbitrationRecord,
};
use softfabric_wire::mad::subnet::{GuidInfo, MulticastBlock};

use super::Manager;
use super::partitions;
use crate::format::dump;
use crate::routing::RoutingView;
use crate::subnet::{NodeId, PortRef};

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

    /// Lanes of levels, where they are written; `of` limits them to one end, as a switch has one for each pair of ports. An
    /// adapter's have its port as output, and input 0.
    pub(super) fn level_records(&self, view: &RoutingView, of: Option<Lid>) -> Vec<LevelMapRecord> {
        let mut records = Vec::new();
        let ends = self.ends(view);
        for (end, lid) in ends.filter(|(_, lid)| of.is_none_or(|of| of == *lid)) {
            for output in self.ports_at(end) {
                let inputs = if end.port == 0 {
                    self.subnet().node(end.node).ports
                } else {
                    0
                };
                records.extend((0..=inputs).filter_map(|input| {
                    Some(LevelMapRecord {
                        lid,
                        input,
                        output: output.port,
                        map: *self.known.levels(output, input)?,
                    })
                }));
            }
        }
        records
    }

    /// The ports that an end speaks for: of a switch all, of an adapter its own.
    fn ports_at(&self, end: PortRef) -> impl Iterator<Item = PortRef> {
        let last = if end.port == 0 {
            self.subnet().node(end.node).ports
        } else {
            end.port
        };
        (end.port..=last).map(move |port| PortRef { port, ..end })
    }

    /// Turns of lanes, where they are written.
    pub(super) fn arbitration_records(&self, view: &RoutingView) -> Vec<VlArbitrationRecord> {
        let mut records = Vec::new();
        for (end, lid) in self.ends(view) {
            for port in self.ports_at(end) {
                records.extend((1..=4).filter_map(|block| {
                    Some(VlArbitrationRecord {
                        lid,
                        port: port.port,
                        block,
                        entries: *self.known.arbitration(port, block)?,
                    })
                }));
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

    /// The ports of each multicast identifier that a switch has, as written.
    pub fn multicast_ports(&self, switch: NodeId) -> BTreeMap<Lid, Vec<u8>> {
        let mut found: BTreeMap<Lid, Vec<u8>> = BTreeMap::new();
        for ((block, position), table) in self.known.multicast_blocks(switch) {
            let first = Lid::FIRST_MULTICAST.0 + block * MulticastBlock::LIDS as u16;
            for (lid, set) in (first..).map(Lid).zip(table.ports) {
                let bits = (0..16).filter(|bit| set >> bit & 1 != 0);
                let mut ports = bits.map(|bit| position * 16 + bit).peekable();
                if ports.peek().is_some() {
                    found.entry(lid).or_default().extend(ports);
                }
            }
        }
        for ports in found.values_mut() {
            ports.sort_unstable();
        }
        found
    }

    /// The lane of each level for packets that leave a switch by a port, wherever they came in: as written, or where nothing is
    /// written as the routes need it.
    pub fn lanes(&self, output: PortRef) -> [u8; 16] {
        match (self.known.levels(output, 0), self.routes()) {
            (Some(map), _) => map.lanes.map(VirtualLane::as_u8),
            (None, Some((view, routes))) => dump::lanes_of_routes(view, routes, output),
            (None, None) => [0; 16],
        }
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
