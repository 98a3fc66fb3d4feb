//! InfiniBand's injection delay: a table says how long to wait between two packets, and congestion moves the index into
//! it (IBTA vol. 1, annex A10.2.1.2).
//!
//! ```text
//! BECN:    index += increase, at most the table's limit
//! timer:   index −= 1, at least the minimum                                  each period
//! wait:    table[index] = shift, multiplier ──► packet's time · multiplier / 2^shift, after each packet
//! ```
//!
//! A packet and the wait after it take its time times 1 + multiplier / 2^shift: so the delay is a rate, and the packet
//! after the next waits by the index of that time.
//!
//! The standard has one timer for all flows of a service level. Here each flow's runs from the notification that took it
//! off its minimum, with the same period, so that flows of many hosts do not all speed up at one instant.
//!
//! Invariant: `minimum <= index <= limit`, and `due` is when the index next falls: never while it is at its minimum.

use softfabric_units::{Rate, Span, Time};

use super::{RateParameterError, require, ticks_due};

/// Entries of a control table: two blocks of 64, as the adapters that are managed here have.
pub const TABLE_ENTRIES: usize = 128;

/// An entry of the control table: how long a flow waits after a packet, as a multiple of the packet's own time.
///
/// Kept as on the wire: two bits of shift, then 14 of multiplier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InjectionDelay(u16);

impl InjectionDelay {
    /// The longest multiplier, of 14 bits.
    pub const LONGEST: u16 = (1 << 14) - 1;

    /// `multiplier / 2^shift` packet times; nothing where `shift` has more than two bits or `multiplier` more than 14.
    pub const fn new(shift: u8, multiplier: u16) -> Option<Self> {
        if shift > 3 || multiplier > Self::LONGEST {
            return None;
        }
        Some(Self((shift as u16) << 14 | multiplier))
    }

    /// How far the packet's time is shifted down, 0–3.
    pub const fn shift(self) -> u8 {
        (self.0 >> 14) as u8
    }

    /// By how much it is multiplied then, 0–16,383.
    pub const fn multiplier(self) -> u16 {
        self.0 & Self::LONGEST
    }

    /// The wait after a packet that takes `packet` on the line. The shift loses no bits.
    pub fn after(self, packet: Span) -> Span {
        let waits = u128::from(packet.as_picos()) * u128::from(self.multiplier());
        Span::picos((waits >> self.shift()) as u64)
    }

    /// The rate of a flow that waits so long after each packet, on a line of rate `line`; rounded down to whole bit/s.
    pub fn rate(self, line: Rate) -> Rate {
        let unit = 1_u128 << self.shift();
        let slowed = u128::from(line.as_bps()) * unit / (unit + u128::from(self.multiplier()));
        Rate::bps(slowed as u64)
    }
}

/// The congestion control table of an adapter (CCT).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InjectionTable {
    entries: [InjectionDelay; TABLE_ENTRIES],
    limit: u8,
}

impl InjectionTable {
    /// A table of these entries, the first of which counts without congestion; the last one is the highest index in use
    /// (`CCTI_Limit`). Nothing where there are none, or more than [`TABLE_ENTRIES`].
    pub fn new(entries: &[InjectionDelay]) -> Option<Self> {
        let limit = entries.len().checked_sub(1)?;
        let mut table = Self {
            entries: [InjectionDelay::default(); TABLE_ENTRIES],
            limit: u8::try_from(limit).ok()?,
        };
        table
            .entries
            .get_mut(..entries.len())?
            .copy_from_slice(entries);
        Some(table)
    }

    /// A table in which each index adds the same wait: entry `i` is `i · multiplier / 2^shift` packet times, up to index
    /// `limit`. Multipliers that 14 bits cannot hold stay at the longest.
    pub fn linear(shift: u8, multiplier: u16, limit: u8) -> Option<Self> {
        let entry = |index: u8| {
            let multiplier = u32::from(index) * u32::from(multiplier);
            let longest = u32::from(InjectionDelay::LONGEST);
            InjectionDelay::new(shift, multiplier.min(longest) as u16)
        };
        let entries: Option<Vec<_>> = (0..=limit).map(entry).collect();
        Self::new(&entries?)
    }

    /// The entries up to the limit.
    pub fn entries(&self) -> &[InjectionDelay] {
        &self.entries[..=usize::from(self.limit)]
    }

    /// The same table for a flow that waits for so many more packet times after each packet, as its static rate says
    /// (inter-packet delay, IBTA vol. 1, 9.11.1). Waits that 14 bits cannot hold stay at the longest.
    #[must_use]
    pub fn with_delay(mut self, packets: u8) -> Self {
        for entry in &mut self.entries {
            let more = u32::from(packets) << entry.shift();
            let sum =
                (u32::from(entry.multiplier()) + more).min(u32::from(InjectionDelay::LONGEST));
            *entry = InjectionDelay(u16::from(entry.shift()) << 14 | sum as u16);
        }
        self
    }

    /// The highest index in use (`CCTI_Limit`).
    pub const fn limit(&self) -> u8 {
        self.limit
    }
}

/// How a flow of one service level reacts (`CACongestionSetting`, annex A10.4.3.8) and the table that it reacts by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InjectionDelayParameters {
    /// How long until the index falls by one (`CCTI_Timer`); zero: it never falls.
    pub timer: Span,
    /// How much a notification raises the index (`CCTI_Increase`).
    pub increase: u8,
    /// The index from which on an event is logged (`Trigger_Threshold`); zero: never.
    pub trigger: u8,
    /// The lowest index (`CCTI_Min`), where a flow begins.
    pub minimum: u8,
    /// The congestion control table, with `CCTI_Limit`.
    pub table: InjectionTable,
}

/// The unit of `CCTI_Timer` (annex A10.4.3.8).
pub const TIMER_UNIT: Span = Span::nanos(1024);

impl InjectionDelayParameters {
    /// Whether the parameters can be run with.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn check(&self) -> Result<(), RateParameterError> {
        let holds = self.minimum <= self.table.limit;
        require(holds, "minimum", &self.minimum, "an index of the table")?;
        let units = self.timer.div_floor(TIMER_UNIT);
        let holds = units <= u64::from(u16::MAX) && TIMER_UNIT * units == self.timer;
        let needed = "a multiple of 1.024 µs, at most 65,535 of them";
        require(holds, "timer", &self.timer, needed)
    }
}

/// The state of one queue pair whose injection is delayed.
#[derive(Clone, Debug)]
pub struct InjectionControl {
    rate: u64,
    /// When the index next falls.
    due: Time,
    index: u8,
    line: Rate,
    parameters: Box<InjectionDelayParameters>,
}

impl InjectionControl {
    pub(super) fn new(parameters: &InjectionDelayParameters, line: Rate) -> Self {
        let mut new = Self {
            rate: 0,
            due: Time::NEVER,
            index: parameters.minimum,
            line,
            parameters: Box::new(*parameters),
        };
        new.set(parameters.minimum);
        new
    }

    /// The index into the table at `now` (CCTI).
    pub fn index(&mut self, now: Time) -> u8 {
        self.catch_up(now);
        self.index
    }

    #[inline]
    pub(super) fn rate(&mut self, now: Time) -> Rate {
        if self.due <= now {
            self.catch_up(now);
        }
        Rate::bps(self.rate)
    }

    /// True where the index reaches the trigger threshold: an event to log.
    pub(super) fn on_notification(&mut self, now: Time) -> bool {
        self.catch_up(now);
        let before = self.index;
        let raised = before.saturating_add(self.parameters.increase);
        self.set(raised.min(self.parameters.table.limit));
        if self.due == Time::NEVER && self.may_fall() {
            self.due = now.saturating_add(self.parameters.timer);
        }
        let trigger = self.parameters.trigger;
        trigger > 0 && before < trigger && self.index >= trigger
    }

    pub(super) fn next_change(&mut self, now: Time) -> Option<Time> {
        self.catch_up(now);
        (self.due != Time::NEVER).then_some(self.due)
    }

    fn may_fall(&self) -> bool {
        self.index > self.parameters.minimum && !self.parameters.timer.is_zero()
    }

    fn set(&mut self, index: u8) {
        self.index = index;
        let entry = self.parameters.table.entries[usize::from(index)];
        self.rate = entry.rate(self.line).as_bps().max(1);
    }

    /// Lets the timer act at each of its times up to `now`.
    #[cold]
    fn catch_up(&mut self, now: Time) {
        if self.due > now {
            return;
        }
        let (period, minimum) = (self.parameters.timer, self.parameters.minimum);
        let ticks = ticks_due(self.due, period, now);
        let above = u64::from(self.index - minimum);
        self.set(minimum + above.saturating_sub(ticks) as u8);
        self.due = if self.may_fall() {
            self.due.saturating_add(period * ticks)
        } else {
            Time::NEVER
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::{RateControl, RateControlConfig};

    const LINE: Rate = Rate::gbps(100);
    const PERIOD: Span = Span::nanos(1024 * 10);

    fn parameters() -> InjectionDelayParameters {
        InjectionDelayParameters {
            timer: PERIOD,
            increase: 3,
            trigger: 5,
            minimum: 0,
            table: InjectionTable::linear(1, 1, 7).unwrap(),
        }
    }

    fn control(parameters: InjectionDelayParameters) -> RateControl {
        let config = RateControlConfig::InjectionDelay(parameters);
        RateControl::new(&config, LINE, Time::ZERO)
    }

    fn index(control: &mut RateControl, now: Time) -> u8 {
        control.injection_index(now).unwrap()
    }

    /// Waits and rates by hand: a packet of 100 ns and entries of both parts.
    #[test]
    fn an_entry_is_a_wait_and_a_rate() {
        let packet = Span::nanos(100);
        for (shift, multiplier, waits, gbps) in [
            (0, 0, 0, 100.0),
            (0, 1, 100_000, 50.0),
            (1, 1, 50_000, 100.0 / 1.5),
            (2, 3, 75_000, 100.0 / 1.75),
            (3, 8, 100_000, 50.0),
            (0, 127, 12_700_000, 100.0 / 128.0),
            (3, 16_383, 204_787_500, 100.0 / (1.0 + 16_383.0 / 8.0)),
        ] {
            let entry = InjectionDelay::new(shift, multiplier).unwrap();
            assert_eq!(entry.after(packet), Span::picos(waits), "{entry:?}");
            let rate = entry.rate(LINE).as_bps() as f64 / 1e9;
            assert!((rate / gbps - 1.0).abs() < 1e-6, "{entry:?}: {rate}");
        }
        assert_eq!(InjectionDelay::new(4, 1), None);
        assert_eq!(InjectionDelay::new(0, 1 << 14), None);
    }

    #[test]
    fn a_table_has_entries_up_to_its_limit() {
        let table = InjectionTable::linear(2, 5, 9).unwrap();
        assert_eq!((table.limit(), table.entries().len()), (9, 10));
        assert_eq!(Some(table.entries()[0]), InjectionDelay::new(2, 0));
        assert_eq!(Some(table.entries()[9]), InjectionDelay::new(2, 45));
        let steep = InjectionTable::linear(0, 9_000, 2).unwrap();
        assert_eq!(steep.entries()[2].multiplier(), InjectionDelay::LONGEST);
        assert_eq!(InjectionTable::new(table.entries()), Some(table));
        assert_eq!(InjectionTable::new(&[]), None);
        let too_many = [InjectionDelay::default(); TABLE_ENTRIES + 1];
        assert_eq!(InjectionTable::new(&too_many), None);
        assert!(InjectionTable::new(&too_many[1..]).is_some());
    }

    #[test]
    fn notifications_raise_the_index_up_to_the_limit() {
        let mut control = control(parameters());
        let now = Time::from_nanos(5);
        let mut logged = Vec::new();
        for expected in [0, 3, 6, 7, 7] {
            assert_eq!(index(&mut control, now), expected);
            let rate = 1e11 / (1.0 + f64::from(expected) / 2.0);
            let found = control.rate(now).as_bps() as f64;
            assert!((found / rate - 1.0).abs() < 1e-9, "{found} of {rate}");
            logged.push(control.on_notification(now));
        }
        assert_eq!(
            logged,
            [false, true, false, false, false],
            "once, as the index comes to 5 or more"
        );
    }

    /// The index falls by one each period, from the first notification on, and the flow is at line rate again.
    #[test]
    fn the_timer_brings_a_flow_back_to_line_rate() {
        let begin = Time::from_nanos(777);
        let at = |tenths: u64| begin + PERIOD * tenths / 10;
        for asked in [1, 7, 1000] {
            let mut control = control(parameters());
            control.on_notification(begin);
            control.on_notification(at(5));
            let steps = [(9, 6), (10, 5), (19, 5), (20, 4), (50, 1), (59, 1), (60, 0)];
            for (step, (tenths, expected)) in steps.into_iter().enumerate() {
                if step % asked == 0 || tenths >= 59 {
                    assert_eq!(index(&mut control, at(tenths)), expected, "{tenths}");
                }
            }
            assert_eq!(control.rate(at(60)), LINE);
            assert_eq!(control.next_change(at(60)), None, "nothing is left to rise");
            // The next notification starts the timer anew.
            control.on_notification(at(75));
            assert_eq!(control.next_change(at(76)), Some(at(85)));
            assert_eq!(index(&mut control, at(84)), 3);
            assert_eq!(index(&mut control, at(85)), 2);
        }
    }

    #[test]
    fn a_flow_begins_at_its_minimum_and_never_falls_below() {
        let mut control = control(InjectionDelayParameters {
            minimum: 2,
            ..parameters()
        });
        let now = Time::from_nanos(1);
        assert_eq!(control.rate(now), Rate::gbps(50));
        control.on_notification(now);
        assert_eq!(index(&mut control, now), 5);
        assert_eq!(index(&mut control, now + PERIOD * 3), 2);
        assert_eq!(index(&mut control, now + Span::millis(1000)), 2);
    }

    #[test]
    fn without_a_timer_the_index_never_falls() {
        let mut control = control(InjectionDelayParameters {
            timer: Span::ZERO,
            ..parameters()
        });
        control.on_notification(Time::ZERO);
        assert_eq!(index(&mut control, Time::ZERO + Span::millis(9000)), 3);
        assert_eq!(control.next_change(Time::ZERO), None);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let refused = |change: &dyn Fn(&mut InjectionDelayParameters)| {
            let mut parameters = parameters();
            change(&mut parameters);
            parameters.check().map_err(|error| error.parameter)
        };
        assert_eq!(refused(&|_| {}), Ok(()));
        assert_eq!(refused(&|p| p.minimum = 8), Err("minimum"));
        assert_eq!(refused(&|p| p.timer = Span::nanos(1000)), Err("timer"));
        assert_eq!(refused(&|p| p.timer = TIMER_UNIT * 65_536), Err("timer"));
        assert_eq!(refused(&|p| p.timer = TIMER_UNIT * 65_535), Ok(()));
    }
}
