//! Every wrong input says where it is, what was found, what is allowed and what to try.

use super::*;

/// Everything that is wrong with a text, one line each.
fn error(text: &str) -> String {
    let error = match Scenario::from_toml(text, "bad.toml") {
        Err(error) => error,
        Ok(scenario) => scenario.plan().expect_err("this is wrong"),
    };
    error.to_string()
}

fn check(text: &str, expected: &str) {
    assert_eq!(error(text), expected);
}

/// The same for a text below the star.
fn check_star(text: &str, expected: &str) {
    check(&format!("{STAR}{text}"), expected);
}

#[test]
fn unknown_words_and_fields() {
    check_star(
        "[fabric]\nkind = \"roci\"\n",
        "bad.toml:5:8: `fabric.kind`: found `roci`; allowed: rocev2, rocev1, infiniband, tcp; did you mean `rocev2`? RoCI \
         is not a technology, the term is RoCE",
    );
    check(
        "[topology]\nkind = \"star\"\nhosts = 4\ndely = \"1us\"\n",
        "bad.toml:4:1: `topology.dely`: found `dely`, which is not a field; allowed: kind, hosts, rate, delay; did you \
         mean `delay`?",
    );
    check(
        "[topology]\nkind = \"fat-tree\"\nk = 4\n",
        "bad.toml:2:8: `topology.kind`: found `fat-tree`; allowed: star, dumbbell, parking_lot, ring, leaf_spine, \
         fat_tree, torus, dragonfly_plus, rail_optimised, explicit; did you mean `fat_tree`?",
    );
    check(
        "[topologie]\nkind = \"star\"\n",
        "bad.toml:1:2: `topologie`: found `topologie`, which is not a field; allowed: name, description, seed, timing, \
         fabric, topology, link, switch, switch_group, infiniband, host, host_group, workload, job, trigger, event, record, stop, compare; did you \
         mean `topology`?\nbad.toml: `topology`: found nothing; allowed: a table with `kind`; add \
         `[topology]` and its fields",
    );
    check_star(
        "[[workload]]\nkind = \"incast\"\nbites = \"1MB\"\n",
        "bad.toml:4:1: `workload[0].bytes`: found nothing; allowed: an amount of data, such as \"64KiB\" or \"10MB\"; add \
         `bytes = …`\nbad.toml:6:1: `workload[0].bites`: found `bites`, which is not a field; allowed: kind, fan_in, from, \
         to, bytes, stagger, group, start, class, operation, message, ecn; did you mean `bytes`?",
    );
    check_star(
        "[[workload]]\nbytes = \"1MB\"\n",
        "bad.toml:4:1: `workload[0].kind`: found nothing; allowed: incast, permutation, all_to_all, poisson, flow, flows; \
         add `kind = …`",
    );
    check_star(
        "[host.congestion_control]\nkind = \"dcqcn\"\n",
        "bad.toml:5:8: `host.congestion_control.kind`: found `dcqcn`; allowed: none, fixed, dcqcn_paper, dcqcn_nic; did \
         you mean `dcqcn_nic`?",
    );
}

#[test]
fn quantities_and_types() {
    check(
        "[topology]\nkind = \"star\"\nhosts = 4\nrate = 100\n",
        "bad.toml:4:8: `topology.rate`: found the number 100; allowed: a bit rate, such as \"400Gb/s\" or \"40Mb/s\"; the \
         unit is missing: write it as \"400Gb/s\"",
    );
    check(
        "[topology]\nkind = \"star\"\nhosts = 4\ndelay = \"1\"\n",
        "bad.toml:4:9: `topology.delay`: found `1`; allowed: a length of time, such as \"500ns\" or \"55us\"; `1` is not a \
         length of time: the unit is missing (write it as 500ns, 55us, 1.5ms or 2s)",
    );
    check_star(
        "[switch]\nbuffer = \"32Mb\"\n",
        "bad.toml:5:10: `switch.buffer`: found `32Mb`; allowed: an amount of data, such as \"64KiB\" or \"10MB\"; `32Mb` is \
         not an amount of data: `Mb` is not one of B, KiB, MiB, GiB, TiB, KB, kB, MB, GB, TB (write it as 64KiB, 10MB or \
         9100B)",
    );
    check_star(
        "[switch]\nalpha = \"1/6\"\n",
        "bad.toml:5:9: `switch.alpha`: found `1/6`; allowed: a share of the free memory (a power of two), an amount of \
         data, or \"unlimited\", such as \"1/8\" or \"4\" or \"200KB\" or \"unlimited\"; `1/6` is not a power of two from \
         1/128 to 64",
    );
    check(
        "[topology]\nkind = \"star\"\nhosts = \"four\"\n",
        "bad.toml:3:9: `topology.hosts`: found `four`; allowed: a whole number, 2 or more",
    );
    check(
        "[topology]\nkind = \"star\"\nhosts = 1\n",
        "bad.toml:3:9: `topology.hosts`: found the number 1; allowed: a whole number, 2 or more",
    );
    check_star(
        "[host]\nacknowledgement_class = 9\n",
        "bad.toml:5:25: `host.acknowledgement_class`: found the number 9; allowed: a whole number from 0 to 7, or request, \
         request_unpaused_at_host",
    );
    check_star(
        "[[switch.ecn]]\nkmin = \"10KB\"\nkmax = \"20KB\"\npmax = 1.5\n",
        "bad.toml:7:8: `switch.ecn[0].pmax`: found the number 1.5; allowed: a number from 0 to 1",
    );
    check_star(
        "[switch]\nlossless = [3, 8]\n",
        "bad.toml:5:16: `switch.lossless[1]`: found the number 8; allowed: a whole number from 0 to 7",
    );
    check_star(
        "[[link]]\nbetween = [\"h0\"]\n",
        "bad.toml:5:11: `link[0].between`: found 1 values; allowed: 2 values",
    );
    assert!(error("[topology\nkind = 1").starts_with("bad.toml:1:10: found "));
}

#[test]
fn shapes() {
    check(
        "[topology]\nkind = \"fat_tree\"\nk = 5\n",
        "bad.toml:3:5: `topology.k`: found 5; allowed: an even number from 2 to 256",
    );
    check(
        "[topology]\nkind = \"star\"\nhosts = 4000000000\n",
        "bad.toml:1:1: `topology`: found 4000000000 hosts; allowed: at most 4194304 hosts",
    );
    check(
        "[topology]\nkind = \"leaf_spine\"\nleaves = 30000\nspines = 30000\nhosts_per_leaf = 1\n",
        "bad.toml:1:1: `topology`: found 900030000 links; allowed: at most 16777216 links",
    );
    // Spines that nobody has counted are counted as they would be built.
    check(
        "[topology]\nkind = \"leaf_spine\"\nleaves = 60000\nhosts_per_leaf = 60\nrate = \"100Gb/s\"\ntrunk_rate = \"10Gb/s\"\n",
        "bad.toml:1:1: `topology`: found 39600000 links; allowed: at most 16777216 links",
    );
    check(
        "[topology]\nkind = \"rail_optimised\"\nservers = 65536\nservers_per_leaf = 32\ntrunk_rate = \"1Gb/s\"\n",
        "bad.toml:1:1: `topology`: found 210239488 links; allowed: at most 16777216 links",
    );
    check(
        "[topology]\nkind = \"star\"\nhosts = 70000\n",
        "bad.toml:3:9: `topology.hosts`: found 70000 ports on s0; allowed: at most 65536 ports a node",
    );
    check(
        "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"0Gb/s\"\n",
        "bad.toml:4:8: `topology.rate`: found 0b/s; allowed: above zero, such as 100Gb/s",
    );
    check(
        "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\noversubscription = 2.0\n",
        "bad.toml:6:20: `topology.oversubscription`: found 2; allowed: 4, which `spines` and the rates lead to; leave out \
         one of them",
    );
    check(
        "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 8\noversubscription = 3.0\n",
        "bad.toml:5:20: `topology.oversubscription`: found 3, which takes 2.6666666666666665 spines; allowed: one that \
         takes a whole number of spines; give `spines` or other rates",
    );
    let explicit = "[topology]\nkind = \"explicit\"\nnode = [{ name = \"a\", kind = \"host\" }, { name = \"b\", kind = \
                    \"host\" }]\n";
    check(
        &format!(
            "{explicit}link = [{{ a = \"a\", b = \"c\", rate = \"1Gb/s\", delay = \"1us\" }}]\n"
        ),
        "bad.toml:4:24: `topology.link[0].b`: found `c`, which is not a node; allowed: a, b",
    );
    check(
        &format!(
            "{explicit}link = []\n[[workload]]\nkind = \"flow\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"1B\"\n"
        ),
        "bad.toml: found flow 0: goes from a to b, which no links connect; allowed: a plan that makes sense; add links, or \
         another destination",
    );
    check(
        &explicit
            .replace("\"b\"", "\"a\"")
            .replace("}]", "}]\nlink = []"),
        "bad.toml:3:49: `topology.node[1].name`: found `a`, the name of node 0; allowed: a name of its own",
    );
    check_star(
        "[[link]]\nbetween = [\"h0\", \"h1\"]\nrate = \"1Gb/s\"\n",
        "bad.toml:5:11: `link[0].between`: found `h0` and `h1`, which no link connects; allowed: the two ends of at least \
         one link",
    );
}

#[test]
fn thresholds() {
    check_star(
        "[[switch.ecn]]\nkmin = \"30KB\"\nkmax = \"20KB\"\npmax = 0.5\n",
        "bad.toml:5:8: `switch.ecn[0].kmin`: found 30KB, above `kmax`, which is 20KB; allowed: at most `kmax`",
    );
    check_star(
        "[switch]\nheadroom = \"64MiB\"\n",
        "bad.toml:5:12: `switch.headroom`: found 64MiB, in a buffer of 32MiB; allowed: less than `buffer`; it is set aside \
         for every port",
    );
    check_star(
        "[switch]\nheadroom = \"10MiB\"\n",
        "bad.toml: found switch s0: sets 40976KiB aside as headroom and reserves of 4 ports, in a buffer of 32MiB; \
         allowed: a plan that makes sense; take a larger buffer, less headroom, or fewer ports",
    );
    check_star(
        "[switch]\nheadroom_pool = \"33MiB\"\n",
        "bad.toml:5:17: `switch.headroom_pool`: found 33MiB, in a buffer of 32MiB; allowed: less than `buffer`",
    );
    check_star(
        "[[switch.ecn]]\nscaled = true\nkmin = \"30KB\"\nkmax = \"40KB\"\npmax = 0.5\n",
        "bad.toml:5:10: `switch.ecn[0].scaled`: found true without a `rate`; allowed: a `rate` that the thresholds are for, \
         such as 100Gb/s",
    );
    check_star(
        "[switch.class.8]\nweight = 2\n",
        "bad.toml:4:1: `switch.class.8`: found `8`; allowed: a class from 0 to 7",
    );
    check_star(
        "[host]\nreceive_xoff = \"1MiB\"\nreceive_xon = \"2MiB\"\n",
        "bad.toml:6:15: `host.receive_xon`: found 2MiB, above `receive_xoff`, 1MiB; allowed: at most `receive_xoff`",
    );
    check_star(
        "[host.congestion_control]\nkind = \"fixed\"\nrate = \"0b/s\"\n",
        "bad.toml:6:8: `host.congestion_control.rate`: found 0b/s; allowed: above 0",
    );
    check_star(
        "[switch]\npreset = \"sn5601\"\n",
        "bad.toml:5:10: `switch.preset`: found `sn5601`, which is not a switch preset; allowed: sn2700, sn5600, \
         arista7050qx, s6100, arista7260cx3, z9332f, arista7060x6, hpcc; did you mean `sn5600`?",
    );
    check_star(
        "[switch.watchdog]\npoll = \"0s\"\n",
        "bad.toml:5:8: `switch.watchdog.poll`: found zero; allowed: a time above zero, such as 200ms",
    );
}

#[test]
fn kmin_above_the_pause_threshold_is_a_warning() {
    let text = format!("{STAR}[switch]\nbuffer = \"2MiB\"\n");
    let findings = plan(&text).check();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].severity, crate::plan::Severity::Warning);
    assert_eq!(findings[0].place, "switch s0, class 3");
    assert!(
        findings[0]
            .problem
            .contains("marks from 400KB on, but pauses at 144KiB"),
        "{findings:?}"
    );
}

#[test]
fn traffic() {
    check_star(
        "[[workload]]\nkind = \"flow\"\nfrom = \"h0\"\nto = \"h0\"\nbytes = \"1MB\"\n",
        "bad.toml:7:6: `workload[0].to`: found `h0`, the sender itself; allowed: another host",
    );
    check_star(
        "[[workload]]\nkind = \"flow\"\nfrom = \"h4\"\nto = \"s0\"\nbytes = \"1MB\"\n",
        "bad.toml:6:8: `workload[0].from`: found `h4`, which is not a host; allowed: h0 to h3\n\
         bad.toml:7:6: `workload[0].to`: found `s0`, which is a switch; allowed: a host: h0 to h3",
    );
    check_star(
        "[[workload]]\nkind = \"incast\"\nfan_in = 4\nbytes = \"1MB\"\n",
        "bad.toml:6:10: `workload[0].fan_in`: found 4; allowed: at most 3, the number of hosts that can send",
    );
    check_star(
        "[[workload]]\nkind = \"incast\"\nfrom = [\"h*\"]\nto = \"h3\"\nbytes = \"1MB\"\n",
        "bad.toml:6:8: `workload[0].from`: found `h3`, the receiver itself, as sender 3; allowed: other hosts than the receiver",
    );
    check_star(
        "[[workload]]\nkind = \"permutation\"\nhosts = [\"h0..h9\"]\nbytes = \"1MB\"\n",
        "bad.toml:6:10: `workload[0].hosts[0]`: found `h4`, which is not a host; allowed: h0 to h3",
    );
    check_star(
        "[[workload]]\nkind = \"permutation\"\nbytes = \"1MB\"\nroute = \"clockwise\"\n",
        "bad.toml:7:9: `workload[0].route`: found `clockwise`; allowed: only in a topology of kind `ring`",
    );
    check_star(
        "[[workload]]\nkind = \"poisson\"\nload = 1.5\nduration = \"1ms\"\n",
        "bad.toml:6:8: `workload[0].load`: found the number 1.5; allowed: above 0, at most 1, such as 0.5",
    );
    check_star(
        "[[workload]]\nkind = \"poisson\"\nload = 0.5\nduration = \"1ms\"\ndistribution = [{ bytes = \"1B\", percent = 0 }, \
         { bytes = \"9B\", percent = 90 }]\n",
        "bad.toml:8:48: `workload[0].distribution[1]`: found 9B at 90 %; allowed: the last point is at 100 %",
    );
    check_star(
        "[[workload]]\nkind = \"flows\"\nflow = [{ from = \"h0\", to = \"h1\", bytes = \"1B\", after = 0 }]\n",
        "bad.toml:6:57: `workload[0].flow[0].after`: found trigger 0 of 0; allowed: the number of a `[[trigger]]`, from \
         zero",
    );
    check_star(
        "[[event]]\nkind = \"link_down\"\nat = \"1ms\"\nbetween = [\"h0\", \"h1\"]\n",
        "bad.toml:7:11: `event[0].between`: found `h0` and `h1`, which no link connects; allowed: the two ends of a link",
    );
    check_star(
        "[record]\ncaptures = [\"s0:9\"]\n",
        "bad.toml:5:13: `record.captures[0]`: found `s0:9`, a port that is not there; allowed: `node:port`, such as \
         `s0:3`, or `node:neighbour`, such as `s0:h3`",
    );
    check(
        "[topology]\nkind = \"ring\"\nswitches = 3\n[[workload]]\nkind = \"flow\"\nfrom = \"host0\"\nto = \"h1\"\nbytes = \
         \"1B\"\npath = [\"sw0\"]\n",
        "bad.toml:6:8: `workload[0].from`: found `host0`, which is not a host; allowed: h0 to h2\nbad.toml:9:9: \
         `workload[0].path[0]`: found `sw0`, which is not a switch; allowed: s0 to s2; did you mean `s0`?",
    );
    check_star(
        "[[host_group]]\nmtu = \"1024B\"\n",
        "bad.toml:4:1: `host_group[0].names`: found nothing; allowed: the names of hosts, such as [\"h0..h3\"]",
    );
}

#[test]
fn an_error_carries_the_place_for_tools() {
    let text = format!("{STAR}dely = \"1us\"\n");
    let error = Scenario::from_toml(&text, "bad.toml").unwrap_err();
    let problem = &error.problems[0];
    let span = problem.span.clone().unwrap();
    assert_eq!(&text[span], "dely");
    assert_eq!((problem.line, problem.column), (Some(4), Some(1)));
    assert_eq!(&*error.text, text);
}

#[test]
fn infiniband_and_ethernet_do_not_mix() {
    check_star(
        "[infiniband]\nlanes = 2\n",
        "bad.toml:4:1: `infiniband`: found settings of InfiniBand; allowed: only with `fabric.kind = \"infiniband\"`",
    );
    check_star(
        "[fabric]\nkind = \"infiniband\"\n[switch]\nlatency = \"100ns\"\nbuffer = \"1MiB\"\n",
        "bad.toml:6:1: `switch`: found settings of an Ethernet switch; allowed: `latency`, `forwarding` and \
         `cut_through_header` on InfiniBand; what its lanes do is said in `[infiniband]`",
    );
    check_star(
        "[fabric]\nkind = \"infiniband\"\n[infiniband]\nlanes = 16\n",
        "bad.toml:7:9: `infiniband.lanes`: found the number 16; allowed: a whole number from 1 to 15",
    );
    check_star(
        "[fabric]\nkind = \"infiniband\"\n[infiniband]\nbuffer = \"1KiB\"\n",
        "bad.toml: found the hosts' lanes: has a buffer of 1KiB for each lane: no packet fits; allowed: a plan that makes \
         sense; give each lane 4160B or more\nbad.toml: found InfiniBand switch profile 0: has a buffer of 1KiB for each \
         lane: no packet fits; allowed: a plan that makes sense; give each lane 4160B or more",
    );
}

#[test]
fn congestion_control_of_infiniband() {
    let check_control = |settings: &str, expected: &str| {
        check_star(
            &format!(
                "[fabric]\nkind = \"infiniband\"\n[infiniband.congestion_control]\n{settings}\n"
            ),
            expected,
        );
    };
    check_control(
        "threshold = 16",
        "bad.toml:7:13: `infiniband.congestion_control.threshold`: found the number 16; allowed: a whole number from 0 to 15",
    );
    check_control(
        "packet_size = \"100B\"",
        "bad.toml:7:15: `infiniband.congestion_control.packet_size`: found 100B; allowed: a multiple of 64B, at most 16320B",
    );
    check_control(
        "timer = \"150us\"",
        "bad.toml:7:9: `infiniband.congestion_control.timer`: found 150us; allowed: a multiple of 1.024 µs, at most 65,535 of \
         them",
    );
    check_control(
        "victims = \"host\"",
        "bad.toml:7:11: `infiniband.congestion_control.victims`: found `host`; allowed: none, hosts, all; did you mean \
         `hosts`?",
    );
    check_control(
        "table = []",
        "bad.toml:7:9: `infiniband.congestion_control.table`: found 0 entries; allowed: 1 to 128 entries",
    );
    check_control(
        "table = [{ shift = 4, multiplier = 1 }]",
        "bad.toml:7:20: `infiniband.congestion_control.table[0].shift`: found the number 4; allowed: a whole number from 0 \
         to 3",
    );
    check_control(
        "table = [{ shift = 0, multiplier = 0 }]\n[[infiniband.congestion_control.level]]\nlevel = 3\nminimum = 1",
        "bad.toml:10:11: `infiniband.congestion_control.level[0].minimum`: found 1; allowed: an index of the table",
    );
    check_control(
        "increse = 1",
        "bad.toml:7:1: `infiniband.congestion_control.increse`: found `increse`, which is not a field; allowed: threshold, \
         packet_size, marking_rate, victims, credit_threshold, credit_ports, timer, increase, trigger, minimum, level, table; \
         did you mean `increase`?",
    );
}

#[test]
fn jobs() {
    let job = |settings: &str, bytes: &str| {
        format!("[[job]]\n{settings}\n[[job.step]]\nkind = \"all_reduce\"\nbytes = \"{bytes}\"\n")
    };
    check_star(
        &job("slice = \"0B\"", "1MB"),
        "bad.toml:5:9: `job[0].slice`: found 0B; allowed: at least `1B`",
    );
    // 2 (n − 1) steps of more slices than can be counted: not of fewer, as 32 bits of them would have it.
    let gigantic =
        "[topology]\nkind = \"star\"\nhosts = 4\n".to_owned() + &job("slice = \"1B\"", "16384GiB");
    let found = error(&gigantic);
    assert!(
        found.contains("has 4294967295 messages from rank 0 to rank 1"),
        "{found}"
    );
    let crowd = "[topology]\nkind = \"star\"\nhosts = 513\n".to_owned()
        + &job("queue_pairs = 64", "1MB").replace("all_reduce", "all_to_all");
    let found = error(&crowd);
    assert!(
        found.contains("16809984 flows") && found.contains("at most 16777214"),
        "{found}"
    );
}

#[test]
fn events_name_what_is_there() {
    let event = |fields: &str| format!("[[event]]\nat = \"1ms\"\n{fields}\n");
    check_star(
        &event("kind = \"rail_down\"\nrail = 0"),
        "bad.toml:7:8: `event[0].rail`: found 0; allowed: a topology that has rails: `rail_optimised`",
    );
    check_star(
        &event("kind = \"plane_down\"\nplane = 0"),
        "bad.toml:7:9: `event[0].plane`: found 0; allowed: a topology that has planes: `rail_optimised`",
    );
    check_star(
        &event("kind = \"port_down\"\nport = \"h0:0\"\nuntil = \"1ms\""),
        "bad.toml:8:9: `event[0].until`: found 1ms, where it begins at 1ms; allowed: later than `at`",
    );
    check_star(
        &event(
            "kind = \"link_flaps\"\nbetween = [\"h0\", \"s0\"]\nperiod = \"1ns\"\nuntil = \"1s\"",
        ),
        "bad.toml:8:10: `event[0].period`: found 1ns, 999000000 times until 1s; allowed: a time so that the link goes down 100000 \
         times at most",
    );
}

/// What is wrong with multicast groups is said where it is: the file's field, what there is, what is allowed.
#[test]
fn multicast_groups() {
    let group = |more: &str, flow: &str| {
        format!(
            "{STAR}[fabric]\nkind = \"infiniband\"\n[[infiniband.multicast]]\nname = \"news\"\nmembers = [\"h0\", \
             \"h1\"]\nsend_only = [\"h2\"]\n{more}[[workload]]\nkind = \"flow\"\nto = \"news\"\nbytes = \"1MB\"\n{flow}"
        )
    };
    let from = |host: &str| group("", &format!("from = \"{host}\"\n"));
    for member in ["h0", "h1", "h2"] {
        plan(&from(member));
    }
    for (text, words) in [
        (
            from("h3"),
            &[
                "`h3`, which is not in the group `news`",
                "h0, h1, h2",
                "send_only",
            ][..],
        ),
        (
            group("partition = \"red\"\n", "from = \"h0\"\n"),
            &["`red`", "the name of a partition"],
        ),
        (
            group("mtu = \"1500B\"\n", "from = \"h0\"\n"),
            &["multicast group news: has an MTU of 1500B"],
        ),
        (
            group("", "from = \"h0\"\noperation = \"read\"\n"),
            &["workload[0].operation", "sent as datagrams"],
        ),
        (
            group("", "from = \"h0\"\nmessage = \"8KiB\"\n"),
            &["has datagrams of 8KiB"],
        ),
        (
            from("h0").replace("[\"h0\", \"h1\"]", "[\"h0\", \"h9\"]"),
            &[
                "infiniband.multicast[0].members[1]",
                "`h9`, which is not a host",
            ],
        ),
        (
            from("h0").replace("[\"h0\", \"h1\"]", "[\"h0\"]"),
            &["`news`, in which nobody else is"],
        ),
        (
            from("h0").replace("\"news\"", "\"h3\""),
            &["infiniband.multicast[0].name", "the name of another node"],
        ),
        (
            from("h0").replace("kind = \"infiniband\"", "kind = \"rocev2\""),
            &[
                "settings of InfiniBand",
                "only with `fabric.kind = \"infiniband\"`",
            ],
        ),
    ] {
        let found = error(&text);
        for word in words {
            assert!(found.contains(word), "{word}: {found}");
        }
    }
}
