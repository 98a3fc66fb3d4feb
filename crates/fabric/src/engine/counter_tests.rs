//! What is counted and recorded, held against what must have happened.

use softfabric_telemetry::{ClassCounter, Counter, DeviceCounter, PortCounter, Series};
use softfabric_units::{Bytes, Rate, Span, Time};

use super::feature_tests::star;
use super::tests::{DATA, flow, host_profile, switch_profile};
use super::*;
use crate::plan::*;
use crate::results::{FlowStatus, PortResult};

const RECEIVER: NodeId = NodeId(1);

/// One switch (node 0) and three hosts at 100 Gb/s; hosts 1 and 2 send to host 0 without end, from 100 ns on.
fn two_into_one(stop: Span) -> Plan {
    let mut plan = star(3);
    plan.switch_profiles[0].buffer.cell = Bytes::new(1);
    plan.flows = [2, 3]
        .map(|source| flow(NodeId(source), RECEIVER, 1 << 30, 20_000))
        .to_vec();
    plan.stop.at = Time::ZERO + stop;
    plan
}

fn simulate(plan: &Plan) -> Results {
    let results = run(plan, &mut RunOptions::default()).expect("a sound plan");
    assert_eq!(results.conservation.violations, Vec::<String>::new());
    results
}

fn port(results: &Results, node: u32) -> &PortResult {
    let endpoint = Endpoint {
        node: NodeId(node),
        port: PortId(0),
    };
    let port = results.ports.iter().find(|port| port.endpoint == endpoint);
    port.expect("the port")
}

fn at(micros: u64, action: Action) -> TimedAction {
    TimedAction {
        at: Time::ZERO + Span::micros(micros),
        action,
    }
}

fn total_delivered(results: &Results) -> Bytes {
    results.flows.iter().map(|flow| flow.delivered).sum()
}

/// A pause that is not over at the end counts until then, and takes effect after the switch's response delay.
#[test]
fn a_pause_counts_from_its_effect_to_the_end() {
    let counted = |response_delay| {
        let mut plan = two_into_one(Span::micros(30));
        plan.switch_profiles[0].pause.response_delay = response_delay;
        plan.actions = vec![at(10, Action::StormBegins(RECEIVER, DATA))];
        let results = simulate(&plan);
        let port = port(&results, 0);
        [
            port.classes[DATA.index()].value(ClassCounter::PauseReceivedDuration),
            port.port.value(PortCounter::TransmitWait),
        ]
        .map(Span::picos)
    };
    // The frame takes 84 B at 100 Gb/s and 500 ns of cable; an acknowledgement of 86 B may go first.
    let frame = Rate::gbps(100).time_for(Bytes::new(84));
    for response_delay in [Span::ZERO, Span::micros(2)] {
        let [paused, waited] = counted(response_delay);
        let most = Span::micros(20) - frame - Span::nanos(500) - response_delay;
        assert!(
            paused <= most && paused + Span::nanos(10) >= most,
            "{paused} for {most}"
        );
        // The packet that is under way when the pause comes is sent to its end: at most 1,122 B.
        assert!(
            waited <= paused && waited + Span::nanos(90) >= paused,
            "{waited} for {paused}"
        );
    }
}

#[test]
fn a_switch_that_does_not_obey_is_not_stopped() {
    let delivered = |obeys| {
        let mut plan = two_into_one(Span::millis(1));
        plan.switch_profiles[0].pause.obeys = obeys;
        plan.actions = vec![at(10, Action::StormBegins(RECEIVER, DATA))];
        total_delivered(&simulate(&plan))
    };
    assert!(delivered(true) < Bytes::kb(125), "10 us at 100 Gb/s");
    assert!(delivered(false) > Bytes::mb(9));
}

/// PFC turned off in the middle of a storm: everybody goes on at once, nobody speaks or obeys any more.
#[test]
fn pfc_off_frees_whoever_is_paused() {
    let mut plan = two_into_one(Span::millis(1));
    plan.recording.pause_log = true;
    plan.actions = vec![
        at(10, Action::StormBegins(RECEIVER, DATA)),
        at(200, Action::PfcOff(DATA)),
        at(300, Action::StormBegins(RECEIVER, DATA)),
    ];
    let results = simulate(&plan);
    let to_hosts = |event: &&crate::results::PauseEvent| event.endpoint.node != NodeId(0);
    let last = results.pause_log.iter().rfind(to_hosts);
    let last = last.expect("the switch pauses its senders").time;
    assert!(last < Time::ZERO + Span::micros(201), "{last}");
    let paused = port(&results, 0).classes[DATA.index()].value(ClassCounter::PauseReceivedDuration);
    let paused = Span::picos(paused);
    assert!(
        paused > Span::micros(189) && paused <= Span::micros(190),
        "{paused}"
    );
    for sender in [2, 3] {
        let class = &port(&results, sender).classes[DATA.index()];
        let paused = Span::picos(class.value(ClassCounter::PauseReceivedDuration));
        assert!(paused < Span::micros(200), "{paused}");
        assert!(class.value(ClassCounter::TransmitBytes) > 1_000_000);
    }
}

/// The pauses that a link is about to obey when it fails, or when PFC is turned off, never take effect.
#[test]
fn a_pause_that_waits_for_its_effect_can_be_too_late() {
    let down = [
        (12, Action::LinkDown(LinkId(0))),
        (20, Action::LinkUp(LinkId(0))),
    ];
    let off = [(12, Action::PfcOff(DATA)), (20, Action::PfcOff(DATA))];
    for actions in [down, off] {
        let mut plan = two_into_one(Span::millis(1));
        plan.switch_profiles[0].pause.response_delay = Span::micros(3);
        plan.actions = vec![at(10, Action::StormBegins(RECEIVER, DATA))];
        plan.actions
            .extend(actions.map(|(time, action)| at(time, action)));
        let results = simulate(&plan);
        let switch = &port(&results, 0).classes[DATA.index()];
        assert_eq!(switch.value(ClassCounter::PauseReceived), 1);
        assert_eq!(switch.value(ClassCounter::PauseReceivedDuration), 0);
        // Nobody holds the switch paused once the link or PFC is gone.
        let host = &port(&results, RECEIVER.0).classes[DATA.index()];
        let held = Span::picos(host.value(ClassCounter::PauseSentDuration));
        assert!(held <= Span::micros(2) && held > Span::micros(1), "{held}");
    }
}

/// A pause of one quantum runs out before it can be asked for again: the queue moves in between.
#[test]
fn a_pause_that_runs_out_lets_the_queue_go_on() {
    let transitions = |quanta| {
        let mut plan = two_into_one(Span::millis(1));
        plan.host_profiles[0].pause_quanta = Some(quanta);
        plan.host_profiles[0].receive.drain = Some(Rate::gbps(10));
        plan.host_profiles[0].lossless = plan.switch_profiles[0].lossless();
        let results = simulate(&plan);
        let switch = &port(&results, 0).classes[DATA.index()];
        let asked = switch.value(ClassCounter::PauseReceived);
        let paused = Span::picos(switch.value(ClassCounter::PauseReceivedDuration));
        (asked, switch.value(ClassCounter::PauseTransitions), paused)
    };
    let (asked, begun, paused) = transitions(1);
    // Each is a pause of its own; the last ones have come in and are not obeyed yet.
    assert!(asked > 1000 && begun + 20 > asked, "{begun} of {asked}");
    // 512 bit times at 100 Gb/s each, the last one cut short by the end.
    let whole = Span::picos(5_120);
    assert!(
        paused <= whole * begun && paused > whole * (begun - 1),
        "{paused}"
    );
    let (asked, begun, _) = transitions(1000);
    assert!(begun * 2 < asked, "{begun} of {asked}: asked again in time");
}

/// A queue pair that waits for ever, and nothing left in any switch: whoever polls still hears every port until the end.
#[test]
fn polls_go_on_until_the_end_where_nothing_moves_any_more() {
    let mut plan = star(2);
    plan.flows = vec![flow(NodeId(2), RECEIVER, 1 << 20, 20_000)];
    plan.recording.counters = Some(Span::micros(100));
    plan.stop.at = Time::ZERO + Span::millis(2);
    plan.host_profiles[0].nic.timeout = 0;
    plan.actions = vec![at(10, Action::LinkDown(LinkId(0)))];
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Stalled);
    let last = |node: u32| {
        let of_node = results
            .counters
            .iter()
            .filter(|s| s.endpoint.node == NodeId(node));
        of_node.map(|sample| sample.time).max()
    };
    for node in 0..3 {
        assert!(
            last(node) > Some(Time::ZERO + Span::micros(1_900)),
            "node {node}: {:?}",
            last(node)
        );
    }
}

/// What the watchdog does about a storm: drop, send all the same, or only count.
#[test]
fn the_watchdog_acts_as_it_is_told() {
    let with = |action| {
        let mut plan = two_into_one(Span::millis(2));
        plan.switch_profiles[0].watchdog = Some(Watchdog {
            detection: Span::micros(200),
            restoration: Span::millis(10),
            poll: Span::micros(100),
            action,
        });
        plan.actions = vec![at(100, Action::StormBegins(RECEIVER, DATA))];
        let results = simulate(&plan);
        let counters = &port(&results, 0).classes[DATA.index()];
        assert_eq!(counters.value(ClassCounter::WatchdogStorms), 1);
        let dropped = counters.value(ClassCounter::WatchdogDropped);
        (dropped > 0, total_delivered(&results) > Bytes::mb(10))
    };
    assert_eq!(with(WatchdogAction::Drop), (true, false));
    assert_eq!(with(WatchdogAction::Forward), (false, true));
    assert_eq!(with(WatchdogAction::Alert), (false, false));
}

/// RED marks nothing up to kmin, ever more up to kmax, and everything above it.
#[test]
fn red_marks_along_its_slope() {
    let share = |kmin, kmax, pmax| {
        let mut plan = two_into_one(Span::millis(1));
        plan.switch_profiles[0].classes[DATA.index()].ecn = vec![Ecn {
            rate: None,
            kmin: Bytes::kb(kmin),
            kmax: Bytes::kb(kmax),
            pmax,
            drop_not_capable: false,
        }];
        let results = simulate(&plan);
        let counters = &port(&results, 0).classes[DATA.index()];
        counters.value(ClassCounter::EcnMarked) as f64
            / counters.value(ClassCounter::TransmitPackets) as f64
    };
    assert!(share(10, 40, 0.0) > 0.5, "above kmax");
    let slope = share(0, 400_000, 1.0);
    assert!(slope > 0.0 && slope < 0.02, "{slope}: under 4 of 400 MB");
}

#[test]
fn a_flow_starts_when_another_has_been_received() {
    let mut plan = two_into_one(Span::millis(1));
    for flow in &mut plan.flows {
        flow.bytes = Bytes::kb(100);
    }
    plan.flows[0].on_received = Some(TriggerId(0));
    plan.flows[1].start = Start::After(TriggerId(0), Span::micros(5));
    plan.triggers = vec![Trigger {
        count: 1,
        repeat: false,
    }];
    let results = simulate(&plan);
    let received = results.flows[0].received.expect("it is received");
    let start = results.flows[1].start.expect("it starts");
    let delay = start.since(received);
    assert!(
        delay >= Span::micros(5) && delay < Span::micros(6),
        "{delay}"
    );
}

/// A flow that a run cuts short has counted what it sent again and what it was told, like one that is done.
#[test]
fn flows_count_what_happened_to_them() {
    for bytes in [200_000, 1 << 30] {
        let mut plan = two_into_one(Span::millis(5));
        plan.host_profiles[0].nic = host_profile().nic;
        plan.host_profiles[0].nic.timeout = 6;
        plan.switch_profiles[0].classes[DATA.index()].ecn =
            switch_profile().classes[DATA.index()].ecn.clone();
        plan.network.links[1].packet_error_rate = 0.02;
        for flow in &mut plan.flows {
            flow.bytes = Bytes::new(bytes);
        }
        let results = simulate(&plan);
        let done = results.flows[0].status == FlowStatus::Completed;
        assert_eq!(done, bytes == 200_000);
        assert!(results.flows[0].retransmitted > 0);
        let handled: u64 = results
            .devices
            .iter()
            .map(|device| device.counters.value(DeviceCounter::CnpHandled))
            .sum();
        let told: u64 = results.flows.iter().map(|flow| flow.notifications).sum();
        assert!(handled > 0);
        assert_eq!(told, handled);
    }
}

/// More samples than a recorder keeps: the series are halved, and still add up to the counters.
#[test]
fn series_add_up_to_the_counters() {
    let mut plan = two_into_one(Span::millis(3));
    // Halved twice: 3,000 samples of 1 us become 750 of 4 us, and no time is left over.
    plan.recording.interval = Some(Span::micros(1));
    plan.switch_profiles[0].classes[DATA.index()].ecn =
        switch_profile().classes[DATA.index()].ecn.clone();
    plan.actions = vec![
        at(1_000, Action::StormBegins(RECEIVER, DATA)),
        at(1_500, Action::StormEnds(RECEIVER, DATA)),
    ];
    let results = simulate(&plan);
    let series = &results.series;
    let interval = Span::micros(4);
    let sum = |series: &Series| series.values().iter().sum::<f64>();
    let near = |found: f64, expected: f64, what: &str| {
        assert!(
            expected > 0.0 && (found / expected - 1.0).abs() < 0.01,
            "{what}: {found} for {expected}"
        );
    };
    let switch = series
        .ports
        .iter()
        .find(|port| port.endpoint.node == NodeId(0));
    let switch = switch.expect("the switch has series");
    let counters = port(&results, 0);
    let class = |counter| counters.classes[DATA.index()].value(counter) as f64;
    assert_eq!(switch.rate.interval(), interval);
    near(
        sum(&switch.rate) * interval.as_seconds_f64() / 8.0,
        counters.port.value(PortCounter::TransmitBytes) as f64,
        "bytes sent",
    );
    near(
        sum(&switch.paused) * interval.as_picos() as f64,
        class(ClassCounter::PauseReceivedDuration),
        "time paused",
    );
    let marks = series.marks.as_ref().expect("marks are recorded");
    near(sum(marks), class(ClassCounter::EcnMarked), "marks");
    let delivered = series.delivered.as_ref().expect("deliveries are recorded");
    near(
        sum(delivered) * delivered.interval().as_seconds_f64() / 8.0,
        total_delivered(&results).as_f64(),
        "bytes delivered",
    );
    let peak = switch.queue.values().iter().copied().fold(0.0, f64::max);
    assert_eq!(peak, class(ClassCounter::QueueWatermark), "the fullest");
    for (mean, peak) in switch.mean_queue.values().iter().zip(switch.queue.values()) {
        assert!(mean <= peak, "a mean of {mean} under a peak of {peak}");
    }
    // The port never runs dry once it is full, so the mean is not far below the peak.
    assert!(sum(&switch.mean_queue) > 0.8 * sum(&switch.queue));
}

/// Polls see what was counted until then: pauses that still hold among it, and never more than results have. A run
/// that is polled is the same run.
#[test]
fn polled_counters_are_those_of_the_moment_and_change_nothing() {
    let mut plan = two_into_one(Span::millis(1));
    plan.actions = vec![
        at(100, Action::StormBegins(RECEIVER, DATA)),
        at(700, Action::StormEnds(RECEIVER, DATA)),
    ];
    let unpolled = simulate(&plan);
    plan.recording.counters = Some(Span::micros(50));
    let results = simulate(&plan);
    let mut stripped = results.clone();
    stripped.counters.clear();
    assert_eq!(stripped, unpolled);

    let facing = Endpoint {
        node: NodeId(0),
        port: PortId(0),
    };
    let paused = Counter::Class(DATA, ClassCounter::PauseReceivedDuration);
    let pausing = Counter::Class(DATA, ClassCounter::PauseSentDuration);
    let told = |endpoint: Endpoint, counter: Counter| -> Vec<(Time, u64)> {
        let mut value = 0;
        let samples = results.counters.iter().filter(|s| s.endpoint == endpoint);
        let values = samples.map(|sample| {
            let changed = sample.changed.iter().find(|(known, _)| *known == counter);
            value = changed.map_or(value, |&(_, now)| now);
            (sample.time, value)
        });
        values.collect()
    };
    let series = told(facing, paused);
    let times: Vec<Time> = series.iter().map(|&(time, _)| time).collect();
    let due: Vec<Time> = (0..20)
        .map(|poll| times[0] + Span::micros(50) * poll)
        .collect();
    assert_eq!(times, due);
    // Between two polls within the storm the whole time is paused, though no pause has ended.
    let host = Endpoint {
        node: RECEIVER,
        port: PortId(0),
    };
    for series in [series, told(host, pausing)] {
        for pair in series[4..13].windows(2) {
            assert_eq!(pair[1].1 - pair[0].1, Span::micros(50).as_picos());
        }
        assert_eq!(series[1].1, 0);
    }
    // Watermarks are told while packets pile up, two hosts' before the first poll, and not only when the run ends.
    let depth: Vec<u64> = told(facing, Counter::Class(DATA, ClassCounter::QueueWatermark))
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    assert!(depth.is_sorted() && depth[1] > 100_000, "{depth:?}");
    // What was polled last is what was counted in the end, less what the last interval brought.
    for port in &results.ports {
        for (counter, end) in port.port.iter() {
            let last = told(port.endpoint, Counter::Port(counter));
            let last = last.last().map_or(0, |&(_, value)| value);
            assert!(last <= end, "{counter:?}: {last} of {end}");
            // Since then the port can have sent what its rate allows in one interval.
            let most = Rate::gbps(100).bytes_in(Span::micros(50)).as_u64();
            let sent = counter == PortCounter::TransmitBytes;
            assert!(!sent || end - last <= most, "{counter:?}: {last} of {end}");
        }
    }
}
