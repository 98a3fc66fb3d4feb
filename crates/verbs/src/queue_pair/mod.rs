//! Queue pairs: made, changed, asked, and given work.
//!
//! ```text
//! RESET ─► INIT ─► RTR ─► RTS      modify.rs
//! ibv_post_send, ibv_post_recv     post.rs    one call, a list of requests
//! ibv_wr_start … ibv_wr_complete   build.rs   one call for each part of a request
//! ```
#![allow(unsafe_code, reason = "the program's pointers are followed")]

mod build;
mod create;
mod modify;
mod multicast;
mod post;
mod query;

use std::sync::{Arc, Mutex};

use softfabric_units::Qpn;

use crate::abi::*;
use crate::context::Context;
use crate::errno::Errno;
use crate::hub::Hub;
use crate::object::{Acknowledgements, Object, Shared};

pub(crate) use create::{create_qp, create_qp_ex, destroy_qp, open_qp};
pub(crate) use modify::modify_qp;
pub(crate) use multicast::{attach_mcast, detach_mcast};
pub(crate) use post::{bind_mw, errno as post_errno, post_receives, post_recv, post_send};
pub(crate) use query::{qp_to_qp_ex, query_ece, query_qp, query_qp_data_in_order, set_ece};

/// A queue pair.
#[repr(C)]
pub(crate) struct QueuePair {
    c: Shared<ibv_qp_ex>,
    hub: Arc<Hub>,
    number: Qpn,
    /// Whether every request names its destination.
    datagrams: bool,
    /// Whether requests may be built by calls.
    extended: bool,
    /// Asynchronous events.
    pub(crate) events: Acknowledgements,
    /// What the transport does not keep as the program wrote it.
    kept: Mutex<Kept>,
    builder: build::Builder,
}

/// Attributes as the program wrote them, and how it was made.
#[derive(Clone, Copy, Default)]
struct Kept {
    ah_attr: ibv_ah_attr,
    alt_ah_attr: ibv_ah_attr,
    alt_timeout: u8,
    alt_port_num: u8,
    port_num: u8,
    path_mtu: i32,
    access: u32,
    rate_limit: u32,
}

// SAFETY: it is `repr(C)` and begins with its C structure, of which `ibv_qp` is the first part.
unsafe impl Object for QueuePair {
    type C = ibv_qp_ex;
}

impl QueuePair {
    /// The queue pair behind a pointer to its first part.
    ///
    /// # Safety
    /// The pointer is null, or that of a queue pair of ours.
    unsafe fn of_qp<'a>(qp: *const ibv_qp) -> Result<&'a Self, Errno> {
        // SAFETY: every queue pair of ours is made as an extended one.
        unsafe { Self::of(qp.cast()) }
    }

    /// What the program holds.
    fn as_ibv(&self) -> *mut ibv_qp {
        self.c.get().cast()
    }

    pub(crate) fn context(&self) -> &Context {
        // SAFETY: the field is set when the object is made; a queue pair ends before its context does.
        unsafe { Context::of((*self.as_ibv()).context) }.expect("a queue pair has a context")
    }
}
