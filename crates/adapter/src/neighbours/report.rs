//! Who has devices open in this network namespace, and what they have counted.
//!
//! ```text
//! asker ── letter "counters?" ──► mailbox of each member ── letter with the counters ──► asker
//! member that ends ── adds its counters to a file, by device
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use softfabric_telemetry::{DeviceCounters, PortCounters};

use super::place::Place;
use super::table::Locked;
use super::{Mailbox, Room};

/// Counters by the identifiers of the table of counters.
pub type Counters = BTreeMap<String, u64>;

/// The first byte of a letter that asks for counters.
pub(crate) const LETTER_ASK: u8 = 5;
/// How long members have to answer.
const PATIENCE: Duration = Duration::from_millis(300);

/// A process of this user that has a device open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Its slot: the upper 8 bits of its queue pair numbers.
    pub slot: u8,
    /// The device.
    pub device: String,
    /// The program's name and process number.
    pub program: String,
    /// The process's number.
    pub process: u32,
    /// What it has counted; `None` where it does not answer, as a stopped process.
    pub counters: Option<Counters>,
}

/// What is known about this user's devices in this network namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The processes that have one open.
    pub running: Vec<Neighbour>,
    /// What processes that have ended had counted, by device.
    pub ended: BTreeMap<String, Counters>,
}

/// Asks all processes of this user in this network namespace that have a device open.
///
/// # Errors
/// If the folder by which they find each other cannot be used.
pub fn report() -> io::Result<Report> {
    let place = Place::find()?;
    let mut locked = Locked::open(&place)?;
    locked.bury();
    let members = locked.table.members.clone();
    drop(locked);
    let mailbox = Mailbox::to_ask()?;
    let mut answers = BTreeMap::new();
    let mut expected = 0;
    for slot in members.keys() {
        expected += usize::from(mailbox.send(*slot, &[&[LETTER_ASK]], &[]).is_ok());
    }
    let mut room = Room::default();
    let mut descriptors = [PollFd::new(&mailbox, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: PATIENCE.as_nanos() as _,
    };
    while answers.len() < expected && poll(&mut descriptors, Some(&patience))? > 0 {
        mailbox.receive(&mut room, |letter| {
            if let (Some(slot), Ok(counters)) = (
                letter.slot,
                serde_json::from_slice::<Counters>(letter.bytes),
            ) {
                answers.insert(slot, counters);
            }
        });
    }
    let running = members.into_iter().map(|(slot, member)| Neighbour {
        slot,
        device: member.device,
        program: member.program,
        process: member.process,
        counters: answers.remove(&slot),
    });
    Ok(Report {
        running: running.collect(),
        ended: Ended::open(&place)?.counters,
    })
}

/// Counters by name, those that are zero left out.
pub(crate) fn counters((device, port): &(DeviceCounters, PortCounters)) -> Counters {
    let device = device
        .iter()
        .map(|(row, value)| (row.definition().id, value));
    let port = port.iter().map(|(row, value)| (row.definition().id, value));
    device
        .chain(port)
        .filter(|(_, value)| *value > 0)
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The file of what processes had counted that have ended, locked.
pub(super) struct Ended {
    file: File,
    counters: BTreeMap<String, Counters>,
}

impl Ended {
    pub(super) fn open(place: &Place) -> io::Result<Self> {
        let mut file = place.open_file("counters")?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let counters = serde_json::from_slice(&text).unwrap_or_default();
        Ok(Self { file, counters })
    }

    /// Adds what a device has counted.
    pub(super) fn add(mut self, device: &str, counters: &Counters) -> io::Result<()> {
        if counters.is_empty() {
            return Ok(());
        }
        let sum = self.counters.entry(device.to_owned()).or_default();
        for (name, value) in counters {
            let known = sum.entry(name.clone()).or_default();
            *known = known.saturating_add(*value);
        }
        let text = serde_json::to_vec(&self.counters)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&text)?;
        self.file.set_len(text.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_processes_had_counted_adds_up() {
        let base = tempfile::tempdir().unwrap();
        let place = Place::below(base.path()).unwrap();
        let counted = |packets| Counters::from([("port_xmit_packets".to_owned(), packets)]);
        for packets in [3, 4] {
            let ended = Ended::open(&place).unwrap();
            ended.add("softfabric0", &counted(packets)).unwrap();
        }
        Ended::open(&place)
            .unwrap()
            .add("softfabric1", &counted(1))
            .unwrap();
        let found = Ended::open(&place).unwrap().counters;
        assert_eq!(found["softfabric0"], counted(7));
        assert_eq!(found["softfabric1"], counted(1));
    }
}
