//! Ports of connection management between the processes of one user and network namespace, kept in a file.
//!
//! ```text
//! process 1 { slot 3,  ports: TCP 7174 at any address, listening }
//! process 2 { slot 4,  ports: TCP 7175 at 10.0.0.1 }
//!
//! request for TCP 7174 ──► the listening process ──► the mailbox of its slot
//! ```
//!
//! A process is alive while it holds the lock on the byte of its number, which the kernel lets go when it ends, however
//! it ends. Whoever changes the file holds the file's own lock.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use serde::{Deserialize, Serialize};
use softfabric_units::{Gid, Random};
use softfabric_wire::ip::IpProtocol;
use softfabric_wire::mad::cm::IpService;

use super::listener::ListenAddress;
use crate::neighbours::{Place, lock};
use crate::nic::fork::lead_nowhere;

/// The kind of the file.
const FILE: &str = "services";

/// The ports that are given to those who do not choose, as Linux gives them to sockets.
const FREE_PORTS: std::ops::Range<u16> = 32_768..60_999;

/// Why a port was not given.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Somebody has it.
    #[error("port {0} is in use at these addresses")]
    InUse(u16),
    /// All are taken.
    #[error("no port is free")]
    NoneFree,
    /// The processes' file cannot be used.
    #[error("processes of this host cannot share ports: {0} (needed: a writable /dev/shm or /tmp)")]
    File(#[from] io::Error),
}

/// What a process has of the port space.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Port {
    protocol: u8,
    port: u16,
    address: Address,
    /// Others may have the port too, as long as nobody listens.
    reuse: bool,
    listening: bool,
    /// Nobody listens any longer, but connections that were asked for meanwhile may not stand yet.
    listened: bool,
}

/// [`ListenAddress`] in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Address {
    One(IpAddr),
    AnyIpv4,
    AnyIpv6,
    Any,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Process {
    /// One of its slots among those that have a device open; 0: it has none open yet.
    slot: u8,
    ports: Vec<Port>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Table {
    processes: BTreeMap<u8, Process>,
}

/// The registry, as one process sees it.
#[derive(Debug)]
pub struct Registry {
    place: Place,
    number: u8,
    /// Holds the lock that says that the process lives.
    life: File,
}

/// The descriptor that holds this process's lock, or −1.
static LIFE: AtomicI32 = AtomicI32::new(-1);

/// To be called in a forked child: the lock says that the parent lives, which it shall not say for longer.
#[allow(
    unsafe_code,
    reason = "the registry that owns the descriptor may be locked"
)]
pub fn leave_registry_to_parent() {
    let descriptor = LIFE.swap(-1, Ordering::Relaxed);
    if descriptor >= 0 {
        // SAFETY: the child has the parent's descriptors, and this one is open while it is noted.
        lead_nowhere(unsafe { BorrowedFd::borrow_raw(descriptor) });
    }
}

/// The file, locked.
struct Locked {
    file: File,
    table: Table,
}

impl Registry {
    /// Joins the processes of this user and network namespace.
    ///
    /// # Errors
    /// If the file cannot be used, or 255 processes use it.
    pub fn join() -> io::Result<Self> {
        let registry = Self::join_at(Place::find()?)?;
        LIFE.store(registry.life.as_raw_fd(), Ordering::Relaxed);
        Ok(registry)
    }

    fn join_at(place: Place) -> io::Result<Self> {
        let mut locked = Locked::open(&place)?;
        let life = place.open_file(FILE)?;
        let number = (1..=u8::MAX).find(|number| lock::take(&life, *number).is_ok());
        let number = number.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::QuotaExceeded,
                "255 processes use connection management",
            )
        })?;
        locked.bury();
        locked.table.processes.insert(number, Process::default());
        locked.write()?;
        Ok(Self {
            place,
            number,
            life,
        })
    }

    /// The process has opened a device: its mailbox is that of `slot`.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn set_slot(&self, slot: u8) -> io::Result<()> {
        let mut locked = Locked::open(&self.place)?;
        locked.table.processes.entry(self.number).or_default().slot = slot;
        locked.write()
    }

    /// Takes a port of `protocol` at `address`; 0 stands for any that is free. With `reuse`, others who also allow it
    /// may have the same.
    ///
    /// # Errors
    /// See [`PortError`].
    pub fn bind(
        &self,
        protocol: IpProtocol,
        port: u16,
        address: ListenAddress,
        reuse: bool,
        random: &mut Random,
    ) -> Result<u16, PortError> {
        let mut locked = Locked::open(&self.place)?;
        locked.bury();
        let port = if port == 0 {
            let count = FREE_PORTS.len() as u64;
            let start = random.below(count);
            let candidates =
                (start..start + count).map(|place| (place % count) as u16 + FREE_PORTS.start);
            // A port that is given is nobody else's at any address.
            let unused = |port: &u16| {
                locked
                    .table
                    .is_free(protocol, *port, ListenAddress::Any, false)
            };
            candidates
                .into_iter()
                .find(unused)
                .ok_or(PortError::NoneFree)?
        } else if locked.table.is_free(protocol, port, address, reuse) {
            port
        } else {
            return Err(PortError::InUse(port));
        };
        let own = locked.table.processes.entry(self.number).or_default();
        own.ports.push(Port {
            protocol: protocol.0,
            port,
            address: address.into(),
            reuse,
            listening: false,
            listened: false,
        });
        locked.write()?;
        Ok(port)
    }

    /// The process listens at a port that it has. From now on it is the only one that may.
    ///
    /// # Errors
    /// If another has the port too, and wants to share it.
    pub fn listen(&self, service: IpService, address: ListenAddress) -> Result<(), PortError> {
        let mut locked = Locked::open(&self.place)?;
        locked.bury();
        let shared = locked.table.ports().filter(|(_, port)| {
            port.is(service)
                && !port.listened
                && ListenAddress::from(port.address).overlaps(address)
        });
        if shared.count() > 1 {
            return Err(PortError::InUse(service.port));
        }
        self.change(&mut locked, service, address, |port| port.listening = true);
        Ok(locked.write()?)
    }

    /// The process does not listen there any longer. Who asked before still finds it.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn release(&self, service: IpService, address: ListenAddress) -> io::Result<()> {
        let mut locked = Locked::open(&self.place)?;
        let own = locked.table.processes.entry(self.number).or_default();
        let found = own
            .ports
            .iter()
            .position(|port| port.is_at(service, address));
        if let Some(place) = found {
            let port = &mut own.ports[place];
            let was_listening = std::mem::take(&mut port.listening);
            if was_listening {
                port.listened = true;
            } else {
                own.ports.swap_remove(place);
            }
            // Old listeners are remembered, but not without end.
            const REMEMBERED: usize = 64;
            let mut listened = own.ports.iter().filter(|port| port.listened).count();
            own.ports.retain(|port| {
                let forgets = port.listened && listened > REMEMBERED;
                listened -= usize::from(forgets);
                !forgets
            });
        }
        locked.write()
    }

    fn change(
        &self,
        locked: &mut Locked,
        service: IpService,
        address: ListenAddress,
        change: impl FnOnce(&mut Port),
    ) {
        let own = locked.table.processes.entry(self.number).or_default();
        if let Some(port) = own
            .ports
            .iter_mut()
            .find(|port| port.is_at(service, address))
        {
            change(port);
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let own = self.life.as_raw_fd();
        let _ = LIFE.compare_exchange(own, -1, Ordering::Relaxed, Ordering::Relaxed);
        // The lock goes with this value; an entry that stays behind is of a dead process.
        if let Ok(mut locked) = Locked::open(&self.place) {
            locked.table.processes.remove(&self.number);
            let _ = locked.write();
        }
    }
}

/// The slot of the process that serves `service` at `address`.
pub(super) fn serving_slot(place: &Place, service: IpService, address: Gid) -> Option<u8> {
    let locked = Locked::open(place).ok()?;
    let serves =
        |port: &Port| port.is(service) && ListenAddress::from(port.address).serves(address);
    let rank = |port: &Port| {
        let one = matches!(port.address, Address::One(_));
        (port.listening, one)
    };
    let ports = locked.table.ports();
    let living = ports.filter(|(number, port)| {
        (port.listening || port.listened) && serves(port) && locked.is_alive(*number)
    });
    let (number, _) = living.max_by_key(|(_, port)| rank(port))?;
    let slot = locked.table.processes.get(&number)?.slot;
    (slot != 0).then_some(slot)
}

impl Port {
    fn is(&self, service: IpService) -> bool {
        self.protocol == service.protocol.0 && self.port == service.port
    }

    fn is_at(&self, service: IpService, address: ListenAddress) -> bool {
        self.is(service) && self.address == address.into() && !self.listened
    }
}

impl Table {
    fn ports(&self) -> impl Iterator<Item = (u8, &Port)> {
        let processes = self.processes.iter();
        processes.flat_map(|(number, process)| process.ports.iter().map(|port| (*number, port)))
    }

    fn is_free(
        &self,
        protocol: IpProtocol,
        port: u16,
        address: ListenAddress,
        reuse: bool,
    ) -> bool {
        let service = IpService { protocol, port };
        !self.ports().any(|(_, taken)| {
            taken.is(service)
                && !taken.listened
                && ListenAddress::from(taken.address).overlaps(address)
                && !(reuse && taken.reuse && !taken.listening)
        })
    }
}

impl Locked {
    /// Waits for the lock and reads the table. A table that makes no sense counts as empty.
    fn open(place: &Place) -> io::Result<Self> {
        let mut file = place.open_file(FILE)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let table = serde_json::from_slice(&text).unwrap_or_default();
        Ok(Self { file, table })
    }

    /// Writes the table. The lock goes with this value.
    fn write(&mut self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.table)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&text)?;
        self.file.set_len(text.len() as u64)
    }

    fn is_alive(&self, number: u8) -> bool {
        lock::is_held(&self.file, number)
    }

    /// Takes the dead out of the table.
    fn bury(&mut self) {
        let numbers: Vec<u8> = self.table.processes.keys().copied().collect();
        for number in numbers {
            if !self.is_alive(number) {
                self.table.processes.remove(&number);
            }
        }
    }
}

impl From<ListenAddress> for Address {
    fn from(address: ListenAddress) -> Self {
        match address {
            ListenAddress::One(gid) => Self::One(gid.to_ip()),
            ListenAddress::AnyIpv4 => Self::AnyIpv4,
            ListenAddress::AnyIpv6 => Self::AnyIpv6,
            ListenAddress::Any => Self::Any,
        }
    }
}

impl From<Address> for ListenAddress {
    fn from(address: Address) -> Self {
        match address {
            Address::One(ip) => Self::One(Gid::from_ip(ip)),
            Address::AnyIpv4 => Self::AnyIpv4,
            Address::AnyIpv6 => Self::AnyIpv6,
            Address::Any => Self::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: IpProtocol = IpProtocol::TCP;

    fn one(last: u8) -> ListenAddress {
        ListenAddress::One(gid(last))
    }

    fn gid(last: u8) -> Gid {
        Gid::from_ip([10, 0, 0, last].into())
    }

    /// Two processes, as far as the registry can tell.
    fn two() -> (tempfile::TempDir, Place, [Registry; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::below(folder.path()).unwrap();
        let processes = [(); 2].map(|()| Registry::join_at(place.clone()).unwrap());
        (folder, place, processes)
    }

    fn bind(registry: &Registry, port: u16, address: ListenAddress, reuse: bool) -> Option<u16> {
        let bound = registry.bind(TCP, port, address, reuse, &mut Random::from_seed(1));
        match bound {
            Ok(port) => Some(port),
            Err(PortError::InUse(found)) => {
                assert_eq!(found, port);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn service(port: u16) -> IpService {
        let protocol = TCP;
        IpService { protocol, port }
    }

    #[test]
    fn ports_have_one_owner() {
        let (_folder, _, [a, b]) = two();
        assert_eq!(bind(&a, 7000, one(1), false), Some(7000));
        assert_eq!(bind(&b, 7000, one(2), false), Some(7000), "another address");
        assert_eq!(bind(&b, 7000, one(1), true), None);
        assert_eq!(bind(&b, 7000, ListenAddress::AnyIpv4, false), None);
        assert_eq!(bind(&b, 7000, ListenAddress::AnyIpv6, false), Some(7000));
        let other = b.bind(
            IpProtocol::UDP,
            7000,
            one(1),
            false,
            &mut Random::from_seed(1),
        );
        assert_eq!(other.unwrap(), 7000, "another protocol");
        a.release(service(7000), one(1)).unwrap();
        assert_eq!(bind(&b, 7000, one(1), false), Some(7000));
    }

    #[test]
    fn shared_ports_are_shared_until_somebody_listens() {
        let (_folder, _, [a, b]) = two();
        assert_eq!(bind(&a, 7000, one(1), true), Some(7000));
        assert_eq!(bind(&b, 7000, one(1), true), Some(7000));
        assert!(a.listen(service(7000), one(1)).is_err());
        b.release(service(7000), one(1)).unwrap();
        a.listen(service(7000), one(1)).unwrap();
        assert_eq!(bind(&b, 7000, one(1), true), None);
    }

    #[test]
    fn free_ports_differ() {
        let (_folder, _, [a, b]) = two();
        let first = bind(&a, 0, one(1), false).unwrap();
        let second = bind(&b, 0, one(1), false).unwrap();
        assert_ne!(first, second);
        assert!(FREE_PORTS.contains(&first) && FREE_PORTS.contains(&second));
    }

    #[test]
    fn requests_find_the_listener() {
        let (_folder, place, [a, b]) = two();
        a.set_slot(3).unwrap();
        let serving = |last| serving_slot(&place, service(7000), gid(last));
        bind(&a, 7000, one(1), false);
        assert_eq!(serving(1), None, "not listening");
        a.listen(service(7000), one(1)).unwrap();
        bind(&b, 7000, one(2), false);
        b.listen(service(7000), one(2)).unwrap();
        assert_eq!(serving(1), Some(3));
        assert_eq!(serving(2), None, "no device is open there");
        b.set_slot(4).unwrap();
        assert_eq!(serving(2), Some(4));
        a.release(service(7000), one(1)).unwrap();
        assert_eq!(serving(1), Some(3), "who asked before");
        bind(&b, 7000, one(1), false);
        b.listen(service(7000), one(1)).unwrap();
        assert_eq!(serving(1), Some(4), "who listens now");
        drop(b);
        assert_eq!(serving(1), Some(3));
        assert_eq!(serving(2), None);
    }

    #[test]
    fn the_dead_do_not_count() {
        let (_folder, place, [a, _b]) = two();
        bind(&a, 7000, one(1), false);
        a.listen(service(7000), one(1)).unwrap();
        a.set_slot(3).unwrap();
        // What a process leaves behind that ends without a word: an entry whose lock nobody holds.
        let mut locked = Locked::open(&place).unwrap();
        let dead = locked.table.processes.remove(&a.number).unwrap();
        locked.table.processes.insert(200, dead);
        locked.write().unwrap();
        drop(locked);
        assert_eq!(serving_slot(&place, service(7000), gid(1)), None);
        assert_eq!(bind(&a, 7000, one(1), false), Some(7000));
    }

    #[test]
    fn a_file_that_makes_no_sense_is_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::below(folder.path()).unwrap();
        place.open_file(FILE).unwrap().write_all(b"\xff[").unwrap();
        let registry = Registry::join_at(place).unwrap();
        assert_eq!(bind(&registry, 7000, one(1), false), Some(7000));
    }
}
