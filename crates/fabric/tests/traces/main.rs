//! Jobs from traces, end to end: small files made here, and real ones where they are at hand.

mod chakra;
mod goal;
mod simai;

use std::path::{Path, PathBuf};

use softfabric_fabric::engine::{RunOptions, run};
use softfabric_fabric::plan::Plan;
use softfabric_fabric::results::{Ending, JobResult, JobStatus, Results};
use softfabric_fabric::scenario::Scenario;
use softfabric_units::Span;

/// A star of hosts that are never asked for more than links carry, and a job.
fn star(hosts: u32, job: &str) -> String {
    format!(
        "[host]\ncongestion_control = {{ kind = \"none\" }}\nacknowledge_every = 16\n\
         [topology]\nkind = \"star\"\nhosts = {hosts}\nrate = \"400Gb/s\"\n[[job]]\n{job}\n"
    )
}

/// The plan of a scenario in a folder with files.
fn plan_beside(folder: &Path, text: &str) -> Result<Plan, String> {
    let name = folder.join("job.toml").display().to_string();
    let scenario = Scenario::from_toml(text, &name).map_err(|error| error.to_string())?;
    let plan = scenario.plan().map_err(|error| error.to_string())?;
    let errors: Vec<String> = (plan.check().iter())
        .filter(|finding| finding.severity == softfabric_fabric::plan::Severity::Error)
        .map(|finding| format!("{finding:?}"))
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    Ok(plan)
}

/// The plan of a job in a star whose trace is a file with this text.
fn plan_of(hosts: u32, file: &str, content: &[u8], settings: &str) -> Result<Plan, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join(file), content).expect("it takes files");
    let job = format!("trace = \"{file}\"\n{settings}");
    plan_beside(folder.path(), &star(hosts, &job))
        .map_err(|error| error.replace(&folder.path().display().to_string(), "FOLDER"))
}

fn go(plan: &Plan) -> Results {
    let results = run(plan, &mut RunOptions::default()).expect("the plan runs");
    assert_eq!(results.conservation.violations, Vec::<String>::new());
    assert_eq!(results.ending, Ending::Completed);
    assert_eq!(results.jobs[0].status, JobStatus::Completed);
    results
}

/// How long a job took that began at zero.
fn time(job: &JobResult) -> Span {
    let finished = job.finished.expect("the job is done");
    finished.since(softfabric_units::Time::ZERO)
}

fn seconds(results: &Results) -> f64 {
    time(&results.jobs[0]).as_seconds_f64()
}

/// How long a step takes on a star by itself.
fn alone(hosts: u32, step: &str) -> f64 {
    let plan = plan_beside(
        Path::new(""),
        &star(hosts, &format!("[[job.step]]\n{step}")),
    );
    seconds(&go(&plan.expect("the step plans")))
}

/// What a frame takes from host to host: two links of 400 Gb/s and 1 µs, and a switch of 500 ns.
fn crossing(frame: u64) -> f64 {
    2.0 * (frame as f64 * 8.0 / 400e9 + 1e-6) + 500e-9
}

/// What a message of one packet takes beside its payload: Ethernet 38, IP 20, UDP 8, BTH 12, RETH 16, immediate data 4, ICRC 4.
const AROUND: u64 = 102;

/// An acknowledgement: Ethernet 38, IP 20, UDP 8, BTH 12, AETH 4, ICRC 4.
const ACKNOWLEDGEMENT: u64 = 86;

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    let off = found / expected - 1.0;
    assert!(
        off.abs() <= tolerance,
        "{found} is {:.3} % off {expected}",
        off * 100.0
    );
}

/// What a refusal says contains all of these.
#[track_caller]
fn refused(plan: Result<Plan, String>, parts: &[&str]) {
    let error = plan.map(|_| ()).expect_err("it is refused");
    for part in parts {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder of real files beside the workspace; says that it skips where there is none.
fn real(name: &str) -> Option<PathBuf> {
    let folder = workspace().join("../shared/reference/workloads").join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: {} is not there", folder.display());
    None
}

/// The scenario of a name, run.
fn scenario(name: &str) -> (Plan, Results) {
    let folder = workspace().join("scenarios");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("it is there");
    let plan = plan_beside(&folder, &text).expect("it plans");
    let results = go(&plan);
    (plan, results)
}

#[test]
fn steps_and_traces_exclude_each_other() {
    let text = star(
        2,
        "trace = \"x.goal\"\n[[job.step]]\nkind = \"compute\"\ntime = \"1ms\"",
    );
    refused(
        plan_beside(Path::new(""), &text),
        &["job[0].trace", "either steps or a trace"],
    );
    refused(
        plan_beside(Path::new(""), &star(2, "")),
        &["no step", "or a `trace`"],
    );
    let text = star(
        2,
        "layers = 3\n[[job.step]]\nkind = \"compute\"\ntime = \"1ms\"",
    );
    refused(
        plan_beside(Path::new(""), &text),
        &["job[0].layers", "only together with `trace`"],
    );
    let text = star(2, "trace = \"missing.goal\"");
    refused(
        plan_beside(Path::new(""), &text),
        &["job[0].trace", "missing.goal", "not readable"],
    );
    refused(
        plan_of(2, "x.txt", b"hello", ""),
        &["x.txt:1", "`hello`", "num_ranks", "format ="],
    );
}
