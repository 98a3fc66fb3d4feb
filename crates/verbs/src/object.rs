//! Objects that a program holds by pointer: what C sees comes first, what is ours follows.
//!
//! ```text
//! struct ibv_qp * ──►┌──────────────┐
//!                    │ ibv_qp (C)   │  read and written by the program and by its inline functions
//!                    ├──────────────┤
//!                    │ ours         │  the program does not know of it
//!                    └──────────────┘
//! ```
//!
//! Invariant: a type implements [`Object`] only if it is `repr(C)` and its first field is `Shared<Self::C>`.
#![allow(unsafe_code, reason = "the program's pointers have to be followed")]

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::errno::Errno;

/// The part of an object that the program sees, and may change behind our back.
#[repr(transparent)]
pub(crate) struct Shared<C>(UnsafeCell<C>);

// SAFETY: the C interface itself says which fields the program may touch and when; ours are behind locks.
unsafe impl<C> Sync for Shared<C> {}

impl<C> Shared<C> {
    pub(crate) const fn new(value: C) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Where it is.
    pub(crate) const fn get(&self) -> *mut C {
        self.0.get()
    }
}

/// Something that begins with a C structure; see the module's invariant.
///
/// # Safety
/// The type is `repr(C)` and begins with `Shared<Self::C>`.
pub(crate) unsafe trait Object: Sized {
    /// The C structure.
    type C;

    /// Hands the object to the program.
    fn publish(self) -> *mut Self::C {
        Box::into_raw(Box::new(self)).cast()
    }

    /// The object behind a program's pointer; `EINVAL` for a null pointer.
    ///
    /// # Safety
    /// The pointer is null, or came from [`Object::publish`] of this type and has not been reclaimed.
    unsafe fn of<'a>(pointer: *const Self::C) -> Result<&'a Self, Errno> {
        // SAFETY: as promised; by the trait's own promise the object begins where its C structure does.
        unsafe { pointer.cast::<Self>().as_ref() }.ok_or(Errno::EINVAL)
    }

    /// Takes the object back, to be dropped.
    ///
    /// # Safety
    /// The pointer came from [`Object::publish`] of this type, and nobody will use it again.
    unsafe fn reclaim(pointer: *const Self::C) -> Box<Self> {
        // SAFETY: as promised.
        unsafe { Box::from_raw(pointer.cast_mut().cast::<Self>()) }
    }
}

/// A fresh number for an object's `handle`.
pub(crate) fn handle() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Locks, and does not care whether another thread panicked meanwhile.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pointer that may go to another thread: the object behind it is safe to share.
#[derive(Debug)]
pub(crate) struct Pointer<T>(pub(crate) *const T);

impl<T> Clone for Pointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Pointer<T> {}
impl<T> PartialEq for Pointer<T> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
// SAFETY: it is only followed under the lock of the table that holds it, from which objects are removed before they end.
unsafe impl<T> Send for Pointer<T> {}

/// Events that wait, and a descriptor that is readable while there are some.
///
/// The descriptor counts (`EFD_SEMAPHORE`); reading it blocks or not as the program has set it. Events of an object
/// that ends are taken out without counting down, so that a descriptor may once be readable for nothing; a reader then
/// waits on.
pub(crate) struct EventQueue<T> {
    descriptor: OwnedFd,
    waiting: Mutex<VecDeque<T>>,
}

impl<T> EventQueue<T> {
    pub(crate) fn new() -> Result<Self, Errno> {
        // SAFETY: no pointers are passed.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_SEMAPHORE | libc::EFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(Errno::last());
        }
        Ok(Self {
            // SAFETY: it was just opened, and is nobody else's.
            descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) },
            waiting: Mutex::new(VecDeque::new()),
        })
    }

    /// The descriptor's number.
    pub(crate) fn descriptor(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    /// Adds an event.
    pub(crate) fn push(&self, event: T) {
        lock(&self.waiting).push_back(event);
        let one = 1_u64.to_ne_bytes();
        // SAFETY: eight bytes are read from a local array. It fails only when 2⁶⁴ events wait, or in a forked child
        // that has closed it.
        unsafe { libc::write(self.descriptor(), one.as_ptr().cast(), one.len()) };
    }

    /// Takes the first event, waiting for it if the program's descriptor waits. `taken` is called before another thread
    /// can learn that the event is gone.
    pub(crate) fn take(&self, taken: impl Fn(&T)) -> Result<T, Errno> {
        loop {
            let mut count = [0_u8; 8];
            // SAFETY: eight bytes are written to a local array.
            let read =
                unsafe { libc::read(self.descriptor(), count.as_mut_ptr().cast(), count.len()) };
            if read < 0 {
                return Err(Errno::last());
            }
            let mut waiting = lock(&self.waiting);
            if let Some(event) = waiting.pop_front() {
                taken(&event);
                return Ok(event);
            }
        }
    }

    /// Forgets events.
    pub(crate) fn forget(&self, which: impl Fn(&T) -> bool) {
        lock(&self.waiting).retain(|event| !which(event));
    }
}

/// How many events of an object the program has got, and how many it has acknowledged: the object ends only when both
/// are equal.
#[derive(Default)]
pub(crate) struct Acknowledgements {
    open: Mutex<u32>,
    changed: Condvar,
}

impl Acknowledgements {
    /// The program got an event.
    pub(crate) fn got(&self) {
        *lock(&self.open) += 1;
    }

    /// The program acknowledged events.
    pub(crate) fn acknowledge(&self, count: u32) {
        let mut open = lock(&self.open);
        *open = open.saturating_sub(count);
        self.changed.notify_all();
    }

    /// Waits until every event is acknowledged.
    pub(crate) fn wait(&self) {
        let mut open = lock(&self.open);
        while *open > 0 {
            open = self
                .changed
                .wait(open)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_nonblocking(descriptor: i32) {
        // SAFETY: no pointers are passed.
        unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK) };
    }

    #[test]
    fn events_come_in_order_and_then_the_queue_is_empty() {
        let queue = EventQueue::new().unwrap();
        set_nonblocking(queue.descriptor());
        assert_eq!(queue.take(|_| {}), Err(Errno::EAGAIN));
        queue.push(1);
        queue.push(2);
        queue.push(3);
        queue.forget(|event| *event == 2);
        assert_eq!(queue.take(|_| {}), Ok(1));
        assert_eq!(queue.take(|_| {}), Ok(3));
        assert_eq!(
            queue.take(|_| {}),
            Err(Errno::EAGAIN),
            "the forgotten one is skipped"
        );
    }

    #[test]
    fn a_blocked_reader_wakes() {
        let queue = EventQueue::new().unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| queue.take(|_| {}));
            queue.push(7);
            assert_eq!(reader.join().unwrap(), Ok(7));
        });
    }

    #[test]
    fn an_end_waits_for_acknowledgements() {
        let acknowledgements = Acknowledgements::default();
        acknowledgements.wait();
        acknowledgements.got();
        acknowledgements.got();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| acknowledgements.wait());
            acknowledgements.acknowledge(1);
            assert!(!waiter.is_finished());
            acknowledgements.acknowledge(1);
            waiter.join().unwrap();
        });
    }
}
