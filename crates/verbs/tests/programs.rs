//! Debian's own programs, unmodified, run on the library: two processes on one host.
//!
//! What a machine lacks is skipped, and said.

mod support;

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// How long two processes may take together: a busy machine with one processor is slow.
const LIMIT: Duration = Duration::from_secs(120);

/// A port that no other test of this run uses.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let base = 20_000 + (std::process::id() % 20_000) as u16;
    base + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("LD_LIBRARY_PATH", support::library_folder())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Waits for a child's end; ends it itself after the limit.
#[allow(clippy::disallowed_methods, reason = "real programs take real time")]
fn finish(mut child: Child, what: &str, since: Instant) -> Output {
    loop {
        match child.try_wait().expect("it can be waited for") {
            Some(_) => return child.wait_with_output().expect("its output can be read"),
            None if since.elapsed() > LIMIT => {
                let _ = child.kill();
                let output = child.wait_with_output().expect("its output can be read");
                panic!("{what} did not end within {LIMIT:?}: {}", told(&output));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn told(output: &Output) -> String {
    let texts =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    texts.concat()
}

/// Runs one program to its end and returns what it said.
#[allow(clippy::disallowed_methods, reason = "real programs take real time")]
fn run(program: &str, arguments: &[&str]) -> String {
    let child = command(program, arguments).spawn().expect("it starts");
    let output = finish(child, program, Instant::now());
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        told(&output)
    );
    told(&output)
}

/// Runs a program as server and as client, and returns what the client said. `port` is the option that takes the TCP
/// port over which the two find each other.
#[allow(clippy::disallowed_methods, reason = "real programs take real time")]
fn run_pair(program: &str, port_option: &str, arguments: &[&str]) -> String {
    let port = free_port().to_string();
    let shared: Vec<&str> = arguments
        .iter()
        .copied()
        .chain([port_option, &port])
        .collect();
    let what = format!("{program} {}", arguments.join(" "));
    let since = Instant::now();
    let server = command(program, &shared).spawn().expect("it starts");
    // The server listens when it is ready; a client that comes too early is refused and tries again.
    let client = loop {
        let mut arguments = shared.clone();
        arguments.push("localhost");
        let child = command(program, &arguments).spawn().expect("it starts");
        let output = finish(child, &what, since);
        let refused = told(&output).contains("ouldn't connect");
        if output.status.success() || !refused || since.elapsed() > Duration::from_secs(20) {
            break output;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if !client.status.success() {
        let mut server = server;
        let _ = server.kill();
        let server = server.wait_with_output().expect("its output can be read");
        panic!(
            "{what}: client {}: {}server: {}",
            client.status,
            told(&client),
            told(&server)
        );
    }
    let server = finish(server, &what, since);
    assert!(
        server.status.success(),
        "{what}: server {}: {}",
        server.status,
        told(&server)
    );
    told(&client)
}

#[test]
fn devices_are_listed() {
    if support::has("devices_are_listed", "ibv_devices", "ibverbs-utils") {
        assert!(run("ibv_devices", &[]).contains("softfabric0"));
    }
}

#[test]
fn a_device_tells_everything_about_itself() {
    if !support::has(
        "a_device_tells_everything_about_itself",
        "ibv_devinfo",
        "ibverbs-utils",
    ) {
        return;
    }
    let text = run("ibv_devinfo", &["-v", "-d", "softfabric0"]);
    for word in [
        "PORT_ACTIVE",
        "Ethernet",
        "RoCE v2",
        "ATOMIC_HCA",
        "MEM_WINDOW_TYPE_2B",
        "LINK_UP",
    ] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
}

/// `ibv_rc_pingpong` and its kin: with polling, with events, with other sizes.
#[test]
fn pingpongs() {
    for service in ["rc", "uc", "ud", "srq"] {
        let program = format!("ibv_{service}_pingpong");
        if !support::has("pingpongs", &program, "ibverbs-utils") {
            return;
        }
        let size = if service == "ud" { "1000" } else { "65536" };
        for options in [&[][..], &["-e"], &["-s", size], &["-c"]] {
            if service == "srq" && options == ["-c"] {
                continue;
            }
            let arguments = [&["-d", "softfabric0", "-g", "0", "-n", "100"], options].concat();
            let text = run_pair(&program, "-p", &arguments);
            assert!(
                text.contains("100 iters") || text.contains("00 iters"),
                "{text}"
            );
        }
    }
}

/// Extended reliable connections: one shared receive queue for all.
#[test]
fn a_pingpong_of_extended_connections() {
    let test = "a_pingpong_of_extended_connections";
    if !support::has(test, "ibv_xsrq_pingpong", "ibverbs-utils") {
        return;
    }
    let arguments = ["-d", "softfabric0", "-g", "0", "-n", "100", "-c", "1"];
    let text = run_pair("ibv_xsrq_pingpong", "-p", &arguments);
    assert!(text.contains("success"), "{text}");
}

/// The extended interfaces, as the pingpong of reliable connections uses them.
#[test]
fn a_pingpong_with_everything_new() {
    if !support::has(
        "a_pingpong_with_everything_new",
        "ibv_rc_pingpong",
        "ibverbs-utils",
    ) {
        return;
    }
    // `-t` together with `-e` is left out: that program takes an event for a promise of a completion that it may have
    // read already.
    //
    // Completion times, on-demand paging, all of memory as one region, prefetching, device memory, requests built by calls.
    for options in [
        &["-t"][..],
        &["-o"],
        &["-o", "-P"],
        &["-O"],
        &["-j"],
        &["-N"],
        &["-N", "-e"],
    ] {
        let arguments = [&["-d", "softfabric0", "-g", "0", "-n", "100"], options].concat();
        run_pair("ibv_rc_pingpong", "-p", &arguments);
    }
}

/// A test of the perftest package, with its options in words.
fn perftest(test: &str, program: &str, options: &[&str]) {
    if !support::has(test, program, "perftest") {
        return;
    }
    for options in options {
        let mut arguments = vec!["-d", "softfabric0", "-x", "0", "-F"];
        arguments.extend(options.split_whitespace());
        run_pair(program, "-p", &arguments);
    }
}

#[test]
fn perftest_send_bandwidth() {
    let options = [
        "-a -n 10",
        "-b -n 50",
        "-q 8 -n 50",
        "-e -n 50",
        "-c UC -n 50",
        "-c UD -n 50 -s 1024",
        "-I 64 -s 64 -n 50",
    ];
    perftest("perftest_send_bandwidth", "ib_send_bw", &options);
}

#[test]
fn perftest_write_bandwidth() {
    let options = [
        "-a -n 10",
        "-b -n 50",
        "-q 8 -n 50",
        "-c UC -n 50",
        "-l 5 -n 50",
    ];
    perftest("perftest_write_bandwidth", "ib_write_bw", &options);
}

#[test]
fn perftest_read_bandwidth() {
    perftest(
        "perftest_read_bandwidth",
        "ib_read_bw",
        &["-a -n 10", "-b -n 50", "-q 8 -n 50", "-e -n 50"],
    );
}

#[test]
fn perftest_atomic_bandwidth() {
    let options = [
        "-n 50",
        "-b -n 50",
        "-q 8 -n 50",
        "-e -n 50",
        "-A CMP_AND_SWAP -n 50",
    ];
    perftest("perftest_atomic_bandwidth", "ib_atomic_bw", &options);
}

#[test]
fn perftest_send_latency() {
    let options = ["-a -n 10", "-e -n 50", "-c UC -n 50", "-c UD -n 50 -s 1024"];
    perftest("perftest_send_latency", "ib_send_lat", &options);
}

#[test]
fn perftest_write_latency() {
    perftest(
        "perftest_write_latency",
        "ib_write_lat",
        &["-n 50", "-s 65536 -n 20", "-c UC -n 50"],
    );
}

#[test]
fn perftest_read_latency() {
    perftest(
        "perftest_read_latency",
        "ib_read_lat",
        &["-a -n 10", "-e -n 50"],
    );
}

#[test]
fn perftest_atomic_latency() {
    perftest(
        "perftest_atomic_latency",
        "ib_atomic_lat",
        &["-n 50", "-e -n 50", "-A CMP_AND_SWAP -n 50"],
    );
}

/// qperf's server serves many clients, one after another.
#[test]
#[allow(clippy::disallowed_methods, reason = "real programs take real time")]
fn qperf() {
    if !support::has("qperf", "qperf", "qperf") {
        return;
    }
    let port = free_port().to_string();
    let mut server = command("qperf", &["--listen_port", &port])
        .spawn()
        .expect("it starts");
    let since = Instant::now();
    let tests = "rc_bw rc_lat uc_bw uc_lat ud_bw ud_lat rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw \
                 rc_rdma_write_poll_lat rc_fetch_add_mr uc_rdma_write_lat ver_rc_compare_swap";
    let mut failures = Vec::new();
    for test in tests.split_whitespace() {
        // A message fits a datagram on any interface.
        let size = ["-lp", &port, "-i", "softfabric0", "-t", "1", "-m", "1K"];
        let arguments = [&size[..], &["localhost", test]].concat();
        let child = command("qperf", &arguments).spawn().expect("it starts");
        let output = finish(child, test, since);
        if !output.status.success() {
            failures.push(format!("{test}: {}", told(&output)));
        }
    }
    let _ = server.kill();
    let _ = server.wait();
    let mut said = String::new();
    if let Some(mut text) = server.stderr.take() {
        let _ = text.read_to_string(&mut said);
    }
    assert!(
        failures.is_empty(),
        "{failures:#?} (the server said: {said})"
    );
}
