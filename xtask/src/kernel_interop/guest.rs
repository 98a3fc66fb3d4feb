//! The guest with the kernel's soft-RoCE, and how commands are run in it and beside it.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::cases::Family;
use crate::process::{self, workspace_root};

/// Debian's Python has the bindings; another in the search path has not.
pub(super) const PYTHON: &str = "/usr/bin/python3";
pub(super) const PYVERBS: &str = "/usr/lib/python3/dist-packages/pyverbs/__init__.py";
/// The exit code of the tool when packages cannot be had.
const UNAVAILABLE: i32 = 69;
/// How long the guest's Python may take to start.
const START: Duration = Duration::from_secs(60);
/// The guest's name on the command line of the tool.
const NAME: &str = "a";

/// Whether the guest's image is there.
pub(super) enum Build {
    Done,
    /// It cannot be made here, and why.
    Unavailable(String),
}

/// Makes the image, unless it is there.
pub(super) fn build(folder: &Path) -> Result<Build> {
    println!("$ tools/rxe-vm/rxe-vm build");
    let output = tool(folder)
        .arg("build")
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(Stdio::piped())
        .output()
        .context("cannot start tools/rxe-vm/rxe-vm")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    print!("{said}");
    match output.status.code() {
        Some(0) => Ok(Build::Done),
        Some(UNAVAILABLE) => {
            let reason = said.lines().last().unwrap_or("packages cannot be had");
            Ok(Build::Unavailable(reason.to_owned()))
        }
        _ => bail!("the guest's image cannot be made: {}", output.status),
    }
}

fn tool(folder: &Path) -> Command {
    let mut command = Command::new(workspace_root().join("tools/rxe-vm/rxe-vm"));
    // The network is that of the namespace that we are in.
    command.env("RXE_VM_DIR", folder).env("RXE_VM_NS", "");
    command
}

/// A guest that runs.
pub(super) struct Guest {
    folder: PathBuf,
    library: PathBuf,
    mtu: u32,
    /// The other end of the traffic.
    server: Option<Running>,
}

/// Where a command runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// On the host, with softfabric.
    Host,
    /// In the guest, with the kernel's soft-RoCE.
    Guest,
}

impl Place {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Host => Self::Guest,
            Self::Guest => Self::Host,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Host => "softfabric",
            Self::Guest => "the kernel",
        }
    }

    pub(super) const fn address(self, family: Family) -> &'static str {
        match (self, family) {
            (Self::Host, Family::V4) => "10.77.0.1",
            (Self::Host, Family::V6) => "fd77::1",
            (Self::Guest, Family::V4) => "10.77.0.11",
            (Self::Guest, Family::V6) => "fd77::11",
        }
    }
}

impl Guest {
    /// Boots it, and starts in it the other end of the traffic.
    pub(super) fn boot(folder: &Path, library: &Path) -> Result<Self> {
        let mut up = tool(folder);
        let booted = process::run(up.args(["up", NAME, "1"]))?;
        if !booted.success {
            bail!("the guest does not boot");
        }
        let mut guest = Self {
            folder: folder.to_owned(),
            library: library.to_owned(),
            mtu: 0,
            server: None,
        };
        let share = folder.join("run").join(NAME).join("share");
        std::fs::write(share.join("traffic.py"), super::traffic::SCRIPT)
            .context("the guest's shared folder")?;
        let server = guest.start(Place::Guest, "exec python3 /host/traffic.py serve", &[])?;
        guest.server = Some(server);
        Ok(guest)
    }

    /// Waits until the other end of the traffic takes cases.
    #[expect(
        clippy::disallowed_methods,
        reason = "a real program takes real time to start"
    )]
    pub(super) fn wait_for_server(&mut self) -> Result<()> {
        let address = (Place::Guest.address(Family::V4), super::traffic::PORT);
        let begun = Instant::now();
        while std::net::TcpStream::connect(address).is_err() {
            let ended = self
                .server
                .as_mut()
                .is_none_or(|server| !server.is_running());
            if ended || begun.elapsed() > START {
                let said = self.server.take().map(|server| server.stop().said);
                bail!(
                    "traffic.py does not run in the guest: {}",
                    said.unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Sets the MTU of the network at both ends: that of the devices follows.
    pub(super) fn set_mtu(&mut self, mtu: u32) -> Result<()> {
        if self.mtu == mtu {
            return Ok(());
        }
        let host = Command::new("ip")
            .args(["link", "set", "rxe-bridge", "mtu", &mtu.to_string()])
            .status();
        let guest = self
            .start(Place::Guest, &format!("ip link set eth0 mtu {mtu}"), &[])?
            .finish(Duration::from_secs(20));
        if !host.is_ok_and(|status| status.success()) || !guest.success {
            bail!("the MTU cannot be set to {mtu}: {}", guest.said);
        }
        self.mtu = mtu;
        Ok(())
    }

    /// Starts a shell command in a place. On the host it runs with the drop-in library and its `faults`.
    pub(super) fn start(&self, place: Place, command: &str, faults: &[&str]) -> Result<Running> {
        let mut process = match place {
            Place::Guest => {
                let mut process = tool(&self.folder);
                process.args(["exec", NAME, command]);
                process
            }
            Place::Host => {
                let mut process = Command::new("sh");
                let settings =
                    serde_json::json!({ "interfaces": ["rxe-bridge"], "faults": faults });
                process
                    .args(["-c", command])
                    .env("LD_PRELOAD", self.library.join("libibverbs.so.1"))
                    .env("SOFTFABRIC", settings.to_string());
                process
            }
        };
        Running::start(&mut process, place)
    }
}

/// A command that runs.
pub(super) struct Running {
    child: Child,
    place: Place,
    readers: Vec<JoinHandle<Vec<u8>>>,
}

/// How a command ended.
pub(super) struct Ended {
    pub(super) success: bool,
    /// What it said; after a time limit or a signal, that too.
    pub(super) said: String,
}

impl Running {
    fn start(command: &mut Command, place: Place) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("a command does not start")?;
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
        Ok(Self {
            readers: readers.collect(),
            place,
            child,
        })
    }

    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, and ends it when `limit` has passed.
    #[expect(clippy::disallowed_methods, reason = "real programs take real time")]
    pub(super) fn finish(mut self, limit: Duration) -> Ended {
        let begun = Instant::now();
        while self.is_running() {
            if begun.elapsed() > limit {
                let mut ended = self.stop();
                ended.success = false;
                ended
                    .said
                    .push_str(&format!("\nit did not end in {} s", limit.as_secs()));
                return ended;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.ended()
    }

    /// Ends it, with all that it has started.
    #[expect(clippy::disallowed_methods, reason = "real programs take real time")]
    pub(super) fn stop(mut self) -> Ended {
        if self.place == Place::Guest {
            // The tool ends the command in the guest and tells what it has said.
            self.signal("TERM");
            let begun = Instant::now();
            while self.is_running() && begun.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.signal("KILL");
        self.ended()
    }

    fn signal(&mut self, name: &str) {
        if !self.is_running() {
            return;
        }
        // The tool alone is told: what it waits for ends by itself. Others are ended with their group.
        let target = match name {
            "TERM" => self.child.id().to_string(),
            _ => format!("-{}", self.child.id()),
        };
        let _ = Command::new("kill")
            .args(["-s", name, "--", &target])
            .stderr(Stdio::null())
            .status();
    }

    fn ended(mut self) -> Ended {
        let status = self.child.wait();
        let texts = self.readers.drain(..).map(|reader| {
            let bytes = reader.join().unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let mut said: String = texts.collect();
        let status = match status {
            Ok(status) if status.success() => {
                return Ended {
                    success: true,
                    said,
                };
            }
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        said.push_str(&format!("\n{status}"));
        Ended {
            success: false,
            said,
        }
    }
}
