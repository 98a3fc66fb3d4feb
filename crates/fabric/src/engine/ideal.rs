//! How long a flow would take alone in the network.

use softfabric_transport::FrameSizing;
use softfabric_units::{Bytes, Span, Time};

use super::link::OutLink;
use super::node::{Kind, Node};
use super::routing::NextHops;
use super::tcp::SegmentSizes;
use super::world::World;
use crate::plan::{Flow, Operation, SMALLEST_FRAME, Timing};
use crate::theory::{Hop, Message, hpcc_standalone};

/// The links of a flow's first path, from its sender to its receiver.
fn path<'n>(flow: u32, world: &World, nodes: &'n [Node]) -> Option<Vec<&'n OutLink>> {
    let plan = &world.plan.flows[flow as usize];
    let destination = world.flows[flow as usize].destination;
    let mut node = plan.source.0;
    let mut port = plan.source_nic.index();
    let mut links = Vec::new();
    // A path longer than there are nodes goes round in circles.
    for _ in 0..nodes.len() {
        let link = &nodes[node as usize].transmitters().nth(port)?.link;
        links.push(link);
        node = link.receiver;
        if node == plan.destination.0 {
            return Some(links);
        }
        port = match world.fixed_hops.port(node, flow, false) {
            Some(port) => port,
            None => match &world.tables {
                Some(tables) => tables.port(node, destination)?,
                None => match world.routes.next_hops(node, destination) {
                    NextHops::Access(port) => usize::from(port),
                    NextHops::Ports(ports) => usize::from(*ports.first()?),
                },
            },
        };
    }
    None
}

/// The completion time of a flow that has the network for itself: packets back to back at the slowest link, and the last
/// acknowledgement's way back. [`Span::ZERO`] where there is no path, for a flow that a job feeds, and for one to a group,
/// which is not acknowledged.
pub(crate) fn completion_time(flow: u32, world: &World, nodes: &[Node]) -> Span {
    let plan = &world.plan.flows[flow as usize];
    if plan.is_fed() || plan.operation.group().is_some() {
        return Span::ZERO;
    }
    let Some(links) = path(flow, world, nodes) else {
        return Span::ZERO;
    };
    let host = match &nodes[plan.source.index()].kind {
        Kind::Host(host) => host,
        Kind::TcpHost(host) => return tcp(plan, &links, host.sizes()),
        Kind::Switch(_) | Kind::LaneSwitch(_) => return Span::ZERO,
    };
    let settings = host.nics[plan.source_nic.index()].settings();
    match world.plan.timing {
        Timing::Exact => exact(
            plan,
            &links,
            settings.sizing,
            settings.mtu.as_u32(),
            settings.smallest,
        ),
        Timing::Hpcc => hpcc(plan, &links),
    }
}

/// A run of equal packets: how many, and how long each is.
type Run = (u64, u32);

fn exact(flow: &Flow, links: &[&OutLink], sizing: FrameSizing, mtu: u32, smallest: Bytes) -> Span {
    const BTH: usize = 12;
    const RETH: usize = 16;
    const AETH: usize = 4;
    let size = |header: usize, payload: u64| {
        let size = sizing.size(header, payload as u32).max(smallest);
        size.as_u64() as u32
    };
    let mut train = Train::new(links);
    let mut left = flow.bytes.as_u64();
    let longest = flow.message.map_or(u64::MAX, Bytes::as_u64).max(1);
    loop {
        let message = left.min(longest);
        for run in message_packets(flow.operation, message, u64::from(mtu), size) {
            train.add(run);
        }
        left -= message;
        if left == 0 {
            break;
        }
    }
    let control = match flow.operation {
        Operation::Write | Operation::Send | Operation::Multicast(_) => size(BTH + AETH, 0),
        Operation::Read => size(BTH + RETH, 0),
    };
    // An acknowledgement comes back after the data, or a request goes out before it; it takes the same time.
    (train.last - Time::ZERO) + (way_back(links, control) - Time::ZERO)
}

/// A connection's set-up, its data in full segments without a pause, and the last acknowledgement; processors take no time.
fn tcp(flow: &Flow, links: &[&OutLink], sizes: SegmentSizes) -> Span {
    let one_way = |length: u32| {
        let mut train = Train::new(links);
        train.add((1, length));
        train.last - Time::ZERO
    };
    let way_back = |length: u32| way_back(links, length) - Time::ZERO;
    let bytes = flow.bytes.as_u64();
    let full = (sizes.around + sizes.payload) as u32;
    let rest = bytes % sizes.payload;
    let mut train = Train::new(links);
    train.add((bytes / sizes.payload, full));
    if rest > 0 {
        let length = (sizes.around + rest).max(SMALLEST_FRAME.as_u64());
        train.add((1, length as u32));
    }
    // For a read, the one who asks opens the connection; the data needs no request, and waits for the acknowledgement.
    one_way(sizes.syn)
        + way_back(sizes.syn)
        + (train.last - Time::ZERO)
        + way_back(sizes.acknowledgement)
}

/// The packets of one message that carry its data.
fn message_packets(
    operation: Operation,
    message: u64,
    mtu: u64,
    size: impl Fn(usize, u64) -> u32,
) -> [Run; 3] {
    // Beside the BTH, a write's first packet has a RETH, and the first and the last of a read's have an AETH.
    let (first, last) = match operation {
        Operation::Write => (12 + 16, 12),
        Operation::Send | Operation::Multicast(_) => (12, 12),
        Operation::Read => (12 + 4, 12 + 4),
    };
    let packets = message.div_ceil(mtu).max(1);
    if packets == 1 {
        return [(1, size(first, message)), (0, 0), (0, 0)];
    }
    let tail = message - (packets - 1) * mtu;
    [
        (1, size(first, mtu)),
        (packets - 2, size(12, mtu)),
        (1, size(last, tail)),
    ]
}

/// Packets that follow each other over the links of a path with nothing in their way but themselves.
struct Train<'n> {
    links: &'n [&'n OutLink],
    /// When each link is free again.
    free: Vec<Time>,
    /// When the last packet is handled at the end of the path.
    last: Time,
}

impl<'n> Train<'n> {
    fn new(links: &'n [&'n OutLink]) -> Self {
        Self {
            links,
            free: vec![Time::ZERO; links.len()],
            last: Time::ZERO,
        }
    }

    /// Sends a run of packets. Once as many have passed as there are links, each further one comes out one slowest link's
    /// time later, so the rest of a long run is added at once.
    fn add(&mut self, (count, length): Run) {
        let one_by_one = count.min(2 * self.links.len() as u64 + 2);
        for _ in 0..one_by_one {
            let mut arrives = Time::ZERO;
            for (link, free) in self.links.iter().zip(&mut self.free) {
                let start = arrives.max(*free);
                let busy = link.occupies(length);
                *free = start + busy;
                arrives = link.arrival(start, busy, length);
            }
            self.last = arrives;
        }
        let rest = count - one_by_one;
        let mut slowest = Span::ZERO;
        for (link, free) in self.links.iter().zip(&mut self.free) {
            slowest = slowest.max(link.occupies(length));
            *free += slowest * rest;
        }
        self.last += slowest * rest;
    }
}

/// When one packet is handled at the start of the path that left from its end at time zero.
fn way_back(links: &[&OutLink], length: u32) -> Time {
    let mut time = Time::ZERO;
    for (index, link) in links.iter().enumerate().rev() {
        // Latency and forwarding are the receiving switch's: in this direction, of the switch that the link before leads to.
        let switch = index.checked_sub(1).map(|before| links[before]);
        let seen = switch
            .and_then(|before| before.cut_through)
            .unwrap_or(length);
        let latency = switch.map_or(Span::ZERO, |before| {
            before.packet_delay - before.pause_delay
        });
        time = time + link.occupies(seen.min(length)) + link.pause_delay + latency;
    }
    time
}

/// As HPCC's code has it, for its payloads of 1000 B and headers of 48 B.
fn hpcc(flow: &Flow, links: &[&OutLink]) -> Span {
    let hop = |link: &&OutLink| Hop {
        rate: link.rate,
        delay: link.pause_delay,
        latency: Span::ZERO,
    };
    let hops: Vec<Hop> = links.iter().map(hop).collect();
    let message = Message {
        bytes: flow.bytes,
        payload: Bytes::new(1000),
        overhead: Bytes::new(48),
    };
    hpcc_standalone(&hops, message)
}
