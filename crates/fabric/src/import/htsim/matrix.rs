//! Connection matrices: `Nodes N`, `Connections M`, `[Triggers K]`, `[Failures F]`, then a line for each.
//!
//! ```text
//! 7->15 id 1 start 0 size 2000000 send_done_trigger 1
//! 7->0  id 2 trigger 1 size 2000000 prio 3
//! trigger id 1 oneshot | multishot | barrier count 4
//! failure switch_type AGG switch_id 3 link_id 0
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use softfabric_units::{Bytes, Time};

use super::{AT_ONCE, LARGEST, NO_ID};
use crate::import::ImportError;
use crate::import::lines::{Word, read};
use crate::plan::{NodeId, Trigger, TriggerId};

/// In what `start` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartUnit {
    /// 10⁻¹² s, as htsim's parser takes it.
    Picoseconds,
    /// 10⁻⁶ s, as one of its programs takes it.
    Microseconds,
}

/// A connection matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionMatrix {
    /// How many hosts there are; host n is `NodeId(n)`.
    pub nodes: u32,
    /// The connections, in the order of the file.
    pub connections: Vec<Connection>,
    /// The triggers; number n of the file is that of `trigger_ids[n]`.
    pub triggers: Vec<Trigger>,
    /// The ids of the triggers in the file.
    pub trigger_ids: Vec<u32>,
    /// Links that are missing.
    pub failures: Vec<Failure>,
    /// What has no effect here.
    pub notes: Vec<String>,
}

/// A line of a connection matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Who sends.
    pub source: NodeId,
    /// Who receives.
    pub destination: NodeId,
    /// How much.
    pub bytes: Bytes,
    /// When it starts, unless a trigger starts it.
    pub start: Time,
    /// What starts it, unless the clock does.
    pub trigger: Option<TriggerId>,
    /// What is hit when the sender has all acknowledgements.
    pub on_sent: Option<TriggerId>,
    /// What is hit when the receiver has all bytes.
    pub on_received: Option<TriggerId>,
}

/// An uplink of an aggregation switch that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The aggregation switch.
    pub switch: u32,
    /// Which of its uplinks.
    pub link: u32,
    /// The line of the file.
    pub line: usize,
}

/// Reads a connection matrix.
///
/// # Errors
/// If a line is wrong, or the counts of the header are.
pub fn read_matrix(
    file: &Path,
    text: &str,
    unit: StartUnit,
) -> Result<ConnectionMatrix, ImportError> {
    let mut reader = Reader {
        file,
        unit,
        header: BTreeMap::new(),
        ids: BTreeMap::new(),
        known: BTreeMap::new(),
        matrix: ConnectionMatrix {
            nodes: 0,
            connections: Vec::new(),
            triggers: Vec::new(),
            trigger_ids: Vec::new(),
            failures: Vec::new(),
            notes: Vec::new(),
        },
        has_priorities: false,
    };
    for (line, content) in (1..).zip(text.lines()) {
        let words: Vec<_> = content
            .split_whitespace()
            .map(|text| Word { text, line })
            .collect();
        if let Some(first) = words.first().filter(|first| !first.text.starts_with('#')) {
            reader.line(*first, &words[1..])?;
        }
    }
    reader.finish()
}

struct Reader<'f> {
    file: &'f Path,
    unit: StartUnit,
    /// The counts of the header and their lines.
    header: BTreeMap<&'static str, (u32, usize)>,
    /// The places of the triggers that connections name, and the first line that names each.
    ids: BTreeMap<u32, (TriggerId, usize)>,
    /// The triggers that have lines of their own.
    known: BTreeMap<u32, usize>,
    matrix: ConnectionMatrix,
    has_priorities: bool,
}

const HEADER: [&str; 4] = ["Nodes", "Connections", "Triggers", "Failures"];

impl Reader<'_> {
    fn line(&mut self, first: Word<'_>, rest: &[Word<'_>]) -> Result<(), ImportError> {
        if let Some(key) = HEADER.into_iter().find(|key| *key == first.text) {
            let count = self.number(key, first, rest.first())?;
            self.header.insert(key, (count, first.line));
            if key == "Nodes" {
                self.matrix.nodes = count;
            }
            return Ok(());
        }
        if let Some((source, destination)) = first.text.split_once("->") {
            return self.connection(first, source, destination, rest);
        }
        match first.text {
            "trigger" => self.trigger(first, rest),
            "failure" => self.failure(first, rest),
            _ => Err(self.wrong(
                first,
                "the first word of a line",
                format!("`{}`", first.text),
                "Nodes, Connections, Triggers, Failures, a->b, trigger or failure",
            )),
        }
    }

    fn connection(
        &mut self,
        first: Word<'_>,
        source: &str,
        destination: &str,
        rest: &[Word<'_>],
    ) -> Result<(), ImportError> {
        let source = self.host(first, "the sender", source)?;
        let destination = self.host(first, "the receiver", destination)?;
        if source == destination {
            let found = format!("`{}`", first.text);
            return Err(self.wrong(first, "the receiver", found, "another host than the sender"));
        }
        let mut connection = Connection {
            source,
            destination,
            bytes: Bytes::ZERO,
            start: AT_ONCE,
            trigger: None,
            on_sent: None,
            on_received: None,
        };
        let mut has_start = false;
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            match word.text {
                "start" => {
                    connection.start = self.start(*word, words.next())?;
                    has_start = true;
                }
                "size" => {
                    let size = self.number("size", *word, words.next())?;
                    connection.bytes = Bytes::new(u64::from(size));
                }
                "id" => {
                    if self.number("id", *word, words.next())? == NO_ID.0 {
                        return Err(self.wrong(*word, "id", "0", "1 or more"));
                    }
                }
                "trigger" => connection.trigger = Some(self.named(*word, words.next())?),
                "send_done_trigger" => connection.on_sent = Some(self.named(*word, words.next())?),
                "recv_done_trigger" => {
                    connection.on_received = Some(self.named(*word, words.next())?);
                }
                "prio" => {
                    self.number("prio", *word, words.next())?;
                    self.has_priorities = true;
                }
                other => {
                    return Err(self.wrong(
                        *word,
                        "a word of a connection",
                        format!("`{other}`"),
                        "id, start, size, trigger, send_done_trigger, recv_done_trigger or prio",
                    ));
                }
            }
        }
        if has_start == connection.trigger.is_some() {
            let found = if has_start { "both" } else { "neither" };
            let allowed = "either `start` or `trigger`";
            return Err(self.wrong(first, "what starts a connection", found, allowed));
        }
        if connection.bytes.is_zero() || connection.bytes > LARGEST {
            let found = connection.bytes.to_string();
            return Err(self.wrong(first, "size", found, "1 byte or more"));
        }
        self.matrix.connections.push(connection);
        Ok(())
    }

    fn trigger(&mut self, first: Word<'_>, rest: &[Word<'_>]) -> Result<(), ImportError> {
        let mut id = NO_ID.0;
        let mut count = 1;
        let mut kind = None;
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            match word.text {
                "id" => id = self.number("id", *word, words.next())?,
                "count" => count = self.number("count", *word, words.next())?,
                "oneshot" | "multishot" | "barrier" => kind = Some(word.text),
                other => {
                    return Err(self.wrong(
                        *word,
                        "a word of a trigger",
                        format!("`{other}`"),
                        "id, count, oneshot, multishot or barrier",
                    ));
                }
            }
        }
        if id == NO_ID.0 {
            return Err(self.wrong(first, "the id of a trigger", "missing or 0", "1 or more"));
        }
        let trigger = match kind {
            Some("oneshot") => Trigger {
                count: 1,
                repeat: false,
            },
            Some("multishot") => Trigger {
                count: 1,
                repeat: true,
            },
            Some(_) if count > 0 => Trigger {
                count,
                repeat: false,
            },
            Some(_) => return Err(self.wrong(first, "the count of a barrier", "0", "1 or more")),
            None => {
                let allowed = "oneshot, multishot or barrier";
                return Err(self.wrong(first, "the kind of a trigger", "missing", allowed));
            }
        };
        if self.known.insert(id, first.line).is_some() {
            let found = format!("{id}, for the second time");
            return Err(self.wrong(first, "the id of a trigger", found, "an id of its own"));
        }
        let place = self.place_of(id, first.line);
        self.matrix.triggers[place.0 as usize] = trigger;
        Ok(())
    }

    fn failure(&mut self, first: Word<'_>, rest: &[Word<'_>]) -> Result<(), ImportError> {
        let mut failure = Failure {
            switch: 0,
            link: 0,
            line: first.line,
        };
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            match word.text {
                "switch_type" => {
                    let kind = words.next().map_or("missing", |word| word.text);
                    if kind != "AGG" {
                        let error = self.wrong(*word, "switch_type", kind, "AGG");
                        return Err(error.advise("htsim itself fails no other links"));
                    }
                }
                "switch_id" => failure.switch = self.number("switch_id", *word, words.next())?,
                "link_id" => failure.link = self.number("link_id", *word, words.next())?,
                other => {
                    return Err(self.wrong(
                        *word,
                        "a word of a failure",
                        format!("`{other}`"),
                        "switch_type, switch_id or link_id",
                    ));
                }
            }
        }
        self.matrix.failures.push(failure);
        Ok(())
    }

    fn finish(mut self) -> Result<ConnectionMatrix, ImportError> {
        if self.matrix.nodes == 0 {
            let error = ImportError::new(self.file, None, "Nodes", "missing", "a number of hosts");
            return Err(error.advise("is this a connection matrix of htsim?"));
        }
        for (id, (_, line)) in &self.ids {
            if !self.known.contains_key(id) {
                return Err(ImportError::new(
                    self.file,
                    Some(*line),
                    "a trigger",
                    format!("{id}, which no line describes"),
                    "the id of a `trigger` line",
                ));
            }
        }
        for (key, count) in [
            ("Connections", self.matrix.connections.len()),
            ("Triggers", self.matrix.triggers.len()),
            ("Failures", self.matrix.failures.len()),
        ] {
            let (said, line) = match self.header.get(key) {
                Some((said, line)) => (*said, Some(*line)),
                None if key == "Connections" => continue,
                None => (0, None),
            };
            if said as usize == count {
                continue;
            }
            if key == "Connections" || count == 0 {
                // htsim itself does not count connections; some of its own files are cut short.
                self.matrix.notes.push(format!(
                    "the header announces {said} {}, the file has {count}",
                    key.to_lowercase()
                ));
            } else {
                let found = format!("{said}, where the file has {count}");
                return Err(ImportError::new(
                    self.file,
                    line,
                    key,
                    found,
                    "their number",
                ));
            }
        }
        if self.has_priorities {
            let note = "prio has no effect: it is one of pHost's and others, not a traffic class";
            self.matrix.notes.push(note.to_owned());
        }
        Ok(self.matrix)
    }

    fn host(&self, word: Word<'_>, field: &str, text: &str) -> Result<NodeId, ImportError> {
        let last = i64::from(self.matrix.nodes) - 1;
        let allowed = format!("a host from 0 to {last} (`Nodes` comes first)");
        let part = Word { text, ..word };
        let id: u32 = read(self.file, part, field, &allowed)?;
        if i64::from(id) > last {
            return Err(self.wrong(word, field, format!("`{id}`"), &allowed));
        }
        Ok(NodeId(id))
    }

    /// A start in whole picoseconds; fractions of the unit are allowed.
    fn start(&self, word: Word<'_>, value: Option<&Word<'_>>) -> Result<Time, ImportError> {
        let (unit, allowed) = match self.unit {
            StartUnit::Picoseconds => (1.0, "picoseconds"),
            StartUnit::Microseconds => (1e6, "microseconds"),
        };
        let text = value.map_or("", |value| value.text);
        let number: f64 = read(self.file, Word { text, ..word }, "start", allowed)?;
        let picos = number * unit;
        if !(0.0..1e18).contains(&picos) {
            return Err(self.wrong(word, "start", format!("`{text}`"), allowed));
        }
        Ok(Time::from_picos(picos as u64))
    }

    fn number(
        &self,
        field: &str,
        word: Word<'_>,
        value: Option<&Word<'_>>,
    ) -> Result<u32, ImportError> {
        let text = value.map_or("", |value| value.text);
        let allowed = "a whole number up to 4294967295";
        read(self.file, Word { text, ..word }, field, allowed)
    }

    /// The trigger that a connection names.
    fn named(
        &mut self,
        word: Word<'_>,
        value: Option<&Word<'_>>,
    ) -> Result<TriggerId, ImportError> {
        let id = self.number(word.text, word, value)?;
        if id == NO_ID.0 {
            return Err(self.wrong(word, word.text, "0", "1 or more"));
        }
        Ok(self.place_of(id, word.line))
    }

    fn place_of(&mut self, id: u32, line: usize) -> TriggerId {
        let next = TriggerId(self.matrix.triggers.len() as u32);
        let (place, _) = *self.ids.entry(id).or_insert((next, line));
        if place == next {
            self.matrix.trigger_ids.push(id);
            self.matrix.triggers.push(Trigger {
                count: 1,
                repeat: false,
            });
        }
        place
    }

    fn wrong(
        &self,
        word: Word<'_>,
        field: impl Into<String>,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ImportError {
        ImportError::new(self.file, Some(word.line), field, found, allowed)
    }
}
