use softfabric_telemetry::{ClassCounter, StackCounter};
use softfabric_units::{Bytes, Rate, Span, Time};

use crate::engine::{Driver, RunOptions, run};
use crate::plan::Plan;
use crate::results::{Ending, FlowStatus, Results};
use crate::scenario::Scenario;

pub(super) fn plan(text: &str) -> Plan {
    let scenario = Scenario::from_toml(text, "tcp.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.plan().unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn outcome(plan: &Plan, threads: usize, driver: Driver) -> Results {
    let mut options = RunOptions {
        threads,
        driver,
        ..RunOptions::default()
    };
    let results = run(plan, &mut options).expect("the plan makes sense");
    assert_eq!(results.conservation.violations, Vec::<String>::new());
    results
}

fn stack(results: &Results, counter: StackCounter) -> u64 {
    let stacks = results.stacks.iter();
    stacks.map(|stack| stack.counters.value(counter)).sum()
}

/// Losses, marks, errors on a link, a link that fails, several connections a host; some hosts speak RDMA.
const MIXED: &str = r#"
seed = 9
[topology]
kind = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
rate = "25Gb/s"
trunk_rate = "25Gb/s"
[[link]]
between = ["h1", "leaf0"]
packet_error_rate = 0.001
[switch]
buffer = "1MiB"
[switch.class.0]
ecn = [{ kmin = "100KB", kmax = "200KB", pmax = 0.5 }]
[[host_group]]
names = ["h0..h2", "h4..h6"]
tcp = { congestion_control = { kind = "dctcp" }, mtu = "1500B", minimum_timeout = "5ms", initial_timeout = "10ms", cpu = { cores = 2 } }
[[workload]]
kind = "all_to_all"
hosts = ["h0..h2", "h4..h6"]
bytes = "300KB"
class = 0
[[workload]]
kind = "flow"
from = "h3"
to = "h7"
bytes = "3MB"
[[event]]
kind = "link_down"
between = ["leaf0", "spine0"]
at = "300us"
[[event]]
kind = "link_up"
between = ["leaf0", "spine0"]
at = "2ms"
[record]
check_wire = true
"#;

/// Windows, one by one, and threads: the same results bit for bit, series and counters included.
#[test]
fn drivers_agree_bit_for_bit() {
    let plan = plan(MIXED);
    let alone = outcome(&plan, 1, Driver::Automatic);
    let open = alone.flows.iter().filter(|flow| flow.finished.is_none());
    assert_eq!(
        open.collect::<Vec<_>>(),
        Vec::<&crate::results::FlowResult>::new()
    );
    assert_eq!(alone.ending, Ending::Completed);
    assert!(
        alone
            .flows
            .iter()
            .all(|flow| flow.status == FlowStatus::Completed)
    );
    assert!(
        stack(&alone, StackCounter::Retransmitted) > 0,
        "something was lost"
    );
    assert!(
        stack(&alone, StackCounter::MarkReductions) > 0,
        "something was marked"
    );
    assert_eq!((alone.stacks.len(), alone.devices.len()), (6, 2));
    let comparable = |mut results: Results| {
        results.work.windows = 0;
        results
    };
    let alone = comparable(alone);
    for threads in [2, 3, 8] {
        let together = comparable(outcome(&plan, threads, Driver::Automatic));
        assert!(together == alone, "{threads} threads");
    }
    let mut sequential = comparable(outcome(&plan, 1, Driver::Sequential));
    sequential.work.events = alone.work.events;
    assert!(sequential.flows == alone.flows && sequential.stacks == alone.stacks);
    assert!(sequential.ports == alone.ports && sequential.series == alone.series);
    assert_eq!((sequential.end, sequential.work), (alone.end, alone.work));
}

const PAIR: &str = r#"
[fabric]
kind = "tcp"
[topology]
kind = "star"
hosts = 2
rate = "100Gb/s"
delay = "1us"
[switch]
latency = "0ns"
[host.tcp]
cpu = { enabled = false }
[[workload]]
kind = "flow"
from = "h0"
to = "h1"
bytes = "1B"
"#;

/// One byte by hand, without processors: SYN and SYN-ACK are 14 + 20 + 20 + 24 + 4 = 82 B,
/// data is 71 B, an acknowledgement 70 B; each crosses two links of 1 µs.
#[test]
fn a_byte_takes_two_round_trips() {
    let plan = plan(PAIR);
    let results = outcome(&plan, 1, Driver::Automatic);
    // On the wire: preamble and gap, 20 B, at 80 ps a byte; stored and forwarded once.
    let wire = |frame: u64| (Span::picos(80 * (frame + 20)) + Span::micros(1)) * 2;
    // 4 of maximum segment size, 4 of SACK permitted, 12 of timestamps, 4 of window scale.
    let syn = 18 + 20 + 20 + 24;
    let (data, acknowledgement) = (18 + 20 + 32 + 1, 18 + 20 + 32);
    // Where writing takes no time, the acknowledgement of the SYN has the data with it.
    let received = wire(syn) * 2 + wire(data);
    let found = &results.flows[0];
    assert_eq!(found.received, Some(Time::ZERO + received));
    assert_eq!(
        found.finished,
        Some(Time::ZERO + received + wire(acknowledgement))
    );
    assert_eq!(
        found.ideal,
        wire(syn) * 2 + wire(data) + wire(acknowledgement)
    );
}

/// A long flow alone comes near the ideal once slow start is over, and never below it.
#[test]
fn a_long_flow_comes_near_the_ideal() {
    let long = PAIR.replace("1B\"", "100MB\"");
    for operation in ["write", "read", "send"] {
        let plan = plan(&format!("{long}operation = \"{operation}\"\n"));
        let results = outcome(&plan, 1, Driver::Automatic);
        let slowdown = results.flows[0].slowdown().expect("it is done");
        assert!((1.0..1.05).contains(&slowdown), "{operation}: {slowdown}");
        assert_eq!(results.flows[0].delivered, Bytes::mb(100));
        assert_eq!(stack(&results, StackCounter::Retransmitted), 0);
    }
}

/// With processors, one connection is one core's work: 42 Gb/s of the link's 100, as the study measured. Within 10 %.
#[test]
fn one_connection_gets_what_a_core_takes() {
    let text = PAIR
        .replace("1B\"", "200MB\"")
        .replace("cpu = { enabled = false }", "");
    let results = outcome(&plan(&text), 1, Driver::Automatic);
    let goodput = results.flows[0].goodput(results.end);
    assert!(
        (goodput.as_gbps_f64() / 42.0 - 1.0).abs() < 0.1,
        "{goodput}"
    );
    let receiver = &results.stacks[1];
    let busy = |counter| receiver.counters.value(counter) as f64 / results.end.as_picos() as f64;
    let copies = busy(StackCounter::CopyTime);
    let all = copies
        + busy(StackCounter::StackTime)
        + busy(StackCounter::SystemCallTime)
        + busy(StackCounter::InterruptTime);
    assert!(
        (copies - 0.49).abs() < 0.06 && all > 0.9 && all <= 1.0,
        "{copies} of {all}"
    );
    assert_eq!(receiver.cores, 8);
}

/// A trigger starts a flow when another has been received; both ends of the chain are TCP's.
#[test]
fn triggers_are_hit() {
    let text = r#"
[fabric]
kind = "tcp"
[topology]
kind = "star"
hosts = 3
[[trigger]]
[[workload]]
kind = "flows"
[[workload.flow]]
from = "h0"
to = "h1"
bytes = "100KB"
on_received = 0
[[workload.flow]]
from = "h1"
to = "h2"
bytes = "100KB"
after = 0
"#;
    let results = outcome(&plan(text), 1, Driver::Automatic);
    let [first, second] = &results.flows[..] else {
        panic!("two flows")
    };
    assert!(second.start >= first.received && second.finished.is_some());
}

/// What a TCP host cannot do is said before anything runs.
#[test]
fn contradictions_are_found() {
    let refused = |text: &str| {
        let scenario =
            Scenario::from_toml(text, "tcp.toml").unwrap_or_else(|error| panic!("{error}"));
        scenario.plan().expect_err("it makes no sense").to_string()
    };
    let mixed = r#"
[topology]
kind = "star"
hosts = 2
[[host_group]]
names = ["h1"]
tcp = {}
[[workload]]
kind = "flow"
from = "h0"
to = "h1"
bytes = "1MB"
"#;
    assert!(
        refused(mixed).contains("speaks TCP and one that speaks RDMA"),
        "{}",
        refused(mixed)
    );
    let timing = format!("timing = \"hpcc\"\n{PAIR}");
    assert!(
        refused(&timing).contains("timing of the HPCC code"),
        "{}",
        refused(&timing)
    );
    let window = PAIR.replace("cpu =", "receive_buffer = \"2GiB\"\ncpu =");
    assert!(
        refused(&window).contains("receive buffer of 2GiB"),
        "{}",
        refused(&window)
    );
    let lanes = PAIR
        .replace("kind = \"tcp\"", "kind = \"infiniband\"")
        .replace("[switch]\nlatency = \"0ns\"", "");
    assert!(
        refused(&lanes).contains("TCP on InfiniBand"),
        "{}",
        refused(&lanes)
    );
}

/// A lossless class stops a TCP host as it does others: incast without a drop, by pauses alone.
#[test]
fn a_host_obeys_pauses() {
    let text = r#"
[fabric]
kind = "tcp"
[topology]
kind = "star"
hosts = 9
rate = "25Gb/s"
[switch]
buffer = "2MiB"
lossless = [3]
[host.tcp]
cpu = { enabled = false }
initial_window = 100
[[workload]]
kind = "incast"
bytes = "2MB"
"#;
    let results = outcome(&plan(text), 1, Driver::Automatic);
    assert_eq!(
        (results.lossless_drops, results.conservation.dropped),
        (0, 0)
    );
    let pauses: u64 = results
        .ports
        .iter()
        .map(|port| port.class_total(ClassCounter::PauseReceived))
        .sum();
    assert!(pauses > 0);
    assert!(
        results
            .flows
            .iter()
            .all(|flow| flow.status == FlowStatus::Completed)
    );
    let line = Rate::gbps(25).time_for(Bytes::mb(16));
    assert!(
        results.end.since(Time::ZERO) < line + line / 10,
        "{}",
        results.end
    );
}

/// A receive ring that is full drops, and the books are right.
#[test]
fn a_full_ring_drops() {
    let text = r#"
[fabric]
kind = "tcp"
[topology]
kind = "star"
hosts = 9
[host.tcp]
mtu = "1500B"
minimum_timeout = "5ms"
cpu = { cores = 1, ring = 64, frame = "2us" }
[[workload]]
kind = "incast"
bytes = "500KB"
"#;
    let results = outcome(&plan(text), 1, Driver::Automatic);
    let dropped = stack(&results, StackCounter::RingDropped);
    assert!(dropped > 0 && results.conservation.dropped >= dropped);
    assert!(
        results
            .flows
            .iter()
            .all(|flow| flow.status == FlowStatus::Completed)
    );
}

/// Of a read, the one who is read from sends: what it sends again, the echoes that it hears, and what its window allows.
#[test]
fn the_sender_of_a_read_tells_of_it() {
    for (kind, lossy) in [("tcp", true), ("tcp", false), ("rocev2", false)] {
        let tcp = match kind {
            "tcp" => {
                "[host.tcp]\ncongestion_control = { kind = \"dctcp\" }\nminimum_timeout = \"5ms\"\n"
            }
            _ => "",
        };
        let loss = match lossy {
            true => "[[link]]\nbetween = [\"h0\", \"s0\"]\npacket_error_rate = 0.002\n",
            false => "",
        };
        let text = format!(
            "[fabric]\nkind = \"{kind}\"\n[topology]\nkind = \"star\"\nhosts = 3\nrate = \"25Gb/s\"\n{loss}[switch.class.3]\n\
             ecn = [{{ kmin = \"50KB\", kmax = \"50KB\", pmax = 1.0 }}]\n{tcp}[[workload]]\nkind = \"incast\"\nto = \"h2\"\n\
             bytes = \"10MB\"\noperation = \"read\"\n"
        );
        let plan = plan(&text);
        let results = outcome(&plan, 1, Driver::Automatic);
        let sum = |of: fn(&crate::results::FlowResult) -> u64| -> u64 {
            results.flows.iter().map(of).sum()
        };
        assert!(sum(|flow| flow.notifications) > 0, "{kind}");
        if kind == "tcp" {
            let again = stack(&results, StackCounter::Retransmitted);
            assert_eq!(sum(|flow| flow.retransmitted), again);
            assert_eq!(again > 0, lossy);
        }
        for series in &results.series.flows {
            let most = series.allowed.values().iter().copied().fold(0.0, f64::max);
            assert!(most > 1e9 && most <= 25e9, "{kind}: {most}");
        }
    }
}

/// What the window allows is bounded by the port by which the flow leaves, not by the first.
#[test]
fn a_flow_is_allowed_what_its_port_carries() {
    let text = r#"
[fabric]
kind = "tcp"
[topology]
kind = "rail_optimised"
servers = 2
rails = 2
rate = "100Gb/s"
[[link]]
between = ["h*", "rail0leaf0"]
rate = "1Gb/s"
[host.tcp]
cpu = { enabled = false }
[[job]]
order = "rail"
[[job.step]]
kind = "all_gather"
bytes = "8MB"
among = "rail"
"#;
    let plan = plan(text);
    let results = outcome(&plan, 1, Driver::Automatic);
    for series in &results.series.flows {
        let most = series.allowed.values().iter().copied().fold(0.0, f64::max);
        let second = plan.flows[series.flow.index()].source_nic.0 == 1;
        assert_eq!(most > 1e9, second, "{most}");
    }
    assert_eq!(results.series.flows.len(), 4);
}

/// Who is read from gives up when nobody answers; who reads hears nothing, and the flow has failed all the same.
#[test]
fn a_read_fails_when_its_source_gives_up() {
    let text = PAIR
        .replace("1B\"", "100MB\"\noperation = \"read\"")
        .replace(
            "cpu = { enabled = false }",
            "retries = 2\nminimum_timeout = \"1ms\"\ninitial_timeout = \"5ms\"",
        )
        + "[[event]]\nkind = \"link_down\"\nbetween = [\"h0\", \"s0\"]\nat = \"2ms\"\n";
    let results = outcome(&plan(&text), 1, Driver::Automatic);
    let failed = FlowStatus::Failed("the connection timed out".to_owned());
    assert_eq!(results.flows[0].status, failed);
    assert_eq!(results.ending, Ending::Stalled);
}

/// When the only flow has failed, its receiver waits for nothing more, and the run is over: a NIC that storms does not keep
/// it going.
#[test]
fn a_failed_flow_leaves_nothing_to_wait_for() {
    let text = r#"
[topology]
kind = "star"
hosts = 3
[[host_group]]
names = ["h0..h1"]
tcp = { retries = 2, minimum_timeout = "1ms", initial_timeout = "1ms", cpu = { enabled = false } }
[[workload]]
kind = "flow"
from = "h0"
to = "h1"
bytes = "10MB"
[[event]]
kind = "storm"
host = "h2"
at = "0s"
[[event]]
kind = "link_down"
between = ["h0", "s0"]
at = "100us"
"#;
    let results = outcome(&plan(text), 1, Driver::Automatic);
    assert!(matches!(results.flows[0].status, FlowStatus::Failed(_)));
    assert_eq!(results.ending, Ending::Completed);
    let pauses: u64 = (results.ports.iter())
        .map(|port| port.class_total(ClassCounter::PauseSent))
        .sum();
    // One each 2.6 ms / 2 to 336 µs / 2, for the 15 ms or so that retries take; not for the second until the run must stop.
    assert!((5..200).contains(&pauses), "{pauses}");
}

/// A slow host's processors take twice as long for everything: a connection that one core bounds gets half.
#[test]
fn a_slow_host_halves_what_its_core_takes() {
    let text = PAIR
        .replace("1B\"", "100MB\"")
        .replace("cpu = { enabled = false }", "");
    let slow = format!(
        "{text}[[event]]\nkind = \"slow_hosts\"\nhosts = [\"h1\"]\nslowness = 2\nat = \"0s\"\n"
    );
    let goodput = |text: &str| {
        let results = outcome(&plan(text), 1, Driver::Automatic);
        results.flows[0].goodput(results.end).as_gbps_f64()
    };
    let ratio = goodput(&slow) / goodput(&text);
    assert!((ratio - 0.5).abs() < 0.03, "{ratio}");
}
