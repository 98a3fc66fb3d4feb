//! Attributes of nodes: what they are, their GUIDs, and their subnet managers (IBTA vol. 1, 14.2.5).

use std::fmt;

use softfabric_units::Guid;

use crate::mad::table::{Bits, attributes};
use crate::mad::{ManagerState, NodeType};

/// An IEEE organisation: 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct VendorId(u32);

impl VendorId {
    /// The organisation whose number is the low 24 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & 0xff_ffff)
    }

    /// The 24 bits.
    pub const fn as_u32(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for VendorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VendorId({:#08x})", self.0)
    }
}

impl Bits for VendorId {
    fn get(bytes: &[u8], bit: usize, width: usize) -> Self {
        Self::new(Bits::get(bytes, bit, width))
    }
    fn put(&self, bytes: &mut [u8], bit: usize, width: usize) {
        self.0.put(bytes, bit, width);
    }
}

attributes! {
    /// A node's name, for people: up to 64 bytes, ended by a zero where shorter.
    NodeDescription = 0x0010, 64 bytes {
        /// The bytes.
        [0:0; 512] text: [u8; 64],
    }

    /// What a node is, asked through one of its ports.
    NodeInfo = 0x0011, 40 bytes {
        /// The version of management datagrams: 1.
        [0:0; 8] base_version: u8,
        /// The version of subnet management: 1.
        [1:0; 8] class_version: u8,
        /// Adapter, switch or router.
        [2:0; 8] node_type: NodeType,
        /// Its ports, a switch's port 0 not counted.
        [3:0; 8] ports: u8,
        /// The GUID of the system that the node is part of, or zero.
        [4:0; 64] system: Guid,
        /// The GUID of the node.
        [12:0; 64] node: Guid,
        /// The GUID of the port that was asked; of a switch, the node's.
        [20:0; 64] port: Guid,
        /// The entries of the port's partition table.
        [28:0; 16] partition_capacity: u16,
        /// The vendor's number of the device.
        [30:0; 16] device: u16,
        /// The vendor's revision.
        [32:0; 32] revision: u32,
        /// The port that was asked.
        [36:0; 8] local_port: u8,
        /// The vendor.
        [37:0; 24] vendor: VendorId,
    }

    /// Eight of a port's GUIDs: the modifier is the block.
    GuidInfo = 0x0014, 64 bytes {
        /// The GUIDs; entry 0 of block 0 cannot be changed.
        [0:0; 512 x 8 # 4] guids: [Guid; 8],
    }

    /// A subnet manager, as it tells others (IBTA vol. 1, 14.2.5.13).
    SmInfo = 0x0020, 24 bytes {
        /// Its port.
        [0:0; 64] guid: Guid,
        /// Its key; zero in answers to those it does not trust.
        [8:0; 64] key: u64,
        /// Counts up while it lives.
        [16:0; 32] activity: u32,
        /// The higher one manages.
        [20:0; 4] priority: u8,
        /// Whether it manages.
        [20:4; 4] state: ManagerState,
    }

    /// The light beside a port.
    LedInfo = 0x0031, 4 bytes {
        /// Whether it shines.
        [0:0; 1] shines: bool,
    }
}

impl NodeDescription {
    /// The first 64 bytes of `text`, cut between characters.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; 64];
        let end = (0..=text.len().min(64))
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Self { text: bytes }
    }

    /// The name up to its zero; bytes that are no text become `\u{fffd}`.
    pub fn to_text(&self) -> String {
        let end = self.text.iter().position(|byte| *byte == 0);
        String::from_utf8_lossy(&self.text[..end.unwrap_or(64)]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        let long = "é".repeat(40);
        assert_eq!(NodeDescription::new(&long).to_text(), "é".repeat(32));
        assert_eq!(NodeDescription::new("host 1").to_text(), "host 1");
        let odd = format!("a{long}");
        assert_eq!(NodeDescription::new(&odd).to_text().len(), 63);
        assert_eq!(
            NodeDescription { text: [0xff; 64] }
                .to_text()
                .chars()
                .count(),
            64
        );
    }
}
