//! Link hops per second of processor time: `cargo bench -p softfabric-fabric --bench simulate`.
//!
//! A link hop is a packet that arrives at the end of a link; one element of criterion's throughput is one of them.
//! What is timed is the whole of [`run`]: check, build, simulate, collect. Processor time of the one thread is counted,
//! not the time of the clock on the wall, so that other programs on the machine disturb little; where the system does
//! not tell it, the wall clock is used.

#[path = "support/mod.rs"]
mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use softfabric_fabric::engine::{RunOptions, run};
use softfabric_fabric::plan::{Plan, Timing};
use softfabric_fabric::results::{Ending, Results};
use softfabric_fabric::workload::SizeDistribution;
use softfabric_units::Span;
use support::plans;

/// The least that criterion takes.
const SAMPLES: usize = 10;

fn main() {
    let mut criterion = Criterion::default()
        .with_measurement(ProcessorTime)
        .configure_from_args();
    simulate(&mut criterion);
    criterion.final_summary();
}

fn simulate(criterion: &mut Criterion<ProcessorTime>) {
    let short = Span::micros(200);
    let hadoop = SizeDistribution::hadoop();
    let web_search = SizeDistribution::web_search();
    for (name, timing) in [("exact", Timing::Exact), ("hpcc", Timing::Hpcc)] {
        measure(criterion, "w1", name, &plans::w1(timing));
        measure(criterion, "w2_tenth", name, &plans::w2_tenth(timing));
        let w3a = plans::w3_like(timing, short, 0.3, &hadoop);
        measure(criterion, "w3a_like", name, &w3a);
        let w3b = plans::w3_like(timing, short, 0.5, &web_search);
        measure(criterion, "w3b_like", name, &w3b);
    }
    measure(criterion, "w2", "exact", &plans::w2(Timing::Exact));
}

#[expect(clippy::disallowed_methods, reason = "this is a stopwatch")]
fn measure(criterion: &mut Criterion<ProcessorTime>, workload: &str, timing: &str, plan: &Plan) {
    let start = Instant::now();
    let link_hops = simulated(plan).work.link_hops;
    // Ten runs, or as many more as fit into two seconds.
    let ten_runs = start.elapsed().mul_f64(SAMPLES as f64 * 1.2);
    let mut group = criterion.benchmark_group(workload);
    group
        .sample_size(SAMPLES)
        .sampling_mode(SamplingMode::Flat)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(ten_runs.max(Duration::from_secs(2)))
        .throughput(Throughput::Elements(link_hops))
        .bench_with_input(
            BenchmarkId::from_parameter(timing),
            plan,
            |bencher, plan| {
                bencher.iter(|| black_box(simulated(plan)));
            },
        );
    group.finish();
}

fn simulated(plan: &Plan) -> Results {
    let results = run(plan, &mut RunOptions::default()).expect("the plan makes sense");
    assert_eq!(results.ending, Ending::Completed);
    results
}

/// Processor time of this thread.
struct ProcessorTime;

/// A reading of one clock or the other.
enum Reading {
    Processor(u64),
    Wall(Instant),
}

impl Measurement for ProcessorTime {
    type Intermediate = Reading;
    type Value = u64;

    #[expect(clippy::disallowed_methods, reason = "this is a stopwatch")]
    fn start(&self) -> Reading {
        processor_nanos().map_or_else(|| Reading::Wall(Instant::now()), Reading::Processor)
    }

    fn end(&self, start: Reading) -> u64 {
        match start {
            Reading::Processor(start) => processor_nanos().map_or(0, |now| now - start),
            Reading::Wall(start) => start.elapsed().as_nanos() as u64,
        }
    }

    fn add(&self, a: &u64, b: &u64) -> u64 {
        a + b
    }

    fn zero(&self) -> u64 {
        0
    }

    fn to_f64(&self, value: &u64) -> f64 {
        *value as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// The first field of `schedstat`: time on a processor, in nanoseconds.
fn processor_nanos() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
