//! Threads that the program cancels: many end those that wait for events with `pthread_cancel`.
//!
//! Cancelling unwinds the thread's stack from a system call in which it waits, as a C++ exception would. So a thread may be
//! cancelled only in [`wait_readable`], with nothing to drop on its stack; everywhere else it goes on to the end of the call.
#![allow(unsafe_code, reason = "calls of the C library")]

use std::ffi::{c_int, c_void};

unsafe extern "C-unwind" {
    fn poll(entries: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int;

    fn pause() -> c_int;

    /// The C library's; a thread may be cancelled in it.
    pub(crate) fn write(descriptor: c_int, bytes: *const c_void, count: usize) -> isize;
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

const DISABLE: c_int = 1;

/// Runs `body` to its end, even if the thread is cancelled meanwhile.
#[inline]
pub(crate) fn not_within<T>(body: impl FnOnce() -> T) -> T {
    let mut before = 0;
    // SAFETY: it takes a state and a place for the one before.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
    let outcome = body();
    // SAFETY: as above; nobody wants to know the state in between.
    unsafe { pthread_setcancelstate(before, std::ptr::null_mut()) };
    outcome
}

/// Waits until a descriptor is readable, unless the program has set it not to wait. The thread may be cancelled here.
///
/// Where another thread closes the descriptor meanwhile, it waits for ever, as a thread within a system call does.
pub(crate) fn wait_readable(descriptor: c_int) {
    // SAFETY: no pointers are passed.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    if flags < 0 {
        wait_for_ever();
    }
    if flags & libc::O_NONBLOCK != 0 {
        return;
    }
    let mut wanted = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, as is said. Whatever else ends the wait, who reads next sees it.
    unsafe { poll(&raw mut wanted, 1, -1) };
    if wanted.revents & libc::POLLNVAL != 0 {
        wait_for_ever();
    }
}

fn wait_for_ever() -> ! {
    loop {
        // SAFETY: it only waits, for a signal or to be cancelled.
        unsafe { pause() };
    }
}
