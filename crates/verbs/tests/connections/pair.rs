//! A server and a client, as processes: where they run, how they are started, how they end.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::namespace::Cable;
use crate::support;

/// One pair runs at a time.
static TURN: Mutex<()> = Mutex::new(());

/// How long two processes may take together: a busy machine with one processor is slow.
const LIMIT: Duration = Duration::from_secs(90);

/// Where a server and a client run.
pub(crate) enum Place {
    /// Two processes of one network namespace of their own.
    OneHost(Cable),
    /// Two namespaces, joined by a cable.
    TwoHosts(Cable),
}

impl Place {
    /// Both places, as far as the machine has them.
    pub(crate) fn both(test: &str) -> Vec<Self> {
        let mut places: Vec<_> = Cable::lay(test).map(Self::OneHost).into_iter().collect();
        places.extend(Cable::lay(test).map(Self::TwoHosts));
        places
    }

    pub(crate) fn one_host(test: &str) -> Option<Self> {
        Cable::lay(test).map(Self::OneHost)
    }

    fn namespaces(&self) -> [&str; 2] {
        let (Self::OneHost(cable) | Self::TwoHosts(cable)) = self;
        let client = match self {
            Self::OneHost(_) => 0,
            Self::TwoHosts(_) => 1,
        };
        [&cable.names[0], &cable.names[client]]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::OneHost(_) => "on one host",
            Self::TwoHosts(_) => "across two hosts",
        }
    }

    /// The server's IPv4 address.
    pub(crate) const SERVER: &str = "10.8.0.1";
    /// The server's IPv6 address.
    pub(crate) const SERVER_6: &str = "fd08::1";
}

/// A program that runs.
pub(crate) struct Running {
    child: Child,
    what: String,
    readers: Vec<JoinHandle<Vec<u8>>>,
}

/// How a program ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) said: String,
}

/// Starts a program in a namespace; `words` are the program and its arguments.
pub(crate) fn start(namespace: &str, words: &[&str], variables: &[(&str, &str)]) -> Running {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", namespace, "env"])
        .arg(format!(
            "LD_LIBRARY_PATH={}",
            support::library_folder().display()
        ))
        .args(
            variables
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        )
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // So that it ends with what it has started.
        .process_group(0);
    let mut child = command.spawn().expect("ip starts");
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
    Running {
        readers: readers.collect(),
        what: words.join(" "),
        child,
    }
}

impl Running {
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it, and what it has started.
    pub(crate) fn kill(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        let _ = self.child.wait();
    }

    /// Waits for its end; ends it itself at `deadline`, which is a failure.
    #[allow(clippy::disallowed_methods, reason = "real programs take real time")]
    pub(crate) fn finish(mut self, deadline: Instant) -> Ended {
        while self.is_running() {
            if Instant::now() > deadline {
                self.kill();
                let what = self.what.clone();
                panic!("{what} does not end: {}", self.ended().said);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.ended()
    }

    /// Ends a program that would not end by itself.
    pub(crate) fn stop(mut self) -> Ended {
        self.kill();
        self.ended()
    }

    fn ended(mut self) -> Ended {
        let status = self.child.wait().expect("it was waited for");
        let texts = self.readers.drain(..).map(|reader| {
            let bytes = reader.join().unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Ended {
            status,
            said: texts.collect(),
        }
    }
}

/// A test that fails leaves nothing running.
impl Drop for Running {
    fn drop(&mut self) {
        if self.is_running() {
            self.kill();
        }
    }
}

/// How a server ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    /// With its client.
    Ends,
    /// Never: it waits for the next client.
    Stays,
}

/// Runs a server and a client in a place, and returns what the client said. The client is started again as long as it
/// fails while the server may not listen yet.
pub(crate) fn run(
    place: &Place,
    ends: Server,
    server: &[&str],
    client: &[&str],
    variables: &[(&str, &str)],
) -> String {
    // Programs that poll take a processor each.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    #[allow(clippy::disallowed_methods, reason = "real programs take real time")]
    let begun = Instant::now();
    let [server_host, client_host] = place.namespaces();
    let what = format!("{} {}", client.join(" "), place.name());
    let mut running = start(server_host, server, variables);
    let said = loop {
        let mut started = start(client_host, client, variables);
        started.what = what.clone();
        let ended = started.finish(begun + LIMIT);
        if ended.status.success() {
            break ended.said;
        }
        let early = begun.elapsed() < Duration::from_secs(20);
        if !early || !running.is_running() {
            let server = running.stop();
            panic!(
                "{what}: client {}: {}\nserver {}: {}",
                ended.status, ended.said, server.status, server.said
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    match ends {
        Server::Stays => drop(running.stop()),
        Server::Ends => {
            let server = running.finish(begun + LIMIT);
            let status = server.status;
            assert!(status.success(), "{what}: server {status}: {}", server.said);
        }
    }
    said
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
        support::skipped(
            test,
            &format!("{file} is not installed (package {package})"),
        );
    }
    found
}
