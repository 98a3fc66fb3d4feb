//! RDMA packets in Ethernet frames: RoCEv2 over IPv4 and IPv6, and RoCEv1 with a GRH.

use std::net::{IpAddr, Ipv6Addr};

use softfabric_units::{Gid, MacAddress};

use super::{Body, Frame};
use crate::bytes::split;
use crate::data::Data;
use crate::error::DecodeError;
use crate::ethernet::{EtherType, VlanTag};
use crate::ip::{Ecn, FlowLabel, Fragment, IpProtocol, Ipv4Header, Ipv6Header, TrafficClass};
use crate::rdma::{Grh, Icrc, RdmaPacket, TransportHeader};
use crate::udp::{ROCE_PORT, UdpHeader};

/// How many routers may forward what we send.
const HOP_LIMIT: u8 = 64;

/// The headers between Ethernet and the BTH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoceNetwork {
    /// RoCEv1: stays within one Ethernet segment (IBTA annex A16).
    Grh(Grh),
    /// RoCEv2 over IPv4 (IBTA annex A17).
    Ipv4 {
        /// The IP header, of a whole packet.
        ip: Ipv4Header,
        /// The UDP header.
        udp: RoceUdp,
    },
    /// RoCEv2 over IPv6.
    Ipv6 {
        /// The IP header.
        ip: Ipv6Header,
        /// The UDP header.
        udp: RoceUdp,
    },
}

/// What is free in the UDP header of RoCEv2: the destination is always [`ROCE_PORT`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RoceUdp {
    /// The entropy that multipath routing hashes.
    pub source_port: u16,
    /// The checksum as it stands; 0 says that there is none, which is what we send.
    pub checksum: u16,
}

impl RoceUdp {
    /// A header from `source_port`, without checksum.
    pub const fn new(source_port: u16) -> Self {
        Self {
            source_port,
            checksum: 0,
        }
    }

    const fn header(self) -> UdpHeader {
        UdpHeader {
            source_port: self.source_port,
            destination_port: ROCE_PORT,
            checksum: self.checksum,
        }
    }
}

impl RoceNetwork {
    /// RoCEv2 from `source` to `destination`: over IPv4 where both GIDs are IPv4 addresses, else over IPv6.
    pub fn v2(source: Gid, destination: Gid, source_port: u16, class: TrafficClass) -> Self {
        let udp = RoceUdp::new(source_port);
        match (source.to_ip(), destination.to_ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Self::Ipv4 {
                ip: Ipv4Header {
                    traffic_class: class,
                    identification: 0,
                    dont_fragment: true,
                    fragment: Fragment::WHOLE,
                    time_to_live: HOP_LIMIT,
                    source,
                    destination,
                },
                udp,
            },
            _ => Self::Ipv6 {
                ip: Ipv6Header {
                    traffic_class: class,
                    flow_label: FlowLabel::NONE,
                    hop_limit: HOP_LIMIT,
                    source: Ipv6Addr::from(source.0),
                    destination: Ipv6Addr::from(destination.0),
                },
                udp,
            },
        }
    }

    /// RoCEv1 from `source` to `destination`.
    pub const fn v1(source: Gid, destination: Gid, class: TrafficClass) -> Self {
        Self::Grh(Grh {
            traffic_class: class,
            flow_label: FlowLabel::NONE,
            hop_limit: 1,
            source,
            destination,
        })
    }

    /// How the frame announces the network.
    pub const fn ether_type(&self) -> EtherType {
        match self {
            Self::Grh(_) => EtherType::ROCE_V1,
            Self::Ipv4 { .. } => EtherType::IPV4,
            Self::Ipv6 { .. } => EtherType::IPV6,
        }
    }

    /// The length of the headers in bytes.
    pub const fn length(&self) -> usize {
        match self {
            Self::Grh(_) => Grh::LENGTH,
            Self::Ipv4 { .. } => Ipv4Header::LENGTH + UdpHeader::LENGTH,
            Self::Ipv6 { .. } => Ipv6Header::LENGTH + UdpHeader::LENGTH,
        }
    }

    /// DSCP and ECN.
    pub const fn traffic_class(&self) -> TrafficClass {
        match self {
            Self::Grh(grh) => grh.traffic_class,
            Self::Ipv4 { ip, .. } => ip.traffic_class,
            Self::Ipv6 { ip, .. } => ip.traffic_class,
        }
    }

    /// The same headers with another ECN mark. The ICRC does not cover it.
    #[must_use]
    pub const fn with_ecn(mut self, ecn: Ecn) -> Self {
        match &mut self {
            Self::Grh(grh) => grh.traffic_class.ecn = ecn,
            Self::Ipv4 { ip, .. } => ip.traffic_class.ecn = ecn,
            Self::Ipv6 { ip, .. } => ip.traffic_class.ecn = ecn,
        }
        self
    }

    /// An ICRC over the headers, for `transport` bytes from BTH to ICRC.
    pub fn start_icrc(&self, transport: usize) -> Icrc {
        match self {
            Self::Grh(grh) => Icrc::over_grh(grh, transport),
            Self::Ipv4 { ip, udp } => Icrc::over_ipv4(ip, &udp.header(), transport),
            Self::Ipv6 { ip, udp } => Icrc::over_ipv6(ip, &udp.header(), transport),
        }
    }

    /// Writes the headers of a packet with `transport` bytes from BTH to ICRC, and returns their length.
    fn encode(&self, transport: usize, bytes: &mut [u8]) -> usize {
        let datagram = UdpHeader::LENGTH + transport;
        let (at, udp) = match self {
            Self::Grh(grh) => return grh.encode(IpProtocol::IBA_TRANSPORT, transport, bytes),
            Self::Ipv4 { ip, udp } => (ip.encode(IpProtocol::UDP, datagram, bytes), udp),
            Self::Ipv6 { ip, udp } => (ip.encode(IpProtocol::UDP, datagram, bytes), udp),
        };
        at + udp.header().encode(transport, &mut bytes[at..])
    }
}

/// An RDMA packet and the network headers before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RocePacket<'a> {
    /// The headers between Ethernet and BTH.
    pub network: RoceNetwork,
    /// From BTH to ICRC.
    pub rdma: RdmaPacket<'a>,
}

impl<'a> RocePacket<'a> {
    /// The length in bytes, from the network's first header to the ICRC.
    pub const fn length(&self) -> usize {
        self.network.length() + self.rdma.length()
    }

    /// The ICRC that the packet should have.
    pub fn computed_icrc(&self) -> u32 {
        let mut icrc = self.network.start_icrc(self.rdma.length());
        self.rdma.add_to(&mut icrc);
        icrc.finish()
    }

    /// Whether the packet has the ICRC that it should have.
    pub fn icrc_is_right(&self) -> bool {
        self.rdma.icrc == self.computed_icrc()
    }

    pub(super) fn encode(&self, bytes: &mut [u8]) -> usize {
        let at = self.network.encode(self.rdma.length(), bytes);
        at + self.rdma.encode(&mut bytes[at..])
    }

    pub(super) fn decode(network: RoceNetwork, rdma: &'a [u8]) -> Result<Self, DecodeError> {
        let rdma = RdmaPacket::decode(rdma)?;
        Ok(Self { network, rdma })
    }

    pub(super) fn decode_v1(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (grh, next_header, length) = Grh::decode(bytes)?;
        if next_header != IpProtocol::IBA_TRANSPORT {
            return Err(DecodeError::Value {
                what: "GRH next header",
                offset: 6,
                found: u64::from(next_header.0),
                needed: "0x1b (BTH)",
            });
        }
        let (rdma, _) = split(bytes, Grh::LENGTH, length, "GRH payload")?;
        Self::decode(RoceNetwork::Grh(grh), rdma).map_err(|e| e.at(Grh::LENGTH))
    }
}

/// All that is needed to write an RDMA packet as a frame: pad, lengths, checksums and ICRC follow from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoceFrame<'a> {
    /// Where the frame goes.
    pub destination: MacAddress,
    /// Where it comes from.
    pub source: MacAddress,
    /// Its 802.1Q tag, where it has one.
    pub tag: Option<VlanTag>,
    /// The headers between Ethernet and BTH.
    pub network: RoceNetwork,
    /// BTH and extension headers; the pad count is set from the payload's length.
    pub header: TransportHeader,
    /// The payload; zeros in the simulator.
    pub payload: Data<'a>,
}

impl<'a> RoceFrame<'a> {
    /// The frame, with its pad and ICRC.
    pub fn to_frame(&self) -> Frame<'a> {
        let mut packet = RocePacket {
            network: self.network,
            rdma: RdmaPacket::new(self.header, self.payload),
        };
        packet.rdma.icrc = packet.computed_icrc();
        Frame::new(self.destination, self.source, self.tag, Body::Roce(packet))
    }

    /// Appends the frame's bytes, without FCS, to `out` and returns how many they are.
    pub fn encode(&self, out: &mut Vec<u8>) -> usize {
        self.to_frame().encode(out)
    }
}
