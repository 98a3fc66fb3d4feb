//! Who makes progress: the program's polling threads, or the background thread.
//!
//! ```text
//!               many polls in a row that found nothing
//! background ──────────────────────────────────────────► program
//! thread       ◄────────────────────────────────────────  polls
//!                     no poll for a millisecond
//! ```
//!
//! A program that spins on its completion queues is faster alone. One that waits for an event, or computes, needs the
//! background thread at once, so a few polls do not count.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use softfabric_units::{Span, Time};

use crate::port::udp::Family;

/// Polls that are further apart are not of a program that spins.
const GAP: Span = Span::micros(50);
/// How long a socket that had packets is asked at every poll.
const HOT: Span = Span::millis(1);
/// So many polls in a row are.
const STREAK: u32 = 32;

/// Shared by all threads, outside the device's lock.
#[derive(Debug)]
pub(crate) struct Attention {
    /// The program is in charge.
    program: AtomicBool,
    /// Counts the program's polls.
    polls: AtomicU64,
    /// The background thread waits, until `wakes_at` or something happens.
    asleep: AtomicBool,
    wakes_at: AtomicU64,
    stop: AtomicBool,
    /// Packets wait for the program's next poll.
    held: AtomicBool,
    /// Letters wait in the inbox.
    letters: AtomicBool,
    /// Until when the sockets of the two families are asked at every poll.
    hot: [AtomicU64; 2],
    bell: OwnedFd,
}

/// The program's polls, under the device's lock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Streak {
    last: Time,
    length: u32,
}

impl Streak {
    /// A poll began that found nothing at once. Says whether the program spins.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> bool {
        self.length = if now.since(self.last) < GAP {
            self.length.saturating_add(1)
        } else {
            0
        };
        self.last = now;
        self.length >= STREAK
    }

    /// A poll, or a post, that had much to do has ended.
    #[inline]
    pub(crate) fn end(&mut self, now: Time) {
        self.last = now;
    }
}

/// How long a program polls in vain before it lets others run.
const PATIENCE: Span = Span::micros(10);

/// Since when a program polls in vain, under the device's lock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    since: Time,
}

impl Patience {
    /// Whether the program should let others run: where there are more processes than processors, they may be those that
    /// it waits for.
    #[inline]
    pub(crate) fn is_over(&mut self, now: Time, found: bool) -> bool {
        let over = !found && now.since(self.since) > PATIENCE;
        if found || over {
            self.since = now;
        }
        over
    }
}

impl Attention {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            program: AtomicBool::new(false),
            polls: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            wakes_at: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            held: AtomicBool::new(false),
            letters: AtomicBool::new(false),
            hot: [AtomicU64::new(0), AtomicU64::new(0)],
            bell: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        })
    }

    /// Whether the program makes progress by itself.
    #[inline]
    pub(crate) fn is_with_program(&self) -> bool {
        self.program.load(Ordering::Relaxed)
    }

    /// Counts a poll, under the device's lock.
    #[inline]
    pub(crate) fn count_poll(&self) {
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(polls.wrapping_add(1), Ordering::Relaxed);
    }

    pub(crate) fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    /// The program takes over.
    pub(crate) fn give_to_program(&self) {
        if !self.program.swap(true, Ordering::SeqCst) && self.asleep.load(Ordering::SeqCst) {
            self.ring();
        }
    }

    /// The background thread takes over.
    pub(crate) fn take_back(&self) {
        self.program.store(false, Ordering::SeqCst);
    }

    /// The background thread goes to sleep.
    pub(crate) fn sleep_until(&self, due: Option<Time>) {
        let due = due.unwrap_or(Time::NEVER);
        self.wakes_at.store(due.as_picos(), Ordering::Relaxed);
        self.asleep.store(true, Ordering::SeqCst);
    }

    pub(crate) fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Whether the background thread waits.
    #[inline]
    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Something is due: the background thread has to be awake by then.
    #[inline]
    pub(crate) fn expect(&self, due: Time) {
        if self.asleep.load(Ordering::Relaxed)
            && due.as_picos() < self.wakes_at.load(Ordering::Relaxed)
        {
            // Rung once: the next who looks finds it rung.
            self.wakes_at.store(0, Ordering::Relaxed);
            self.ring();
        }
    }

    pub(crate) fn ring(&self) {
        // A bell that cannot be rung once more rings already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Takes the ringing off the bell. Says whether it rang.
    pub(crate) fn hear(&self) -> bool {
        rustix::io::read(&self.bell, &mut [0; 8]).is_ok()
    }

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Says whether packets wait for the program's next poll, under the device's lock.
    #[inline]
    pub(crate) fn hold(&self, held: bool) {
        if self.held.load(Ordering::Relaxed) != held {
            self.held.store(held, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Letters were put into the inbox.
    pub(crate) fn announce_letters(&self) {
        self.letters.store(true, Ordering::SeqCst);
    }

    /// Whether letters wait; whoever asks takes them.
    #[inline]
    pub(crate) fn take_letters(&self) -> bool {
        self.letters.load(Ordering::Relaxed) && self.letters.swap(false, Ordering::SeqCst)
    }

    /// A socket had packets: it is asked often for a while.
    pub(crate) fn heat(&self, family: Family, now: Time) {
        let until = now.saturating_add(HOT);
        self.hot[family as usize].store(until.as_picos(), Ordering::Relaxed);
    }

    /// Whether a socket is asked at every poll.
    #[inline]
    pub(crate) fn is_hot(&self, family: Family, now: Time) -> bool {
        self.hot[family as usize].load(Ordering::Relaxed) >= now.as_picos()
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.ring();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streak_is_many_polls_without_a_gap() {
        let mut streak = Streak::default();
        let mut now = Time::from_nanos(1_000_000);
        let mut spins = false;
        for _ in 0..=STREAK {
            now += Span::micros(1);
            spins = streak.poll(now);
        }
        assert!(spins);
        now += Span::micros(100);
        assert!(!streak.poll(now), "a program that waited in between");
    }

    #[test]
    fn who_polls_in_vain_for_long_gives_way_once_in_a_while() {
        let mut patience = Patience::default();
        let mut now = Time::from_nanos(1_000_000);
        assert!(!patience.is_over(now, true));
        let mut times = 0;
        for _ in 0..1010 {
            now += Span::micros(1);
            times += u32::from(patience.is_over(now, false));
        }
        assert_eq!(times, 91, "every 11 microseconds");
    }

    #[test]
    fn the_bell_is_rung_for_what_is_due_before_the_sleeper_wakes() {
        let attention = Attention::new().unwrap();
        attention.expect(Time::from_nanos(1));
        assert!(!attention.hear(), "nobody sleeps");
        attention.sleep_until(Some(Time::from_nanos(100)));
        attention.expect(Time::from_nanos(100));
        assert!(!attention.hear(), "it will be awake");
        attention.expect(Time::from_nanos(99));
        assert!(attention.hear());
        attention.heat(Family::V6, Time::from_nanos(5));
        assert!(attention.is_hot(Family::V6, Time::from_nanos(900)));
        assert!(!attention.is_hot(Family::V4, Time::from_nanos(900)));
        assert!(!attention.is_hot(Family::V6, Time::from_nanos(2_000_000)));
        attention.sleep_until(None);
        attention.give_to_program();
        assert!(attention.hear() && attention.is_with_program());
    }
}
