//! A process with a device, which does what it is told: a line of JSON in, a line of JSON out.
//!
//! ```text
//! {"do":"qp"} → {"number":…}   {"do":"connect",…}   {"do":"post",…}   {"do":"wait","count":1} → {"done":[…]}
//! ```

use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use softfabric_adapter::{ArrivedMad, MAD_LENGTH, MadSink, Nic, Route, Settings, devices};
use softfabric_transport::{
    Access, AckTimeout, AddressVector, Capacity, Completion, CompletionQueueId, Datagram, Domain,
    LocalSegment, Modify, Mtu, QueuePairInit, QueuePairType, ReceiveRequest, RegionInit, Remote,
    RnrRetry, SendFlags, SendOperation, SendRequest, Status,
};
use softfabric_units::{Gid, MacAddress, PartitionKey, Psn, Qpn, Random};
use softfabric_wire::ip::TrafficClass;
use softfabric_wire::rdma::{Bth, Extension, Opcode, Reth, TransportHeader};
use softfabric_wire::{Data, RoceFrame, RoceNetwork};

/// The environment variable that makes the test `node::process` one.
pub(crate) const ROLE: &str = "SOFTFABRIC_TEST_NODE";

/// Bytes of memory that a node registers.
pub(crate) const MEMORY: usize = 16 << 20;
const QKEY: u32 = 0x1234;

/// The process's side.
#[test]
fn process() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let mut node = None;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let order: Value = serde_json::from_str(&line).unwrap();
        let answer = match (order["do"].as_str().unwrap(), &mut node) {
            ("open", node) => match Node::open(&order) {
                Ok(opened) => {
                    let answer = opened.describe();
                    *node = Some(opened);
                    answer
                }
                Err(error) => json!({ "error": error }),
            },
            ("close", node) => {
                *node = None;
                json!({})
            }
            (_, Some(node)) => node.obey(&order),
            (_, None) => json!({ "error": "no device is open" }),
        };
        println!("NODE {answer}");
        std::io::stdout().flush().unwrap();
    }
    drop(node);
    // What the test harness would print about this "test" is nobody's business.
    std::process::exit(0);
}

struct Node {
    nic: Arc<Nic>,
    memory: Vec<u64>,
    domain: Domain,
    queue: CompletionQueueId,
    key: u32,
    done: VecDeque<Completion>,
    paths: Vec<AddressVector>,
    mads: Arc<Mads>,
}

#[derive(Default)]
struct Mads(Mutex<Vec<ArrivedMad>>);

impl MadSink for Mads {
    fn receive(&self, mad: &ArrivedMad) {
        self.0.lock().unwrap().push(mad.clone());
    }
}

fn number(order: &Value, name: &str) -> u64 {
    order[name]
        .as_u64()
        .unwrap_or_else(|| panic!("`{name}` is missing in {order}"))
}

fn qp(order: &Value) -> Qpn {
    Qpn::new(number(order, "qp") as u32)
}

impl Node {
    fn open(order: &Value) -> Result<Self, String> {
        let settings = Settings::from_environment().unwrap();
        let all = devices(&settings).map_err(|error| error.to_string())?;
        let netdev = order["netdev"].as_str().unwrap_or("lo");
        let info = all.iter().find(|device| device.netdev == netdev);
        let info = info.ok_or_else(|| format!("no device on {netdev}"))?;
        let memory = vec![0_u64; MEMORY / 8];
        // SAFETY: the memory is registered as long as it is there: `Node` drops the device first.
        #[allow(unsafe_code, reason = "promises that the memory stays")]
        let nic = unsafe { Nic::open(info, &settings) }.map_err(|error| error.to_string())?;
        let base = memory.as_ptr().expose_provenance() as u64;
        let (domain, queue, key) = nic.with(|device, _| {
            let domain = device.alloc_domain();
            let access = Access::LOCAL_WRITE
                | Access::REMOTE_WRITE
                | Access::REMOTE_READ
                | Access::REMOTE_ATOMIC;
            let region = RegionInit::new(base, MEMORY as u64, access);
            let key = device.register_memory(domain, &region).unwrap();
            (domain, device.create_cq(1 << 16).unwrap(), key)
        });
        let mads = Arc::new(Mads::default());
        nic.general_services().set_sink(mads.clone());
        Ok(Self {
            nic,
            memory,
            domain,
            queue,
            key,
            done: VecDeque::new(),
            paths: Vec::new(),
            mads,
        })
    }

    fn base(&self) -> u64 {
        self.memory.as_ptr().expose_provenance() as u64
    }

    fn describe(&self) -> Value {
        let gids: Vec<_> = self.nic.gids().iter().map(|entry| entry.gid.0).collect();
        json!({ "base": self.base(), "key": self.key, "gids": gids, "pid": std::process::id() })
    }

    /// The bytes, which the device changes behind the compiler's back.
    fn bytes(&mut self, order: &Value) -> &mut [u8] {
        let (offset, length) = (number(order, "offset"), number(order, "length"));
        let words = std::hint::black_box(&mut self.memory);
        let bytes = words.as_mut_ptr().cast::<u8>();
        assert!((offset + length) as usize <= MEMORY);
        // SAFETY: within the memory.
        #[allow(unsafe_code, reason = "looks at words as bytes")]
        unsafe {
            std::slice::from_raw_parts_mut(bytes.add(offset as usize), length as usize)
        }
    }

    fn obey(&mut self, order: &Value) -> Value {
        match order["do"].as_str().unwrap() {
            "qp" => self.make_qp(order),
            "connect" => self.connect(order),
            "activate" => self.activate(order),
            "path" => self.path(order),
            "post" => self.post(order),
            "receive" => self.receive(order),
            "wait" => self.wait(order),
            "bulk" => self.bulk(order),
            "fill" => {
                let mut random = Random::from_seed(number(order, "seed"));
                for chunk in self.bytes(order).chunks_mut(8) {
                    chunk.copy_from_slice(&random.bits().to_ne_bytes()[..chunk.len()]);
                }
                json!({})
            }
            "hash" => json!({ "hash": hash(self.bytes(order)) }),
            "word" => {
                let at = number(order, "offset") as usize / 8;
                json!({ "word": std::hint::black_box(&self.memory)[at] })
            }
            "report" => {
                let report = softfabric_adapter::report().unwrap();
                let running = report.running.iter().map(|neighbour| {
                    json!({"slot": neighbour.slot, "device": neighbour.device,
                        "process": neighbour.process, "counters": neighbour.counters})
                });
                json!({ "running": running.collect::<Vec<_>>(), "ended": report.ended })
            }
            "forge" => forge(order),
            "fork" => json!({ "code": self.fork() }),
            "slot" => json!({ "slot": self.nic.slot() }),
            "mad" => {
                let path = self.route(order);
                let mad = [order["byte"].as_u64().unwrap() as u8; MAD_LENGTH];
                self.nic.general_services().send(&path, &mad);
                json!({})
            }
            "mads" => {
                let start = Instant::now();
                let count = number(order, "count") as usize;
                while self.mads.0.lock().unwrap().len() < count
                    && start.elapsed() < Duration::from_secs(5)
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let mads: Vec<_> = self.mads.0.lock().unwrap().drain(..).collect();
                let mads = mads
                    .iter()
                    .map(|mad| json!({ "source": mad.source.0, "byte": mad.bytes[9] }));
                json!({ "mads": mads.collect::<Vec<_>>() })
            }
            "counters" => {
                let (device, port) = self.nic.counters();
                let device = device
                    .iter()
                    .map(|(row, value)| (row.definition().id, value));
                let port = port.iter().map(|(row, value)| (row.definition().id, value));
                let all: serde_json::Map<_, _> = device
                    .chain(port)
                    .map(|(name, value)| (name.to_owned(), json!(value)))
                    .collect();
                let mut all = Value::Object(all);
                let beside = self.nic.statistics();
                all["handed_over"] = json!(beside.handed_over);
                all["faults"] = json!(beside.faults);
                all
            }
            "cpu" => {
                // User and system time of the whole process, in clock ticks.
                let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
                let after = stat.rsplit(')').next().unwrap();
                let fields: Vec<_> = after.split_whitespace().collect();
                let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
                json!({ "ticks": ticks(11) + ticks(12) })
            }
            other => panic!("no node does `{other}`"),
        }
    }

    /// Forks; the child looks at the device, opens it anew, and ends with a code that says what it found.
    fn fork(&self) -> i32 {
        // SAFETY: the child calls what a forked child of the C interface calls, and then ends at once.
        #[allow(unsafe_code, reason = "forks and waits")]
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let mut code = 0;
                if self.nic.is_alive() {
                    code |= 1;
                }
                let made = self.nic.with(|device, _| device.create_cq(1));
                if made.is_err() {
                    code |= 2;
                }
                match Nic::open(self.nic.info(), &Settings::default()) {
                    Ok(nic) if nic.is_alive() && nic.slot() != self.nic.slot() => {}
                    _ => code |= 4,
                }
                libc::_exit(code);
            }
            let mut status = 0;
            libc::waitpid(child, &raw mut status, 0);
            libc::WEXITSTATUS(status)
        }
    }

    fn make_qp(&mut self, order: &Value) -> Value {
        let service = match order["type"].as_str().unwrap_or("rc") {
            "uc" => QueuePairType::UnreliableConnection,
            "ud" => QueuePairType::UnreliableDatagram,
            _ => QueuePairType::ReliableConnection,
        };
        let mut init = QueuePairInit::new(service, self.domain, self.queue);
        init.capacity = Capacity {
            sends: 4096,
            receives: 4096,
            ..Capacity::default()
        };
        let number = self.nic.with(|device, now| {
            let number = device.create_qp(&init).unwrap();
            let access = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
            let ready = if service == QueuePairType::UnreliableDatagram {
                Modify::initialize_datagram(QKEY)
            } else if service == QueuePairType::UnreliableConnection {
                Modify::initialize(Access::REMOTE_WRITE)
            } else {
                Modify::initialize(access)
            };
            device.modify_qp(now, number, &ready).unwrap();
            number
        });
        json!({ "number": number.as_u32() })
    }

    fn route(&self, order: &Value) -> AddressVector {
        let gid = order["gid"].as_array().unwrap();
        let mut bytes = [0; 16];
        for (byte, value) in bytes.iter_mut().zip(gid) {
            *byte = value.as_u64().unwrap() as u8;
        }
        let index = order["index"].as_u64().unwrap_or(0) as usize;
        let gid = Gid(bytes);
        self.nic.path(index, &Route::to(gid)).unwrap()
    }

    fn connect(&mut self, order: &Value) -> Value {
        let path = self.route(order);
        let mtu = Mtu::standard(order["mtu"].as_u64().unwrap_or(1024) as u32).unwrap();
        let peer = Qpn::new(number(order, "peer") as u32);
        let psn = Psn::new(0xff_ff00);
        let timeout = order["timeout"].as_u64().unwrap_or(12) as u8;
        let retries = order["retries"].as_u64().unwrap_or(7) as u8;
        let reliable = order["type"].as_str().unwrap_or("rc") == "rc";
        let (mut receive, mut send) = if reliable {
            (
                Modify::ready_to_receive_reliable(path, mtu, peer, psn),
                Modify::ready_to_send_reliable(psn, AckTimeout::from_code(timeout)),
            )
        } else {
            (
                Modify::ready_to_receive(path, mtu, peer, psn),
                Modify::ready_to_send(psn),
            )
        };
        if reliable {
            send.retry_count = Some(retries);
            send.rnr_retry = Some(RnrRetry::new(7));
        }
        self.nic.fit(&mut receive);
        let real = receive.path_mtu.unwrap().as_u32();
        self.nic.with(|device, now| {
            device.modify_qp(now, qp(order), &receive).unwrap();
            device.modify_qp(now, qp(order), &send).unwrap();
        });
        json!({ "mtu": real })
    }

    /// Makes a datagram queue pair ready.
    fn activate(&mut self, order: &Value) -> Value {
        use softfabric_transport::State;
        self.nic.with(|device, now| {
            let ready = Modify::to(State::ReadyToReceive);
            device.modify_qp(now, qp(order), &ready).unwrap();
            let send = Modify::ready_to_send(Psn::new(5));
            device.modify_qp(now, qp(order), &send).unwrap();
        });
        json!({})
    }

    fn path(&mut self, order: &Value) -> Value {
        self.paths.push(self.route(order));
        json!({ "path": self.paths.len() - 1 })
    }

    fn local(&self, order: &Value) -> LocalSegment {
        LocalSegment {
            address: self.base() + order["offset"].as_u64().unwrap_or(0),
            length: order["length"].as_u64().unwrap_or(8) as u32,
            key: self.key,
        }
    }

    fn post(&mut self, order: &Value) -> Value {
        let remote = Remote {
            address: order["remote"].as_u64().unwrap_or(0),
            key: order["key"].as_u64().unwrap_or(0) as u32,
        };
        let operation = match order["operation"].as_str().unwrap() {
            "write" => SendOperation::Write(remote),
            "read" => SendOperation::Read(remote),
            "send" => SendOperation::Send,
            "immediate" => SendOperation::SendImmediate(0x55),
            "add" => SendOperation::FetchAdd {
                remote,
                add: number(order, "add"),
            },
            other => panic!("no operation is `{other}`"),
        };
        let mut request = SendRequest::new(number(order, "id"), operation, self.local(order));
        if order["inline"].as_bool().unwrap_or(false) {
            request = request.with(SendFlags::INLINE);
        }
        if let Some(path) = order["path"].as_u64() {
            request = request.to(Datagram {
                path: self.paths[path as usize],
                destination: Qpn::new(number(order, "peer") as u32),
                qkey: QKEY,
            });
        }
        match self
            .nic
            .with(|device, now| device.post_send(now, qp(order), request))
        {
            Ok(()) => json!({}),
            Err(error) => json!({ "error": error.to_string() }),
        }
    }

    fn receive(&mut self, order: &Value) -> Value {
        let (count, size) = (number(order, "count"), number(order, "size"));
        let offset = order["offset"].as_u64().unwrap_or(0);
        self.nic.with(|device, _| {
            for at in 0..count {
                let local = LocalSegment {
                    address: self.memory.as_ptr().expose_provenance() as u64 + offset + at * size,
                    length: size as u32,
                    key: self.key,
                };
                let request = ReceiveRequest::new(1_000_000 + at, local);
                device.post_recv(qp(order), request).unwrap();
            }
        });
        json!({})
    }

    /// Polls until so many completions are there, or too much time has passed.
    fn wait(&mut self, order: &Value) -> Value {
        let count = number(order, "count") as usize;
        let limit = Duration::from_millis(order["limit"].as_u64().unwrap_or(20_000));
        let start = Instant::now();
        while self.done.len() < count && start.elapsed() < limit {
            let done = &mut self.done;
            self.nic
                .poll(self.queue, 64, |completion| done.push_back(completion));
        }
        let done: Vec<_> = self.done.drain(..).map(describe).collect();
        json!({ "done": done, "millis": start.elapsed().as_millis() as u64 })
    }

    /// Many operations of one kind, so many at a time. Every one has to complete exactly once, with success.
    fn bulk(&mut self, order: &Value) -> Value {
        let count = number(order, "count");
        let depth = number(order, "depth");
        let (size, span) = (number(order, "length"), number(order, "span"));
        let remote = number(order, "remote");
        let offset = order["offset"].as_u64().unwrap_or(0);
        let mut seen = vec![false; count as usize];
        let (mut posted, mut completed) = (0, 0);
        let start = Instant::now();
        while completed < count && start.elapsed() < Duration::from_secs(60) {
            while posted < count && posted - completed < depth {
                let at = posted * size % span;
                let mut one = order.clone();
                one["id"] = json!(posted);
                one["offset"] = json!(offset + at);
                one["remote"] = json!(remote + at);
                let answer = self.post(&one);
                assert!(answer["error"].is_null(), "{answer}");
                posted += 1;
            }
            let mut problem = None;
            self.nic.poll(self.queue, 64, |done| {
                if done.status != Status::Success
                    || std::mem::replace(&mut seen[done.id as usize], true)
                {
                    problem.get_or_insert(done);
                }
                completed += 1;
            });
            if let Some(problem) = problem {
                return json!({ "error": format!("{problem:?} after {completed}") });
            }
        }
        json!({ "completed": completed, "micros": start.elapsed().as_micros() as u64 })
    }
}

/// Sends a write of 8 bytes, made by hand, from an address of this host.
fn forge(order: &Value) -> Value {
    let header = TransportHeader {
        bth: Bth {
            opcode: Opcode::RC_WRITE_ONLY,
            solicited: false,
            migrated: true,
            pad: 0,
            partition: PartitionKey::DEFAULT,
            fecn: false,
            becn: false,
            destination: qp(order),
            acknowledge: true,
            psn: Psn::new(number(order, "psn") as u32),
        },
        extension: Extension::Reth(Reth {
            address: number(order, "address"),
            rkey: number(order, "key") as u32,
            length: 8,
        }),
        xrc_srq: 0,
    };
    let [from, to] =
        ["from", "to"].map(|name| order[name].as_str().unwrap().parse::<IpAddr>().unwrap());
    let socket = UdpSocket::bind((from, 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let class = TrafficClass::from_byte(0);
    let network = RoceNetwork::v2(Gid::from_ip(from), Gid::from_ip(to), port, class);
    let frame = RoceFrame {
        destination: MacAddress::default(),
        source: MacAddress::default(),
        tag: None,
        network,
        header,
        payload: Data::Bytes(&[0x66; 8]),
    };
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    // Ethernet, IPv4 and UDP are the kernel's; DF is what it sets by itself for connected sockets, and zero is what the
    // receiver solves for.
    let packet = &bytes[14 + 20 + 8..][..header.length() + 8 + 4];
    let sent = socket.send_to(packet, (to, 4791)).is_ok();
    json!({ "sent": sent })
}

fn describe(done: Completion) -> Value {
    json!({
        "id": done.id,
        "status": done.status.to_string(),
        "length": done.length,
        "source": done.source.as_u32(),
        "source_gid": done.source_gid.0,
    })
}

/// FNV-1a.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
