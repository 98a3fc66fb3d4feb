//! `libibverbs.so.1` in software: unmodified RDMA programs run on it.
//!
//! ```text
//! program ── ibv_… symbols ───────► exports ─┐
//!    │  └─── ops, verbs_context ─────────────┤► objects ── with · poll ──► adapter::Nic
//!    │                                       │     ▲
//!    │  completion channels, async_fd ◄──────┼─────┴── events ◄───────────────┘
//!    ├── librdmacm ── /dev/infiniband/rdma_cm ► rdma_cm (the kernel's protocol, served in the process)
//!    └── open("/sys/class/infiniband/…") ────► paths   (a tree of files as a kernel would show)
//! ```
//!
//! # How a program gets it
//!
//! The built file is `libsoftfabric_verbs.so`; its name inside (SONAME) is `libibverbs.so.1`. A launcher
//!
//! - puts it into a folder as `libibverbs.so.1` and the folder first into `LD_LIBRARY_PATH`: that alone is enough for a
//!   program that asks only through the library;
//! - names the file in `LD_PRELOAD` too: then programs that bring a search path of their own use it, and programs that
//!   are started by the program (`ls`, scripts) see the devices' files;
//! - hands its wishes over in `SOFTFABRIC` (see [`softfabric_adapter::Settings`]).
//!
//! Nothing else is needed: no device node, no sysfs, no privilege. `SYSFS_PATH`, if it is set, names the root of sysfs,
//! as with rdma-core's library; [`sysfs_files`] lists what belongs below it.
//!
//! # Where things are
//!
//! | module | what it does |
//! |---|---|
//! | [`abi`] | structures and numbers of the C headers |
//! | `exports` | symbols with their versions |
//! | `errno`, `refuse` | errors as C programs hear of them; panics end here |
//! | `object` | objects that C holds by pointer; queues of events behind descriptors |
//! | `hub` | one open device: the adapter's NIC, and who hears of its events |
//! | `device`, `context` | list of devices, what they tell, tables of functions |
//! | `domain`, `memory`, `address`, `xrc` | protection domains, regions and windows, address handles, XRC domains |
//! | `completion`, `event` | completion queues and channels, asynchronous events |
//! | `queue_pair`, `shared_queue` | queue pairs, work requests, shared receive queues |
//! | `rdma_cm`, `paths`, `elf` | what is stood in for outside of verbs |
//! | `kernel`, `rate`, `text` | conversions and words |

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
