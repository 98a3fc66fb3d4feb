//! Errors as C programs hear of them: negative numbers of `errno.h`, and the same in `errno`.
#![allow(unsafe_code, reason = "`errno` is set by pointer")]

use std::ffi::c_int;
use std::io;

/// The negative number of an error.
pub(crate) fn negative(error: &io::Error) -> c_int {
    -error.raw_os_error().unwrap_or(libc::EIO)
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

const CANCEL_DISABLE: c_int = 1;

/// Runs what a C program called, and puts its error into `errno`: some programs look there. A panic ends here, as `EIO`,
/// and a thread that is cancelled goes on to the end.
pub(crate) fn guard(body: impl FnOnce() -> c_int) -> c_int {
    let mut before = 0;
    // SAFETY: it takes a state and a place for the one before.
    unsafe { pthread_setcancelstate(CANCEL_DISABLE, &raw mut before) };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    // SAFETY: as above; nobody wants to know the state in between.
    unsafe { pthread_setcancelstate(before, std::ptr::null_mut()) };
    let outcome = outcome.unwrap_or(-libc::EIO);
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
