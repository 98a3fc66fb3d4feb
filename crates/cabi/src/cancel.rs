//! Threads that the program cancels: many end those that wait for events with `pthread_cancel`.
//!
//! Cancelling unwinds the thread's stack from a system call in which it waits, as a C++ exception would. So a thread may be
//! cancelled only in [`poll`], [`wait_for_ever`] and [`write()`], with nothing to drop on its stack and in functions that may be unwound (`extern "C-unwind"`);
//! everywhere else it goes on to the end of the call: see [`not_within`].
#![allow(unsafe_code, reason = "calls of the C library")]

use std::ffi::{c_int, c_void};

mod c {
    use super::{c_int, c_void};

    unsafe extern "C-unwind" {
        pub(super) fn poll(
            entries: *mut libc::pollfd,
            count: libc::nfds_t,
            timeout: c_int,
        ) -> c_int;

        pub(super) fn pause() -> c_int;

        pub(super) fn write(descriptor: c_int, bytes: *const c_void, count: usize) -> isize;
    }

    unsafe extern "C" {
        pub(super) fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    }
}

const DISABLE: c_int = 1;

/// Runs `body` to its end, even if the thread is cancelled meanwhile.
#[inline]
pub fn not_within<T>(body: impl FnOnce() -> T) -> T {
    let mut before = 0;
    // SAFETY: it takes a state and a place for the one before.
    unsafe { c::pthread_setcancelstate(DISABLE, &raw mut before) };
    let outcome = body();
    // SAFETY: as above; nobody wants to know the state in between.
    unsafe { c::pthread_setcancelstate(before, std::ptr::null_mut()) };
    outcome
}

/// What a wait for a descriptor came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// It is readable, or its other end is gone.
    Readable,
    /// The time is over.
    TimedOut,
    /// It is closed.
    Closed,
    /// The call failed with this `errno`: a signal came.
    Failed(c_int),
}

/// Waits until a descriptor is readable; `timeout` in milliseconds, negative for ever. The thread may be cancelled here.
pub fn poll(descriptor: c_int, timeout: c_int) -> Waited {
    let mut wanted = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, as is said.
    match unsafe { c::poll(&raw mut wanted, 1, timeout) } {
        0 => Waited::TimedOut,
        // SAFETY: `errno` is the thread's own.
        -1 => Waited::Failed(unsafe { *libc::__errno_location() }),
        _ if wanted.revents & libc::POLLNVAL != 0 => Waited::Closed,
        _ => Waited::Readable,
    }
}

/// Waits until a descriptor is readable, unless the program has set it not to wait. The thread may be cancelled here.
/// False if the descriptor is closed.
pub fn wait_readable(descriptor: c_int) -> bool {
    // SAFETY: no pointers are passed.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    let waits = flags >= 0 && flags & libc::O_NONBLOCK == 0;
    flags >= 0 && !(waits && poll(descriptor, -1) == Waited::Closed)
}

/// Waits for ever, as a thread does within a system call on a descriptor that another thread closes. It may be cancelled.
pub fn wait_for_ever() -> ! {
    loop {
        // SAFETY: it only waits, for a signal or to be cancelled.
        unsafe { c::pause() };
    }
}

/// The C library's `write`; the thread may be cancelled in it.
///
/// # Safety
/// As C says: `count` bytes from `bytes` on can be read.
pub unsafe fn write(descriptor: c_int, bytes: *const c_void, count: usize) -> isize {
    // SAFETY: as promised by the caller.
    unsafe { c::write(descriptor, bytes, count) }
}
