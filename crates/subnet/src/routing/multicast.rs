//! Multicast: one tree of switches for each group, so that a packet reaches every member once and comes round nowhere.
//!
//! ```text
//!        root                 the switch from which the members are nearest in sum
//!       /    \
//!     sw      sw              ports of a table: to the parent where there is one, to children, to members
//!    /  \       \
//!   m    m       m
//! ```

use super::distance::{Distances, FAR};
use super::view::{RoutingView, Target};

/// A set of a switch's ports.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PortSet([u64; 4]);

impl PortSet {
    /// Whether `port` is in it.
    pub const fn contains(&self, port: u8) -> bool {
        self.0[port as usize / 64] >> (port % 64) & 1 != 0
    }

    /// Adds `port`.
    pub const fn insert(&mut self, port: u8) {
        self.0[port as usize / 64] |= 1 << (port % 64);
    }

    /// Its ports, in order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=u8::MAX).filter(|port| self.contains(*port))
    }

    /// 16 ports from 16 × `position` on, as a [multicast block](softfabric_wire::mad::subnet::MulticastBlock) has them.
    pub const fn part(&self, position: u8) -> u16 {
        (self.0[(position & 15) as usize / 4] >> (16 * (position % 4))) as u16
    }
}

/// The ports of each switch in a group's tree: nothing for switches that are not in it. `senders` are not members: their
/// packets find the tree, and nothing comes to them. `None` where no switch reaches all `members`.
pub fn multicast_tree(
    view: &RoutingView,
    distances: &Distances,
    members: &[Target],
    senders: &[Target],
) -> Option<Vec<PortSet>> {
    let mut ports = vec![PortSet::default(); view.switches()];
    let farness = |root: usize| -> Option<u64> {
        let far = |member: &Target| distances.to(root)[member.switch as usize];
        let all = members.iter().map(far);
        all.map(|distance| (distance != FAR).then_some(u64::from(distance)))
            .sum()
    };
    if members.is_empty() {
        return Some(ports);
    }
    let reaching = (0..view.switches()).filter_map(|root| Some((farness(root)?, root)));
    let (_, root) = reaching.min()?;
    let row = distances.to(root);
    let mut in_tree = vec![false; view.switches()];
    in_tree[root] = true;
    let ends = members.iter().map(|member| (member, true));
    for (end, hears) in ends.chain(senders.iter().map(|sender| (sender, false))) {
        let mut here = end.switch as usize;
        if hears {
            // Port 0 is the switch itself.
            ports[here].insert(end.port);
        }
        while !in_tree[here] {
            in_tree[here] = true;
            let up = view
                .out(here)
                .iter()
                .find(|link| row[link.to as usize].checked_add(1) == Some(row[here]))?;
            ports[here].insert(up.port);
            if hears {
                ports[up.to as usize].insert(up.peer_port);
            }
            here = up.to as usize;
        }
    }
    Some(ports)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use softfabric_units::Random;

    use super::*;
    use crate::generate::random;

    #[test]
    fn sets_of_ports() {
        let mut set = PortSet::default();
        for port in [0, 17, 64, 254] {
            set.insert(port);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 17, 64, 254]);
        assert_eq!(
            [0, 1, 2, 4, 15].map(|position| set.part(position)),
            [1, 2, 0, 1, 1 << 14]
        );
    }

    proptest! {
        /// A packet that any member sends, or one who only sends, comes to every other member once, and to nobody else.
        #[test]
        fn every_member_hears_once(
            seed in any::<u64>(),
            switches in 2_u32..30,
            wanted in 1_usize..20,
            only_send in 0_usize..5,
        ) {
            let mut subnet = random(switches, 4, 2, seed).unwrap();
            subnet.assign_lids(0).unwrap();
            let view = RoutingView::new(&subnet);
            let mut members = view.targets().to_vec();
            Random::from_seed(seed).shuffle(&mut members);
            let adapters = members.iter().filter(|target| target.is_adapter()).copied();
            let senders: Vec<Target> = adapters.skip(wanted).take(only_send).collect();
            members.retain(|target| senders.iter().all(|sender| sender.lid != target.lid));
            members.truncate(wanted);
            let tree = multicast_tree(&view, &Distances::new(&view), &members, &senders).unwrap();
            for sender in members.iter().chain(&senders) {
                let mut heard = Vec::new();
                let mut flying = vec![(sender.switch as usize, sender.port)];
                while let Some((here, arrived)) = flying.pop() {
                    prop_assert!(heard.len() <= members.len(), "it goes round");
                    for port in tree[here].iter().filter(|port| *port != arrived) {
                        match view.link_by_port(here, port) {
                            Some(link) => {
                                let link = view.links()[link];
                                flying.push((link.to as usize, link.peer_port));
                            }
                            None => heard.push((here, port)),
                        }
                    }
                }
                heard.sort_unstable();
                let mut expected: Vec<_> = members
                    .iter()
                    .filter(|member| member.lid != sender.lid)
                    .map(|member| (member.switch as usize, member.port))
                    .collect();
                expected.sort_unstable();
                prop_assert_eq!(heard, expected);
            }
        }
    }
}
