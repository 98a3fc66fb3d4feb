//! Frames that stop the sender at the other end of a link: PAUSE (802.3 annex 31B) and PFC (802.1Qbb, now 802.1Q 36).
//!
//! ```text
//! PAUSE  opcode 0x0001 | quanta (2)                                  | zeros to 60 bytes
//! PFC    opcode 0x0101 | 0 (1) | enabled classes (1) | quanta (2) × 8 | zeros to 60 bytes
//! ```
//!
//! A frame always goes to [`CONTROL_ADDRESS`], which no bridge forwards.

use softfabric_units::{Bytes, Class, ClassMask, MacAddress, Rate, Span};
use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::bytes::{put, take};
use crate::error::DecodeError;

/// Where PAUSE and PFC frames go.
pub const CONTROL_ADDRESS: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x01]);

/// What a MAC control frame asks for.
pub(crate) mod opcodes {
    pub(crate) const PAUSE: u16 = 0x0001;
    pub(crate) const PFC: u16 = 0x0101;
}

/// A pause time in units of 512 bit times of the link that it is sent on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Quanta(pub u16);

impl Quanta {
    /// Go on at once.
    pub const RESUME: Self = Self(0);
    /// The longest pause that one frame can ask for.
    pub const MAX: Self = Self(u16::MAX);
    /// What a line sends in one quantum: 512 bits.
    pub const DATA: Bytes = Bytes::new(64);

    /// How long the pause lasts on a link of `rate`, rounded up to a whole picosecond.
    pub const fn span_at(self, rate: Rate) -> Span {
        if self.0 == 0 {
            return Span::ZERO;
        }
        rate.time_for(Bytes::new(self.0 as u64 * Self::DATA.as_u64()))
    }

    /// The shortest pause of at least `span` on a link of `rate`, or the longest there is.
    pub fn covering(span: Span, rate: Rate) -> Self {
        let bits = u128::from(rate.as_bps()) * u128::from(span.as_picos());
        let quanta = bits.div_ceil(512 * 1_000_000_000_000);
        Self(u16::try_from(quanta).unwrap_or(u16::MAX))
    }
}

/// The body of a PAUSE frame: stop sending anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PauseFrame {
    /// For how long.
    pub quanta: Quanta,
}

/// The body of a PFC frame: stop sending some classes, let others go on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct PfcFrame {
    /// The classes that the frame is about.
    pub enabled: ClassMask,
    /// The pause of each class; of no meaning where the class is not enabled.
    pub quanta: [Quanta; Class::COUNT],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawPause {
    opcode: U16,
    quanta: U16,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawPfc {
    opcode: U16,
    reserved: u8,
    enabled: u8,
    quanta: [U16; Class::COUNT],
}

impl PauseFrame {
    /// The bytes after the EtherType, without padding.
    pub const LENGTH: usize = 4;

    /// Writes the body to the start of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`PauseFrame::LENGTH`].
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        let raw = RawPause {
            opcode: U16::new(opcodes::PAUSE),
            quanta: U16::new(self.quanta.0),
        };
        put(bytes, 0, &raw)
    }

    /// Reads the body at the start of `bytes`.
    ///
    /// # Errors
    /// If the bytes end too early or the opcode is another.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let raw: RawPause = take(bytes, 0, "PAUSE frame")?;
        check_opcode(raw.opcode, opcodes::PAUSE, "0x0001 (PAUSE)")?;
        Ok(Self {
            quanta: Quanta(raw.quanta.get()),
        })
    }
}

impl PfcFrame {
    /// The bytes after the EtherType, without padding.
    pub const LENGTH: usize = 20;

    /// Asks for the same pause of every class of `classes`.
    pub fn uniform(classes: ClassMask, quanta: Quanta) -> Self {
        let mut frame = Self::default();
        for class in classes.iter() {
            frame = frame.with(class, quanta);
        }
        frame
    }

    /// The frame with a pause of one more class.
    #[must_use]
    pub const fn with(mut self, class: Class, quanta: Quanta) -> Self {
        self.enabled = self.enabled.with(class);
        self.quanta[class.index()] = quanta;
        self
    }

    /// What the frame asks of `class`; `None` where it says nothing about it.
    pub const fn pause_of(&self, class: Class) -> Option<Quanta> {
        if self.enabled.contains(class) {
            Some(self.quanta[class.index()])
        } else {
            None
        }
    }

    /// Writes the body to the start of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`PfcFrame::LENGTH`].
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        let raw = RawPfc {
            opcode: U16::new(opcodes::PFC),
            reserved: 0,
            enabled: self.enabled.0,
            quanta: self.quanta.map(|quanta| U16::new(quanta.0)),
        };
        put(bytes, 0, &raw)
    }

    /// Reads the body at the start of `bytes`.
    ///
    /// # Errors
    /// If the bytes end too early, the opcode is another, or the upper half of the class vector is not zero.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let raw: RawPfc = take(bytes, 0, "PFC frame")?;
        check_opcode(raw.opcode, opcodes::PFC, "0x0101 (PFC)")?;
        if raw.reserved != 0 {
            return Err(DecodeError::Value {
                what: "upper half of the PFC class vector",
                offset: 2,
                found: u64::from(raw.reserved),
                needed: "0",
            });
        }
        Ok(Self {
            enabled: ClassMask(raw.enabled),
            quanta: raw.quanta.map(|quanta| Quanta(quanta.get())),
        })
    }
}

fn check_opcode(found: U16, expected: u16, needed: &'static str) -> Result<(), DecodeError> {
    if found.get() == expected {
        return Ok(());
    }
    Err(DecodeError::Value {
        what: "MAC control opcode",
        offset: 0,
        found: u64::from(found.get()),
        needed,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_of_quanta() {
        // 512 bits take 5.12 ns at 100 Gb/s and 1.28 ns at 400 Gb/s.
        assert_eq!(
            Quanta(1).span_at(Rate::gbps(100)),
            Span::picos(5_120),
            "one quantum"
        );
        assert_eq!(
            Quanta::MAX.span_at(Rate::gbps(400)),
            Span::picos(65_535 * 1_280)
        );
        assert_eq!(Quanta::RESUME.span_at(Rate::ZERO), Span::ZERO);
        assert_eq!(
            Quanta::covering(Span::picos(5_121), Rate::gbps(100)),
            Quanta(2)
        );
        assert_eq!(Quanta::covering(Span::MAX, Rate::gbps(800)), Quanta::MAX);
        assert_eq!(
            Quanta::covering(Span::ZERO, Rate::gbps(800)),
            Quanta::RESUME
        );
    }

    #[test]
    fn pause_bytes() {
        let frame = PauseFrame {
            quanta: Quanta(0x1234),
        };
        let mut bytes = [0; 4];
        assert_eq!(frame.encode(&mut bytes), 4);
        assert_eq!(bytes, [0, 1, 0x12, 0x34]);
        assert_eq!(PauseFrame::decode(&bytes), Ok(frame));
        assert!(PauseFrame::decode(&[1, 1, 0, 0]).is_err());
    }

    #[rustfmt::skip]
    #[test]
    fn pfc_bytes() {
        let frame = PfcFrame::default().with(Class::new(3), Quanta::MAX).with(Class::new(4), Quanta::RESUME);
        let mut bytes = [0; 20];
        assert_eq!(frame.encode(&mut bytes), 20);
        assert_eq!(bytes, [1, 1, 0, 0b0001_1000, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(PfcFrame::decode(&bytes), Ok(frame));
        assert_eq!(frame.pause_of(Class::new(3)), Some(Quanta::MAX));
        assert_eq!(frame.pause_of(Class::new(4)), Some(Quanta::RESUME));
        assert_eq!(frame.pause_of(Class::new(5)), None);
        bytes[2] = 1;
        assert_eq!(
            PfcFrame::decode(&bytes).unwrap_err().to_string(),
            "upper half of the PFC class vector at byte 2 is 0x1, needed 0"
        );
    }

    proptest! {
        #[test]
        fn any_pfc_comes_back(enabled in any::<u8>(), quanta in any::<[u16; 8]>()) {
            let frame = PfcFrame { enabled: ClassMask(enabled), quanta: quanta.map(Quanta) };
            let mut bytes = [0; 20];
            frame.encode(&mut bytes);
            prop_assert_eq!(PfcFrame::decode(&bytes), Ok(frame));
        }

        #[test]
        fn covering_covers(quanta in any::<u16>(), gbps in 1_u64..=1600) {
            let rate = Rate::gbps(gbps);
            let span = Quanta(quanta).span_at(rate);
            let covering = Quanta::covering(span, rate);
            // A span rounded up to a picosecond may be a sliver longer than the quanta that it came from.
            prop_assert!(covering.0.abs_diff(quanta) <= 1);
            prop_assert!(covering == Quanta::MAX || covering.span_at(rate) >= span);
        }
    }
}
