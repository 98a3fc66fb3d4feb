//! Topology files: what is written comes back, what is wrong is named, no text makes the reader panic.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use softfabric_subnet::format::{
    TopologyProblem, dump, link_rate, read_topology, write_ibnetdiscover, write_net,
};
use softfabric_subnet::generate::{fat_tree, random, torus};
use softfabric_subnet::routing::{MinHop, RoutingEngine, RoutingView};
use softfabric_subnet::{NodeKind, PortRef, Subnet};
use softfabric_units::{Guid, Lid, Rate};

/// As ibnetdiscover prints it.
const DISCOVERED: &str = r#"#
# Topology file: generated on Mon Nov 30 01:55:36 2026
#
# Initiated from node 000000000010000a port 000000000010000b

vendid=0x2c9
devid=0xcb20
sysimgguid=0x20003b
switchguid=0x20003b(20003b)
Switch	8 "S-000000000020003b"		# "L1 # one" base port 0 lid 90 lmc 0
[1]	"H-00000000001000f8"[1](1000f9) 		# "H-00124 HCA-1" lid 204 4xHDR
[5]	"S-000000000020003c"[4]		# "L2-07-00" lid 91 2xNDR

vendid=0x0
devid=0x0
sysimgguid=0x20003c
switchguid=0x20003c(20003c)
Switch	8 "S-000000000020003c"		# "L2-07-00" base port 0 lid 91 lmc 0
[4]	"S-000000000020003b"[5]		# "L1 # one" lid 90 2xNDR

vendid=0x0
devid=0x0
sysimgguid=0x1000f8
caguid=0x1000f8
Ca	1 "H-00000000001000f8"		# "H-00124 HCA-1"
[1](1000f9) 	"S-000000000020003b"[1]		# lid 204 lmc 2 "L1 # one" lid 90 4xHDR
"#;

#[test]
fn reads_what_ibnetdiscover_prints() {
    let subnet = read_topology(DISCOVERED, "net").unwrap();
    let switch = subnet.by_guid(Guid(0x20_003b)).unwrap();
    let described = subnet.node(switch);
    assert_eq!((described.kind, described.ports), (NodeKind::Switch, 8));
    assert_eq!((described.vendor, described.device), (0x2c9, 0xcb20));
    assert_eq!(described.description, "L1 # one");
    assert_eq!(
        subnet
            .port(PortRef {
                node: switch,
                port: 0
            })
            .lid,
        Lid(90)
    );
    let host = subnet.by_guid(Guid(0x10_00f8)).unwrap();
    let port = subnet.port(PortRef {
        node: host,
        port: 1,
    });
    assert_eq!(
        (port.lid, port.lmc, port.guid),
        (Lid(204), 2, Guid(0x10_00f9))
    );
    assert_eq!(
        port.peer(),
        Some(PortRef {
            node: switch,
            port: 1
        })
    );
    assert_eq!(subnet.cables().count(), 2);
    let trunk = subnet.port(PortRef {
        node: switch,
        port: 5,
    });
    assert_eq!(link_rate(trunk), Some(Rate::gbps(200)));
}

#[test]
fn ibsim_files_need_no_guids() {
    let text = "width=3\nspeed=7\nextspeed=7\n\nHca 2 \"a\" # \"first\"\n[2] \"s\"[3]\n\nSwitch\t4 \"s\"\n[1] \"b\"[1]\n\nHca 1 \"b\"\n";
    let subnet = read_topology(text, "a.net").unwrap();
    let guids: Vec<_> = subnet.nodes().map(|(_, node)| node.guid.0).collect();
    assert_eq!(guids, [0x10_0000, 0x20_0000, 0x10_0003]);
    assert_eq!(
        subnet.cables().count(),
        2,
        "each cable may stand at one end"
    );
    let (node, _) = subnet.nodes().next().unwrap();
    let port = subnet.port(PortRef { node, port: 2 });
    assert_eq!(link_rate(port), Some(Rate::gbps(200)));
    assert_eq!(subnet.node(node).description, "first");
}

/// What a reader of the file's lines would see of it.
fn same_graph(left: &Subnet, right: &Subnet) {
    assert_eq!(left.nodes().len(), right.nodes().len());
    for (id, node) in left.nodes() {
        let there = right.by_guid(node.guid).unwrap();
        let other = right.node(there);
        assert_eq!(
            (node.kind, node.ports, &node.description),
            (other.kind, other.ports, &other.description)
        );
        for (port, state) in left.external_ports(id) {
            let twin = right.port(PortRef {
                node: there,
                port: port.port,
            });
            let end = |subnet: &Subnet, peer: Option<PortRef>| {
                peer.map(|peer| (subnet.node(peer.node).guid, peer.port))
            };
            assert_eq!(end(left, state.peer()), end(right, twin.peer()));
        }
    }
}

#[test]
fn what_is_written_comes_back() {
    for mut subnet in [
        fat_tree(6, 3).unwrap(),
        torus(&[3, 4], 2).unwrap(),
        random(9, 4, 2, 5).unwrap(),
    ] {
        subnet.assign_lids(1).unwrap();
        let net = write_net(&subnet);
        let again = read_topology(&net, "x.net").unwrap();
        same_graph(&subnet, &again);
        assert_eq!(write_net(&again), net);
        let discovered = write_ibnetdiscover(&subnet);
        let again = read_topology(&discovered, "x").unwrap();
        same_graph(&subnet, &again);
        assert_eq!(write_ibnetdiscover(&again), discovered);
        let lids = |subnet: &Subnet| {
            let mut lids: Vec<_> = subnet
                .end_ports()
                .map(|(_, port)| (port.guid, port.lid, port.lmc))
                .collect();
            lids.sort_unstable();
            lids
        };
        assert_eq!(lids(&subnet), lids(&again));
    }
}

#[test]
fn lines_as_ibnetdiscover_prints_them() {
    let subnet = read_topology(DISCOVERED, "net").unwrap();
    let records: Vec<&str> = DISCOVERED.split("\n\n").skip(1).collect();
    let written = write_ibnetdiscover(&subnet);
    for (written, expected) in written.split("\n\n").zip(records) {
        assert_eq!(written.trim(), expected.trim());
    }
}

#[test]
fn errors_name_file_line_and_what_is_wrong() {
    let message = |text: &str| read_topology(text, "x.net").unwrap_err().to_string();
    assert_eq!(
        message("Switch 4 \"s\"\n[1] \"t\"[1]\n"),
        "x.net:2: the cable leads to \"t\", and the file has no node of this name"
    );
    assert_eq!(
        message("\nRing 4 \"s\"\n"),
        "x.net:2: found \"Ring\", needed `Switch`, `Hca`, `Ca`, `Rt`, a port `[n]`, `key=value` or a remark `#`"
    );
    assert_eq!(
        message("Switch 4 \"s\"\n[1] \"h\"[1]\n\nHca 1 \"h\"\n[1] \"s\"[2]\n"),
        "x.net:2: port 1 of \"s\" is cabled to port 1 of \"h\", and line 5 cables that port to port 2 of \"s\": both ends must agree"
    );
    assert_eq!(
        message("Switch 4 \"s\"\n[5] \"s\"[1]\n"),
        "x.net:2: \"s\" has no port 5: its ports are 1 to 4"
    );
    assert_eq!(
        message("Hca 1 \"h\"\nSwitch 4 \"h\"\n"),
        "x.net:2: the name \"h\" is that of the node in line 1, too: each needs its own"
    );
    assert_eq!(
        message("caguid=0x5\nHca 1 \"h\"\ncaguid=0x5\nHca 1 \"i\"\n"),
        "x.net:4: GUID 0x0000000000000005 is that of \"h\" and of \"i\": give one of them another"
    );
    assert_eq!(
        message("[1] \"h\"[1]\n"),
        "x.net:1: found \"[1] \\\"h\\\"[1]\", needed a node before its ports"
    );
    assert_eq!(
        message("Switch 300 \"s\"\n"),
        "x.net:1: found \"300\", needed a number of ports, 0 to 254"
    );
    assert_eq!(
        message("vendid=0xzz\n"),
        "x.net:1: found \"0xzz\", needed a number, hexadecimal after 0x"
    );
    let long = format!("Hca 1 \"{}\"\n", "h".repeat(70));
    assert!(message(&long).ends_with("has 70 bytes, needed at most 64"));
    let long = format!("# {}\n", "h".repeat(300));
    assert_eq!(
        message(&long),
        "x.net:1: the line has 302 bytes, needed at most 255"
    );
    let twice = read_topology(
        "Hca 2 \"h\"\nSwitch 4 \"s\"\n[1] \"h\"[1]\n[1] \"h\"[2]\n",
        "x",
    )
    .unwrap_err();
    assert_eq!(twice.line, 4);
    assert!(
        matches!(twice.problem, TopologyProblem::Disagreement { .. }),
        "{twice}"
    );
}

#[test]
fn dumps_are_those_of_opensm() {
    let mut subnet = read_topology("Switch 4 \"s\"\n[1] \"a\"[1]\n[2] \"t\"[3]\n\nSwitch 4 \"t\"\n[1] \"b\"[1]\n\nHca 1 \"a\"\n\nHca 1 \"b\"\n", "x").unwrap();
    subnet.assign_lids(0).unwrap();
    let view = RoutingView::new(&subnet);
    let routes = MinHop.route(&view).unwrap();
    assert!(dump::guid2lid(&subnet).contains("0x0000000000100001 0x0003 0x0003\n\n"));
    assert!(dump::neighbors(&subnet).starts_with("0x0000000000200000:1 0x0000000000100000:1\n\n"));
    let lfts = dump::lfts(&subnet, &view, &routes);
    let expected = "Unicast lids [0-4] of switch Lid 1 guid 0x0000000000200000 ('s'):\n\
        0x0001 000 # Switch portguid 0x0000000000200000: 's'\n\
        0x0002 002 # Switch portguid 0x0000000000200001: 't'\n\
        0x0003 001 # Channel Adapter portguid 0x0000000000100001: 'a'\n\
        0x0004 002 # Channel Adapter portguid 0x0000000000100003: 'b'\n\
        4 lids dumped\n";
    assert!(lfts.starts_with(expected), "{lfts}");
    let fdbs = dump::fdbs(&view, &routes);
    let expected = "dump_ucast_routes: Switch 0x0000000000200000\n\
        LID    : Port : Hops : Optimal\n\
        0x0001 : 000  : 00   : yes\n\
        0x0002 : 002  : 01   : yes\n\
        0x0003 : 001  : 01   : yes\n\
        0x0004 : 002  : 02   : yes\n\n";
    assert!(fdbs.starts_with(expected), "{fdbs}");
    let list = dump::subnet_list(&subnet);
    assert_eq!(
        list.lines().next().unwrap(),
        "{ SW Ports:04 SystemGUID:0000000000200000 NodeGUID:0000000000200000 PortGUID:0000000000200000 VenID:000000 DevID:0000 Rev:000000A1 {s} LID:0001 PN:01 } { CA Ports:01 SystemGUID:0000000000100000 NodeGUID:0000000000100000 PortGUID:0000000000100001 VenID:000000 DevID:0000 Rev:000000A1 {a} LID:0003 PN:01 } PHY=4x LOG=ACT SPD=50"
    );
    let lanes = dump::sl2vl(&subnet, &view, |port| {
        dump::lanes_of_routes(&view, &routes, port)
    });
    assert!(
        lanes.starts_with("Switch 0x0000000000200000, base LID 1, \"s\"\n#in out : 0  1"),
        "{lanes}"
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(lines in proptest::collection::vec(
        prop_oneof![
            "\\PC{0,40}",
            "(Switch|Hca|Ca) [0-9]{1,3} \"[a-c]\"( # \"x\" lid [0-9]{1,6} lmc [0-9])?",
            "\\[[0-9]{1,2}\\](\\([0-9a-f]{1,18}\\))? ?\"[a-c]\"\\[[0-9]\\](\\(1\\))? # \"\" lid 3 (4xHDR|xx)?",
            "(vendid|switchguid|caguid|width|speed)=(0x)?[0-9a-f]{0,18}(\\(.\\))?",
        ],
        0..12,
    )) {
        let text = lines.join("\n");
        if let Ok(subnet) = read_topology(&text, "any") {
            let again = read_topology(&write_net(&subnet), "again");
            prop_assert!(again.is_ok() || subnet.nodes().any(|(_, node)| node.description.len() > 100), "{again:?}");
        }
    }
}

#[test]
fn groups_are_dumped_as_opensm_dumps_them() {
    let mut subnet = fat_tree(4, 2).unwrap();
    subnet.assign_lids(0).unwrap();
    let view = RoutingView::new(&subnet);
    let with_groups = view.node(1);
    let text = dump::mcfdbs(&view, |node| {
        let groups = [(Lid(0xc000), vec![1, 2, 17]), (Lid(0xc00a), vec![0])];
        groups.into_iter().filter(|_| node == with_groups).collect()
    });
    // A blank before and one behind each port.
    let expected = format!(
        "\nSwitch {}\nLID    : Out Port(s)\n0xC000 : 0x001  0x002  0x011 \n0xC00A : 0x000 \n",
        view.guid(1)
    );
    assert_eq!(text, expected);
}
