use std::path::Path;

use softfabric_units::{Rate, Span, Time};

use super::*;
use crate::plan::{LoadBalancing, Start, Timing};

const TOPOLOGY: &str =
    "4 2 3\n2 3\n0 2 100Gbps 1000ns 0.000000\n1 3 100Gbps 1us 0\n2 3 400Gbps 2us 0.001\n";
const FLOWS: &str = "3\n0 1 3 100 10000000 2.000000000\n0 1 3 101 1 2.000000273\n1 0 3 100 5 2.5\n";
const CONFIG: &str = "TOPOLOGY_FILE topology.txt FLOW_FILE flows.txt\nFCT_OUTPUT_FILE out/a.fct\n\
    PACKET_PAYLOAD_SIZE 1000\nCC_MODE 1\nHAS_WIN 0\nL2_ACK_INTERVAL 1\nRP_TIMER 300\nALPHA_RESUME_INTERVAL 1\n\
    EWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\nRATE_AI 20Mb/s\nRATE_HAI 200Mb/s\nMIN_RATE 1000Mb/s\n\
    ACK_HIGH_PRIO 1\nBUFFER_SIZE 4\nSIMULATOR_STOP_TIME 4.00\nQLEN_MON_START 1 QLEN_MON_END 2\n\
    KMAX_MAP 2 100000000000 1600 400000000000 6400\nKMIN_MAP 2 100000000000 400 400000000000 1600\n\
    PMAX_MAP 2 100000000000 0.20 400000000000 0.20\n";

fn load(config: &str, topology: &str, flows: &str) -> Result<HpccRun, ImportError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.conf"), config).unwrap();
    std::fs::write(folder.path().join("topology.txt"), topology).unwrap();
    std::fs::write(folder.path().join("flows.txt"), flows).unwrap();
    load_config(&folder.path().join("a.conf"))
}

/// The error without the folder.
fn message(config: &str, topology: &str, flows: &str) -> String {
    let mut error = load(config, topology, flows).unwrap_err();
    error.file = error.file.file_name().unwrap().into();
    error.to_string()
}

#[test]
fn a_config_becomes_a_plan() {
    let run = load(CONFIG, TOPOLOGY, FLOWS).unwrap();
    let plan = &run.plan;
    assert_eq!((plan.name.as_str(), plan.timing), ("a", Timing::Hpcc));
    assert!(run.fct_output.ends_with("out/a.fct"));
    assert!(run.pfc_output.ends_with("pfc.txt"));
    assert_eq!(run.notes, Vec::<String>::new());
    assert_eq!(plan.network.nodes[3].name, "s3");
    assert_eq!(plan.network.links[2].packet_error_rate, 0.001);
    assert_eq!(plan.network.links[2].delay, Span::micros(2));
    let ports: Vec<_> = (plan.flows.iter())
        .map(|flow| (flow.udp_source_port, flow.udp_destination_port))
        .collect();
    assert_eq!(ports, [(10_000, 100), (10_001, 101), (10_000, 100)]);
    assert_eq!(
        plan.flows[1].start,
        Start::At(Time::from_nanos(2_000_000_272))
    );
    let switch = &plan.switch_profiles[0];
    assert_eq!(switch.buffer.total, softfabric_units::Bytes::mib(4));
    assert_eq!(switch.load_balancing, LoadBalancing::EcmpHpcc);
    let ecn = switch.classes[3].ecn[1];
    assert_eq!(ecn.rate, Some(Rate::gbps(400)));
    assert_eq!(
        (ecn.kmin.as_u64(), ecn.kmax.as_u64()),
        (1_600_000, 6_400_000)
    );
    assert_eq!(plan.stop.at, Time::from_nanos(4_000_000_000));
    let off = load(&format!("{CONFIG}ENABLE_QCN 0"), TOPOLOGY, FLOWS).unwrap();
    assert!(off.plan.switch_profiles[0].classes[3].ecn.is_empty());
    let down = load(&format!("{CONFIG}LINK_DOWN 5 3 2"), TOPOLOGY, FLOWS).unwrap();
    assert_eq!(down.plan.actions[0].at, Time::from_nanos(2_000_005_000));
}

#[test]
fn starts_are_rounded_as_ns3_rounds() {
    // From the published runs: the start column of the flow completion times.
    assert_eq!(seconds(2.0).as_nanos(), 2_000_000_000);
    assert_eq!(seconds(2.000000273).as_nanos(), 2_000_000_272);
    assert_eq!(seconds(0.5).as_nanos(), 500_000_000);
}

#[test]
fn what_is_wrong_names_its_line() {
    let cases = [
        (
            message(&CONFIG.replace("CC_MODE 1", "CC_MODE 3"), TOPOLOGY, FLOWS),
            "a.conf:4: CC_MODE is 3, HPCC, but it must be 1, DCQCN",
        ),
        (
            message(&CONFIG.replace("HAS_WIN 0", ""), TOPOLOGY, FLOWS),
            "a.conf: HAS_WIN is missing, so 1, but it must be 0",
        ),
        (
            message(&CONFIG.replace("RP_TIMER 300", ""), TOPOLOGY, FLOWS),
            "a.conf: RP_TIMER is 0s, but it must be",
        ),
        (
            message(
                &CONFIG.replace("RATE_AI 20Mb/s", "RATE_AI 20"),
                TOPOLOGY,
                FLOWS,
            ),
            "a.conf:11: RATE_AI is `20`, but it must be a rate such as 20Mb/s",
        ),
        (
            message(
                &CONFIG.replace("1600 400000000000 6400", "100 400000000000 6400"),
                TOPOLOGY,
                FLOWS,
            ),
            "a.conf:19: KMIN_MAP is 400 for 100Gb/s, where KMAX_MAP is 100, but it must be at most KMAX_MAP",
        ),
        (
            message(
                &CONFIG.replace("MAP 2 100000000000 1600", "MAP 2 50000000000 1600"),
                TOPOLOGY,
                FLOWS,
            ),
            "a.conf:18: KMAX_MAP is without an entry for 100Gb/s",
        ),
        (
            message(
                &CONFIG.replace("1600 400000000000 6400\n", "1600\n"),
                TOPOLOGY,
                FLOWS,
            ),
            "a.conf:18: KMAX_MAP is followed by the key KMIN_MAP, but it must be a value of KMAX_MAP (values are missing)",
        ),
        (
            message(CONFIG, "4 2 3\n2 3\n0 9 100Gbps 1us 0", FLOWS),
            "topology.txt:3: the second end of a link is `9`, but it must be a node id from 0 to 3",
        ),
        (
            message(CONFIG, &TOPOLOGY.replace("400Gbps", "400"), FLOWS),
            "topology.txt:5: the rate of a link is `400`, but it must be a rate such as 100Gbps",
        ),
        (
            message(CONFIG, "4 2 4\n2 3\n0 2 100Gbps 1us 0", FLOWS),
            "topology.txt:3: the first end of a link is missing at the end of the file",
        ),
        (
            message(CONFIG, TOPOLOGY, "1\n0 2 3 100 5 2.0"),
            "flows.txt:2: the destination of a flow is `2`, a switch, but it must be the id of a host",
        ),
        (
            message(CONFIG, TOPOLOGY, "1\n0 0 3 100 5 2.0"),
            "flows.txt:2: the destination of a flow is `0`, the source itself",
        ),
        (
            message(CONFIG, TOPOLOGY, "2\n0 1 3 100 5 2.0\n0 1 3 100 5 1.0"),
            "flows.txt:3: the start of a flow is 1s, after a flow that starts at 2s",
        ),
        (
            message(CONFIG, TOPOLOGY, "1\n0 1 3 100 5 2.0 7"),
            "flows.txt:2: what follows the last flow is `7`, but it must be the end of the file (does the count",
        ),
    ];
    for (found, expected) in cases {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn nothing_is_skipped_in_silence() {
    let config =
        format!("{CONFIG}ENABLE_TRACE 1 KMIN_MAPP 3\nQLEN_MON_FILE q QLEN_MON_END 2100000000");
    let run = load(&config, TOPOLOGY, FLOWS).unwrap();
    assert_eq!(
        run.notes,
        [
            "line 21: KMIN_MAPP is not a key of HPCC, so it has no effect (did you mean KMIN_MAP?)",
            "ENABLE_TRACE 1: HPCC's binary trace is not written",
            "QLEN_MON_FILE: HPCC's queue length file is not written",
        ]
    );
}

#[test]
fn distributions() {
    let file = Path::new("sizes.txt");
    let sizes = read_distribution(file, "0 0\n10000 15\n30000000 100\n").unwrap();
    assert_eq!(sizes.at(0.15), softfabric_units::Bytes::kb(10));
    let error = read_distribution(file, "0 0\n10 50\n5 100\n").unwrap_err();
    assert_eq!(error.line, Some(3));
    assert!(
        error
            .to_string()
            .contains("neither size nor percent may fall")
    );
}
