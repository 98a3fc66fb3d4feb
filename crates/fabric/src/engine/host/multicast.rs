//! Flows to multicast groups: datagrams from one queue pair, which a queue pair of each member takes.
//!
//! ```text
//! flow ─► requests of one datagram each ─► queue pair of the flow ─► … ─► queue pair of the group at each member
//! ```
//!
//! A request is done when its datagram has left. Nobody answers: what a member does not get, it never gets.

use softfabric_telemetry::PortCounter;
use softfabric_transport::rate::RateControlConfig;
use softfabric_transport::{
    AddressVector, Arrival, Capacity, Datagram, LocalSegment, Modify, QueuePairInit, QueuePairType,
    ReceiveRequest,
};
use softfabric_units::{Class, PartitionKey, Qpn, Rate, Time};
use softfabric_wire::rdma::{Grh, TransportHeader};

use super::flows::{FlowEnd, driver, first_psn, number_of};
use super::lanes::inter_packet_delay;
use super::nic::Nic;
use crate::engine::event::Scheduler;
use crate::engine::frame::{Flags, Frame};
use crate::engine::program::POSTED;
use crate::engine::world::World;
use crate::plan::{GroupId, MulticastGroup, NodeId};

/// The queue key of all groups: that of IP over InfiniBand (RFC 4391, 4).
const QUEUE_KEY: u32 = 0x0b1b;
/// Requests with this bit are for datagrams of a group, and not of a flow.
const OF_GROUP: u64 = 1 << 32;
/// BTH and DETH.
const HEADERS: usize = 12 + 8;

/// The settings of a group; only InfiniBand has any.
fn settings<'w>(group: GroupId, world: &'w World<'_>) -> Option<&'w MulticastGroup> {
    let infiniband = world.plan.link_layer.infiniband()?;
    infiniband.multicast.get(group.index())
}

/// The number of a group's queue pair at each member: after those of the flows.
fn number_of_group(group: GroupId, world: &World) -> Qpn {
    number_of(world.plan.flows.len() as u32 + group.0)
}

/// The group that a receive request is for, if it is for one.
pub(super) const fn group_of(request: u64) -> Option<GroupId> {
    if request & OF_GROUP == 0 {
        return None;
    }
    Some(GroupId(request as u32))
}

impl Frame {
    /// Sends it to a group: with a global route header, which is part of its length.
    pub(super) fn address(&mut self, group: GroupId) {
        self.destination = group.0;
        self.flags.set(Flags::MULTICAST);
        self.length += Grh::LENGTH as u16;
    }
}

impl Nic {
    /// Opens the queue pair by which a flow sends to a group.
    pub(super) fn open_to_group(
        &mut self,
        now: Time,
        flow: u32,
        group: GroupId,
        host: u32,
        world: &World,
    ) {
        let Some(settings) = settings(group, world) else {
            return;
        };
        let number = number_of(flow);
        let mut init = self.datagrams(number);
        init.rate_control = self.group_rate(settings, flow, world);
        let psn = first_psn(flow);
        self.open(now, &init, settings, host, world);
        let changed = self
            .device
            .modify_qp(now, number, &Modify::ready_to_send(psn));
        debug_assert!(changed.is_ok(), "{changed:?}");
    }

    /// A queue pair for datagrams that has nothing yet.
    fn datagrams(&self, number: Qpn) -> QueuePairInit {
        let service = QueuePairType::UnreliableDatagram;
        let mut init = QueuePairInit::new(service, self.domain, self.completions);
        init.number = Some(number);
        init.signal_all = true;
        init.capacity = Capacity {
            sends: POSTED as u32,
            receives: POSTED as u32,
            ..Capacity::default()
        };
        init
    }

    /// Makes a queue pair that receives datagrams of a group's partition.
    fn open(
        &mut self,
        now: Time,
        init: &QueuePairInit,
        group: &MulticastGroup,
        host: u32,
        world: &World,
    ) {
        let created = self.device.create_qp(init);
        debug_assert!(created.is_ok(), "{created:?}");
        let initialize = Modify {
            partition: Some(own_key(group, host, world)),
            ..Modify::initialize_datagram(QUEUE_KEY)
        };
        let ready = Modify::to(softfabric_transport::State::ReadyToReceive);
        for change in [initialize, ready] {
            let number = init.number.unwrap_or_default();
            let changed = self.device.modify_qp(now, number, &change);
            debug_assert!(changed.is_ok(), "{changed:?}");
        }
    }

    /// How the datagrams of a flow are spaced where the group has a rate: each is followed by nothing for a whole number of
    /// its own times (IBTA vol. 1, 9.11.1).
    fn group_rate(
        &self,
        group: &MulticastGroup,
        flow: u32,
        world: &World,
    ) -> Option<RateControlConfig> {
        let line = self.transmitter.link.rate;
        let delay = inter_packet_delay(line, group.rate?);
        let payload = world.plan.flows[flow as usize].message.unwrap_or(group.mtu);
        let sizing = self.settings.sizing;
        let paced = sizing.size(HEADERS, payload.as_u64() as u32).as_u64();
        // The transport knows nothing of the global route header: it paces the rest.
        let whole = paced + Grh::LENGTH as u64;
        let times = u128::from(delay) + 1;
        let rate = u128::from(line.as_bps()) * u128::from(paced) / (u128::from(whole) * times);
        (delay > 0).then(|| RateControlConfig::Fixed {
            rate: Rate::bps(rate as u64),
        })
    }

    /// Where a flow's datagrams go.
    pub(super) fn group_datagram(&self, flow: u32, group: GroupId, world: &World) -> Datagram {
        let class = world.plan.flows[flow as usize].class;
        let of_group = settings(group, world).and_then(|group| group.level);
        let (level, class) = match &self.lanes {
            Some(lanes) => lanes.level_and_class(class, of_group.or(world.level_of_groups())),
            None => (0, Class::default()),
        };
        Datagram {
            path: AddressVector {
                gid: group.gid(),
                driver: driver(flow, level),
                class,
                ..AddressVector::default()
            },
            destination: Qpn::MULTICAST,
            qkey: QUEUE_KEY,
        }
    }

    /// Gives a datagram to the queue pair of its group; returns how many payload bytes it placed.
    #[cold]
    pub(super) fn hear<S: Scheduler>(
        &mut self,
        now: Time,
        frame: &Frame,
        header: &TransportHeader,
        host: u32,
        world: &World,
        scheduler: &mut S,
    ) -> u64 {
        let group = GroupId(frame.destination);
        self.join(now, group, host, world);
        let before = self.placed();
        let source = AddressVector::default();
        self.device.handle_packet(
            now,
            Arrival {
                header,
                payload: (),
                payload_length: u32::from(frame.payload),
                congestion: false,
                source: &source,
                destination: Some(&group.gid()),
                grh: None,
            },
        );
        let placed = self.placed() - before;
        // While tables change, a packet may come twice, or back to its sender.
        let is_own = world.plan.flows[frame.flow as usize].source.0 == host;
        if placed == 0 || is_own {
            return 0;
        }
        let new = || FlowEnd::new(false, None, 0);
        let end = self.flows.ends.entry(frame.flow).or_insert_with(new);
        if !end.hears(header.bth.psn.distance_from(first_psn(frame.flow))) {
            return 0;
        }
        self.flow_received(now, frame.flow, placed, world, scheduler);
        placed
    }

    /// Opens the queue pair of a group when its first datagram arrives at a member.
    fn join(&mut self, now: Time, group: GroupId, host: u32, world: &World) {
        let Some(settings) = settings(group, world) else {
            return;
        };
        if self.flows.groups.contains(&group) || !settings.members.contains(&NodeId(host)) {
            return;
        }
        self.flows.groups.push(group);
        let number = number_of_group(group, world);
        let init = self.datagrams(number);
        self.open(now, &init, settings, host, world);
        let attached = self.device.attach_multicast(number, group.gid());
        debug_assert!(attached.is_ok(), "{attached:?}");
        for _ in 0..POSTED {
            self.await_datagram(group, world);
        }
    }

    /// Posts a request for the next datagram of a group, which begins with a global route header.
    pub(super) fn await_datagram(&mut self, group: GroupId, world: &World) {
        let Some(settings) = settings(group, world) else {
            return;
        };
        let local = LocalSegment {
            address: 0,
            length: Grh::LENGTH as u32 + settings.mtu.as_u64() as u32,
            key: self.key,
        };
        let request = ReceiveRequest::new(OF_GROUP | u64::from(group.0), local);
        let posted = self
            .device
            .post_recv(number_of_group(group, world), request);
        debug_assert!(posted.is_ok(), "{posted:?}");
    }

    /// Counts a packet to a group that came in.
    #[inline]
    pub(super) fn count_heard(&mut self, frame: &Frame) {
        if frame.flags.has(Flags::MULTICAST) {
            let counters = &mut self.transmitter.port;
            counters.count(PortCounter::MulticastReceivePackets);
        }
    }
}

/// The key by which a host is in a group's partition.
fn own_key(group: &MulticastGroup, host: u32, world: &World) -> PartitionKey {
    let full = group.full_key();
    let held = world.keys.as_ref().map(|keys| &keys[host as usize]);
    // `Plan::check` has seen to it that one of them is there.
    let own = held.and_then(|keys| keys.iter().find(|key| key.matches(full)));
    own.copied().unwrap_or(full)
}
