//! The C interface of verbs: structures, numbers, and how they lie in memory.
//!
//! ```text
//!  program compiled against <infiniband/verbs.h>
//!      │ calls symbols            exports/
//!      │ calls through pointers   ibv_context.ops · verbs_context · ibv_qp_ex · ibv_cq_ex
//!      ▼ reads and writes         the structures of this module
//! ```
//!
//! Names are those of the C headers, so that a reader finds them there. Layouts are those of the newest headers; older
//! programs see the same offsets, because structures grow only at their ends (`verbs_context`: at its start, reached
//! from its end). [`layouts()`] lists every offset for the test that asks a C compiler.
#![allow(non_camel_case_types, reason = "the names are those of the C headers")]
#![allow(non_snake_case, reason = "the names are those of the C headers")]

mod attributes;
mod constants;
mod device;
mod flow;
mod kernel;
mod layout;
mod objects;
mod work;

pub use attributes::*;
pub use constants::*;
pub use device::*;
pub use flow::*;
pub use kernel::*;
pub use layout::{Layout, layouts};
pub use objects::*;
pub use work::*;
