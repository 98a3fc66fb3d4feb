//! Config files: words `KEY value …`, in any order; what is not there has HPCC's default.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use softfabric_units::Rate;

use crate::import::ImportError;
use crate::import::lines::{Word, Words, read};

/// How many values a key has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    /// So many.
    Count(usize),
    /// A count, then so many pairs.
    Pairs,
}

/// The keys that HPCC's `third.cc` reads.
const KEYS: &[(&str, Values)] = &[
    ("ACK_HIGH_PRIO", Values::Count(1)),
    ("ALPHA_RESUME_INTERVAL", Values::Count(1)),
    ("BUFFER_SIZE", Values::Count(1)),
    ("CC_MODE", Values::Count(1)),
    ("CLAMP_TARGET_RATE", Values::Count(1)),
    ("DATA_RATE", Values::Count(1)),
    ("DCTCP_RATE_AI", Values::Count(1)),
    ("ENABLE_QCN", Values::Count(1)),
    ("ENABLE_TRACE", Values::Count(1)),
    ("ERROR_RATE_PER_LINK", Values::Count(1)),
    ("EWMA_GAIN", Values::Count(1)),
    ("FAST_REACT", Values::Count(1)),
    ("FAST_RECOVERY_TIMES", Values::Count(1)),
    ("FCT_OUTPUT_FILE", Values::Count(1)),
    ("FLOW_FILE", Values::Count(1)),
    ("GLOBAL_T", Values::Count(1)),
    ("HAS_WIN", Values::Count(1)),
    ("INT_MULTI", Values::Count(1)),
    ("KMAX_MAP", Values::Pairs),
    ("KMIN_MAP", Values::Pairs),
    ("L2_ACK_INTERVAL", Values::Count(1)),
    ("L2_BACK_TO_ZERO", Values::Count(1)),
    ("L2_CHUNK_SIZE", Values::Count(1)),
    ("LINK_DELAY", Values::Count(1)),
    ("LINK_DOWN", Values::Count(3)),
    ("MI_THRESH", Values::Count(1)),
    ("MIN_RATE", Values::Count(1)),
    ("MULTI_RATE", Values::Count(1)),
    ("PACKET_PAYLOAD_SIZE", Values::Count(1)),
    ("PAUSE_TIME", Values::Count(1)),
    ("PFC_OUTPUT_FILE", Values::Count(1)),
    ("PINT_LOG_BASE", Values::Count(1)),
    ("PINT_PROB", Values::Count(1)),
    ("PMAX_MAP", Values::Pairs),
    ("QLEN_MON_END", Values::Count(1)),
    ("QLEN_MON_FILE", Values::Count(1)),
    ("QLEN_MON_START", Values::Count(1)),
    ("RATE_AI", Values::Count(1)),
    ("RATE_BOUND", Values::Count(1)),
    ("RATE_DECREASE_INTERVAL", Values::Count(1)),
    ("RATE_HAI", Values::Count(1)),
    ("RP_TIMER", Values::Count(1)),
    ("SAMPLE_FEEDBACK", Values::Count(1)),
    ("SIMULATOR_STOP_TIME", Values::Count(1)),
    ("TOPOLOGY_FILE", Values::Count(1)),
    ("TRACE_FILE", Values::Count(1)),
    ("TRACE_OUTPUT_FILE", Values::Count(1)),
    ("USE_DYNAMIC_PFC_THRESHOLD", Values::Count(1)),
    ("U_TARGET", Values::Count(1)),
    ("VAR_WIN", Values::Count(1)),
];

/// A config file as it was read: the last word for each key.
#[derive(Debug)]
pub(super) struct Config<'a> {
    pub(super) file: &'a Path,
    values: BTreeMap<&'static str, Vec<Word<'a>>>,
    notes: Vec<String>,
}

impl<'a> Config<'a> {
    pub(super) fn read(file: &'a Path, text: &'a str) -> Result<Self, ImportError> {
        let mut words = Words::new(file, text);
        let mut config = Self {
            file,
            values: BTreeMap::new(),
            notes: Vec::new(),
        };
        while let Some(word) = words.peek() {
            words.take("a key", "a key")?;
            let Some((key, values)) = KEYS.iter().find(|(key, _)| *key == word.text) else {
                config.note_unknown(word);
                continue;
            };
            let allowed = format!("a value of {key}");
            let mut found = Vec::new();
            let count = match values {
                Values::Count(count) => *count,
                Values::Pairs => 2 * words.read::<usize>(key, "the number of pairs")?,
            };
            for _ in 0..count {
                // TRACE_OUTPUT_FILE takes the rest of HPCC's command line besides, which is not there.
                let value = words.take(key, &allowed)?;
                if KEYS.iter().any(|(key, _)| *key == value.text) {
                    let text = format!("followed by the key {}", value.text);
                    let error = ImportError::new(file, Some(word.line), *key, text, &allowed);
                    return Err(error.advise("values are missing"));
                }
                found.push(value);
            }
            config.values.insert(key, found);
        }
        for key in ["TOPOLOGY_FILE", "FLOW_FILE"] {
            if !config.values.contains_key(key) {
                return Err(ImportError::new(file, None, key, "missing", "a file name")
                    .advise("is this an HPCC config file?"));
            }
        }
        Ok(config)
    }

    pub(super) fn topology_file(&self) -> &'a str {
        self.text("TOPOLOGY_FILE", "")
    }

    pub(super) fn flow_file(&self) -> &'a str {
        self.text("FLOW_FILE", "")
    }

    pub(super) fn fct_output(&self) -> &'a str {
        self.text("FCT_OUTPUT_FILE", "fct.txt")
    }

    pub(super) fn pfc_output(&self) -> &'a str {
        self.text("PFC_OUTPUT_FILE", "pfc.txt")
    }

    /// `ERROR_RATE_PER_LINK`; checked by [`Config::check`].
    pub(super) fn error_rate(&self) -> f64 {
        self.number("ERROR_RATE_PER_LINK", 0.0).unwrap_or(0.0)
    }

    /// Refuses what cannot be done as HPCC does it.
    pub(super) fn check(&self) -> Result<(), ImportError> {
        let mode: u32 = self.number("CC_MODE", 1)?;
        if mode != 1 {
            let known = match mode {
                3 => ", HPCC",
                7 => ", TIMELY",
                8 => ", DCTCP",
                10 => ", HPCC-PINT",
                _ => "",
            };
            return Err(self
                .wrong("CC_MODE", format!("{mode}{known}"), "1, DCQCN")
                .advise("no other congestion control of HPCC is available"));
        }
        let wanted = [
            (
                "HAS_WIN",
                1,
                0,
                "windows of HPCC are not available; its published DCQCN runs have none",
            ),
            ("RATE_BOUND", 1, 1, "sending is always paced by the rate"),
            ("L2_ACK_INTERVAL", 0, 1, "every packet is acknowledged"),
        ];
        for (key, default, needed, advice) in wanted {
            let found: u32 = self.number(key, default)?;
            if found != needed {
                let found = match self.values.get(key) {
                    Some(_) => found.to_string(),
                    None => format!("missing, so {default}"),
                };
                let error = self.wrong(key, found, needed.to_string());
                return Err(error.advise(advice));
            }
        }
        let error_rate: f64 = self.number("ERROR_RATE_PER_LINK", 0.0)?;
        if !(0.0..=1.0).contains(&error_rate) {
            let found = error_rate.to_string();
            return Err(self.wrong("ERROR_RATE_PER_LINK", found, "a probability from 0 to 1"));
        }
        Ok(())
    }

    /// Settings without effect, and why.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        let on = |key| self.number::<f64>(key, 0.0).is_ok_and(|value| value != 0.0);
        if on("ENABLE_TRACE") {
            notes.push("ENABLE_TRACE 1: HPCC's binary trace is not written".to_owned());
        }
        let start = self.number::<f64>("QLEN_MON_START", 2e9).unwrap_or(2e9);
        let end = self.number::<f64>("QLEN_MON_END", 2.1e9).unwrap_or(2.1e9);
        if self.values.contains_key("QLEN_MON_FILE") && end - start > 100.0 {
            notes.push("QLEN_MON_FILE: HPCC's queue length file is not written".to_owned());
        }
        if self.number::<f64>("USE_DYNAMIC_PFC_THRESHOLD", 1.0) == Ok(0.0) {
            notes.push(
                "USE_DYNAMIC_PFC_THRESHOLD 0: without effect, as in HPCC, whose threshold is always \
                 dynamic"
                    .to_owned(),
            );
        }
        notes
    }

    pub(super) fn text(&self, key: &str, default: &'a str) -> &'a str {
        (self.values.get(key))
            .and_then(|words| words.first())
            .map_or(default, |word| word.text)
    }

    /// The number of a key with one value.
    pub(super) fn number<T: FromStr>(
        &self,
        key: &'static str,
        default: T,
    ) -> Result<T, ImportError> {
        match self.values.get(key).and_then(|words| words.first()) {
            None => Ok(default),
            Some(word) => read(self.file, *word, key, "a number"),
        }
    }

    /// The switch of a key: 0 or 1.
    pub(super) fn flag(&self, key: &'static str, default: bool) -> Result<bool, ImportError> {
        match self.number(key, u32::from(default))? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.wrong(key, other.to_string(), "0 or 1")),
        }
    }

    /// The rate of a key.
    pub(super) fn rate(
        &self,
        key: &'static str,
        default: Option<Rate>,
    ) -> Result<Rate, ImportError> {
        match (
            self.values.get(key).and_then(|words| words.first()),
            default,
        ) {
            (Some(word), _) => read(self.file, *word, key, "a rate such as 20Mb/s"),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(self.wrong(key, "missing", "a rate such as 20Mb/s")),
        }
    }

    /// The pairs of a map from rates to values.
    pub(super) fn map(&self, key: &'static str) -> Result<Vec<(Rate, f64)>, ImportError> {
        let words = self.values.get(key).map_or(&[][..], Vec::as_slice);
        (words.chunks_exact(2))
            .map(|pair| {
                let rate: u64 = read(self.file, pair[0], key, "a rate in bit/s")?;
                let value: f64 = read(self.file, pair[1], key, "a number")?;
                Ok((Rate::bps(rate), value))
            })
            .collect()
    }

    /// Three numbers: `LINK_DOWN`.
    pub(super) fn three(&self, key: &'static str) -> Result<[u64; 3], ImportError> {
        let Some(words) = self.values.get(key) else {
            return Ok([0; 3]);
        };
        let mut numbers = [0; 3];
        for (number, word) in numbers.iter_mut().zip(words) {
            *number = read(self.file, *word, key, "a whole number")?;
        }
        Ok(numbers)
    }

    /// An error at the line of a key.
    pub(super) fn wrong(
        &self,
        key: &str,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ImportError {
        let line = (self.values.get(key))
            .and_then(|words| words.first())
            .map(|word| word.line);
        ImportError::new(self.file, line, key, found, allowed)
    }

    /// HPCC skips unknown words without a sound; a mistyped key must not go unseen.
    fn note_unknown(&mut self, word: Word<'_>) {
        let looks_like_key = word.text.len() > 2
            && (word.text.bytes()).all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        if !looks_like_key {
            return;
        }
        let nearest = (KEYS.iter())
            .map(|(key, _)| (strsim::damerau_levenshtein(key, word.text), *key))
            .min()
            .filter(|(distance, _)| *distance <= 3)
            .map_or_else(String::new, |(_, key)| format!(" (did you mean {key}?)"));
        self.notes.push(format!(
            "line {}: {} is not a key of HPCC, so it has no effect{nearest}",
            word.line, word.text
        ));
    }
}
