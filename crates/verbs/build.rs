//! Gives the shared library its name and its version nodes.
//!
//! The symbols themselves are made in `src/exports`.

/// Every version node, the older first: a node inherits from the one before it.
const NODES: [&str; 16] = [
    "IBVERBS_1.0",
    "IBVERBS_1.1",
    "IBVERBS_1.5",
    "IBVERBS_1.6",
    "IBVERBS_1.7",
    "IBVERBS_1.8",
    "IBVERBS_1.9",
    "IBVERBS_1.10",
    "IBVERBS_1.11",
    "IBVERBS_1.12",
    "IBVERBS_1.13",
    "IBVERBS_1.14",
    "IBVERBS_1.15",
    "IBVERBS_1.16",
    "IBVERBS_1.17",
    "IBVERBS_1.18",
];

/// Nodes of the interface between the library and the hardware vendors' libraries; none inherits.
const PRIVATE_NODES: [&str; 5] = [
    "IBVERBS_PRIVATE_34",
    "IBVERBS_PRIVATE_57",
    "IBVERBS_PRIVATE_59",
    "IBVERBS_PRIVATE_64",
    "IBVERBS_PRIVATE_65",
];

fn main() {
    let alone = PRIVATE_NODES.each_ref().map(std::slice::from_ref);
    let chains: Vec<&[&str]> = std::iter::once(&NODES[..]).chain(alone).collect();
    softfabric_cabi::declare("libibverbs.so.1", &chains);
}
