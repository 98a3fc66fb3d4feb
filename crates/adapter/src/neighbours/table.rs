//! The table of processes that share the port, kept in a file.
//!
//! ```text
//! member per slot { device, program, … }     whoever changes it holds the file's lock
//! order of the sockets in the kernel's group, for IPv4 and IPv6
//! ```
//!
//! A member is alive while it holds the lock on the byte of its slot, which the kernel lets go when the process ends,
//! however it ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use serde::{Deserialize, Serialize};

use super::lock;
use super::place::Place;
use crate::port::udp::Family;

/// Slots are the upper 8 bits of queue pair numbers. 0 is management, 255 has multicast.
pub(crate) const SLOTS: std::ops::RangeInclusive<u8> = 1..=254;

/// What all members know.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Table {
    /// The slot that is given next, if it is free: a number is used again late.
    pub(crate) next: u8,
    /// Known to members only, so that nobody else can send probes.
    pub(crate) cookie: u64,
    /// Counts the censuses.
    pub(crate) census: u64,
    pub(crate) members: BTreeMap<u8, Member>,
    /// Whose socket is at which place of the group; 0: not known.
    pub(crate) v4: Vec<u8>,
    pub(crate) v6: Vec<u8>,
}

/// One process, or rather one open device of it. Other versions of this code may know more or less of it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Member {
    /// The device's name, and its network interface.
    pub(crate) device: String,
    pub(crate) interface: u32,
    pub(crate) program: String,
    pub(crate) process: u32,
    /// Tells this member from others that had the slot.
    pub(crate) generation: u64,
    /// The version of links through shared memory that it has; 0: it has none.
    pub(crate) links: u32,
}

impl Table {
    pub(crate) fn order(&self, family: Family) -> &Vec<u8> {
        match family {
            Family::V4 => &self.v4,
            Family::V6 => &self.v6,
        }
    }

    pub(crate) fn order_mut(&mut self, family: Family) -> &mut Vec<u8> {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }

    /// The slots to try for a new member, the best first.
    pub(super) fn free_slots(&self) -> impl Iterator<Item = u8> + use<> {
        let start = if SLOTS.contains(&self.next) {
            self.next
        } else {
            *SLOTS.start()
        };
        let taken: Vec<u8> = self.members.keys().copied().collect();
        let turn = (start..=*SLOTS.end()).chain(*SLOTS.start()..start);
        turn.filter(move |slot| !taken.contains(slot))
    }
}

/// The table, locked: nobody else reads or changes it.
#[derive(Debug)]
pub(super) struct Locked {
    file: File,
    pub(super) table: Table,
}

impl Locked {
    /// Waits for the lock and reads the table. A table that makes no sense counts as empty.
    pub(super) fn open(place: &Place) -> io::Result<Self> {
        let mut file = loop {
            let file = place.open()?;
            rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
            // Whoever was last took the table away; then there is a new one.
            if rustix::fs::fstat(&file)?.st_nlink > 0 {
                break file;
            }
        };
        let mut text = String::new();
        file.read_to_string(&mut text).or_else(|error| {
            if error.kind() == io::ErrorKind::InvalidData {
                Ok(0)
            } else {
                Err(error)
            }
        })?;
        let table = serde_json::from_str(&text).unwrap_or_default();
        Ok(Self { file, table })
    }

    /// Writes the table. The lock goes with this value.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let mut text = serde_json::to_vec(&self.table)?;
        // One write, as long as what was there: a process that is killed meanwhile leaves the old or the new table.
        let before = usize::try_from(self.file.metadata()?.len()).unwrap_or(0);
        text.resize(text.len().max(before), b' ');
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&text)
    }

    /// Whether the process of a slot lives.
    pub(super) fn is_alive(&self, slot: u8) -> bool {
        lock::is_held(&self.file, slot)
    }

    /// Takes the dead out of the table. Says whether there were any.
    pub(super) fn bury(&mut self) -> bool {
        let slots: Vec<u8> = self.table.members.keys().copied().collect();
        let dead: Vec<u8> = slots
            .into_iter()
            .filter(|slot| !self.is_alive(*slot))
            .collect();
        for slot in &dead {
            self.table.members.remove(slot);
        }
        !dead.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_given_in_turn() {
        let mut table = Table::default();
        assert_eq!(table.free_slots().next(), Some(1));
        table.next = 254;
        let member = Member {
            device: "softfabric0".to_owned(),
            interface: 1,
            program: "a".to_owned(),
            process: 1,
            generation: 1,
            links: 1,
        };
        table.members.insert(1, member.clone());
        assert_eq!(table.free_slots().take(3).collect::<Vec<_>>(), [254, 2, 3]);
        table.members = SLOTS.map(|slot| (slot, member.clone())).collect();
        assert_eq!(table.free_slots().next(), None);
    }

    #[test]
    fn a_table_of_another_kind_is_refused_quietly() {
        assert!(serde_json::from_str::<Table>("{\"members\":3}").is_err());
        assert_eq!(
            serde_json::from_str::<Table>("{}").unwrap(),
            Table::default()
        );
    }
}
