//! Multicast groups: who is a member, and the tables that bring packets to all of them (IBTA vol. 1, 15.2.5.17).
//!
//! A port joins with Set(MCMemberRecord) and leaves with Delete. The first one makes the group, and says what its packets are
//! like; the others get that as the answer. A group without a full member is gone.

use std::collections::BTreeMap;

use softfabric_units::{Gid, Lid};
use softfabric_wire::mad::administration::{AdministrationMad, MemberRecord, component};
use softfabric_wire::mad::subnet::{GidTrap, MulticastBlock, Smp, Trap};
use softfabric_wire::mad::{ComponentMask, Method, MtuCode, RateCode, Selector, status};

use super::administration::{Answer, one, refuse};
use super::program::PACKET_LIFE;
use super::requests::Request;
use super::{Cause, Manager, Phase, Summary};
use crate::routing::{Distances, PortSet, Target, multicast_tree};
use crate::subnet::NodeId;

/// Bits of a join state: a full member keeps the group alive and hears it; a non-member only hears it. Who has neither only
/// sends.
const FULL: u8 = 1;
const NON_MEMBER: u8 = 2;
/// What a request that makes a group has to say.
const NEEDED: [ComponentMask; 5] = [
    component::<MemberRecord>("qkey", ""),
    component::<MemberRecord>("partition", ""),
    component::<MemberRecord>("level", ""),
    component::<MemberRecord>("flow_label", ""),
    component::<MemberRecord>("traffic_class", ""),
];

/// A group.
#[derive(Clone, Debug)]
struct Group {
    /// As it is answered, without port and join state.
    record: MemberRecord,
    /// Join states by port.
    members: BTreeMap<Gid, u8>,
}

/// All groups, by GID.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    groups: BTreeMap<Gid, Group>,
    /// The tables do not have the last changes.
    pub(super) are_new: bool,
    /// Ports of each switch by multicast identifier, since the tables were planned.
    plan: BTreeMap<Lid, Vec<PortSet>>,
}

impl Groups {
    fn free_lid(&self) -> Option<Lid> {
        let taken = |lid: &Lid| self.groups.values().any(|group| group.record.lid == *lid);
        let all = Lid::FIRST_MULTICAST.0..Lid::PERMISSIVE.0;
        all.map(Lid).find(|lid| !taken(lid))
    }

    /// Blocks of a table up to the highest identifier that is or was in use.
    fn blocks(&self) -> u16 {
        let top = self.plan.keys().next_back();
        top.map_or(0, |lid| block_of(*lid) + 1)
    }
}

const fn block_of(lid: Lid) -> u16 {
    (lid.0 - Lid::FIRST_MULTICAST.0) / MulticastBlock::LIDS as u16
}

impl Manager {
    /// Takes a Set or Delete of a membership.
    pub(super) fn change_membership(&mut self, query: &AdministrationMad) -> Answer {
        let method = match query.method {
            Method::DELETE => Method::DELETE_RESPONSE,
            _ => Method::GET_RESPONSE,
        };
        let Some(wanted) = query.data_as::<MemberRecord>() else {
            return refuse(query, method, status::INVALID_REQUEST);
        };
        let given = |name| query.mask.contains(component::<MemberRecord>(name, ""));
        if !given("port") || !given("join_state") || wanted.join_state == 0 {
            return refuse(query, method, status::INSUFFICIENT_COMPONENTS);
        }
        let member = self.lid_of_gid(wanted.port).is_some();
        if !member || wanted.group.0[0] != 0xff {
            return refuse(query, method, status::INVALID_GID);
        }
        if query.method == Method::DELETE {
            return self.leave(query, &wanted);
        }
        if !self.groups.groups.contains_key(&wanted.group) {
            let makes = wanted.join_state & FULL != 0
                && NEEDED.iter().all(|mask| query.mask.contains(*mask));
            if !makes {
                return refuse(query, method, status::INSUFFICIENT_COMPONENTS);
            }
            let Some(lid) = self.groups.free_lid() else {
                return refuse(query, method, status::NO_RESOURCES);
            };
            let record = MemberRecord {
                lid,
                mtu_selector: Selector::EXACTLY,
                mtu: if given("mtu") {
                    wanted.mtu
                } else {
                    MtuCode::B2048
                },
                rate_selector: Selector::EXACTLY,
                rate: if given("rate") {
                    wanted.rate
                } else {
                    RateCode(3)
                },
                lifetime_selector: Selector::EXACTLY,
                lifetime: PACKET_LIFE,
                scope: wanted.group.0[1] & 0xf,
                ..wanted
            };
            let members = BTreeMap::new();
            self.groups
                .groups
                .insert(wanted.group, Group { record, members });
            self.tell(&Trap::GroupCreated(GidTrap { gid: wanted.group }));
        }
        let Some(group) = self.groups.groups.get_mut(&wanted.group) else {
            return refuse(query, method, status::NO_RECORDS);
        };
        let fits = |name, found: u64, has: u64| !given(name) || found == has;
        let same = fits("qkey", wanted.qkey.into(), group.record.qkey.into())
            && fits(
                "partition",
                wanted.partition.0.into(),
                group.record.partition.0.into(),
            );
        if !same {
            return refuse(query, method, status::INVALID_REQUEST);
        }
        let state = group.members.entry(wanted.port).or_default();
        *state |= wanted.join_state;
        let answer = MemberRecord {
            port: wanted.port,
            join_state: *state,
            ..group.record
        };
        self.groups.are_new = true;
        one(query, method, &answer)
    }

    fn leave(&mut self, query: &AdministrationMad, wanted: &MemberRecord) -> Answer {
        let method = Method::DELETE_RESPONSE;
        let group = self.groups.groups.get_mut(&wanted.group);
        let Some(group) = group.filter(|group| group.members.contains_key(&wanted.port)) else {
            return refuse(query, method, status::INVALID_REQUEST);
        };
        let state = group.members.entry(wanted.port).or_default();
        *state &= !wanted.join_state;
        let answer = MemberRecord {
            port: wanted.port,
            join_state: *state,
            ..group.record
        };
        if *state == 0 {
            group.members.remove(&wanted.port);
        }
        if group.members.values().all(|state| state & FULL == 0) {
            self.groups.groups.remove(&wanted.group);
            self.tell(&Trap::GroupDeleted(GidTrap { gid: wanted.group }));
        }
        self.groups.are_new = true;
        one(query, method, &answer)
    }

    /// All memberships.
    pub(super) fn member_records(&self) -> Vec<MemberRecord> {
        let groups = self.groups.groups.values();
        let records = groups.flat_map(|group| {
            group.members.iter().map(|(port, join_state)| MemberRecord {
                port: *port,
                join_state: *join_state,
                ..group.record
            })
        });
        records.collect()
    }

    /// The identifier of a port by its GID.
    pub(super) fn lid_of_gid(&self, gid: Gid) -> Option<Lid> {
        let value = u128::from_be_bytes(gid.0);
        if (value >> 64) as u64 != self.settings.gid_prefix {
            return None;
        }
        self.lid_of_guid(softfabric_units::Guid(value as u64))
    }

    /// Plans the trees of all groups, and writes the parts of tables that have changed.
    pub(super) fn write_groups(&mut self) {
        self.groups.are_new = false;
        // Groups that are gone stay in the plan, empty, so that their entries are cleared.
        for ports in self.groups.plan.values_mut() {
            ports.clear();
        }
        let Some((view, _)) = &self.routed else {
            return;
        };
        if self.groups.groups.is_empty() && self.groups.plan.is_empty() {
            return;
        }
        let distances = Distances::new(view);
        let mut plan = std::mem::take(&mut self.groups.plan);
        for group in self.groups.groups.values() {
            let target = |gid: &Gid| {
                let lid = self.lid_of_gid(*gid)?;
                let targets = view.targets();
                let place = targets.binary_search_by_key(&lid, |target| target.lid);
                place.ok().map(|place| targets[place])
            };
            let hears = |state: u8| state & (FULL | NON_MEMBER) != 0;
            let those = |hearing: bool| -> Vec<Target> {
                let of_kind = group
                    .members
                    .iter()
                    .filter(|(_, state)| hears(**state) == hearing);
                of_kind.filter_map(|(gid, _)| target(gid)).collect()
            };
            // Those that no switch reaches together have no tree.
            let tree = multicast_tree(view, &distances, &those(true), &those(false));
            let tree = tree.unwrap_or_default();
            plan.insert(group.record.lid, tree);
        }
        self.groups.plan = plan;
        let blocks = self.groups.blocks();
        let mut orders = Vec::new();
        for switch in 0..view.switches() {
            let node = view.node(switch);
            let positions = self.subnet.node(node).ports / MulticastBlock::PORTS as u8 + 1;
            for block in 0..blocks {
                for position in 0..positions {
                    let wanted = self.wanted_multicast(switch, block, position);
                    let known = self.known.multicast(node, block, position);
                    let has = known.copied().unwrap_or_default();
                    if has != wanted {
                        orders.push(Request::SetMulticast {
                            node,
                            block,
                            position,
                        });
                    }
                }
            }
        }
        for order in orders {
            self.requests.ask(order);
        }
    }

    fn wanted_multicast(&self, switch: usize, block: u16, position: u8) -> MulticastBlock {
        let mut wanted = MulticastBlock::default();
        let first = Lid::FIRST_MULTICAST.0 + block * MulticastBlock::LIDS as u16;
        for (lid, entry) in (first..).zip(&mut wanted.ports) {
            if let Some(ports) = self
                .groups
                .plan
                .get(&Lid(lid))
                .and_then(|plan| plan.get(switch))
            {
                *entry = ports.part(position);
            }
        }
        wanted
    }

    pub(super) fn multicast_order(
        &mut self,
        node: NodeId,
        block: u16,
        position: u8,
    ) -> Option<Smp> {
        let switch = self.switch_of(node)?;
        let wanted = self.wanted_multicast(switch, block, position);
        let modifier = MulticastBlock::modifier(position, block);
        Some(Smp::set(self.route_to(node)?, modifier, &wanted))
    }

    /// Brings tables up to date with memberships, if nothing else is being done.
    pub(super) fn follow_groups(&mut self) {
        if self.phase == Phase::Idle && self.begin_groups() {
            self.next_phase();
        }
    }

    /// Begins to write what changes of groups are not in the tables yet; false where there are none.
    pub(super) fn begin_groups(&mut self) -> bool {
        if !self.groups.are_new || self.routed.is_none() || !self.manages() {
            return false;
        }
        self.summary = Summary {
            cause: Cause::Groups,
            requests: 0,
            writes: 0,
            ..self.summary
        };
        self.write_groups();
        self.phase = Phase::Tables;
        true
    }
}
