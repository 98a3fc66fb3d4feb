//! Errors as C programs hear of them: negative numbers of `errno.h`, and the same in `errno`.
#![allow(unsafe_code, reason = "`errno` is set by pointer")]

use std::ffi::c_int;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use softfabric_cabi::cancel::not_within;

/// The negative number of an error.
pub(crate) fn negative(error: &io::Error) -> c_int {
    -error.raw_os_error().unwrap_or(libc::EIO)
}

/// Runs what a C program called. A panic ends here, and nothing is returned; a thread that is cancelled goes on to the end.
pub(crate) fn contain<T>(body: impl FnOnce() -> T) -> Option<T> {
    not_within(|| catch_unwind(AssertUnwindSafe(body)).ok())
}

/// The same for calls that return a number: a negative one is an error and is put into `errno`, too, as some programs look
/// there. A panic is `EIO`.
pub(crate) fn guard(body: impl FnOnce() -> c_int) -> c_int {
    let outcome = contain(body).unwrap_or(-libc::EIO);
    if outcome < 0 {
        set(-outcome);
    }
    outcome
}

/// Sets `errno`, and returns its negative.
pub(crate) fn set(number: c_int) -> c_int {
    // SAFETY: `errno` is the thread's own.
    unsafe { *libc::__errno_location() = number };
    -number
}
