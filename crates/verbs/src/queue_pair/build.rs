//! Requests that are built by calls.
//!
//! ```text
//! wr_start ─► wr_rdma_write ─► wr_set_sge ─► wr_send ─► wr_set_inline_data ─► … ─► wr_complete: all are posted
//!                                                                             └──► wr_abort: none is
//! └────────────────────── the queue pair's building lock ────────────────────────┘
//! ```
//!
//! The first error that a call meets is told by `wr_complete`, and nothing is posted then.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint, c_void};

use lock_api::RawMutex as _;
use parking_lot::RawMutex;
use softfabric_transport::{
    LocalSegment, LocalSegments, QueuePairType, Remote, SendFlags, SendOperation, SendRequest,
};

use super::QueuePair;
use super::post::{binding, datagram, errno, flags, rebound, segment};
use crate::abi::*;
use crate::errno::{Errno, number, quiet};
use crate::object::Object;

/// The list that is being built.
pub(super) struct Builder {
    building: RawMutex,
    /// Guarded by `building`.
    list: UnsafeCell<List>,
}

// SAFETY: the list is only touched between `wr_start` and `wr_complete` or `wr_abort`, which hold the lock.
unsafe impl Sync for Builder {}

impl Default for Builder {
    fn default() -> Self {
        Self {
            building: RawMutex::INIT,
            list: UnsafeCell::default(),
        }
    }
}

#[derive(Default)]
struct List {
    requests: Vec<SendRequest>,
    /// Inline data of each request that has some: the transport copies it when the list is posted.
    copies: Vec<(usize, Vec<u8>)>,
    /// Windows that are bound, with their new keys.
    bound: Vec<(*mut ibv_mw, u32)>,
    error: Option<Errno>,
}

/// The operations that can be built for a service: `IBV_QP_EX_WITH_…`.
pub(super) const fn operations(service: QueuePairType) -> u64 {
    let datagram = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    let unreliable = datagram
        | IBV_QP_EX_WITH_RDMA_WRITE
        | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
        | IBV_QP_EX_WITH_BIND_MW
        | IBV_QP_EX_WITH_LOCAL_INV;
    let reliable = unreliable
        | IBV_QP_EX_WITH_RDMA_READ
        | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
        | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
        | IBV_QP_EX_WITH_SEND_WITH_INV;
    (match service {
        QueuePairType::ReliableConnection => reliable,
        QueuePairType::UnreliableConnection => unreliable,
        QueuePairType::UnreliableDatagram => datagram,
        QueuePairType::XrcInitiator => reliable,
        QueuePairType::XrcTarget => 0,
    }) as u64
}

/// The C structure with its functions.
pub(super) fn structure(qp_base: ibv_qp) -> ibv_qp_ex {
    ibv_qp_ex {
        qp_base,
        comp_mask: 0,
        wr_id: 0,
        wr_flags: 0,
        wr_atomic_cmp_swp: Some(wr_atomic_cmp_swp),
        wr_atomic_fetch_add: Some(wr_atomic_fetch_add),
        wr_bind_mw: Some(wr_bind_mw),
        wr_local_inv: Some(wr_local_inv),
        wr_rdma_read: Some(wr_rdma_read),
        wr_rdma_write: Some(wr_rdma_write),
        wr_rdma_write_imm: Some(wr_rdma_write_imm),
        wr_send: Some(wr_send),
        wr_send_imm: Some(wr_send_imm),
        wr_send_inv: Some(wr_send_inv),
        wr_send_tso: Some(wr_send_tso),
        wr_set_ud_addr: Some(wr_set_ud_addr),
        wr_set_xrc_srqn: Some(wr_set_xrc_srqn),
        wr_set_inline_data: Some(wr_set_inline_data),
        wr_set_inline_data_list: Some(wr_set_inline_data_list),
        wr_set_sge: Some(wr_set_sge),
        wr_set_sge_list: Some(wr_set_sge_list),
        wr_start: Some(wr_start),
        wr_complete: Some(wr_complete),
        wr_abort: Some(wr_abort),
        wr_atomic_write: Some(wr_atomic_write),
        wr_flush: None,
    }
}

/// Does something with the list; errors wait for `wr_complete`.
fn change(qp: *mut ibv_qp_ex, change: impl FnOnce(&QueuePair, &mut List) -> Result<(), Errno>) {
    quiet(|| {
        // SAFETY: the program passes a queue pair of ours, between `wr_start` and `wr_complete` or `wr_abort`, so this
        // thread holds the lock that guards the list.
        let (qp, list) = unsafe {
            let Ok(qp) = QueuePair::of(qp) else { return };
            (qp, &mut *qp.builder.list.get())
        };
        if let Err(error) = change(qp, list) {
            list.error.get_or_insert(error);
        }
    });
}

/// Begins a request; its id and flags are those that the program has put into the structure.
fn begin(qp: *mut ibv_qp_ex, operation: SendOperation) {
    change(qp, |this, list| {
        // SAFETY: the fields are the program's, set by the thread that calls.
        let (id, wanted): (u64, c_uint) =
            unsafe { ((*this.c.get()).wr_id, (*this.c.get()).wr_flags) };
        list.requests.push(SendRequest {
            id,
            operation,
            local: LocalSegments::new(),
            flags: flags(wanted) - SendFlags::INLINE,
            datagram: None,
            xrc_srq: 0,
        });
        Ok(())
    });
}

/// Changes the request that was begun last.
fn last(qp: *mut ibv_qp_ex, set: impl FnOnce(&mut SendRequest) -> Result<(), Errno>) {
    change(qp, |_, list| {
        set(list.requests.last_mut().ok_or(Errno::EINVAL)?)
    });
}

const fn remote(key: u32, address: u64) -> Remote {
    Remote { address, key }
}

unsafe extern "C" fn wr_atomic_cmp_swp(
    qp: *mut ibv_qp_ex,
    rkey: u32,
    address: u64,
    compare: u64,
    swap: u64,
) {
    let remote = remote(rkey, address);
    begin(
        qp,
        SendOperation::CompareSwap {
            remote,
            compare,
            swap,
        },
    );
}

unsafe extern "C" fn wr_atomic_fetch_add(qp: *mut ibv_qp_ex, rkey: u32, address: u64, add: u64) {
    let remote = remote(rkey, address);
    begin(qp, SendOperation::FetchAdd { remote, add });
}

unsafe extern "C" fn wr_bind_mw(
    qp: *mut ibv_qp_ex,
    mw: *mut ibv_mw,
    rkey: u32,
    info: *const ibv_mw_bind_info,
) {
    // SAFETY: the program passes a window and a region of ours, and a structure of its own.
    let binding = unsafe {
        info.as_ref()
            .ok_or(Errno::EINVAL)
            .and_then(|info| binding(mw, rkey, info))
    };
    match binding {
        Ok(binding) => {
            begin(qp, SendOperation::BindWindow(binding));
            change(qp, |_, list| {
                list.bound.push((mw, rkey));
                Ok(())
            });
        }
        Err(error) => change(qp, |_, _| Err(error)),
    }
}

unsafe extern "C" fn wr_local_inv(qp: *mut ibv_qp_ex, key: u32) {
    begin(qp, SendOperation::LocalInvalidate(key));
}

unsafe extern "C" fn wr_rdma_read(qp: *mut ibv_qp_ex, rkey: u32, address: u64) {
    begin(qp, SendOperation::Read(remote(rkey, address)));
}

unsafe extern "C" fn wr_rdma_write(qp: *mut ibv_qp_ex, rkey: u32, address: u64) {
    begin(qp, SendOperation::Write(remote(rkey, address)));
}

unsafe extern "C" fn wr_rdma_write_imm(
    qp: *mut ibv_qp_ex,
    rkey: u32,
    address: u64,
    immediate: u32,
) {
    begin(
        qp,
        SendOperation::WriteImmediate(remote(rkey, address), u32::from_be(immediate)),
    );
}

unsafe extern "C" fn wr_send(qp: *mut ibv_qp_ex) {
    begin(qp, SendOperation::Send);
}

unsafe extern "C" fn wr_send_imm(qp: *mut ibv_qp_ex, immediate: u32) {
    begin(qp, SendOperation::SendImmediate(u32::from_be(immediate)));
}

unsafe extern "C" fn wr_send_inv(qp: *mut ibv_qp_ex, key: u32) {
    begin(qp, SendOperation::SendInvalidate(key));
}

unsafe extern "C" fn wr_send_tso(
    qp: *mut ibv_qp_ex,
    _header: *mut c_void,
    _length: u16,
    _segment: u16,
) {
    change(qp, |_, _| Err(Errno::EOPNOTSUPP));
}

unsafe extern "C" fn wr_atomic_write(
    qp: *mut ibv_qp_ex,
    _rkey: u32,
    _address: u64,
    _value: *const c_void,
) {
    change(qp, |_, _| Err(Errno::EOPNOTSUPP));
}

unsafe extern "C" fn wr_set_ud_addr(qp: *mut ibv_qp_ex, ah: *mut ibv_ah, number: u32, qkey: u32) {
    last(qp, |request| {
        // SAFETY: the program passes an address handle of ours.
        request.datagram = Some(unsafe { datagram(ah, number, qkey) }?);
        Ok(())
    });
}

unsafe extern "C" fn wr_set_xrc_srqn(qp: *mut ibv_qp_ex, number: u32) {
    last(qp, |request| {
        request.xrc_srq = number;
        Ok(())
    });
}

/// Copies inline data: the program may use its own again at once.
fn copy(qp: *mut ibv_qp_ex, pieces: &[ibv_data_buf]) {
    change(qp, |_, list| {
        let place = list.requests.len().checked_sub(1).ok_or(Errno::EINVAL)?;
        let mut bytes = Vec::new();
        for piece in pieces.iter().filter(|piece| piece.length > 0) {
            // SAFETY: the program passes memory of its own that can be read.
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts(piece.addr.cast::<u8>(), piece.length)
            });
        }
        list.requests[place].flags |= SendFlags::INLINE;
        list.requests[place].local = LocalSegments::from_buf([LocalSegment {
            // The copy does not move any more, wherever its vector does.
            address: bytes.as_ptr().addr() as u64,
            length: u32::try_from(bytes.len()).map_err(|_| Errno::EINVAL)?,
            key: 0,
        }]);
        list.copies.push((place, bytes));
        Ok(())
    });
}

unsafe extern "C" fn wr_set_inline_data(qp: *mut ibv_qp_ex, addr: *mut c_void, length: usize) {
    copy(qp, &[ibv_data_buf { addr, length }]);
}

unsafe extern "C" fn wr_set_inline_data_list(
    qp: *mut ibv_qp_ex,
    count: usize,
    list: *const ibv_data_buf,
) {
    if count == 0 || list.is_null() {
        return copy(qp, &[]);
    }
    // SAFETY: the program passes so many pieces.
    copy(qp, unsafe { std::slice::from_raw_parts(list, count) });
}

unsafe extern "C" fn wr_set_sge(qp: *mut ibv_qp_ex, key: u32, address: u64, length: u32) {
    last(qp, |request| {
        request.local = LocalSegments::from_buf([LocalSegment {
            address,
            length,
            key,
        }]);
        Ok(())
    });
}

unsafe extern "C" fn wr_set_sge_list(qp: *mut ibv_qp_ex, count: usize, list: *const ibv_sge) {
    last(qp, |request| {
        request.local.clear();
        if count > 0 {
            if list.is_null() {
                return Err(Errno::EINVAL);
            }
            // SAFETY: the program passes so many pieces.
            let list = unsafe { std::slice::from_raw_parts(list, count) };
            request.local.extend(list.iter().map(segment));
        }
        Ok(())
    });
}

unsafe extern "C" fn wr_start(qp: *mut ibv_qp_ex) {
    quiet(|| {
        // SAFETY: the program passes a queue pair of ours.
        if let Ok(qp) = unsafe { QueuePair::of(qp) } {
            qp.builder.building.lock();
            // SAFETY: the lock is held now.
            unsafe { (*qp.builder.list.get()).clear() };
        }
    });
}

unsafe extern "C" fn wr_complete(qp: *mut ibv_qp_ex) -> c_int {
    number(|| {
        // SAFETY: the program passes a queue pair of ours, after `wr_start`: the lock is held by this thread.
        let (qp, list) = unsafe {
            let qp = QueuePair::of(qp)?;
            (qp, &mut *qp.builder.list.get())
        };
        let posted = list.post(qp);
        list.clear();
        // SAFETY: it was locked by `wr_start`.
        unsafe { qp.builder.building.unlock() };
        posted
    })
}

unsafe extern "C" fn wr_abort(qp: *mut ibv_qp_ex) {
    quiet(|| {
        // SAFETY: the program passes a queue pair of ours, after `wr_start`: the lock is held by this thread.
        unsafe {
            if let Ok(qp) = QueuePair::of(qp) {
                (*qp.builder.list.get()).clear();
                qp.builder.building.unlock();
            }
        }
    });
}

impl List {
    fn clear(&mut self) {
        self.requests.clear();
        self.copies.clear();
        self.bound.clear();
        self.error = None;
    }

    /// Posts everything.
    fn post(&mut self, qp: &QueuePair) -> Result<(), Errno> {
        if let Some(error) = self.error {
            return Err(error);
        }
        qp.hub.nic.with(|device, now| {
            for request in self.requests.drain(..) {
                device.post_send(now, qp.number, request).map_err(errno)?;
            }
            Ok(())
        })?;
        for (mw, key) in &self.bound {
            // SAFETY: the window was followed when the binding was made, a moment ago.
            unsafe { rebound(*mw, *key) };
        }
        Ok(())
    }
}
