//! Which link waits for which: the channel dependency graph of one lane, as packets hold one buffer and want the next.
//!
//! ```text
//!   link a ──► switch ──► link b      a packet in the buffer behind a waits for room behind b: a depends on b
//! ```
//!
//! A dependency has the number `base[a] + place of b among the links of its switch`. If dependencies make a circle, packets
//! may wait for each other for ever (Dally and Seitz, 1987).

use super::view::RoutingView;

/// Numbers of dependencies.
#[derive(Clone, Debug)]
pub(crate) struct Numbering {
    base: Vec<u32>,
    count: usize,
}

impl Numbering {
    pub(crate) fn new(view: &RoutingView) -> Self {
        let mut count = 0;
        let base = view
            .links()
            .iter()
            .map(|link| {
                let first = count;
                count += view.links_of(link.to as usize).len() as u32;
                first
            })
            .collect();
        Self {
            base,
            count: count as usize,
        }
    }

    /// How many dependencies there can be.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The number of "`from` depends on `to`", where `to` leaves the switch that `from` comes to.
    #[inline]
    pub(crate) fn of(&self, view: &RoutingView, from: usize, to: usize) -> usize {
        let first = view.links_of(view.links()[from].to as usize).start;
        self.base[from] as usize + (to - first)
    }
}

/// Counted dependencies: how many paths need each.
#[derive(Clone, Debug)]
pub(super) struct Counted<'a> {
    view: &'a RoutingView,
    numbering: &'a Numbering,
    counts: Vec<u32>,
}

impl<'a> Counted<'a> {
    pub(super) fn new(view: &'a RoutingView, numbering: &'a Numbering) -> Self {
        Self {
            view,
            numbering,
            counts: vec![0; numbering.count()],
        }
    }

    pub(super) fn add(&mut self, from: usize, to: usize, paths: u32) {
        self.counts[self.numbering.of(self.view, from, to)] += paths;
    }

    pub(super) fn remove(&mut self, from: usize, to: usize) {
        self.counts[self.numbering.of(self.view, from, to)] -= 1;
    }

    pub(super) fn count(&self, from: usize, to: usize) -> u32 {
        self.counts[self.numbering.of(self.view, from, to)]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    New,
    OnStack,
    Done,
}

/// A search for circles that goes on where it was after dependencies are taken away. What is done stays done: taking away
/// makes no new circles.
pub(super) struct CircleSearch {
    colours: Vec<Colour>,
    /// Links, each with the next place to look at.
    stack: Vec<(usize, usize)>,
    next_start: usize,
}

impl CircleSearch {
    pub(super) fn new(view: &RoutingView) -> Self {
        Self {
            colours: vec![Colour::New; view.links().len()],
            stack: Vec::new(),
            next_start: 0,
        }
    }

    /// The links of a circle, each of which depends on the next, and the last on the first.
    pub(super) fn next(&mut self, counted: &Counted<'_>) -> Option<Vec<usize>> {
        self.unwind(counted);
        loop {
            let Some((link, place)) = self.stack.last_mut() else {
                let start = (self.next_start..self.colours.len())
                    .find(|link| self.colours[*link] == Colour::New)?;
                self.next_start = start;
                self.colours[start] = Colour::OnStack;
                self.stack.push((start, 0));
                continue;
            };
            let link = *link;
            let range = counted
                .view
                .links_of(counted.view.links()[link].to as usize);
            let Some(next) = range.clone().nth(*place) else {
                self.colours[link] = Colour::Done;
                self.stack.pop();
                continue;
            };
            *place += 1;
            if counted.count(link, next) == 0 {
                continue;
            }
            match self.colours[next] {
                Colour::Done => {}
                Colour::New => {
                    self.colours[next] = Colour::OnStack;
                    self.stack.push((next, 0));
                }
                Colour::OnStack => {
                    // It may not be cut here: then this dependency has to be seen again.
                    *place -= 1;
                    let first = self.stack.iter().rposition(|(link, _)| *link == next)?;
                    return Some(self.stack[first..].iter().map(|(link, _)| *link).collect());
                }
            }
        }
    }

    /// Leaves what is no longer reached from the bottom of the stack.
    fn unwind(&mut self, counted: &Counted<'_>) {
        let cut = self
            .stack
            .windows(2)
            .position(|pair| counted.count(pair[0].0, pair[1].0) == 0);
        if let Some(cut) = cut {
            for (link, _) in self.stack.drain(cut + 1..) {
                self.colours[link] = Colour::New;
                self.next_start = self.next_start.min(link);
            }
        }
    }
}
