//! Memory regions.
//!
//! ```text
//! reg_mr · reg_mr_iova    the program's own memory, checked to be there
//! … with ON_DEMAND        pages may come and go: every access can fail
//! reg_dmabuf_mr           a file of device memory, mapped for as long as the region lasts
//! reg_dm_mr               memory of this device
//! alloc_null_mr           no bytes at all
//! ```
#![allow(
    unsafe_code,
    reason = "the program's pointers are followed, and files are mapped"
)]

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use softfabric_adapter::ProcessMemory;
use softfabric_transport::{
    Access, RegionChange, RegionInit, RegionRange, RegisterError, ReleaseKeyError, ReregisterError,
};

use crate::abi::*;
use crate::context::Living;
use crate::domain::ProtectionDomain;
use crate::errno::{Errno, number, pointer};
use crate::hub::Hub;
use crate::object::{Object, Shared, handle, lock};
use crate::refuse::unsupported_pointer;

/// A memory region.
#[repr(C)]
pub(crate) struct MemoryRegion {
    c: Shared<ibv_mr>,
    hub: Arc<Hub>,
    key: u32,
    /// What the region's memory lives in, if not in the program's own.
    backing: Mutex<Backing>,
}

/// What has to outlive a region.
pub(super) enum Backing {
    /// The program's memory, which it keeps.
    Program,
    /// A mapping of ours.
    #[allow(dead_code, reason = "it is kept, not read")]
    Mapping(Mapping),
    /// Memory of the device.
    #[allow(dead_code, reason = "it is kept, not read")]
    Device(Arc<super::device_memory::Memory>),
}

// SAFETY: it is `repr(C)` and begins with its C structure.
unsafe impl Object for MemoryRegion {
    type C = ibv_mr;
}

/// Rights that the transport knows.
const RIGHTS: [(i32, Access); 6] = [
    (IBV_ACCESS_LOCAL_WRITE, Access::LOCAL_WRITE),
    (IBV_ACCESS_REMOTE_WRITE, Access::REMOTE_WRITE),
    (IBV_ACCESS_REMOTE_READ, Access::REMOTE_READ),
    (IBV_ACCESS_REMOTE_ATOMIC, Access::REMOTE_ATOMIC),
    (IBV_ACCESS_MW_BIND, Access::BIND_WINDOW),
    (IBV_ACCESS_ZERO_BASED, Access::ZERO_BASED),
];

/// Hints that change nothing here: huge pages, and everything that a device may ignore (relaxed ordering).
const HINTS: i32 = IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;

/// The transport's rights; `EINVAL` where there is a flag that nobody knows.
pub(crate) fn access(flags: c_uint) -> Result<Access, Errno> {
    let mut access = Access::empty();
    let mut rest = flags & !(HINTS | IBV_ACCESS_ON_DEMAND) as u32;
    for (flag, right) in RIGHTS {
        access.set(right, flags & flag as u32 != 0);
        rest &= !(flag as u32);
    }
    if rest == 0 {
        Ok(access)
    } else {
        Err(Errno::EINVAL)
    }
}

pub(super) fn register_errno(error: RegisterError) -> Errno {
    match error {
        RegisterError::NoKeys => Errno::ENOMEM,
        RegisterError::UnknownDomain(_)
        | RegisterError::NeedsLocalWrite(_)
        | RegisterError::Wraps { .. } => Errno::EINVAL,
    }
}

/// Offsets within a page have to agree, as in a kernel that maps whole pages.
fn same_place_in_page(one: u64, other: u64) -> bool {
    (one ^ other) & 0xfff == 0
}

/// A region of the program's memory, as asked for.
fn program_memory(
    address: u64,
    length: usize,
    iova: u64,
    flags: c_uint,
) -> Result<RegionInit, Errno> {
    let access = access(flags)?;
    let on_demand = flags & IBV_ACCESS_ON_DEMAND as u32 != 0;
    let length = length as u64;
    // The whole address space, whatever will be in it.
    if on_demand && address == 0 && length == u64::MAX {
        return Ok(RegionInit {
            region: ProcessMemory::CHECKED,
            ..RegionInit::new(0, length, access)
        });
    }
    if length == 0 || address.checked_add(length).is_none() || !same_place_in_page(address, iova) {
        return Err(Errno::EINVAL);
    }
    let region = if on_demand {
        ProcessMemory::CHECKED
    } else {
        let writable =
            access.intersects(Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC);
        if !ProcessMemory::is_reachable(address, length, writable) {
            return Err(Errno::EFAULT);
        }
        ProcessMemory::DIRECT
    };
    Ok(RegionInit {
        virtual_address: iova,
        address,
        length,
        access,
        region,
    })
}

/// Registers a region and makes its object.
///
/// # Safety
/// The domain is one of ours, or null.
pub(super) unsafe fn register(
    pd: *mut ibv_pd,
    init: &RegionInit,
    shown: *mut c_void,
    backing: Backing,
) -> Result<*mut ibv_mr, Errno> {
    // SAFETY: as promised by the caller.
    let domain = unsafe { ProtectionDomain::of(pd) }?;
    let hub = Arc::clone(domain.hub());
    let key = hub
        .nic
        .with(|device, _| device.register_memory(domain.domain, init));
    let key = key.map_err(register_errno)?;
    domain.context().born(Living::Region(key));
    Ok(MemoryRegion {
        c: Shared::new(ibv_mr {
            context: domain.context_pointer(),
            pd,
            addr: shown,
            length: init.length as usize,
            handle: handle(),
            lkey: key,
            rkey: key,
        }),
        hub,
        key,
        backing: Mutex::new(backing),
    }
    .publish())
}

/// # Safety
/// The domain is one of ours, or null.
unsafe fn register_program_memory(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    iova: u64,
    flags: c_uint,
) -> *mut ibv_mr {
    pointer(|| {
        let init = program_memory(address.addr() as u64, length, iova, flags)?;
        // SAFETY: as promised by the caller.
        unsafe { register(pd, &init, address, Backing::Program) }
    })
}

/// `ibv_reg_mr`
///
/// # Safety
/// The domain is one of ours; the memory stays while it is registered, unless it is registered on demand.
pub(crate) unsafe extern "C" fn reg_mr(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    flags: c_int,
) -> *mut ibv_mr {
    // SAFETY: as promised by the caller.
    unsafe { register_program_memory(pd, address, length, address.addr() as u64, flags as c_uint) }
}

/// `ibv_reg_mr_iova`
///
/// # Safety
/// As for [`reg_mr`].
pub(crate) unsafe extern "C" fn reg_mr_iova(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    iova: u64,
    flags: c_int,
) -> *mut ibv_mr {
    // SAFETY: as promised by the caller.
    unsafe { register_program_memory(pd, address, length, iova, flags as c_uint) }
}

/// `ibv_reg_mr_iova2`
///
/// # Safety
/// As for [`reg_mr`].
pub(crate) unsafe extern "C" fn reg_mr_iova2(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    iova: u64,
    flags: c_uint,
) -> *mut ibv_mr {
    // SAFETY: as promised by the caller.
    unsafe { register_program_memory(pd, address, length, iova, flags) }
}

/// `ibv_alloc_null_mr`
///
/// # Safety
/// The domain is one of ours.
pub(crate) unsafe extern "C" fn alloc_null_mr(pd: *mut ibv_pd) -> *mut ibv_mr {
    pointer(|| {
        let init = RegionInit::null(Access::LOCAL_WRITE);
        // SAFETY: as promised by the caller.
        unsafe { register(pd, &init, std::ptr::null_mut(), Backing::Program) }
    })
}

/// A mapping that ends with its owner.
pub(crate) struct Mapping {
    address: *mut c_void,
    length: usize,
}

// SAFETY: it is only unmapped, once.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(
        length: usize,
        protection: c_int,
        descriptor: RawFd,
        offset: u64,
    ) -> Result<Self, Errno> {
        let offset = libc::off_t::try_from(offset).map_err(|_| Errno::EINVAL)?;
        // SAFETY: the kernel chooses the place, so nothing that exists is replaced.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                descriptor,
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        Ok(Self { address, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and the region over it is gone.
        unsafe { libc::munmap(self.address, self.length) };
    }
}

/// `ibv_reg_dmabuf_mr`: any file that can be mapped will do
///
/// # Safety
/// The domain is one of ours.
pub(crate) unsafe extern "C" fn reg_dmabuf_mr(
    pd: *mut ibv_pd,
    offset: u64,
    length: usize,
    iova: u64,
    descriptor: c_int,
    flags: c_int,
) -> *mut ibv_mr {
    pointer(|| {
        let flags = flags as c_uint;
        let allowed = IBV_ACCESS_LOCAL_WRITE
            | IBV_ACCESS_REMOTE_WRITE
            | IBV_ACCESS_REMOTE_READ
            | IBV_ACCESS_REMOTE_ATOMIC
            | IBV_ACCESS_OPTIONAL_RANGE;
        if flags & !(allowed as u32) != 0 || length == 0 || !same_place_in_page(offset, iova) {
            return Err(Errno::EINVAL);
        }
        let access = access(flags)?;
        let before = offset & 0xfff;
        let writable = access.contains(Access::LOCAL_WRITE);
        let protection = if writable {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        let whole = length.checked_add(before as usize).ok_or(Errno::EINVAL)?;
        let mapping = Mapping::new(whole, protection, descriptor, offset - before)?;
        let address = mapping.address.addr() as u64 + before;
        // What lies behind the end of a file is mapped too, but cannot be touched.
        if !ProcessMemory::is_reachable(address, length as u64, writable) {
            return Err(Errno::EINVAL);
        }
        let init = RegionInit {
            virtual_address: iova,
            ..RegionInit::new(address, length as u64, access)
        };
        // SAFETY: as promised by the caller.
        unsafe { register(pd, &init, std::ptr::null_mut(), Backing::Mapping(mapping)) }
    })
}

/// `ibv_rereg_mr`: returns 0 or a negative `IBV_REREG_MR_ERR_…`, with `errno` set
///
/// # Safety
/// The region and the domain are ours; the memory as for [`reg_mr`].
pub(crate) unsafe extern "C" fn rereg_mr(
    mr: *mut ibv_mr,
    flags: c_int,
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    rights: c_int,
) -> c_int {
    // SAFETY: as promised by the caller.
    let error = number(|| unsafe { reregister(mr, flags, pd, address, length, rights as c_uint) });
    if error == 0 {
        return 0;
    }
    crate::errno::set_errno(Errno::from_code(error));
    IBV_REREG_MR_ERR_INPUT
}

/// # Safety
/// As for [`rereg_mr`].
unsafe fn reregister(
    mr: *mut ibv_mr,
    flags: c_int,
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    rights: c_uint,
) -> Result<(), Errno> {
    let moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION != 0;
    let changes_domain = flags & IBV_REREG_MR_CHANGE_PD != 0;
    let changes_access = flags & IBV_REREG_MR_CHANGE_ACCESS != 0;
    let known =
        IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
    if flags & !known != 0 || flags == 0 || (moves && (length == 0 || address.is_null())) {
        return Err(Errno::EINVAL);
    }
    // SAFETY: as promised by the caller.
    let region = unsafe { MemoryRegion::of(mr) }?;
    let domain = if changes_domain {
        // SAFETY: as promised by the caller.
        Some(unsafe { ProtectionDomain::of(pd) }?)
    } else {
        None
    };
    let range = if moves {
        let at = address.addr() as u64;
        let checked = program_memory(at, length, at, if changes_access { rights } else { 0 })?;
        Some(RegionRange {
            virtual_address: checked.virtual_address,
            address: checked.address,
            length: checked.length,
            region: checked.region,
        })
    } else {
        None
    };
    let change = RegionChange {
        domain: domain.map(|domain| domain.domain),
        range,
        access: if changes_access {
            Some(access(rights)?)
        } else {
            None
        },
    };
    let changed = region
        .hub
        .nic
        .with(|device, _| device.reregister_memory(region.key, &change));
    changed.map_err(|error| match error {
        ReregisterError::WindowsBound(_) => Errno::EBUSY,
        ReregisterError::UnknownKey(_) => Errno::EINVAL,
        ReregisterError::Register(error) => register_errno(error),
    })?;
    // SAFETY: the fields are the library's to set here.
    unsafe {
        if changes_domain {
            (&raw mut (*mr).pd).write(pd);
        }
        if moves {
            (&raw mut (*mr).addr).write(address);
            (&raw mut (*mr).length).write(length);
        }
    }
    if moves {
        *lock(&region.backing) = Backing::Program;
    }
    Ok(())
}

/// `ibv_dereg_mr`
///
/// # Safety
/// The region is one of ours, and nobody will use it again unless this fails.
pub(crate) unsafe extern "C" fn dereg_mr(mr: *mut ibv_mr) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let region = unsafe { MemoryRegion::of(mr) }?;
        let released = region
            .hub
            .nic
            .with(|device, _| device.deregister_memory(region.key));
        released.map_err(|error| match error {
            ReleaseKeyError::WindowsBound(_) => Errno::EBUSY,
            _ => Errno::EINVAL,
        })?;
        // SAFETY: a domain does not end before its regions.
        unsafe { ProtectionDomain::of((*mr).pd) }?
            .context()
            .died(Living::Region(region.key));
        // SAFETY: the caller gives it up.
        drop(unsafe { MemoryRegion::reclaim(mr) });
        Ok(())
    })
}

/// `ibv_advise_mr`: pages are touched, so that they are there when a peer comes
///
/// # Safety
/// The domain is one of ours, and there are `count` pieces.
pub(crate) unsafe extern "C" fn advise_mr(
    pd: *mut ibv_pd,
    advice: c_int,
    flags: u32,
    pieces: *mut ibv_sge,
    count: u32,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let domain = unsafe { ProtectionDomain::of(pd) }?;
        if flags & !(IBV_ADVISE_MR_FLAG_FLUSH as u32) != 0 || count == 0 || pieces.is_null() {
            return Err(Errno::EINVAL);
        }
        let (writable, may_fail) = match advice {
            IBV_ADVISE_MR_ADVICE_PREFETCH => (false, false),
            IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE => (true, false),
            IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT => (false, true),
            _ => return Err(Errno::EOPNOTSUPP),
        };
        // SAFETY: as promised by the caller.
        let pieces = unsafe { std::slice::from_raw_parts(pieces, count as usize) };
        let context = domain.context();
        let known = |piece: &ibv_sge| context.holds(Living::Region(piece.lkey));
        if !pieces.iter().all(known) {
            return Err(Errno::EINVAL);
        }
        for piece in pieces {
            let there = ProcessMemory::is_reachable(piece.addr, u64::from(piece.length), writable);
            if !there && !may_fail && flags & IBV_ADVISE_MR_FLAG_FLUSH as u32 != 0 {
                return Err(Errno::EFAULT);
            }
        }
        Ok(())
    })
}

/// `ibv_import_mr`
pub(crate) extern "C" fn import_mr(_pd: *mut ibv_pd, _handle: u32) -> *mut c_void {
    unsupported_pointer()
}

/// `ibv_fork_init`: nothing has to be done, since no device reads memory behind the kernel's back.
pub(crate) extern "C" fn fork_init() -> c_int {
    0
}

/// `ibv_is_fork_initialized`
pub(crate) extern "C" fn is_fork_initialized() -> c_int {
    IBV_FORK_UNNEEDED
}

/// `ibv_dontfork_range`
pub(crate) extern "C" fn dontfork_range(_start: *mut c_void, _length: usize) -> c_int {
    0
}

/// `ibv_dofork_range`
pub(crate) extern "C" fn dofork_range(_start: *mut c_void, _length: usize) -> c_int {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_translated_one_by_one() {
        for (flag, right) in RIGHTS {
            assert_eq!(access(flag as u32), Ok(right));
        }
        assert_eq!(
            access((IBV_ACCESS_ON_DEMAND | HINTS) as u32),
            Ok(Access::empty())
        );
        assert_eq!(access(1 << 8), Err(Errno::EINVAL));
        assert_eq!(access(1 << 30), Err(Errno::EINVAL));
    }

    #[test]
    fn ranges_are_checked_as_a_kernel_does() {
        let page = vec![0_u8; 8192];
        let address = page.as_ptr().addr() as u64;
        let write = IBV_ACCESS_LOCAL_WRITE as u32;
        assert!(program_memory(address, 8192, address, write).is_ok());
        assert_eq!(
            program_memory(address, 0, address, write),
            Err(Errno::EINVAL)
        );
        assert_eq!(
            program_memory(address, 8192, address + 1, write),
            Err(Errno::EINVAL)
        );
        assert!(program_memory(address, 8192, address + 4096, write).is_ok());
        assert_eq!(
            program_memory(u64::MAX - 10, 100, u64::MAX - 10, write),
            Err(Errno::EINVAL)
        );
        assert_eq!(
            program_memory(4096, 100, 4096, write),
            Err(Errno::EFAULT),
            "nothing is mapped there"
        );
        let demand = IBV_ACCESS_ON_DEMAND as u32;
        assert!(
            program_memory(4096, 100, 4096, write | demand).is_ok(),
            "it may come"
        );
        let all = program_memory(0, usize::MAX, 0, write | demand).unwrap();
        assert_eq!((all.region, all.length), (ProcessMemory::CHECKED, u64::MAX));
    }
}
