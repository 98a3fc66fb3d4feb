//! One counter of one port, as a key: a row of the table, with its class where it has one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use softfabric_units::Class;

use crate::table::{ClassCounter, CounterDefinition, DeviceCounter, PortCounter};

/// One counter that a port may have. Those of a device stand at its port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Counter {
    /// Of the port.
    Port(PortCounter),
    /// Of a traffic class on the port.
    Class(Class, ClassCounter),
    /// Of the RDMA device behind the port.
    Device(DeviceCounter),
}

const PORT: usize = PortCounter::ALL.len();
const CLASS: usize = ClassCounter::ALL.len();
const DEVICE: usize = DeviceCounter::ALL.len();

impl Counter {
    /// How many there are.
    pub const COUNT: usize = PORT + Class::COUNT * CLASS + DEVICE;

    /// Every counter, in the order of the table; those of classes class by class.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).filter_map(Self::at)
    }

    /// Its place in that order.
    pub fn index(self) -> usize {
        match self {
            Self::Port(counter) => counter as usize,
            Self::Class(class, counter) => PORT + class.index() * CLASS + counter as usize,
            Self::Device(counter) => PORT + Class::COUNT * CLASS + counter as usize,
        }
    }

    /// The counter at a place of that order.
    pub fn at(index: usize) -> Option<Self> {
        if let Some(&counter) = PortCounter::ALL.get(index) {
            return Some(Self::Port(counter));
        }
        let index = index - PORT;
        if index < Class::COUNT * CLASS {
            let class = Class::checked((index / CLASS) as u8)?;
            return Some(Self::Class(class, ClassCounter::ALL[index % CLASS]));
        }
        let counter = DeviceCounter::ALL.get(index - Class::COUNT * CLASS)?;
        Some(Self::Device(*counter))
    }

    /// Its row of the table.
    pub fn definition(self) -> &'static CounterDefinition {
        match self {
            Self::Port(counter) => counter.definition(),
            Self::Class(_, counter) => counter.definition(),
            Self::Device(counter) => counter.definition(),
        }
    }

    /// The name that people know: Linux's, or that of the table where Linux has none.
    pub fn name(self) -> String {
        let row = self.definition();
        let name = if row.linux.is_empty() {
            row.id
        } else {
            row.linux
        };
        match self {
            Self::Class(class, _) if name.contains("{n}") => {
                name.replace("{n}", &class.as_u8().to_string())
            }
            Self::Class(class, _) => match name.split_once("prio_") {
                Some((before, after)) => format!("{before}prio{}_{after}", class.as_u8()),
                None => format!("prio{}_{name}", class.as_u8()),
            },
            Self::Port(_) | Self::Device(_) => name.to_owned(),
        }
    }

    /// The counter of this name, as `name` makes it.
    pub fn named(name: &str) -> Option<Self> {
        static NAMES: OnceLock<BTreeMap<String, Counter>> = OnceLock::new();
        let names = NAMES.get_or_init(|| {
            Self::all()
                .map(|counter| (counter.name(), counter))
                .collect()
        });
        names.get(name).copied()
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_names_lead_back_to_the_counter() {
        for (index, counter) in Counter::all().enumerate() {
            assert_eq!(counter.index(), index);
            assert_eq!(Counter::named(&counter.name()), Some(counter), "{counter}");
        }
        assert_eq!(Counter::all().count(), Counter::COUNT);
        assert_eq!(Counter::at(Counter::COUNT), None);
    }

    #[test]
    fn names_are_those_that_people_know() {
        let three = Class::new(3);
        for (counter, name) in [
            (
                Counter::Class(three, ClassCounter::PauseReceivedDuration),
                "rx_prio3_pause_duration",
            ),
            (
                Counter::Class(three, ClassCounter::ResumeSent),
                "tx_prio3_resume",
            ),
            (
                Counter::Class(three, ClassCounter::QueueWatermark),
                "prio3_queue_watermark",
            ),
            (Counter::Port(PortCounter::TransmitWait), "port_xmit_wait"),
            (Counter::Device(DeviceCounter::CnpSent), "np_cnp_sent"),
        ] {
            assert_eq!(counter.name(), name);
        }
        assert_eq!(Counter::named("rx_prio9_pause"), None);
    }
}
