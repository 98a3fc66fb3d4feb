//! The options of a TCP header that connections use: maximum segment size, window scale, SACK, timestamps.

use crate::error::DecodeError;

/// The options that are there. At most 40 bytes: with timestamps three SACK blocks fit, without them four.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// The largest payload that the sender takes; only with SYN (RFC 9293, 3.7.1).
    pub maximum_segment: Option<u16>,
    /// By how much windows are shifted; only with SYN (RFC 7323, 2.2).
    pub window_scale: Option<u8>,
    /// The sender understands SACK; only with SYN (RFC 2018, 2).
    pub sack_permitted: bool,
    /// RFC 7323, 3.2.
    pub timestamps: Option<Timestamps>,
    /// What has arrived ahead (RFC 2018, 3).
    pub sack: SackBlocks,
}

/// The timestamps option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the last one heard from the other end.
    pub echo: u32,
}

/// Ranges of sequence numbers that have arrived ahead; each from its first number to the one after its last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); Self::MOST],
    count: u8,
}

impl SackBlocks {
    /// So many fit without other options.
    pub const MOST: usize = 4;

    /// Adds a block; one more than [`SackBlocks::MOST`] is left out.
    pub fn push(&mut self, start: u32, end: u32) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            *block = (start, end);
            self.count += 1;
        }
    }

    /// The blocks, in their order on the wire.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, u32)> + '_ {
        self.blocks[..usize::from(self.count)].iter().copied()
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NO_OPERATION: u8 = 1;
    pub(super) const MAXIMUM_SEGMENT: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
}

/// The most bytes that options take.
const ROOM: usize = 40;

/// Bytes in a row, as options are written.
struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let end = self.at + bytes.len();
        self.bytes[self.at..end].copy_from_slice(bytes);
        self.at = end;
    }

    /// Puts no-operations before an option of `length` bytes, so that it ends at a multiple of 4.
    fn align(&mut self, length: usize) {
        while !(self.at + length).is_multiple_of(4) {
            self.put(&[kind::NO_OPERATION]);
        }
    }
}

impl TcpOptions {
    /// How many bytes they take on the wire, padding included: a multiple of 4.
    pub fn length(&self) -> usize {
        let padded = |present: bool, length: usize| {
            if present {
                length.next_multiple_of(4)
            } else {
                0
            }
        };
        padded(self.maximum_segment.is_some(), 4)
            + padded(self.sack_permitted, 2)
            + padded(self.timestamps.is_some(), 10)
            + padded(self.window_scale.is_some(), 3)
            + padded(!self.sack.is_empty(), 2 + 8 * self.sack.len())
    }

    /// Writes them, each behind the no-operations that align it, and returns [`TcpOptions::length`].
    ///
    /// # Panics
    /// If `bytes` is shorter, or they take more than the 40 bytes that a header has for options.
    pub fn encode(&self, bytes: &mut [u8]) -> usize {
        assert!(self.length() <= ROOM, "TCP options are at most 40 bytes");
        self.write(bytes, true)
    }

    /// Writes them without padding and returns how many bytes they took: a form that [`TcpOptions::decode`] reads, for
    /// who keeps options where room is scarce.
    ///
    /// # Panics
    /// If `bytes` is too short.
    pub fn encode_unpadded(&self, bytes: &mut [u8]) -> usize {
        self.write(bytes, false)
    }

    fn write(&self, bytes: &mut [u8], aligned: bool) -> usize {
        let mut writer = Writer { bytes, at: 0 };
        let option = |writer: &mut Writer<'_>, number: u8, value: &[&[u8]]| {
            let length = 2 + value.iter().map(|part| part.len()).sum::<usize>();
            if aligned {
                writer.align(length);
            }
            writer.put(&[number, length as u8]);
            value.iter().for_each(|part| writer.put(part));
        };
        if let Some(bytes) = self.maximum_segment {
            option(&mut writer, kind::MAXIMUM_SEGMENT, &[&bytes.to_be_bytes()]);
        }
        if self.sack_permitted {
            option(&mut writer, kind::SACK_PERMITTED, &[]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            let (value, echo) = (value.to_be_bytes(), echo.to_be_bytes());
            option(&mut writer, kind::TIMESTAMPS, &[&value, &echo]);
        }
        if let Some(shift) = self.window_scale {
            option(&mut writer, kind::WINDOW_SCALE, &[&[shift]]);
        }
        if !self.sack.is_empty() {
            let mut blocks = [0; 8 * SackBlocks::MOST];
            for (place, (start, end)) in blocks.chunks_exact_mut(8).zip(self.sack.iter()) {
                place[..4].copy_from_slice(&start.to_be_bytes());
                place[4..].copy_from_slice(&end.to_be_bytes());
            }
            option(&mut writer, kind::SACK, &[&blocks[..8 * self.sack.len()]]);
        }
        writer.at
    }

    /// Reads options that fill `bytes`, or end with an end-of-list.
    ///
    /// # Errors
    /// If an option ends after `bytes` does, or has another length than it must have.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut options = Self::default();
        let mut at = 0;
        while let Some(&number) = bytes.get(at) {
            match number {
                kind::END => break,
                kind::NO_OPERATION => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let length = usize::from(bytes.get(at + 1).copied().unwrap_or_default());
            let wrong = |needed| DecodeError::Value {
                what: "TCP option length",
                offset: at + 1,
                found: length as u64,
                needed,
            };
            if length < 2 || at + length > bytes.len() {
                return Err(wrong("2 or more, within the header"));
            }
            let value = &bytes[at + 2..at + length];
            let word = |at: usize| {
                let mut word = [0; 4];
                word.copy_from_slice(&value[at..at + 4]);
                u32::from_be_bytes(word)
            };
            match (number, length) {
                (kind::MAXIMUM_SEGMENT, 4) => {
                    options.maximum_segment = Some(u16::from_be_bytes([value[0], value[1]]));
                }
                (kind::WINDOW_SCALE, 3) => options.window_scale = Some(value[0]),
                (kind::SACK_PERMITTED, 2) => options.sack_permitted = true,
                (kind::TIMESTAMPS, 10) => {
                    options.timestamps = Some(Timestamps {
                        value: word(0),
                        echo: word(4),
                    });
                }
                (kind::SACK, 10 | 18 | 26 | 34) => {
                    options.sack = SackBlocks::default();
                    for block in 0..value.len() / 8 {
                        options.sack.push(word(8 * block), word(8 * block + 4));
                    }
                }
                (kind::MAXIMUM_SEGMENT, _) => return Err(wrong("4 for a maximum segment size")),
                (kind::WINDOW_SCALE, _) => return Err(wrong("3 for a window scale")),
                (kind::SACK_PERMITTED, _) => return Err(wrong("2 for SACK permitted")),
                (kind::TIMESTAMPS, _) => return Err(wrong("10 for timestamps")),
                (kind::SACK, _) => return Err(wrong("10, 18, 26 or 34 for SACK")),
                _ => {}
            }
            at += length;
        }
        Ok(options)
    }
}
