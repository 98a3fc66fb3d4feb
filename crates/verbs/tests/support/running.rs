//! A program that runs, and how it ends.

use std::io::Read;
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A process, and those that it has started. It does not outlive the value.
pub(crate) struct Running {
    child: Child,
    what: String,
    readers: Vec<JoinHandle<Vec<u8>>>,
}

/// How a program ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Its output, and what it said on standard error after it.
    pub(crate) said: String,
    /// Whether it had to be ended.
    pub(crate) late: bool,
}

impl Running {
    /// Starts a command whose output is piped, as [`super::place::Place::command`] makes it.
    pub(crate) fn start(mut command: Command, what: &str) -> Self {
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{what} does not start: {error}"));
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as _),
            child.stderr.take().map(|stream| Box::new(stream) as _),
        ];
        let readers = streams.into_iter().flatten().map(|mut stream| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = stream.read_to_end(&mut bytes);
                bytes
            })
        });
        Self {
            readers: readers.collect(),
            what: what.to_owned(),
            child,
        }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Whether a process of its network namespace listens at a TCP port.
    pub(crate) fn hears(&self, port: u16) -> bool {
        const LISTENING: &str = "0A";
        let local = format!(":{port:04X}");
        ["tcp", "tcp6"].iter().any(|table| {
            let path = format!("/proc/{}/net/{table}", self.child.id());
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.lines().any(|line| {
                let mut words = line.split_whitespace().skip(1);
                let at = words
                    .next()
                    .is_some_and(|address| address.ends_with(&local));
                at && words.nth(1) == Some(LISTENING)
            })
        })
    }

    /// Ends it, and what it has started.
    fn kill(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).output();
        let _ = self.child.wait();
    }

    /// Waits for its end; ends it itself at `deadline`.
    #[allow(clippy::disallowed_methods, reason = "real programs take real time")]
    pub(crate) fn wait(mut self, deadline: Instant) -> Ended {
        while self.is_running() {
            if Instant::now() > deadline {
                return self.ended(true);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.ended(false)
    }

    /// Waits for its end by `deadline`, without which the test has failed.
    pub(crate) fn finish(self, deadline: Instant) -> Ended {
        let what = self.what.clone();
        let ended = self.wait(deadline);
        assert!(!ended.late, "{what} does not end: {}", ended.said);
        ended
    }

    /// Ends a program that would not end by itself.
    pub(crate) fn stop(self) -> Ended {
        self.ended(false)
    }

    fn ended(mut self, late: bool) -> Ended {
        // Even one that has ended may have left somebody who holds its output open.
        self.kill();
        let status = self.child.wait().expect("it was waited for");
        let texts = self.readers.drain(..).map(|reader| {
            let bytes = reader.join().unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Ended {
            status,
            said: texts.collect(),
            late,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // `ended` has taken the readers; without it, a test has failed before.
        if !self.readers.is_empty() {
            self.kill();
        }
    }
}
