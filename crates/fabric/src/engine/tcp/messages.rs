//! Messages of jobs over connections: one after the other in the byte stream, each behind its header.

use std::sync::atomic::Ordering;

use softfabric_units::{Bytes, Time};

use super::{TcpHost, Timer};
use crate::engine::event::Scheduler;
use crate::engine::program::{Carrier, HEADER, Header, Note};
use crate::engine::world::World;

/// How far the stream of a connection has been read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// Bytes of whole messages, with their headers and without.
    taken: u64,
    payload: u64,
}

impl Reading {
    /// Bytes of messages among so many of the stream.
    pub(super) fn payload(self, read: u64) -> u64 {
        self.payload + (read - self.taken).saturating_sub(HEADER.as_u64())
    }
}

impl TcpHost {
    /// Asks to be told when the ranks begin.
    pub(crate) fn schedule_program<S: Scheduler>(&mut self, scheduler: &mut S) {
        if let Some(program) = &mut self.program
            && let Some(time) = program.next_alarm()
        {
            scheduler.at(time, Timer::Program.event());
        }
    }

    /// The ranks hear what connections have to say, and say what is to be written.
    pub(super) fn advance<S: Scheduler>(&mut self, now: Time, world: &World, scheduler: &mut S) {
        let Some(mut program) = self.program.take() else {
            return;
        };
        let mut connections = Connections {
            now,
            host: self,
            world,
            scheduler,
        };
        let ended = program.converse(now, &mut connections);
        self.program = Some(program);
        world.flows_left.fetch_sub(ended, Ordering::Relaxed);
        self.schedule_program(scheduler);
    }

    /// More of a connection has been read: whole messages go to the ranks.
    pub(super) fn take_messages(&mut self, flow: u32, world: &World) {
        let read = self.stack.read(flow);
        let reading = self.reading.entry(flow).or_default();
        while read - reading.taken >= HEADER.as_u64()
            && let Some(Header { message, bytes }) = world.streams.next(flow)
            && read - reading.taken >= (HEADER + bytes).as_u64()
        {
            world.streams.take(flow);
            reading.taken += (HEADER + bytes).as_u64();
            reading.payload += bytes.as_u64();
            self.notes.push(Note::Arrived { flow, message });
        }
    }
}

/// The connections of a host, for its ranks.
struct Connections<'h, 'p, S> {
    now: Time,
    host: &'h mut TcpHost,
    world: &'h World<'p>,
    scheduler: &'h mut S,
}

impl<S: Scheduler> Carrier for Connections<'_, '_, S> {
    fn open(&mut self, now: Time, flow: u32) {
        self.host.start_flow(now, flow, self.world);
    }

    fn post(&mut self, now: Time, flow: u32, message: u32, bytes: Bytes) {
        self.world.streams.add(flow, Header { message, bytes });
        let length = (HEADER + bytes).as_u64();
        self.host.stack.post(now, flow, length);
    }

    fn close(&mut self, now: Time, flow: u32) {
        self.host.stack.end_of_messages(now, flow);
    }

    fn take_notes(&mut self) -> Vec<Note> {
        self.host.reap(self.now, self.world, self.scheduler);
        std::mem::take(&mut self.host.notes)
    }
}
