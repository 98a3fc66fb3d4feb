//! Two network namespaces with a cable between them: no memory is shared, every packet is RoCEv2 over UDP.
//!
//! It takes root and `ip`; the namespaces are made for the test and removed after it.

mod support;

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);

/// Two namespaces, `10.77.0.1` and `10.77.0.2`, gone when the value is.
struct Namespaces([String; 2]);

impl Namespaces {
    /// `None` where they cannot be made: not root, or no `ip`.
    fn make() -> Option<Self> {
        let name = |side: u8| format!("softfabric-{}-{side}", std::process::id());
        let made = Self([name(1), name(2)]);
        let [one, two] = &made.0;
        let [left, right] =
            [1, 2].map(|side| format!("sf{}{side}", std::process::id() % 10_000_000));
        let steps = [
            format!("netns add {one}"),
            format!("netns add {two}"),
            format!(
                "link add {left} netns {one} mtu 4500 type veth peer name {right} netns {two} mtu 4500"
            ),
            format!("-n {one} address add 10.77.0.1/24 dev {left}"),
            format!("-n {two} address add 10.77.0.2/24 dev {right}"),
            format!("-n {one} link set {left} up"),
            format!("-n {two} link set {right} up"),
            format!("-n {one} link set lo up"),
            format!("-n {two} link set lo up"),
        ];
        steps.iter().all(|step| ip(step)).then_some(made)
    }

    fn command(&self, side: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.0[side]])
            .args(program.split_whitespace())
            .env("LD_LIBRARY_PATH", support::library_folder())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&format!("netns delete {name}"));
        }
    }
}

fn ip(arguments: &str) -> bool {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output();
    output.is_ok_and(|output| output.status.success())
}

#[allow(clippy::disallowed_methods, reason = "real programs take real time")]
fn finish(mut child: Child, what: &str, since: Instant) -> Output {
    while child.try_wait().expect("it can be waited for").is_none() {
        if since.elapsed() > LIMIT {
            let _ = child.kill();
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("its output can be read");
    assert!(
        since.elapsed() <= LIMIT,
        "{what} did not end: {}",
        told(&output)
    );
    output
}

fn told(output: &Output) -> String {
    let texts =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    texts.concat()
}

#[test]
#[allow(clippy::disallowed_methods, reason = "real programs take real time")]
fn programs_reach_another_namespace() {
    let test = "programs_reach_another_namespace";
    if !support::has(test, "ibv_rc_pingpong", "ibverbs-utils")
        || !support::has(test, "ib_write_bw", "perftest")
    {
        return;
    }
    let Some(namespaces) = Namespaces::make() else {
        support::skipped(
            test,
            "network namespaces cannot be made (root, and package iproute2)",
        );
        return;
    };
    for program in [
        "ibv_rc_pingpong -d softfabric0 -g 0 -n 100 -c",
        "ibv_uc_pingpong -d softfabric0 -g 0 -n 100 -s 1024",
        "ibv_ud_pingpong -d softfabric0 -g 0 -n 100 -s 1024",
        "ibv_srq_pingpong -d softfabric0 -g 0 -n 100",
        "ib_write_bw -d softfabric0 -x 0 -F -n 50",
        "ib_read_lat -d softfabric0 -x 0 -F -n 50",
        "ib_atomic_lat -d softfabric0 -x 0 -F -n 50",
    ] {
        let since = Instant::now();
        let mut server = namespaces.command(0, program).spawn().expect("it starts");
        let client = loop {
            let client = format!("{program} 10.77.0.1");
            let child = namespaces.command(1, &client).spawn().expect("it starts");
            let output = finish(child, program, since);
            let refused = told(&output).contains("ouldn't connect");
            if output.status.success() || !refused || since.elapsed() > Duration::from_secs(20) {
                break output;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        if !client.status.success() {
            let _ = server.kill();
        }
        let server = server.wait_with_output().expect("its output can be read");
        let good = client.status.success() && server.status.success();
        assert!(
            good,
            "{program}: client {}server {}",
            told(&client),
            told(&server)
        );
    }
}
