//! Notices, and the traps that carry them (IBTA vol. 1, 13.4.8 and 14.2.5.1).
//!
//! ```text
//!    0 | G(1) type(7) | producer or vendor (3)  |
//!    4 | trap number or device | issuer's LID   |
//!    8 | toggle(1) count(15)   | details (54)   | issuer's GID (16), outside subnet management
//! ```

use softfabric_units::{Gid, Guid, Lid, PartitionKey, Qpn};

use super::node::VendorId;
use crate::infiniband::ServiceLevel;
use crate::mad::table::{attributes, codes};
use crate::mad::{Attribute, PortCapabilities};

/// The bytes of a notice that say what happened.
const DETAILS: usize = 54;

codes! {
    /// How bad it is (IBTA vol. 1, table 119).
    NoticeType(u8) {
        /// Lost for good.
        FATAL = 0,
        /// Needs a hand.
        URGENT = 1,
        /// An attack, or a mistake.
        SECURITY = 2,
        /// Management's own.
        SUBNET_MANAGEMENT = 3,
        /// Good to know.
        INFORMATIONAL = 4,
    }
}

/// Who a notice is from: a node's type in generic notices, or a vendor.
pub type Producer = VendorId;

attributes! {
    /// A notice, as a trap, a report or the attribute of a port.
    Notice = 0x0002, 80 bytes {
        /// The standard says what the number means; otherwise a vendor does.
        [0:0; 1] generic: bool,
        /// How bad it is.
        [0:1; 7] kind: NoticeType,
        /// The kind of node that tells, or the vendor.
        [1:0; 24] producer: Producer,
        /// The number of the trap, or the vendor's device.
        [4:0; 16] number: u16,
        /// The port that tells.
        [6:0; 16] issuer: Lid,
        /// Changes with every new notice of the attribute.
        [8:0; 1] toggle: bool,
        /// How many notices wait.
        [8:1; 15] count: u16,
        /// What happened: see [`Notice::trap`].
        [10:0; 432] details: [u8; 54],
        /// The port that tells; zero in subnet management.
        [64:0; 128] issuer_gid: Gid,
    }

    /// Traps 64 and 65: a port appeared or vanished; 66 and 67: a group did.
    GidTrap = 0x0000, 54 bytes {
        /// The port or group.
        [6:0; 128] gid: Gid,
    }

    /// Trap 128: the state of a switch's link changed.
    StateTrap = 0x0000, 54 bytes {
        /// The switch.
        [0:0; 16] lid: Lid,
    }

    /// Traps 129 to 131: a port had too many errors.
    PortTrap = 0x0000, 54 bytes {
        /// The node.
        [2:0; 16] lid: Lid,
        /// Its port.
        [4:0; 8] port: u8,
    }

    /// Trap 144: capabilities or other things of a port changed.
    CapabilityTrap = 0x0000, 54 bytes {
        /// The port.
        [2:0; 16] lid: Lid,
        /// The flags of `changes` count.
        [5:7; 1] other_changes: bool,
        /// Its capabilities now.
        [6:0; 32] capabilities: PortCapabilities,
        /// What else changed: bit 0 the description, 1 the widths, 2 the speeds.
        [10:0; 16] changes: u16,
        /// Its second capabilities now.
        [12:0; 16] capabilities_2: u16,
    }

    /// Trap 145: the GUID of a node's system changed.
    SystemTrap = 0x0000, 54 bytes {
        /// The node.
        [2:0; 16] lid: Lid,
        /// The GUID now.
        [6:0; 64] system: Guid,
    }

    /// Trap 256: a packet with a wrong management key came.
    ManagementKeyTrap = 0x0000, 54 bytes {
        /// Whom it came to.
        [2:0; 16] lid: Lid,
        /// The source of its directed route.
        [4:0; 16] directed_source: Lid,
        /// Its method.
        [6:0; 8] method: u8,
        /// Its attribute.
        [8:0; 16] attribute: u16,
        /// Its modifier.
        [10:0; 32] modifier: u32,
        /// Its key.
        [14:0; 64] key: u64,
        /// It came by directed route.
        [23:0; 1] directed: bool,
        /// The path below is cut.
        [23:1; 1] cut: bool,
        /// How many hops it came.
        [23:2; 6] hops: u8,
        /// Its way back.
        [24:0; 240] path: [u8; 30],
    }

    /// Traps 257 and 258: a wrong partition or queue key came.
    KeyTrap = 0x0000, 54 bytes {
        /// Where it came from.
        [2:0; 16] source: Lid,
        /// Where it went.
        [4:0; 16] destination: Lid,
        /// The key.
        [6:0; 32] key: u32,
        /// Its service level.
        [10:0; 4] level: ServiceLevel,
        /// The sender's queue pair.
        [11:0; 24] source_qpn: Qpn,
        /// The receiver's queue pair.
        [15:0; 24] destination_qpn: Qpn,
        /// Where it came from.
        [18:0; 128] source_gid: Gid,
        /// Where it went.
        [34:0; 128] destination_gid: Gid,
    }

    /// Trap 259: a switch saw a wrong partition key.
    SwitchPartitionTrap = 0x0000, 54 bytes {
        /// Which of the fields below count.
        [0:0; 16] valid: u16,
        /// Where it came from.
        [2:0; 16] source: Lid,
        /// Where it went.
        [4:0; 16] destination: Lid,
        /// The key.
        [6:0; 16] key: PartitionKey,
        /// Its service level.
        [8:0; 4] level: ServiceLevel,
        /// The sender's queue pair.
        [9:0; 24] source_qpn: Qpn,
        /// The receiver's queue pair.
        [13:0; 24] destination_qpn: Qpn,
        /// Where it came from.
        [16:0; 128] source_gid: Gid,
        /// Where it went.
        [32:0; 128] destination_gid: Gid,
        /// The switch.
        [48:0; 16] switch: Lid,
        /// Its port.
        [50:0; 8] port: u8,
    }
}

/// What a generic notice of subnet management says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trap {
    /// 64: a port is reachable now.
    InService(GidTrap),
    /// 65: a port is gone.
    OutOfService(GidTrap),
    /// 66: a group was made.
    GroupCreated(GidTrap),
    /// 67: a group is gone.
    GroupDeleted(GidTrap),
    /// 128.
    LinkState(StateTrap),
    /// 129: the local link's integrity.
    LinkIntegrity(PortTrap),
    /// 130: buffers ran over.
    BufferOverrun(PortTrap),
    /// 131: credits did not come.
    FlowControlWatchdog(PortTrap),
    /// 144.
    Capability(CapabilityTrap),
    /// 145.
    SystemGuid(SystemTrap),
    /// 256.
    ManagementKey(ManagementKeyTrap),
    /// 257.
    PartitionKey(KeyTrap),
    /// 258.
    QueueKey(KeyTrap),
    /// 259.
    SwitchPartitionKey(SwitchPartitionTrap),
    /// A vendor's, or a number that the standard does not have.
    Other,
}

impl Trap {
    /// Its number and how bad it is; `None` for [`Trap::Other`].
    pub const fn number(&self) -> Option<(u16, NoticeType)> {
        Some(match self {
            Self::InService(_) => (64, NoticeType::SUBNET_MANAGEMENT),
            Self::OutOfService(_) => (65, NoticeType::SUBNET_MANAGEMENT),
            Self::GroupCreated(_) => (66, NoticeType::SUBNET_MANAGEMENT),
            Self::GroupDeleted(_) => (67, NoticeType::SUBNET_MANAGEMENT),
            Self::LinkState(_) => (128, NoticeType::URGENT),
            Self::LinkIntegrity(_) => (129, NoticeType::URGENT),
            Self::BufferOverrun(_) => (130, NoticeType::URGENT),
            Self::FlowControlWatchdog(_) => (131, NoticeType::URGENT),
            Self::Capability(_) => (144, NoticeType::INFORMATIONAL),
            Self::SystemGuid(_) => (145, NoticeType::INFORMATIONAL),
            Self::ManagementKey(_) => (256, NoticeType::SECURITY),
            Self::PartitionKey(_) => (257, NoticeType::SECURITY),
            Self::QueueKey(_) => (258, NoticeType::SECURITY),
            Self::SwitchPartitionKey(_) => (259, NoticeType::SECURITY),
            Self::Other => return None,
        })
    }

    fn details(&self) -> [u8; DETAILS] {
        match self {
            Self::InService(trap)
            | Self::OutOfService(trap)
            | Self::GroupCreated(trap)
            | Self::GroupDeleted(trap) => trap.to_bytes(),
            Self::LinkState(trap) => trap.to_bytes(),
            Self::LinkIntegrity(trap)
            | Self::BufferOverrun(trap)
            | Self::FlowControlWatchdog(trap) => trap.to_bytes(),
            Self::Capability(trap) => trap.to_bytes(),
            Self::SystemGuid(trap) => trap.to_bytes(),
            Self::ManagementKey(trap) => trap.to_bytes(),
            Self::PartitionKey(trap) | Self::QueueKey(trap) => trap.to_bytes(),
            Self::SwitchPartitionKey(trap) => trap.to_bytes(),
            Self::Other => [0; DETAILS],
        }
    }
}

impl Notice {
    /// The bytes that it has in a subnet management packet, which has no room for the GID.
    pub const SMP_LENGTH: usize = 64;

    /// The notice of `trap`, from the port `issuer` of a node of kind `producer`; `None` for [`Trap::Other`].
    pub fn of(trap: &Trap, producer: crate::mad::NodeType, issuer: Lid) -> Option<Self> {
        let (number, kind) = trap.number()?;
        Some(Self {
            generic: true,
            kind,
            producer: Producer::new(u32::from(producer.0)),
            number,
            issuer,
            details: trap.details(),
            ..Self::default()
        })
    }

    /// Reads a notice from the data of a subnet management packet.
    pub fn from_smp(data: &[u8; super::SMP_DATA_LENGTH]) -> Self {
        let mut bytes = [0; Self::LENGTH];
        bytes[..Self::SMP_LENGTH].copy_from_slice(data);
        Self::decode(&bytes).expect("the bytes are all there")
    }

    /// The data of a subnet management packet.
    pub fn to_smp(&self) -> [u8; super::SMP_DATA_LENGTH] {
        let bytes: [u8; Self::LENGTH] = self.to_bytes();
        let (data, _) = bytes.split_at(Self::SMP_LENGTH);
        data.try_into().expect("the lengths are equal")
    }

    /// What it says.
    pub fn trap(&self) -> Trap {
        fn read<A: Attribute>(details: &[u8; DETAILS]) -> A {
            A::decode(details).expect("details of every trap have this length")
        }
        if !self.generic {
            return Trap::Other;
        }
        let details = &self.details;
        match self.number {
            64 => Trap::InService(read(details)),
            65 => Trap::OutOfService(read(details)),
            66 => Trap::GroupCreated(read(details)),
            67 => Trap::GroupDeleted(read(details)),
            128 => Trap::LinkState(read(details)),
            129 => Trap::LinkIntegrity(read(details)),
            130 => Trap::BufferOverrun(read(details)),
            131 => Trap::FlowControlWatchdog(read(details)),
            144 => Trap::Capability(read(details)),
            145 => Trap::SystemGuid(read(details)),
            256 => Trap::ManagementKey(read(details)),
            257 => Trap::PartitionKey(read(details)),
            258 => Trap::QueueKey(read(details)),
            259 => Trap::SwitchPartitionKey(read(details)),
            _ => Trap::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mad::NodeType;

    #[test]
    fn link_state_bytes() {
        let trap = Trap::LinkState(StateTrap { lid: Lid(0x1234) });
        let notice = Notice::of(&trap, NodeType::SWITCH, Lid(0x1234)).unwrap();
        let data = notice.to_smp();
        assert_eq!(
            data[..12],
            [0x81, 0, 0, 2, 0, 128, 0x12, 0x34, 0, 0, 0x12, 0x34]
        );
        assert_eq!(Notice::from_smp(&data), notice);
        assert_eq!(notice.trap(), trap);
    }

    #[test]
    fn every_number_is_read_as_it_is_written() {
        for number in 0..=300 {
            let notice = Notice {
                generic: true,
                number,
                details: std::array::from_fn(|index| index as u8 ^ 0x5a),
                ..Notice::default()
            };
            let trap = notice.trap();
            if let Some((written, _)) = trap.number() {
                assert_eq!(written, number);
                let again = Notice::of(&trap, NodeType::SWITCH, Lid(1)).unwrap();
                assert_eq!(again.trap(), trap);
            } else {
                assert_eq!(trap, Trap::Other);
            }
            let vendors = Notice {
                generic: false,
                ..notice
            };
            assert_eq!(vendors.trap(), Trap::Other);
        }
    }
}
