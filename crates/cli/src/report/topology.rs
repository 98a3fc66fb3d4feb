//! The picture of the topology, coloured by pause time.

use maud::{Markup, html};
use softfabric_fabric::export::{Names, Summary};
use softfabric_fabric::plan::{Endpoint, NodeId, Plan};
use softfabric_fabric::results::{PortResult, Results};
use softfabric_telemetry::{ClassCounter, PortCounter};
use softfabric_units::Span;

use super::layout::{self, Bundle, Cell, Graph, Layout};
use crate::format;

pub(crate) const WIDTH: f64 = 1_040.0;
const ROW_HEIGHT: f64 = 118.0;
const MARGIN: f64 = 34.0;
pub(crate) const SWITCH_HEIGHT: f64 = 26.0;
/// Names are written where there is so much room for each, and for their letters.
pub(crate) const ROOM_FOR_NAME: f64 = 24.0;
/// The width of a letter of a name.
pub(crate) const LETTER: f64 = 7.8;

/// From cold to hot: the share of the time from which on a colour is used. The first is for no pause at all.
pub(crate) const HEAT: [(f64, &str); 6] = [
    (0.0, "none"),
    (0.0, "under 1 %"),
    (0.01, "1–10 %"),
    (0.1, "10–30 %"),
    (0.3, "30–60 %"),
    (0.6, "over 60 %"),
];

/// The style class of a share of paused time.
pub(super) fn heat_class(share: f64) -> &'static str {
    ["heat0", "heat1", "heat2", "heat3", "heat4", "heat5"][heat(share)]
}

/// The place of a share in [`HEAT`].
pub(crate) fn heat(share: f64) -> usize {
    if share <= 0.0 {
        return 0;
    }
    (1..HEAT.len())
        .rev()
        .find(|&level| share >= HEAT[level].0)
        .unwrap_or(1)
}

/// The picture with its legend.
pub(super) fn picture(
    plan: &Plan,
    results: &Results,
    summary: &Summary,
    names: &Names<'_>,
) -> Markup {
    let picture = Picture {
        plan,
        names,
        layout: layout::of(&Graph::of_plan(plan, names)),
        ports: PortTable::new(plan, results),
        active: summary.active.as_picos().max(1) as f64,
    };
    let mut bundles: Vec<(usize, &Bundle)> = picture
        .layout
        .bundles
        .iter()
        .map(|bundle| (heat(picture.bundle_share(bundle)), bundle))
        .collect();
    // Hot ones are drawn last, over the others.
    bundles.sort_by_key(|(heat, _)| *heat);
    html! {
        figure.topology {
            figcaption {
                b { "Topology" }
                span {
                    "links and nodes by the share of the time in which an end "
                    @if picture.by_credit() { "waited for credit" } @else { "was paused" }
                    "; point at one for its counters"
                }
            }
            div.scroll {
                svg viewBox={ "0 0 " (WIDTH) " " (picture.layout.height()) } role="img" aria-label="Topology, coloured by the time in which ports were held up" {
                    @for (_, bundle) in bundles { (picture.draw_bundle(bundle)) }
                    @for cell in &picture.layout.cells { (picture.draw_cell(cell)) }
                }
            }
            p.legend {
                @for (level, (_, label)) in HEAT.iter().enumerate() {
                    span { i.{ "heat" (level) } {} (label) }
                }
            }
        }
    }
}

/// Where things stand, in points.
impl Layout {
    pub(crate) fn height(&self) -> f64 {
        MARGIN * 2.0 + ROW_HEIGHT * (self.rows.max(1) - 1) as f64 + self.room_above()
    }

    /// Links within a row are drawn as arcs above it.
    fn room_above(&self) -> f64 {
        let mut bundles = self.bundles.iter();
        let arcs = bundles.any(|bundle| self.is_arc(bundle) && self.cells[bundle.from].row == 0);
        if arcs { 60.0 } else { 0.0 }
    }

    fn is_arc(&self, bundle: &Bundle) -> bool {
        let (from, to) = (&self.cells[bundle.from], &self.cells[bundle.to]);
        from.row == to.row && from.place.abs_diff(to.place) > 1
    }

    pub(crate) fn place(&self, cell: &Cell) -> (f64, f64) {
        let x = (cell.place as f64 + 0.5) / cell.row_length as f64 * WIDTH;
        let y = MARGIN + self.room_above() + ROW_HEIGHT * cell.row as f64;
        (x, y)
    }

    /// The line of a bundle, as SVG writes paths.
    pub(crate) fn path(&self, bundle: &Bundle) -> String {
        let ends = [bundle.from, bundle.to].map(|cell| self.place(&self.cells[cell]));
        let [(x1, y1), (x2, y2)] = ends;
        match self.is_arc(bundle) {
            true => {
                let rise = y1 - 40.0 - (x1 - x2).abs() * 0.04;
                format!("M{x1:.1} {y1:.1}C{x1:.1} {rise:.1} {x2:.1} {rise:.1} {x2:.1} {y2:.1}")
            }
            false => format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}"),
        }
    }
}

/// Counters by port.
struct PortTable<'a> {
    by_node: Vec<Vec<Option<&'a PortResult>>>,
}

impl<'a> PortTable<'a> {
    fn new(plan: &Plan, results: &'a Results) -> Self {
        let mut by_node: Vec<Vec<Option<&PortResult>>> = vec![Vec::new(); plan.network.nodes.len()];
        for port in &results.ports {
            if let Some(ports) = by_node.get_mut(port.endpoint.node.index()) {
                let index = port.endpoint.port.index();
                if ports.len() <= index {
                    ports.resize(index + 1, None);
                }
                ports[index] = Some(port);
            }
        }
        Self { by_node }
    }

    fn port(&self, endpoint: Endpoint) -> Option<&'a PortResult> {
        *self.by_node[endpoint.node.index()].get(endpoint.port.index())?
    }

    fn of_node(&self, node: NodeId) -> impl Iterator<Item = &'a PortResult> + '_ {
        self.by_node[node.index()].iter().flatten().copied()
    }
}

/// How long its neighbour kept a port from sending: by pause frames, or for lack of credit.
fn held_for(port: &PortResult, by_credit: bool) -> Span {
    if by_credit {
        return Span::picos(port.port.value(PortCounter::TransmitWait));
    }
    port.longest_paused_class()
        .map_or(Span::ZERO, |(_, time)| time)
}

struct Picture<'a> {
    plan: &'a Plan,
    names: &'a Names<'a>,
    layout: Layout,
    ports: PortTable<'a>,
    active: f64,
}

impl Picture<'_> {
    fn by_credit(&self) -> bool {
        self.plan.link_layer.infiniband().is_some()
    }

    /// What the colours mean, in words.
    fn held(&self) -> &'static str {
        if self.by_credit() {
            "waited for credit"
        } else {
            "paused"
        }
    }

    fn share(&self, port: &PortResult) -> f64 {
        held_for(port, self.by_credit()).as_picos() as f64 / self.active
    }

    fn endpoint_share(&self, endpoint: Endpoint) -> f64 {
        self.ports
            .port(endpoint)
            .map_or(0.0, |port| self.share(port))
    }

    fn bundle_share(&self, bundle: &Bundle) -> f64 {
        let links = bundle
            .links
            .iter()
            .map(|&link| &self.plan.network.links[link]);
        links
            .flat_map(|link| [link.a, link.b])
            .map(|end| self.endpoint_share(end))
            .fold(0.0, f64::max)
    }

    fn draw_bundle(&self, bundle: &Bundle) -> Markup {
        let share = self.bundle_share(bundle);
        let many = (bundle.links.len() as f64).log2() * 0.7;
        let width = 1.2 + many + if heat(share) > 1 { 0.8 } else { 0.0 };
        let path = self.layout.path(bundle);
        html! {
            path.link.(heat_class(share)) d=(path) style={ "stroke-width:" (format!("{width:.1}")) } data-tip=(self.bundle_tip(bundle)) {}
        }
    }

    fn bundle_tip(&self, bundle: &Bundle) -> String {
        let links = bundle
            .links
            .iter()
            .map(|&link| &self.plan.network.links[link]);
        if bundle.links.len() > 1 {
            let rates: u64 = links.map(|link| link.rate.as_bps()).sum();
            return format!(
                "{} links, {} in all\n{} at most {}",
                format::grouped(bundle.links.len() as u64),
                format::bit_rate(rates as f64),
                self.held(),
                format::percent(self.bundle_share(bundle))
            );
        }
        let held = self.held();
        let lines = links.map(|link| {
            let (a, b) = (self.names.port(link.a), self.names.port(link.b));
            let (paused_a, paused_b) = (
                format::percent(self.endpoint_share(link.a)),
                format::percent(self.endpoint_share(link.b)),
            );
            format!(
                "{a} – {b}, {}, {}\n{a} {held} {paused_a}\n{b} {held} {paused_b}",
                link.rate, link.delay
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn draw_cell(&self, cell: &Cell) -> Markup {
        let (x, y) = self.layout.place(cell);
        let room = WIDTH / cell.row_length as f64;
        let ports = cell
            .nodes
            .iter()
            .flat_map(|&node| self.ports.of_node(id(node)));
        let share = ports.map(|port| self.share(port)).fold(0.0, f64::max);
        let class = heat_class(share);
        let name = self.cell_name(cell);
        let named = room >= ROOM_FOR_NAME.max(name.chars().count() as f64 * LETTER + 6.0);
        html! {
            g.node data-tip=(self.cell_tip(cell, share)) {
                @if cell.hosts {
                    @let radius = (room / 3.2).clamp(2.5, 8.0) + if cell.nodes.len() > 1 { 2.0 } else { 0.0 };
                    circle.host.(class) cx=(fixed(x)) cy=(fixed(y)) r=(fixed(radius)) {}
                    @if named { text x=(fixed(x)) y=(fixed(y + radius + 14.0)) { (name) } }
                } @else {
                    @let width = (room * 0.72).clamp(9.0, 104.0);
                    rect.switch.(class) x=(fixed(x - width / 2.0)) y=(fixed(y - SWITCH_HEIGHT / 2.0)) width=(fixed(width)) height=(fixed(SWITCH_HEIGHT)) rx="6" {}
                    @if named && width >= name.chars().count() as f64 * LETTER { text.inside x=(fixed(x)) y=(fixed(y + 4.0)) { (name) } }
                }
            }
        }
    }

    fn cell_name(&self, cell: &Cell) -> String {
        match cell.nodes.as_slice() {
            [node] => self.names.node(id(*node)).name.clone(),
            nodes => format!("×{}", nodes.len()),
        }
    }

    fn cell_tip(&self, cell: &Cell, share: f64) -> String {
        let [node] = cell.nodes.as_slice() else {
            let (first, last) = (id(cell.nodes[0]), id(cell.nodes[cell.nodes.len() - 1]));
            return format!(
                "{} {}, {} to {}\n{} at most {}",
                format::grouped(cell.nodes.len() as u64),
                if cell.hosts { "hosts" } else { "switches" },
                self.names.node(first).name,
                self.names.node(last).name,
                self.held(),
                format::percent(share)
            );
        };
        let node = &id(*node);
        let total = |counter| {
            self.ports
                .of_node(*node)
                .map(|port| port.class_total(counter))
                .sum::<u64>()
        };
        let bytes = |counter| {
            self.ports
                .of_node(*node)
                .map(|port| port.port.value(counter))
                .sum::<u64>()
        };
        let queue = self
            .ports
            .of_node(*node)
            .map(|port| port.class_total(ClassCounter::QueueWatermark))
            .max();
        let mut lines = vec![
            self.names.node(*node).name.clone(),
            if self.by_credit() {
                format!("a port waited for credit {}", format::percent(share))
            } else {
                format!("a port was paused {}", format::percent(share))
            },
            format!(
                "sent {}, received {}",
                format::bytes(bytes(PortCounter::TransmitBytes)),
                format::bytes(bytes(PortCounter::ReceiveBytes))
            ),
            format!(
                "pause frames: {} sent, {} received",
                format::grouped(total(ClassCounter::PauseSent)),
                format::grouped(total(ClassCounter::PauseReceived))
            ),
        ];
        if !cell.hosts {
            lines.push(format!(
                "deepest queue {}, {} ECN marks",
                format::bytes(queue.unwrap_or(0)),
                format::grouped(total(ClassCounter::EcnMarked))
            ));
        }
        lines.join("\n")
    }
}

/// The node of the plan that has this number in the layout.
fn id(node: usize) -> NodeId {
    NodeId(node as u32)
}

pub(crate) fn fixed(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_rises_with_the_share() {
        let shares = [0.0, 0.001, 0.02, 0.2, 0.5, 0.9];
        for (level, share) in shares.into_iter().enumerate() {
            assert_eq!(heat(share), level, "{share}");
        }
    }
}
