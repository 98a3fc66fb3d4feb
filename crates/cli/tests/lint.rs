//! `softfabric lint` on files of every kind, together.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn lint(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_softfabric"))
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .arg("lint")
        .args(arguments)
        .output()
        .unwrap()
}

const CONFIG: &str = r#"{
  "DEVICE_METADATA": {"localhost": {"hostname": "leaf0", "platform": "x86_64-mlnx_msn2700-r0"}},
  "PORT": {"Ethernet0": {"speed": "100000", "mtu": "9100"}},
  "CABLE_LENGTH": {"AZURE": {"Ethernet0": "300m"}},
  "BUFFER_POOL": {"pool": {"size": "4000000", "type": "ingress", "mode": "dynamic"}},
  "BUFFER_PROFILE": {"lossless": {"pool": "pool", "size": "60000", "xon": "19456", "xoff": "38912", "dynamic_th": "0"}},
  "BUFFER_PG": {"Ethernet0|3": {"profile": "lossless"}},
  "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}
}
"#;

const MLNX_QOS: &str = "\
Priority trust state: dscp
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   0   0   1   0   0
";

fn files(folder: &Path) {
    fs::write(folder.join("leaf0.json"), CONFIG).unwrap();
    fs::write(folder.join("qos.txt"), MLNX_QOS).unwrap();
    fs::write(
        folder.join("lldp.txt"),
        "Ethernet0 gpu17 02:00:00:00:00:01 B eth0\nEthernet4 nobody 1 B x\n",
    )
    .unwrap();
    fs::create_dir_all(folder.join("ecn/roce_rp/enable")).unwrap();
    fs::write(folder.join("ecn/roce_rp/enable/5"), "0\n").unwrap();
}

#[test]
fn files_of_every_kind_are_checked_together() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let arguments = [
        "leaf0.json",
        "gpu17:eth0=qos.txt",
        "gpu17:eth0=ecn",
        "--lldp",
        "leaf0=lldp.txt",
    ];
    let output = lint(folder.path(), &[&arguments[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let of = |rule: &str| {
        findings
            .iter()
            .find(|finding| finding["rule"] == rule)
            .unwrap()
    };
    let headroom = of("headroom");
    assert_eq!(headroom["file"], "leaf0.json");
    assert_eq!(headroom["line"], 6);
    assert_eq!(headroom["expected"], "104448 B or more");
    assert_eq!(of("pfc-differs-at-ends")["line"], 4);
    assert_eq!(of("host-without-ecn")["file"], "ecn/roce_rp/enable/5");
    let skipped = document["skipped"].as_array().unwrap();
    assert!(
        skipped[0]
            .as_str()
            .unwrap()
            .starts_with("lldp.txt, leaf0, line 2"),
        "{skipped:?}"
    );
    let text = String::from_utf8(lint(folder.path(), &arguments).stdout).unwrap();
    assert!(
        text.contains("error[headroom] leaf0 (leaf0.json:6)"),
        "{text}"
    );
    assert!(text.ends_with("2 errors, 1 warnings\n"), "{text}");
}

#[test]
fn what_is_right_ends_with_0_and_what_is_none_with_2() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let right = CONFIG.replace("300m", "5m");
    fs::write(folder.path().join("right.json"), right).unwrap();
    let output = lint(folder.path(), &["right.json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, b"nothing found\n");
    fs::write(folder.path().join("poem.txt"), "roses are red\n").unwrap();
    for (arguments, says) in [
        (&["poem.txt"][..], "none of the files"),
        (&["qos.txt"][..], "HOST:INTERFACE=qos.txt"),
        (&["missing.json"][..], "cannot read missing.json"),
        (&["leaf0.json", "--platform", "toaster"][..], "toaster"),
    ] {
        let output = lint(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.contains(says), "{complaint}");
    }
}
