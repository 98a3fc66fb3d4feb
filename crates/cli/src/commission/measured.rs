//! Measuring real hosts: another program does it, pair by pair, and its table is read.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use softfabric_operations::baseline::Pair;
use softfabric_units::{Span, Time};

use super::arguments::CommissionArguments;
use super::{Measured, perftest, rounds};
use crate::clock::{self, Clock};
use crate::failure::Failure;

/// Where perftest listens; pairs of a round get numbers from here on.
const FIRST_PORT: u16 = 18_515;

/// A shell and what it started, ended together.
struct Running(Child);

impl Running {
    fn start(command: &str) -> std::io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Of its own, so that all of it can be ended.
            .process_group(0);
        shell.spawn().map(Self)
    }

    /// What it prints until it ends.
    fn output(&mut self, patience: Span) -> Result<String, String> {
        let stdout = self.0.stdout.take().map(read_all);
        let stderr = self.0.stderr.take().map(read_all);
        let clock = Clock::start();
        let status = loop {
            match self.0.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if clock.now() < Time::ZERO + patience => {
                    thread::sleep(Duration::from_millis(20));
                }
                Ok(None) => {
                    self.end();
                    return Err(format!("it took longer than {patience}"));
                }
                Err(error) => return Err(error.to_string()),
            }
        };
        let texts: Vec<String> = [stdout, stderr]
            .into_iter()
            .flatten()
            .filter_map(|reader| reader.join().ok())
            .collect();
        let text = texts.join("\n");
        match status.success() {
            true => Ok(text),
            false => {
                let last = text.lines().rev().find(|line| !line.trim().is_empty());
                Err(format!(
                    "{status}: {}",
                    last.unwrap_or("nothing was printed").trim()
                ))
            }
        }
    }

    fn end(&mut self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.0.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads a stream to its end, while others are read.
fn read_all<R: Read + Send + 'static>(mut stream: R) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Puts names into a template.
fn filled(template: &str, client: &str, server: &str, port: u16) -> String {
    template
        .replace("{client}", client)
        .replace("{server}", server)
        .replace("{port}", &port.to_string())
}

/// Measures every pair.
///
/// # Errors
/// If a template names no host, or there are too few.
pub(super) fn measure(
    arguments: &CommissionArguments,
    command: &str,
    progress: &dyn Fn(usize, usize),
) -> Result<Measured, Failure> {
    let hosts = &arguments.hosts;
    let wrong = |problem: &str, help: &str| Failure::Arguments {
        problem: problem.to_owned(),
        help: Some(help.to_owned()),
    };
    if hosts.len() < 2 {
        return Err(wrong(
            "a pair takes two hosts",
            "--hosts gpu1,gpu2 names them.",
        ));
    }
    if !command.contains("{server}") && !command.contains("{client}") {
        return Err(wrong(
            "--pair-command names neither {client} nor {server}",
            "Such as 'ssh {client} ib_write_bw -F --report_gbits {server}'.",
        ));
    }
    let rounds = rounds::of(hosts.len(), arguments.collective);
    let directions = if arguments.collective { 1 } else { 2 };
    let all = rounds.len() * directions;
    let mut measured = Measured::default();
    let mut settings = BTreeMap::new();
    for (number, round) in rounds.iter().enumerate() {
        for direction in 0..directions {
            progress(number * directions + direction, all);
            let pairs: Vec<(usize, usize)> = round
                .iter()
                .map(|&(a, b)| if direction == 0 { (a, b) } else { (b, a) })
                .collect();
            let outcomes: Vec<Result<(Pair, String), String>> = thread::scope(|scope| {
                let running: Vec<_> = pairs
                    .iter()
                    .enumerate()
                    .map(|(place, &(client, server))| {
                        let (client, server) = (&hosts[client], &hosts[server]);
                        scope.spawn(move || {
                            let port = FIRST_PORT + place as u16;
                            let pair = of_pair(arguments, command, client, server, port, number);
                            pair.map_err(|error| format!("from {client} to {server}: {error}"))
                        })
                    })
                    .collect();
                running
                    .into_iter()
                    .map(|thread| {
                        thread
                            .join()
                            .unwrap_or_else(|_| Err("it panicked".to_owned()))
                    })
                    .collect()
            });
            for outcome in outcomes {
                match outcome {
                    Ok((pair, output)) => {
                        if settings.is_empty() {
                            settings = perftest::settings(&output);
                        }
                        measured.pairs.push(pair);
                    }
                    Err(problem) => measured.failed.push(problem),
                }
            }
        }
    }
    measured.settings = settings;
    Ok(measured)
}

fn of_pair(
    arguments: &CommissionArguments,
    command: &str,
    client: &str,
    server: &str,
    port: u16,
    round: usize,
) -> Result<(Pair, String), String> {
    let run = |command: &str, other: Option<&String>| -> Result<String, String> {
        let other = other.map(|other| Running::start(&filled(other, client, server, port)));
        let serves = other
            .transpose()
            .map_err(|error| format!("the server does not start: {error}"))?;
        if serves.is_some() {
            thread::sleep(clock::between(Time::ZERO, Time::ZERO + arguments.settle));
        }
        let mut running = Running::start(&filled(command, client, server, port))
            .map_err(|error| error.to_string())?;
        let output = running.output(arguments.patience);
        drop(serves);
        output
    };
    let output = run(command, arguments.server_command.as_ref())?;
    let bandwidth = perftest::bandwidth(&output)?;
    let latency = match &arguments.latency_command {
        Some(command) => {
            let output = run(command, arguments.latency_server_command.as_ref())?;
            Some(perftest::latency(&output)?)
        }
        None => None,
    };
    let pair = Pair {
        client: client.to_owned(),
        server: server.to_owned(),
        round: round as u32,
        rail: None,
        bandwidth_bps: bandwidth,
        latency_ns: latency,
    };
    Ok((pair, output))
}
