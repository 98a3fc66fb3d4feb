//! Which of the host's addresses leads to another: what the kernel's routing table says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use softfabric_adapter::DeviceInfo;

use super::abi::socket_address;
use crate::errno::Errno;

/// Some port: nothing is sent.
const ANY_PORT: u16 = 4791;

/// The address from which packets to `destination` leave, if the program has not chosen one.
///
/// # Errors
/// What a socket says that is connected there: `ENETUNREACH` without a route, `EADDRNOTAVAIL` if the chosen address is
/// not one of the host's.
pub(super) fn source(
    destination: SocketAddr,
    chosen: Option<SocketAddr>,
) -> Result<SocketAddr, Errno> {
    let scope = scope(destination);
    let from = match chosen {
        Some(chosen) => socket_address(chosen.ip(), 0, self::scope(chosen).max(scope)),
        None if destination.is_ipv4() => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        None => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let errno = |error: std::io::Error| Errno::of(&error);
    let socket = UdpSocket::bind(from).map_err(errno)?;
    let to = socket_address(destination.ip(), ANY_PORT, scope);
    if let Err(error) = socket.connect(to) {
        // Without a route for groups, a chosen address still says which way.
        return match chosen {
            Some(chosen) if destination.ip().is_multicast() => Ok(chosen),
            _ => Err(errno(error)),
        };
    }
    socket.local_addr().map_err(errno)
}

/// Where a request to "any address" goes: to this host.
pub(super) fn loopback(destination: SocketAddr, chosen: Option<SocketAddr>) -> SocketAddr {
    if !destination.ip().is_unspecified() {
        return destination;
    }
    let ip = match (chosen, destination) {
        (Some(chosen), _) => chosen.ip(),
        (None, SocketAddr::V4(_)) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        (None, SocketAddr::V6(_)) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    socket_address(ip, destination.port(), chosen.map_or(0, scope))
}

/// Whether an address belongs to no device in particular: any address, and this host's own name for itself. Programs that
/// look for a device by such an address (libfabric) are free to take another than the loopback interface's.
pub(super) fn is_any_device(address: SocketAddr) -> bool {
    address.ip().is_unspecified() || address.ip().is_loopback()
}

/// The interface that a link-local address belongs to; 0 where the address says it itself.
pub(super) fn scope(address: SocketAddr) -> u32 {
    match address {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(v6) => v6.scope_id(),
    }
}

/// Whether an address is one of the host's.
pub(super) fn is_local(address: SocketAddr) -> bool {
    UdpSocket::bind(socket_address(address.ip(), 0, scope(address))).is_ok()
}

/// The device that has `address`, and the address's place in its table.
pub(super) fn owner(devices: &[DeviceInfo], address: SocketAddr) -> Option<(&DeviceInfo, usize)> {
    let scope = scope(address);
    devices.iter().find_map(|device| {
        if scope != 0 && device.interface != scope {
            return None;
        }
        let entry = device.gids.iter().find(|entry| entry.ip == address.ip())?;
        Some((device, entry.index))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_host_leads_to_itself() {
        let to = address("127.0.0.1:7");
        assert_eq!(source(to, None).unwrap().ip(), to.ip());
        assert_eq!(source(to, Some(to)).unwrap().ip(), to.ip());
        let elsewhere = address("192.0.2.77:0");
        assert_eq!(source(to, Some(elsewhere)), Err(Errno::EADDRNOTAVAIL));
    }

    #[test]
    fn this_host_is_no_device() {
        for text in [
            "127.0.0.1:7",
            "127.8.0.1:7",
            "[::1]:7",
            "0.0.0.0:7",
            "[::]:7",
        ] {
            assert!(is_any_device(address(text)), "{text}");
        }
        for text in ["10.0.0.1:7", "[fe80::1]:7", "[fd00::1]:7"] {
            assert!(!is_any_device(address(text)), "{text}");
        }
    }

    #[test]
    fn any_address_is_this_host() {
        let any = address("0.0.0.0:7");
        assert_eq!(loopback(any, None), address("127.0.0.1:7"));
        assert_eq!(
            loopback(any, Some(address("10.0.0.1:0"))),
            address("10.0.0.1:7")
        );
        assert_eq!(loopback(address("[::]:7"), None), address("[::1]:7"));
        assert_eq!(loopback(address("10.0.0.2:7"), None), address("10.0.0.2:7"));
    }
}
