//! Several processes that share one port: they come, go and die, and packets find the right one.

use serde_json::{Value, json};

use crate::namespace::Cable;
use crate::process::{Process, connect};

fn over_udp() -> Value {
    json!({ "shared_memory": false })
}

/// A write and a read of 5000 bytes, which the other end does not help with.
fn exchange(one: &mut Process, other: &mut Process, qp: u64) {
    let (remote, key) = (other.about["base"].clone(), other.about["key"].clone());
    for (id, operation) in ["write", "read"].into_iter().enumerate() {
        one.tell(
            &json!({"do": "post", "qp": qp, "operation": operation, "id": id, "offset": 0,
            "length": 5000, "remote": remote, "key": key}),
        );
    }
    let done = one.tell(&json!({"do": "wait", "count": 2}));
    let statuses: Vec<_> = done["done"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| &d["status"])
        .collect();
    assert_eq!(statuses, ["SUCCESS"; 2], "{done}");
}

#[test]
fn packets_find_their_process_while_others_come_go_and_die() {
    let Some(cable) = Cable::lay("packets_find_their_process_while_others_come_go_and_die") else {
        return;
    };
    let [here, there] = &cable.names;
    let start = |namespace: &str| Process::start_in(namespace, "veth0", &over_udp());
    let mut peers: Vec<_> = (0..6).map(|_| start(there)).collect();
    let mut own: Vec<_> = (0..6).map(|_| start(here)).collect();
    let mut qps = Vec::new();
    for (one, other) in own.iter_mut().zip(&mut peers) {
        qps.push(connect([one, other], &json!({})));
    }
    let check = |own: &mut Vec<Process>, peers: &mut Vec<Process>, living: &[usize]| {
        for &at in living {
            exchange(&mut own[at], &mut peers[at], qps[at][0]);
        }
    };
    check(&mut own, &mut peers, &[0, 1, 2, 3, 4, 5]);

    // One goes in good order, two die together: the last sockets of the group move.
    peers[1].tell(&json!({"do": "close"}));
    check(&mut own, &mut peers, &[0, 2, 3, 4, 5]);
    peers[0].kill();
    peers[2].kill();
    check(&mut own, &mut peers, &[3, 4, 5]);

    // The steering is right again: no packet takes the detour through a mailbox any more.
    std::thread::sleep(std::time::Duration::from_millis(300));
    check(&mut own, &mut peers, &[3, 4, 5]);
    let handed = |peers: &mut Vec<Process>| -> u64 {
        (3..6)
            .map(|at| {
                peers[at].tell(&json!({"do": "counters"}))["handed_over"]
                    .as_u64()
                    .unwrap()
            })
            .sum()
    };
    let before = handed(&mut peers);
    check(&mut own, &mut peers, &[3, 4, 5]);
    assert_eq!(handed(&mut peers), before);

    // A newcomer gets a slot of its own.
    let mut newcomer = start(there);
    let slots: Vec<_> = [3, 4, 5]
        .map(|at| peers[at].tell(&json!({"do": "slot"}))["slot"].clone())
        .to_vec();
    let slot = newcomer.tell(&json!({"do": "slot"}))["slot"].clone();
    assert!(!slots.contains(&slot), "{slot} of {slots:?}");
    let [qp, _] = connect([&mut own[0], &mut newcomer], &json!({}));
    exchange(&mut own[0], &mut newcomer, qp);
}

#[test]
fn management_datagrams_arrive_at_the_lowest_slot() {
    let Some(cable) = Cable::lay("management_datagrams_arrive_at_the_lowest_slot") else {
        return;
    };
    let [here, there] = &cable.names;
    let mut sender = Process::start_in(here, "veth0", &json!({}));
    let mut receivers = [(); 2].map(|()| Process::start_in(there, "veth0", &json!({})));
    let slots = receivers.each_mut().map(|receiver| {
        receiver.tell(&json!({"do": "slot"}))["slot"]
            .as_u64()
            .unwrap()
    });
    if slots[1] < slots[0] {
        receivers.reverse();
    }
    for index in 0..2 {
        let gid = &receivers[0].about["gids"][index];
        sender.tell(&json!({"do": "mad", "gid": gid, "index": index, "byte": 7}));
        let mads = receivers[0].tell(&json!({"do": "mads", "count": 1}));
        let expected = json!([{"byte": 7, "source": sender.about["gids"][index]}]);
        assert_eq!(mads["mads"], expected);
    }
    receivers[0].tell(&json!({"do": "close"}));
    let gid = &receivers[1].about["gids"][0];
    sender.tell(&json!({"do": "mad", "gid": gid, "byte": 8}));
    let mads = receivers[1].tell(&json!({"do": "mads", "count": 1}));
    assert_eq!(mads["mads"][0]["byte"], 8);
}

#[test]
fn counters_are_told_to_those_who_ask_and_kept_when_a_process_ends() {
    let Some(cable) = Cable::lay("counters_are_told_to_those_who_ask_and_kept_when_a_process_ends")
    else {
        return;
    };
    let [here, there] = &cable.names;
    let mut one = Process::start_in(here, "veth0", &over_udp());
    let mut other = Process::start_in(there, "veth0", &over_udp());
    let mut asker = Process::start_in(there, "veth0", &json!({}));
    let [qp, _] = connect([&mut one, &mut other], &json!({}));
    exchange(&mut one, &mut other, qp);
    let report = asker.tell(&json!({"do": "report"}));
    let running = report["running"].as_array().unwrap();
    assert_eq!(running.len(), 2, "{report}");
    let found = running
        .iter()
        .find(|one| one["process"] == other.about["pid"])
        .unwrap();
    let packets = found["counters"]["port_rcv_packets"].as_u64().unwrap();
    assert!(packets >= 5, "{report}");
    assert_eq!(report["ended"], json!({}));

    other.tell(&json!({"do": "close"}));
    let report = asker.tell(&json!({"do": "report"}));
    assert_eq!(report["running"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(
        report["ended"]["softfabric0"]["port_rcv_packets"], packets,
        "{report}"
    );
}

#[test]
fn another_user_is_refused() {
    if !is_root() {
        println!("SKIPPED another_user_is_refused: only root can become another user");
        return;
    }
    let Some(cable) = Cable::lay("another_user_is_refused") else {
        return;
    };
    let mut first = Process::start_in(&cable.names[0], "veth0", &json!({}));
    first.tell(&json!({"do": "slot"}));
    let user = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let mut second = Process::spawn(Some(&cable.names[0]), &json!({}), &user);
    let answer = second.tell(&json!({"do": "open", "netdev": "veth0"}));
    let error = answer["error"].as_str().unwrap();
    assert!(
        error.contains("4791") && error.contains("another user"),
        "{error}"
    );
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
}
