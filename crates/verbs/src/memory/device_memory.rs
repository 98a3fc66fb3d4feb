//! Memory of the device: allocated here, reached by copying, registered like any other.
//!
//! Real devices ask for offsets and lengths that are multiples of four; so does this one.
#![allow(unsafe_code, reason = "the memory is copied to and from the program's")]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use softfabric_transport::{Access, RegionInit};

use super::region::{Backing, access, register};
use crate::abi::*;
use crate::context::Context;
use crate::errno::{Errno, number, pointer};
use crate::object::{Object, Shared, handle};
use crate::refuse::unsupported_pointer;

/// How much there is, in bytes, for a process.
pub(crate) const DEVICE_MEMORY: usize = 1 << 20;

/// The largest alignment that is granted, as a logarithm.
const MOST_ALIGNED: u32 = 12;

static USED: AtomicUsize = AtomicUsize::new(0);

/// The bytes. Peers and the program may write them at any time, as with real device memory.
pub(crate) struct Memory {
    words: Box<[UnsafeCell<u64>]>,
    start: usize,
    length: usize,
}

// SAFETY: it is only ever copied through raw pointers.
unsafe impl Send for Memory {}
// SAFETY: as above; who writes where another reads sees any mixture of bytes, as with real device memory.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(length: usize, alignment: usize) -> Result<Self, Errno> {
        let take = |used: usize| {
            used.checked_add(length)
                .filter(|used| *used <= DEVICE_MEMORY)
        };
        USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .map_err(|_| Errno::ENOMEM)?;
        let words = (length + alignment).div_ceil(8);
        let words: Box<[UnsafeCell<u64>]> = (0..words).map(|_| UnsafeCell::new(0)).collect();
        let start = words.as_ptr().addr().next_multiple_of(alignment) - words.as_ptr().addr();
        Ok(Self {
            words,
            start,
            length,
        })
    }

    fn address(&self) -> *mut u8 {
        self.words
            .as_ptr()
            .cast_mut()
            .cast::<u8>()
            .wrapping_add(self.start)
    }

    /// The place of a range, if it is inside and a multiple of four.
    fn range(&self, offset: u64, length: usize) -> Result<*mut u8, Errno> {
        let offset = usize::try_from(offset).map_err(|_| Errno::EINVAL)?;
        let end = offset.checked_add(length).ok_or(Errno::EINVAL)?;
        if end > self.length || !offset.is_multiple_of(4) || !length.is_multiple_of(4) {
            return Err(Errno::EINVAL);
        }
        Ok(self.address().wrapping_add(offset))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        USED.fetch_sub(self.length, Ordering::Relaxed);
    }
}

/// Memory of the device that the program has allocated.
#[repr(C)]
struct DeviceMemory {
    c: Shared<ibv_dm>,
    memory: Arc<Memory>,
}

// SAFETY: it is `repr(C)` and begins with its C structure.
unsafe impl Object for DeviceMemory {
    type C = ibv_dm;
}

/// `ibv_alloc_dm`
///
/// # Safety
/// The context is open, and the attributes are a structure of the caller.
pub(crate) unsafe extern "C" fn alloc_dm(
    context: *mut ibv_context,
    attributes: *mut ibv_alloc_dm_attr,
) -> *mut ibv_dm {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let (context, attributes) = unsafe {
            (
                Context::of(context)?,
                attributes.as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        if attributes.comp_mask != 0 || attributes.length == 0 {
            return Err(Errno::EINVAL);
        }
        if attributes.length > DEVICE_MEMORY || attributes.log_align_req > MOST_ALIGNED {
            return Err(Errno::ENOMEM);
        }
        let alignment = (1_usize << attributes.log_align_req).max(8);
        Ok(DeviceMemory {
            c: Shared::new(ibv_dm {
                context: context.as_ibv(),
                memcpy_to_dm: Some(memcpy_to_dm),
                memcpy_from_dm: Some(memcpy_from_dm),
                comp_mask: IBV_DM_MASK_HANDLE as u32,
                handle: handle(),
            }),
            memory: Arc::new(Memory::new(attributes.length, alignment)?),
        }
        .publish())
    })
}

/// `ibv_free_dm`
///
/// # Safety
/// The memory is one of ours, and nobody will use it again unless this fails.
pub(crate) unsafe extern "C" fn free_dm(dm: *mut ibv_dm) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let memory = unsafe { DeviceMemory::of(dm) }?;
        // Regions over it hold it too.
        if Arc::strong_count(&memory.memory) > 1 {
            return Err(Errno::EBUSY);
        }
        // SAFETY: the caller gives it up.
        drop(unsafe { DeviceMemory::reclaim(dm) });
        Ok(())
    })
}

unsafe extern "C" fn memcpy_to_dm(
    dm: *mut ibv_dm,
    offset: u64,
    from: *const c_void,
    length: usize,
) -> c_int {
    number(|| {
        // SAFETY: the program passes memory of ours.
        let place = unsafe { DeviceMemory::of(dm) }?
            .memory
            .range(offset, length)?;
        // SAFETY: the range was checked, and the program promises that its own has that many bytes.
        unsafe { std::ptr::copy(from.cast::<u8>(), place, length) };
        Ok(())
    })
}

unsafe extern "C" fn memcpy_from_dm(
    into: *mut c_void,
    dm: *mut ibv_dm,
    offset: u64,
    length: usize,
) -> c_int {
    number(|| {
        // SAFETY: the program passes memory of ours.
        let place = unsafe { DeviceMemory::of(dm) }?
            .memory
            .range(offset, length)?;
        // SAFETY: the range was checked, and the program promises that its own has that many bytes.
        unsafe { std::ptr::copy(place, into.cast::<u8>(), length) };
        Ok(())
    })
}

/// `ibv_reg_dm_mr`: such a region has no addresses but offsets
///
/// # Safety
/// The domain and the memory are ours.
pub(crate) unsafe extern "C" fn reg_dm_mr(
    pd: *mut ibv_pd,
    dm: *mut ibv_dm,
    offset: u64,
    length: usize,
    flags: c_uint,
) -> *mut ibv_mr {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let memory = unsafe { DeviceMemory::of(dm) }?;
        let access = access(flags)?;
        if !access.contains(Access::ZERO_BASED) || flags & IBV_ACCESS_ON_DEMAND as u32 != 0 {
            return Err(Errno::EINVAL);
        }
        let offset = usize::try_from(offset).map_err(|_| Errno::EINVAL)?;
        if offset
            .checked_add(length)
            .is_none_or(|end| end > memory.memory.length)
        {
            return Err(Errno::EINVAL);
        }
        let address = memory.memory.address().wrapping_add(offset).addr() as u64;
        let init = RegionInit::new(address, length as u64, access);
        let backing = Backing::Device(Arc::clone(&memory.memory));
        // SAFETY: as promised by the caller.
        unsafe { register(pd, &init, std::ptr::null_mut(), backing) }
    })
}

/// `ibv_import_dm`
pub(crate) extern "C" fn import_dm(_context: *mut ibv_context, _handle: u32) -> *mut c_void {
    unsupported_pointer()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_inside_and_multiples_of_four() {
        let memory = Memory::new(64, 64).unwrap();
        assert!(memory.address().addr().is_multiple_of(64));
        assert!(memory.range(60, 4).is_ok());
        for (offset, length) in [(1, 4), (0, 3), (60, 8), (68, 0), (u64::MAX, 4)] {
            assert_eq!(memory.range(offset, length), Err(Errno::EINVAL), "{offset}");
        }
        assert_eq!(
            Memory::new(DEVICE_MEMORY, 8).err(),
            Some(Errno::ENOMEM),
            "some of it is taken"
        );
    }
}
