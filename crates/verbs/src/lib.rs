//! `libibverbs.so.1` in software: unmodified RDMA programs run on it.

pub mod abi;
mod address;
mod completion;
mod context;
mod device;
mod domain;
mod elf;
mod errno;
mod event;
mod exports;
mod hub;
mod kernel;
mod memory;
mod object;
mod paths;
mod queue_pair;
mod rate;
mod rdma_cm;
mod refuse;
mod shared_queue;
mod text;
mod xrc;

pub use device::{SysfsFile, sysfs_files};

/// Says something to the person who started the program: one line on standard error.
fn report(message: &str) {
    eprintln!("softfabric: {message}");
}
