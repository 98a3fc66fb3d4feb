use std::path::Path;

use softfabric_units::{Bytes, Span};

use super::*;
use crate::plan::{Alpha, Scheduling, WatchdogAction};
use crate::scenario::Scenario;

const HEADROOM: &str = "# speed cable size xon xoff threshold xon_offset\n100000 5m 50176 19456 30720 0\n100000 40m 58368 \
                        19456 38912 -2 2288\n400000 40m 1248 0 283648 -3\n";

const BUFFERS: &str = r#"{
  "BUFFER_POOL": {
    "ingress_lossless_pool": { "size": "10000000", "type": "ingress", "mode": "dynamic", "xoff": "4000000" },
    "egress_lossy_pool": { "size": "9000000", "type": "egress", "mode": "dynamic" },
    "egress_lossless_pool": { "size": "14000000", "type": "egress", "mode": "static" }
  },
  "BUFFER_PROFILE": {
    "lossy": { "pool": "ingress_lossless_pool", "size": "0", "static_th": "20000000" },
    "lossless": { "pool": "ingress_lossless_pool", "size": "1248", "xon": "2288", "xoff": "35776", "dynamic_th": "-4" },
    "queue_lossless": { "pool": "egress_lossless_pool", "size": "1518", "static_th": "14000000" },
    "queue_lossy": { "pool": "[BUFFER_POOL|egress_lossy_pool]", "size": "1518", "dynamic_th": "3" }
  },
  "BUFFER_PG": {
    "Ethernet0|0": { "profile": "lossy" },
    "Ethernet0|3-4": { "profile": "lossless" }
  },
  "BUFFER_QUEUE": {
    "Ethernet0|3-4": { "profile": "queue_lossless" },
    "Ethernet0|0-2": { "profile": "queue_lossy" }
  }
}"#;

const QOS: &str = r#"{
  "DSCP_TO_TC_MAP": { "AZURE": { "3": "3", "4": "4", "46": "5", "48": "6" } },
  "TC_TO_PRIORITY_GROUP_MAP": { "AZURE": { "3": "3", "4": "4", "7": "7" } },
  "TC_TO_QUEUE_MAP": { "AZURE": { "3": "3", "4": "4", "5": "5" } },
  "PORT_QOS_MAP": {
    "global": { "dscp_to_tc_map": "AZURE" },
    "Ethernet0": { "dscp_to_tc_map": "AZURE", "tc_to_pg_map": "AZURE", "tc_to_queue_map": "AZURE", "pfc_enable": "3,4" }
  },
  "SCHEDULER": { "one": { "type": "DWRR", "weight": "14" }, "two": { "type": "STRICT" } },
  "WRED_PROFILE": {
    "AZURE_LOSSLESS": { "ecn": "ecn_all", "wred_green_enable": "true", "green_min_threshold": "1048576",
      "green_max_threshold": "2097152", "green_drop_probability": "5" }
  },
  "QUEUE": {
    "Ethernet0|3": { "scheduler": "one", "wred_profile": "AZURE_LOSSLESS" },
    "Ethernet0|4": { "scheduler": "one" },
    "Ethernet0|5": { "scheduler": "two" }
  },
  "PFC_WD": {
    "Ethernet0": { "action": "forward", "detection_time": "300", "restoration_time": "400" },
    "GLOBAL": { "POLL_INTERVAL": "100" }
  }
}"#;

const SPEED: Rate = Rate::gbps(100);

/// Loads what texts there are.
fn read(
    headroom: Option<&str>,
    buffers: Option<&str>,
    qos: Option<&str>,
) -> Result<(Plan, SonicSwitch), ImportError> {
    let folder = tempfile::tempdir().unwrap();
    let paths =
        ["pg_profile_lookup.ini", "buffers.json", "qos.json"].map(|name| folder.path().join(name));
    for (path, text) in paths.iter().zip([headroom, buffers, qos]) {
        std::fs::write(path, text.unwrap_or("")).unwrap();
    }
    let files = SonicFiles {
        headroom: headroom.map(|_| paths[0].as_path()),
        buffers: buffers.map(|_| paths[1].as_path()),
        qos: qos.map(|_| paths[2].as_path()),
        port: None,
        speed: SPEED,
        cable: CableLength::metres(30),
    };
    Ok((load_plan(&files, "switch", 4)?.0, load(&files)?))
}

fn error(headroom: Option<&str>, buffers: Option<&str>, qos: Option<&str>) -> String {
    let mut error = read(headroom, buffers, qos).unwrap_err();
    error.file = error.file.file_name().unwrap().into();
    error.to_string()
}

#[test]
fn headroom_by_speed_and_cable() {
    let (_, switch) = read(Some(HEADROOM), None, None).unwrap();
    let ingress = &switch.profile.classes[3].ingress;
    assert_eq!(ingress.headroom, Some(Bytes::new(38_912)));
    assert_eq!(ingress.reserved, Bytes::new(58_368 - 38_912));
    assert_eq!(ingress.threshold, Alpha::Dynamic(-2));
    assert_eq!(ingress.xon.size, Bytes::new(19_456));
    assert_eq!(ingress.xon.offset, Some(Bytes::new(2_288)));
    let entries = read_headroom_table(Path::new("a.ini"), HEADROOM).unwrap();
    assert_eq!(entries[2].reserved(), Bytes::new(1_248));
}

#[test]
fn buffers_and_qos() {
    let (plan, switch) = read(None, Some(BUFFERS), Some(QOS)).unwrap();
    let profile = &switch.profile;
    assert_eq!(profile.buffer.total, Bytes::mb(14));
    assert_eq!(profile.buffer.headroom_pool, Some(Bytes::mb(4)));
    assert_eq!(
        profile.lossless(),
        ClassMask::of(Class::new(3)).with(Class::new(4))
    );
    let class = &profile.classes[3];
    assert_eq!(class.ingress.headroom, Some(Bytes::new(35_776)));
    assert_eq!(class.ingress.reserved, Bytes::new(1_248));
    assert_eq!(class.ingress.threshold, Alpha::Dynamic(-4));
    assert_eq!(class.ingress.xon.size, Bytes::new(2_288));
    assert_eq!(class.egress.threshold, Alpha::Unlimited);
    assert_eq!(class.scheduling, Scheduling::Weighted(14));
    assert_eq!(
        (class.ecn[0].kmin, class.ecn[0].kmax),
        (Bytes::mib(1), Bytes::mib(2))
    );
    assert_eq!(
        (class.ecn[0].pmax, class.ecn[0].drop_not_capable),
        (0.05, true)
    );
    assert_eq!(profile.classes[4].ecn, []);
    assert_eq!(profile.classes[5].scheduling, Scheduling::Strict);
    assert_eq!(profile.classes[1].egress.threshold, Alpha::Dynamic(3));
    assert_eq!(profile.classes[0].ingress.threshold, Alpha::Unlimited);
    let watchdog = profile.watchdog.unwrap();
    assert_eq!(watchdog.detection, Span::millis(300));
    assert_eq!(
        (watchdog.poll, watchdog.action),
        (Span::millis(100), WatchdogAction::Forward)
    );
    let class_of = |dscp| profile.classifier.class_of(Class::new(7), dscp).as_u8();
    assert_eq!([3, 48, 46, 0, 63].map(class_of), [3, 6, 5, 0, 0]);
    assert_eq!(switch.notes, Vec::<String>::new());
    // SONiC's own thresholds at α = 1/16: PFC acts first.
    let findings = plan.check();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0].problem.contains("PFC acts before ECN"),
        "{findings:?}"
    );
    let again = Scenario::from_plan(&plan).unwrap().to_toml();
    assert_eq!(
        Scenario::from_toml(&again, "again")
            .unwrap()
            .plan()
            .unwrap(),
        plan
    );
}

/// Maps with numbers of their own, and PFC turned on for a priority.
#[test]
fn maps_are_taken_as_they_are() {
    let other = QOS
        .replace(
            r#""TC_TO_QUEUE_MAP": { "AZURE": { "3": "3""#,
            r#""MAP_PFC_PRIORITY_TO_QUEUE": { "AZURE": { "3": "2" } },
               "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": { "AZURE": { "3": "6", "4": "4" } },
               "DOT1P_TO_TC_MAP": { "AZURE": { "5": "3" } },
               "TC_TO_QUEUE_MAP": { "AZURE": { "3": "2""#,
        )
        .replace(
            r#""TC_TO_PRIORITY_GROUP_MAP": { "AZURE": { "3": "3""#,
            r#""TC_TO_PRIORITY_GROUP_MAP": { "AZURE": { "3": "6""#,
        )
        .replace(
            r#""Ethernet0": { "dscp_to_tc_map": "AZURE","#,
            r#""Ethernet0": { "dot1p_to_tc_map": "AZURE", "pfc_to_pg_map": "AZURE", "pfc_to_queue_map": "AZURE","#,
        );
    let (plan, switch) = read(None, None, Some(&other)).unwrap();
    let profile = &switch.profile;
    let [group, queue, pause, stops] = [
        profile.maps.group[3],
        profile.maps.queue[3],
        profile.maps.pause[6],
        profile.maps.stops[3],
    ]
    .map(Class::as_u8);
    assert_eq!([group, queue, pause, stops], [6, 2, 3, 2]);
    assert_eq!(
        profile.lossless(),
        ClassMask::of(Class::new(6)).with(Class::new(4))
    );
    assert_eq!(
        profile.priorities(),
        ClassMask::of(Class::new(3)).with(Class::new(4))
    );
    assert_eq!(plan.host_profiles[0].lossless, profile.priorities());
    assert!(profile.protects(Class::new(3)) && !profile.protects(Class::new(6)));
    assert_eq!(profile.classifier.class_of(Class::new(5), 0), Class::new(3));
    let again = Scenario::from_plan(&plan).unwrap().to_toml();
    let again = Scenario::from_toml(&again, "again").unwrap().plan();
    assert_eq!(again.unwrap(), plan);
}

#[test]
fn simplifications_are_said() {
    let two = BUFFERS.replace(
        "\"type\": \"egress\", \"mode\": \"dynamic\"",
        "\"type\": \"ingress\"",
    );
    let (_, switch) = read(None, Some(&two), Some(QOS)).unwrap();
    assert_eq!(
        switch.notes,
        ["2 ingress pools are taken as one of 23MB: there is one shared memory here"]
    );
}

#[test]
fn what_is_wrong_names_its_line() {
    let cases = [
        (
            error(Some("100000 5m 1 2\n"), None, None),
            "pg_profile_lookup.ini:1: a line is 4 columns, but it must be speed cable size xon xoff threshold [xon_offset]",
        ),
        (
            error(Some(&HEADROOM.replace("40m", "40")), None, None),
            "pg_profile_lookup.ini:3: cable is `40`, but it must be metres, such as 40m",
        ),
        (
            error(Some("100000 5m 50176 19456 30720 0"), None, None),
            "pg_profile_lookup.ini: the port is 100Gb/s over 30m, which is not tabled, but it must be 100Gb/s over 5m",
        ),
        (
            error(
                None,
                Some(&BUFFERS.replace("\"profile\": \"lossless\"", "\"profile\": \"lostless\"")),
                None,
            ),
            "buffers.json:15: a name in BUFFER_PROFILE is `lostless`, which is not there, but it must be lossy, lossless, \
             queue_lossless, queue_lossy",
        ),
        (
            error(None, Some(&BUFFERS.replace("\"-4\"", "\"9\"")), None),
            "buffers.json:9: dynamic_th of BUFFER_PROFILE lossless is 9, but it must be an exponent from -8 to 7",
        ),
        (
            error(
                None,
                Some(&BUFFERS.replace("Ethernet0|3-4", "Ethernet0")),
                None,
            ),
            "buffers.json:15: a name in BUFFER_PG is `Ethernet0`, but it must be a port and numbers",
        ),
        (
            error(None, Some("{\n,"), None),
            "buffers.json:2: the file is key must be a string",
        ),
        (
            error(None, Some("{}"), None),
            "buffers.json: BUFFER_POOL is missing, but it must be the pools of the memory",
        ),
        (
            error(None, None, Some(&QOS.replace("\"3,4\"", "\"3,9\""))),
            "qos.json:7: pfc_enable of PORT_QOS_MAP Ethernet0 is 3,9, but it must be classes from 0 to 7, such as 3,4",
        ),
        (
            error(None, None, Some(&QOS.replace("\"1048576\"", "\"3048576\""))),
            "qos.json:11: green_min_threshold of WRED_PROFILE AZURE_LOSSLESS is 3048576B, above green_max_threshold, 2MiB",
        ),
        (
            error(None, None, Some(&QOS.replace("pfc_enable", "pfc_enabled"))),
            "qos.json: PORT_QOS_MAP is no port with `pfc_enable`",
        ),
    ];
    for (found, expected) in cases {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}
