//! The package perftest: a few options of each program always, all that go together on demand.

use crate::support::pair::{LIMIT, Pair, Ready, Server, free_port};
use crate::support::place::Place;
use crate::{Failures, support};

/// Runs one program with options, in words. With `-R` among them, connections are managed, and the client can only try.
fn once(place: &Place, program: &str, options: &str) -> Result<String, String> {
    let port = free_port();
    let text = port.to_string();
    let managed = options.split_whitespace().any(|option| option == "-R");
    let device: &[&str] = match managed {
        true => &[],
        false => &["-d", "softfabric0", "-x", "0"],
    };
    let options: Vec<&str> = options.split_whitespace().collect();
    let server = [&[program, "-F", "-p", &text], device, &options].concat();
    let client = [&server[..], &[place.server()]].concat();
    let pair = Pair {
        server: &server,
        client: &client,
        variables: &[],
        says: "#bytes",
        ends: Server::Ends,
        ready: match managed {
            true => Ready::Tries,
            false => Ready::Listens(port),
        },
        limit: LIMIT,
    };
    let said = pair.attempt(place)?;
    // The table's head, and a line under it.
    let table = said.lines().skip_while(|line| !line.contains("#bytes"));
    match table
        .skip(1)
        .any(|line| line.trim().starts_with(|c: char| c.is_ascii_digit()))
    {
        true => Ok(said),
        false => Err(format!("{client:?}: no figures: {said}")),
    }
}

/// A program with several sets of options.
fn perftest(test: &str, place: &Place, program: &str, options: &[&str]) {
    if !support::has(test, program, "perftest") {
        return;
    }
    let mut failures = Failures::default();
    for options in options {
        failures.note(once(place, program, options));
    }
    failures.report();
}

#[test]
fn send_bandwidth() {
    let options = [
        "-a -n 10",
        "-b -n 50",
        "-q 8 -n 50",
        "-e -n 50",
        "-c UC -n 50",
        "-c UC -q 8 -e -n 50",
        "-c UD -a -b -n 50",
        "-c UD -q 8 -e -n 50",
        "-I 64 -s 64 -n 50",
        "-R -a -n 10",
    ];
    perftest("send_bandwidth", &Place::Here, "ib_send_bw", &options);
}

#[test]
fn write_bandwidth() {
    let options = [
        "-a -n 10",
        "-b -n 50",
        "-q 8 -n 50",
        "-c UC -n 50",
        "-c UC -a -b -n 10",
        "-l 5 -n 50",
        "-R -q 8 -b -n 50",
    ];
    perftest("write_bandwidth", &Place::Here, "ib_write_bw", &options);
}

#[test]
fn read_bandwidth() {
    let options = [
        "-a -n 10",
        "-b -n 50",
        "-q 8 -n 50",
        "-e -n 50",
        "-R -b -e -n 50",
    ];
    perftest("read_bandwidth", &Place::Here, "ib_read_bw", &options);
}

#[test]
fn atomic_bandwidth() {
    let options = [
        "-n 50",
        "-b -n 50",
        "-q 8 -n 50",
        "-e -n 50",
        "-A CMP_AND_SWAP -n 50",
        "-R -q 8 -n 50",
    ];
    perftest("atomic_bandwidth", &Place::Here, "ib_atomic_bw", &options);
}

#[test]
fn send_latency() {
    let options = [
        "-a -n 10",
        "-e -n 50",
        "-c UC -n 50",
        "-c UD -a -n 50",
        "-R -e -n 50",
    ];
    perftest("send_latency", &Place::Here, "ib_send_lat", &options);
}

#[test]
fn write_latency() {
    let options = ["-a -n 10", "-c UC -n 50", "-R -n 50"];
    perftest("write_latency", &Place::Here, "ib_write_lat", &options);
}

#[test]
fn read_latency() {
    let options = ["-a -n 10", "-e -n 50", "-R -n 50"];
    perftest("read_latency", &Place::Here, "ib_read_lat", &options);
}

#[test]
fn atomic_latency() {
    let options = ["-n 50", "-e -n 50", "-A CMP_AND_SWAP -n 50", "-R -n 50"];
    perftest("atomic_latency", &Place::Here, "ib_atomic_lat", &options);
}

/// No memory is shared: every packet is RoCEv2 over UDP.
#[test]
fn across_two_hosts() {
    let test = "across_two_hosts";
    let Some(place) = Place::two_hosts(test) else {
        return;
    };
    perftest(
        test,
        &place,
        "ib_send_bw",
        &["-a -n 10", "-c UD -q 8 -e -n 50"],
    );
    perftest(test, &place, "ib_send_lat", &["-e -n 50"]);
    perftest(
        test,
        &place,
        "ib_write_bw",
        &["-b -q 8 -n 50", "-c UC -n 50"],
    );
    perftest(test, &place, "ib_write_lat", &["-s 65536 -n 20"]);
    perftest(test, &place, "ib_read_bw", &["-b -e -n 50"]);
    perftest(test, &place, "ib_read_lat", &["-a -n 10"]);
    perftest(test, &place, "ib_atomic_bw", &["-q 8 -n 50"]);
    perftest(test, &place, "ib_atomic_lat", &["-e -n 50"]);
}

/// Every set of options that a program takes, by the program's name.
fn all_options(program: &str) -> Vec<String> {
    let has = |word| program.contains(word);
    let services: &[&str] = match program {
        _ if has("send") => &["RC", "UC", "UD"],
        _ if has("write") => &["RC", "UC"],
        _ => &["RC"],
    };
    // All sizes; both directions; several queue pairs; events. Atomics have one size, writes no events, and latency one
    // direction and one queue pair.
    let mut sets = vec![vec![]];
    for (option, taken) in [
        ("-a", !has("atomic")),
        ("-b", has("bw")),
        ("-q 8", has("bw")),
        ("-e", !has("write")),
    ] {
        if taken {
            let with: Vec<_> = sets
                .iter()
                .map(|set| [&set[..], &[option]].concat())
                .collect();
            sets.extend(with);
        }
    }
    let mut all = Vec::new();
    for service in services {
        for set in &sets {
            let count = if set.contains(&"-a") { 10 } else { 50 };
            let options = format!("-c {service} -n {count} {}", set.join(" "));
            // Connection management does not know unreliable connections (perftest refuses both together).
            if *service != "UC" {
                all.push(format!("{options} -R"));
            }
            all.push(options);
        }
    }
    all
}

/// All of a program's options that go together, in both places.
fn everything(test: &str, program: &str) {
    if !support::has(test, program, "perftest") {
        return;
    }
    let mut failures = Failures::default();
    for place in Place::both(test) {
        for options in all_options(program) {
            failures.note(once(&place, program, &options));
        }
    }
    println!("{} runs of {program}", failures.done);
    failures.report();
}

#[test]
#[ignore = "takes a minute or more"]
fn every_option_of_send_bandwidth() {
    everything("every_option_of_send_bandwidth", "ib_send_bw");
}

#[test]
#[ignore = "takes a minute or more"]
fn every_option_of_write_bandwidth() {
    everything("every_option_of_write_bandwidth", "ib_write_bw");
}

#[test]
#[ignore = "takes a minute or more"]
fn every_option_of_read_bandwidth() {
    everything("every_option_of_read_bandwidth", "ib_read_bw");
}

#[test]
#[ignore = "takes a minute or more"]
fn every_option_of_atomic_bandwidth() {
    everything("every_option_of_atomic_bandwidth", "ib_atomic_bw");
}

#[test]
#[ignore = "takes a minute or more"]
fn every_option_of_latencies() {
    for program in [
        "ib_send_lat",
        "ib_write_lat",
        "ib_read_lat",
        "ib_atomic_lat",
    ] {
        everything("every_option_of_latencies", program);
    }
}

#[test]
fn options_that_go_together() {
    let atomic = all_options("ib_atomic_lat");
    assert_eq!(
        atomic,
        [
            "-c RC -n 50  -R",
            "-c RC -n 50 ",
            "-c RC -n 50 -e -R",
            "-c RC -n 50 -e"
        ]
    );
    // Sixteen sets, for RC and UD with and without management, for UC without.
    assert_eq!(all_options("ib_send_bw").len(), 16 * 5);
    assert!(
        all_options("ib_write_bw")
            .iter()
            .all(|options| !options.contains("-e"))
    );
}
