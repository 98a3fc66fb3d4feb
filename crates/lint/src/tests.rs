//! One configuration that is right, laid out as SONiC, `mlnx_qos` and the kernel lay theirs out, and each rule broken once.

use softfabric_fabric::headroom::HeadroomProfile;

use crate::{Fabric, Finding, Rule, Severity};

/// A SONiC switch of platform `msn2700` with two ports.
const CONFIG: &str = r#"{
  "DEVICE_METADATA": {"localhost": {"hostname": "leaf0", "platform": "x86_64-mlnx_msn2700-r0"}},
  "PORT": {
    "Ethernet0": {"speed": "100000", "mtu": "9100"},
    "Ethernet4": {"speed": "100000", "mtu": "9100"}
  },
  "CABLE_LENGTH": {"AZURE": {"Ethernet0": "40m", "Ethernet4": "5m"}},
  "BUFFER_POOL": {
    "ingress_lossless_pool": {"size": "4000000", "type": "ingress", "mode": "dynamic", "xoff": "80000"}
  },
  "BUFFER_PROFILE": {
    "pg_lossless_40m": {"pool": "ingress_lossless_pool", "size": "19456", "xon": "19456", "xoff": "38912", "dynamic_th": "0"},
    "pg_lossless_5m": {"pool": "ingress_lossless_pool", "size": "19456", "xon": "19456", "xoff": "30720", "dynamic_th": "0"},
    "ingress_lossy": {"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "3"}
  },
  "BUFFER_PG": {
    "Ethernet0|0": {"profile": "ingress_lossy"},
    "Ethernet0|3-4": {"profile": "pg_lossless_40m"},
    "Ethernet4|0": {"profile": "ingress_lossy"},
    "Ethernet4|3-4": {"profile": "pg_lossless_5m"}
  },
  "DSCP_TO_TC_MAP": {"AZURE": {"0": "0", "26": "3", "34": "4", "48": "6"}},
  "TC_TO_PRIORITY_GROUP_MAP": {"AZURE": {"0": "0", "1": "0", "3": "3", "4": "4", "6": "0"}},
  "TC_TO_QUEUE_MAP": {"AZURE": {"0": "0", "1": "1", "3": "3", "4": "4", "6": "6"}},
  "MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": {"3": "3", "4": "4"}},
  "PORT_QOS_MAP": {
    "Ethernet0": {
      "dscp_to_tc_map": "AZURE", "tc_to_pg_map": "AZURE", "tc_to_queue_map": "AZURE", "pfc_to_queue_map": "AZURE",
      "pfc_enable": "3,4"
    },
    "Ethernet4": {
      "dscp_to_tc_map": "AZURE", "tc_to_pg_map": "AZURE", "tc_to_queue_map": "AZURE", "pfc_to_queue_map": "AZURE",
      "pfc_enable": "3,4"
    }
  },
  "WRED_PROFILE": {
    "LOSSLESS": {
      "ecn": "ecn_all", "wred_green_enable": "true", "green_drop_probability": "5",
      "green_min_threshold": "250000",
      "green_max_threshold": "1048576"
    }
  },
  "SCHEDULER": {"data": {"type": "DWRR", "weight": "20"}, "first": {"type": "STRICT"}},
  "QUEUE": {
    "Ethernet0|3": {"scheduler": "data", "wred_profile": "LOSSLESS"},
    "Ethernet0|4": {"scheduler": "data", "wred_profile": "LOSSLESS"},
    "Ethernet0|6": {"scheduler": "first"}
  },
  "PFC_WD": {
    "GLOBAL": {"POLL_INTERVAL": "200"},
    "Ethernet0": {"action": "drop", "detection_time": "200", "restoration_time": "200"},
    "Ethernet4": {"action": "drop", "detection_time": "200", "restoration_time": "200"}
  }
}
"#;

/// What `mlnx_qos -i eth0` prints.
pub(crate) const MLNX_QOS: &str = "\
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
\tprio:1 dscp:15,14,13,12,11,10,09,08,
\tprio:2 dscp:23,22,21,20,19,18,17,16,
\tprio:3 dscp:31,30,29,28,27,26,25,24,
\tprio:4 dscp:39,38,37,36,35,34,33,32,
\tprio:5 dscp:47,46,45,44,43,42,41,40,
\tprio:6 dscp:55,54,53,52,51,50,49,48,
\tprio:7 dscp:63,62,61,60,59,58,57,56,
default priority:
Receive buffer size (bytes): 20016,156096,0,0,0,0,0,0,max_buffer_size=1027728
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0
\tbuffer      0   0   0   1   0   0   0   0
tc: 0 ratelimit: unlimited, tsa: vendor
\t priority:  1
";

/// The same with PFC for 3 and 4, as the switch has it.
fn of_both() -> String {
    MLNX_QOS.replace(
        "enabled     0   0   0   1   0",
        "enabled     0   0   0   1   1",
    )
}

fn fabric_of(config: &str, mlnx_qos: &str) -> Fabric {
    let mut fabric = Fabric::default();
    fabric.add_sonic(None, "config_db.json", config);
    fabric.add_mlnx_qos("gpu17:eth0", "gpu17.txt", mlnx_qos);
    for (path, text) in [
        ("roce_np/enable/3", "1\n"),
        ("roce_rp/enable/3", "1\n"),
        ("roce_np/cnp_dscp", "48\n"),
        ("roce_np/cnp_802p_prio", "6\n"),
    ] {
        fabric.add_ecn_setting("gpu17:eth0", path, path, text);
    }
    let cable = ("leaf0:Ethernet0".to_owned(), "gpu17:eth0".to_owned());
    fabric.cables.push(cable);
    fabric
}

#[test]
fn what_fits_together_is_left_in_peace() {
    assert_eq!(fabric_of(CONFIG, &of_both()).check(), []);
}

/// Replaces a text of the right configuration, and expects a finding of the rule at a line.
#[track_caller]
fn breaks(from: &str, to: &str, rule: Rule, line: usize) -> Finding {
    assert!(CONFIG.contains(from), "{from}");
    let findings = fabric_of(&CONFIG.replacen(from, to, 1), &of_both()).check();
    let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let of_rule = findings.iter().find(|finding| finding.rule == rule);
    let finding = of_rule.unwrap_or_else(|| panic!("{rule:?} is silent: {found:?}"));
    assert_eq!(finding.line, Some(line), "{finding}");
    assert_eq!(finding.device, "leaf0");
    assert!(
        !finding.found.is_empty() && !finding.expected.is_empty(),
        "{finding}"
    );
    assert!(
        !finding.why.is_empty() && !finding.advice.is_empty(),
        "{finding}"
    );
    finding.clone()
}

/// The line of the right configuration on which a text stands first.
fn line_of(text: &str) -> usize {
    let start = CONFIG.find(text).unwrap();
    CONFIG[..start].matches('\n').count() + 1
}

#[test]
fn headroom_is_held_against_rate_cable_and_mtu() {
    // 38912 B is the shipped value for 100 Gb/s over 40 m.
    let line = line_of("\"xoff\": \"38912\"");
    let finding = breaks(
        "\"xoff\": \"38912\"",
        "\"xoff\": \"37888\"",
        Rule::Headroom,
        line,
    );
    assert_eq!(finding.expected, "38912 B or more");
    assert!(
        finding.found.starts_with("37888 B, for Ethernet0"),
        "{finding}"
    );
    // A longer cable needs more.
    let finding = breaks(
        "\"Ethernet0\": \"40m\"",
        "\"Ethernet0\": \"300m\"",
        Rule::Headroom,
        line,
    );
    assert_eq!(finding.expected, "104448 B or more");
    assert_eq!(finding.severity, Severity::Error);
}

#[test]
fn pfc_and_headroom_belong_together() {
    let line = line_of("\"pfc_enable\": \"3,4\"");
    let finding = breaks(
        "\"pfc_enable\": \"3,4\"",
        "\"pfc_enable\": \"3\"",
        Rule::LosslessWithoutPfc,
        line,
    );
    assert!(finding.expected.contains("priority 4"), "{finding}");
    breaks(
        "\"pfc_enable\": \"3,4\"",
        "\"pfc_enable\": \"3,4,5\"",
        Rule::PfcWithoutHeadroom,
        line,
    );
    breaks(
        "\"pfc_enable\": \"3,4\"",
        "\"pfc_enable\": \"3,9\"",
        Rule::Syntax,
        line,
    );
}

#[test]
fn names_lead_somewhere_and_numbers_are_numbers() {
    let line = line_of("\"Ethernet0|3-4\"");
    let profile = "\"Ethernet0|3-4\": {\"profile\": \"pg_lossless_40m\"}";
    breaks(
        profile,
        "\"Ethernet0|3-4\": {\"profile\": \"gone\"}",
        Rule::MissingObject,
        line,
    );
    let line = line_of("\"xoff\": \"38912\"");
    breaks(
        "\"xoff\": \"38912\"",
        "\"xoff\": \"38k\"",
        Rule::Syntax,
        line,
    );
    let mut fabric = Fabric::default();
    fabric.add_sonic(Some("leaf9"), "broken.json", "{\n\"A\": }");
    let findings = fabric.check();
    assert_eq!(
        (findings[0].rule, findings[0].line),
        (Rule::Syntax, Some(2))
    );
}

#[test]
fn pools_hold_what_they_promise() {
    let line = line_of("\"size\": \"4000000\"");
    // Four lossless groups with 19456 B each.
    let finding = breaks(
        "\"size\": \"4000000\"",
        "\"size\": \"77823\"",
        Rule::PoolOversubscribed,
        line,
    );
    assert_eq!(finding.expected, "77824 B or more");
    // 2 · 38912 + 2 · 30720 = 139264, shared two to one.
    let finding = breaks(
        "\"xoff\": \"80000\"",
        "\"xoff\": \"69631\"",
        Rule::PoolOversubscribed,
        line,
    );
    assert_eq!(finding.expected, "69632 B or more");
}

#[test]
fn ecn_marks_before_pfc_pauses() {
    let line = line_of("\"green_min_threshold\"");
    // alpha 1 of 4 MB: 2 · 4 MB / 3.
    let finding = breaks("\"250000\"", "\"2700000\"", Rule::EcnAboveXoff, line);
    assert_eq!(finding.expected, "less than 2666666 B");
    let line = line_of("\"green_max_threshold\"");
    breaks("\"1048576\"", "\"260000\"", Rule::EcnTooNarrow, line);
    let line = line_of("\"ecn\": \"ecn_all\"");
    breaks("\"ecn_all\"", "\"ecn_none\"", Rule::RedOnLossless, line);
    let line = line_of("\"Ethernet0|3\"");
    breaks(
        ", \"wred_profile\": \"LOSSLESS\"}",
        "}",
        Rule::LosslessWithoutEcn,
        line,
    );
}

#[test]
fn the_way_of_a_class_leads_back_to_its_priority() {
    let line = line_of("\"dscp_to_tc_map\"");
    breaks(
        "{\"3\": \"3\", \"4\": \"4\"}",
        "{\"3\": \"4\", \"4\": \"4\"}",
        Rule::PauseStopsAnotherQueue,
        line,
    );
    breaks(
        "\"1\": \"0\", \"3\": \"3\"",
        "\"1\": \"3\", \"3\": \"3\"",
        Rule::LossyInLosslessGroup,
        line,
    );
    breaks(
        "\"1\": \"0\", \"3\": \"3\"",
        "\"1\": \"0\", \"3\": \"0\"",
        Rule::PauseOfAnotherPriority,
        line,
    );
}

#[test]
fn congestion_notifications_go_first() {
    let line = line_of("\"dscp_to_tc_map\"");
    breaks("\"48\": \"6\"", "\"48\": \"3\"", Rule::CnpClass, line);
    let line = line_of("\"SCHEDULER\"");
    breaks(
        "\"first\": {\"type\": \"STRICT\"}",
        "\"first\": {\"type\": \"DWRR\"}",
        Rule::CnpClass,
        line,
    );
}

#[test]
fn watchdogs_have_times_that_can_be_told() {
    let line = line_of("\"Ethernet0\": {\"action\"");
    breaks(
        "\"detection_time\": \"200\"",
        "\"detection_time\": \"50\"",
        Rule::WatchdogTimes,
        line,
    );
    breaks(
        "\"detection_time\": \"200\"",
        "\"detection_time\": \"150\"",
        Rule::WatchdogTimes,
        line,
    );
    breaks(
        "\"restoration_time\": \"200\"",
        "\"restoration_time\": \"60001\"",
        Rule::WatchdogTimes,
        line,
    );
    let four = ",\n    \"Ethernet4\": {\"action\": \"drop\", \"detection_time\": \"200\", \"restoration_time\": \"200\"}";
    let finding = breaks(four, "", Rule::NoWatchdog, line_of("\"GLOBAL\""));
    assert_eq!(finding.found, "no entry for Ethernet4");
}

/// Findings with another text of the host.
fn of_host(from: &str, to: &str) -> Vec<Finding> {
    let text = of_both();
    assert!(text.contains(from), "{from}");
    fabric_of(CONFIG, &text.replacen(from, to, 1)).check()
}

#[test]
fn a_host_agrees_with_its_switch() {
    let findings = of_host(
        "enabled     0   0   0   1   1",
        "enabled     0   0   1   1   0",
    );
    assert_eq!(findings[0].rule, Rule::PfcDiffersAtEnds, "{findings:?}");
    assert_eq!(
        (findings[0].device.as_str(), findings[0].line),
        ("gpu17:eth0", Some(17))
    );
    let findings = of_host("state: dscp", "state: pcp");
    assert_eq!((findings[0].rule, findings[0].line), (Rule::Trust, Some(2)));
    let findings = of_host("27,26,25", "27,25");
    assert_eq!(findings, [], "the driver's map says the same");
    let moved = "prio:0 dscp:26,07,";
    let findings = of_host("prio:0 dscp:07,", moved);
    // The later line, of priority 3, counts.
    assert_eq!(findings, []);
    let findings = of_host("prio:6 dscp:55,", "prio:6 dscp:26,55,");
    assert_eq!(
        (findings[0].rule, findings[0].line),
        (Rule::DscpDiffersAtEnds, Some(10))
    );
    assert!(findings[0].advice.contains("set,26,3"), "{}", findings[0]);
}

#[test]
fn ecn_of_a_host_is_on_and_its_notifications_go_first() {
    let with = |path: &str, text: &str| {
        let mut fabric = fabric_of(CONFIG, &of_both());
        fabric.add_ecn_setting("gpu17:eth0", path, path, text);
        fabric.check()
    };
    for path in ["roce_np/enable/3", "roce_rp/enable/3"] {
        let findings = with(path, "0\n");
        assert_eq!(
            (findings.len(), findings[0].rule),
            (1, Rule::HostWithoutEcn)
        );
        assert_eq!(findings[0].file, path);
    }
    // Nobody needs it where there is no PFC.
    assert_eq!(with("roce_rp/enable/1", "0\n"), []);
    assert_eq!(with("roce_np/cnp_802p_prio", "3\n")[0].rule, Rule::CnpClass);
    assert_eq!(with("roce_np/cnp_802p_prio", "x\n")[0].rule, Rule::Syntax);
}

#[test]
fn switches_agree_with_each_other() {
    let with = |from: &str, to: &str| {
        assert!(CONFIG.contains(from));
        let mut fabric = fabric_of(CONFIG, &of_both());
        let other = CONFIG.replacen(from, to, 1);
        fabric.add_sonic(Some("spine0"), "spine0.json", &other);
        let cable = ("leaf0:Ethernet4".to_owned(), "spine0:Ethernet0".to_owned());
        fabric.cables.push(cable);
        let findings = fabric.check().into_iter();
        let at_leaf = findings.filter(|finding| finding.device == "leaf0");
        at_leaf.map(|finding| finding.rule).collect::<Vec<_>>()
    };
    assert_eq!(with("\"3,4\"", "\"3,4\""), []);
    assert_eq!(
        with("\"pfc_enable\": \"3,4\"", "\"pfc_enable\": \"4\""),
        [Rule::PfcDiffersAtEnds]
    );
    assert_eq!(
        with("\"26\": \"3\"", "\"24\": \"3\""),
        [Rule::DscpDiffersAtEnds]
    );
    assert_eq!(
        with("\"mtu\": \"9100\"", "\"mtu\": \"1500\""),
        [Rule::LinkDiffersAtEnds]
    );
    assert_eq!(
        with("\"speed\": \"100000\"", "\"speed\": \"40000\""),
        [Rule::LinkDiffersAtEnds]
    );
}

#[test]
fn a_headroom_table_is_held_against_the_formula() {
    let table = "# speed cable size xon xoff threshold\n100000 5m 50176 19456 30720 0\n\n100000 40m 58368 19456 38000 0\n";
    let check = |platform, file: &str, text: &str| {
        let mut fabric = Fabric {
            platform,
            ..Fabric::default()
        };
        fabric.add_headroom_table("leaf0", file, text);
        fabric.check()
    };
    let findings = check(
        None,
        "device/mellanox/x86_64-mlnx_msn2700-r0/pg_profile_lookup.ini",
        table,
    );
    assert_eq!(findings.len(), 1);
    assert_eq!(
        (findings[0].rule, findings[0].line),
        (Rule::Headroom, Some(4))
    );
    assert_eq!(findings[0].expected, "38912 B or more");
    // Of a platform that is not known, nothing is said.
    assert_eq!(check(None, "pg_profile_lookup.ini", table), []);
    let needs_more = check(
        Some(HeadroomProfile::spectrum4()),
        "pg_profile_lookup.ini",
        table,
    );
    assert_eq!(needs_more.len(), 2);
    let broken = check(None, "pg_profile_lookup.ini", "100000 5m\n");
    assert_eq!((broken[0].rule, broken[0].line), (Rule::Syntax, Some(1)));
}
