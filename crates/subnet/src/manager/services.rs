//! What programs leave with the manager: services that they offer, and notices that they want to hear of (IBTA vol. 1,
//! 13.4.8, 15.2.5.12 to 15.2.5.15).
//!
//! A service has a lease, and is gone when that ends. Who has subscribed gets a Report of each notice that fits: traps of nodes,
//! and the manager's own, of ports and groups that come and go. Who may subscribe and what may be offered is bounded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use softfabric_units::{Gid, Lid, Qpn, Span, Time};
use softfabric_wire::mad::administration::{
    AdministrationMad, InformInfo, InformInfoRecord, ServiceRecord, component,
};
use softfabric_wire::mad::subnet::{GidTrap, Notice, Producer, Trap};
use softfabric_wire::mad::{ComponentMask, Method, NodeType, status};

use super::Manager;
use super::administration::{Answer, one, refuse};
use crate::routing::RoutingView;

/// How many services and subscriptions there may be at most; more are refused.
const MOST: usize = 65_536;
/// How many reports may wait to be sent; the oldest go first.
const MOST_REPORTS: usize = 65_536;
/// A lease without end.
const FOR_EVER: u32 = u32::MAX;
/// "All" of trap numbers and of kinds.
const ALL: u16 = u16::MAX;
/// "All" of producers.
const ALL_PRODUCERS: u32 = 0xff_ffff;
/// The manager itself, as a producer of notices.
const CLASS_MANAGER: u32 = 4;
/// What a service is told apart by, and must say.
const SERVICE: ComponentMask = component::<ServiceRecord>("id", "")
    .with(component::<ServiceRecord>("gid", ""))
    .with(component::<ServiceRecord>("partition", ""));

type ServiceKey = (u64, Gid, u16);

/// Who wants to hear of what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Subscription {
    lid: Lid,
    info: InformInfo,
}

/// A notice on its way to who wants it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// The port.
    pub to: Lid,
    /// The queue pair there.
    pub queue_pair: Qpn,
    /// The datagram.
    pub mad: AdministrationMad,
}

/// All that programs have left.
#[derive(Clone, Debug, Default)]
pub(super) struct Services {
    offered: BTreeMap<ServiceKey, (ServiceRecord, Option<Time>)>,
    subscriptions: Vec<Subscription>,
    reports: VecDeque<Report>,
    next_transaction: u32,
}

/// Leases may be longer than time can be told.
const fn seconds(count: u32) -> Span {
    Span::picos((count as u64).saturating_mul(Span::seconds(1).as_picos()))
}

impl Manager {
    /// The next report to send from queue pair 1. Answers to reports mean nothing here: none is sent twice.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.services.reports.pop_front()
    }

    /// Takes a Set or Delete of a service.
    pub(super) fn change_service(&mut self, query: &AdministrationMad) -> Answer {
        let delete = query.method == Method::DELETE;
        let method = if delete {
            Method::DELETE_RESPONSE
        } else {
            Method::GET_RESPONSE
        };
        let Some(service) = query.data_as::<ServiceRecord>() else {
            return refuse(query, method, status::INVALID_REQUEST);
        };
        if !query.mask.contains(SERVICE) {
            return refuse(query, method, status::INSUFFICIENT_COMPONENTS);
        }
        self.end_leases();
        let key = (service.id.0, service.gid, service.partition.0);
        let known = self.services.offered.get(&key);
        if known.is_some_and(|(known, _)| known.key != service.key) {
            return refuse(query, method, status::DENIED);
        }
        if delete {
            return match self.services.offered.remove(&key) {
                Some((gone, _)) => one(query, method, &gone),
                None => refuse(query, method, status::NO_RECORDS),
            };
        }
        if self.lid_of_gid(service.gid).is_none() {
            return refuse(query, method, status::INVALID_GID);
        }
        if known.is_none() && self.services.offered.len() >= MOST {
            return refuse(query, method, status::NO_RESOURCES);
        }
        let given = query.mask.contains(component::<ServiceRecord>("lease", ""));
        let lease = if given { service.lease } else { FOR_EVER };
        let end = (lease != FOR_EVER).then(|| self.now.saturating_add(seconds(lease)));
        let record = ServiceRecord { lease, ..service };
        self.services.offered.insert(key, (record, end));
        one(query, method, &record)
    }

    fn end_leases(&mut self) {
        let now = self.now;
        let holds = |end: &Option<Time>| end.is_none_or(|end| end > now);
        self.services.offered.retain(|_, (_, end)| holds(end));
    }

    /// The services on offer, with what is left of their leases. Their keys are nobody's business.
    pub(super) fn service_records(&self) -> Vec<ServiceRecord> {
        let offered = self.services.offered.values();
        offered
            .filter_map(|(record, end)| {
                let lease = match end {
                    None => FOR_EVER,
                    Some(end) if *end > self.now => {
                        let left = end.as_picos() - self.now.as_picos();
                        // Less than for ever, as it ends.
                        left.div_ceil(Span::seconds(1).as_picos())
                            .min(u64::from(FOR_EVER - 1)) as u32
                    }
                    Some(_) => return None,
                };
                Some(ServiceRecord {
                    lease,
                    key: [0; 16],
                    ..*record
                })
            })
            .collect()
    }

    /// Takes a subscription of a program at `asker`, or its end.
    pub(super) fn change_subscription(&mut self, query: &AdministrationMad, asker: Lid) -> Answer {
        let method = Method::GET_RESPONSE;
        let Some(info) = query.data_as::<InformInfo>() else {
            return refuse(query, method, status::INVALID_REQUEST);
        };
        let wanted = InformInfo {
            subscribe: 1,
            response_time: 0,
            ..info
        };
        let is_it = |known: &Subscription| {
            let known_info = InformInfo {
                response_time: 0,
                ..known.info
            };
            known.lid == asker && known_info == wanted
        };
        let subscriptions = &mut self.services.subscriptions;
        let place = subscriptions.iter().position(is_it);
        match (info.subscribe, place) {
            (1, Some(_)) => {}
            (1, None) if subscriptions.len() >= MOST => {
                return refuse(query, method, status::NO_RESOURCES);
            }
            (1, None) => subscriptions.push(Subscription { lid: asker, info }),
            (0, Some(place)) => {
                subscriptions.remove(place);
            }
            // Nothing to end, or neither of both.
            _ => return refuse(query, method, status::INVALID_REQUEST),
        }
        one(query, method, &info)
    }

    /// All subscriptions.
    pub(super) fn subscription_records(&self) -> Vec<InformInfoRecord> {
        let Some((view, _)) = self.routes() else {
            return Vec::new();
        };
        let gid = |lid: Lid| {
            let targets = view.targets();
            let place = targets
                .binary_search_by_key(&lid, |target| target.lid)
                .ok()?;
            Some(self.gid_of(targets[place].end))
        };
        (0..)
            .zip(&self.services.subscriptions)
            .filter_map(|(number, subscription)| {
                Some(InformInfoRecord {
                    subscriber: gid(subscription.lid)?,
                    number,
                    info: subscription.info,
                })
            })
            .collect()
    }

    /// Passes a notice on to all who want it.
    pub(super) fn report(&mut self, notice: &Notice) {
        let services = &mut self.services;
        for subscription in &services.subscriptions {
            if !wants(&subscription.info, notice) {
                continue;
            }
            services.next_transaction = services.next_transaction.wrapping_add(1);
            let mut mad = AdministrationMad::query(Method::REPORT, ComponentMask::NONE, notice);
            mad.transaction = u64::from(services.next_transaction);
            mad.attribute_offset = 0;
            if services.reports.len() >= MOST_REPORTS {
                services.reports.pop_front();
            }
            services.reports.push_back(Report {
                to: subscription.lid,
                queue_pair: subscription.info.qpn,
                mad,
            });
        }
    }

    /// A notice of the manager itself.
    pub(super) fn tell(&mut self, trap: &Trap) {
        let lid = self.own.map_or(Lid(0), |own| self.lid_of(own));
        if let Some(notice) = Notice::of(trap, NodeType::CHANNEL_ADAPTER, lid) {
            self.report(&Notice {
                producer: Producer::new(CLASS_MANAGER),
                issuer_gid: self.own.map_or(Gid::default(), |own| self.gid_of(own)),
                ..notice
            });
        }
    }

    /// Tells of adapter ports that have come and gone between the view before and `view`; subscriptions of those that are
    /// gone end.
    pub(super) fn tell_of_ports(&mut self, view: &RoutingView) {
        if self.services.subscriptions.is_empty() {
            return;
        }
        let ends = |view: &RoutingView| -> BTreeSet<_> {
            let targets = view.targets().iter();
            targets
                .filter(|target| target.is_adapter())
                .map(|target| target.end)
                .collect()
        };
        let Some((old, _)) = &self.routed else {
            return;
        };
        let (before, now) = (ends(old), ends(view));
        let lids: BTreeSet<Lid> = view.targets().iter().map(|target| target.lid).collect();
        let subscriptions = &mut self.services.subscriptions;
        subscriptions.retain(|subscription| lids.contains(&subscription.lid));
        for end in before.difference(&now) {
            let gid = self.gid_of(*end);
            self.tell(&Trap::OutOfService(GidTrap { gid }));
        }
        for end in now.difference(&before) {
            let gid = self.gid_of(*end);
            self.tell(&Trap::InService(GidTrap { gid }));
        }
    }
}

/// Whether a subscription is for a notice.
fn wants(info: &InformInfo, notice: &Notice) -> bool {
    let from = info.first_lid == Lid::PERMISSIVE
        || info.gid != Gid::default()
        || (info.first_lid..=info.last_lid.max(info.first_lid)).contains(&notice.issuer);
    let port = info.gid == Gid::default() || info.gid == notice.issuer_gid;
    let producer = info.producer.as_u32();
    from && port
        && (info.generic == 1) == notice.generic
        && info.wants(notice.kind)
        && (info.number == ALL || info.number == notice.number)
        && (producer == ALL_PRODUCERS || producer == notice.producer.as_u32())
}
