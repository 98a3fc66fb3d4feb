//! The background thread of a device: makes progress when the program does not, and sleeps when there is none to make.
//!
//! ```text
//! in charge   ask all ports, send, sleep until: a packet, a timer, the bell, a letter
//! watching    the program polls: look every millisecond whether it still does; cold sockets, bell and letters
//! ```

use std::os::fd::AsFd;
use std::sync::{Arc, PoisonError};

use arrayvec::ArrayVec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use softfabric_units::{Span, Time};

use super::inner::Inner;
use super::state::Ask;
use super::turn;
use crate::neighbours::Room;
use crate::port::udp::Family;

/// How often it is looked whether the program still polls.
const TICK: Span = Span::millis(1);

/// The same while the wire is in use: what the program was to take along must not wait for long.
const HOT_TICK: Span = Span::micros(400);
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];
/// How often a full ring is looked at.
const ROOM: Span = Span::micros(200);

/// Runs until the device is closed.
pub(super) fn run(inner: &Arc<Inner>) {
    turn::shorten();
    let mut room = Room::default();
    let mut watch = Watch::default();
    while !inner.attention.is_stopped() {
        if inner.attention.is_with_program() {
            watch_program(inner, &mut watch, &mut room);
        } else {
            attend(inner, &mut room);
        }
    }
}

/// One round in charge.
fn attend(inner: &Inner, room: &mut Room) {
    let now = inner.clock.now();
    let mut state = inner.lock();
    let received = state.receive(now, Ask::All);
    let more = state.progress(now);
    state.flush();
    if received > 0 || more {
        inner.leave(state);
        return;
    }
    let mut due = state.deadline();
    inner.attention.sleep_until(due);
    if !state.shared.fall_asleep() {
        inner.attention.awake();
        inner.leave(state);
        return;
    }
    let mut flags = PollFlags::IN;
    if state.udp.is_blocked() {
        flags |= PollFlags::OUT;
    }
    if state.shared.is_blocked() {
        due = Some(due.unwrap_or(Time::NEVER).min(now + ROOM));
    }
    inner.leave(state);
    wait(inner, flags, [true, true], due, room);
    inner.attention.awake();
}

/// What was seen of the program's polls.
#[derive(Default)]
struct Watch {
    polls: u64,
    since: Time,
}

/// One look at a program that polls.
fn watch_program(inner: &Inner, watch: &mut Watch, room: &mut Room) {
    let now = inner.clock.now();
    let polls = inner.attention.polls();
    if polls != watch.polls {
        *watch = Watch { polls, since: now };
    } else if now.since(watch.since) >= TICK {
        inner.attention.take_back();
        return;
    }
    let cold = FAMILIES.map(|family| !inner.attention.is_hot(family, now));
    let tick = if cold == [true; 2] { TICK } else { HOT_TICK };
    let woken = wait(inner, PollFlags::IN, cold, Some(now + tick), room);
    // The program took a packet and has not polled since.
    let held = inner.attention.is_held() && inner.attention.polls() == polls;
    // Whoever has the lock makes progress: this thread never waits for it while the program polls, as a program that
    // polls all the time would hardly let it have it.
    if (woken || held)
        && let Some(mut state) = inner.try_lock()
    {
        let now = inner.clock.now();
        state.receive(now, Ask::Hot);
        state.progress(now);
        state.flush();
        inner.leave(state);
    }
}

/// Waits for the bell, a letter, or the sockets of the families in `families`, and until `due`. Says whether one of
/// them woke it.
fn wait(
    inner: &Inner,
    flags: PollFlags,
    families: [bool; 2],
    due: Option<Time>,
    room: &mut Room,
) -> bool {
    let bell = inner.attention.bell();
    let mailbox = inner.mailbox.as_ref().as_fd();
    let mut descriptors: ArrayVec<PollFd<'_>, 4> = ArrayVec::new();
    descriptors.push(PollFd::from_borrowed_fd(bell, PollFlags::IN));
    descriptors.push(PollFd::from_borrowed_fd(mailbox, PollFlags::IN));
    for (family, wanted) in FAMILIES.into_iter().zip(families) {
        if let Some(socket) = inner.sockets.of(family).filter(|_| wanted) {
            descriptors.push(PollFd::from_borrowed_fd(socket.as_fd(), flags));
        }
    }
    let timeout = due.map(|due| {
        let span = due.since(inner.clock.now());
        Timespec {
            tv_sec: i64::try_from(span.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
            // Rounded up: a timer that is asked too early would be asked twice.
            tv_nsec: (span.as_nanos() % 1_000_000_000 + 1).min(999_999_999) as _,
        }
    });
    if poll(&mut descriptors, timeout.as_ref()).is_err() {
        return true;
    }
    let ready = |at: usize| !descriptors[at].revents().is_empty();
    let (rang, written) = (ready(0), ready(1));
    let mut arrived = false;
    let mut at = 2;
    for (family, wanted) in FAMILIES.into_iter().zip(families) {
        if wanted && inner.sockets.of(family).is_some() {
            if ready(at) {
                arrived = true;
                inner.attention.heat(family, inner.clock.now());
            }
            at += 1;
        }
    }
    if rang {
        inner.attention.hear();
    }
    if written {
        fetch_letters(inner, room);
    }
    rang || written || arrived
}

/// Takes the letters out of the mailbox, for whoever makes progress next.
fn fetch_letters(inner: &Inner, room: &mut Room) {
    let mut inbox = inner.inbox.lock().unwrap_or_else(PoisonError::into_inner);
    inner
        .mailbox
        .receive(room, |letter| inbox.push(letter.keep()));
    drop(inbox);
    inner.attention.announce_letters();
}
