//! Which settings a run depends on: each group of them is taken away once, and the run is done again.
//!
//! A setting that nobody would miss costs nothing to operate. What is counted here is what somebody has to get right: settings
//! of a group without which packets are lost, something does not come to its end, or all takes noticeably longer.

use serde::Serialize;
use softfabric_transport::rate::RateControlConfig;
use softfabric_units::{Bytes, Class, ClassMask, Rate, Span};

use super::figures::Figures;
use super::measure::Measure;
use crate::plan::{NotificationPoint, Plan};
use crate::scenario::{CongestionControl, CongestionSettings, class_profile};

/// A group of settings that belong together.
#[derive(Clone, Debug)]
pub(super) struct Family {
    /// What it is called.
    pub(super) name: &'static str,
    /// How many values somebody chose for it: those that are the same everywhere count once.
    pub(super) settings: u32,
    /// Takes it out of a plan.
    pub(super) take_away: fn(&mut Plan),
}

/// What became of a run without a group of settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Without {
    /// The group.
    pub family: &'static str,
    /// How many settings it has.
    pub settings: u32,
    /// Whether the run was worse without them.
    pub needed: bool,
    /// Packets dropped without them.
    pub drops: f64,
    /// Whether everything came to its end.
    pub survived: bool,
    /// How many times as long the job, or the tail of the flows, took; `None` where there is nothing to divide.
    pub time_factor: Option<f64>,
    /// Pause frames without them, over Ethernet.
    pub pause_frames: Option<f64>,
}

/// A run that takes so many times as long has missed something.
const NOTICEABLE: f64 = 1.1;

impl Without {
    pub(super) fn of(family: &Family, with: &Figures, without: &Figures) -> Self {
        let time = |figures: &Figures| {
            let job = figures.value(Measure::JobTime);
            job.or_else(|| figures.value(Measure::CompletionP99))
        };
        let time_factor = time(with)
            .zip(time(without))
            .map(|(with, without)| without / with.max(1e-3));
        let drops = |figures: &Figures| figures.value(Measure::Drops).unwrap_or(0.0);
        let needed = (with.survived && !without.survived)
            || drops(without) > drops(with)
            || time_factor.is_some_and(|factor| factor > NOTICEABLE);
        Self {
            family: family.name,
            settings: family.settings,
            needed,
            drops: drops(without),
            survived: without.survived,
            time_factor,
            pause_frames: without.value(Measure::PauseFrames),
        }
    }
}

/// The groups that the plan has.
pub(super) fn families(plan: &Plan) -> Vec<Family> {
    let mut found = Vec::new();
    let tcp = plan
        .host_profiles
        .iter()
        .all(|profile| profile.tcp.is_some());
    if let Some(settings) = plan.link_layer.infiniband() {
        if settings.congestion.is_some() {
            found.push(Family {
                name: "congestion control",
                settings: fields(&CongestionSettings::default()),
                take_away: |plan| {
                    if let crate::plan::LinkLayer::Infiniband(settings) = &mut plan.link_layer {
                        settings.congestion = None;
                    }
                },
            });
        }
        return found;
    }
    let lossless: u32 = (plan.switch_profiles.iter())
        .map(|profile| profile.lossless().iter().count() as u32)
        .max()
        .unwrap_or(0);
    if lossless > 0 {
        found.push(Family {
            name: "PFC",
            // The class itself, what is reserved for it, its threshold and its resume; and how long a pause lasts.
            settings: 4 * lossless + 1,
            take_away: without_pfc,
        });
        found.push(Family {
            name: "headroom",
            settings: cables(plan) * lossless,
            take_away: |plan| {
                for profile in &mut plan.switch_profiles {
                    for class in profile.classes.iter_mut().filter(|class| class.lossless) {
                        class.ingress.headroom = Some(Bytes::ZERO);
                    }
                }
            },
        });
    }
    if marks(plan) && (!tcp || hears_marks(plan)) {
        found.push(Family {
            name: "ECN marking",
            settings: 3 * rates(plan).len() as u32,
            take_away: |plan| {
                for profile in &mut plan.switch_profiles {
                    for class in &mut profile.classes {
                        class.ecn.clear();
                    }
                }
            },
        });
    }
    if let Some(settings) = (!tcp).then(|| rate_control(plan)).flatten() {
        found.push(Family {
            name: "rate control",
            settings,
            take_away: |plan| {
                for profile in &mut plan.host_profiles {
                    profile.nic.rate_control = RateControlConfig::None;
                }
            },
        });
    }
    if tcp {
        found.push(Family {
            name: "selective acknowledgements",
            settings: 1,
            take_away: |plan| {
                for stack in plan.host_profiles.iter_mut().filter_map(|p| p.tcp.as_mut()) {
                    stack.tcp.sack = false;
                }
            },
        });
    }
    found
}

fn without_pfc(plan: &mut Plan) {
    let rates = rates(plan);
    for profile in &mut plan.switch_profiles {
        for class in Class::all() {
            let of = &mut profile.classes[class.index()];
            if of.lossless {
                let ecn = std::mem::take(&mut of.ecn);
                *of = class_profile(class, false, &rates);
                of.ecn = ecn;
            }
        }
    }
    for profile in &mut plan.host_profiles {
        profile.lossless = ClassMask::NONE;
    }
}

fn rates(plan: &Plan) -> Vec<Rate> {
    let mut rates: Vec<Rate> = plan.network.links.iter().map(|link| link.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    rates
}

/// Kinds of cables: headroom depends on rate and length.
fn cables(plan: &Plan) -> u32 {
    let links = plan.network.links.iter();
    let mut cables: Vec<(Rate, Span)> = links.map(|link| (link.rate, link.delay)).collect();
    cables.sort_unstable();
    cables.dedup();
    cables.len() as u32
}

fn marks(plan: &Plan) -> bool {
    let profiles = plan.switch_profiles.iter();
    profiles
        .flat_map(|profile| &profile.classes)
        .any(|class| !class.ecn.is_empty())
}

fn hears_marks(plan: &Plan) -> bool {
    let mut stacks = plan
        .host_profiles
        .iter()
        .filter_map(|profile| profile.tcp.as_ref());
    stacks.any(|stack| stack.tcp.ecn)
}

/// How many parameters the hosts' reaction to marks has; `None` where there is none.
fn rate_control(plan: &Plan) -> Option<u32> {
    let nic = plan
        .host_profiles
        .iter()
        .map(|profile| &profile.nic)
        .find(|nic| {
            !matches!(
                nic.rate_control,
                RateControlConfig::None | RateControlConfig::Fixed { .. }
            )
        })?;
    let notification = match nic.notification {
        // The interval and the class of CNPs.
        NotificationPoint::Cnp { .. } => 2,
        NotificationPoint::Off | NotificationPoint::OnAcknowledgement => 0,
    };
    let kind = match nic.rate_control {
        RateControlConfig::DcqcnPaper(_) => r#"{ "kind": "dcqcn_paper" }"#,
        _ => r#"{ "kind": "dcqcn_nic" }"#,
    };
    let control: CongestionControl = serde_json::from_str(kind).ok()?;
    // Neither the kind nor whose defaults they are is a parameter.
    let named = match nic.rate_control {
        RateControlConfig::DcqcnPaper(_) => 1,
        _ => 2,
    };
    Some(fields(&control) - named + notification)
}

/// How many fields a table of a scenario has.
fn fields(table: &impl Serialize) -> u32 {
    let value = serde_json::to_value(table).unwrap_or_default();
    value.as_object().map_or(0, |table| table.len() as u32)
}
