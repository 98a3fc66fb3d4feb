//! Congestion control management, class 0x21 (IBTA vol. 1, annex A10).
//!
//! ```text
//!    0 | MAD header (24) | CC_Key (8) | log data (32)
//!   64 | data (192)
//! ```
//!
//! Switches mark (FECN) what meets a queue above a threshold; adapters slow down by their control table as notifications
//! (BECN) come back: the injection gap of a flow is (largest packet's time >> shift) × multiplier of the table's entry.

use super::table::{attributes, data_as};
use super::{Attribute, MAD_LENGTH, MadHeader, ManagementClass, Method};
use crate::bytes::take;
use crate::error::DecodeError;

/// The bytes that an attribute may take.
pub const CONGESTION_DATA_LENGTH: usize = 192;

const CLASS_VERSION: u8 = 2;
const KEY: usize = 24;
const DATA: usize = 64;

attributes! {
    /// What a node has of congestion control.
    CongestionInfo = 0x0011, 4 bytes {
        /// Bit 15: switches take credit starvation as congestion.
        [0:0; 16] capabilities: u16,
        /// Blocks of 64 entries of an adapter's control table.
        [2:0; 8] table_blocks: u8,
    }

    /// The key that guards the settings.
    CongestionKeyInfo = 0x0012, 14 bytes {
        /// The key.
        [0:0; 64] key: u64,
        /// Whether it also guards reading.
        [8:0; 1] protect: bool,
        /// How long it holds, in seconds.
        [10:0; 16] lease: u16,
        /// How often a wrong one came.
        [12:0; 16] violations: u16,
    }

    /// The settings of a switch.
    SwitchCongestionSetting = 0x0014, 76 bytes {
        /// Which of the fields below a Set changes.
        [0:0; 32] control_map: u32,
        /// A bit for each port: mark there even if it is a victim.
        [4:0; 256] victim_mask: [u8; 32],
        /// A bit for each port: mark there where credits starve.
        [36:0; 256] credit_mask: [u8; 32],
        /// How early to mark: 0 never, 15 earliest.
        [68:0; 4] threshold: u8,
        /// Packets shorter than this are not marked, in 64 bytes.
        [69:0; 8] packet_size: u8,
        /// How early to take starvation of credits as congestion.
        [70:0; 4] starvation_threshold: u8,
        /// How long starvation lasts on: shift and multiplier as in [`ControlTableEntry`].
        [72:0; 16] starvation_return_delay: u16,
        /// How many packets to let pass between marked ones.
        [74:0; 16] marking_rate: u16,
    }

    /// The setting of one port of a switch.
    SwitchPortSetting = 0x0000, 4 bytes {
        /// It counts, in place of the switch's.
        [0:0; 1] valid: bool,
        /// 1: starvation of credits; 0: congestion.
        [0:1; 1] starvation: bool,
        /// See [`SwitchCongestionSetting::threshold`].
        [0:4; 4] threshold: u8,
        /// See [`SwitchCongestionSetting::packet_size`].
        [1:0; 8] packet_size: u8,
        /// The marking rate, or the return delay.
        [2:0; 16] parameter: u16,
    }

    /// The settings of 32 ports of a switch: the modifier is the block.
    SwitchPortCongestionSetting = 0x0015, 128 bytes {
        /// One for each port.
        [0:0; 1024] ports: [SwitchPortSetting; 32],
    }

    /// How an adapter reacts on one service level.
    LevelReaction = 0x0000, 8 bytes {
        /// How long until the index falls by one, in 1.024 µs.
        [0:0; 16] timer: u16,
        /// How much a notification raises the index.
        [2:0; 8] increase: u8,
        /// The index from which on events are logged.
        [3:0; 8] trigger: u8,
        /// The lowest index.
        [4:0; 8] minimum: u8,
    }

    /// How an adapter reacts.
    AdapterCongestionSetting = 0x0016, 132 bytes {
        /// 0: by queue pair; 1: by port and level.
        [0:0; 16] port_control: u16,
        /// Which levels a Set changes.
        [2:0; 16] control_map: u16,
        /// One for each level.
        [4:0; 1024] levels: [LevelReaction; 16],
    }

    /// An entry of an adapter's control table.
    ControlTableEntry = 0x0000, 2 bytes {
        /// How far to shift the time of the largest packet down.
        [0:0; 2] shift: u8,
        /// By how much to multiply it.
        [0:2; 14] multiplier: u16,
    }

    /// 64 entries of an adapter's control table: the modifier is the block.
    CongestionControlTable = 0x0017, 132 bytes {
        /// The highest index in use.
        [0:0; 16] limit: u16,
        /// The entries.
        [4:0; 1024] entries: [ControlTableEntry; 64],
    }
}

/// A datagram of congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CongestionMad {
    /// What it does.
    pub method: Method,
    /// Zero, or what went wrong.
    pub status: u16,
    /// Relates a response to its request.
    pub transaction: u64,
    /// What the data are.
    pub attribute: u16,
    /// Which of several.
    pub modifier: u32,
    /// The key.
    pub key: u64,
    /// The attribute.
    pub data: [u8; CONGESTION_DATA_LENGTH],
}

impl CongestionMad {
    /// Reads one datagram; bytes after its 256 are ignored, and so are log data.
    ///
    /// # Errors
    /// If the bytes end too early, or the header is not one of congestion control, version 2.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let header = MadHeader::decode(bytes)?;
        header.expect(ManagementClass::CONGESTION_CONTROL, CLASS_VERSION)?;
        Ok(Self {
            method: header.method,
            status: header.status,
            transaction: header.transaction,
            attribute: header.attribute,
            modifier: header.modifier,
            key: u64::from_be_bytes(take(bytes, KEY, "CC_Key")?),
            data: take(bytes, DATA, "congestion control data")?,
        })
    }

    /// The datagram's bytes.
    pub fn encode(&self) -> [u8; MAD_LENGTH] {
        let mut bytes = [0; MAD_LENGTH];
        let header = MadHeader {
            class: ManagementClass::CONGESTION_CONTROL,
            class_version: CLASS_VERSION,
            method: self.method,
            status: self.status,
            class_specific: 0,
            transaction: self.transaction,
            attribute: self.attribute,
            modifier: self.modifier,
        };
        header.encode(&mut bytes);
        bytes[KEY..][..8].copy_from_slice(&self.key.to_be_bytes());
        bytes[DATA..].copy_from_slice(&self.data);
        bytes
    }

    /// The data as attribute `A`; `None` where the datagram carries another one.
    pub fn data_as<A: Attribute>(&self) -> Option<A> {
        data_as(self.attribute, &self.data)
    }
}
