//! fio with its engine `rdma`: one job sends, another receives.

use std::path::PathBuf;

use crate::support::pair::{LIMIT, Pair, Ready, Server, free_port};
use crate::support::place::Place;
use crate::{Failures, support};

/// One message, and how many there are. The receiver has a request for each of them from the start: fio's engine asks for
/// no patience with a receiver that is not ready.
const SIZES: &str = "bs=64k\nsize=1m\n";

/// Writes both jobs, and runs them. `receiver` and `sender` are further lines.
fn once(place: &Place, verb: &str, receiver: &str, sender: &str) -> Result<(), String> {
    let port = free_port();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fio-{port}"));
    std::fs::create_dir_all(&folder).expect("cargo's folder for tests can be written to");
    let (server, client) = (folder.join("receiver.fio"), folder.join("sender.fio"));
    // As threads, jobs end with their process.
    let shared = format!("ioengine=rdma\nthread\nport={port}\n{SIZES}");
    let receiver = format!("[receiver]\nrw=read\niodepth=16\n{shared}{receiver}\n");
    let host = place.server();
    let depth = "iodepth=4\niodepth_batch_complete=4";
    let sender =
        format!("[sender]\nrw=write\nverb={verb}\nhostname={host}\n{depth}\n{shared}{sender}\n");
    std::fs::write(&server, receiver).expect("the folder can be written to");
    std::fs::write(&client, sender).expect("the folder can be written to");
    let words = [&server, &client].map(|job| ["fio".to_owned(), job.display().to_string()]);
    let [server, client] = words
        .each_ref()
        .map(|words| words.each_ref().map(String::as_str));
    let pair = Pair {
        server: &server,
        client: &client,
        variables: &[],
        says: "io=1024KiB",
        ends: Server::Ends,
        ready: Ready::Tries,
        limit: LIMIT,
    };
    let said = pair.attempt(place);
    let _ = std::fs::remove_dir_all(&folder);
    said.map_err(|problem| format!("{verb}: {problem}"))?;
    Ok(())
}

fn everything(test: &str, place: &Place) {
    if !support::has(test, "fio", "fio") {
        return;
    }
    let mut failures = Failures::default();
    for verb in ["write", "read", "send"] {
        failures.note(once(place, verb, "", ""));
    }
    // The receiver checks what it was sent.
    let sender = "verify=crc32c\ndo_verify=0\nverify_state_save=0";
    failures.note(once(place, "send", "verify=crc32c", sender));
    failures.report();
    let other = once(place, "send", "verify=md5", sender);
    assert!(other.is_err(), "the receiver checks nothing");
}

#[test]
fn fio() {
    everything("fio", &Place::Here);
}

#[test]
fn fio_across_two_hosts() {
    let test = "fio_across_two_hosts";
    if let Some(place) = Place::two_hosts(test) {
        everything(test, &place);
    }
}
