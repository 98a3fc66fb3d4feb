use std::path::Path;

use super::*;
use crate::plan::{NodeId, Trigger};
use crate::scenario::Scenario;

const MATRIX: &str = "Nodes 16\nConnections 3\nTriggers 2\n# a comment\n0->13 id 1 start 5 size 2000000 send_done_trigger 7\n\
                      1->13 id 2 start 0 size 2000000 recv_done_trigger 7 prio 2\n13->0 id 3 trigger 7 size 1 \
                      recv_done_trigger 9\ntrigger id 7 barrier count 2\ntrigger id 9 multishot\n";

const TOPOLOGY: &str = "# two tiers\nNodes 32\nTiers 2\nPodsize 32\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\n\
                        Radix_Up 2\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 0\nOversubscribed 4\n\nTier 1\n\
                        Downlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 500\nSwitch_Latency_ns 300\n";

fn write(folder: &Path, matrix: &str, topology: Option<&str>) -> Result<HtsimRun, ImportError> {
    let path = folder.join("a.cm");
    std::fs::write(&path, matrix).unwrap();
    let topology = topology.map(|text| {
        let path = folder.join("a.topo");
        std::fs::write(&path, text).unwrap();
        path
    });
    super::load(&path, topology.as_deref(), HtsimOptions::default())
}

fn load(matrix: &str, topology: Option<&str>) -> Result<HtsimRun, ImportError> {
    write(tempfile::tempdir().unwrap().path(), matrix, topology)
}

fn error(matrix: &str, topology: Option<&str>) -> String {
    let mut error = load(matrix, topology).unwrap_err();
    error.file = error.file.file_name().unwrap().into();
    error.to_string()
}

#[test]
fn a_matrix_on_the_default_tree() {
    let run = load(MATRIX, None).unwrap();
    let plan = &run.plan;
    assert_eq!(plan.network.nodes.len(), 16 + 8 + 8 + 4);
    assert_eq!(plan.network.links.len(), 3 * 16);
    assert_eq!(plan.flows[0].start, Start::At(Time::from_picos(5)));
    assert_eq!(plan.flows[1].on_received, Some(TriggerId(0)));
    assert_eq!(plan.flows[2].start, Start::After(TriggerId(0), Span::ZERO));
    let barrier = Trigger {
        count: 2,
        repeat: false,
    };
    let multishot = Trigger {
        count: 1,
        repeat: true,
    };
    assert_eq!(plan.triggers, [barrier, multishot]);
    assert_eq!(
        run.notes,
        [
            "prio has no effect: it is one of pHost's and others, not a traffic class",
            "no topology was given: a fat-tree of three tiers, 100Gb/s and 1us a link",
        ]
    );
    assert_eq!(plan.check(), []);
    let again = Scenario::from_plan(plan).unwrap().to_toml();
    let again = Scenario::from_toml(&again, "again")
        .unwrap()
        .plan()
        .unwrap();
    assert_eq!(again, *plan);
}

#[test]
fn starts_in_microseconds() {
    let options = HtsimOptions {
        start: StartUnit::Microseconds,
        ..HtsimOptions::default()
    };
    let matrix = read_matrix(Path::new("a.cm"), MATRIX, options.start).unwrap();
    assert_eq!(matrix.connections[0].start, Time::from_nanos(5_000));
}

#[test]
fn a_leaf_spine() {
    let plan = load(MATRIX, Some(TOPOLOGY)).unwrap().plan;
    let switches = plan.network.switches().count();
    assert_eq!((plan.network.hosts().count(), switches), (32, 4 + 2));
    assert_eq!(plan.network.links.len(), 32 + 8);
    assert_eq!(plan.network.links[32].delay, Span::nanos(500));
    assert_eq!(plan.switch_profiles[1].latency, Span::nanos(300));
    assert_eq!(plan.network.nodes[36].name, "agg0");
    assert_eq!(plan.check(), []);
    let again = Scenario::from_plan(&plan).unwrap().to_toml();
    assert_eq!(
        Scenario::from_toml(&again, "again")
            .unwrap()
            .plan()
            .unwrap(),
        plan
    );
}

#[test]
fn failures_take_links_away() {
    let matrix = format!("{MATRIX}Failures 1\nfailure switch_type AGG switch_id 5 link_id 1\n");
    let network = load(&matrix, None).unwrap().plan.network;
    assert_eq!(network.links.len(), 3 * 16 - 1);
    // Aggregation switch 5 is the second of its pod: its second uplink goes to core 1 + 2 · 1.
    let lost = (NodeId(16 + 8 + 5), NodeId(16 + 16 + 3));
    assert!(
        !network
            .links
            .iter()
            .any(|link| (link.a.node, link.b.node) == lost)
    );
    let kept = (NodeId(16 + 8 + 5), NodeId(16 + 16 + 1));
    assert!(
        network
            .links
            .iter()
            .any(|link| (link.a.node, link.b.node) == kept)
    );
}

#[test]
fn what_is_wrong_names_its_line() {
    let cases = [
        (
            error(&MATRIX.replace("0->13", "0->16"), None),
            "a.cm:5: the receiver is `16`, but it must be a host from 0 to 15 (`Nodes` comes first)",
        ),
        (
            error(&MATRIX.replace("start 5", "begin 5"), None),
            "a.cm:5: a word of a connection is `begin`, but it must be id, start, size, trigger, send_done_trigger, \
             recv_done_trigger or prio",
        ),
        (
            error(&MATRIX.replace("id 2 start 0", "id 2"), None),
            "a.cm:6: what starts a connection is neither, but it must be either `start` or `trigger`",
        ),
        (
            error(&MATRIX.replace("id 3 trigger 7", "id 3 trigger 8"), None),
            "a.cm:7: a trigger is 8, which no line describes, but it must be the id of a `trigger` line",
        ),
        (
            error(&MATRIX.replace("size 1 ", "size 0 "), None),
            "a.cm:7: size is 0B, but it must be 1 byte or more",
        ),
        (
            error(&MATRIX.replace("Triggers 2", "Triggers 3"), None),
            "a.cm:3: Triggers is 3, where the file has 2, but it must be their number",
        ),
        (
            error(&MATRIX.replace("Nodes 16", "Nodes 17"), None),
            "a.cm: Nodes is 17 nodes, but it must be k³/4 nodes for an even k (16, 54, 128 … 1024, 8192) (name a .topo file \
             with as many nodes or more)",
        ),
        (
            error(&MATRIX.replace("Nodes 16", "Nodes 64"), Some(TOPOLOGY)),
            "a.cm: Nodes is 64 nodes, where the topology has 32, but it must be no more nodes than the topology",
        ),
        (
            error(
                MATRIX,
                Some(&TOPOLOGY.replace("Radix_Up 2", "Radix_Down_ 2")),
            ),
            "a.topo:9: a line is `Radix_Down_ 2`, but it must be Nodes, Tiers, Podsize; after `Tier n`:",
        ),
        (
            error(MATRIX, Some(&TOPOLOGY.replace("Radix_Up 2", "Radix_Up 4"))),
            "a.topo: Oversubscribed of tier 0 is 4, with 8 links down and 4 up, but it must be the links down over those up",
        ),
        (
            error(MATRIX, Some(&TOPOLOGY.replace("Podsize 32", "Podsize 24"))),
            "a.topo: Podsize is 24, with 32 nodes, but it must be a divisor of `Nodes`",
        ),
        (
            error(
                MATRIX,
                Some(&TOPOLOGY.replace("Radix_Down 4", "Radix_Down 3")),
            ),
            "a.topo: Radix_Down of tier 1 is 3, for the 8 uplinks of a pod's first tier",
        ),
        (
            error(
                MATRIX,
                Some(&TOPOLOGY.replace("Downlink_Latency_ns 500", "")),
            ),
            "a.topo: Downlink_Latency_ns of tier 1 is missing or 0, but it must be a number above zero",
        ),
        (
            error("hello\n", None),
            "a.cm:1: the first word of a line is `hello`, but it must be Nodes, Connections",
        ),
    ];
    for (found, expected) in cases {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}
