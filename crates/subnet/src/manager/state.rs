//! What nodes are known to have: their last answers, and the tables that were written to them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
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
    /// By output port; equal for all inputs.
    levels: Vec<Option<ServiceLevelMap>>,
    /// By port, the first block of the low table.
    arbitration: Vec<Option<VlArbitration>>,
    /// By port and block.
    partitions: FxHashMap<(u8, u16), PartitionTable>,
    /// By block and position.
    multicast: BTreeMap<(u16, u8), MulticastBlock>,
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

    pub(super) fn levels(&self, node: NodeId, output: u8) -> Option<&ServiceLevelMap> {
        let levels = &self.nodes.get(node.index())?.levels;
        levels.get(usize::from(output))?.as_ref()
    }

    pub(super) fn set_levels(&mut self, node: NodeId, output: u8, map: ServiceLevelMap) {
        *slot(&mut self.node(node).levels, usize::from(output)) = Some(map);
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

    pub(super) fn arbitration(&self, port: PortRef) -> Option<&VlArbitration> {
        let tables = &self.nodes.get(port.node.index())?.arbitration;
        tables.get(usize::from(port.port))?.as_ref()
    }

    pub(super) fn set_arbitration(&mut self, port: PortRef, table: VlArbitration) {
        let tables = &mut self.node(port.node).arbitration;
        *slot(tables, usize::from(port.port)) = Some(table);
    }
}

fn slot<T>(all: &mut Vec<Option<T>>, index: usize) -> &mut Option<T> {
    if all.len() <= index {
        all.resize_with(index + 1, || None);
    }
    &mut all[index]
}
