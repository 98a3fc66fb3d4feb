//! Multicast groups of datagram queue pairs.

use std::ffi::c_int;

use softfabric_adapter::AttachError;
use softfabric_units::Gid;

use super::QueuePair;
use crate::abi::*;
use crate::errno::{Errno, number};

fn errno(error: AttachError) -> Errno {
    match error {
        AttachError::Transport(_) => Errno::EINVAL,
        AttachError::Join(_, error) => Errno::of(&error),
    }
}

/// `ibv_attach_mcast`
///
/// # Safety
/// The queue pair is one of ours, and `gid` is a structure of the caller.
pub(crate) unsafe extern "C" fn attach_mcast(
    qp: *mut ibv_qp,
    gid: *const ibv_gid,
    _lid: u16,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller; the structure need not be aligned for its larger half.
        let (qp, gid) = unsafe {
            (
                QueuePair::of_qp(qp)?,
                gid.cast::<[u8; 16]>().as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        qp.hub
            .nic
            .attach_multicast(qp.number, Gid(*gid))
            .map_err(errno)
    })
}

/// `ibv_detach_mcast`
///
/// # Safety
/// The queue pair is one of ours, and `gid` is a structure of the caller.
pub(crate) unsafe extern "C" fn detach_mcast(
    qp: *mut ibv_qp,
    gid: *const ibv_gid,
    _lid: u16,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller; the structure need not be aligned for its larger half.
        let (qp, gid) = unsafe {
            (
                QueuePair::of_qp(qp)?,
                gid.cast::<[u8; 16]>().as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        qp.hub
            .nic
            .detach_multicast(qp.number, Gid(*gid))
            .map_err(errno)
    })
}
