//! `softfabric sm`: the subnet manager at a port of an emulated subnet.
//!
//! ```text
//!   Station (manager, queries) ◄─► datagrams ◄─► Sockets ◄─► softfabric ib serve, or ibsim
//!        │ events
//!        └──► a line for each time the subnet is up; tables in a folder
//! ```
//!
//! One thread waits for datagrams, for the manager's timeouts, and for Ctrl-C.

pub(crate) mod arguments;
mod dump;
mod lines;
mod policy;
mod sockets;
mod stopwatch;

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use softfabric_subnet::ibsim::{Data, TIMED_OUT};
use softfabric_subnet::manager::{
    Address, CongestionControl, Event, Manager, Options, Partitions, QualityOfService, Settings,
    Station, Summary,
};
use softfabric_units::Span;
use softfabric_wire::mad::administration::rmpp::RmppPatience;

use crate::clock::{Clock, between};
use crate::failure::{FINDING, Failure};
use crate::ib::names;
use crate::terminal;
use arguments::SmArguments;
use lines::Times;
use sockets::Sockets;
use stopwatch::Stopwatch;

/// The server loses nothing, so nothing is sent again. libumad2sim.so does not acknowledge parts of tables, and what came again
/// would come to the next program in the same slot.
const PATIENCE: RmppPatience = RmppPatience {
    timeout: Span::seconds(2),
    retries: 0,
};
/// How many datagrams are taken before something is sent.
const TURN: usize = 64;
/// How many problems of one sweep are told.
const TOLD: usize = 20;

/// Manages until it is ended.
///
/// # Errors
/// If there is no server, or it takes no manager there.
pub(crate) fn sm(arguments: &SmArguments) -> Result<ExitCode, Failure> {
    let base = names::of_server(arguments.socket_name.as_deref());
    let node = names::of_node(arguments.node.as_deref());
    let partitions = match &arguments.partitions {
        Some(path) => Some(partitions(path)?),
        None => None,
    };
    let (quality, congestion) = settings_of_ports(arguments)?;
    let interrupt = interrupts()?;
    let sockets = Sockets::join(&base, &node)?;
    let clock = Clock::start();
    let (engine, stopwatch) = Stopwatch::around(arguments.routing.engine(arguments.lanes), &clock);
    let settings = Settings {
        window: arguments.window.into(),
        lmc: arguments.lmc,
        priority: arguments.priority,
        sweep: (arguments.sweep > 0).then(|| Span::seconds(arguments.sweep.into())),
        ..Settings::default()
    };
    if !arguments.quiet {
        let place = match sockets.node() {
            "" => String::new(),
            node => format!(" at {node}"),
        };
        let sets = sets(quality.as_ref(), congestion.as_ref());
        terminal::print(&format!("Managing the subnet {base:?}{place}.{sets}\n"))?;
    }
    let mut manager = Manager::new(settings, engine);
    if let Some(partitions) = partitions {
        manager.set_partitions(partitions);
    }
    if let Some(quality) = quality {
        manager
            .set_quality(quality)
            .map_err(|error| refused(error.to_string()))?;
    }
    if let Some(congestion) = congestion {
        manager.set_congestion(congestion);
    }
    let mut driver = Driver {
        arguments,
        sockets,
        station: Station::new(manager, PATIENCE),
        clock,
        stopwatch,
        pending: None,
        lines: 0,
        problems: 0,
    };
    driver.station.manager_mut().start(driver.clock.now());
    driver.run(&interrupt)
}

/// What the files say of lanes and levels, and of congestion control.
fn settings_of_ports(
    arguments: &SmArguments,
) -> Result<(Option<QualityOfService>, Option<CongestionControl>), Failure> {
    let mut options = Options::default();
    if let Some(path) = &arguments.options {
        let text = fs::read_to_string(path).map_err(|error| Failure::unreadable(path, error))?;
        let name = path.display().to_string();
        options = Options::read(&text, &name).map_err(|error| refused(error.to_string()))?;
        if !options.others.is_empty() {
            terminal::warn(&format!(
                "{name}: only options of lanes (qos) and congestion control are read, not {}",
                options.others.join(", ")
            ));
        }
    }
    if let Some(path) = &arguments.qos_policy {
        options.quality.get_or_insert_default().policy = policy::read(path)?;
    }
    if let Some(quality) = &options.quality {
        // Before anybody is asked for anything.
        quality
            .check()
            .map_err(|error| refused(error.to_string()))?;
    }
    Ok((options.quality, options.congestion))
}

/// What is set beside routes, in words.
fn sets(quality: Option<&QualityOfService>, congestion: Option<&CongestionControl>) -> String {
    let mut sets = String::new();
    if let Some(quality) = quality {
        let (levels, rules) = (quality.policy.levels().len(), quality.policy.rules());
        let levels = match levels {
            0 => String::new(),
            levels => format!("; levels of the policy: {levels}, rules: {rules}"),
        };
        sets += &format!(" Lanes and their turns are set{levels}.");
    }
    if let Some(congestion) = congestion {
        let entries = congestion.table.len();
        sets += &format!(" Congestion control is set, with {entries} entries in control tables.");
    }
    sets
}

fn refused(problem: String) -> Failure {
    Failure::Arguments {
        problem,
        help: None,
    }
}

fn partitions(path: &Path) -> Result<Partitions, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::unreadable(path, error))?;
    Partitions::read(&text, &path.display().to_string()).map_err(|error| refused(error.to_string()))
}

/// Becomes readable at Ctrl-C.
fn interrupts() -> Result<UnixStream, Failure> {
    let (mut told, hears) =
        UnixStream::pair().map_err(|error| refused(format!("no pair of sockets: {error}")))?;
    ctrlc::set_handler(move || {
        let _ = told.write_all(&[0]);
    })
    .map_err(|error| refused(format!("Ctrl-C cannot be caught: {error}")))?;
    Ok(hears)
}

/// The loop and what it needs.
struct Driver<'a> {
    arguments: &'a SmArguments,
    sockets: Sockets,
    station: Station,
    clock: Clock,
    stopwatch: Stopwatch,
    /// What there was no room for.
    pending: Option<Data>,
    lines: usize,
    /// Of this sweep.
    problems: usize,
}

/// Why the loop ends.
enum Ends {
    Up,
    Failed,
    Gone(io::Error),
}

impl Driver<'_> {
    fn run(&mut self, interrupt: &UnixStream) -> Result<ExitCode, Failure> {
        loop {
            if let Some(ends) = self.turn()? {
                return Ok(match ends {
                    Ends::Up => ExitCode::SUCCESS,
                    Ends::Failed => ExitCode::from(FINDING),
                    Ends::Gone(error) => {
                        terminal::warn(&format!("the server is gone: {error}"));
                        ExitCode::from(FINDING)
                    }
                });
            }
            if self.wait(interrupt) {
                if !self.arguments.quiet {
                    terminal::print("The subnet stays as it is, and nobody manages it now.\n")?;
                }
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    /// Takes what is there, sends what can be sent, and tells what happened.
    fn turn(&mut self) -> Result<Option<Ends>, Failure> {
        let moved = self.receive().and_then(|()| self.transmit());
        if let Some(ends) = self.tell()? {
            return Ok(Some(ends));
        }
        Ok(moved.err().map(Ends::Gone))
    }

    fn receive(&mut self) -> io::Result<()> {
        for _ in 0..TURN {
            let Some(data) = self.sockets.receive()? else {
                break;
            };
            let from = Address {
                lid: data.source,
                queue_pair: data.source_qp,
            };
            if data.status == TIMED_OUT {
                self.station.handle_lost(&data.mad);
            } else {
                self.station.handle(self.clock.now(), from, &data.mad);
            }
        }
        let now = self.clock.now();
        if self.station.poll_timeout().is_some_and(|due| due <= now) {
            self.station.handle_timeout(now);
        }
        Ok(())
    }

    fn transmit(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        loop {
            let next = self.pending.take();
            let Some(data) = next.or_else(|| self.station.poll_transmit(now).map(Data::from))
            else {
                return Ok(());
            };
            if !self.sockets.send(&data)? {
                self.pending = Some(data);
                return Ok(());
            }
        }
    }

    fn tell(&mut self) -> Result<Option<Ends>, Failure> {
        while let Some(event) = self.station.manager_mut().poll_event() {
            match event {
                Event::Up(summary) => {
                    self.tell_up(&summary)?;
                    if self.arguments.once {
                        return Ok(Some(Ends::Up));
                    }
                }
                Event::Standby { master } => {
                    self.problems = 0;
                    let told = format!("another manager manages the subnet, on {master}");
                    if self.arguments.once {
                        terminal::warn(&told);
                        return Ok(Some(Ends::Failed));
                    }
                    if !self.arguments.quiet {
                        terminal::print(&format!("standby: {told}\n"))?;
                    }
                }
                Event::Failed(error) => {
                    self.problems = 0;
                    terminal::warn(&format!("the subnet stays as it was: {error}"));
                    if self.arguments.once {
                        return Ok(Some(Ends::Failed));
                    }
                }
                Event::Problem(problem) => {
                    self.problems += 1;
                    if self.problems <= TOLD {
                        terminal::warn(&problem.to_string());
                    }
                }
            }
        }
        Ok(None)
    }

    fn tell_up(&mut self, summary: &Summary) -> Result<(), Failure> {
        if self.problems > TOLD {
            terminal::warn(&format!("and {} more problems", self.problems - TOLD));
        }
        self.problems = 0;
        let times = self.times(summary);
        // Before the line, so that who has read that finds the tables.
        if let Some(folder) = &self.arguments.dump_folder {
            dump::write(folder, self.station.manager())?;
        }
        if self.arguments.quiet {
            return Ok(());
        }
        let heads = if self.lines == 0 {
            lines::heads()
        } else {
            String::new()
        };
        self.lines += 1;
        terminal::print(&(heads + &lines::line(summary, &times)))
    }

    /// How long the parts of the sweep took that has just ended.
    fn times(&self, summary: &Summary) -> Times {
        let end = self.clock.now();
        match self.stopwatch.last() {
            Some((start, stop)) if start >= summary.began => Times {
                discovery: Some(between(summary.began, start)),
                routing: Some(between(start, stop)),
                programming: between(stop, end),
            },
            _ => Times {
                programming: between(summary.began, end),
                ..Times::default()
            },
        }
    }

    /// Waits until there is something to do; true at Ctrl-C.
    fn wait(&self, interrupt: &UnixStream) -> bool {
        let flags = if self.pending.is_some() {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let mut wanted = [
            PollFd::new(&self.sockets.data, flags),
            PollFd::new(interrupt, PollFlags::IN),
        ];
        let due = self.station.poll_timeout();
        let left = due.map(|due| between(self.clock.now(), due));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        // A signal is no matter: the other socket tells of those that count.
        let _ = poll(&mut wanted, timeout.as_ref());
        !wanted[1].revents().is_empty()
    }
}
