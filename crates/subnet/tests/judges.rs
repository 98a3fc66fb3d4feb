//! Other people's programs judge our routes and our dumps: `ibdmchk` of Debian's ibutils looks for credit loops, OpenSM over
//! ibsim routes the same subnets.
//!
//! Where they are not installed, the tests say so and pass.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use softfabric_subnet::Subnet;
use softfabric_subnet::check::check;
use softfabric_subnet::format::{dump, write_net};
use softfabric_subnet::generate::{fat_tree, random, torus};
use softfabric_subnet::routing::{
    Dfsssp, Distances, FatTree, MinHop, Nue, PortSet, Routes, RoutingEngine, RoutingView, Target,
    Torus, UpDown, multicast_tree,
};
use softfabric_testkit::programs::{Ends, has, umad2sim};
use softfabric_units::Lid;

/// What `ibdmchk` prints of a subnet and routes. It may crash at its end; what it printed before counts.
fn ibdmchk(folder: &Path, subnet: &Subnet, view: &RoutingView, routes: &Routes) -> String {
    ibdmchk_with(folder, subnet, view, routes, String::new())
}

/// The same with groups.
fn ibdmchk_with(
    folder: &Path,
    subnet: &Subnet,
    view: &RoutingView,
    routes: &Routes,
    groups: String,
) -> String {
    let (levels, maps) = dump::ibdmchk_levels(subnet, view, routes, |port| {
        dump::lanes_of_routes(view, routes, port)
    });
    let files = [
        ("list", dump::subnet_list(subnet)),
        ("fdbs", dump::fdbs(view, routes)),
        ("mcfdbs", groups),
        ("levels", levels.clone()),
        ("maps", maps),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    let mut command = Command::new("ibdmchk");
    command
        .current_dir(folder)
        .args(["-s", "list", "-f", "fdbs", "-m", "mcfdbs"]);
    if !levels.is_empty() {
        command.args(["-c", "levels", "-d", "maps"]);
    }
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn ibdmchk_agrees_about_credit_loops() {
    let test = "ibdmchk_agrees_about_credit_loops";
    if !has(test, "ibdmchk", "ibutils") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let subnets = [
        ("torus", torus(&[4, 4, 4], 1).unwrap()),
        ("tree", fat_tree(6, 3).unwrap()),
        ("random", random(16, 4, 2, 11).unwrap()),
    ];
    let mut loops = 0;
    for (name, mut subnet) in subnets {
        subnet.assign_lids(0).unwrap();
        let view = RoutingView::new(&subnet);
        let engines: [&dyn RoutingEngine; 7] = [
            &MinHop,
            &UpDown::default(),
            &FatTree::default(),
            &Dfsssp { lanes: 15 },
            &Torus,
            &Nue { lanes: 1 },
            &Nue { lanes: 3 },
        ];
        for engine in engines {
            // What is no tree has no routes of a tree.
            let Ok(routes) = engine.route(&view) else {
                continue;
            };
            let report = check(&view, &routes);
            let text = ibdmchk(folder.path(), &subnet, &view, &routes);
            let context = format!("{} on {name}:\n{text}", engine.name());
            assert!(!text.contains("-E- Unassigned"), "{context}");
            assert!(text.contains("CA to CA paths"), "{context}");
            assert!(
                !text.contains("Found missing paths") && !text.contains("-E- Found"),
                "{context}"
            );
            assert!(
                text.contains("Analyzing Fabric for Credit Loops"),
                "{context}"
            );
            let theirs = text.contains("Found credit loop");
            assert_eq!(theirs, report.credit_loop.is_some(), "{context}");
            loops += usize::from(theirs);
        }
    }
    assert!(loops >= 1, "the torus has a loop under min-hop");
}

#[test]
fn ibdmchk_reads_groups() {
    if !has("ibdmchk_reads_groups", "ibdmchk", "ibutils") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut subnet = fat_tree(6, 3).unwrap();
    subnet.assign_lids(0).unwrap();
    let view = RoutingView::new(&subnet);
    let routes = UpDown::default().route(&view).unwrap();
    let members: Vec<Target> = view
        .targets()
        .iter()
        .filter(|target| target.is_adapter())
        .step_by(7)
        .copied()
        .collect();
    let tree = multicast_tree(&view, &Distances::new(&view), &members, &[]).unwrap();
    let judge = |tree: &[PortSet]| {
        let groups = dump::mcfdbs(&view, |node| {
            let ports: Vec<u8> = tree[view.switch_of(node).unwrap()].iter().collect();
            let group = (!ports.is_empty()).then_some((Lid(0xc001), ports));
            group.into_iter().collect()
        });
        ibdmchk_with(folder.path(), &subnet, &view, &routes, groups)
    };
    let text = judge(&tree);
    let switches = tree.iter().filter(|ports| ports.iter().count() > 0).count();
    let found = format!(
        "Multicast Group:0xC001 has:{switches} switches and:{} HCAs",
        members.len()
    );
    assert!(text.contains(&found), "{found}: {text}");
    assert!(!text.contains("-E-"), "{text}");
    // It would see what is wrong: a switch in the middle has forgotten the group.
    let mut broken = tree;
    let inner = (0..view.switches())
        .find(|switch| view.hosts(*switch) == 0 && broken[*switch].iter().count() > 1);
    broken[inner.unwrap()] = PortSet::default();
    let text = judge(&broken);
    assert!(text.contains("-E-") && text.contains("0xC001"), "{text}");
}

/// Hops of OpenSM's routes: by switch and by GUID of the end port.
fn opensm_hops(
    folder: &Path,
    subnet: &Subnet,
    engine: &str,
    library: &str,
) -> BTreeMap<(u64, u64), u8> {
    let net = folder.join("subnet.net");
    fs::write(&net, write_net(subnet)).unwrap();
    let socket = format!("softfabric-{}-{engine}", std::process::id());
    let simulator = Command::new("ibsim")
        .arg("-s")
        .arg(&net)
        .env("IBSIM_SOCKNAME", &socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _simulator = Ends(simulator);
    // Its socket takes a moment to appear; OpenSM fails at once without it.
    for _ in 0..50 {
        let finished = Command::new("opensm")
            .args(["-D", "0x43", "-o", "-R", engine, "-f"])
            .arg(folder.join("opensm.log"))
            .env("LD_PRELOAD", library)
            .env("IBSIM_SOCKNAME", &socket)
            .env("OSM_CACHE_DIR", folder)
            .env("OSM_TMP_DIR", folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        if finished.success() && folder.join("opensm.fdbs").is_file() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let lids: BTreeMap<u16, u64> = fs::read_to_string(folder.join("guid2lid"))
        .unwrap()
        .lines()
        .filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
            Some((number(words.get(1)?)? as u16, number(words.first()?)?))
        })
        .collect();
    let mut hops = BTreeMap::new();
    let mut switch = 0;
    for line in fs::read_to_string(folder.join("opensm.fdbs"))
        .unwrap()
        .lines()
    {
        if let Some((_, guid)) = line.split_once("Switch 0x") {
            switch = u64::from_str_radix(guid.trim(), 16).unwrap();
        }
        let fields: Vec<_> = line.split(':').map(str::trim).collect();
        if let (Some(lid), [_, _, count, _]) = (line.strip_prefix("0x"), &fields[..]) {
            let lid = u16::from_str_radix(&lid[..4], 16).unwrap();
            hops.insert((switch, lids[&lid]), count.parse().unwrap());
        }
    }
    hops
}

#[test]
fn opensm_makes_as_many_hops() {
    let test = "opensm_makes_as_many_hops";
    let Some(library) = umad2sim(test) else {
        return;
    };
    if !has(test, "ibsim", "ibsim-utils") || !has(test, "opensm", "opensm") {
        return;
    }
    for mut subnet in [
        fat_tree(4, 3).unwrap(),
        torus(&[3, 4], 2).unwrap(),
        random(12, 4, 2, 3).unwrap(),
    ] {
        subnet.assign_lids(0).unwrap();
        let view = RoutingView::new(&subnet);
        let routes = MinHop.route(&view).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let theirs = opensm_hops(folder.path(), &subnet, "minhop", &library);
        let mut compared = 0;
        for switch in 0..view.switches() {
            for target in view.targets() {
                let guid = subnet.port(target.end).guid;
                let ours = routes.walk(&view, switch, target.lid).links.len() as u8;
                let ours = ours + u8::from(target.is_adapter());
                assert_eq!(
                    theirs.get(&(view.guid(switch).0, guid.0)),
                    Some(&ours),
                    "from {} to {guid}",
                    view.name(switch)
                );
                compared += 1;
            }
        }
        assert_eq!(compared, view.switches() * view.targets().len());
    }
}
