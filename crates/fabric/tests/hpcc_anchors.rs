//! The published results of the HPCC ns-3 code: to the byte where they are deterministic, within the spread of its own
//! seeds where they are not.
//!
//! The files under `hpcc/` are that code's inputs and outputs; see the README there. Its pause files are too large to
//! keep, so their FNV-1a hash stands for them.

use std::path::{Path, PathBuf};

use softfabric_fabric::engine::{RunOptions, run};
use softfabric_fabric::export::hpcc::{write_flows, write_pauses};
use softfabric_fabric::import::hpcc::load_config;
use softfabric_fabric::plan::Plan;
use softfabric_fabric::results::Results;
use softfabric_telemetry::ClassCounter;
use softfabric_units::Bytes;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/hpcc")
        .join(name)
}

fn plan(config: &str) -> Plan {
    let loaded = load_config(&file(config)).unwrap_or_else(|error| panic!("{config}: {error}"));
    loaded.plan
}

fn simulate(plan: &Plan) -> Results {
    let results = run(plan, &mut RunOptions::default()).expect("the plan makes sense");
    assert_eq!(results.conservation.violations, Vec::<String>::new());
    results
}

/// Completion times in nanoseconds, shortest first.
fn times(results: &Results) -> Vec<u64> {
    let finished = results.flows.iter();
    let mut times: Vec<u64> = finished
        .filter_map(|flow| Some(flow.completion_time()?.as_nanos()))
        .collect();
    times.sort_unstable();
    times
}

/// The value below which `share` of the sorted values lie, between neighbours in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    below + (above - below) * position.fract()
}

fn pauses(results: &Results) -> usize {
    results.pause_log.iter().filter(|event| event.pause).count()
}

fn marks(results: &Results) -> u64 {
    let classes = results.ports.iter().flat_map(|port| &port.classes);
    classes
        .map(|class| class.value(ClassCounter::EcnMarked))
        .sum()
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Runs a config without randomness and compares both output files to the byte.
fn reproduces(config: &str, fct: &str, pause_hash: u64, pause_count: usize, drops: u64) {
    let plan = plan(config);
    let results = simulate(&plan);
    let mut flows = Vec::new();
    write_flows(&mut flows, &plan, &results).expect("memory takes it");
    let expected = std::fs::read_to_string(file(fct)).expect("the file is in the repository");
    assert_eq!(String::from_utf8_lossy(&flows), expected, "{fct}");
    assert_eq!(pauses(&results), pause_count);
    assert_eq!(results.conservation.dropped, drops);
    let mut frames = Vec::new();
    write_pauses(&mut frames, &plan, &results).expect("memory takes it");
    assert_eq!(
        fnv1a(&frames),
        pause_hash,
        "{} bytes of pause frames",
        frames.len()
    );
}

#[test]
fn one_flow_alone() {
    for (bytes, nanos) in [(1, 4_014), (1_000, 4_174), (10_000_000, 834_091)] {
        let mut plan = plan("w1_pfc_b32.conf");
        plan.flows.truncate(1);
        plan.flows[0].bytes = Bytes::new(bytes);
        assert_eq!(times(&simulate(&plan)), [nanos], "{bytes} B");
    }
}

#[test]
fn w1_pfc_only_4_mib() {
    reproduces(
        "w1_pfc_b4.conf",
        "w1_pfc_b4.fct",
        0x393f_05ef_adb8_d941,
        3_723,
        0,
    );
}

#[test]
fn w1_pfc_only_32_mib() {
    reproduces(
        "w1_pfc_b32.conf",
        "w1_pfc_b32.fct",
        0x7c3a_ff40_ea5c_366e,
        4_170,
        0,
    );
}

/// Its 857 drops are acknowledgements of paused hosts, which that code sends past PFC.
#[test]
fn w2_pfc_only_4_mib() {
    reproduces(
        "w2_pfc_b4.conf",
        "w2_pfc_b4.fct",
        0xfcc8_ffbe_f9ca_07e5,
        32_807,
        857,
    );
}

/// What six seeds gave, smallest and largest.
struct Spread {
    mean: (f64, f64),
    last: (f64, f64),
    marks: (f64, f64),
    pauses: (f64, f64),
}

/// Six seeds of our own: their mean lies within the spread of the published six.
fn falls_within(config: &str, published: &Spread) {
    let mut plan = plan(config);
    let mut sums = [0.0; 4];
    for seed in 1..=6 {
        plan.seed = seed;
        let results = simulate(&plan);
        let times = times(&results);
        let mean = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e3;
        let last = *times.last().expect("flows finish") as f64 / 1e3;
        let found = [mean, last, marks(&results) as f64, pauses(&results) as f64];
        println!("{config} seed {seed}: mean, last, marks, pauses {found:.0?}");
        sums.iter_mut()
            .zip(found)
            .for_each(|(sum, value)| *sum += value);
        assert_eq!(results.lossless_drops, 0);
    }
    let [mean, last, marks, pauses] = sums.map(|sum| sum / 6.0);
    println!("{config}: mean {mean:.0}, last {last:.0}, marks {marks:.0}, pauses {pauses:.1}");
    for (what, found, (low, high)) in [
        ("mean", mean, published.mean),
        ("last", last, published.last),
        ("marks", marks, published.marks),
        ("pauses", pauses, published.pauses),
    ] {
        assert!(
            (low..=high).contains(&found),
            "{config}: {what} {found} in {low}..={high}"
        );
    }
}

#[test]
fn w1_dcqcn() {
    let published = Spread {
        mean: (13_785.0, 14_333.0),
        last: (14_985.0, 16_299.0),
        marks: (15_900.0, 17_600.0),
        pauses: (0.0, 0.0),
    };
    falls_within("w1_dcqcn.conf", &published);
}

#[test]
fn w1_dcqcn_4_mib() {
    let published = Spread {
        mean: (13_586.0, 14_340.0),
        last: (14_582.0, 15_999.0),
        marks: (9_700.0, 11_000.0),
        pauses: (65.0, 78.0),
    };
    falls_within("w1_dcqcn_b4.conf", &published);
}

/// Median, 99th percentile and longest completion time, in microseconds, within a share of the published ones.
fn near(results: &Results, published: [f64; 3], tolerance: f64) {
    let times: Vec<f64> = times(results)
        .iter()
        .map(|&nanos| nanos as f64 / 1e3)
        .collect();
    for (share, published) in [0.5, 0.99, 1.0].into_iter().zip(published) {
        let found = quantile(&times, share);
        let off = (found - published).abs() / published;
        println!(
            "{share}: {found:.1} us, published {published} us, {:.2} % off",
            off * 100.0
        );
        assert!(
            off <= tolerance,
            "{share}: {found} us, published {published} us"
        );
    }
}

#[test]
fn w2_dcqcn() {
    let results = simulate(&plan("w2_dcqcn.conf"));
    near(&results, [2_861.3, 6_113.4, 6_438.7], 0.05);
    assert_eq!((pauses(&results), results.lossless_drops), (0, 0));
}

#[test]
fn w2_dcqcn_2_mib() {
    let results = simulate(&plan("w2_dcqcn_b2.conf"));
    near(&results, [2_530.1, 5_487.2, 5_616.0], 0.05);
}

/// 19,547 flows of the Hadoop distribution at 30 % load over 320 hosts. The flow file is large, so it lies beside the
/// repository or nowhere.
#[test]
fn w3a_dcqcn() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
    let (workloads, published) = (shared.join("workloads"), shared.join("results-hpcc"));
    if !workloads.join("w3a_flow.txt").exists() {
        println!("SKIPPED w3a_dcqcn: {} is not there", workloads.display());
        return;
    }
    let folder = tempfile::tempdir().expect("a folder for the config");
    let text =
        std::fs::read_to_string(published.join("w3a_dcqcn.conf")).expect("beside its results");
    let config = folder.path().join("w3a_dcqcn.conf");
    std::fs::write(&config, text).expect("the folder takes it");
    for name in ["w3_topo.txt", "w3a_flow.txt"] {
        std::fs::copy(workloads.join(name), folder.path().join(name)).expect("the folder takes it");
    }
    let plan = load_config(&config)
        .unwrap_or_else(|error| panic!("{error}"))
        .plan;
    let results = simulate(&plan);
    let mut slowdowns: Vec<f64> = results
        .flows
        .iter()
        .filter_map(|flow| flow.slowdown())
        .collect();
    slowdowns.sort_by(f64::total_cmp);
    assert_eq!(slowdowns.len(), 19_547);
    let times = times(&results);
    let mean = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e3;
    let found = [
        mean,
        quantile(&slowdowns, 0.5),
        quantile(&slowdowns, 0.95),
        quantile(&slowdowns, 0.99),
    ];
    let published = [38.24, 1.004, 3.67, 6.38];
    println!("mean and slowdown at 50, 95, 99 %: {found:.3?}, published {published:?}");
    for (found, published) in found.into_iter().zip(published) {
        assert!(
            (found - published).abs() <= 0.05 * published,
            "{found}, published {published}"
        );
    }
    assert_eq!((pauses(&results), results.lossless_drops), (0, 0));
}
