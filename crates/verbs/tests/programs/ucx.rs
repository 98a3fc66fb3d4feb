//! `ucx_perftest` (ucx-utils): the transports of reliable connections and of datagrams alone, and what UCP builds on them.

use crate::support::place::Place;
use crate::{Failures, same_options, support};

/// One test of the program; `Err` if it does not print figures.
fn once(place: &Place, words: &[&str], variables: &[(&str, &str)]) -> Result<(), String> {
    let words = [&["ucx_perftest"], words, &["-w", "10"]].concat();
    let said = same_options(place, &words, "-p", variables)?;
    match said.contains("Final:") && !said.contains("ERROR") {
        true => Ok(()),
        false => Err(format!("{words:?}: {said}")),
    }
}

/// UCT: the transport by itself.
fn transport(place: &Place, name: &str, tests: &[&str], failures: &mut Failures) {
    for test in tests {
        let words = [
            "-x",
            name,
            "-d",
            "softfabric0:1",
            "-t",
            test,
            "-n",
            "200",
            "-s",
            "8",
        ];
        failures.note(once(place, &words, &[]));
    }
}

/// UCP: whatever it makes of the transport; it picks ways by size.
fn protocol(place: &Place, transports: &str, tests: &[&str], failures: &mut Failures) {
    let variables = [
        ("UCX_TLS", transports),
        ("UCX_NET_DEVICES", "softfabric0:1"),
    ];
    for test in tests {
        let sizes: &[&str] = match *test {
            "ucp_add" | "ucp_fadd" | "ucp_swap" | "ucp_cswap" => &["8"],
            _ => &["8", "300000"],
        };
        for size in sizes {
            let words = ["-t", test, "-n", "100", "-s", size];
            failures.note(once(place, &words, &variables));
        }
    }
}

const AM_PUT_ADD: [&str; 5] = ["am_lat", "am_bw", "put_lat", "put_bw", "add_mr"];
const UCP: [&str; 7] = [
    "tag_lat",
    "tag_bw",
    "ucp_put_lat",
    "ucp_put_bw",
    "ucp_get",
    "ucp_am_lat",
    "stream_bw",
];

fn everything(test: &str, place: &Place) {
    if !support::has(test, "ucx_perftest", "ucx-utils") {
        return;
    }
    let mut failures = Failures::default();
    transport(place, "rc_verbs", &AM_PUT_ADD, &mut failures);
    // Datagrams have no one-sided operations.
    transport(place, "ud_verbs", &AM_PUT_ADD[..2], &mut failures);
    protocol(place, "rc_v,self", &UCP, &mut failures);
    protocol(
        place,
        "rc_v,self",
        &["ucp_add", "ucp_fadd", "ucp_cswap"],
        &mut failures,
    );
    protocol(place, "ud_v,self", &UCP[..3], &mut failures);
    failures.report();
}

#[test]
fn ucx() {
    everything("ucx", &Place::Here);
}

#[test]
fn ucx_across_two_hosts() {
    let test = "ucx_across_two_hosts";
    if let Some(place) = Place::two_hosts(test) {
        everything(test, &place);
    }
}
