//! Jobs over connections, against the arithmetic of links and processors.

use softfabric_telemetry::StackCounter;
use softfabric_units::{Span, Time};

use super::tests::{outcome, plan};
use crate::engine::Driver;
use crate::export::PhaseFigures;
use crate::export::findings::{self, Kind};
use crate::plan::Plan;
use crate::results::{Ending, JobStatus, Results};
use crate::scenario::Scenario;

fn refusal(text: &str) -> String {
    let scenario = Scenario::from_toml(text, "job.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.plan().expect_err("it makes no sense").to_string()
}

fn go(plan: &Plan) -> Results {
    outcome(plan, 1, Driver::Automatic)
}

/// The bus bandwidth of the only phase, in GB/s.
fn bus(plan: &Plan, results: &Results) -> f64 {
    assert_eq!(results.ending, Ending::Completed);
    assert_eq!(results.jobs[0].status, JobStatus::Completed);
    PhaseFigures::all(plan, results)[0]
        .bus_bandwidth
        .expect("one collective that is over")
}

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    let off = found / expected - 1.0;
    assert!(
        off.abs() <= tolerance,
        "{found} is {:.2} % off {expected}",
        off * 100.0
    );
}

fn ring(fabric: &str, tcp: &str, job: &str, bytes: &str) -> String {
    format!(
        r#"
[fabric]
kind = "{fabric}"
[topology]
kind = "star"
hosts = 4
rate = "100Gb/s"
{tcp}
[[job]]
{job}
[[job.step]]
kind = "all_reduce"
bytes = "{bytes}"
"#
    )
}

const NO_PROCESSORS: &str = "[host.tcp]\ncpu = { enabled = false }";

/// Full frames back to back: 8948 B of 9038 B on the wire, with acknowledgements of the other direction between them, one
/// for two segments at most.
const GOODPUT: f64 = 100.0 / 8.0 * 8948.0 / (9038.0 + 90.0 / 2.0);

#[test]
fn without_processors_a_ring_reaches_the_line() {
    let plan = plan(&ring("tcp", NO_PROCESSORS, "", "256MiB"));
    let results = go(&plan);
    near(bus(&plan, &results), GOODPUT, 0.02);
    let lost: u64 = (results.stacks.iter())
        .map(|stack| stack.counters.value(StackCounter::Retransmitted))
        .sum();
    assert_eq!(lost, 0);
    // 4 ranks send 2 · 3/4 of the bytes each, all of which arrives, headers of messages left out.
    let delivered: u64 = (results.flows.iter())
        .map(|flow| flow.delivered.as_u64())
        .sum();
    assert_eq!(delivered, 4 * 6 * (64 << 20));
}

/// A connection is one core's work at its receiver: for each call of 128 KiB, its copy, its frames, the stack for each merged
/// segment, and a system call. As the last segment of a call is pushed, which ends a merged one, there are three of them a call
/// where reads keep up, and one for every seven frames where they do not. Four connections come within a twentieth of the line:
/// slices are of use in their order, so now and then the ring waits for the slowest of them.
#[test]
fn with_processors_a_ring_gets_what_its_cores_take() {
    let call = f64::from(128 << 10);
    let frames = call / 8948.0;
    let core = |merged: f64| call / (call * 8.0 / 86.0 + frames * 350.0 + merged * 2500.0 + 1300.0);
    let (least, most) = (core(3.0), core(frames / 7.0));
    // What each further byte takes, once windows are open and every slice is on its way.
    let of = |connections: u32| {
        let seconds = |mebibytes: u32| {
            let job = format!("queue_pairs = {connections}");
            let plan = plan(&ring("tcp", "", &job, &format!("{mebibytes}MiB")));
            let results = go(&plan);
            assert_eq!(results.jobs[0].status, JobStatus::Completed);
            let finished = results.jobs[0].finished.expect("it is over");
            finished.since(Time::ZERO).as_seconds_f64()
        };
        let (half, whole) = (seconds(128), seconds(256));
        println!("{connections}: {half} s for 128 MiB, {whole} s for 256 MiB");
        1.5 * f64::from(128 << 20) / 1e9 / (whole - half)
    };
    let (one, four) = (of(1), of(4));
    println!("one {one:.3} GB/s of {least:.3} to {most:.3}, four {four:.3} of {GOODPUT:.3}");
    assert!(least <= one && one <= most, "{one}");
    near(four, GOODPUT, 0.05);
}

/// The same job: RDMA is bound by the line, TCP by a core, and its processors work.
#[test]
fn rdma_is_faster_with_idle_processors() {
    let tcp = plan(&ring("tcp", "", "", "64MiB"));
    let rdma = plan(&ring("rocev2", "", "", "64MiB"));
    let (over_tcp, over_rdma) = (go(&tcp), go(&rdma));
    let factor = bus(&rdma, &over_rdma) / bus(&tcp, &over_tcp);
    assert!((1.8..3.0).contains(&factor), "{factor}");
    let copies = |results: &Results| -> Span {
        (results.processors.iter()).fold(Span::ZERO, |sum, host| sum + host.copies)
    };
    assert_eq!(copies(&over_rdma), Span::ZERO, "GPUDirect");
    assert!(copies(&over_tcp) > Span::ZERO, "through host memory");
}

/// Several rails and planes, collectives inside and outside of servers, computations: for threads and drivers the same.
#[test]
fn threads_and_drivers_agree() {
    let plan = plan(
        r#"
[fabric]
kind = "tcp"
[topology]
kind = "rail_optimised"
servers = 4
rails = 2
servers_per_leaf = 2
spines = 2
planes = 2
rate = "25Gb/s"
[host.tcp]
mtu = "1500B"
minimum_timeout = "5ms"
[switch]
buffer = "1MiB"
[[job]]
iterations = 2
queue_pairs = 2
[[job.step]]
kind = "all_reduce"
bytes = "2MiB"
[[job.step]]
kind = "compute"
time = "100us"
[[job.step]]
kind = "all_to_all"
bytes = "512KiB"
algorithm = "direct"
"#,
    );
    let comparable = |mut results: Results| {
        results.work.windows = 0;
        results.work.events = 0;
        results
    };
    let first = comparable(outcome(&plan, 1, Driver::Automatic));
    assert_eq!(first.jobs[0].status, JobStatus::Completed);
    for threads in [2, 5] {
        let other = comparable(outcome(&plan, threads, Driver::Automatic));
        assert!(other == first, "{threads} threads");
    }
    assert!(comparable(outcome(&plan, 1, Driver::Sequential)) == first);
}

const OUTAGE: &str = r#"
[[event]]
kind = "link_down"
at = "2ms"
between = ["h1", "s0"]
"#;

#[test]
fn a_dead_link_ends_the_job_and_the_connection_is_named() {
    let tcp = "[host.tcp]\nretries = 3\nminimum_timeout = \"1ms\"";
    let plan = plan(&(ring("tcp", tcp, "", "256MiB") + OUTAGE));
    let results = go(&plan);
    let JobStatus::Failed { flow } = results.jobs[0].status else {
        panic!("{:?}", results.jobs[0].status)
    };
    let flow = &plan.flows[flow.index()];
    let found = findings::find(&plan, &results);
    let failure = (found.iter())
        .find(|finding| finding.kind == Kind::JobFailed)
        .expect("a finding");
    let name = |node: crate::plan::NodeId| &plan.network.nodes[node.index()].name;
    let connection = format!(
        "{}:{} → {}:5201: the connection timed out",
        name(flow.source),
        flow.udp_source_port,
        name(flow.destination)
    );
    assert!(failure.title.contains(&connection), "{}", failure.title);
    assert!([name(flow.source), name(flow.destination)].contains(&&"h1".to_owned()));
    let waits = |line: &String| line.contains("waits for");
    assert!(failure.details.iter().any(waits), "{:?}", failure.details);
}

/// What an outage loses is sent again: the job ends later, and whole.
#[test]
fn a_link_that_comes_back_costs_time_alone() {
    let tcp = "[host.tcp]\nminimum_timeout = \"1ms\"";
    let text = ring("tcp", tcp, "", "64MiB");
    let whole = go(&plan(&text));
    let back = OUTAGE.replace("link_down", "link_up").replace("2ms", "7ms");
    let broken = go(&plan(&(text + OUTAGE + &back)));
    assert_eq!(broken.jobs[0].status, JobStatus::Completed);
    let time = |results: &Results| {
        let finished = results.jobs[0].finished.expect("it is over");
        finished.since(Time::ZERO)
    };
    let later = time(&broken) - time(&whole);
    assert!(
        later > Span::millis(5) && later < Span::millis(30),
        "{later}"
    );
}

#[test]
fn what_tcp_cannot_do_is_refused() {
    let direct = ring("tcp", "[host.server]\ndata_path = \"direct\"", "", "1MiB");
    let found = refusal(&direct);
    assert!(
        found.contains("host.server.data_path") && found.contains("GPUDirect"),
        "{found}"
    );
    let rails = ring("tcp", "", "failover = true", "1MiB").replace(
        "kind = \"star\"\nhosts = 4\nrate = \"100Gb/s\"",
        "kind = \"rail_optimised\"\nservers = 2\nrails = 2",
    );
    let found = refusal(&rails);
    assert!(found.contains("stand by"), "{found}");
}
