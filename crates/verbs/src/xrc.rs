//! Domains of extended reliable connections (XRC): what lets the processes of a job share receive queues.
//!
//! A file stands for a domain that several open; all who open the same file, on the same device, get the same one. Here
//! that reaches as far as the process: shared receive queues of other processes are out of reach.
#![allow(unsafe_code, reason = "the program's pointers are followed")]

use std::ffi::c_int;
use std::sync::Arc;

use softfabric_transport::{XrcDomain, XrcError};

use crate::abi::*;
use crate::context::{Context, Living};
use crate::errno::{Errno, number, pointer};
use crate::hub::Hub;
use crate::object::{Object, Shared, lock};

/// A domain that a program has opened.
#[repr(C)]
pub(crate) struct Xrcd {
    c: Shared<ibv_xrcd>,
    hub: Arc<Hub>,
    pub(crate) domain: XrcDomain,
}

// SAFETY: it is `repr(C)` and begins with its C structure.
unsafe impl Object for Xrcd {
    type C = ibv_xrcd;
}

/// A domain that a file stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    device: u64,
    inode: u64,
    domain: XrcDomain,
    openings: u32,
}

impl Hub {
    /// Opens the domain of a file.
    fn open_named(&self, descriptor: c_int, flags: c_int) -> Result<XrcDomain, Errno> {
        // SAFETY: all zeros are a structure, and it is filled before it is read.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the structure is ours.
        if unsafe { libc::fstat(descriptor, &raw mut status) } != 0 {
            return Err(Errno::EBADF);
        }
        let mut named = lock(&self.xrc_domains);
        let same = |one: &&mut Named| one.device == status.st_dev && one.inode == status.st_ino;
        if let Some(found) = named.iter_mut().find(same) {
            if flags & libc::O_EXCL != 0 {
                return Err(Errno::EINVAL);
            }
            found.openings += 1;
            return Ok(found.domain);
        }
        // What a kernel says of a domain that nobody has made yet.
        if flags & libc::O_CREAT == 0 {
            return Err(Errno::EAGAIN);
        }
        let domain = self.nic.with(|device, _| device.alloc_xrc_domain());
        named.push(Named {
            device: status.st_dev,
            inode: status.st_ino,
            domain,
            openings: 1,
        });
        Ok(domain)
    }

    /// Closes a domain, which ends with its last user.
    pub(crate) fn close_xrc_domain(&self, domain: XrcDomain) -> Result<(), Errno> {
        let mut named = lock(&self.xrc_domains);
        let place = named.iter().position(|one| one.domain == domain);
        if let Some(place) = place
            && named[place].openings > 1
        {
            named[place].openings -= 1;
            return Ok(());
        }
        let removed = self.nic.with(|device, _| device.dealloc_xrc_domain(domain));
        removed.map_err(|error| match error {
            XrcError::DomainInUse(..) => Errno::EBUSY,
            XrcError::UnknownDomain(_) | XrcError::NoTarget(..) => Errno::EINVAL,
        })?;
        if let Some(place) = place {
            named.remove(place);
        }
        Ok(())
    }
}

/// `ibv_open_xrcd`
///
/// # Safety
/// The context is open, and the attributes are a structure of the caller.
pub(crate) unsafe extern "C" fn open_xrcd(
    context: *mut ibv_context,
    attributes: *mut ibv_xrcd_init_attr,
) -> *mut ibv_xrcd {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let (context, attributes) = unsafe {
            (
                Context::of(context)?,
                attributes.as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        let needed = (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS) as u32;
        if attributes.comp_mask != needed
            || attributes.oflags & !(libc::O_CREAT | libc::O_EXCL) != 0
        {
            return Err(Errno::EINVAL);
        }
        let hub = Arc::clone(&context.hub);
        let domain = if attributes.fd == -1 {
            hub.nic.with(|device, _| device.alloc_xrc_domain())
        } else {
            hub.open_named(attributes.fd, attributes.oflags)?
        };
        context.born(Living::XrcDomain(domain));
        Ok(Xrcd {
            c: Shared::new(ibv_xrcd {
                context: context.as_ibv(),
            }),
            hub,
            domain,
        }
        .publish())
    })
}

/// `ibv_close_xrcd`
///
/// # Safety
/// The domain is one of ours, and nobody will use it again unless this fails.
pub(crate) unsafe extern "C" fn close_xrcd(xrcd: *mut ibv_xrcd) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let this = unsafe { Xrcd::of(xrcd) }?;
        this.hub.close_xrc_domain(this.domain)?;
        // SAFETY: the field is set when the object is made; a domain ends before its context does.
        unsafe { Context::of((*this.c.get()).context) }?.died(Living::XrcDomain(this.domain));
        // SAFETY: the caller gives it up.
        drop(unsafe { Xrcd::reclaim(xrcd) });
        Ok(())
    })
}
