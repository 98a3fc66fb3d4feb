//! What the model allows, and whether that is what came.
//!
//! Per send queue: some successes, then perhaps one failure, then flushes. Which failure, and where, follows from the
//! defects that were posted; only where an end was killed, the wire died or the peer failed, several outcomes are right.

use std::collections::BTreeMap;

use softfabric_testkit::{A, B, Side};
use softfabric_transport::{CompletedOperation, Completion, Event, SendOperation, State, Status};

use crate::memory::Expected;
use crate::received::{mark, shared_queues};
use crate::scene::MEMORY;
use crate::world::{Defect, Link, Posted, World};

/// How a request ended: what its completion says; without one, it was done in silence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ending {
    pub(crate) status: Status,
}

/// Judges a phase; returns how many requests it had.
///
/// # Panics
/// If something came that the model does not allow.
pub(crate) fn judge(world: &mut World) -> usize {
    let mut judged = 0;
    let mut logs = [A, B].map(|side| Log::new(&world.corners[side].log));
    let before = [A, B].map(|side| world.corners[side].before.clone());
    let mut memory = [Expected::new(&before[A]), Expected::new(&before[B])];
    let mut taken = [Vec::new(), Vec::new()];
    for index in 0..world.links.len() {
        let endings = [A, B].map(|side| {
            let link = &world.links[index];
            judged += link.posted[side].len();
            endings(link, side, &mut logs[side])
        });
        let judge = LinkJudge {
            world,
            link: &world.links[index],
            index,
            endings: &endings,
        };
        for side in [A, B] {
            judge.send_queue(side);
            judge.moved(side, &mut memory);
        }
        for side in [A, B] {
            let took = judge.receive_queues(side, &mut logs[side], &mut memory[side]);
            taken[side].extend(took);
        }
    }
    for ghost in &world.ghosts {
        for side in [A, B] {
            taken[side].extend(haunt(world, ghost, side, &mut logs[side], &mut memory));
        }
    }
    for side in [A, B] {
        assert!(
            logs[side].is_empty(),
            "completions of nobody at side {side}: {:?}",
            logs[side]
        );
        mark(world, &taken[side], side);
        shared_queues(world, side, &mut memory[side]);
        events(world, side);
    }
    for (side, memory) in memory.into_iter().enumerate() {
        let found = world.pair.ends[side].device.memory().slice(0, MEMORY);
        if let Some(address) = memory.differs(found) {
            panic!(
                "memory of side {side} differs at {address:#x}: {}",
                owner(world, side, address)
            );
        }
    }
    judged
}

/// Whose the byte is, for the message of a failure.
fn owner(world: &World, side: Side, address: usize) -> String {
    let at =
        |start: u64, length: u32| (start..start + u64::from(length)).contains(&(address as u64));
    for (index, link) in world.links.iter().enumerate() {
        for (from, posted) in [A, B]
            .iter()
            .flat_map(|&from| link.posted[from].iter().map(move |posted| (from, posted)))
        {
            let start = if from == side {
                posted.local
            } else {
                posted.remote
            };
            if at(start, posted.length) {
                return format!("link {index} {:?}, side {from}, {posted:?}", link.service);
            }
        }
        for receive in &link.receives[side] {
            if at(receive.address, receive.room) {
                return format!("link {index}, {receive:?}");
            }
        }
    }
    let corner = &world.corners[side];
    for queue in corner.shared.iter().chain(&corner.named) {
        for receive in &queue.receives {
            if at(receive.address, receive.room) {
                return format!("shared queue {:?}, {receive:?}", queue.id);
            }
        }
    }
    String::from("nobody's")
}

/// The completions of a side that no request has claimed yet.
#[derive(Debug)]
pub(crate) struct Log(BTreeMap<u64, (usize, Completion)>);

impl Log {
    fn new(log: &[Completion]) -> Self {
        let mut claimed = BTreeMap::new();
        for (place, &completion) in log.iter().enumerate() {
            let twice = claimed.insert(completion.id, (place, completion));
            assert!(twice.is_none(), "completed twice: {completion:?}");
        }
        Self(claimed)
    }

    pub(crate) fn take(&mut self, id: u64) -> Option<(usize, Completion)> {
        self.0.remove(&id)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn forget(&mut self, qp: softfabric_units::Qpn) {
        self.0.retain(|_, (_, completion)| completion.qp != qp);
    }

    /// The receive completions of a queue pair, in their order.
    pub(crate) fn received(&self, qp: softfabric_units::Qpn) -> Vec<Completion> {
        let mut received: Vec<_> = self
            .0
            .values()
            .filter(|(_, completion)| {
                let receives = matches!(
                    completion.operation,
                    CompletedOperation::Receive | CompletedOperation::ReceiveWithWrite
                );
                completion.qp == qp && receives
            })
            .collect();
        received.sort_by_key(|(place, _)| *place);
        received
            .into_iter()
            .map(|(_, completion)| *completion)
            .collect()
    }
}

/// What queue pairs have done that are no more: anything that was asked of them, and nothing else. Returns the receive
/// requests that they completed.
fn haunt(
    world: &World,
    ghost: &Link,
    side: Side,
    log: &mut Log,
    memory: &mut [Expected<'_>; 2],
) -> Vec<u64> {
    let peer = 1 - side;
    for posted in &ghost.posted[side] {
        let length = posted.length as usize;
        match posted.operation {
            SendOperation::Write(_) | SendOperation::WriteImmediate(..) => {
                let bytes = memory[side].before(posted.local, length);
                memory[peer].may_become(posted.remote, bytes);
            }
            SendOperation::Read(_) => {
                let bytes = memory[peer].before(posted.remote, length);
                memory[side].may_become(posted.local, bytes);
            }
            SendOperation::FetchAdd { .. } | SendOperation::CompareSwap { .. } => {
                memory[side].anything(posted.local, 8);
                memory[peer].anything(ghost.words[peer], 8);
            }
            _ => {}
        }
    }
    for receive in &ghost.receives[side] {
        memory[side].anything(receive.address, receive.room as usize);
    }
    let received = log.received(ghost.qps[side]);
    let corner = &world.corners[side];
    let queues = corner.shared.iter().chain(&corner.named);
    for receive in queues.flat_map(|queue| &queue.receives) {
        if received
            .iter()
            .any(|completion| completion.id == receive.id)
        {
            memory[side].anything(receive.address, receive.room as usize);
        }
    }
    log.forget(ghost.qps[side]);
    received.iter().map(|completion| completion.id).collect()
}

/// Finds the completion of each request of a send queue: at most one each, and in order.
fn endings(link: &Link, side: Side, log: &mut Log) -> Vec<Ending> {
    let mut last = None;
    let mut endings = Vec::new();
    for posted in &link.posted[side] {
        let Some((place, completion)) = log.take(posted.id) else {
            assert!(!posted.signaled, "never completed: {posted:?}");
            endings.push(Ending {
                status: Status::Success,
            });
            continue;
        };
        assert!(last < Some(place), "out of order: {completion:?}");
        last = Some(place);
        assert_eq!(completion.qp, link.qps[side]);
        let expected = match posted.operation {
            SendOperation::Send | SendOperation::SendImmediate(_) => CompletedOperation::Send,
            SendOperation::Write(_) | SendOperation::WriteImmediate(..) => {
                CompletedOperation::Write
            }
            SendOperation::Read(_) => CompletedOperation::Read,
            SendOperation::FetchAdd { .. } => CompletedOperation::FetchAdd,
            _ => CompletedOperation::CompareSwap,
        };
        assert_eq!(completion.operation, expected);
        let asked = posted.signaled || completion.status != Status::Success;
        assert!(asked, "nobody asked for {completion:?}");
        if completion.status == Status::Success {
            assert_eq!(completion.length, posted.length);
        }
        endings.push(Ending {
            status: completion.status,
        });
    }
    endings
}

pub(crate) struct LinkJudge<'a> {
    pub(crate) world: &'a World,
    pub(crate) link: &'a Link,
    pub(crate) index: usize,
    pub(crate) endings: &'a [Vec<Ending>; 2],
}

impl LinkJudge<'_> {
    /// The messages of a side, which take receive requests of the other.
    pub(crate) fn messages(&self, side: Side) -> impl Iterator<Item = (usize, &Posted)> {
        let posted = self.link.posted[side].iter().enumerate();
        posted.filter(|(_, posted)| posted.takes_receive())
    }

    /// What is wrong with each request by itself: with it, or with the receive request that it meets.
    fn inherent(&self, side: Side) -> Vec<Status> {
        let own = self.link.shared[1 - side].is_none() && !self.link.is_extended();
        let mut receives = self.link.receives[1 - side].iter();
        let mut statuses = Vec::new();
        for posted in &self.link.posted[side] {
            let met = if posted.takes_receive() && own {
                receives.next()
            } else {
                None
            };
            statuses.push(match (posted.defect, met) {
                (Defect::Local, _) => Status::LocalProtection,
                (Defect::Remote, _) => Status::RemoteAccess,
                (Defect::Queue, _) => Status::RemoteInvalidRequest,
                (Defect::None, Some(receive)) if posted.is_send() => {
                    if posted.length > receive.room {
                        Status::RemoteInvalidRequest
                    } else if receive.defect && posted.length > 0 {
                        Status::RemoteOperation
                    } else {
                        Status::Success
                    }
                }
                _ => Status::Success,
            });
        }
        statuses
    }

    pub(crate) fn first_bad(&self, side: Side) -> Option<usize> {
        let statuses = self.inherent(side);
        statuses
            .iter()
            .position(|&status| status != Status::Success)
    }

    /// How many requests of a side succeeded before the first that did not.
    pub(crate) fn successes(&self, side: Side) -> usize {
        let endings = &self.endings[side];
        let failed = endings
            .iter()
            .position(|ending| ending.status != Status::Success);
        failed.unwrap_or(endings.len())
    }

    fn failed_unready(&self, side: Side) -> bool {
        let mut endings = self.endings[side].iter();
        endings.any(|ending| ending.status == Status::RnrRetriesExceeded)
    }

    /// Judges the statuses of a send queue, and the state that the queue pair is in.
    fn send_queue(&self, side: Side) {
        let status = self.world.pair.ends[side]
            .device
            .query_qp(self.link.qps[side]);
        let status = status.expect("it exists");
        assert_eq!(status.sends_waiting, 0, "link {} side {side}", self.index);
        if self.link.is_reliable() {
            self.reliable_send_queue(side, status.state);
        } else {
            self.unreliable_send_queue(side, status.state);
        }
    }

    fn reliable_send_queue(&self, side: Side, state: State) {
        let (scene, link, peer) = (&self.world.scene, self.link, 1 - side);
        let what = || {
            format!(
                "link {} {} side {side}: {:?} of {:?}",
                self.index, link.service, self.endings[side], link.posted[side]
            )
        };
        let bad = self.first_bad(side);
        let peer_bad = self.first_bad(peer);
        let killed = self.world.dead || link.forced[A] || link.forced[B];
        let unready = [A, B].map(|side| self.failed_unready(side));
        let root = killed || peer_bad.is_some() || unready[peer];
        let done = self.successes(side);
        assert!(bad.is_none_or(|bad| done <= bad), "{}", what());
        let Some(failed) = self.endings[side].get(done) else {
            assert!(bad.is_none(), "{}", what());
            // Nothing of its own failed it; the peer's request or a hand may have.
            let may_fail = link.forced[side] || peer_bad.is_some();
            assert!(
                state == State::ReadyToSend || state == State::Error && may_fail,
                "{state} {}",
                what()
            );
            return;
        };
        assert_eq!(state, State::Error, "{}", what());
        let inherent = self.inherent(side);
        let right = match failed.status {
            Status::Flushed => link.forced[side] || peer_bad.is_some(),
            Status::RetriesExceeded => {
                // A peer that has refused something is in the error state: what was lost before is not answered again,
                // nor is a refusal.
                root || scene.loses() && bad.is_some()
            }
            Status::RnrRetriesExceeded => {
                scene.impatient && link.posted[side][done].takes_receive()
            }
            status => bad == Some(done) && status == inherent[done],
        };
        assert!(right, "{}", what());
        let rest = &self.endings[side][done + 1..];
        let flushed = rest.iter().all(|ending| ending.status == Status::Flushed);
        assert!(flushed, "{}", what());
    }

    /// Nobody answers: what leaves is done. A request whose own memory does not hold stops the queue until it is
    /// brought back.
    fn unreliable_send_queue(&self, side: Side, state: State) {
        let link = self.link;
        let mut stopped = None;
        let mut failed = false;
        for (posted, ending) in link.posted[side].iter().zip(&self.endings[side]) {
            let flushed = failed || posted.too_late || stopped == Some(posted.epoch);
            failed |= link.forced[side] && ending.status == Status::Flushed && !flushed;
            let expected = if failed || flushed {
                Status::Flushed
            } else if posted.defect == Defect::Local {
                stopped = Some(posted.epoch);
                Status::LocalProtection
            } else {
                Status::Success
            };
            assert_eq!(ending.status, expected, "link {} {posted:?}", self.index);
        }
        let expected = if link.forced[side] {
            State::Error
        } else if stopped == Some(link.epochs[side]) {
            State::SendQueueError
        } else {
            State::ReadyToSend
        };
        let events = &self.world.corners[side].events;
        assert_eq!(
            state, expected,
            "link {} {} side {side}, {events:?}",
            self.index, link.service
        );
    }

    /// Whether a request may have been executed, given that it did not succeed.
    fn may_have_run(&self, side: Side, index: usize) -> bool {
        if !self.link.is_reliable() {
            return self.link.posted[side][index].defect == Defect::None;
        }
        self.first_bad(side).is_none_or(|bad| index < bad)
    }

    /// What writes, reads and atomics of a side have moved.
    fn moved(&self, side: Side, memory: &mut [Expected<'_>; 2]) {
        let peer = 1 - side;
        let mut words = vec![word(memory[peer].before(self.link.words[peer], 8))];
        let mut certain = 0;
        let pairs = self.link.posted[side].iter().zip(&self.endings[side]);
        for (index, (posted, ending)) in pairs.enumerate() {
            let length = posted.length as usize;
            let done = ending.status == Status::Success && posted.defect == Defect::None;
            // What succeeds on an unreliable connection may still be lost.
            let arrives = !self.world.loses() && !self.link.forced[peer];
            let certainly = done && (self.link.is_reliable() || arrives);
            let possibly = done || self.may_have_run(side, index);
            match posted.operation {
                SendOperation::Write(_) | SendOperation::WriteImmediate(..) => {
                    let bytes = memory[side].before(posted.local, length);
                    let waits = posted.takes_receive() && !self.link.is_reliable();
                    if certainly && !waits {
                        memory[peer].becomes(posted.remote, bytes);
                    } else if possibly {
                        memory[peer].may_become(posted.remote, bytes);
                    }
                }
                SendOperation::Read(_) => {
                    let bytes = memory[peer].before(posted.remote, length);
                    if done {
                        memory[side].becomes(posted.local, bytes);
                    } else if possibly {
                        memory[side].may_become(posted.local, bytes);
                    }
                }
                SendOperation::FetchAdd { .. } | SendOperation::CompareSwap { .. } => {
                    let value = *words.last().unwrap_or(&0);
                    if done {
                        memory[side].becomes(posted.local, &value.to_ne_bytes());
                    } else if possibly {
                        memory[side].may_become(posted.local, &value.to_ne_bytes());
                    }
                    if done || possibly {
                        words.push(after(posted.operation, value));
                    }
                    if done {
                        certain = words.len() - 1;
                    }
                }
                _ => {}
            }
        }
        if !self.link.is_reliable() {
            return;
        }
        let device = &self.world.pair.ends[peer].device;
        let found = word(device.memory().slice(self.link.words[peer], 8));
        assert!(
            words[certain..].contains(&found),
            "link {}: {found:#x} is none of {:x?}",
            self.index,
            &words[certain..]
        );
        memory[peer].becomes(self.link.words[peer], &found.to_ne_bytes());
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
}

fn after(operation: SendOperation, value: u64) -> u64 {
    match operation {
        SendOperation::FetchAdd { add, .. } => value.wrapping_add(add),
        SendOperation::CompareSwap { compare, swap, .. } if compare == value => swap,
        _ => value,
    }
}

/// Events: one for each death of a queue pair with a shared queue, no more of completions than were asked for, and none
/// that nothing has caused.
fn events(world: &World, side: Side) {
    let corner = &world.corners[side];
    let count = |event| {
        corner
            .events
            .iter()
            .filter(|&&other| other == event)
            .count()
    };
    for link in &world.links {
        let qp = link.qps[side];
        let state = world.pair.ends[side]
            .device
            .query_qp(qp)
            .map(|status| status.state);
        let died = state == Some(State::Error);
        let expected = usize::from(died && link.shared[side].is_some());
        assert_eq!(count(Event::LastReceiveReached(qp)), expected, "{qp}");
        let refused = [
            Event::RequestError(qp),
            Event::AccessError(qp),
            Event::QueuePairFatal(qp),
        ];
        let refusals: usize = refused.into_iter().map(count).sum();
        assert!(refusals <= usize::from(died), "{qp}: {:?}", corner.events);
    }
    assert!(corner.told() <= corner.asked, "nobody asked");
    let overruns = corner.events.iter();
    let mut overruns = overruns.filter(|event| matches!(event, Event::CompletionQueueError(_)));
    assert!(overruns.next().is_none());
}
