//! `softfabric exec` and `softfabric device`, with programs that every system has.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

fn softfabric(arguments: &[&str]) -> Output {
    let cache = tempfile::tempdir().expect("a temporary folder");
    Command::new(env!("CARGO_BIN_EXE_softfabric"))
        .args(arguments)
        .env("XDG_CACHE_HOME", cache.path())
        .env("NO_COLOR", "1")
        .output()
        .expect("softfabric starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_program_runs_with_the_library_and_its_exit_code_comes_back() {
    let output = softfabric(&["exec", "--", "sh", "-c", "echo $LD_PRELOAD; exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert!(text(&output.stdout).trim().ends_with("/libibverbs.so.1"));
    assert_eq!(text(&output.stderr), "");
    let killed = softfabric(&["exec", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(killed.status.code(), Some(128 + 15));
}

#[test]
fn a_program_finds_the_devices() {
    let output = softfabric(&[
        "exec",
        "--device",
        "lo",
        "--",
        "ls",
        "/sys/class/infiniband",
    ]);
    // Devices keep their names, whichever of them a program gets.
    let names = text(&output.stdout);
    assert!(
        names.starts_with("softfabric") && names.lines().count() == 1,
        "{names}{}",
        text(&output.stderr)
    );
    let list = softfabric(&["device", "list", "--json"]);
    let devices: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    let loopback = devices.as_array().unwrap().last().unwrap();
    assert_eq!(loopback["netdev"], "lo");
    assert_eq!(loopback["gids"][0]["gid"], "::ffff:127.0.0.1");
    assert_eq!(loopback["mtu"], 4096);
}

#[test]
fn the_arguments_after_the_program_are_its_own() {
    let output = softfabric(&["exec", "--", "echo", "--device", "x", "-v"]);
    assert_eq!(text(&output.stdout), "--device x -v\n");
    let without_dashes = softfabric(&["exec", "echo", "-n", "a"]);
    assert_eq!(text(&without_dashes.stdout), "a");
}

#[test]
fn what_cannot_be_run_is_said_before_anything_is_set_up() {
    for (arguments, said) in [
        (
            &["exec", "--", "no-such-program"] as &[&str],
            "is in none of the folders of PATH",
        ),
        (&["exec", "--", "/etc/passwd"], "may not be executed"),
        (&["exec", "--device", "none7", "--", "true"], "`none7`"),
        (&["exec"], "<PROGRAM>"),
        (
            &["exec", "--faults", "lose", "--", "true"],
            "drop, duplicate",
        ),
        (
            &["exec", "--pcap", "/no/such/folder/a.pcapng", "--", "true"],
            "cannot write",
        ),
    ] {
        let output = softfabric(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let found = text(&output.stderr);
        assert!(found.contains(said), "{arguments:?}: {found}");
    }
}

#[test]
fn faults_are_said_with_their_seed() {
    let faults = [
        "exec",
        "--faults",
        "drop:p=1%",
        "--faults",
        "mark",
        "--",
        "true",
    ];
    let said = text(&softfabric(&faults).stderr);
    assert!(
        said.starts_with("softfabric: faults drop") && said.contains("mark with --seed "),
        "{said}"
    );
    let output = softfabric(&["exec", "--faults", "drop", "--seed", "7", "--", "true"]);
    assert!(text(&output.stderr).ends_with("--seed 7\n"));
}

/// A cache that takes no files: the library goes to another folder, and the program runs.
#[test]
fn a_cache_that_takes_nothing_is_no_hindrance() {
    let output = Command::new(env!("CARGO_BIN_EXE_softfabric"))
        .args(["exec", "--", "sh", "-c", "echo $LD_PRELOAD"])
        .env("XDG_CACHE_HOME", "/proc")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("/softfabric-"));
}
