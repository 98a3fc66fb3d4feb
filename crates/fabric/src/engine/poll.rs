//! Counters as somebody who polls them would see them: every port of a node, all at the same times.
//!
//! As the recorder's, polls are taken lazily, at the first event after they are due, from the state as it was left. So
//! polling never changes a run.

use softfabric_telemetry::{ClassCounter, Counter, DeviceCounters, PortCounter};
use softfabric_units::{Class, Span, Time};

use super::port::Transmitter;
use crate::plan::{Endpoint, NodeId, PortId};
use crate::results::CounterSample;

/// Polls the ports of one node.
#[derive(Debug)]
pub(crate) struct Poller {
    node: NodeId,
    interval: Span,
    pub(crate) next: Time,
    /// What was told last, by port and place in the table.
    told: Vec<Vec<u64>>,
    pub(crate) samples: Vec<CounterSample>,
}

impl Poller {
    /// Polls every `interval`, the first time at `origin`.
    pub(crate) fn new(node: NodeId, ports: usize, origin: Time, interval: Span) -> Self {
        Self {
            node,
            interval,
            next: origin,
            told: vec![vec![0; Counter::COUNT]; ports],
            samples: Vec::new(),
        }
    }

    /// Takes a sample of a port, as of `at`, and leaves the time as it is: `advance` comes after all ports.
    pub(crate) fn poll(
        &mut self,
        at: Time,
        port: usize,
        transmitter: &Transmitter,
        device: Option<&DeviceCounters>,
    ) {
        let mut changed = Vec::new();
        let told = &mut self.told[port];
        let mut tell = |counter: Counter, value: u64| {
            let known = &mut told[counter.index()];
            if *known != value {
                *known = value;
                changed.push((counter, value));
            }
        };
        for (counter, value) in transmitter.port.iter() {
            // Sums over classes and open waits are made at the end of a run; until then they are made here.
            let value = match counter {
                PortCounter::TransmitPackets => transmitter.total(ClassCounter::TransmitPackets),
                PortCounter::TransmitBytes => transmitter.total(ClassCounter::TransmitBytes),
                PortCounter::ReceivePackets => transmitter.total(ClassCounter::ReceivePackets),
                PortCounter::ReceiveBytes => transmitter.total(ClassCounter::ReceiveBytes),
                PortCounter::TransmitWait => transmitter.waited(at).as_picos(),
                _ => value,
            };
            tell(Counter::Port(counter), value);
        }
        for class in Class::all() {
            for (counter, value) in transmitter.classes[class.index()].iter() {
                let open = match counter {
                    ClassCounter::PauseReceivedDuration => transmitter.paused_since(class),
                    ClassCounter::PauseSentDuration => transmitter.pausing_since(class),
                    _ => None,
                };
                let open = open.map_or(0, |since| at.since(since).as_picos());
                tell(Counter::Class(class, counter), value + open);
            }
        }
        for (counter, value) in device.into_iter().flat_map(DeviceCounters::iter) {
            tell(Counter::Device(counter), value);
        }
        self.samples.push(CounterSample {
            time: at,
            endpoint: Endpoint {
                node: self.node,
                port: PortId(port as u16),
            },
            up: transmitter.link.up,
            changed,
        });
    }

    /// All ports have been polled: the next time.
    pub(crate) fn advance(&mut self) {
        self.next += self.interval;
    }
}
