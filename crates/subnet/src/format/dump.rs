//! Tables as OpenSM dumps them, for the tools that read those: `ibdmchk`, `dump_fts`' comparisons, scripts.

use std::collections::BTreeMap;
use std::fmt::Write;

use softfabric_units::{Guid, Lid};

use super::{lane_rate, lanes};
use crate::routing::{Distances, LaneMap, Levels, Routes, RoutingView};
use crate::subnet::{NodeId, NodeKind, PortRef, Subnet};

/// Adds a line.
macro_rules! line {
    ($text:expr, $($arguments:tt)*) => {
        writeln!($text, $($arguments)*).expect("a string takes all")
    };
}

/// `guid2lid`: the identifiers of each end port, which OpenSM reads back to keep them.
pub fn guid2lid(subnet: &Subnet) -> String {
    let mut text = String::new();
    for (_, port) in subnet.end_ports().filter(|(_, port)| port.lid != Lid(0)) {
        let last = port.lid.0 + (1 << port.lmc) - 1;
        line!(text, "{} {:#06x} {last:#06x}\n", port.guid, port.lid.0);
    }
    text
}

/// `neighbors`: both directions of each cable, by GUID and port.
pub fn neighbors(subnet: &Subnet) -> String {
    let mut text = String::new();
    let guid = |port: PortRef| subnet.node(port.node).guid;
    for (left, right) in subnet.cables() {
        for (from, to) in [(left, right), (right, left)] {
            line!(
                text,
                "{}:{} {}:{}\n",
                guid(from),
                from.port,
                guid(to),
                to.port
            );
        }
    }
    text
}

/// What stands behind an identifier in a dump.
fn owner(subnet: &Subnet, end: PortRef) -> String {
    let node = subnet.node(end.node);
    let kind = match node.kind {
        NodeKind::Switch => "Switch",
        NodeKind::Adapter => "Channel Adapter",
        NodeKind::Router => "Router",
    };
    let guid: Guid = subnet.port(end).guid;
    format!("{kind} portguid {guid}: '{}'", node.description)
}

/// `opensm-lfts.dump`: the forwarding tables, as `dump_fts` prints them and OpenSM's `file` engine reads them.
pub fn lfts(subnet: &Subnet, view: &RoutingView, routes: &Routes) -> String {
    let mut text = String::new();
    let top = routes.width() - 1;
    for switch in 0..view.switches() {
        let node = view.node(switch);
        let described = subnet.node(node);
        let lid = subnet.port(PortRef { node, port: 0 }).lid;
        line!(
            text,
            "Unicast lids [0-{top}] of switch Lid {lid} guid {} ('{}'):",
            described.guid,
            described.description
        );
        let mut count = 0;
        for target in view.targets() {
            if let Some(port) = routes.port(switch, target.lid) {
                count += 1;
                line!(
                    text,
                    "{:#06x} {port:03} # {}",
                    target.lid.0,
                    owner(subnet, target.end)
                );
            }
        }
        line!(text, "{count} lids dumped");
    }
    text
}

/// `opensm.fdbs`: the forwarding tables with the number of links to the end, an adapter's own among them.
pub fn fdbs(view: &RoutingView, routes: &Routes) -> String {
    let mut text = String::new();
    let distances = Distances::new(view);
    for switch in 0..view.switches() {
        line!(text, "dump_ucast_routes: Switch {}", view.guid(switch));
        line!(text, "LID    : Port : Hops : Optimal");
        let mut targets = view.targets().iter().peekable();
        for lid in 1..routes.width() as u16 {
            let Some(target) = targets.next_if(|target| target.lid.0 == lid) else {
                line!(text, "0x{lid:04X} : UNREACHABLE");
                continue;
            };
            let Some(port) = routes.port(switch, target.lid) else {
                line!(text, "0x{lid:04X} : UNREACHABLE");
                continue;
            };
            let last = u8::from(target.is_adapter());
            let hops = routes.walk(view, switch, target.lid).links.len() as u8 + last;
            let least = distances
                .between(switch, target.switch as usize)
                .map(|hops| hops + last);
            if least == Some(hops) {
                line!(text, "0x{lid:04X} : {port:03}  : {hops:02}   : yes");
            } else {
                line!(
                    text,
                    "0x{lid:04X} : {port:03}  : {hops:02}   : No, {:02} hop path possible",
                    least.unwrap_or(0)
                );
            }
        }
        text.push('\n');
    }
    text
}

/// `opensm.mcfdbs`: the ports of each multicast identifier, of switches that have any; `groups` tells them.
pub fn mcfdbs(view: &RoutingView, groups: impl Fn(NodeId) -> BTreeMap<Lid, Vec<u8>>) -> String {
    let mut text = String::new();
    for switch in 0..view.switches() {
        let ports_of = groups(view.node(switch));
        if ports_of.is_empty() {
            continue;
        }
        line!(text, "\nSwitch {}", view.guid(switch));
        line!(text, "LID    : Out Port(s)");
        for (lid, ports) in ports_of {
            let ports: String = ports.iter().map(|port| format!(" 0x{port:03X} ")).collect();
            line!(text, "0x{:04X} :{ports}", lid.0);
        }
    }
    text
}

/// `opensm-subnet.lst`: a line for each direction of each cable.
pub fn subnet_list(subnet: &Subnet) -> String {
    let end = |port: PortRef| {
        let node = subnet.node(port.node);
        let (kind, identified) = match node.kind {
            NodeKind::Switch => ("SW", PortRef { port: 0, ..port }),
            NodeKind::Adapter => ("CA", port),
            NodeKind::Router => ("Rt", port),
        };
        let state = subnet.port(identified);
        format!(
            "{{ {kind} Ports:{:02X} SystemGUID:{:016X} NodeGUID:{:016X} PortGUID:{:016X} VenID:{:06X} DevID:{:04X} Rev:000000A1 {{{}}} LID:{:04X} PN:{:02X} }}",
            node.ports,
            node.system.0,
            node.guid.0,
            state.guid.0,
            node.vendor,
            node.device,
            node.description,
            state.lid.0,
            port.port
        )
    };
    let mut text = String::new();
    for (left, right) in subnet.cables() {
        for (from, to) in [(left, right), (right, left)] {
            let state = subnet.port(from);
            line!(
                text,
                "{} {} PHY={}x LOG=ACT SPD={}",
                end(from),
                end(to),
                lanes(state),
                lane_rate(state)
            );
        }
    }
    text
}

/// The lanes that `routes` need, of ports that nothing else was told: of each level, for packets that leave by a port.
pub fn lanes_of_routes(view: &RoutingView, routes: &Routes, output: PortRef) -> [u8; 16] {
    let used = routes.lanes_used.max(1);
    let link = view
        .switch_of(output.node)
        .and_then(|switch| view.link_by_port(switch, output.port));
    std::array::from_fn(|level| match (link, &routes.lanes) {
        (Some(link), _) => routes.lane(link, level as u8) % used,
        // To a host: any lane, as nothing waits behind it.
        (None, LaneMap::Identity) => level as u8 % used,
        (None, LaneMap::BitOfDimension(_)) => 0,
    })
}

/// `opensm-sl2vl.dump`: the lane of each level, for each pair of ports of switches; `lanes` tells them by output.
pub fn sl2vl(subnet: &Subnet, view: &RoutingView, lanes: impl Fn(PortRef) -> [u8; 16]) -> String {
    let mut text = String::new();
    for switch in 0..view.switches() {
        let node = view.node(switch);
        let described = subnet.node(node);
        let lid = subnet.port(PortRef { node, port: 0 }).lid;
        line!(
            text,
            "Switch {}, base LID {lid}, \"{}\"",
            described.guid,
            described.description
        );
        line!(
            text,
            "#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15"
        );
        line!(
            text,
            "#--------------------------------------------------------"
        );
        for output in 1..=described.ports {
            let lanes = lanes(PortRef { node, port: output });
            let lanes: String = lanes.iter().map(|lane| format!("{lane:<3}")).collect();
            for input in 0..=described.ports {
                line!(text, "{input:<3} {output:<3} : {lanes}");
            }
        }
        text.push('\n');
    }
    text
}

/// What `ibdmchk` reads with `-c` and `-d`: the level of each path between hosts, and the lanes of each pair of ports, which
/// `lanes` tells by output.
pub fn ibdmchk_levels(
    subnet: &Subnet,
    view: &RoutingView,
    routes: &Routes,
    lanes: impl Fn(PortRef) -> [u8; 16],
) -> (String, String) {
    let (mut levels, mut maps) = (String::new(), String::new());
    let adapters = || view.targets().iter().filter(|target| target.is_adapter());
    if routes.levels != Levels::Uniform {
        for from in adapters() {
            for to in adapters() {
                // The node's GUID, not the port's.
                let guid = subnet.node(from.end.node).guid;
                let level = routes.level(from.switch as usize, to.lid);
                line!(levels, "{guid} {} {level}", to.lid.0);
            }
        }
    }
    for switch in 0..view.switches() {
        let node = view.node(switch);
        let ports = subnet.node(node).ports;
        for output in 1..=ports {
            let lanes = lanes(PortRef { node, port: output });
            let pairs: Vec<String> = lanes
                .chunks(2)
                .map(|pair| format!("0x{:x}{:x}", pair[0], pair[1]))
                .collect();
            let pairs = pairs.join(",");
            for input in 0..=ports {
                line!(maps, "{} {input} {output} {pairs}", view.guid(switch));
            }
        }
    }
    (levels, maps)
}
