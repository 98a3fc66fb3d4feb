//! A TCP segment: header and payload, with its checksum.

use std::net::IpAddr;

use super::TcpHeader;
use crate::bytes::{add_to_sum, folded};
use crate::data::Data;
use crate::error::DecodeError;
use crate::ip::IpProtocol;

/// Where a header has its checksum.
const CHECKSUM: usize = 16;

/// A TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpPacket<'a> {
    /// The header.
    pub header: TcpHeader,
    /// What it carries.
    pub payload: Data<'a>,
}

impl<'a> TcpPacket<'a> {
    /// Its length in bytes.
    pub fn length(&self) -> usize {
        self.header.length() + self.payload.len()
    }

    /// Writes it and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`TcpPacket::length`].
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        let at = self.header.encode(bytes);
        self.payload.put(bytes, at)
    }

    /// Reads the segment that fills `bytes`. A wrong checksum is no error: see [`TcpPacket::checksum_is_right`].
    ///
    /// # Errors
    /// As [`TcpHeader::decode`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (header, length) = TcpHeader::decode(bytes)?;
        let payload = Data::Bytes(&bytes[length..]);
        Ok(Self { header, payload })
    }

    /// The same segment with the checksum that it must have between two addresses.
    #[must_use]
    pub fn with_checksum(mut self, source: IpAddr, destination: IpAddr) -> Self {
        self.header.checksum = self.checksum(source, destination);
        self
    }

    /// Whether its checksum is the one that it must have between two addresses of one family.
    pub fn checksum_is_right(&self, source: IpAddr, destination: IpAddr) -> bool {
        self.header.checksum == self.checksum(source, destination)
    }

    /// The checksum over pseudo-header, header and payload (RFC 9293, 3.1; RFC 8200, 8.1).
    fn checksum(&self, source: IpAddr, destination: IpAddr) -> u16 {
        let mut header = [0; TcpHeader::LONGEST];
        let length = self.header.encode(&mut header);
        header[CHECKSUM..CHECKSUM + 2].fill(0);
        let mut sum = u64::from(IpProtocol::TCP.0) + self.length() as u64;
        for address in [source, destination] {
            match address {
                IpAddr::V4(address) => add_to_sum(&mut sum, &address.octets()),
                IpAddr::V6(address) => add_to_sum(&mut sum, &address.octets()),
            }
        }
        // A header has an even length, so the payload starts a new word.
        add_to_sum(&mut sum, &header[..length]);
        if let Data::Bytes(bytes) = self.payload {
            add_to_sum(&mut sum, bytes);
        }
        folded(sum)
    }
}
