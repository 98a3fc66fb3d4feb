//! rsockets: the socket interface that librdmacm makes of connections and datagrams.

use crate::support;
use crate::support::pair::{Server, preload, run};
use crate::support::place::Place;

const IP: &str = Place::SERVER;

fn example(test: &str, program: &str, options: &[&str]) {
    if !support::has(test, program, "rdmacm-utils") {
        return;
    }
    for place in Place::both(test) {
        let server = [&[program], options].concat();
        let client = [&[program, "-s", IP], options].concat();
        let said = run(&place, Server::Ends, &server, &client, &[]);
        assert!(said.contains("usec/xfer"), "{client:?}: {said}");
    }
}

/// `-T a` is left out: that program takes the other side's end for an error, if it comes together with the last data.
#[test]
fn streams() {
    for way in ["b", "n", "r"] {
        example("streams", "rstream", &["-S", "4096", "-C", "20", "-T", way]);
    }
    example("streams", "rstream", &["-S", "1000000", "-C", "10"]);
}

#[test]
fn streams_into_memory() {
    example(
        "streams_into_memory",
        "riostream",
        &["-S", "65536", "-C", "20"],
    );
}

/// A program that knows sockets only, made to use rsockets, whose server gives each connection to a child process.
#[test]
fn streams_of_forked_servers() {
    let test = "streams_of_forked_servers";
    if !support::has(test, "rstream", "rdmacm-utils") {
        return;
    }
    let Some(library) = preload(test, "rsocket/librspreload.so", "librdmacm1") else {
        return;
    };
    let library = library.display().to_string();
    let variables = [("LD_PRELOAD", library.as_str()), ("RDMAV_FORK_SAFE", "1")];
    for place in Place::both(test) {
        let options = ["-T", "f", "-S", "4096", "-C", "10"];
        let server = [&["rstream"], &options[..]].concat();
        let client = [&["rstream", "-s", IP], &options[..]].concat();
        let said = run(&place, Server::Stays, &server, &client, &variables);
        assert!(said.contains("usec/xfer"), "{said}");
    }
}

#[test]
fn datagram_sockets() {
    let test = "datagram_sockets";
    if !support::has(test, "udpong", "rdmacm-utils") {
        return;
    }
    for place in Place::both(test) {
        let client = ["udpong", "-s", IP, "-S", "1000", "-C", "50"];
        let said = run(&place, Server::Stays, &["udpong", "-b", IP], &client, &[]);
        assert!(said.contains("usec/xfer"), "{said}");
    }
}

#[test]
fn files_are_copied() {
    let test = "files_are_copied";
    if !support::has(test, "rcopy", "rdmacm-utils") {
        return;
    }
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("rcopy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("cargo's folder for tests can be written to");
    let bytes: Vec<u8> = (0..1_000_003_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let (from, to) = (folder.join("from"), folder.join("to"));
    std::fs::write(&from, &bytes).expect("the folder can be written to");
    for place in Place::both(test) {
        let _ = std::fs::remove_file(&to);
        let target = format!("{IP}:{}", to.display());
        let client = ["rcopy", &from.display().to_string(), &target];
        run(&place, Server::Stays, &["rcopy"], &client, &[]);
        let copied = std::fs::read(&to).expect("the file is there");
        assert!(copied == bytes, "{} bytes, or others", copied.len());
    }
    let _ = std::fs::remove_dir_all(&folder);
}
