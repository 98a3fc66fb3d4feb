//! The agent of performance management (class 4): counters of ports, read and cleared (IBTA vol. 1, 16.1).

use softfabric_wire::mad::performance::{
    ALL_PORTS, ClassPortInfo, PERFORMANCE_DATA_LENGTH, PerformanceMad, PortCounters,
    PortCountersExtended,
};
use softfabric_wire::mad::{Attribute, ClassCapabilities, Method, status};

use super::node::Agent;

/// Counters that can be written by a selection, and added up.
trait Counters: Attribute + Copy + Default {
    /// Takes over the values that `new` selects.
    fn select(&mut self, new: &Self);
    /// Adds, and stops at the highest values.
    fn add(&mut self, other: &Self);
    fn port(&self) -> u8;
    fn with_port(self, port: u8) -> Self;
}

macro_rules! counters {
    ($name:ty { $( $selection:ident [$bit:literal] $field:ident up to $most:expr, )* }) => {
        impl Counters for $name {
            fn select(&mut self, new: &Self) {
                $( if new.$selection >> $bit & 1 != 0 { self.$field = new.$field; } )*
            }
            fn add(&mut self, other: &Self) {
                $( self.$field = self.$field.saturating_add(other.$field).min($most); )*
            }
            fn port(&self) -> u8 {
                self.port
            }
            fn with_port(self, port: u8) -> Self {
                Self { port, ..self }
            }
        }
    };
}

counters!(PortCounters {
    selection[0] symbol_errors up to u16::MAX,
    selection[1] link_recoveries up to u8::MAX,
    selection[2] link_downed up to u8::MAX,
    selection[3] receive_errors up to u16::MAX,
    selection[4] receive_remote_errors up to u16::MAX,
    selection[5] switch_relay_errors up to u16::MAX,
    selection[6] transmit_discards up to u16::MAX,
    selection[7] transmit_constraint_errors up to u8::MAX,
    selection[8] receive_constraint_errors up to u8::MAX,
    selection[9] local_integrity_errors up to 15,
    selection[10] buffer_overruns up to 15,
    selection[11] vl15_dropped up to u16::MAX,
    selection[12] transmit_data up to u32::MAX,
    selection[13] receive_data up to u32::MAX,
    selection[14] transmit_packets up to u32::MAX,
    selection[15] receive_packets up to u32::MAX,
    selection_2[0] transmit_wait up to u32::MAX,
    selection_2[1] qp1_dropped up to u16::MAX,
});

counters!(PortCountersExtended {
    selection[0] transmit_data up to u64::MAX,
    selection[1] receive_data up to u64::MAX,
    selection[2] transmit_packets up to u64::MAX,
    selection[3] receive_packets up to u64::MAX,
    selection[4] unicast_transmit_packets up to u64::MAX,
    selection[5] unicast_receive_packets up to u64::MAX,
    selection[6] multicast_transmit_packets up to u64::MAX,
    selection[7] multicast_receive_packets up to u64::MAX,
    selection_2[0] symbol_errors up to u64::MAX,
    selection_2[1] link_recoveries up to u64::MAX,
    selection_2[2] link_downed up to u64::MAX,
    selection_2[3] receive_errors up to u64::MAX,
    selection_2[4] receive_remote_errors up to u64::MAX,
    selection_2[5] switch_relay_errors up to u64::MAX,
    selection_2[6] transmit_discards up to u64::MAX,
    selection_2[7] transmit_constraint_errors up to u64::MAX,
    selection_2[8] receive_constraint_errors up to u64::MAX,
    selection_2[9] local_integrity_errors up to u64::MAX,
    selection_2[10] buffer_overruns up to u64::MAX,
    selection_2[11] vl15_dropped up to u64::MAX,
    selection_2[12] transmit_wait up to u64::MAX,
    selection_2[13] qp1_dropped up to u64::MAX,
});

/// The answer to a request that came in by port `arrived` (of a switch: any).
pub(super) fn answer(
    agent: &mut Agent,
    mad: &PerformanceMad,
    is_switch: bool,
    arrived: u8,
) -> PerformanceMad {
    let set = mad.method == Method::SET;
    let only = (!is_switch).then_some(arrived);
    let (status, data) = match mad.attribute {
        ClassPortInfo::ID if !set => (0, class_info(is_switch).to_bytes()),
        PortCounters::ID => read(&mut agent.counters, mad, set, only),
        PortCountersExtended::ID => read(&mut agent.extended, mad, set, only),
        _ => (status::UNSUPPORTED_ATTRIBUTE, mad.data),
    };
    PerformanceMad {
        method: Method::GET_RESPONSE,
        status,
        data,
        ..*mad
    }
}

/// What the agent can do. It has the error counters of PortCountersExtended and does not say so: `libumad2sim.so` hands on
/// only 224 bytes of a datagram, and the last of these counters come after them.
fn class_info(is_switch: bool) -> ClassPortInfo {
    let capabilities = ClassCapabilities::EXTENDED_WIDTH.with(ClassCapabilities::TRANSMIT_WAIT);
    ClassPortInfo {
        base_version: 1,
        class_version: 1,
        capabilities: if is_switch {
            capabilities.with(ClassCapabilities::ALL_PORT_SELECT)
        } else {
            capabilities
        },
        response_time: 18,
        ..ClassPortInfo::default()
    }
}

/// Reads the counters of the port that the request names, or the sum of all; a Set writes first. `only` is the one port
/// that an adapter's agent answers for.
fn read<C: Counters>(
    ports: &mut [C],
    mad: &PerformanceMad,
    set: bool,
    only: Option<u8>,
) -> (u16, [u8; PERFORMANCE_DATA_LENGTH]) {
    let refused = (status::INVALID_FIELD, mad.data);
    let Some(request) = mad.data_as::<C>() else {
        return refused;
    };
    let port = request.port();
    let named = match (port, only) {
        (ALL_PORTS, None) => &mut ports[..],
        (port, Some(only)) if port != only => return refused,
        (port, _) => match ports.get_mut(usize::from(port)) {
            Some(named) => std::slice::from_mut(named),
            None => return refused,
        },
    };
    let mut sum = C::default();
    for counters in named {
        if set {
            counters.select(&request);
        }
        sum.add(counters);
    }
    (0, sum.with_port(port).to_bytes())
}

impl Agent {
    /// Counts a packet of `words` 4-byte words that left by `port`.
    pub(super) fn count_sent(&mut self, port: u8, words: u32) {
        let port = usize::from(port);
        let (Some(basic), Some(extended)) =
            (self.counters.get_mut(port), self.extended.get_mut(port))
        else {
            return;
        };
        basic.transmit_data = basic.transmit_data.saturating_add(words);
        basic.transmit_packets = basic.transmit_packets.saturating_add(1);
        extended.transmit_data = extended.transmit_data.wrapping_add(u64::from(words));
        extended.transmit_packets = extended.transmit_packets.wrapping_add(1);
        extended.unicast_transmit_packets = extended.unicast_transmit_packets.wrapping_add(1);
    }

    /// Counts a packet of `words` 4-byte words that came in by `port`.
    pub(super) fn count_received(&mut self, port: u8, words: u32) {
        let port = usize::from(port);
        let (Some(basic), Some(extended)) =
            (self.counters.get_mut(port), self.extended.get_mut(port))
        else {
            return;
        };
        basic.receive_data = basic.receive_data.saturating_add(words);
        basic.receive_packets = basic.receive_packets.saturating_add(1);
        extended.receive_data = extended.receive_data.wrapping_add(u64::from(words));
        extended.receive_packets = extended.receive_packets.wrapping_add(1);
        extended.unicast_receive_packets = extended.unicast_receive_packets.wrapping_add(1);
    }

    /// Counts a link that went down.
    pub(super) fn count_down(&mut self, port: u8) {
        let port = usize::from(port);
        if let (Some(basic), Some(extended)) =
            (self.counters.get_mut(port), self.extended.get_mut(port))
        {
            basic.link_downed = basic.link_downed.saturating_add(1);
            extended.link_downed = extended.link_downed.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::fat_tree;
    use crate::subnet::NodeId;

    fn ask<C: Counters>(agent: &mut Agent, method: Method, request: &C) -> PerformanceMad {
        let mad = PerformanceMad {
            method,
            status: 0,
            transaction: 1,
            attribute: C::ID,
            modifier: 0,
            data: request.to_bytes(),
        };
        answer(agent, &mad, true, 1)
    }

    #[test]
    fn a_set_clears_what_it_selects_and_all_ports_are_their_sum() {
        let subnet = fat_tree(4, 2).unwrap();
        let mut agent = Agent::new(&subnet, NodeId(0));
        for port in 1..=4 {
            agent.count_sent(port, 72);
            agent.count_received(port, 72);
        }
        let all = PortCounters {
            port: ALL_PORTS,
            ..PortCounters::default()
        };
        let sum = |agent: &mut Agent| {
            ask(agent, Method::GET, &all)
                .data_as::<PortCounters>()
                .unwrap()
        };
        assert_eq!(sum(&mut agent).transmit_data, 4 * 72);
        let clear = PortCounters {
            port: 2,
            selection: 1 << 12,
            ..PortCounters::default()
        };
        assert_eq!(ask(&mut agent, Method::SET, &clear).status, 0);
        let now = sum(&mut agent);
        assert_eq!((now.transmit_data, now.transmit_packets), (3 * 72, 4));
        let beyond = PortCountersExtended {
            port: 5,
            ..PortCountersExtended::default()
        };
        let refused = ask(&mut agent, Method::GET, &beyond);
        assert_eq!(refused.status, status::INVALID_FIELD);
        assert_eq!(agent.extended[2].transmit_data, 72, "not the 32-bit ones");
    }

    #[test]
    fn small_counters_stop() {
        let mut counters = PortCounters {
            local_integrity_errors: 9,
            ..PortCounters::default()
        };
        let other = counters;
        Counters::add(&mut counters, &other);
        assert_eq!(counters.local_integrity_errors, 15);
    }
}
