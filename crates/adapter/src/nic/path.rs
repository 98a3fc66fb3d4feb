//! Paths: what a peer's address means on this host.
//!
//! ```text
//! Route (a GID, a class, …) ──Nic::path──► AddressVector, whose `driver` is a place in this table
//! ```
//!
//! A path is looked up once and then goes with every packet as a number. Equal paths have one entry, so the table is as
//! long as there are peers.

use std::net::IpAddr;

use rustc_hash::FxHashMap;
use softfabric_transport::AddressVector;
use softfabric_units::{Class, Gid};

use crate::host::{DeviceInfo, is_link_local};

/// Where a queue pair or a datagram shall go: what verbs call an address handle's attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The peer's GID.
    pub destination: Gid,
    /// The IP traffic class: DSCP over ECN. The ECN bits are set by the device.
    pub traffic_class: u8,
    /// The IP hop limit; 0 stands for 64.
    pub hop_limit: u8,
    /// The IPv6 flow label, 20 bits.
    pub flow_label: u32,
    /// The service level: the traffic class of the link is its low three bits.
    pub service_level: u8,
    /// The UDP source port that is asked for. The socket's own is sent: only who may open raw sockets can choose.
    pub source_port: u16,
}

impl Route {
    /// A route without special wishes.
    pub const fn to(destination: Gid) -> Self {
        Self {
            destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
            service_level: 0,
            source_port: 0,
        }
    }
}

/// Why there is no path.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// The source is not in the table.
    #[error("GID index {found} does not exist: the device has {count}")]
    SourceIndex {
        /// The index.
        found: usize,
        /// How many GIDs there are.
        count: usize,
    },
    /// One is an IPv4 address, the other an IPv6 one.
    #[error(
        "the source {source_address} and the destination {destination} are not of one kind of address"
    )]
    Family {
        /// The source.
        source_address: IpAddr,
        /// The destination.
        destination: IpAddr,
    },
    /// The GID is no address that packets can go to.
    #[error("packets cannot go to {0}")]
    Unspecified(IpAddr),
}

/// One entry of the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Path {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// The interface, where the address alone does not say.
    pub(crate) scope: u32,
    /// The destination is an address of this network namespace.
    pub(crate) local: bool,
}

/// All paths that were looked up.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    entries: Vec<Path>,
    known: FxHashMap<Path, u64>,
    /// Where answers go to those who sent without being looked up, and how to find out.
    back: FxHashMap<Gid, Path>,
    /// The device's addresses, and its interface.
    own: Vec<IpAddr>,
    interface: u32,
}

/// How many senders are remembered.
const BACK: usize = 1024;

impl Paths {
    /// The number of a path for [`AddressVector::driver`]; zero is no path.
    fn number(&mut self, path: Path) -> u64 {
        let next = self.entries.len() as u64 + 1;
        let number = *self.known.entry(path).or_insert(next);
        if number == next {
            self.entries.push(path);
        }
        number
    }

    /// Paths of a device.
    pub(crate) fn new(info: &DeviceInfo) -> Self {
        Self {
            own: info.gids.iter().map(|entry| entry.ip).collect(),
            interface: info.interface,
            ..Self::default()
        }
    }

    /// The interface that a destination needs to be told with, or 0.
    pub(crate) fn scope_of(&self, destination: &IpAddr) -> u32 {
        scope(destination, self.interface)
    }

    /// The path back to a sender, from the first of the device's addresses of its kind.
    pub(crate) fn back_to(&mut self, gid: &Gid) -> Option<Path> {
        if let Some(path) = self.back.get(gid) {
            return Some(*path);
        }
        let destination = gid.to_ip();
        let same = |own: &&IpAddr| own.is_ipv4() == destination.is_ipv4();
        let path = Path {
            source: *self.own.iter().find(same)?,
            destination,
            scope: scope(&destination, self.interface),
            local: self.own.contains(&destination),
        };
        if self.back.len() >= BACK {
            self.back.clear();
        }
        self.back.insert(*gid, path);
        Some(path)
    }

    #[inline]
    pub(crate) fn get(&self, driver: u64) -> Option<&Path> {
        self.entries
            .get(usize::try_from(driver).ok()?.checked_sub(1)?)
    }

    /// The path from a device's address to a route's destination.
    pub(crate) fn find(
        &mut self,
        info: &DeviceInfo,
        gid_index: usize,
        route: &Route,
        local: bool,
    ) -> Result<AddressVector, PathError> {
        let entry = info.gids.get(gid_index).ok_or(PathError::SourceIndex {
            found: gid_index,
            count: info.gids.len(),
        })?;
        let destination = route.destination.to_ip();
        if destination.is_ipv4() != entry.ip.is_ipv4() {
            return Err(PathError::Family {
                source_address: entry.ip,
                destination,
            });
        }
        if destination.is_unspecified() {
            return Err(PathError::Unspecified(destination));
        }
        let path = Path {
            source: entry.ip,
            destination,
            scope: scope(&destination, info.interface),
            local,
        };
        Ok(AddressVector {
            gid: route.destination,
            driver: self.number(path),
            flow_label: route.flow_label & 0xf_ffff,
            source_port: route.source_port,
            traffic_class: route.traffic_class,
            hop_limit: if route.hop_limit == 0 {
                64
            } else {
                route.hop_limit
            },
            class: Class::new(route.service_level & 7),
        })
    }
}

/// The interface that has to be named along with an address that means something else on every link.
fn scope(address: &IpAddr, interface: u32) -> u32 {
    let per_link = address.is_multicast() || matches!(address, IpAddr::V6(v6) if is_link_local(v6));
    if per_link { interface } else { 0 }
}
