//! Subnet administration: answers of what the manager knows to whoever asks (IBTA vol. 1, chapter 15).
//!
//! One record answers a Get, all that match a GetTable. What is asked with a component mask must be equal. Answers longer than a datagram are for the driver's
//! [`RmppSender`](softfabric_wire::mad::administration::rmpp::RmppSender).

use softfabric_units::{Gid, Guid, Lid};
use softfabric_wire::mad::administration::{
    AdministrationMad, ForwardingRecord, GuidInfoRecord, InformInfo, InformInfoRecord,
    LevelMapRecord, LinkRecord, MemberRecord, MultiPathRecord, MulticastForwardingRecord,
    NodeRecord, PartitionTableRecord, PathRecord, PortInfoRecord, ServiceRecord, SmInfoRecord,
    SwitchInfoRecord, VlArbitrationRecord, attribute_offset, component, encode_table, matches,
};
use softfabric_wire::mad::performance::ClassPortInfo;
use softfabric_wire::mad::subnet::{NodeDescription, NodeInfo};
use softfabric_wire::mad::{Attribute, ClassCapabilities, Method, status};

use super::Manager;
use crate::routing::{Routes, RoutingView, Target};
use crate::subnet::PortRef;

/// Of what administration can, as OpenSM announces it: paths among several ports, and quality of service.
const MULTIPLE_PATHS: u16 = 1 << 10;
const QUALITY: u32 = 1 << 1;

/// What to send back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The datagram: headers, status, and of a Get the record.
    pub head: AdministrationMad,
    /// The records of a GetTable, whether they fit a datagram or not.
    pub table: Option<Vec<u8>>,
}

/// Of the answers to a query, the first or all.
pub(super) enum Amount {
    One,
    All,
}

impl Manager {
    /// Answers a query, and takes memberships of groups. Without routes, and while another manages, who asks is told to come
    /// back later, and who wants changes is refused.
    pub fn administer(&mut self, query: &AdministrationMad) -> Answer {
        self.administer_from(query, Lid(0))
    }

    /// The same, of a program at the port with this identifier: it may subscribe to notices.
    pub fn administer_from(&mut self, query: &AdministrationMad, asker: Lid) -> Answer {
        let changes = matches!(query.method, Method::SET | Method::DELETE);
        if !changes || self.routed.is_none() || !self.manages() {
            return self.inform(query);
        }
        match (query.attribute, query.method) {
            (MemberRecord::ID, _) => {
                let answer = self.change_membership(query);
                self.follow_groups();
                answer
            }
            (ServiceRecord::ID, _) => self.change_service(query),
            (InformInfo::ID, Method::SET) if asker.is_unicast() => {
                self.change_subscription(query, asker)
            }
            _ => self.inform(query),
        }
    }

    /// Answers a query that changes nothing.
    pub fn inform(&self, query: &AdministrationMad) -> Answer {
        let method = match query.method {
            Method::GET => Method::GET_RESPONSE,
            Method::GET_TABLE => Method::GET_TABLE_RESPONSE,
            Method::GET_MULTI if query.attribute == MultiPathRecord::ID => {
                Method::GET_MULTI_RESPONSE
            }
            other => return refuse(query, Method(other.0 | 0x80), status::UNSUPPORTED_METHOD),
        };
        let Some((view, routes)) = self.routes().filter(|_| self.manages()) else {
            return refuse(query, method, status::BUSY);
        };
        match query.attribute {
            ClassPortInfo::ID => one(query, method, &self.class_port_info()),
            NodeRecord::ID => self.give(query, self.node_records(view)),
            PortInfoRecord::ID => self.give(query, self.port_records(view)),
            SwitchInfoRecord::ID => self.give(query, self.switch_records(view)),
            LinkRecord::ID => self.give(query, self.link_records(view)),
            ForwardingRecord::ID => self.give(query, self.forwarding_records(view, routes)),
            SmInfoRecord::ID => self.give(query, self.manager_record()),
            MemberRecord::ID => self.give(query, self.member_records()),
            PathRecord::ID => self.paths(query, method, view, routes),
            MultiPathRecord::ID if query.method == Method::GET_MULTI => {
                self.multiple_paths(query, view, routes)
            }
            ServiceRecord::ID => self.give(query, self.service_records()),
            InformInfoRecord::ID => self.give(query, self.subscription_records()),
            LevelMapRecord::ID => {
                let asked = query.mask.contains(component::<LevelMapRecord>("lid", ""));
                let wanted = query.data_as::<LevelMapRecord>();
                let of = wanted.map(|wanted| wanted.lid).filter(|_| asked);
                self.give(query, self.level_records(view, of))
            }
            VlArbitrationRecord::ID => self.give(query, self.arbitration_records(view)),
            PartitionTableRecord::ID => self.give(query, self.partition_records(view)),
            MulticastForwardingRecord::ID => self.give(query, self.multicast_records(view)),
            GuidInfoRecord::ID => self.give(query, self.guid_records(view)),
            _ => refuse(query, method, status::UNSUPPORTED_ATTRIBUTE),
        }
    }

    fn give<A: Attribute>(&self, query: &AdministrationMad, records: Vec<A>) -> Answer {
        let Some(wanted) = query.data_as::<A>() else {
            return refuse(query, Method::GET_RESPONSE, status::INVALID_REQUEST);
        };
        let found = records
            .into_iter()
            .filter(|record| matches(record, &wanted, query.mask));
        let amount = match query.method {
            Method::GET => Amount::One,
            _ => Amount::All,
        };
        answer(query, amount, &found.collect::<Vec<_>>())
    }

    /// What administration can: programs name classes and services of paths where it says that it minds them.
    fn class_port_info(&self) -> ClassPortInfo {
        ClassPortInfo {
            base_version: 1,
            class_version: 2,
            capabilities: ClassCapabilities(MULTIPLE_PATHS),
            capabilities_2: if self.quality.is_some() { QUALITY } else { 0 },
            response_time: 18,
            ..ClassPortInfo::default()
        }
    }

    /// The end ports in reach: of switches in the view, and of adapters at them.
    pub(super) fn ends<'a>(
        &'a self,
        view: &'a RoutingView,
    ) -> impl Iterator<Item = (PortRef, Lid)> + 'a {
        let first = |target: &&Target| target.copy == 0;
        view.targets()
            .iter()
            .filter(first)
            .map(|target| (target.end, target.lid))
    }

    fn node_records(&self, view: &RoutingView) -> Vec<NodeRecord> {
        self.ends(view)
            .filter_map(|(end, lid)| {
                Some(NodeRecord {
                    lid,
                    info: NodeInfo {
                        port: self.subnet().port(end).guid,
                        local_port: end.port,
                        ..*self.known.info(end.node)?
                    },
                    description: NodeDescription::new(&self.subnet().node(end.node).description),
                })
            })
            .collect()
    }

    fn port_records(&self, view: &RoutingView) -> Vec<PortInfoRecord> {
        let mut records = Vec::new();
        for (end, lid) in self.ends(view) {
            let last = if end.port == 0 {
                self.subnet().node(end.node).ports
            } else {
                end.port
            };
            for port in end.port..=last {
                let place = PortRef {
                    node: end.node,
                    port,
                };
                records.extend(self.known.port(place).map(|info| PortInfoRecord {
                    lid,
                    port,
                    options: 0,
                    info: *info,
                }));
            }
        }
        records
    }

    fn switch_records(&self, view: &RoutingView) -> Vec<SwitchInfoRecord> {
        self.ends(view)
            .filter_map(|(end, lid)| {
                let info = self.known.switch(end.node).filter(|_| end.port == 0)?;
                Some(SwitchInfoRecord { lid, info: *info })
            })
            .collect()
    }

    fn link_records(&self, view: &RoutingView) -> Vec<LinkRecord> {
        let reached = |port: PortRef| {
            let node = self.subnet().node(port.node);
            !node.is_switch() || view.switch_of(port.node).is_some()
        };
        self.subnet()
            .cables()
            .filter(|(left, right)| reached(*left) && reached(*right))
            .flat_map(|(left, right)| [(left, right), (right, left)])
            .map(|(from, to)| LinkRecord {
                from_lid: self.lid_of(from),
                from_port: from.port,
                to_port: to.port,
                to_lid: self.lid_of(to),
            })
            .collect()
    }

    fn forwarding_records(&self, view: &RoutingView, routes: &Routes) -> Vec<ForwardingRecord> {
        let mut records = Vec::new();
        for switch in 0..view.switches() {
            let lid = self.lid_of(PortRef {
                node: view.node(switch),
                port: 0,
            });
            records.extend((0..routes.blocks()).map(|block| ForwardingRecord {
                lid,
                block: block as u16,
                ports: routes.block(switch, block),
            }));
        }
        records
    }

    fn manager_record(&self) -> Vec<SmInfoRecord> {
        let record = self.own.map(|own| SmInfoRecord {
            lid: self.lid_of(own),
            info: self.manager_info(),
        });
        record.into_iter().collect()
    }

    /// The first GID of an end port.
    pub(super) fn gid_of(&self, end: PortRef) -> Gid {
        let guid = self.subnet().port(self.subnet().end_port(end)).guid;
        guid.gid(self.settings.gid_prefix)
    }

    /// The identifier of a port's GUID, if it is known.
    pub fn lid_of_guid(&self, guid: Guid) -> Option<Lid> {
        let found = self
            .subnet()
            .end_ports()
            .find(|(_, port)| port.guid == guid);
        found.map(|(_, port)| port.lid).filter(|lid| *lid != Lid(0))
    }
}

fn head(query: &AdministrationMad, method: Method, status: u16) -> AdministrationMad {
    AdministrationMad {
        method,
        status,
        ..*query
    }
}

pub(super) fn refuse(query: &AdministrationMad, method: Method, status: u16) -> Answer {
    Answer {
        head: head(query, method, status),
        table: None,
    }
}

pub(super) fn one<A: Attribute>(query: &AdministrationMad, method: Method, record: &A) -> Answer {
    Answer {
        head: AdministrationMad {
            attribute_offset: attribute_offset::<A>(),
            data: record.to_bytes(),
            ..head(query, method, 0)
        },
        table: None,
    }
}

pub(super) fn answer<A: Attribute>(
    query: &AdministrationMad,
    amount: Amount,
    found: &[A],
) -> Answer {
    match (amount, found) {
        (Amount::All, _) => Answer {
            head: AdministrationMad {
                attribute_offset: attribute_offset::<A>(),
                ..head(query, Method::GET_TABLE_RESPONSE, 0)
            },
            table: Some(encode_table(found)),
        },
        (Amount::One, []) => refuse(query, Method::GET_RESPONSE, status::NO_RECORDS),
        (Amount::One, [record]) => one(query, Method::GET_RESPONSE, record),
        (Amount::One, _) => refuse(query, Method::GET_RESPONSE, status::TOO_MANY_RECORDS),
    }
}
