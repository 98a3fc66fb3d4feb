//! `softfabric device`: the RDMA devices that programs see under `softfabric exec`.

use std::process::ExitCode;

use serde::Serialize;
use softfabric_adapter::{Counters, DeviceInfo, Report, Settings, devices, report};

use crate::arguments::{DeviceArguments, DeviceCommand};
use crate::exec::refusal;
use crate::failure::Failure;
use crate::table::Table;
use crate::terminal::{self, Stream};

/// One device as JSON.
#[derive(Serialize)]
struct Entry {
    name: String,
    netdev: String,
    node_guid: String,
    mtu: u32,
    gids: Vec<GidEntry>,
    programs: Vec<Program>,
    counters: Counters,
}

/// A process that has the device open.
#[derive(Serialize)]
struct Program {
    program: String,
    process: u32,
    counters: Option<Counters>,
}

#[derive(Serialize)]
struct GidEntry {
    index: usize,
    gid: String,
    ip: String,
}

/// Lists the devices.
///
/// # Errors
/// If the interfaces cannot be read, or standard output cannot be written.
pub(crate) fn device(arguments: &DeviceArguments) -> Result<ExitCode, Failure> {
    let DeviceCommand::List(arguments) = &arguments.command;
    let devices = devices(&Settings::default()).map_err(|error| refusal(&error))?;
    // Where no device was ever opened, there is nothing to ask.
    let use_of_devices = report().unwrap_or_default();
    if arguments.json {
        let entries: Vec<Entry> = devices
            .iter()
            .map(|device| entry(device, &use_of_devices))
            .collect();
        terminal::print_json(&entries)?;
    } else {
        let width = Stream::Output.width();
        let mut text = table(&devices).render(width);
        let parts = [
            programs(&use_of_devices),
            counters(&devices, &use_of_devices),
        ];
        for table in parts.into_iter().flatten() {
            text.push('\n');
            text.push_str(&table.render(width));
        }
        terminal::print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn entry(device: &DeviceInfo, report: &Report) -> Entry {
    let running = report.running.iter();
    let programs = running
        .filter(|neighbour| neighbour.device == device.name)
        .map(|neighbour| Program {
            program: neighbour.program.clone(),
            process: neighbour.process,
            counters: neighbour.counters.clone(),
        });
    let gids = device.gids.iter().map(|entry| GidEntry {
        index: entry.index,
        gid: entry.gid.to_string(),
        ip: entry.ip.to_string(),
    });
    Entry {
        name: device.name.clone(),
        netdev: device.netdev.clone(),
        node_guid: guid(device.guid),
        mtu: device.mtu.as_u32(),
        gids: gids.collect(),
        programs: programs.collect(),
        counters: total(&device.name, report),
    }
}

/// What all processes of a device have counted, those that have ended too.
pub(crate) fn total(device: &str, report: &Report) -> Counters {
    let running = report.running.iter();
    let running = running
        .filter(|neighbour| neighbour.device == device)
        .filter_map(|neighbour| neighbour.counters.as_ref());
    let mut total = Counters::new();
    for (name, value) in running.chain(report.ended.get(device)).flatten() {
        *total.entry(name.clone()).or_default() += value;
    }
    total
}

/// Who has a device open; nothing where nobody has.
fn programs(report: &Report) -> Option<Table> {
    let mut table = Table::new()
        .words("device", 0)
        .words("program", 0)
        .figures("process", 0);
    for neighbour in &report.running {
        table.row([
            neighbour.device.clone(),
            neighbour.program.clone(),
            neighbour.process.to_string(),
        ]);
    }
    (!report.running.is_empty()).then_some(table)
}

/// What the devices have counted; nothing where that is nothing.
fn counters(devices: &[DeviceInfo], report: &Report) -> Option<Table> {
    let mut table = Table::new()
        .words("device", 0)
        .words("counter", 0)
        .figures("value", 0);
    let mut any = false;
    for device in devices {
        for (name, value) in total(&device.name, report) {
            table.row([device.name.clone(), name, value.to_string()]);
            any = true;
        }
    }
    any.then_some(table)
}

fn table(devices: &[DeviceInfo]) -> Table {
    let mut table = Table::new()
        .words("device", 0)
        .words("interface", 0)
        .figures("MTU", 2)
        .figures("index", 1)
        .words("GID", 0)
        .words("node GUID", 3);
    for device in devices {
        for entry in &device.gids {
            let first = entry.index == 0;
            let once = |text: String| if first { text } else { String::new() };
            table.row([
                once(device.name.clone()),
                once(device.netdev.clone()),
                once(device.mtu.as_u32().to_string()),
                entry.index.to_string(),
                entry.gid.to_string(),
                once(guid(device.guid)),
            ]);
        }
    }
    table
}

fn guid(guid: [u8; 8]) -> String {
    let words = guid
        .chunks(2)
        .map(|pair| format!("{:02x}{:02x}", pair[0], pair[1]));
    words.collect::<Vec<_>>().join(":")
}
