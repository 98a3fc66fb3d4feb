//! A SONiC switch: the hashes of its databases in Redis.
//!
//! ```text
//! COUNTERS_DB (2)  COUNTERS_PORT_NAME_MAP    Ethernet0   → oid:0x1…
//!                  COUNTERS_QUEUE_NAME_MAP   Ethernet0:3 → oid:0x15…
//!                  COUNTERS_PG_NAME_MAP      Ethernet0:3 → oid:0x1a…
//!                  COUNTERS:oid:0x1…         SAI_PORT_STAT_PFC_3_RX_PKTS → 17
//! APPL_DB (0)      PORT_TABLE:Ethernet0      speed → 100000, oper_status → up
//! CONFIG_DB (4)    DEVICE_METADATA|localhost hostname → leaf0
//! ```
//!
//! Nothing here speaks to Redis: whoever does hands in a way to ask for a hash.

use std::collections::BTreeMap;
use std::io;

use softfabric_telemetry::Counter;
use softfabric_units::Rate;

use crate::history::PortSample;
use crate::recording::{Skipped, from_micros};

/// A hash of Redis.
pub type Hash = BTreeMap<String, String>;

/// Asks for the hash of a key in a database; what is not there is empty.
pub type Ask<'a> = &'a mut dyn FnMut(u8, &str) -> io::Result<Hash>;

const APPLICATION: u8 = 0;
const COUNTERS: u8 = 2;
const CONFIGURATION: u8 = 4;

/// One port of a switch.
#[derive(Clone, PartialEq, Debug)]
pub struct SonicPort {
    /// Its name: `Ethernet0`.
    pub name: String,
    /// Its speed, if the switch says it.
    pub rate: Option<Rate>,
    /// What it counts.
    pub sample: PortSample,
}

/// The name of the switch, if it says one.
///
/// # Errors
/// If Redis cannot be asked.
pub fn hostname(ask: Ask<'_>) -> io::Result<Option<String>> {
    Ok(ask(CONFIGURATION, "DEVICE_METADATA|localhost")?.remove("hostname"))
}

/// All Ethernet ports with what they, their queues and their priority groups count.
///
/// # Errors
/// If Redis cannot be asked.
pub fn ports(ask: Ask<'_>, skipped: &mut Skipped) -> io::Result<Vec<SonicPort>> {
    let ports = ask(COUNTERS, "COUNTERS_PORT_NAME_MAP")?;
    let queues = ask(COUNTERS, "COUNTERS_QUEUE_NAME_MAP")?;
    let groups = ask(COUNTERS, "COUNTERS_PG_NAME_MAP")?;
    let mut found = Vec::new();
    for (name, oid) in ports {
        // Those of LAGs and the processor's are no cables.
        if !name.starts_with("Ethernet") {
            continue;
        }
        let settings = ask(APPLICATION, &format!("PORT_TABLE:{name}"))?;
        let rate = settings.get("speed").and_then(|speed| speed.parse().ok());
        let mut sample = PortSample {
            up: settings.get("oper_status").map(|state| state == "up"),
            values: Vec::new(),
        };
        let own = ask(COUNTERS, &format!("COUNTERS:{oid}"))?;
        let places = [&queues, &groups].map(|map| {
            (0..8_u8)
                .map(|class| map.get(&format!("{name}:{class}")).cloned())
                .collect::<Vec<_>>()
        });
        let mut of_classes: Vec<Hash> = Vec::with_capacity(8);
        for class in 0..8 {
            // Queues and groups have names of their own, so one hash holds both.
            let mut all = Hash::new();
            for oid in places
                .iter()
                .filter_map(|of_class| of_class[class].as_ref())
            {
                all.extend(ask(COUNTERS, &format!("COUNTERS:{oid}"))?);
            }
            of_classes.push(all);
        }
        for counter in Counter::all() {
            let row = counter.definition();
            if row.sonic.is_empty() {
                continue;
            }
            let text = match counter {
                // Pauses are counted by the port, with the priority in the name.
                Counter::Class(class, _) => {
                    let of_port = row.sonic.replace("{n}", &class.as_u8().to_string());
                    own.get(&of_port)
                        .or_else(|| of_classes[class.index()].get(row.sonic))
                }
                Counter::Port(_) | Counter::Device(_) => own.get(row.sonic),
            };
            match text.map(|text| text.parse::<u64>()) {
                Some(Ok(value)) => {
                    // SAI_PORT_STAT_PFC_n_RX_PAUSE_DURATION_US.
                    sample.values.push((counter, from_micros(counter, value)));
                }
                Some(Err(_)) => skipped.line(format!("{name}, {}: no number", row.sonic)),
                None => {}
            }
        }
        found.push(SonicPort {
            name,
            rate: rate.map(Rate::mbps),
            sample,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a switch with one port has.
    fn asked(database: u8, key: &str) -> Hash {
        let pairs: &[(&str, &str)] = match (database, key) {
            (2, "COUNTERS_PORT_NAME_MAP") => &[
                ("Ethernet0", "oid:0x1"),
                ("PortChannel1", "oid:0x9"),
                ("CPU", "oid:0x8"),
            ],
            (2, "COUNTERS_QUEUE_NAME_MAP") => &[("Ethernet0:3", "oid:0x15")],
            (2, "COUNTERS_PG_NAME_MAP") => &[("Ethernet0:3", "oid:0x1a")],
            (2, "COUNTERS:oid:0x1") => &[
                ("SAI_PORT_STAT_IF_OUT_OCTETS", "5000"),
                ("SAI_PORT_STAT_PFC_3_RX_PKTS", "17"),
                ("SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US", "250"),
                ("SAI_PORT_STAT_IF_IN_ERRORS", "N/A"),
            ],
            (2, "COUNTERS:oid:0x15") => &[
                ("SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", "9"),
                ("PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", "1"),
            ],
            (2, "COUNTERS:oid:0x1a") => &[("SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS", "4")],
            (0, "PORT_TABLE:Ethernet0") => &[("speed", "100000"), ("oper_status", "up")],
            (4, "DEVICE_METADATA|localhost") => &[("hostname", "leaf0")],
            _ => &[],
        };
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn ports_queues_and_groups_of_a_switch_are_one_sample() {
        let mut skipped = Skipped::default();
        let mut ask = |database: u8, key: &str| Ok(asked(database, key));
        assert_eq!(hostname(&mut ask).unwrap().as_deref(), Some("leaf0"));
        let found = ports(&mut ask, &mut skipped).unwrap();
        let [port] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(
            (port.name.as_str(), port.rate),
            ("Ethernet0", Some(Rate::gbps(100)))
        );
        assert_eq!(port.sample.up, Some(true));
        let value = |name: &str| {
            let counter = Counter::named(name).unwrap();
            let values = port.sample.values.iter();
            values
                .clone()
                .find(|(known, _)| *known == counter)
                .map(|(_, value)| *value)
        };
        assert_eq!(value("port_xmit_data"), Some(5_000));
        assert_eq!(value("rx_prio3_pause"), Some(17));
        assert_eq!(value("rx_prio3_pause_duration"), Some(250_000_000));
        assert_eq!(value("rx_prio3_marked"), Some(9));
        assert_eq!(value("rx_prio3_buf_discard"), Some(4));
        assert_eq!(value("prio3_pfcwd_storms"), Some(1));
        assert_eq!(value("rx_prio4_pause"), None);
        assert!(
            skipped.first[0].contains("SAI_PORT_STAT_IF_IN_ERRORS"),
            "{:?}",
            skipped.first
        );
    }
}
