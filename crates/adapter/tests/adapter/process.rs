//! Nodes as processes: started, told what to do, killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::node::ROLE;

/// A node in another process.
pub(crate) struct Process {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What it said about itself when its device was opened.
    pub(crate) about: Value,
}

impl Process {
    /// Starts a node on a network interface.
    pub(crate) fn start(netdev: &str, settings: &Value) -> Self {
        let mut process = Self::spawn(None, settings, &[]);
        process.open(netdev);
        process
    }

    /// Starts a node in a network namespace.
    pub(crate) fn start_in(namespace: &str, netdev: &str, settings: &Value) -> Self {
        let mut process = Self::spawn(Some(namespace), settings, &[]);
        process.open(netdev);
        process
    }

    /// Starts a node without a device. `before` is a command that runs it.
    pub(crate) fn spawn(namespace: Option<&str>, settings: &Value, before: &[&str]) -> Self {
        let mut words: Vec<String> = Vec::new();
        if let Some(namespace) = namespace {
            words.extend(["ip", "netns", "exec", namespace].map(str::to_owned));
        }
        words.extend(before.iter().map(|word| (*word).to_owned()));
        words.push(std::env::current_exe().unwrap().display().to_string());
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .args([
                "--exact",
                "node::process",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ROLE, "1")
            .env("SOFTFABRIC", settings.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            orders: child.stdin.take(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
            about: Value::Null,
        }
    }

    /// Opens the device on an interface.
    pub(crate) fn open(&mut self, netdev: &str) {
        self.about = self.tell(&json!({ "do": "open", "netdev": netdev }));
        assert!(self.about["error"].is_null(), "{}", self.about);
    }

    /// Gives an order and waits for the answer.
    pub(crate) fn tell(&mut self, order: &Value) -> Value {
        self.say(order);
        self.answer()
    }

    /// Gives an order.
    pub(crate) fn say(&mut self, order: &Value) {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
    }

    /// Waits for the answer to the oldest order.
    pub(crate) fn answer(&mut self) -> Value {
        loop {
            let mut line = String::new();
            let read = self.answers.read_line(&mut line).unwrap();
            assert!(read > 0, "the node has ended");
            // The harness may have written something before, on the same line.
            if let Some((_, answer)) = line.split_once("NODE ") {
                return serde_json::from_str(answer).unwrap();
            }
        }
    }

    /// Ends it as an unlucky process ends.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}

/// Connects a queue pair of each: the numbers, in order.
pub(crate) fn connect(ends: [&mut Process; 2], options: &Value) -> [u64; 2] {
    let [one, other] = ends;
    let mut make = options.clone();
    make["do"] = json!("qp");
    let numbers = [one.tell(&make), other.tell(&make)].map(|made| made["number"].as_u64().unwrap());
    let index = options["index"].as_u64().unwrap_or(0) as usize;
    let gids = [&one.about, &other.about].map(|about| about["gids"][index].clone());
    for (at, end) in [one, other].into_iter().enumerate() {
        let mut order = options.clone();
        order["do"] = json!("connect");
        order["qp"] = json!(numbers[at]);
        order["peer"] = json!(numbers[1 - at]);
        order["gid"] = gids[1 - at].clone();
        end.tell(&order);
    }
    numbers
}
