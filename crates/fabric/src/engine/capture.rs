//! Packets as the bytes that a wire would carry: for captures, and for checking the codec on every packet.
//!
//! A simulated packet has no payload and no addresses; both are made up here, the payload of zeros and the addresses from
//! the node ids (MAC 02:00:…, IPv4 10.0.0.1 + id, or HPCC's 11.x addresses in its timing).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use softfabric_units::{ClassMask, Gid, MacAddress, Time};
use softfabric_wire::ethernet::{PfcFrame, Quanta};
use softfabric_wire::ip::{Dscp, Ecn, TrafficClass};
use softfabric_wire::rdma::TransportHeader;
use softfabric_wire::{Body, Data, Frame as WireFrame, RoceFrame, RoceNetwork};

use super::frame::{Flags, Frame, PauseFrame, PauseRequest};
use super::routing::hpcc_ip;
use super::world::World;
use crate::plan::{Addressing, NodeId, NodeKind, Timing};
use crate::results::CapturedFrame;

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
    let header = match TransportHeader::decode(&frame.header) {
        Ok((header, _)) => header,
        Err(error) => return Some(format!("a header does not decode: {error}")),
    };
    let decoded = match WireFrame::decode(&bytes) {
        Ok(decoded) => decoded,
        Err(error) => return Some(format!("a frame does not decode: {error}")),
    };
    let Body::Roce(packet) = &decoded.body else {
        return Some("a frame is not RoCE any more".to_owned());
    };
    if !packet.icrc_is_right() {
        return Some(format!("{:?} has a wrong ICRC", header.bth.opcode));
    }
    let mut sent = header;
    sent.bth.pad = packet.rdma.header.bth.pad;
    if packet.rdma.header != sent {
        return Some(format!("{sent:?} became {:?}", packet.rdma.header));
    }
    if packet.rdma.payload.len() != usize::from(frame.payload) {
        return Some(format!(
            "a payload of {} B became {} B",
            frame.payload,
            packet.rdma.payload.len()
        ));
    }
    let mut again = Vec::new();
    decoded.encode(&mut again);
    (again != bytes).then(|| {
        format!(
            "{:?} is not encoded to the same bytes again",
            header.bth.opcode
        )
    })
}

fn write_packet(frame: &Frame, world: &World, out: &mut Vec<u8>) {
    let Ok((header, _)) = TransportHeader::decode(&frame.header) else {
        return;
    };
    let flow = &world.plan.flows[frame.flow as usize];
    let (source, destination) = if frame.flags.has(Flags::REVERSE) {
        (flow.destination, flow.source)
    } else {
        (flow.source, flow.destination)
    };
    let class = TrafficClass {
        dscp: Dscp::checked(frame.mark).unwrap_or_default(),
        ecn: match (
            frame.flags.has(Flags::MARKED),
            frame.flags.has(Flags::ECN_CAPABLE),
        ) {
            (true, _) => Ecn::CongestionExperienced,
            (false, true) => Ecn::Capable0,
            (false, false) => Ecn::NotCapable,
        },
    };
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

fn gid(node: NodeId, addressing: Addressing, world: &World) -> Gid {
    let v4 = match world.plan.timing {
        Timing::Exact => 0x0a00_0001 + node.0,
        Timing::Hpcc => hpcc_ip(node.0),
    };
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
