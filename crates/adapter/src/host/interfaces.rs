//! Network interfaces by the C library, which asks the kernel about this network namespace. `/sys` may show another.

#![allow(unsafe_code, reason = "walks a list that the C library made")]

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use softfabric_units::MacAddress;

/// One interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) up: bool,
    pub(super) loopback: bool,
    pub(super) mtu: u32,
    pub(super) mac: Option<MacAddress>,
    pub(super) addresses: Vec<IpAddr>,
}

/// What the C library's list is freed by.
struct List(*mut libc::ifaddrs);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: `getifaddrs` made the list, and nothing points into it any more.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

/// All interfaces of this network namespace.
pub(super) fn list() -> io::Result<Vec<Interface>> {
    let mut first = std::ptr::null_mut();
    // SAFETY: the list's head is written to `first`.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let list = List(first);
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut next = list.0;
    while !next.is_null() {
        // SAFETY: an entry of the list, which lives until the end of this function.
        let entry = unsafe { &*next };
        next = entry.ifa_next;
        if entry.ifa_name.is_null() {
            continue;
        }
        // SAFETY: a name that the C library ended with a zero.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        let name = name.to_string_lossy();
        // An address may have a label of its own, such as `eth0:1`.
        let name = name.split(':').next().unwrap_or_default();
        let flags = entry.ifa_flags as i32;
        let known = interfaces.iter().position(|known| known.name == name);
        let at = known.unwrap_or(interfaces.len());
        if known.is_none() {
            interfaces.push(Interface {
                name: name.to_owned(),
                index: 0,
                up: flags & libc::IFF_UP != 0,
                loopback: flags & libc::IFF_LOOPBACK != 0,
                mtu: 0,
                mac: None,
                addresses: Vec::new(),
            });
        }
        read_address(&mut interfaces[at], entry.ifa_addr);
    }
    drop(list);
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    for interface in &mut interfaces {
        interface.mtu = mtu(&socket, &interface.name)?;
        if interface.index == 0 {
            interface.index = rustix::net::netdevice::name_to_index(&socket, &interface.name)?;
        }
    }
    Ok(interfaces)
}

fn read_address(interface: &mut Interface, address: *const libc::sockaddr) {
    if address.is_null() {
        return;
    }
    // SAFETY: an address of the list; its family says which type it has.
    unsafe {
        match i32::from((*address).sa_family) {
            libc::AF_INET => {
                let v4 = &*address.cast::<libc::sockaddr_in>();
                let bytes = v4.sin_addr.s_addr.to_ne_bytes();
                interface.addresses.push(IpAddr::V4(Ipv4Addr::from(bytes)));
            }
            libc::AF_INET6 => {
                let v6 = &*address.cast::<libc::sockaddr_in6>();
                let bytes = v6.sin6_addr.s6_addr;
                interface.addresses.push(IpAddr::V6(Ipv6Addr::from(bytes)));
            }
            libc::AF_PACKET => {
                let link = &*address.cast::<libc::sockaddr_ll>();
                interface.index = link.sll_ifindex as u32;
                if link.sll_halen == 6 {
                    let [a, b, c, d, e, f, ..] = link.sll_addr;
                    interface.mac = Some(MacAddress([a, b, c, d, e, f]));
                }
            }
            _ => {}
        }
    }
}

fn mtu(socket: &impl AsRawFd, name: &str) -> io::Result<u32> {
    // SAFETY: all zeros are a request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the request has a name, and the kernel writes the MTU into it.
    unsafe {
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &mut request) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(u32::try_from(request.ifr_ifru.ifru_mtu).unwrap_or(0))
    }
}
