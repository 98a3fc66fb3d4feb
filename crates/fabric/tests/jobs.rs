//! Jobs against arithmetic: what collectives take on an idle fabric, and what they do when something breaks.

use softfabric_fabric::engine::{Driver, RunOptions, run};
use softfabric_fabric::plan::Plan;
use softfabric_fabric::results::{Ending, JobStatus, Results};
use softfabric_fabric::scenario::Scenario;

/// A fabric without congestion control, whose links are never asked for more than they carry.
const QUIET: &str = "[host]\ncongestion_control = { kind = \"none\" }\nacknowledge_every = 16\n";

fn plan(text: &str) -> Plan {
    let scenario = Scenario::from_toml(text, "job.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.plan().unwrap_or_else(|error| panic!("{error}"))
}

fn go(plan: &Plan) -> Results {
    let results = run(plan, &mut RunOptions::default()).unwrap();
    assert_eq!(results.conservation.violations, Vec::<String>::new());
    results
}

/// The first phase's algorithm and bus bandwidth in GB/s.
fn bandwidth(plan: &Plan, results: &Results) -> (f64, f64) {
    assert_eq!(results.ending, Ending::Completed);
    assert_eq!(results.jobs[0].status, JobStatus::Completed);
    let measure = plan.jobs[0].phases[0].collective.unwrap();
    let span = results.jobs[0].phases[0].span().unwrap();
    let algorithm = measure.bytes.as_u64() as f64 / span.as_seconds_f64() / 1e9;
    (algorithm, algorithm * measure.bus_factor)
}

/// What a link of `gbps` carries of messages in packets of 4096 B, in GB/s: RoCEv2 over IPv4 adds 38 B of Ethernet, 20 of IP,
/// 8 of UDP, 12 of BTH and 4 of ICRC.
fn goodput(gbps: f64) -> f64 {
    gbps / 8.0 * 4096.0 / (4096.0 + 82.0)
}

fn star(hosts: u32, step: &str) -> String {
    format!(
        "{QUIET}[topology]\nkind = \"star\"\nhosts = {hosts}\nrate = \"400Gb/s\"\n[[job]]\n[[job.step]]\n{step}\n"
    )
}

#[test]
fn rings_reach_the_bound() {
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
        let (_, bus) = bandwidth(&plan, &go(&plan));
        let share = bus / goodput(400.0);
        assert!((0.98..=1.0).contains(&share), "{kind} of {hosts}: {share}");
    }
}
