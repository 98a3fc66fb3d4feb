//! Gives the shared library its name and its version nodes.
//!
//! The symbols themselves are made in `src/exports`: each carries its version in a `.symver` directive. The linker
//! only has to know that the nodes exist, so the version script holds nothing but their names. It must not say what is
//! global and what is local: rustc's own script does.

use std::fmt::Write;
use std::path::PathBuf;

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
    let mut script = String::new();
    let mut before = String::new();
    for node in NODES {
        writeln!(script, "{node} {{}}{before};").expect("a string takes every line");
        before = format!(" {node}");
    }
    for node in PRIVATE_NODES {
        writeln!(script, "{node} {{}};").expect("a string takes every line");
    }
    let folder =
        PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder for output"));
    let path = folder.join("nodes.map");
    std::fs::write(&path, script).expect("cargo's folder for output can be written to");
    println!(
        "cargo:rustc-cdylib-link-arg=-Wl,--version-script={}",
        path.display()
    );
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libibverbs.so.1");
    println!("cargo:rerun-if-changed=build.rs");
}
