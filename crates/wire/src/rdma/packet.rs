//! One packet from BTH to ICRC: what UDP carries in RoCEv2, and what follows the GRH in RoCEv1.
//!
//! ```text
//! BTH, extension headers | payload | pad to 4 bytes | ICRC (little endian)
//! ```
//!
//! A decoded packet encodes to the bytes that it came from, reserved bits and pad included.

use super::header::TransportHeader;
use super::icrc::{ICRC_LENGTH, Icrc};
use crate::bytes::split;
use crate::data::Data;
use crate::error::DecodeError;

/// A packet from BTH to ICRC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdmaPacket<'a> {
    /// BTH and extension headers. Its pad count is that of the payload's length.
    pub header: TransportHeader,
    /// The payload without pad; empty where the opcode has none.
    pub payload: Data<'a>,
    /// What the reserved bits and the pad held.
    pub reserved: Reserved,
    /// The ICRC as it stands, right or wrong.
    pub icrc: u32,
}

/// What was found in reserved bits and pad bytes, which mean nothing but count in the ICRC. All zero in what we send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reserved {
    /// The header bytes that were found, xor those that the decoded header encodes to.
    headers: [u8; TransportHeader::MAX_LENGTH],
    pad: [u8; 3],
}

impl Default for Reserved {
    fn default() -> Self {
        Self {
            headers: [0; TransportHeader::MAX_LENGTH],
            pad: [0; 3],
        }
    }
}

impl<'a> RdmaPacket<'a> {
    /// A packet with the pad that `payload` needs, and an ICRC that is not computed yet.
    pub fn new(mut header: TransportHeader, payload: Data<'a>) -> Self {
        header.bth.pad = pad_of(payload.len());
        Self {
            header,
            payload,
            reserved: Reserved::default(),
            icrc: 0,
        }
    }

    /// The length in bytes, from BTH to ICRC.
    pub const fn length(&self) -> usize {
        self.header.length() + self.payload.len() + self.header.bth.pad as usize + ICRC_LENGTH
    }

    /// Writes the packet to the start of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`RdmaPacket::length`].
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        let (headers, length) = self.header_bytes();
        bytes[..length].copy_from_slice(&headers[..length]);
        let at = self.payload.put(bytes, length);
        let at = Data::Bytes(self.pad()).put(bytes, at);
        Data::Bytes(&self.icrc.to_le_bytes()).put(bytes, at)
    }

    /// Reads the packet that fills `bytes`.
    ///
    /// # Errors
    /// If the headers do not decode, payload, pad and ICRC do not fit, the length is not a multiple of 4, or there is a
    /// payload that the opcode does not have. A wrong ICRC is not an error here: see [`RdmaPacket::add_to`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (header, length) = TransportHeader::decode(bytes)?;
        let pad_length = usize::from(header.bth.pad);
        let room = bytes.len().saturating_sub(length);
        let Some(payload_length) = room.checked_sub(pad_length + ICRC_LENGTH) else {
            return Err(DecodeError::Truncated {
                what: "pad and ICRC",
                offset: length,
                needed: pad_length + ICRC_LENGTH,
                found: room,
            });
        };
        let wrong = |what, needed| DecodeError::Value {
            what,
            offset: length,
            found: payload_length as u64,
            needed,
        };
        if !(payload_length + pad_length).is_multiple_of(4) {
            let needed = "to end on a multiple of 4 bytes with its pad";
            return Err(wrong("RDMA payload length", needed));
        }
        if payload_length + pad_length > 0 && !header.bth.opcode.has_payload() {
            let needed = "0: the opcode carries no payload";
            return Err(wrong("RDMA payload length", needed));
        }
        let (payload, rest) = split(bytes, length, payload_length, "RDMA payload")?;
        let (pad, icrc) = rest.split_at(pad_length);

        let mut reserved = Reserved::default();
        header.encode(&mut reserved.headers);
        for (byte, found) in reserved.headers.iter_mut().zip(&bytes[..length]) {
            *byte ^= found;
        }
        reserved.pad[..pad_length].copy_from_slice(pad);
        let icrc = icrc
            .try_into()
            .expect("payload and pad leave exactly the ICRC's bytes");
        Ok(Self {
            header,
            payload: Data::Bytes(payload),
            reserved,
            icrc: u32::from_le_bytes(icrc),
        })
    }

    /// Adds the packet to an ICRC that already covers the headers of its network.
    pub fn add_to(&self, icrc: &mut Icrc) {
        let (headers, length) = self.header_bytes();
        icrc.headers(&headers[..length]);
        match self.payload {
            Data::Bytes(bytes) => icrc.payload(bytes),
            Data::Zeros(count) => icrc.zeros(count),
        }
        icrc.payload(self.pad());
    }

    fn header_bytes(&self) -> ([u8; TransportHeader::MAX_LENGTH], usize) {
        let mut bytes = [0; TransportHeader::MAX_LENGTH];
        let length = self.header.encode(&mut bytes);
        for (byte, reserved) in bytes.iter_mut().zip(&self.reserved.headers) {
            *byte ^= reserved;
        }
        (bytes, length)
    }

    fn pad(&self) -> &[u8] {
        &self.reserved.pad[..usize::from(self.header.bth.pad & 3)]
    }
}

/// How many pad bytes follow a payload of `length` bytes: 0–3.
pub const fn pad_of(length: usize) -> u8 {
    (length.wrapping_neg() & 3) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdma::Opcode;

    /// RC SEND Only, three bytes and one of pad.
    const SEND: [u8; 20] = [
        0x04, 0x10, 0xff, 0xff, 0, 0, 0, 17, 0x80, 0, 0, 9, b'a', b'b', b'c', 0, 0x78, 0x56, 0x34,
        0x12,
    ];

    #[test]
    fn payload_pad_and_icrc() {
        let packet = RdmaPacket::decode(&SEND).unwrap();
        assert_eq!(packet.header.bth.opcode, Opcode::RC_SEND_ONLY);
        assert_eq!(packet.payload, Data::Bytes(b"abc"));
        assert_eq!(packet.icrc, 0x1234_5678);
        assert_eq!(packet.reserved, Reserved::default());
        let again = RdmaPacket::new(packet.header, packet.payload);
        assert_eq!(
            RdmaPacket {
                icrc: packet.icrc,
                ..again
            },
            packet
        );
    }

    #[test]
    fn reserved_bits_and_pad_are_kept() {
        let mut bytes = SEND;
        bytes[4] = 0x15;
        bytes[8] = 0xff;
        bytes[15] = 0xee;
        let packet = RdmaPacket::decode(&bytes).unwrap();
        assert_ne!(packet.reserved, Reserved::default());
        let mut again = [0; 20];
        assert_eq!(packet.encode(&mut again), 20);
        assert_eq!(again, bytes);
    }

    #[test]
    fn errors_say_what_and_where() {
        let message = |bytes: &[u8]| RdmaPacket::decode(bytes).unwrap_err().to_string();
        assert_eq!(
            message(&SEND[..16]),
            "pad and ICRC at byte 12 needs 5 bytes, found 4"
        );
        assert_eq!(
            message(&SEND[..19]),
            "RDMA payload length at byte 12 is 0x2, needed to end on a multiple of 4 bytes with its pad"
        );
        let mut bytes = SEND;
        bytes[0] = Opcode::RC_ACKNOWLEDGE.code();
        bytes[1] = 0;
        let longer = [&bytes[..], &[0; 4]].concat();
        assert_eq!(
            message(&longer),
            "RDMA payload length at byte 16 is 0x4, needed 0: the opcode carries no payload"
        );
    }

    #[test]
    fn pads() {
        assert_eq!([0, 1, 2, 3, 4, 1023].map(pad_of), [0, 3, 2, 1, 0, 1]);
    }
}
