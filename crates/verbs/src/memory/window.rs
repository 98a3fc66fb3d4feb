//! Memory windows.
#![allow(unsafe_code, reason = "the program's pointers are followed")]

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use softfabric_adapter::ProcessMemory;
use softfabric_transport::{Device, WindowKind};

use super::region::register_errno;
use crate::abi::*;
use crate::context::Living;
use crate::domain::ProtectionDomain;
use crate::errno::{Errno, number, pointer};
use crate::hub::Hub;
use crate::object::{Object, Shared, handle};

/// A memory window.
#[repr(C)]
pub(crate) struct MemoryWindow {
    c: Shared<ibv_mw>,
    hub: Arc<Hub>,
    /// The key that the last binding gave it. Programs need not keep `ibv_mw.rkey` of a type 2 window up to date.
    key: AtomicU32,
    /// The key that it was made with.
    first: u32,
}

// SAFETY: it is `repr(C)` and begins with its C structure.
unsafe impl Object for MemoryWindow {
    type C = ibv_mw;
}

impl MemoryWindow {
    /// The key that opens it now.
    pub(crate) fn key(&self) -> u32 {
        self.key.load(Ordering::Relaxed)
    }

    /// A binding that gives it another key was posted.
    pub(crate) fn rebound(&self, key: u32) {
        self.key.store(key, Ordering::Relaxed);
    }
}

/// `ibv_alloc_mw`
///
/// # Safety
/// The domain is one of ours.
pub(crate) unsafe extern "C" fn alloc_mw(pd: *mut ibv_pd, kind: c_int) -> *mut ibv_mw {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let domain = unsafe { ProtectionDomain::of(pd) }?;
        let window = match kind {
            IBV_MW_TYPE_1 => WindowKind::Type1,
            IBV_MW_TYPE_2 => WindowKind::Type2,
            _ => return Err(Errno::EINVAL),
        };
        let hub = Arc::clone(domain.hub());
        let key = hub
            .nic
            .with(|device, _| device.alloc_window(domain.domain, window));
        let key = key.map_err(register_errno)?;
        domain.context().born(Living::Window(key));
        Ok(MemoryWindow {
            c: Shared::new(ibv_mw {
                context: domain.context_pointer(),
                pd,
                rkey: key,
                handle: handle(),
                r#type: kind,
            }),
            hub,
            key: AtomicU32::new(key),
            first: key,
        }
        .publish())
    })
}

/// `ibv_dealloc_mw`
///
/// # Safety
/// The window is one of ours, and nobody will use it again unless this fails.
pub(crate) unsafe extern "C" fn dealloc_mw(mw: *mut ibv_mw) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let window = unsafe { MemoryWindow::of(mw) }?;
        if !window
            .hub
            .nic
            .with(|device, _| release_window(device, window.key()))
        {
            return Err(Errno::EINVAL);
        }
        // SAFETY: a domain does not end before its windows.
        unsafe { ProtectionDomain::of((*mw).pd) }?
            .context()
            .died(Living::Window(window.first));
        // SAFETY: the caller gives it up.
        drop(unsafe { MemoryWindow::reclaim(mw) });
        Ok(())
    })
}

/// Releases a window whose key was `key` once: a binding that failed, or has not been carried out, leaves it with
/// another variant than it would have given.
pub(crate) fn release_window(device: &mut Device<ProcessMemory>, key: u32) -> bool {
    let variants = (0..=255_u32).map(|step| key & !0xff | key.wrapping_add(step) & 0xff);
    variants
        .into_iter()
        .any(|key| device.dealloc_window(key).is_ok())
}
