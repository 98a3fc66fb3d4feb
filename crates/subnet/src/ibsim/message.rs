//! The two messages: control and data. Numbers are those of the host, little endian, except where they come from the wire.
//!
//! ```text
//! control   0 | magic | client | kind | length |  16 | data (64)
//! data      0 | to LID | from LID | to QP | from QP | status | 0 | length (8) |  32 | datagram (256)
//! ```
//!
//! LIDs are the two bytes of the wire at the start of their four; QPs, status and length are big endian.

use softfabric_units::Lid;
use softfabric_wire::mad::MAD_LENGTH;
use thiserror::Error;

/// Bytes of a control message.
pub const CONTROL_LENGTH: usize = 80;
/// Bytes of a data message.
pub const DATA_LENGTH: usize = 288;
/// The status of a datagram that nobody answers: it goes back to its sender.
pub const TIMED_OUT: u32 = 110;

/// Where class, method and transaction number of a datagram are.
pub(crate) const CLASS: usize = 1;
pub(crate) const METHOD: usize = 3;
pub(crate) const TRANSACTION: usize = 8;

const MAGIC: u32 = 0xdead_beef;
const BODY: usize = 16;
const BODY_LENGTH: usize = CONTROL_LENGTH - BODY;
const MAD: usize = DATA_LENGTH - MAD_LENGTH;
const NAME: usize = 12;
const NAME_LENGTH: usize = 32;

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum MessageError {
    /// Another length.
    #[error("a message of ibsim's protocol has {needed} bytes, found {found}")]
    Length {
        /// What it should have.
        needed: usize,
        /// What it has.
        found: usize,
    },
    /// Another start.
    #[error("a control message starts with 0xdeadbeef, found {found:#010x}")]
    Magic {
        /// What it starts with.
        found: u32,
    },
}

/// What a control message asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlKind(pub u32);

impl ControlKind {
    /// In answers: no.
    pub const ERROR: Self = Self(0);
    /// Be a client: see [`Connect`].
    pub const CONNECT: Self = Self(1);
    /// Be none any more.
    pub const DISCONNECT: Self = Self(2);
    /// The LID and state of the client's port.
    pub const PORT: Self = Self(3);
    /// Who made the client's node.
    pub const VENDOR: Self = Self(4);
    /// The GID of the client's port.
    pub const GID: Self = Self(5);
    /// The GUID of the client's node.
    pub const GUID: Self = Self(6);
    /// NodeInfo of the client's node.
    pub const NODE_INFO: Self = Self(7);
    /// PortInfo of a port of the client's node: the first byte is its number, 0 the client's own.
    pub const PORT_INFO: Self = Self(8);
    /// The client is a manager, or is none any more.
    pub const SET_MANAGER: Self = Self(9);
    /// The partition table of the client's port.
    pub const PARTITIONS: Self = Self(10);
}

/// A control message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// The client's slot; anything when it connects.
    pub client: u32,
    /// What it asks for; an answer has the same.
    pub kind: ControlKind,
    /// Bytes of the data that count.
    pub length: u32,
    /// What the kind says.
    pub data: [u8; BODY_LENGTH],
}

impl Control {
    /// Reads a message.
    ///
    /// # Errors
    /// If its length or start is another.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let bytes: &[u8; CONTROL_LENGTH] = exact(bytes)?;
        let number = |at: usize| u32::from_le_bytes(array(bytes, at));
        if number(0) != MAGIC {
            return Err(MessageError::Magic { found: number(0) });
        }
        Ok(Self {
            client: number(4),
            kind: ControlKind(number(8)),
            length: number(12),
            data: array(bytes, BODY),
        })
    }

    /// The message's bytes.
    pub fn encode(&self) -> [u8; CONTROL_LENGTH] {
        let mut bytes = [0; CONTROL_LENGTH];
        let numbers = [MAGIC, self.client, self.kind.0, self.length];
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[BODY..].copy_from_slice(&self.data);
        bytes
    }
}

/// The data of a message that connects; in the answer, `id` is the client's slot and `node` where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connect {
    /// The process, which names the client's sockets.
    pub id: u32,
    /// The queue pair that it wants the datagrams of.
    pub queue_pair: u32,
    /// It is a manager.
    pub manager: bool,
    /// Where it wants to be; empty for the default.
    pub node: String,
}

impl Connect {
    /// Bytes of the data that count.
    pub const LENGTH: u32 = (NAME + NAME_LENGTH) as u32;

    /// Reads the data of a control message; bytes that are no text become `\u{fffd}`.
    pub fn decode(data: &[u8; BODY_LENGTH]) -> Self {
        let number = |at: usize| u32::from_le_bytes(array(data, at));
        let name: [u8; NAME_LENGTH] = array(data, NAME);
        let end = name.iter().position(|byte| *byte == 0);
        Self {
            id: number(0),
            queue_pair: number(4),
            manager: number(8) != 0,
            node: String::from_utf8_lossy(&name[..end.unwrap_or(NAME_LENGTH)]).into_owned(),
        }
    }

    /// The data of a control message; a name is cut after 31 bytes.
    pub fn encode(&self) -> [u8; BODY_LENGTH] {
        let mut data = [0; BODY_LENGTH];
        let numbers = [self.id, self.queue_pair, u32::from(self.manager)];
        for (place, number) in data.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let length = self.node.len().min(NAME_LENGTH - 1);
        data[NAME..NAME + length].copy_from_slice(&self.node.as_bytes()[..length]);
        data
    }
}

/// A data message: a datagram with its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// Where it goes; permissive on directed routes.
    pub destination: Lid,
    /// Where it is from; 0: the client's port.
    pub source: Lid,
    /// The queue pair that it is for.
    pub destination_qp: u32,
    /// The queue pair that it is from.
    pub source_qp: u32,
    /// Zero, or [`TIMED_OUT`].
    pub status: u32,
    /// Bytes of the datagram that count.
    pub length: u64,
    /// The datagram.
    pub mad: [u8; MAD_LENGTH],
}

impl Data {
    /// Reads a message.
    ///
    /// # Errors
    /// If its length is another.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let bytes: &[u8; DATA_LENGTH] = exact(bytes)?;
        let lid = |at: usize| Lid(u16::from_be_bytes(array(bytes, at)));
        let number = |at: usize| u32::from_be_bytes(array(bytes, at));
        Ok(Self {
            destination: lid(0),
            source: lid(4),
            destination_qp: number(8),
            source_qp: number(12),
            status: number(16),
            length: u64::from_be_bytes(array(bytes, 24)),
            mad: array(bytes, MAD),
        })
    }

    /// The message's bytes.
    pub fn encode(&self) -> [u8; DATA_LENGTH] {
        let mut bytes = [0; DATA_LENGTH];
        bytes[..2].copy_from_slice(&self.destination.0.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.source.0.to_be_bytes());
        let numbers = [self.destination_qp, self.source_qp, self.status];
        for (place, number) in bytes[8..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes[24..32].copy_from_slice(&self.length.to_be_bytes());
        bytes[MAD..].copy_from_slice(&self.mad);
        bytes
    }
}

fn exact<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], MessageError> {
    bytes.try_into().map_err(|_| MessageError::Length {
        needed: N,
        found: bytes.len(),
    })
}

/// The `N` bytes from `at`, which are there.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_bytes() {
        let connect = Connect {
            id: 0x1234,
            queue_pair: 1,
            manager: true,
            node: "H-00000".to_owned(),
        };
        let control = Control {
            client: 3,
            kind: ControlKind::CONNECT,
            length: 44,
            data: connect.encode(),
        };
        let bytes = control.encode();
        assert_eq!(
            bytes[..20],
            [
                0xef, 0xbe, 0xad, 0xde, 3, 0, 0, 0, 1, 0, 0, 0, 44, 0, 0, 0, 0x34, 0x12, 0, 0
            ]
        );
        assert_eq!(bytes[28..36], *b"H-00000\0");
        assert_eq!(Control::decode(&bytes), Ok(control));
        assert_eq!(Connect::decode(&control.data), connect);
        assert_eq!(
            Control::decode(&[0; CONTROL_LENGTH])
                .unwrap_err()
                .to_string(),
            "a control message starts with 0xdeadbeef, found 0x00000000"
        );
        assert_eq!(
            Control::decode(&[0; 7]).unwrap_err().to_string(),
            "a message of ibsim's protocol has 80 bytes, found 7"
        );
    }

    #[test]
    fn data_bytes() {
        let data = Data {
            destination: Lid(0x0102),
            source: Lid::PERMISSIVE,
            destination_qp: 1,
            source_qp: 2,
            status: TIMED_OUT,
            length: 256,
            mad: [7; MAD_LENGTH],
        };
        let bytes = data.encode();
        let mut expected = vec![1, 2, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
        expected.extend([0, 0, 0, 110, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 7]);
        assert_eq!(bytes[..33], expected[..]);
        assert_eq!(Data::decode(&bytes), Ok(data));
    }

    proptest! {
        #[test]
        fn names_of_any_length_end(node in ".{0,40}") {
            let connect = Connect { id: 1, queue_pair: 0, manager: false, node: node.clone() };
            let again = Connect::decode(&connect.encode());
            prop_assert!(again.node.len() <= 3 * NAME_LENGTH);
            let kept = &node.as_bytes()[..node.len().min(NAME_LENGTH - 1)];
            let kept = kept.split(|byte| *byte == 0).next().unwrap_or_default();
            prop_assert_eq!(again.node, String::from_utf8_lossy(kept));
        }
    }
}
