//! Ports of switches that guard partitions: what a host may not send or get is dropped there (IBTA vol. 1, 10.9 and
//! 18.2.4).

use softfabric_telemetry::PortCounter;
use softfabric_units::PartitionKey;

use super::LaneSwitch;
use crate::engine::frame::Frame;
use crate::plan::Partitions;

/// The guards of a switch.
#[derive(Debug)]
pub(super) struct Guards {
    inbound: bool,
    outbound: bool,
    /// By port: the keys of the host there; `None` where there is none.
    ports: Box<[Option<Box<[PartitionKey]>>]>,
}

impl LaneSwitch {
    /// Guards the ports that lead to hosts; `keys` has those of each node.
    pub(crate) fn guard(
        &mut self,
        partitions: &Partitions,
        keys: &[Vec<PartitionKey>],
        at_host: &[bool],
    ) {
        if !(partitions.inbound || partitions.outbound) {
            return;
        }
        let ports = self.ports.iter().zip(at_host);
        let ports = ports.map(|(port, at_host)| {
            let host = port.transmitter.link.receiver as usize;
            at_host.then(|| keys[host].clone().into())
        });
        self.guards = Some(Box::new(Guards {
            inbound: partitions.inbound,
            outbound: partitions.outbound,
            ports: ports.collect(),
        }));
    }

    /// Whether a packet may come in by `port`; one that may not is counted.
    pub(super) fn lets_in(&mut self, port: usize, frame: &Frame) -> bool {
        let Some(guards) = self.guards.as_ref().filter(|guards| guards.inbound) else {
            return true;
        };
        let Some(keys) = &guards.ports[port] else {
            return true;
        };
        // A host sends by its own keys: a limited member says that it is one.
        let lets_in = keys.contains(&frame.partition());
        if !lets_in {
            let counters = &mut self.ports[port].transmitter.port;
            counters.count(PortCounter::ReceiveConstraintErrors);
        }
        lets_in
    }

    /// Whether a packet may leave by `port`; one that may not is counted.
    pub(super) fn lets_out(&mut self, port: usize, frame: &Frame) -> bool {
        let Some(guards) = self.guards.as_ref().filter(|guards| guards.outbound) else {
            return true;
        };
        let Some(keys) = &guards.ports[port] else {
            return true;
        };
        let lets_out = keys.iter().any(|key| key.matches(frame.partition()));
        if !lets_out {
            let counters = &mut self.ports[port].transmitter.port;
            counters.count(PortCounter::TransmitConstraintErrors);
        }
        lets_out
    }
}
