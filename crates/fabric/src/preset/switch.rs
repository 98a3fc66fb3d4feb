//! What a preset of a switch is, and the profile and headroom that come out of it.

use softfabric_units::{Bytes, Class, Rate, Span};
use thiserror::Error;

use super::{Sourced, Value};
use crate::headroom::{CableLength, Distance, HeadroomError, HeadroomProfile};
use crate::plan::{
    Alpha, BufferAccounting, BufferProfile, ClassProfile, Ecn, EgressLimit, Forwarding,
    IngressLimit, Layer, LoadBalancing, PauseProfile, Scheduling, SwitchProfile, Watchdog,
    WatchdogAction, Xon,
};

/// A switch with its settings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SwitchPreset {
    /// The name to ask for.
    pub name: &'static str,
    /// Other names for the same.
    pub aliases: &'static [&'static str],
    /// What it stands for.
    pub summary: &'static str,
    /// When a packet may leave.
    pub forwarding: Sourced<Forwarding>,
    /// From arrival to the egress queue.
    pub latency: Sourced<Span>,
    /// All packet memory.
    pub buffer: Sourced<Bytes>,
    /// The memory's cells.
    pub cell: Sourced<Bytes>,
    /// Whose rules account for the memory.
    pub accounting: Sourced<BufferAccounting>,
    /// Headroom that all ports share; none where each priority group has its own.
    pub headroom_pool: Sourced<Option<Bytes>>,
    /// Headroom of a priority group.
    pub headroom: Sourced<HeadroomSource>,
    /// The lossless classes.
    pub lossless: Sourced<&'static [u8]>,
    /// What is always there for a lossless priority group.
    pub reserved: Sourced<Bytes>,
    /// How much of the shared memory a lossless priority group may take before XOFF.
    pub alpha: Sourced<Alpha>,
    /// When it lets the other end go on.
    pub xon: Sourced<Xon>,
    /// How much of the shared memory a lossy priority group may take.
    pub lossy_ingress: Sourced<Alpha>,
    /// How much of the shared memory a lossy queue may take.
    pub lossy_egress: Sourced<Alpha>,
    /// What is always there for a lossy queue.
    pub lossy_queue_reserved: Sourced<Bytes>,
    /// ECN of the lossless classes.
    pub ecn: Sourced<&'static [Ecn]>,
    /// The weight of a lossless and of a lossy queue.
    pub weights: Sourced<(u32, u32)>,
    /// How long a pause frame asks for; none until a resume frame.
    pub pause_quanta: Sourced<Option<u16>>,
    /// From a pause frame's arrival to the stop.
    pub response_delay: Sourced<Span>,
    /// The PFC watchdog.
    pub watchdog: Sourced<Option<Watchdog>>,
    /// How one of several next hops is chosen.
    pub load_balancing: Sourced<LoadBalancing>,
}

/// Where the headroom of a priority group comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadroomSource {
    /// Worked out from speed and cable.
    Formula(HeadroomProfile),
    /// Tabled by speed and cable.
    Table(&'static [HeadroomRow]),
    /// The same for every port.
    Fixed(Bytes),
    /// By the accounting's own rules.
    ByAccounting,
}

/// A row of a headroom table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadroomRow {
    /// The port's speed.
    pub speed: Rate,
    /// The longest cable that the row is for.
    pub cable: CableLength,
    /// The headroom.
    pub xoff: Bytes,
}

/// Why a preset has no headroom for a port.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PresetHeadroomError {
    /// The formula has no answer.
    #[error(transparent)]
    Formula(#[from] HeadroomError),
    /// The table has no such row.
    #[error("{preset} has no headroom for {speed} over {cable}; its table has {needed}")]
    NotTabled {
        /// The preset.
        preset: &'static str,
        /// The speed asked for.
        speed: Rate,
        /// The cable asked for.
        cable: CableLength,
        /// The rows that there are.
        needed: String,
    },
}

impl SwitchPreset {
    /// The profile that the engine takes.
    ///
    /// Where headroom depends on the port, `ingress.headroom` is none: [`Self::headroom`] knows it for a port.
    pub fn profile(&self) -> SwitchProfile {
        SwitchProfile {
            forwarding: self.forwarding.value,
            latency: self.latency.value,
            layer: Layer::Bridge,
            buffer: BufferProfile {
                total: self.buffer.value,
                cell: self.cell.value,
                headroom_pool: self.headroom_pool.value,
                accounting: self.accounting.value,
            },
            classes: std::array::from_fn(|index| self.class(index as u8)),
            pause: PauseProfile {
                quanta: self.pause_quanta.value,
                response_delay: self.response_delay.value,
                obeys: true,
                obeys_on_lossy: self.accounting.value == BufferAccounting::Hpcc,
            },
            watchdog: self.watchdog.value,
            classifier: crate::plan::Classifier::Priority,
            maps: crate::plan::ClassMaps::default(),
            load_balancing: self.load_balancing.value,
        }
    }

    fn class(&self, index: u8) -> ClassProfile {
        if !self.lossless.value.contains(&index) {
            return ClassProfile {
                lossless: false,
                ingress: IngressLimit {
                    reserved: Bytes::ZERO,
                    threshold: self.lossy_ingress.value,
                    headroom: None,
                    xon: Xon {
                        size: Bytes::MAX,
                        offset: None,
                    },
                },
                egress: EgressLimit {
                    reserved: self.lossy_queue_reserved.value,
                    threshold: self.lossy_egress.value,
                },
                ecn: Vec::new(),
                scheduling: Scheduling::Weighted(self.weights.value.1),
            };
        }
        ClassProfile {
            lossless: true,
            ingress: IngressLimit {
                reserved: self.reserved.value,
                threshold: self.alpha.value,
                headroom: match self.headroom.value {
                    HeadroomSource::Fixed(headroom) => Some(headroom),
                    _ => None,
                },
                xon: self.xon.value,
            },
            egress: EgressLimit {
                reserved: Bytes::ZERO,
                threshold: Alpha::Unlimited,
            },
            ecn: self.ecn.value.to_vec(),
            scheduling: Scheduling::Weighted(self.weights.value.0),
        }
    }

    /// The headroom of a lossless priority group of a port with this speed and cable; none where the accounting's own
    /// rules say it.
    ///
    /// A table answers with the row of the same speed, or else of the next higher one, whose cable is the shortest
    /// that is long enough.
    ///
    /// # Errors
    /// [`PresetHeadroomError`] where the platform's formula or table says nothing about the port.
    pub fn headroom(
        &self,
        speed: Rate,
        cable: CableLength,
    ) -> Result<Option<Bytes>, PresetHeadroomError> {
        match self.headroom.value {
            HeadroomSource::ByAccounting => Ok(None),
            HeadroomSource::Fixed(headroom) => Ok(Some(headroom)),
            HeadroomSource::Formula(profile) => {
                let headroom = profile.headroom(speed, Distance::Cable(cable))?;
                Ok(Some(headroom.xoff))
            }
            HeadroomSource::Table(rows) => rows
                .iter()
                .filter(|row| row.speed >= speed && row.cable >= cable)
                .min_by_key(|row| (row.speed, row.cable))
                .map(|row| Some(row.xoff))
                .ok_or_else(|| self.not_tabled(rows, speed, cable)),
        }
    }

    fn not_tabled(
        &self,
        rows: &[HeadroomRow],
        speed: Rate,
        cable: CableLength,
    ) -> PresetHeadroomError {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| format!("{} over {}", row.speed, row.cable))
            .collect();
        PresetHeadroomError::NotTabled {
            preset: self.name,
            speed,
            cable,
            needed: rows.join(", "),
        }
    }

    /// What it sets, for people.
    pub fn values(&self) -> Vec<Value> {
        let accounting = match self.accounting.value {
            BufferAccounting::SharedBuffer => "shared buffer",
            BufferAccounting::Hpcc => "HPCC ns-3",
        };
        let (lossless_weight, lossy_weight) = self.weights.value;
        vec![
            show("forwarding", self.forwarding, forwarding),
            show("latency", self.latency, |latency| latency.to_string()),
            show("buffer", self.buffer, |bytes| bytes.to_string()),
            show("cell", self.cell, |bytes| bytes.to_string()),
            show("accounting", self.accounting, |_| accounting.to_owned()),
            show("headroom_pool", self.headroom_pool, |pool| {
                pool.map_or("own".to_owned(), |pool| pool.to_string())
            }),
            show("headroom", self.headroom, headroom),
            show("lossless", self.lossless, |classes| format!("{classes:?}")),
            show("reserved", self.reserved, |bytes| bytes.to_string()),
            show("alpha", self.alpha, alpha),
            show("xon", self.xon, xon),
            show("lossy_ingress", self.lossy_ingress, alpha),
            show("lossy_egress", self.lossy_egress, alpha),
            show("lossy_queue_reserved", self.lossy_queue_reserved, |bytes| {
                bytes.to_string()
            }),
            show("ecn", self.ecn, ecn),
            show("weights", self.weights, |_| {
                format!("{lossless_weight} lossless, {lossy_weight} lossy")
            }),
            show("pause_quanta", self.pause_quanta, |quanta| {
                quanta.map_or("until resumed".to_owned(), |quanta| quanta.to_string())
            }),
            show("response_delay", self.response_delay, |delay| {
                delay.to_string()
            }),
            show("watchdog", self.watchdog, watchdog),
            show("load_balancing", self.load_balancing, |choice| {
                match choice {
                    LoadBalancing::EcmpHash => "ECMP by hash",
                    LoadBalancing::EcmpQueuePair => "ECMP by queue pair",
                    LoadBalancing::EcmpHpcc => "ECMP as HPCC ns-3",
                    LoadBalancing::SprayRandom => "random spraying",
                    LoadBalancing::SprayRoundRobin => "spraying in turn",
                    LoadBalancing::Adaptive => "adaptive",
                }
                .to_owned()
            }),
        ]
    }
}

/// A value of a preset as text.
pub(super) fn show<T: Copy>(
    field: &'static str,
    sourced: Sourced<T>,
    text: impl Fn(T) -> String,
) -> Value {
    Value {
        field,
        value: text(sourced.value),
        source: sourced.source,
    }
}

fn forwarding(forwarding: Forwarding) -> String {
    match forwarding {
        Forwarding::StoreAndForward => "store and forward".to_owned(),
        Forwarding::CutThrough { header } => format!("cut-through after {header}"),
    }
}

fn headroom(source: HeadroomSource) -> String {
    match source {
        HeadroomSource::Formula(profile) => format!(
            "by formula: MTU {}, lossless MTU {}, average packet {}",
            profile.port_mtu, profile.lossless_mtu, profile.average_packet
        ),
        HeadroomSource::Table(rows) => {
            let rows: Vec<_> = rows
                .iter()
                .map(|row| format!("{} at {} over {}", row.xoff, row.speed, row.cable))
                .collect();
            rows.join(", ")
        }
        HeadroomSource::Fixed(bytes) => bytes.to_string(),
        HeadroomSource::ByAccounting => "by the accounting's rules".to_owned(),
    }
}

fn alpha(alpha: Alpha) -> String {
    match alpha {
        Alpha::Dynamic(power) if power >= 0 => format!("{} of what is free", 1u32 << power),
        Alpha::Dynamic(power) => format!("1/{} of what is free", 1u32 << -power),
        Alpha::Static(bytes) => bytes.to_string(),
        Alpha::Unlimited => "the whole pool".to_owned(),
    }
}

fn xon(xon: Xon) -> String {
    match (xon.size, xon.offset) {
        (Bytes::ZERO, Some(offset)) => format!("{offset} under XOFF"),
        (size, Some(offset)) => format!("at {size}, or {offset} under XOFF"),
        (size, None) => format!("at {size}"),
    }
}

fn ecn(entries: &'static [Ecn]) -> String {
    let text = |entry: &Ecn| {
        let range = format!("{}..{} to {}%", entry.kmin, entry.kmax, entry.pmax * 100.0);
        entry
            .rate
            .map_or(range.clone(), |rate| format!("{range} at {rate}"))
    };
    let entries: Vec<_> = entries.iter().map(text).collect();
    if entries.is_empty() {
        "off".to_owned()
    } else {
        entries.join(", ")
    }
}

fn watchdog(watchdog: Option<Watchdog>) -> String {
    let Some(watchdog) = watchdog else {
        return "none".to_owned();
    };
    let action = match watchdog.action {
        WatchdogAction::Drop => "drop",
        WatchdogAction::Forward => "forward",
        WatchdogAction::Alert => "alert",
    };
    format!(
        "{action} after {}, restore after {}, poll each {}",
        watchdog.detection, watchdog.restoration, watchdog.poll
    )
}

const _: () = assert!(Class::COUNT == 8, "the lossless lists name classes 0 to 7");
