//! The list of devices. A device keeps its address for as long as the process lives: programs compare pointers.
#![allow(unsafe_code, reason = "the list belongs to the program")]

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, OnceLock};

use softfabric_adapter::{DeviceInfo, Settings, devices};

use super::sysfs;
use crate::abi::*;
use crate::errno::{Errno, pointer, quiet, set_errno};
use crate::object::{Shared, lock};

/// A device that programs see.
#[repr(C)]
pub(crate) struct Device {
    c: Shared<ibv_device>,
    /// Vendors' libraries look behind the C structure for the driver's functions and compare them with their own. They
    /// find none.
    _driver: [usize; 64],
    info: Mutex<DeviceInfo>,
}

/// Every device that was ever listed, never freed.
static KNOWN: Mutex<Vec<&'static Device>> = Mutex::new(Vec::new());

/// What the environment says, read once.
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        Settings::from_environment().unwrap_or_else(|error| {
            crate::report(&error.to_string());
            Settings::default()
        })
    })
}

impl Device {
    /// The device behind a program's pointer.
    ///
    /// # Safety
    /// The pointer is null, or that of a listed device.
    pub(crate) unsafe fn of(device: *const ibv_device) -> Result<&'static Self, Errno> {
        // SAFETY: as promised; devices are never freed.
        unsafe { device.cast::<Self>().as_ref() }.ok_or(Errno::EINVAL)
    }

    pub(crate) fn as_ibv(&self) -> *mut ibv_device {
        self.c.get()
    }

    /// What the adapter knows of it.
    pub(crate) fn info(&self) -> DeviceInfo {
        lock(&self.info).clone()
    }

    fn new(info: DeviceInfo) -> Self {
        let root = sysfs::root();
        let character_device = sysfs::character_device(&info);
        Self {
            c: Shared::new(ibv_device {
                _ops: _ibv_device_ops::default(),
                node_type: IBV_NODE_CA,
                transport_type: IBV_TRANSPORT_IB,
                name: text(&info.name),
                dev_name: text(&character_device),
                dev_path: text(&format!("{root}/class/infiniband_verbs/{character_device}")),
                ibdev_path: text(&format!("{root}/class/infiniband/{}", info.name)),
            }),
            _driver: [0; 64],
            info: Mutex::new(info),
        }
    }
}

/// A text in a field of fixed length, ended by a zero.
pub(super) fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    for (place, byte) in field[..N - 1].iter_mut().zip(text.bytes()) {
        *place = byte as c_char;
    }
    field
}

/// The devices that there are now.
fn list() -> Result<Vec<&'static Device>, Errno> {
    let found = devices(settings()).map_err(|error| {
        crate::report(&error.to_string());
        Errno::ENODEV
    })?;
    let mut known = lock(&KNOWN);
    let listed = found.into_iter().map(|info| {
        let same = known.iter().find(|device| {
            let have = lock(&device.info);
            have.name == info.name && have.netdev == info.netdev
        });
        if let Some(&device) = same {
            *lock(&device.info) = info;
            return device;
        }
        let device: &'static Device = Box::leak(Box::new(Device::new(info)));
        known.push(device);
        device
    });
    Ok(listed.collect())
}

/// `ibv_get_device_list`
///
/// # Safety
/// `count` is null, or a number of the caller.
pub(crate) unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    pointer(|| {
        // Whoever looks for devices may have loaded librdmacm after us.
        crate::rdma_cm::install();
        crate::paths::install();
        // SAFETY: as promised by the caller.
        let count = unsafe { count.as_mut() };
        let found = list();
        if let Some(count) = count {
            *count = found.as_ref().map_or(0, |found| found.len() as c_int);
        }
        let found = found?;
        let mut array: Vec<*mut ibv_device> = found.iter().map(|device| device.as_ibv()).collect();
        array.push(std::ptr::null_mut());
        // Programs free the list with `ibv_free_device_list`, some with `free`: it comes from the C allocator.
        let bytes = size_of_val(array.as_slice());
        // SAFETY: the allocation has room for the whole array, and is aligned for pointers.
        unsafe {
            let list = libc::malloc(bytes).cast::<*mut ibv_device>();
            if list.is_null() {
                return Err(Errno::ENOMEM);
            }
            std::ptr::copy_nonoverlapping(array.as_ptr(), list, array.len());
            Ok(list)
        }
    })
}

/// `ibv_free_device_list`
///
/// # Safety
/// The list came from [`get_device_list`].
pub(crate) unsafe extern "C" fn free_device_list(list: *mut *mut ibv_device) {
    // SAFETY: as promised by the caller.
    quiet(|| unsafe { libc::free(list.cast()) });
}

/// `ibv_get_device_name`
///
/// # Safety
/// The device is one of a list.
pub(crate) unsafe extern "C" fn get_device_name(device: *mut ibv_device) -> *const c_char {
    if device.is_null() {
        set_errno(Errno::EINVAL);
        return std::ptr::null();
    }
    // SAFETY: as promised by the caller.
    unsafe { (&raw const (*device).name).cast() }
}

/// `ibv_get_device_guid`, in network byte order
///
/// # Safety
/// The device is one of a list.
pub(crate) unsafe extern "C" fn get_device_guid(device: *mut ibv_device) -> u64 {
    // SAFETY: as promised by the caller.
    let guid = unsafe { Device::of(device) }.map(|device| lock(&device.info).guid);
    guid.map_or(0, u64::from_ne_bytes)
}

/// `ibv_get_device_index`: the number that a kernel would give, counted from 0.
///
/// # Safety
/// The device is one of a list.
pub(crate) unsafe extern "C" fn get_device_index(device: *mut ibv_device) -> c_int {
    // SAFETY: as promised by the caller.
    let index = unsafe { Device::of(device) }.map(|device| lock(&device.info).index);
    index.map_or(-1, |index| index as c_int)
}
