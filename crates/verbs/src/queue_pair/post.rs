//! Work requests from the program's lists.

use std::ffi::c_int;

use smallvec::SmallVec;
use softfabric_transport::{
    BindWindow, Datagram, LocalSegment, LocalSegments, PostError, ReceiveRequest, Remote,
    SendFlags, SendOperation, SendRequest,
};
use softfabric_units::Qpn;

use super::QueuePair;
use crate::abi::*;
use crate::address::AddressHandle;
use crate::errno::{Errno, number};
use crate::memory::{self, MemoryWindow};
use crate::object::Object;

/// What a program is told whose request was not posted.
pub(crate) fn errno(error: PostError) -> Errno {
    match error {
        PostError::Full(_) => Errno::ENOMEM,
        PostError::Memory(_) => Errno::EFAULT,
        _ => Errno::EINVAL,
    }
}

/// The transport's flags; what it does not know (checksums of raw packets) is left out.
pub(super) fn flags(flags: u32) -> SendFlags {
    let mut set = SendFlags::empty();
    set.set(SendFlags::FENCE, flags & IBV_SEND_FENCE as u32 != 0);
    set.set(SendFlags::SIGNALED, flags & IBV_SEND_SIGNALED as u32 != 0);
    set.set(SendFlags::SOLICITED, flags & IBV_SEND_SOLICITED as u32 != 0);
    set.set(SendFlags::INLINE, flags & IBV_SEND_INLINE as u32 != 0);
    set
}

pub(super) const fn segment(piece: &ibv_sge) -> LocalSegment {
    LocalSegment {
        address: piece.addr,
        length: piece.length,
        key: piece.lkey,
    }
}

/// A program's scatter/gather list. Pieces without a length are left out: their keys are not looked at.
///
/// # Safety
/// There are `count` pieces at `list`.
#[inline]
pub(crate) unsafe fn segments(list: *const ibv_sge, count: c_int) -> Result<LocalSegments, Errno> {
    match count {
        0 => Ok(LocalSegments::new()),
        1 if !list.is_null() => {
            // SAFETY: as promised by the caller.
            Ok(LocalSegments::from_buf([segment(unsafe { &*list })]))
        }
        _ => {
            let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
            if list.is_null() {
                return Err(Errno::EINVAL);
            }
            // SAFETY: as promised by the caller.
            let list = unsafe { std::slice::from_raw_parts(list, count) };
            Ok(list.iter().map(segment).collect::<SmallVec<_>>())
        }
    }
}

/// The binding that a request asks for.
///
/// # Safety
/// The window and the region are ours, or null.
pub(super) unsafe fn binding(
    mw: *mut ibv_mw,
    new_key: u32,
    info: &ibv_mw_bind_info,
) -> Result<BindWindow, Errno> {
    // SAFETY: as promised by the caller.
    let window = unsafe { MemoryWindow::of(mw) }?;
    // SAFETY: as promised by the caller.
    let region = unsafe { info.mr.as_ref() };
    if region.is_none() && info.length > 0 {
        return Err(Errno::EINVAL);
    }
    Ok(BindWindow {
        window: window.key(),
        new_key,
        region: region.map_or(0, |region| region.lkey),
        address: info.addr,
        length: info.length,
        access: memory::access(info.mw_access_flags)?,
    })
}

/// Where a datagram goes.
///
/// # Safety
/// The address handle is ours, or null.
pub(super) unsafe fn datagram(ah: *mut ibv_ah, number: u32, qkey: u32) -> Result<Datagram, Errno> {
    // SAFETY: as promised by the caller.
    let handle = unsafe { AddressHandle::of(ah) }?;
    Ok(Datagram {
        path: handle.path,
        destination: Qpn::new(number),
        qkey,
    })
}

/// A request of the program, as the transport takes it.
///
/// # Safety
/// What the request points to is ours, or the program's, as its operation says.
#[inline]
unsafe fn translate(datagrams: bool, wr: &ibv_send_wr) -> Result<SendRequest, Errno> {
    let immediate = u32::from_be(wr.imm_data);
    // SAFETY: the operation says which of the union's structures is meant, and every bit pattern is one.
    let (rdma, atomic) = unsafe { (wr.wr.rdma, wr.wr.atomic) };
    let remote = Remote {
        address: rdma.remote_addr,
        key: rdma.rkey,
    };
    let word = Remote {
        address: atomic.remote_addr,
        key: atomic.rkey,
    };
    let operation = match wr.opcode {
        IBV_WR_RDMA_WRITE => SendOperation::Write(remote),
        IBV_WR_RDMA_WRITE_WITH_IMM => SendOperation::WriteImmediate(remote, immediate),
        IBV_WR_SEND => SendOperation::Send,
        IBV_WR_SEND_WITH_IMM => SendOperation::SendImmediate(immediate),
        IBV_WR_RDMA_READ => SendOperation::Read(remote),
        IBV_WR_ATOMIC_CMP_AND_SWP => SendOperation::CompareSwap {
            remote: word,
            compare: atomic.compare_add,
            swap: atomic.swap,
        },
        IBV_WR_ATOMIC_FETCH_AND_ADD => SendOperation::FetchAdd {
            remote: word,
            add: atomic.compare_add,
        },
        IBV_WR_LOCAL_INV => SendOperation::LocalInvalidate(wr.imm_data),
        IBV_WR_BIND_MW => {
            // SAFETY: the operation says that this structure of the union is meant.
            let bind = unsafe { wr.rare.bind_mw };
            // SAFETY: as promised by the caller.
            SendOperation::BindWindow(unsafe { binding(bind.mw, bind.rkey, &bind.bind_info) }?)
        }
        IBV_WR_SEND_WITH_INV => SendOperation::SendInvalidate(wr.imm_data),
        IBV_WR_TSO | IBV_WR_ATOMIC_WRITE => return Err(Errno::EOPNOTSUPP),
        _ => return Err(Errno::EINVAL),
    };
    let datagram = if datagrams {
        // SAFETY: for datagrams this structure of the union is meant.
        let ud = unsafe { wr.wr.ud };
        // SAFETY: as promised by the caller.
        Some(unsafe { datagram(ud.ah, ud.remote_qpn, ud.remote_qkey) }?)
    } else {
        None
    };
    let local = match operation {
        // Neither has local memory; programs leave anything in the list.
        SendOperation::BindWindow(_) | SendOperation::LocalInvalidate(_) => LocalSegments::new(),
        // SAFETY: as promised by the caller.
        _ => unsafe { segments(wr.sg_list, wr.num_sge) }?,
    };
    Ok(SendRequest {
        id: wr.wr_id,
        operation,
        local,
        flags: flags(wr.send_flags),
        datagram,
        // Looked at for XRC only; other programs leave anything there.
        xrc_srq: wr.remote_srqn,
    })
}

/// Remembers the key that a posted binding gives its window.
///
/// # Safety
/// The window is ours.
pub(super) unsafe fn rebound(mw: *mut ibv_mw, key: u32) {
    // SAFETY: as promised by the caller.
    if let Ok(window) = unsafe { MemoryWindow::of(mw) } {
        window.rebound(key);
    }
}

/// `ibv_post_send`
///
/// # Safety
/// The queue pair is one of ours; the requests are a list of the caller, and what they point to is the program's.
pub(crate) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    list: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    let mut at = list;
    let error = number(|| {
        // SAFETY: as promised by the caller.
        let this = unsafe { QueuePair::of_qp(qp) }?;
        this.hub.nic.with(|device, now| {
            // SAFETY: as promised by the caller; a list ends with a null pointer.
            while let Some(wr) = unsafe { at.as_ref() } {
                // SAFETY: as promised by the caller.
                let request = unsafe { translate(this.datagrams, wr) }?;
                device.post_send(now, this.number, request).map_err(errno)?;
                if wr.opcode == IBV_WR_BIND_MW {
                    // SAFETY: the operation says which structure is meant, and the window was followed before.
                    unsafe { rebound(wr.rare.bind_mw.mw, wr.rare.bind_mw.rkey) };
                }
                at = wr.next;
            }
            Ok(())
        })
    });
    if error != 0 && !bad.is_null() {
        // SAFETY: the caller's place.
        unsafe { bad.write(at) };
    }
    error
}

/// `ibv_post_recv`
///
/// # Safety
/// The queue pair is one of ours, and the requests are a list of the caller.
pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    list: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: as promised by the caller.
    let this = unsafe { QueuePair::of_qp(qp) };
    // SAFETY: as promised by the caller.
    unsafe {
        post_receives(list, bad, |requests| {
            let this = this?;
            this.hub.nic.with(|device, _| {
                for request in requests {
                    device.post_recv(this.number, request?).map_err(errno)?;
                }
                Ok(())
            })
        })
    }
}

/// Posts a list of receive requests, and tells the program which one failed.
///
/// # Safety
/// The requests are a list of the caller.
pub(crate) unsafe fn post_receives(
    list: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
    post: impl FnOnce(&mut dyn Iterator<Item = Result<ReceiveRequest, Errno>>) -> Result<(), Errno>,
) -> c_int {
    let mut current = list;
    let mut next = list;
    let mut requests = std::iter::from_fn(|| {
        current = next;
        // SAFETY: as promised by the caller; a list ends with a null pointer.
        let wr = unsafe { next.as_ref() }?;
        next = wr.next;
        // SAFETY: as promised by the caller.
        let local = unsafe { segments(wr.sg_list, wr.num_sge) };
        Some(local.map(|local| ReceiveRequest {
            id: wr.wr_id,
            local,
        }))
    });
    let error = number(|| post(&mut requests));
    if error != 0 && !bad.is_null() {
        // SAFETY: the caller's place.
        unsafe { bad.write(current) };
    }
    error
}

/// `ibv_bind_mw`: binds a window of type 1
///
/// # Safety
/// The queue pair, the window and the region are ours; the binding is a structure of the caller.
pub(crate) unsafe extern "C" fn bind_mw(
    qp: *mut ibv_qp,
    mw: *mut ibv_mw,
    bind: *mut ibv_mw_bind,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let (this, bind) = unsafe { (QueuePair::of_qp(qp)?, bind.as_ref().ok_or(Errno::EINVAL)?) };
        // SAFETY: as promised by the caller.
        let key = unsafe { MemoryWindow::of(mw) }?.key();
        let new_key = key & !0xff | key.wrapping_add(1) & 0xff;
        // SAFETY: as promised by the caller.
        let operation =
            SendOperation::BindWindow(unsafe { binding(mw, new_key, &bind.bind_info) }?);
        let mut request = SendRequest::empty(bind.wr_id, operation);
        request.flags = flags(bind.send_flags);
        let posted = this
            .hub
            .nic
            .with(|device, now| device.post_send(now, this.number, request));
        posted.map_err(errno)?;
        // SAFETY: the window is ours; its key is the library's to set here.
        unsafe {
            rebound(mw, new_key);
            (&raw mut (*mw).rkey).write(new_key);
        }
        Ok(())
    })
}
