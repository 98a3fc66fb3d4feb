//! Jobs against arithmetic: what collectives take on an idle fabric, and what becomes of them when something breaks.

mod common;

use softfabric_fabric::engine::{Driver, RunOptions, run};
use softfabric_fabric::export::JobFigures;
use softfabric_fabric::export::findings::{self, Kind};
use softfabric_fabric::plan::{NodeId, Plan};
use softfabric_fabric::results::{Ending, FlowStatus, JobStatus, Results};
use softfabric_fabric::scenario::Scenario;
use softfabric_telemetry::PortCounter;
use softfabric_units::Span;

use common::{scenario, simulate};

/// Hosts without congestion control: links are never asked for more than they carry.
const QUIET: &str = "[host]\ncongestion_control = { kind = \"none\" }\nacknowledge_every = 16\n";

fn plan(text: &str) -> Plan {
    let scenario = Scenario::from_toml(text, "job.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.plan().unwrap_or_else(|error| panic!("{error}"))
}

/// How long a phase took.
fn time(results: &Results, phase: usize) -> Span {
    assert_eq!(results.ending, Ending::Completed);
    assert_eq!(results.jobs[0].status, JobStatus::Completed);
    results.jobs[0].phases[phase]
        .span()
        .expect("a phase that is over")
}

/// A phase's bus bandwidth in GB/s.
fn bus(plan: &Plan, results: &Results, phase: usize) -> f64 {
    let measure = plan.jobs[0].phases[phase]
        .collective
        .expect("one collective");
    let seconds = time(results, phase).as_seconds_f64();
    measure.bytes.as_u64() as f64 / seconds / 1e9 * measure.bus_factor
}

/// What a link carries of payload in full packets, in GB/s: RoCEv2 over IPv4 adds 38 B of Ethernet, 20 of IP, 8 of UDP, 12 of
/// BTH and 4 of ICRC to 4096 B.
fn goodput(gbps: f64) -> f64 {
    gbps / 8.0 * 4096.0 / (4096.0 + 82.0)
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

fn star(hosts: u32, step: &str) -> String {
    format!(
        "{QUIET}[topology]\nkind = \"star\"\nhosts = {hosts}\nrate = \"400Gb/s\"\n[[job]]\n[[job.step]]\n{step}\n"
    )
}

fn rails(topology: &str, job: &str, step: &str) -> String {
    format!(
        "{QUIET}[topology]\nkind = \"rail_optimised\"\n{topology}\n[[job]]\n{job}\n[[job.step]]\n{step}\n"
    )
}

#[test]
fn rings_reach_their_bound() {
    for (kind, hosts) in [
        ("all_reduce", 8),
        ("all_gather", 8),
        ("reduce_scatter", 5),
        ("all_reduce", 2),
    ] {
        let plan = plan(&star(
            hosts,
            &format!("kind = \"{kind}\"\nbytes = \"256MiB\""),
        ));
        near(bus(&plan, &simulate(&plan), 0), goodput(400.0), 0.02);
    }
}

/// A small all-reduce round a ring takes 2(n − 1) times what one message takes from host to host, and an acknowledgement.
#[test]
fn small_messages_take_the_time_of_their_steps() {
    let hosts = 16;
    for bytes in [128_u64, 8_192] {
        let step = format!("kind = \"all_reduce\"\nalgorithm = \"ring\"\nbytes = \"{bytes}B\"");
        let results = simulate(&plan(&star(hosts, &step)));
        // Two links, and the switch's latency of 500 ns. Beside the payload: Ethernet 38, IP 20, UDP 8, BTH 12, RETH 16, immediate
        // data 4, ICRC 4; in the end, an acknowledgement of 38 + 20 + 8 + 12 + 4 + 4.
        let crossing = |frame: f64| 2.0 * (frame * 8.0 / 400e9 + 1e-6) + 500e-9;
        let message = (bytes / u64::from(hosts) + 102) as f64;
        let expected = 2.0 * f64::from(hosts - 1) * crossing(message) + crossing(86.0);
        near(time(&results, 0).as_seconds_f64(), expected, 0.005);
    }
}

/// Two trees, each for one half: every link carries the whole once to reduce and once to spread, in each direction, but for
/// the ends of the trees.
#[test]
fn trees_and_halves_reach_their_bounds() {
    let bytes = 256.0 * 1024.0 * 1024.0 / 1e9;
    let of = |algorithm: &str, hosts: u32| {
        let step =
            format!("kind = \"all_reduce\"\nalgorithm = \"{algorithm}\"\nbytes = \"256MiB\"");
        let plan = plan(&star(hosts, &step));
        time(&simulate(&plan), 0).as_seconds_f64()
    };
    // Halving and doubling: 2 (n − 1)/n of the bytes leave each host, one exchange after the other.
    near(
        of("halving_doubling", 8),
        bytes * 2.0 * 7.0 / 8.0 / goodput(400.0),
        0.02,
    );
    // A rank inside a tree sends a half up and a half to each of two children, and is a leaf of the other tree, where it sends
    // a half up: twice the bytes at least. Two children that send to one parent at once pause each other, which costs more.
    let trees = of("double_tree", 16) / (bytes * 2.0 / goodput(400.0));
    assert!((1.0..1.25).contains(&trees), "{trees}");
    // What trees are for: few steps.
    let small = |algorithm: &str| {
        let step = format!("kind = \"all_reduce\"\nalgorithm = \"{algorithm}\"\nbytes = \"4KiB\"");
        time(&simulate(&plan(&star(32, &step))), 0)
    };
    let (tree, ring) = (small("double_tree"), small("ring"));
    // 2 log₂ 32 steps and some, instead of 2 · 31.
    assert!(tree * 4 < ring, "{tree} against {ring}");
}

#[test]
fn all_to_all_and_broadcast_reach_their_bounds() {
    let plan_of = |kind: &str| plan(&star(8, &format!("kind = \"{kind}\"\nbytes = \"64MiB\"")));
    let everybody = plan_of("all_to_all");
    near(
        bus(&everybody, &simulate(&everybody), 0),
        goodput(400.0),
        0.02,
    );
    let one = plan_of("broadcast");
    // 128 slices go through a chain of 7, each waiting for the one before it.
    near(
        bus(&one, &simulate(&one), 0),
        goodput(400.0) * 128.0 / (128.0 + 6.0),
        0.02,
    );
}

const EIGHT: &str = "servers = 4\nrails = 8";

/// Each rail reduces an eighth: the time is that of a ring of four servers for it.
#[test]
fn by_rail_all_nics_work() {
    let step = "kind = \"all_reduce\"\nbytes = \"1GiB\"";
    let by_rail = plan(&rails(EIGHT, "", step));
    let share = 1024.0 * 1024.0 * 1024.0 / 8.0 / 1e9;
    let expected = share * 2.0 * 3.0 / 4.0 / goodput(400.0);
    near(
        time(&simulate(&by_rail), 0).as_seconds_f64(),
        expected,
        0.02,
    );
}

/// Rails without spines are a subnet each, with a manager of its own: over InfiniBand they carry what they carry over Ethernet, but
/// for the headers.
#[test]
fn rails_of_several_subnets_all_work() {
    let step = "kind = \"all_reduce\"\nbytes = \"256MiB\"";
    let ethernet = plan(&rails(EIGHT, "", step));
    let infiniband = plan(&format!(
        "[fabric]\nkind = \"infiniband\"\n{}",
        rails(EIGHT, "", step)
    ));
    let [one, other] = [&ethernet, &infiniband].map(|plan| bus(plan, &simulate(plan), 0));
    near(other, one, 0.03);
}

/// By rail, an accelerator's NIC carries what is for other servers and nothing else; all to all takes that long.
#[test]
fn all_to_all_by_rail_takes_what_leaves_the_server() {
    let step = "kind = \"all_to_all\"\nbytes = \"256MiB\"";
    let by_rail = plan(&rails(EIGHT, "", step));
    let outside = 256.0 * 1024.0 * 1024.0 * 3.0 / 4.0 / 1e9;
    near(
        time(&simulate(&by_rail), 0).as_seconds_f64(),
        outside / goodput(400.0),
        0.05,
    );
}

/// Ranks that are numbered by rail have their neighbours on their own rail, mostly on their own leaf; placed by chance, they
/// meet on the spines, which carry a quarter of what the hosts send.
#[test]
fn placement_by_rail_beats_placement_that_crosses() {
    let topology =
        "servers = 8\nrails = 4\nservers_per_leaf = 4\nspines = 1\ntrunk_rate = \"400Gb/s\"";
    let step = "kind = \"all_gather\"\nbytes = \"256MiB\"\namong = \"rail\"";
    let along = plan(&rails(topology, "", step));
    let shuffled = plan(&rails(
        topology,
        "order = \"random\"",
        "kind = \"shift\"\nbytes = \"64MiB\"\ndistance = 1",
    ));
    let straight = plan(&rails(
        topology,
        "order = \"rail\"",
        "kind = \"shift\"\nbytes = \"64MiB\"\ndistance = 1",
    ));
    near(bus(&along, &simulate(&along), 0), goodput(400.0), 0.05);
    let (fast, slow) = (time(&simulate(&straight), 0), time(&simulate(&shuffled), 0));
    assert!(
        slow.as_picos() as f64 > 1.5 * fast.as_picos() as f64,
        "{slow} against {fast}"
    );
}

/// A server loses one of its eight rails: the traffic of that goes over the seven others, which have an eighth less to give.
#[test]
fn a_lost_rail_costs_its_share() {
    let steps = "kind = \"all_reduce\"\nbytes = \"1GiB\"";
    let job = "iterations = 3\nfailover = true\nslice = \"128KiB\"";
    let text = rails(EIGHT, job, steps).replace("[host]\n", "[host]\ntimeout = 6\nretry = 3\n")
        + "[[event]]\nkind = \"link_down\"\nat = \"1ms\"\nbetween = [\"h0\", \"rail3leaf0\"]\n";
    let plan = plan(&text);
    let results = simulate(&plan);
    let before = simulate(&self::plan(&rails(
        EIGHT,
        "iterations = 3\nslice = \"128KiB\"",
        steps,
    )));
    let failed = (results.flows.iter())
        .filter(|flow| matches!(flow.status, FlowStatus::Failed(_)))
        .count();
    assert!(failed >= 2, "{failed} queue pairs failed");
    let share = time(&before, 2).as_picos() as f64 / time(&results, 2).as_picos() as f64;
    // The seven NICs carry eight shares, and so do those of the neighbours in the ring.
    near(share, 7.0 / 8.0, 0.06);
    let found = findings::find(&plan, &results);
    assert!(
        found
            .iter()
            .any(|finding| finding.kind == Kind::JobSurvived)
    );
    assert!(!findings::has_failure(&found));
}

/// With two planes a NIC has two ports; when one plane is gone, half is left, and the job goes on without failover.
#[test]
fn a_lost_plane_costs_its_share() {
    let topology = "servers = 4\nrails = 2\nplanes = 2\nrate = \"200Gb/s\"";
    let step = "kind = \"all_reduce\"\nbytes = \"128MiB\"";
    let job = "iterations = 3\nslice = \"128KiB\"";
    let whole = rails(topology, job, step);
    let mut text = whole.replace("[host]\n", "[host]\ntimeout = 6\nretry = 3\n");
    for server in 0..4 {
        for rail in 0..2 {
            text += &format!(
                "[[event]]\nkind = \"link_down\"\nat = \"500us\"\nbetween = [\"h{server}\", \"plane1rail{rail}leaf0\"]\n"
            );
        }
    }
    let (whole, broken) = (simulate(&plan(&whole)), simulate(&plan(&text)));
    near(
        time(&whole, 2).as_picos() as f64 / time(&broken, 2).as_picos() as f64,
        0.5,
        0.03,
    );
}

#[test]
fn without_retries_and_other_ways_the_job_fails_and_says_so() {
    let text = rails(EIGHT, "", "kind = \"all_reduce\"\nbytes = \"256MiB\"")
        .replace("[host]\n", "[host]\ntimeout = 6\nretry = 0\n")
        + "[[event]]\nkind = \"link_down\"\nat = \"1ms\"\nbetween = [\"h0\", \"rail3leaf0\"]\n";
    let plan = plan(&text);
    let results = simulate(&plan);
    assert!(matches!(results.jobs[0].status, JobStatus::Failed { .. }));
    let found = findings::find(&plan, &results);
    let failure = found
        .iter()
        .find(|finding| finding.kind == Kind::JobFailed)
        .unwrap();
    assert!(failure.title.contains("RETRY_EXC"), "{}", failure.title);
    assert!(
        failure
            .details
            .iter()
            .any(|line| line.contains("waits for"))
    );
    assert!(
        failure
            .details
            .iter()
            .any(|line| line.contains("no queue pair left"))
    );
}

/// Copies through host memory cross the PCIe link twice in each direction: with sending and receiving at once, half of it is
/// left, and the processor is busy. Directly, it isn't.
#[test]
fn staging_costs_what_pcie_says() {
    let step = "kind = \"all_reduce\"\nbytes = \"512MiB\"";
    let direct = plan(&star(4, step));
    let staged_text = star(4, step) + "[host.server]\ndata_path = \"staged\"\n";
    let staged = plan(&staged_text);
    let (direct_results, staged_results) = (simulate(&direct), simulate(&staged));
    let ratio = bus(&staged, &staged_results, 0) / bus(&direct, &direct_results, 0);
    near(ratio, 57.6 / 2.0 / goodput(400.0), 0.05);
    let copies = |results: &Results| -> Span {
        results
            .processors
            .iter()
            .fold(Span::ZERO, |sum, host| sum + host.copies)
    };
    assert_eq!(copies(&direct_results), Span::ZERO);
    // One copy of 5 µs at each end of each message.
    let messages = 4 * 2 * 3 * (512 / 4) * 2;
    assert_eq!(copies(&staged_results), Span::micros(5) * (2 * messages));
}

/// One forward and one back of each micro-batch on each stage, and the filling and emptying of the pipeline.
#[test]
fn a_pipeline_takes_its_bubble() {
    let step = "kind = \"pipeline\"\nstages = 4\nmicro_batches = 8\nbytes = \"4KiB\"\nforward = \"1ms\"\nbackward = \"2ms\"";
    let results = simulate(&plan(&star(4, step)));
    near(
        time(&results, 0).as_seconds_f64(),
        (8.0 + 3.0) * 3e-3,
        0.005,
    );
    near(
        results.jobs[0].phases[0].exposed().unwrap(),
        3.0 / 11.0,
        0.03,
    );
}

/// What runs in the background is hidden by computations that come after it.
#[test]
fn communication_in_the_background_is_hidden() {
    let all_reduce = |background: bool| {
        format!(
            "kind = \"all_reduce\"\nbytes = \"64MiB\"\nbackground = {background}\n[[job.step]]\nkind = \"compute\"\ntime = \"10ms\""
        )
    };
    let results = |background| simulate(&plan(&star(4, &all_reduce(background))));
    let (hidden, exposed) = (results(true), results(false));
    let alone = time(
        &simulate(&plan(&star(4, "kind = \"all_reduce\"\nbytes = \"64MiB\""))),
        0,
    );
    assert_eq!(time(&hidden, 0), Span::millis(10));
    assert_eq!(time(&exposed, 0), alone + Span::millis(10));
}

/// A slow server holds up everybody.
#[test]
fn a_slow_server_holds_up_the_job() {
    let text = star(
        4,
        "kind = \"compute\"\ntime = \"1ms\"\n[[job.step]]\nkind = \"all_reduce\"\nbytes = \"1KiB\"",
    );
    let slow = text.clone() + "[[host_group]]\nnames = [\"h2\"]\nserver = { slowness = 1.5 }\n";
    let (usual, slow) = (simulate(&plan(&text)), simulate(&plan(&slow)));
    assert_eq!(time(&slow, 0) - time(&usual, 0), Span::micros(500));
}

#[test]
fn threads_and_drivers_agree() {
    let text = rails(
        "servers = 4\nrails = 2\nservers_per_leaf = 2\nspines = 2\nplanes = 2",
        "iterations = 2\nqueue_pairs = 2",
        "kind = \"all_reduce\"\nbytes = \"4MiB\"\n[[job.step]]\nkind = \"all_to_all\"\nbytes = \"1MiB\"",
    );
    let plan = plan(&text);
    let with = |threads, driver| {
        let mut options = RunOptions {
            threads,
            driver,
            ..RunOptions::default()
        };
        run(&plan, &mut options).unwrap()
    };
    let first = with(1, Driver::Automatic);
    assert_eq!(first.jobs[0].status, JobStatus::Completed);
    for other in [with(2, Driver::Automatic), with(5, Driver::Automatic)] {
        assert_eq!(other, first);
    }
    let mut one_by_one = with(1, Driver::Sequential);
    one_by_one.work = first.work;
    assert_eq!(one_by_one, first);
}

/// A plane that fails, by name, over each kind of fabric: what the job has before, during and after.
#[test]
fn a_plane_that_fails_is_in_the_figures() {
    let of = |kind: &str| {
        let iterations = if kind == "tcp" { 12 } else { 6 };
        let host = match kind {
            "tcp" => "[host.tcp]\nminimum_timeout = \"1ms\"\ncpu = { enabled = false }\n",
            _ => {
                "[host]\ncongestion_control = { kind = \"none\" }\nacknowledge_every = 16\ntimeout = 6\nretry = 3\n"
            }
        };
        let text = format!(
            "[fabric]\nkind = \"{kind}\"\n[topology]\nkind = \"rail_optimised\"\nservers = 4\nrails = 2\nrate = \"100Gb/s\"\n\
             planes = 2\n{host}[[job]]\niterations = {iterations}\nslice = \"128KiB\"\n[[job.step]]\nkind = \"all_reduce\"\n\
             bytes = \"64MiB\"\n[[event]]\nkind = \"plane_down\"\nplane = 1\nat = \"5ms\"\nuntil = \"9ms\"\n"
        );
        let plan = plan(&text);
        let results = simulate(&plan);
        let [figures] = &JobFigures::all(&plan, &results)[..] else {
            panic!("one job")
        };
        assert!(figures.survived, "{kind}: {:?}", results.jobs[0].status);
        let found = findings::find(&plan, &results);
        let finding = (found.iter())
            .find(|finding| finding.kind == Kind::JobSurvived)
            .expect("it is told");
        let told = finding.title.clone() + &finding.details.join("; ");
        assert!(told.contains("GB/s before"), "{told}");
        println!("{kind}: {}", figures.in_words());
        [figures.before, figures.during, figures.after].map(|value| value.expect("it ran then"))
    };
    // Queue pairs fail in a millisecond, and do not come back: half is left.
    for kind in ["rocev2", "infiniband"] {
        let [before, during, after] = of(kind);
        near(after / before, 0.5, 0.08);
        assert!(during < 0.6 * before && during > 0.2 * before, "{kind}");
    }
    // Connections wait for the plane: nothing goes meanwhile, and everything from the timeout on that follows it.
    let [before, during, after] = of("tcp");
    assert!(during < 0.2 * before, "{during} of {before}");
    assert!(after > 0.7 * before, "{after} of {before}");
}

/// The scenario of a lost rail: three of four are left.
#[test]
fn a_rail_that_fails_leaves_the_others() {
    let plan = scenario("rail_failure");
    let results = simulate(&plan);
    let [figures] = &JobFigures::all(&plan, &results)[..] else {
        panic!("one job")
    };
    println!("{}", figures.in_words());
    assert!(figures.survived && figures.after.is_none());
    let (first, last) = (time(&results, 0), time(&results, 5));
    near(first.as_picos() as f64 / last.as_picos() as f64, 0.75, 0.06);
}

/// A host that is slow from a time on and until another: what is under way ends as it began.
#[test]
fn a_host_is_slow_for_a_while() {
    let text = star(4, "kind = \"compute\"\ntime = \"1ms\"")
        .replace("[[job]]\n", "[[job]]\niterations = 4\n")
        + "[[event]]\nkind = \"slow_hosts\"\nhosts = [\"h1\"]\nslowness = 3\nat = \"1500us\"\nuntil = \"4ms\"\n";
    let results = simulate(&plan(&text));
    let finished = results.jobs[0].ranks.iter().map(|rank| rank.finished);
    let finished: Vec<Span> = finished
        .map(|time| {
            time.expect("it is over")
                .since(softfabric_units::Time::ZERO)
        })
        .collect();
    assert_eq!(
        finished,
        [
            Span::millis(4),
            Span::millis(1 + 1 + 3 + 1),
            Span::millis(4),
            Span::millis(4)
        ]
    );
}

/// Until switches route by a change of a link, what they send there is lost; with routes at once, nothing is but what was on
/// the link.
#[test]
fn routing_takes_its_time() {
    let of = |reroute: &str| {
        let text = format!(
            "[fabric]\nreroute = \"{reroute}\"\n[topology]\nkind = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
             rate = \"100Gb/s\"\n[host]\ntimeout = 8\n[[workload]]\nkind = \"permutation\"\npattern = \"shift\"\n\
             bytes = \"10MB\"\n[[event]]\nkind = \"link_down\"\nbetween = [\"leaf0\", \"spine0\"]\nat = \"200us\"\n"
        );
        let results = simulate(&plan(&text));
        for flow in &results.flows {
            assert_eq!(flow.status, FlowStatus::Completed, "{reroute}");
        }
        results
    };
    let (at_once, later) = (of("0s"), of("3ms"));
    assert!(later.conservation.dropped > 2 * at_once.conservation.dropped);
    let again =
        |results: &Results| -> u64 { results.flows.iter().map(|flow| flow.retransmitted).sum() };
    assert!(again(&later) > 2 * again(&at_once));
}

/// A node from a file: two accelerators share a NIC of 200 Gb/s, and have half of it each. With one NIC each, as a scenario
/// without the file has them, they would have all.
#[test]
fn accelerators_that_share_a_nic_share_its_rate() {
    let plan = scenario("shared_nics");
    let ranks = &plan.jobs[0].ranks;
    assert_eq!(ranks.len(), 32);
    assert_eq!((ranks[0].nic.0, ranks[1].nic.0, ranks[7].nic.0), (0, 0, 3));
    let server = plan.host_profiles[0].server;
    assert_eq!(server.accelerator_rate.as_gbps_f64(), 1920.0);
    let results = simulate(&plan);
    near(bus(&plan, &results, 0), goodput(200.0) / 2.0, 0.02);
}

#[test]
fn a_network_with_fewer_nics_than_the_file_is_refused() {
    let text = "[topology]\nkind = \"star\"\nhosts = 4\n[host.server]\ntopology = \"nodes/shared_nics.xml\"\n\
                [[job]]\n[[job.step]]\nkind = \"shift\"\nbytes = \"1MiB\"\n";
    let file = format!("{}/../../scenarios/x.toml", env!("CARGO_MANIFEST_DIR"));
    let error = Scenario::from_toml(text, &file)
        .unwrap()
        .plan()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`job[0]`: found 1 NICs of `h0`, whose server has more; allowed: 4 NICs: mlx5_0, mlx5_1,"),
        "{error}"
    );
    let missing = text.replace("shared_nics.xml", "nowhere.xml");
    let error = Scenario::from_toml(&missing, &file)
        .unwrap()
        .plan()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("x.toml:5:12: `host.server.topology`: found ")
            && error.contains("nowhere.xml: the file is not readable"),
        "{error}"
    );
}

/// How many queue pairs' worth of a job each uplink of each leaf carries, where all queue pairs carry the same.
fn loads(plan: &Plan, results: &Results) -> Vec<u32> {
    let name = |node: NodeId| plan.network.nodes[node.index()].name.as_str();
    // Counters leave out preambles and gaps: 62 B a packet are left of the 82.
    let each = plan.flows[0].bytes.as_u64() as f64 * 4158.0 / 4096.0;
    let uplinks = (plan.network.links.iter())
        .filter(|link| name(link.a.node).starts_with("leaf"))
        .map(|link| link.a);
    uplinks
        .map(|end| {
            let port = (results.ports.iter()).find(|port| port.endpoint == end);
            let sent = port.expect("a port").port.value(PortCounter::TransmitBytes);
            (sent as f64 / each).round() as u32
        })
        .collect()
}

/// The time of a job is that of the cable with the most queue pairs. One flow a server, told apart by addresses: some cable
/// has several, and another none. Four queue pairs a connection do not help as long as switches do not look at them; where
/// they do, or where each has a port of its own, they spread.
#[test]
fn large_flows_collide_until_switches_see_queue_pairs() {
    let alone = 32.0 * 1.048_576 / goodput(100.0);
    let took = |results: &Results| time(results, 0).as_seconds_f64() * 1e3;
    let plain = scenario("ecmp_elephants");
    let results = simulate(&plain);
    let collided = loads(&plain, &results);
    let most = *collided.iter().max().unwrap();
    assert_eq!(collided.iter().sum::<u32>(), 8);
    assert!(most >= 2 && collided.contains(&0), "{collided:?}");
    near(took(&results), alone * f64::from(most), 0.02);
    let spread = scenario("ecmp_queue_pairs");
    let results = simulate(&spread);
    let with_queue_pairs = loads(&spread, &results);
    let most_then = *with_queue_pairs.iter().max().unwrap();
    println!("{collided:?}, {with_queue_pairs:?} of four");
    assert_eq!(with_queue_pairs.iter().sum::<u32>(), 32);
    assert!(most_then < 4 * most, "{with_queue_pairs:?}");
    assert!(!with_queue_pairs.contains(&0), "{with_queue_pairs:?}");
    near(took(&results), alone * f64::from(most_then) / 4.0, 0.05);
    // Pieces over all queue pairs take the same ways.
    let text = include_str!("../../../scenarios/ecmp_queue_pairs.toml");
    let split = plan(&text.replace("in_turn", "split"));
    let results = simulate(&split);
    assert_eq!(loads(&split, &results), with_queue_pairs);
    // Without the queue pair in the hash, all four of a connection go one way.
    let blind = plan(&text.replace("ecmp_queue_pair\"", "ecmp\""));
    let results = simulate(&blind);
    let blind = loads(&blind, &results);
    assert!(
        blind.iter().all(|load| load % 4 == 0) && blind.iter().sum::<u32>() > 0,
        "{blind:?}"
    );
    // Ports of their own do as well.
    let own = plan(
        &text
            .replace("ecmp_queue_pair\"", "ecmp\"")
            .replace("source_port", "#"),
    );
    let results = simulate(&own);
    assert!(loads(&own, &results).iter().any(|load| load % 4 != 0));
}

/// A message in four pieces has come when all four have, one over each queue pair; otherwise it takes one of them.
#[test]
fn split_messages_take_all_queue_pairs() {
    let mut used = Vec::new();
    for spread in ["fewest", "in_turn", "split"] {
        let text = star(5, "kind = \"broadcast\"\nbytes = \"16MiB\"");
        let job = format!("[[job]]\nslice = \"16MiB\"\nqueue_pairs = 4\nspread = \"{spread}\"");
        let plan = plan(&text.replace("[[job]]", &job));
        let results = simulate(&plan);
        let seconds = time(&results, 0).as_seconds_f64();
        near(
            seconds,
            4.0 * 16.0 * 1.048_576e6 / (goodput(400.0) * 1e9),
            0.02,
        );
        let flows = results.flows.iter();
        let carried = flows.filter(|flow| flow.delivered.as_u64() > 0).count();
        used.push((spread, carried));
    }
    // Four hops: one message is on one of four queue pairs, or a piece of it on each.
    assert_eq!(used, [("fewest", 4), ("in_turn", 4), ("split", 16)]);
}

/// Along a chain, a message is passed on when all its pieces have come. The second piece's cable is slow on the first hop, and
/// the first one's on the second: each hop takes the time of half a message at 100 Gb/s. Were pieces passed on one by one, the
/// first would be on its slow hop while the second is on its own, and all would take little more than half of that.
#[test]
fn split_messages_are_passed_on_whole() {
    let text = rails(
        "servers = 3\nrails = 1\nplanes = 2\nrate = \"400Gb/s\"",
        "slice = \"16MiB\"\nspread = \"split\"",
        "kind = \"broadcast\"\nbytes = \"16MiB\"",
    );
    let slow = |host: &str, plane: u32| {
        format!(
            "[[link]]\nbetween = [\"{host}\", \"plane{plane}rail0leaf0\"]\nrate = \"100Gb/s\"\n"
        )
    };
    let plan = plan(&format!("{text}{}{}", slow("h0", 1), slow("h2", 0)));
    let results = simulate(&plan);
    let hop = 8.0 * 1.048_576e6 / (goodput(100.0) * 1e9);
    near(time(&results, 0).as_seconds_f64(), 2.0 * hop, 0.02);
}
