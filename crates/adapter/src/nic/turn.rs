//! Turns on a processor: how soon the background thread has one, and whether a program's thread has lost its own.
//!
//! The background thread has little to do, and that at once: whoever wrote to this device waits for the answer. From
//! Linux 6.12 on a thread may ask for short turns, and has its turn the sooner for it (`sched_attr::sched_runtime`,
//! `sched_setattr(2)`). On a machine with a processor to spare it makes no difference.

#![allow(unsafe_code, reason = "the calls have no safe interface")]

use std::cell::Cell;

use rustix::time::{ClockId, clock_gettime};
use softfabric_units::{Span, Time};

/// As short as Linux grants.
const TURN_NANOS: u64 = 100_000;

/// `struct sched_attr` as of Linux 3.14.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Asks for short turns for this thread. A kernel that knows no such thing changes nothing.
pub(super) fn shorten() {
    let mut attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: 0,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime: 0,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel writes no more than the size that it is told.
    let read = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            0,
            &raw mut attributes,
            attributes.size,
            0,
        )
    };
    // A thread with a policy of its own has been given it on purpose.
    if read != 0 || attributes.policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.runtime = TURN_NANOS;
    // SAFETY: the kernel reads as much as the size says.
    unsafe {
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
    }
}

thread_local! {
    /// When this thread was asked last, and the processor time that it had taken by then.
    static ASKED: Cell<Option<(Time, Span)>> = const { Cell::new(None) };
}

/// Whether this thread was without a processor for most of the time from `last`, when it was seen running, until now.
///
/// It is taken to have run from when it was asked before until `last`: what it took beside falls in the time since.
#[cold]
pub(super) fn was_lost(last: Time, now: Time) -> bool {
    let clock = clock_gettime(ClockId::ThreadCPUTime);
    let taken = Span::seconds(clock.tv_sec as u64) + Span::nanos(clock.tv_nsec as u64);
    let Some((asked, before)) = ASKED.replace(Some((now, taken))) else {
        return true;
    };
    let ran = (taken - before).as_nanos();
    let away = ran.saturating_sub(last.since(asked).as_nanos());
    away < now.since(last).as_nanos() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "a thread that sleeps takes real time"
    )]
    fn who_sleeps_has_no_processor_and_who_works_has() {
        let clock = crate::clock::Clock::start();
        let start = clock.now();
        assert!(was_lost(start, start), "nobody knows what was before");
        std::thread::sleep(std::time::Duration::from_millis(20));
        let woken = clock.now();
        assert!(was_lost(start, woken));
        // Others may have the processor for a while, but not always.
        let works = |_| {
            let last = clock.now();
            was_lost(last, last);
            while clock.now().since(last) < Span::millis(1) {}
            !was_lost(last, clock.now())
        };
        assert!((0..1000).any(works));
    }

    #[test]
    fn nothing_else_changes() {
        let thread = std::thread::spawn(|| {
            // SAFETY: both calls take and return numbers.
            let nice = || unsafe {
                (
                    libc::getpriority(libc::PRIO_PROCESS, 0),
                    libc::sched_getscheduler(0),
                )
            };
            let before = nice();
            shorten();
            assert_eq!(nice(), before);
        });
        thread.join().unwrap();
    }
}
