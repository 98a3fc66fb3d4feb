//! Wireshark's own decoder judges what we write: every opcode over every network, tags, congestion, PAUSE and PFC.
//!
//! Without `tshark` the test says so and passes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;

use softfabric_units::{Class, Gid, MacAddress, Msn, PartitionKey, Psn, Qpn, Rate, Time};
use softfabric_wire::ethernet::{PauseFrame, PfcFrame, Quanta, VlanId, VlanTag};
use softfabric_wire::ip::{Dscp, Ecn, TrafficClass};
use softfabric_wire::pcapng::{Captured, Direction, Interface, PcapngWriter};
use softfabric_wire::rdma::{
    Aeth, AtomicEth, Bth, Deth, Extension, ExtensionKind, Opcode, Reth, Service, Syndrome,
    TransportHeader,
};
use softfabric_wire::{Data, Frame, RoceFrame, RoceNetwork};

const ONE: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 1]);
const TWO: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 2]);
const PAYLOAD: usize = 61;

const INTERFACES: [&str; 2] = ["leaf1/port3", "host2"];
const REMARK: &str = "a remark";

/// What tshark is asked for. A field that a case does not name must be absent.
const FIELDS: &[&str] = &[
    "frame.time_epoch",
    "frame.interface_name",
    "frame.packet_flags_direction",
    "frame.len",
    "vlan.priority",
    "vlan.id",
    "ip.dsfield",
    "ip.checksum.status",
    "infiniband.grh.nxthdr",
    "infiniband.grh.dgid",
    "infiniband.bth.opcode",
    "infiniband.bth.padcnt",
    "infiniband.bth.m",
    "infiniband.bth.p_key",
    "infiniband.bth.destqp",
    "infiniband.bth.a",
    "infiniband.bth.psn",
    "infiniband.reth.va",
    "infiniband.reth.r_key",
    "infiniband.reth.dmalen",
    "infiniband.atomiceth.swapdt",
    "infiniband.atomiceth.cmpdt",
    "infiniband.aeth.syndrome",
    "infiniband.aeth.msn",
    "infiniband.atomicacketh.origremdt",
    "infiniband.deth.q_key",
    "infiniband.deth.srcqp",
    "infiniband.immdt",
    "infiniband.ieth",
    "infiniband.invariant.crc",
    "macc.pause_time",
    "macc.cbfc.enbv",
    "macc.cbfc.pause_time.c3",
    "macc.cbfc.pause_time.c4",
    "_ws.expert.message",
    "_ws.malformed",
];

/// A frame, and what tshark should say of it beside the fields that all frames have.
struct Case {
    bytes: Vec<u8>,
    fields: Vec<(&'static str, String)>,
}

fn class() -> TrafficClass {
    TrafficClass {
        dscp: Dscp::checked(26).unwrap(),
        ecn: Ecn::Capable0,
    }
}

fn networks() -> [RoceNetwork; 3] {
    let gid = |text: &str| Gid::from_ip(text.parse::<IpAddr>().unwrap());
    let v4 = |last| Gid::from(Ipv4Addr::new(10, 0, 0, last));
    [
        RoceNetwork::v2(v4(1), v4(2), 0xc0de, class()),
        RoceNetwork::v2(gid("fd00::1"), gid("fd00::2"), 0xc0de, class()),
        RoceNetwork::v1(gid("fe80::1"), gid("fe80::2"), class()),
    ]
}

fn header(opcode: Opcode) -> TransportHeader {
    let reth = Reth {
        address: 0x1122_3344_5566_7788,
        rkey: 0x99aa_bbcc,
        length: 4096,
    };
    let aeth = Aeth {
        syndrome: Syndrome::ACK,
        msn: Msn::new(77),
    };
    let deth = Deth {
        qkey: 0x8001_0000,
        source: Qpn::new(0x22),
    };
    let atomic = AtomicEth {
        address: 0x1000,
        rkey: 0x0102_0304,
        swap_or_add: 5,
        compare: 6,
    };
    let extension = match opcode.extension() {
        ExtensionKind::None => Extension::None,
        ExtensionKind::Reth => Extension::Reth(reth),
        ExtensionKind::RethImmediate => Extension::RethImmediate(reth, 0xdead_beef),
        ExtensionKind::Immediate => Extension::Immediate(0xdead_beef),
        ExtensionKind::Invalidate => Extension::Invalidate(0xfeed_f00d),
        ExtensionKind::Aeth => Extension::Aeth(aeth),
        ExtensionKind::AethAtomic => Extension::AethAtomic(aeth, 0x0807_0605_0403_0201),
        ExtensionKind::Atomic => Extension::Atomic(atomic),
        ExtensionKind::Deth => Extension::Deth(deth),
        ExtensionKind::DethImmediate => Extension::DethImmediate(deth, 0xdead_beef),
        ExtensionKind::Notification => Extension::Notification,
    };
    TransportHeader {
        bth: Bth {
            opcode,
            solicited: false,
            migrated: true,
            pad: 0,
            partition: PartitionKey::DEFAULT,
            fecn: false,
            becn: opcode == Opcode::CNP,
            destination: Qpn::new(0x12_3456),
            acknowledge: true,
            psn: Psn::new(0x65_4321),
        },
        extension,
        xrc_srq: if opcode.has_xrc() { 9 } else { 0 },
    }
}

fn roce_case(opcode: Opcode, network: RoceNetwork, tag: Option<VlanTag>) -> Case {
    let frame = RoceFrame {
        destination: TWO,
        source: ONE,
        tag,
        network,
        header: header(opcode),
        payload: Data::Zeros(if opcode.has_payload() { PAYLOAD } else { 0 }),
    };
    let bytes = frame.to_frame().to_bytes();
    let decoded = Frame::decode(&bytes).unwrap();
    let softfabric_wire::Body::Roce(packet) = decoded.body else {
        panic!("{decoded:?}");
    };
    let pad = if opcode.has_payload() { 3 } else { 0 };
    let mut fields = vec![
        ("infiniband.bth.opcode", opcode.code().to_string()),
        ("infiniband.bth.padcnt", pad.to_string()),
        ("infiniband.bth.m", "1".to_owned()),
        ("infiniband.bth.p_key", "65535".to_owned()),
        ("infiniband.bth.destqp", "0x123456".to_owned()),
        ("infiniband.bth.a", "1".to_owned()),
        ("infiniband.bth.psn", 0x65_4321.to_string()),
    ];
    if let Some(tag) = tag {
        fields.push(("vlan.priority", tag.priority.to_string()));
        fields.push(("vlan.id", tag.vlan.as_u16().to_string()));
    }
    match network {
        RoceNetwork::Ipv4 { .. } => {
            fields.push(("ip.dsfield", "0x6a".to_owned()));
            fields.push(("ip.checksum.status", "1".to_owned()));
        }
        RoceNetwork::Ipv6 { .. } => {}
        RoceNetwork::Grh(grh) => {
            fields.push(("infiniband.grh.nxthdr", "27".to_owned()));
            fields.push(("infiniband.grh.dgid", grh.destination.to_string()));
        }
    }
    // Of CNP and XRC, tshark reads the BTH and leaves the rest as bytes.
    let service = opcode.service();
    if service != Service::CongestionNotification && service != Service::ExtendedReliableConnection
    {
        // It shows the bytes in the order of the wire.
        let icrc = packet.rdma.icrc.swap_bytes();
        fields.push(("infiniband.invariant.crc", format!("{icrc:#010x}")));
        extension_fields(packet.rdma.header.extension, &mut fields);
    }
    Case { bytes, fields }
}

fn extension_fields(extension: Extension, fields: &mut Vec<(&'static str, String)>) {
    let mut say = |field, value: String| fields.push((field, value));
    match extension {
        Extension::Reth(reth) | Extension::RethImmediate(reth, _) => {
            say("infiniband.reth.va", format!("{:#018x}", reth.address));
            say("infiniband.reth.r_key", format!("{:#010x}", reth.rkey));
            say("infiniband.reth.dmalen", reth.length.to_string());
        }
        Extension::Aeth(aeth) | Extension::AethAtomic(aeth, _) => {
            say("infiniband.aeth.syndrome", "31".to_owned());
            say("infiniband.aeth.msn", aeth.msn.as_u32().to_string());
        }
        Extension::Atomic(atomic) => {
            say("infiniband.reth.va", format!("{:#018x}", atomic.address));
            say("infiniband.reth.r_key", format!("{:#010x}", atomic.rkey));
            say(
                "infiniband.atomiceth.swapdt",
                atomic.swap_or_add.to_string(),
            );
            say("infiniband.atomiceth.cmpdt", atomic.compare.to_string());
        }
        Extension::Deth(deth) | Extension::DethImmediate(deth, _) => {
            say("infiniband.deth.q_key", format!("{:#018x}", deth.qkey));
            say(
                "infiniband.deth.srcqp",
                format!("{:#010x}", deth.source.as_u32()),
            );
        }
        _ => {}
    }
    // tshark has two of these twice, as a header and as its value.
    match extension {
        Extension::AethAtomic(_, original) => {
            say("infiniband.atomicacketh.origremdt", original.to_string());
        }
        Extension::Immediate(data)
        | Extension::RethImmediate(_, data)
        | Extension::DethImmediate(_, data) => {
            say("infiniband.immdt", format!("{data:08x},{data:08x}"));
        }
        Extension::Invalidate(key) => say("infiniband.ieth", format!("{key:08x},{key:08x}")),
        _ => {}
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for network in networks() {
        for opcode in Opcode::ALL {
            cases.push(roce_case(*opcode, network, None));
        }
        let tag = VlanTag {
            priority: Class::new(5),
            drop_eligible: true,
            vlan: VlanId::checked(0x123).unwrap(),
        };
        cases.push(roce_case(Opcode::RC_SEND_ONLY, network, Some(tag)));
        cases.push(roce_case(Opcode::CNP, network, Some(tag)));
    }
    cases.push(Case {
        bytes: Frame::pause(
            ONE,
            PauseFrame {
                quanta: Quanta(0x1234),
            },
        )
        .to_bytes(),
        fields: vec![("macc.pause_time", 0x1234.to_string())],
    });
    let pfc = PfcFrame::default()
        .with(Class::new(0), Quanta::RESUME)
        .with(Class::new(3), Quanta::MAX);
    cases.push(Case {
        bytes: Frame::pfc(ONE, pfc).to_bytes(),
        fields: vec![
            ("macc.cbfc.enbv", "0x0009".to_owned()),
            ("macc.cbfc.pause_time.c3", "65535".to_owned()),
            ("macc.cbfc.pause_time.c4", "0".to_owned()),
        ],
    });
    cases
}

/// When frame `index` passes: at any part of a second, and not a whole number of nanoseconds.
fn time(index: usize) -> Time {
    Time::from_picos(5_000_000_000_000 + index as u64 * 20_001_234_567)
}

/// Writes the cases, each interface in its turn.
fn write(path: &Path, cases: &[Case]) {
    let file = BufWriter::new(File::create(path).unwrap());
    let mut writer = PcapngWriter::new(file, "softfabric").unwrap();
    let interfaces = INTERFACES.map(|name| {
        let interface = Interface {
            name,
            description: "a port of a test",
            speed: Some(Rate::gbps(400)),
        };
        writer.add_interface(&interface).unwrap()
    });
    for (index, case) in cases.iter().enumerate() {
        let captured = Captured {
            direction: Some(Direction::Outbound),
            comment: REMARK,
            ..Captured::whole(time(index), interfaces[index % 2], &case.bytes)
        };
        writer.write(&captured).unwrap();
    }
    writer.finish().unwrap();
}

fn tshark(path: &Path) -> String {
    let mut command = Command::new("tshark");
    command.args(["-o", "ip.check_checksum:TRUE"]);
    // RoCEv2 sends no UDP checksum over IPv6 either, as RFC 6935 allows tunnels.
    command.args(["-o", "udp.ignore_ipv6_zero_checksum:TRUE"]);
    // These two guess an upper protocol from the payload.
    command.args(["--disable-protocol", "rpcordma"]);
    command.args(["--disable-heuristic", "rpcrdma_infiniband"]);
    command.args(["-T", "fields", "-E", "separator=|"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.arg("-r").arg(path).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tshark_reads_what_we_write() {
    if let Err(error) = Command::new("tshark").arg("--version").output() {
        // Written past the capture of a test's output, so that it is seen.
        let mut out = io::stderr();
        writeln!(
            out,
            "SKIPPED tshark_reads_what_we_write: `tshark` does not start: {error}"
        )
        .unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("written.pcapng");
    let cases = cases();
    write(&path, &cases);
    let text = tshark(&path);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), cases.len(), "{text}");
    for (index, (line, case)) in lines.iter().zip(&cases).enumerate() {
        let nanos = time(index).as_nanos();
        let common = [
            (
                "frame.time_epoch",
                format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000),
            ),
            ("frame.interface_name", INTERFACES[index % 2].to_owned()),
            ("frame.packet_flags_direction", "0x00000002".to_owned()),
            ("frame.len", case.bytes.len().to_string()),
            // A remark is the only thing that there is to say.
            ("_ws.expert.message", REMARK.to_owned()),
        ];
        let found: Vec<_> = line.split('|').collect();
        assert_eq!(found.len(), FIELDS.len(), "{line}");
        for (field, found) in FIELDS.iter().zip(found) {
            // Newer versions of tshark write flags as words.
            let found = if found == "True" { "1" } else { found };
            let expected = case
                .fields
                .iter()
                .chain(&common)
                .find(|(name, _)| name == field);
            let expected = expected.map_or("", |(_, value)| value);
            assert_eq!(found, expected, "{field} of frame {}: {line}", index + 1);
        }
    }
}
