//! `pg_profile_lookup.ini`: a line for each speed and cable, `speed cable size xon xoff threshold [xon_offset]`.

use std::path::Path;

use softfabric_units::{Bytes, Rate};

use super::document::threshold;
use crate::headroom::CableLength;
use crate::import::ImportError;
use crate::import::lines::{Word, read};
use crate::plan::{Alpha, IngressLimit, Xon};

/// A line of a headroom table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadroomEntry {
    /// The line of the file.
    pub line: usize,
    /// The port's speed.
    pub speed: Rate,
    /// The longest cable that it is for.
    pub cable: CableLength,
    /// What is set aside for the group: with the headroom in it where that is not larger.
    pub size: Bytes,
    /// The group resumes at or below.
    pub xon: Bytes,
    /// The headroom.
    pub xoff: Bytes,
    /// How much of the free memory the group may take.
    pub threshold: Alpha,
    /// The group resumes so far under the point at which it pauses.
    pub xon_offset: Option<Bytes>,
}

impl HeadroomEntry {
    /// What is always there for the group beside the headroom.
    pub fn reserved(&self) -> Bytes {
        if self.size >= self.xoff {
            self.size - self.xoff
        } else {
            // With a pool of headroom, `size` is what is guaranteed.
            self.size
        }
    }

    pub(super) fn apply(&self, ingress: &mut IngressLimit) {
        *ingress = IngressLimit {
            reserved: self.reserved(),
            threshold: self.threshold,
            headroom: Some(self.xoff),
            xon: Xon {
                size: self.xon,
                offset: self.xon_offset,
            },
        };
    }
}

/// Reads a headroom table. Comments begin with `#`.
///
/// # Errors
/// If a line has other columns, or a number is wrong.
pub fn read_headroom_table(file: &Path, text: &str) -> Result<Vec<HeadroomEntry>, ImportError> {
    let mut entries = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let words: Vec<_> = content
            .split_whitespace()
            .map(|text| Word { text, line })
            .collect();
        if words.is_empty() || words[0].text.starts_with('#') {
            continue;
        }
        let [speed, cable, size, xon, xoff, limit, rest @ ..] = &words[..] else {
            let found = format!("{} columns", words.len());
            let allowed = "speed cable size xon xoff threshold [xon_offset]";
            return Err(ImportError::new(file, Some(line), "a line", found, allowed));
        };
        let bytes = |word: &Word<'_>, field: &str| -> Result<Bytes, ImportError> {
            Ok(Bytes::new(read(file, *word, field, "bytes")?))
        };
        let megabits: u64 = read(file, *speed, "speed", "Mb/s, such as 100000")?;
        let exponent: i64 = read(
            file,
            *limit,
            "threshold",
            "an exponent from -8 to 7, or bytes",
        )?;
        entries.push(HeadroomEntry {
            line,
            speed: Rate::mbps(megabits),
            cable: read(file, *cable, "cable", "metres, such as 40m")?,
            size: bytes(size, "size")?,
            xon: bytes(xon, "xon")?,
            xoff: bytes(xoff, "xoff")?,
            // A pool with static thresholds has bytes here; no exponent is that large.
            threshold: if exponent > 7 {
                Alpha::Static(Bytes::new(exponent as u64))
            } else {
                threshold(exponent)
            },
            xon_offset: match rest {
                [] => None,
                [offset, ..] => Some(bytes(offset, "xon_offset")?),
            },
        });
        if let [_, extra, ..] = rest {
            let found = format!("`{}`", extra.text);
            let allowed = "the end of the line";
            return Err(ImportError::new(
                file,
                Some(line),
                "what follows xon_offset",
                found,
                allowed,
            ));
        }
    }
    Ok(entries)
}

/// The line for a speed and the shortest cable that is long enough.
pub(super) fn find(
    file: &Path,
    entries: &[HeadroomEntry],
    speed: Rate,
    cable: CableLength,
) -> Result<HeadroomEntry, ImportError> {
    let fitting = entries
        .iter()
        .filter(|entry| entry.speed == speed && entry.cable >= cable)
        .min_by_key(|entry| entry.cable);
    fitting.copied().ok_or_else(|| {
        let known: Vec<_> = entries
            .iter()
            .map(|entry| format!("{} over {}", entry.speed, entry.cable))
            .collect();
        let found = format!("{speed} over {cable}, which is not tabled");
        ImportError::new(file, None, "the port", found, known.join(", "))
    })
}
