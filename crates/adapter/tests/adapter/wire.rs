//! Two processes over UDP on one host.

use serde_json::{Value, json};

use crate::process::{Process, connect};

fn over_udp() -> Value {
    json!({ "shared_memory": false })
}

fn pair() -> [Process; 2] {
    [(); 2].map(|()| Process::start("lo", &over_udp()))
}

#[test]
fn one_sided_operations_complete_while_the_target_computes() {
    let [mut one, mut other] = pair();
    let [qp, _] = connect([&mut one, &mut other], &json!({}));
    let target = other.about.clone();
    let (remote, key) = (&target["base"], &target["key"]);
    let length = 100_000;
    one.tell(&json!({"do": "fill", "offset": 0, "length": length, "seed": 3}));
    let sent = one.tell(&json!({"do": "hash", "offset": 0, "length": length}));
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
    assert_eq!(
        other.tell(&json!({"do": "word", "offset": 1 << 20}))["word"],
        41
    );
    let counters = one.tell(&json!({"do": "counters"}));
    assert!(
        counters["port_xmit_packets"].as_u64().unwrap() > 98,
        "it went over the wire: {counters}"
    );
}
