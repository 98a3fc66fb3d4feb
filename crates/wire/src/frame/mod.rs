//! One Ethernet frame, decoded into its layers, and back to the very bytes.
//!
//! ```text
//! Ethernet, 802.1Q ─┬─ IPv4 or IPv6 ─── UDP 4791 ─── RDMA packet      RoCEv2
//!                   ├─ GRH ───────────────────────── RDMA packet      RoCEv1
//!                   ├─ PAUSE, PFC
//!                   └─ anything else, as bytes
//! ```
//!
//! `Frame::decode(bytes)` gives a frame that encodes to `bytes` again, or an error. The FCS is not part of a frame here.

mod roce;

pub use roce::{RoceFrame, RoceNetwork, RocePacket, RoceUdp};

use softfabric_units::MacAddress;

use crate::bytes::{split, take};
use crate::data::Data;
use crate::error::DecodeError;
use crate::ethernet::{
    CONTROL_ADDRESS, EtherType, EthernetHeader, PauseFrame, PfcFrame, VlanTag, opcodes,
};
use crate::ip::{Fragment, IpProtocol, Ipv4Header, Ipv6Header};
use crate::udp::{ROCE_PORT, UdpHeader};

/// An Ethernet frame without FCS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Where it goes.
    pub destination: MacAddress,
    /// Where it comes from.
    pub source: MacAddress,
    /// Its 802.1Q tag, where it has one.
    pub tag: Option<VlanTag>,
    /// What it carries.
    pub body: Body<'a>,
    /// What follows the body: the padding of a short frame.
    pub padding: Data<'a>,
}

/// What a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body<'a> {
    /// An RDMA packet.
    Roce(RocePacket<'a>),
    /// A PAUSE.
    Pause(PauseFrame),
    /// A priority-based PAUSE.
    Pfc(PfcFrame),
    /// An IPv4 packet that is not RoCEv2, or a fragment.
    Ipv4 {
        /// The header.
        header: Ipv4Header,
        /// What follows.
        protocol: IpProtocol,
        /// All that follows the header.
        payload: Data<'a>,
    },
    /// An IPv6 packet that is not RoCEv2.
    Ipv6 {
        /// The header.
        header: Ipv6Header,
        /// What follows.
        next_header: IpProtocol,
        /// All that follows the header.
        payload: Data<'a>,
    },
    /// Something else.
    Other {
        /// What, as far as the frame says.
        ether_type: EtherType,
        /// All that follows the EtherType.
        bytes: Data<'a>,
    },
}

impl<'a> Frame<'a> {
    /// A frame with the padding that Ethernet's minimum asks for.
    pub fn new(
        destination: MacAddress,
        source: MacAddress,
        tag: Option<VlanTag>,
        body: Body<'a>,
    ) -> Self {
        let mut frame = Self {
            destination,
            source,
            tag,
            body,
            padding: Data::EMPTY,
        };
        frame.padding = Data::Zeros(EthernetHeader::MIN_FRAME.saturating_sub(frame.length()));
        frame
    }

    /// A PAUSE frame from `source`.
    pub fn pause(source: MacAddress, pause: PauseFrame) -> Self {
        Self::new(CONTROL_ADDRESS, source, None, Body::Pause(pause))
    }

    /// A PFC frame from `source`.
    pub fn pfc(source: MacAddress, pfc: PfcFrame) -> Self {
        Self::new(CONTROL_ADDRESS, source, None, Body::Pfc(pfc))
    }

    fn ethernet(&self) -> EthernetHeader {
        EthernetHeader {
            destination: self.destination,
            source: self.source,
            tag: self.tag,
            ether_type: self.body.ether_type(),
        }
    }

    /// The frame's length in bytes, without FCS.
    pub fn length(&self) -> usize {
        self.ethernet().length() + self.body.length() + self.padding.len()
    }

    /// The frame's bytes, without FCS.
    ///
    /// # Panics
    /// If an IP packet or a GRH's would be longer than 65,535 bytes; so in [`Frame::encode`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Appends the frame's bytes to `out` and returns how many they are.
    pub fn encode(&self, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        let length = self.length();
        out.resize(start + length, 0);
        let bytes = &mut out[start..];
        let at = self.ethernet().encode(bytes);
        let at = at + self.body.encode(&mut bytes[at..]);
        self.padding.put(bytes, at)
    }

    /// Reads the frame that fills `bytes`, without FCS.
    ///
    /// # Errors
    /// If a layer that we know does not decode. What we do not know becomes [`Body::Other`], [`Body::Ipv4`] or
    /// [`Body::Ipv6`]. A wrong ICRC is no error: see [`RocePacket::icrc_is_right`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (ethernet, at) = EthernetHeader::decode(bytes)?;
        let (_, rest) = split(bytes, 0, at, "Ethernet header")?;
        let (body, length) = Body::decode(ethernet.ether_type, rest).map_err(|e| e.at(at))?;
        let (_, padding) = split(rest, 0, length, "Ethernet body")?;
        Ok(Self {
            destination: ethernet.destination,
            source: ethernet.source,
            tag: ethernet.tag,
            body,
            padding: Data::Bytes(padding),
        })
    }
}

impl<'a> Body<'a> {
    /// How the frame announces the body.
    pub const fn ether_type(&self) -> EtherType {
        match self {
            Self::Roce(packet) => packet.network.ether_type(),
            Self::Pause(_) | Self::Pfc(_) => EtherType::MAC_CONTROL,
            Self::Ipv4 { .. } => EtherType::IPV4,
            Self::Ipv6 { .. } => EtherType::IPV6,
            Self::Other { ether_type, .. } => *ether_type,
        }
    }

    /// Its length in bytes, without padding.
    pub const fn length(&self) -> usize {
        match self {
            Self::Roce(packet) => packet.length(),
            Self::Pause(_) => PauseFrame::LENGTH,
            Self::Pfc(_) => PfcFrame::LENGTH,
            Self::Ipv4 { payload, .. } => Ipv4Header::LENGTH + payload.len(),
            Self::Ipv6 { payload, .. } => Ipv6Header::LENGTH + payload.len(),
            Self::Other { bytes, .. } => bytes.len(),
        }
    }

    fn encode(&self, bytes: &mut [u8]) -> usize {
        match self {
            Self::Roce(packet) => packet.encode(bytes),
            Self::Pause(pause) => pause.encode(bytes),
            Self::Pfc(pfc) => pfc.encode(bytes),
            Self::Ipv4 {
                header,
                protocol,
                payload,
            } => {
                let at = header.encode(*protocol, payload.len(), bytes);
                payload.put(bytes, at)
            }
            Self::Ipv6 {
                header,
                next_header,
                payload,
            } => {
                let at = header.encode(*next_header, payload.len(), bytes);
                payload.put(bytes, at)
            }
            Self::Other { bytes: data, .. } => data.put(bytes, 0),
        }
    }

    /// Reads a body at the start of `bytes`, and how many bytes it takes; the rest is padding.
    fn decode(ether_type: EtherType, bytes: &'a [u8]) -> Result<(Self, usize), DecodeError> {
        let body = match ether_type {
            EtherType::IPV4 => Self::decode_ipv4(bytes)?,
            EtherType::IPV6 => Self::decode_ipv6(bytes)?,
            EtherType::ROCE_V1 => Self::Roce(RocePacket::decode_v1(bytes)?),
            EtherType::MAC_CONTROL => {
                match take::<[u8; 2]>(bytes, 0, "MAC control opcode").map(u16::from_be_bytes)? {
                    opcodes::PAUSE => Self::Pause(PauseFrame::decode(bytes)?),
                    opcodes::PFC => Self::Pfc(PfcFrame::decode(bytes)?),
                    _ => Self::other(ether_type, bytes),
                }
            }
            _ => Self::other(ether_type, bytes),
        };
        let length = body.length();
        Ok((body, length))
    }

    fn other(ether_type: EtherType, bytes: &'a [u8]) -> Self {
        Self::Other {
            ether_type,
            bytes: Data::Bytes(bytes),
        }
    }

    fn decode_ipv4(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (header, protocol, length) = Ipv4Header::decode(bytes)?;
        let at = Ipv4Header::LENGTH;
        let (payload, _) = split(bytes, at, length, "IPv4 payload")?;
        if header.fragment == Fragment::WHOLE
            && let Some((udp, rdma)) = roce_datagram(protocol, payload).map_err(|e| e.at(at))?
        {
            let network = RoceNetwork::Ipv4 { ip: header, udp };
            let packet = RocePacket::decode(network, rdma);
            return packet
                .map(Self::Roce)
                .map_err(|e| e.at(at + UdpHeader::LENGTH));
        }
        Ok(Self::Ipv4 {
            header,
            protocol,
            payload: Data::Bytes(payload),
        })
    }

    fn decode_ipv6(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (header, next_header, length) = Ipv6Header::decode(bytes)?;
        let at = Ipv6Header::LENGTH;
        let (payload, _) = split(bytes, at, length, "IPv6 payload")?;
        if let Some((udp, rdma)) = roce_datagram(next_header, payload).map_err(|e| e.at(at))? {
            let network = RoceNetwork::Ipv6 { ip: header, udp };
            let packet = RocePacket::decode(network, rdma);
            return packet
                .map(Self::Roce)
                .map_err(|e| e.at(at + UdpHeader::LENGTH));
        }
        Ok(Self::Ipv6 {
            header,
            next_header,
            payload: Data::Bytes(payload),
        })
    }
}

/// The UDP fields and the RDMA packet of an IP payload, if it is a datagram to RoCE's port.
fn roce_datagram(
    protocol: IpProtocol,
    payload: &[u8],
) -> Result<Option<(RoceUdp, &[u8])>, DecodeError> {
    if protocol != IpProtocol::UDP {
        return Ok(None);
    }
    let (udp, length) = match UdpHeader::decode(payload) {
        Ok(found) if found.0.destination_port == ROCE_PORT => found,
        // Some other program's datagram is none of our business, be it broken or not.
        _ => return Ok(None),
    };
    let (_, rdma) = split(payload, 0, UdpHeader::LENGTH, "UDP header")?;
    if length != rdma.len() {
        return Err(DecodeError::Value {
            what: "UDP length",
            offset: 4,
            found: (length + UdpHeader::LENGTH) as u64,
            needed: "the length of the IP payload",
        });
    }
    let udp = RoceUdp {
        source_port: udp.source_port,
        checksum: udp.checksum,
    };
    Ok(Some((udp, rdma)))
}

#[cfg(test)]
mod tests;
