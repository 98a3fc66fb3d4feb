//! A server and a client, as processes: how they find each other, how they end.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::place::{End, Place};
use super::running::{Ended, Running};

/// One pair runs at a time.
static TURN: Mutex<()> = Mutex::new(());

/// How long two processes may take together: a busy machine with one processor is slow.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// How long a server may take until it hears its client.
const START: Duration = Duration::from_secs(20);

/// How a server ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    /// With its client.
    Ends,
    /// Never: it waits for the next client.
    Stays,
}

/// How a client learns that its server is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// The server listens at this TCP port.
    Listens(u16),
    /// Only by trying: it is started again as long as it fails while the server may not listen yet.
    Tries,
}

/// What is to be run.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) server: &'a [&'a str],
    pub(crate) client: &'a [&'a str],
    pub(crate) variables: &'a [(&'a str, &'a str)],
    /// What a client that did its work says. Some programs report success whatever happened.
    pub(crate) says: &'a str,
    pub(crate) ends: Server,
    pub(crate) ready: Ready,
    pub(crate) limit: Duration,
}

impl Pair<'_> {
    /// Runs both in a place, and returns what the client said.
    pub(crate) fn run(&self, place: &Place) -> String {
        self.attempt(place)
            .unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// The same.
    ///
    /// # Errors
    /// What both said, if one of them failed or did not end.
    #[allow(clippy::disallowed_methods, reason = "real programs take real time")]
    pub(crate) fn attempt(&self, place: &Place) -> Result<String, String> {
        // Programs that poll take a processor each.
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        let deadline = begun + self.limit;
        let what = format!("{} {}", self.client.join(" "), place.name());
        let start = |end, words: &[&str]| {
            Running::start(place.command(end, words, self.variables), &words.join(" "))
        };
        let mut server = start(End::Server, self.server);
        if let Ready::Listens(port) = self.ready {
            while !server.hears(port) {
                if !server.is_running() || begun.elapsed() > START {
                    let said = server.stop().said;
                    return Err(format!("{what}: the server does not listen: {said}"));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let client = loop {
            let ended = start(End::Client, self.client).wait(deadline);
            if ended_well(&ended) && ended.said.contains(self.says) {
                break ended;
            }
            let again = self.ready == Ready::Tries && begun.elapsed() < START;
            if !again || !server.is_running() {
                // One end's failure may be the other's doing, which then ends by itself.
                let soon = Instant::now() + Duration::from_secs(1);
                let server = server.wait(soon);
                return Err(format!(
                    "{what}: client {}{}: {}\nserver {}: {}",
                    if ended.late { "does not end, " } else { "" },
                    ended.status,
                    ended.said,
                    server.status,
                    server.said
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        match self.ends {
            Server::Stays => drop(server.stop()),
            Server::Ends => {
                let server = server.wait(deadline);
                if server.late || !ended_well(&server) {
                    let (status, said) = (server.status, server.said);
                    return Err(format!("{what}: server {status}: {said}"));
                }
            }
        }
        Ok(client.said)
    }
}

/// Whether a program ended as it should. `rping` closes its channel of events while another of its threads goes back to wait
/// there: now and then that thread finds the channel closed, as it may on any device, and ends the program with its error
/// after all the work is done. What `rping` says tells whether it did its work.
fn ended_well(ended: &Ended) -> bool {
    let worked = ["rdma-ping-", "DISCONNECT EVENT"];
    let own_race = worked.iter().any(|text| ended.said.contains(text))
        && ended
            .said
            .trim_end()
            .ends_with("rdma_get_cm_event: Bad file descriptor");
    ended.status.success() || own_race
}

/// Runs a server and a client that find each other by trying.
pub(crate) fn run(
    place: &Place,
    ends: Server,
    server: &[&str],
    client: &[&str],
    variables: &[(&str, &str)],
) -> String {
    let pair = Pair {
        server,
        client,
        variables,
        says: "",
        ends,
        ready: Ready::Tries,
        limit: LIMIT,
    };
    pair.run(place)
}

/// A port that nobody listens at, and no other test of this run uses. It is below those that the kernel gives to clients
/// (`net.ipv4.ip_local_port_range`), one of which may come up at any time.
pub(crate) fn free_port() -> u16 {
    const FIRST: u16 = 20_000;
    const EACH: u16 = 32;
    const TESTS: u16 = (32_768 - FIRST) / EACH;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = (std::process::id() % u32::from(TESTS)) as u16 * EACH;
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (own + next) % (TESTS * EACH);
        if std::net::TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

/// The path of a shared library that a program may preload, if the machine has it.
pub(crate) fn preload(test: &str, file: &str, package: &str) -> Option<PathBuf> {
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ];
    let found = folders
        .iter()
        .map(|folder| PathBuf::from(folder).join(file))
        .find(|path| path.is_file());
    if found.is_none() {
        super::skipped(
            test,
            &format!("{file} is not installed (package {package})"),
        );
    }
    found
}
