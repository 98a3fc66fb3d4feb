//! The transport headers against bytes written by hand, and properties over all of them.

use proptest::prelude::*;
use softfabric_units::{Msn, PartitionKey, Psn, Qpn};

use super::*;
use crate::DecodeError;

/// Any extension of `kind`.
fn extension(kind: ExtensionKind) -> BoxedStrategy<Extension> {
    let reth = || {
        any::<(u64, u32, u32)>().prop_map(|(address, rkey, length)| Reth {
            address,
            rkey,
            length,
        })
    };
    let aeth = || {
        any::<(u8, u32)>().prop_map(|(syndrome, msn)| Aeth {
            syndrome: Syndrome::from_byte(syndrome),
            msn: Msn::new(msn),
        })
    };
    let deth = || {
        any::<(u32, u32)>().prop_map(|(qkey, source)| Deth {
            qkey,
            source: Qpn::new(source),
        })
    };
    match kind {
        ExtensionKind::None => Just(Extension::None).boxed(),
        ExtensionKind::Reth => reth().prop_map(Extension::Reth).boxed(),
        ExtensionKind::RethImmediate => (reth(), any::<u32>())
            .prop_map(|(reth, data)| Extension::RethImmediate(reth, data))
            .boxed(),
        ExtensionKind::Immediate => any::<u32>().prop_map(Extension::Immediate).boxed(),
        ExtensionKind::Invalidate => any::<u32>().prop_map(Extension::Invalidate).boxed(),
        ExtensionKind::Aeth => aeth().prop_map(Extension::Aeth).boxed(),
        ExtensionKind::AethAtomic => (aeth(), any::<u64>())
            .prop_map(|(aeth, original)| Extension::AethAtomic(aeth, original))
            .boxed(),
        ExtensionKind::Atomic => any::<(u64, u32, u64, u64)>()
            .prop_map(|(address, rkey, swap_or_add, compare)| {
                Extension::Atomic(AtomicEth {
                    address,
                    rkey,
                    swap_or_add,
                    compare,
                })
            })
            .boxed(),
        ExtensionKind::Deth => deth().prop_map(Extension::Deth).boxed(),
        ExtensionKind::DethImmediate => (deth(), any::<u32>())
            .prop_map(|(deth, data)| Extension::DethImmediate(deth, data))
            .boxed(),
        ExtensionKind::Notification => Just(Extension::Notification).boxed(),
    }
}

/// Any header of any opcode.
pub(crate) fn any_header() -> impl Strategy<Value = TransportHeader> {
    proptest::sample::select(Opcode::ALL).prop_flat_map(|opcode| {
        (
            extension(opcode.extension()),
            any::<(bool, bool, bool, bool, bool)>(),
            0_u8..4,
            any::<(u16, u32, u32, u32)>(),
        )
            .prop_map(move |(extension, flags, pad, numbers)| {
                let (solicited, migrated, fecn, becn, acknowledge) = flags;
                let (partition, destination, psn, srq) = numbers;
                TransportHeader {
                    bth: Bth {
                        opcode,
                        solicited,
                        migrated,
                        pad,
                        partition: PartitionKey(partition),
                        fecn,
                        becn,
                        destination: Qpn::new(destination),
                        acknowledge,
                        psn: Psn::new(psn),
                    },
                    extension,
                    xrc_srq: if opcode.has_xrc() { srq & 0xff_ffff } else { 0 },
                }
            })
    })
}

proptest! {
    #[test]
    fn any_header_comes_back(header in any_header()) {
        let mut bytes = [0xa5; TransportHeader::MAX_LENGTH + 1];
        let length = header.encode(&mut bytes);
        prop_assert_eq!(length, header.length());
        prop_assert_eq!(length, header.bth.opcode.header_length());
        prop_assert!(bytes[length..].iter().all(|byte| *byte == 0xa5), "wrote past its end");
        prop_assert_eq!(TransportHeader::decode(&bytes), Ok((header, length)));
        for short in 0..length {
            let error = TransportHeader::decode(&bytes[..short]).unwrap_err();
            prop_assert!(matches!(error, DecodeError::Truncated { .. }), "{}", error);
        }
    }

    #[test]
    fn any_bytes_are_a_header_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok((header, length)) = TransportHeader::decode(&bytes) {
            let mut again = [0; TransportHeader::MAX_LENGTH];
            prop_assert_eq!(header.encode(&mut again), length);
            prop_assert_eq!(TransportHeader::decode(&again), Ok((header, length)));
        }
    }
}

fn bth(opcode: Opcode) -> Bth {
    Bth {
        opcode,
        solicited: false,
        migrated: false,
        pad: 0,
        partition: PartitionKey(0xffff),
        fecn: false,
        becn: false,
        destination: Qpn::new(0x0001_0203),
        acknowledge: false,
        psn: Psn::new(0x00a0_b0c0),
    }
}

fn check(header: TransportHeader, expected: &[u8]) {
    let mut bytes = [0xee; TransportHeader::MAX_LENGTH];
    let length = header.encode(&mut bytes);
    assert_eq!(&bytes[..length], expected, "{header:?}");
    assert_eq!(TransportHeader::decode(expected), Ok((header, length)));
}

#[rustfmt::skip]
#[test]
fn bth_bits() {
    let plain = TransportHeader { bth: bth(Opcode::RC_SEND_MIDDLE), extension: Extension::None, xrc_srq: 0 };
    let vector = |flags: u8, congestion: u8, acknowledge: u8| {
        [0x01, flags, 0xff, 0xff, congestion, 0x01, 0x02, 0x03, acknowledge, 0xa0, 0xb0, 0xc0]
    };
    check(plain, &vector(0, 0, 0));
    check(TransportHeader { bth: Bth { solicited: true, ..plain.bth }, ..plain }, &vector(0x80, 0, 0));
    check(TransportHeader { bth: Bth { migrated: true, ..plain.bth }, ..plain }, &vector(0x40, 0, 0));
    check(TransportHeader { bth: Bth { pad: 3, ..plain.bth }, ..plain }, &vector(0x30, 0, 0));
    check(TransportHeader { bth: Bth { fecn: true, ..plain.bth }, ..plain }, &vector(0, 0x80, 0));
    check(TransportHeader { bth: Bth { becn: true, ..plain.bth }, ..plain }, &vector(0, 0x40, 0));
    check(TransportHeader { bth: Bth { acknowledge: true, ..plain.bth }, ..plain }, &vector(0, 0, 0x80));
}

#[rustfmt::skip]
#[test]
fn extension_bytes() {
    let reth = Reth { address: 0x1122_3344_5566_7788, rkey: 0x99aa_bbcc, length: 0x0000_1000 };
    let reth_bytes = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0, 0, 0x10, 0];
    let aeth = Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0x0a_0b0c) };
    let aeth_bytes = [0x1f, 0x0a, 0x0b, 0x0c];
    let deth = Deth { qkey: 0x8001_0000, source: Qpn::new(0x11_2233) };
    let deth_bytes = [0x80, 0x01, 0, 0, 0, 0x11, 0x22, 0x33];
    let data = 0xdead_beef;
    let data_bytes = [0xde, 0xad, 0xbe, 0xef];
    let atomic = AtomicEth { address: 0x1000, rkey: 0x0102_0304, swap_or_add: 5, compare: 0xff };
    let atomic_bytes = [0, 0, 0, 0, 0, 0, 0x10, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0xff];
    let cases: [(Opcode, Extension, &[&[u8]]); 11] = [
        (Opcode::UC_SEND_LAST, Extension::None, &[]),
        (Opcode::RC_WRITE_ONLY, Extension::Reth(reth), &[&reth_bytes]),
        (Opcode::UC_WRITE_ONLY_IMMEDIATE, Extension::RethImmediate(reth, data), &[&reth_bytes, &data_bytes]),
        (Opcode::RC_SEND_ONLY_IMMEDIATE, Extension::Immediate(data), &[&data_bytes]),
        (Opcode::RC_SEND_LAST_INVALIDATE, Extension::Invalidate(data), &[&data_bytes]),
        (Opcode::RC_READ_RESPONSE_ONLY, Extension::Aeth(aeth), &[&aeth_bytes]),
        (Opcode::RC_ATOMIC_ACKNOWLEDGE, Extension::AethAtomic(aeth, 7), &[&aeth_bytes, &[0, 0, 0, 0, 0, 0, 0, 7]]),
        (Opcode::RC_COMPARE_SWAP, Extension::Atomic(atomic), &[&atomic_bytes]),
        (Opcode::UD_SEND_ONLY, Extension::Deth(deth), &[&deth_bytes]),
        (Opcode::UD_SEND_ONLY_IMMEDIATE, Extension::DethImmediate(deth, data), &[&deth_bytes, &data_bytes]),
        (Opcode::CNP, Extension::Notification, &[&[0; 16]]),
    ];
    for (opcode, extension, parts) in cases {
        let mut expected = vec![opcode.code(), 0, 0xff, 0xff, 0, 1, 2, 3, 0, 0xa0, 0xb0, 0xc0];
        expected.extend(parts.concat());
        check(TransportHeader { bth: bth(opcode), extension, xrc_srq: 0 }, &expected);
    }
    // An XRC request carries its SRQ before the other headers, an XRC response none.
    let mut expected = vec![0xb3, 0, 0xff, 0xff, 0, 1, 2, 3, 0, 0xa0, 0xb0, 0xc0, 0, 0x0d, 0x0e, 0x0f];
    expected.extend(atomic_bytes);
    let header = TransportHeader {
        bth: bth(Opcode::XRC_COMPARE_SWAP), extension: Extension::Atomic(atomic), xrc_srq: 0x0d_0e0f,
    };
    check(header, &expected);
    let mut expected = vec![0xb1, 0, 0xff, 0xff, 0, 1, 2, 3, 0, 0xa0, 0xb0, 0xc0];
    expected.extend(aeth_bytes);
    check(TransportHeader { bth: bth(Opcode::XRC_ACKNOWLEDGE), extension: Extension::Aeth(aeth), xrc_srq: 0 }, &expected);
}

#[test]
fn congestion_notification_bytes() {
    let header =
        TransportHeader::congestion_notification(Qpn::new(0x01_0203), PartitionKey(0x8001));
    let mut expected = vec![0x81, 0, 0x80, 0x01, 0x40, 1, 2, 3, 0, 0, 0, 0];
    expected.extend([0; 16]);
    check(header, &expected);
}

#[test]
fn reserved_bits_are_ignored() {
    let bytes = [1, 0, 0xff, 0xff, 0x3f, 1, 2, 3, 0x7f, 0xa0, 0xb0, 0xc0];
    let (header, _) = TransportHeader::decode(&bytes).unwrap();
    assert_eq!(header.bth, bth(Opcode::RC_SEND_MIDDLE));
}

#[test]
fn errors_say_what_and_where() {
    let message = |bytes: &[u8]| TransportHeader::decode(bytes).unwrap_err().to_string();
    assert_eq!(message(&[4; 11]), "BTH at byte 0 needs 12 bytes, found 11");
    assert_eq!(
        message(&[0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        "BTH opcode at byte 0 is 0x15, needed an opcode of RC, UC, UD, XRC or CNP"
    );
    assert_eq!(
        message(&[4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        "BTH transport version at byte 1 is 0x1, needed 0"
    );
    assert_eq!(
        message(&[0x0c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9]),
        "RETH at byte 12 needs 16 bytes, found 2"
    );
}

#[test]
fn every_rc_opcode_has_its_like_under_xrc() {
    for &opcode in Opcode::ALL {
        let extended = opcode.extended();
        if opcode.service() != Service::ReliableConnection {
            assert_eq!(extended, opcode);
            continue;
        }
        assert!(Opcode::ALL.contains(&extended), "{opcode}");
        assert_eq!(extended.service(), Service::ExtendedReliableConnection);
        assert_eq!(extended.operation(), opcode.operation());
        assert_eq!(extended.position(), opcode.position());
        assert_eq!(extended.extension(), opcode.extension());
        assert_eq!(extended.has_payload(), opcode.has_payload());
    }
}
