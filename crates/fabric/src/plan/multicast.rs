//! Multicast groups of an InfiniBand fabric: who hears what is sent to one, and who may send (IBTA vol. 1, 15.2.5.17).

use softfabric_units::{Bytes, Gid, Lid, PartitionKey, Rate};

use super::partition::FULL_MEMBER;
use super::{Flow, NodeId, Plan};

/// The index of a group in [`Infiniband::multicast`](super::Infiniband::multicast).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupId(pub u32);

impl GroupId {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The identifier by which switches know the group: the manager gives them out in order.
    pub const fn lid(self) -> Lid {
        Lid(Lid::FIRST_MULTICAST.0 + self.0 as u16)
    }

    /// The address of the group: transient, of the scope of the subnet.
    pub const fn gid(self) -> Gid {
        let mut octets = [0; 16];
        octets[0] = 0xff;
        octets[1] = 0x12;
        let [a, b, c, d] = self.0.to_be_bytes();
        [octets[12], octets[13], octets[14], octets[15]] = [a, b, c, d];
        Gid(octets)
    }

    /// How many groups have an identifier: 0xc000 to 0xfffe.
    pub const MOST: usize = (Lid::PERMISSIVE.0 - Lid::FIRST_MULTICAST.0) as usize;
}

/// One group. All of its packets have a global route header, and whoever joins does so by the first port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastGroup {
    /// A name for people.
    pub name: String,
    /// Full members, in order: they hear everything that others send, and may send.
    pub members: Vec<NodeId>,
    /// Members that only send, in order: nothing of the group comes to them.
    pub senders: Vec<NodeId>,
    /// The service level of its packets; `None`: that of their class, or 0 where the routing engine sets levels.
    pub level: Option<u8>,
    /// The longest payload of a datagram.
    pub mtu: Bytes,
    /// Nobody sends faster to it; `None`: as fast as the port.
    pub rate: Option<Rate>,
    /// The key of its partition, without the bit of membership.
    pub key: u16,
}

impl MulticastGroup {
    /// Whether a host may send to it.
    pub fn may_send(&self, host: NodeId) -> bool {
        self.members.contains(&host) || self.senders.contains(&host)
    }

    /// The key of the full members of its partition.
    pub(crate) const fn full_key(&self) -> PartitionKey {
        PartitionKey(self.key | FULL_MEMBER)
    }

    /// Who hears what a host sends to it.
    pub fn receivers(&self, sender: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let members = self.members.iter().copied();
        members.filter(move |member| *member != sender)
    }
}

impl Plan {
    /// The group that a flow goes to, if it goes to one.
    pub fn group_of(&self, flow: &Flow) -> Option<&MulticastGroup> {
        let settings = self.link_layer.infiniband()?;
        settings.multicast.get(flow.operation.group()?.index())
    }

    /// What a flow goes to: the name of a host or of a group.
    pub fn destination_name(&self, flow: &Flow) -> &str {
        match self.group_of(flow) {
            Some(group) => &group.name,
            None => &self.network.nodes[flow.destination.index()].name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_identifiers_and_addresses_of_their_own() {
        assert_eq!(GroupId(0).lid(), Lid(0xc000));
        let last = GroupId(GroupId::MOST as u32 - 1);
        assert_eq!(last.lid(), Lid(0xfffe));
        assert!(last.lid().is_multicast());
        assert_eq!(GroupId(0x0102).gid().to_string(), "ff12::102");
        assert!(last.gid().to_ip().is_multicast());
    }

    #[test]
    fn nobody_hears_itself() {
        let group = MulticastGroup {
            name: String::new(),
            members: vec![NodeId(1), NodeId(2)],
            senders: vec![NodeId(3)],
            level: None,
            mtu: Bytes::new(2048),
            rate: None,
            key: 0x7fff,
        };
        let heard = |sender| group.receivers(NodeId(sender)).collect::<Vec<_>>();
        assert_eq!(heard(1), [NodeId(2)]);
        assert_eq!(heard(3), [NodeId(1), NodeId(2)]);
        let senders = (0..5).filter(|host| group.may_send(NodeId(*host)));
        assert_eq!(senders.collect::<Vec<_>>(), [1, 2, 3]);
    }
}
