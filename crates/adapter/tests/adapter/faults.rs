//! Bad wires: everything arrives, once, whatever they do; what cannot arrive fails with the right status and in time.

use serde_json::{Value, json};

use crate::process::{Process, connect};

/// Which ends have the faults.
#[derive(Clone, Copy, PartialEq, Debug)]
enum At {
    Both,
    Requester,
    Responder,
}

fn settings(rules: &[String], seed: u64) -> Value {
    json!({ "faults": rules, "seed": seed })
}

/// Writes, sends and reads of many sizes, whose bytes are compared.
fn all_arrives(rules: &[String], seed: u64, at: At) {
    let context = format!("{rules:?}, seed {seed}, {at:?}");
    let [faulty, other_is] = [at != At::Responder, at != At::Requester];
    let mut ends = [faulty, other_is].map(|faulty| {
        let rules = if faulty { rules } else { &[] };
        let mut settings = settings(rules, seed);
        settings["shared_memory"] = json!(false);
        Process::start("lo", &settings)
    });
    let [one, other] = &mut ends;
    let [qp, peer] = connect(
        [&mut *one, &mut *other],
        &json!({"timeout": 12, "mtu": 1024}),
    );
    let (remote, key) = (other.about["base"].clone(), other.about["key"].clone());

    // 200 writes of 3000 bytes into ranges of their own.
    let length = 600_000;
    one.tell(&json!({"do": "fill", "offset": 0, "length": length, "seed": seed}));
    let sent = one.tell(&json!({"do": "hash", "offset": 0, "length": length}));
    let done = one.tell(
        &json!({"do": "bulk", "qp": qp, "operation": "write", "count": 200,
        "depth": 16, "length": 3000, "span": length, "remote": remote, "key": key}),
    );
    assert_eq!(done["completed"], 200, "{context}: {done}");
    let arrived = other.tell(&json!({"do": "hash", "offset": 0, "length": length}));
    assert_eq!(arrived, sent, "{context}");

    // 100 sends of 3000 bytes; the receiver sees each one once, in order.
    other
        .tell(&json!({"do": "receive", "qp": peer, "count": 100, "size": 3000, "offset": 2 << 20}));
    let done = one.tell(
        &json!({"do": "bulk", "qp": qp, "operation": "send", "count": 100,
        "depth": 16, "length": 3000, "span": length, "remote": 0, "key": 0}),
    );
    assert_eq!(done["completed"], 100, "{context}: {done}");
    let received = other.tell(&json!({"do": "wait", "count": 100}));
    let ids: Vec<_> = received["done"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids, (1_000_000..1_000_100).collect::<Vec<_>>(), "{context}");
    let sent = one.tell(&json!({"do": "hash", "offset": 0, "length": 300_000}));
    let arrived = other.tell(&json!({"do": "hash", "offset": 2 << 20, "length": 300_000}));
    assert_eq!(arrived, sent, "{context}");

    // 30 reads of 10,000 bytes.
    let from = remote.as_u64().unwrap() + (2 << 20);
    let done = one.tell(&json!({"do": "bulk", "qp": qp, "operation": "read", "count": 30,
        "depth": 4, "length": 10_000, "span": 300_000, "remote": from, "key": key, "offset": 4 << 20}));
    assert_eq!(done["completed"], 30, "{context}: {done}");
    let read = one.tell(&json!({"do": "hash", "offset": 4 << 20, "length": 300_000}));
    assert_eq!(read, arrived, "{context}");

    // 50 additions of 1 to a word: each one once.
    let word = remote.as_u64().unwrap() + (8 << 20);
    let done = one.tell(
        &json!({"do": "bulk", "qp": qp, "operation": "add", "add": 1, "count": 50,
        "depth": 4, "length": 8, "span": 8, "remote": word, "key": key, "offset": 6 << 20}),
    );
    assert_eq!(done["completed"], 50, "{context}: {done}");
    let sum = other.tell(&json!({"do": "word", "offset": 8 << 20}))["word"].clone();
    assert_eq!(sum, 50, "{context}");
    let met = if faulty { one } else { other };
    assert!(
        met.tell(&json!({"do": "counters"}))["faults"]
            .as_u64()
            .unwrap()
            > 0,
        "{context}"
    );
}

#[test]
fn everything_arrives_once_with_loss_and_reordering() {
    for share in [1, 5] {
        let rules = [format!("drop:p={share}%"), format!("reorder:p={share}%")];
        all_arrives(&rules, 100 + share, At::Both);
    }
    // A packet that is overtaken is lost to its connection: more than this on both sides, and eight attempts in a row
    // may well fail.
    for at in [At::Requester, At::Responder] {
        all_arrives(&["drop:p=20%".to_owned()], 120, at);
        all_arrives(&["reorder:p=20%".to_owned()], 121, at);
    }
}

#[test]
fn everything_arrives_once_with_duplicates_and_damage() {
    for (share, at) in [
        (1, At::Both),
        (5, At::Both),
        (20, At::Requester),
        (20, At::Responder),
    ] {
        let rules = [
            format!("duplicate:p={share}%"),
            format!("corrupt:p={share}%:at=receive"),
        ];
        all_arrives(&rules, 200 + share, at);
    }
}

#[test]
fn everything_arrives_once_with_all_faults_at_once() {
    let rules = [
        "drop",
        "duplicate",
        "reorder",
        "corrupt",
        "mark",
        "delay=300us",
    ];
    all_arrives(&rules.map(|fault| format!("{fault}:p=3%")), 300, At::Both);
}

#[test]
fn what_never_arrives_fails_when_the_retries_are_used_up() {
    let rules = ["drop:opcode=RC_RDMA_WRITE*".to_owned()];
    let mut one = Process::start("lo", &settings(&rules, 1));
    let mut other = Process::start("lo", &json!({"shared_memory": false}));
    // 4.096 µs · 2¹² = 16.8 ms, four times.
    let options = json!({"timeout": 12, "retries": 3});
    let [qp, _] = connect([&mut one, &mut other], &options);
    let (remote, key) = (other.about["base"].clone(), other.about["key"].clone());
    one.tell(
        &json!({"do": "post", "qp": qp, "operation": "write", "id": 1, "length": 8,
        "remote": remote, "key": key}),
    );
    let done = one.tell(&json!({"do": "wait", "count": 1}));
    assert_eq!(done["done"][0]["status"], "RETRY_EXC_ERR");
    let millis = done["millis"].as_u64().unwrap();
    assert!((60..2000).contains(&millis), "{millis} ms");
}

#[test]
fn a_killed_peer_is_noticed_and_the_survivor_goes_on() {
    for shared_memory in [true, false] {
        let settings = json!({ "shared_memory": shared_memory });
        let [mut one, mut victim, mut third] = [(); 3].map(|()| Process::start("lo", &settings));
        let options = json!({"timeout": 12, "retries": 3});
        let [qp, _] = connect([&mut one, &mut victim], &options);
        let [good, _] = connect([&mut one, &mut third], &options);
        victim.kill();
        let (remote, key) = (victim.about["base"].clone(), victim.about["key"].clone());
        one.tell(
            &json!({"do": "post", "qp": qp, "operation": "write", "id": 1, "length": 8,
            "remote": remote, "key": key}),
        );
        let done = one.tell(&json!({"do": "wait", "count": 1}));
        assert_eq!(done["done"][0]["status"], "RETRY_EXC_ERR", "{settings}");
        let millis = done["millis"].as_u64().unwrap();
        // Four times 16.8 ms or more after the post; the clock starts at the order to wait, a little later.
        assert!((30..2000).contains(&millis), "{millis} ms");
        let (remote, key) = (third.about["base"].clone(), third.about["key"].clone());
        one.tell(
            &json!({"do": "post", "qp": good, "operation": "write", "id": 2, "length": 8,
            "remote": remote, "key": key}),
        );
        let done = one.tell(&json!({"do": "wait", "count": 1}));
        assert_eq!(done["done"][0]["status"], "SUCCESS", "{settings}");
    }
}

#[test]
fn marks_are_answered_and_slow_down_who_sends() {
    let rules = ["mark:p=10%:opcode=RC_RDMA_WRITE*"];
    let settings = json!({"faults": rules, "congestion_control": "dcqcn", "line_rate": "1Gb/s"});
    let mut ends = [(); 2].map(|()| Process::start("lo", &settings));
    let [one, other] = &mut ends;
    let [qp, _] = connect([&mut *one, &mut *other], &json!({}));
    let (remote, key) = (other.about["base"].clone(), other.about["key"].clone());
    let bulk = json!({"do": "bulk", "qp": qp, "operation": "write", "count": 100,
        "depth": 4, "length": 20_000, "span": 100_000, "remote": remote, "key": key});
    let done = one.tell(&bulk);
    assert_eq!(done["completed"], 100, "{done}");
    let receiver = other.tell(&json!({"do": "counters"}));
    let sender = one.tell(&json!({"do": "counters"}));
    assert!(
        receiver["np_ecn_marked_roce_packets"].as_u64().unwrap() > 50,
        "{receiver}"
    );
    assert!(receiver["np_cnp_sent"].as_u64().unwrap() > 5, "{receiver}");
    assert!(sender["rp_cnp_handled"].as_u64().unwrap() > 5, "{sender}");
    // 2 MB take 16 ms at 1 Gb/s, and DCQCN cuts that at every notification.
    assert!(done["micros"].as_u64().unwrap() > 20_000, "{done}");
}

#[test]
fn recordings_show_what_was_sent_and_what_was_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.pcapng");
    let settings = json!({"faults": ["drop:packets=1"], "recording": path});
    let mut one = Process::start("lo", &settings);
    let mut other = Process::start("lo", &json!({"shared_memory": false}));
    let [qp, _] = connect([&mut one, &mut other], &json!({"timeout": 9}));
    let (remote, key) = (other.about["base"].clone(), other.about["key"].clone());
    one.tell(
        &json!({"do": "post", "qp": qp, "operation": "write", "id": 1, "length": 8,
        "remote": remote, "key": key}),
    );
    one.tell(&json!({"do": "wait", "count": 1}));
    drop(one);
    let bytes = std::fs::read(&path).unwrap();
    let comment = b"dropped by fault rule 1";
    assert!(bytes.windows(comment.len()).any(|window| window == comment));
    // Dropped, sent again, acknowledged: three packets, of which each has the Ethernet type and the port of RoCEv2.
    let ports = bytes
        .windows(4)
        .filter(|window| **window == [0x12, 0xb7, 0x12, 0xb7])
        .count();
    assert!(ports >= 3, "{ports}");
}
