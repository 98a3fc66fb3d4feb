//! The examples of libibverbs (ibverbs-utils): what devices say of themselves, and the pingpongs.

use std::time::Duration;

use crate::support::place::{End, Place};
use crate::support::running::Running;
use crate::{Failures, same_options, support};

const DEVICE: [&str; 6] = ["-d", "softfabric0", "-g", "0", "-n", "100"];

/// Runs one program to its end and returns what it said.
#[allow(clippy::disallowed_methods, reason = "real programs take real time")]
fn run(words: &[&str]) -> String {
    let command = Place::Here.command(End::Client, words, &[]);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let ended = Running::start(command, &words.join(" ")).finish(deadline);
    assert!(ended.status.success(), "{words:?}: {}", ended.said);
    ended.said
}

#[test]
fn devices_are_listed() {
    if support::has("devices_are_listed", "ibv_devices", "ibverbs-utils") {
        assert!(run(&["ibv_devices"]).contains("softfabric0"));
    }
}

#[test]
fn a_device_tells_everything_about_itself() {
    let test = "a_device_tells_everything_about_itself";
    if !support::has(test, "ibv_devinfo", "ibverbs-utils") {
        return;
    }
    let text = run(&["ibv_devinfo", "-v", "-d", "softfabric0"]);
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

/// A pingpong with several sets of options.
fn pingpong(test: &str, place: &Place, program: &str, options: &[&[&str]]) {
    if !support::has(test, program, "ibverbs-utils") {
        return;
    }
    let mut failures = Failures::default();
    for options in options {
        let words = [&[program], &DEVICE[..], options].concat();
        if let Some(said) = failures.note(same_options(place, &words, "-p", &[])) {
            assert!(said.contains("00 iters"), "{words:?}: {said}");
        }
    }
    failures.report();
}

/// `ibv_rc_pingpong` and its kin: with polling, with events, with other sizes.
#[test]
fn pingpongs() {
    let here = &Place::Here;
    let all: [&[&str]; 4] = [&[], &["-e"], &["-s", "65536"], &["-c"]];
    pingpong("pingpongs", here, "ibv_rc_pingpong", &all);
    pingpong("pingpongs", here, "ibv_uc_pingpong", &all);
    pingpong("pingpongs", here, "ibv_srq_pingpong", &all[..3]);
    let small: [&[&str]; 4] = [&[], &["-e"], &["-s", "1000"], &["-c"]];
    pingpong("pingpongs", here, "ibv_ud_pingpong", &small);
}

/// Extended reliable connections: one shared receive queue for all.
#[test]
fn a_pingpong_of_extended_connections() {
    let test = "a_pingpong_of_extended_connections";
    if !support::has(test, "ibv_xsrq_pingpong", "ibverbs-utils") {
        return;
    }
    let words = [&["ibv_xsrq_pingpong", "-c", "1"], &DEVICE[..]].concat();
    let said = same_options(&Place::Here, &words, "-p", &[]);
    let said = said.unwrap_or_else(|problem| panic!("{problem}"));
    assert!(said.contains("success"), "{said}");
}

/// The extended interfaces, as the pingpong of reliable connections uses them: completion times, on-demand paging, all of
/// memory as one region, prefetching, device memory, requests built by calls.
///
/// `-t` together with `-e` is left out: that program takes an event for a promise of a completion that it may have read
/// already.
#[test]
fn a_pingpong_with_everything_new() {
    let options: [&[&str]; 7] = [
        &["-t"],
        &["-o"],
        &["-o", "-P"],
        &["-O"],
        &["-j"],
        &["-N"],
        &["-N", "-e"],
    ];
    let test = "a_pingpong_with_everything_new";
    pingpong(test, &Place::Here, "ibv_rc_pingpong", &options);
}

/// No memory is shared: every packet is RoCEv2 over UDP.
#[test]
fn pingpongs_across_two_hosts() {
    let test = "pingpongs_across_two_hosts";
    let Some(place) = Place::two_hosts(test) else {
        return;
    };
    pingpong(test, &place, "ibv_rc_pingpong", &[&["-c"], &["-e"]]);
    pingpong(test, &place, "ibv_uc_pingpong", &[&["-s", "1024"]]);
    pingpong(test, &place, "ibv_ud_pingpong", &[&["-s", "1024"]]);
    pingpong(test, &place, "ibv_srq_pingpong", &[&[]]);
}
