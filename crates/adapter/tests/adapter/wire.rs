//! Two processes, over UDP and over shared memory, on one host and between namespaces.

use serde_json::{Value, json};

use crate::namespace::Cable;
use crate::process::{Process, connect};

/// Two processes on the loopback interface.
fn pair(settings: &Value) -> [Process; 2] {
    [(); 2].map(|()| Process::start("lo", settings))
}

#[test]
fn one_sided_operations_complete_while_the_target_computes() {
    for shared_memory in [false, true] {
        let settings = json!({ "shared_memory": shared_memory });
        let [mut one, mut other] = pair(&settings);
        one_sided(&mut one, &mut other, &json!({}));
        let counters = one.tell(&json!({"do": "counters"}));
        // 200,000 bytes: by packets of 1024, or by packets of 64 KiB.
        let packets = counters["port_rcv_packets"].as_u64().unwrap();
        assert_eq!(packets > 98, !shared_memory, "{counters}");
    }
}

#[test]
fn a_forked_child_has_no_device_and_leaves_the_parents_alone() {
    for shared_memory in [false, true] {
        let settings = json!({ "shared_memory": shared_memory });
        let [mut one, mut other] = pair(&settings);
        one_sided(&mut one, &mut other, &json!({}));
        assert_eq!(one.tell(&json!({"do": "fork"}))["code"], 0);
        one_sided(&mut one, &mut other, &json!({}));
    }
}

#[test]
fn namespaces_talk_over_ipv4_and_ipv6() {
    let Some(cable) = Cable::lay("namespaces_talk_over_ipv4_and_ipv6") else {
        return;
    };
    for index in 0..3 {
        let nodes = [0, 1].map(|end| Process::start_in(&cable.names[end], "veth0", &json!({})));
        let [mut one, mut other] = nodes;
        one_sided(&mut one, &mut other, &json!({ "index": index }));
    }
}

/// A write, a read and an atomic operation, after which the bytes are compared.
fn one_sided(one: &mut Process, other: &mut Process, options: &Value) {
    let [qp, _] = connect([&mut *one, &mut *other], options);
    let target = other.about.clone();
    let (remote, key) = (&target["base"], &target["key"]);
    let length = 100_000;
    one.tell(&json!({"do": "fill", "offset": 0, "length": length, "seed": 3}));
    let sent = one.tell(&json!({"do": "hash", "offset": 0, "length": length}));
    let before = other.tell(&json!({"do": "word", "offset": 1 << 20}))["word"].as_u64();
    // From here on the target does nothing at all.
    one.tell(
        &json!({"do": "post", "qp": qp, "operation": "write", "id": 1, "offset": 0,
        "length": length, "remote": remote, "key": key}),
    );
    one.tell(
        &json!({"do": "post", "qp": qp, "operation": "read", "id": 2, "offset": 200_000,
        "length": length, "remote": remote, "key": key}),
    );
    let word = target["base"].as_u64().unwrap() + (1 << 20);
    one.tell(
        &json!({"do": "post", "qp": qp, "operation": "add", "id": 3, "offset": 400_000,
        "length": 8, "remote": word, "key": key, "add": 41}),
    );
    let done = one.tell(&json!({"do": "wait", "count": 3}));
    let statuses: Vec<_> = done["done"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| &d["status"])
        .collect();
    assert_eq!(statuses, ["SUCCESS"; 3], "{done}");
    assert_eq!(
        other.tell(&json!({"do": "hash", "offset": 0, "length": length})),
        sent
    );
    assert_eq!(
        one.tell(&json!({"do": "hash", "offset": 200_000, "length": length})),
        sent
    );
    let after = other.tell(&json!({"do": "word", "offset": 1 << 20}))["word"].as_u64();
    assert_eq!(after, before.map(|before| before + 41));
}
