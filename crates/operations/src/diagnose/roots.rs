//! The same ends over time: when each was there, and how much of all waiting it explains.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::facts::Facts;
use super::trace::{End, Reason, Trace, trace};
use super::{Lane, Step};
use crate::history::Window;
use crate::topology::PortIndex;

/// An end that does not last is no cause: a burst that fills a queue for one poll is what queues are for.
const LASTS: usize = 2;
/// An end that explains less than this of all waiting is noise, unless it is a host that holds its switch for long.
const MINOR: f64 = 0.10;
/// Held for longer than this, a port is a matter of its own.
const LONG: f64 = 0.30;
/// An average over the whole time below this is too little to be an alarm.
pub(crate) const TOO_LITTLE: f64 = 0.02;

/// The same for a port that is merely busy: queues are there to be used.
const TRAFFIC: f64 = 0.10;

/// Everything that was held, in all lanes and stretches.
pub(crate) struct View {
    /// What explains the waiting.
    pub(crate) roots: Vec<Root>,
    traces: Vec<(Lane, Vec<Trace>)>,
    windows: Vec<Window>,
    /// Port-seconds of waiting.
    total: f64,
}

/// An end that lasts.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) end: End,
    pub(crate) lane: Lane,
    /// How much of all waiting it explains, 0 to 1.
    pub(crate) share: f64,
    /// The stretches in which it was there at half of its strength at least.
    pub(crate) core: Vec<Window>,
    /// The stretches in which it was there.
    pub(crate) seen: Vec<Window>,
}

/// Waiting for which no reason was found.
pub(crate) struct Unexplained {
    /// The share of all waiting.
    pub(crate) share: f64,
    /// The port at which the strongest trail is lost, if there is any.
    pub(crate) port: Option<PortIndex>,
}

/// Follows everything, everywhere, all the time.
pub(crate) fn watch(facts: &Facts<'_>) -> View {
    let mut view = View {
        roots: Vec::new(),
        traces: Vec::new(),
        windows: facts.grid.clone(),
        total: 0.0,
    };
    let mut found: BTreeMap<(Lane, End), Vec<(usize, f64)>> = BTreeMap::new();
    for &lane in &facts.lanes {
        let candidates = facts.may_be_held(lane);
        let traces: Vec<Trace> = facts
            .grid
            .iter()
            .map(|&window| trace(facts, lane, &candidates, window))
            .collect();
        for (step, trace) in traces.iter().enumerate() {
            let length = facts.grid[step].length().as_seconds_f64();
            view.total += trace.held.values().sum::<f64>() * length;
            for (end, mass) in &trace.ends {
                let entry = found.entry((lane, end.clone())).or_default();
                entry.push((step, mass * length));
            }
        }
        view.traces.push((lane, traces));
    }
    for ((lane, end), steps) in found {
        if let Some(root) = view.root(lane, end, &steps) {
            view.roots.push(root);
        }
    }
    view.roots.sort_by(|a, b| b.share.total_cmp(&a.share));
    view
}

impl View {
    fn root(&self, lane: Lane, end: End, steps: &[(usize, f64)]) -> Option<Root> {
        let mass: f64 = steps.iter().map(|(_, mass)| mass).sum();
        let strongest = steps.iter().map(|(_, mass)| *mass).fold(0.0, f64::max);
        let window = |&(step, _): &(usize, f64)| self.windows[step];
        let core: Vec<Window> = steps
            .iter()
            .filter(|(_, mass)| *mass >= strongest / 2.0)
            .map(window)
            .collect();
        let own = match &end {
            End::Host(port) | End::Nothing(port) | End::Unseen(port) => self.mean(lane, *port),
            // As much as it keeps others waiting.
            End::Busy(_) | End::Circle(_) => (mass / self.length()).min(1.0),
        };
        let share = mass / self.total;
        let lasts = core.len() >= LASTS.min(self.windows.len());
        let matters = share >= MINOR || own >= LONG && !matches!(end, End::Busy(_));
        // Two that send to one for a moment are no trouble.
        let enough = match end {
            End::Busy(_) => TRAFFIC,
            _ => TOO_LITTLE,
        };
        (lasts && own >= enough && matters).then(|| Root {
            end,
            lane,
            share,
            core,
            seen: steps.iter().map(window).collect(),
        })
    }

    /// For what share of the whole time the port was held.
    fn mean(&self, lane: Lane, port: PortIndex) -> f64 {
        let traces = self.of(lane);
        let held = traces.iter().filter_map(|trace| trace.held.get(&port));
        held.sum::<f64>() / traces.len().max(1) as f64
    }

    /// All stretches together, in seconds.
    fn length(&self) -> f64 {
        let lengths = self.windows.iter().map(|window| window.length());
        lengths.map(|length| length.as_seconds_f64()).sum()
    }

    /// For what share of the whole time ports were held, all of them together: 1 is one port held all the time.
    pub(crate) fn waiting(&self) -> f64 {
        match self.total {
            0.0 => 0.0,
            total => total / self.length(),
        }
    }

    fn of(&self, lane: Lane) -> &[Trace] {
        let found = self.traces.iter().find(|(known, _)| *known == lane);
        found.map_or(&[], |(_, traces)| traces)
    }

    /// Every port that was held, with the share of the time at its worst, of the stretches in which something lasted.
    pub(crate) fn worst(&self) -> Vec<(PortIndex, f64)> {
        let lasting = |step: usize| {
            let window = self.windows[step];
            self.roots.iter().any(|root| root.seen.contains(&window))
        };
        let mut worst: BTreeMap<PortIndex, f64> = BTreeMap::new();
        for (_, traces) in &self.traces {
            for (step, trace) in traces.iter().enumerate() {
                if !lasting(step) {
                    continue;
                }
                for (&port, &held) in &trace.held {
                    let most = worst.entry(port).or_default();
                    *most = most.max(held);
                }
            }
        }
        worst.into_iter().collect()
    }

    /// Waiting whose trail is lost at ports that were not heard.
    pub(crate) fn unexplained(&self) -> Unexplained {
        let lost = |root: &&Root| matches!(root.end, End::Unseen(_));
        let share = self.roots.iter().filter(lost).map(|root| root.share).sum();
        let port = self
            .roots
            .iter()
            .find(lost)
            .and_then(|root| match root.end {
                End::Unseen(port) => Some(port),
                _ => None,
            });
        Unexplained { share, port }
    }

    /// The longest trail that ends at the root, as it was when most was held.
    pub(crate) fn trail(&self, facts: &Facts<'_>, root: &Root) -> Vec<Step> {
        let lane = root.lane;
        let strength = |trace: &&Trace| trace.ends.get(&root.end).copied().unwrap_or(0.0);
        let Some(trace) = self
            .of(lane)
            .iter()
            .max_by(|a, b| strength(a).total_cmp(&strength(b)))
        else {
            return Vec::new();
        };
        if let End::Circle(ports) = &root.end {
            return steps(facts, trace, ports.iter().copied());
        }
        let mut next: BTreeMap<PortIndex, Option<PortIndex>> = BTreeMap::new();
        let mut order = Vec::new();
        for (&port, reasons) in &trace.reasons {
            if reasons
                .iter()
                .any(|(r, _)| *r == Reason::End(root.end.clone()))
            {
                next.insert(port, None);
                order.push(port);
            }
        }
        let mut waiters: BTreeMap<PortIndex, Vec<PortIndex>> = BTreeMap::new();
        for (&waiter, reasons) in &trace.reasons {
            for (reason, _) in reasons {
                if let Reason::Held(port) = reason {
                    waiters.entry(*port).or_default().push(waiter);
                }
            }
        }
        let mut place = 0;
        while let Some(&port) = order.get(place) {
            place += 1;
            for &waiter in waiters.get(&port).into_iter().flatten() {
                if let Entry::Vacant(place) = next.entry(waiter) {
                    place.insert(Some(port));
                    order.push(waiter);
                }
            }
        }
        // Found in the order of distance; of those farthest away, the one held for longest.
        let distance = |mut port: PortIndex| {
            let mut steps = 0;
            while let Some(Some(way)) = next.get(&port) {
                port = *way;
                steps += 1;
            }
            steps
        };
        let far = order.iter().copied().max_by(|&a, &b| {
            let key = |port| {
                (
                    distance(port),
                    trace.held.get(&port).copied().unwrap_or(0.0),
                )
            };
            let ((near, weak), (far, strong)) = (key(a), key(b));
            near.cmp(&far).then(weak.total_cmp(&strong)).then(b.cmp(&a))
        });
        let walk = std::iter::successors(far, |port| next.get(port).copied().flatten());
        steps(facts, trace, walk)
    }
}

fn steps(facts: &Facts<'_>, trace: &Trace, ports: impl Iterator<Item = PortIndex>) -> Vec<Step> {
    let topology = facts.topology;
    let name = |port: PortIndex| topology.port(port).name.clone();
    ports
        .filter_map(|port| {
            Some(Step {
                port: name(port),
                by: name(topology.peer(port)?),
                held: *trace.held.get(&port)?,
            })
        })
        .collect()
}
