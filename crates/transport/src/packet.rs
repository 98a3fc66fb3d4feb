//! What passes between the device and its driver.

use softfabric_units::{Class, Gid, Qpn};
use softfabric_wire::rdma::TransportHeader;

use crate::address::AddressVector;

/// A packet to send, as [`Device::poll_transmit`](crate::Device::poll_transmit) yields it.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<P> {
    /// The transport headers; destination QP, PSN and pad are filled in.
    pub header: TransportHeader,
    /// The payload: nothing in a simulation, bytes or a gather list elsewhere.
    pub payload: P,
    /// The payload's length in bytes, without pad.
    pub payload_length: u32,
    /// The traffic class that the packet leaves in.
    pub class: Class,
    /// Where it goes.
    pub path: AddressVector,
    /// Whether switches may mark it.
    pub ecn_capable: bool,
    /// The queue pair that sends it.
    pub qp: Qpn,
}

/// A packet that arrived, for [`Device::handle_packet`](crate::Device::handle_packet). Its ICRC has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a, P> {
    /// The transport headers.
    pub header: &'a TransportHeader,
    /// The payload.
    pub payload: P,
    /// The payload's length in bytes, without pad.
    pub payload_length: u32,
    /// Whether a switch marked it: CE, or FECN on InfiniBand.
    pub congestion: bool,
    /// The path back to the sender; answers to datagrams and notifications use it. Connected queue pairs have their own,
    /// and drop what comes from another address: the GID here has to be the one that the packet came from.
    pub source: &'a AddressVector,
    /// The address that the packet was sent to, where the driver knows it: multicast datagrams need it.
    pub destination: Option<&'a Gid>,
    /// The 40 bytes that a datagram's receiver finds before the payload; `None` leaves zeros there.
    pub grh: Option<&'a [u8; 40]>,
}
