//! Bytes that a packet carries and that the codec does not look into.

use std::fmt;

/// Borrowed bytes, or so many zeros: the simulator knows lengths only, and needs no buffer for them.
#[derive(Clone, Copy)]
pub enum Data<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// That many zero bytes.
    Zeros(usize),
}

impl Data<'_> {
    /// Nothing.
    pub const EMPTY: Self = Data::Zeros(0);

    /// How many bytes.
    pub const fn len(&self) -> usize {
        match self {
            Data::Bytes(bytes) => bytes.len(),
            Data::Zeros(count) => *count,
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the bytes at byte `at` of `bytes` and returns where they end.
    pub(crate) fn put(&self, bytes: &mut [u8], at: usize) -> usize {
        let end = at + self.len();
        match self {
            Data::Bytes(data) => bytes[at..end].copy_from_slice(data),
            Data::Zeros(_) => bytes[at..end].fill(0),
        }
        end
    }
}

/// Equal where the bytes are.
impl PartialEq for Data<'_> {
    fn eq(&self, other: &Self) -> bool {
        let zeros = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        self.len() == other.len()
            && match (self, other) {
                (Data::Bytes(left), Data::Bytes(right)) => left == right,
                (Data::Bytes(bytes), Data::Zeros(_)) | (Data::Zeros(_), Data::Bytes(bytes)) => {
                    zeros(bytes)
                }
                (Data::Zeros(_), Data::Zeros(_)) => true,
            }
    }
}

impl Eq for Data<'_> {}

impl fmt::Debug for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::Bytes(bytes) => write!(f, "{bytes:02x?}"),
            Data::Zeros(count) => write!(f, "[00; {count}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_where_the_bytes_are() {
        assert_eq!(Data::Bytes(&[0, 0]), Data::Zeros(2));
        assert_ne!(Data::Bytes(&[0, 0]), Data::Zeros(3));
        assert_ne!(Data::Zeros(2), Data::Bytes(&[0, 1]));
        assert_eq!(Data::Bytes(&[4, 1]), Data::Bytes(&[4, 1]));
        let mut bytes = [7; 4];
        assert_eq!(Data::Zeros(2).put(&mut bytes, 1), 3);
        assert_eq!(bytes, [7, 0, 0, 7]);
    }
}
