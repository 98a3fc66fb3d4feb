//! The receiving half of the model: which message each receive request took, and what it holds.

use softfabric_testkit::Side;
use softfabric_transport::{
    Attachment, CompletedOperation, Completion, CompletionFlags, LossRecovery, QueuePairType,
    State, Status,
};

use crate::judge::{LinkJudge, Log};
use crate::memory::Expected;
use crate::world::{Defect, Posted, Receive, World};

/// Where receive requests come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Own,
    Shared(usize),
    /// A shared receive queue of XRC, which each message names.
    Named(usize),
}

impl LinkJudge<'_> {
    /// Judges what a side has received, and what is where; returns the receive requests of shared queues that were
    /// taken.
    pub(crate) fn receive_queues(
        &self,
        side: Side,
        log: &mut Log,
        memory: &mut Expected<'_>,
    ) -> Vec<u64> {
        let link = self.link;
        let completions = log.received(link.qps[side]);
        let corner = &self.world.corners[side];
        let mut taken = Vec::new();
        let mut judged = 0;
        for place in self.places(side) {
            let receives = match place {
                Place::Own => &link.receives[side],
                Place::Shared(which) => &corner.shared[which].receives,
                Place::Named(which) => &corner.named[which].receives,
            };
            let here: Vec<_> = completions
                .iter()
                .filter_map(|&completion| {
                    let id = completion.id;
                    let receive = receives.iter().find(|receive| receive.id == id)?;
                    Some((completion, *receive))
                })
                .collect();
            judged += here.len();
            self.receive_queue(side, place, &here, memory);
            if place != Place::Own {
                taken.extend(here.iter().map(|(completion, _)| completion.id));
            }
        }
        assert_eq!(judged, completions.len(), "requests of another queue");
        for completion in &completions {
            log.take(completion.id);
        }
        taken
    }

    /// Where a side of the link receives from.
    fn places(&self, side: Side) -> Vec<Place> {
        let link = self.link;
        match link.shared[side] {
            Some(which) => vec![Place::Shared(which)],
            None if !link.is_extended() => vec![Place::Own],
            None if side == link.from => Vec::new(),
            None => vec![Place::Named(0), Place::Named(1)],
        }
    }

    fn receive_queue(
        &self,
        side: Side,
        place: Place,
        completions: &[(Completion, Receive)],
        memory: &mut Expected<'_>,
    ) {
        let (link, from) = (self.link, 1 - side);
        let mut received = 0;
        let mut next = 0;
        let messages: Vec<_> = self
            .messages(from)
            .filter(|(_, posted)| match place {
                Place::Named(which) => posted.named == which,
                _ => true,
            })
            .collect();
        for (index, (completion, receive)) in completions.iter().enumerate() {
            assert!(!receive.completed, "completed twice: {receive:?}");
            if place == Place::Own {
                let expected = link.receives[side].get(index).map(|receive| receive.id);
                assert_eq!(expected, Some(completion.id), "out of order");
            }
            if completion.status != Status::Success {
                let met = messages.get(received).filter(|_| index == received);
                self.failed_receive(side, completion, receive, met.copied());
                if index == received {
                    memory.anything(receive.address, receive.room as usize);
                }
                continue;
            }
            assert_eq!(index, received, "after a failure: {completion:?}");
            received += 1;
            let message = self.message(&messages, completion, &mut next);
            self.delivered(from, message, completion, receive, memory);
        }
        self.none_missing(side, place, &messages, completions.len(), received);
    }

    /// The message that a completion is of: the next one, or, where messages may be lost, the one of its immediate data.
    fn message<'m>(
        &self,
        messages: &[(usize, &'m Posted)],
        completion: &Completion,
        next: &mut usize,
    ) -> &'m Posted {
        if self.link.is_reliable() {
            *next += 1;
            let message = messages.get(*next - 1);
            return message
                .unwrap_or_else(|| panic!("nobody sent {completion:?}"))
                .1;
        }
        let Attachment::Immediate(id) = completion.attachment else {
            panic!("unreliable messages have immediate data: {completion:?}");
        };
        let place = messages
            .iter()
            .position(|(_, posted)| posted.id == u64::from(id));
        let place = place.unwrap_or_else(|| panic!("nobody sent {completion:?}"));
        if !self.world.scene.disorders() {
            assert!(place >= *next, "twice or out of order: {completion:?}");
        }
        *next = place + 1;
        messages[place].1
    }

    /// A message that arrived: what the completion says of it, and where its bytes are.
    fn delivered(
        &self,
        from: Side,
        message: &Posted,
        completion: &Completion,
        receive: &Receive,
        memory: &mut Expected<'_>,
    ) {
        let datagram = self.link.service == QueuePairType::UnreliableDatagram;
        let header = if datagram { 40 } else { 0 };
        assert_eq!(message.defect, Defect::None, "{message:?}");
        assert_eq!(completion.length, message.length + header);
        let solicited = completion.flags.contains(CompletionFlags::SOLICITED);
        assert_eq!(solicited, message.solicited, "{message:?}");
        let attachment = message
            .immediate()
            .map_or(Attachment::None, Attachment::Immediate);
        assert_eq!(completion.attachment, attachment);
        let operation = if message.is_send() {
            CompletedOperation::Receive
        } else {
            CompletedOperation::ReceiveWithWrite
        };
        assert_eq!(completion.operation, operation);
        if datagram {
            assert_eq!(completion.source, self.link.qps[from]);
            memory.becomes(receive.address, &[0; 40]);
        }
        let length = message.length as usize;
        let bytes = &self.world.corners[from].before[message.local as usize..][..length];
        let start = receive.address + u64::from(header);
        let mut used = 0;
        if message.is_send() {
            memory.becomes(start, bytes);
            used = length + header as usize;
        }
        // A message that was given up may have used the rest of the room before.
        let shares = self.link.is_extended() || self.link.shared[1 - from].is_some();
        let forgets = self.world.scene.recovery == LossRecovery::GoBack0;
        let reused = shares || (!self.link.is_reliable() || forgets) && !datagram;
        if reused {
            memory.anything(receive.address + used as u64, receive.room as usize - used);
        }
    }

    /// A receive request that did not succeed: the defect's own status for the message that met it, flushed otherwise.
    fn failed_receive(
        &self,
        side: Side,
        completion: &Completion,
        receive: &Receive,
        met: Option<(usize, &Posted)>,
    ) {
        let link = self.link;
        let status = self.world.pair.ends[side].device.query_qp(link.qps[side]);
        assert_eq!(status.expect("there").state, State::Error, "{completion:?}");
        let expected: &[Status] = match met {
            Some((index, message)) if message.is_send() && link.is_reliable() => {
                let first_bad = self.first_bad(1 - side) == Some(index);
                if first_bad && message.defect != Defect::None {
                    &[Status::Flushed]
                } else if message.length > receive.room {
                    &[Status::LocalLength, Status::Flushed]
                } else if receive.defect {
                    &[Status::LocalProtection, Status::Flushed]
                } else {
                    &[Status::Flushed]
                }
            }
            _ => &[Status::Flushed],
        };
        assert!(
            expected.contains(&completion.status),
            "{completion:?} {receive:?}"
        );
        if !link.is_reliable() {
            assert!(link.forced[side], "{completion:?}");
        }
    }

    /// Every message that succeeded was received, and every receive request of a failed queue pair came back.
    fn none_missing(
        &self,
        side: Side,
        place: Place,
        messages: &[(usize, &Posted)],
        completed: usize,
        received: usize,
    ) {
        let (link, from) = (self.link, 1 - side);
        if link.is_reliable() {
            let done = self.successes(from);
            let acknowledged = messages.iter().filter(|(index, _)| *index < done).count();
            assert!(
                received >= acknowledged,
                "link {}: lost messages",
                self.index
            );
            let bad = self.first_bad(from).unwrap_or(usize::MAX);
            let possible = messages.iter().filter(|(index, _)| *index < bad).count();
            assert!(
                received <= possible,
                "link {}: refused messages",
                self.index
            );
        } else if !self.world.loses() && !link.forced[side] {
            // Without faults only what found no receive request is missing; a queue of one's own had none left then.
            let shared = link.shared[side].is_some();
            let whole = received == messages.len() || shared;
            let starved = self.world.starved(side);
            let good = messages.iter().all(|(index, posted)| {
                posted.defect == Defect::None
                    && self.endings[from][*index].status == Status::Success
            });
            assert!(
                whole || starved || !good,
                "link {}: lost messages",
                self.index
            );
        }
        let status = self.world.pair.ends[side].device.query_qp(link.qps[side]);
        let status = status.expect("it exists");
        if place != Place::Own {
            return;
        }
        let posted = link.receives[side].len();
        if status.state == State::Error {
            assert_eq!(completed, posted, "every request comes back");
        } else {
            let held = usize::from(self.world.may_hold(self.index, side));
            let waiting = status.receives_waiting;
            let missing = posted - completed - waiting;
            assert!(
                missing <= held,
                "link {}: {missing} requests gone",
                self.index
            );
        }
    }
}

/// Notes which requests of shared queues were taken.
pub(crate) fn mark(world: &mut World, taken: &[u64], side: Side) {
    let corner = &mut world.corners[side];
    let queues = corner.shared.iter_mut().chain(&mut corner.named);
    for receive in queues.flat_map(|queue| &mut queue.receives) {
        if taken.contains(&receive.id) {
            receive.completed = true;
        }
    }
}

/// What was not taken of shared queues still waits there, but for what failed or stalled queue pairs hold.
pub(crate) fn shared_queues(world: &World, side: Side, memory: &mut Expected<'_>) {
    let corner = &world.corners[side];
    for queue in corner.shared.iter().chain(&corner.named) {
        let waiting = world.pair.ends[side].device.srq_waiting(queue.id);
        let left = queue.receives.iter().filter(|receive| !receive.completed);
        // A queue pair keeps the request of a message whose rest does not come.
        let holders = (0..world.links.len()).filter(|&link| {
            let at = &world.links[link];
            let shared = at.shared[side].map(|shared| corner.shared[shared].id);
            let uses = if at.is_extended() {
                queue.number != 0 && side != at.from
            } else {
                shared == Some(queue.id)
            };
            uses && world.may_hold(link, side)
        });
        let (left_count, holders) = (left.clone().count(), holders.count());
        let waiting = waiting.expect("it exists");
        assert!(
            waiting <= left_count && left_count <= waiting + holders,
            "{left_count} requests of {:?}, {waiting} wait",
            queue.id
        );
        for receive in left {
            memory.anything(receive.address, receive.room as usize);
        }
    }
    // What a queue of one's own holds for a message that was given up.
    for (index, link) in world.links.iter().enumerate() {
        if !world.may_hold(index, side) {
            continue;
        }
        for receive in &link.receives[side] {
            if !world.corners[side]
                .log
                .iter()
                .any(|done| done.id == receive.id)
            {
                memory.anything(receive.address, receive.room as usize);
            }
        }
    }
}
