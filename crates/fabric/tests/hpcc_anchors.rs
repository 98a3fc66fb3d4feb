//! The published results of the HPCC ns-3 code, to the nanosecond where they are deterministic.
//!
//! The files under `hpcc/` are that code's inputs and outputs; see the README there.

use std::path::{Path, PathBuf};

use softfabric_fabric::engine::{RunOptions, run};
use softfabric_fabric::import::hpcc::{HpccRun, load_config};
use softfabric_fabric::results::Results;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hpcc").join(name)
}

fn simulate(config: &str) -> (HpccRun, Results) {
    let hpcc = load_config(&file(config)).unwrap_or_else(|error| panic!("{config}: {error}"));
    let results = run(&hpcc.plan, &mut RunOptions::default()).expect("the plan makes sense");
    assert_eq!(results.conservation.violations, Vec::<String>::new());
    (hpcc, results)
}

fn completion_nanos(results: &Results) -> Vec<u64> {
    results.flows.iter().filter_map(|flow| Some(flow.completion_time()?.as_nanos())).collect()
}

fn pauses(results: &Results) -> usize {
    results.pause_log.iter().filter(|event| event.pause).count()
}

#[test]
fn w1_pfc_only_4_mib() {
    let (_, results) = simulate("w1_pfc_b4.conf");
    let times = completion_nanos(&results);
    assert_eq!(times.len(), 16);
    assert_eq!(times.iter().max(), Some(&13_284_091));
    assert_eq!(pauses(&results), 3_723);
    assert_eq!(results.lossless_drops, 0);
}

#[test]
fn w1_pfc_only_32_mib() {
    let (_, results) = simulate("w1_pfc_b32.conf");
    assert_eq!(completion_nanos(&results).iter().max(), Some(&13_284_091));
    assert_eq!(pauses(&results), 4_170);
    assert_eq!(results.lossless_drops, 0);
}
