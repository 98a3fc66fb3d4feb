//! Who makes progress: the program's polling threads, or the background thread.
//!
//! ```text
//!               many polls in a row that found nothing
//! background ──────────────────────────────────────────► program
//! thread       ◄────────────────────────────────────────  polls
//!                     no poll for a millisecond
//! ```
//!
//! A program that was away for too much of the time has to poll longer before it is in charge again: some wait for a
//! peer's write by looking at their memory.
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
/// So many polls in a row are.
const STREAK: u32 = 32;
/// A program that was away too much while it was in charge has to poll so many times as often before it is trusted
/// again …
const DOUBT: u32 = 32;
/// … but no more often than this, which is some tenths of a second.
const LONGEST_STREAK: u32 = 1 << 20;
/// What a program has done before this is forgotten.
const MEMORY: Span = Span::seconds(1);
/// Too much is half of the last so many nanoseconds, of at least so many.
const OBSERVED: u64 = 50_000_000;
const ENOUGH: u64 = 4_000_000;
/// An absence counts as no longer than this.
const LONGEST_ABSENCE: u64 = 1_000_000;
/// How long a socket that had packets is asked at every poll.
const HOT: Span = Span::millis(1);

/// Shared by all threads, outside the device's lock.
#[derive(Debug)]
pub(crate) struct Attention {
    /// The program is in charge.
    program: AtomicBool,
    /// The program was in charge, and left without a word.
    left: AtomicBool,
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streak {
    last: Time,
    length: u32,
    /// How long a streak has to be for the program to be trusted.
    needed: u32,
    /// When it was last found to be away too much.
    left_at: Time,
    /// How long it has polled while it was in charge, and how long it was away, in nanoseconds.
    present: u64,
    absent: u64,
}

impl Default for Streak {
    fn default() -> Self {
        Self {
            last: Time::ZERO,
            length: 0,
            needed: STREAK,
            left_at: Time::ZERO,
            present: 0,
            absent: 0,
        }
    }
}

impl Streak {
    /// A poll began that found nothing at once. Says whether the program spins.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> bool {
        self.length = if self.is_gap(now) {
            0
        } else {
            self.length.saturating_add(1)
        };
        self.last = now;
        if self.needed > STREAK && now.since(self.left_at) > MEMORY {
            self.needed = STREAK;
        }
        self.length >= self.needed
    }

    #[inline]
    fn is_gap(&self, now: Time) -> bool {
        now.since(self.last) >= GAP
    }

    /// A program that is in charge polls, or one that was until it left. Says whether it is away too much to be in
    /// charge: it waits by looking at its memory, perhaps, or computes, and what arrives meanwhile must not wait.
    ///
    /// `lost_processor` tells whether the thread was without a processor between two times: that is no absence.
    #[inline]
    pub(crate) fn observe(
        &mut self,
        now: Time,
        lost_processor: impl FnOnce(Time, Time) -> bool,
    ) -> bool {
        let last = std::mem::replace(&mut self.last, now);
        let since = now.since(last).as_nanos();
        if since < GAP.as_nanos() {
            self.present += since;
            return false;
        }
        !lost_processor(last, now) && self.has_been_away(now, since)
    }

    #[cold]
    fn has_been_away(&mut self, now: Time, since: u64) -> bool {
        self.absent += since.min(LONGEST_ABSENCE);
        let all = self.present + self.absent;
        let too_much = all >= ENOUGH && self.absent > all / 2;
        if all > OBSERVED || too_much {
            self.present /= 2;
            self.absent /= 2;
        }
        if too_much {
            self.length = 0;
            self.needed = self.needed.saturating_mul(DOUBT).min(LONGEST_STREAK);
            self.left_at = now;
        }
        too_much
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
            left: AtomicBool::new(false),
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

    /// The background thread takes over from a program that polls no more.
    pub(crate) fn take_back(&self) {
        self.left.store(true, Ordering::Relaxed);
        self.program.store(false, Ordering::SeqCst);
    }

    /// The program, which has been away, gives the work to the background thread.
    #[cold]
    pub(crate) fn give_back(&self) {
        self.program.store(false, Ordering::SeqCst);
        self.ring();
    }

    /// Whether the background thread has taken over from a program that had left; says so once.
    #[inline]
    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed) && self.left.swap(false, Ordering::Relaxed)
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

    /// Polls for a while in charge and is then away; says whether it was found to be away too much.
    fn rounds(
        streak: &mut Streak,
        now: &mut Time,
        (count, polls): (u32, u32),
        away: Span,
        preempted: bool,
    ) -> bool {
        let mut found = false;
        for _ in 0..count {
            for _ in 0..polls {
                *now += Span::nanos(300);
                found |= streak.observe(*now, |_, _| false);
            }
            *now += away;
            found |= streak.observe(*now, |_, _| preempted);
        }
        found
    }

    #[test]
    fn who_is_away_too_much_has_to_poll_longer() {
        let mut streak = Streak::default();
        let mut now = Time::from_nanos(1_000_000_000);
        streak.end(now);
        // It polls for its own completion, then looks at its memory for as long as a watch's tick.
        let away = Span::micros(400);
        assert!(!rounds(&mut streak, &mut now, (8, 30), away, false));
        assert!(rounds(&mut streak, &mut now, (4, 30), away, false));
        let mut polls = 0;
        while !streak.poll(now) {
            now += Span::nanos(300);
            polls += 1;
        }
        assert!(polls + 1 >= STREAK * DOUBT, "{polls}");
        now += Span::seconds(2);
        assert!(!streak.poll(now), "a gap");
        for _ in 0..31 {
            assert!(!streak.poll(now));
        }
        assert!(streak.poll(now), "what was long ago is forgotten");
    }

    #[test]
    fn who_loses_the_processor_stays_in_charge() {
        let mut streak = Streak::default();
        let mut now = Time::from_nanos(1_000_000_000);
        streak.end(now);
        let away = Span::millis(3);
        assert!(!rounds(&mut streak, &mut now, (100, 100), away, true));
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
