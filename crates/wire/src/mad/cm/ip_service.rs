//! IP ports as services, and the addresses in a request's private data (IBTA annex A11, "RDMA IP CM service").
//!
//! ```text
//!   service id    00 00 00 00 01 | protocol (1) | port (2)
//!
//!   private data   0 | major(4) minor(4) | IP version(4) 0(4) | source port (2)
//!                  4 | source address (16; IPv4 in the last 4)
//!                 20 | destination address (16)
//!                 36 | the program's own
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::ServiceId;
use crate::bytes::{put, take};
use crate::error::DecodeError;
use crate::ip::IpProtocol;

/// The upper five bytes of the service identifiers of IP ports.
const PREFIX: u64 = 0x01;
const PREFIX_SHIFT: u32 = 24;

/// A port of an IP protocol, as a service.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IpService {
    /// TCP for connections and UDP for datagrams; the kernel's own port space is 0x3f.
    pub protocol: IpProtocol,
    /// The port.
    pub port: u16,
}

impl IpService {
    /// The service identifier.
    pub const fn id(self) -> ServiceId {
        ServiceId(PREFIX << PREFIX_SHIFT | (self.protocol.0 as u64) << 16 | self.port as u64)
    }

    /// The port that a service identifier stands for, if it stands for one.
    pub const fn from_id(id: ServiceId) -> Option<Self> {
        if id.0 >> PREFIX_SHIFT != PREFIX {
            return None;
        }
        let [_, _, _, _, _, protocol, high, low] = id.0.to_be_bytes();
        Some(Self {
            protocol: IpProtocol(protocol),
            port: u16::from_be_bytes([high, low]),
        })
    }
}

/// The addresses of a request for an IP port. Both are of one family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpHeader {
    source_port: u16,
    source: IpAddr,
    destination: IpAddr,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawHeader {
    version: u8,
    ip_version: u8,
    source_port: U16,
    source: [u8; 16],
    destination: [u8; 16],
}

impl IpHeader {
    /// Its length in bytes.
    pub const LENGTH: usize = 36;

    /// A header; `None` if one address is IPv4 and the other IPv6.
    pub fn new(source: IpAddr, source_port: u16, destination: IpAddr) -> Option<Self> {
        (source.is_ipv4() == destination.is_ipv4()).then_some(Self {
            source_port,
            source,
            destination,
        })
    }

    /// The address that asks.
    pub const fn source(&self) -> IpAddr {
        self.source
    }

    /// Its port.
    pub const fn source_port(&self) -> u16 {
        self.source_port
    }

    /// The address that is asked; its port is in the service identifier.
    pub const fn destination(&self) -> IpAddr {
        self.destination
    }

    /// Writes the header to the start of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`IpHeader::LENGTH`].
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        let version = if self.source.is_ipv4() { 4 } else { 6 };
        let raw = RawHeader {
            version: 0,
            ip_version: version << 4,
            source_port: U16::new(self.source_port),
            source: octets(self.source),
            destination: octets(self.destination),
        };
        put(bytes, 0, &raw)
    }

    /// Reads the header at the start of a request's private data.
    ///
    /// # Errors
    /// If the bytes end too early, the major version is not 0, or the IP version is neither 4 nor 6.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let raw: RawHeader = take(bytes, 0, "IP header of a request")?;
        let value = |what, offset, found: u8, needed| DecodeError::Value {
            what,
            offset,
            found: u64::from(found),
            needed,
        };
        if raw.version >> 4 != 0 {
            return Err(value("major version of IP CM", 0, raw.version >> 4, "0"));
        }
        let address: fn([u8; 16]) -> IpAddr = match raw.ip_version >> 4 {
            4 => |[.., a, b, c, d]: [u8; 16]| IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            6 => |octets| IpAddr::V6(Ipv6Addr::from(octets)),
            other => return Err(value("IP version of IP CM", 1, other, "4 or 6")),
        };
        Ok(Self {
            source_port: raw.source_port.get(),
            source: address(raw.source),
            destination: address(raw.destination),
        })
    }
}

/// IPv4 in the last four bytes, zeros before.
fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()).to_be_bytes(),
        IpAddr::V6(v6) => v6.octets(),
    }
}
