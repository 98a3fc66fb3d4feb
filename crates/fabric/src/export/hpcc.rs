//! The output files of the HPCC ns-3 code, byte for byte, so that tools made for them go on working.
//!
//! ```text
//! fct   0b000601 0b001001 10000 100 10000000 2000000000 13227817 842560
//!       source, destination (hexadecimal), ports, bytes, start, completion time, time alone (ns)
//! pfc   2000014619 12 0 1 1
//!       time (ns), node, 0 host or 1 switch, interface from 1, 1 pause or 0 resume: as received
//! ```
//!
//! A host's address is `0x0b000001 + (id / 256) · 2¹⁶ + (id mod 256) · 2⁸`, its id being the index of the node.

use std::io::{self, Write};

use crate::plan::{NodeId, NodeKind, Plan};
use crate::results::Results;

/// Writes the `fct` file: a line for each flow that is done, in the order of completion.
///
/// # Errors
/// What `out` says.
pub fn write_flows(out: &mut dyn Write, plan: &Plan, results: &Results) -> io::Result<()> {
    let mut done: Vec<usize> = (0..results.flows.len().min(plan.flows.len()))
        .filter(|&flow| results.flows[flow].completion_time().is_some())
        .collect();
    done.sort_by_key(|&flow| results.flows[flow].finished);
    for index in done {
        let (flow, result) = (&plan.flows[index], &results.flows[index]);
        let (Some(start), Some(time)) = (result.start, result.completion_time()) else {
            continue;
        };
        writeln!(
            out,
            "{:08x} {:08x} {} {} {} {} {} {}",
            address(flow.source),
            address(flow.destination),
            flow.udp_source_port,
            flow.udp_destination_port,
            flow.bytes.as_u64(),
            start.as_nanos(),
            time.as_nanos(),
            result.ideal.as_nanos(),
        )?;
    }
    Ok(())
}

/// Writes the `pfc` file: a line for each pause or resume frame, as it was received.
///
/// # Errors
/// What `out` says.
pub fn write_pauses(out: &mut dyn Write, plan: &Plan, results: &Results) -> io::Result<()> {
    for event in &results.pause_log {
        let node = event.endpoint.node;
        let is_switch = matches!(
            plan.network.nodes[node.index()].kind,
            NodeKind::Switch { .. }
        );
        writeln!(
            out,
            "{} {} {} {} {}",
            event.time.as_nanos(),
            node.0,
            u8::from(is_switch),
            u32::from(event.endpoint.port.0) + 1,
            u8::from(event.pause),
        )?;
    }
    Ok(())
}

fn address(node: NodeId) -> u32 {
    0x0b00_0001 + (node.0 / 256) * 0x1_0000 + (node.0 % 256) * 0x100
}

#[cfg(test)]
mod tests {
    use softfabric_units::{Class, Span, Time};

    use super::super::sample;
    use super::*;
    use crate::plan::{Endpoint, PortId};
    use crate::results::PauseEvent;

    #[test]
    fn addresses() {
        assert_eq!(address(NodeId(0)), 0x0b00_0001);
        assert_eq!(address(NodeId(6)), 0x0b00_0601);
        assert_eq!(address(NodeId(16)), 0x0b00_1001);
        assert_eq!(address(NodeId(300)), 0x0b01_2c01);
    }

    /// The lines are of the published run of 16 hosts that send 10 MB each to one, PFC only, 4 MiB of buffer.
    #[test]
    fn a_line_of_each_file_is_as_the_original() {
        let (mut plan, mut results) = sample::incast();
        let (flow, result) = (&mut plan.flows[0], &mut results.flows[0]);
        (flow.source, flow.destination) = (NodeId(6), NodeId(16));
        (flow.udp_source_port, flow.udp_destination_port) = (10_000, 100);
        result.start = Some(Time::from_nanos(2_000_000_000));
        result.finished = Some(Time::from_nanos(2_013_227_817));
        result.ideal = Span::nanos(842_560);
        for other in &mut results.flows[1..] {
            other.finished = None;
        }
        let mut bytes = Vec::new();
        write_flows(&mut bytes, &plan, &results).unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "0b000601 0b001001 10000 100 10000000 2000000000 13227817 842560\n"
        );

        let event = |node, port, pause| PauseEvent {
            time: Time::from_nanos(2_000_014_619),
            endpoint: Endpoint {
                node: NodeId(node),
                port: PortId(port),
            },
            class: Class::new(3),
            pause,
        };
        results.pause_log = vec![
            event(sample::HOST, 0, true),
            event(sample::SWITCH, 4, false),
        ];
        let mut bytes = Vec::new();
        write_pauses(&mut bytes, &plan, &results).unwrap();
        let (host, switch) = (sample::HOST, sample::SWITCH);
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            format!("2000014619 {host} 0 1 1\n2000014619 {switch} 1 5 0\n")
        );
    }

    #[test]
    fn flows_come_in_the_order_of_completion() {
        let (plan, mut results) = sample::incast();
        results.flows[0].finished = Some(Time::from_nanos(1 << 40));
        let mut bytes = Vec::new();
        write_flows(&mut bytes, &plan, &results).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let last = text.lines().last().unwrap();
        assert!(last.starts_with(&format!("{:08x}", address(plan.flows[0].source))));
        assert_eq!(text.lines().count(), plan.flows.len());
    }
}
