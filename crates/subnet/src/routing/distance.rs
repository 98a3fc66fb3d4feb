//! How many links lie between switches.

use super::parallel;
use super::view::RoutingView;

/// "Not reachable", or farther than a byte says.
pub(super) const FAR: u8 = u8::MAX;

/// The least number of links between every two switches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Distances {
    switches: usize,
    /// A row for each destination.
    cells: Vec<u8>,
}

impl Distances {
    /// Measures by breadth-first search from every switch.
    pub fn new(view: &RoutingView) -> Self {
        let switches = view.switches();
        let mut cells = vec![FAR; switches * switches];
        parallel::rows(&mut cells, switches, |destination, row| {
            measure(view, destination, row);
        });
        Self { switches, cells }
    }

    /// From `from` to `to`; `None` where there is no path, or one of more than 254 links.
    pub fn between(&self, from: usize, to: usize) -> Option<u8> {
        let distance = self.to(to)[from];
        (distance != FAR).then_some(distance)
    }

    /// The distances of all switches to `to`.
    pub(super) fn to(&self, to: usize) -> &[u8] {
        &self.cells[to * self.switches..][..self.switches]
    }
}

/// Fills a row that says [`FAR`] everywhere with the distances of all switches to `destination`, which are those from it.
pub(super) fn measure(view: &RoutingView, destination: usize, row: &mut [u8]) {
    let mut queue = Vec::with_capacity(row.len());
    row[destination] = 0;
    queue.push(destination as u32);
    let mut next = 0;
    while let Some(here) = queue.get(next).map(|here| *here as usize) {
        next += 1;
        let distance = row[here].saturating_add(1);
        for link in view.out(here) {
            let to = link.to as usize;
            if row[to] == FAR && distance < FAR {
                row[to] = distance;
                queue.push(link.to);
            }
        }
    }
}
