//! The library where programs may not do everything, as in containers: the slower path is taken where there is one;
//! otherwise one line says what to do.

mod support;

use std::path::Path;
use std::process::Command;

/// Runs a shell script in a network namespace of its own, in which `lo` is up, with the library in place. Returns what
/// it said on both streams.
fn script(test: &str, script: &str, variables: &[(&str, &Path)]) -> Option<String> {
    let possible = Command::new("unshare").args(["-nm", "true"]).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        support::skipped(test, "namespaces cannot be made here (root can)");
        return None;
    }
    let text = format!("exec 2>&1; ip link set lo up; ip addr add 192.0.2.9/32 dev lo; {script}");
    let output = Command::new("timeout")
        .args(["60", "unshare", "-nm", "sh", "-c", &text])
        .envs(variables.iter().copied())
        .env("LD_LIBRARY_PATH", support::library_folder())
        .output()
        .expect("the shell starts");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A server in the background, a client that tries until it is there, and what both ended with.
const PAIR: &str = r#"
    pair() {
        "$@" > server.txt 2>&1 & server=$!
        for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
            "$@" 127.0.0.1 > client.txt 2>&1; client=$?
            grep -q "ouldn't connect" client.txt || break
            sleep 0.2
        done
        if [ $client = 0 ] && grep -q "MB/sec" client.txt; then
            echo "the client is content"
        else
            kill $server
        fi
        wait $server && echo "the server is content"
        cat server.txt client.txt
    }
    cd "$(mktemp -d)"
"#;

fn pairs(test: &str, before: &str, variables: &[(&str, &Path)]) {
    if !support::has(test, "ib_read_bw", "perftest") {
        return;
    }
    let mut text = format!("{PAIR}\n{before}\n");
    for program in ["ib_read_bw", "ib_write_bw", "ib_send_bw"] {
        let size = "-s 1048576 -n 50 -F -x 0 -d softfabric0";
        text.push_str(&format!("pair $WRAPPER {program} {size}\n"));
    }
    text.push_str("rm -r \"$PWD\"");
    let Some(said) = script(test, &text, variables) else {
        return;
    };
    for who in ["server", "client"] {
        let content = said.matches(&format!("the {who} is content")).count();
        assert_eq!(content, 3, "{said}");
    }
}

#[test]
fn the_memory_of_other_processes_may_be_forbidden() {
    let test = "the_memory_of_other_processes_may_be_forbidden";
    let Some(forbid) = support::compile(test, "forbid", include_str!("c/forbid.c")) else {
        return;
    };
    pairs(test, "", &[("WRAPPER", &forbid)]);
}

#[test]
fn there_may_be_no_place_for_shared_files() {
    let test = "there_may_be_no_place_for_shared_files";
    pairs(test, "mount -t tmpfs -o ro none /dev/shm || exit", &[]);
}

#[test]
fn there_may_be_no_locked_memory() {
    // Who has the capability is not bound by the limit.
    let wrapper = Path::new("setpriv --bounding-set=-ipc_lock");
    pairs(
        "there_may_be_no_locked_memory",
        "ulimit -l 0 || exit",
        &[("WRAPPER", wrapper)],
    );
}

#[test]
fn a_port_that_others_keep_is_named() {
    let test = "a_port_that_others_keep_is_named";
    if !support::has(test, "ibv_rc_pingpong", "ibverbs-utils")
        || !support::has(test, "python3", "python3")
    {
        return;
    }
    let text = r#"
        python3 -c '
import socket, subprocess
holder = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
holder.bind(("::", 4791))
subprocess.run(["ibv_rc_pingpong", "-d", "softfabric0", "-g", "0"])'"#;
    let Some(said) = script(test, text, &[]) else {
        return;
    };
    let line = said.lines().find(|line| line.starts_with("softfabric: "));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    for part in ["softfabric0", "UDP port 4791 is in use", "namespace"] {
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn too_few_descriptors_are_named() {
    let test = "too_few_descriptors_are_named";
    if !support::has(test, "ibv_rc_pingpong", "ibverbs-utils") {
        return;
    }
    for limit in [5, 6, 8] {
        let text = format!("ulimit -n {limit}; ibv_rc_pingpong -d softfabric0 -g 0");
        let Some(said) = script(test, &text, &[]) else {
            return;
        };
        let line = said.lines().find(|line| line.starts_with("softfabric: "));
        let line = line.unwrap_or_else(|| panic!("{limit}: {said}"));
        assert!(line.contains("ulimit -n"), "{limit}: {line}");
    }
}

/// An address more, as when IPv6 has made its own: the device is the same, and so are the places of the addresses that it
/// was opened with.
#[test]
fn an_address_may_come_later() {
    let test = "an_address_may_come_later";
    let source = include_str!("c/new_address.c");
    let headers = Path::new("/usr/include/rdma/rdma_cma.h");
    if !headers.is_file() {
        return support::skipped(test, "librdmacm's headers are not there (librdmacm-dev)");
    }
    let Some(program) = support::compile_with(test, "new_address", source, &["-lrdmacm"]) else {
        return;
    };
    let text = "timeout 20 \"$PROGRAM\"";
    let Some(said) = script(test, text, &[("PROGRAM", &program)]) else {
        return;
    };
    assert_eq!(said.trim(), "connected");
}
