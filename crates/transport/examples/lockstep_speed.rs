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
    let mut spent = [Duration::ZERO; 4];
    let (mut packets, mut acknowledges) = (0u64, 0u64);
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
        spent[0] += start.elapsed();
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
                    grh: None,
                },
            );
        }
        spent[1] += start.elapsed();
        let start = clock();
        while let Some(packet) = b.device.poll_transmit(now, ClassMask::ALL) {
            answers.push(packet);
        }
        spent[2] += start.elapsed();
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
                    grh: None,
                },
            );
        }
        spent[3] += start.elapsed();
        packets += data.len() as u64;
        acknowledges += answers.len() as u64;
        data.clear();
        answers.clear();
        while a.device.poll_completion(a.queue).is_some() {}
    }
    let per = |time: Duration, count: u64| time.as_nanos() as f64 / count.max(1) as f64;
    println!(
        "{name:<34} send {:>5.1}  receive {:>5.1}  send ACK {:>5.1}  receive ACK {:>5.1} ns",
        per(spent[0], packets),
        per(spent[1], packets),
        per(spent[2], acknowledges),
        per(spent[3], acknowledges),
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
