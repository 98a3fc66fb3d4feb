//! Translations, what a comparison finds, and that it is the right size next to what others have measured.

use super::*;
use crate::scenario::Scenario;

const INCAST: &str = r#"
name = "small"
[topology]
kind = "star"
hosts = 6
[switch]
buffer = "4MiB"
alpha = "1/4"
load_balancing = "spray_random"
[host]
mtu = "4096B"
cnp_class = 6
[host.congestion_control]
kind = "dcqcn_nic"
defaults = "hpcc"
[[workload]]
kind = "incast"
bytes = "300KB"
"#;

fn request() -> Request {
    Request {
        technologies: TECHNOLOGIES.to_vec(),
        grid: Vec::new(),
        seeds: 2,
        thorough: true,
    }
}

fn compare(text: &str, request: &Request, threads: usize) -> Comparison {
    let prepared =
        Prepared::new(text, "small.toml", request).unwrap_or_else(|error| panic!("{error}"));
    prepared.run(threads, &AtomicBool::new(false), &|_| {})
}

fn of<'a>(comparison: &'a Comparison, technology: &str) -> &'a VariantFigures {
    let found = comparison
        .variants
        .iter()
        .find(|v| v.technology == technology);
    found.unwrap_or_else(|| panic!("{technology} is not there"))
}

#[test]
fn what_is_particular_stays_with_its_technology() {
    let scenario = Scenario::from_toml(INCAST, "small.toml").unwrap();
    let own = scenario.over(FabricKind::RoceV2).unwrap();
    assert_eq!(own.scenario, scenario);
    assert!(own.left_out.is_empty());
    let left = |kind| -> Vec<String> {
        let found = scenario.over(kind).unwrap().left_out;
        found.into_iter().map(|left| left.field).collect()
    };
    let mut infiniband = left(FabricKind::Infiniband);
    infiniband.sort_unstable();
    assert_eq!(
        infiniband,
        [
            "host.cnp_class",
            "host.congestion_control",
            "switch.alpha",
            "switch.buffer",
            "switch.load_balancing"
        ]
    );
    let mut tcp = left(FabricKind::Tcp);
    tcp.sort_unstable();
    assert_eq!(
        tcp,
        [
            "host.cnp_class",
            "host.congestion_control",
            "host.mtu",
            "switch.alpha"
        ]
    );
    let tcp = scenario.over(FabricKind::Tcp).unwrap().scenario;
    assert_eq!(
        tcp.switch.buffer, scenario.switch.buffer,
        "the machine is the same"
    );
    assert_eq!(
        (tcp.topology, tcp.workload),
        (scenario.topology, scenario.workload)
    );
}

#[test]
fn an_overlay_goes_over_its_own_technology_alone() {
    let text = format!(
        "{INCAST}\n[compare.tcp.host.tcp]\nmtu = \"1500B\"\n[compare.tcp.switch]\nlatency = \"2us\"\n"
    );
    let scenario = Scenario::from_toml(&text, "small.toml").unwrap();
    let tcp = scenario.over(FabricKind::Tcp).unwrap().scenario;
    assert_eq!(tcp.switch.latency, Some(Span::micros(2)));
    assert_eq!(
        tcp.host.tcp.unwrap().mtu,
        Some(softfabric_units::Bytes::new(1500))
    );
    assert_eq!(
        tcp.switch.buffer, scenario.switch.buffer,
        "fields beside it stay"
    );
    let roce = scenario.over(FabricKind::RoceV2).unwrap().scenario;
    assert_eq!(roce.switch.latency, None);
    let bare = Scenario::from_toml(INCAST, "small.toml").unwrap();
    assert_eq!(
        scenario.plan().unwrap(),
        bare.plan().unwrap(),
        "alone it counts for nothing"
    );
}

#[test]
fn what_is_wrong_in_an_overlay_is_shown_where_it_stands() {
    let wrong = |addition: &str| -> String {
        let text = format!("{INCAST}\n{addition}");
        let prepared = Prepared::new(&text, "small.toml", &request());
        prepared.map(|_| ()).unwrap_err().to_string()
    };
    let lines = INCAST.lines().count();
    let typo = wrong("[compare.tcp.host.tcp]\nmtuu = \"1500B\"\n");
    assert!(
        typo.contains(&format!("small.toml:{}:1", lines + 3)),
        "{typo}"
    );
    assert!(
        typo.contains("compare.tcp.host.tcp.mtuu") && typo.contains("did you mean `mtu`"),
        "{typo}"
    );
    // The schema takes it, a stack does not.
    let range = wrong("[compare.tcp.host.tcp]\nmtu = \"64KiB\"\n");
    assert!(
        range.contains(&format!("small.toml:{}:", lines + 3)),
        "{range}"
    );
    let kind = wrong("[compare.tcp.fabric]\nkind = \"rocev2\"\n");
    assert!(kind.contains("compare.tcp.fabric.kind"), "{kind}");
    let machine = wrong("[compare.tcp.topology]\nkind = \"star\"\n");
    assert!(
        machine.contains("compare.tcp.topology") && machine.contains("not a field"),
        "{machine}"
    );
}

#[test]
fn threads_change_nothing() {
    let one = compare(INCAST, &request(), 1);
    assert_eq!(one, compare(INCAST, &request(), 3));
    assert_eq!(one.variants.len(), 3);
    for variant in &one.variants {
        assert_eq!(variant.survived(), 2, "{}", variant.name);
        assert!(variant.spread(Measure::CompletionP99).is_some());
    }
}

#[test]
fn all_combinations_of_a_grid_run() {
    let grid = vec![
        (
            "host.mtu".to_owned(),
            vec!["1024B".to_owned(), "4096B".to_owned()],
        ),
        (
            "switch.alpha".to_owned(),
            vec!["1/8".to_owned(), "1".to_owned()],
        ),
    ];
    let request = Request {
        technologies: vec![FabricKind::RoceV2],
        grid,
        seeds: 1,
        thorough: false,
    };
    let comparison = compare(INCAST, &request, 2);
    let names: Vec<_> = comparison
        .variants
        .iter()
        .map(|v| v.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "RoCEv2 mtu=1024B alpha=1/8",
            "RoCEv2 mtu=1024B alpha=1",
            "RoCEv2 mtu=4096B alpha=1/8",
            "RoCEv2 mtu=4096B alpha=1"
        ]
    );
    let time = |at: usize| {
        comparison.variants[at]
            .spread(Measure::CompletionMedian)
            .unwrap()
            .median
    };
    assert!(time(0) > time(2), "small packets have more headers");
    let typo = Request {
        grid: vec![("host.mtuu".to_owned(), vec!["1024B".to_owned()])],
        ..request
    };
    let error = Prepared::new(INCAST, "small.toml", &typo)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("--set host.mtuu=1024B") && error.contains("did you mean `mtu`"),
        "{error}"
    );
}

/// A setting that changes nothing: figures are equal, so no sentence tells one variant from the other.
#[test]
fn nothing_is_read_from_what_does_not_differ() {
    let request = Request {
        technologies: vec![FabricKind::RoceV2],
        grid: vec![(
            "record.interval".to_owned(),
            vec!["10us".to_owned(), "20us".to_owned()],
        )],
        ..request()
    };
    let comparison = compare(INCAST, &request, 2);
    let ranked = ["time", "tail", "throughput", "processors", "small messages"];
    for sentence in &comparison.reading {
        assert!(!ranked.contains(&sentence.topic), "{sentence:?}");
    }
    // Over three technologies there is something to say, with the figures in it.
    let comparison = compare(INCAST, &self::request(), 2);
    let tail = comparison
        .reading
        .iter()
        .find(|sentence| sentence.topic == "tail");
    let tail = &tail.expect("TCP is slower").text;
    assert!(
        tail.contains("TCP/IP") && tail.contains("µs") && tail.contains('×'),
        "{tail}"
    );
}

#[test]
fn what_cannot_run_says_why_and_the_others_run() {
    let many = INCAST
        .replace("hosts = 6", "hosts = 300")
        .replace("4MiB", "256MiB")
        .replace("bytes = \"300KB\"", "bytes = \"1KB\"\nfan_in = 3");
    let comparison = compare(
        &many,
        &Request {
            thorough: false,
            ..request()
        },
        2,
    );
    let infiniband = of(&comparison, "InfiniBand");
    assert!(
        infiniband.refused[0].contains("more than 254 ports"),
        "{:?}",
        infiniband.refused
    );
    assert!(infiniband.runs.is_empty());
    assert_eq!(of(&comparison, "RoCEv2").survived(), 2);
    let said = &comparison.reading[0].text;
    assert!(said.starts_with("InfiniBand did not run"), "{said}");
}

#[test]
fn an_interrupt_keeps_what_is_done() {
    let prepared = Prepared::new(INCAST, "small.toml", &request()).unwrap();
    let interrupt = AtomicBool::new(false);
    let stop = |done: usize| {
        if done == 3 {
            interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let comparison = prepared.run(1, &interrupt, &stop);
    for variant in &comparison.variants {
        assert_eq!(variant.runs.len(), 1, "the first seed of each comes first");
        assert!(variant.without.is_empty() && variant.small_message_ns.is_none());
    }
}

#[test]
fn settings_are_missed_where_they_are_needed() {
    let text = INCAST
        .replace("hosts = 6", "hosts = 24")
        .replace("4MiB", "8MiB")
        .replace("300KB", "600KB");
    let comparison = compare(&text, &request(), 2);
    let roce = of(&comparison, "RoCEv2");
    let named = |name: &str| {
        roce.without
            .iter()
            .find(|found| found.family == name)
            .unwrap()
    };
    assert!(
        roce.runs
            .iter()
            .all(|run| run.value(Measure::LosslessDrops) == Some(0.0))
    );
    let pfc = named("PFC");
    assert!(pfc.needed && pfc.drops > 0.0, "{pfc:?}");
    assert_eq!(pfc.settings, 5);
    assert_eq!(named("ECN marking").settings, 3);
    assert_eq!(
        named("rate control").settings,
        21,
        "19 of DCQCN, and the interval and class of CNPs"
    );
    assert!(
        of(&comparison, "InfiniBand").without.is_empty(),
        "credits are no setting"
    );
}

const UPLINKS: &str = r#"
name = "uplinks"
[topology]
kind = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
rate = "25Gb/s"
delay = "500ns"
[host]
timeout = 8
[infiniband]
repair = "500us"
[fabric]
kind = "infiniband"
[[workload]]
kind = "permutation"
pattern = "shift"
distance = 2
bytes = "20MB"
[[event]]
kind = "link_down"
at = "2ms"
between = ["leaf0", "spine1"]
[stop]
at = "2s"
"#;

#[test]
fn a_lost_link_is_followed_before_during_and_after() {
    let comparison = compare(
        UPLINKS,
        &Request {
            seeds: 1,
            ..request()
        },
        2,
    );
    let infiniband = of(&comparison, "InfiniBand");
    let run = &infiniband.runs[0];
    assert!(run.survived, "{:?}", run.findings);
    let [found] = &run.aftermath[..] else {
        panic!("{:?}", run.aftermath)
    };
    assert_eq!(found.name, "Link down leaf0 – spine1");
    assert!(
        found.before_bps.unwrap() > found.after_bps.unwrap(),
        "{found:?}"
    );
    assert_eq!(run.repairs.len(), 1);
    assert_eq!(run.repairs[0].after_ns, 500_000.0);
    assert!(infiniband.calm[0].aftermath.is_empty() && infiniband.calm[0].survived);
    let with = infiniband.spread(Measure::CompletionP99).unwrap();
    let without = infiniband.calm_spread(Measure::CompletionP99).unwrap();
    assert!(with.median > without.median);
    let roce = of(&comparison, "RoCEv2");
    assert_eq!(
        roce.left_out,
        [("infiniband".to_owned(), "it is a setting of InfiniBand")]
    );
}

/// The first seed is no better than the others: each figure is a median, of the seeds that have one.
#[test]
fn what_an_event_did_is_the_median_of_the_seeds() {
    let comparison = compare(
        UPLINKS,
        &Request {
            technologies: vec![FabricKind::RoceV2],
            seeds: 3,
            thorough: false,
            ..request()
        },
        2,
    );
    let mut variant = of(&comparison, "RoCEv2").clone();
    let values = [(Some(9.0), 4.0), (Some(1.0), 6.0), (Some(2.0), 5.0)];
    for (run, (rate, outage)) in variant.runs.iter_mut().zip(values) {
        let found = &mut run.aftermath[0];
        (found.before_bps, found.outage_ns) = (rate, outage);
        (found.during_bps, found.after_bps) = (None, rate.filter(|rate| *rate > 1.5));
    }
    let [found] = &variant.aftermath()[..] else {
        panic!("one event")
    };
    assert_eq!((found.before_bps, found.outage_ns), (Some(2.0), 5.0));
    assert_eq!(found.during_bps, None);
    assert!(found.after_bps.is_some_and(|rate| rate > 1.5), "{found:?}");
}

/// Every leaf has a prefix for the other leaf and two hosts; every spine two prefixes. A subnet manager writes every LID.
#[test]
fn entries_of_tables_are_counted() {
    let comparison = compare(
        UPLINKS,
        &Request {
            seeds: 1,
            thorough: false,
            ..request()
        },
        2,
    );
    let roce = of(&comparison, "RoCEv2").routing.clone().unwrap();
    assert_eq!(
        (roce.switches, roce.entries, roce.next_hops),
        (4, 2 * 3 + 2 * 2, 2 * 4 + 2 * 2)
    );
    let infiniband = of(&comparison, "InfiniBand").routing.clone().unwrap();
    assert!(infiniband.by.contains("minhop"), "{}", infiniband.by);
    assert!(
        infiniband.entries >= 4 * 4,
        "each switch has each host: {infiniband:?}"
    );
}

/// Zhu et al. ("Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, figure 1) measured 2 KB between two hosts at
/// 40 Gb/s: 25.4 µs over TCP and 1.7 µs by RDMA, 15 times as long; and TCP at line rate took a fifth of 16 cores, RDMA under 3 %.
/// Guo et al. (SIGCOMM 2016, section 6.2) measured 6 % of 32 cores to send 40 Gb/s and 12 % to receive it: 1.2 core-seconds a
/// gigabyte; Cai et al. (SIGCOMM 2021) 42 Gb/s on a receiving core: 0.19 on that side.
#[test]
fn small_messages_and_processor_time_have_the_size_that_was_measured() {
    let text = r#"
        name = "pair"
        [topology]
        kind = "star"
        hosts = 2
        rate = "40Gb/s"
        delay = "50ns"
        [host.server]
        post_time = "100ns"
        complete_time = "100ns"
        [[job]]
        [[job.step]]
        kind = "shift"
        bytes = "50MB"
    "#;
    let comparison = compare(
        text,
        &Request {
            seeds: 1,
            ..request()
        },
        2,
    );
    let small = |name| {
        of(&comparison, name)
            .small_message_ns
            .unwrap_or_else(|| panic!("{name} has no small message"))
    };
    let (tcp, roce, infiniband) = (small("TCP/IP"), small("RoCEv2"), small("InfiniBand"));
    let ratio = tcp / roce;
    assert!(
        (5.0..60.0).contains(&ratio),
        "TCP {tcp} ns, RoCE {roce} ns: {ratio}"
    );
    assert!((10e3..60e3).contains(&tcp), "TCP {tcp} ns");
    assert!(
        infiniband <= roce && roce < 3e3,
        "RoCE {roce} ns, InfiniBand {infiniband} ns"
    );
    let time = |name| {
        of(&comparison, name)
            .spread(Measure::ProcessorTime)
            .unwrap()
            .median
    };
    let tcp = time("TCP/IP");
    assert!((0.19..1.2).contains(&tcp), "{tcp} core-seconds a gigabyte");
    // Requests of 512 KiB at 100 ns each, and as much for their completions.
    assert!(
        time("RoCEv2") > 0.0 && time("RoCEv2") < tcp / 100.0,
        "{}",
        time("RoCEv2")
    );
}

/// Incast: who loses the end of its answer over TCP waits for the retransmission timeout, 200 ms with Linux's defaults, where the
/// transfer itself takes less than a millisecond (Vasudevan et al., SIGCOMM 2009, section 2; Alizadeh et al., SIGCOMM 2010, 2.3.2).
/// A lossless fabric has no such tail.
#[test]
fn the_tail_under_incast_is_a_timeout_over_tcp() {
    let text = include_str!("../../../../scenarios/compare_incast.toml");
    let comparison = compare(
        text,
        &Request {
            seeds: 1,
            thorough: false,
            ..request()
        },
        2,
    );
    let tail = |name| {
        of(&comparison, name)
            .spread(Measure::CompletionP99)
            .unwrap()
            .median
    };
    let best_possible = 32.0 * 128e3 * 8.0 / 100.0;
    assert!(tail("TCP/IP") > 200e6, "{} ns", tail("TCP/IP"));
    for lossless in ["RoCEv2", "InfiniBand"] {
        let tail = tail(lossless);
        assert!(
            tail > best_possible && tail < 20.0 * best_possible,
            "{lossless}: {tail} ns"
        );
        assert_eq!(
            of(&comparison, lossless)
                .spread(Measure::Drops)
                .unwrap()
                .max,
            0.0
        );
    }
    assert!(
        of(&comparison, "TCP/IP")
            .spread(Measure::Timeouts)
            .unwrap()
            .median
            > 0.0
    );
}

/// Rails without spines and planes are subnets of their own, and run over every technology.
#[test]
fn fabrics_of_several_subnets_run_over_all() {
    for shape in ["rails = 2", "rails = 2\nplanes = 2"] {
        let text = format!(
            "[topology]\nkind = \"rail_optimised\"\nservers = 3\nrate = \"100Gb/s\"\n{shape}\n[[job]]\n[[job.step]]\nkind = \
             \"all_reduce\"\nbytes = \"1MiB\"\n"
        );
        let once = Request {
            seeds: 1,
            thorough: false,
            ..request()
        };
        let comparison = compare(&text, &once, 2);
        assert_eq!(comparison.variants.len(), TECHNOLOGIES.len());
        for variant in &comparison.variants {
            assert_eq!(
                variant.refused,
                Vec::<String>::new(),
                "{}",
                variant.technology
            );
            assert_eq!(variant.survived(), 1, "{} with {shape}", variant.technology);
        }
        // Each leaf has the three servers of its subnet, itself, and nothing of the others.
        let tables = of(&comparison, "InfiniBand").routing.clone().unwrap();
        assert_eq!(tables.entries, tables.switches * 4, "{tables:?}");
    }
}
