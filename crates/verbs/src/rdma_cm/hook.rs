//! The four functions of the C library that `librdmacm` reaches its device by.
//!
//! ```text
//! open("/dev/infiniband/rdma_cm")   an eventfd, which is a channel from now on
//! fstat                             says "character device" of a channel
//! write                             a command to a channel
//! close                             ends a channel
//! ```
//!
//! Anything else goes to the C library as it came.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use softfabric_cabi::cancel;

use super::command;
use super::descriptors::{self, ChannelId};
use super::process::{self, Running};
use crate::elf;
use crate::errno::{Errno, minus_one};

/// The kernel's device.
const DEVICE: &CStr = c"/dev/infiniband/rdma_cm";

/// The device's number where the host has none: that of miscellaneous devices, and one that is given at load.
const DEVICE_NUMBER: (c_uint, c_uint) = (10, 58);

/// When this library is loaded, `librdmacm` may be there already: it needs us, so it is started after us.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    crate::errno::quiet(install);
}

/// Makes `librdmacm`, if it is loaded, call us. It is cheap enough for every listing of devices.
pub(crate) fn install() {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    let replacements: [elf::Replacement; 9] = [
        (c"open", open as unsafe extern "C" fn(_, _, _) -> _ as usize),
        (
            c"open64",
            open as unsafe extern "C" fn(_, _, _) -> _ as usize,
        ),
        (
            c"openat",
            openat as unsafe extern "C" fn(_, _, _, _) -> _ as usize,
        ),
        (
            c"openat64",
            openat as unsafe extern "C" fn(_, _, _, _) -> _ as usize,
        ),
        (
            c"__open_2",
            open_2 as unsafe extern "C" fn(_, _) -> _ as usize,
        ),
        (
            c"__open64_2",
            open_2 as unsafe extern "C" fn(_, _) -> _ as usize,
        ),
        (c"fstat", fstat as unsafe extern "C" fn(_, _) -> _ as usize),
        (
            c"write",
            write as unsafe extern "C-unwind" fn(_, _, _) -> _ as usize,
        ),
        (c"close", close as extern "C" fn(_) -> _ as usize),
    ];
    let outcome = elf::replace("librdmacm.so", &replacements);
    if outcome.refused > 0 && !REPORTED.swap(true, Ordering::Relaxed) {
        crate::report(
            "librdmacm's table of addresses cannot be changed, so it finds no connection manager: start the program by \
             `softfabric exec`",
        );
    }
}

/// Opens a channel.
fn open_channel(flags: c_int) -> Result<c_int, Errno> {
    let running = Running::start()?;
    let eventfd_flags = libc::EFD_SEMAPHORE | flags & (libc::O_CLOEXEC | libc::O_NONBLOCK);
    // SAFETY: no pointers are passed.
    let descriptor = unsafe { libc::eventfd(0, eventfd_flags) };
    if descriptor < 0 {
        return Err(Errno::last());
    }
    // SAFETY: it was just opened, and is nobody else's.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let copy = process::copy(&descriptor)?;
    let channel = ChannelId::new();
    if !descriptors::insert(descriptor.as_raw_fd(), channel) {
        return Err(Errno::from_code(libc::EMFILE));
    }
    running.service.with(|_, cm, _| cm.open(channel, copy));
    Ok(descriptor.into_raw_fd())
}

fn is_device(path: *const c_char) -> bool {
    // SAFETY: the caller's path ends with a zero.
    !path.is_null() && unsafe { CStr::from_ptr(path) } == DEVICE
}

/// # Safety
/// As the C library's `open`.
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    if is_device(path) {
        return minus_one(|| open_channel(flags));
    }
    // SAFETY: as promised by the caller.
    unsafe { libc::open(path, flags, mode) }
}

/// # Safety
/// As the C library's `openat`.
unsafe extern "C" fn openat(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    if is_device(path) {
        return minus_one(|| open_channel(flags));
    }
    // SAFETY: as promised by the caller.
    unsafe { libc::openat(folder, path, flags, mode) }
}

/// `open` as fortified programs call it.
///
/// # Safety
/// As the C library's `open` without a mode.
unsafe extern "C" fn open_2(path: *const c_char, flags: c_int) -> c_int {
    if is_device(path) {
        return minus_one(|| open_channel(flags));
    }
    // SAFETY: as promised by the caller.
    unsafe { libc::open(path, flags) }
}

/// # Safety
/// As the C library's `fstat`.
unsafe extern "C" fn fstat(descriptor: c_int, into: *mut libc::stat) -> c_int {
    // SAFETY: as promised by the caller.
    let result = unsafe { libc::fstat(descriptor, into) };
    if result == 0 && !into.is_null() && descriptors::channel(descriptor).is_some() {
        // SAFETY: as promised by the caller.
        let status = unsafe { &mut *into };
        status.st_mode = libc::S_IFCHR | 0o666;
        status.st_rdev = device_number();
    }
    result
}

/// The device's number: the host's own, where it has one, because `librdmacm` compares.
fn device_number() -> libc::dev_t {
    let text = std::fs::read_to_string("/sys/class/misc/rdma_cm/dev").unwrap_or_default();
    let numbers = text
        .trim()
        .split_once(':')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let (major, minor) = numbers.unwrap_or(DEVICE_NUMBER);
    libc::makedev(major, minor)
}

/// # Safety
/// As the C library's `write`.
unsafe extern "C-unwind" fn write(descriptor: c_int, bytes: *const c_void, count: usize) -> isize {
    let Some(channel) = descriptors::channel(descriptor) else {
        // SAFETY: as promised by the caller.
        return unsafe { cancel::write(descriptor, bytes, count) };
    };
    // SAFETY: as promised by the caller.
    if unsafe { command::waits(bytes, count) } && !cancel::wait_readable(descriptor) {
        // It was open a moment ago: another thread has closed it within this call.
        cancel::wait_for_ever();
    }
    let done = minus_one(|| {
        if bytes.is_null() {
            return Err(Errno::EFAULT);
        }
        // A channel of the parent: its identifiers are the parent's.
        if !channel.is_own() {
            return Err(Errno::EINVAL);
        }
        // SAFETY: as promised by the caller.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count) };
        // SAFETY: commands hold addresses of the program.
        unsafe { command::execute(descriptor, channel, bytes) }?;
        Ok(0)
    });
    if done == 0 { count as isize } else { -1 }
}

extern "C" fn close(descriptor: c_int) -> c_int {
    if let Some(channel) = descriptors::remove(descriptor)
        && channel.is_own()
    {
        crate::errno::quiet(|| {
            if let Some(running) = Running::here() {
                let service = &running.service;
                service.with(|manager, cm, now| cm.close(manager, now, channel));
            }
        });
    }
    // SAFETY: no pointers are passed.
    unsafe { libc::close(descriptor) }
}
