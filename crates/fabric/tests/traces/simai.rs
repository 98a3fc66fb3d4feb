//! Workloads of SimAI and ASTRA-sim.

use crate::{alone, go, near, plan_beside, plan_of, real, refused, scenario, seconds, star};
use softfabric_fabric::plan::{Activity, Plan};
use softfabric_units::Span;

const HEADER: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0";

fn plan(layers: &[&str], settings: &str) -> Result<Plan, String> {
    with_header(HEADER, layers, settings)
}

fn with_header(header: &str, layers: &[&str], settings: &str) -> Result<Plan, String> {
    let text = format!("{header}\n{}\n{}\n", layers.len(), layers.join("\n"));
    plan_of(8, "work.txt", text.as_bytes(), settings)
}

/// Who sends to whom, all together.
fn pairs(plan: &Plan) -> Vec<(u32, u32)> {
    let job = &plan.jobs[0];
    let mut pairs: Vec<(u32, u32)> = job
        .channels
        .iter()
        .map(|channel| (channel.from, channel.to))
        .collect();
    pairs.sort_unstable();
    pairs
}

/// The spans that a rank computes, in order.
fn computed(plan: &Plan, rank: u32) -> Vec<u64> {
    (plan.jobs[0].tasks.iter())
        .filter(|task| task.rank == rank)
        .filter_map(|task| match task.activity {
            Activity::Compute(span) => Some(span.as_picos() / 1000),
            _ => None,
        })
        .collect()
}

#[test]
fn passes_come_in_order() {
    let layers = [
        "a -1 100 NONE 0 10 NONE 0 1 NONE 0 7",
        "b -1 200 NONE 0 20 NONE 0 2 NONE 0 7",
    ];
    let twice = plan(&layers, "iterations = 2").unwrap();
    let pass = [100, 200, 20, 2, 10, 1];
    assert_eq!(computed(&twice, 3), [pass, pass].concat());
    assert_eq!(seconds(&go(&twice)), 2.0 * 333e-9);
    let names: Vec<&str> = twice.jobs[0]
        .phases
        .iter()
        .map(|phase| phase.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["forward 1", "backward 1", "forward 2", "backward 2"]
    );
    // The first layer is computed forward again before the second one's way back.
    let header = HEADER.replace(
        "checkpoints: 0 checkpoint_initiates: 0",
        "checkpoints: 1 0 checkpoint_initiates: 1 1",
    );
    let again = with_header(&header, &layers, "").unwrap();
    assert_eq!(computed(&again, 3), [100, 200, 100, 20, 2, 10, 1]);
}

/// Gradients of weights are summed in the background: the way back goes on, and the next pass waits for them where it needs
/// them.
#[test]
fn weights_are_summed_in_the_background() {
    let layers = [
        "a -1 1 NONE 0 300000 NONE 0 1 NONE 0 0",
        "b -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 1048576 0",
    ];
    let header = HEADER.replace("NPU_group: 4", "NPU_group: 1");
    let sum = alone(8, "kind = \"all_reduce\"\nbytes = \"1MiB\"");
    assert!(sum < 300e-6);
    let once = seconds(&go(&with_header(&header, &layers, "").unwrap()));
    near(once, 300e-6 + 5e-9, 1e-9);
    // With a shorter first layer, the second pass waits before its second layer.
    let short = [layers[0].replace("300000", "1"), layers[1].to_owned()];
    let short = [short[0].as_str(), &short[1]];
    let twice = seconds(&go(&with_header(&header, &short, "iterations = 2").unwrap()));
    near(twice, 2.0 * sum + 7e-9, 0.002);
}

#[test]
fn groups_are_those_of_their_suffix() {
    let header = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8";
    let of = |collective: &str| {
        let weights = format!("a -1 1 NONE 0 1 NONE 0 1 {collective} 4096 1");
        pairs(&with_header(header, &[&weights], "").unwrap())
    };
    let ring = |members: &[u32]| -> Vec<(u32, u32)> {
        (0..members.len())
            .map(|at| (members[at], members[(at + 1) % members.len()]))
            .collect()
    };
    let rings = |groups: &[&[u32]]| {
        let mut pairs: Vec<(u32, u32)> = groups.iter().flat_map(|group| ring(group)).collect();
        pairs.sort_unstable();
        pairs
    };
    assert_eq!(of("ALLREDUCE"), rings(&[&[0, 2, 4, 6], &[1, 3, 5, 7]]));
    assert_eq!(
        of("ALLGATHER_EP"),
        rings(&[&[0, 2], &[1, 3], &[4, 6], &[5, 7]])
    );
    assert_eq!(
        of("REDUCESCATTER_DP_EP"),
        rings(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]])
    );
    let forward = "a -1 1 ALLREDUCE 4096 1 NONE 0 1 NONE 0 1";
    let tensor = pairs(&with_header(header, &[forward], "").unwrap());
    assert_eq!(tensor, rings(&[&[0, 1], &[2, 3], &[4, 5], &[6, 7]]));
    // Stages are apart.
    let stages = header.replace("pp: 1", "pp: 2");
    let weights = "a -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4096 1";
    let data = pairs(&with_header(&stages, &[weights], "").unwrap());
    assert_eq!(data, rings(&[&[0, 2], &[1, 3], &[4, 6], &[5, 7]]));
}

#[test]
fn what_is_no_workload_is_refused_where_it_stands() {
    let good = "a -1 1 ALLREDUCE 4096 1 NONE 0 1 NONE 0 1";
    let header = |from: &str, to: &str| with_header(&HEADER.replace(from, to), &[good], "");
    refused(
        header("_IN_BCKWD", ""),
        &["work.txt:1", "the parallelism", "FWD_IN_BCKWD"],
    );
    refused(
        header("ep: 1", "tp: 1"),
        &["work.txt:1", "`tp:`", "all_gpus"],
    );
    refused(
        header("all_gpus: 8", ""),
        &["work.txt:1", "all_gpus is missing"],
    );
    refused(
        header("all_gpus: 8", "all_gpus: 10"),
        &["all_gpus is 10", "a multiple of 4"],
    );
    refused(header("ep: 1", "ep: 3"), &["ep is 3", "2 replicas"]);
    refused(
        header("checkpoint_initiates: 0", "checkpoint_initiates: 1 0"),
        &["without a checkpoint"],
    );
    let layer = |from: &str, to: &str| plan(&[&good.replace(from, to)], "");
    refused(
        layer("ALLREDUCE", "SCATTER"),
        &["work.txt:3", "`SCATTER`", "ALLTOALL", "_DP_EP"],
    );
    refused(
        layer("4096", "-1"),
        &["work.txt:3", "the bytes forward", "`-1`"],
    );
    refused(layer(" 1 NONE 0 1 NONE", " 1 NONE"), &["work.txt"]);
    refused(
        layer("0 1 NONE 0 1", "0 1 NONE 0 1 1"),
        &["work.txt:3", "end of the file"],
    );
}

#[test]
fn larger_workloads_are_cut_on_request_only() {
    let layers = [
        "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1",
        "b -1 2 NONE 0 1 NONE 0 1 NONE 0 1",
    ];
    let large = HEADER
        .replace("all_gpus: 8", "all_gpus: 64")
        .replace("pp: 1", "pp: 2");
    refused(
        with_header(&large, &layers, ""),
        &["job[0].trace", "64 ranks on 8", "fewer_ranks = true"],
    );
    let fewer = with_header(&large, &layers, "fewer_ranks = true").unwrap();
    assert_eq!(fewer.jobs[0].ranks.len(), 8);
    let odd = large.replace("ep: 1", "ep: 4");
    refused(
        with_header(&odd, &layers, "fewer_ranks = true"),
        &["to be 8", "a multiple of 16"],
    );
    let last = plan(&layers, "first_layer = 1\nlayers = 1").unwrap();
    assert_eq!(computed(&last, 0), [2, 1, 1]);
    refused(
        plan(&layers, "layers = 3"),
        &["the number of layers is 2", "3 from layer 0"],
    );
    // A smaller one takes the first ranks.
    let small = HEADER.replace("all_gpus: 8", "all_gpus: 4");
    assert_eq!(
        with_header(&small, &layers, "").unwrap().jobs[0]
            .ranks
            .len(),
        4
    );
}

#[test]
fn the_scenario_recomputes_and_takes_its_collectives() {
    let (plan, results) = scenario("trace_simai");
    assert_eq!(plan.jobs[0].ranks.len(), 16);
    // Forward, forward again, gradients; and updates of 1 µs after each collective: forward 2, again 1, back 2, weights 2.
    let computing =
        Span::micros(100 + 200 + 100 + 50 + 50 + 100 + 100) + Span::micros(2 + 1 + 2 + 2);
    for rank in &results.jobs[0].ranks {
        assert_eq!(rank.computing, computing * 2);
    }
}

/// Two layers, each with an all-reduce forward: computations, collectives and updates follow each other.
#[test]
fn a_real_micro_workload_is_the_sum_of_its_parts() {
    let Some(folder) = real("simai") else {
        return;
    };
    let text = star(8, "trace = \"microAllReduce.txt\"");
    let results = go(&plan_beside(&folder, &text).unwrap());
    let all_reduce = |bytes: u64| alone(8, &format!("kind = \"all_reduce\"\nbytes = \"{bytes}B\""));
    let expected = 2.0 * 556e-6 + all_reduce(16_777_216) + all_reduce(67_108_864) + 2e-9 + 4e-9;
    near(seconds(&results), expected, 1e-6);
}

/// Some layers of a real workload of 9,216 ranks and 1,789 layers, on 32.
#[test]
fn a_part_of_a_real_training_runs() {
    let Some(folder) = real("simai") else {
        return;
    };
    let job =
        "trace = \"workload_analytical.txt\"\nfewer_ranks = true\nfirst_layer = 6\nlayers = 3";
    let text = star(32, job).replace(
        "kind = \"star\"\nhosts = 32",
        "kind = \"rail_optimised\"\nservers = 4\nrails = 8",
    );
    let plan = plan_beside(&folder, &text).unwrap();
    assert_eq!(plan.jobs[0].ranks.len(), 32);
    let computing = 622_731 + 2 * 1_750_840 + 1 + 4 * 875_420 + 15_091_072;
    let results = go(&plan);
    // An update of 100 ns after each collective with bytes: forward three, backward one.
    assert_eq!(
        results.jobs[0].ranks[0].computing,
        Span::nanos(computing + 400)
    );
    // Two ranks of a server share a layer: what they exchange goes over their link of 450 GB/s. All-reduce carries the bytes
    // once each way, all-gather and reduce-scatter half of them.
    let bytes = 50_331_648.0 * (1.0 + 0.5 + 0.5 + 0.5);
    near(
        seconds(&results),
        (computing + 400) as f64 * 1e-9 + bytes / 450e9,
        0.001,
    );
    refused(
        plan_beside(&folder, &star(32, "trace = \"workload_analytical.txt\"")),
        &["9216 ranks on 32", "fewer_ranks"],
    );
}
