//! How fast `softfabric sm` and OpenSM bring subnets up and repair them, side by side, over Debian's ibsim or our server.
//!
//! ```text
//! cargo build --release -p softfabric
//! cargo run --release -p softfabric --example sm_speed -- --ports 16 --routing minhop
//! cargo run --release -p softfabric --example sm_speed -- --ports 36 --routing minhop --manager softfabric --server serve
//! cargo run --release -p softfabric --example sm_speed -- --ports 24 --routing dfsssp --net tree.net
//! ```
//!
//! The subnet is the full fat tree of three levels, of switches with that many ports: 8 gives 128 hosts, 16 gives 1,024, 24
//! gives 3,456, 36 gives 11,664. A repair is what follows when one cable between switches is taken away. `--net FILE` only
//! writes the topology.

#![expect(
    clippy::disallowed_methods,
    reason = "other programs run in real time, and that is what is measured"
)]

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use softfabric_subnet::format::write_net;
use softfabric_subnet::generate::fat_tree;
use softfabric_subnet::{PortRef, Subnet};
use softfabric_testkit::programs::Ends;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(500);
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so";
/// `/proc/PID/stat` counts in these.
const TICKS_PER_SECOND: f64 = 100.0;

struct Options {
    ports: u8,
    routing: String,
    managers: Vec<String>,
    server: String,
    net: Option<PathBuf>,
}

fn options() -> Outcome<Options> {
    let mut options = Options {
        ports: 8,
        routing: "minhop".to_owned(),
        managers: vec!["opensm".to_owned(), "softfabric".to_owned()],
        server: "ibsim".to_owned(),
        net: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(format!("{name} needs a value"))?;
        match name.as_str() {
            "--ports" => options.ports = value.parse()?,
            "--routing" => options.routing = value,
            "--manager" => options.managers = vec![value],
            "--server" => options.server = value,
            "--net" => options.net = Some(value.into()),
            _ => return Err(format!("{name} is not known").into()),
        }
    }
    Ok(options)
}

fn main() -> Outcome<()> {
    let options = options()?;
    let subnet = fat_tree(options.ports, 3)?;
    if let Some(path) = &options.net {
        return Ok(fs::write(path, write_net(&subnet))?);
    }
    let hosts = subnet.nodes().filter(|(_, node)| !node.is_switch()).count();
    println!("manager     routing  server  hosts   up [s]  CPU [s]  repair [s]");
    for manager in &options.managers {
        // Each has a fresh subnet.
        let mut bench = Bench::new(&options, &subnet)?;
        let measured = match manager.as_str() {
            "opensm" => bench.opensm(&options.routing)?,
            _ => bench.softfabric(&options.routing)?,
        };
        println!(
            "{manager:<11} {:<8} {:<6} {hosts:>6} {:>8.3} {:>8.2}  {:>10.3}",
            options.routing,
            options.server,
            measured.up.as_secs_f64(),
            measured.processor,
            measured.repair.as_secs_f64(),
        );
        if !measured.remarks.is_empty() {
            println!("{}", measured.remarks);
        }
    }
    Ok(())
}

struct Measured {
    up: Duration,
    /// Seconds of all threads, until the subnet is up.
    processor: f64,
    repair: Duration,
    remarks: String,
}

/// A server and a folder for files.
struct Bench {
    folder: tempfile::TempDir,
    name: String,
    _server: Ends,
    input: ChildStdin,
    /// What to say to the server to take a cable away.
    cut: String,
}

fn softfabric() -> Outcome<PathBuf> {
    let example = std::env::current_exe()?;
    let folder = example.parent().and_then(Path::parent);
    let program = folder.ok_or("where am I?")?.join("softfabric");
    if program.is_file() {
        Ok(program)
    } else {
        Err(format!("{} is not there: build it first", program.display()).into())
    }
}

impl Bench {
    fn new(options: &Options, subnet: &Subnet) -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let net = folder.path().join("subnet.net");
        fs::write(&net, write_net(subnet))?;
        let name = format!("sm-speed-{}", std::process::id());
        let own = options.server != "ibsim";
        let mut command = if own {
            let mut command = Command::new(softfabric()?);
            command.args(["ib", "serve"]).arg(&net);
            command
        } else {
            let mut command = Command::new("ibsim");
            let limits = [
                "-N", "20000", "-S", "2000", "-P", "100000", "-L", "49152", "-s",
            ];
            command.args(limits).arg(&net);
            command
        };
        let mut server = Ends(
            command
                .env("IBSIM_SOCKNAME", &name)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?,
        );
        let input = server.0.stdin.take().ok_or("no standard input")?;
        let begin = Instant::now();
        let socket = format!("@{name}:ctl@");
        while !fs::read_to_string("/proc/net/unix")?.contains(&socket) {
            if begin.elapsed() > PATIENCE {
                return Err("the server does not come up".into());
            }
            sleep(Duration::from_millis(20));
        }
        let (end, _) = middle(subnet).ok_or("no cable between switches")?;
        let node = &subnet.node(end.node).id;
        let cut = if own {
            format!("down {node}:{}", end.port)
        } else {
            format!("Unlink \"{node}\"[{}]", end.port)
        };
        Ok(Self {
            folder,
            name,
            _server: server,
            input,
            cut,
        })
    }

    fn prepare(&self, command: &mut Command) {
        command
            .current_dir(&self.folder)
            .env("IBSIM_SOCKNAME", &self.name)
            .env("OSM_TMP_DIR", self.folder.path())
            .env("OSM_CACHE_DIR", self.folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
    }

    fn cut(&mut self) -> Outcome<()> {
        writeln!(self.input, "{}", self.cut)?;
        Ok(self.input.flush()?)
    }

    fn opensm(&mut self, routing: &str) -> Outcome<Measured> {
        let mut command = Command::new("opensm");
        self.prepare(&mut command);
        command
            .args(["-f", "osm.log", "-d", "2", "-s", "0", "-R", routing])
            .env("LD_PRELOAD", LIBRARY)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let begin = Instant::now();
        let manager = Ends(command.spawn()?);
        let log = self.folder.path().join("osm.log");
        let ups = || {
            fs::read_to_string(&log)
                .unwrap_or_default()
                .matches("SUBNET UP")
                .count()
        };
        let wait = |wanted: usize, begin: Instant| {
            while ups() < wanted {
                if begin.elapsed() > PATIENCE {
                    return None;
                }
                sleep(Duration::from_millis(2));
            }
            Some(begin.elapsed())
        };
        let up = wait(1, begin).ok_or("OpenSM does not bring the subnet up")?;
        let processor = processor_seconds(&manager.0)?;
        // It may still answer to what came with coming up.
        sleep(Duration::from_secs(1));
        let before = ups();
        let begin = Instant::now();
        self.cut()?;
        let repair = wait(before + 1, begin);
        Ok(Measured {
            up,
            processor,
            repair: repair.unwrap_or(Duration::MAX),
            remarks: String::new(),
        })
    }

    fn softfabric(&mut self, routing: &str) -> Outcome<Measured> {
        let mut command = Command::new(softfabric()?);
        self.prepare(&mut command);
        command
            .args(["sm", "--routing", routing])
            .stdout(Stdio::piped());
        let begin = Instant::now();
        let mut manager = Ends(command.spawn()?);
        let output = manager.0.stdout.take().ok_or("no standard output")?;
        let mut lines = BufReader::new(output).lines();
        let mut next = |word: &str| -> Outcome<String> {
            for line in &mut lines {
                let line = line?;
                if line.starts_with(word) {
                    return Ok(line);
                }
            }
            Err("softfabric sm has ended".into())
        };
        let first = next("up")?;
        let up = begin.elapsed();
        let processor = processor_seconds(&manager.0)?;
        sleep(Duration::from_secs(1));
        let begin = Instant::now();
        self.cut()?;
        let second = next("repair")?;
        Ok(Measured {
            up,
            processor,
            repair: begin.elapsed(),
            remarks: format!("{first}\n{second}"),
        })
    }
}

/// A cable between switches, from the middle of all.
fn middle(subnet: &Subnet) -> Option<(PortRef, PortRef)> {
    let is_switch = |port: PortRef| subnet.node(port.node).is_switch();
    let cables: Vec<_> = subnet
        .cables()
        .filter(|(left, right)| is_switch(*left) && is_switch(*right))
        .collect();
    cables.get(cables.len() / 2).copied()
}

/// What a program and its threads have used.
fn processor_seconds(process: &Child) -> Outcome<f64> {
    let text = fs::read_to_string(format!("/proc/{}/stat", process.id()))?;
    // The name before may have blanks.
    let rest = text.rsplit_once(')').ok_or("a strange /proc")?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks =
        |index: usize| -> Outcome<f64> { Ok(fields.get(index).ok_or("too short")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}
