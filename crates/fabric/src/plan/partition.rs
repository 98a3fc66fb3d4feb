//! Partitions of an InfiniBand fabric: who may talk to whom (IBTA vol. 1, 10.9).

use softfabric_units::PartitionKey;

use super::NodeId;

/// The partitions of a fabric, and who guards them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions {
    /// All of them. Where the default partition is not among them, all hosts are full members of it, as managers have it.
    pub partitions: Vec<Partition>,
    /// Ports of switches that lead to hosts drop what a host sends in a partition that it is not in.
    pub inbound: bool,
    /// They drop what comes for a host in a partition that it is not in.
    pub outbound: bool,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// A name for people.
    pub name: String,
    /// Its key without the bit of membership, 1 to 0x7fff.
    pub key: u16,
    /// Hosts that may talk to all members.
    pub full: Vec<NodeId>,
    /// Hosts that may talk to full members only.
    pub limited: Vec<NodeId>,
}

/// The key of the default partition, without the bit of membership.
pub(crate) const DEFAULT_PARTITION: u16 = 0x7fff;
/// The bit of a key that says that its holder is a full member.
pub(super) const FULL_MEMBER: u16 = 0x8000;

impl Partitions {
    /// By node: the keys that its port holds, in the order of the partitions; none for switches.
    pub fn keys(&self, nodes: usize, is_host: impl Fn(NodeId) -> bool) -> Vec<Vec<PartitionKey>> {
        let mut keys = vec![Vec::new(); nodes];
        for partition in &self.partitions {
            let full = partition.full.iter().map(|host| (host, FULL_MEMBER));
            let limited = partition.limited.iter().map(|host| (host, 0));
            for (host, membership) in full.chain(limited) {
                keys[host.index()].push(PartitionKey(partition.key | membership));
            }
        }
        let has_default = (self.partitions.iter()).any(|other| other.key == DEFAULT_PARTITION);
        if !has_default {
            for (node, keys) in keys.iter_mut().enumerate() {
                if is_host(NodeId(node as u32)) {
                    keys.push(PartitionKey::DEFAULT);
                }
            }
        }
        keys
    }
}

/// The keys by which the ports that hold these talk to each other: the first of the one's that the other has a match for.
pub(crate) fn shared_keys(
    own: &[PartitionKey],
    other: &[PartitionKey],
) -> Option<(PartitionKey, PartitionKey)> {
    own.iter().find_map(|own| {
        let matching = other.iter().find(|other| own.matches(**other));
        matching.map(|other| (*own, *other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(list: &[(u16, &[u32], &[u32])]) -> Partitions {
        let hosts = |hosts: &[u32]| hosts.iter().map(|host| NodeId(*host)).collect();
        let partition = |&(key, full, limited): &(u16, &[u32], &[u32])| Partition {
            name: String::new(),
            key,
            full: hosts(full),
            limited: hosts(limited),
        };
        Partitions {
            partitions: list.iter().map(partition).collect(),
            inbound: true,
            outbound: true,
        }
    }

    #[test]
    fn limited_members_talk_to_full_ones_only() {
        let partitions = partitions(&[(0x7fff, &[], &[0, 1, 2, 3]), (5, &[1], &[2, 3])]);
        let keys = partitions.keys(5, |node| node.0 < 4);
        assert_eq!(keys[0], [PartitionKey(0x7fff)]);
        assert_eq!(keys[1], [PartitionKey(0x7fff), PartitionKey(0x8005)]);
        assert_eq!(keys[4], []);
        let shared = |a: usize, b: usize| shared_keys(&keys[a], &keys[b]);
        assert_eq!(shared(1, 2), Some((PartitionKey(0x8005), PartitionKey(5))));
        assert_eq!(shared(2, 1), Some((PartitionKey(5), PartitionKey(0x8005))));
        assert_eq!(shared(2, 3), None);
        assert_eq!(shared(0, 1), None);
    }

    #[test]
    fn the_default_partition_has_everybody_where_nobody_says_otherwise() {
        let keys = partitions(&[(5, &[1], &[])]).keys(3, |node| node.0 < 2);
        assert_eq!(keys[0], [PartitionKey::DEFAULT]);
        assert_eq!(keys[1], [PartitionKey(0x8005), PartitionKey::DEFAULT]);
        assert_eq!(keys[2], []);
        assert_eq!(
            shared_keys(&keys[1], &keys[0]),
            Some((PartitionKey::DEFAULT, PartitionKey::DEFAULT))
        );
    }
}
