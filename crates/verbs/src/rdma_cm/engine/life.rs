//! Channels and identifiers come and go, and move.

use std::os::fd::{AsRawFd, OwnedFd};

use softfabric_adapter::cm::Manager;
use softfabric_units::{Psn, Time};

use super::super::abi;
use super::super::descriptors::ChannelId;
use super::{Channel, Cm, Id, Space, Waiting};
use crate::abi::{IBV_QPT_RC, IBV_QPT_UD};
use crate::errno::Errno;

impl Cm {
    /// A channel is open. `descriptor` is a copy of the program's.
    pub(crate) fn open(&mut self, channel: ChannelId, descriptor: OwnedFd) {
        let waiting = std::collections::VecDeque::new();
        let entry = Channel {
            descriptor,
            waiting,
        };
        self.channels.insert(channel, entry);
    }

    /// A channel is closed, and with it everything that was made through it.
    pub(crate) fn close(&mut self, manager: &mut Manager, now: Time, channel: ChannelId) {
        let of_channel = self.ids.iter().filter(|(_, id)| id.channel == channel);
        let numbers: Vec<u32> = of_channel.map(|(number, _)| *number).collect();
        for number in numbers {
            self.end(manager, now, number);
        }
        self.channels.remove(&channel);
    }

    /// Makes an identifier.
    pub(crate) fn create(
        &mut self,
        channel: ChannelId,
        command: &abi::CreateId,
    ) -> Result<abi::Number, Errno> {
        let space = Space::from_number(command.space).ok_or(Errno::EINVAL)?;
        let qp_type = match space {
            Space::Tcp => IBV_QPT_RC as u8,
            Space::Udp | Space::Ipoib => IBV_QPT_UD as u8,
            Space::Infiniband => command.qp_type,
        };
        let psn = Psn::new(self.random.bits() as u32);
        let number = self.number();
        let id = Id::new(channel, command.user, space, qp_type, psn);
        self.ids.insert(number, id);
        Ok(abi::Number { value: number })
    }

    /// Ends an identifier; the answer is how many of its events the program has taken.
    pub(crate) fn destroy(
        &mut self,
        manager: &mut Manager,
        now: Time,
        channel: ChannelId,
        id: u32,
    ) -> Result<abi::Number, Errno> {
        self.id(channel, id)?;
        let value = self.end(manager, now, id);
        Ok(abi::Number { value })
    }

    fn end(&mut self, manager: &mut Manager, now: Time, number: u32) -> u32 {
        let Some(id) = self.ids.remove(&number) else {
            return 0;
        };
        self.unlink(manager, now, id.link);
        if let Some((service, address)) = id.claim {
            // A port that cannot be given back is free once the process ends.
            let _ = self.registry.release(service, address);
        }
        self.groups.retain(|_, group| group.id != number);
        // Requests that the program has not taken end with their listener.
        let forgotten = match self.channels.get_mut(&id.channel) {
            Some(channel) => forget(channel, |waiting| waiting.counts_for == number),
            None => Vec::new(),
        };
        for waiting in forgotten.iter().filter(|waiting| waiting.is_request()) {
            if let Some(request) = self.ids.remove(&waiting.event.id) {
                self.unlink(manager, now, request.link);
            }
        }
        id.reported
    }

    /// Moves an identifier and its events from the channel `from` to `channel`.
    pub(crate) fn migrate(
        &mut self,
        channel: ChannelId,
        from: ChannelId,
        id: u32,
    ) -> Result<abi::Number, Errno> {
        let entry = self.id(from, id)?;
        entry.channel = channel;
        let value = entry.reported;
        let moved = match self.channels.get_mut(&from) {
            Some(old) => forget(old, |waiting| waiting.counts_for == id),
            None => Vec::new(),
        };
        for event in moved {
            if event.is_request()
                && let Some(request) = self.ids.get_mut(&event.event.id)
            {
                request.channel = channel;
            }
            self.push(channel, event);
        }
        Ok(abi::Number { value })
    }

    /// The next event of a channel, if one waits.
    pub(crate) fn next_event(&mut self, channel: ChannelId) -> Option<Box<abi::Event>> {
        let waiting = self.channels.get_mut(&channel)?.waiting.pop_front()?;
        if let Some(id) = self.ids.get_mut(&waiting.counts_for) {
            id.reported += 1;
            if waiting.is_request() {
                id.backlog += 1;
            }
        }
        if let Some(group) = waiting.group.and_then(|group| self.groups.get_mut(&group)) {
            group.reported += 1;
        }
        Some(waiting.event)
    }
}

impl Waiting {
    /// Whether it brings a new identifier.
    fn is_request(&self) -> bool {
        self.event.event == abi::EventKind::ConnectRequest as u32
    }
}

/// Takes events out of a channel that the program shall not hear of any longer.
pub(super) fn forget(channel: &mut Channel, which: impl Fn(&Waiting) -> bool) -> Vec<Waiting> {
    let waiting = std::mem::take(&mut channel.waiting);
    let (forgotten, kept) = waiting.into_iter().partition::<Vec<_>, _>(which);
    channel.waiting = kept.into();
    for _ in &forgotten {
        super::event::count_down(channel.descriptor.as_raw_fd());
    }
    forgotten
}
