//! Errors as C programs hear of them: negative numbers of `errno.h`, and the same in `errno`.
#![allow(unsafe_code, reason = "`errno` is set by pointer")]

use std::ffi::c_int;
use std::io;

/// The negative number of an error.
pub(crate) fn negative(error: &io::Error) -> c_int {
    -error.raw_os_error().unwrap_or(libc::EIO)
}

/// Runs what a C program called, and puts its error into `errno`: some programs look there. A panic ends here, as `EIO`.
pub(crate) fn guard(body: impl FnOnce() -> c_int) -> c_int {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    let outcome = outcome.unwrap_or(-libc::EIO);
    if outcome < 0 {
        // SAFETY: `errno` is the thread's own.
        unsafe { *libc::__errno_location() = -outcome };
    }
    outcome
}
