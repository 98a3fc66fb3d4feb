//! Gives the shared library its name and its version nodes. The symbols themselves are made in `src/exports.rs`.

/// Every version node, the older first: a node inherits from the one before it.
const NODES: [&str; 5] = [
    "IBUMAD_1.0",
    "IBUMAD_1.1",
    "IBUMAD_1.2",
    "IBUMAD_1.3",
    "IBUMAD_1.4",
];

fn main() {
    softfabric_cabi::declare("libibumad.so.3", &[&NODES]);
}
