//! Two simple rules that people use, to be compared with.

use softfabric_operations::{History, PortIndex, Topology, Window};
use softfabric_telemetry::{ClassCounter, Counter};
use softfabric_units::Class;

/// The port that sends the most pause frames, or, where a port does not tell, whose neighbour receives them.
pub(super) fn most_pausing(topology: &Topology, history: &History) -> Option<PortIndex> {
    let growth = history.growth();
    let whole = history.span()?;
    let frames = |port: PortIndex, counter: ClassCounter| {
        let classes = Class::all().map(|class| Counter::Class(class, counter));
        classes
            .filter_map(|counter| growth.of(port, counter, whole))
            .reduce(|a, b| a + b)
    };
    let sent = |port: PortIndex| {
        frames(port, ClassCounter::PauseSent)
            .or_else(|| frames(topology.peer(port)?, ClassCounter::PauseReceived))
    };
    topology
        .port_indices()
        .filter_map(|port| Some((sent(port)?, port)))
        .filter(|(sent, _)| *sent >= 1.0)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
        .map(|(_, port)| port)
}

/// The first port whose queue a PFC watchdog would call stormed: paused for more than 0.99 of two polls in a row, and
/// nothing sent meanwhile (the rule of SONiC's watchdog on Mellanox switches).
pub(super) fn watchdog(topology: &Topology, history: &History) -> Option<PortIndex> {
    let growth = history.growth();
    let span = history.span()?;
    let step = topology
        .port_indices()
        .find_map(|port| history.interval(port))?;
    let polls = span.length().div_floor(step);
    for poll in 0..polls.saturating_sub(1) {
        let window = Window {
            from: span.from + step * poll,
            to: span.from + step * (poll + 2),
        };
        let stormed = topology.port_indices().find(|&port| {
            Class::all().any(|class| {
                let of = |counter| growth.of(port, Counter::Class(class, counter), window);
                let paused = of(ClassCounter::PauseReceivedDuration);
                let sent = of(ClassCounter::TransmitPackets);
                let limit = window.length().as_picos() as f64 * 0.99;
                paused.is_some_and(|paused| paused > limit) && sent == Some(0.0)
            })
        });
        if stormed.is_some() {
            return stormed;
        }
    }
    None
}
