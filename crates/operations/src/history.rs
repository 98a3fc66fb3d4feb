//! What counters said over time, and how much they grew between any two moments.
//!
//! ```text
//! raw     4294967000 ──► 200 ──────► 900 ── (missing) ── 1900 ──► 0 ──► 50
//! growth             496       700           1000           reset   50
//! ```
//!
//! Samples come at any time, from sources that poll at different intervals; some are late, some never come. Between two
//! samples a counter is taken to have grown evenly. Where a port was silent for longer than two and a half of its usual
//! intervals, nothing is known, and nothing is said.

use softfabric_telemetry::Counter;
use softfabric_units::{Span, Time};

use crate::topology::{PortIndex, Topology};

/// How a counter ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Width {
    /// It has 64 bits, and never gets there: where it falls, somebody has reset it.
    #[default]
    Bits64,
    /// It has 32 bits and begins anew at zero.
    Bits32,
    /// It stays at its largest value, as InfiniBand's classic port counters do (IBTA vol. 1, 16.1.3.5), until it is reset.
    StaysAt(u64),
}

/// What one port says at one time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortSample {
    /// Whether the link is up, if the source tells.
    pub up: Option<bool>,
    /// Counters with their raw values.
    pub values: Vec<(Counter, u64)>,
}

/// What all ports have said.
#[derive(Clone, PartialEq, Debug)]
pub struct History {
    ports: Vec<PortHistory>,
    /// Samples that came for a time that was known already.
    pub repeated: u64,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct PortHistory {
    /// When it said something.
    times: Vec<Time>,
    /// Up or down, each time it changed.
    up: Vec<(Time, bool)>,
    series: Vec<(Counter, Series)>,
    /// Where in `series` each counter stands, by its place in the table; made with the first one.
    slots: Vec<u16>,
}

/// There is no such counter.
const NONE: u16 = u16::MAX;

fn slot(slots: &[u16], counter: Counter) -> Option<usize> {
    let slot = *slots.get(counter.index())?;
    (slot != NONE).then_some(usize::from(slot))
}

/// One counter: raw values in the order of time. A stretch in which it stood still is its two ends.
#[derive(Clone, PartialEq, Debug, Default)]
struct Series {
    width: Width,
    points: Vec<(Time, u64)>,
}

/// A stretch of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Where it begins.
    pub from: Time,
    /// Where it ends.
    pub to: Time,
}

impl Window {
    /// How long it is.
    pub fn length(self) -> Span {
        self.to.since(self.from)
    }
}

/// How often a port may miss its turn before it counts as silent: a late sample is not a missing one.
const PATIENCE: f64 = 2.5;

impl History {
    /// A history in which no port has said anything.
    pub fn new(topology: &Topology) -> Self {
        Self {
            ports: vec![PortHistory::default(); topology.ports().len()],
            repeated: 0,
        }
    }

    /// Says how a counter ends; without it, it has 64 bits.
    pub fn set_width(&mut self, port: PortIndex, counter: Counter, width: Width) {
        self.ports[port.index()].series_mut(counter).width = width;
    }

    /// Takes a sample. It may be older than others of the port; one for a known time is counted and left out.
    pub fn add(&mut self, port: PortIndex, time: Time, sample: &PortSample) {
        let history = &mut self.ports[port.index()];
        match insert_at(&history.times, time, |&known| known) {
            Some(place) => history.times.insert(place, time),
            None => {
                self.repeated += 1;
                return;
            }
        }
        if let Some(up) = sample.up
            && let Some(place) = insert_at(&history.up, time, |&(known, _)| known)
        {
            let before = place.checked_sub(1).map(|place| history.up[place].1);
            if before != Some(up) || place < history.up.len() {
                history.up.insert(place, (time, up));
            }
        }
        for &(counter, value) in &sample.values {
            history.series_mut(counter).add(time, value);
        }
    }

    /// Takes a sample that tells only what has changed since the port's last one; its other counters stand where they
    /// stood.
    pub fn add_changes(&mut self, port: PortIndex, time: Time, changes: &PortSample) {
        let history = &self.ports[port.index()];
        let stood = history.series.iter().filter_map(|(counter, series)| {
            let told = changes.values.iter().any(|(told, _)| told == counter);
            let (_, value) = series.points.last()?;
            (!told).then_some((*counter, *value))
        });
        let values = stood.chain(changes.values.iter().copied()).collect();
        let up = changes.up;
        self.add(port, time, &PortSample { up, values });
    }

    /// The samples for which `keep` says at which time they are to be taken for; the others are gone.
    pub fn filtered(&self, mut keep: impl FnMut(PortIndex, Time) -> Option<Time>) -> Self {
        let mut left = Self {
            ports: vec![PortHistory::default(); self.ports.len()],
            repeated: 0,
        };
        for (index, history) in self.ports.iter().enumerate() {
            let port = PortIndex(index as u32);
            for (counter, series) in &history.series {
                left.set_width(port, *counter, series.width);
            }
            for &time in &history.times {
                if let Some(at) = keep(port, time) {
                    left.add(port, at, &history.sample_at(time));
                }
            }
        }
        left
    }

    /// Moves all samples to a later time.
    pub(crate) fn delay(&mut self, by: Span) {
        for port in &mut self.ports {
            for time in &mut port.times {
                *time = time.saturating_add(by);
            }
            for (time, _) in &mut port.up {
                *time = time.saturating_add(by);
            }
            for (_, series) in &mut port.series {
                for (time, _) in &mut series.points {
                    *time = time.saturating_add(by);
                }
            }
        }
    }

    /// Takes the ports of another history to these places. Where both have heard a port, the one that has heard it more
    /// often counts; the samples of the other are counted as repeated.
    pub(crate) fn absorb(&mut self, other: Self, places: &[PortIndex]) {
        self.repeated += other.repeated;
        for (port, place) in other.ports.into_iter().zip(places) {
            if self.ports.len() <= place.index() {
                self.ports.resize(place.index() + 1, PortHistory::default());
            }
            let mine = &mut self.ports[place.index()];
            let (kept, left) = match port.times.len() > mine.times.len() {
                true => (port, std::mem::take(mine)),
                false => (std::mem::take(mine), port),
            };
            self.repeated += left.times.len() as u64;
            *mine = kept;
        }
    }

    /// From the first to the last sample of any port.
    pub fn span(&self) -> Option<Window> {
        let from = self.ports.iter().filter_map(|port| port.times.first());
        let to = self.ports.iter().filter_map(|port| port.times.last());
        Some(Window {
            from: *from.min()?,
            to: *to.max()?,
        })
    }

    /// The usual time between two samples of the port: their median distance.
    pub fn interval(&self, port: PortIndex) -> Option<Span> {
        self.ports[port.index()].interval()
    }

    /// When the port said something.
    pub fn times(&self, port: PortIndex) -> &[Time] {
        &self.ports[port.index()].times
    }

    /// The raw value that the port told last.
    pub fn last(&self, port: PortIndex, counter: Counter) -> Option<u64> {
        let series = self.ports[port.index()].find(counter)?;
        series.points.last().map(|&(_, value)| value)
    }

    /// The raw value that the port had told last at a time; `None` where it had told none yet.
    pub fn value_at(&self, port: PortIndex, counter: Counter, time: Time) -> Option<u64> {
        let series = self.ports[port.index()].find(counter)?;
        last(&series.points, time)
    }

    /// Whether the link was up, as the port had told last at a time.
    pub fn up_at(&self, port: PortIndex, time: Time) -> Option<bool> {
        last(&self.ports[port.index()].up, time)
    }

    /// Makes growth quick to ask for.
    pub fn growth(&self) -> Growth {
        Growth {
            ports: self.ports.iter().map(PortGrowth::new).collect(),
        }
    }
}

/// The last of these points that is not later than a time.
fn last<T: Copy>(points: &[(Time, T)], time: Time) -> Option<T> {
    let after = points.partition_point(|&(known, _)| known <= time);
    Some(points[after.checked_sub(1)?].1)
}

/// Where `time` belongs in a list in the order of time; `None` if it is there.
fn insert_at<T>(list: &[T], time: Time, when: impl Fn(&T) -> Time) -> Option<usize> {
    match list.last() {
        None => Some(0),
        Some(last) if when(last) < time => Some(list.len()),
        Some(_) => list.binary_search_by_key(&time, when).err(),
    }
}

impl PortHistory {
    fn find(&self, counter: Counter) -> Option<&Series> {
        slot(&self.slots, counter).map(|slot| &self.series[slot].1)
    }

    fn series_mut(&mut self, counter: Counter) -> &mut Series {
        let slot = slot(&self.slots, counter).unwrap_or_else(|| {
            self.slots.resize(Counter::COUNT, NONE);
            self.slots[counter.index()] = self.series.len() as u16;
            self.series.push((counter, Series::default()));
            self.series.len() - 1
        });
        &mut self.series[slot].1
    }

    /// What the port said at a time.
    fn sample_at(&self, time: Time) -> PortSample {
        let values = self.series.iter().filter_map(|(counter, series)| {
            let first = series.points.first()?.0;
            let value = last(&series.points, time)?;
            (first <= time).then_some((*counter, value))
        });
        PortSample {
            up: last(&self.up, time),
            values: values.collect(),
        }
    }

    fn interval(&self) -> Option<Span> {
        let mut gaps: Vec<Span> = self.times.windows(2).map(|w| w[1].since(w[0])).collect();
        gaps.sort_unstable();
        gaps.get(gaps.len() / 2).copied()
    }
}

impl Series {
    fn add(&mut self, time: Time, value: u64) {
        match self.points.as_mut_slice() {
            [.., (_, before), (last, known)]
                if *last < time && *known == value && *before == value =>
            {
                *last = time;
            }
            points => {
                if let Some(place) = insert_at(points, time, |&(known, _)| known) {
                    self.points.insert(place, (time, value));
                }
            }
        }
    }

    /// What the counter has grown by since the first sample, at each sample.
    fn totals(&self) -> Vec<(Time, f64)> {
        let mut total = 0.0;
        let mut before = None;
        let grown = self.points.iter().map(|&(time, value)| {
            let step = before.map_or(0, |before| self.step(before, value));
            before = Some(value);
            total += step as f64;
            (time, total)
        });
        grown.collect()
    }

    fn step(&self, before: u64, now: u64) -> u64 {
        if now >= before {
            return now - before;
        }
        const WHOLE: u64 = 1 << 32;
        match self.width {
            // A wrap leads from high to low; anything else is a reset, and what it counted until then is lost.
            Width::Bits32 if before < WHOLE && before - now > WHOLE / 2 => WHOLE - before + now,
            Width::Bits32 | Width::Bits64 | Width::StaysAt(_) => now,
        }
    }
}

/// How much counters grew: the history, ready to be asked for any window.
#[derive(Clone, PartialEq, Debug)]
pub struct Growth {
    ports: Vec<PortGrowth>,
}

#[derive(Clone, PartialEq, Debug)]
struct PortGrowth {
    times: Vec<Time>,
    patience: Span,
    up: Vec<(Time, bool)>,
    series: Vec<GrownSeries>,
    slots: Vec<u16>,
}

#[derive(Clone, PartialEq, Debug)]
struct GrownSeries {
    totals: Vec<(Time, f64)>,
    /// From when on it stays at its largest value and tells nothing.
    stuck: Option<Time>,
}

impl PortGrowth {
    fn new(history: &PortHistory) -> Self {
        let interval = history.interval().unwrap_or(Span::ZERO);
        let patience = Span::picos((interval.as_picos() as f64 * PATIENCE) as u64);
        let series = history.series.iter().map(|(_, series)| {
            let stuck = match series.width {
                Width::StaysAt(most) => {
                    let first = series.points.iter().find(|(_, value)| *value >= most);
                    first.map(|&(time, _)| time)
                }
                Width::Bits32 | Width::Bits64 => None,
            };
            let totals = series.totals();
            GrownSeries { totals, stuck }
        });
        Self {
            times: history.times.clone(),
            patience,
            up: history.up.clone(),
            series: series.collect(),
            slots: history.slots.clone(),
        }
    }

    /// How much of the window lies between samples that are not too far apart.
    fn covered(&self, window: Window) -> Span {
        let first = self.times.partition_point(|&time| time <= window.from);
        let mut covered = Span::ZERO;
        for pair in self.times[first.saturating_sub(1)..].windows(2) {
            let (from, to) = (pair[0].max(window.from), pair[1].min(window.to));
            if pair[0] >= window.to {
                break;
            }
            if pair[1].since(pair[0]) <= self.patience {
                covered += to.since(from);
            }
        }
        covered
    }
}

impl Growth {
    /// Whether the port was heard in at least half of the window.
    pub fn is_covered(&self, port: PortIndex, window: Window) -> bool {
        let covered = self.ports[port.index()].covered(window);
        !window.length().is_zero() && covered * 2 >= window.length()
    }

    /// What the counter grew by in the window, in the unit of the table. `None` where the port does not tell this
    /// counter, was not heard in at least half of the window, or the counter has stuck.
    pub fn of(&self, port: PortIndex, counter: Counter, window: Window) -> Option<f64> {
        let history = &self.ports[port.index()];
        let series = &history.series[slot(&history.slots, counter)?];
        let known = series.stuck.is_none_or(|stuck| stuck > window.to);
        let first = series.totals.first()?.0;
        let last = series.totals.last()?.0;
        let inside = first < window.to && last > window.from;
        (known && inside && self.is_covered(port, window))
            .then(|| series.total_at(window.to) - series.total_at(window.from))
    }

    /// Whether the port's link was down at any time of the window; `None` if it does not tell.
    pub fn was_down(&self, port: PortIndex, window: Window) -> Option<bool> {
        let up = &self.ports[port.index()].up;
        let first = up.partition_point(|&(time, _)| time <= window.from);
        if up.is_empty() {
            return None;
        }
        let mut states = up[first.saturating_sub(1)..].iter();
        Some(states.any(|&(time, up)| !up && time < window.to))
    }
}

impl GrownSeries {
    fn total_at(&self, time: Time) -> f64 {
        let next = self.totals.partition_point(|&(known, _)| known <= time);
        match (
            next.checked_sub(1).map(|i| self.totals[i]),
            self.totals.get(next),
        ) {
            (None, Some(&(_, first))) => first,
            (Some((_, last)), None) => last,
            (Some((from, low)), Some(&(to, high))) => {
                let share = time.since(from).as_picos() as f64 / to.since(from).as_picos() as f64;
                low + (high - low) * share
            }
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use softfabric_telemetry::{Counter, PortCounter};

    use super::*;
    use crate::topology::{LinkLayer, NodeKind};

    const BYTES: Counter = Counter::Port(PortCounter::TransmitBytes);
    const PORT: PortIndex = PortIndex(0);

    fn one_port() -> History {
        let mut topology = Topology::new(LinkLayer::Ethernet);
        let node = topology.add_node("h0", NodeKind::Host).unwrap();
        topology.add_port(node, "h0", None).unwrap();
        History::new(&topology)
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::seconds(seconds)
    }

    fn window(from: u64, to: u64) -> Window {
        Window {
            from: at(from),
            to: at(to),
        }
    }

    fn history(samples: &[(u64, u64)]) -> History {
        let mut history = one_port();
        for &(time, value) in samples {
            let sample = PortSample {
                up: None,
                values: vec![(BYTES, value)],
            };
            history.add(PORT, at(time), &sample);
        }
        history
    }

    fn grown(history: &History, from: u64, to: u64) -> Option<f64> {
        history.growth().of(PORT, BYTES, window(from, to))
    }

    #[test]
    fn growth_between_samples_is_even() {
        let history = history(&[(0, 100), (1, 200), (2, 400)]);
        assert_eq!(grown(&history, 0, 2), Some(300.0));
        assert_eq!(grown(&history, 1, 2), Some(200.0));
        let half = Window {
            from: at(1),
            to: at(1) + Span::millis(500),
        };
        assert_eq!(history.growth().of(PORT, BYTES, half), Some(100.0));
        assert_eq!(grown(&history, 5, 6), None);
        let other = Counter::Port(PortCounter::ReceiveBytes);
        assert_eq!(history.growth().of(PORT, other, window(0, 2)), None);
    }

    #[test]
    fn a_counter_of_32_bits_wraps_and_one_of_64_was_reset() {
        let samples = [(0, (1 << 32) - 100), (1, 50), (2, 60)];
        let mut wraps = history(&samples);
        wraps.set_width(PORT, BYTES, Width::Bits32);
        assert_eq!(grown(&wraps, 0, 2), Some(160.0));
        assert_eq!(grown(&history(&samples), 0, 2), Some(60.0));
    }

    #[test]
    fn a_reset_of_32_bits_is_no_wrap() {
        let mut history = history(&[(0, 1_000_000), (1, 2_000_000), (2, 500), (3, 600)]);
        history.set_width(PORT, BYTES, Width::Bits32);
        assert_eq!(grown(&history, 1, 3), Some(600.0));
    }

    #[test]
    fn a_counter_that_stays_at_its_end_says_nothing_any_more() {
        let mut history = history(&[(0, 10), (1, 20), (2, 100), (3, 100), (4, 100)]);
        history.set_width(PORT, BYTES, Width::StaysAt(100));
        assert_eq!(grown(&history, 0, 1), Some(10.0));
        assert_eq!(grown(&history, 2, 3), None);
        assert_eq!(grown(&history, 0, 4), None);
    }

    #[test]
    fn what_was_missed_is_unknown_and_what_was_late_is_not() {
        // Second 3 comes half a second late; seconds 6 to 9 never come.
        let mut history = history(&[
            (0, 0),
            (1, 10),
            (2, 20),
            (4, 40),
            (5, 50),
            (10, 100),
            (11, 110),
        ]);
        let late = PortSample {
            up: None,
            values: vec![(BYTES, 35)],
        };
        history.add(PORT, at(3) + Span::millis(500), &late);
        assert_eq!(history.interval(PORT), Some(Span::seconds(1)));
        assert_eq!(grown(&history, 2, 3), Some(10.0));
        assert_eq!(grown(&history, 6, 8), None);
        assert_eq!(grown(&history, 10, 11), Some(10.0));
    }

    #[test]
    fn links_go_down_and_come_back() {
        let mut history = one_port();
        for (time, up) in [
            (0, true),
            (1, true),
            (2, false),
            (3, false),
            (4, true),
            (5, true),
        ] {
            let sample = PortSample {
                up: Some(up),
                values: Vec::new(),
            };
            history.add(PORT, at(time), &sample);
        }
        let growth = history.growth();
        assert_eq!(growth.was_down(PORT, window(0, 2)), Some(false));
        assert_eq!(growth.was_down(PORT, window(0, 3)), Some(true));
        assert_eq!(growth.was_down(PORT, window(3, 4)), Some(true));
        assert_eq!(growth.was_down(PORT, window(4, 5)), Some(false));
        assert_eq!(one_port().growth().was_down(PORT, window(0, 1)), None);
    }

    proptest! {
        /// The order in which samples arrive does not matter, and windows add up.
        #[test]
        fn order_does_not_matter(steps in prop::collection::vec(0u64..50, 3..40), seed in any::<u64>(), cut in 0.0..1.0f64) {
            let mut total = 0;
            let samples: Vec<(u64, u64)> = steps.iter().enumerate().map(|(time, step)| {
                total += step;
                (time as u64, total)
            }).collect();
            let mut shuffled = samples.clone();
            let mut random = softfabric_units::Random::from_seed(seed);
            for place in (1..shuffled.len()).rev() {
                shuffled.swap(place, (random.bits() % (place as u64 + 1)) as usize);
            }
            let (in_order, mixed) = (history(&samples), history(&shuffled));
            let end = steps.len() as u64 - 1;
            let middle = (end as f64 * cut) as u64;
            let whole = grown(&in_order, 0, end).unwrap();
            prop_assert_eq!(whole, (total - steps[0]) as f64);
            prop_assert_eq!(grown(&mixed, 0, end), Some(whole));
            if middle > 0 && middle < end {
                let parts = grown(&mixed, 0, middle).unwrap() + grown(&mixed, middle, end).unwrap();
                prop_assert!((parts - whole).abs() < 1e-9);
            }
        }
    }
}
