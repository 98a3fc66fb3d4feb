//! How fast the adapter is, beside what the machine can do.
//!
//! ```text
//! cargo run --release -p softfabric-adapter --example speed            everything
//! cargo run --release -p softfabric-adapter --example speed -- latency what the name contains
//! ```
//!
//! Two processes on one host: this one, and one that it starts.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

mod raw;

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use softfabric_adapter::{Nic, Route, Settings, devices};
use softfabric_transport::{
    Access, AckTimeout, Capacity, CompletionQueueId, LocalSegment, Modify, Mtu, QueuePairInit,
    QueuePairType, RegionInit, Remote, SendFlags, SendOperation, SendRequest, Status,
};
use softfabric_units::{Gid, Psn, Qpn};

const MEMORY: usize = 64 << 20;
/// The last word of the memory tells the other process to end.
const STOP: usize = MEMORY - 8;

fn main() {
    if let Some(role) = std::env::var_os("SPEED_ROLE") {
        let role = role.to_string_lossy();
        let words: Vec<_> = role.split(' ').collect();
        match words[0] {
            "raw-receive" | "raw-echo" | "tcp-drain" => raw::serve(&words),
            _ => serve(&words),
        }
        return;
    }
    let only = std::env::args().nth(1).unwrap_or_default();
    let run = |name: &str, run: &dyn Fn()| {
        if name.contains(&only) {
            print!("{name:44}");
            std::io::stdout().flush().expect("a terminal");
            run();
        }
    };
    run("memcpy 64 KiB", &|| memcpy(64 << 10));
    run("memcpy 1 MiB", &|| memcpy(1 << 20));
    run("sockets, ping of 36 B", &raw::ping);
    run("sockets, TCP", &raw::stream);
    for payload in [1024, 4096] {
        let name = format!("sockets, UDP with GSO and GRO, {payload} B");
        run(&name, &|| raw::datagrams(payload));
    }
    for shared_memory in [true, false] {
        let way = if shared_memory {
            "shared memory"
        } else {
            "UDP"
        };
        run(&format!("{way}, write latency 8 B"), &|| {
            latency(shared_memory, "echo");
        });
        run(
            &format!("{way}, write latency, spinning on memory"),
            &|| {
                latency(shared_memory, "spin");
            },
        );
        run(&format!("{way}, small writes 8 B"), &|| {
            bandwidth(shared_memory, 8, 128, 1024);
        });
        for size in [1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20] {
            let name = format!("{way}, writes of {} KiB", size >> 10);
            run(&format!("{name}."), &|| {
                bandwidth(shared_memory, size, 16, 1024);
            });
        }
    }
    for shared_memory in [true, false] {
        let way = if shared_memory {
            "shared memory"
        } else {
            "UDP"
        };
        for size in [64 << 10, 1 << 20, 8 << 20] {
            let name = format!("{way}, reads of {} KiB.", size >> 10);
            run(&name, &|| transfer(shared_memory, size, 8, 1024, true));
        }
    }
    for size in [64 << 10, 1 << 20] {
        let name = format!("UDP, writes of {} KiB, MTU 4096", size >> 10);
        run(&name, &|| bandwidth(false, size, 16, 4096));
    }
}

/// One end: a device, a queue pair, memory.
struct End {
    nic: Arc<Nic>,
    memory: &'static [AtomicU64],
    queue: CompletionQueueId,
    qp: Qpn,
    key: u32,
}

#[derive(Clone, Copy)]
struct Peer {
    qp: Qpn,
    base: u64,
    key: u32,
    gid: Gid,
}

impl End {
    fn open(shared_memory: bool) -> Self {
        let settings = Settings {
            shared_memory,
            ..Settings::default()
        };
        let info = devices(&settings)
            .expect("interfaces")
            .into_iter()
            .find(|device| device.loopback)
            .expect("the loopback interface");
        let memory: Vec<AtomicU64> = (0..MEMORY / 8).map(|_| AtomicU64::new(1)).collect();
        let memory = Vec::leak(memory);
        // SAFETY: the memory stays as long as the process.
        #[allow(unsafe_code, reason = "promises that the memory stays")]
        let nic = unsafe { Nic::open(&info, &settings) }.expect("the port");
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
        let base = memory.as_ptr().expose_provenance() as u64;
        let (queue, qp, key) = nic.with(|device, now| {
            let domain = device.alloc_domain();
            let region = RegionInit::new(base, MEMORY as u64, access);
            let key = device.register_memory(domain, &region).expect("a region");
            let queue = device.create_cq(4096).expect("a queue");
            let mut init = QueuePairInit::new(QueuePairType::ReliableConnection, domain, queue);
            init.capacity = Capacity {
                sends: 512,
                ..Capacity::default()
            };
            let qp = device.create_qp(&init).expect("a queue pair");
            let ready = Modify::initialize(access - Access::LOCAL_WRITE);
            device.modify_qp(now, qp, &ready).expect("INIT");
            (queue, qp, key)
        });
        Self {
            nic,
            memory,
            queue,
            qp,
            key,
        }
    }

    fn base(&self) -> u64 {
        self.memory.as_ptr().expose_provenance() as u64
    }

    fn describe(&self) -> String {
        let gid = self.nic.gids()[0]
            .gid
            .0
            .map(|byte| format!("{byte:02x}"))
            .concat();
        format!("{} {} {} {gid}", self.qp.as_u32(), self.base(), self.key)
    }

    fn connect(&self, peer: &Peer, mtu: u32) {
        let path = self.nic.path(0, &Route::to(peer.gid)).expect("a path");
        let mtu = Mtu::standard(mtu).expect("an MTU");
        let mut ready = Modify::ready_to_receive_reliable(path, mtu, peer.qp, Psn::new(1));
        self.nic.fit(&mut ready);
        self.nic.with(|device, now| {
            device.modify_qp(now, self.qp, &ready).expect("RTR");
            let send = Modify::ready_to_send_reliable(Psn::new(1), AckTimeout::from_code(14));
            device.modify_qp(now, self.qp, &send).expect("RTS");
        });
    }

    fn write(&self, peer: &Peer, from: usize, to: usize, length: usize, signaled: bool) {
        let local = LocalSegment {
            address: self.base() + from as u64,
            length: length as u32,
            key: self.key,
        };
        let remote = Remote {
            address: peer.base + to as u64,
            key: peer.key,
        };
        let mut request = SendRequest::new(0, SendOperation::Write(remote), local);
        if !signaled {
            request = request.unsignaled();
        }
        if length <= 64 {
            request = request.with(SendFlags::INLINE);
        }
        self.nic
            .with(|device, now| device.post_send(now, self.qp, request))
            .expect("room in the queue");
    }

    fn read(&self, peer: &Peer, at: usize, length: usize) {
        let local = LocalSegment {
            address: self.base() + at as u64,
            length: length as u32,
            key: self.key,
        };
        let remote = Remote {
            address: peer.base + at as u64,
            key: peer.key,
        };
        let request = SendRequest::new(0, SendOperation::Read(remote), local);
        self.nic
            .with(|device, now| device.post_send(now, self.qp, request))
            .expect("room in the queue");
    }

    fn poll(&self) -> usize {
        self.nic.poll(self.queue, 32, |done| {
            assert_eq!(done.status, Status::Success);
        })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        &self.memory[offset / 8]
    }
}

/// Keeps this thread on one processor, so that the two processes do not wait for each other.
fn pin(processor: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(processor);
    // On a machine with one processor they have to.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

fn parse(line: &str) -> Peer {
    let words: Vec<_> = line.split_whitespace().collect();
    let number = |at: usize| words[at].parse::<u64>().expect("a number");
    let mut gid = [0; 16];
    for (at, byte) in gid.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&words[3][2 * at..2 * at + 2], 16).expect("a byte");
    }
    Peer {
        qp: Qpn::new(number(0) as u32),
        base: number(1),
        key: number(2) as u32,
        gid: Gid(gid),
    }
}

/// The other process: polls until it is told to stop. With the role `echo`, every write is answered.
fn serve(words: &[&str]) {
    let end = End::open(words[1] == "true");
    println!("{}", end.describe());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    let peer = parse(&line);
    end.connect(&peer, words[2].parse().expect("an MTU"));
    println!("ready");
    pin(1);
    let load = Load::now();
    let echo = words[0] == "echo";
    let mut turn = 1;
    while end.word(STOP).load(Ordering::Acquire) == 1 {
        if words[0] == "spin" {
            // As `ib_write_lat`: the program looks at its memory, and at its queue only for its own write.
            if end.word(0).load(Ordering::Acquire) == turn + 1 {
                turn += 1;
                end.write(&peer, 0, 0, 8, true);
                while end.poll() == 0 {}
            }
            continue;
        }
        end.poll();
        if echo && end.word(0).load(Ordering::Acquire) == turn + 1 {
            turn += 1;
            end.write(&peer, 0, 0, 8, turn % 64 == 0);
        }
    }
    println!("{}", load.spent());
}

/// The other process, and what it says.
type Other = (Child, Lines<BufReader<ChildStdout>>);

/// Starts the other process and connects to it.
fn start(role: &str, shared_memory: bool, mtu: u32) -> (End, Peer, Other) {
    let me = std::env::current_exe().expect("this program");
    let mut child = Command::new(me)
        .env("SPEED_ROLE", format!("{role} {shared_memory} {mtu}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("another process");
    let end = End::open(shared_memory);
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let peer = parse(&lines.next().expect("a line").expect("text"));
    writeln!(child.stdin.as_mut().expect("piped"), "{}", end.describe()).expect("it listens");
    end.connect(&peer, mtu);
    lines.next();
    pin(0);
    (end, peer, (child, lines))
}

/// Ends the other process, and returns the processor time that it took.
fn stop(end: &End, peer: &Peer, (mut child, mut lines): Other) -> f64 {
    end.word(STOP).store(2, Ordering::Release);
    end.write(peer, STOP, STOP, 8, true);
    while end.poll() == 0 {}
    let spent = lines.next().expect("a line").expect("text");
    child.wait().expect("it ends");
    spent.parse().expect("seconds")
}

fn latency(shared_memory: bool, role: &str) {
    let (end, peer, child) = start(role, shared_memory, 1024);
    let spins = role == "spin";
    let mut times = Vec::new();
    let begin = Instant::now();
    for turn in 1..1_000_001_u64 {
        let start = Instant::now();
        end.word(64).store(turn + 1, Ordering::Release);
        end.write(&peer, 64, 0, 8, spins || turn % 64 == 0);
        if spins {
            while end.poll() == 0 {}
        }
        while end.word(0).load(Ordering::Acquire) != turn + 1 {
            if !spins {
                end.poll();
            }
        }
        times.push(start.elapsed());
        if turn % 64 == 0 && begin.elapsed() > Duration::from_secs(3) {
            break;
        }
    }
    stop(&end, &peer, child);
    spread(times);
}

/// Half of the round trips' times.
fn spread(mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[(share * (times.len() - 1) as f64) as usize].as_nanos() / 2;
    if std::env::var_os("SPEED_SPREAD").is_some() {
        let spread: Vec<_> = (1..20).map(|part| at(f64::from(part) / 20.0)).collect();
        println!("{spread:?}");
    }
    println!(
        "{:5} ns p50, {:5} ns p99, {:5} ns least",
        at(0.5),
        at(0.99),
        at(0.0)
    );
}

fn bandwidth(shared_memory: bool, size: usize, depth: usize, mtu: u32) {
    transfer(shared_memory, size, depth, mtu, false);
}

fn transfer(shared_memory: bool, size: usize, depth: usize, mtu: u32, reads: bool) {
    let (end, peer, child) = start("poll", shared_memory, mtu);
    let span = (16 << 20) / size * size;
    let (mut posted, mut done) = (0_usize, 0_usize);
    let (start, load) = (Instant::now(), Load::now());
    while start.elapsed() < Duration::from_secs(2) {
        while posted - done < depth {
            let at = posted * size % span;
            if reads {
                end.read(&peer, at, size);
            } else {
                end.write(&peer, at, at, size, true);
            }
            posted += 1;
        }
        done += end.poll();
    }
    while done < posted {
        done += end.poll();
    }
    let seconds = start.elapsed().as_secs_f64();
    let ours = load.spent();
    let theirs = stop(&end, &peer, child);
    let (device, _) = end.nic.counters();
    let again = device.value(softfabric_telemetry::DeviceCounter::Retransmitted);
    report(done as f64 / seconds, size, ours + theirs, seconds);
    if again > 0 {
        println!("{:44}{again} packets were sent again", "");
    }
}

/// Prints a rate. `busy` is the processor time of both ends, in seconds.
fn report(per_second: f64, size: usize, busy: f64, seconds: f64) {
    let bytes = per_second * size as f64;
    println!(
        "{:7.2} GB/s {:7.2} Gb/s {:8.3} M/s {:7.2} Gb/s a processor",
        bytes / 1e9,
        bytes * 8.0 / 1e9,
        per_second / 1e6,
        bytes * 8.0 / 1e9 / (busy / seconds)
    );
}

/// Processor time of this process.
struct Load(f64);

impl Load {
    fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Self(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
    }

    /// Since then, in seconds.
    fn spent(&self) -> f64 {
        Self::now().0 - self.0
    }
}

fn memcpy(size: usize) {
    let span = 8 << 20;
    let source = vec![1_u8; span];
    let mut target = vec![2_u8; span];
    let (start, load) = (Instant::now(), Load::now());
    let mut count = 0;
    while start.elapsed() < Duration::from_secs(1) {
        let at = count * size % span;
        target[at..at + size].copy_from_slice(std::hint::black_box(&source[at..at + size]));
        std::hint::black_box(&mut target);
        count += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    report(count as f64 / seconds, size, load.spent(), seconds);
}
