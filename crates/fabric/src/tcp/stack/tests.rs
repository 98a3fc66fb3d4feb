use super::*;
use crate::tcp::CongestionAlgorithm;
use softfabric_units::Rate;
use softfabric_wire::tcp::{TcpFlags, TcpHeader, TcpOptions};

/// Two hosts and a link between them of which only the rate counts.
struct Pair {
    now: Time,
    stacks: [Stack; 2],
    rate: Rate,
    free: [Time; 2],
    wire: VecDeque<(Time, usize, Packet)>,
    events: Vec<(Time, usize, StackEvent)>,
}

impl Pair {
    fn new(config: StackConfig, rate: Rate) -> Self {
        Self {
            now: Time::ZERO,
            stacks: [Stack::new(config, 1), Stack::new(config, 1)],
            rate,
            free: [Time::ZERO; 2],
            wire: VecDeque::new(),
            events: Vec::new(),
        }
    }

    fn flow(&mut self, id: u32, bytes: u64) {
        for end in 0..2 {
            let open = Open {
                id,
                active: end == 0,
                writes: if end == 0 { bytes } else { 0 },
                reads: if end == 1 { bytes } else { 0 },
                messages: false,
                call: None,
                ecn: false,
                class: Class::new(0),
                port: 0,
            };
            self.stacks[end].open(self.now, &open);
        }
    }

    fn run(&mut self, end: Time) {
        loop {
            for host in 0..2 {
                while self.free[host] <= self.now {
                    let Some(out) = self.stacks[host].poll_transmit(self.now, 0, ClassMask::ALL)
                    else {
                        break;
                    };
                    let length = 78 + u64::from(out.segment.payload);
                    self.free[host] = self.now + self.rate.time_for(Bytes::new(length));
                    let packet = Packet {
                        id: out.id,
                        header: out.segment.header,
                        payload: out.segment.payload,
                        congestion: false,
                    };
                    let place = self
                        .wire
                        .partition_point(|(time, ..)| *time <= self.free[host]);
                    self.wire.insert(place, (self.free[host], 1 - host, packet));
                }
                while let Some(event) = self.stacks[host].poll_event() {
                    self.events.push((self.now, host, event));
                }
            }
            let mut next = self.wire.front().map_or(Time::NEVER, |(time, ..)| *time);
            for host in 0..2 {
                next = next.min(self.stacks[host].poll_timeout().unwrap_or(Time::NEVER));
                if self.free[host] > self.now {
                    next = next.min(self.free[host]);
                }
            }
            if next > end {
                return;
            }
            self.now = next.max(self.now);
            while let Some(&(time, host, packet)) = self.wire.front()
                && time <= self.now
            {
                self.wire.pop_front();
                self.stacks[host].arrive(self.now, packet);
            }
            self.stacks
                .iter_mut()
                .for_each(|stack| stack.handle_timeout(next));
        }
    }
}

fn config(cpu: Option<CpuModel>) -> StackConfig {
    StackConfig {
        tcp: TcpConfig {
            maximum_segment: Bytes::new(8960),
            congestion: CongestionAlgorithm::Reno,
            ..TcpConfig::default()
        },
        cpu,
        call: Bytes::kib(128),
    }
}

fn goodput(pair: &mut Pair, milliseconds: u64) -> f64 {
    pair.run(Time::ZERO + Span::millis(20));
    let before = pair.stacks[1].delivered();
    pair.run(Time::ZERO + Span::millis(20 + milliseconds));
    (pair.stacks[1].delivered() - before) as f64 * 8.0 / (milliseconds as f64 * 1e-3)
}

/// Events come once each, and what was written is read; with and without processors.
#[test]
fn applications_hear_of_their_ends() {
    for cpu in [None, Some(CpuModel::default())] {
        let mut pair = Pair::new(config(cpu), Rate::gbps(100));
        pair.flow(3, 10_000_000);
        pair.flow(8, 1);
        pair.run(Time::ZERO + Span::millis(500));
        let events: Vec<_> = pair
            .events
            .iter()
            .map(|(_, host, event)| (*host, *event))
            .collect();
        for expected in [
            (0, StackEvent::Sent(3)),
            (1, StackEvent::Received(3)),
            (0, StackEvent::Sent(8)),
            (1, StackEvent::Received(8)),
        ] {
            assert_eq!(
                events.iter().filter(|&&event| event == expected).count(),
                1,
                "{expected:?} {events:?}"
            );
        }
        assert_eq!(events.len(), 4);
        assert_eq!(
            (pair.stacks[1].read(3), pair.stacks[1].delivered()),
            (10_000_000, 10_000_001)
        );
        assert_eq!(pair.stacks[0].waiting() + pair.stacks[1].waiting(), 0);
        let spent = pair.stacks[1].statistics().time.total();
        assert_eq!(spent.is_zero(), cpu.is_none());
    }
}

/// The study that the defaults are taken from: one receiving core takes 42 Gb/s, half of its time in copies. Within 10 %.
#[test]
fn one_core_receives_what_the_study_measured() {
    let mut pair = Pair::new(config(Some(CpuModel::default())), Rate::gbps(100));
    pair.flow(0, u64::MAX >> 20);
    let found = goodput(&mut pair, 50);
    let time = pair.stacks[1].statistics().time;
    let copies = time.copies.as_seconds_f64() / time.total().as_seconds_f64();
    println!("{:.1} Gb/s, {copies:.2} of it copies", found / 1e9);
    assert!((found / 42e9 - 1.0).abs() < 0.1, "{found}");
    assert!((copies - 0.49).abs() < 0.05, "{copies}");
    // The receiver is the bottleneck: its core is busy all the time, the sender's is not.
    let busy = |host: usize| pair.stacks[host].statistics().time.total().as_seconds_f64() / 0.070;
    assert!(busy(1) > 0.95 && busy(0) < 0.8, "{} {}", busy(1), busy(0));
}

/// Several connections use several cores.
#[test]
fn connections_spread_over_cores() {
    let run = |cores: u32| {
        let mut pair = Pair::new(
            config(Some(CpuModel {
                cores,
                ..CpuModel::default()
            })),
            Rate::gbps(100),
        );
        (0..4).for_each(|id| pair.flow(id, u64::MAX >> 20));
        goodput(&mut pair, 30) / 1e9
    };
    let (one, two, four) = (run(1), run(2), run(4));
    println!("{one:.1} {two:.1} {four:.1} Gb/s");
    assert!(two > 1.7 * one && four > 90.0, "{one} {two} {four}");
}

/// A single byte: by hand. Both SYNs cost coalescing, interrupt and stack; so does the acknowledgement of the second, and the
/// data, which is written meanwhile, comes while the NIC still waits and is in the same batch.
#[test]
fn latency_of_a_byte_by_hand() {
    let cpu = CpuModel::default();
    let mut pair = Pair::new(config(Some(cpu)), Rate::gbps(100));
    pair.flow(0, 1);
    pair.run(Time::ZERO + Span::millis(10));
    let received = pair
        .events
        .iter()
        .find(|(_, _, event)| *event == StackEvent::Received(0))
        .unwrap()
        .0;
    let arrival = |stack: Span| cpu.coalescing + cpu.interrupt + cpu.frame + stack;
    assert!(cpu.system_call + cpu.segment < cpu.coalescing);
    let read = cpu.wake_up + cpu.system_call;
    let last = arrival(cpu.acknowledgement) + cpu.frame + cpu.segment;
    let expected = arrival(cpu.acknowledgement) * 2 + last + read;
    let difference = received.since(Time::ZERO).saturating_sub(expected);
    // What is left is the wire's: frames of some 90 B at 100 Gb/s, and the byte's copy.
    assert!(difference < Span::nanos(200), "{received} for {expected}");
    assert!(received.since(Time::ZERO) >= expected);
}

/// By hand: three in a row become one; a mark, a hole or another acknowledgement ends it; a push is its last.
#[test]
fn frames_in_a_row_are_merged() {
    let packet = |id: u32, sequence: u32, flags: TcpFlags, congestion: bool| Packet {
        id,
        header: TcpHeader {
            source_port: 0,
            destination_port: 0,
            sequence,
            acknowledgement: 5,
            flags,
            window: 1,
            checksum: 0,
            urgent: 0,
            options: TcpOptions::default(),
        },
        payload: 1000,
        congestion,
    };
    let (ack, push) = (TcpFlags::ACK, TcpFlags::ACK | TcpFlags::PSH);
    let merged = |packets: &[Packet]| {
        let mut ring = Ring::default();
        packets.iter().for_each(|packet| ring.push(*packet));
        let batch = ring.take(&CpuModel::default());
        batch
            .packets
            .iter()
            .map(|packet| (packet.id, packet.payload))
            .collect::<Vec<_>>()
    };
    // Another connection in between is no matter.
    assert_eq!(
        merged(&[
            packet(1, 0, ack, false),
            packet(2, 0, ack, false),
            packet(1, 1000, ack, false),
            packet(1, 2000, push, false)
        ]),
        [(1, 3000), (2, 1000)]
    );
    assert_eq!(
        merged(&[packet(1, 0, push, false), packet(1, 1000, ack, false)]),
        [(1, 1000), (1, 1000)]
    );
    assert_eq!(
        merged(&[packet(1, 0, ack, false), packet(1, 2000, ack, false)]),
        [(1, 1000), (1, 1000)]
    );
    assert_eq!(
        merged(&[packet(1, 0, ack, false), packet(1, 1000, ack, true)]),
        [(1, 1000), (1, 1000)]
    );
    let long: Vec<_> = (0..66)
        .map(|index| packet(1, index * 1000, ack, false))
        .collect();
    assert_eq!(merged(&long), [(1, 64_000)], "64 frames a poll");
}
