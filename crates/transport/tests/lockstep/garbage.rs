//! Whatever arrives, the device goes on: no panic, and no work for packets that have no business here.

use proptest::prelude::*;
use softfabric_testkit::{A, B, ByteMemory, Carry, Faults, Pair, PairOptions, path_to};
use softfabric_transport::{
    Arrival, Coalescing, LengthsOnly, LossRecovery, QueuePairType, Remote, SendOperation,
};
use softfabric_units::{Bytes, Msn, PartitionKey, Psn, Qpn, Span};
use softfabric_wire::rdma::{
    Aeth, AtomicEth, Bth, Deth, Extension, ExtensionKind, Opcode, Reth, Syndrome, TransportHeader,
};

/// A packet: opcode, distance of its PSN from zero, length, and material for the extension headers.
type Packet = (usize, u32, u32, u64, u32, u32, bool);

fn packet() -> impl Strategy<Value = Packet> {
    let psn = prop_oneof![0..20u32, any::<u32>()];
    let length = prop_oneof![Just(0), Just(1024), 0..1100u32, 0..70_000u32];
    let address = prop_oneof![0..5000u64, any::<u64>()];
    let key = prop_oneof![Just(0x101), 0..0x400u32, any::<u32>()];
    let more = prop_oneof![0..5000u32, any::<u32>()];
    (
        0..Opcode::ALL.len(),
        psn,
        length,
        address,
        key,
        more,
        any::<bool>(),
    )
}

fn header(packet: Packet, to: Qpn, first: Psn, srq: Option<u32>) -> TransportHeader {
    let (opcode, psn, _, address, key, more, flag) = packet;
    let opcode = Opcode::ALL[opcode];
    let reth = Reth {
        address,
        rkey: key,
        length: more,
    };
    let aeth = Aeth {
        syndrome: Syndrome::from_byte(more as u8),
        msn: Msn::new(key),
    };
    let deth = Deth {
        qkey: if flag { 0x1111_1111 } else { key },
        source: to,
    };
    let extension = match opcode.extension() {
        ExtensionKind::None => Extension::None,
        ExtensionKind::Reth => Extension::Reth(reth),
        ExtensionKind::RethImmediate => Extension::RethImmediate(reth, more),
        ExtensionKind::Immediate => Extension::Immediate(more),
        ExtensionKind::Invalidate => Extension::Invalidate(key),
        ExtensionKind::Aeth => Extension::Aeth(aeth),
        ExtensionKind::AethAtomic => Extension::AethAtomic(aeth, address),
        ExtensionKind::Atomic => Extension::Atomic(AtomicEth {
            address,
            rkey: key,
            swap_or_add: 1,
            compare: 0,
        }),
        ExtensionKind::Deth => Extension::Deth(deth),
        ExtensionKind::DethImmediate => Extension::DethImmediate(deth, more),
        ExtensionKind::Notification => Extension::Notification,
    };
    TransportHeader {
        bth: Bth {
            opcode,
            solicited: flag,
            migrated: true,
            pad: 0,
            partition: PartitionKey::DEFAULT,
            fecn: more % 7 == 0,
            becn: more % 11 == 0,
            destination: to,
            acknowledge: flag,
            psn: first.add(psn),
        },
        extension,
        xrc_srq: match srq {
            _ if !opcode.has_xrc() => 0,
            Some(number) if flag => number,
            _ => key & 0xff_ffff,
        },
    }
}

fn pair<M: Carry>(service: QueuePairType, options: PairOptions) -> Pair<M> {
    match service {
        QueuePairType::ReliableConnection => Pair::reliable(options),
        QueuePairType::UnreliableConnection => Pair::unreliable(options),
        QueuePairType::UnreliableDatagram => Pair::datagrams(options),
        QueuePairType::XrcInitiator | QueuePairType::XrcTarget => Pair::extended(options),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Packets of a peer that makes them up, mixed with work of our own.
    #[test]
    fn made_up_packets(
        packets in prop::collection::vec(packet(), 1..60),
        service in prop::sample::select(QueuePairType::ALL.to_vec()),
        recovery in prop::sample::select(vec![
            LossRecovery::GoBackN,
            LossRecovery::GoBack0,
            LossRecovery::SelectiveRepeat { bdp_cap: Some(Bytes::kib(64)) },
        ]),
        every in any::<bool>(),
    ) {
        let mut options = PairOptions { psn: Psn::new(0xff_fffa), ..PairOptions::default() };
        options.config.recovery = recovery;
        options.config.acknowledgement.credits = every;
        if every {
            options.config.acknowledgement.coalescing = Coalescing::EveryPacket;
        }
        options.faults = Faults::loss(0.3);
        let mut pair = pair::<ByteMemory>(service, options);
        // An initiator is at A.
        let side = if service == QueuePairType::XrcInitiator { A } else { B };
        let remote = Remote { address: 0, key: pair.key(1 - side) };
        for id in 0..3 {
            if service != QueuePairType::XrcInitiator {
                pair.receive(side, id, 0, 5000);
            }
            if service.sends() {
                pair.send(side, id, SendOperation::Send, 0, 3000);
                if service.is_reliable() {
                    pair.send(side, 10 + id, SendOperation::Read(remote), 0, 3000);
                }
            }
        }
        let bytes = vec![3; 70_000];
        let (to, srq) = (pair.ends[side].qp, pair.srq_number(side));
        for (index, made_up) in packets.iter().enumerate() {
            // Requests start at the peer's first PSN, answers at our own.
            let ours = (index % 3 == 0) != (side == A);
            let first = if ours { options.psn.add(1000) } else { options.psn };
            let header = header(*made_up, to, first, srq);
            let length = made_up.2;
            pair.forge(side, &header, &bytes[..length as usize], length);
            let soon = pair.now() + Span::nanos(300);
            pair.run_until(soon);
        }
        let later = pair.now() + Span::millis(5);
        pair.run_until(later);
        // It still answers, or is in a state that says why not.
        let end = &pair.ends[side];
        prop_assert!(end.device.query_qp(end.qp).is_some());
    }

    /// A number that no queue pair has.
    #[test]
    fn packets_for_nobody(made_up in packet()) {
        let options = PairOptions::default();
        let mut pair = pair::<LengthsOnly>(QueuePairType::ReliableConnection, options);
        let header = header(made_up, Qpn::new(0x123_456), Psn::new(0), None);
        pair.ends[B].device.handle_packet(
            pair.now(),
            Arrival {
                header: &header,
                payload: (),
                payload_length: made_up.2,
                congestion: false,
                source: &path_to(A),
                destination: None,
                grh: None,
            },
        );
        pair.run();
        prop_assert_eq!(pair.packets, 0);
    }
}
