use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::Data;

fn header(flags: TcpFlags, options: TcpOptions) -> TcpHeader {
    TcpHeader {
        source_port: 0xc000,
        destination_port: 5201,
        sequence: 0x0102_0304,
        acknowledgement: 0x0506_0708,
        flags,
        window: 0xfaf0,
        checksum: 0,
        urgent: 0,
        options,
    }
}

/// Written by hand, in the layout in which ours are sent.
#[test]
fn bytes_of_a_syn() {
    let options = TcpOptions {
        maximum_segment: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps {
            value: 0x11,
            echo: 0,
        }),
        sack: SackBlocks::default(),
    };
    let header = header(TcpFlags::SYN, options);
    let bytes = [
        0xc0, 0x00, 0x14, 0x51, 1, 2, 3, 4, 5, 6, 7, 8, 0xb0, 0x02, 0xfa, 0xf0, 0, 0, 0, 0, //
        2, 4, 0x05, 0xb4, // maximum segment size
        1, 1, 4, 2, // SACK permitted
        1, 1, 8, 10, 0, 0, 0, 0x11, 0, 0, 0, 0, // timestamps
        1, 3, 3, 7, // window scale
    ];
    let mut written = [0; TcpHeader::LONGEST];
    assert_eq!(header.encode(&mut written), bytes.len());
    assert_eq!(written[..bytes.len()], bytes);
    assert_eq!(TcpHeader::decode(&bytes), Ok((header, 44)));
    // The order that Linux has: SACK permitted and timestamps pad each other.
    let linux = [
        0xc0, 0x00, 0x14, 0x51, 1, 2, 3, 4, 5, 6, 7, 8, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0, 0, //
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 0x11, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    assert_eq!(TcpHeader::decode(&linux), Ok((header, 40)));
}

#[test]
fn bytes_of_an_acknowledgement_with_holes() {
    let mut sack = SackBlocks::default();
    sack.push(0x1000, 0x2000);
    sack.push(0x3000, 0x3001);
    let options = TcpOptions {
        sack,
        ..TcpOptions::default()
    };
    let header = header(TcpFlags::ACK | TcpFlags::ECE, options);
    let mut written = [0; TcpHeader::LONGEST];
    assert_eq!(header.encode(&mut written), 40);
    assert_eq!(written[12..14], [0xa0, 0x50]);
    assert_eq!(
        written[20..40],
        [
            1, 1, 5, 18, 0, 0, 0x10, 0, 0, 0, 0x20, 0, 0, 0, 0x30, 0, 0, 0, 0x30, 1
        ]
    );
    let mut unpadded = [0; 40];
    assert_eq!(options.encode_unpadded(&mut unpadded), 18);
    assert_eq!(TcpOptions::decode(&unpadded[..18]), Ok(options));
}

/// The checksum by hand: 10.0.0.1 to 10.0.0.2, a header of 20 bytes, payload 01 02 03.
#[test]
fn checksum_by_hand() {
    let mut plain = header(TcpFlags::ACK, TcpOptions::default());
    plain.sequence = 0;
    plain.acknowledgement = 0;
    plain.window = 0;
    let packet = TcpPacket {
        header: plain,
        payload: Data::Bytes(&[1, 2, 3]),
    };
    let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    // 0a00+0001+0a00+0002+0006+0017 + c000+1451+5010 + 0102+0300
    let sum: u32 = 0x0a00 + 1 + 0x0a00 + 2 + 6 + 23 + 0xc000 + 0x1451 + 0x5010 + 0x0102 + 0x0300;
    let folded = ((sum & 0xffff) + (sum >> 16)) as u16;
    let summed = packet.with_checksum(from.into(), to.into());
    assert_eq!(summed.header.checksum, !folded);
    assert!(summed.checksum_is_right(from.into(), to.into()));
    assert!(!summed.checksum_is_right(from.into(), from.into()));
}

#[test]
fn errors_say_what_and_where() {
    let decode = |bytes: &[u8]| TcpHeader::decode(bytes).unwrap_err().to_string();
    let mut bytes = [0; 24];
    assert_eq!(
        decode(&bytes[..19]),
        "TCP header at byte 0 needs 20 bytes, found 19"
    );
    bytes[12] = 0x40;
    assert_eq!(
        decode(&bytes),
        "TCP data offset at byte 12 is 0x4000, needed 5 words or more"
    );
    bytes[12] = 0x52;
    assert_eq!(
        decode(&bytes),
        "TCP reserved bits at byte 12 is 0x5200, needed zeros"
    );
    bytes[12] = 0x70;
    assert_eq!(
        decode(&bytes),
        "TCP options at byte 0 needs 28 bytes, found 24"
    );
    bytes[12] = 0x60;
    bytes[20..].copy_from_slice(&[3, 4, 0, 0]);
    assert_eq!(
        decode(&bytes),
        "TCP option length at byte 21 is 0x4, needed 3 for a window scale"
    );
    bytes[20..].copy_from_slice(&[2, 5, 0, 0]);
    assert_eq!(
        decode(&bytes),
        "TCP option length at byte 21 is 0x5, needed 2 or more, within the header"
    );
    // An option that nobody here knows is skipped, and nothing after the end counts.
    bytes[20..].copy_from_slice(&[254, 3, 9, 0]);
    assert!(TcpHeader::decode(&bytes).is_ok());
    bytes[20..].copy_from_slice(&[0, 3, 9, 9]);
    assert!(TcpHeader::decode(&bytes).is_ok());
}

prop_compose! {
    fn any_options()(
        maximum_segment in any::<Option<u16>>(), window_scale in any::<Option<u8>>(), sack_permitted in any::<bool>(),
        timestamps in any::<Option<(u32, u32)>>(), blocks in proptest::collection::vec(any::<(u32, u32)>(), 0..=2),
    ) -> TcpOptions {
        let mut sack = SackBlocks::default();
        // Options that go with SYN and blocks never meet; together they would not fit.
        let with_syn = maximum_segment.is_some() || sack_permitted || window_scale.is_some();
        if !with_syn {
            blocks.iter().for_each(|&(start, end)| sack.push(start, end));
        }
        let timestamps = timestamps.map(|(value, echo)| Timestamps { value, echo });
        TcpOptions { maximum_segment, window_scale, sack_permitted, timestamps, sack }
    }
}

proptest! {
    #[test]
    fn any_segment_comes_back(
        words in any::<(u32, u32)>(), ports in any::<(u16, u16)>(), rest in any::<(u16, u16, u16)>(), flags in 0_u16..0x200,
        options in any_options(), payload in proptest::collection::vec(any::<u8>(), 0..100), v6 in any::<bool>(),
    ) {
        let header = TcpHeader {
            source_port: ports.0, destination_port: ports.1, sequence: words.0, acknowledgement: words.1,
            flags: TcpFlags::from_bits(flags), window: rest.0, checksum: rest.1, urgent: rest.2, options,
        };
        let (from, to): (IpAddr, IpAddr) = if v6 {
            (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::from(u128::MAX).into())
        } else {
            (Ipv4Addr::LOCALHOST.into(), Ipv4Addr::BROADCAST.into())
        };
        let packet = TcpPacket { header, payload: Data::Bytes(&payload) }.with_checksum(from, to);
        let mut bytes = vec![0; packet.length()];
        prop_assert_eq!(packet.encode(&mut bytes), bytes.len());
        prop_assert_eq!(TcpPacket::decode(&bytes), Ok(packet));
        prop_assert!(packet.checksum_is_right(from, to));
        let mut short = [0; 60];
        let unpadded = options.encode_unpadded(&mut short);
        prop_assert_eq!(TcpOptions::decode(&short[..unpadded]), Ok(options));
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = TcpPacket::decode(&bytes);
    }
}
