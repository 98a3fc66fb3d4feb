//! The background thread of a device: makes progress when the program does not, and sleeps when there is none to make.
//!
//! ```text
//! in charge   ask all ports, send, sleep until: a packet, a timer, the bell, a letter
//! watching    the program polls: look every millisecond whether it still does; cold sockets, bell and letters
//! ```

use std::os::fd::AsFd;
use std::sync::Arc;

use arrayvec::ArrayVec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use softfabric_units::{Span, Time};

use super::core::{LETTER_MAD, LETTER_PACKET, decode_mad, decode_origin};
use super::inner::Inner;
use super::state::Ask;
use crate::neighbours::Room;
use crate::port::shared::LETTER_RING;
use crate::port::udp::Family;

/// How often it is looked whether the program still polls.
const TICK: Span = Span::millis(1);

/// How often a full ring is looked at.
const ROOM: Span = Span::micros(200);

/// Runs until the device is closed.
pub(super) fn run(inner: &Arc<Inner>) {
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
    if received > 0 || more {
        inner.leave(state);
        return;
    }
    let mut due = state.core.device.poll_timeout();
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
    let state = inner.lock();
    let cold = [Family::V4, Family::V6].map(|family| state.is_cold(now, family));
    drop(state);
    let woken = wait(inner, PollFlags::IN, cold, Some(now + TICK), room);
    if woken {
        let now = inner.clock.now();
        let mut state = inner.lock();
        state.receive(now, Ask::All);
        state.progress(now);
        inner.leave(state);
    }
}

/// Waits for the bell, a letter, or the sockets of the families in `families`, and until `due`. Reads letters. Says
/// whether a socket or the bell woke it.
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
    for (family, wanted) in [Family::V4, Family::V6].into_iter().zip(families) {
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
    let arrived = (2..descriptors.len()).any(ready);
    if rang {
        inner.attention.hear();
    }
    if written {
        read_letters(inner, room);
    }
    rang || arrived
}

fn read_letters(inner: &Inner, room: &mut Room) {
    inner.mailbox.receive(room, |letter| {
        let mut state = inner.lock();
        match letter.bytes.first() {
            Some(&LETTER_PACKET) => {
                if let Some((origin, packet)) = decode_origin(letter.bytes) {
                    let now = inner.clock.now();
                    state.receive_handed(now, origin, packet);
                    state.progress(now);
                }
            }
            Some(&LETTER_RING) => {
                state
                    .shared
                    .accept(letter.bytes, letter.slot, letter.descriptors)
            }
            Some(&LETTER_MAD) => state.core.mads.extend(decode_mad(letter.bytes)),
            // A letter that wakes has done so.
            _ => {}
        }
        inner.leave(state);
    });
    let now = inner.clock.now();
    let mut state = inner.lock();
    state.receive(now, Ask::All);
    state.progress(now);
    inner.leave(state);
}
