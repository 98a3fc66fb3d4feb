//! A fabric that is being watched: what its counters say now, what is wrong, and since when.
//!
//! ```text
//! Recording ── the last while ──► Facts ──► ports, nodes, trend     rates of now, and how they came about
//! (grows)                          │
//!                                  └──────► diagnosis ──► Timeline  findings: since when, how sure, when they ended
//!                                     Baseline ──► deviations ──┘   what differs from the day of commissioning
//! ```
//!
//! Whoever watches hands over what is known and says what time it is; there is no clock and no source of counters in here. A
//! finding is the same one for as long as it is the same cause at the same port, however often it is looked at.

mod ports;
#[cfg(test)]
mod tests;
mod timeline;

use softfabric_units::{Span, Time};

pub use self::ports::{NodeView, PortView, State, Stretch};
pub(crate) use self::ports::{held, marked, received, transmitted, watermark};
use self::timeline::Timeline;
pub use self::timeline::{Episode, What};
use crate::baseline::{Baseline, Deviation, Deviations};
use crate::diagnose::facts::{self, Facts};
use crate::diagnose::{Coverage, Diagnosis, Symptom, Verdict, Victim, judge_facts};
use crate::history::{History, Window};
use crate::recording::Recording;
use crate::topology::{NodeIndex, PortIndex, Topology};

/// A point in time by the clock of the source: since 1970 where it tells its time of day, since its start otherwise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Moment(u64);

impl Moment {
    /// So many nanoseconds after that clock's zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since that clock's zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since an earlier moment; zero where that is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span::picos(self.0.saturating_sub(earlier.0).saturating_mul(1_000))
    }

    const fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.as_nanos()))
    }
}

/// How far back it looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The diagnosis is of so long a time.
    pub window: Span,
    /// Rates of now are means of so long a time.
    pub recent: Span,
}

impl Options {
    /// So many polls are a window.
    const POLLS: u64 = 60;
    /// So many are now.
    const RECENT_POLLS: u64 = 5;
    /// No window is shorter: a storm is told from a slow receiver by pauses that last four times what one frame can ask for, which
    /// is 13 ms at 10 Gb/s.
    const SHORTEST: Span = Span::millis(20);

    /// What suits counters that are polled so often.
    pub fn of_interval(interval: Span) -> Self {
        Self {
            window: (interval * Self::POLLS).max(Self::SHORTEST),
            recent: interval * Self::RECENT_POLLS,
        }
    }

    /// The same with another window.
    #[must_use]
    pub fn with_window(mut self, window: Span) -> Self {
        self.window = window;
        self.recent = self.recent.min(window);
        self
    }
}

/// How often ports are polled: the interval that nine of ten ports keep.
pub fn interval(topology: &Topology, history: &History) -> Option<Span> {
    facts::interval(topology, history)
}

/// Watches one fabric.
#[derive(Clone, Debug)]
pub struct Watch {
    options: Options,
    timeline: Timeline,
    baseline: Option<(Baseline, Deviations)>,
}

/// What there is to see.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// What the source says of itself.
    pub about: String,
    /// When this is.
    pub now: Moment,
    /// Whether moments are since 1970, and not since the start of the source.
    pub is_time_of_day: bool,
    /// How long the time is that it looked at.
    pub window: Span,
    /// How long a stretch is.
    pub stretch: Span,
    /// The answer of the diagnosis.
    pub verdict: Verdict,
    /// The answer as a sentence.
    pub summary: String,
    /// One entry a port, in the order of the topology.
    pub ports: Vec<PortView>,
    /// One entry a node, in the order of the topology.
    pub nodes: Vec<NodeView>,
    /// One entry a stretch of the window, the oldest first.
    pub trend: Vec<Stretch>,
    /// What is and was wrong: what goes on first, then the latest.
    pub episodes: Vec<Episode>,
    /// Ports that are held back, and only because of something elsewhere.
    pub symptoms: Vec<Symptom>,
    /// Hosts that cannot send as they want to.
    pub victims: Vec<Victim>,
    /// How much was heard.
    pub coverage: Coverage,
    /// Whether there is a baseline to compare with, and how much of the fabric it covers; `None` without one.
    pub compared: Option<Compared>,
}

/// How much a baseline had to say.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    /// What the baseline says of itself.
    pub about: String,
    /// How many places of the baseline there are: ports, and hosts once for what they send and once for what they receive.
    pub ports: usize,
    /// What differs now, and no finding of the diagnosis explains.
    pub deviations: Vec<Deviation>,
    /// How much more differs, at the sources of findings and at the ports and hosts that suffer from them.
    pub explained: usize,
}

impl Watch {
    /// Begins to watch.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            timeline: Timeline::default(),
            baseline: None,
        }
    }

    /// Compares with what was measured at commissioning, too.
    #[must_use]
    pub fn with_baseline(mut self, baseline: Baseline) -> Self {
        self.baseline = Some((baseline, Deviations::default()));
        self
    }

    /// What it compares with.
    pub fn baseline(&self) -> Option<&Baseline> {
        self.baseline.as_ref().map(|(baseline, _)| baseline)
    }

    /// How far back it looks.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Looks at what is known at a time of the recording. Looks come in the order of time, at most a window apart.
    pub fn look(&mut self, recording: &Recording, now: Time) -> View {
        let topology = &recording.topology;
        let from = Time::from_picos(
            now.as_picos()
                .saturating_sub(self.options.window.as_picos()),
        );
        let history = recording.history.within(Window { from, to: now });
        let facts = Facts::new(topology, &history);
        let diagnosis = judge_facts(&facts);
        let origin = Moment(recording.start_unix_ns);
        let moment = |time: Time| origin.after(time.since(Time::ZERO));
        let whole = facts.whole();
        let stretch = diagnosis.coverage.interval;
        let looks_at = whole.map_or(now, |whole| whole.from);
        self.timeline
            .take(&diagnosis.findings, moment(looks_at), moment(now), stretch);
        let recent = whole.map(|whole| Window {
            from: whole.from.max(Time::from_picos(
                whole
                    .to
                    .as_picos()
                    .saturating_sub(self.options.recent.as_picos()),
            )),
            to: whole.to,
        });
        let mut ports = ports::ports(&facts, &history, recent);
        let compared = self.baseline.as_mut().map(|(baseline, deviations)| {
            let (compared, mut found) = deviations.compare(baseline, &facts, &history, moment);
            let all = found.len();
            found.retain(|deviation| !is_explained(&diagnosis, deviation));
            self.timeline.deviate(&found, moment(now), stretch);
            Compared {
                about: baseline.about.clone(),
                ports: compared,
                explained: all - found.len(),
                deviations: found,
            }
        });
        self.timeline.mark(&mut ports, topology);
        let mut nodes = ports::nodes(topology, &ports);
        self.timeline.mark_nodes(&mut nodes);
        let trend = ports::trend(&facts, &history, moment);
        View {
            about: recording.about.clone(),
            now: moment(now),
            is_time_of_day: recording.start_unix_ns != 0,
            window: whole.map_or(Span::ZERO, Window::length),
            stretch,
            verdict: diagnosis.verdict,
            summary: diagnosis.summary,
            ports,
            nodes,
            trend,
            episodes: self.timeline.episodes().cloned().collect(),
            symptoms: diagnosis.symptoms,
            victims: diagnosis.victims,
            coverage: diagnosis.coverage,
            compared,
        }
    }
}

/// Whether a finding says why: the ports that report are symptoms here, too.
fn is_explained(diagnosis: &Diagnosis, deviation: &Deviation) -> bool {
    if !matches!(diagnosis.verdict, Verdict::Cause(_)) {
        return false;
    }
    let place = &deviation.place;
    let mut findings = diagnosis.findings.iter();
    findings.any(|finding| finding.node == deviation.node || finding.ports.contains(place))
        || diagnosis
            .symptoms
            .iter()
            .any(|symptom| symptom.port == *place)
        || diagnosis.victims.iter().any(|victim| victim.host == *place)
}

impl View {
    /// Ports in the order in which somebody should look at them: sources, then what is down or held the longest.
    pub fn worst_ports(&self) -> Vec<PortIndex> {
        let mut order: Vec<usize> = (0..self.ports.len()).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (&self.ports[a], &self.ports[b]);
            b.state
                .cmp(&a.state)
                .then(b.weight().total_cmp(&a.weight()))
        });
        order
            .into_iter()
            .map(|port| PortIndex(port as u32))
            .collect()
    }

    /// How many ports are held back for a noticeable share of the time.
    pub fn held_ports(&self) -> usize {
        self.ports.iter().filter(|port| port.is_held()).count()
    }

    /// Since when several ports at once are held, without a pause until now; `None` where they are not.
    pub fn many_held_since(&self) -> Option<Moment> {
        const MANY: usize = 3;
        let calm = self.trend.iter().rposition(|s| s.held_ports < MANY);
        let first = calm.map_or(0, |place| place + 1);
        self.trend.get(first).map(|stretch| stretch.from)
    }

    /// What is wrong now.
    pub fn open_episodes(&self) -> impl Iterator<Item = &Episode> {
        self.episodes.iter().filter(|episode| !episode.has_ended)
    }

    /// The node.
    pub fn node(&self, index: NodeIndex) -> &NodeView {
        &self.nodes[index.index()]
    }
}
