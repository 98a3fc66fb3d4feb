//! Error numbers: how a C program learns why.
//!
//! Inside, every call returns `Result<_, Errno>`. Outside there are three customs: a number that is the error itself
//! (most verbs), −1 with the error in `errno` (events, descriptors), and a null pointer with the error in `errno`
//! (everything that makes an object). The functions of this module translate, and stop panics at the border: a defect
//! of ours becomes `EIO` for the program, not its end.
#![allow(unsafe_code, reason = "errno is a place in the C library's memory")]

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use softfabric_cabi::cancel;

/// Why a call failed: a number of `<errno.h>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Errno(c_int);

macro_rules! numbers {
    ($($name:ident)+) => {
        #[allow(dead_code, reason = "the list is that of the numbers that verbs know")]
        impl Errno {
            $(pub(crate) const $name: Self = Self(libc::$name);)+
        }
    };
}

numbers! {
    EPERM ENOENT EIO ENXIO E2BIG EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST ENODEV EINVAL ENOTTY ENOSPC ENOSYS
    ENODATA EOPNOTSUPP EADDRINUSE EADDRNOTAVAIL ENETUNREACH EHOSTUNREACH ETIMEDOUT EINTR EPROTONOSUPPORT EMSGSIZE EDOM
}

impl Errno {
    /// The number.
    pub(crate) const fn code(self) -> c_int {
        self.0
    }

    /// The error of a number.
    pub(crate) const fn from_code(code: c_int) -> Self {
        Self(code)
    }

    /// The error that an input or output operation ended with.
    pub(crate) fn of(error: &std::io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }

    /// What `errno` says now.
    pub(crate) fn last() -> Self {
        Self::of(&std::io::Error::last_os_error())
    }
}

/// Sets `errno` of this thread.
pub(crate) fn set_errno(error: Errno) {
    // SAFETY: the C library gives every thread its own place, always valid.
    unsafe { *libc::__errno_location() = error.0 };
}

/// Runs `call`, and makes `EIO` of a panic.
fn guard<T>(call: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    // What a panic leaves behind is behind locks that ignore poison, or belongs to the caller.
    cancel::not_within(|| catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(Errno::EIO)))
}

/// For calls that return the error's number, and 0 without one.
pub(crate) fn number(call: impl FnOnce() -> Result<(), Errno>) -> c_int {
    match guard(call) {
        Ok(()) => 0,
        Err(error) => error.0,
    }
}

/// For calls that return something not negative, or −1 with `errno` set.
pub(crate) fn minus_one(call: impl FnOnce() -> Result<c_int, Errno>) -> c_int {
    guard(call).unwrap_or_else(|error| {
        set_errno(error);
        -1
    })
}

/// For calls that return a pointer, or null with `errno` set.
pub(crate) fn pointer<T>(call: impl FnOnce() -> Result<*mut T, Errno>) -> *mut T {
    guard(call).unwrap_or_else(|error| {
        set_errno(error);
        std::ptr::null_mut()
    })
}

/// For calls that cannot fail as far as the program sees.
pub(crate) fn quiet(call: impl FnOnce()) {
    let _ = guard(|| {
        call();
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_eio() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        assert_eq!(number(|| panic!("on purpose")), libc::EIO);
        assert!(pointer::<u8>(|| panic!("on purpose")).is_null());
        assert_eq!(Errno::last(), Errno::EIO);
        assert_eq!(minus_one(|| panic!("on purpose")), -1);
        quiet(|| panic!("on purpose"));
        std::panic::set_hook(hook);
    }
}
