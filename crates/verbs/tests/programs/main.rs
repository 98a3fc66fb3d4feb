//! Debian's own programs, unmodified, run on the library: two processes on one host, and across two network namespaces.
//!
//! What a machine lacks is skipped, and said.

#[path = "../support/mod.rs"]
mod support;

mod fio;
mod libfabric;
mod open_mpi;
mod perftest;
mod pingpongs;
mod qperf;
mod ucx;

use support::pair::{LIMIT, Pair, Ready, Server};
use support::place::Place;

/// A server and a client that find each other over a TCP port; both are the same program with the same options, and the
/// client names the server besides.
///
/// # Errors
/// What both said, if one of them failed or did not end.
fn same_options(
    place: &Place,
    words: &[&str],
    port_option: &str,
    variables: &[(&str, &str)],
) -> Result<String, String> {
    let port = support::pair::free_port();
    let text = port.to_string();
    let server = [words, &[port_option, &text]].concat();
    let client = [&server[..], &[place.server()]].concat();
    let pair = Pair {
        server: &server,
        client: &client,
        variables,
        says: "",
        ends: Server::Ends,
        ready: Ready::Listens(port),
        limit: LIMIT,
    };
    pair.attempt(place)
}

/// Goes on after a failure, and tells of all of them together.
#[derive(Default)]
struct Failures {
    done: usize,
    problems: Vec<String>,
}

impl Failures {
    fn note<T>(&mut self, outcome: Result<T, String>) -> Option<T> {
        self.done += 1;
        outcome.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// # Panics
    /// If something failed.
    fn report(self) {
        let Self { done, problems } = self;
        assert!(
            problems.is_empty(),
            "{} of {done} failed:\n{}",
            problems.len(),
            problems.join("\n")
        );
    }
}
