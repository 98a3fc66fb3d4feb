//! The picture of the topology on the page: laid out once, and coloured by each view.

use maud::{Markup, html};
use serde::Serialize;
use softfabric_operations::watch::{State, View};
use softfabric_operations::{LinkLayer, PortIndex, Topology};

use crate::format;
use crate::report::layout::{self, Bundle, Cell, Graph, Layout};
use crate::report::topology::{HEAT, LETTER, ROOM_FOR_NAME, SWITCH_HEIGHT, WIDTH, fixed, heat};
use crate::watch::text;

/// Where everything stands.
#[derive(Default)]
pub(super) struct Picture {
    /// Grows with every new layout: a page that shows another one is out of date.
    pub(super) number: u64,
    layout: Option<Layout>,
    names: Vec<String>,
    cables: Vec<(PortIndex, PortIndex)>,
    ports: usize,
    by_credit: bool,
}

/// How something in the picture looks now.
#[derive(Serialize)]
pub(super) struct Look {
    /// From cold to hot.
    heat: usize,
    state: &'static str,
    /// What to say about it.
    tip: String,
}

impl Picture {
    /// Lays a topology out.
    pub(super) fn of(topology: &Topology, before: Option<&Self>) -> Self {
        Self {
            number: before.map_or(1, |before| before.number + 1),
            layout: Some(layout::of(&Graph::of_topology(topology))),
            names: topology
                .nodes()
                .iter()
                .map(|node| node.name.clone())
                .collect(),
            cables: layout::cables(topology),
            ports: topology.ports().len(),
            by_credit: topology.link_layer == LinkLayer::Infiniband,
        }
    }

    /// Whether it is still that of the topology, which only grows.
    pub(super) fn is_of(&self, topology: &Topology) -> bool {
        self.names.len() == topology.nodes().len()
            && self.ports == topology.ports().len()
            && self.cables.len() == layout::cables(topology).len()
    }

    /// Nodes by what to know first of them, in the order in which they were drawn.
    pub(super) fn cells(&self, view: &View) -> Vec<Look> {
        let cells = self.layout.iter().flat_map(|layout| &layout.cells);
        cells.map(|cell| self.cell(cell, view)).collect()
    }

    /// Cables, in the order in which they were drawn.
    pub(super) fn bundles(&self, view: &View) -> Vec<Look> {
        let bundles = self.layout.iter().flat_map(|layout| &layout.bundles);
        bundles.map(|bundle| self.bundle(bundle, view)).collect()
    }

    fn held(&self) -> &'static str {
        match self.by_credit {
            true => "waits for credit",
            false => "is held",
        }
    }

    fn cell(&self, cell: &Cell, view: &View) -> Look {
        let nodes = || cell.nodes.iter().filter_map(|&node| view.nodes.get(node));
        let state = nodes()
            .map(|node| node.state)
            .max()
            .unwrap_or(State::Silent);
        let worst = nodes().map(|node| node.held).fold(0.0, f64::max);
        let tip = match cell.nodes.as_slice() {
            [node] => {
                let node = view.nodes.get(*node);
                let told = node.map(|node| {
                    format!(
                        "{}: {}\na port {} {} of the time\nsends {}, receives {}",
                        node.name,
                        node.state.name(),
                        self.held(),
                        format::percent(node.held),
                        text::rate(node.transmits),
                        text::rate(node.receives)
                    )
                });
                told.unwrap_or_default()
            }
            nodes_here => {
                let bad = nodes().filter(|node| node.state > State::Deviates);
                let bad: Vec<&str> = bad.map(|node| node.name.as_str()).take(6).collect();
                let (first, last) = (
                    &self.names[nodes_here[0]],
                    &self.names[nodes_here[nodes_here.len() - 1]],
                );
                format!(
                    "{} nodes, {first} to {last}\nheld {} at most{}{}",
                    nodes_here.len(),
                    format::percent(worst),
                    if bad.is_empty() { "" } else { "\n" },
                    bad.join(", ")
                )
            }
        };
        Look {
            heat: heat(worst),
            state: state.name(),
            tip,
        }
    }

    fn bundle(&self, bundle: &Bundle, view: &View) -> Look {
        let cables = || bundle.links.iter().map(|&link| self.cables[link]);
        let ends = || {
            cables()
                .flat_map(|(a, b)| [a, b])
                .filter_map(|port| view.ports.get(port.index()))
        };
        let worst = ends().filter_map(|port| port.held).fold(0.0, f64::max);
        let state = ends().map(|port| port.state).max().unwrap_or(State::Silent);
        let lines = ends().take(4).map(|port| {
            let held = port.held.map_or("unknown".to_owned(), format::percent);
            format!("{} {} {held}", port.name, self.held())
        });
        let mut tip: Vec<String> = lines.collect();
        if bundle.links.len() > 2 {
            tip = vec![format!(
                "{} cables, held {} at most",
                bundle.links.len(),
                format::percent(worst)
            )];
        }
        Look {
            heat: heat(worst),
            state: state.name(),
            tip: tip.join("\n"),
        }
    }

    /// The picture, not coloured yet, with its legend.
    pub(super) fn draw(&self) -> Markup {
        let Some(layout) = &self.layout else {
            return html! {};
        };
        html! {
            figure.topology {
                figcaption {
                    b { "Topology" }
                    span {
                        "cables and nodes by the share of the time in which an end "
                        @if self.by_credit { "waits for credit" } @else { "is held by pauses" }
                        "; a ring is a source"
                    }
                }
                div.scroll {
                    svg #picture viewBox={ "0 0 " (WIDTH) " " (layout.height()) } role="img" aria-label="Topology, coloured by the time in which ports are held" {
                        @for bundle in &layout.bundles { (draw_bundle(layout, bundle)) }
                        @for cell in &layout.cells { (self.draw_cell(layout, cell)) }
                    }
                }
                p.legend {
                    @for (level, (_, label)) in HEAT.iter().enumerate() {
                        span { i.{ "heat" (level) } {} (label) }
                    }
                    span { i.ring {} "source" }
                    span { i.cut {} "down" }
                    span { i.unheard {} "not heard" }
                }
            }
        }
    }

    fn draw_cell(&self, layout: &Layout, cell: &Cell) -> Markup {
        let (x, y) = layout.place(cell);
        let room = WIDTH / cell.row_length as f64;
        let name = match cell.nodes.as_slice() {
            [node] => self.names[*node].clone(),
            nodes => format!("×{}", nodes.len()),
        };
        let named = room >= ROOM_FOR_NAME.max(name.chars().count() as f64 * LETTER + 6.0);
        let names: Vec<&str> = cell
            .nodes
            .iter()
            .take(64)
            .map(|&node| self.names[node].as_str())
            .collect();
        html! {
            g.node data-names=(names.join(" ")) {
                @if cell.hosts {
                    @let radius = (room / 3.2).clamp(2.5, 8.0) + if cell.nodes.len() > 1 { 2.0 } else { 0.0 };
                    circle.halo cx=(fixed(x)) cy=(fixed(y)) r=(fixed(radius + 5.0)) {}
                    circle.host.heat0 cx=(fixed(x)) cy=(fixed(y)) r=(fixed(radius)) {}
                    @if named { text x=(fixed(x)) y=(fixed(y + radius + 16.0)) { (name) } }
                } @else {
                    @let width = (room * 0.72).clamp(9.0, 104.0);
                    @let (left, top) = (x - width / 2.0, y - SWITCH_HEIGHT / 2.0);
                    rect.halo x=(fixed(left - 5.0)) y=(fixed(top - 5.0)) width=(fixed(width + 10.0)) height=(fixed(SWITCH_HEIGHT + 10.0)) rx="10" {}
                    rect.switch.heat0 x=(fixed(left)) y=(fixed(top)) width=(fixed(width)) height=(fixed(SWITCH_HEIGHT)) rx="6" {}
                    @if named && width >= name.chars().count() as f64 * LETTER { text.inside x=(fixed(x)) y=(fixed(y + 4.0)) { (name) } }
                }
            }
        }
    }
}

fn draw_bundle(layout: &Layout, bundle: &Bundle) -> Markup {
    let width = 1.6 + (bundle.links.len() as f64).log2() * 0.7;
    html! {
        path.link.heat0 d=(layout.path(bundle)) style={ "stroke-width:" (fixed(width)) } {}
    }
}
