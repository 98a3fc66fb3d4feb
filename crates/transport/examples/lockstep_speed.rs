//! How long the four calls of one data packet take: `cargo run --release -p softfabric-transport --example
//! lockstep_speed`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use softfabric_transport::rate::{DcqcnNicParameters, RateControlConfig};
use softfabric_transport::{
    Access, AckTimeout, AddressVector, Arrival, Coalescing, CompletionQueueId, Device,
    DeviceConfig, LengthsOnly, LocalSegment, Modify, Mtu, QueuePairInit, QueuePairType, RegionInit,
    Remote, SendOperation, SendRequest,
};
use softfabric_units::{ClassMask, Psn, Qpn, Rate, Span, Time};

struct Host {
    device: Device<LengthsOnly>,
    queue: CompletionQueueId,
    key: u32,
    qps: Vec<Qpn>,
}

fn host(config: DeviceConfig, qps: u32) -> Host {
    let mut device = Device::new(config, LengthsOnly::new());
    let domain = device.alloc_domain();
    let queue = device.create_cq(1 << 20).expect("within limits");
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
    let key = device
        .register_memory(domain, &RegionInit::new(0, u64::MAX, access))
        .expect("the domain exists");
    let init = QueuePairInit::new(QueuePairType::ReliableConnection, domain, queue);
    let qps = (0..qps)
        .map(|_| device.create_qp(&init).expect("within limits"))
        .collect();
    Host {
        device,
        queue,
        key,
        qps,
    }
}

fn connect(host: &mut Host, peer: &[Qpn]) {
    for (&qp, &peer) in host.qps.iter().zip(peer) {
        let path = AddressVector::default();
        let (mtu, psn) = (Mtu::BYTES_1024, Psn::new(0));
        for step in [
            Modify::initialize(Access::REMOTE_WRITE),
            Modify::ready_to_receive_reliable(path, mtu, peer, psn),
            Modify::ready_to_send_reliable(psn, AckTimeout::from_code(14)),
        ] {
            host.device
                .modify_qp(Time::ZERO, qp, &step)
                .expect("in order");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is a stopwatch")]
fn clock() -> Instant {
    Instant::now()
}

fn measure(name: &str, config: DeviceConfig, qps: u32, busy: usize) {
    let mut a = host(config, qps);
    let mut b = host(config, qps);
    let (of_a, of_b) = (a.qps.clone(), b.qps.clone());
    connect(&mut a, &of_b);
    connect(&mut b, &of_a);
    let source = AddressVector::default();
    let mut now = Time::ZERO;
    let per = |time: Duration, count: usize| time.as_nanos() as f64 / count.max(1) as f64;
    // Nanoseconds per call of each round; the median does not mind what else the machine does.
    let mut rounds_of: [Vec<f64>; 4] = Default::default();
    let batch = 256;
    let rounds = 20_000;
    let (mut data, mut answers) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for &qp in of_a.iter().take(busy) {
            if a.device.query_qp(qp).is_some_and(|s| s.sends_waiting == 0) {
                let remote = Remote {
                    address: 0,
                    key: b.key,
                };
                let local = LocalSegment {
                    address: 0,
                    length: 1 << 30,
                    key: a.key,
                };
                let request = SendRequest::new(round, SendOperation::Write(remote), local);
                a.device.post_send(now, qp, request).expect("room");
            }
        }
        // A batch of each call, so that the stopwatch does not count.
        let step = Span::nanos(100);
        let start = clock();
        for _ in 0..batch {
            now += step;
            data.extend(black_box(a.device.poll_transmit(now, ClassMask::ALL)));
        }
        rounds_of[0].push(per(start.elapsed(), data.len()));
        let start = clock();
        for packet in &data {
            b.device.handle_packet(
                now,
                Arrival {
                    header: &packet.header,
                    payload: (),
                    payload_length: packet.payload_length,
                    congestion: false,
                    source: &source,
                    destination: None,
                    grh: None,
                },
            );
        }
        rounds_of[1].push(per(start.elapsed(), data.len()));
        let start = clock();
        while let Some(packet) = b.device.poll_transmit(now, ClassMask::ALL) {
            answers.push(packet);
        }
        rounds_of[2].push(per(start.elapsed(), answers.len()));
        let start = clock();
        for packet in &answers {
            a.device.handle_packet(
                now,
                Arrival {
                    header: &packet.header,
                    payload: (),
                    payload_length: 0,
                    congestion: false,
                    source: &source,
                    destination: None,
                    grh: None,
                },
            );
        }
        rounds_of[3].push(per(start.elapsed(), answers.len()));
        data.clear();
        answers.clear();
        while a.device.poll_completion(a.queue).is_some() {}
    }
    let [send, receive, send_ack, receive_ack] = rounds_of.map(|mut rounds| {
        rounds.sort_unstable_by(f64::total_cmp);
        rounds[rounds.len() / 2]
    });
    println!(
        "{name:<34} send {send:>5.1}  receive {receive:>5.1}  send ACK {send_ack:>5.1}  receive ACK {receive_ack:>5.1} ns"
    );
}

fn main() {
    let mut config = DeviceConfig::new(Rate::gbps(100));
    config.acknowledgement.coalescing = Coalescing::EveryPacket;
    measure("one queue pair", config, 1, 1);
    measure("1,000 idle, one busy", config, 1000, 1);
    measure("1,000 idle, 64 busy", config, 1000, 64);
    config.rate_control = RateControlConfig::DcqcnNic(DcqcnNicParameters::nvidia_default());
    measure("one queue pair, DCQCN at line rate", config, 1, 1);
    config.rate_control = RateControlConfig::Fixed {
        rate: Rate::gbps(80),
    };
    measure("one queue pair, paced at 80 %", config, 1, 1);
    measure("64 busy, paced", config, 64, 64);
}
