//! Packet and message sequence numbers: 24 bits that wrap (IBTA vol. 1, 9.7.1).

use std::fmt;

const MASK: u32 = 0x00ff_ffff;
const HALF: u32 = 0x0080_0000;

/// A packet sequence number. Order is circular: of two PSNs, the one less than 2²³ ahead is the later.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Psn(u32);

impl Psn {
    /// The PSN whose low 24 bits are those of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & MASK)
    }

    /// The 24 bits.
    pub const fn as_u32(self) -> u32 {
        self.0
    }

    /// The PSN `count` packets later.
    #[must_use]
    pub const fn add(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count) & MASK)
    }

    /// The PSN `count` packets earlier.
    #[must_use]
    pub const fn sub(self, count: u32) -> Self {
        Self(self.0.wrapping_sub(count) & MASK)
    }

    /// The PSN of the next packet.
    #[must_use]
    pub const fn next(self) -> Self {
        self.add(1)
    }

    /// How many packets `self` is after `earlier`, going forward around the circle: 0..2²⁴.
    pub const fn distance_from(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0) & MASK
    }

    /// How far `self` is ahead of `other`: negative where it is behind, −2²³..2²³.
    pub const fn offset_from(self, other: Self) -> i32 {
        let forward = self.distance_from(other);
        if forward < HALF {
            forward as i32
        } else {
            forward as i32 - (MASK as i32 + 1)
        }
    }

    /// Whether `self` comes before `other` on the shorter way around the circle.
    pub const fn is_before(self, other: Self) -> bool {
        self.offset_from(other) < 0
    }

    /// Whether `self` comes after `other` on the shorter way around the circle.
    pub const fn is_after(self, other: Self) -> bool {
        self.offset_from(other) > 0
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Psn({:#08x})", self.0)
    }
}

/// A message sequence number: how many requests the responder has completed, modulo 2²⁴ (IBTA vol. 1, 9.7.7.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Msn(u32);

impl Msn {
    /// The MSN whose low 24 bits are those of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & MASK)
    }

    /// The 24 bits.
    pub const fn as_u32(self) -> u32 {
        self.0
    }

    /// The MSN after one more completed request.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1) & MASK)
    }

    /// How many requests `self` is after `earlier`, going forward around the circle: 0..2²⁴.
    pub const fn distance_from(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0) & MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_wraps() {
        let last = Psn::new(0xff_ffff);
        assert_eq!(last.next(), Psn::new(0));
        assert!(last.is_before(Psn::new(0)));
        assert!(Psn::new(5).is_after(last));
        assert_eq!(Psn::new(5).offset_from(last), 6);
        assert_eq!(last.offset_from(Psn::new(5)), -6);
        assert_eq!(Psn::new(5).distance_from(last), 6);
        assert_eq!(Psn::new(2).sub(3), last);
        assert!(!last.is_before(last) && !last.is_after(last));
    }
}
