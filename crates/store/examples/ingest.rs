//! How much a large fabric costs that is watched: `cargo run --release -p softfabric-store --example ingest -- --ports 100000`.
//!
//! ```text
//! sources (made up here) ──┬──► Live: the last 15 s in memory ──► diagnosis, each interval     this thread
//!                          └──► Session: Parquet files                                         another thread
//! ```
//!
//! A Clos of three levels: pods of 32 leaves with 32 hosts and 16 aggregation switches, 256 cores. Hosts tell what Linux
//! names, switches what SONiC names. From a third of the time on a host storms, and thousands of ports report it. The
//! verdicts are checked: no alarm before, the right host after.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use softfabric_operations::diagnose::{Cause, Verdict};
use softfabric_operations::{
    Diagnosis, LinkLayer, Live, NodeIndex, NodeKind, PortIndex, PortSample, Topology,
};
use softfabric_store::{Range, Settings, Store, StoreError};
use softfabric_telemetry::{ClassCounter, Counter, DeviceCounter, PortCounter};
use softfabric_units::{Class, Rate, Span, Time};

const LEAVES: usize = 32;
const HOSTS: usize = 32;
const AGGREGATIONS: usize = 16;
/// Cores that each aggregation switch of a pod leads to.
const CORES: usize = 16;
const PORTS_OF_POD: usize = 2 * (LEAVES * HOSTS + LEAVES * AGGREGATIONS + AGGREGATIONS * CORES);
const RATE: Rate = Rate::gbps(400);
const DATA: Class = Class::new(3);
const NOTIFICATIONS: Class = Class::new(6);
const REST: Class = Class::new(0);
const WINDOW: Span = Span::seconds(15);
/// Samples go to the other thread in such lots.
const LOT: usize = 512;
/// The host that storms, in the first pod.
const SOURCE: &str = "p0l5h7";

type Failed = Box<dyn std::error::Error + Send + Sync>;
type Lot = Arc<Vec<(PortIndex, PortSample)>>;

fn main() -> Result<(), Failed> {
    let options = Options::read()?;
    let (topology, held) = fabric(options.ports.div_ceil(PORTS_OF_POD))?;
    let topology = Arc::new(topology);
    let folder = tempfile::tempdir_in(&options.folder)?;
    let (send, receive) = sync_channel::<(u64, Lot)>(16);
    let storing = {
        let (topology, folder) = (Arc::clone(&topology), folder.path().to_owned());
        thread::spawn(move || store(&topology, &folder, &receive))
    };
    let mut live = Live::new((*topology).clone(), WINDOW);
    let mut sources = Sources::new(&topology, held);
    let begin = now();
    let mut rows = Vec::new();
    let mut wrong = 0;
    for second in 0..options.seconds {
        let due = Duration::from_secs(second);
        if options.paced {
            thread::sleep(due.saturating_sub(begin.elapsed()));
        }
        let storms = second > options.seconds / 3;
        let start = cpu();
        let mut made = Duration::ZERO;
        let time = Time::ZERO + Span::seconds(second);
        let all: Vec<PortIndex> = topology.port_indices().collect();
        for ports in all.chunks(LOT) {
            let making = cpu();
            let lot: Lot = Arc::new(sources.poll(ports, storms));
            made += cpu() - making;
            for (port, sample) in &*lot {
                live.add(*port, time, sample);
            }
            send.send((time.as_nanos(), lot))?;
        }
        let ingested = cpu();
        let diagnosis = live.diagnose();
        let diagnosed = cpu();
        let lag = begin.elapsed().saturating_sub(due);
        let ingest = (ingested - start).saturating_sub(made);
        let right = is_right(&diagnosis, second, options.seconds / 3);
        wrong += u64::from(!right);
        println!(
            "{second:>4} s  made {:>4} ms, ingested {:>4} ms, diagnosed {:>4} ms, lag {:>5} ms: {}{}",
            made.as_millis(),
            ingest.as_millis(),
            (diagnosed - ingested).as_millis(),
            lag.as_millis(),
            diagnosis.summary,
            if right { "" } else { "  WRONG" },
        );
        rows.push((ingest, diagnosed - ingested, lag));
    }
    drop(send);
    let (storing, bytes) = storing.join().map_err(|_| "the storing thread failed")??;
    let samples = topology.ports().len() as u64 * options.seconds;
    // The window has to fill first.
    let full = &rows[rows.len() / 2..];
    let mean = |pick: fn(&(Duration, Duration, Duration)) -> Duration| {
        full.iter().map(pick).sum::<Duration>().as_secs_f64() * 1e3 / full.len() as f64
    };
    println!(
        "{} ports, {} counters a port on average",
        topology.ports().len(),
        sources.counters()
    );
    println!(
        "processor time of an interval, mean of the second half: ingest {:.0} ms, diagnosis {:.0} ms",
        mean(|r| r.0),
        mean(|r| r.1)
    );
    println!(
        "stored: {:.0} ms of processor time an interval, {:.1} bytes a sample",
        storing.as_secs_f64() * 1e3 / options.seconds as f64,
        bytes as f64 / samples as f64
    );
    let latest = full.iter().map(|row| row.2).max().unwrap_or_default();
    println!(
        "longest lag of the second half: {} ms; peak memory {}",
        latest.as_millis(),
        peak()
    );
    let reading = cpu();
    let stored = Store::open(folder.path())?;
    let end = stored.extent()?.map_or(0, |extent| extent.to);
    let from = end.saturating_sub(WINDOW.as_nanos());
    let read = stored.read(Range { from, to: end })?;
    let read_in = cpu() - reading;
    let diagnosis = softfabric_operations::diagnose(&read.topology, &read.history);
    println!(
        "read back: the last {WINDOW} in {:.1} s, diagnosed in {:.1} s: {}",
        read_in.as_secs_f64(),
        (cpu() - reading - read_in).as_secs_f64(),
        diagnosis.summary
    );
    wrong += u64::from(!is_right(&diagnosis, options.seconds, options.seconds / 3));
    match wrong {
        0 => Ok(()),
        wrong => Err(format!("{wrong} verdicts are wrong").into()),
    }
}

/// No alarm before the storm; two polls after it began, the host that storms.
fn is_right(diagnosis: &Diagnosis, second: u64, begins: u64) -> bool {
    match diagnosis.verdict {
        Verdict::Cause(Cause::HostStorm) => {
            second > begins
                && (diagnosis.findings[0].ports[0].contains(SOURCE)
                    || diagnosis.findings[0].node == SOURCE)
        }
        // What lasts for one poll only is no cause.
        Verdict::NotEnoughData => second < 2 || second == begins + 1,
        Verdict::NotTheFabric => second <= begins + 1,
        Verdict::Cause(_) => false,
    }
}

struct Options {
    ports: usize,
    seconds: u64,
    paced: bool,
    folder: PathBuf,
}

impl Options {
    fn read() -> Result<Self, Failed> {
        let mut options = Self {
            ports: 100_000,
            seconds: 30,
            paced: false,
            folder: std::env::temp_dir(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--ports" => options.ports = value()?.parse()?,
                "--seconds" => options.seconds = value()?.parse()?,
                "--folder" => options.folder = value()?.into(),
                "--paced" => options.paced = true,
                _ => {
                    return Err(
                        "--ports N, --seconds N, --folder DIR, --paced: one poll a second".into(),
                    );
                }
            }
        }
        Ok(options)
    }
}

/// Stores what comes; says how long that took and how many bytes it is.
fn store(
    topology: &Topology,
    folder: &Path,
    lots: &Receiver<(u64, Lot)>,
) -> Result<(Duration, u64), StoreError> {
    let store = Store::create(folder)?;
    let mut session = store.session(topology, "made up", |_| &[], Settings::default())?;
    for (time, lot) in lots {
        for (port, sample) in &*lot {
            session.add(*port, time, sample)?;
        }
    }
    session.finish()?;
    let used = cpu();
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = files.filter(|file| file.path().extension().is_some_and(|end| end == "parquet"));
    Ok((
        used,
        bytes
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .sum(),
    ))
}

/// The fabric, and for what share of the time each port is held while the host storms.
fn fabric(pods: usize) -> Result<(Topology, Vec<f64>), Failed> {
    let mut topology = Topology::new(LinkLayer::Ethernet);
    let mut held = Vec::new();
    let mut port = |topology: &mut Topology, node: NodeIndex, name: String, share: f64| {
        held.push(share);
        topology.add_port(node, name, Some(RATE))
    };
    let mut cores = Vec::new();
    for core in 0..AGGREGATIONS * CORES {
        cores.push(topology.add_node(format!("core{core}"), NodeKind::Switch)?);
    }
    for pod in 0..pods {
        let source = pod == 0;
        let mut aggregations = Vec::new();
        for number in 0..AGGREGATIONS {
            let name = format!("p{pod}a{number}");
            let node = topology.add_node(name.clone(), NodeKind::Switch)?;
            for core in 0..CORES {
                let place = number * CORES + core;
                // The whole pod is slow to take, and some others are held for it.
                let (up, down) = (
                    if (1..4).contains(&pod) { 0.15 } else { 0.0 },
                    if source { 0.3 } else { 0.0 },
                );
                let here = port(&mut topology, node, format!("{name}:{}", LEAVES + core), up)?;
                let there = port(
                    &mut topology,
                    cores[place],
                    format!("core{place}:{pod}"),
                    down,
                )?;
                topology.connect(here, there)?;
            }
            aggregations.push((name, node));
        }
        for leaf in 0..LEAVES {
            let name = format!("p{pod}l{leaf}");
            let node = topology.add_node(name.clone(), NodeKind::Switch)?;
            let is_leaf = source && leaf == 5;
            for host in 0..HOSTS {
                let host_name = format!("{name}h{host}");
                let host_node = topology.add_node(host_name.clone(), NodeKind::Host)?;
                let sends = source && !is_leaf && host < 8;
                let up = port(
                    &mut topology,
                    host_node,
                    host_name.clone(),
                    if sends { 0.2 } else { 0.0 },
                )?;
                let storms = if host_name == SOURCE { 0.98 } else { 0.0 };
                let down = port(&mut topology, node, format!("{name}:{host}"), storms)?;
                topology.connect(up, down)?;
            }
            for (number, (above, switch)) in aggregations.iter().enumerate() {
                let up = if source && !is_leaf { 0.3 } else { 0.0 };
                let here = port(
                    &mut topology,
                    node,
                    format!("{name}:{}", HOSTS + number),
                    up,
                )?;
                let down = if is_leaf { 0.6 } else { 0.0 };
                let there = port(&mut topology, *switch, format!("{above}:{leaf}"), down)?;
                topology.connect(here, there)?;
            }
        }
    }
    Ok((topology, held))
}

/// What ports would tell.
struct Sources<'a> {
    topology: &'a Topology,
    held: Vec<f64>,
    hosts: Vec<Counter>,
    switches: Vec<Counter>,
    /// What moves: of each port.
    totals: Vec<Totals>,
    random: u64,
}

/// What has been counted.
#[derive(Clone, Copy, Default)]
struct Totals {
    sent: u64,
    received: u64,
    rest: u64,
    notifications: u64,
    marks: u64,
    paused: u64,
    pauses: u64,
    frames: u64,
    pausing: u64,
    pausing_frames: u64,
}

impl<'a> Sources<'a> {
    fn new(topology: &'a Topology, held: Vec<f64>) -> Self {
        let named = |is_named: fn(&Counter) -> bool| Counter::all().filter(is_named).collect();
        let hosts = named(|counter| !counter.definition().linux.is_empty());
        let switches = named(|counter| !counter.definition().sonic.is_empty());
        let mut sources = Self {
            totals: vec![Totals::default(); topology.ports().len()],
            random: 0x9e37_79b9_7f4a_7c15,
            topology,
            held,
            hosts,
            switches,
        };
        // Devices have counted for weeks.
        for port in 0..sources.totals.len() {
            let total = |sources: &mut Self, bits: u32| sources.random() >> (64 - bits);
            sources.totals[port] = Totals {
                sent: total(&mut sources, 48),
                received: total(&mut sources, 48),
                rest: total(&mut sources, 36),
                notifications: total(&mut sources, 26),
                marks: total(&mut sources, 24),
                ..Totals::default()
            };
        }
        sources
    }

    /// How many counters a port tells.
    fn counters(&self) -> usize {
        let ports = self.topology.port_indices();
        let counters = ports.map(|port| self.of(port).len());
        counters.sum::<usize>() / self.topology.ports().len()
    }

    fn of(&self, port: PortIndex) -> &[Counter] {
        match self.topology.owner(port).kind {
            NodeKind::Host => &self.hosts,
            NodeKind::Switch => &self.switches,
        }
    }

    /// xorshift64.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn up_to(&mut self, most: f64) -> u64 {
        (self.random() as f64 / u64::MAX as f64 * most) as u64
    }

    fn poll(&mut self, ports: &[PortIndex], storms: bool) -> Vec<(PortIndex, PortSample)> {
        let ports = ports.iter();
        ports
            .map(|&port| (port, self.sample(port, storms)))
            .collect()
    }

    fn sample(&mut self, port: PortIndex, storms: bool) -> PortSample {
        self.pass(port, storms);
        let totals = self.totals[port.index()];
        let sender = self.topology.owner(port).kind == NodeKind::Host;
        // Some cables have erred once, which most counters of a fabric look like.
        let erred = if port.0.is_multiple_of(97) { 17 } else { 0 };
        let values = self.of(port).iter().map(|&counter| {
            let value = match counter {
                Counter::Port(PortCounter::TransmitBytes) => totals.sent + totals.rest,
                Counter::Port(PortCounter::TransmitPackets) => {
                    totals.sent / 4_096 + totals.rest / 300
                }
                Counter::Port(PortCounter::ReceiveBytes) => totals.received + totals.rest,
                Counter::Port(PortCounter::ReceivePackets) => {
                    totals.received / 4_096 + totals.rest / 300
                }
                Counter::Port(PortCounter::ReceiveErrors) => erred,
                Counter::Port(PortCounter::PauseFramesReceived) => totals.frames,
                Counter::Port(PortCounter::PauseFramesSent) => totals.pausing_frames,
                Counter::Class(DATA, counter) => match counter {
                    ClassCounter::TransmitBytes => totals.sent,
                    ClassCounter::TransmitPackets => totals.sent / 4_096,
                    ClassCounter::ReceiveBytes => totals.received,
                    ClassCounter::ReceivePackets => totals.received / 4_096,
                    ClassCounter::PauseReceived => totals.frames,
                    ClassCounter::PauseReceivedDuration => totals.paused,
                    ClassCounter::PauseTransitions => totals.pauses,
                    ClassCounter::PauseSent => totals.pausing_frames,
                    ClassCounter::PauseSentDuration => totals.pausing,
                    ClassCounter::EcnMarked => totals.marks,
                    ClassCounter::EcnMarkedBytes => totals.marks * 4_096,
                    _ => 0,
                },
                Counter::Class(REST, ClassCounter::TransmitBytes | ClassCounter::ReceiveBytes) => {
                    totals.rest
                }
                Counter::Class(
                    REST,
                    ClassCounter::TransmitPackets | ClassCounter::ReceivePackets,
                ) => totals.rest / 300,
                Counter::Class(
                    NOTIFICATIONS,
                    ClassCounter::TransmitPackets | ClassCounter::ReceivePackets,
                ) => totals.notifications,
                Counter::Class(
                    NOTIFICATIONS,
                    ClassCounter::TransmitBytes | ClassCounter::ReceiveBytes,
                ) => totals.notifications * 78,
                Counter::Device(DeviceCounter::CnpSent | DeviceCounter::CnpHandled) if sender => {
                    totals.notifications
                }
                Counter::Device(DeviceCounter::EcnMarkedReceived) if sender => totals.marks,
                _ => 0,
            };
            (counter, value)
        });
        PortSample {
            up: Some(true),
            values: values.collect(),
        }
    }

    /// A second passes.
    fn pass(&mut self, port: PortIndex, storms: bool) {
        let second = Span::seconds(1).as_picos() as f64;
        let most = RATE.as_bps() as f64 / 8.0;
        let held = |port: Option<PortIndex>| {
            let share = port.map_or(0.0, |port| self.held[port.index()]);
            if storms { share } else { 0.0 }
        };
        let (here, there) = (held(Some(port)), held(self.topology.peer(port)));
        let is_source = self.topology.port(port).name == SOURCE;
        let busy = |this: &mut Self, held: f64| {
            let free = most * (1.0 - held);
            this.up_to(free * 0.4) + (free * 0.2) as u64
        };
        // A host that storms takes next to nothing.
        let takes = if is_source && storms { 0.98 } else { there };
        let (sent, received) = (busy(self, here), busy(self, takes));
        let (rest, notes, marks) = (self.up_to(2e6), self.up_to(900.0), self.up_to(1_500.0));
        let totals = &mut self.totals[port.index()];
        totals.sent += sent;
        totals.received += received;
        totals.rest += rest;
        totals.notifications += notes;
        totals.marks += marks;
        // A storm is renewed and never taken back; what it holds elsewhere comes and goes.
        let pauses = |held: f64| if held > 0.9 { 1.0 } else { held * 20_000.0 };
        let frames = |held: f64| (held * second / 80e6) + pauses(held);
        totals.paused += (here * second) as u64;
        totals.pauses += (pauses(here) * f64::from(u8::from(here > 0.0))) as u64;
        totals.frames += (frames(here) * f64::from(u8::from(here > 0.0))) as u64;
        totals.pausing += (there * second) as u64;
        totals.pausing_frames += (frames(there) * f64::from(u8::from(there > 0.0))) as u64;
    }
}

/// Processor time of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[expect(
    clippy::disallowed_methods,
    reason = "it measures how long real work takes"
)]
fn now() -> Instant {
    Instant::now()
}

fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("unknown").trim().to_owned()
}
