//! What nodes are known to have: their last answers, and the tables that were written to them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use softfabric_wire::mad::congestion::{
    AdapterCongestionSetting, CongestionControlTable, CongestionInfo, SwitchCongestionSetting,
    SwitchPortCongestionSetting,
};
use softfabric_wire::mad::subnet::{
    ForwardingBlock, MulticastBlock, NodeInfo, PartitionTable, PortInfo, ServiceLevelMap,
    SwitchInfo, VlArbitration,
};

use crate::subnet::{NodeId, PortRef};

/// What one node is known to have.
#[derive(Default)]
struct KnownNode {
    info: Option<NodeInfo>,
    /// By port number; of adapters, only ports that were seen.
    ports: Vec<Option<PortInfo>>,
    switch: Option<SwitchInfo>,
    blocks: Vec<Option<ForwardingBlock>>,
    /// By output port, then input port; of adapters, the input is 0.
    levels: Vec<Vec<Option<ServiceLevelMap>>>,
    /// By port, the blocks 1 to 4.
    arbitration: Vec<[Option<VlArbitration>; 4]>,
    /// By port and block.
    partitions: FxHashMap<(u8, u16), PartitionTable>,
    /// By block and position.
    multicast: BTreeMap<(u16, u8), MulticastBlock>,
    /// Of congestion control, by port: of a switch, port 0.
    congestion: Vec<KnownCongestion>,
}

/// What an end port is known to have of congestion control.
#[derive(Clone, Default)]
pub(super) struct KnownCongestion {
    /// What it can; `None` as long as it has not been asked.
    pub(super) info: Option<Option<CongestionInfo>>,
    /// What was written to a switch, and answered.
    pub(super) switch: Option<SwitchCongestionSetting>,
    /// The same of its ports, by block.
    pub(super) ports: BTreeMap<u8, SwitchPortCongestionSetting>,
    /// The same of an adapter.
    pub(super) adapter: Option<AdapterCongestionSetting>,
    /// The same of its control table, by block.
    pub(super) table: BTreeMap<u8, CongestionControlTable>,
}

/// What all nodes are known to have.
#[derive(Default)]
pub(super) struct Known {
    nodes: Vec<KnownNode>,
    /// Ports that did not take all that they were told: what they had then, and what they should have had. They are not
    /// told again.
    stubborn: FxHashMap<PortRef, (PortInfo, PortInfo)>,
}

impl Known {
    fn node(&mut self, node: NodeId) -> &mut KnownNode {
        let index = node.index();
        if self.nodes.len() <= index {
            self.nodes.resize_with(index + 1, KnownNode::default);
        }
        &mut self.nodes[index]
    }

    pub(super) fn info(&self, node: NodeId) -> Option<&NodeInfo> {
        self.nodes.get(node.index())?.info.as_ref()
    }

    pub(super) fn set_info(&mut self, node: NodeId, info: NodeInfo) {
        self.node(node).info = Some(info);
    }

    /// The node may have started anew: nothing of its tables is known.
    pub(super) fn forget_tables(&mut self, node: NodeId) {
        let known = self.node(node);
        known.blocks.clear();
        known.levels.clear();
        known.arbitration.clear();
        known.multicast.clear();
        known.partitions.clear();
        known.congestion.clear();
    }

    /// The end of a cable may have started anew: nothing of the port's tables is known.
    pub(super) fn forget_end(&mut self, port: PortRef) {
        let known = self.node(port.node);
        known
            .partitions
            .retain(|(number, _), _| *number != port.port);
        let index = usize::from(port.port);
        if let Some(levels) = known.levels.get_mut(index) {
            levels.clear();
        }
        if let Some(blocks) = known.arbitration.get_mut(index) {
            *blocks = [None; 4];
        }
        if let Some(congestion) = known.congestion.get_mut(index) {
            *congestion = KnownCongestion::default();
        }
    }

    /// What an end port is known to have of congestion control.
    pub(super) fn congestion(&self, port: PortRef) -> Option<&KnownCongestion> {
        let node = self.nodes.get(port.node.index())?;
        node.congestion.get(usize::from(port.port))
    }

    /// The same, to change it.
    pub(super) fn congestion_mut(&mut self, port: PortRef) -> &mut KnownCongestion {
        let all = &mut self.node(port.node).congestion;
        let index = usize::from(port.port);
        if all.len() <= index {
            all.resize_with(index + 1, KnownCongestion::default);
        }
        &mut all[index]
    }

    /// Ports that have no congestion control are asked once more.
    pub(super) fn ask_all_for_congestion(&mut self) {
        for port in self.nodes.iter_mut().flat_map(|node| &mut node.congestion) {
            if port.info == Some(None) {
                port.info = None;
            }
        }
    }

    pub(super) fn port(&self, port: PortRef) -> Option<&PortInfo> {
        let ports = &self.nodes.get(port.node.index())?.ports;
        ports.get(usize::from(port.port))?.as_ref()
    }

    pub(super) fn set_port(&mut self, port: PortRef, info: PortInfo) {
        *slot(&mut self.node(port.node).ports, usize::from(port.port)) = Some(info);
    }

    /// Notes that the port should have been `wanted` after it was told, and is not.
    pub(super) fn set_stubborn(&mut self, port: PortRef, wanted: PortInfo) {
        if let Some(known) = self.port(port).copied() {
            self.stubborn.insert(port, (known, wanted));
        }
    }

    /// Whether the port should be told to be `wanted`.
    pub(super) fn differs(&self, port: PortRef, wanted: &PortInfo) -> bool {
        let Some(known) = self.port(port) else {
            return true;
        };
        let told = self.stubborn.get(&port);
        known != wanted && told.is_none_or(|(then, should)| then != known || should != wanted)
    }

    pub(super) fn switch(&self, node: NodeId) -> Option<&SwitchInfo> {
        self.nodes.get(node.index())?.switch.as_ref()
    }

    pub(super) fn set_switch(&mut self, node: NodeId, info: SwitchInfo) {
        self.node(node).switch = Some(info);
    }

    pub(super) fn block(&self, node: NodeId, block: u16) -> Option<&ForwardingBlock> {
        let blocks = &self.nodes.get(node.index())?.blocks;
        blocks.get(usize::from(block))?.as_ref()
    }

    pub(super) fn set_block(&mut self, node: NodeId, block: u16, ports: ForwardingBlock) {
        *slot(&mut self.node(node).blocks, usize::from(block)) = Some(ports);
    }

    pub(super) fn levels(&self, output: PortRef, input: u8) -> Option<&ServiceLevelMap> {
        let levels = &self.nodes.get(output.node.index())?.levels;
        let inputs = levels.get(usize::from(output.port))?;
        inputs.get(usize::from(input))?.as_ref()
    }

    pub(super) fn set_levels(&mut self, output: PortRef, input: u8, map: ServiceLevelMap) {
        let levels = &mut self.node(output.node).levels;
        let index = usize::from(output.port);
        if levels.len() <= index {
            levels.resize_with(index + 1, Vec::new);
        }
        *slot(&mut levels[index], usize::from(input)) = Some(map);
    }

    pub(super) fn multicast(
        &self,
        node: NodeId,
        block: u16,
        position: u8,
    ) -> Option<&MulticastBlock> {
        self.nodes
            .get(node.index())?
            .multicast
            .get(&(block, position))
    }

    /// All multicast blocks of a node, in order.
    pub(super) fn multicast_blocks(&self, node: NodeId) -> BTreeMap<(u16, u8), MulticastBlock> {
        let known = self.nodes.get(node.index());
        known.map_or_else(BTreeMap::new, |known| known.multicast.clone())
    }

    pub(super) fn set_multicast(
        &mut self,
        node: NodeId,
        block: u16,
        position: u8,
        ports: MulticastBlock,
    ) {
        self.node(node).multicast.insert((block, position), ports);
    }

    pub(super) fn partitions(&self, port: PortRef, block: u16) -> Option<&PartitionTable> {
        let node = self.nodes.get(port.node.index())?;
        node.partitions.get(&(port.port, block))
    }

    pub(super) fn set_partitions(&mut self, port: PortRef, block: u16, keys: PartitionTable) {
        let node = self.node(port.node);
        node.partitions.insert((port.port, block), keys);
    }

    /// A block, 1 to 4, of the tables of a port's turns.
    pub(super) fn arbitration(&self, port: PortRef, block: u8) -> Option<&VlArbitration> {
        let tables = &self.nodes.get(port.node.index())?.arbitration;
        let blocks = tables.get(usize::from(port.port))?;
        blocks.get(usize::from(block).checked_sub(1)?)?.as_ref()
    }

    pub(super) fn set_arbitration(&mut self, port: PortRef, block: u8, table: VlArbitration) {
        let tables = &mut self.node(port.node).arbitration;
        let index = usize::from(port.port);
        if tables.len() <= index {
            tables.resize(index + 1, [None; 4]);
        }
        let place = usize::from(block).checked_sub(1);
        if let Some(place) = place.and_then(|place| tables[index].get_mut(place)) {
            *place = Some(table);
        }
    }
}

fn slot<T>(all: &mut Vec<Option<T>>, index: usize) -> &mut Option<T> {
    if all.len() <= index {
        all.resize_with(index + 1, || None);
    }
    &mut all[index]
}
