//! `softfabric device`: the RDMA devices that programs see under `softfabric exec`.

use std::process::ExitCode;

use serde::Serialize;
use softfabric_adapter::{DeviceInfo, Settings, devices};

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
    let devices = devices(&Settings::default()).map_err(refusal)?;
    let text = if arguments.json {
        let entries: Vec<Entry> = devices.iter().map(entry).collect();
        let json = serde_json::to_string_pretty(&entries).expect("names and numbers");
        format!("{json}\n")
    } else {
        table(&devices).render(Stream::Output.width())
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn entry(device: &DeviceInfo) -> Entry {
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
    }
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
