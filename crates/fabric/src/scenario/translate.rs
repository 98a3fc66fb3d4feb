//! The same scenario over another technology: what is particular to one stays with that one.
//!
//! ```text
//! scenario ─► without what only its own technology has ─► with [compare.<technology>] over it ─► scenario of that technology
//!                        └─► left out, with the reason
//! ```
//!
//! Machines, cables, traffic and events are never touched, but for events that the technology does not know (a broken NIC's
//! pause frames need PFC); those are among what is left out.

use toml::{Table, Value};

use super::error::{Problems, ScenarioError};
use super::{Event, FabricKind, Overlay, RoutingKind, Scenario, TimingKind};

/// A scenario as another technology runs it.
#[derive(Clone, Debug)]
pub struct Translation {
    /// The technology.
    pub kind: FabricKind,
    /// The scenario.
    pub scenario: Scenario,
    /// What the file says and this technology does not have.
    pub left_out: Vec<LeftOut>,
    /// For each event of the file its place among those of the scenario; `None` for one that was left out.
    pub events: Vec<Option<usize>>,
}

/// A setting that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The field: `switch.alpha`.
    pub field: String,
    /// Why.
    pub reason: &'static str,
}

/// What switches of every technology have.
const SWITCH_COMMON: &[&str] = &["names", "latency", "forwarding", "cut_through_header"];
/// What makes classes of an Ethernet switch lossless, or marks their packets: each transport on it has its own.
const SWITCH_CLASSES: &[&str] = &[
    "lossless",
    "headroom_pool",
    "accounting",
    "group_to_pfc",
    "pfc_to_queue",
    "ecn",
    "reserved",
    "alpha",
    "headroom",
    "xon",
    "xon_offset",
    "pause",
    "watchdog",
    "class",
];
/// How RDMA hosts react to congestion: RoCE's way is not InfiniBand's.
const HOST_CONGESTION: &[&str] = &[
    "preset",
    "congestion_control",
    "notification",
    "cnp_interval",
    "cnp_class",
    "acknowledgement_class",
    "lossless",
    "pause_quanta",
];
/// What hosts that speak TCP have.
const HOST_TCP: &[&str] = &["names", "tcp", "server"];

const NO_ETHERNET: &str =
    "an Ethernet switch has it; InfiniBand's lanes and credits are in `[infiniband]`";
const NO_SPRAYING: &str = "it is Ethernet's: forwarding tables give each destination one port, or several with `infiniband.adaptive_routing`";
const OTHER_CLASSES: &str = "it is what the file's own transport needs of its classes";
const OTHER_CONGESTION: &str = "it is congestion control of the file's own technology";
const NO_RDMA: &str = "a TCP host has no queue pairs: see `[host.tcp]`";
const NO_DIRECT: &str = "sockets reach an accelerator's memory through the host's alone";
const NO_TCP: &str = "hosts speak RDMA here";
const NO_INFINIBAND: &str = "it is a setting of InfiniBand";
const NO_IP: &str = "InfiniBand has its own addresses";
const ROUTING_ENGINE: &str =
    "it is a routing engine of InfiniBand: switches use all shortest paths";
const EXACT_TIMING: &str = "the HPCC code's timing knows RoCE alone: time is exact here";
const NO_PAUSES: &str =
    "there are no pause frames that a broken NIC could send, or that could be turned off";
const NO_FAILOVER: &str = "what a socket has taken and not delivered is lost with its connection: a job over TCP waits for its link";
const NO_DRAIN: &str = "it slows a NIC down; a slow TCP host has slow processors";

impl FabricKind {
    const fn is_roce(self) -> bool {
        matches!(self, Self::RoceV2 | Self::RoceV1)
    }
}

impl Scenario {
    /// The technology that hosts speak.
    pub fn technology(&self) -> FabricKind {
        self.fabric.kind.unwrap_or(FabricKind::RoceV2)
    }

    /// The scenario as this technology runs it.
    ///
    /// # Errors
    /// If what `[compare]` lays over it makes no sense.
    pub fn over(&self, kind: FabricKind) -> Result<Translation, ScenarioError> {
        let own = self.technology();
        let mut base = self.clone();
        let overlay = base.compare.overlay(kind).cloned();
        base.compare = super::Compare::default();
        let mut left_out = Vec::new();
        let mut events: Vec<_> = (0..self.event.len()).map(Some).collect();
        if kind != own {
            base.fabric.kind = Some(kind);
            leave_out_events(&mut base, kind, &mut events, &mut left_out);
            if base.timing == Some(TimingKind::Hpcc) && !kind.is_roce() {
                base.timing = None;
                left_out.push(left("timing", EXACT_TIMING));
            }
            for (place, job) in base.job.iter_mut().enumerate() {
                if kind == FabricKind::Tcp && job.failover.take() == Some(true) {
                    left_out.push(left(format!("job[{place}].failover"), NO_FAILOVER));
                }
            }
            let routing = base.fabric.routing;
            let is_engine = !matches!(
                routing,
                None | Some(RoutingKind::Shortest | RoutingKind::UpDown)
            );
            if kind != FabricKind::Infiniband && is_engine {
                base.fabric.routing = None;
                left_out.push(left("fabric.routing", ROUTING_ENGINE));
            }
        }
        let mut table = Table::try_from(&base).expect("a scenario is made of tables and texts");
        if kind != own {
            leave_out(&mut table, own, kind, &mut left_out);
        }
        if let Some(overlay) = &overlay {
            self.check_overlay(kind, overlay)?;
            let over = Table::try_from(overlay).expect("settings are made of tables and texts");
            merge(&mut table, over);
        }
        let mut scenario: Self = table.try_into().expect("its parts are those of scenarios");
        scenario.source = self.source.clone();
        if overlay.is_some() {
            scenario.source.overlay = Some(kind.word());
        }
        Ok(Translation {
            kind,
            scenario,
            left_out,
            events,
        })
    }

    /// Whether the file says anything about this technology alone.
    pub fn has_overlay(&self, kind: FabricKind) -> bool {
        self.compare.overlay(kind).is_some()
    }

    fn check_overlay(&self, kind: FabricKind, overlay: &Overlay) -> Result<(), ScenarioError> {
        let mut problems = Problems::new(&self.source);
        if let Some(found) = overlay.fabric.kind {
            problems.add(
                format!("compare.{}.fabric.kind", kind.word()),
                format!("`{}`", found.word()),
                "nothing: the table's own name says the kind",
                Some("remove it".to_owned()),
            );
        }
        problems.finish()
    }
}

fn left(field: impl Into<String>, reason: &'static str) -> LeftOut {
    LeftOut {
        field: field.into(),
        reason,
    }
}

fn leave_out_events(
    scenario: &mut Scenario,
    kind: FabricKind,
    places: &mut [Option<usize>],
    left_out: &mut Vec<LeftOut>,
) {
    let mut kept = 0;
    let mut place = 0;
    scenario.event.retain(|event| {
        let reason = match event {
            Event::Storm { .. } | Event::PfcOff { .. } if !kind.is_roce() => Some(NO_PAUSES),
            Event::Drain { .. } if kind == FabricKind::Tcp => Some(NO_DRAIN),
            _ => None,
        };
        places[place] = reason.is_none().then_some(kept);
        if let Some(reason) = reason {
            left_out.push(left(format!("event[{place}]"), reason));
        } else {
            kept += 1;
        }
        place += 1;
        reason.is_none()
    });
}

/// Takes out of the tables of switches and hosts what the technology does not have.
fn leave_out(table: &mut Table, own: FabricKind, kind: FabricKind, left_out: &mut Vec<LeftOut>) {
    let mut remove =
        |path: &str, table: &mut Table, reason_of: &dyn Fn(&str) -> Option<&'static str>| {
            let names: Vec<String> = table.keys().cloned().collect();
            for name in names {
                if let Some(reason) = reason_of(&name) {
                    table.remove(&name);
                    left_out.push(left(join(path, &name), reason));
                }
            }
        };
    let fabric = |name: &str| {
        (kind == FabricKind::Infiniband && matches!(name, "ip" | "segment")).then_some(NO_IP)
    };
    let same_family = own.is_roce() == kind.is_roce() && own != FabricKind::Tcp;
    let switch = |name: &str| {
        if kind == FabricKind::Infiniband && name == "load_balancing" {
            Some(NO_SPRAYING)
        } else if kind == FabricKind::Infiniband && !SWITCH_COMMON.contains(&name) {
            Some(NO_ETHERNET)
        } else if !same_family && SWITCH_CLASSES.contains(&name) {
            Some(OTHER_CLASSES)
        } else {
            None
        }
    };
    let host = |name: &str| {
        if kind == FabricKind::Tcp {
            (!HOST_TCP.contains(&name)).then_some(NO_RDMA)
        } else if name == "tcp" {
            Some(NO_TCP)
        } else if kind == FabricKind::Infiniband && name == "source_port" {
            Some(NO_IP)
        } else if !(own.is_roce() && kind.is_roce()) && HOST_CONGESTION.contains(&name) {
            Some(OTHER_CONGESTION)
        } else {
            None
        }
    };
    let top = |name: &str| {
        (kind != FabricKind::Infiniband && name == "infiniband").then_some(NO_INFINIBAND)
    };
    each_table(table, "fabric", &mut |path, table| {
        remove(path, table, &fabric);
    });
    each_table(table, "switch", &mut |path, table| {
        remove(path, table, &switch);
    });
    each_table(table, "switch_group", &mut |path, table| {
        remove(path, table, &switch);
    });
    each_table(table, "host", &mut |path, table| remove(path, table, &host));
    each_table(table, "host_group", &mut |path, table| {
        remove(path, table, &host);
    });
    remove("", table, &top);
    if kind == FabricKind::Tcp {
        for hosts in ["host", "host_group"] {
            each_table(table, hosts, &mut |path, table| {
                leave_out_direct(path, table, left_out);
            });
        }
    }
    // A group that changes nothing any more would still be a group.
    for groups in ["switch_group", "host_group"] {
        if let Some(Value::Array(items)) = table.get_mut(groups) {
            items.retain(|item| item.as_table().is_none_or(|item| item.len() > 1));
        }
    }
}

/// GPUDirect RDMA is RDMA's.
fn leave_out_direct(path: &str, host: &mut Table, left_out: &mut Vec<LeftOut>) {
    if let Some(Value::Table(server)) = host.get_mut("server")
        && server.get("data_path").and_then(Value::as_str) == Some("direct")
    {
        server.remove("data_path");
        left_out.push(left(format!("{path}.server.data_path"), NO_DIRECT));
    }
}

/// Calls `see` with the table of this name, or each table of the list of this name.
fn each_table(table: &mut Table, name: &str, see: &mut dyn FnMut(&str, &mut Table)) {
    match table.get_mut(name) {
        Some(Value::Table(found)) => see(name, found),
        Some(Value::Array(items)) => {
            for (place, item) in items.iter_mut().enumerate() {
                if let Value::Table(found) = item {
                    see(&format!("{name}[{place}]"), found);
                }
            }
        }
        _ => {}
    }
}

/// Lays a table over another one.
fn merge(table: &mut Table, over: Table) {
    for (name, value) in over {
        match (table.get_mut(&name), value) {
            (Some(Value::Table(below)), Value::Table(above)) if same_kind(below, &above) => {
                merge(below, above);
            }
            (_, value) => {
                table.insert(name, value);
            }
        }
    }
}

fn same_kind(below: &Table, above: &Table) -> bool {
    above
        .get("kind")
        .is_none_or(|kind| below.get("kind") == Some(kind))
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
