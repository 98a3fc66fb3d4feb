//! softfabric
fn main() {}
