//! The software devices of this user: what the programs that have them open count, as samples of ports.

use std::io;

use softfabric_adapter::{Report, Settings, devices, report};
use softfabric_operations::PortSample;
use softfabric_telemetry::{Counter, DeviceCounter, PortCounter};

use super::Polled;
use crate::commands::total;

/// What every device counts, so that nothing told is zero; of the other counters of ports, zero means that there is none.
const ALWAYS: [PortCounter; 4] = [
    PortCounter::TransmitPackets,
    PortCounter::TransmitBytes,
    PortCounter::ReceivePackets,
    PortCounter::ReceiveBytes,
];

/// The devices by the names of their interfaces. One of which a program does not answer is left out: what is missing would
/// look as if its counters had been reset.
pub(super) fn poll() -> io::Result<Polled> {
    let report = report()?;
    let devices = devices(&Settings::default()).map_err(io::Error::other)?;
    let polled = devices.into_iter().filter_map(|device| {
        let sample = sample(&device.name, &report)?;
        Some((device.netdev, sample))
    });
    Ok(polled.collect())
}

fn sample(device: &str, report: &Report) -> Option<PortSample> {
    let mut programs = report
        .running
        .iter()
        .filter(|program| program.device == device);
    if programs.any(|program| program.counters.is_none()) {
        return None;
    }
    let total = total(device, report);
    let of_port = PortCounter::ALL.iter().map(|&counter| {
        let value = total.get(counter.definition().id).copied();
        let zero = ALWAYS.contains(&counter).then_some(0);
        (Counter::Port(counter), value.or(zero))
    });
    let of_device = DeviceCounter::ALL.iter().map(|&counter| {
        let value = total.get(counter.definition().id).copied().unwrap_or(0);
        (Counter::Device(counter), Some(value))
    });
    let values = of_port.chain(of_device);
    Some(PortSample {
        up: Some(true),
        values: values
            .filter_map(|(counter, value)| Some((counter, value?)))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use softfabric_adapter::Neighbour;

    use super::*;

    fn program(counters: Option<&[(&str, u64)]>) -> Neighbour {
        let map = |counters: &[(&str, u64)]| -> BTreeMap<String, u64> {
            let counters = counters.iter();
            counters
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect()
        };
        Neighbour {
            slot: 1,
            device: "softfabric0".to_owned(),
            program: "perf".to_owned(),
            process: 7,
            counters: counters.map(map),
        }
    }

    #[test]
    fn programs_of_a_device_are_one_port_and_silent_ones_are_not_guessed() {
        let id = PortCounter::TransmitBytes.definition().id;
        let mut report = Report {
            running: vec![program(Some(&[(id, 40)])), program(Some(&[(id, 2)]))],
            ended: BTreeMap::new(),
        };
        let told = sample("softfabric0", &report).unwrap();
        let value = |counter| {
            let mut values = told.values.iter();
            values
                .find(|(known, _)| *known == counter)
                .map(|(_, value)| *value)
        };
        assert_eq!(value(Counter::Port(PortCounter::TransmitBytes)), Some(42));
        assert_eq!(value(Counter::Port(PortCounter::ReceiveBytes)), Some(0));
        assert_eq!(
            value(Counter::Device(DeviceCounter::OutOfSequence)),
            Some(0)
        );
        assert_eq!(value(Counter::Port(PortCounter::TransmitWait)), None);
        report.running.push(program(None));
        assert_eq!(sample("softfabric0", &report), None);
    }
}
