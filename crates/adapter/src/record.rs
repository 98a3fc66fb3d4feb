//! Recordings of what goes over the wire, for Wireshark.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use softfabric_units::{MacAddress, Time};
use softfabric_wire::ip::IpProtocol;
use softfabric_wire::pcapng::{Captured, Direction, Interface, InterfaceId, PcapngWriter};
use softfabric_wire::rdma::HiddenFields;
use softfabric_wire::udp::{ROCE_PORT, UdpHeader};
use softfabric_wire::{Body, Data, Frame};

use crate::host::DeviceInfo;
use crate::port::udp::{Network, Origin};

/// Writes one capture. Every packet is written at once, so that a process that is killed has them all.
#[derive(Debug)]
pub(crate) struct Recorder {
    writer: PcapngWriter<File>,
    interface: InterfaceId,
    mac: MacAddress,
    datagram: Vec<u8>,
    frame: Vec<u8>,
}

/// Why nothing is recorded.
#[derive(Debug, thiserror::Error)]
#[error("the recording {} cannot be written: {error}", path.display())]
pub struct RecordError {
    /// The file.
    path: PathBuf,
    /// What is wrong.
    #[source]
    error: io::Error,
}

impl Recorder {
    /// Starts a capture. The first device of a program writes to `path` itself, which is new or empty, others to files
    /// beside it that have the process and the slot in their names.
    pub(crate) fn start(path: &Path, info: &DeviceInfo, slot: u8) -> Result<Self, RecordError> {
        let wrong = |error| RecordError {
            path: path.to_owned(),
            error,
        };
        let file = open(path, slot).map_err(wrong)?;
        let mut writer = PcapngWriter::new(file, "softfabric").map_err(wrong)?;
        let description = format!("{} on {}", info.name, info.netdev);
        let interface = writer
            .add_interface(&Interface {
                name: &info.netdev,
                description: &description,
                speed: None,
            })
            .map_err(wrong)?;
        Ok(Self {
            writer,
            interface,
            mac: info.mac,
            datagram: Vec::new(),
            frame: Vec::new(),
        })
    }

    /// Adds a packet from BTH to ICRC, under the headers that it has on the wire.
    pub(crate) fn write(
        &mut self,
        now: Time,
        direction: Direction,
        origin: &Origin,
        hidden: HiddenFields,
        packet: &[u8],
        comment: &str,
    ) {
        let network = Network {
            source: origin.source,
            destination: origin.destination,
            source_port: origin.source_port,
        };
        let udp = UdpHeader {
            source_port: origin.source_port,
            destination_port: ROCE_PORT,
            checksum: 0,
        };
        self.datagram.clear();
        self.datagram.resize(UdpHeader::LENGTH, 0);
        udp.encode(packet.len(), &mut self.datagram);
        self.datagram.extend_from_slice(packet);
        let payload = Data::Bytes(&self.datagram);
        let (class, hops) = (origin.traffic_class, origin.hop_limit);
        let body = match network.ipv4(hidden, class, hops) {
            Some(header) => Body::Ipv4 {
                header,
                protocol: IpProtocol::UDP,
                payload,
            },
            None => Body::Ipv6 {
                header: network.ipv6(class, hops),
                next_header: IpProtocol::UDP,
                payload,
            },
        };
        let (source, destination) = match direction {
            Direction::Outbound => (self.mac, mac_of(&origin.destination)),
            Direction::Inbound => (mac_of(&origin.source), self.mac),
        };
        self.frame.clear();
        Frame::new(destination, source, None, body).encode(&mut self.frame);
        // A full disk ends the recording, not the program.
        let _ = self.writer.write(&Captured {
            direction: Some(direction),
            comment,
            ..Captured::whole(now, self.interface, &self.frame)
        });
    }
}

fn open(path: &Path, slot: u8) -> io::Result<File> {
    let options = |new| {
        let mut options = OpenOptions::new();
        options.write(true).create(true).create_new(new);
        options
    };
    let first = options(false).truncate(false).open(path)?;
    let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    if rustix::fs::flock(&first, lock).is_ok() && first.metadata()?.len() == 0 {
        return Ok(first);
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{}-{slot}", std::process::id()));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    options(true).open(path.with_file_name(name))
}

/// The socket does not tell the peer's Ethernet address: a locally administered one made of its IP address.
fn mac_of(address: &IpAddr) -> MacAddress {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            MacAddress([0x02, 0, a, b, c, d])
        }
        IpAddr::V6(v6) => {
            let [.., a, b, c, d] = v6.octets();
            MacAddress([0x02, 6, a, b, c, d])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.pcapng");
        let first = open(&path, 1).unwrap();
        let second = open(&path, 2).unwrap();
        assert_ne!(
            rustix::fs::fstat(&first).unwrap().st_ino,
            rustix::fs::fstat(&second).unwrap().st_ino
        );
        let beside = format!("run-{}-2.pcapng", std::process::id());
        assert!(folder.path().join(beside).exists());
        assert!(open(&path, 2).is_err(), "never over another");
    }
}
