//! A socket on UDP port 4791: options, and batches of datagrams in and out.
//!
//! ```text
//! Outgoing {address, class, segment, bytes} ──sendmmsg──►  kernel splits into segments
//! Received {addresses, class, segment, bytes} ◄─recvmmsg── kernel has merged segments
//! ```

#![allow(
    unsafe_code,
    reason = "batched messages with control data have no safe interface"
)]

use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use softfabric_wire::udp::ROCE_PORT;

use crate::nic::Path;

/// The address family of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) const fn of(address: &IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

/// How many datagrams one system call moves.
pub(crate) const BATCH: usize = 32;
/// The longest datagram.
const DATAGRAM: usize = 1 << 16;
/// Kernel memory that is asked for, in each direction; the kernel gives what its limits allow.
const BUFFER: libc::c_int = 4 << 20;

/// A socket that is bound to the port on all addresses of its family.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    family: Family,
}

/// `linux/udp.h`: datagrams over IPv6 may come without a checksum.
const UDP_NO_CHECK6_RX: libc::c_int = 102;

impl Socket {
    /// Opens the port, and shares it with others of the same user who open it so too.
    pub(crate) fn open(family: Family) -> io::Result<Self> {
        let domain = match family {
            Family::V4 => libc::AF_INET,
            Family::V6 => libc::AF_INET6,
        };
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: makes a descriptor, which nobody else owns.
        let fd = unsafe {
            let fd = libc::socket(domain, kind, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let socket = Self { fd, family };
        socket.configure()?;
        socket.bind()?;
        Ok(socket)
    }

    fn configure(&self) -> io::Result<()> {
        use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_UDP, SOL_SOCKET};
        self.set(SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        match self.family {
            Family::V4 => {
                // DF and identification 0: the ICRC covers both.
                self.set(IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)?;
                self.set(IPPROTO_IP, libc::IP_PKTINFO, 1)?;
                self.set(IPPROTO_IP, libc::IP_RECVTOS, 1)?;
                self.set(IPPROTO_IP, libc::IP_RECVTTL, 1)?;
                self.set(IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)?;
            }
            Family::V6 => {
                self.set(IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
                self.set(
                    IPPROTO_IPV6,
                    libc::IPV6_MTU_DISCOVER,
                    libc::IPV6_PMTUDISC_DO,
                )?;
                self.set(IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
                self.set(IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
                self.set(IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1)?;
                // The ICRC protects what the checksum would: Linux's soft-RoCE sends none.
                self.set(IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)?;
                // Kernels before 4.20 have no such option and show all groups.
                let _ = self.set(IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL, 0);
            }
        }
        // Kernels before 5.0 merge nothing, and others may be told not to.
        let _ = self.set(IPPROTO_UDP, libc::UDP_GRO, 1);
        for (force, ask) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            if self.set(SOL_SOCKET, force, BUFFER).is_err() {
                self.set(SOL_SOCKET, ask, BUFFER)?;
            }
        }
        Ok(())
    }

    fn bind(&self) -> io::Result<()> {
        let any = match self.family {
            Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let (address, length) = socket_address(any, ROCE_PORT, 0);
        // SAFETY: an address of that length.
        let result =
            unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), length) };
        check(result as isize).map(drop)
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        // SAFETY: the option's value is an int.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        check(result as isize).map(drop)
    }

    /// How many bytes of the kernel's memory what has arrived may take.
    pub(crate) fn room(&self) -> usize {
        rustix::net::sockopt::socket_recv_buffer_size(&self.fd).unwrap_or(0)
    }

    /// Steers datagrams among all sockets of the port: the program's result is a socket's place.
    pub(crate) fn steer(&self, program: &[libc::sock_filter]) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: u16::try_from(program.len()).unwrap_or(u16::MAX),
            filter: program.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel reads the program's instructions, and does not change them.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_REUSEPORT_CBPF,
                (&raw const program).cast(),
                size_of::<libc::sock_fprog>() as libc::socklen_t,
            )
        };
        check(result as isize).map(drop)
    }

    /// Sends a probe to the port on this host. If it cannot, nobody answers.
    pub(crate) fn send_to_itself(&self, bytes: &[u8]) {
        use rustix::net::{SendFlags, sendto};
        let here = match self.family {
            Family::V4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Family::V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        let here = std::net::SocketAddr::new(here, ROCE_PORT);
        let _ = sendto(&self.fd, bytes, SendFlags::DONTWAIT, &here);
    }

    /// Joins a multicast group on an interface, or leaves it.
    pub(crate) fn group(&self, group: IpAddr, interface: u32, join: bool) -> io::Result<()> {
        let fd = self.fd.as_raw_fd();
        let result = match group {
            IpAddr::V4(group) => {
                let request = libc::ip_mreqn {
                    imr_multiaddr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(group.octets()),
                    },
                    imr_address: libc::in_addr { s_addr: 0 },
                    imr_ifindex: interface as libc::c_int,
                };
                let option = if join {
                    libc::IP_ADD_MEMBERSHIP
                } else {
                    libc::IP_DROP_MEMBERSHIP
                };
                let length = size_of::<libc::ip_mreqn>() as libc::socklen_t;
                // SAFETY: the option's value is an `ip_mreqn`.
                unsafe {
                    libc::setsockopt(
                        fd,
                        libc::IPPROTO_IP,
                        option,
                        (&raw const request).cast(),
                        length,
                    )
                }
            }
            IpAddr::V6(group) => {
                let request = libc::ipv6_mreq {
                    ipv6mr_multiaddr: libc::in6_addr {
                        s6_addr: group.octets(),
                    },
                    ipv6mr_interface: interface,
                };
                let option = if join {
                    libc::IPV6_ADD_MEMBERSHIP
                } else {
                    libc::IPV6_DROP_MEMBERSHIP
                };
                let length = size_of::<libc::ipv6_mreq>() as libc::socklen_t;
                // SAFETY: the option's value is an `ipv6_mreq`.
                unsafe {
                    libc::setsockopt(
                        fd,
                        libc::IPPROTO_IPV6,
                        option,
                        (&raw const request).cast(),
                        length,
                    )
                }
            }
        };
        check(result as isize).map(drop)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Datagrams to send to one place: `bytes` are segments of `segment` bytes, the last may be shorter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) path: &'a Path,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) segment: usize,
    pub(crate) bytes: &'a [u8],
}

/// Datagrams that arrived from one place, merged: segments of `segment` bytes, the last may be shorter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) source: IpAddr,
    pub(crate) source_port: u16,
    pub(crate) destination: IpAddr,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) segment: usize,
    pub(crate) bytes: &'a [u8],
}

/// Room for control messages: packet information, class, hop limit and segment size, each with its header.
const CONTROL: usize = 160;

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

/// Memory for batches of one direction, used again and again.
pub(crate) struct Batches {
    /// Room for what arrives.
    bytes: Box<[u8]>,
    messages: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
    addresses: Box<[libc::sockaddr_storage]>,
    controls: Box<[Control]>,
    /// How many messages have to be made ready to receive again.
    stale: usize,
}

// SAFETY: the pointers in the messages point to memory of this very object, or are set anew at each use.
unsafe impl Send for Batches {}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}

impl Batches {
    pub(crate) fn to_send() -> Self {
        Self::with_bytes(0)
    }

    pub(crate) fn to_receive() -> Self {
        // Pages are only taken once datagrams are that long and that many.
        Self::with_bytes(BATCH * DATAGRAM)
    }

    fn with_bytes(bytes: usize) -> Self {
        // SAFETY: zeros are valid in all of these plain structures.
        let (message, vector, address) = unsafe { (zeroed(), zeroed(), zeroed()) };
        Self {
            bytes: vec![0; bytes].into_boxed_slice(),
            messages: vec![message; BATCH].into_boxed_slice(),
            vectors: vec![vector; BATCH].into_boxed_slice(),
            addresses: vec![address; BATCH].into_boxed_slice(),
            controls: vec![Control([0; CONTROL]); BATCH].into_boxed_slice(),
            stale: BATCH,
        }
    }

    /// Sends as many of `outgoing` as the socket takes, up to a batch, and returns how many that were.
    ///
    /// # Errors
    /// If the first cannot be sent; `WouldBlock` if the socket's buffer is full.
    pub(crate) fn send<'a>(
        &mut self,
        socket: &Socket,
        outgoing: impl Iterator<Item = Outgoing<'a>>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for (at, out) in outgoing.take(BATCH).enumerate() {
            let (address, length) = socket_address(out.path.destination, ROCE_PORT, out.path.scope);
            self.addresses[at] = address;
            self.vectors[at] = libc::iovec {
                iov_base: out.bytes.as_ptr().cast_mut().cast(),
                iov_len: out.bytes.len(),
            };
            let mut control = ControlWriter::new(&mut self.controls[at]);
            control.write_all(&out);
            let control_length = control.length;
            let header = &mut self.messages[at].msg_hdr;
            header.msg_name = (&raw mut self.addresses[at]).cast();
            header.msg_namelen = length;
            header.msg_iov = &raw mut self.vectors[at];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[at]).cast();
            header.msg_controllen = control_length as _;
            header.msg_flags = 0;
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: `count` messages were filled in, all of their memory lives across the call.
        let sent = unsafe {
            libc::sendmmsg(
                socket.fd.as_raw_fd(),
                self.messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        check(sent as isize)
    }

    /// Receives up to a batch of datagrams and gives each to `take`. Returns how many there were; a full batch may not be
    /// all.
    ///
    /// # Errors
    /// If the socket fails. No datagrams are no failure.
    ///
    /// # Panics
    /// If this was made to send.
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        mut take: impl FnMut(Received<'_>),
    ) -> io::Result<usize> {
        for at in 0..std::mem::take(&mut self.stale) {
            self.vectors[at] = libc::iovec {
                iov_base: (&raw mut self.bytes[at * DATAGRAM]).cast(),
                iov_len: DATAGRAM,
            };
            let header = &mut self.messages[at].msg_hdr;
            header.msg_name = (&raw mut self.addresses[at]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_iov = &raw mut self.vectors[at];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[at]).cast();
            header.msg_controllen = CONTROL as _;
            header.msg_flags = 0;
        }
        // SAFETY: all messages were filled in with memory of this object.
        let received = unsafe {
            libc::recvmmsg(
                socket.fd.as_raw_fd(),
                self.messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let received = match check(received as isize) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            result => result?,
        };
        self.stale = received;
        for at in 0..received {
            let length = self.messages[at].msg_len as usize;
            let bytes = &self.bytes[at * DATAGRAM..][..length.min(DATAGRAM)];
            let Some((source, source_port)) = ip_address(&self.addresses[at]) else {
                continue;
            };
            let mut received = Received {
                source,
                source_port,
                destination: source,
                traffic_class: 0,
                hop_limit: 0,
                segment: bytes.len(),
                bytes,
            };
            if self.read_controls(at, &mut received) {
                take(received);
            }
        }
        Ok(received)
    }

    /// Reads what the kernel says about message `at`; false where it does not say the destination.
    fn read_controls(&self, at: usize, received: &mut Received<'_>) -> bool {
        let header = &self.messages[at].msg_hdr;
        let mut found = false;
        // SAFETY: the kernel has written `msg_controllen` bytes of control messages into the buffer that the header
        // points to; these macros walk them.
        unsafe {
            let mut next = libc::CMSG_FIRSTHDR(header);
            while !next.is_null() {
                let data = libc::CMSG_DATA(next);
                match ((*next).cmsg_level, (*next).cmsg_type) {
                    (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                        let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                        let bytes = info.ipi_addr.s_addr.to_ne_bytes();
                        received.destination = IpAddr::V4(Ipv4Addr::from(bytes));
                        found = true;
                    }
                    (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                        let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                        received.destination = IpAddr::V6(info.ipi6_addr.s6_addr.into());
                        found = true;
                    }
                    (libc::IPPROTO_IP, libc::IP_TOS) => received.traffic_class = data.read(),
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        received.traffic_class = data.cast::<libc::c_int>().read_unaligned() as u8;
                    }
                    (libc::IPPROTO_IP, libc::IP_TTL)
                    | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                        received.hop_limit = data.cast::<libc::c_int>().read_unaligned() as u8;
                    }
                    (libc::IPPROTO_UDP, libc::UDP_GRO) => {
                        let size = data.cast::<libc::c_int>().read_unaligned();
                        if size > 0 {
                            received.segment = size as usize;
                        }
                    }
                    _ => {}
                }
                next = libc::CMSG_NXTHDR(header, next);
            }
        }
        found
    }
}

/// Appends control messages to a buffer.
struct ControlWriter<'a> {
    buffer: &'a mut Control,
    length: usize,
}

impl<'a> ControlWriter<'a> {
    fn new(buffer: &'a mut Control) -> Self {
        Self { buffer, length: 0 }
    }

    /// Source address, class, hop limit, and segment size if there are several.
    fn write_all(&mut self, out: &Outgoing<'_>) {
        let class = libc::c_int::from(out.traffic_class);
        let hops = libc::c_int::from(out.hop_limit);
        match out.path.source {
            IpAddr::V4(source) => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: out.path.scope as libc::c_int,
                    ipi_spec_dst: libc::in_addr {
                        s_addr: u32::from_ne_bytes(source.octets()),
                    },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                self.write(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
                if class != 0 {
                    self.write(libc::IPPROTO_IP, libc::IP_TOS, class);
                }
                if hops != DEFAULT_HOPS {
                    self.write(libc::IPPROTO_IP, libc::IP_TTL, hops);
                }
            }
            IpAddr::V6(source) => {
                let info = libc::in6_pktinfo {
                    ipi6_addr: libc::in6_addr {
                        s6_addr: source.octets(),
                    },
                    ipi6_ifindex: out.path.scope,
                };
                self.write(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
                if class != 0 {
                    self.write(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class);
                }
                if hops != DEFAULT_HOPS {
                    self.write(libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, hops);
                }
            }
        }
        if out.bytes.len() > out.segment {
            self.write(libc::IPPROTO_UDP, libc::UDP_SEGMENT, out.segment as u16);
        }
    }

    fn write<T>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) {
        // SAFETY: computes lengths only.
        let (length, space) = unsafe {
            let size = size_of::<T>() as libc::c_uint;
            (libc::CMSG_LEN(size), libc::CMSG_SPACE(size) as usize)
        };
        assert!(
            self.length + space <= CONTROL,
            "the buffer has room for all control messages at once"
        );
        // SAFETY: header and value fit the buffer, which is aligned as headers are, as `length` is a sum of spaces.
        unsafe {
            let header = self
                .buffer
                .0
                .as_mut_ptr()
                .add(self.length)
                .cast::<libc::cmsghdr>();
            let mut filled: libc::cmsghdr = MaybeUninit::zeroed().assume_init();
            filled.cmsg_level = level;
            filled.cmsg_type = kind;
            filled.cmsg_len = length as _;
            header.write(filled);
            libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        }
        self.length += space;
    }
}

/// What the kernel puts into packets without being told.
const DEFAULT_HOPS: libc::c_int = 64;

/// A socket address and its length.
fn socket_address(
    address: IpAddr,
    port: u16,
    scope: u32,
) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: zeros are a valid address, and each kind of address fits the storage and is aligned in it.
    unsafe {
        let mut storage: libc::sockaddr_storage = zeroed();
        let length = match address {
            IpAddr::V4(v4) => {
                let address = &mut *(&raw mut storage).cast::<libc::sockaddr_in>();
                address.sin_family = libc::AF_INET as libc::sa_family_t;
                address.sin_port = port.to_be();
                address.sin_addr.s_addr = u32::from_ne_bytes(v4.octets());
                size_of::<libc::sockaddr_in>()
            }
            IpAddr::V6(v6) => {
                let address = &mut *(&raw mut storage).cast::<libc::sockaddr_in6>();
                address.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                address.sin6_port = port.to_be();
                address.sin6_addr.s6_addr = v6.octets();
                address.sin6_scope_id = scope;
                size_of::<libc::sockaddr_in6>()
            }
        };
        (storage, length as libc::socklen_t)
    }
}

fn ip_address(storage: &libc::sockaddr_storage) -> Option<(IpAddr, u16)> {
    // SAFETY: the family says which kind of address the storage holds.
    unsafe {
        match i32::from(storage.ss_family) {
            libc::AF_INET => {
                let address = &*(&raw const *storage).cast::<libc::sockaddr_in>();
                let bytes = address.sin_addr.s_addr.to_ne_bytes();
                Some((IpAddr::V4(bytes.into()), u16::from_be(address.sin_port)))
            }
            libc::AF_INET6 => {
                let address = &*(&raw const *storage).cast::<libc::sockaddr_in6>();
                let bytes = address.sin6_addr.s6_addr;
                Some((IpAddr::V6(bytes.into()), u16::from_be(address.sin6_port)))
            }
            _ => None,
        }
    }
}

fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
