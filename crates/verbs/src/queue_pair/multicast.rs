//! Multicast groups of datagram queue pairs.

use std::ffi::c_int;

use softfabric_transport::MulticastError;
use softfabric_units::Gid;

use super::QueuePair;
use crate::abi::*;
use crate::errno::{Errno, number};

fn errno(error: MulticastError) -> Errno {
    match error {
        MulticastError::Unknown(_)
        | MulticastError::Service(_)
        | MulticastError::Address(_)
        | MulticastError::NotAttached(_) => Errno::EINVAL,
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
        let attached = qp
            .hub
            .nic
            .with(|device, _| device.attach_multicast(qp.number, Gid(*gid)));
        attached.map(|_first| ()).map_err(errno)
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
        let detached = qp
            .hub
            .nic
            .with(|device, _| device.detach_multicast(qp.number, Gid(*gid)));
        detached.map(|_last| ()).map_err(errno)
    })
}
