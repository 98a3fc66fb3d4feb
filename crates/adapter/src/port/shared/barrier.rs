//! A memory barrier in all processors at once, so that those who write to rings need none of their own.
//!
//! ```text
//! writer   publish; is the reader asleep?                 no barrier: a few nanoseconds, a million times a second
//! reader   I am asleep; barrier everywhere; anything published?         microseconds, before it sleeps
//! ```

#![allow(unsafe_code, reason = "the system call has no safe interface")]

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};

const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: takes numbers only.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Whether this process takes part, which it asks for once.
#[inline]
pub(super) fn is_registered() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| membarrier(REGISTER_GLOBAL_EXPEDITED))
}

/// Orders everything that the processes that take part have stored and loaded.
pub(super) fn everywhere() {
    fence(Ordering::SeqCst);
    if is_registered() {
        membarrier(GLOBAL_EXPEDITED);
    }
}
