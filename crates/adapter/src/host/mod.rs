//! The host's network interfaces, and the RDMA devices that they become.
//!
//! ```text
//! eth0 (2)  192.0.2.2, fd00::2 ──► softfabric0   gid 0 ::ffff:192.0.2.2, gid 1 fd00::2, …
//! eth1 (3)  10.0.0.1           ──► softfabric1
//! lo   (1)  127.0.0.1, ::1     ──► softfabric2    after all others
//! ```
//!
//! An interface is a device if it is up and has an address. Devices are numbered in the order of the interfaces'
//! indices, so every process of a network namespace sees the same ones.

mod interfaces;

use std::io;
use std::net::{IpAddr, Ipv6Addr};

use softfabric_transport::Mtu;
use softfabric_units::{Gid, MacAddress};

use crate::settings::Settings;
use interfaces::Interface;

/// A device that can be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceInfo {
    /// Its place in the list.
    pub index: usize,
    /// Its name: `softfabric0`.
    pub name: String,
    /// The network interface behind it.
    pub netdev: String,
    /// The interface's index in this network namespace.
    pub interface: u32,
    /// The interface's Ethernet address; a made-up one where it has none.
    pub mac: MacAddress,
    /// The node and port GUID, in network order: the EUI-64 of the Ethernet address.
    pub guid: [u8; 8],
    /// The interface's MTU in bytes.
    pub netdev_mtu: u32,
    /// The largest payload of a packet that the interface carries.
    pub mtu: Mtu,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// Its addresses.
    pub gids: Vec<GidEntry>,
}

/// An entry of a device's table of GIDs. All are RoCE v2.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GidEntry {
    /// Its place in the table.
    pub index: usize,
    /// The identifier.
    pub gid: Gid,
    /// The address that it stands for.
    pub ip: IpAddr,
    /// The network interface that has the address.
    pub netdev: String,
}

/// Why devices could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The kernel did not tell.
    #[error("the network interfaces cannot be listed: {0}")]
    Interfaces(#[from] io::Error),
    /// A chosen interface is none.
    #[error(
        "there is no usable network interface `{found}`: it must be up and have an address (usable: {usable})"
    )]
    NoInterface {
        /// The name.
        found: String,
        /// Those that there are.
        usable: String,
    },
}

/// The devices of this network namespace that `settings` allow.
///
/// # Errors
/// If the interfaces cannot be read, or the settings name one that cannot be used.
pub fn devices(settings: &Settings) -> Result<Vec<DeviceInfo>, HostError> {
    let all = from_interfaces(interfaces::list()?);
    for wanted in &settings.interfaces {
        if !all.iter().any(|device| device.netdev == *wanted) {
            let usable: Vec<_> = all.iter().map(|device| device.netdev.as_str()).collect();
            return Err(HostError::NoInterface {
                found: wanted.clone(),
                usable: if usable.is_empty() {
                    "none".to_owned()
                } else {
                    usable.join(", ")
                },
            });
        }
    }
    let chosen = |device: &DeviceInfo| {
        settings.interfaces.is_empty() || settings.interfaces.contains(&device.netdev)
    };
    Ok(all.into_iter().filter(chosen).collect())
}

/// All addresses of this network namespace.
pub(crate) fn addresses() -> io::Result<Vec<IpAddr>> {
    let all = interfaces::list()?;
    Ok(all
        .into_iter()
        .flat_map(|interface| interface.addresses)
        .collect())
}

fn from_interfaces(mut all: Vec<Interface>) -> Vec<DeviceInfo> {
    all.retain(|interface| interface.up && !interface.addresses.is_empty());
    all.sort_by_key(|interface| (interface.loopback, interface.index));
    let devices = all.into_iter().enumerate();
    devices
        .map(|(index, interface)| device(index, interface))
        .collect()
}

fn device(index: usize, mut interface: Interface) -> DeviceInfo {
    // IPv4 first, then routable IPv6, then link-local: programs take the first that suits them.
    interface.addresses.sort_by_key(|address| match address {
        IpAddr::V4(_) => 0,
        IpAddr::V6(v6) if !is_link_local(v6) => 1,
        IpAddr::V6(_) => 2,
    });
    let mac = match interface.mac {
        Some(mac) if mac != MacAddress([0; 6]) => mac,
        // Locally administered: "sf" and the interface's number.
        _ => {
            let [a, b, c, d] = interface.index.to_be_bytes();
            MacAddress([0x02, b's' ^ a, b'f' ^ b, 0, c, d])
        }
    };
    let netdev = interface.name;
    let gids = interface.addresses.iter().enumerate();
    DeviceInfo {
        index,
        name: format!("softfabric{index}"),
        interface: interface.index,
        mac,
        guid: eui64(mac),
        netdev_mtu: interface.mtu,
        mtu: largest_payload(interface.mtu),
        loopback: interface.loopback,
        gids: gids
            .map(|(index, ip)| GidEntry {
                index,
                gid: Gid::from_ip(*ip),
                ip: *ip,
                netdev: netdev.clone(),
            })
            .collect(),
        netdev,
    }
}

pub(crate) fn is_link_local(address: &Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

/// RFC 4291, appendix A.
fn eui64(MacAddress([a, b, c, d, e, f]): MacAddress) -> [u8; 8] {
    [a ^ 0x02, b, c, 0xff, 0xfe, d, e, f]
}

/// The largest standard payload that fits an interface together with the longest headers.
fn largest_payload(netdev_mtu: u32) -> Mtu {
    // IPv6 and UDP, BTH with the longest extension headers, ICRC.
    const HEADERS: u32 = 40 + 8 + 12 + 28 + 4;
    let room = netdev_mtu.saturating_sub(HEADERS);
    let standard = [4096, 2048, 1024, 512, 256];
    let found = standard.into_iter().find(|bytes| *bytes <= room);
    Mtu::standard(found.unwrap_or(256)).unwrap_or(Mtu::BYTES_256)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, index: u32, addresses: &[&str]) -> Interface {
        Interface {
            name: name.to_owned(),
            index,
            up: true,
            loopback: name == "lo",
            mtu: 1500,
            mac: Some(MacAddress([0x52, 0x54, 0, 1, 2, 3])),
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn devices_in_the_order_of_interfaces_and_loopback_last() {
        let mut down = interface("eth9", 2, &["10.0.0.9"]);
        down.up = false;
        let devices = from_interfaces(vec![
            interface("lo", 1, &["127.0.0.1", "::1"]),
            interface("eth1", 4, &["10.0.1.1"]),
            down,
            interface("bare", 5, &[]),
            interface("eth0", 3, &["fe80::1", "fd00::2", "192.0.2.2"]),
        ]);
        let names: Vec<_> = devices
            .iter()
            .map(|d| (d.name.as_str(), d.netdev.as_str()))
            .collect();
        let expected = [
            ("softfabric0", "eth0"),
            ("softfabric1", "eth1"),
            ("softfabric2", "lo"),
        ];
        assert_eq!(names, expected);
        let gids: Vec<_> = devices[0]
            .gids
            .iter()
            .map(|entry| entry.gid.to_string())
            .collect();
        assert_eq!(gids, ["::ffff:192.0.2.2", "fd00::2", "fe80::1"]);
        assert_eq!(devices[0].guid, [0x50, 0x54, 0, 0xff, 0xfe, 1, 2, 3]);
    }

    #[test]
    fn payloads_that_interfaces_carry() {
        for (netdev, payload) in [
            (65536, 4096),
            (9000, 4096),
            (4188, 4096),
            (4187, 2048),
            (1500, 1024),
            (1400, 1024),
            (576, 256),
            (100, 256),
        ] {
            assert_eq!(largest_payload(netdev).as_u32(), payload, "{netdev}");
        }
    }

    #[test]
    fn this_host_has_what_it_shows() {
        let devices = devices(&Settings::default()).unwrap();
        for device in &devices {
            assert!(
                !device.gids.is_empty() && device.interface > 0,
                "{device:?}"
            );
            assert_ne!(device.guid, [0; 8]);
        }
    }

    #[test]
    fn missing_interfaces_are_named() {
        let settings = Settings {
            interfaces: vec!["ether7".to_owned()],
            ..Settings::default()
        };
        let message = devices(&settings).unwrap_err().to_string();
        assert!(
            message.contains("`ether7`") && message.contains("up"),
            "{message}"
        );
    }
}
