//! The UDP header (RFC 768).
//!
//! ```text
//! source port (2) | destination port (2) | length (2) | checksum (2)
//! ```

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::bytes::{put, take};
use crate::error::DecodeError;

/// The destination port of RoCEv2 (IBTA annex A17).
pub const ROCE_PORT: u16 = 4791;

/// A UDP header. The length follows from what it carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UdpHeader {
    /// Under RoCEv2 the entropy that multipath routing hashes.
    pub source_port: u16,
    /// [`ROCE_PORT`] under RoCEv2.
    pub destination_port: u16,
    /// The checksum as it stands; 0 says that there is none, which is what RoCEv2 sends.
    pub checksum: u16,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
pub(crate) struct RawUdp {
    source_port: U16,
    destination_port: U16,
    length: U16,
    pub(crate) checksum: U16,
}

impl UdpHeader {
    /// Its length in bytes.
    pub const LENGTH: usize = 8;

    /// Writes the header of a datagram with `payload` bytes after it, and returns the header's length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`UdpHeader::LENGTH`] or the datagram longer than 65,535 bytes.
    pub fn encode(&self, payload: usize, bytes: &mut [u8]) -> usize {
        put(bytes, 0, &self.to_raw(payload))
    }

    pub(crate) fn to_raw(self, payload: usize) -> RawUdp {
        let length = u16::try_from(Self::LENGTH + payload)
            .expect("callers keep a datagram within the 65,535 bytes of a 16-bit length");
        RawUdp {
            source_port: U16::new(self.source_port),
            destination_port: U16::new(self.destination_port),
            length: U16::new(length),
            checksum: U16::new(self.checksum),
        }
    }

    /// Reads the header at the start of `bytes`, and how many bytes follow it by its length.
    ///
    /// # Errors
    /// If the bytes end too early or the length is less than the header's own.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), DecodeError> {
        let raw: RawUdp = take(bytes, 0, "UDP header")?;
        let length = raw.length.get();
        let Some(payload) = usize::from(length).checked_sub(Self::LENGTH) else {
            return Err(DecodeError::Value {
                what: "UDP length",
                offset: 4,
                found: u64::from(length),
                needed: "at least 8",
            });
        };
        let header = Self {
            source_port: raw.source_port.get(),
            destination_port: raw.destination_port.get(),
            checksum: raw.checksum.get(),
        };
        Ok((header, payload))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn header_bytes() {
        let header = UdpHeader {
            source_port: 0xc123,
            destination_port: ROCE_PORT,
            checksum: 0,
        };
        let bytes = [0xc1, 0x23, 0x12, 0xb7, 0, 24, 0, 0];
        let mut written = [0; 8];
        assert_eq!(header.encode(16, &mut written), 8);
        assert_eq!(written, bytes);
        assert_eq!(UdpHeader::decode(&bytes), Ok((header, 16)));
        assert_eq!(
            UdpHeader::decode(&[0, 1, 0, 1, 0, 7, 0, 0])
                .unwrap_err()
                .to_string(),
            "UDP length at byte 4 is 0x7, needed at least 8"
        );
    }

    proptest! {
        #[test]
        fn any_header_comes_back(ports in any::<(u16, u16)>(), checksum in any::<u16>(), payload in 0_usize..65_528) {
            let header = UdpHeader { source_port: ports.0, destination_port: ports.1, checksum };
            let mut bytes = [0; 8];
            header.encode(payload, &mut bytes);
            prop_assert_eq!(UdpHeader::decode(&bytes), Ok((header, payload)));
        }
    }
}
