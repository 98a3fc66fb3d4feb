//! What differs from the baseline now, normalised by load.
//!
//! A fabric at work is not a fabric that is being measured: hosts send as much as their job wants. So nothing is compared that
//! only says how much there was to do:
//!
//! - a host's throughput as a share of its baseline is compared with that of the other hosts: in a job all wait for the slowest,
//!   and one that alone lags behind is what the baseline cannot explain;
//! - how long a port is held, and what share of its packets it marks, is compared with what it did at commissioning at least as
//!   much load as now; less load explains less of both, and never more;
//! - marks of a port that is full are congestion control at work; those of a port that has room are not;
//! - a queue's watermark alone is no difference: pairs that nobody crosses leave no queue, and every job does. It is told beside
//!   the marks or pauses of its port.

use std::collections::BTreeMap;

use softfabric_telemetry::ClassCounter;
use softfabric_units::Time;

use super::{Baseline, PortAtWork, median, spread};
use crate::diagnose::facts::Facts;
use crate::diagnose::{Certainty, Evidence, percent};
use crate::history::{History, Window};
use crate::topology::{NodeKind, PortIndex};
use crate::watch::{self, Moment};

/// What differs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Measure {
    /// A host sends less than its share.
    Sends,
    /// A host receives less than its share.
    Receives,
    /// A port is held for longer.
    Held,
    /// A port marks more of its packets.
    Marked,
}

impl Measure {
    /// In a few words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sends => "sends less than its baseline",
            Self::Receives => "receives less than its baseline",
            Self::Held => "held longer than its baseline",
            Self::Marked => "marks more than its baseline",
        }
    }

    /// What tells it.
    const fn counter(self) -> &'static str {
        match self {
            Self::Sends => "port_xmit_data",
            Self::Receives => "port_rcv_data",
            Self::Held => "pause duration, or port_xmit_wait",
            Self::Marked => "ecn_marked over port_xmit_packets",
        }
    }
}

/// Something that differs from the baseline.
#[derive(Clone, PartialEq, Debug)]
pub struct Deviation {
    /// What.
    pub measure: Measure,
    /// The host or port.
    pub place: String,
    /// The node that it belongs to.
    pub node: String,
    /// As a sentence.
    pub summary: String,
    /// What was to be expected, as a share.
    pub expected: f64,
    /// What was found, as a share.
    pub found: f64,
    /// Since when.
    pub since: Moment,
    /// How sure this is: high where it differed in nearly every stretch of the time.
    pub certainty: Certainty,
    /// What was compared.
    pub evidence: Vec<Evidence>,
}

/// Compares again and again. What differs at one look only is chance.
#[derive(Clone, Debug, Default)]
pub struct Deviations {
    /// Where each port of the topology is in the baseline.
    ports: Vec<Option<usize>>,
}

/// A host's share must be so far below the others', in usual distances and outright.
const FAR: f64 = 6.0;
const LEAST: f64 = 0.2;
/// A port must be held for so much longer, as a share of the time.
const HELD_MORE: f64 = 0.05;
/// Of its packets it must mark so much more.
const MARKED_MORE: f64 = 0.05;
/// A port that is nearly as busy as at commissioning is full, and marks as it should.
const FULL: f64 = 0.8;
/// Less than this share of its rate is no load.
const IDLE: f64 = 0.02;
/// A host must differ in so many of the latest stretches but one.
const LASTS: usize = 5;
/// A port must for longer: what a job sends meets at some port for a while.
const LASTS_AT_PORT: usize = 10;
/// Of all stretches since it began, in so many: it is sure then.
const NEARLY_ALL: f64 = 0.9;

/// What one place did in each stretch, beside what was to be expected.
struct Course {
    /// Found, expected, and whether it differs, by stretch; `None` where nothing was to be compared.
    stretches: Vec<Option<(f64, f64, bool)>>,
}

/// A course that differs until now.
struct Lasting {
    /// The stretch in which it began.
    first: usize,
    found: f64,
    expected: f64,
    certainty: Certainty,
}

impl Course {
    /// Whether it differs until now, and since when: back to the last two stretches in a row that did not.
    fn lasting(&self, lasts: usize) -> Option<Lasting> {
        let compared: Vec<(usize, f64, f64, bool)> = self
            .stretches
            .iter()
            .enumerate()
            .filter_map(|(place, told)| {
                told.map(|(found, expected, far)| (place, found, expected, far))
            })
            .collect();
        let latest = compared.len().checked_sub(lasts)?;
        // All but one of the latest ones, the last among them.
        let far = |part: &[(usize, f64, f64, bool)]| part.iter().filter(|(.., far)| *far).count();
        if far(&compared[latest..]) + 1 < lasts || !compared.last()?.3 {
            return None;
        }
        let calm = compared.windows(2).rposition(|two| !two[0].3 && !two[1].3);
        let begins = calm.map_or(0, |place| place + 2);
        let during: Vec<_> = compared[begins..]
            .iter()
            .copied()
            .filter(|(.., far)| *far)
            .collect();
        let first = during.first()?.0;
        let mean = |of: fn(&(usize, f64, f64, bool)) -> f64| {
            during.iter().map(of).sum::<f64>() / during.len() as f64
        };
        let share = during.len() as f64 / compared[begins..].len() as f64;
        Some(Lasting {
            first,
            found: mean(|(_, found, ..)| *found),
            expected: mean(|(_, _, expected, _)| *expected),
            certainty: match share >= NEARLY_ALL && during.len() >= 2 * LASTS {
                true => Certainty::High,
                false => Certainty::Moderate,
            },
        })
    }
}

impl Deviations {
    /// What differs now, and how many hosts and ports could be compared.
    pub(crate) fn compare(
        &mut self,
        baseline: &Baseline,
        facts: &Facts<'_>,
        history: &History,
        moment: impl Fn(Time) -> Moment,
    ) -> (usize, Vec<Deviation>) {
        let topology = facts.topology;
        if self.ports.len() != topology.ports().len() {
            // Of two entries of one name, the first counts.
            let entries = baseline.ports.iter().enumerate().rev();
            let places: BTreeMap<&str, usize> = entries
                .map(|(place, entry)| (entry.port.as_str(), place))
                .collect();
            let ports = topology.ports().iter();
            self.ports = ports
                .map(|port| places.get(port.name.as_str()).copied())
                .collect();
        }
        let mut found = Vec::new();
        let mut compared = 0;
        for measure in [Measure::Sends, Measure::Receives] {
            let hosts = Hosts::new(baseline, facts, measure == Measure::Sends);
            compared += hosts.names.len();
            found.extend(hosts.lagging(facts, measure, &moment));
        }
        for (port, place) in topology.port_indices().zip(&self.ports) {
            let Some(usual) = place.map(|place| &baseline.ports[place]) else {
                continue;
            };
            compared += 1;
            let at_port = [
                held(facts, port, usual, &moment),
                marked(facts, port, usual, &moment),
            ];
            for mut deviation in at_port.into_iter().flatten() {
                deviation
                    .evidence
                    .extend(queue(facts, history, port, usual));
                found.push(deviation);
            }
        }
        found.sort_by(|a, b| {
            let excess = |d: &Deviation| (d.found - d.expected).abs();
            let by_size = excess(b).total_cmp(&excess(a));
            b.certainty.cmp(&a.certainty).then(by_size)
        });
        (compared, found)
    }
}

/// How much of its baseline each host does, stretch by stretch.
struct Hosts {
    names: Vec<String>,
    /// By host and stretch.
    shares: Vec<Vec<Option<f64>>>,
}

impl Hosts {
    fn new(baseline: &Baseline, facts: &Facts<'_>, sends: bool) -> Self {
        let mut hosts = Self {
            names: Vec::new(),
            shares: Vec::new(),
        };
        for host in &baseline.hosts {
            let usual = if sends {
                host.sends_bps
            } else {
                host.receives_bps
            };
            let node = facts.topology.find_node(&host.host);
            let Some(node) = node.map(|node| facts.topology.node(node)) else {
                continue;
            };
            if usual <= 0.0 || node.kind != NodeKind::Host {
                continue;
            }
            let share = |&window: &Window| {
                let ports = node.ports.iter();
                let rates = ports.filter_map(|&port| match sends {
                    true => watch::transmitted(facts, port, window),
                    false => watch::received(facts, port, window),
                });
                let bps = rates
                    .map(|rate| rate.as_bps() as f64)
                    .reduce(|a, b| a + b)?;
                Some(bps / usual)
            };
            hosts.names.push(host.host.clone());
            hosts.shares.push(facts.grid.iter().map(share).collect());
        }
        hosts
    }

    /// Hosts whose share is far below that of the others.
    fn lagging(
        &self,
        facts: &Facts<'_>,
        measure: Measure,
        moment: &impl Fn(Time) -> Moment,
    ) -> Vec<Deviation> {
        // Of fewer, nobody can say who is usual.
        const ENOUGH: usize = 4;
        let stretches = facts.grid.len();
        let usual: Vec<Option<(f64, f64)>> = (0..stretches)
            .map(|stretch| {
                let all: Vec<f64> = self.shares.iter().filter_map(|s| s[stretch]).collect();
                let middle = median(&all);
                // Most have something to do, or none is behind.
                (all.len() >= ENOUGH && middle >= LEAST).then(|| (middle, spread(&all, middle)))
            })
            .collect();
        let mut found = Vec::new();
        for (name, shares) in self.names.iter().zip(&self.shares) {
            let course = Course {
                stretches: shares
                    .iter()
                    .zip(&usual)
                    .map(|(share, usual)| {
                        let (share, (middle, spread)) = ((*share)?, (*usual)?);
                        let far = middle - share > (FAR * spread).max(LEAST * middle.max(0.5));
                        Some((share, middle, far))
                    })
                    .collect(),
            };
            let Some(lasting) = course.lasting(LASTS) else {
                continue;
            };
            let Lasting {
                found: share,
                expected,
                ..
            } = lasting;
            let verb = if measure == Measure::Sends {
                "sends"
            } else {
                "receives"
            };
            let summary = format!(
                "{name} {verb} {} of what it did at commissioning, the median host {}",
                percent(share),
                percent(expected)
            );
            found.push(Deviation {
                measure,
                place: name.clone(),
                node: name.clone(),
                evidence: vec![Evidence {
                    port: name.clone(),
                    counter: measure.counter().to_owned(),
                    says: format!(
                        "{} of its baseline, against {} of theirs elsewhere",
                        percent(share),
                        percent(expected)
                    ),
                }],
                summary,
                expected,
                found: share,
                since: moment(facts.grid[lasting.first].from),
                certainty: lasting.certainty,
            });
        }
        found
    }
}

fn held(
    facts: &Facts<'_>,
    port: PortIndex,
    usual: &PortAtWork,
    moment: &impl Fn(Time) -> Moment,
) -> Option<Deviation> {
    let stretch = |&window: &Window| {
        // Where nobody is ever paused nothing is told, and nothing differs.
        let (held, _) = watch::held(facts, port, window)?;
        let expected = expected(usual.held, facts.busy(port, window)? + held, usual);
        Some((held, expected, held > expected + HELD_MORE))
    };
    let told = |share: &str, usual: &str| {
        format!(
            "it is held for {share} of the time, and was for {usual} at commissioning under such a load"
        )
    };
    at_port(facts, port, Measure::Held, stretch, moment, told)
}

fn marked(
    facts: &Facts<'_>,
    port: PortIndex,
    usual: &PortAtWork,
    moment: &impl Fn(Time) -> Moment,
) -> Option<Deviation> {
    let stretch = |&window: &Window| {
        let busy = facts.busy(port, window)?;
        let marked = watch::marked(facts, port, window)?;
        let expected = expected(usual.marked, busy, usual);
        let has_room = busy < usual.busy * FULL;
        let far = has_room && marked > expected + MARKED_MORE;
        (busy >= IDLE).then_some((marked, expected, far))
    };
    let told = |share: &str, usual: &str| {
        format!(
            "it marks {share} of its packets, and marked {usual} at commissioning under such a load"
        )
    };
    at_port(facts, port, Measure::Marked, stretch, moment, told)
}

/// What the port's watermark says, beside what it said at commissioning.
fn queue(
    facts: &Facts<'_>,
    history: &History,
    port: PortIndex,
    usual: &PortAtWork,
) -> Option<Evidence> {
    let at = facts.whole()?.to;
    let depth = watch::watermark(history, port, ClassCounter::QueueWatermark, at)?;
    let kilobytes = |bytes: f64| format!("{:.0} KB", bytes / 1e3);
    Some(Evidence {
        port: facts.topology.port(port).name.clone(),
        counter: "queue_watermark".to_owned(),
        says: format!(
            "its deepest queue stood at {}, and at {} at commissioning",
            kilobytes(depth.as_f64()),
            kilobytes(usual.queue_bytes? as f64)
        ),
    })
}

/// What a port at this load may be expected to show: in proportion, and no more than at full work.
fn expected(at_work: f64, load: f64, usual: &PortAtWork) -> f64 {
    match usual.busy > IDLE {
        true => at_work * (load / usual.busy).min(1.0),
        false => at_work,
    }
}

/// What lasts at a port, if `stretch` says so of its stretches; `says` puts found and expected into words.
fn at_port(
    facts: &Facts<'_>,
    port: PortIndex,
    measure: Measure,
    stretch: impl Fn(&Window) -> Option<(f64, f64, bool)>,
    moment: &impl Fn(Time) -> Moment,
    says: impl Fn(&str, &str) -> String,
) -> Option<Deviation> {
    let course = Course {
        stretches: facts.grid.iter().map(stretch).collect(),
    };
    let lasting = course.lasting(LASTS_AT_PORT)?;
    let says = says(&percent(lasting.found), &percent(lasting.expected));
    let topology = facts.topology;
    let name = topology.port(port).name.clone();
    Some(Deviation {
        measure,
        summary: format!("{name}: {says}"),
        evidence: vec![Evidence {
            port: name.clone(),
            counter: measure.counter().to_owned(),
            says,
        }],
        place: name,
        node: topology.owner(port).name.clone(),
        expected: lasting.expected,
        found: lasting.found,
        since: moment(facts.grid[lasting.first].from),
        certainty: lasting.certainty,
    })
}
