//! Who listens for which service at which address.

use std::net::IpAddr;

use softfabric_units::Gid;
use softfabric_wire::mad::cm::ServiceId;

/// A listener of this process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ListenerId(pub u32);

/// Which addresses a listener serves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ListenAddress {
    /// One.
    One(Gid),
    /// Every IPv4 address.
    AnyIpv4,
    /// Every IPv6 address.
    AnyIpv6,
    /// All.
    Any,
}

impl ListenAddress {
    /// Whether a request to `address` is for the listener.
    pub fn serves(self, address: Gid) -> bool {
        match self {
            Self::One(own) => own == address,
            Self::AnyIpv4 => matches!(address.to_ip(), IpAddr::V4(_)),
            Self::AnyIpv6 => matches!(address.to_ip(), IpAddr::V6(_)),
            Self::Any => true,
        }
    }

    /// Whether some request is for both.
    pub fn overlaps(self, other: Self) -> bool {
        match (self, other) {
            (Self::One(own), other) | (other, Self::One(own)) => other.serves(own),
            (Self::AnyIpv4, Self::AnyIpv6) | (Self::AnyIpv6, Self::AnyIpv4) => false,
            _ => true,
        }
    }
}

/// The listeners of a process. A listener of one address goes before one of many.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    entries: Vec<(ServiceId, ListenAddress, ListenerId)>,
    count: u32,
}

impl Listeners {
    /// A new listener; `None` if another serves the same addresses.
    pub(super) fn add(&mut self, service: ServiceId, address: ListenAddress) -> Option<ListenerId> {
        let key = (service, address);
        let place = self
            .entries
            .binary_search_by_key(&key, |(service, address, _)| (*service, *address));
        let Err(place) = place else {
            return None;
        };
        self.count = self.count.wrapping_add(1);
        let id = ListenerId(self.count);
        self.entries.insert(place, (service, address, id));
        Some(id)
    }

    pub(super) fn remove(&mut self, listener: ListenerId) {
        self.entries.retain(|(_, _, id)| *id != listener);
    }

    /// The listener that serves `service` at `address`.
    pub(super) fn find(&self, service: ServiceId, address: Gid) -> Option<ListenerId> {
        let start = self.entries.partition_point(|(own, _, _)| *own < service);
        let entries = self.entries[start..].iter();
        entries
            .take_while(|(own, _, _)| *own == service)
            .find(|(_, own, _)| own.serves(address))
            .map(|(_, _, id)| *id)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(text: &str) -> Gid {
        Gid::from_ip(text.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn one_address_goes_before_many() {
        let mut listeners = Listeners::default();
        let service = ServiceId(7);
        let any = listeners.add(service, ListenAddress::Any).unwrap();
        let v6 = listeners.add(service, ListenAddress::AnyIpv6).unwrap();
        let one = listeners
            .add(service, ListenAddress::One(gid("10.0.0.1")))
            .unwrap();
        assert_eq!(listeners.add(service, ListenAddress::Any), None, "taken");
        listeners.add(ServiceId(6), ListenAddress::Any).unwrap();
        assert_eq!(listeners.find(service, gid("10.0.0.1")), Some(one));
        assert_eq!(listeners.find(service, gid("10.0.0.2")), Some(any));
        assert_eq!(listeners.find(service, gid("fd00::1")), Some(v6));
        assert_eq!(listeners.find(ServiceId(8), gid("fd00::1")), None);
        listeners.remove(any);
        assert_eq!(listeners.find(service, gid("10.0.0.2")), None);
    }

    #[test]
    fn overlaps_are_symmetric() {
        let one = ListenAddress::One(gid("10.0.0.1"));
        let (v4, v6) = (ListenAddress::AnyIpv4, ListenAddress::AnyIpv6);
        for (a, b, expected) in [
            (one, one, true),
            (one, ListenAddress::One(gid("10.0.0.2")), false),
            (one, v4, true),
            (one, v6, false),
            (v4, v6, false),
            (v4, ListenAddress::Any, true),
            (v6, v6, true),
        ] {
            assert_eq!(a.overlaps(b), expected, "{a:?} and {b:?}");
            assert_eq!(b.overlaps(a), expected, "{b:?} and {a:?}");
        }
    }
}
