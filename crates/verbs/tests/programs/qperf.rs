//! qperf, whose server serves many clients one after another.

use crate::support;
use crate::support::pair::{LIMIT, Pair, Ready, Server, free_port};
use crate::support::place::Place;

#[test]
fn qperf() {
    if !support::has("qperf", "qperf", "qperf") {
        return;
    }
    let port = free_port();
    let text = port.to_string();
    let tests = "rc_bw rc_lat uc_bw uc_lat ud_bw ud_lat rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw \
                 rc_rdma_write_poll_lat rc_fetch_add_mr uc_rdma_write_lat ver_rc_compare_swap";
    let tests: Vec<&str> = tests.split_whitespace().collect();
    // A message fits a datagram on any interface.
    let client = [
        "qperf",
        "-lp",
        &text,
        "-i",
        "softfabric0",
        "-t",
        "1",
        "-m",
        "1K",
    ];
    let client = [&client[..], &["localhost"], &tests].concat();
    let pair = Pair {
        server: &["qperf", "--listen_port", &text],
        client: &client,
        variables: &[],
        says: "",
        ends: Server::Stays,
        ready: Ready::Listens(port),
        limit: LIMIT,
    };
    let said = pair.run(&Place::Here);
    for test in tests {
        assert!(said.contains(&format!("{test}:")), "{test}: {said}");
    }
}
