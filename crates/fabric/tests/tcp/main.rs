//! TCP/IP hosts: the scenario files, each with its figures, and captures that Wireshark's decoder judges.

#[path = "../common/mod.rs"]
mod common;
mod ns3;

use std::process::Command;

use softfabric_fabric::export::{Summary, pcapng};
use softfabric_fabric::plan::{Endpoint, NodeId, Plan, PortId};
use softfabric_fabric::results::{FlowResult, FlowStatus, Results};
use softfabric_fabric::scenario::Scenario;
use softfabric_telemetry::{ClassCounter, StackCounter};
use softfabric_units::{Bytes, Rate, Span};

use common::scenario;

/// A run in which every flow comes to its end.
fn simulate(plan: &Plan) -> Results {
    let results = common::simulate(plan);
    let completed = |flow: &FlowResult| flow.status == FlowStatus::Completed;
    assert!(results.flows.iter().all(completed));
    results
}

fn class_total(results: &Results, counter: ClassCounter) -> u64 {
    results
        .ports
        .iter()
        .map(|port| port.class_total(counter))
        .sum()
}

fn highest(results: &Results, counter: ClassCounter) -> u64 {
    results
        .ports
        .iter()
        .map(|port| port.class_total(counter))
        .max()
        .unwrap_or(0)
}

fn stack_total(results: &Results, counter: StackCounter) -> u64 {
    results
        .stacks
        .iter()
        .map(|stack| stack.counters.value(counter))
        .sum()
}

/// How long the receiver's link takes for all of an incast, headers included.
fn line_time(plan: &Plan, segment: f64, around: f64) -> f64 {
    let bytes: Bytes = plan.flows.iter().map(|flow| flow.bytes).sum();
    bytes.as_f64() * (segment + around) / segment * 8.0 / Rate::gbps(100).as_bps() as f64
}

#[test]
fn incast_drops_and_recovers() {
    let plan = scenario("tcp_incast");
    let results = simulate(&plan);
    let last = results.end.as_seconds_f64();
    let line = line_time(&plan, 8948.0, 90.0);
    println!(
        "last {:.3} ms of {:.3}, drops {}, retransmissions {}, timeouts {}, queue {}",
        last * 1e3,
        line * 1e3,
        results.conservation.dropped,
        stack_total(&results, StackCounter::Retransmitted),
        stack_total(&results, StackCounter::Timeouts),
        highest(&results, ClassCounter::QueueWatermark)
    );
    assert!(last >= line && last < 1.1 * line, "{last} for {line}");
    // An empty buffer lets one queue take half of itself: at α = 1, T = α · (B − T).
    let queue = highest(&results, ClassCounter::QueueWatermark);
    assert!(queue.abs_diff(16 << 20) < 20_000, "{queue}");
    assert!(results.conservation.dropped > 1_000 && results.lossless_drops == 0);
    let repaired = stack_total(&results, StackCounter::Retransmitted);
    assert!(repaired >= results.conservation.dropped, "{repaired}");
    assert_eq!(class_total(&results, ClassCounter::PauseSent), 0);
    let share = processors(&plan, &results);
    assert!((0.4..0.6).contains(&share), "{share}");
}

/// What an incast costs its receiver: the copies are 160 MB at 86 Gb/s. Returns their share of its time.
fn processors(plan: &Plan, results: &Results) -> f64 {
    let found = Summary::of(plan, results)
        .processors
        .expect("work takes time");
    assert_eq!(plan.network.nodes[found.busiest.index()].name, "h31");
    let receiver = (results.stacks.iter()).find(|stack| stack.node == found.busiest);
    let copies = receiver
        .expect("it is there")
        .counters
        .value(StackCounter::CopyTime);
    let copies = Span::picos(copies).as_seconds_f64();
    assert!(
        (copies / (160e6 * 8.0 / 86e9) - 1.0).abs() < 1e-6,
        "{copies}"
    );
    copies / (found.busiest_cores * results.end.as_seconds_f64())
}

#[test]
fn dctcp_loses_nothing() {
    let plan = scenario("tcp_dctcp");
    let results = simulate(&plan);
    let last = results.end.as_seconds_f64();
    let line = line_time(&plan, 8948.0, 90.0);
    println!(
        "last {:.3} ms of {:.3}, drops {}, marks {}, reductions {}, queue {}",
        last * 1e3,
        line * 1e3,
        results.conservation.dropped,
        class_total(&results, ClassCounter::EcnMarked),
        stack_total(&results, StackCounter::MarkReductions),
        highest(&results, ClassCounter::QueueWatermark)
    );
    assert!(last >= line && last < 1.1 * line, "{last} for {line}");
    assert_eq!(results.conservation.dropped, 0);
    assert_eq!(stack_total(&results, StackCounter::Retransmitted), 0);
    assert!(stack_total(&results, StackCounter::MarkReductions) > 100);
    // The first windows of sixteen senders are 1.4 MB; afterwards the queue stays near K.
    let queue = highest(&results, ClassCounter::QueueWatermark);
    assert!((400_000..1_500_000).contains(&queue), "{queue}");
    // Packets of sixteen connections come in turns, so fewer of them merge than where drops leave bursts of one: the stack
    // takes more of the time.
    let share = processors(&plan, &results);
    assert!((0.3..0.5).contains(&share), "{share}");
}

/// Every frame of a captured connection: right checksums of IP and TCP, the handshake with its options, SACK, ECN.
#[test]
fn tshark_reads_captured_connections() {
    if let Err(error) = Command::new("tshark").arg("--version").output() {
        println!("SKIPPED tshark_reads_captured_connections: `tshark` does not start: {error}");
        return;
    }
    for ip in [4, 6] {
        let text = format!(
            r#"
[fabric]
kind = "tcp"
ip = {ip}
[topology]
kind = "star"
hosts = 5
rate = "10Gb/s"
[[link]]
between = ["h0", "s0"]
packet_error_rate = 0.03
[switch.class.3]
ecn = [{{ kmin = "4KB", kmax = "4KB", pmax = 1.0 }}]
[host.tcp]
ecn = true
minimum_timeout = "5ms"
[[workload]]
kind = "incast"
to = "h4"
bytes = "20KB"
[record]
captures = ["h4:0"]
check_wire = true
"#
        );
        let scenario = Scenario::from_toml(&text, "captured.toml").expect("the schema has it");
        let mut plan = scenario.plan().expect("it makes sense");
        for profile in &mut plan.host_profiles {
            // Short enough that captures keep whole frames, and checksums can be judged.
            let stack = profile.tcp.as_mut().expect("it speaks TCP");
            stack.tcp.maximum_segment = Bytes::new(150);
        }
        let results = simulate(&plan);
        assert!(results.conservation.dropped > 0, "so that there is SACK");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("port.pcapng");
        let mut file = std::fs::File::create(&path).expect("a file");
        assert_eq!(
            results.captures[0].endpoint,
            Endpoint {
                node: NodeId(4),
                port: PortId(0)
            }
        );
        pcapng::write(&mut file, &plan, &results.captures[0]).expect("it is written");
        let network = if ip == 4 {
            "ip.checksum.status"
        } else {
            "ipv6.hlim"
        };
        let fields = [
            "tcp.checksum.status",
            network,
            "tcp.flags.syn",
            "tcp.flags.ack",
            "tcp.options.mss_val",
            "tcp.options.wscale.shift",
            "tcp.options.sack_perm",
            "tcp.options.timestamp.tsval",
            "tcp.options.sack.count",
            "tcp.flags.ece",
            "tcp.flags.cwr",
            "tcp.len",
            "tcp.dstport",
            "_ws.malformed",
        ];
        let mut command = Command::new("tshark");
        command
            .args([
                "-n",
                "-o",
                "tcp.check_checksum:TRUE",
                "-o",
                "ip.check_checksum:TRUE",
                "-T",
                "fields",
                "-r",
            ])
            .arg(&path);
        for field in fields {
            command.args(["-e", field]);
        }
        let output = command.output().expect("it started before");
        let text = String::from_utf8(output.stdout).expect("text");
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split('\t').collect())
            .collect();
        assert_eq!(lines.len(), results.captures[0].frames.len());
        assert!(lines.len() > 400, "{}", lines.len());
        let (mut syns, mut sacks, mut echoes, mut reduced, mut payload) = (0, 0, 0, 0, 0);
        for line in &lines {
            assert_eq!(line[0], "1", "the TCP checksum is right: {line:?}");
            assert_eq!(line[1], if ip == 4 { "1" } else { "64" }, "{line:?}");
            assert_eq!(line[13], "", "{line:?}");
            let is = |index: usize| matches!(line[index], "1" | "True");
            if is(2) {
                syns += 1;
                assert_eq!((line[4], line[5]), ("150", "7"), "{line:?}");
                assert!(!line[6].is_empty() && !line[7].is_empty());
            } else {
                payload += line[11].parse::<u64>().expect("a length");
            }
            sacks += u32::from(!line[8].is_empty());
            echoes += u32::from(is(9) && !is(2));
            reduced += u32::from(is(10) && !is(2));
        }
        assert!(syns >= 8, "four connections at least: {syns}");
        assert!(
            sacks > 0 && echoes > 0 && reduced > 0,
            "{sacks} {echoes} {reduced}"
        );
        assert!(payload >= 80_000, "{payload}");
    }
}
