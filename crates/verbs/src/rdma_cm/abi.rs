//! What `librdmacm` writes to the kernel's device and what it gets back (`<rdma/rdma_user_cm.h>`, version 4).
//!
//! ```text
//! write(fd, Header | command) ──► the command's length, and an answer at the address `response` that the command names
//! ```
//!
//! Invariant: the structures hold integers only and have no gaps, so any bytes are one of them.
#![allow(unsafe_code, reason = "commands and answers are the program's memory")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use crate::abi::{ib_user_path_rec, ib_uverbs_ah_attr, ib_uverbs_qp_attr};
use crate::errno::Errno;

/// Integers without gaps.
///
/// # Safety
/// The type is `repr(C)`, every bit pattern is a value, and it has no padding.
pub(super) unsafe trait Plain: Copy {}

/// How many bytes a command's private data have room for.
pub(super) const PRIVATE_DATA: usize = 256;

/// The events of `<rdma/rdma_cma.h>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum EventKind {
    AddressResolved = 0,
    AddressError = 1,
    RouteResolved = 2,
    ConnectRequest = 4,
    ConnectResponse = 5,
    Unreachable = 7,
    Rejected = 8,
    Established = 9,
    Disconnected = 10,
    MulticastJoin = 12,
    TimewaitExit = 15,
}

macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident $size:literal { $($field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub(super) struct $name {
                $(pub(super) $field: $type,)*
            }
            const _: () = assert!(size_of::<$name>() == $size);
            // SAFETY: integers and arrays of them; the size above is the sum of the fields'.
            unsafe impl Plain for $name {}
            const _: () = assert!($size == 0 $(+ size_of::<$type>())*);
        )*
    };
}

/// An IPv6 socket address, or an IPv4 one in its first bytes.
pub(super) type ShortAddress = [u8; 28];
/// Any socket address.
pub(super) type LongAddress = [u8; 128];

structures! {
    /// Before every command.
    Header 8 {
        command: u32,
        input: u16,
        output: u16,
    }
    /// Makes an identifier.
    CreateId 24 {
        user: u64,
        response: u64,
        space: u16,
        qp_type: u8,
        reserved: [u8; 5],
    }
    /// Ends an identifier, or a membership of a group.
    DestroyId 16 {
        response: u64,
        id: u32,
        reserved: u32,
    }
    /// Gives an identifier an address.
    BindIp 40 {
        response: u64,
        address: ShortAddress,
        id: u32,
    }
    /// The same for addresses of any family.
    Bind 136 {
        id: u32,
        length: u16,
        reserved: u16,
        address: LongAddress,
    }
    /// Finds the way to an address.
    ResolveIp 64 {
        source: ShortAddress,
        destination: ShortAddress,
        id: u32,
        milliseconds: u32,
    }
    /// The same for addresses of any family.
    ResolveAddress 272 {
        id: u32,
        milliseconds: u32,
        source_length: u16,
        destination_length: u16,
        reserved: u32,
        source: LongAddress,
        destination: LongAddress,
    }
    /// Finds the route.
    ResolveRoute 8 {
        id: u32,
        milliseconds: u32,
    }
    /// Asks what an identifier is.
    Query 16 {
        response: u64,
        id: u32,
        option: u32,
    }
    /// What both sides of a connection say of themselves.
    Connection 272 {
        qpn: u32,
        qkey: u32,
        private_data: [u8; PRIVATE_DATA],
        private_data_length: u8,
        srq: u8,
        responder_resources: u8,
        initiator_depth: u8,
        flow_control: u8,
        retries: u8,
        rnr_retries: u8,
        valid: u8,
    }
    /// Asks for a connection.
    Connect 288 {
        connection: Connection,
        id: u32,
        reserved: u32,
        ece: [u32; 2],
    }
    /// Waits for requests.
    Listen 8 {
        id: u32,
        backlog: u32,
    }
    /// Accepts a request, or says that a reply is good.
    Accept 296 {
        user: u64,
        connection: Connection,
        id: u32,
        reserved: u32,
        ece: [u32; 2],
    }
    /// Refuses a request or a reply.
    Reject 264 {
        id: u32,
        private_data_length: u8,
        reason: u8,
        reserved: [u8; 2],
        private_data: [u8; PRIVATE_DATA],
    }
    /// Ends a connection.
    Disconnect 4 {
        id: u32,
    }
    /// Asks how to change a queue pair.
    InitQpAttributes 16 {
        response: u64,
        id: u32,
        state: u32,
    }
    /// Takes an event.
    GetEvent 8 {
        response: u64,
    }
    /// Changes an option.
    SetOption 24 {
        value: u64,
        id: u32,
        level: u32,
        name: u32,
        length: u32,
    }
    /// Tells of an event of the queue pair.
    Notify 8 {
        id: u32,
        event: u32,
    }
    /// Joins a multicast group.
    JoinIp 48 {
        response: u64,
        user: u64,
        address: ShortAddress,
        id: u32,
    }
    /// The same for addresses of any family.
    Join 152 {
        response: u64,
        user: u64,
        id: u32,
        length: u16,
        flags: u16,
        address: LongAddress,
    }
    /// Moves an identifier to another channel.
    Migrate 16 {
        response: u64,
        id: u32,
        descriptor: u32,
    }
    /// A number: the answer to what makes or ends something.
    Number 4 {
        value: u32,
    }
    /// An event.
    Event 336 {
        user: u64,
        id: u32,
        event: u32,
        status: u32,
        parameters: [u8; 304],
        reserved: u32,
        ece: [u32; 2],
    }
    /// What datagrams need.
    Datagram 304 {
        qpn: u32,
        qkey: u32,
        path: ib_uverbs_ah_attr,
        private_data: [u8; PRIVATE_DATA],
        private_data_length: u8,
        reserved: [u8; 7],
    }
    /// What an identifier is and where it leads.
    RouteAnswer 208 {
        guid: [u8; 8],
        paths: [ib_user_path_rec; 2],
        source: ShortAddress,
        destination: ShortAddress,
        path_count: u32,
        port: u8,
        reserved: [u8; 3],
        device: u32,
        reserved_2: u32,
    }
    /// What an identifier is.
    AddressAnswer 280 {
        guid: [u8; 8],
        port: u8,
        reserved: u8,
        partition: u16,
        source_length: u16,
        destination_length: u16,
        source: LongAddress,
        destination: LongAddress,
        device: u32,
        reserved_2: u32,
    }
    /// Where an identifier leads.
    PathAnswer 80 {
        count: u32,
        reserved: u32,
        flags: u32,
        reserved_2: u32,
        record: [u8; 64],
    }
}

// SAFETY: integers without gaps, as the layout's tests check.
unsafe impl Plain for ib_uverbs_qp_attr {}

/// A command's bytes as the structure that they begin with. What is missing at the end is zero: older programs leave out
/// what later versions have added.
pub(super) fn read<T: Plain>(bytes: &[u8]) -> T {
    let length = bytes.len().min(size_of::<T>());
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: `length` bytes are there on both sides, and any bytes are a value of a plain type.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast::<u8>(), length);
        value.assume_init()
    }
}

/// The bytes of a structure.
pub(super) fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: a plain type has no gaps: every byte of it is initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Writes as much of an answer as the program has room for to where the command says.
///
/// # Errors
/// `EFAULT` if that is nowhere.
///
/// # Safety
/// `response` is zero, or the address of `room` bytes of the program.
pub(super) unsafe fn respond<T: Plain>(response: u64, room: usize, value: &T) -> Result<(), Errno> {
    let into = std::ptr::with_exposed_provenance_mut::<u8>(response as usize);
    if into.is_null() {
        return Err(Errno::EFAULT);
    }
    let bytes = bytes_of(value);
    // SAFETY: as promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), into, bytes.len().min(room)) };
    Ok(())
}

/// The socket address that `bytes` hold; `None` for families other than IPv4 and IPv6.
pub(super) fn decode_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]);
    let port = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
    match i32::from(family) {
        libc::AF_INET => {
            let octets: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some(SocketAddr::from((Ipv4Addr::from(octets), port)))
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            let flow = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
            let scope = u32::from_ne_bytes(bytes.get(24..28)?.try_into().ok()?);
            let address = SocketAddrV6::new(Ipv6Addr::from(octets), port, flow, scope);
            Some(SocketAddr::V6(address))
        }
        _ => None,
    }
}

/// The address family that `bytes` name.
pub(super) fn family(bytes: &[u8]) -> i32 {
    match bytes {
        [low, high, ..] => i32::from(u16::from_ne_bytes([*low, *high])),
        _ => libc::AF_UNSPEC,
    }
}

/// Writes a socket address to the start of `N` bytes, zeros after; the length that counts.
pub(super) fn encode_address<const N: usize>(address: Option<SocketAddr>) -> ([u8; N], u16) {
    let mut bytes = [0; N];
    let Some(address) = address else {
        return (bytes, 0);
    };
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    let (family, length) = match address {
        SocketAddr::V4(v4) => {
            bytes[4..8].copy_from_slice(&v4.ip().octets());
            (libc::AF_INET, 16)
        }
        SocketAddr::V6(v6) => {
            bytes[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
            bytes[8..24].copy_from_slice(&v6.ip().octets());
            bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
            (libc::AF_INET6, 28)
        }
    };
    bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    (bytes, length)
}

/// A socket address of an IP address, with the scope that it needs.
pub(super) fn socket_address(ip: IpAddr, port: u16, scope: u32) -> SocketAddr {
    match ip {
        IpAddr::V4(v4) => SocketAddr::from((v4, port)),
        IpAddr::V6(v6) => SocketAddr::V6(SocketAddrV6::new(v6, port, 0, scope)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_back() {
        for text in ["192.0.2.1:7174", "[fd00::1]:7174"] {
            let address: SocketAddr = text.parse().unwrap();
            let (bytes, length) = encode_address::<28>(Some(address));
            assert_eq!(decode_address(&bytes[..usize::from(length)]), Some(address));
            assert_eq!(
                decode_address(&bytes[..usize::from(length) - 9]),
                None,
                "cut"
            );
        }
        let scoped = SocketAddr::V6(SocketAddrV6::new("fe80::1".parse().unwrap(), 1, 2, 3));
        let (bytes, _) = encode_address::<128>(Some(scoped));
        assert_eq!(decode_address(&bytes), Some(scoped));
        assert_eq!(decode_address(&[0; 128]), None);
        assert_eq!(encode_address::<28>(None), ([0; 28], 0));
    }

    #[test]
    fn short_commands_are_filled_up_with_zeros() {
        let listen: Listen = read(&[1, 0, 0, 0, 2, 0]);
        assert_eq!((listen.id, listen.backlog), (1, 2));
        let listen: Listen = read(&[1, 0, 0, 0, 2, 0, 0, 0, 9, 9, 9]);
        assert_eq!((listen.id, listen.backlog), (1, 2));
    }
}
