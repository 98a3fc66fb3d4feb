//! Programs that open files themselves find those of our devices, where the library is preloaded into them.

mod support;

use std::process::Command;

/// Runs an ordinary program with the library preloaded.
fn run(program: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program)
        .args(arguments)
        .env(
            "LD_PRELOAD",
            support::library_folder().join("libibverbs.so.1"),
        )
        .output()
        .expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn ordinary_programs_find_the_files() {
    let (_, devices) = run("ls", &["/sys/class/infiniband"]);
    assert!(devices.contains("softfabric0"), "{devices}");
    let (_, interface) = run("ls", &["/sys/class/infiniband/softfabric0/device/net"]);
    assert!(interface.trim().lines().count() == 1, "{interface}");
    let (_, state) = run("cat", &["/sys/class/infiniband/softfabric0/ports/1/state"]);
    assert_eq!(state, "4: ACTIVE\n");
    let (character_device, said) = run("sh", &["-c", "test -c /dev/infiniband/uverbs0"]);
    assert!(character_device, "{said}");
}

#[test]
fn other_paths_lead_where_they_always_led() {
    let (exists, _) = run("sh", &["-c", "test -e /sys/class/infiniband_none"]);
    assert!(!exists);
    let (_, own) = run("cat", &[concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    assert!(own.contains("softfabric-verbs"), "{own}");
    let (found, said) = run("ls", &["/sys/class/infiniband/softfabric0/nothing"]);
    assert!(!found && said.contains("No such file"), "{said}");
}
