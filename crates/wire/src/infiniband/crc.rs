//! The variant CRC of data packets and the CRC of flow-control packets (IBTA vol. 1, 7.8.2 and 7.9.4): one polynomial.

/// The bytes of a VCRC or LPCRC.
pub const VCRC_LENGTH: usize = 2;

/// The variant CRC of a packet from LRH to ICRC: x¹⁶ + x¹² + x³ + x + 1, lowest bit first, starting and ending inverted.
pub fn vcrc(packet: &[u8]) -> u16 {
    const TABLE: [u16; 256] = {
        const REFLECTED: u16 = 0xd008;
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut remainder = byte as u16;
            let mut bit = 0;
            while bit < 8 {
                let carry = if remainder & 1 != 0 { REFLECTED } else { 0 };
                remainder = (remainder >> 1) ^ carry;
                bit += 1;
            }
            table[byte] = remainder;
            byte += 1;
        }
        table
    };
    !packet.iter().fold(u16::MAX, |register, byte| {
        let [low, _] = register.to_le_bytes();
        (register >> 8) ^ TABLE[usize::from(low ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infiniband::lrh::tests::SAMPLE;

    #[test]
    fn vcrc_bit_by_bit() {
        let register = SAMPLE.iter().fold(u16::MAX, |register, byte| {
            (0..8).fold(register ^ u16::from(*byte), |register, _| {
                (register >> 1) ^ if register & 1 != 0 { 0xd008 } else { 0 }
            })
        });
        assert_eq!(vcrc(&SAMPLE), !register);
        assert_eq!(vcrc(&SAMPLE), 0xfa45);
    }
}
