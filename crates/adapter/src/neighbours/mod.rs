//! Several processes, one port, no daemon and no root.
//!
//! ```text
//! process A, slot 1 ─ socket ┐                      ┌ table: members, order of the sockets
//! process B, slot 2 ─ socket ┼─ UDP 4791, group ────┤
//! process C, slot 3 ─ socket ┘  program: slot → socket
//!         └─────────── mailboxes: a packet at the wrong process goes to the right one
//! ```
//!
//! Every open device is a member and has a slot, which is the upper 8 bits of its queue pair numbers. Members of one user
//! and network namespace share the port; another user cannot.

pub(crate) mod lock;
mod mailbox;
mod place;
mod report;
mod steering;
mod table;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::host::DeviceInfo;
use crate::port::udp::{Family, Socket};
pub(crate) use mailbox::{Mailbox, OwnedLetter, Room};
pub(crate) use place::Place;
pub use report::{Counters, Neighbour, Report, report};
pub(crate) use report::{LETTER_ASK, counters};
pub(crate) use steering::PROBE;
use table::{Locked, SLOTS};
pub(crate) use table::{Member, Table};

/// Why the port was not opened.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The folder for the table cannot be made.
    #[error(
        "processes of this host cannot find each other: {0} (needed: a writable /dev/shm or /tmp)"
    )]
    Place(#[source] io::Error),
    /// Somebody else has the port.
    #[error(
        "UDP port 4791 is in use by another user or by a program that does not share it (such as the kernel's rdma_rxe): \
         end it, or use another network namespace"
    )]
    PortTaken,
    /// Members of another table use the port.
    #[error(
        "slot {0} is taken in this network namespace by a process that does not share {1}: let the containers share it, or \
         give each a network namespace"
    )]
    OtherTable(u8, &'static str),
    /// All slots are taken.
    #[error("{} devices are open in this network namespace, and no more fit", SLOTS.count())]
    Full,
    /// Something else.
    #[error("UDP port 4791 cannot be opened: {0}")]
    Port(#[source] io::Error),
}

/// This device's place among its neighbours.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) slot: u8,
    pub(crate) generation: u64,
    place: Place,
    /// Holds the lock that says that the member lives.
    life: File,
}

/// What joining gives.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) membership: Membership,
    pub(crate) mailbox: Mailbox,
    pub(crate) sockets: Sockets,
}

/// The port, in the families that the host speaks.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    pub(crate) v4: Option<Socket>,
    pub(crate) v6: Option<Socket>,
}

impl Sockets {
    pub(crate) fn of(&self, family: Family) -> Option<&Socket> {
        match family {
            Family::V4 => self.v4.as_ref(),
            Family::V6 => self.v6.as_ref(),
        }
    }

    /// Those that there are.
    fn each(&self) -> impl Iterator<Item = (Family, &Socket)> {
        [Family::V4, Family::V6]
            .into_iter()
            .filter_map(|family| Some((family, self.of(family)?)))
    }
}

impl Membership {
    /// Takes a slot, opens the port and steers its packets here.
    pub(crate) fn join(info: &DeviceInfo, links: u32) -> Result<Joined, JoinError> {
        let place = Place::find().map_err(JoinError::Place)?;
        let mut locked = Locked::open(&place).map_err(JoinError::Place)?;
        let somebody_died = locked.bury();
        if locked.table.members.is_empty() {
            locked.table.v4.clear();
            locked.table.v6.clear();
        }
        if locked.table.cookie == 0 {
            let random = random();
            locked.table.cookie = random;
            // Queue pair numbers shall not be those of processes that have gone a moment ago.
            locked.table.next = (random >> 32) as u8;
        }
        let life = place.open().map_err(JoinError::Place)?;
        let (slot, mailbox) = take_slot(&locked.table, &life)?;
        let sockets = Sockets {
            v4: open_socket(Family::V4)?,
            v6: open_socket(Family::V6)?,
        };
        let table = &mut locked.table;
        let generation = random();
        table.next = if slot == *SLOTS.end() { 1 } else { slot + 1 };
        table.members.insert(
            slot,
            Member {
                device: info.name.clone(),
                interface: info.interface,
                program: program_name(),
                process: std::process::id(),
                generation,
                links,
            },
        );
        let members = table.members.len();
        let mut doubtful = somebody_died;
        for (family, socket) in sockets.each() {
            let order = table.order_mut(family);
            // A census looks further than the group reaches.
            order.truncate(
                order
                    .iter()
                    .rposition(|slot| *slot != 0)
                    .map_or(0, |last| last + 1),
            );
            order.push(slot);
            doubtful |= order.contains(&0) || order.len() != members;
            steer(socket, order);
        }
        let membership = Self {
            slot,
            generation,
            place,
            life,
        };
        if doubtful {
            membership.begin_census(&mut locked.table, &sockets);
        }
        locked.write().map_err(JoinError::Place)?;
        Ok(Joined {
            membership,
            mailbox,
            sockets,
        })
    }

    /// Whether the process of a slot lives.
    pub(crate) fn is_alive(&self, slot: u8) -> bool {
        lock::is_held(&self.life, slot)
    }

    /// Keeps what this device has counted for those who ask later.
    pub(crate) fn leave_counters(&self, device: &str, counters: &Counters) -> io::Result<()> {
        report::Ended::open(&self.place)?.add(device, counters)
    }

    /// Leaves the port to the others. The sockets are closed by this, or very soon after it.
    pub(crate) fn leave(&self, sockets: Arc<Sockets>) {
        // Where the table is not to be had, the others find out by themselves.
        let Ok(mut locked) = Locked::open(&self.place) else {
            return;
        };
        for (family, socket) in sockets.each() {
            trim(locked.table.order_mut(family));
            let order = steering::without(locked.table.order(family), self.slot);
            if !order.is_empty() {
                steer(socket, &order);
            }
            *locked.table.order_mut(family) = order;
        }
        drop(sockets);
        locked.table.members.remove(&self.slot);
        // The lock on the slot goes with this value; a table that still names the slot is corrected by the next.
        let _ = if locked.table.members.is_empty() {
            self.place.clear()
        } else {
            locked.write()
        };
    }

    /// The neighbour with a slot, if it lives and has links of this version: which of all that had the slot it is.
    pub(crate) fn link_of(&self, slot: u8, version: u32) -> Option<u64> {
        let locked = Locked::open(&self.place).ok()?;
        let member = locked.table.members.get(&slot)?;
        (member.links == version && locked.is_alive(slot)).then_some(member.generation)
    }

    /// A packet for another slot came here, chosen by the kernel: somebody has died, or the order of the sockets is not
    /// what the table says. A census finds out.
    pub(crate) fn repair(&self, sockets: &Sockets) -> io::Result<()> {
        let mut locked = Locked::open(&self.place)?;
        locked.bury();
        self.begin_census(&mut locked.table, sockets);
        locked.write()
    }

    /// Asks every socket of the groups whose it is: a probe goes to each place.
    fn begin_census(&self, table: &mut Table, sockets: &Sockets) {
        table.census += 1;
        for (family, socket) in sockets.each() {
            // Somebody who is not in the table may have a socket, too.
            let places = table.members.len() + 2;
            *table.order_mut(family) = vec![0; places];
            steer(socket, table.order(family));
            for place in 0..places {
                socket.send_to_itself(&probe(table, place as u8));
            }
        }
    }

    /// A probe came to this member's socket: it tells the socket's place.
    pub(crate) fn answer_probe(
        &self,
        family: Family,
        sockets: &Sockets,
        bytes: &[u8],
    ) -> io::Result<()> {
        let (Some(place), Some(socket)) = (bytes.get(1).copied(), sockets.of(family)) else {
            return Ok(());
        };
        let mut locked = Locked::open(&self.place)?;
        let table = &mut locked.table;
        // An old one, or one that somebody made up.
        if bytes != probe(table, place) {
            return Ok(());
        }
        let order = table.order_mut(family);
        // A place that does not exist leads anywhere; the one that does is below it.
        let known = order.iter().position(|slot| *slot == self.slot);
        if known.is_some_and(|known| known <= usize::from(place)) {
            return Ok(());
        }
        if let Some(known) = known {
            order[known] = 0;
        }
        if let Some(found) = order.get_mut(usize::from(place)) {
            *found = self.slot;
        }
        steer(socket, order);
        locked.write()
    }

    /// The descriptor that says that the member lives.
    pub(crate) fn life(&self) -> BorrowedFd<'_> {
        self.life.as_fd()
    }
}

/// A census looks further than the group reaches.
fn trim(order: &mut Vec<u8>) {
    let known = order.iter().rposition(|slot| *slot != 0);
    order.truncate(known.map_or(0, |last| last + 1));
}

/// A probe for one place of a group.
fn probe(table: &Table, place: u8) -> [u8; 20] {
    let mut bytes = [0; 20];
    (bytes[0], bytes[1]) = (PROBE, place);
    bytes[4..12].copy_from_slice(&table.cookie.to_le_bytes());
    bytes[12..].copy_from_slice(&table.census.to_le_bytes());
    bytes
}

/// Steering that fails leaves it to the kernel's hash and to the mailboxes.
fn steer(socket: &Socket, order: &[u8]) {
    let _ = socket.steer(&steering::program(order));
}

fn take_slot(table: &Table, life: &File) -> Result<(u8, Mailbox), JoinError> {
    for slot in table.free_slots() {
        if lock::take(life, slot).is_err() {
            continue;
        }
        // A process that has just ended lets go of its lock and of its mailbox one after the other.
        for _ in 0..50 {
            match Mailbox::open(slot) {
                Ok(mailbox) => return Ok((slot, mailbox)),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(JoinError::Port(error)),
            }
        }
        return Err(JoinError::OtherTable(slot, "/dev/shm"));
    }
    Err(JoinError::Full)
}

/// Opens the port in one family; `None` where the host does not speak it.
fn open_socket(family: Family) -> Result<Option<Socket>, JoinError> {
    match Socket::open(family) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) => match error.raw_os_error() {
            Some(libc::EADDRINUSE) => Err(JoinError::PortTaken),
            Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) if family == Family::V6 => Ok(None),
            _ => Err(JoinError::Port(error)),
        },
    }
}

fn program_name() -> String {
    let name = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    name.trim().to_owned()
}

/// A number that others cannot guess, and never zero.
fn random() -> u64 {
    let mut bytes = [0; 8];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(8) => u64::from_ne_bytes(bytes) | 1,
        _ => u64::from(std::process::id()) << 1 | 1,
    }
}
