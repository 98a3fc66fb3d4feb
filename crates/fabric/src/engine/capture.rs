//! Packets as the bytes that a wire would carry: for captures, and for checking the codec on every packet.
//!
//! A simulated packet has no payload and no addresses; both are made up here, the payload of zeros and the addresses from
//! the node ids (MAC 02:00:…, IPv4 10.0.0.1 + id, or HPCC's 11.x addresses in its timing). On InfiniBand the identifiers are
//! those of the subnet manager.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use softfabric_units::{ClassMask, Gid, MacAddress, Time};
use softfabric_wire::ethernet::{PfcFrame, Quanta};
use softfabric_wire::infiniband::{
    FlowControl, FlowControlOperation, LinkPacket, LinkRoute, ServiceLevel, VirtualLane,
};
use softfabric_wire::ip::{
    Dscp, Ecn, FlowLabel, Fragment, IpProtocol, Ipv4Header, Ipv6Header, TrafficClass,
};
use softfabric_wire::rdma::{Grh, RdmaPacket, TransportHeader};
use softfabric_wire::tcp::TcpPacket;
use softfabric_wire::{Body, Data, Frame as WireFrame, RoceFrame, RoceNetwork};

use super::frame::{CreditFrame, Flags, Frame, PauseFrame, PauseRequest};
use super::infiniband::Tables;
use super::routing::hpcc_ip;
use super::tcp::unpack;
use super::world::World;
use crate::plan::{Addressing, GroupId, NodeId, NodeKind, Timing};
use crate::results::CapturedFrame;
use crate::subnet::port_guid;

/// How many bytes of a frame a capture keeps.
const SNAP_LENGTH: usize = 256;

/// What a captured port has seen.
#[derive(Debug)]
pub(crate) struct Tap {
    node: NodeId,
    pub(crate) frames: Vec<CapturedFrame>,
    buffer: Vec<u8>,
}

impl Tap {
    pub(crate) fn new(node: NodeId) -> Self {
        Self {
            node,
            frames: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Keeps a packet that leaves by the port, or has come in.
    pub(crate) fn packet(&mut self, time: Time, sent: bool, frame: &Frame, world: &World) {
        self.buffer.clear();
        write_packet(frame, world, &mut self.buffer);
        self.keep(time, sent);
    }

    /// Keeps a pause frame that leaves by the port, or has come in.
    pub(crate) fn pause(&mut self, time: Time, sent: bool, frame: &PauseFrame) {
        self.buffer.clear();
        let quanta = match frame.request {
            PauseRequest::Resume => Quanta::RESUME,
            PauseRequest::Quanta(quanta) => Quanta(quanta),
            PauseRequest::UntilResume => Quanta::MAX,
        };
        let mut pfc = PfcFrame {
            enabled: ClassMask::of(frame.class),
            quanta: Default::default(),
        };
        pfc.quanta[frame.class.index()] = quanta;
        // The sender of a received pause frame is the other end of the link; its address is of no account to PFC.
        let source = if sent {
            mac(self.node.0)
        } else {
            MacAddress([0x02, 0, 0, 0xff, 0xff, 0xff])
        };
        WireFrame::pfc(source, pfc).encode(&mut self.buffer);
        self.keep(time, sent);
    }

    /// Keeps a flow-control packet of InfiniBand that leaves by the port, or has come in.
    pub(crate) fn credit(&mut self, time: Time, sent: bool, frame: &CreditFrame) {
        self.buffer.clear();
        let packet = FlowControl {
            operation: FlowControlOperation::Normal,
            lane: lane(frame.lane),
            total_sent: frame.total_sent,
            limit: frame.limit,
        };
        self.buffer.extend(packet.encode());
        self.keep(time, sent);
    }

    fn keep(&mut self, time: Time, sent: bool) {
        let length = self.buffer.len() as u32;
        let bytes = self.buffer[..self.buffer.len().min(SNAP_LENGTH)].to_vec();
        self.frames.push(CapturedFrame {
            time,
            sent,
            bytes,
            length,
        });
    }
}

/// Encodes a packet as the wire would carry it, decodes that, and compares: in words, what differs.
pub(crate) fn check_codec(frame: &Frame, world: &World) -> Option<String> {
    let mut bytes = Vec::new();
    write_packet(frame, world, &mut bytes);
    if speaks_tcp(frame, world) {
        return check_tcp(&bytes, frame, world).map(|problem| format!("a TCP segment {problem}"));
    }
    let header = match TransportHeader::decode(&frame.header) {
        Ok((header, _)) => header,
        Err(error) => return Some(format!("a header does not decode: {error}")),
    };
    let problem = if world.tables.is_some() {
        check_infiniband(&bytes, frame, header)
    } else {
        check_ethernet(&bytes, frame, header)
    };
    problem.map(|problem| format!("{:?} {problem}", header.bth.opcode))
}

fn check_ethernet(bytes: &[u8], frame: &Frame, sent: TransportHeader) -> Option<String> {
    let decoded = match WireFrame::decode(bytes) {
        Ok(decoded) => decoded,
        Err(error) => return Some(format!("does not decode: {error}")),
    };
    let Body::Roce(packet) = &decoded.body else {
        return Some("is not RoCE any more".to_owned());
    };
    if !packet.icrc_is_right() {
        return Some("has a wrong ICRC".to_owned());
    }
    let mut again = Vec::new();
    decoded.encode(&mut again);
    check_packet(&packet.rdma, frame, sent).or_else(|| differs(&again, bytes))
}

fn check_infiniband(bytes: &[u8], frame: &Frame, sent: TransportHeader) -> Option<String> {
    let packet = match LinkPacket::decode(bytes) {
        Ok(packet) => packet,
        Err(error) => return Some(format!("does not decode: {error}")),
    };
    if !packet.icrc_is_right() || !packet.vcrc_is_right() {
        return Some("has a wrong CRC".to_owned());
    }
    if usize::from(frame.length) != packet.length() {
        return Some(format!(
            "of {} B became {} B",
            frame.length,
            packet.length()
        ));
    }
    let mut again = vec![0; packet.length()];
    packet.encode(&mut again);
    check_packet(&packet.rdma, frame, sent).or_else(|| differs(&again, bytes))
}

fn check_packet(
    packet: &RdmaPacket<'_>,
    frame: &Frame,
    mut sent: TransportHeader,
) -> Option<String> {
    sent.bth.pad = packet.header.bth.pad;
    if packet.header != sent {
        return Some(format!("{sent:?} became {:?}", packet.header));
    }
    let (before, after) = (frame.payload, packet.payload.len());
    (usize::from(before) != after).then(|| format!("with {before} B came with {after} B"))
}

fn differs(again: &[u8], bytes: &[u8]) -> Option<String> {
    (again != bytes).then(|| "is not encoded to the same bytes again".to_owned())
}

/// Whether a frame is TCP's: both ends of a flow speak the same.
fn speaks_tcp(frame: &Frame, world: &World) -> bool {
    let source = world.plan.flows[frame.flow as usize].source;
    match world.plan.network.nodes[source.index()].kind {
        NodeKind::Host { profile, .. } => world.plan.host_profiles[profile as usize].tcp.is_some(),
        NodeKind::Switch { .. } => false,
    }
}

/// The addresses of a frame's sender and receiver.
fn addresses(frame: &Frame, world: &World) -> (NodeId, NodeId) {
    let flow = &world.plan.flows[frame.flow as usize];
    if frame.flags.has(Flags::REVERSE) {
        (flow.destination, flow.source)
    } else {
        (flow.source, flow.destination)
    }
}

fn traffic_class(frame: &Frame) -> TrafficClass {
    TrafficClass {
        dscp: Dscp::checked(frame.mark).unwrap_or_default(),
        ecn: match (
            frame.flags.has(Flags::MARKED),
            frame.flags.has(Flags::ECN_CAPABLE),
        ) {
            (true, _) => Ecn::CongestionExperienced,
            (false, true) => Ecn::Capable0,
            (false, false) => Ecn::NotCapable,
        },
    }
}

/// The segment that a frame stands for, with its checksum, and the addresses that it goes between.
fn segment(frame: &Frame, world: &World) -> Option<(TcpPacket<'static>, IpAddr, IpAddr)> {
    let flow = &world.plan.flows[frame.flow as usize];
    let header = unpack(&frame.header, flow, frame.flags.has(Flags::REVERSE))?;
    let (source, destination) = addresses(frame, world);
    let addressing = addressing(source, world);
    let ip = |node| gid(node, addressing, world).to_ip();
    let (source, destination) = (ip(source), ip(destination));
    let payload = Data::Zeros(usize::from(frame.payload));
    let packet = TcpPacket { header, payload }.with_checksum(source, destination);
    Some((packet, source, destination))
}

fn write_segment(frame: &Frame, world: &World, out: &mut Vec<u8>) {
    let Some((packet, source, destination)) = segment(frame, world) else {
        return;
    };
    let mut bytes = vec![0; packet.length()];
    packet.encode(&mut bytes);
    let payload = Data::Bytes(&bytes);
    let traffic_class = traffic_class(frame);
    let body = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Body::Ipv4 {
            header: Ipv4Header {
                traffic_class,
                identification: 0,
                dont_fragment: true,
                fragment: Fragment::WHOLE,
                time_to_live: 64,
                source,
                destination,
            },
            protocol: IpProtocol::TCP,
            payload,
        },
        (IpAddr::V6(source), IpAddr::V6(destination)) => Body::Ipv6 {
            header: Ipv6Header {
                traffic_class,
                flow_label: FlowLabel::default(),
                hop_limit: 64,
                source,
                destination,
            },
            next_header: IpProtocol::TCP,
            payload,
        },
        _ => return,
    };
    let (from, to) = addresses(frame, world);
    WireFrame::new(mac(to.0), mac(from.0), None, body).encode(out);
}

fn check_tcp(bytes: &[u8], frame: &Frame, world: &World) -> Option<String> {
    let Some((sent, source, destination)) = segment(frame, world) else {
        return Some("has a header that does not decode".to_owned());
    };
    let decoded = match WireFrame::decode(bytes) {
        Ok(decoded) => decoded,
        Err(error) => return Some(format!("does not decode: {error}")),
    };
    let (Body::Ipv4 { payload, .. } | Body::Ipv6 { payload, .. }) = &decoded.body else {
        return Some("is not IP any more".to_owned());
    };
    let Data::Bytes(payload) = payload else {
        return Some("has no bytes".to_owned());
    };
    let found = match TcpPacket::decode(payload) {
        Ok(found) => found,
        Err(error) => return Some(format!("does not decode: {error}")),
    };
    if !found.checksum_is_right(source, destination) {
        return Some("has a wrong checksum".to_owned());
    }
    if found != sent {
        return Some(format!("{sent:?} became {found:?}"));
    }
    // Buffers count the FCS, which is no part of the bytes here.
    if bytes.len() + 4 != usize::from(frame.length) {
        return Some(format!(
            "of {} B became {} B",
            frame.length,
            bytes.len() + 4
        ));
    }
    let mut again = Vec::new();
    decoded.encode(&mut again);
    differs(&again, bytes)
}

fn write_packet(frame: &Frame, world: &World, out: &mut Vec<u8>) {
    if speaks_tcp(frame, world) {
        return write_segment(frame, world, out);
    }
    let Ok((header, _)) = TransportHeader::decode(&frame.header) else {
        return;
    };
    if let Some(tables) = &world.tables {
        return write_link_packet(frame, header, tables, world, out);
    }
    let flow = &world.plan.flows[frame.flow as usize];
    let (source, destination) = addresses(frame, world);
    let class = traffic_class(frame);
    let addressing = addressing(source, world);
    let (from, to) = (
        gid(source, addressing, world),
        gid(destination, addressing, world),
    );
    let network = match addressing {
        Addressing::RoceV1 => RoceNetwork::v1(from, to, class),
        Addressing::RoceV2Ipv4 | Addressing::RoceV2Ipv6 => {
            RoceNetwork::v2(from, to, flow.udp_source_port, class)
        }
    };
    RoceFrame {
        destination: mac(destination.0),
        source: mac(source.0),
        tag: None,
        network,
        header,
        payload: Data::Zeros(usize::from(frame.payload)),
    }
    .encode(out);
}

fn write_link_packet(
    frame: &Frame,
    header: TransportHeader,
    tables: &Tables,
    world: &World,
    out: &mut Vec<u8>,
) {
    let address = &world.flows[frame.flow as usize];
    let source = if frame.flags.has(Flags::REVERSE) {
        address.destination
    } else {
        address.source
    };
    let is_multicast = frame.flags.has(Flags::MULTICAST);
    let group = is_multicast.then_some(GroupId(frame.destination));
    let route = LinkRoute {
        lane: lane(frame.lane()),
        level: ServiceLevel::checked(frame.service_level()).unwrap_or_default(),
        source: tables.lid(source),
        destination: group.map_or_else(|| tables.lid(frame.destination), GroupId::lid),
    };
    let grh = group.map(|group| Grh {
        traffic_class: TrafficClass::default(),
        flow_label: FlowLabel::default(),
        hop_limit: 0,
        source: port_gid(world.plan.flows[frame.flow as usize].source),
        destination: group.gid(),
    });
    let payload = Data::Zeros(usize::from(frame.payload));
    let packet = LinkPacket::new(route, grh, header, payload);
    let start = out.len();
    out.resize(start + packet.length(), 0);
    packet.encode(&mut out[start..]);
}

/// The link-local address of a host's first port, by its GUID.
fn port_gid(host: NodeId) -> Gid {
    let mut octets = [0; 16];
    octets[..2].copy_from_slice(&[0xfe, 0x80]);
    octets[8..].copy_from_slice(&port_guid(host).0.to_be_bytes());
    Gid(octets)
}

fn lane(number: u8) -> VirtualLane {
    VirtualLane::checked(number).unwrap_or_default()
}

fn addressing(host: NodeId, world: &World) -> Addressing {
    match world.plan.network.nodes[host.index()].kind {
        NodeKind::Host { profile, .. } => world.plan.host_profiles[profile as usize].addressing,
        NodeKind::Switch { .. } => Addressing::RoceV2Ipv4,
    }
}

fn mac(node: u32) -> MacAddress {
    let [_, a, b, c] = node.to_be_bytes();
    MacAddress([0x02, 0, 0, a, b, c])
}

fn ipv4(node: NodeId, world: &World) -> Ipv4Addr {
    Ipv4Addr::from(match world.plan.timing {
        Timing::Exact => 0x0a00_0001 + node.0,
        Timing::Hpcc => hpcc_ip(node.0),
    })
}

fn gid(node: NodeId, addressing: Addressing, world: &World) -> Gid {
    let v4 = u32::from(ipv4(node, world));
    match addressing {
        Addressing::RoceV2Ipv6 => {
            let mut octets = [0; 16];
            octets[..2].copy_from_slice(&[0xfd, 0x00]);
            octets[12..].copy_from_slice(&v4.to_be_bytes());
            Gid::from_ip(IpAddr::V6(Ipv6Addr::from(octets)))
        }
        Addressing::RoceV2Ipv4 | Addressing::RoceV1 => Gid::from(Ipv4Addr::from(v4)),
    }
}
