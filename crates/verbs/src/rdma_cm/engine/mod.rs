//! What the kernel's connection manager keeps for programs: identifiers, channels, and the events that wait.
//!
//! ```text
//! command ──► Cm ──► Manager ──► datagrams
//!   event ◄── Cm ◄── Manager ◄── datagrams
//! ```
//!
//! All of it is behind the service's lock. An identifier's events count for it once the program has taken them; it
//! learns the count when it ends the identifier, and waits for its own threads to have seen as many.

mod address;
mod attributes;
mod connect;
mod event;
mod life;
mod multicast;
mod options;
mod query;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use softfabric_adapter::DeviceInfo;
use softfabric_adapter::cm::{ListenAddress, ListenerId, Manager, Registry};
use softfabric_units::{Gid, Psn, Qpn, Random};
use softfabric_wire::ip::IpProtocol;
use softfabric_wire::mad::TimeoutCode;
use softfabric_wire::mad::cm::{CommunicationId, IpService, PathMtuCode, ServiceId};

use super::abi;
use super::descriptors::ChannelId;
use crate::errno::Errno;

/// The queue key of datagrams whose program does not choose one.
const DATAGRAM_QKEY: u32 = 0x0123_4567;

/// How long a packet may be under way, as a code: 4.096 µs × 2^16 is a quarter of a second. What Linux assumes of
/// Ethernet.
const PACKET_LIFETIME: u8 = 16;

/// How long this device may take to acknowledge, as a code: what it says of itself in `local_ca_ack_delay`.
const ACK_DELAY: u8 = 15;

/// The state of all that programs know.
pub(super) struct Cm {
    random: Random,
    registry: Registry,
    ids: BTreeMap<u32, Id>,
    groups: BTreeMap<u32, Group>,
    channels: BTreeMap<ChannelId, Channel>,
    /// Identifiers by the names that the manager gives.
    by_name: BTreeMap<CommunicationId, u32>,
    by_listener: BTreeMap<ListenerId, u32>,
    devices: Vec<Arc<DeviceInfo>>,
    slot: u8,
    next: u32,
}

/// One descriptor of a program.
struct Channel {
    /// A copy of the program's, which stays the same whatever becomes of that.
    descriptor: OwnedFd,
    waiting: VecDeque<Waiting>,
}

/// An event that the program has not taken.
struct Waiting {
    /// For which identifier it counts.
    counts_for: u32,
    /// For which group too.
    group: Option<u32>,
    event: Box<abi::Event>,
}

/// What `rdma_cm_id` is in a program.
struct Id {
    channel: ChannelId,
    /// The program's own word for it; 0 until it has one.
    user: u64,
    space: Space,
    qp_type: u8,
    state: State,
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    /// The port that it has of the host's.
    claim: Option<(IpService, ListenAddress)>,
    local: Option<Local>,
    link: Link,
    backlog: u32,
    reported: u32,
    traffic_class: u8,
    ack_timeout: Option<u8>,
    reuse: bool,
    only_ipv6: bool,
    /// The PSN that the peer shall begin with.
    psn: Psn,
    qkey: Option<u32>,
    peer: Option<Peer>,
}

/// Which ports there are, and what is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Space {
    Tcp,
    Udp,
    Ipoib,
    Infiniband,
}

/// How far an identifier is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    Bound,
    AddressResolved,
    RouteResolved,
    /// From the request until the end.
    Connected,
    Disconnected,
    Listening,
}

/// What the manager knows it by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    None,
    Connection(CommunicationId),
    Listener(ListenerId),
    Resolution(CommunicationId),
}

/// A device, and one of its addresses.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub(super) device: usize,
    pub(super) info: Arc<DeviceInfo>,
    pub(super) gid_index: usize,
}

/// What the other side has said of itself, as this side's queue pair needs it.
#[derive(Clone, Copy, Debug)]
struct Peer {
    qpn: Qpn,
    psn: Psn,
    /// Reads and atomics that the peer may have under way to us, and we to it.
    responder_resources: u8,
    initiator_depth: u8,
    retries: u8,
    rnr_retries: u8,
    mtu: PathMtuCode,
    ack_timeout: TimeoutCode,
}

/// A membership of a multicast group.
struct Group {
    id: u32,
    reported: u32,
}

impl Cm {
    pub(super) fn new(random: Random, registry: Registry) -> Self {
        Self {
            random,
            registry,
            ids: BTreeMap::new(),
            groups: BTreeMap::new(),
            channels: BTreeMap::new(),
            by_name: BTreeMap::new(),
            by_listener: BTreeMap::new(),
            devices: Vec::new(),
            slot: 0,
            next: 0,
        }
    }

    /// The service has a device with this number.
    pub(super) fn add_device(&mut self, device: usize, info: &Arc<DeviceInfo>, slot: u8) {
        if self.slot == 0 {
            self.slot = slot;
            // Without it, requests from other hosts find this process only if it is the first on this host.
            let _ = self.registry.set_slot(slot);
        }
        if device == self.devices.len() {
            self.devices.push(info.clone());
        }
    }

    /// The identifier of a number, if it is the channel's.
    fn id(&mut self, channel: ChannelId, id: u32) -> Result<&mut Id, Errno> {
        let found = self.ids.get_mut(&id).ok_or(Errno::ENOENT)?;
        if found.channel != channel {
            return Err(Errno::EINVAL);
        }
        Ok(found)
    }

    /// A number that no identifier and no group has.
    fn number(&mut self) -> u32 {
        loop {
            let number = self.next;
            self.next = self.next.wrapping_add(1) & 0x7fff_ffff;
            if !self.ids.contains_key(&number) && !self.groups.contains_key(&number) {
                return number;
            }
        }
    }

    /// Takes an identifier's connection, listener or resolution from the manager.
    fn unlink(&mut self, manager: &mut Manager, now: softfabric_units::Time, link: Link) {
        match link {
            Link::None => {}
            Link::Connection(name) => {
                self.by_name.remove(&name);
                manager.destroy(now, name);
            }
            Link::Resolution(name) => {
                self.by_name.remove(&name);
                manager.destroy_resolution(now, name);
            }
            Link::Listener(listener) => {
                self.by_listener.remove(&listener);
                manager.stop_listening(listener);
            }
        }
    }
}

impl Id {
    fn new(channel: ChannelId, user: u64, space: Space, qp_type: u8, psn: Psn) -> Self {
        Self {
            channel,
            user,
            space,
            qp_type,
            state: State::Idle,
            source: None,
            destination: None,
            claim: None,
            local: None,
            link: Link::None,
            backlog: 0,
            reported: 0,
            traffic_class: 0,
            ack_timeout: None,
            reuse: false,
            only_ipv6: false,
            psn,
            qkey: None,
            peer: None,
        }
    }

    /// Whether datagrams are exchanged, not messages of a connection.
    fn is_datagram(&self) -> bool {
        i32::from(self.qp_type) == crate::abi::IBV_QPT_UD
    }

    /// The service of a port.
    fn service(&self, port: u16) -> ServiceId {
        ServiceId(u64::from(self.space.number()) << 16 | u64::from(port))
    }

    /// This side's GID.
    fn source_gid(&self) -> Option<Gid> {
        let local = self.local.as_ref()?;
        Some(local.info.gids.get(local.gid_index)?.gid)
    }

    /// The other side's.
    fn destination_gid(&self) -> Option<Gid> {
        let gid = Gid::from_ip(self.destination?.ip());
        let local = self.local.as_ref();
        let known = local.is_some_and(|local| local.info.gids.iter().any(|own| own.gid == gid));
        // A device without this host's name for itself reaches the host by its own address.
        match gid.to_ip().is_loopback() && !known {
            true => self.source_gid(),
            false => Some(gid),
        }
    }

    /// How long packets may be under way, as a code.
    fn packet_lifetime(&self) -> u8 {
        match self.ack_timeout {
            Some(code) if code > 0 => code - 1,
            _ => PACKET_LIFETIME,
        }
    }

    fn mtu(&self) -> PathMtuCode {
        let bytes = self
            .local
            .as_ref()
            .map_or(0, |local| local.info.mtu.as_u32());
        PathMtuCode::from_code(crate::device::mtu(bytes) as u8)
    }
}

impl Space {
    /// The upper half of its services' identifiers (`enum rdma_port_space`).
    const fn number(self) -> u16 {
        match self {
            Self::Ipoib => 0x0002,
            Self::Tcp => 0x0106,
            Self::Udp => 0x0111,
            Self::Infiniband => 0x013f,
        }
    }

    const fn from_number(number: u16) -> Option<Self> {
        match number {
            0x0002 => Some(Self::Ipoib),
            0x0106 => Some(Self::Tcp),
            0x0111 => Some(Self::Udp),
            0x013f => Some(Self::Infiniband),
            _ => None,
        }
    }

    /// The port as the host's processes share it.
    const fn service(self, port: u16) -> IpService {
        IpService {
            protocol: IpProtocol(self.number() as u8),
            port,
        }
    }
}

/// The code of an acknowledgement timeout over a path: there and back, and the peer's delay.
fn ack_timeout(delay: u8, lifetime: u8) -> TimeoutCode {
    let there_and_back = lifetime + 1;
    let (longer, shorter) = (there_and_back.max(delay), there_and_back.min(delay));
    // The sum of two times of one magnitude is of the next.
    let next = u8::from(shorter + 1 >= longer);
    TimeoutCode::from_code((longer + next).min(TimeoutCode::MAX.code()))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use softfabric_adapter::{GidEntry, Settings};

    use super::*;

    #[test]
    fn a_device_reaches_this_host_by_its_own_address() {
        let mut devices = softfabric_adapter::devices(&Settings::default()).unwrap();
        let mut info = devices.pop().expect("at least the loopback interface");
        let entry = |text: &str| GidEntry {
            index: 0,
            gid: Gid::from_ip(text.parse::<IpAddr>().unwrap()),
            ip: text.parse().unwrap(),
            netdev: "eth0".to_owned(),
        };
        let mut reached = |own: &str, destination: &str| {
            info.gids = vec![entry(own)];
            let mut id = Id::new(ChannelId::new(), 1, Space::Tcp, 2, Psn::new(0));
            id.destination = Some(format!("{destination}:7").parse().unwrap());
            id.local = Some(Local {
                device: 0,
                info: Arc::new(info.clone()),
                gid_index: 0,
            });
            id.destination_gid().map(|gid| gid.to_ip().to_string())
        };
        assert_eq!(
            reached("10.0.0.1", "127.0.0.1").as_deref(),
            Some("10.0.0.1")
        );
        assert_eq!(reached("10.0.0.1", "10.0.0.2").as_deref(), Some("10.0.0.2"));
        assert_eq!(
            reached("127.0.0.1", "127.0.0.1").as_deref(),
            Some("127.0.0.1")
        );
    }
}
