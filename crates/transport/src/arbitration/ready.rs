//! A set of small numbers that is asked for its next member in turn.
//!
//! ```text
//! summary   1 0 …          bit w: word w has a member
//! words     0100…  0000…   bit s % 64 of word s / 64: s is a member
//! ```
//!
//! Insertion and removal are O(1), the next member is found by two bit scans for up to 4096 numbers. Invariant: a
//! summary bit is set exactly where its word is not zero.

#[derive(Debug, Default)]
pub(crate) struct ReadySet {
    words: Vec<u64>,
    summary: Vec<u64>,
    /// The member served last.
    last: u32,
}

impl ReadySet {
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) {
        let word = (number / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
            self.summary.resize(word / 64 + 1, 0);
        }
        self.words[word] |= 1 << (number % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        let word = (number / 64) as usize;
        if let Some(bits) = self.words.get_mut(word) {
            *bits &= !(1 << (number % 64));
            if *bits == 0 {
                self.summary[word / 64] &= !(1 << (word % 64));
            }
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.summary.iter().all(|&bits| bits == 0)
    }

    /// The first member after the one served last, going around.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        let found = self
            .first_from(self.last.wrapping_add(1))
            .or_else(|| self.first_from(0))?;
        self.last = found;
        Some(found)
    }

    #[inline]
    fn first_from(&self, start: u32) -> Option<u32> {
        let word = (start / 64) as usize;
        let bits = self.words.get(word)? & (u64::MAX << (start % 64));
        if bits != 0 {
            return Some(word as u32 * 64 + bits.trailing_zeros());
        }
        let after = word + 1;
        let mut index = after / 64;
        let mut bits = self.summary.get(index)? & (u64::MAX << (after % 64));
        while bits == 0 {
            index += 1;
            bits = *self.summary.get(index)?;
        }
        let word = index * 64 + bits.trailing_zeros() as usize;
        Some(word as u32 * 64 + self.words[word].trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_take_turns() {
        let mut set = ReadySet::default();
        assert_eq!(set.next(), None);
        for number in [3, 64, 5000, 70_000] {
            set.insert(number);
        }
        let round: Vec<_> = (0..5).filter_map(|_| set.next()).collect();
        assert_eq!(round, [3, 64, 5000, 70_000, 3]);
        set.remove(64);
        assert_eq!(set.next(), Some(5000));
        set.remove(5000);
        set.remove(70_000);
        assert_eq!(set.next(), Some(3));
        set.remove(3);
        assert!(set.is_empty());
        assert_eq!(set.next(), None);
    }

    #[test]
    fn a_lone_member_is_served_again_and_again() {
        let mut set = ReadySet::default();
        set.insert(63);
        assert_eq!((set.next(), set.next()), (Some(63), Some(63)));
    }
}
