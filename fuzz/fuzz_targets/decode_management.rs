//! Any bytes are an error, or a management datagram that comes back when it is encoded; transfers survive any segment.

#![no_main]

use libfuzzer_sys::fuzz_target;
use softfabric_units::{Span, Time};
use softfabric_wire::infiniband::{FlowControl, LinkPacket};
use softfabric_wire::mad::administration::rmpp::{RmppHeader, RmppPatience, RmppReceiver, RmppSender};
use softfabric_wire::mad::administration::{AdministrationMad, LinkRecord, NodeRecord, decode_table};
use softfabric_wire::mad::congestion::CongestionMad;
use softfabric_wire::mad::performance::PerformanceMad;
use softfabric_wire::mad::subnet::{NextHop, Notice, Smp, SmpRoute};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(smp) = Smp::decode(bytes) {
        assert_eq!(Smp::decode(&smp.encode()), Ok(smp));
        Notice::from_smp(&smp.data).trap();
        if let SmpRoute::Directed(mut route) = smp.route {
            let mut hops = 0;
            while let NextHop::Port(_) = route.advance(Some(1), true) {
                hops += 1;
                assert!(hops < 65, "a directed route ends");
            }
        }
    }
    if let Ok(mad) = AdministrationMad::decode(bytes) {
        assert_eq!(AdministrationMad::decode(&mad.encode()), Ok(mad));
        let _ = decode_table::<NodeRecord>(&mad.data, mad.attribute_offset);
        let _ = decode_table::<LinkRecord>(&mad.data, mad.attribute_offset);
    }
    if let Ok(mad) = PerformanceMad::decode(bytes) {
        assert_eq!(PerformanceMad::decode(&mad.encode()), Ok(mad));
    }
    if let Ok(mad) = CongestionMad::decode(bytes) {
        assert_eq!(CongestionMad::decode(&mad.encode()), Ok(mad));
    }
    if let Ok(packet) = FlowControl::decode(bytes) {
        assert_eq!(packet.encode(), bytes[..FlowControl::LENGTH]);
    }
    if let Ok(packet) = LinkPacket::decode(bytes) {
        let mut again = vec![0; packet.length()];
        packet.encode(&mut again);
        assert_eq!(LinkPacket::decode(&again), Ok(packet));
        packet.icrc_is_right();
        packet.vcrc_is_right();
    }
    let patience = RmppPatience {
        timeout: Span::micros(1),
        retries: 2,
    };
    let mut receiver = RmppReceiver::new(56, 4_000);
    let mut sender = RmppSender::new([0; 256], 56, bytes.to_vec(), patience);
    for mad in bytes.chunks_exact(256) {
        let mad = mad.try_into().expect("256 bytes");
        receiver.handle(mad, |_| ());
        sender.poll_transmit(Time::ZERO);
        sender.handle(Time::ZERO, &RmppHeader::decode(mad).expect("256 bytes"));
    }
});
