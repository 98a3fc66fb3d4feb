//! Inputs end to end: every scenario of this repository, and real files of other programs where they are at hand.

use std::path::{Path, PathBuf};

use softfabric_fabric::headroom::CableLength;
use softfabric_fabric::import::{hpcc, htsim, sonic};
use softfabric_fabric::plan::{Plan, Severity};
use softfabric_fabric::scenario::Scenario;
use softfabric_units::Rate;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder of real files beside the workspace; says that it skips where there is none.
fn real(name: &str) -> Option<PathBuf> {
    let folder = workspace().join("../shared/reference").join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: {} is not there", folder.display());
    None
}

/// The plan makes sense, and its scenario file leads back to it.
fn holds(plan: &Plan, what: &str) {
    let errors: Vec<_> = (plan.check().into_iter())
        .filter(|finding| finding.severity == Severity::Error)
        .collect();
    assert_eq!(errors, [], "{what}");
    let text = Scenario::from_plan(plan)
        .unwrap_or_else(|problem| panic!("{what}: {problem}"))
        .to_toml();
    let again = Scenario::from_toml(&text, what).unwrap_or_else(|error| panic!("{error}"));
    let again = again.plan().unwrap_or_else(|error| panic!("{error}"));
    assert!(again == *plan, "{what} does not come back as it was");
}

#[test]
fn every_scenario_plans() {
    let mut count = 0;
    for entry in std::fs::read_dir(workspace().join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let scenario = Scenario::from_toml(&text, &path.display().to_string());
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        let plan = scenario.plan().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(plan.name.as_str()), path.file_stem().unwrap().to_str());
        assert!(!plan.flows.is_empty(), "{}", plan.name);
        let name = plan.name.clone();
        if plan.jobs.is_empty() {
            holds(&plan, &name);
        } else {
            // What a plan's job was made of cannot be told from it, but the scenario comes back.
            let again = Scenario::from_toml(&scenario.to_toml(), &path.display().to_string());
            let again = again.unwrap_or_else(|error| panic!("{error}")).plan();
            assert!(
                again.unwrap() == plan,
                "{name} does not come back as it was"
            );
        }
        count += 1;
    }
    assert!(count > 0, "there are scenarios");
}

#[test]
fn hpcc_files_of_this_repository() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hpcc");
    let run = hpcc::load_config(&folder.join("w1_dcqcn.conf")).unwrap();
    assert_eq!(run.plan.flows.len(), 16);
    assert!(run.fct_output.ends_with("tests/hpcc/out/w1_dcqcn.fct"));
    assert_eq!(run.notes, Vec::<String>::new());
    holds(&run.plan, "w1_dcqcn");
    let run = hpcc::load_config(&folder.join("w2_dcqcn_b2.conf")).unwrap();
    assert_eq!(run.plan.network.hosts().count(), 128);
    assert_eq!(run.plan.network.switches().count(), 80);
    holds(&run.plan, "w2_dcqcn_b2");
}

#[test]
fn real_hpcc_files() {
    let (Some(inputs), Some(configs)) = (real("workloads"), real("results-hpcc")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for source in [&inputs, &configs] {
        for entry in std::fs::read_dir(source).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    let mut count = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "conf")
        {
            let run = hpcc::load_config(&path).unwrap_or_else(|error| panic!("{error}"));
            holds(&run.plan, &path.display().to_string());
            count += 1;
        }
    }
    assert!(count >= 8, "{count}");
    for (name, mean) in [("WebSearch", 1_711_250.0), ("FbHdp", 120_420.75)] {
        let path = inputs.join(format!("{name}_distribution.txt"));
        let sizes = hpcc::read_distribution(&path, &std::fs::read_to_string(&path).unwrap());
        let found = sizes.unwrap().mean();
        assert!((found - mean).abs() < 0.01, "{name}: {found}");
    }
    let flows = |network: &str, name: &str| {
        let topology = inputs.join(network);
        let text = std::fs::read_to_string(&topology).unwrap();
        let network = hpcc::read_topology(&topology, &text, 0.0).unwrap();
        let path = inputs.join(name);
        hpcc::read_flows(&path, &std::fs::read_to_string(&path).unwrap(), &network)
    };
    assert_eq!(flows("w3_topo.txt", "w3a_flow.txt").unwrap().len(), 19_547);
    assert_eq!(flows("w3_topo.txt", "w3b_flow.txt").unwrap().len(), 2_061);
    assert_eq!(flows("w1_topo.txt", "w1s_flow.txt").unwrap().len(), 2);
}

/// The start column of a published run, which rounds as ns-3 rounds.
#[test]
fn real_starts_are_those_of_the_published_run() {
    let (Some(inputs), Some(results)) = (real("workloads"), real("results-hpcc")) else {
        return;
    };
    let topology = inputs.join("w3_topo.txt");
    let network = hpcc::read_topology(&topology, &std::fs::read_to_string(&topology).unwrap(), 0.0);
    let path = inputs.join("w3a_flow.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let flows = hpcc::read_flows(&path, &text, &network.unwrap()).unwrap();
    let mut starts: Vec<_> = flows.iter().map(|flow| flow.start.as_nanos()).collect();
    let published = std::fs::read_to_string(results.join("w3a_dcqcn.fct")).unwrap();
    let mut published: Vec<u64> = (published.lines())
        .map(|line| line.split_whitespace().nth(5).unwrap().parse().unwrap())
        .collect();
    starts.sort_unstable();
    published.sort_unstable();
    assert_eq!(starts, published);
}

#[test]
fn real_htsim_files() {
    let Some(folder) = real("workloads/htsim") else {
        return;
    };
    let options = htsim::HtsimOptions::default();
    for (name, flows) in [
        ("bidir.cm", 2),
        ("incast.cm", 15),
        ("alltoall_serial_16n.cm", 240),
        ("gen_random_incast_8192n_8c_16us_1Ms.cm", 8),
        ("../w2.cm", 128),
    ] {
        let run = htsim::load(&folder.join(name), None, options);
        let run = run.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(run.plan.flows.len(), flows, "{name}");
        if run.plan.network.nodes.len() < 1_000 {
            holds(&run.plan, name);
        }
    }
    // These two say less than they need.
    let error = htsim::load(&folder.join("a2a.cm"), None, options).unwrap_err();
    assert!(
        error.to_string().contains("which no line describes"),
        "{error}"
    );
    let error = htsim::load(&folder.join("../w1.cm"), None, options).unwrap_err();
    assert!(error.to_string().contains("name a .topo file"), "{error}");
    let tree = folder.join("fat_tree_128_1os.topo");
    let run = htsim::load(&folder.join("../w1.cm"), Some(&tree), options).unwrap();
    holds(&run.plan, "w1.cm");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "topo")
        {
            let text = std::fs::read_to_string(&path).unwrap();
            let topology = htsim::read_topology(&path, &text).unwrap_or_else(|e| panic!("{e}"));
            assert!([128, 1_024].contains(&topology.hosts()));
            count += 1;
        }
    }
    assert!(count >= 6, "{count}");
}

#[test]
fn real_sonic_files() {
    let Some(folder) = real("workloads/sonic") else {
        return;
    };
    let files = |headroom: Option<&Path>, buffers: Option<&Path>, qos: Option<&Path>, gigabits| {
        let files = sonic::SonicFiles {
            headroom,
            buffers,
            qos,
            port: None,
            speed: Rate::gbps(gigabits),
            cable: CableLength::metres(40),
        };
        let (plan, notes) = sonic::load_plan(&files, "switch", 4).unwrap_or_else(|e| panic!("{e}"));
        holds(&plan, "switch");
        (plan, notes)
    };
    let table = folder.join("pg_profile_lookup-sn2700.ini");
    let (plan, _) = files(Some(&table), None, None, 100);
    let headroom = plan.switch_profiles[0].classes[3].ingress.headroom;
    assert_eq!(headroom.map(|bytes| bytes.as_u64()), Some(38_912));
    let qos = folder.join("qos-arista7060x6.json");
    let (plan, notes) = files(None, None, Some(&qos), 100);
    let class = &plan.switch_profiles[0].classes[3];
    assert_eq!(
        (class.ecn[0].kmin.as_u64(), class.ecn[0].pmax),
        (131_072, 0.05)
    );
    assert_eq!(notes, Vec::<String>::new());
    let older = folder.join("qos-arista7050.json");
    let buffers = folder.join("buffers-dell6100.json");
    let (plan, notes) = files(None, Some(&buffers), Some(&older), 40);
    assert_eq!(
        plan.switch_profiles[0].buffer.total.as_u64(),
        10_875_072 + 4_194_112
    );
    assert_eq!(notes, Vec::<String>::new());
    let buffers = folder.join("buffers-mellanox2410.json");
    let (plan, notes) = files(Some(&table), Some(&buffers), Some(&older), 100);
    assert_eq!(plan.switch_profiles[0].buffer.total.as_u64(), 2 * 3_302_912);
    assert_eq!(
        notes,
        ["2 ingress pools are taken as one of 6451KiB: there is one shared memory here"]
    );
}
