//! The frame check sequence: CRC-32 over everything from the destination address on (802.3, 3.2.9).

use crate::bytes::split;
use crate::error::DecodeError;

/// The bytes of an FCS.
pub const FCS_LENGTH: usize = 4;

/// The FCS of a frame that is given without one.
pub fn fcs(frame: &[u8]) -> u32 {
    crc32fast::hash(frame)
}

/// Appends the FCS to a frame that has none yet.
pub fn append_fcs(frame: &mut Vec<u8>) {
    let check = fcs(frame);
    frame.extend(check.to_le_bytes());
}

/// Takes the FCS off a frame that ends in one.
///
/// # Errors
/// If there are fewer than 4 bytes, or the FCS is not that of the frame.
pub fn split_fcs(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let at = bytes.len().saturating_sub(FCS_LENGTH);
    let (frame, _) = split(bytes, 0, at, "Ethernet frame")?;
    let (check, _) = split(bytes, at, FCS_LENGTH, "Ethernet FCS")?;
    if fcs(frame).to_le_bytes() != check {
        return Err(DecodeError::Value {
            what: "Ethernet FCS",
            offset: at,
            found: check
                .iter()
                .fold(0, |value, byte| value << 8 | u64::from(*byte)),
            needed: "the CRC-32 of the frame",
        });
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value_of_the_standard_polynomial() {
        // The catalogued check value of CRC-32/ISO-HDLC.
        assert_eq!(fcs(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn appended_and_taken_off() {
        let mut frame = b"123456789".to_vec();
        append_fcs(&mut frame);
        assert_eq!(frame[9..], [0x26, 0x39, 0xf4, 0xcb]);
        assert_eq!(split_fcs(&frame), Ok(&b"123456789"[..]));
        for bit in 0..frame.len() * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            assert!(
                matches!(split_fcs(&frame), Err(DecodeError::Value { offset: 9, .. })),
                "bit {bit} flipped"
            );
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(matches!(
            split_fcs(&[1, 2, 3]),
            Err(DecodeError::Truncated { found: 3, .. })
        ));
    }
}
