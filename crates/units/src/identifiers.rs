//! Identifiers of the wire: queue pairs, addresses, partitions and traffic classes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A queue pair number: 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Qpn(u32);

impl Qpn {
    /// QP 0, subnet management.
    pub const SUBNET_MANAGEMENT: Self = Self(0);
    /// QP 1, general services (connection management among them).
    pub const GENERAL_SERVICES: Self = Self(1);
    /// The destination of multicast datagrams.
    pub const MULTICAST: Self = Self(0xff_ffff);

    /// The number whose low 24 bits are those of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & 0xff_ffff)
    }

    /// The 24 bits.
    pub const fn as_u32(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Qpn({:#x})", self.0)
    }
}

/// A global identifier: 128 bits in network order. RoCEv2 maps IPv4 addresses to `::ffff:a.b.c.d`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The GID of an IP address (IBTA annex A17).
    pub fn from_ip(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self(v4.to_ipv6_mapped().octets()),
            IpAddr::V6(v6) => Self(v6.octets()),
        }
    }

    /// The IP address that the GID stands for under RoCEv2.
    pub fn to_ip(self) -> IpAddr {
        let v6 = Ipv6Addr::from(self.0);
        v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
    }
}

impl From<Ipv4Addr> for Gid {
    fn from(address: Ipv4Addr) -> Self {
        Self::from_ip(IpAddr::V4(address))
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Ipv6Addr::from(self.0), f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}

/// A local identifier of an InfiniBand subnet: 16 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lid(pub u16);

impl Lid {
    /// Of whoever is at the other end of the link, before there are identifiers.
    pub const PERMISSIVE: Self = Self(0xffff);
    /// The first identifier of multicast groups.
    pub const FIRST_MULTICAST: Self = Self(0xc000);

    /// Whether it names one port: neither zero, nor a group, nor permissive.
    pub const fn is_unicast(self) -> bool {
        self.0 != 0 && self.0 < Self::FIRST_MULTICAST.0
    }

    /// Whether it names a group.
    pub const fn is_multicast(self) -> bool {
        self.0 >= Self::FIRST_MULTICAST.0 && self.0 != Self::PERMISSIVE.0
    }
}

impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A globally unique identifier of a node, a port or a system: EUI-64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid(pub u64);

impl Guid {
    /// The port's GID in the subnet of `prefix` (IBTA vol. 1, 4.1.1).
    pub const fn gid(self, prefix: u64) -> Gid {
        Gid(((prefix as u128) << 64 | self.0 as u128).to_be_bytes())
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guid({self})")
    }
}

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A partition key: the top bit tells full from limited membership.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PartitionKey(pub u16);

impl PartitionKey {
    /// The default partition, full member.
    pub const DEFAULT: Self = Self(0xffff);

    /// Whether two members may talk: equal partitions, and not both limited (IBTA vol. 1, 10.9.3).
    pub const fn matches(self, other: Self) -> bool {
        (self.0 ^ other.0) & 0x7fff == 0 && (self.0 | other.0) & 0x8000 != 0
    }
}

impl Default for PartitionKey {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A traffic class, 0–7: what PFC pauses, what a switch queues by. On InfiniBand, a service level's virtual lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Class(u8);

impl Class {
    /// How many classes Ethernet's priorities tell apart.
    pub const COUNT: usize = 8;

    /// Class `index`, 0–7.
    ///
    /// # Panics
    /// If `index` is 8 or more.
    pub const fn new(index: u8) -> Self {
        assert!(index < 8, "a traffic class is 0 to 7");
        Self(index)
    }

    /// Class `index`, if there is one.
    pub const fn checked(index: u8) -> Option<Self> {
        if index < 8 { Some(Self(index)) } else { None }
    }

    /// 0–7.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// 0–7, as the wire carries it.
    pub const fn as_u8(self) -> u8 {
        self.0
    }

    /// All eight, in order.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..8).map(Self)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A set of traffic classes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ClassMask(pub u8);

impl ClassMask {
    /// No class.
    pub const NONE: Self = Self(0);
    /// All eight.
    pub const ALL: Self = Self(0xff);

    /// The set of one class.
    pub const fn of(class: Class) -> Self {
        Self(1 << class.0)
    }

    /// Whether `class` is in the set.
    pub const fn contains(self, class: Class) -> bool {
        self.0 & (1 << class.0) != 0
    }

    /// The set with `class`.
    #[must_use]
    pub const fn with(self, class: Class) -> Self {
        Self(self.0 | 1 << class.0)
    }

    /// The set without `class`.
    #[must_use]
    pub const fn without(self, class: Class) -> Self {
        Self(self.0 & !(1 << class.0))
    }

    /// What is in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is in the set and not in `other`.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its classes, in order.
    pub fn iter(self) -> impl Iterator<Item = Class> {
        Class::all().filter(move |class| self.contains(*class))
    }
}

impl fmt::Debug for ClassMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(|class| class.0))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gids_of_addresses() {
        let gid = Gid::from(Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(gid.to_string(), "::ffff:10.0.0.1");
        assert_eq!(gid.to_ip(), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
    }

    #[test]
    fn guids_and_lids() {
        let guid = Guid(0x0002_c903_0000_0001);
        assert_eq!(guid.to_string(), "0x0002c90300000001");
        let gid = guid.gid(0xfe80_0000_0000_0000);
        assert_eq!(gid.to_string(), "fe80::2:c903:0:1");
        let kinds = |lid: Lid| (lid.is_unicast(), lid.is_multicast());
        assert_eq!(
            [0, 1, 0xbfff, 0xc000, 0xfffe, 0xffff].map(|lid| kinds(Lid(lid))),
            [
                (false, false),
                (true, false),
                (true, false),
                (false, true),
                (false, true),
                (false, false)
            ]
        );
    }

    #[test]
    fn limited_members_do_not_talk() {
        assert!(PartitionKey(0x8001).matches(PartitionKey(0x0001)));
        assert!(!PartitionKey(0x0001).matches(PartitionKey(0x0001)));
        assert!(!PartitionKey(0x8001).matches(PartitionKey(0x8002)));
    }

    #[test]
    fn masks() {
        let mask = ClassMask::NONE.with(Class::new(3)).with(Class::new(6));
        assert_eq!(mask.iter().map(Class::index).collect::<Vec<_>>(), [3, 6]);
        assert!(
            mask.without(Class::new(3))
                .minus(ClassMask::of(Class::new(6)))
                .is_empty()
        );
    }
}
