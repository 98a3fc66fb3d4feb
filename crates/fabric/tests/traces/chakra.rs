//! Execution traces of Chakra, whose bytes are put together here by the rules of protobuf.

use crate::{ACKNOWLEDGEMENT, AROUND, alone, crossing, go, near, plan_beside, refused};
use crate::{scenario, seconds, star, workspace};
use softfabric_fabric::plan::Plan;
use softfabric_units::Span;

fn varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// A field with a varint.
fn number(field: u64, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(field << 3, &mut bytes);
    varint(value, &mut bytes);
    bytes
}

/// A field with a length: text, bytes, messages, packed numbers.
fn block(field: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(field << 3 | 2, &mut bytes);
    varint(content.len() as u64, &mut bytes);
    bytes.extend(content);
    bytes
}

/// An attribute: its name, and its value in the field of its type.
fn attribute(name: &str, value: &[u8]) -> Vec<u8> {
    block(10, &[block(1, name.as_bytes()), value.to_vec()].concat())
}

fn int64(name: &str, value: u64) -> Vec<u8> {
    attribute(name, &number(9, value))
}

fn int32(name: &str, value: u64) -> Vec<u8> {
    attribute(name, &number(7, value))
}

fn uint64(name: &str, value: u64) -> Vec<u8> {
    attribute(name, &number(13, value))
}

fn text(name: &str, value: &str) -> Vec<u8> {
    attribute(name, &block(29, value.as_bytes()))
}

fn flag(name: &str, value: bool) -> Vec<u8> {
    attribute(name, &number(27, value.into()))
}

fn flags(name: &str, values: &[u8]) -> Vec<u8> {
    attribute(name, &block(28, &block(1, values)))
}

const COMPUTE: u64 = 4;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;
const COLLECTIVE: u64 = 7;

/// A node: control dependencies packed, data dependencies one by one, as both are allowed.
fn node(id: u64, kind: u64, control: &[u64], data: &[u64], rest: &[Vec<u8>]) -> Vec<u8> {
    let mut packed = Vec::new();
    control.iter().for_each(|id| varint(*id, &mut packed));
    let mut bytes = [
        number(1, id),
        block(2, format!("n{id}").as_bytes()),
        number(3, kind),
    ]
    .concat();
    if !packed.is_empty() {
        bytes.extend(block(4, &packed));
    }
    data.iter().for_each(|id| bytes.extend(number(5, *id)));
    bytes.extend(rest.concat());
    bytes
}

fn compute(id: u64, micros: u64, after: &[u64]) -> Vec<u8> {
    node(
        id,
        COMPUTE,
        &[],
        after,
        &[number(7, micros), flag("is_cpu_op", false)],
    )
}

fn send(id: u64, to: u64, bytes: u64, after: &[u64]) -> Vec<u8> {
    let rest = [
        int32("comm_dst", to),
        int64("comm_size", bytes),
        int32("comm_tag", 5),
    ];
    node(id, SEND, &[], after, &rest)
}

fn receive(id: u64, from: u64, bytes: u64, after: &[u64]) -> Vec<u8> {
    let rest = [
        int32("comm_src", from),
        uint64("comm_size", bytes),
        int32("comm_tag", 5),
    ];
    node(id, RECEIVE, after, &[], &rest)
}

fn collective(id: u64, kind: u64, bytes: u64, after: &[u64], rest: Vec<u8>) -> Vec<u8> {
    let attributes = [int64("comm_type", kind), int64("comm_size", bytes), rest];
    node(id, COLLECTIVE, &[], after, &attributes)
}

/// A file: metadata and nodes, each with its length before it.
fn file(version: &str, nodes: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for message in [&block(1, version.as_bytes())].into_iter().chain(nodes) {
        varint(message.len() as u64, &mut bytes);
        bytes.extend(message);
    }
    bytes
}

/// The plan of a job in a star with one host for each file.
fn plan_of_files(files: &[Vec<u8>]) -> Result<Plan, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (rank, bytes) in files.iter().enumerate() {
        std::fs::write(folder.path().join(format!("t.{rank}.et")), bytes).expect("it takes files");
    }
    let hosts = files.len() as u32;
    plan_beside(folder.path(), &star(hosts, "trace = \"t\""))
}

fn plan(ranks: &[&[Vec<u8>]]) -> Result<Plan, String> {
    let files: Vec<Vec<u8>> = ranks.iter().map(|nodes| file("1.0.0", nodes)).collect();
    plan_of_files(&files)
}

fn takes(ranks: &[&[Vec<u8>]]) -> f64 {
    seconds(&go(&plan(ranks).unwrap_or_else(|error| panic!("{error}"))))
}

#[test]
fn nodes_wait_for_each_other_and_for_messages() {
    let first = [compute(10, 100, &[]), send(11, 1, 4096, &[10])];
    let second = [
        receive(0, 0, 4096, &[]),
        // What was recorded about the trace stands between.
        node(1, 1, &[0], &[], &[]),
        compute(2, 50, &[1]),
        compute(3, 30, &[1]),
    ];
    near(
        takes(&[&first, &second]),
        180e-6 + crossing(4096 + AROUND),
        0.001,
    );
    // On the processor, it is done at the same time.
    let beside = node(
        3,
        COMPUTE,
        &[1],
        &[],
        &[number(7, 30), flag("is_cpu_op", true)],
    );
    let second = [
        second[0].clone(),
        second[1].clone(),
        second[2].clone(),
        beside,
    ];
    near(
        takes(&[&first, &second]),
        150e-6 + crossing(4096 + AROUND),
        0.001,
    );
}

#[test]
fn collectives_meet_by_group_and_order() {
    let nothing = Vec::new;
    let sum = alone(4, "kind = \"all_reduce\"\nbytes = \"1MiB\"");
    let reduce = |id, after: &[u64], group| collective(id, 0, 1 << 20, after, group);
    // All ranks, twice, the second one after the first.
    let all = [reduce(0, &[], nothing()), reduce(1, &[0], nothing())];
    near(takes(&[&all, &all, &all, &all]), 2.0 * sum, 0.005);
    // Of an all-gather each brings its part; of all others the size is of the whole.
    let gather = alone(4, "kind = \"all_gather\"\nbytes = \"4MiB\"");
    let all = [collective(0, 2, 1 << 20, &[], nothing())];
    assert_eq!(takes(&[&all, &all, &all, &all]), gather);
    let scatter = alone(4, "kind = \"reduce_scatter\"\nbytes = \"1MiB\"");
    let all = [collective(0, 7, 1 << 20, &[], flags("involved_dim", &[1]))];
    assert_eq!(takes(&[&all, &all, &all, &all]), scatter);
    // Two groups side by side.
    let pair = alone(2, "kind = \"all_reduce\"\nbytes = \"1MiB\"");
    let of = |name: &str| [reduce(0, &[], text("pg_name", name))];
    assert_eq!(takes(&[&of("a"), &of("b"), &of("a"), &of("b")]), pair);
}

#[test]
fn what_does_not_meet_is_named() {
    let nothing = Vec::new;
    let gives = [send(4, 1, 10, &[])];
    refused(
        plan(&[&gives, &[]]),
        &["t.0.et", "node 4 `n4`", "tag 5 to rank 1", "takes 0 such"],
    );
    let takes = [receive(4, 0, 10, &[])];
    refused(
        plan(&[&[], &takes]),
        &["t.1.et", "node 4 `n4`", "tag 5 from rank 0", "sends 0 such"],
    );
    let short = [receive(4, 0, 9, &[])];
    refused(
        plan(&[&gives, &short]),
        &["t.1.et", "comm_size of node 4", "9B", "at least 10B"],
    );
    let all = [collective(7, 0, 64, &[], nothing())];
    refused(
        plan(&[&all, &[], &all]),
        &["t.0.et", "node 7", "rank 1 has 0", "take part"],
    );
    let other = [collective(8, 0, 128, &[], nothing())];
    refused(
        plan(&[&all, &other]),
        &[
            "t.1.et",
            "node 8",
            "AllReduce of 128B",
            "AllReduce of 64B",
            "rank 0",
        ],
    );
    // Two groups, in different orders at both ranks.
    let group = |name: &str| text("pg_name", name);
    let one = [
        collective(0, 0, 64, &[], group("a")),
        collective(1, 0, 64, &[0], group("b")),
    ];
    let two = [
        collective(0, 0, 64, &[], group("b")),
        collective(1, 0, 64, &[0], group("a")),
    ];
    refused(plan(&[&one, &two]), &["node 0 of rank 1", "circle"]);
    let own = [compute(0, 1, &[1]), compute(1, 1, &[0])];
    refused(
        plan(&[&own, &[]]),
        &["t.0.et", "node 0", "node 1 of rank 0", "circle"],
    );
}

#[test]
fn what_is_no_trace_is_refused() {
    let good = [compute(0, 1, &[]), compute(1, 1, &[0])];
    let whole = file("1.0.0", &good);
    let only = |bytes: &[u8]| plan_of_files(&[bytes.to_vec(), file("1.0.0", &[])]);
    only(&whole).unwrap();
    only(&file("0.0.4", &good)).unwrap();
    // Cut off in the middle of the last message, wherever that is.
    let last = whole.len() - good[1].len();
    for cut in last..whole.len() {
        refused(
            only(&whole[..cut]),
            &["t.0.et", "message 2", "bytes long", "cut off"],
        );
    }
    refused(only(b""), &["t.0.et", "empty", "GlobalMetadata first"]);
    refused(
        only(&file("2.0", &good)),
        &["t.0.et", "`2.0`", "0.0.4 or 1.x"],
    );
    refused(
        only(b"\x1f\x8b\x08 compressed"),
        &["t.0.et", "message 0", "31 bytes long", "compressed"],
    );
    // Without metadata, the first node is read as such, and is none.
    let mut headless = vec![good[0].len() as u8];
    headless.extend(&good[0]);
    refused(
        only(&headless),
        &["t.0.et", "message 0", "no GlobalMetadata"],
    );
    let single = |node: Vec<u8>| only(&file("1.0.0", &[node]));
    refused(
        single(node(3, 2, &[], &[], &[])),
        &["node 3", "MEM_LOAD_NODE", "COMM_COLL_NODE"],
    );
    refused(
        single(node(3, 99, &[], &[], &[])),
        &["type of node 3", "99"],
    );
    refused(
        single(compute(3, 1, &[2])),
        &["a dependency of node 3", "node 2"],
    );
    refused(
        only(&file("1.0.0", &[compute(3, 1, &[]), compute(3, 1, &[])])),
        &["node 3", "twice"],
    );
    refused(
        single(node(3, COMPUTE, &[], &[], &[int64("num_ops", 9)])),
        &["duration_micros of node 3"],
    );
    refused(
        single(send(3, 2, 9, &[])),
        &["comm_dst of node 3", "0 to 1"],
    );
    refused(
        single(node(3, SEND, &[], &[], &[int32("comm_dst", 1)])),
        &["comm_size of node 3", "missing"],
    );
    refused(
        single(collective(3, 1, 9, &[], Vec::new())),
        &["comm_type of node 3", "REDUCE", "BARRIER"],
    );
    refused(
        single(collective(3, 0, 9, &[], flags("involved_dim", &[1, 0, 1]))),
        &["involved_dim of node 3", "pg_name"],
    );
    // A rank between others is missing.
    let folder = tempfile::tempdir().unwrap();
    for rank in [0, 1, 3] {
        std::fs::write(folder.path().join(format!("t.{rank}.et")), &whole).unwrap();
    }
    let job = star(4, "trace = \"t.0.et\"");
    refused(
        plan_beside(folder.path(), &job),
        &["t.2.et", "missing", "t.3.et is there"],
    );
}

/// The files of the scenario: two stages of two ranks, and an all-reduce at the end.
fn pipeline(rank: u64) -> Vec<u8> {
    let gradients = |id, after| collective(id, 0, 1 << 20, after, text("pg_name", "all"));
    let nodes = match rank {
        0 | 1 => vec![
            compute(0, 100, &[]),
            send(1, rank + 2, 4096, &[0]),
            gradients(2, &[1]),
        ],
        _ => vec![
            receive(0, rank - 2, 4096, &[]),
            compute(1, 150, &[0]),
            gradients(2, &[1]),
        ],
    };
    file("0.0.4", &nodes)
}

#[test]
fn the_scenario_takes_its_stages_and_the_sum() {
    let folder = workspace().join("scenarios/traces");
    for rank in 0..4 {
        let path = folder.join(format!("pipeline.{rank}.et"));
        let bytes = std::fs::read(&path).unwrap_or_default();
        assert!(
            bytes == pipeline(rank),
            "{} is not what this test makes",
            path.display()
        );
    }
    let (plan, results) = scenario("trace_chakra");
    assert_eq!(plan.jobs[0].ranks.len(), 4);
    assert_eq!(results.jobs[0].ranks[2].computing, Span::micros(150));
    let sum = alone(4, "kind = \"all_reduce\"\nbytes = \"1MiB\"");
    let expected = 250e-6 + crossing(4096 + AROUND) + sum;
    // The scenario has DCQCN, which the sum by itself has not.
    near(seconds(&results), expected, 0.02);
    assert!(seconds(&results) > 250e-6 + crossing(ACKNOWLEDGEMENT));
}
