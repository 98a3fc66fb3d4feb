//! What the model knows of a side's memory: bytes that are certain, bytes with two possibilities, and bytes that may be
//! anything.

use std::ops::Range;

/// The model of one side's memory over one phase. What nothing is said about stays as it was.
pub(crate) struct Expected<'a> {
    before: &'a [u8],
    now: Vec<u8>,
    /// The second possibility of a byte, where there is one.
    other: Vec<(Range<usize>, Vec<u8>)>,
    anything: Vec<Range<usize>>,
}

fn range(address: u64, length: usize) -> Range<usize> {
    address as usize..address as usize + length
}

impl<'a> Expected<'a> {
    pub(crate) fn new(before: &'a [u8]) -> Self {
        Self {
            before,
            now: before.to_vec(),
            other: Vec::new(),
            anything: Vec::new(),
        }
    }

    /// What was there before the phase.
    pub(crate) fn before(&self, address: u64, length: usize) -> &'a [u8] {
        &self.before[range(address, length)]
    }

    /// These bytes are there now.
    pub(crate) fn becomes(&mut self, address: u64, bytes: &[u8]) {
        self.now[range(address, bytes.len())].copy_from_slice(bytes);
    }

    /// Each byte is what it was, or the one of `bytes`.
    pub(crate) fn may_become(&mut self, address: u64, bytes: &[u8]) {
        self.other
            .push((range(address, bytes.len()), bytes.to_vec()));
    }

    /// Nothing is known.
    pub(crate) fn anything(&mut self, address: u64, length: usize) {
        self.anything.push(range(address, length));
    }

    /// Compares with what is there; the address of the first byte that cannot be.
    pub(crate) fn differs(mut self, found: &[u8]) -> Option<usize> {
        for range in self.anything {
            self.now[range.clone()].copy_from_slice(&found[range]);
        }
        for (range, bytes) in self.other {
            for (address, byte) in range.zip(bytes) {
                if found[address] == byte {
                    self.now[address] = byte;
                }
            }
        }
        if self.now == found {
            return None;
        }
        self.now
            .iter()
            .zip(found)
            .position(|(expected, found)| expected != found)
    }
}
