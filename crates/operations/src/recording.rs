//! Topology and samples as a file, one JSON object a line, that programs can read while it grows.
//!
//! ```text
//! {"softfabric_counters":1,"link_layer":"ethernet","about":"incast.toml, seed 1"}
//! {"node":"leaf0","kind":"switch"}
//! {"port":"leaf0:3","node":"leaf0","rate":"100Gb/s","peer":"h3"}
//! {"port":"gpu17:mlx5_0","node":"gpu17","stays_at":{"link_downed":255}}
//! {"at_ns":100000,"port":"leaf0:3","up":true,"counters":{"rx_prio3_pause_duration":87,"port_xmit_data":61000}}
//! ```
//!
//! A port's first sample tells all its counters, later ones those that changed. Names are Linux's where Linux has them;
//! times are in microseconds, as `ethtool` has them, and data in bytes. A counter that a port never tells is unknown, and
//! not zero. `stays_at` and `bits32` say how counters end that do not have 64 bits. A line without `counters` says that
//! nothing changed; a port without a line was not heard.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use softfabric_telemetry::{Counter, Unit};
use softfabric_units::{Rate, Span, Time};
use thiserror::Error;

use crate::history::{History, PortSample, Width};
use crate::topology::{LinkLayer, NodeKind, PortIndex, Topology, TopologyError};

/// The version of the format that is written.
const VERSION: u32 = 1;
/// So many lines that were left out are kept with their reason.
const KEPT: usize = 10;

/// A recording that was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Recording {
    /// What it says of itself.
    pub about: String,
    /// Who is wired to whom.
    pub topology: Topology,
    /// What counters said.
    pub history: History,
    /// What could not be used.
    pub skipped: Skipped,
    /// When its time begins, in nanoseconds since 1970; 0 where that is unknown, as in a simulation.
    pub start_unix_ns: u64,
}

/// Lines and counters that were left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Skipped {
    /// How many lines.
    pub lines: u64,
    /// The first of them, with the reason.
    pub first: Vec<String>,
    /// Names of counters that are not in the table, with how often they came.
    pub unknown_counters: BTreeMap<String, u64>,
}

impl Skipped {
    fn unknown(&mut self, name: &str) {
        *self.unknown_counters.entry(name.to_owned()).or_default() += 1;
    }

    /// The same, with the source that it came from before each reason.
    #[must_use]
    pub fn from_source(mut self, source: &str) -> Self {
        for reason in &mut self.first {
            *reason = format!("{source}, {reason}");
        }
        self
    }

    /// Adds what was left out elsewhere.
    pub fn absorb(&mut self, other: Self) {
        self.lines += other.lines;
        let room = KEPT.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
        for (name, times) in other.unknown_counters {
            *self.unknown_counters.entry(name).or_default() += times;
        }
    }

    /// Counts a line, or something else, that is left out.
    pub fn line(&mut self, reason: String) {
        self.lines += 1;
        if self.first.len() < KEPT && !self.first.contains(&reason) {
            self.first.push(reason);
        }
    }
}

/// Why a file is no recording.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The first line is another file's.
    #[error("line 1 is no head of a recording: it must be {{\"softfabric_counters\":{VERSION},…}}")]
    NoHead,
    /// A version that this program does not know.
    #[error("it is of version {0}, and this program reads version {VERSION}")]
    Version(u32),
    /// The topology contradicts itself.
    #[error("line {line}: {error}")]
    Topology {
        /// Where.
        line: usize,
        /// How.
        error: TopologyError,
    },
    /// A port of a node that was not told.
    #[error("line {line}: there is no node `{node}`; nodes come before their ports")]
    NoSuchNode {
        /// Where.
        line: usize,
        /// The name.
        node: String,
    },
    /// A cable to a port that was not told.
    #[error("line {line}: `{port}` has the neighbour `{peer}`, and there is no such port")]
    NoSuchPeer {
        /// Where.
        line: usize,
        /// The port.
        port: String,
        /// The missing one.
        peer: String,
    },
}

#[derive(Serialize, Deserialize)]
struct HeadLine {
    softfabric_counters: u32,
    #[serde(default)]
    link_layer: LinkLayer,
    #[serde(default)]
    about: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    start_unix_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[derive(Serialize, Deserialize)]
struct NodeLine {
    node: String,
    kind: NodeKind,
}

#[derive(Serialize, Deserialize)]
struct PortLine {
    port: String,
    node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<Rate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    stays_at: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bits32: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct SampleLine {
    at_ns: u64,
    port: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    up: Option<bool>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    counters: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Sample(SampleLine),
    Port(PortLine),
    Node(NodeLine),
}

/// Writes a recording, line by line.
#[derive(Debug)]
pub struct Writer<'a, W> {
    out: W,
    topology: &'a Topology,
}

impl<'a, W: Write> Writer<'a, W> {
    /// Writes the head and the topology.
    ///
    /// # Errors
    /// If that fails.
    pub fn new(out: W, topology: &'a Topology, about: &str) -> io::Result<Self> {
        Self::beginning(out, topology, about, 0, |_| &[])
    }

    /// Writes the head, with the time at which the recording begins in nanoseconds since 1970, and the topology, with how
    /// the counters of each port end.
    ///
    /// # Errors
    /// If that fails.
    pub fn beginning<'w>(
        mut out: W,
        topology: &'a Topology,
        about: &str,
        start_unix_ns: u64,
        widths: impl Fn(PortIndex) -> &'w [(Counter, Width)],
    ) -> io::Result<Self> {
        let head = HeadLine {
            softfabric_counters: VERSION,
            link_layer: topology.link_layer,
            about: about.to_owned(),
            start_unix_ns,
        };
        line(&mut out, &head)?;
        for node in topology.nodes() {
            let node = NodeLine {
                node: node.name.clone(),
                kind: node.kind,
            };
            line(&mut out, &node)?;
        }
        for (index, port) in topology.port_indices().zip(topology.ports()) {
            let widths = widths(index);
            let stays_at = widths.iter().filter_map(|(counter, width)| match width {
                Width::StaysAt(most) => Some((counter.name(), to_micros(*counter, *most))),
                Width::Bits32 | Width::Bits64 => None,
            });
            let bits32 = widths.iter().filter(|(_, width)| *width == Width::Bits32);
            let peer = port.peer.map(|peer| topology.port(peer).name.clone());
            let port = PortLine {
                port: port.name.clone(),
                node: topology.node(port.node).name.clone(),
                rate: port.rate,
                peer,
                stays_at: stays_at.collect(),
                bits32: bits32.map(|(counter, _)| counter.name()).collect(),
            };
            line(&mut out, &port)?;
        }
        Ok(Self { out, topology })
    }

    /// Writes a sample. Values are in the unit of the table.
    ///
    /// # Errors
    /// If that fails.
    pub fn sample(&mut self, port: PortIndex, time: Time, sample: &PortSample) -> io::Result<()> {
        let counters = sample
            .values
            .iter()
            .map(|&(counter, value)| (counter.name(), to_micros(counter, value)));
        let sample = SampleLine {
            at_ns: time.as_nanos(),
            port: self.topology.port(port).name.clone(),
            up: sample.up,
            counters: counters.collect(),
        };
        line(&mut self.out, &sample)
    }
}

/// What one of a file is in the unit of the table: times are in microseconds there, and in picoseconds in the table.
pub fn scale(counter: Counter) -> u64 {
    match counter.definition().unit {
        Unit::Picoseconds => Span::micros(1).as_picos(),
        Unit::Packets | Unit::Bytes | Unit::Events => 1,
    }
}

fn to_micros(counter: Counter, value: u64) -> u64 {
    value / scale(counter)
}

/// A value in the table's unit where times were told in microseconds, as by this file, drivers and switches.
pub(crate) fn from_micros(counter: Counter, value: u64) -> u64 {
    value.saturating_mul(scale(counter))
}

fn line(out: &mut impl Write, content: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, content)?;
    out.write_all(b"\n")
}

/// Reads a recording. What does not fit is left out and counted; a file that breaks off in the middle of a line is one
/// that is being written.
///
/// # Errors
/// If it is none, or its topology contradicts itself.
pub fn read(input: impl BufRead) -> Result<Recording, RecordingError> {
    let mut lines = input.lines();
    let head = lines.next().transpose()?.unwrap_or_default();
    let mut reader = Reader::new(&head)?;
    for line in lines {
        reader.line(&line?)?;
    }
    reader.finish()
}

/// Reads a recording line by line, for whoever looks at it while it grows.
#[derive(Debug)]
pub struct Reader {
    recording: Recording,
    widths: Vec<(PortIndex, Counter, Width)>,
    /// Cables that were told, and whose other end may still come.
    cables: Vec<(usize, PortIndex, String)>,
    /// How many lines were read.
    number: usize,
    /// Samples have begun: the topology is whole.
    begun: bool,
}

impl Reader {
    /// Begins with the first line.
    ///
    /// # Errors
    /// If it is another file's.
    pub fn new(head: &str) -> Result<Self, RecordingError> {
        let head: HeadLine = serde_json::from_str(head).map_err(|_| RecordingError::NoHead)?;
        if head.softfabric_counters != VERSION {
            return Err(RecordingError::Version(head.softfabric_counters));
        }
        let topology = Topology::new(head.link_layer);
        Ok(Self {
            recording: Recording {
                about: head.about,
                start_unix_ns: head.start_unix_ns,
                history: History::new(&topology),
                topology,
                skipped: Skipped::default(),
            },
            widths: Vec::new(),
            cables: Vec::new(),
            number: 1,
            begun: false,
        })
    }

    /// What was read by now. Cables are laid when the first sample comes.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// What was read by now, for whoever adds cables to it, or forgets what is old.
    pub fn recording_mut(&mut self) -> &mut Recording {
        &mut self.recording
    }

    /// Whether samples have begun.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Takes the next line. What does not fit is left out and counted.
    ///
    /// # Errors
    /// If the topology contradicts itself.
    pub fn line(&mut self, text: &str) -> Result<(), RecordingError> {
        self.number += 1;
        let number = self.number;
        match serde_json::from_str(text) {
            Ok(Line::Node(node)) if !self.begun => {
                let added = self.recording.topology.add_node(node.node, node.kind);
                added.map_err(|error| RecordingError::Topology {
                    line: number,
                    error,
                })?;
            }
            Ok(Line::Port(port)) if !self.begun => self.port(port)?,
            Ok(Line::Sample(sample)) => {
                self.begin()?;
                self.sample(&sample);
            }
            Ok(Line::Node(_) | Line::Port(_)) => {
                let late = format!("line {number}: the topology must stand before the samples");
                self.recording.skipped.line(late);
            }
            Err(_) => {
                let nothing = format!("line {number}: neither node, port nor sample");
                self.recording.skipped.line(nothing);
            }
        }
        Ok(())
    }

    /// The recording, when no more lines come.
    ///
    /// # Errors
    /// If its topology contradicts itself.
    pub fn finish(mut self) -> Result<Recording, RecordingError> {
        self.begin()?;
        Ok(self.recording)
    }

    fn port(&mut self, port: PortLine) -> Result<(), RecordingError> {
        let number = self.number;
        let topology = &mut self.recording.topology;
        let node = topology.find_node(&port.node);
        let node = node.ok_or(RecordingError::NoSuchNode {
            line: number,
            node: port.node,
        })?;
        let index = topology
            .add_port(node, port.port, port.rate)
            .map_err(|error| RecordingError::Topology {
                line: number,
                error,
            })?;
        let stays = port.stays_at.iter();
        let stays = stays.map(|(name, &most)| (name, Width::StaysAt(most)));
        let narrow = port.bits32.iter().map(|name| (name, Width::Bits32));
        for (name, width) in stays.chain(narrow) {
            match Counter::named(name) {
                Some(counter) => {
                    let width = match width {
                        Width::StaysAt(most) => Width::StaysAt(from_micros(counter, most)),
                        other => other,
                    };
                    self.widths.push((index, counter, width));
                }
                None => self.recording.skipped.unknown(name),
            }
        }
        self.cables
            .extend(port.peer.map(|peer| (number, index, peer)));
        Ok(())
    }

    /// The topology is whole: cables are laid, and the history has its ports.
    fn begin(&mut self) -> Result<(), RecordingError> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        lay(
            &mut self.recording.topology,
            std::mem::take(&mut self.cables),
        )?;
        let mut history = History::new(&self.recording.topology);
        for &(port, counter, width) in &self.widths {
            history.set_width(port, counter, width);
        }
        self.recording.history = history;
        Ok(())
    }

    fn sample(&mut self, sample: &SampleLine) {
        let number = self.number;
        let Recording {
            topology,
            history,
            skipped,
            ..
        } = &mut self.recording;
        match (topology.find_port(&sample.port), time_of(sample)) {
            (Some(port), Some(at)) => take(history, port, at, sample, skipped),
            (Some(_), None) => skipped.line(format!(
                "line {number}: {} ns after the start is later than a recording can tell",
                sample.at_ns
            )),
            (None, _) => skipped.line(format!(
                "line {number}: no port is called `{}`",
                sample.port
            )),
        }
    }
}

/// Makes one recording of several, such as those of all hosts and switches. Their clocks are taken to agree.
///
/// # Errors
/// If their topologies contradict each other.
pub fn merge(recordings: Vec<Recording>) -> Result<Recording, TopologyError> {
    let mut recordings = recordings.into_iter();
    let Some(mut all) = recordings.next() else {
        let topology = Topology::default();
        return Ok(Recording {
            about: String::new(),
            history: History::new(&topology),
            topology,
            skipped: Skipped::default(),
            start_unix_ns: 0,
        });
    };
    for other in recordings {
        let places = all.topology.absorb(&other.topology)?;
        // A start that is not known is taken to be that of the others.
        let starts = [all.start_unix_ns, other.start_unix_ns];
        let known = starts.into_iter().filter(|&start| start != 0);
        let earlier = known.min().unwrap_or(0);
        let [mine, its] = starts.map(|start| nanos(start.saturating_sub(earlier)));
        all.history.delay(mine);
        let mut history = other.history;
        history.delay(its);
        all.history.absorb(history, &places);
        all.start_unix_ns = earlier;
        all.about = format!("{}; {}", all.about, other.about);
        all.skipped.absorb(other.skipped);
    }
    Ok(all)
}

/// So many nanoseconds, or the longest span: a recording may say anything.
fn nanos(nanos: u64) -> Span {
    Span::picos(nanos.saturating_mul(1_000))
}

fn lay(
    topology: &mut Topology,
    cables: Vec<(usize, PortIndex, String)>,
) -> Result<(), RecordingError> {
    for (line, port, peer) in cables {
        let Some(other) = topology.find_port(&peer) else {
            let port = topology.port(port).name.clone();
            return Err(RecordingError::NoSuchPeer { line, port, peer });
        };
        let laid = topology.connect(port, other);
        laid.map_err(|error| RecordingError::Topology { line, error })?;
    }
    Ok(())
}

/// When a sample was taken, if [`Time`] can hold it: it ends after 213 days.
fn time_of(sample: &SampleLine) -> Option<Time> {
    sample.at_ns.checked_mul(1_000).map(Time::from_picos)
}

fn take(
    history: &mut History,
    port: PortIndex,
    at: Time,
    sample: &SampleLine,
    skipped: &mut Skipped,
) {
    let mut values = Vec::with_capacity(sample.counters.len());
    for (name, &value) in &sample.counters {
        match Counter::named(name) {
            Some(counter) => values.push((counter, from_micros(counter, value))),
            None => skipped.unknown(name),
        }
    }
    let changes = PortSample {
        up: sample.up,
        values,
    };
    history.add_changes(port, at, &changes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::samples::{Flow, Hand, leaf_spine};
    use crate::diagnose::{Verdict, diagnose};

    fn recorded() -> String {
        let mut hand = Hand::new(leaf_spine(2, 2, 2));
        let stuck = Flow {
            held: 1.0,
            ..Flow::default()
        };
        for _ in 0..4 {
            hand.second(&[("leaf1:1", stuck), ("spine0:1", stuck)]);
        }
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, &hand.topology, "by hand").unwrap();
        hand.for_each_change(|port, time, sample| writer.sample(port, time, sample).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let text = recorded();
        let recording = read(text.as_bytes()).unwrap();
        assert_eq!(recording.about, "by hand");
        assert_eq!(recording.skipped, Skipped::default());
        let mut hand = Hand::new(leaf_spine(2, 2, 2));
        assert_eq!(recording.topology, hand.topology);
        let stuck = Flow {
            held: 1.0,
            ..Flow::default()
        };
        for _ in 0..4 {
            hand.second(&[("leaf1:1", stuck), ("spine0:1", stuck)]);
        }
        let (written, told) = (recording.history, hand.history());
        assert_eq!(written.span(), told.span());
        let whole = told.span().unwrap();
        let (written, told) = (written.growth(), told.growth());
        for port in hand.topology.port_indices() {
            assert_eq!(written.was_down(port, whole), Some(false));
            for counter in Counter::all() {
                let (written, told) = (
                    written.of(port, counter, whole),
                    told.of(port, counter, whole),
                );
                assert!(told.is_some());
                assert_eq!(written, told, "{counter}");
            }
        }
        let unchanged = text
            .lines()
            .filter(|line| !line.contains("counters"))
            .count();
        assert!(
            unchanged > 40,
            "later samples tell only what changed: {unchanged}"
        );
    }

    #[test]
    fn what_does_not_fit_is_named_counted_and_left_out() {
        let mut text = recorded();
        let good = read(text.as_bytes()).unwrap();
        text.push_str("{\"at_ns\":1,\"port\":\"leaf9:9\"}\n");
        text.push_str("{\"node\":\"late\",\"kind\":\"host\"}\n");
        text.push_str("{\"at_ns\":9000000000,\"port\":\"h0\",\"counters\":{\"tx_bananas\":4}}\n");
        text.push_str("{\"at_ns\":10000000000,\"po");
        let recording = read(text.as_bytes()).unwrap();
        assert_eq!(recording.skipped.lines, 3);
        let first = &recording.skipped.first;
        assert!(first[0].contains("leaf9:9"), "{first:?}");
        assert!(first[1].contains("before the samples"), "{first:?}");
        assert!(first[2].contains("neither"), "{first:?}");
        assert_eq!(recording.skipped.unknown_counters["tx_bananas"], 1);
        let verdict =
            |recording: &Recording| diagnose(&recording.topology, &recording.history).verdict;
        assert!(matches!(verdict(&good), Verdict::Cause(_)));
        assert_eq!(verdict(&recording), verdict(&good));
        // A time that cannot be held is left out as well, rather than taken for a very long interval.
        let far = "{\"at_ns\":18446744073709551615,\"port\":\"h0\",\"counters\":{}}\n";
        let recording = read((recorded() + far).as_bytes()).unwrap();
        assert!(recording.skipped.first[0].contains("18446744073709551615 ns"));
        assert_eq!(verdict(&recording), verdict(&good));
    }

    /// Two hosts' recordings and a list of cables: clocks are aligned by the start, and narrow counters stay narrow.
    #[test]
    fn recordings_of_several_hosts_are_one() {
        let record = |name: &str, start: u64| {
            let mut topology = Topology::new(LinkLayer::Infiniband);
            let node = topology.add_node(name, NodeKind::Host).unwrap();
            let port = topology
                .add_port(node, format!("{name}:mlx5_0"), None)
                .unwrap();
            let downed = Counter::Port(softfabric_telemetry::PortCounter::LinkDowned);
            let widths = [(downed, Width::StaysAt(255))];
            let mut out = Vec::new();
            let mut writer =
                Writer::beginning(&mut out, &topology, name, start, |_| &widths).unwrap();
            for second in 0..3 {
                let sample = PortSample {
                    up: Some(true),
                    values: vec![(downed, 254 + second.min(1))],
                };
                let time = Time::ZERO + Span::seconds(second);
                writer.sample(port, time, &sample).unwrap();
            }
            read(out.as_slice()).unwrap()
        };
        let second = 1_000_000_000;
        let late = record("b", 1_700_000_002 * second);
        let early = record("a", 1_700_000_000 * second);
        let merged = merge(vec![late, early]).unwrap();
        assert_eq!(merged.start_unix_ns, 1_700_000_000 * second);
        let [b, a] = ["b:mlx5_0", "a:mlx5_0"].map(|n| merged.topology.find_port(n).unwrap());
        let at = |second| Time::ZERO + Span::seconds(second);
        assert_eq!(merged.history.times(a), [at(0), at(1), at(2)]);
        assert_eq!(merged.history.times(b), [at(2), at(3), at(4)]);
        let downed = Counter::Port(softfabric_telemetry::PortCounter::LinkDowned);
        let window = crate::Window {
            from: at(1),
            to: at(2),
        };
        assert_eq!(
            merged.history.growth().of(a, downed, window),
            None,
            "it is stuck"
        );
    }

    /// A list of ports without a start beside a real recording: nothing is moved by half a century.
    #[test]
    fn a_start_that_is_not_known_moves_nothing() {
        let head = "{\"softfabric_counters\":1,\"start_unix_ns\":1700000000000000000}\n{\"node\":\"a\",\"kind\":\"host\"}\n\
                    {\"port\":\"a\",\"node\":\"a\"}\n{\"at_ns\":7,\"port\":\"a\",\"counters\":{\"link_downed\":1}}\n";
        let known = read(head.as_bytes()).unwrap();
        let list = "{\"softfabric_counters\":1}\n{\"node\":\"b\",\"kind\":\"host\"}\n{\"port\":\"b\",\"node\":\"b\"}\n";
        let unknown = read(list.as_bytes()).unwrap();
        for recordings in [vec![known.clone(), unknown.clone()], vec![unknown, known]] {
            let merged = merge(recordings).unwrap();
            let a = merged.topology.find_port("a").unwrap();
            assert_eq!(merged.history.times(a), [Time::from_nanos(7)]);
            assert_eq!(merged.start_unix_ns, 1_700_000_000_000_000_000);
        }
    }

    /// Times are in microseconds in the file, also where a counter of time ends.
    #[test]
    fn the_end_of_a_counter_of_time_is_a_time() {
        let mut topology = Topology::new(LinkLayer::Infiniband);
        let node = topology.add_node("a", NodeKind::Host).unwrap();
        let port = topology.add_port(node, "a:mlx5_0", None).unwrap();
        let wait = Counter::Port(softfabric_telemetry::PortCounter::TransmitWait);
        // 32 bits of ticks of 320 ps.
        let most = u64::from(u32::MAX) * 320;
        let widths = [(wait, Width::StaysAt(most))];
        let mut out = Vec::new();
        let mut writer = Writer::beginning(&mut out, &topology, "a", 0, |_| &widths).unwrap();
        for (second, value) in [0, most / 2, most, most].into_iter().enumerate() {
            let sample = PortSample {
                up: None,
                values: vec![(wait, value)],
            };
            let time = Time::ZERO + Span::seconds(second as u64);
            writer.sample(port, time, &sample).unwrap();
        }
        let recording = read(out.as_slice()).unwrap();
        let growth = recording.history.growth();
        let grown = |from, to| {
            let at = |second| Time::ZERO + Span::seconds(second);
            let window = crate::Window {
                from: at(from),
                to: at(to),
            };
            growth.of(port, wait, window)
        };
        assert!(grown(0, 1).is_some());
        assert_eq!(grown(2, 3), None, "it is stuck");
    }

    #[test]
    fn other_files_are_refused_with_what_is_wrong() {
        let error = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert!(error("").contains("no head"));
        assert!(error("hello\n").contains("softfabric_counters"));
        assert!(error("{\"softfabric_counters\":7}\n").contains("version 7"));
        let head = "{\"softfabric_counters\":1}\n{\"node\":\"a\",\"kind\":\"host\"}\n";
        let twice = format!("{head}{{\"node\":\"a\",\"kind\":\"host\"}}\n");
        assert!(error(&twice).contains("line 3"), "{}", error(&twice));
        let lost = format!("{head}{{\"port\":\"a\",\"node\":\"b\"}}\n");
        assert!(error(&lost).contains("no node `b`"), "{}", error(&lost));
        let open = format!("{head}{{\"port\":\"a\",\"node\":\"a\",\"peer\":\"z\"}}\n");
        assert!(error(&open).contains("`z`"), "{}", error(&open));
    }
}
