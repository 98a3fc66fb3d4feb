//! Tables for spreadsheets and data frames: one file each, with a header line, comma-separated (RFC 4180).
//!
//! | file | a line for |
//! |---|---|
//! | `flows.csv` | each flow |
//! | `ports.csv` | each port, with its counters |
//! | `classes.csv` | each class that saw something on a port, with its counters |
//! | `devices.csv` | each RDMA device, with its counters |
//! | `stacks.csv` | each host that speaks TCP, with its counters |
//! | `series.csv` | each value over time |
//! | `pauses.csv` | each pause or resume frame, if the run kept them |

use std::io::{self, Write};

use csv::Writer;
use softfabric_telemetry::{ClassCounter, DeviceCounter, PortCounter, Series, StackCounter};
use softfabric_units::Class;

use super::json::status_name;
use super::value::Nanoseconds;
use super::{Names, exported};
use crate::plan::Plan;
use crate::results::Results;

/// Writes one table.
pub type TableWriter = fn(&mut dyn Write, &Plan, &Results) -> io::Result<()>;

/// All tables with their file names.
pub const TABLES: &[(&str, TableWriter)] = &[
    ("flows.csv", write_flows),
    ("ports.csv", write_ports),
    ("classes.csv", write_classes),
    ("devices.csv", write_devices),
    ("stacks.csv", write_stacks),
    ("series.csv", write_series),
    ("pauses.csv", write_pauses),
];

fn write_flows(out: &mut dyn Write, plan: &Plan, results: &Results) -> io::Result<()> {
    let mut table = Writer::from_writer(out);
    table.write_record([
        "id",
        "group",
        "source",
        "destination",
        "bytes",
        "class",
        "status",
        "start_ns",
        "fct_ns",
        "ideal_ns",
        "slowdown",
        "delivered_bytes",
        "goodput_bps",
        "retransmissions",
        "notifications",
    ])?;
    let name = |node: crate::plan::NodeId| plan.network.nodes[node.index()].name.clone();
    for (id, (flow, result)) in plan.flows.iter().zip(&results.flows).enumerate() {
        table.write_record([
            id.to_string(),
            flow.group.clone(),
            name(flow.source),
            plan.destination_name(flow).to_owned(),
            flow.bytes.as_u64().to_string(),
            flow.class.to_string(),
            status_name(&result.status).to_owned(),
            optional(result.start.map(Nanoseconds::from)),
            optional(result.completion_time().map(Nanoseconds::from)),
            Nanoseconds::from(result.ideal).to_string(),
            optional(result.slowdown()),
            result.delivered.as_u64().to_string(),
            result.goodput(results.end).as_bps().to_string(),
            result.retransmitted.to_string(),
            result.notifications.to_string(),
        ])?;
    }
    table.flush()
}

fn write_ports(out: &mut dyn Write, plan: &Plan, results: &Results) -> io::Result<()> {
    let names = Names::new(&plan.network);
    let mut table = Writer::from_writer(out);
    let counters = PortCounter::ALL
        .iter()
        .map(|counter| counter.definition().id);
    table.write_record(["port", "peer"].into_iter().chain(counters))?;
    for port in &results.ports {
        let peer = names.peer(port.endpoint).map(|peer| names.port(peer));
        let values = port.port.iter();
        let values =
            values.map(|(counter, value)| exported(counter.definition(), value).to_string());
        let head = [names.port(port.endpoint), optional(peer)];
        table.write_record(head.into_iter().chain(values))?;
    }
    table.flush()
}

fn write_classes(out: &mut dyn Write, plan: &Plan, results: &Results) -> io::Result<()> {
    let names = Names::new(&plan.network);
    let mut table = Writer::from_writer(out);
    let counters = ClassCounter::ALL
        .iter()
        .map(|counter| counter.definition().id);
    table.write_record(["port", "class"].into_iter().chain(counters))?;
    for port in &results.ports {
        for class in Class::all() {
            let block = &port.classes[class.index()];
            if block.iter().all(|(_, value)| value == 0) {
                continue;
            }
            let values = block.iter();
            let values =
                values.map(|(counter, value)| exported(counter.definition(), value).to_string());
            let head = [names.port(port.endpoint), class.to_string()];
            table.write_record(head.into_iter().chain(values))?;
        }
    }
    table.flush()
}

fn write_devices(out: &mut dyn Write, plan: &Plan, results: &Results) -> io::Result<()> {
    let mut table = Writer::from_writer(out);
    let counters = DeviceCounter::ALL
        .iter()
        .map(|counter| counter.definition().id);
    table.write_record(["node"].into_iter().chain(counters))?;
    for device in &results.devices {
        let values = device.counters.iter();
        let values =
            values.map(|(counter, value)| exported(counter.definition(), value).to_string());
        let head = [plan.network.nodes[device.node.index()].name.clone()];
        table.write_record(head.into_iter().chain(values))?;
    }
    table.flush()
}

fn write_stacks(out: &mut dyn Write, plan: &Plan, results: &Results) -> io::Result<()> {
    let mut table = Writer::from_writer(out);
    let counters = StackCounter::ALL
        .iter()
        .map(|counter| counter.definition().id);
    table.write_record(["node", "cores"].into_iter().chain(counters))?;
    for stack in &results.stacks {
        let values = stack.counters.iter();
        let values =
            values.map(|(counter, value)| exported(counter.definition(), value).to_string());
        let name = plan.network.nodes[stack.node.index()].name.clone();
        table.write_record([name, stack.cores.to_string()].into_iter().chain(values))?;
    }
    table.flush()
}

fn write_series(out: &mut dyn Write, plan: &Plan, results: &Results) -> io::Result<()> {
    let names = Names::new(&plan.network);
    let mut table = Writer::from_writer(out);
    table.write_record(["series", "of", "time_ns", "value"])?;
    let series = &results.series;
    for port in &series.ports {
        let name = names.port(port.endpoint);
        write_samples(&mut table, "queue_bytes", &name, &port.queue)?;
        write_samples(&mut table, "mean_queue_bytes", &name, &port.mean_queue)?;
        write_samples(&mut table, "paused_share", &name, &port.paused)?;
        write_samples(&mut table, "port_rate_bps", &name, &port.rate)?;
    }
    for flow in &series.flows {
        let name = flow.flow.0.to_string();
        write_samples(&mut table, "flow_rate_bps", &name, &flow.rate)?;
        write_samples(&mut table, "flow_allowed_bps", &name, &flow.allowed)?;
    }
    for (name, series) in [
        ("ecn_marked", &series.marks),
        ("cnps", &series.notifications),
        ("paused_queues", &series.paused_queues),
        ("delivered_bps", &series.delivered),
    ] {
        if let Some(series) = series {
            write_samples(&mut table, name, "", series)?;
        }
    }
    table.flush()
}

fn write_samples<W: Write>(
    table: &mut Writer<W>,
    name: &str,
    of: &str,
    series: &Series,
) -> io::Result<()> {
    for sample in series.samples() {
        let time = Nanoseconds::from(sample.time).to_string();
        table.write_record([name, of, &time, &sample.value.to_string()])?;
    }
    Ok(())
}

fn write_pauses(out: &mut dyn Write, plan: &Plan, results: &Results) -> io::Result<()> {
    let names = Names::new(&plan.network);
    let mut table = Writer::from_writer(out);
    table.write_record(["time_ns", "port", "class", "event"])?;
    for event in &results.pause_log {
        table.write_record([
            Nanoseconds::from(event.time).to_string(),
            names.port(event.endpoint),
            event.class.to_string(),
            (if event.pause { "pause" } else { "resume" }).to_owned(),
        ])?;
    }
    table.flush()
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_table_is_rectangular_and_has_its_lines() {
        let (plan, results) = sample::incast();
        for (name, write) in TABLES {
            let mut bytes = Vec::new();
            write(&mut bytes, &plan, &results).unwrap();
            let mut reader = csv::Reader::from_reader(bytes.as_slice());
            let lines = reader
                .records()
                .collect::<Result<Vec<_>, _>>()
                .unwrap()
                .len();
            let expected = match *name {
                "flows.csv" => plan.flows.len(),
                "ports.csv" => results.ports.len(),
                "devices.csv" => results.devices.len(),
                "stacks.csv" => results.stacks.len(),
                "pauses.csv" => results.pause_log.len(),
                _ => lines.max(1),
            };
            assert_eq!(lines, expected, "{name}");
        }
    }

    #[test]
    fn names_with_commas_and_quotes_stay_one_field() {
        let (mut plan, results) = sample::incast();
        plan.flows[0].group = "a, \"b\"\nc".to_owned();
        let mut bytes = Vec::new();
        write_flows(&mut bytes, &plan, &results).unwrap();
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let first = reader.records().next().unwrap().unwrap();
        assert_eq!(&first[1], "a, \"b\"\nc");
    }
}
