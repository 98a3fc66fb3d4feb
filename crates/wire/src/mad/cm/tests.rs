//! Connection management messages: bytes by hand, properties over all of them, IP services.

use std::net::{IpAddr, Ipv6Addr};

use proptest::collection::vec;
use proptest::prelude::*;
use softfabric_units::{Gid, Lid, PartitionKey, Psn, Qpn};

use super::*;
use crate::infiniband::ServiceLevel;
use crate::ip::{FlowLabel, IpProtocol};
use crate::mad::{PrivateData, TimeoutCode};

/// A datagram whose body is `body`, then zeros.
fn datagram(attribute: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    bytes.extend([0, attribute, 0, 0, 0, 0, 0, 0]);
    bytes.extend(body);
    bytes.resize(MAD_LENGTH, 0);
    bytes
}

fn check(attribute: u8, body: &[u8], message: Message) {
    let bytes = datagram(attribute, body);
    let mad = CmMad {
        transaction: 9,
        modifier: 0,
        message,
    };
    assert_eq!(CmMad::decode(&bytes).as_ref(), Ok(&mad));
    assert_eq!(mad.encode().as_slice(), bytes.as_slice());
}

#[rustfmt::skip]
#[test]
fn request_bytes() {
    let mut body = vec![
        1, 2, 3, 4,  0, 0xaa, 0xbb, 0xcc,
        0, 0, 0, 0, 1, 6, 0x1c, 0x06,
        0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
        0, 0, 0, 0,  0x80, 0, 0, 1,
        0, 0, 0x11, 4,
        0, 0, 0x12, 3,
        0, 0, 0x13, 20 << 3 | 3 << 1 | 1,
        0x98, 0x76, 0x54, 21 << 3 | 5,
        0x80, 0x01, 3 << 4 | 8 | 6, 15 << 4 | 8 | 1,
    ];
    body.extend([0xff, 0xff, 0, 7]);
    body.extend([0x11; 16]);
    body.extend([0x22; 16]);
    body.extend([0xab, 0xcd, 0xe0, 0x3f, 0x68, 64, 0x3 << 4 | 8, 19 << 3]);
    body.extend([0; 44]);
    body.extend([0x77, 0x88]);
    let message = ConnectRequest {
        local: CommunicationId(0x0102_0304),
        vendor: 0xaa_bbcc,
        service: ServiceId(0x0106_1c06),
        guid: 0x1011_1213_1415_1617,
        qkey: 0x8000_0001,
        qpn: Qpn::new(0x11),
        responder_resources: 4,
        initiator_depth: 3,
        local_context: Qpn::new(0x12),
        remote_context: Qpn::new(0x13),
        remote_response_timeout: TimeoutCode::from_code(20),
        transport: TransportService::ExtendedReliable,
        flow_control: true,
        starting_psn: Psn::new(0x98_7654),
        local_response_timeout: TimeoutCode::from_code(21),
        retries: 5,
        partition: PartitionKey(0x8001),
        mtu: PathMtuCode::from_code(3),
        channel_exists: true,
        rnr_retries: 6,
        cm_retries: 15,
        shared_receive_queue: true,
        primary: Path {
            local_lid: Lid(0xffff),
            remote_lid: Lid(7),
            local_gid: Gid([0x11; 16]),
            remote_gid: Gid([0x22; 16]),
            flow_label: FlowLabel::checked(0xabcde).unwrap(),
            rate: 0x3f,
            traffic_class: 0x68,
            hop_limit: 64,
            service_level: ServiceLevel::checked(3).unwrap(),
            subnet_local: true,
            ack_timeout: TimeoutCode::from_code(19),
        },
        alternate: Path::default(),
        private_data: PrivateData::padded(&[0x77, 0x88]).unwrap(),
    };
    check(0x10, &body, Message::ConnectRequest(message));
}

#[rustfmt::skip]
#[test]
fn answer_bytes() {
    let (local, remote) = (CommunicationId(0x0102_0304), CommunicationId(0x0506_0708));
    let names = [1, 2, 3, 4, 5, 6, 7, 8];
    let mut body = names.to_vec();
    body.extend([
        0, 0, 0, 9,
        0, 0, 0x29, 0xaa,
        0, 0, 0x2a, 0xbb,
        0x29, 0x11, 0xd7, 0xcc,
        1, 2, 15 << 3 | 2 << 1 | 1, 7 << 5 | 1 << 4,
        0x50, 0x54, 0, 0xff, 0xfe, 0x77, 0, 0x12,
        0x66,
    ]);
    check(0x13, &body, Message::ConnectReply(ConnectReply {
        local,
        remote,
        qkey: 9,
        qpn: Qpn::new(0x29),
        local_context: Qpn::new(0x2a),
        vendor: 0xaa_bbcc,
        starting_psn: Psn::new(0x29_11d7),
        responder_resources: 1,
        initiator_depth: 2,
        ack_delay: TimeoutCode::from_code(15),
        failover: 2,
        flow_control: true,
        rnr_retries: 7,
        shared_receive_queue: true,
        guid: 0x5054_00ff_fe77_0012,
        private_data: PrivateData::padded(&[0x66]).unwrap(),
    }));

    let mut body = names.to_vec();
    body.push(0x66);
    check(0x14, &body, Message::ReadyToUse(ReadyToUse {
        local,
        remote,
        private_data: PrivateData::padded(&[0x66]).unwrap(),
    }));

    let mut body = names.to_vec();
    body.extend([0x40, 24 << 3, 0x66]);
    check(0x11, &body, Message::ReceiptAcknowledgement(ReceiptAcknowledgement {
        local,
        remote,
        stage: Stage::Reply,
        timeout: TimeoutCode::from_code(24),
        private_data: PrivateData::padded(&[0x66]).unwrap(),
    }));

    let mut body = names.to_vec();
    body.extend([0x80, 2 << 1, 0, 28, 0x55, 0x56]);
    body.resize(84, 0);
    body.push(0x66);
    check(0x12, &body, Message::Reject(Reject {
        local,
        remote,
        stage: Stage::Other,
        reason: RejectReason::CONSUMER,
        information_length: 2,
        information: PrivateData::padded(&[0x55, 0x56]).unwrap(),
        private_data: PrivateData::padded(&[0x66]).unwrap(),
    }));
}

#[rustfmt::skip]
#[test]
fn end_and_resolution_bytes() {
    let (local, remote) = (CommunicationId(0x0102_0304), CommunicationId(0x0506_0708));
    let names = [1, 2, 3, 4, 5, 6, 7, 8];
    let mut body = names.to_vec();
    body.extend([0x12, 0x34, 0x56, 0, 0x66]);
    check(0x15, &body, Message::DisconnectRequest(DisconnectRequest {
        local,
        remote,
        remote_qpn: Qpn::new(0x12_3456),
        private_data: PrivateData::padded(&[0x66]).unwrap(),
    }));
    let mut body = names.to_vec();
    body.push(0x66);
    check(0x16, &body, Message::DisconnectReply(DisconnectReply {
        local,
        remote,
        private_data: PrivateData::padded(&[0x66]).unwrap(),
    }));
    let body = [1, 2, 3, 4, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 1, 0x11, 0x1c, 0x06, 0x66];
    check(0x17, &body, Message::ResolutionRequest(ResolutionRequest {
        request: local,
        partition: PartitionKey::DEFAULT,
        service: ServiceId(0x0111_1c06),
        private_data: PrivateData::padded(&[0x66]).unwrap(),
    }));
    let mut body = vec![
        1, 2, 3, 4,  3, 2, 0xaa, 0xbb,  0, 0, 0x2d, 0xcc,
        0, 0, 0, 0, 1, 0x11, 0x1c, 0x06,  1, 0x23, 0x45, 0x67,  0x55, 0x56,
    ];
    body.resize(96, 0);
    body.push(0x66);
    check(0x18, &body, Message::ResolutionReply(ResolutionReply {
        request: local,
        status: ResolutionStatus::NO_QUEUE_PAIR,
        information_length: 2,
        vendor: 0xaa_bbcc,
        qpn: Qpn::new(0x2d),
        service: ServiceId(0x0111_1c06),
        qkey: 0x0123_4567,
        information: PrivateData::padded(&[0x55, 0x56]).unwrap(),
        private_data: PrivateData::padded(&[0x66]).unwrap(),
    }));
}

#[rustfmt::skip]
#[test]
fn alternate_path_bytes() {
    let (local, remote) = (CommunicationId(0x0102_0304), CommunicationId(0x0506_0708));
    let mut body = vec![1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0];
    body.extend([0x12, 0x34, 0x56, 20 << 3, 0, 0, 0, 0, 0, 1, 0, 2]);
    body.extend([0x11; 16]);
    body.extend([0x22; 16]);
    body.extend([0xab, 0xcd, 0xe0, 0x68, 64, 3, 2 << 4 | 8, 19 << 3, 0x66]);
    check(0x19, &body, Message::LoadAlternatePath(LoadAlternatePath {
        local,
        remote,
        remote_qpn: Qpn::new(0x12_3456),
        remote_response_timeout: TimeoutCode::from_code(20),
        path: Path {
            local_lid: Lid(1),
            remote_lid: Lid(2),
            local_gid: Gid([0x11; 16]),
            remote_gid: Gid([0x22; 16]),
            flow_label: FlowLabel::checked(0xabcde).unwrap(),
            rate: 3,
            traffic_class: 0x68,
            hop_limit: 64,
            service_level: ServiceLevel::checked(2).unwrap(),
            subnet_local: true,
            ack_timeout: TimeoutCode::from_code(19),
        },
        private_data: PrivateData::padded(&[0x66]).unwrap(),
    }));
    let mut body = vec![1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 0, 0, 0x55];
    body.resize(84, 0);
    body.push(0x66);
    check(0x1a, &body, Message::AlternatePathResponse(AlternatePathResponse {
        local,
        remote,
        information_length: 1,
        status: AlternatePathStatus::REJECTED,
        information: PrivateData::padded(&[0x55]).unwrap(),
        private_data: PrivateData::padded(&[0x66]).unwrap(),
    }));
}

#[test]
fn other_datagrams_are_errors() {
    let good = datagram(0x14, &[]);
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        CmMad::decode(&bytes).unwrap_err().to_string()
    };
    assert_eq!(
        changed(1, 3),
        "MAD class at byte 1 is 0x3, needed 7 (connection management)"
    );
    assert_eq!(
        changed(2, 1),
        "MAD class version at byte 2 is 0x1, needed 2"
    );
    assert_eq!(
        changed(3, 1),
        "MAD method at byte 3 is 0x1, needed 3 (Send)"
    );
    assert_eq!(
        changed(17, 0x1b),
        "attribute of connection management at byte 16 is 0x1b, needed 0x10 (REQ) to 0x1a (APR)"
    );
    assert_eq!(
        CmMad::decode(&good[..255]).unwrap_err().to_string(),
        "RTU at byte 24 needs 232 bytes, found 231"
    );
}

#[test]
fn receivers_are_named_by_what_they_called_it() {
    let names = [1, 2, 3, 4, 5, 6, 7, 8];
    for attribute in 0x10..=0x1a {
        let mad = CmMad::decode(&datagram(attribute, &names)).unwrap();
        assert_eq!(mad.message.attribute(), u16::from(attribute));
        let expected = match attribute {
            0x10 | 0x17 => None,
            0x18 => Some(CommunicationId(0x0102_0304)),
            _ => Some(CommunicationId(0x0506_0708)),
        };
        assert_eq!(mad.message.receiver(), expected, "{}", mad.message.name());
    }
}

#[test]
fn mtu_codes() {
    let bytes: Vec<_> = (0..7)
        .map(|code| PathMtuCode::from_code(code).bytes())
        .collect();
    let sizes = [256, 512, 1024, 2048, 4096].map(Some);
    assert_eq!(bytes[1..6], sizes);
    assert_eq!((bytes[0], bytes[6]), (None, None));
}

#[test]
fn ip_services() {
    let service = IpService {
        protocol: IpProtocol::TCP,
        port: 7174,
    };
    assert_eq!(service.id(), ServiceId(0x0000_0000_0106_1c06));
    assert_eq!(IpService::from_id(service.id()), Some(service));
    assert_eq!(IpService::from_id(ServiceId(0x0106_1c06 | 1 << 63)), None);
    assert_eq!(IpService::from_id(ServiceId(0x0206_1c06)), None);
}

#[rustfmt::skip]
#[test]
fn ip_header_bytes() {
    let v4 = |last| IpAddr::from([10, 77, 0, last]);
    let header = IpHeader::new(v4(11), 0x99c1, v4(12)).unwrap();
    let mut bytes = [0xee; IpHeader::LENGTH + 1];
    assert_eq!(header.encode(&mut bytes), 36);
    assert_eq!(bytes, [
        0, 0x40, 0x99, 0xc1,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0, 11,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0, 12,
        0xee,
    ]);
    assert_eq!(IpHeader::decode(&bytes), Ok(header));
    let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    assert_eq!(IpHeader::new(v4(1), 1, v6), None, "two families");
    let header = IpHeader::new(v6, 1, v6).unwrap();
    header.encode(&mut bytes);
    assert_eq!((bytes[1], bytes[19]), (0x60, 1));
    assert_eq!(IpHeader::decode(&bytes), Ok(header));
    bytes[1] = 0x50;
    assert!(IpHeader::decode(&bytes).is_err(), "IP version 5");
    bytes[0] = 0x10;
    assert!(IpHeader::decode(&bytes).is_err(), "major version 1");
}

proptest! {
    /// Whatever is decoded comes back when it is encoded, and bits that the standard reserves do not get through.
    #[test]
    fn any_body_is_a_message(attribute in 0x10_u8..=0x1a, body in vec(any::<u8>(), BODY_LENGTH)) {
        let mad = CmMad::decode(&datagram(attribute, &body)).unwrap();
        prop_assert_eq!(mad.message.attribute(), u16::from(attribute));
        let again = mad.encode();
        prop_assert_eq!(CmMad::decode(&again), Ok(mad.clone()));
        for (found, given) in again[MadHeader::LENGTH..].iter().zip(&body) {
            prop_assert_eq!(found & !given, 0, "a bit that was not given: {:?}", mad);
        }
    }

    #[test]
    fn any_bytes_are_a_datagram_or_an_error(bytes in vec(any::<u8>(), 0..300)) {
        let _ = CmMad::decode(&bytes);
        let _ = IpHeader::decode(&bytes);
    }

    #[test]
    fn any_bit_of_data_matters(attribute in 0x10_u8..=0x1a, bit in 0..BODY_LENGTH * 8) {
        // Private data are at the end of every body; a changed bit there changes the message.
        let mut body = vec![0; BODY_LENGTH];
        let before = CmMad::decode(&datagram(attribute, &body)).unwrap();
        body[bit / 8] |= 1 << (bit % 8);
        let after = CmMad::decode(&datagram(attribute, &body)).unwrap();
        let same_bytes = after.encode() == before.encode();
        prop_assert_eq!(same_bytes, after == before);
        if bit / 8 >= 140 {
            prop_assert!(!same_bytes, "bit {} is lost", bit);
        }
    }
}
