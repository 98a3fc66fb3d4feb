//! Forks: a child has its parent's memory and descriptors, but neither its threads nor its place among the neighbours.
//!
//! ```text
//! before   every device of the process is locked, so that the child gets whole ones
//! parent   they are unlocked
//! child    they are declared dead, their descriptors lead nowhere, and they are unlocked
//! ```
//!
//! A dead device still answers to verbs, so a child can tidy up; nothing that it is given ever leaves. The child opens
//! devices anew.

#![allow(unsafe_code, reason = "the C library calls back at a fork")]

use std::cell::RefCell;
use std::mem::transmute;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Arc, MutexGuard, Once, PoisonError};

use super::inner::Inner;
use super::state::State;
use super::{OPEN, Open};

type Device = (Arc<Inner>, MutexGuard<'static, State>);

/// What is locked between the handlers.
struct Held {
    devices: Vec<Device>,
    list: MutexGuard<'static, Vec<Open>>,
}

thread_local! {
    /// All handlers run on the thread that forks.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Sees to it that forks find the devices, once for the process.
pub(super) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers are functions of this library. A library that registers handlers is not unloaded.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
            libc::atexit(at_exit);
        }
    });
}

extern "C" fn before() {
    let _ = HELD.try_with(|held| {
        let list = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut devices = Vec::new();
        for inner in list.iter().filter_map(|open| open.inner.upgrade()) {
            let guard = inner.lock();
            // SAFETY: the guard is dropped before the `Arc` beside it, in `release`.
            let guard: MutexGuard<'static, State> = unsafe { transmute(guard) };
            devices.push((inner.clone(), guard));
        }
        *held.borrow_mut() = Some(Held { devices, list });
    });
}

extern "C" fn in_parent() {
    release(|_| {});
}

extern "C" fn in_child() {
    release(|(inner, state)| {
        state.alive = false;
        inner.descriptors().for_each(lead_nowhere);
    });
}

fn release(mut finish: impl FnMut(&mut Device)) {
    let held = HELD.try_with(|held| held.borrow_mut().take());
    let Ok(Some(Held { devices, list })) = held else {
        return;
    };
    let mut last = Vec::new();
    for mut device in devices {
        finish(&mut device);
        let (inner, guard) = device;
        drop(guard);
        last.push(inner);
    }
    drop(list);
    // The last owner of a device may be here: it is closed with nothing locked.
    drop(last);
}

/// The descriptor stays one, so that whoever owns it may close it; what it stood for is not held by the child.
pub(crate) fn lead_nowhere(descriptor: BorrowedFd<'_>) {
    // SAFETY: both calls may be made in a forked child. The descriptor is replaced in one step.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if null >= 0 {
            libc::dup3(null, descriptor.as_raw_fd(), libc::O_CLOEXEC);
            libc::close(null);
        }
    }
}

/// Programs in C seldom close their devices.
extern "C" fn at_exit() {
    let Ok(list) = OPEN.try_lock() else {
        return;
    };
    let open: Vec<_> = list
        .iter()
        .filter_map(|open| open.inner.upgrade())
        .collect();
    drop(list);
    open.iter().for_each(|inner| inner.say_goodbye());
}
