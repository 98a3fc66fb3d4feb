//! Cases of programs: a server in one place, a client in the other, each Debian's own.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::cases::{Run, Work};
use super::guest::{Ended, Guest, Place, Running};
use super::report::Ending;

/// How long a server may take until it listens. A client that came earlier is started again.
const START: Duration = Duration::from_secs(10);

/// Waits in the guest for a server of connection management.
const LISTENS: &str = "until rdma resource show cm_id | grep -q LISTEN; do sleep 0.05; done";
/// What a client of perftest says when it was refused, in the forms that its versions have.
const REFUSED: [&str; 3] = [
    "RDMA_CM_EVENT_REJECTED",
    "RDMA_CM_EVENT_UNREACHABLE",
    "Unexpected CM event",
];
/// How often a pair that races is started at the most.
const ATTEMPTS: usize = 20;
/// Requests to connect leave softfabric late, so that a server in the guest, which is slow, wins the race.
const LATE_REQUESTS: &[&str] = &["delay=500ms:opcode=UD_SEND_ONLY"];

/// Runs one case.
pub(super) fn run(guest: &Guest, run: &Run) -> Result<Ending> {
    let attempts = if run.case.races { ATTEMPTS } else { 1 };
    let mut ending = pair(guest, run)?;
    for _ in 1..attempts {
        match &ending {
            Ending::Failed(said) if REFUSED.iter().any(|text| said.contains(text)) => {
                ending = pair(guest, run)?;
            }
            _ => break,
        }
    }
    Ok(ending)
}

/// A server and its client.
#[expect(clippy::disallowed_methods, reason = "real programs take real time")]
fn pair(guest: &Guest, run: &Run) -> Result<Ending> {
    let Work::Programs {
        server,
        client,
        stays,
    } = &run.case.work
    else {
        bail!("{run} is not of programs");
    };
    let limit = run.case.limit;
    let begun = Instant::now();
    let (here, there) = (run.active, run.active.other());
    let mut serving = start(guest, run, there, server)?;
    if run.case.races && there == Place::Guest {
        guest.start(Place::Guest, LISTENS, &[])?.finish(START);
    }
    // What clients said that were started again, each once.
    let mut earlier: Vec<String> = Vec::new();
    let client = loop {
        let left = limit.saturating_sub(begun.elapsed());
        let ended = start(guest, run, here, client)?.finish(left);
        let early = begun.elapsed() < START && serving.is_running() && !run.case.races;
        if well(run, &ended) || !early {
            break ended;
        }
        let said = ended.said.trim().to_owned();
        if !earlier.contains(&said) {
            earlier.push(said);
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let left = limit.saturating_sub(begun.elapsed());
    let server = if *stays || !well(run, &client) {
        serving.stop()
    } else {
        serving.finish(left)
    };
    if well(run, &client) && (*stays || well(run, &server)) {
        return Ok(Ending::Passed);
    }
    earlier.push(client.said.trim().to_owned());
    Ok(Ending::Failed(format!(
        "client, {}:\n{}\nserver, {}:\n{}",
        here.name(),
        earlier.join("\nstarted again:\n"),
        there.name(),
        server.said.trim()
    )))
}

fn well(run: &Run, ended: &Ended) -> bool {
    run.case
        .says
        .map_or(ended.success, |text| ended.said.contains(text))
}

fn start(guest: &Guest, run: &Run, place: Place, command: &str) -> Result<Running> {
    let (device, gid) = match place {
        Place::Host => ("softfabric0", "0"),
        Place::Guest => ("rxe0", "1"),
    };
    // The server's address is what both are told.
    let command = command
        .replace("{server}", run.active.other().address(run.family))
        .replace("{device}", &format!("-d {device} -x {gid}"));
    let faults = if run.case.races && run.active == Place::Host {
        LATE_REQUESTS
    } else {
        run.case.faults
    };
    guest.start(place, &format!("exec {command}"), faults)
}
