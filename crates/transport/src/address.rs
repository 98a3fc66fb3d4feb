//! Where a packet goes: the address vector, carried with a queue pair or with a datagram.

use softfabric_units::{Class, Gid};

/// How to reach a port (IBTA vol. 1, 11.2.2.1). Small and `Copy`: it travels with every packet handed to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AddressVector {
    /// The port's address.
    pub gid: Gid,
    /// Belongs to the driver, carried untouched: a port number in the simulator, a cached socket address elsewhere.
    pub driver: u64,
    /// The IPv6 flow label, 20 bits.
    pub flow_label: u32,
    /// The UDP source port, which routes by hash spread over.
    pub source_port: u16,
    /// The IP traffic class: six bits of DSCP over two bits of ECN.
    pub traffic_class: u8,
    /// The IP hop limit.
    pub hop_limit: u8,
    /// The traffic class of the link: Ethernet priority, or InfiniBand service level.
    pub class: Class,
}

impl AddressVector {
    /// ECT(0): the sender obeys congestion notifications (RFC 3168 5).
    pub const ECT0: u8 = 0b10;

    /// Whether packets on this path may be marked instead of dropped.
    pub const fn ecn_capable(&self) -> bool {
        self.traffic_class & 0b11 != 0
    }
}
