//! rdmacm-utils, perftest with `-R`, qperf.

use crate::support;
use crate::support::pair::{Server, run};
use crate::support::place::Place;

const IP: &str = Place::SERVER;

/// A server and a client of the package rdmacm-utils, in both places.
fn example(test: &str, ends: Server, server: &[&str], client: &[&str], expected: &str) {
    if !support::has(test, client[0], "rdmacm-utils") {
        return;
    }
    for place in Place::both(test) {
        let said = run(&place, ends, server, client, &[]);
        assert!(said.contains(expected), "{client:?}: {said}");
    }
}

#[test]
fn rping() {
    let client = ["rping", "-c", "-a", IP, "-C", "10", "-v", "-V"];
    let server = ["rping", "-s", "-C", "10", "-V"];
    example("rping", Server::Ends, &server, &client, "rdma-ping-9");
}

#[test]
fn rping_over_ipv6() {
    let client = ["rping", "-c", "-a", Place::SERVER_6, "-C", "3", "-v", "-V"];
    let server = ["rping", "-s", "-a", "::", "-C", "3", "-V"];
    example(
        "rping_over_ipv6",
        Server::Ends,
        &server,
        &client,
        "rdma-ping-2",
    );
}

/// The server goes on after each client.
#[test]
fn rping_again_and_again() {
    let test = "rping_again_and_again";
    if !support::has(test, "rping", "rdmacm-utils") {
        return;
    }
    let Some(place) = Place::one_host(test) else {
        return;
    };
    // Three clients one after the other, in one shell. What they say tells whether they did their work: see `ended_well`.
    let client = format!(
        "for i in 1 2 3; do rping -c -a {IP} -C 2 -v -V | grep rdma-ping-1 || exit; done; echo all went well"
    );
    let said = run(
        &place,
        Server::Stays,
        &["rping", "-s", "-P", "-V"],
        &["sh", "-c", &client],
        &[],
    );
    assert!(said.contains("all went well"), "{said}");
}

#[test]
fn many_connections() {
    let client = ["ucmatose", "-s", IP, "-c", "100"];
    let server = ["ucmatose", "-c", "100"];
    example(
        "many_connections",
        Server::Ends,
        &server,
        &client,
        "return status 0",
    );
}

/// Over a network that loses, repeats and reorders.
#[test]
fn many_connections_over_a_bad_network() {
    let test = "many_connections_over_a_bad_network";
    if !support::has(test, "ucmatose", "rdmacm-utils") {
        return;
    }
    let faults = r#"{"faults":["drop:p=10%","duplicate:p=5%","reorder:p=5%"],"seed":7}"#;
    for place in Place::both(test) {
        let server = ["ucmatose", "-c", "20"];
        let client = ["ucmatose", "-s", IP, "-c", "20"];
        let variables = [("SOFTFABRIC", faults)];
        let said = run(&place, Server::Ends, &server, &client, &variables);
        assert!(said.contains("return status 0"), "{said}");
    }
}

/// With a type of service, an event channel that moves, and messages of other sizes.
#[test]
fn connections_with_options() {
    for options in [
        &["-t", "32"][..],
        &["-m"],
        &["-P", "ib"],
        &["-a", "15"],
        &["-S", "1000", "-C", "30"],
    ] {
        let server = [&["ucmatose"], options].concat();
        let client = [&["ucmatose", "-s", IP], options].concat();
        example(
            "connections_with_options",
            Server::Ends,
            &server,
            &client,
            "return status 0",
        );
    }
}

#[test]
fn datagrams() {
    let client = ["udaddy", "-s", IP, "-c", "5"];
    let server = ["udaddy", "-c", "5"];
    example(
        "datagrams",
        Server::Ends,
        &server,
        &client,
        "return status 0",
    );
}

#[test]
fn endpoints_made_in_one_call() {
    let client = ["rdma_client", "-s", IP];
    example(
        "endpoints_made_in_one_call",
        Server::Ends,
        &["rdma_server"],
        &client,
        "end 0",
    );
}

#[test]
fn connections_by_the_clock() {
    let client = ["cmtime", "-s", IP, "-c", "20"];
    let server = ["cmtime", "-c", "20"];
    example(
        "connections_by_the_clock",
        Server::Stays,
        &server,
        &client,
        "disconnect",
    );
}

#[test]
fn multicast() {
    let test = "multicast";
    if !support::has(test, "mckey", "rdmacm-utils") {
        return;
    }
    for place in Place::both(test) {
        let group = "239.8.0.1";
        let own = match place {
            Place::Here | Place::OneHost(_) => IP,
            Place::TwoHosts(_) => "10.8.0.2",
        };
        let client = ["mckey", "-b", own, "-m", group, "-s"];
        // The sender does not wait for members: it sends until they have heard it.
        let script = format!(
            "while sleep 0.2; do {} > /dev/null || exit; [ -e \"$DONE\" ] && echo heard && exit 0; done",
            client.join(" ")
        );
        let done = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("mckey-{}-{own}", std::process::id()));
        let _ = std::fs::remove_file(&done);
        let server = format!("mckey -b {IP} -m {group} && touch \"$DONE\"");
        let done_text = done.display().to_string();
        let variables = [("DONE", done_text.as_str())];
        let said = run(
            &place,
            Server::Ends,
            &["sh", "-c", &server],
            &["sh", "-c", &script],
            &variables,
        );
        assert!(said.contains("heard"), "{said}");
        let _ = std::fs::remove_file(&done);
    }
}

#[test]
fn perftest() {
    for program in [
        "ib_send_bw",
        "ib_send_lat",
        "ib_write_bw",
        "ib_write_lat",
        "ib_read_bw",
        "ib_read_lat",
        "ib_atomic_bw",
        "ib_atomic_lat",
    ] {
        perftest_with("perftest", program, &[]);
    }
}

#[test]
fn perftest_with_many_queue_pairs_and_datagrams() {
    let test = "perftest_with_many_queue_pairs_and_datagrams";
    perftest_with(test, "ib_write_bw", &["-q", "8"]);
    perftest_with(test, "ib_send_bw", &["-c", "UD"]);
    perftest_with(test, "ib_send_bw", &["-b", "-e"]);
    perftest_with(test, "ib_send_bw", &["-r", "64", "--use-srq"]);
}

fn perftest_with(test: &str, program: &str, options: &[&str]) {
    if !support::has(test, program, "perftest") {
        return;
    }
    for place in Place::both(test) {
        let server = [&[program, "-R", "-F", "-n", "50"], options].concat();
        let client = [&server[..], &[IP]].concat();
        let said = run(&place, Server::Ends, &server, &client, &[]);
        assert!(said.contains("#bytes"), "{program}: {said}");
    }
}

#[test]
fn qperf() {
    let test = "qperf";
    if !support::has(test, "qperf", "qperf") {
        return;
    }
    for place in Place::both(test) {
        let client = [
            "qperf",
            IP,
            "-cm",
            "1",
            "-t",
            "1",
            "-m",
            "4096",
            "rc_bw",
            "rc_lat",
            "rc_rdma_read_bw",
        ];
        let said = run(&place, Server::Stays, &["qperf"], &client, &[]);
        assert!(said.contains("rc_rdma_read_bw"), "{said}");
    }
}

/// Messages that are posted inline although nobody has asked for room, and extended connections.
#[test]
fn messages_without_asking_for_room() {
    for kind in ["r", "x"] {
        let client = ["rdma_xclient", "-s", IP, "-c", kind];
        example(
            "messages_without_asking_for_room",
            Server::Ends,
            &["rdma_xserver", "-c", kind],
            &client,
            "end 0",
        );
    }
}

/// This host by its own name for itself: no device is chosen by it, and the first one leads there.
#[test]
fn this_host_by_its_own_name() {
    let test = "this_host_by_its_own_name";
    if !support::has(test, "rping", "rdmacm-utils") {
        return;
    }
    for (bound, asked) in [
        ("0.0.0.0", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
    ] {
        let Some(place) = Place::one_host(test) else {
            return;
        };
        let client = ["rping", "-c", "-a", asked, "-C", "3", "-v", "-V"];
        let server = ["rping", "-s", "-a", bound, "-C", "3", "-V"];
        let said = run(&place, Server::Ends, &server, &client, &[]);
        assert!(said.contains("rdma-ping-2"), "{said}");
    }
}
