//! Two processes, over UDP and over shared memory, on one host and between namespaces.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use softfabric_units::Random;
use softfabric_wire::ip::{Fragment, Ipv4Header, TrafficClass};
use softfabric_wire::rdma::{Icrc, Opcode, TransportHeader};
use softfabric_wire::udp::UdpHeader;

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

#[test]
fn idle_processes_use_no_processor() {
    for shared_memory in [false, true] {
        let settings = json!({ "shared_memory": shared_memory });
        let [mut one, mut other] = pair(&settings);
        one_sided(&mut one, &mut other, &json!({}));
        // Timers that were armed have to run out first.
        std::thread::sleep(Duration::from_millis(300));
        let ticks = |process: &mut Process| process.tell(&json!({"do": "cpu"}))["ticks"].as_u64();
        let before = [ticks(&mut one), ticks(&mut other)];
        std::thread::sleep(Duration::from_millis(1500));
        let after = [ticks(&mut one), ticks(&mut other)];
        for (before, after) in before.into_iter().zip(after) {
            assert!(
                after.unwrap() - before.unwrap() <= 1,
                "{settings}: {before:?} {after:?}"
            );
        }
    }
}

#[test]
fn garbage_from_the_network_harms_nobody() {
    let [mut one, mut other] = pair(&json!({ "shared_memory": false }));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut random = Random::from_seed(11);
    let [qp, _] = connect([&mut one, &mut other], &json!({}));
    let numbers = [qp, 0, 1, 0xff_ffff, qp + 1, qp ^ 0x10_0000];
    for round in 0..20_000 {
        let length = random.below(if round % 10 == 0 { 4000 } else { 80 }) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
        // Mostly something that looks like a packet: an opcode that exists, version 0, a number that exists.
        if round % 4 != 0 && length > 12 {
            let all = Opcode::ALL;
            bytes[0] = all[random.below(all.len() as u64) as usize].code();
            bytes[1] &= 0xf0;
            let number = numbers[random.below(numbers.len() as u64) as usize] as u32;
            bytes[5..8].copy_from_slice(&number.to_be_bytes()[1..]);
        }
        // And half of those with the ICRC that they should have.
        if round % 8 > 3 && length > 20 {
            seal(&mut bytes, socket.local_addr().unwrap().port());
        }
        socket.send_to(&bytes, "127.0.0.1:4791").unwrap();
    }
    // Everybody is there, and goes on.
    one_sided(&mut one, &mut other, &json!({}));
    let counters = one.tell(&json!({"do": "counters"}));
    assert!(
        counters["port_rcv_packets"].as_u64().unwrap() > 1000,
        "{counters}"
    );
}

/// Puts the ICRC of a packet at its end, as if sent from a port of the loopback interface.
fn seal(bytes: &mut [u8], source_port: u16) {
    let Ok((_, at)) = TransportHeader::decode(bytes) else {
        return;
    };
    if at + 4 > bytes.len() {
        return;
    }
    let ip = Ipv4Header {
        traffic_class: TrafficClass::from_byte(0),
        identification: 0,
        dont_fragment: true,
        fragment: Fragment::WHOLE,
        time_to_live: 64,
        source: Ipv4Addr::LOCALHOST,
        destination: Ipv4Addr::LOCALHOST,
    };
    let udp = UdpHeader {
        source_port,
        destination_port: 4791,
        checksum: 0,
    };
    let mut icrc = Icrc::over_ipv4(&ip, &udp, bytes.len());
    let end = bytes.len() - 4;
    icrc.headers(&bytes[..at]);
    icrc.payload(&bytes[at..end]);
    bytes[end..].copy_from_slice(&icrc.finish().to_le_bytes());
}

#[test]
fn nobody_else_speaks_for_a_peer() {
    let Some(cable) = Cable::lay("nobody_else_speaks_for_a_peer") else {
        return;
    };
    let nodes = [0, 1].map(|end| Process::start_in(&cable.names[end], "veth0", &json!({})));
    let [mut one, mut other] = nodes;
    let [_, target] = connect([&mut one, &mut other], &json!({}));
    // The same packet that the peer would send, from another address of the same host.
    cable.ip(0, "addr add 10.9.0.77/24 dev veth0");
    let forged = one.tell(&json!({"do": "forge", "from": "10.9.0.77", "to": "10.9.0.2",
        "qp": target, "psn": 0xff_ff00_u32, "address": other.about["base"], "key": other.about["key"]}));
    assert_eq!(forged["sent"], true);
    let start = Instant::now();
    loop {
        let counters = other.tell(&json!({"do": "counters"}));
        if counters["rx_wrong_source"] == 1 {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{counters}");
    }
    assert_eq!(other.tell(&json!({"do": "word", "offset": 0}))["word"], 0);
    // From the peer's own address it would have been a write.
    one.tell(&json!({"do": "forge", "from": "10.9.0.1", "to": "10.9.0.2",
        "qp": target, "psn": 0xff_ff00_u32, "address": other.about["base"], "key": other.about["key"]}));
    let start = Instant::now();
    while other.tell(&json!({"do": "word", "offset": 0}))["word"] == 0 {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "the forgery itself is a good packet"
        );
    }
}
