//! Linux: `/sys/class/infiniband` and the text of `ethtool -S`.
//!
//! ```text
//! sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data      4-byte words
//!                                     hw_counters/np_cnp_sent
//!                                     state, rate, link_layer       "4: ACTIVE", "100 Gb/sec (2X HDR)", "Ethernet"
//! ethtool/eth0.txt                                                  what `ethtool -S eth0` printed
//! ```
//!
//! Everything is read below a root, so a copy of these files from another host is read like the host itself. Values are
//! brought to the units of the one table. A file that cannot be read or is no number is named and left out.

use std::fs;
use std::io;
use std::path::Path;

use softfabric_telemetry::{Counter, PortCounter};
use softfabric_units::{Bytes, Rate};

use crate::history::{PortSample, Width};
use crate::recording::{Skipped, from_micros};
use crate::topology::LinkLayer;

/// One port of a host as the kernel shows it.
#[derive(Clone, PartialEq, Debug)]
pub struct LinuxPort {
    /// Device and port: `mlx5_0`, or `mlx5_0/2` where a device has several.
    pub name: String,
    /// Network interfaces of the device.
    pub interfaces: Vec<String>,
    /// What holds senders back.
    pub link_layer: LinkLayer,
    /// The rate, if the port has one now.
    pub rate: Option<Rate>,
    /// What it counts.
    pub sample: PortSample,
}

/// How much of the line `port_xmit_wait` counts with one tick: 8 bytes on NVIDIA's switches and adapters since HDR (NVIDIA,
/// ibdiagnet user manual 2.13, Congestion Assessment). Older ones count 32 bytes of each lane.
pub const WAIT_TICK: Bytes = Bytes::new(8);

/// Reads all RDMA ports below a root: `/` for this host. Ticks of `port_xmit_wait` become time by the port's rate; where
/// `known_rate` says one by the port's name, by that: a total must not jump because a link came up at another rate.
///
/// # Errors
/// If there is no `sys/class/infiniband` there.
pub fn ports(
    root: &Path,
    known_rate: &dyn Fn(&str) -> Option<Rate>,
    skipped: &mut Skipped,
) -> io::Result<Vec<LinuxPort>> {
    let devices = root.join("sys/class/infiniband");
    let mut ports = Vec::new();
    for device in names(&devices)? {
        let folder = devices.join(&device);
        let numbers = names(&folder.join("ports")).unwrap_or_default();
        let interfaces = names(&folder.join("device/net")).unwrap_or_default();
        for number in &numbers {
            let name = match numbers.len() {
                1 => device.clone(),
                _ => format!("{device}/{number}"),
            };
            let folder = folder.join("ports").join(number);
            let text = |file: &str| fs::read_to_string(folder.join(file)).ok();
            let rate = text("rate").and_then(|text| rate(&text));
            let tick_rate = known_rate(&name).or(rate);
            let mut sample = PortSample {
                up: text("state").map(|state| state.trim_end().ends_with("ACTIVE")),
                values: Vec::new(),
            };
            for group in ["counters", "hw_counters"] {
                for file in names(&folder.join(group)).unwrap_or_default() {
                    let Some(counter) = Counter::named(&file) else {
                        continue;
                    };
                    let path = folder.join(group).join(&file);
                    match fs::read_to_string(&path).map(|text| text.trim().parse::<u64>()) {
                        Ok(Ok(value)) => {
                            let value = table_unit(counter, value, tick_rate);
                            sample.values.extend(value.map(|value| (counter, value)));
                        }
                        Ok(Err(_)) => skipped.line(format!("{}: no number", path.display())),
                        Err(error) => skipped.line(format!("{}: {error}", path.display())),
                    }
                }
            }
            let link_layer = match text("link_layer") {
                Some(layer) if layer.trim() == "Ethernet" => LinkLayer::Ethernet,
                _ => LinkLayer::Infiniband,
            };
            ports.push(LinuxPort {
                name,
                interfaces: interfaces.clone(),
                link_layer,
                rate,
                sample,
            });
        }
    }
    Ok(ports)
}

/// How the counters of a port end: those of InfiniBand's classic set are narrow and stay at their largest value (IBTA
/// vol. 1, 16.1.3.5), and PortXmitWait, for which the extended set has no other, in both link layers. `rate` is that by which
/// ticks became time.
pub fn widths(link_layer: LinkLayer, rate: Option<Rate>) -> Vec<(Counter, Width)> {
    const CLASSIC: &[(PortCounter, u64)] = &[
        (PortCounter::LinkDowned, 0xff),
        (PortCounter::ReceiveErrors, 0xffff),
        (PortCounter::TransmitDiscards, 0xffff),
        (PortCounter::TransmitConstraintErrors, 0xff),
        (PortCounter::ReceiveConstraintErrors, 0xff),
    ];
    const WAIT: (PortCounter, u64) = (PortCounter::TransmitWait, u32::MAX as u64);
    let classic = match link_layer {
        LinkLayer::Infiniband => CLASSIC,
        LinkLayer::Ethernet => &[],
    };
    let all = classic.iter().chain([&WAIT]);
    all.filter_map(|&(counter, most)| {
        let counter = Counter::Port(counter);
        Some((counter, Width::StaysAt(table_unit(counter, most, rate)?)))
    })
    .collect()
}

/// The names in a folder, in order.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// `100 Gb/sec (2X HDR)`.
fn rate(text: &str) -> Option<Rate> {
    let number: f64 = text.split_whitespace().next()?.parse().ok()?;
    (number > 0.0).then(|| Rate::mbps((number * 1e3).round() as u64))
}

/// The value in the table's unit; `None` if that takes a rate and there is none.
fn table_unit(counter: Counter, value: u64, rate: Option<Rate>) -> Option<u64> {
    /// What the kernel calls a word.
    const WORD: u64 = 4;
    match counter {
        Counter::Port(PortCounter::TransmitBytes | PortCounter::ReceiveBytes) => {
            Some(value.saturating_mul(WORD))
        }
        Counter::Port(PortCounter::TransmitWait) => {
            let tick = rate?.time_for(WAIT_TICK).as_picos();
            Some(value.saturating_mul(tick))
        }
        _ => Some(value),
    }
}

/// Reads what `ethtool -S` printed. Lines of counters that the table does not have are left out silently, as drivers have
/// hundreds; lines that are none are named.
pub fn ethtool(text: &str, skipped: &mut Skipped) -> Vec<(Counter, u64)> {
    let mut values: Vec<(Counter, u64)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line == "NIC statistics:" {
            continue;
        }
        let parsed = line.rsplit_once(':').and_then(|(name, value)| {
            let value: u64 = value.trim().parse().ok()?;
            Some((name.trim(), value))
        });
        let Some((name, value)) = parsed else {
            skipped.line(format!("line {}: `{line}` is no NAME: NUMBER", number + 1));
            continue;
        };
        let counter = named(name);
        let known = |counter: &Counter| values.iter().any(|(known, _)| known == counter);
        if let Some(counter) = counter.filter(|counter| !known(counter)) {
            // Microseconds (kernel documentation, mlx5 counters).
            values.push((counter, from_micros(counter, value)));
        }
    }
    values
}

/// The counter behind a name of `ethtool -S`, of mlx5 first.
pub(super) fn named(name: &str) -> Option<Counter> {
    let port = |counter| Some(Counter::Port(counter));
    match name {
        "tx_bytes_phy" => port(PortCounter::TransmitBytes),
        "rx_bytes_phy" => port(PortCounter::ReceiveBytes),
        "tx_packets_phy" => port(PortCounter::TransmitPackets),
        "rx_packets_phy" => port(PortCounter::ReceivePackets),
        "rx_crc_errors_phy" => port(PortCounter::ReceiveErrors),
        "tx_discards_phy" => port(PortCounter::TransmitDiscards),
        "link_down_events_phy" => port(PortCounter::LinkDowned),
        // The same words mean 4-byte units under /sys.
        "port_xmit_data" | "port_rcv_data" | "port_xmit_wait" => None,
        _ => Counter::named(name),
    }
}

/// Adds what `ethtool` counted to a port's sample. Where both tell a counter, `ethtool`'s physical one wins: the kernel's
/// RoCE counters under `/sys` leave out what is not RDMA.
pub fn combine(sample: &mut PortSample, ethtool: Vec<(Counter, u64)>) {
    sample
        .values
        .retain(|(counter, _)| !ethtool.iter().any(|(other, _)| other == counter));
    sample.values.extend(ethtool);
}

#[cfg(test)]
mod tests {
    use softfabric_telemetry::DeviceCounter;
    use softfabric_units::Span;

    use super::*;

    const ETHTOOL: &str = "\
NIC statistics:
     rx_packets: 12
     tx_bytes_phy: 5000
     rx_bytes_phy: 6000
     rx_crc_errors_phy: 3
     rx_prio3_pause: 40
     rx_prio3_pause_duration: 1250
     rx_prio3_pause_transition: 20
     tx_prio3_pause: 8
     rx_prio3_buf_discard: 2
     rx_prio3_discards: 9
     link_down_events_phy: 1
     module_unplug: what
";

    fn value(values: &[(Counter, u64)], name: &str) -> Option<u64> {
        let counter = Counter::named(name).unwrap();
        let found = values.iter().find(|(known, _)| *known == counter);
        found.map(|(_, value)| *value)
    }

    #[test]
    fn ethtool_is_read_in_the_units_of_the_table() {
        let mut skipped = Skipped::default();
        let values = ethtool(ETHTOOL, &mut skipped);
        let tells = |name| value(&values, name);
        assert_eq!(
            tells("rx_prio3_pause_duration"),
            Some(Span::micros(1250).as_picos())
        );
        assert_eq!(tells("rx_prio3_pause"), Some(40));
        assert_eq!(tells("rx_prio3_buf_discard"), Some(2));
        assert_eq!(tells("port_xmit_data"), Some(5000));
        assert_eq!(tells("port_rcv_errors"), Some(3));
        assert_eq!(tells("link_downed"), Some(1));
        assert_eq!(values.len(), 9);
        assert_eq!(skipped.lines, 1);
        assert!(
            skipped.first[0].contains("module_unplug"),
            "{:?}",
            skipped.first
        );
    }

    /// A host with one HDR port, whose files are as the kernel writes them; one is broken.
    fn host(folder: &Path) {
        let port = folder.join("sys/class/infiniband/mlx5_0/ports/1");
        for (file, text) in [
            ("state", "4: ACTIVE\n"),
            ("rate", "200 Gb/sec (4X HDR)\n"),
            ("link_layer", "InfiniBand\n"),
            ("counters/port_xmit_data", "1000\n"),
            ("counters/port_xmit_wait", "500\n"),
            ("counters/link_downed", "255\n"),
            ("counters/symbol_error", "7\n"),
            ("counters/port_rcv_errors", "rubbish\n"),
            ("hw_counters/out_of_buffer", "4\n"),
        ] {
            let path = port.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let device = folder.join("sys/class/infiniband/mlx5_0/device/net/ib0");
        fs::create_dir_all(device).unwrap();
    }

    #[test]
    fn a_tree_of_files_is_read_like_a_host() {
        let folder = tempfile::tempdir().unwrap();
        host(folder.path());
        let mut skipped = Skipped::default();
        let found = ports(folder.path(), &|_| None, &mut skipped).unwrap();
        let [port] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(port.name, "mlx5_0");
        assert_eq!(port.interfaces, ["ib0"]);
        assert_eq!(port.link_layer, LinkLayer::Infiniband);
        assert_eq!(port.rate, Some(Rate::gbps(200)));
        assert_eq!(port.sample.up, Some(true));
        let tells = |name| value(&port.sample.values, name);
        assert_eq!(tells("port_xmit_data"), Some(4000));
        // 8 bytes at 200 Gb/s are 320 ps.
        assert_eq!(tells("port_xmit_wait"), Some(500 * 320));
        assert_eq!(tells("out_of_buffer"), Some(4));
        assert_eq!(tells("port_rcv_errors"), None);
        assert_eq!(skipped.lines, 1);
        assert!(
            skipped.first[0].contains("port_rcv_errors"),
            "{:?}",
            skipped.first
        );
        let before = |port: &str| (port == "mlx5_0").then_some(Rate::gbps(100));
        let again = ports(folder.path(), &before, &mut skipped).unwrap();
        let waited = value(&again[0].sample.values, "port_xmit_wait");
        assert_eq!(waited, Some(500 * 640), "by the rate that it began with");
        assert!(ports(&folder.path().join("nowhere"), &|_| None, &mut skipped).is_err());
    }

    #[test]
    fn the_physical_counter_wins_and_narrow_ones_stay_at_their_end() {
        let bytes = Counter::Port(PortCounter::TransmitBytes);
        let cnps = Counter::Device(DeviceCounter::CnpSent);
        let mut sample = PortSample {
            up: Some(true),
            values: vec![(bytes, 10), (cnps, 1)],
        };
        combine(&mut sample, vec![(bytes, 99)]);
        assert_eq!(sample.values, [(cnps, 1), (bytes, 99)]);
        let narrow = widths(LinkLayer::Infiniband, Some(Rate::gbps(200)));
        let stays =
            |counter, most| narrow.contains(&(Counter::Port(counter), Width::StaysAt(most)));
        assert!(stays(PortCounter::LinkDowned, 255));
        assert!(stays(PortCounter::TransmitConstraintErrors, 255));
        assert!(stays(PortCounter::ReceiveConstraintErrors, 255));
        let wait = u64::from(u32::MAX) * 320;
        assert!(stays(PortCounter::TransmitWait, wait));
        let ethernet = widths(LinkLayer::Ethernet, Some(Rate::gbps(200)));
        assert_eq!(
            ethernet,
            [(
                Counter::Port(PortCounter::TransmitWait),
                Width::StaysAt(wait)
            )]
        );
        assert!(widths(LinkLayer::Ethernet, None).is_empty());
    }
}
