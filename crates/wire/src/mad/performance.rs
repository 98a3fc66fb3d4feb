//! Performance management: the counters of ports (IBTA vol. 1, 16.1).
//!
//! ```text
//!    0 | MAD header (24) | reserved (40)
//!   64 | data (192)
//! ```
//!
//! Counters of 32 bits and less stop at their highest value; those of 64 bits wrap. A Set writes the counters that its
//! selection names. Data counters count 4 bytes.

use softfabric_units::{Gid, Lid, PartitionKey, Qpn};

use super::table::{attributes, data_as};
use super::{Attribute, ClassCapabilities, MAD_LENGTH, MadHeader, ManagementClass, Method};
use crate::bytes::take;
use crate::error::DecodeError;
use crate::infiniband::ServiceLevel;

/// The bytes that an attribute may take.
pub const PERFORMANCE_DATA_LENGTH: usize = 192;

/// The port number that asks for the sum of all ports.
pub const ALL_PORTS: u8 = 0xff;

const CLASS_VERSION: u8 = 1;
const DATA: usize = 64;

attributes! {
    /// What an agent of general services can do, and whom to ask instead (IBTA vol. 1, 13.4.8.1). Every class has it.
    ClassPortInfo = 0x0001, 72 bytes {
        /// The version of management datagrams: 1.
        [0:0; 8] base_version: u8,
        /// The version of the class.
        [1:0; 8] class_version: u8,
        /// What it can do.
        [2:0; 16] capabilities: ClassCapabilities,
        /// What else it can do: 27 bits.
        [4:0; 27] capabilities_2: u32,
        /// How long it may take to answer: 4.096 µs · 2ⁿ.
        [7:3; 5] response_time: u8,
        /// Ask this port instead, where it is not zero.
        [8:0; 128] redirect_gid: Gid,
        /// The traffic class to ask it with.
        [24:0; 8] redirect_traffic_class: u8,
        /// The service level to ask it with.
        [25:0; 4] redirect_level: ServiceLevel,
        /// The flow label to ask it with.
        [25:4; 20] redirect_flow_label: u32,
        /// Its local identifier.
        [28:0; 16] redirect_lid: Lid,
        /// The partition to ask it in.
        [30:0; 16] redirect_partition: PartitionKey,
        /// Its queue pair.
        [33:0; 24] redirect_qpn: Qpn,
        /// Its queue key.
        [36:0; 32] redirect_qkey: u32,
        /// Where traps go.
        [40:0; 128] trap_gid: Gid,
        /// The traffic class of traps.
        [56:0; 8] trap_traffic_class: u8,
        /// The service level of traps.
        [57:0; 4] trap_level: ServiceLevel,
        /// The flow label of traps.
        [57:4; 20] trap_flow_label: u32,
        /// Where traps go.
        [60:0; 16] trap_lid: Lid,
        /// The partition of traps.
        [62:0; 16] trap_partition: PartitionKey,
        /// How many routers traps may pass.
        [64:0; 8] trap_hop_limit: u8,
        /// The queue pair that takes traps.
        [65:0; 24] trap_qpn: Qpn,
        /// Its queue key.
        [68:0; 32] trap_qkey: u32,
    }

    /// The counters of 32 bits and less.
    PortCounters = 0x0012, 44 bytes {
        /// The port.
        [1:0; 8] port: u8,
        /// Which counters a Set writes.
        [2:0; 16] selection: u16,
        /// Minor errors on the lanes.
        [4:0; 16] symbol_errors: u16,
        /// Trainings after errors that succeeded.
        [6:0; 8] link_recoveries: u8,
        /// Trainings after errors that failed.
        [7:0; 8] link_downed: u8,
        /// Packets with errors that came in.
        [8:0; 16] receive_errors: u16,
        /// Packets that came in already marked bad.
        [10:0; 16] receive_remote_errors: u16,
        /// Packets that a switch could not pass on.
        [12:0; 16] switch_relay_errors: u16,
        /// Packets dropped because the port was down or busy too long.
        [14:0; 16] transmit_discards: u16,
        /// Packets that partitions forbade to send.
        [16:0; 8] transmit_constraint_errors: u8,
        /// Packets that partitions forbade to take.
        [17:0; 8] receive_constraint_errors: u8,
        /// Which other counters a Set writes.
        [18:0; 8] selection_2: u8,
        /// How often errors passed the limit.
        [19:0; 4] local_integrity_errors: u8,
        /// How often buffers ran over for too long.
        [19:4; 4] buffer_overruns: u8,
        /// General services packets dropped.
        [20:0; 16] qp1_dropped: u16,
        /// Subnet management packets dropped.
        [22:0; 16] vl15_dropped: u16,
        /// 4-byte words sent.
        [24:0; 32] transmit_data: u32,
        /// 4-byte words received.
        [28:0; 32] receive_data: u32,
        /// Packets sent.
        [32:0; 32] transmit_packets: u32,
        /// Packets received.
        [36:0; 32] receive_packets: u32,
        /// Ticks with something to send and no credit or no turn.
        [40:0; 32] transmit_wait: u32,
    }

    /// The counters of 64 bits.
    PortCountersExtended = 0x001d, 184 bytes {
        /// The port.
        [1:0; 8] port: u8,
        /// Which counters a Set writes.
        [2:0; 16] selection: u16,
        /// Which error counters a Set writes.
        [4:0; 32] selection_2: u32,
        /// 4-byte words sent.
        [8:0; 64] transmit_data: u64,
        /// 4-byte words received.
        [16:0; 64] receive_data: u64,
        /// Packets sent.
        [24:0; 64] transmit_packets: u64,
        /// Packets received.
        [32:0; 64] receive_packets: u64,
        /// Packets sent to one port each.
        [40:0; 64] unicast_transmit_packets: u64,
        /// Packets to one port each received.
        [48:0; 64] unicast_receive_packets: u64,
        /// Packets sent to groups.
        [56:0; 64] multicast_transmit_packets: u64,
        /// Packets to groups received.
        [64:0; 64] multicast_receive_packets: u64,
        /// As in [`PortCounters`], and so on.
        [72:0; 64] symbol_errors: u64,
        /// See [`PortCounters`].
        [80:0; 64] link_recoveries: u64,
        /// See [`PortCounters`].
        [88:0; 64] link_downed: u64,
        /// See [`PortCounters`].
        [96:0; 64] receive_errors: u64,
        /// See [`PortCounters`].
        [104:0; 64] receive_remote_errors: u64,
        /// See [`PortCounters`].
        [112:0; 64] switch_relay_errors: u64,
        /// See [`PortCounters`].
        [120:0; 64] transmit_discards: u64,
        /// See [`PortCounters`].
        [128:0; 64] transmit_constraint_errors: u64,
        /// See [`PortCounters`].
        [136:0; 64] receive_constraint_errors: u64,
        /// See [`PortCounters`].
        [144:0; 64] local_integrity_errors: u64,
        /// See [`PortCounters`].
        [152:0; 64] buffer_overruns: u64,
        /// See [`PortCounters`].
        [160:0; 64] vl15_dropped: u64,
        /// See [`PortCounters`].
        [168:0; 64] transmit_wait: u64,
        /// See [`PortCounters`].
        [176:0; 64] qp1_dropped: u64,
    }

    /// 4-byte words sent, by service level.
    PortTransmitDataByLevel = 0x0036, 68 bytes {
        /// The port.
        [1:0; 8] port: u8,
        /// Which counters a Set writes.
        [2:0; 16] selection: u16,
        /// One for each level.
        [4:0; 512] words: [u32; 16],
    }

    /// 4-byte words received, by service level.
    PortReceiveDataByLevel = 0x0037, 68 bytes {
        /// The port.
        [1:0; 8] port: u8,
        /// Which counters a Set writes.
        [2:0; 16] selection: u16,
        /// One for each level.
        [4:0; 512] words: [u32; 16],
    }
}

/// A datagram of performance management.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerformanceMad {
    /// What it does.
    pub method: Method,
    /// Zero, or what went wrong.
    pub status: u16,
    /// Relates a response to its request.
    pub transaction: u64,
    /// What the data are.
    pub attribute: u16,
    /// Unused by the attributes here.
    pub modifier: u32,
    /// The attribute.
    pub data: [u8; PERFORMANCE_DATA_LENGTH],
}

impl PerformanceMad {
    /// Reads one datagram; bytes after its 256 are ignored.
    ///
    /// # Errors
    /// If the bytes end too early, or the header is not one of performance management, version 1.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let header = MadHeader::decode(bytes)?;
        header.expect(ManagementClass::PERFORMANCE, CLASS_VERSION)?;
        Ok(Self {
            method: header.method,
            status: header.status,
            transaction: header.transaction,
            attribute: header.attribute,
            modifier: header.modifier,
            data: take(bytes, DATA, "performance data")?,
        })
    }

    /// The datagram's bytes.
    pub fn encode(&self) -> [u8; MAD_LENGTH] {
        let mut bytes = [0; MAD_LENGTH];
        let header = MadHeader {
            class: ManagementClass::PERFORMANCE,
            class_version: CLASS_VERSION,
            method: self.method,
            status: self.status,
            class_specific: 0,
            transaction: self.transaction,
            attribute: self.attribute,
            modifier: self.modifier,
        };
        header.encode(&mut bytes);
        bytes[DATA..].copy_from_slice(&self.data);
        bytes
    }

    /// The data as attribute `A`; `None` where the datagram carries another one.
    pub fn data_as<A: Attribute>(&self) -> Option<A> {
        data_as(self.attribute, &self.data)
    }
}
