//! Subnet management packets: what a subnet manager and the agents of nodes say to each other (IBTA vol. 1, 14.2).
//!
//! ```text
//!    0 | version 1 | class 0x01 / 0x81 | class version 1 | method
//!    4 | D(1) status(15)    | hop pointer | hop count |            the last two only on directed routes
//!    8 | transaction (8)    | attribute | 0 | modifier (4)
//!   24 | M_Key (8)          | source LID | destination LID | 0 (28)
//!   64 | data (64)          | initial path (64) | return path (64)
//! ```
//!
//! A packet by LID goes as any packet does. A packet by directed route names the port to leave by at each hop, so it
//! works before there are LIDs; D turns on its way back. Both travel on VL 15 from queue pair 0 to queue pair 0.

mod node;
mod notice;
mod port;
mod route;
mod switch;

use softfabric_units::Lid;

pub use node::{GuidInfo, LedInfo, NodeDescription, NodeInfo, SmInfo, VendorId};
pub use notice::{
    CapabilityTrap, GidTrap, KeyTrap, ManagementKeyTrap, Notice, NoticeType, PortTrap, Producer,
    StateTrap, SwitchPartitionTrap, SystemTrap, Trap,
};
pub use port::{
    ExtendedPortInfo, LaneWeight, PartitionTable, PortInfo, ServiceLevelMap, VlArbitration,
};
pub use route::{DirectedRoute, MAX_HOPS, NextHop};
pub use switch::{ForwardingBlock, MulticastBlock, SwitchInfo};

use super::table::data_as;
use super::{Attribute, MAD_LENGTH, MadHeader, ManagementClass, Method};
use crate::bytes::{split, take};
use crate::error::DecodeError;

/// The bytes that an attribute may take in a subnet management packet.
pub const SMP_DATA_LENGTH: usize = 64;

const CLASS_VERSION: u8 = 1;
const DIRECTION: u16 = 0x8000;
const KEY: usize = 24;
const DIRECTED_SOURCE: usize = 32;
const DIRECTED_DESTINATION: usize = 34;
const DATA: usize = 64;
const INITIAL_PATH: usize = 128;
const RETURN_PATH: usize = 192;

/// How a packet finds its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SmpRoute {
    /// By local identifier.
    Lid,
    /// Hop by hop.
    Directed(DirectedRoute),
}

/// A subnet management packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Smp {
    /// What it does.
    pub method: Method,
    /// Zero, or what went wrong, 15 bits: see [`super::status`].
    pub status: u16,
    /// How it finds its way.
    pub route: SmpRoute,
    /// Relates a response to its request.
    pub transaction: u64,
    /// What the data are.
    pub attribute: u16,
    /// Which of several.
    pub modifier: u32,
    /// The key that the port's manager has set.
    pub key: u64,
    /// The attribute.
    pub data: [u8; SMP_DATA_LENGTH],
}

impl Smp {
    /// Asks for the attribute `A`.
    pub fn get<A: Attribute>(route: SmpRoute, modifier: u32) -> Self {
        Self {
            method: Method::GET,
            status: 0,
            route,
            transaction: 0,
            attribute: A::ID,
            modifier,
            key: 0,
            data: [0; SMP_DATA_LENGTH],
        }
    }

    /// Changes an attribute.
    pub fn set<A: Attribute>(route: SmpRoute, modifier: u32, attribute: &A) -> Self {
        Self {
            method: Method::SET,
            data: attribute.to_bytes(),
            ..Self::get::<A>(route, modifier)
        }
    }

    /// The data as attribute `A`; `None` where the packet carries another one.
    pub fn data_as<A: Attribute>(&self) -> Option<A> {
        data_as(self.attribute, &self.data)
    }

    /// The packet's bytes.
    pub fn encode(&self) -> [u8; MAD_LENGTH] {
        let mut bytes = [0; MAD_LENGTH];
        let mut header = MadHeader {
            class: ManagementClass::SUBNET_LID_ROUTED,
            class_version: CLASS_VERSION,
            method: self.method,
            status: self.status & !DIRECTION,
            class_specific: 0,
            transaction: self.transaction,
            attribute: self.attribute,
            modifier: self.modifier,
        };
        if let SmpRoute::Directed(route) = &self.route {
            header.class = ManagementClass::SUBNET_DIRECTED;
            header.status |= if route.returning { DIRECTION } else { 0 };
            header.class_specific = u16::from_be_bytes([route.hop_pointer, route.hop_count]);
            let (source, destination) = (route.source.0, route.destination.0);
            bytes[DIRECTED_SOURCE..][..2].copy_from_slice(&source.to_be_bytes());
            bytes[DIRECTED_DESTINATION..][..2].copy_from_slice(&destination.to_be_bytes());
            bytes[INITIAL_PATH..][..MAX_HOPS].copy_from_slice(&route.initial);
            bytes[RETURN_PATH..][..MAX_HOPS].copy_from_slice(&route.returned);
        }
        header.encode(&mut bytes);
        bytes[KEY..][..8].copy_from_slice(&self.key.to_be_bytes());
        bytes[DATA..][..SMP_DATA_LENGTH].copy_from_slice(&self.data);
        bytes
    }

    /// Reads one packet; bytes after its 256 are ignored.
    ///
    /// # Errors
    /// If the bytes end too early, the class is neither of subnet management's, or its version is not 1. Hop counts that
    /// no route can have are for [`DirectedRoute::is_sound`] to find.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let header = MadHeader::decode(bytes)?;
        let (bytes, _) = split(bytes, 0, MAD_LENGTH, "subnet management packet")?;
        let directed = match header.class {
            ManagementClass::SUBNET_LID_ROUTED => false,
            ManagementClass::SUBNET_DIRECTED => true,
            other => {
                return Err(DecodeError::Value {
                    what: "MAD class",
                    offset: 1,
                    found: u64::from(other.0),
                    needed: "0x01 or 0x81 (subnet management)",
                });
            }
        };
        header.expect(header.class, CLASS_VERSION)?;
        let lid = |at| {
            take(bytes, at, "directed-route LID")
                .map(u16::from_be_bytes)
                .map(Lid)
        };
        let [hop_pointer, hop_count] = header.class_specific.to_be_bytes();
        let route = if directed {
            SmpRoute::Directed(DirectedRoute {
                returning: header.status & DIRECTION != 0,
                hop_pointer,
                hop_count,
                source: lid(DIRECTED_SOURCE)?,
                destination: lid(DIRECTED_DESTINATION)?,
                initial: take(bytes, INITIAL_PATH, "initial path")?,
                returned: take(bytes, RETURN_PATH, "return path")?,
            })
        } else {
            SmpRoute::Lid
        };
        Ok(Self {
            method: header.method,
            status: header.status & !DIRECTION,
            route,
            transaction: header.transaction,
            attribute: header.attribute,
            modifier: header.modifier,
            key: u64::from_be_bytes(take(bytes, KEY, "M_Key")?),
            data: take(bytes, DATA, "data")?,
        })
    }

    /// The agent's answer to a request: same route turned round, same transaction, `data` and `status` of its own.
    pub fn response(&self, status: u16, data: [u8; SMP_DATA_LENGTH]) -> Self {
        let mut answer = Self {
            method: Method::GET_RESPONSE,
            status,
            data,
            ..*self
        };
        if let SmpRoute::Directed(route) = &mut answer.route {
            route.returning = true;
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packet_bytes() {
        let mut route = DirectedRoute::along(&[1, 5]).unwrap();
        route.hop_pointer = 1;
        let smp = Smp {
            transaction: 0x0102,
            key: 7,
            ..Smp::get::<NodeInfo>(SmpRoute::Directed(route), 0xa)
        };
        let bytes = smp.encode();
        let mut expected = vec![1, 0x81, 1, 1, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 1, 2];
        expected.extend([
            0, 0x11, 0, 0, 0, 0, 0, 0xa, 0, 0, 0, 0, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff,
        ]);
        expected.resize(128, 0);
        expected.extend([0, 1, 5]);
        expected.resize(256, 0);
        assert_eq!(bytes[..], expected[..]);
        assert_eq!(Smp::decode(&bytes), Ok(smp));
        let answer = smp.response(0x1c, [9; 64]).encode();
        assert_eq!(answer[3..6], [0x81, 0x80, 0x1c]);
        assert_eq!(Smp::decode(&answer).unwrap().status, 0x1c);
    }

    #[test]
    fn errors_say_what_and_where() {
        let message = |bytes: &[u8]| Smp::decode(bytes).unwrap_err().to_string();
        let mut bytes = Smp::get::<NodeInfo>(SmpRoute::Lid, 0).encode();
        assert_eq!(
            message(&bytes[..255]),
            "subnet management packet at byte 0 needs 256 bytes, found 255"
        );
        bytes[2] = 2;
        assert_eq!(
            message(&bytes),
            "MAD class version at byte 2 is 0x2, needed 1"
        );
        bytes[1] = 3;
        assert_eq!(
            message(&bytes),
            "MAD class at byte 1 is 0x3, needed 0x01 or 0x81 (subnet management)"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_a_packet_that_comes_back(
            bytes in proptest::collection::vec(any::<u8>(), 256), class in 0_usize..3,
        ) {
            let mut bytes = bytes;
            bytes[..3].copy_from_slice(&[1, [1, 0x81, 4][class], 1]);
            if let Ok(smp) = Smp::decode(&bytes) {
                prop_assert_eq!(Smp::decode(&smp.encode()), Ok(smp));
            } else {
                prop_assert_eq!(class, 2);
            }
        }
    }
}
