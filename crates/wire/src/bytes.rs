//! Reading and writing fixed headers at an offset: every decoder's bounds checks are here.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::error::DecodeError;

/// Writes `raw` at byte `at` and returns where it ends.
///
/// # Panics
/// If `bytes` ends before.
#[inline]
pub(crate) fn put<T: IntoBytes + Immutable>(bytes: &mut [u8], at: usize, raw: &T) -> usize {
    let end = at + size_of::<T>();
    bytes[at..end].copy_from_slice(raw.as_bytes());
    end
}

/// Reads a `T` at byte `at`.
#[inline]
pub(crate) fn take<T: FromBytes>(
    bytes: &[u8],
    at: usize,
    what: &'static str,
) -> Result<T, DecodeError> {
    let rest = bytes.get(at..).unwrap_or_default();
    match T::read_from_prefix(rest) {
        Ok((raw, _)) => Ok(raw),
        Err(_) => Err(truncated(what, at, size_of::<T>(), rest.len())),
    }
}

/// The `length` bytes at byte `at`, and what follows them.
pub(crate) fn split<'a>(
    bytes: &'a [u8],
    at: usize,
    length: usize,
    what: &'static str,
) -> Result<(&'a [u8], &'a [u8]), DecodeError> {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.split_at_checked(length)
        .ok_or_else(|| truncated(what, at, length, rest.len()))
}

#[cold]
fn truncated(what: &'static str, offset: usize, needed: usize, found: usize) -> DecodeError {
    DecodeError::Truncated {
        what,
        offset,
        needed,
        found,
    }
}

/// The Internet checksum (RFC 1071).
pub(crate) fn internet_checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0;
    add_to_sum(&mut sum, bytes);
    folded(sum)
}

/// The Internet checksum of a sum of words.
pub(crate) fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Adds the 16-bit words of `bytes` to an Internet checksum that is not folded yet; a last odd byte counts as a word's first.
pub(crate) fn add_to_sum(sum: &mut u64, bytes: &[u8]) {
    *sum += bytes
        .chunks(2)
        .map(|pair| match *pair {
            [high, low] => u64::from(u16::from_be_bytes([high, low])),
            [high] => u64::from(high) << 8,
            _ => 0,
        })
        .sum::<u64>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_by_hand() {
        // The example of RFC 1071, section 3: the sum is ddf2.
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet_checksum(&example), !0xddf2);
        // 0x1fffe + 1: folding the carry gives another carry.
        assert_eq!(internet_checksum(&[0xff, 0xff, 0xff, 0xff, 0, 1]), !1);
        assert_eq!(internet_checksum(&[0x12]), !0x1200);
        assert_eq!(internet_checksum(&[]), !0);
    }
}
