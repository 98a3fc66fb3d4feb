//! Protection domains, parent domains, thread domains.
//!
//! A parent domain is a second name of a protection domain, with allocators for the memory that a hardware device would
//! share with the program. There is no such memory here, so the allocators are accepted and not called.
#![allow(unsafe_code, reason = "the program's pointers are followed")]

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use softfabric_transport::Domain;

use crate::abi::*;
use crate::context::{Context, Living};
use crate::errno::{Errno, number, pointer};
use crate::hub::Hub;
use crate::object::{Object, Shared, handle};
use crate::refuse::unsupported_pointer;

/// A protection domain, or a parent domain in front of one.
#[repr(C)]
pub(crate) struct ProtectionDomain {
    c: Shared<ibv_pd>,
    pub(crate) domain: Domain,
    /// The domain that a parent domain stands for.
    parent_of: Option<*mut ibv_pd>,
    thread_domain: Option<*mut ibv_td>,
    /// Address handles and parent domains: the transport counts everything else.
    pub(crate) users: AtomicU32,
}

// SAFETY: it is `repr(C)` and begins with its C structure.
unsafe impl Object for ProtectionDomain {
    type C = ibv_pd;
}

impl ProtectionDomain {
    pub(crate) fn context_pointer(&self) -> *mut ibv_context {
        // SAFETY: the field is set when the object is made, and programs do not change it.
        unsafe { (*self.c.get()).context }
    }

    pub(crate) fn context(&self) -> &Context {
        // SAFETY: a domain ends before its context does.
        unsafe { Context::of(self.context_pointer()) }.expect("a domain has a context")
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.context().hub
    }

    /// Counts something that belongs to the domain, in front of which a parent domain may stand.
    pub(crate) fn join(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.users.fetch_sub(1, Ordering::Relaxed);
    }
}

/// `ibv_alloc_pd`
///
/// # Safety
/// The context is open.
pub(crate) unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let context = unsafe { Context::of(context) }?;
        let domain = context.hub.nic.with(|device, _| device.alloc_domain());
        context.born(Living::Domain(domain));
        Ok(ProtectionDomain {
            c: Shared::new(ibv_pd {
                context: context.as_ibv(),
                handle: handle(),
            }),
            domain,
            parent_of: None,
            thread_domain: None,
            users: AtomicU32::new(0),
        }
        .publish())
    })
}

/// `ibv_dealloc_pd`
///
/// # Safety
/// The domain is one of ours, and nobody will use it again unless this fails.
pub(crate) unsafe extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let domain = unsafe { ProtectionDomain::of(pd) }?;
        if domain.users.load(Ordering::Relaxed) > 0 {
            return Err(Errno::EBUSY);
        }
        if let Some(of) = domain.parent_of {
            // SAFETY: it was made over this domain, which cannot have ended before.
            unsafe { ProtectionDomain::of(of) }?.leave();
            if let Some(td) = domain.thread_domain {
                // SAFETY: the same for the thread domain.
                unsafe { ThreadDomain::of(td) }?
                    .users
                    .fetch_sub(1, Ordering::Relaxed);
            }
        } else {
            let context = domain.context();
            let released = context
                .hub
                .nic
                .with(|device, _| device.dealloc_domain(domain.domain));
            released.map_err(|_| Errno::EBUSY)?;
            context.died(Living::Domain(domain.domain));
        }
        // SAFETY: the caller gives it up.
        drop(unsafe { ProtectionDomain::reclaim(pd) });
        Ok(())
    })
}

/// `ibv_alloc_parent_domain`
///
/// # Safety
/// The context is open, and the attributes are a structure of the caller.
pub(crate) unsafe extern "C" fn alloc_parent_domain(
    context: *mut ibv_context,
    attributes: *mut ibv_parent_domain_init_attr,
) -> *mut ibv_pd {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let (context, attributes) = unsafe {
            (
                Context::of(context)?,
                attributes.as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        let known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
        if attributes.comp_mask & !(known as u32) != 0 {
            return Err(Errno::EINVAL);
        }
        // SAFETY: the program passes a domain of ours, or null.
        let of = unsafe { ProtectionDomain::of(attributes.pd) }?;
        if of.parent_of.is_some() || of.context_pointer() != context.as_ibv() {
            return Err(Errno::EINVAL);
        }
        let thread_domain = if attributes.td.is_null() {
            None
        } else {
            // SAFETY: the program passes a thread domain of ours.
            unsafe { ThreadDomain::of(attributes.td) }?
                .users
                .fetch_add(1, Ordering::Relaxed);
            Some(attributes.td)
        };
        of.join();
        Ok(ProtectionDomain {
            c: Shared::new(ibv_pd {
                context: context.as_ibv(),
                handle: handle(),
            }),
            domain: of.domain,
            parent_of: Some(attributes.pd),
            thread_domain,
            users: AtomicU32::new(0),
        }
        .publish())
    })
}

/// A promise of the program that one thread at a time uses what belongs to it. Locks are taken all the same.
#[repr(C)]
struct ThreadDomain {
    c: Shared<ibv_td>,
    users: AtomicU32,
}

// SAFETY: it is `repr(C)` and begins with its C structure.
unsafe impl Object for ThreadDomain {
    type C = ibv_td;
}

/// `ibv_alloc_td`
///
/// # Safety
/// The context is open, and the attributes are a structure of the caller.
pub(crate) unsafe extern "C" fn alloc_td(
    context: *mut ibv_context,
    attributes: *mut ibv_td_init_attr,
) -> *mut ibv_td {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let (context, attributes) = unsafe {
            (
                Context::of(context)?,
                attributes.as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        if attributes.comp_mask != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        Ok(ThreadDomain {
            c: Shared::new(ibv_td {
                context: context.as_ibv(),
            }),
            users: AtomicU32::new(0),
        }
        .publish())
    })
}

/// `ibv_dealloc_td`
///
/// # Safety
/// The domain is one of ours, and nobody will use it again unless this fails.
pub(crate) unsafe extern "C" fn dealloc_td(td: *mut ibv_td) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        if unsafe { ThreadDomain::of(td) }?
            .users
            .load(Ordering::Relaxed)
            > 0
        {
            return Err(Errno::EBUSY);
        }
        // SAFETY: the caller gives it up.
        drop(unsafe { ThreadDomain::reclaim(td) });
        Ok(())
    })
}

/// `ibv_import_pd`
pub(crate) extern "C" fn import_pd(_context: *mut ibv_context, _handle: u32) -> *mut c_void {
    unsupported_pointer()
}
