//! The manager brings up subnets that Debian's ibsim simulates, and Debian's diagnostics see what it made.
//!
//! ```text
//!   Manager ──SMP──► in<id> ──288 bytes──► out<slot> of ibsim         abstract Unix sockets
//!                    ctl<id> ──80 bytes──► ctl of ibsim               connect, disconnect
//! ```
//!
//! Where ibsim or the diagnostics are not installed, the test says so and passes.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::disallowed_methods, reason = "ibsim runs in real time")]

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use softfabric_subnet::Subnet;
use softfabric_subnet::format::write_net;
use softfabric_subnet::generate::{fat_tree, torus};
use softfabric_subnet::ibsim::{CONTROL_LENGTH, Connect, Control, ControlKind, DATA_LENGTH, Data};
use softfabric_subnet::manager::{Event, Manager, Settings, Summary};
use softfabric_subnet::routing::{FatTree, RoutingEngine, Torus, UpDown};
use softfabric_testkit::programs::{Ends, has, umad2sim};
use softfabric_units::{Lid, Time};
use softfabric_wire::mad::MAD_LENGTH;
use softfabric_wire::mad::subnet::{Smp, SmpRoute};

/// The socket of a client holds about ten messages; more on their way would stop ibsim.
const WINDOW: usize = 8;

fn address(base: &str, name: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("{base}:{name}\0")).unwrap()
}

/// A client of ibsim.
struct Client {
    base: String,
    slot: u32,
    control: UnixDatagram,
    data: UnixDatagram,
}

impl Client {
    fn connect(base: &str, id: u32) -> Self {
        let control = UnixDatagram::bind_addr(&address(base, &format!("ctl{id}"))).unwrap();
        let data = UnixDatagram::bind_addr(&address(base, &format!("in{id}"))).unwrap();
        control
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut client = Self {
            base: base.to_owned(),
            slot: 0,
            control,
            data,
        };
        // Queue pair 0, as a subnet manager.
        let body = Connect {
            id,
            queue_pair: 0,
            manager: true,
            node: String::new(),
        };
        client.slot = client.ask(ControlKind::CONNECT, body.encode());
        client
            .data
            .connect_addr(&address(base, &format!("out{}", client.slot)))
            .unwrap();
        client
    }

    /// Sends a control message; the slot that the answer names.
    fn ask(&self, kind: ControlKind, data: [u8; 64]) -> u32 {
        let message = Control {
            client: self.slot,
            kind,
            length: 64,
            data,
        };
        let message = message.encode();
        let server = address(&self.base, "ctl");
        // The server's socket takes a moment to appear.
        let begin = Instant::now();
        while let Err(error) = self.control.send_to_addr(&message, &server) {
            assert!(
                begin.elapsed() < Duration::from_secs(10),
                "ibsim does not come: {error}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut answer = [0; CONTROL_LENGTH];
        self.control.recv(&mut answer).unwrap();
        let answer = Control::decode(&answer).unwrap();
        assert_eq!(answer.kind, kind, "ibsim refuses");
        answer.client
    }

    fn send(&self, smp: &Smp) {
        assert!(matches!(smp.route, SmpRoute::Directed(_)));
        let message = Data {
            destination: Lid::PERMISSIVE,
            source: Lid::PERMISSIVE,
            destination_qp: 0,
            source_qp: 0,
            status: 0,
            length: MAD_LENGTH as u64,
            mad: smp.encode(),
        };
        self.data.send(&message.encode()).unwrap();
    }

    fn receive(&self, wait: Duration) -> Option<Smp> {
        self.data
            .set_read_timeout(Some(wait.max(Duration::from_millis(1))))
            .unwrap();
        let mut message = [0; DATA_LENGTH];
        self.data.recv(&mut message).ok()?;
        let message = Data::decode(&message).ok()?;
        if message.status != 0 {
            return None;
        }
        Smp::decode(&message.mad).ok()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.ask(ControlKind::DISCONNECT, [0; 64]);
    }
}

fn bring_up(client: &Client, engine: Box<dyn RoutingEngine + Send>) -> (Manager, Summary) {
    let settings = Settings {
        window: WINDOW,
        ..Settings::default()
    };
    let mut manager = Manager::new(settings, engine);
    manager.start(Time::ZERO);
    let summary = drive(client, &mut manager);
    (manager, summary)
}

/// Runs until the subnet is up.
fn drive(client: &Client, manager: &mut Manager) -> Summary {
    let begin = Instant::now();
    let now = || Time::from_picos(begin.elapsed().as_nanos() as u64 * 1_000);
    loop {
        assert!(
            begin.elapsed() < Duration::from_secs(600),
            "it takes too long"
        );
        while let Some(smp) = manager.poll_transmit(now()) {
            client.send(&smp);
        }
        match manager.poll_event() {
            None => {}
            Some(Event::Up(summary)) => return summary,
            Some(other) => panic!("{other:?}"),
        }
        let deadline = manager.poll_timeout().unwrap_or(now());
        let wait = Duration::from_nanos(deadline.since(now()).as_nanos());
        match client.receive(wait) {
            Some(smp) => manager.handle_smp(now(), &smp),
            None => manager.handle_timeout(now()),
        }
    }
}

/// Starts ibsim over `subnet`.
fn simulate(subnet: &Subnet, folder: &Path, base: &str) -> Ends {
    let net = folder.join("subnet.net");
    // The first node is where clients are: an adapter, so adapters go first.
    let text = write_net(subnet);
    let (mut adapters, switches): (Vec<&str>, Vec<&str>) = text
        .split("\n\n")
        .partition(|record| record.contains("Hca"));
    adapters.extend(switches);
    std::fs::write(&net, adapters.join("\n\n") + "\n").unwrap();
    let simulator = Command::new("ibsim")
        .args(["-N", "20000", "-S", "4000", "-P", "200000", "-s"])
        .arg(&net)
        .env("IBSIM_SOCKNAME", base)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Ends(simulator)
}

fn diagnostic(program: &str, arguments: &[&str], base: &str, library: &str) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", library)
        .env("IBSIM_SOCKNAME", base)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn debians_ibsim_is_brought_up() {
    let test = "debians_ibsim_is_brought_up";
    let Some(library) = umad2sim(test) else {
        return;
    };
    if !has(test, "ibsim", "ibsim-utils") || !has(test, "iblinkinfo", "infiniband-diags") {
        return;
    }
    let cases: [(Subnet, Box<dyn RoutingEngine + Send>); 3] = [
        (fat_tree(4, 3).unwrap(), Box::new(FatTree::default())),
        (torus(&[3, 4], 2).unwrap(), Box::new(Torus)),
        (fat_tree(8, 3).unwrap(), Box::new(UpDown::default())),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (number, (subnet, engine)) in (0..).zip(cases) {
        let base = format!("softfabric-manager-{}-{number}", std::process::id());
        let _simulator = simulate(&subnet, folder.path(), &base);
        let client = Client::connect(&base, std::process::id());
        let name = engine.name();
        let begin = Instant::now();
        let (mut manager, summary) = bring_up(&client, engine);
        println!("{name}: {summary:?} in {:?}", begin.elapsed());
        let hosts = subnet.nodes().filter(|(_, node)| !node.is_switch()).count();
        assert_eq!(summary.adapter_ports, hosts);
        assert_eq!(manager.subnet().cables().count(), subnet.cables().count());
        // There is nothing left to write.
        manager.start(Time::ZERO);
        assert_eq!(drive(&client, &mut manager).writes, 0);
        drop(client);
        // Every link is active, as Debian's tools see it.
        let links = diagnostic("iblinkinfo", &["-l"], &base, &library);
        let active = links
            .lines()
            .filter(|line| line.contains("Active/"))
            .count();
        assert_eq!(active, 2 * subnet.cables().count(), "{links}");
        // Packets by LID arrive.
        let lids: Vec<String> = manager
            .subnet()
            .end_ports()
            .map(|(_, port)| port.lid.to_string())
            .collect();
        for to in [1, lids.len() / 2, lids.len() - 1] {
            let trace = diagnostic("ibtracert", &[&lids[0], &lids[to]], &base, &library);
            assert!(
                trace.trim_end().lines().last().unwrap().starts_with("To "),
                "{trace}"
            );
        }
    }
}

/// Where the time of a large bring-up goes: `cargo test -p softfabric-subnet --release --test ibsim -- --ignored --nocapture`.
#[test]
#[ignore = "long: brings up 1,024, 3,456 and 11,664 hosts"]
fn large_fat_trees() {
    if !has("large_fat_trees", "ibsim", "ibsim-utils") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for radix in [16, 24, 36] {
        let subnet = fat_tree(radix, 3).unwrap();
        let base = format!("softfabric-large-{}-{radix}", std::process::id());
        let _simulator = simulate(&subnet, folder.path(), &base);
        let client = Client::connect(&base, std::process::id());
        let begin = Instant::now();
        let (mut manager, summary) = bring_up(&client, Box::new(FatTree::default()));
        println!("radix {radix}: {summary:?} in {:?}", begin.elapsed());
        let begin = Instant::now();
        let lid = manager
            .subnet()
            .end_ports()
            .find(|(end, _)| end.port == 0)
            .unwrap()
            .1
            .lid;
        manager.rescan(Time::ZERO, lid);
        let again = drive(&client, &mut manager);
        println!("one switch read again: {again:?} in {:?}", begin.elapsed());
    }
}
