//! Starting the tests' processes, and reading what they say.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::table::{Ended, Outcome};

const SCRIPT: &str = include_str!("runner.py");

/// How tests are run.
pub(super) struct Runner<'a> {
    pub(super) python: &'a str,
    pub(super) tests: &'a Path,
    pub(super) library: &'a Path,
    /// How long one test may take.
    pub(super) limit: Duration,
}

/// A line of the script.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Ended {
        test: String,
        outcome: Outcome,
        seconds: f64,
        reason: String,
    },
    Began {
        begun: String,
    },
    Listed {
        test: String,
    },
}

impl Runner<'_> {
    /// The names of all tests.
    pub(super) fn list(&self) -> Result<Vec<String>> {
        let output = self
            .command("list", &[])
            .output()
            .context("cannot start Python")?;
        if !output.status.success() {
            bail!(
                "the tests cannot be listed: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let names = lines.filter_map(|line| match line {
            Line::Listed { test } => Some(test),
            Line::Ended { .. } | Line::Began { .. } => None,
        });
        Ok(names.collect())
    }

    /// Runs tests, those of a class in one process.
    pub(super) fn run(&self, names: &[String]) -> Result<Vec<Ended>> {
        let class = |name: &str| {
            name.rsplit_once('.')
                .map_or(name, |(class, _)| class)
                .to_owned()
        };
        let mut done = Vec::new();
        for group in names.chunk_by(|one, other| class(one) == class(other)) {
            let mut waiting: VecDeque<&String> = group.iter().collect();
            while !waiting.is_empty() {
                self.run_process(&mut waiting, &mut done)?;
            }
        }
        Ok(done)
    }

    /// Runs tests in one process until all are done, or one ends it. At least one is done afterwards.
    fn run_process(&self, waiting: &mut VecDeque<&String>, done: &mut Vec<Ended>) -> Result<()> {
        let names: Vec<&str> = waiting.iter().map(|name| name.as_str()).collect();
        let mut command = self.command("run", &names);
        // The tests start processes of their own: a group can be ended as one.
        command
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start Python")?;
        let lines = read(&mut child)?;
        // Loading all modules takes its time before the first test begins.
        let mut running = waiting.front().map(|name| name.to_string());
        loop {
            match lines.recv_timeout(self.limit) {
                Ok(Line::Began { begun }) => running = Some(begun),
                Ok(Line::Ended {
                    test,
                    outcome,
                    seconds,
                    reason,
                }) => {
                    waiting.retain(|name| **name != test);
                    running = waiting.front().map(|name| name.to_string());
                    note(done, test, outcome, seconds, reason);
                }
                Ok(Line::Listed { .. }) => {}
                Err(end) => {
                    let gone = matches!(end, RecvTimeoutError::Disconnected);
                    if let Some(test) = running
                        .take()
                        .filter(|test| waiting.iter().any(|name| *name == test))
                    {
                        waiting.retain(|name| **name != test);
                        let (outcome, reason) = if gone {
                            (Outcome::Crash, "the process ended".to_owned())
                        } else {
                            (
                                Outcome::Timeout,
                                format!("{} s were not enough", self.limit.as_secs()),
                            )
                        };
                        note(done, test, outcome, self.limit.as_secs_f64(), reason);
                    }
                    break;
                }
            }
            if waiting.is_empty() {
                break;
            }
        }
        end(&mut child);
        Ok(())
    }

    fn command(&self, task: &str, names: &[&str]) -> Command {
        let mut command = Command::new(self.python);
        command
            .args(["-W", "ignore", "-c", SCRIPT])
            .arg(self.tests)
            .arg(task)
            .args(names)
            .env("LD_LIBRARY_PATH", self.library)
            // Into the programs that tests start too: some look for files of the device.
            .env("LD_PRELOAD", self.library.join("libibverbs.so.1"))
            .stdin(Stdio::null());
        command
    }
}

/// Notes how a test ended, and shows it.
fn note(done: &mut Vec<Ended>, test: String, outcome: Outcome, seconds: f64, reason: String) {
    let ended = Ended {
        test,
        outcome,
        seconds,
        reason,
    };
    println!("{ended}");
    done.push(ended);
}

/// Reads a process's lines as they come; the channel ends with the process's output.
fn read(child: &mut Child) -> Result<Receiver<Line>> {
    let output = child.stdout.take().context("no standard output")?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Ok(line) = serde_json::from_str(&line)
                && sender.send(line).is_err()
            {
                break;
            }
        }
    });
    Ok(receiver)
}

/// Ends a process and those that it has started.
fn end(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill")
        .args(["-KILL", "--", &group])
        .stderr(Stdio::null())
        .status();
    let _ = child.wait();
}
