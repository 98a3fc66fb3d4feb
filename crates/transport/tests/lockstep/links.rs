//! Links inside one host: packets of up to 1 MiB between connected queue pairs, and datagrams as ever.

use softfabric_telemetry::DeviceCounter;
use softfabric_testkit::{A, B, ByteMemory, Pair, PairOptions};
use softfabric_transport::{
    Access, AckTimeout, LossRecovery, Modify, ModifyError, Mtu, Remote, SendOperation, State,
    Status,
};
use softfabric_units::{PartitionKey, Psn};
use softfabric_wire::rdma::{Bth, Deth, Extension, Opcode, TransportHeader};

type Bytes = Pair<ByteMemory>;

const MIB: u32 = 1 << 20;

fn options() -> PairOptions {
    PairOptions {
        mtu: Mtu::local(MIB).expect("the largest"),
        memory: 16 << 20,
        // A packet takes 84 µs at the pair's 100 Gb/s.
        timeout: AckTimeout::from_code(14),
        record: true,
        ..PairOptions::default()
    }
}

fn pattern(length: u32) -> Vec<u8> {
    (0..length).map(|byte| (byte % 251) as u8).collect()
}

fn header(pair: &Bytes, opcode: Opcode, psn: Psn, extension: Extension) -> TransportHeader {
    TransportHeader {
        bth: Bth {
            opcode,
            solicited: false,
            migrated: true,
            pad: 0,
            partition: PartitionKey::DEFAULT,
            fecn: false,
            becn: false,
            destination: pair.ends[B].qp,
            acknowledge: true,
            psn,
        },
        extension,
        xrc_srq: 0,
    }
}

#[test]
fn an_mtu_is_of_the_wire_or_local() {
    assert_eq!(Mtu::local(4096).map(Mtu::as_u32), Some(4096));
    assert_eq!(Mtu::local(MIB).map(Mtu::as_u32), Some(MIB));
    for bytes in [0, 1024, 4097, MIB + 4096, u32::MAX] {
        assert_eq!(Mtu::local(bytes), None, "{bytes}");
    }
    assert!(!Mtu::BYTES_4096.is_local());
    assert_ne!(Mtu::local(4096), Some(Mtu::BYTES_4096));
}

/// A custom MTU above the port's is refused, a local one of the same size is taken.
#[test]
fn the_ports_mtu_does_not_limit_local_links() {
    let result = |mtu| {
        let mut pair = Bytes::reliable(options());
        pair.modify(A, &Modify::to(State::Reset));
        let access = Access::empty();
        pair.modify(A, &Modify::initialize(access));
        let (now, qp) = (pair.now(), pair.ends[A].qp);
        let path = softfabric_testkit::path_to(B);
        let modify = Modify::ready_to_receive_reliable(path, mtu, qp, Psn::new(0));
        pair.ends[A].device.modify_qp(now, qp, &modify)
    };
    let custom = Mtu::custom(8192).expect("not zero");
    assert!(matches!(
        result(custom),
        Err(ModifyError::Value {
            found: 8192,
            needed: 4096,
            ..
        })
    ));
    assert_eq!(result(Mtu::local(8192).expect("a multiple")), Ok(()));
}

#[test]
fn every_operation_in_packets_of_a_mebibyte() {
    let mut pair = Bytes::reliable(options());
    let length = 3 * MIB + 5;
    let data = pattern(length);
    pair.fill(A, 0, &data);
    let remote = |pair: &Bytes, address| Remote {
        address,
        key: pair.key(B),
    };
    pair.send(A, 1, SendOperation::Write(remote(&pair, 0)), 0, length);
    pair.receive(B, 9, 4 << 20, 4 * MIB);
    pair.send(A, 2, SendOperation::Send, 0, length);
    pair.send(
        A,
        3,
        SendOperation::Read(remote(&pair, 4 << 20)),
        8 << 20,
        length,
    );
    pair.run();
    let done = pair.completions(A);
    assert_eq!(done.len(), 3);
    assert!(done.iter().all(|done| done.status == Status::Success));
    assert_eq!(pair.completions(B)[0].length, length);
    let size = length as usize;
    assert_eq!(pair.bytes(B, 0, size), data);
    assert_eq!(pair.bytes(B, 4 << 20, size), data);
    assert_eq!(pair.bytes(A, 8 << 20, size), data);
    // Four packets for each message, their PSNs in a row; a read has one request for four responses.
    let lengths = |side| -> Vec<u32> {
        let sent = pair.sent.iter().filter(|sent| sent.side == side);
        let lengths = sent.map(|sent| sent.payload_length);
        lengths.filter(|&length| length > 0).collect()
    };
    let message = [MIB, MIB, MIB, 5];
    assert_eq!(lengths(A), [message, message].concat());
    assert_eq!(lengths(B), message);
    let status = pair.ends[A]
        .device
        .query_qp(pair.ends[A].qp)
        .expect("there");
    assert_eq!(status.send_psn, options().psn.add(12));
}

#[test]
fn unreliable_connections_too() {
    let mut pair = Bytes::unreliable(options());
    let data = pattern(2 * MIB);
    pair.fill(A, 0, &data);
    let remote = Remote {
        address: 0,
        key: pair.key(B),
    };
    pair.send(A, 1, SendOperation::Write(remote), 0, 2 * MIB);
    pair.run();
    assert_eq!(pair.packets, 2);
    assert_eq!(pair.bytes(B, 0, data.len()), data);
}

/// The arrival length limit is the queue pair's MTU, whatever the link could carry.
#[test]
fn a_packet_beyond_the_mtu_is_refused() {
    for (mtu, length) in [(Mtu::BYTES_4096, 4097), (options().mtu, MIB + 1)] {
        let mut pair = Bytes::reliable(PairOptions { mtu, ..options() });
        pair.receive(B, 1, 0, 2 * MIB);
        let packet = header(&pair, Opcode::RC_SEND_ONLY, options().psn, Extension::None);
        pair.forge(B, &packet, &vec![0; length as usize], length);
        pair.run();
        let done = pair.completions(B);
        assert_eq!(done[0].status, Status::Flushed);
        let end = &pair.ends[B];
        let state = end.device.query_qp(end.qp).expect("there").state;
        assert_eq!(state, State::Error);
    }
}

/// Selective repeat keeps what is ahead, but not what is too long ever to be right.
#[test]
fn a_packet_beyond_the_mtu_is_not_kept() {
    let mut options = options();
    options.mtu = Mtu::BYTES_1024;
    options.config.recovery = LossRecovery::SelectiveRepeat { bdp_cap: None };
    for (length, answers) in [(1024, 1), (1025, 0)] {
        let mut pair = Bytes::reliable(options);
        let ahead = options.psn.add(1);
        let packet = header(&pair, Opcode::RC_SEND_ONLY, ahead, Extension::None);
        pair.forge(B, &packet, &vec![0; length as usize], length);
        pair.run();
        assert_eq!(pair.packets, answers, "{length}");
    }
}

#[test]
fn datagrams_stay_with_the_ports_mtu() {
    let mut pair = Bytes::datagrams(options());
    pair.receive(B, 1, 0, 2 * MIB);
    let deth = Deth {
        qkey: 0x1111_1111,
        source: pair.ends[A].qp,
    };
    let packet = header(
        &pair,
        Opcode::UD_SEND_ONLY,
        Psn::new(0),
        Extension::Deth(deth),
    );
    pair.forge(B, &packet, &[0; 4097], 4097);
    assert_eq!(pair.counter(B, DeviceCounter::Discarded), 1);
    pair.forge(B, &packet, &[0; 4096], 4096);
    assert_eq!(pair.completions(B).len(), 1);
}
