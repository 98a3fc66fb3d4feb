//! Frames: bytes written by hand, and properties over all of them.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use softfabric_units::{Class, ClassMask, Gid};

use super::*;
use crate::ethernet::{Quanta, VlanId};
use crate::ip::{Ecn, TrafficClass};
use crate::rdma::tests::any_header;
use crate::rdma::{Grh, Opcode};

fn any_class() -> impl Strategy<Value = TrafficClass> {
    any::<u8>().prop_map(TrafficClass::from_byte)
}

fn any_network() -> impl Strategy<Value = RoceNetwork> {
    let udp = || {
        any::<(u16, u16)>().prop_map(|(source_port, checksum)| RoceUdp {
            source_port,
            checksum,
        })
    };
    let v4 = (any_class(), any::<(u16, bool, u8, u32, u32)>(), udp()).prop_map(
        |(
            traffic_class,
            (identification, dont_fragment, time_to_live, source, destination),
            udp,
        )| {
            RoceNetwork::Ipv4 {
                ip: Ipv4Header {
                    traffic_class,
                    identification,
                    dont_fragment,
                    fragment: Fragment::WHOLE,
                    time_to_live,
                    source: Ipv4Addr::from(source),
                    destination: Ipv4Addr::from(destination),
                },
                udp,
            }
        },
    );
    let global = || {
        (
            any_class(),
            0_u32..1 << 20,
            any::<(u8, u128, u128)>(),
            udp(),
        )
            .prop_map(
                |(traffic_class, label, (hop_limit, source, destination), udp)| RoceNetwork::Ipv6 {
                    ip: Ipv6Header {
                        traffic_class,
                        flow_label: crate::ip::FlowLabel::checked(label).unwrap(),
                        hop_limit,
                        source: Ipv6Addr::from(source),
                        destination: Ipv6Addr::from(destination),
                    },
                    udp,
                },
            )
    };
    let v1 = global().prop_map(|network| match network {
        RoceNetwork::Ipv6 { ip, .. } => RoceNetwork::Grh(Grh {
            traffic_class: ip.traffic_class,
            flow_label: ip.flow_label,
            hop_limit: ip.hop_limit,
            source: Gid(ip.source.octets()),
            destination: Gid(ip.destination.octets()),
        }),
        other => other,
    });
    prop_oneof![v4, global(), v1]
}

fn any_tag() -> impl Strategy<Value = Option<VlanTag>> {
    proptest::option::of((0_u8..8, any::<bool>(), 0_u16..4096).prop_map(
        |(priority, drop, vlan)| VlanTag {
            priority: Class::new(priority),
            drop_eligible: drop,
            vlan: VlanId::checked(vlan).unwrap(),
        },
    ))
}

/// The bytes of any frame that we can write.
fn any_frame_bytes() -> impl Strategy<Value = Vec<u8>> {
    let roce = (
        any_network(),
        any_header(),
        proptest::collection::vec(any::<u8>(), 0..64),
    )
        .prop_map(|(network, header, payload)| {
            let payload = match header.bth.opcode.has_payload() {
                true => Data::Bytes(&payload),
                false => Data::EMPTY,
            };
            let frame = RoceFrame {
                destination: MacAddress([2, 0, 0, 0, 0, 2]),
                source: MacAddress([2, 0, 0, 0, 0, 1]),
                tag: None,
                network,
                header,
                payload,
            };
            frame.to_frame().to_bytes()
        });
    let control =
        (any::<u8>(), any::<[u16; 8]>(), any::<bool>()).prop_map(|(enabled, quanta, all)| {
            let source = MacAddress([2, 0, 0, 0, 0, 1]);
            let quanta = quanta.map(Quanta);
            match all {
                true => Frame::pause(source, PauseFrame { quanta: quanta[0] }),
                false => Frame::pfc(
                    source,
                    PfcFrame {
                        enabled: ClassMask(enabled),
                        quanta,
                    },
                ),
            }
            .to_bytes()
        });
    let tagged = |bytes: Vec<u8>, tag: Option<VlanTag>| {
        let frame = Frame::decode(&bytes).unwrap();
        Frame { tag, ..frame }.to_bytes()
    };
    (prop_oneof![4 => roce, 1 => control], any_tag())
        .prop_map(move |(bytes, tag)| tagged(bytes, tag))
}

/// Decoding must not panic, and what decodes must encode to the same bytes.
fn same_or_error(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(frame) = Frame::decode(bytes) {
        prop_assert_eq!(&frame.to_bytes(), bytes, "{:?}", frame);
        prop_assert_eq!(frame.length(), bytes.len());
        if let Body::Roce(packet) = frame.body {
            packet.icrc_is_right();
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_we_write_comes_back(bytes in any_frame_bytes()) {
        let frame = Frame::decode(&bytes).unwrap();
        prop_assert_eq!(&frame.to_bytes(), &bytes);
        if let Body::Roce(packet) = frame.body {
            prop_assert!(packet.icrc_is_right());
        }
    }

    #[test]
    fn any_bytes_are_a_frame_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
        same_or_error(&bytes)?;
    }

    #[test]
    fn damaged_frames_are_frames_or_errors(
        bytes in any_frame_bytes(), damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(), whole in any::<bool>(), tail in proptest::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut bytes = bytes;
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        bytes.extend(tail);
        same_or_error(&bytes)?;
    }

    #[test]
    fn ecn_marks_keep_the_icrc(bytes in any_frame_bytes()) {
        if let Body::Roce(packet) = Frame::decode(&bytes).unwrap().body {
            let network = packet.network.with_ecn(Ecn::CongestionExperienced);
            prop_assert_eq!(network.traffic_class().ecn, Ecn::CongestionExperienced);
            let marked = RocePacket { network, ..packet };
            prop_assert!(marked.icrc_is_right());
        }
    }
}

#[rustfmt::skip]
#[test]
fn pfc_frame_bytes() {
    let pfc = PfcFrame::uniform(ClassMask::of(Class::new(3)), Quanta(0xffff));
    let frame = Frame::pfc(MacAddress([2, 0, 0, 0, 0, 1]), pfc);
    let mut expected = vec![0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 0x01, 0x01, 0, 0b1000];
    expected.extend([0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    expected.resize(60, 0);
    assert_eq!(frame.to_bytes(), expected);
    assert_eq!(Frame::decode(&expected), Ok(frame));
}

/// An RC SEND Only of nothing over IPv4: 58 bytes, padded to 60.
#[rustfmt::skip]
#[test]
fn short_frame_bytes() {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    bytes.extend([0x45, 0x02, 0, 44, 0, 0, 0x40, 0, 64, 17, 0x26, 0xbd, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend([0xc0, 0, 0x12, 0xb7, 0, 24, 0, 0]);
    bytes.extend([0x04, 0, 0xff, 0xff, 0, 0, 0, 17, 0x80, 0, 0, 9]);
    let icrc_at = bytes.len();
    bytes.extend([0; 4]);
    bytes.extend([0; 2]);
    let decoded = Frame::decode(&bytes).unwrap();
    assert_eq!(decoded.padding, Data::Zeros(2));
    let Body::Roce(packet) = decoded.body else { panic!("{decoded:?}") };
    assert_eq!(packet.rdma.header.bth.opcode, Opcode::RC_SEND_ONLY);
    assert!(!packet.icrc_is_right());
    let frame = RoceFrame {
        destination: decoded.destination,
        source: decoded.source,
        tag: None,
        network: RoceNetwork::v2(
            Gid::from(Ipv4Addr::new(10, 0, 0, 1)),
            Gid::from(Ipv4Addr::new(10, 0, 0, 2)),
            0xc000,
            TrafficClass::from_byte(2),
        ),
        header: packet.rdma.header,
        payload: Data::EMPTY,
    };
    let written = frame.to_frame().to_bytes();
    let icrc = packet.computed_icrc().to_le_bytes();
    bytes[icrc_at..icrc_at + 4].copy_from_slice(&icrc);
    assert_eq!(written, bytes);
}

#[test]
fn what_is_not_roce_is_kept() {
    // Other EtherTypes, another UDP port, a fragment.
    let mut arp = vec![0xff; 12];
    arp.extend([0x08, 0x06, 1, 2, 3]);
    assert!(matches!(
        Frame::decode(&arp).unwrap().body,
        Body::Other {
            ether_type: EtherType(0x0806),
            bytes: Data::Bytes([1, 2, 3]),
        }
    ));
    let ip = Ipv4Header {
        traffic_class: TrafficClass::default(),
        identification: 7,
        dont_fragment: false,
        fragment: Fragment {
            more: true,
            offset: 0,
        },
        time_to_live: 1,
        source: Ipv4Addr::LOCALHOST,
        destination: Ipv4Addr::LOCALHOST,
    };
    for (fragment, port) in [(ip.fragment, ROCE_PORT), (Fragment::WHOLE, 53)] {
        let mut datagram = [0; 12];
        UdpHeader {
            source_port: 1,
            destination_port: port,
            checksum: 0,
        }
        .encode(4, &mut datagram);
        let body = Body::Ipv4 {
            header: Ipv4Header { fragment, ..ip },
            protocol: IpProtocol::UDP,
            payload: Data::Bytes(&datagram),
        };
        let frame = Frame::new(MacAddress([1; 6]), MacAddress([2; 6]), None, body);
        assert_eq!(Frame::decode(&frame.to_bytes()), Ok(frame));
    }
}

#[test]
fn errors_count_from_the_first_byte_of_the_frame() {
    let tag = Some(VlanTag::default());
    let frame = |opcode: u8| {
        let mut bytes = vec![0; 12];
        bytes.extend([0x81, 0, 0, 0, 0x86, 0xdd]);
        bytes.extend([0x60, 0, 0, 0, 0, 24, 17, 1]);
        bytes.extend([0; 32]);
        bytes.extend([0, 9, 0x12, 0xb7, 0, 24, 0, 0, opcode, 0]);
        bytes.extend([0; 14]);
        bytes
    };
    assert_eq!(Frame::decode(&frame(4)).unwrap().tag, tag);
    let message = |bytes: &[u8]| Frame::decode(bytes).unwrap_err().to_string();
    assert!(message(&frame(0x15)).starts_with("BTH opcode at byte 66 is 0x15"));
    assert_eq!(
        message(&frame(0x0c)),
        "RETH at byte 78 needs 16 bytes, found 4"
    );
    assert_eq!(
        message(&frame(4)[..81]),
        "IPv6 payload at byte 58 needs 24 bytes, found 23"
    );
    let mut bytes = frame(4);
    bytes[63] = 23;
    assert_eq!(
        message(&bytes),
        "UDP length at byte 62 is 0x17, needed the length of the IP payload"
    );
}
