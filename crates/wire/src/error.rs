//! The one decoding error: what was found, what was needed, and where.

use thiserror::Error;

/// Why bytes are not the packet that was asked for. Offsets count from the first byte given to the decoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum DecodeError {
    /// The bytes end before the header or field does.
    #[error("{what} at byte {offset} needs {needed} bytes, found {found}")]
    Truncated {
        /// The header or field.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// Its length in bytes.
        needed: usize,
        /// How many bytes are left.
        found: usize,
    },
    /// A field holds a value that the decoder does not accept.
    #[error("{what} at byte {offset} is {found:#x}, needed {needed}")]
    Value {
        /// The field.
        what: &'static str,
        /// The byte that it is in, or starts in.
        offset: usize,
        /// What it holds.
        found: u64,
        /// What it may hold, for a sentence.
        needed: &'static str,
    },
}

impl DecodeError {
    /// The same error, seen from bytes that start `base` bytes earlier.
    #[must_use]
    pub const fn at(self, base: usize) -> Self {
        match self {
            Self::Truncated {
                what,
                offset,
                needed,
                found,
            } => Self::Truncated {
                what,
                offset: offset + base,
                needed,
                found,
            },
            Self::Value {
                what,
                offset,
                found,
                needed,
            } => Self::Value {
                what,
                offset: offset + base,
                found,
                needed,
            },
        }
    }

    /// The byte that the error is about.
    pub const fn offset(&self) -> usize {
        match self {
            Self::Truncated { offset, .. } | Self::Value { offset, .. } => *offset,
        }
    }
}
