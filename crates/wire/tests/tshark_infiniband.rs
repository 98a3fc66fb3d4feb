//! Wireshark's own decoder judges InfiniBand's link packets and management datagrams.
//!
//! Without `tshark` the test says so and passes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::File;
use std::process::Command;

use softfabric_units::{Gid, Guid, Lid, PartitionKey, Psn, Qpn, Time};
use softfabric_wire::Data;
use softfabric_wire::infiniband::{LinkPacket, LinkRoute, ServiceLevel, VirtualLane};
use softfabric_wire::ip::{FlowLabel, TrafficClass};
use softfabric_wire::mad::administration::rmpp::{RmppPatience, RmppSender};
use softfabric_wire::mad::administration::{
    AdministrationMad, LinkRecord, NodeRecord, component, encode_table,
};
use softfabric_wire::mad::subnet::{DirectedRoute, NodeInfo, Smp, SmpRoute, VendorId};
use softfabric_wire::mad::{ComponentMask, MAD_LENGTH, Method, NodeType};
use softfabric_wire::pcapng::{Captured, Interface, LinkType, PcapngWriter};
use softfabric_wire::rdma::{Bth, Deth, Extension, Grh, Opcode, TransportHeader};

fn datagram(queue: Qpn, qkey: u32) -> TransportHeader {
    TransportHeader {
        bth: Bth {
            opcode: Opcode::UD_SEND_ONLY,
            solicited: false,
            migrated: true,
            pad: 0,
            partition: PartitionKey::DEFAULT,
            fecn: false,
            becn: false,
            destination: queue,
            acknowledge: false,
            psn: Psn::new(3),
        },
        extension: Extension::Deth(Deth {
            qkey,
            source: queue,
        }),
        xrc_srq: 0,
    }
}

fn route(lane: VirtualLane) -> LinkRoute {
    LinkRoute {
        lane,
        level: ServiceLevel::checked(2).unwrap(),
        source: Lid(0x11),
        destination: Lid(0x22),
    }
}

fn bytes(packet: &LinkPacket<'_>) -> Vec<u8> {
    let mut bytes = vec![0; packet.length()];
    packet.encode(&mut bytes);
    bytes
}

fn management(mad: &[u8; MAD_LENGTH], queue: Qpn) -> Vec<u8> {
    let lane = if queue.as_u32() == 0 { 15 } else { 0 };
    let route = route(VirtualLane::checked(lane).unwrap());
    let qkey = if queue.as_u32() == 0 { 0 } else { 0x8001_0000 };
    let packet = LinkPacket::new(route, None, datagram(queue, qkey), Data::Bytes(mad));
    bytes(&packet)
}

/// A packet, and what tshark should say of it.
type Case = (Vec<u8>, Vec<(&'static str, String)>);

fn local_and_global() -> [Case; 2] {
    let header = datagram(Qpn::new(0x77), 5);
    let lane = VirtualLane::checked(3).unwrap();
    let local = LinkPacket::new(route(lane), None, header, Data::Bytes(b"abcde"));
    let grh = Grh {
        traffic_class: TrafficClass::from_byte(0),
        flow_label: FlowLabel::NONE,
        hop_limit: 9,
        source: Gid::from_ip("fe80::1".parse().unwrap()),
        destination: Gid::from_ip("fe80::2".parse().unwrap()),
    };
    let global = LinkPacket::new(route(lane), Some(grh), header, Data::Bytes(b"abcde"));
    [local, global].map(|packet| {
        // tshark shows CRCs in the order of the wire.
        let fields = vec![
            ("infiniband.lrh.vl", "0x03".to_owned()),
            ("infiniband.lrh.sl", "2".to_owned()),
            ("infiniband.lrh.dlid", 0x22.to_string()),
            ("infiniband.lrh.slid", 0x11.to_string()),
            (
                "infiniband.lrh.pktlen",
                ((packet.length() - 2) / 4).to_string(),
            ),
            ("infiniband.bth.destqp", "0x000077".to_owned()),
            (
                "infiniband.grh.dgid",
                packet
                    .grh
                    .map_or(String::new(), |grh| grh.destination.to_string()),
            ),
            (
                "infiniband.invariant.crc",
                format!("{:#010x}", packet.rdma.icrc.swap_bytes()),
            ),
            (
                "infiniband.variant.crc",
                format!("{:#06x}", packet.vcrc.swap_bytes()),
            ),
        ];
        (bytes(&packet), fields)
    })
}

fn directed() -> Case {
    let info = NodeInfo {
        base_version: 1,
        class_version: 1,
        node_type: NodeType::SWITCH,
        ports: 36,
        node: Guid(0x1111),
        vendor: VendorId::new(0x2c9),
        ..NodeInfo::default()
    };
    let mut smp = Smp::set(
        SmpRoute::Directed(DirectedRoute::along(&[1, 2]).unwrap()),
        0,
        &info,
    );
    smp.transaction = 0x99;
    let smp = smp.response(0, smp.data);
    let fields = vec![
        ("infiniband.mad.mgmtclass", "0x81".to_owned()),
        ("infiniband.mad.method", "0x81".to_owned()),
        (
            "infiniband.mad.transactionid",
            "0x0000000000000099".to_owned(),
        ),
        ("infiniband.smpdirected.hopcount", "0x02".to_owned()),
        ("infiniband.nodeinfo.nodetype", "0x02".to_owned()),
        ("infiniband.nodeinfo.numports", "0x24".to_owned()),
        (
            "infiniband.nodeinfo.nodeguid",
            "0x0000000000001111".to_owned(),
        ),
        ("infiniband.nodeinfo.vendorid", "0x0002c9".to_owned()),
    ];
    (management(&smp.encode(), Qpn::SUBNET_MANAGEMENT), fields)
}

fn query_and_answer() -> [Case; 2] {
    let record = NodeRecord {
        lid: Lid(7),
        ..NodeRecord::default()
    };
    let mask = component::<NodeRecord>("lid", "");
    let query = AdministrationMad::query(Method::GET_TABLE, mask, &record);
    let asked = vec![
        ("infiniband.mad.mgmtclass", "0x03".to_owned()),
        ("infiniband.mad.method", "0x12".to_owned()),
        ("infiniband.sa.attributeoffset", "0x000e".to_owned()),
        (
            "infiniband.sa.componentmask",
            "0x0000000000000001".to_owned(),
        ),
        ("infiniband.sa.lid", "0x0007".to_owned()),
    ];
    let links = [LinkRecord::default(); 60];
    let template = AdministrationMad {
        attribute_offset: 1,
        ..AdministrationMad::query(
            Method::GET_TABLE_RESPONSE,
            ComponentMask::NONE,
            &LinkRecord::default(),
        )
    };
    let patience = RmppPatience {
        timeout: softfabric_units::Span::micros(1),
        retries: 1,
    };
    let mut sender = RmppSender::new(template.encode(), 56, encode_table(&links), patience);
    let segment = sender.poll_transmit(Time::ZERO).unwrap();
    let answered = vec![
        ("infiniband.mad.method", "0x92".to_owned()),
        ("infiniband.rmpp.rmpptype", "0x01".to_owned()),
        // First and active; tshark takes a bit of the response time for a flag.
        ("infiniband.rmpp.rmppflags", "0x0b".to_owned()),
        ("infiniband.rmpp.segmentnumber", "0x00000001".to_owned()),
        (
            "infiniband.rmpp.payloadlength",
            format!("{:#010x}", 60 * 8 + 3 * 20),
        ),
    ];
    let queue = Qpn::GENERAL_SERVICES;
    [
        (management(&query.encode(), queue), asked),
        (management(&segment, queue), answered),
    ]
}

#[test]
fn tshark_reads_infiniband() {
    if let Err(error) = Command::new("tshark").arg("--version").output() {
        println!("SKIPPED tshark_reads_infiniband: `tshark` does not start: {error}");
        return;
    }
    let mut cases = Vec::from(local_and_global());
    cases.push(directed());
    cases.extend(query_and_answer());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("infiniband.pcapng");
    let mut writer = PcapngWriter::new(File::create(&path).unwrap(), "softfabric").unwrap();
    let interface = writer
        .add_interface_of(LinkType::InfiniBand, &Interface::default())
        .unwrap();
    for (bytes, _) in &cases {
        writer
            .write(&Captured::whole(Time::ZERO, interface, bytes))
            .unwrap();
    }
    writer.finish().unwrap();
    for (index, (_, fields)) in cases.iter().enumerate() {
        let mut command = Command::new("tshark");
        command.args(["-T", "fields", "-E", "separator=|", "-Y"]);
        command.arg(format!("frame.number == {}", index + 1));
        for (field, _) in fields {
            command.args(["-e", field]);
        }
        command.args(["-e", "_ws.malformed", "-e", "_ws.expert.message"]);
        let output = command.arg("-r").arg(&path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let found: Vec<_> = text.trim_end_matches('\n').split('|').collect();
        let mut expected: Vec<_> = fields.iter().map(|(_, value)| value.as_str()).collect();
        expected.extend(["", ""]);
        assert_eq!(found, expected, "frame {}", index + 1);
    }
}
