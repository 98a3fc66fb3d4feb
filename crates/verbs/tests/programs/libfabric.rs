//! `fi_pingpong` (libfabric-bin) over the provider `verbs`: connected endpoints, datagrams, and the reliable datagrams that
//! libfabric builds on datagrams.
//!
//! Those that it builds on connections (`verbs;ofi_rxm`) are left to Open MPI: here, the last message and the end of the
//! connection cross, and libfabric calls a completion that it has not read yet a flushed one.

use crate::support::pair::{LIMIT, Pair, Ready, Server, free_port};
use crate::support::place::Place;
use crate::{Failures, support};

/// Both processes know nothing of each other but a control port.
fn once(place: &Place, options: &[&str]) -> Result<(), String> {
    let port = free_port();
    let text = port.to_string();
    // Every byte is checked.
    let shared = [&["fi_pingpong", "-I", "20", "-c"], options].concat();
    let server = [&shared[..], &["-B", &text]].concat();
    let client = [&shared[..], &["-P", &text, place.server()]].concat();
    let pair = Pair {
        server: &server,
        client: &client,
        variables: &[],
        says: "=20",
        ends: Server::Ends,
        ready: Ready::Listens(port),
        limit: LIMIT,
    };
    pair.attempt(place)?;
    Ok(())
}

fn everything(test: &str, place: &Place) {
    if !support::has(test, "fi_pingpong", "libfabric-bin") {
        return;
    }
    let mut failures = Failures::default();
    for options in [
        &["-p", "verbs", "-e", "msg"][..],
        &["-p", "verbs", "-e", "msg", "-S", "all"],
        &["-p", "verbs", "-e", "msg", "-d", "softfabric0"],
        &["-p", "verbs", "-e", "dgram", "-S", "1000"],
        // Without the second name libfabric takes the connections.
        &["-p", "verbs;ofi_rxd", "-e", "rdm", "-S", "4096"],
        &["-p", "verbs"],
    ] {
        failures.note(once(place, options));
    }
    failures.report();
}

#[test]
fn libfabric() {
    everything("libfabric", &Place::Here);
}

#[test]
fn libfabric_across_two_hosts() {
    let test = "libfabric_across_two_hosts";
    if let Some(place) = Place::two_hosts(test) {
        everything(test, &place);
    }
}
