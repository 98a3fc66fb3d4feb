//! How long a flow would take alone in the network.

use softfabric_transport::FrameSizing;
use softfabric_units::{Bytes, Span};

use super::link::OutLink;
use super::node::{Kind, Node};
use super::routing::NextHops;
use super::world::World;
use crate::plan::{Flow, Operation, Timing};

/// The links of a flow's first path, from its sender to its receiver.
fn path<'n>(flow: u32, world: &World, nodes: &'n [Node]) -> Option<Vec<&'n OutLink>> {
    let plan = &world.plan.flows[flow as usize];
    let destination = world.flows[flow as usize].destination;
    let mut node = plan.source.0;
    let mut port = 0;
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
            None => match world.routes.next_hops(node, destination) {
                NextHops::Access(port) => usize::from(port),
                NextHops::Ports(ports) => usize::from(*ports.first()?),
            },
        };
    }
    None
}

/// The completion time of a flow that has the network for itself: packets back to back at the slowest link, and the last
/// acknowledgement's way back. [`Span::ZERO`] where there is no path.
pub(crate) fn completion_time(flow: u32, world: &World, nodes: &[Node]) -> Span {
    let plan = &world.plan.flows[flow as usize];
    let Some(links) = path(flow, world, nodes) else {
        return Span::ZERO;
    };
    let Kind::Host(host) = &nodes[plan.source.index()].kind else {
        return Span::ZERO;
    };
    let settings = host.nics[0].settings();
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

fn exact(flow: &Flow, links: &[&OutLink], sizing: FrameSizing, mtu: u32, smallest: Bytes) -> Span {
    const BTH: usize = 12;
    const RETH: usize = 16;
    const AETH: usize = 4;
    let size =
        |header: usize, payload: u32| sizing.size(header, payload).max(smallest).as_u64() as u32;
    let mtu64 = u64::from(mtu);
    let message = flow
        .message
        .map_or(flow.bytes, |message| message.min(flow.bytes))
        .as_u64()
        .max(1);
    let packets_of = |bytes: u64| bytes.div_ceil(mtu64).max(1);
    let messages = flow.bytes.as_u64().div_ceil(message).max(1);
    let tail = flow.bytes.as_u64() - (messages - 1) * message;
    let packets = (messages - 1) * packets_of(message) + packets_of(tail);
    let last_payload = (tail - (packets_of(tail) - 1) * mtu64) as u32;
    // Headers of a message's first packet are longer by the RETH of a write, and an AETH opens each read response.
    let extra = match flow.operation {
        Operation::Write => RETH,
        Operation::Send => 0,
        Operation::Read => AETH,
    };
    let last = size(
        if packets_of(tail) == 1 {
            BTH + extra
        } else {
            BTH
        },
        last_payload,
    );
    let full = size(BTH, mtu);
    let first_extra = size(BTH + extra, mtu) - full;
    let mut bottleneck = Span::ZERO;
    for link in links {
        let whole = link.occupies(full) * (packets - 1)
            + (link.occupies(full + first_extra) - link.occupies(full))
                * (messages - u64::from(packets_of(tail) == 1));
        bottleneck = bottleneck.max(whole);
    }
    // The last packet follows the others through the slowest link, and is alone on every link before and after it.
    let forward: Span = links.iter().map(|link| reaches(link, last)).sum();
    let control = match flow.operation {
        Operation::Read => size(BTH + RETH, 0),
        _ => size(BTH + AETH, 0),
    };
    let back: Span = links
        .iter()
        .map(|link| link.occupies(control) + link.pause_delay)
        .sum();
    // Switch latency is part of the packets' delay on all links but the last, in both directions.
    let latency: Span = links
        .iter()
        .map(|link| link.packet_delay - link.pause_delay)
        .sum();
    bottleneck + forward + back + latency
}

/// From the first bit sent to the handling at the other end.
fn reaches(link: &OutLink, length: u32) -> Span {
    link.arrival(softfabric_units::Time::ZERO, link.occupies(length), length)
        - softfabric_units::Time::ZERO
}

/// As HPCC's code has it: 2 · delays + one payload's time on each link + all bytes, headers included, at the slowest.
fn hpcc(flow: &Flow, links: &[&OutLink]) -> Span {
    const PAYLOAD: u64 = 1000;
    const HEADERS: u64 = 48;
    let delays: Span = links.iter().map(|link| link.pause_delay).sum();
    let floor =
        |bytes: u64, link: &OutLink| Span::nanos(bytes * 8_000_000_000 / link.rate.as_bps());
    let hops: Span = links.iter().map(|link| floor(PAYLOAD, link)).sum();
    let bytes = flow.bytes.as_u64() + flow.bytes.as_u64().div_ceil(PAYLOAD) * HEADERS;
    let slowest = links
        .iter()
        .map(|link| floor(bytes, link))
        .max()
        .unwrap_or(Span::ZERO);
    delays * 2 + hops + slowest
}
