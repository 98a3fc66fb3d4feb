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
    /// Up or down.
    up: Vec<(Time, bool)>,
    /// The counters that it tells, in the order in which it first told them.
    counters: Vec<Counter>,
    /// What each of them said.
    series: Vec<Series>,
    /// Which counters it tells, and which of these do not stand still.
    told: Counters,
    moves: Counters,
    /// Which counters ever were more than zero.
    counted: Counters,
    /// How many stand still.
    still: usize,
    /// Where each counter stands, by its place in the table; made with the first one.
    slots: Vec<u16>,
    /// Counters that do not have 64 bits.
    widths: Vec<(Counter, Width)>,
}

/// There is no such counter.
const NONE: u16 = u16::MAX;

/// A set of counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counters([u64; Counter::COUNT.div_ceil(64)]);

impl Counters {
    fn insert(&mut self, counter: Counter) {
        self.0[counter.index() / 64] |= 1 << (counter.index() % 64);
    }

    fn remove(&mut self, counter: Counter) {
        self.0[counter.index() / 64] &= !(1 << (counter.index() % 64));
    }

    fn has(&self, counter: Counter) -> bool {
        self.0[counter.index() / 64] & 1 << (counter.index() % 64) != 0
    }
}

/// One counter. Most of a port never move, so those take no more room than their value.
#[derive(Clone, PartialEq, Debug)]
enum Series {
    /// Every sample of the port told this value.
    Still(u64),
    /// Raw values in the order of time. A stretch in which it stood still is its two ends.
    #[expect(
        clippy::box_collection,
        reason = "a hundred counters that stand still are smaller by a third"
    )]
    Points(Box<Vec<(Time, u64)>>),
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

/// For how long a port that is polled at this interval may say nothing before it counts as silent: a late sample is not a
/// missing one.
pub(crate) fn patience(interval: Span) -> Span {
    Span::picos((interval.as_picos() as f64 * 2.5) as u64)
}

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
        let widths = &mut self.ports[port.index()].widths;
        widths.retain(|(known, _)| *known != counter);
        if width != Width::Bits64 {
            widths.push((counter, width));
        }
    }

    /// How the counters of a port end; those without 64 bits.
    pub fn widths(&self, port: PortIndex) -> &[(Counter, Width)] {
        &self.ports[port.index()].widths
    }

    /// Takes a sample. It may be older than others of the port; one for a known time is counted and left out.
    pub fn add(&mut self, port: PortIndex, time: Time, sample: &PortSample) {
        if !self.ports[port.index()].add(time, sample) {
            self.repeated += 1;
        }
    }

    /// Takes a sample that tells only what has changed since the port's last one; its other counters stand where they
    /// stood.
    pub fn add_changes(&mut self, port: PortIndex, time: Time, changes: &PortSample) {
        let history = &self.ports[port.index()];
        let stood = history.counters.iter().filter_map(|&counter| {
            let told = changes.values.iter().any(|(told, _)| *told == counter);
            let value = history.last(counter).filter(|_| !told)?;
            Some((counter, value))
        });
        let values = stood.chain(changes.values.iter().copied()).collect();
        let up = changes.up;
        self.add(port, time, &PortSample { up, values });
    }

    /// Forgets the samples before a time, for a window that moves. What a port had told last before it may stay known.
    pub fn forget_before(&mut self, time: Time) {
        for port in &mut self.ports {
            port.forget_before(time);
        }
    }

    /// The samples for which `keep` says at which time they are to be taken for; the others are gone.
    pub fn filtered(&self, mut keep: impl FnMut(PortIndex, Time) -> Option<Time>) -> Self {
        let mut left = Self {
            ports: vec![PortHistory::default(); self.ports.len()],
            repeated: 0,
        };
        for (index, history) in self.ports.iter().enumerate() {
            let port = PortIndex(index as u32);
            left.ports[index].widths = history.widths.clone();
            for &time in &history.times {
                if let Some(at) = keep(port, time) {
                    left.add(port, at, &history.sample_at(time));
                }
            }
        }
        left
    }

    /// What was told in a window, and of each counter what stood before it, so that its growth in the window is known.
    #[must_use]
    pub fn within(&self, window: Window) -> Self {
        let ports = self.ports.iter().map(|port| port.within(window));
        Self {
            ports: ports.collect(),
            repeated: self.repeated,
        }
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
            for series in &mut port.series {
                if let Series::Points(points) = series {
                    for (time, _) in &mut **points {
                        *time = time.saturating_add(by);
                    }
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
        self.ports[port.index()].last(counter)
    }

    /// Whether the port has told more than zero of the counter, since the last samples that are remembered or before.
    pub fn has_counted(&self, port: PortIndex, counter: Counter) -> bool {
        self.ports[port.index()].counted.has(counter)
    }

    /// The raw value that the port had told last at a time; `None` where it had told none yet.
    pub fn value_at(&self, port: PortIndex, counter: Counter, time: Time) -> Option<u64> {
        self.ports[port.index()].value_at(counter, time)
    }

    /// Whether the link was up, as the port had told last at a time.
    pub fn up_at(&self, port: PortIndex, time: Time) -> Option<bool> {
        last(&self.ports[port.index()].up, time)
    }

    /// What the port said, or had said last, at a time: all of its counters.
    pub fn sample(&self, port: PortIndex, time: Time) -> PortSample {
        self.ports[port.index()].sample_at(time)
    }

    /// Makes growth quick to ask for.
    pub fn growth(&self) -> Growth<'_> {
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

/// The points of a window, and the last one before it.
fn cut<T: Copy>(points: &[(Time, T)], window: Window) -> Vec<(Time, T)> {
    let first = points.partition_point(|&(known, _)| known <= window.from);
    let after = points.partition_point(|&(known, _)| known <= window.to);
    points[first.saturating_sub(1)..after.max(first)].to_vec()
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
    fn slot(&self, counter: Counter) -> Option<usize> {
        let slot = *self.slots.get(counter.index())?;
        (slot != NONE).then_some(usize::from(slot))
    }

    /// The points of a counter that does not stand still.
    fn points(&self, counter: Counter) -> Option<&[(Time, u64)]> {
        match &self.series[self.slot(counter)?] {
            Series::Points(points) => Some(points),
            Series::Still(_) => None,
        }
    }

    /// What the port told last of a counter.
    fn last(&self, counter: Counter) -> Option<u64> {
        match &self.series[self.slot(counter)?] {
            Series::Still(value) => Some(*value),
            Series::Points(points) => points.last().map(|&(_, value)| value),
        }
    }

    fn value_at(&self, counter: Counter, time: Time) -> Option<u64> {
        match &self.series[self.slot(counter)?] {
            Series::Still(value) => (*self.times.first()? <= time).then_some(*value),
            Series::Points(points) => last(points, time),
        }
    }

    fn within(&self, window: Window) -> Self {
        let first = self.times.partition_point(|&time| time < window.from);
        let after = self.times.partition_point(|&time| time <= window.to);
        let series = self.series.iter().map(|series| match series {
            Series::Still(value) => Series::Still(*value),
            Series::Points(all) => {
                let mut points = cut(all, window);
                // A counter that stands still is the two ends of its stretch, one of which may lie behind the window.
                let behind = all.partition_point(|&(time, _)| time <= window.to);
                if let (Some(&(last, value)), Some(&(_, next))) = (points.last(), all.get(behind))
                    && next == value
                    && last < window.to
                {
                    points.push((window.to, value));
                }
                Series::Points(Box::new(points))
            }
        });
        Self {
            times: self.times[first..after.max(first)].to_vec(),
            up: cut(&self.up, window),
            series: series.collect(),
            counters: self.counters.clone(),
            told: self.told,
            moves: self.moves,
            counted: self.counted,
            still: self.still,
            slots: self.slots.clone(),
            widths: self.widths.clone(),
        }
    }

    /// What the port said at a time.
    fn sample_at(&self, time: Time) -> PortSample {
        let counters = self.counters.iter();
        let values = counters.filter_map(|&counter| Some((counter, self.value_at(counter, time)?)));
        PortSample {
            up: last(&self.up, time),
            values: values.collect(),
        }
    }

    /// Whether the sample is for a time that was not known.
    fn add(&mut self, time: Time, sample: &PortSample) -> bool {
        let Some(place) = insert_at(&self.times, time, |&known| known) else {
            return false;
        };
        let around = Around {
            before: place.checked_sub(1).map(|before| self.times[before]),
            after: self.times.get(place).copied(),
        };
        if let Some(up) = sample.up {
            insert(&mut self.up, time, up, around);
        }
        let mut stood = 0;
        for (position, &(counter, value)) in sample.values.iter().enumerate() {
            if value > 0 {
                self.counted.insert(counter);
            }
            // Devices tell their counters in the same order each time.
            let slot = match self.counters.get(position) {
                Some(&known) if known == counter => position,
                _ => match self.slot(counter) {
                    Some(slot) => slot,
                    None => {
                        stood += usize::from(self.begin(counter, time, value));
                        continue;
                    }
                },
            };
            match &mut self.series[slot] {
                Series::Still(known) if *known == value => stood += 1,
                Series::Still(_) => insert(self.moving(slot), time, value, around),
                Series::Points(points) => insert(points, time, value, around),
            }
        }
        if stood < self.still {
            // Some counters were not told this time: what they say ends with the samples before.
            for slot in 0..self.series.len() {
                let counter = self.counters[slot];
                let is_told = || sample.values.iter().any(|(told, _)| *told == counter);
                if matches!(self.series[slot], Series::Still(_)) && !is_told() {
                    self.moving(slot);
                }
            }
        }
        self.times.insert(place, time);
        true
    }

    /// A counter is told for the first time; says whether every sample of the port has told it.
    fn begin(&mut self, counter: Counter, time: Time, value: u64) -> bool {
        self.slots.resize(Counter::COUNT, NONE);
        self.slots[counter.index()] = self.series.len() as u16;
        self.counters.push(counter);
        let still = self.times.is_empty();
        self.told.insert(counter);
        if !still {
            self.moves.insert(counter);
        }
        self.series.push(match still {
            true => Series::Still(value),
            false => Series::Points(Box::new(vec![(time, value)])),
        });
        self.still += usize::from(still);
        still
    }

    /// The points of a counter that stands still no longer.
    fn moving(&mut self, slot: usize) -> &mut Vec<(Time, u64)> {
        let series = &mut self.series[slot];
        if let Series::Still(value) = series {
            self.still -= 1;
            self.moves.insert(self.counters[slot]);
            let ends = match self.times.as_slice() {
                [] => Vec::new(),
                [only] => vec![(*only, *value)],
                [first, .., last] => vec![(*first, *value), (*last, *value)],
            };
            *series = Series::Points(Box::new(ends));
        }
        match series {
            Series::Points(points) => points,
            Series::Still(_) => unreachable!("it has just been made to move"),
        }
    }

    fn forget_before(&mut self, time: Time) {
        self.times
            .drain(..self.times.partition_point(|&known| known < time));
        let (Some(&first), Some(&last)) = (self.times.first(), self.times.last()) else {
            // Nothing is known any more, but for how counters end.
            *self = Self {
                widths: std::mem::take(&mut self.widths),
                ..Self::default()
            };
            return;
        };
        forget(&mut self.up, first);
        for (&counter, series) in self.counters.iter().zip(&mut self.series) {
            if !self.moves.has(counter) {
                continue;
            }
            let Series::Points(points) = series else {
                continue;
            };
            forget(points, first);
            // It has come to rest.
            if let [(from, value), (to, same)] = points[..]
                && value == same
                && from <= first
                && to == last
            {
                *series = Series::Still(value);
                self.moves.remove(counter);
                self.still += 1;
            }
        }
    }

    fn interval(&self) -> Option<Span> {
        let mut gaps: Vec<Span> = self.times.windows(2).map(|w| w[1].since(w[0])).collect();
        let middle = gaps.len() / 2;
        (!gaps.is_empty()).then(|| *gaps.select_nth_unstable(middle).1)
    }
}

/// The samples of the port before and after one that comes.
#[derive(Clone, Copy)]
struct Around {
    before: Option<Time>,
    after: Option<Time>,
}

/// Points of a window that moves are fewer than this.
const SHORT: usize = 64;
/// By how much those grow.
const STEP: usize = 4;

/// Adds what a sample tells to points of which a stretch that stands still is its two ends. A late sample that differs
/// divides such a stretch; its neighbours had told what the stretch tells.
fn insert<T: Copy + PartialEq>(points: &mut Vec<(Time, T)>, time: Time, value: T, around: Around) {
    if let [.., (_, before), (last, known)] = points.as_mut_slice()
        && *last < time
        && *known == value
        && *before == value
    {
        *last = time;
        return;
    }
    let Some(place) = insert_at(points, time, |&(known, _)| known) else {
        return;
    };
    let stretch = match (
        place.checked_sub(1).map(|before| points[before]),
        points.get(place),
    ) {
        (Some((from, stood)), Some(&(to, same))) if stood == same => Some((from, to, stood)),
        _ => None,
    };
    match stretch {
        Some((_, _, stood)) if stood == value => {}
        Some((from, to, stood)) => {
            let before = around.before.filter(|&before| before > from);
            let after = around.after.filter(|&after| after < to);
            let before = before.map(|before| (before, stood));
            let after = after.map(|after| (after, stood));
            let all = before.into_iter().chain([(time, value)]).chain(after);
            points.splice(place..place, all);
        }
        None => {
            // A hundred thousand ports have millions of these, and a doubled capacity is half empty.
            if points.len() == points.capacity() && points.len() < SHORT {
                points.reserve_exact(STEP);
            }
            points.insert(place, (time, value));
        }
    }
}

/// Forgets points that are not needed to tell what was told from a time on.
fn forget<T>(points: &mut Vec<(Time, T)>, from: Time) {
    let needed = points.partition_point(|(time, _)| *time <= from);
    points.drain(..needed.saturating_sub(1));
}

/// How much counters grew: the history, ready to be asked for any window.
#[derive(Clone, Debug)]
pub struct Growth<'a> {
    ports: Vec<PortGrowth<'a>>,
}

/// What is asked most often stands here, so that most questions are answered without a look at the history.
#[derive(Clone, Debug)]
struct PortGrowth<'a> {
    history: &'a PortHistory,
    told: Counters,
    moves: Counters,
    /// From the first to the last sample.
    heard: Option<Window>,
    patience: Span,
    /// No two samples are farther apart than that.
    is_gapless: bool,
    /// Counters that stay at their largest value, from when on; they tell nothing then.
    stuck: Vec<(Counter, Time)>,
}

impl<'a> PortGrowth<'a> {
    fn new(history: &'a PortHistory) -> Self {
        let patience = patience(history.interval().unwrap_or(Span::ZERO));
        let mut gaps = history.times.windows(2).map(|pair| pair[1].since(pair[0]));
        let stuck = history.widths.iter().filter_map(|&(counter, width)| {
            let Width::StaysAt(most) = width else {
                return None;
            };
            let since = match &history.series[history.slot(counter)?] {
                Series::Still(value) => history.times.first().filter(|_| *value >= most),
                Series::Points(points) => {
                    let first = points.iter().find(|(_, value)| *value >= most);
                    first.map(|(time, _)| time)
                }
            };
            Some((counter, *since?))
        });
        let times = &history.times;
        let heard = times.first().zip(times.last());
        Self {
            told: history.told,
            moves: history.moves,
            heard: heard.map(|(&from, &to)| Window { from, to }),
            patience,
            is_gapless: gaps.all(|gap| gap <= patience),
            stuck: stuck.collect(),
            history,
        }
    }

    /// How much of the window lies between samples that are not too far apart.
    fn covered(&self, window: Window) -> Span {
        let Some(heard) = self.heard else {
            return Span::ZERO;
        };
        if self.is_gapless {
            let (from, to) = (heard.from.max(window.from), heard.to.min(window.to));
            return match from < to {
                true => to.since(from),
                false => Span::ZERO,
            };
        }
        let times = &self.history.times;
        let first = times.partition_point(|&time| time <= window.from);
        let mut covered = Span::ZERO;
        for pair in times[first.saturating_sub(1)..].windows(2) {
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

    fn width(&self, counter: Counter) -> Width {
        let widths = self.history.widths.iter();
        let width = widths.clone().find(|(known, _)| *known == counter);
        width.map_or(Width::Bits64, |&(_, width)| width)
    }
}

/// What a counter with these points grew by in a window.
fn grown(points: &[(Time, u64)], width: Width, window: Window) -> f64 {
    let first = points.partition_point(|&(time, _)| time <= window.from);
    let mut total = 0.0;
    for pair in points[first.saturating_sub(1)..].windows(2) {
        let [(from, before), (to, now)] = [pair[0], pair[1]];
        if from >= window.to {
            break;
        }
        let grown = step(width, before, now) as f64;
        let (inside_from, inside_to) = (from.max(window.from), to.min(window.to));
        total += match (inside_from, inside_to) == (from, to) {
            true => grown,
            false => {
                let share = inside_to.since(inside_from).as_picos() as f64;
                grown * share / to.since(from).as_picos() as f64
            }
        };
    }
    total
}

/// What a counter grew by between two raw values.
fn step(width: Width, before: u64, now: u64) -> u64 {
    if now >= before {
        return now - before;
    }
    const WHOLE: u64 = 1 << 32;
    match width {
        // A wrap leads from high to low; anything else is a reset, and what it counted until then is lost.
        Width::Bits32 if before < WHOLE && before - now > WHOLE / 2 => WHOLE - before + now,
        Width::Bits32 | Width::Bits64 | Width::StaysAt(_) => now,
    }
}

impl Growth<'_> {
    /// Whether the port was heard in at least half of the window.
    pub fn is_covered(&self, port: PortIndex, window: Window) -> bool {
        let covered = self.ports[port.index()].covered(window);
        !window.length().is_zero() && covered * 2 >= window.length()
    }

    /// What the counter grew by in the window, in the unit of the table. `None` where the port does not tell this
    /// counter, was not heard in at least half of the window, or the counter has stuck.
    pub fn of(&self, port: PortIndex, counter: Counter, window: Window) -> Option<f64> {
        let port = &self.ports[port.index()];
        if !port.told.has(counter) {
            return None;
        }
        let points = match port.moves.has(counter) {
            true => port.history.points(counter)?,
            false => &[],
        };
        let (first, last) = match points {
            [] => (port.heard?.from, port.heard?.to),
            [only] => (only.0, only.0),
            [first, .., last] => (first.0, last.0),
        };
        let stuck = port.stuck.iter().find(|(known, _)| *known == counter);
        let known = stuck.is_none_or(|&(_, stuck)| stuck > window.to);
        let inside = first < window.to && last > window.from;
        let covered = || port.covered(window) * 2 >= window.length() && !window.length().is_zero();
        (known && inside && covered()).then(|| match points {
            [] => 0.0,
            points => grown(points, port.width(counter), window),
        })
    }

    /// Whether the counter cannot have grown in any window: the port does not tell it, or always told the same value.
    pub fn stands_still(&self, port: PortIndex, counter: Counter) -> bool {
        !self.ports[port.index()].moves.has(counter)
    }

    /// Whether the port's link was down at any time of the window; `None` if it does not tell.
    pub fn was_down(&self, port: PortIndex, window: Window) -> Option<bool> {
        let up = &self.ports[port.index()].history.up;
        let first = up.partition_point(|&(time, _)| time <= window.from);
        if up.is_empty() {
            return None;
        }
        let mut states = up[first.saturating_sub(1)..].iter();
        Some(states.any(|&(time, up)| !up && time < window.to))
    }
}

#[cfg(test)]
mod tests;
