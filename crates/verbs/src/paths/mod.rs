//! Files that programs look for themselves: what a kernel with RDMA would show under `/sys` and `/dev`.
//!
//! ```text
//! program ── open("/sys/class/infiniband/softfabric0/ports/1/state") ──► redirected ──► the same file in our tree
//!            │ its jumps to the C library lead here instead
//!            └─ any other path ──► the C library, as it came
//! ```
//!
//! Most programs ask through the library. UCX wants a character device, NCCL and perftest read sysfs, test suites call
//! `ls`. When this library is loaded, and whenever devices are listed, the tables of addresses of all loaded objects are
//! changed for the functions that take paths, so that no file of the host has to be replaced and no privilege is needed.
//! A program that is started by one of these finds the files too where the library is preloaded into it.
#![allow(unsafe_code, reason = "the C library's functions are stood in for")]

mod calls;
mod tree;

/// When this library is loaded, the program's own table of addresses is already filled.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    crate::errno::quiet(install);
}

/// Makes every object that is loaded now call us for paths. What could not be changed stays as it is.
pub(crate) fn install() {
    calls::install();
}
