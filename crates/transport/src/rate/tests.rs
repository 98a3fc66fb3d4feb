//! Sequences worked out by hand, and the lazy state against a model that steps through every single tick.

use proptest::prelude::*;
use softfabric_units::{Bytes, Rate, Span, Time};

use super::*;

const LINE: Rate = Rate::gbps(100);

fn at_nanos(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn nic(parameters: DcqcnNicParameters) -> RateControl {
    RateControl::new(&RateControlConfig::DcqcnNic(parameters), LINE, Time::ZERO)
}

fn paper(parameters: DcqcnPaperParameters, line: Rate) -> RateControl {
    RateControl::new(&RateControlConfig::DcqcnPaper(parameters), line, Time::ZERO)
}

/// The rate just before and at an instant.
fn around(control: &mut RateControl, nanos: u64) -> (u64, u64) {
    let before = control.rate(at_nanos(nanos) - Span::picos(1)).as_bps();
    (before, control.rate(at_nanos(nanos)).as_bps())
}

/// A static rate of one part in three: two packet times more at each index, whatever its shift.
#[test]
fn a_static_rate_adds_to_each_entry_of_the_table() {
    let entry = |shift, multiplier| InjectionDelay::new(shift, multiplier).unwrap();
    let table = InjectionTable::new(&[entry(0, 0), entry(2, 5), entry(3, 16_380)]).unwrap();
    let slower = table.with_delay(2);
    assert_eq!(
        slower.entries(),
        [entry(0, 2), entry(2, 13), entry(3, 16_383)]
    );
    assert_eq!(slower.entries()[0].rate(Rate::gbps(99)), Rate::gbps(33));
    assert_eq!(table.with_delay(0), table);
}

#[test]
fn hpcc_first_cut_and_recovery() {
    let mut control = nic(DcqcnNicParameters::hpcc(LINE));
    control.on_notification(Time::ZERO);
    // 4 ticks of alpha without news: (255/256)^4; the cut is 1 ns after the fourth.
    assert_eq!(
        around(&mut control, 4_001),
        (100_000_000_000, 50_776_684_272)
    );
    assert_eq!(control.target(at_nanos(4_001)), LINE, "stage 0 keeps it");
    // Stage 0: fast recovery. Stage 1: additive, but the target is at line rate already.
    assert_eq!(
        around(&mut control, 304_001),
        (50_776_684_272, 75_388_342_136)
    );
    assert_eq!(
        around(&mut control, 604_001),
        (75_388_342_136, 87_694_171_068)
    );
    // A notification at 700 µs, after that instant's tick of alpha; the next decrease tick is 1 ns later.
    control.on_notification(at_nanos(700_000));
    assert_eq!(
        around(&mut control, 700_001),
        (87_694_171_068, 84_862_183_666)
    );
    assert_eq!(control.target(at_nanos(700_001)).as_bps(), 87_694_171_068);
    // Fast recovery, one additive step of 20 Mb/s, then a hyper step of 200 Mb/s.
    for (nanos, rate, target) in [
        (1_000_001, 86_278_177_367, 87_694_171_068),
        (1_300_001, 86_996_174_217, 87_714_171_068),
        (1_600_001, 87_455_172_642, 87_914_171_068),
    ] {
        assert_eq!(control.rate(at_nanos(nanos)).as_bps(), rate);
        assert_eq!(control.target(at_nanos(nanos)).as_bps(), target);
    }
}

#[test]
fn hpcc_increase_acts_before_a_cut_of_the_same_instant() {
    let mut control = nic(DcqcnNicParameters::hpcc(LINE));
    control.on_notification(Time::ZERO);
    control.on_notification(at_nanos(303_000));
    // 304,001 ns: raised to 75.39 Gb/s, which becomes the target, then cut by alpha ≈ 0.308.
    assert_eq!(
        around(&mut control, 304_001),
        (50_776_684_272, 63_771_728_459)
    );
    assert_eq!(control.target(at_nanos(304_001)).as_bps(), 75_388_342_136);
}

#[test]
fn hpcc_minimum_and_no_second_cut_without_news() {
    let mut control = nic(DcqcnNicParameters::hpcc(LINE));
    for micros in 0..100 {
        control.on_notification(at_nanos(micros * 1_000));
    }
    let rate = control.rate(at_nanos(101_000));
    assert_eq!(rate, Rate::gbps(1), "alpha stays near 1 under steady news");
    assert_eq!(
        control.rate(at_nanos(399_000)),
        rate,
        "nothing until the timer"
    );
    assert!(control.rate(at_nanos(400_001)) > rate);
}

#[test]
fn clamp_sets_the_target_at_each_cut() {
    let clamped = DcqcnNicParameters {
        clamp_target: true,
        ..DcqcnNicParameters::hpcc(LINE)
    };
    let mut control = nic(clamped);
    for micros in [0, 5] {
        control.on_notification(at_nanos(micros * 1_000));
    }
    let first = 50_776_684_272;
    assert_eq!(control.rate(at_nanos(8_000)).as_bps(), first);
    assert!(control.rate(at_nanos(8_001)).as_bps() < first);
    assert_eq!(control.target(at_nanos(8_001)).as_bps(), first);
}

#[test]
fn nvidia_defaults() {
    let parameters = DcqcnNicParameters::nvidia_default();
    assert_eq!(parameters.alpha_gain, 1.0 - 1019.0 / 1024.0);
    let mut control = nic(parameters);
    control.on_notification(Time::ZERO);
    // alpha = 1023/1024 · (1019/1024)^4 = 0.979589...; half of it goes.
    let alpha = 1023.0 / 1024.0 * 1019f64.powi(4) / 1024f64.powi(4);
    let expected = 100e9 * (1.0 - alpha / 2.0);
    let rate = control.rate(at_nanos(4_000)).as_bps() as f64;
    assert!(
        (rate - expected).abs() < 2.0,
        "{rate} instead of {expected}"
    );
    // The byte counter, 32767 · 64 B, recovers without the timer, and a second wrap steps the target.
    control.on_sent(at_nanos(5_000), Bytes::new(32_767 * 64 - 1));
    assert_eq!(control.rate(at_nanos(5_000)).as_bps() as f64, rate);
    control.on_sent(at_nanos(5_000), Bytes::new(1));
    let recovered = control.rate(at_nanos(5_000)).as_bps() as f64;
    assert!((recovered - (rate + 100e9) / 2.0).abs() < 3.0);
    // A cut after a rise by bytes alone takes the rate as its target.
    control.on_notification(at_nanos(6_000));
    assert_eq!(
        control.target(at_nanos(8_000)).as_bps() as f64,
        recovered,
        "risen by bytes"
    );
}

#[test]
fn the_target_stays_where_only_bytes_count_and_only_the_timer_rose() {
    let parameters = DcqcnNicParameters {
        clamp_target_after_timer: false,
        ..DcqcnNicParameters::nvidia_default()
    };
    let mut control = nic(parameters);
    control.on_notification(Time::ZERO);
    control.on_notification(at_nanos(305_000));
    let before = control.rate(at_nanos(305_000));
    assert!(control.rate(at_nanos(308_000)) < before);
    assert_eq!(control.target(at_nanos(308_000)), LINE);
}

#[test]
fn first_notification_may_set_the_rate_and_release_forgets() {
    let parameters = DcqcnNicParameters {
        rate_on_first_notification: Some(Rate::gbps(50)),
        additive_increase: Rate::gbps(100),
        ..DcqcnNicParameters::nvidia_default()
    };
    let mut control = nic(parameters);
    control.on_notification(Time::ZERO);
    assert_eq!(control.rate(at_nanos(1)), Rate::gbps(50));
    assert_eq!(control.target(at_nanos(1)), Rate::gbps(50));
    let late = at_nanos(60_000_000);
    assert_eq!(control.rate(late), LINE);
    assert_eq!(
        control.next_change(late),
        None,
        "released: no clock runs any more"
    );
    assert_eq!(control.alpha(late), Some(1023.0 / 1024.0));
    control.on_notification(late);
    assert_eq!(control.rate(late), Rate::gbps(50), "a first one again");
}

#[test]
fn minimum_decrease_factor_bounds_a_cut() {
    let parameters = DcqcnNicParameters {
        decrease_share: 1.0,
        minimum_decrease_factor: 0.75,
        ..DcqcnNicParameters::hpcc(LINE)
    };
    let mut control = nic(parameters);
    control.on_notification(Time::ZERO);
    assert_eq!(control.rate(at_nanos(4_001)), Rate::gbps(75));
}

#[test]
fn paper_sequence() {
    let line = Rate::gbps(40);
    let mut control = paper(DcqcnPaperParameters::sigcomm15(), line);
    assert_eq!(control.rate(at_nanos(1_000_000)), line);
    assert_eq!(control.next_change(at_nanos(1_000_000)), None);
    let start = 1_000_000;
    control.on_notification(at_nanos(start));
    assert_eq!(control.rate(at_nanos(start)), Rate::gbps(20), "alpha is 1");
    control.on_notification(at_nanos(start + 50_000));
    assert_eq!(control.rate(at_nanos(start + 50_000)), Rate::gbps(10));
    // Five steps of fast recovery towards 20 Gb/s, then additive ones of 40 Mb/s.
    for (step, rate) in [
        (1, 15_000_000_000),
        (2, 17_500_000_000),
        (3, 18_750_000_000),
        (4, 19_375_000_000),
        (5, 19_687_500_000),
        (6, 19_863_750_000),
        (7, 19_971_875_000),
    ] {
        let time = at_nanos(start + 50_000 + 55_000 * step);
        assert_eq!(control.next_change(time - Span::picos(1)), Some(time));
        assert_eq!(control.rate(time).as_bps(), rate, "step {step}");
    }
    let alpha = control.alpha(at_nanos(start + 50_000 + 55_000)).unwrap();
    assert!((alpha - 255.0 / 256.0).abs() < 1e-15, "{alpha}");
}

#[test]
fn paper_byte_counter_and_hyper_increase() {
    let parameters = DcqcnPaperParameters {
        byte_counter: Some(Bytes::kb(10)),
        fast_recovery_stages: 1,
        ..DcqcnPaperParameters::sigcomm15()
    };
    let mut control = paper(parameters, Rate::gbps(40));
    control.on_notification(Time::ZERO);
    control.on_notification(Time::ZERO);
    let now = at_nanos(1);
    let targets: Vec<_> = (0..4)
        .map(|_| {
            control.on_sent(now, Bytes::kb(10));
            control.target(now).as_bps() / 1_000_000
        })
        .collect();
    assert_eq!(
        targets,
        [20_000, 20_040, 20_080, 20_120],
        "the timer's stage is 0"
    );
    // Stages 4 and 0, 1, 2: additive twice; then both above F = 1: hyper.
    for (tick, target) in [(1, 20_160), (2, 20_200), (3, 20_600)] {
        assert_eq!(
            control.target(at_nanos(55_000 * tick)).as_bps() / 1_000_000,
            target
        );
    }
    // Three wraps in one report act like three reports of one.
    control.on_sent(at_nanos(170_000), Bytes::kb(30));
    let target = control.target(at_nanos(170_000)).as_bps();
    assert_eq!(target / 1_000_000, 20_600 + 3 * 400);
}

#[test]
fn a_timeout_restarts_slowly_where_asked() {
    let plain = DcqcnPaperParameters::sigcomm15();
    let slow = DcqcnPaperParameters {
        restart_rate: Some(Rate::gbps(1)),
        ..plain
    };
    let line = Rate::gbps(40);
    let mut control = paper(plain, line);
    control.on_timeout(Time::ZERO);
    assert_eq!(control.rate(Time::ZERO), line);
    let mut control = paper(slow, line);
    control.on_timeout(Time::ZERO);
    assert_eq!(control.rate(Time::ZERO), Rate::gbps(1));
    assert_eq!(control.rate(at_nanos(55_000)).as_bps(), 20_500_000_000);
    let mut control = nic(DcqcnNicParameters {
        restart_rate: Some(Rate::gbps(2)),
        ..DcqcnNicParameters::hpcc(LINE)
    });
    control.on_timeout(Time::ZERO);
    assert_eq!(control.rate(Time::ZERO), Rate::gbps(2));
    assert_eq!(control.rate(at_nanos(300_000)), Rate::gbps(51));
}

#[test]
fn fixed_and_none() {
    for (config, expected) in [
        (RateControlConfig::None, LINE),
        (
            RateControlConfig::Fixed {
                rate: Rate::gbps(7),
            },
            Rate::gbps(7),
        ),
        (
            RateControlConfig::Fixed {
                rate: Rate::gbps(700),
            },
            LINE,
        ),
    ] {
        let mut control = RateControl::new(&config, LINE, Time::ZERO);
        control.on_notification(Time::ZERO);
        control.on_timeout(Time::ZERO);
        control.on_sent(Time::ZERO, Bytes::gib(4));
        assert_eq!(control.rate(at_nanos(1)), expected);
        assert_eq!(control.target(at_nanos(1)), expected);
        assert_eq!(control.next_change(at_nanos(1)), None);
        assert_eq!(control.alpha(at_nanos(1)), None);
    }
}

#[test]
fn wrong_parameters_are_named() {
    let wrong = DcqcnNicParameters {
        alpha_gain: 1.5,
        ..DcqcnNicParameters::hpcc(LINE)
    };
    let error = wrong.check().unwrap_err().to_string();
    assert!(
        error.contains("alpha_gain") && error.contains("1.5"),
        "{error}"
    );
    let wrong = DcqcnPaperParameters {
        increase_period: Span::ZERO,
        ..DcqcnPaperParameters::sigcomm15()
    };
    let error = RateControlConfig::DcqcnPaper(wrong).check().unwrap_err();
    assert_eq!(error.parameter, "increase_period");
    for bandwidth in [25, 100, 400] {
        assert_eq!(
            DcqcnNicParameters::hpcc(Rate::gbps(bandwidth)).check(),
            Ok(())
        );
    }
}

#[test]
fn hpcc_steps_scale_with_the_line() {
    for (gbps, additive, hyper) in [(25, 5, 50), (100, 20, 200), (400, 80, 800)] {
        let parameters = DcqcnNicParameters::hpcc(Rate::gbps(gbps));
        assert_eq!(parameters.additive_increase, Rate::mbps(additive));
        assert_eq!(parameters.hyper_increase, Rate::mbps(hyper));
    }
}

#[test]
fn the_state_stays_small() {
    assert!(
        size_of::<RateControl>() <= 120,
        "{}",
        size_of::<RateControl>()
    );
}

#[test]
fn powers_by_squaring_agree_with_factors_one_by_one() {
    let keep: f64 = 255.0 / 256.0;
    for ticks in [0, 1, 64, 65, 100, 1_000, 20_000] {
        let stepped = (0..ticks).fold(1.0, |alpha, _| alpha * keep);
        let closed = decayed(1.0, keep, ticks);
        assert!(
            (closed - stepped).abs() <= 1e-10 * stepped,
            "{ticks}: {closed}"
        );
    }
    assert_eq!(decayed(1.0, keep, u64::MAX), 0.0);
}

/// The same rules as events: every tick of every clock happens, one after the other.
struct Eager {
    paper: Option<DcqcnPaperParameters>,
    nic: DcqcnNicParameters,
    line: u64,
    rate: u64,
    target: u64,
    alpha: f64,
    stages: [u32; 2],
    bytes: u64,
    noted: [bool; 2],
    clocks: [Option<Time>; 3],
}

impl Eager {
    const INCREASE: usize = 0;
    const ALPHA: usize = 1;
    const DECREASE: usize = 2;

    fn new(config: &RateControlConfig, line: Rate) -> Self {
        let (paper, nic) = match config {
            RateControlConfig::DcqcnPaper(paper) => (Some(*paper), DcqcnNicParameters::hpcc(line)),
            RateControlConfig::DcqcnNic(nic) => (None, *nic),
            _ => unreachable!("only DCQCN is modelled"),
        };
        Self {
            paper,
            nic,
            line: line.as_bps(),
            rate: line.as_bps(),
            target: line.as_bps(),
            alpha: paper.map_or(nic.initial_alpha, |_| 1.0),
            stages: [0; 2],
            bytes: 0,
            noted: [false; 2],
            clocks: [None; 3],
        }
    }

    fn advance(&mut self, now: Time) {
        loop {
            let next = self.clocks.iter().flatten().min().copied();
            let Some(time) = next.filter(|time| *time <= now) else {
                return;
            };
            // The first of equal times: increase, alpha, decrease.
            let clock = (0..3)
                .find(|clock| self.clocks[*clock] == Some(time))
                .unwrap();
            match (clock, self.paper) {
                (Self::INCREASE, paper) => {
                    self.increase(0);
                    let period = paper.map_or(self.nic.increase_period, |p| p.increase_period);
                    if self.clocks[Self::INCREASE].is_some() {
                        self.clocks[Self::INCREASE] = Some(time + period);
                    }
                }
                (Self::ALPHA, Some(paper)) => {
                    self.alpha *= 1.0 - paper.alpha_gain;
                    self.clocks[Self::ALPHA] = Some(time + paper.alpha_period);
                }
                (Self::ALPHA, None) => {
                    let gain = self.nic.alpha_gain;
                    let news = if self.noted[0] { gain } else { 0.0 };
                    self.alpha = (1.0 - gain) * self.alpha + news;
                    self.noted[0] = false;
                    self.clocks[Self::ALPHA] = Some(time + self.nic.alpha_period);
                }
                _ => {
                    self.clocks[Self::DECREASE] = Some(time + self.nic.decrease_period);
                    if self.noted[1] {
                        self.cut(time);
                    }
                }
            }
        }
    }

    fn cut(&mut self, now: Time) {
        let parameters = self.nic;
        let timer_counts = parameters.clamp_target_after_timer && self.stages[0] > 0;
        if parameters.clamp_target || timer_counts || self.stages[1] > 0 {
            self.target = self.rate;
        }
        let factor = 1.0 - self.alpha * parameters.decrease_share;
        let factor = factor.max(parameters.minimum_decrease_factor);
        self.rate = ((self.rate as f64 * factor) as u64).max(parameters.minimum_rate.as_bps());
        self.noted[1] = false;
        self.restart(now + parameters.increase_period);
    }

    fn restart(&mut self, timer: Time) {
        self.stages = [0; 2];
        self.bytes = 0;
        self.clocks[Self::INCREASE] = Some(timer);
    }

    fn byte_counter(&self) -> Option<Bytes> {
        self.paper
            .map_or(self.nic.byte_counter, |paper| paper.byte_counter)
    }

    fn increase(&mut self, source: usize) {
        let (threshold, additive, hyper) = match self.paper {
            Some(p) => (
                p.fast_recovery_stages,
                p.additive_increase,
                p.hyper_increase,
            ),
            None => (
                self.nic.fast_recovery_stages,
                self.nic.additive_increase,
                self.nic.hyper_increase,
            ),
        };
        let [time, mut byte] = self.stages;
        if self.paper.is_none() && self.byte_counter().is_none() {
            byte = time;
        }
        let step = if time < threshold && byte < threshold {
            0
        } else if time > threshold && byte > threshold {
            hyper.as_bps()
        } else {
            additive.as_bps()
        };
        self.target = (self.target + step).min(self.line);
        if self.paper.is_some() {
            self.rate = (self.rate + self.target) / 2;
        } else {
            self.rate = self.rate / 2 + self.target / 2;
            let full = self.target == self.line && self.rate + 2 > self.line;
            if self.nic.release_at_maximum && full && !self.noted[1] {
                self.rate = self.line;
                self.clocks = [None; 3];
                self.alpha = self.nic.initial_alpha;
                self.stages = [0; 2];
                return;
            }
        }
        self.stages[source] += 1;
    }

    fn notify(&mut self, now: Time) {
        self.advance(now);
        if let Some(paper) = self.paper {
            self.target = self.rate;
            let reduced = (self.rate as f64 * (1.0 - self.alpha / 2.0)) as u64;
            self.rate = reduced.max(paper.minimum_rate.as_bps());
            self.alpha = (1.0 - paper.alpha_gain) * self.alpha + paper.alpha_gain;
            self.clocks[Self::ALPHA] = Some(now + paper.alpha_period);
            self.restart(now + paper.increase_period);
            return;
        }
        self.noted = [true; 2];
        if self.clocks[Self::ALPHA].is_none() {
            self.alpha = self.nic.initial_alpha;
            self.noted[0] = false;
            self.clocks[Self::ALPHA] = Some(now + self.nic.alpha_period);
            let first = self.nic.decrease_period + self.nic.first_decrease_delay;
            self.clocks[Self::DECREASE] = Some(now + first);
            self.target = self.rate;
        }
    }

    fn sent(&mut self, now: Time, bytes: u64) {
        self.advance(now);
        let Some(limit) = self.byte_counter() else {
            return;
        };
        if self.clocks[Self::INCREASE].is_none() {
            return;
        }
        self.bytes += bytes;
        while self.bytes >= limit.as_u64() && self.clocks[Self::INCREASE].is_some() {
            self.bytes -= limit.as_u64();
            self.increase(1);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Notify,
    Sent(u64),
    Look,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    // Gaps in ns: within an alpha tick, on ticks exactly, over an increase period, and long idle times.
    let gap = prop_oneof![
        4 => 0..5_000u64,
        4 => (0..60u64).prop_map(|micros| micros * 1_000),
        3 => 50_000..700_000u64,
        1 => 1_000_000..30_000_000u64,
    ];
    let step = prop_oneof![
        3 => Just(Step::Notify),
        4 => (1..200_000u64).prop_map(Step::Sent),
        2 => Just(Step::Look),
    ];
    prop::collection::vec((gap, step), 1..80)
}

fn configs() -> impl Strategy<Value = RateControlConfig> {
    let small_counter = DcqcnPaperParameters {
        byte_counter: Some(Bytes::kb(150)),
        fast_recovery_stages: 2,
        ..DcqcnPaperParameters::sigcomm15()
    };
    let quick = DcqcnNicParameters {
        byte_counter: Some(Bytes::kb(100)),
        additive_increase: Rate::gbps(1),
        hyper_increase: Rate::gbps(5),
        increase_period: Span::micros(55),
        ..DcqcnNicParameters::nvidia_default()
    };
    let bytes_only_clamp = DcqcnNicParameters {
        clamp_target_after_timer: false,
        release_at_maximum: false,
        ..quick
    };
    prop::sample::select(vec![
        RateControlConfig::DcqcnPaper(DcqcnPaperParameters::sigcomm15()),
        RateControlConfig::DcqcnPaper(small_counter),
        RateControlConfig::DcqcnNic(DcqcnNicParameters::hpcc(LINE)),
        RateControlConfig::DcqcnNic(DcqcnNicParameters::nvidia_default()),
        RateControlConfig::DcqcnNic(quick),
        RateControlConfig::DcqcnNic(bytes_only_clamp),
    ])
}

fn minimum(config: &RateControlConfig) -> Rate {
    match config {
        RateControlConfig::DcqcnPaper(parameters) => parameters.minimum_rate,
        RateControlConfig::DcqcnNic(parameters) => parameters.minimum_rate,
        _ => Rate::ZERO,
    }
}

fn act(control: &mut RateControl, now: Time, step: Step) {
    match step {
        Step::Notify => {
            control.on_notification(now);
        }
        Step::Sent(bytes) => control.on_sent(now, Bytes::new(bytes)),
        Step::Look => {}
    }
}

proptest! {
    #[test]
    fn lazy_equals_eager(config in configs(), steps in steps()) {
        let mut lazy = RateControl::new(&config, LINE, Time::ZERO);
        let mut eager = Eager::new(&config, LINE);
        let mut now = Time::ZERO;
        for (gap, step) in steps {
            now += Span::nanos(gap);
            act(&mut lazy, now, step);
            match step {
                Step::Notify => eager.notify(now),
                Step::Sent(bytes) => eager.sent(now, bytes),
                Step::Look => eager.advance(now),
            }
            // Rounding of alpha's long decays, and single bits where increases no longer move the rate.
            let near = |found: Rate, model: u64| found.as_bps().abs_diff(model) <= 200;
            let rate = lazy.rate(now);
            prop_assert!(near(rate, eager.rate), "{rate:?} {} at {now:?}", eager.rate);
            let target = lazy.target(now);
            prop_assert!(near(target, eager.target), "{target:?} {} at {now:?}", eager.target);
            let alpha = lazy.alpha(now).unwrap();
            prop_assert!((alpha - eager.alpha).abs() < 1e-9, "{alpha} {} at {now:?}", eager.alpha);
            prop_assert!(rate >= minimum(&config) && rate <= LINE);
        }
    }

    /// Looking, however often, changes nothing, and without news the rate never falls, nor before its announced time
    /// rises.
    #[test]
    fn looking_changes_nothing(config in configs(), steps in steps(), looks in 1..9u64) {
        let mut plain = RateControl::new(&config, LINE, Time::ZERO);
        let mut watched = plain.clone();
        let mut now = Time::ZERO;
        for (gap, step) in steps {
            let mut last = watched.rate(now);
            for look in 1..=looks {
                let seen = now + Span::nanos(gap) * look / looks;
                let change = watched.next_change(seen);
                let rate = watched.rate(seen);
                if matches!(config, RateControlConfig::DcqcnPaper(_)) {
                    prop_assert!(rate >= last, "{rate:?} after {last:?}");
                }
                last = rate;
                if let Some(change) = change {
                    prop_assert!(change > seen);
                    let before = watched.clone().rate(change - Span::picos(1));
                    prop_assert!(before <= rate, "rose before {change:?}");
                } else {
                    let later = watched.clone().rate(seen + Span::seconds(1));
                    prop_assert!(later <= rate, "rose without an announced time");
                }
            }
            now += Span::nanos(gap);
            act(&mut plain, now, step);
            act(&mut watched, now, step);
        }
        prop_assert_eq!(plain.rate(now), watched.rate(now));
        prop_assert_eq!(plain.target(now), watched.target(now));
        prop_assert_eq!(plain.alpha(now), watched.alpha(now));
    }
}
