//! What the Linux kernel's soft-RoCE sent for the same requests, packet by packet: opcode, PSN, AckReq, pad, announced
//! length, syndrome, MSN. Our own recordings of it say so; only a message that is too long is answered differently (it
//! says 0x63, the standard 0x61).

use softfabric_testkit::{A, B, ByteMemory, Pair, PairOptions};
use softfabric_transport::{Mtu, Remote, SendOperation};
use softfabric_units::{Psn, Span, Time};
use softfabric_wire::rdma::Extension;

type Bytes = Pair<ByteMemory>;

fn pair(psn: u32, mtu: Mtu) -> Bytes {
    Pair::reliable(PairOptions {
        record: true,
        psn: Psn::new(psn),
        mtu,
        ..PairOptions::default()
    })
}

/// One line for each packet, as the expectations below are written.
fn lines(pair: &Bytes) -> Vec<String> {
    pair.sent
        .iter()
        .map(|sent| {
            let bth = sent.header.bth;
            let side = if sent.side == A { ">" } else { "<" };
            let more = match sent.header.extension {
                Extension::Reth(reth) | Extension::RethImmediate(reth, _) => {
                    format!(" of {}", reth.length)
                }
                Extension::Aeth(aeth) | Extension::AethAtomic(aeth, _) => {
                    let syndrome = aeth.syndrome.to_byte();
                    format!(" {syndrome:#04x} {}", aeth.msn.as_u32())
                }
                _ => String::new(),
            };
            let (code, psn) = (bth.opcode.code(), bth.psn.as_u32());
            let asked = u8::from(bth.acknowledge);
            format!("{side} {code:#04x} {psn} {asked} {}{more}", bth.pad)
        })
        .collect()
}

/// Runs one request after another, as the recorded programs did.
fn run(pair: &mut Bytes, requests: &[(SendOperation, u32)]) {
    for &(operation, length) in requests {
        pair.send(A, 1, operation, 0, length);
        pair.run();
    }
}

fn remote(pair: &Bytes) -> Remote {
    Remote {
        address: 0,
        key: pair.key(B),
    }
}

#[test]
fn sends_over_the_wrap_of_the_psn() {
    let mut pair = pair(0xff_fffe, Mtu::BYTES_1024);
    pair.receive(B, 1, 0, 3000);
    pair.receive(B, 2, 0, 3000);
    run(
        &mut pair,
        &[(SendOperation::Send, 2049), (SendOperation::Send, 5)],
    );
    assert_eq!(
        lines(&pair),
        [
            "> 0x00 16777214 0 0",
            "> 0x01 16777215 0 0",
            "> 0x02 0 1 3",
            "< 0x11 0 0 0 0x1f 1",
            "> 0x04 1 1 3",
            "< 0x11 1 0 0 0x1f 2",
        ]
    );
}

#[test]
fn reads() {
    let mut pair = pair(256, Mtu::BYTES_1024);
    let read = SendOperation::Read(remote(&pair));
    let requests = [0, 1, 6, 1024, 2048, 3500].map(|length| (read, length));
    run(&mut pair, &requests);
    assert_eq!(
        lines(&pair),
        [
            "> 0x0c 256 1 0 of 0",
            "< 0x10 256 0 0 0x1f 1",
            "> 0x0c 257 1 0 of 1",
            "< 0x10 257 0 3 0x1f 2",
            "> 0x0c 258 1 0 of 6",
            "< 0x10 258 0 2 0x1f 3",
            "> 0x0c 259 1 0 of 1024",
            "< 0x10 259 0 0 0x1f 4",
            "> 0x0c 260 1 0 of 2048",
            "< 0x0d 260 0 0 0x1f 5",
            "< 0x0f 261 0 0 0x1f 5",
            "> 0x0c 262 1 0 of 3500",
            "< 0x0d 262 0 0 0x1f 6",
            "< 0x0e 263 0 0",
            "< 0x0e 264 0 0",
            "< 0x0f 265 0 0 0x1f 6",
        ]
    );
}

#[test]
fn atomics() {
    let mut pair = pair(256, Mtu::BYTES_1024);
    let remote = remote(&pair);
    let add = SendOperation::FetchAdd { remote, add: 5 };
    let swap = SendOperation::CompareSwap {
        remote,
        compare: 5,
        swap: 2,
    };
    run(&mut pair, &[(add, 8), (swap, 8), (swap, 8), (add, 8)]);
    assert_eq!(
        lines(&pair),
        [
            "> 0x14 256 1 0",
            "< 0x12 256 0 0 0x1f 1",
            "> 0x13 257 1 0",
            "< 0x12 257 0 0 0x1f 2",
            "> 0x13 258 1 0",
            "< 0x12 258 0 0 0x1f 3",
            "> 0x14 259 1 0",
            "< 0x12 259 0 0 0x1f 4",
        ]
    );
}

#[test]
fn writes_with_immediate() {
    let mut pair = pair(256, Mtu::BYTES_1024);
    for id in 0..3 {
        pair.receive(B, id, 0, 0);
    }
    let write = SendOperation::WriteImmediate(remote(&pair), 1);
    run(&mut pair, &[(write, 0), (write, 3), (write, 2500)]);
    assert_eq!(
        lines(&pair),
        [
            "> 0x0b 256 1 0 of 0",
            "< 0x11 256 0 0 0x1f 1",
            "> 0x0b 257 1 1 of 3",
            "< 0x11 257 0 0 0x1f 2",
            "> 0x06 258 0 0 of 2500",
            "> 0x07 259 0 0",
            "> 0x09 260 1 0",
            "< 0x11 260 0 0 0x1f 3",
        ]
    );
}

#[test]
fn writes_in_packets_of_256_bytes() {
    let mut pair = pair(256, Mtu::BYTES_256);
    let write = SendOperation::Write(remote(&pair));
    run(
        &mut pair,
        &[(write, 0), (write, 1), (write, 7), (write, 1024)],
    );
    assert_eq!(
        lines(&pair),
        [
            "> 0x0a 256 1 0 of 0",
            "< 0x11 256 0 0 0x1f 1",
            "> 0x0a 257 1 3 of 1",
            "< 0x11 257 0 0 0x1f 2",
            "> 0x0a 258 1 1 of 7",
            "< 0x11 258 0 0 0x1f 3",
            "> 0x06 259 0 0 of 1024",
            "> 0x07 260 0 0",
            "> 0x07 261 0 0",
            "> 0x08 262 1 0",
            "< 0x11 262 0 0 0x1f 4",
        ]
    );
}

#[test]
fn a_receiver_that_is_not_ready() {
    let mut pair = pair(256, Mtu::BYTES_1024);
    pair.send(A, 1, SendOperation::Send, 0, 100);
    pair.run_until(Time::ZERO + Span::millis(1));
    pair.receive(B, 1, 0, 100);
    pair.run();
    assert_eq!(
        lines(&pair),
        [
            "> 0x04 256 1 0",
            "< 0x11 256 0 0 0x2c 0",
            "> 0x04 256 1 0",
            "< 0x11 256 0 0 0x2c 0",
            "> 0x04 256 1 0",
            "< 0x11 256 0 0 0x1f 1",
        ]
    );
}

#[test]
fn a_key_that_opens_nothing() {
    for (operation, code) in [
        (SendOperation::Write as fn(Remote) -> SendOperation, "0x0a"),
        (SendOperation::Read, "0x0c"),
    ] {
        let mut pair = pair(256, Mtu::BYTES_1024);
        let nobody = Remote {
            address: 0,
            key: 0x666,
        };
        run(&mut pair, &[(operation(nobody), 64)]);
        assert_eq!(
            lines(&pair),
            [
                format!("> {code} 256 1 0 of 64"),
                String::from("< 0x11 256 0 0 0x62 0")
            ]
        );
    }
}

#[test]
fn a_message_that_is_too_long() {
    let mut pair = pair(256, Mtu::BYTES_1024);
    pair.receive(B, 900, 0, 1500);
    run(&mut pair, &[(SendOperation::Send, 2048)]);
    assert_eq!(
        lines(&pair),
        ["> 0x00 256 0 0", "> 0x02 257 1 0", "< 0x11 257 0 0 0x61 0",]
    );
}
