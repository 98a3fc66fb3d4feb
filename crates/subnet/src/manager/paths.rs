//! Paths, as subnet administration answers them: between two ports, from one to all, and among several.
//!
//! MTU, rate and lifetime are read with their selectors; the level is the engine's, the one that is asked for, or the policy's.

use softfabric_units::Gid;
use softfabric_wire::infiniband::ServiceLevel;
use softfabric_wire::mad::administration::{
    AdministrationMad, MultiPathRecord, PathRecord, component, matches,
};
use softfabric_wire::mad::cm::ServiceId;
use softfabric_wire::mad::{Attribute, ComponentMask, Method, MtuCode, RateCode, Selector, status};

use super::administration::{Amount, Answer, answer, refuse};
use super::program::PACKET_LIFE;
use super::{Manager, PathRequest};
use crate::routing::{Levels, Routes, RoutingView, Target};
use crate::subnet::PortRef;

/// The bytes of a GID.
const GID: usize = 16;

impl Manager {
    /// Paths from one port to one or to all.
    pub(super) fn paths(
        &self,
        query: &AdministrationMad,
        method: Method,
        view: &RoutingView,
        routes: &Routes,
    ) -> Answer {
        const SOURCES: [ComponentMask; 2] = [
            component::<PathRecord>("source_gid", ""),
            component::<PathRecord>("source_lid", ""),
        ];
        let Some(wanted) = query.data_as::<PathRecord>() else {
            return refuse(query, method, status::INVALID_REQUEST);
        };
        let [by_gid, by_lid] = SOURCES.map(|component| query.mask.contains(component));
        if !by_gid && !by_lid {
            return refuse(query, method, status::INSUFFICIENT_COMPONENTS);
        }
        let gid = |target: &Target| self.gid_of(target.end);
        let sources = view.targets().iter().filter(|target| {
            (!by_gid || gid(target) == wanted.source_gid)
                && (!by_lid || target.lid == wanted.source_lid)
        });
        let found: Vec<PathRecord> = sources
            .flat_map(|from| view.targets().iter().map(move |to| (from, to)))
            .filter_map(|(from, to)| {
                let path = PathRecord {
                    source_gid: gid(from),
                    destination_gid: gid(to),
                    ..self.path(view, routes, from, to, &wanted, query.mask)?
                };
                fits(&path, &wanted, query.mask).then_some(path)
            })
            .collect();
        match query.method {
            // Of several paths that fit, any will do.
            Method::GET => answer(query, Amount::One, found.get(..1).unwrap_or_default()),
            _ => answer(query, Amount::All, &found),
        }
    }

    /// Paths from any of several ports to any of several others; the first of each pair of identifiers, and at most as many as
    /// are wanted. Nothing is promised about links in common.
    pub(super) fn multiple_paths(
        &self,
        query: &AdministrationMad,
        view: &RoutingView,
        routes: &Routes,
    ) -> Answer {
        let refused = |status| refuse(query, Method::GET_MULTI_RESPONSE, status);
        let Some(wanted) = query.data_as::<MultiPathRecord>() else {
            return refused(status::INVALID_REQUEST);
        };
        let (sources, destinations) = (wanted.sources.into(), wanted.destinations.into());
        let counts = [multi("sources"), multi("destinations")];
        let counted = counts.iter().all(|mask| query.mask.contains(*mask));
        if !counted || sources == 0 || destinations == 0 {
            return refused(status::INSUFFICIENT_COMPONENTS);
        }
        let gids: Vec<Gid> = query.data[MultiPathRecord::LENGTH..]
            .chunks_exact(GID)
            .filter_map(|bytes| bytes.try_into().ok().map(Gid))
            .take(sources + destinations)
            .collect();
        // Requests in several parts are not taken.
        let Some((from, to)) = gids
            .split_at_checked(sources)
            .filter(|(_, to)| to.len() == destinations)
        else {
            return refused(status::INVALID_REQUEST);
        };
        let (wanted, mask, most) = one_of(&wanted, query.mask);
        let all = |gids: &[Gid]| -> Vec<&Target> {
            let known = |gid: Gid| {
                let targets = view.targets().iter();
                targets.filter(move |target| self.gid_of(target.end) == gid)
            };
            gids.iter().copied().flat_map(known).collect()
        };
        let to = all(to);
        let found = all(from)
            .into_iter()
            .flat_map(|from| to.iter().map(move |to| (from, *to)))
            .filter_map(|(from, to)| {
                let path = PathRecord {
                    source_gid: self.gid_of(from.end),
                    destination_gid: self.gid_of(to.end),
                    ..self.path(view, routes, from, to, &wanted, mask)?
                };
                fits(&path, &wanted, mask).then_some(path)
            });
        let found: Vec<PathRecord> = found.take(most).collect();
        let mut answer = answer(query, Amount::All, &found);
        answer.head.method = Method::GET_MULTI_RESPONSE;
        answer
    }

    /// The path between two identifiers: its level, and the least of its links' MTUs and rates.
    fn path(
        &self,
        view: &RoutingView,
        routes: &Routes,
        from: &Target,
        to: &Target,
        wanted: &PathRecord,
        mask: ComponentMask,
    ) -> Option<PathRecord> {
        let asked = |name| mask.contains(component_of(name));
        let partition = Some(wanted.partition).filter(|_| asked("partition"));
        let partition = self.shared_key(from.end, to.end, partition)?;
        let guid = |end| self.subnet().port(self.subnet().end_port(end)).guid;
        let request = PathRequest {
            partition,
            service: Some(wanted.service).filter(|_| asked("service")),
            class: Some(wanted.qos_class).filter(|_| asked("qos_class")),
            source: guid(from.end),
            destination: guid(to.end),
        };
        let by_engine = (routes.levels != Levels::Uniform).then(|| {
            if from.switch == to.switch {
                0
            } else {
                routes.level(from.switch as usize, to.lid)
            }
        });
        let wants = Some(wanted.level.as_u8()).filter(|_| asked("level"));
        let level = self.path_level(by_engine, wants, &request, from.end)?;
        let walk = routes.walk(view, from.switch as usize, to.lid);
        let switch_port = |switch: u32, port: u8| PortRef {
            node: view.node(switch as usize),
            port,
        };
        let links = walk.links.iter().map(|link| view.links()[*link]);
        let mut ports: Vec<PortRef> = links
            .map(|link| switch_port(link.from, link.port))
            .collect();
        for end in [from, to] {
            if end.is_adapter() {
                ports.push(switch_port(end.switch, end.port));
            }
        }
        let infos = || ports.iter().filter_map(|port| self.known.port(*port));
        let mtu = infos()
            .map(|info| info.neighbor_mtu)
            .filter(|mtu| mtu.0 != 0)
            .min();
        let rate = infos().filter_map(|info| info.rate()).min();
        Some(PathRecord {
            // What the path is for, as it was asked.
            service: request.service.unwrap_or_default(),
            qos_class: request.class.unwrap_or(0),
            source_lid: from.lid,
            destination_lid: to.lid,
            reversible: true,
            paths: 1,
            partition,
            level: ServiceLevel::checked(level)?,
            mtu_selector: Selector::EXACTLY,
            mtu: mtu.unwrap_or(MtuCode::B2048),
            rate_selector: Selector::EXACTLY,
            rate: RateCode::at_most(rate.unwrap_or_default()),
            lifetime_selector: Selector::EXACTLY,
            lifetime: PACKET_LIFE,
            ..PathRecord::default()
        })
    }
}

/// Whether a path is as `wanted`, with selectors.
fn fits(path: &PathRecord, wanted: &PathRecord, mask: ComponentMask) -> bool {
    let asked = |name| mask.contains(component_of(name));
    let chosen = |selector: Selector, has: u64, wanted: u64| match selector {
        Selector::GREATER => has > wanted,
        Selector::LESS => has < wanted,
        Selector::EXACTLY => has == wanted,
        _ => true,
    };
    let rate = |code: RateCode| code.rate().unwrap_or_default().as_bps();
    let measures = [
        (
            "mtu",
            wanted.mtu_selector,
            path.mtu.0.into(),
            wanted.mtu.0.into(),
        ),
        (
            "rate",
            wanted.rate_selector,
            rate(path.rate),
            rate(wanted.rate),
        ),
        (
            "lifetime",
            wanted.lifetime_selector,
            path.lifetime.into(),
            wanted.lifetime.into(),
        ),
    ];
    let measured = measures
        .into_iter()
        .all(|(name, selector, has, wanted)| !asked(name) || chosen(selector, has, wanted));
    // What a path does not have of its own, or what is compared otherwise.
    let elsewhere = [
        "service",
        "mtu_selector",
        "mtu",
        "rate_selector",
        "rate",
        "lifetime_selector",
        "lifetime",
        "paths",
        "flow_label",
        "hop_limit",
        "traffic_class",
        "qos_class",
        "preference",
        "partition",
        "raw",
    ];
    let left = elsewhere
        .into_iter()
        .fold(mask.0, |left, name| left & !component_of(name).0);
    measured
        && (!asked("partition") || path.partition.matches(wanted.partition))
        && matches(path, wanted, ComponentMask(left))
}

fn component_of(name: &str) -> ComponentMask {
    component::<PathRecord>(name, "")
}

/// What each of several paths should be like, what of that counts, and how many there may be.
fn one_of(wanted: &MultiPathRecord, asked: ComponentMask) -> (PathRecord, ComponentMask, usize) {
    let same = [
        "raw",
        "flow_label",
        "hop_limit",
        "traffic_class",
        "reversible",
        "partition",
        "qos_class",
        "level",
        "mtu_selector",
        "mtu",
        "rate_selector",
        "rate",
        "lifetime_selector",
        "lifetime",
    ];
    let mut mask = ComponentMask::NONE;
    for name in same {
        if asked.contains(multi(name)) {
            mask = mask.with(component_of(name));
        }
    }
    if asked.contains(multi("service_high").with(multi("service_low"))) {
        mask = mask.with(component_of("service"));
    }
    let path = PathRecord {
        service: ServiceId(u64::from(wanted.service_high) << 56 | wanted.service_low),
        raw: wanted.raw,
        flow_label: wanted.flow_label,
        hop_limit: wanted.hop_limit,
        traffic_class: wanted.traffic_class,
        reversible: wanted.reversible,
        partition: wanted.partition,
        qos_class: wanted.qos_class,
        level: wanted.level,
        mtu_selector: wanted.mtu_selector,
        mtu: wanted.mtu,
        rate_selector: wanted.rate_selector,
        rate: wanted.rate,
        lifetime_selector: wanted.lifetime_selector,
        lifetime: wanted.lifetime,
        ..PathRecord::default()
    };
    let limited = asked.contains(multi("paths")) && wanted.paths > 0;
    let most = if limited {
        wanted.paths.into()
    } else {
        usize::MAX
    };
    (path, mask, most)
}

fn multi(name: &str) -> ComponentMask {
    component::<MultiPathRecord>(name, "")
}
