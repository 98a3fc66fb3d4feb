//! Whole runs with congestion control: who is marked, who is told, who slows down, who recovers.

use softfabric_telemetry::{ClassCounter, DeviceCounter, PortCounter};
use softfabric_transport::rate::{
    DcqcnNicParameters, InjectionTable, RateControlConfig, TIMER_UNIT,
};
use softfabric_units::{Bytes, Class, Rate, Span, Time};

use super::tests::{goodput, of_port, on_infiniband, settings};
use crate::engine::feature_tests::{simulate, star, towards_receiver};
use crate::engine::{Driver, Ending, RunOptions, run};
use crate::plan::*;
use crate::results::Results;

/// The hosts of a star whose links carry 100 Gb/s, with congestion control of these settings; as many lanes as classes.
fn controlled(hosts: u32, lanes: u8, change: impl Fn(&mut InfinibandCongestion)) -> Plan {
    let mut plan = on_infiniband(star(hosts), lanes);
    plan.host_profiles[0].nic.notification = NotificationPoint::Off;
    let mut congestion = InfinibandCongestion {
        switches: vec![SwitchCongestion::default()],
        hosts: AdapterCongestion::default(),
    };
    for level in &mut congestion.hosts.levels {
        level.timer = TIMER_UNIT * 20;
    }
    change(&mut congestion);
    settings(&mut plan).congestion = Some(Box::new(congestion));
    plan
}

fn incast(plan: &mut Plan, sources: std::ops::Range<u32>, bytes: u64) {
    plan.flows = sources
        .map(|source| towards_receiver(source, bytes))
        .collect();
}

fn marks(results: &Results) -> u64 {
    let classes = results.ports.iter().flat_map(|port| &port.classes);
    classes
        .map(|class| class.value(ClassCounter::EcnMarked))
        .sum()
}

fn ports(results: &Results, counter: PortCounter) -> u64 {
    let ports = results.ports.iter();
    ports.map(|port| port.port.value(counter)).sum()
}

fn devices(results: &Results, counter: DeviceCounter) -> u64 {
    let devices = results.devices.iter();
    devices.map(|device| device.counters.value(counter)).sum()
}

/// Each mark reaches the receiver as FECN, comes back as BECN, and cuts a flow; the books of all three agree.
#[test]
fn marks_come_back_and_are_counted() {
    let mut plan = controlled(8, 1, |congestion| {
        // Acknowledgements are short, and go where no queue is.
        congestion.switches[0].marking_rate = 3;
    });
    incast(&mut plan, 1..8, 2_000_000);
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Completed);
    assert_eq!(results.conservation.dropped, 0);
    let marked = marks(&results);
    assert!(marked > 50, "{marked}");
    assert_eq!(ports(&results, PortCounter::FecnReceived), marked);
    assert_eq!(of_port(&results, 1, 0, PortCounter::FecnReceived), marked);
    let told = ports(&results, PortCounter::BecnReceived);
    assert!(told > 20 && told <= marked, "{told} of {marked}");
    assert_eq!(devices(&results, DeviceCounter::CnpHandled), told);
    assert_eq!(devices(&results, DeviceCounter::CnpSent), 0);
    let events = devices(&results, DeviceCounter::CongestionEvents);
    assert!(events >= 7, "each flow passes the trigger: {events}");
    // Only the receiver's port is congested, for a part of the time.
    let congested = of_port(&results, 0, 0, PortCounter::TransmitTimeCongested);
    assert!(congested > 0 && congested < results.end.as_picos());
    let all = ports(&results, PortCounter::TransmitTimeCongested);
    assert_eq!(all, congested);
}

#[test]
fn a_threshold_of_zero_marks_nothing() {
    let without = {
        let mut plan = on_infiniband(star(8), 1);
        incast(&mut plan, 1..8, 2_000_000);
        simulate(&plan)
    };
    let mut plan = controlled(8, 1, |congestion| congestion.switches[0].threshold = 0);
    incast(&mut plan, 1..8, 2_000_000);
    let results = simulate(&plan);
    assert_eq!(marks(&results), 0);
    assert_eq!(ports(&results, PortCounter::FecnReceived), 0);
    assert!(results.flows == without.flows, "nothing else changes");
}

/// A receiver that takes packets slowly returns little credit: its port is no root of congestion, and marks only with the
/// victim mask. Then its sender slows down, and waits for credit less.
#[test]
fn a_port_that_waits_for_credit_marks_only_with_the_victim_mask() {
    let outcome = |victims: SwitchPorts| {
        let mut plan = controlled(2, 1, |congestion| {
            let setting = &mut congestion.switches[0];
            setting.marking_rate = 0;
            setting.victims = victims.clone();
        });
        incast(&mut plan, 1..2, 2_000_000);
        plan.host_profiles[0].receive.drain = Some(Rate::gbps(10));
        plan.stop.at = Time::ZERO + Span::millis(100);
        let results = simulate(&plan);
        assert_eq!(results.ending, Ending::Completed);
        let waited = of_port(&results, 2, 0, PortCounter::TransmitWait);
        let share = waited as f64 / results.end.as_picos() as f64;
        (marks(&results), share)
    };
    let (unmarked, waits) = outcome(SwitchPorts::None);
    assert_eq!(unmarked, 0);
    assert!(waits > 0.8, "{waits}");
    let (marked, less) = outcome(SwitchPorts::Hosts);
    assert!(marked > 20, "{marked}");
    assert!(less < waits / 2.0, "{less} of {waits}");
    let at_the_sender = SwitchPorts::These(vec![PortId(1)]);
    assert_eq!(outcome(at_the_sender).0, 0);
    assert!(outcome(SwitchPorts::These(vec![PortId(0)])).0 > 20);
}

/// One of two flows ends early. The other has been cut, and is at line rate soon after; without a timer it never is.
#[test]
fn a_flow_that_was_cut_recovers_by_its_timer() {
    let finish = |timer: u64| {
        let mut plan = controlled(3, 1, |congestion| {
            congestion.switches[0].marking_rate = 0;
            for level in &mut congestion.hosts.levels {
                level.timer = TIMER_UNIT * timer;
            }
        });
        plan.flows = vec![
            towards_receiver(1, 40_000_000),
            towards_receiver(2, 4_000_000),
        ];
        plan.stop.at = Time::ZERO + Span::millis(500);
        let results = simulate(&plan);
        assert_eq!(results.ending, Ending::Completed);
        let finish = results.flows[0].received.expect("done") - Time::ZERO;
        finish.as_picos() as f64 / 1e12
    };
    let arithmetic = 44_000_000.0 * 8.0 / 100e9 * 4122.0 / 4096.0;
    let recovers = finish(5);
    assert!(
        recovers < 1.1 * arithmetic,
        "{recovers} s of {arithmetic} s"
    );
    let never = finish(0);
    assert!(never > 1.5 * arithmetic, "{never} s of {arithmetic} s");
}

/// Flows of two levels share a lane. Those of one react; those of the other do not, as their increase is zero, and have
/// what the others leave.
#[test]
fn levels_react_by_their_own_settings() {
    let mut plan = controlled(4, 1, |congestion| congestion.hosts.levels[1].increase = 0);
    incast(&mut plan, 1..4, 4_000_000);
    for (flow, class) in plan.flows.iter_mut().zip([0, 1, 1]) {
        flow.class = Class::new(class);
    }
    let results = simulate(&plan);
    assert_eq!(results.ending, Ending::Completed);
    let of_senders = |counter| -> Vec<u64> {
        let senders = &results.devices[1..4];
        let values = senders.iter().map(|device| device.counters.value(counter));
        values.collect()
    };
    let handled = of_senders(DeviceCounter::CnpHandled);
    assert!(handled.iter().all(|handled| *handled > 10), "{handled:?}");
    let events = of_senders(DeviceCounter::CongestionEvents);
    assert!(events[0] > 0 && events[1..] == [0, 0], "{events:?}");
    let share = |flow| goodput(&results, flow, 4_000_000) / 100e9;
    let (reacts, other) = (share(0), share(1));
    assert!(reacts < 0.9 / 3.0 && other > 0.35, "{reacts} {other}");
}

/// Data that are read are responses: no acknowledgement goes back, so notification packets do.
#[test]
fn readers_answer_marks_by_notification_packets() {
    let mut plan = controlled(4, 1, |_| {});
    incast(&mut plan, 1..4, 4_000_000);
    for flow in &mut plan.flows {
        flow.operation = Operation::Read;
    }
    // One driver alone: which flow-control packets count that arrive after the last packet is the driver's choice.
    let results = run(&plan, &mut RunOptions::default()).expect("a sound plan");
    assert_eq!(results.ending, Ending::Completed);
    let (marked, sent) = (marks(&results), devices(&results, DeviceCounter::CnpSent));
    assert!(marked > 20, "{marked}");
    assert_eq!(sent, marked);
    assert_eq!(devices(&results, DeviceCounter::CnpHandled), sent);
    assert_eq!(ports(&results, PortCounter::BecnReceived), sent);
}

/// A NIC with a rate control of its own has that, and the fabric's marks move it.
#[test]
fn a_rate_control_of_a_nic_goes_before_the_table() {
    let mut plan = controlled(4, 1, |_| {});
    incast(&mut plan, 1..4, 4_000_000);
    plan.host_profiles[0].nic.rate_control =
        RateControlConfig::DcqcnNic(DcqcnNicParameters::hpcc(Rate::gbps(100)));
    let results = simulate(&plan);
    assert!(devices(&results, DeviceCounter::CnpHandled) > 0);
    assert_eq!(devices(&results, DeviceCounter::CongestionEvents), 0);
}

/// At the lowest index of a table with one entry, a flow alone on its links waits three times a packet's time after each.
#[test]
fn a_minimum_index_is_a_static_rate() {
    let mut plan = controlled(2, 1, |congestion| {
        congestion.hosts.table = InjectionTable::linear(0, 3, 1).expect("two entries");
        congestion.hosts.levels[2].minimum = 1;
    });
    incast(&mut plan, 1..2, 4_000_000);
    plan.flows[0].class = Class::new(2);
    let results = simulate(&plan);
    let expected = 100e9 / 4.0 * 4096.0 / 4122.0;
    let found = goodput(&results, 0, 4_000_000);
    assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
}

#[test]
fn any_number_of_threads_marks_the_same() {
    let mut plan = controlled(8, 1, |_| {});
    incast(&mut plan, 1..8, 500_000);
    plan.network.links[3].delay = Span::nanos(777);
    let outcome = |threads, driver| {
        let mut options = RunOptions {
            threads,
            driver,
            ..RunOptions::default()
        };
        let results = run(&plan, &mut options).expect("a sound plan");
        (results.flows, results.ports, results.devices, results.end)
    };
    let alone = outcome(1, Driver::Automatic);
    for threads in [2, 3] {
        assert!(outcome(threads, Driver::Automatic) == alone, "{threads}");
    }
    let one_by_one = outcome(1, Driver::Sequential);
    assert!((one_by_one.0, one_by_one.1) == (alone.0, alone.1));
}

/// A buffer of 32 KiB a lane, and a threshold of sixteenths of that: the later the threshold, the more waits before marks
/// slow two senders down. What came before the first marks had an effect is the same for all, and left out.
#[test]
fn a_late_threshold_leaves_longer_queues() {
    let peak = |threshold| {
        let mut plan = controlled(3, 1, |congestion| {
            congestion.switches[0].threshold = threshold;
            congestion.switches[0].marking_rate = 0;
        });
        incast(&mut plan, 1..3, 8_000_000);
        plan.flows[1].start = Start::At(Time::ZERO + Span::micros(50));
        plan.recording.interval = Some(Span::micros(10));
        plan.recording.ports = PortSelection::These(vec![Endpoint {
            node: NodeId(0),
            port: PortId(0),
        }]);
        let results = simulate(&plan);
        assert!(marks(&results) > 0, "{threshold}");
        let queue = results.series.ports[0].queue.values();
        let settled = queue.iter().skip(50).take(50);
        let congested = of_port(&results, 0, 0, PortCounter::TransmitTimeCongested);
        let share = congested as f64 / results.end.as_picos() as f64;
        (settled.copied().fold(0.0, f64::max), share)
    };
    // 2 and 30 KiB.
    let [early, late] = [15, 1].map(peak);
    assert!(late.0 > Bytes::kib(30).as_f64(), "{late:?}");
    assert!(early.0 < 0.9 * late.0, "{early:?} {late:?}");
    assert!(early.1 > late.1, "{early:?} {late:?}");
}
