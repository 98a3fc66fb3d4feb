//! Directed routes, and what each node on one does with a packet (IBTA vol. 1, 14.2.2).
//!
//! ```text
//!   outward (D = 0)   pointer 0 ──► 1 ──► … ──► count ──► count + 1     at node i: leave by initial[i], note returned[i]
//!   back    (D = 1)   pointer count + 1 ──► count ──► … ──► 1 ──► 0     leave by returned[i]
//! ```
//!
//! Before the first and after the last hop of the directed part, a packet may travel by LID: then `source` or
//! `destination` is not permissive.

use softfabric_units::Lid;

/// The most hops, and the length of a path's array: entry 0 is never used.
pub const MAX_HOPS: usize = 64;

/// The directed part of a subnet management packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectedRoute {
    /// D: the packet is on its way back.
    pub returning: bool,
    /// Where on the path it is.
    pub hop_pointer: u8,
    /// How long the path is: 0–63.
    pub hop_count: u8,
    /// Where the directed part starts; permissive if at the sender.
    pub source: Lid,
    /// Where it ends; permissive if at the receiver.
    pub destination: Lid,
    /// The ports to leave by, from entry 1.
    pub initial: [u8; MAX_HOPS],
    /// The ports by which it arrived, from entry 1, filled in on the way.
    pub returned: [u8; MAX_HOPS],
}

/// What a node does with a directed packet that it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextHop {
    /// It is for this node's agent, or for the manager here.
    Here,
    /// It leaves by this port.
    Port(u8),
    /// It goes on by LID.
    Lid(Lid),
    /// No route leads on: it is dropped.
    Nowhere,
}

impl DirectedRoute {
    /// The route that leaves by `ports`, one after another, from the sender itself; `None` for more than 63.
    pub fn along(ports: &[u8]) -> Option<Self> {
        let mut initial = [0; MAX_HOPS];
        initial[1..].get_mut(..ports.len())?.copy_from_slice(ports);
        Some(Self {
            returning: false,
            hop_pointer: 0,
            hop_count: ports.len() as u8,
            source: Lid::PERMISSIVE,
            destination: Lid::PERMISSIVE,
            initial,
            returned: [0; MAX_HOPS],
        })
    }

    /// The ports to leave by.
    pub fn ports(&self) -> &[u8] {
        let end = usize::from(self.hop_count).min(MAX_HOPS - 1) + 1;
        &self.initial[1..end]
    }

    /// Whether count and pointer are those of a packet on some route.
    pub const fn is_sound(&self) -> bool {
        (self.hop_count as usize) < MAX_HOPS && self.hop_pointer <= self.hop_count + 1
    }

    /// Moves the packet on at a node that received it through `arrived_by`, or has just made it (`None`). `forwards` is
    /// whether the node is a switch: only switches pass packets on, though every node sends those that it made.
    pub fn advance(&mut self, arrived_by: Option<u8>, forwards: bool) -> NextHop {
        if !self.is_sound() {
            return NextHop::Nowhere;
        }
        let may_leave = forwards || arrived_by.is_none();
        let (pointer, count) = (usize::from(self.hop_pointer), usize::from(self.hop_count));
        if self.returning {
            return self.advance_back(pointer, may_leave);
        }
        match arrived_by {
            None if count == 0 => {
                self.hop_pointer = 1;
                NextHop::Here
            }
            None if pointer == 0 => {
                self.hop_pointer = 1;
                NextHop::Port(self.initial[1])
            }
            Some(port) if pointer >= 1 && pointer <= count => {
                self.returned[pointer] = port;
                self.hop_pointer += 1;
                if pointer < count {
                    if may_leave {
                        NextHop::Port(self.initial[pointer + 1])
                    } else {
                        NextHop::Nowhere
                    }
                } else if self.destination == Lid::PERMISSIVE {
                    NextHop::Here
                } else {
                    NextHop::Lid(self.destination)
                }
            }
            // By LID after the directed part: it is where it should be.
            Some(_) if pointer == count + 1 => NextHop::Here,
            _ => NextHop::Nowhere,
        }
    }

    fn advance_back(&mut self, pointer: usize, may_leave: bool) -> NextHop {
        match pointer {
            0 => NextHop::Here,
            1 => {
                self.hop_pointer = 0;
                if self.source == Lid::PERMISSIVE {
                    NextHop::Here
                } else {
                    NextHop::Lid(self.source)
                }
            }
            _ if may_leave => {
                self.hop_pointer -= 1;
                NextHop::Port(self.returned[pointer - 1])
            }
            _ => NextHop::Nowhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hops_out_and_back() {
        let mut route = DirectedRoute::along(&[1, 7]).unwrap();
        assert_eq!(route.ports(), [1, 7]);
        assert_eq!(route.advance(None, false), NextHop::Port(1));
        assert_eq!(route.advance(Some(3), true), NextHop::Port(7));
        assert_eq!(route.advance(Some(2), false), NextHop::Here);
        assert_eq!(
            (route.hop_pointer, &route.returned[..3]),
            (3, &[0, 3, 2][..])
        );
        route.returning = true;
        assert_eq!(route.advance(None, false), NextHop::Port(2));
        assert_eq!(route.advance(Some(7), true), NextHop::Port(3));
        assert_eq!(route.advance(Some(1), false), NextHop::Here);
        assert_eq!(route.hop_pointer, 0);
    }

    #[test]
    fn to_itself() {
        let mut route = DirectedRoute::along(&[]).unwrap();
        assert_eq!(route.advance(None, false), NextHop::Here);
        route.returning = true;
        assert_eq!(route.advance(None, false), NextHop::Here);
    }

    #[test]
    fn hosts_pass_nothing_on_and_broken_counts_go_nowhere() {
        let mut route = DirectedRoute::along(&[1, 7]).unwrap();
        route.hop_pointer = 1;
        assert_eq!(route.clone().advance(Some(1), false), NextHop::Nowhere);
        route.hop_pointer = 4;
        assert_eq!(route.advance(Some(1), true), NextHop::Nowhere);
        route.hop_count = 64;
        assert_eq!(route.advance(Some(1), true), NextHop::Nowhere);
        assert_eq!(route.ports().len(), 63);
        assert!(DirectedRoute::along(&[1; 64]).is_none());
    }

    #[test]
    fn a_directed_part_between_lids() {
        let mut route = DirectedRoute::along(&[4]).unwrap();
        (route.source, route.destination) = (Lid(3), Lid(9));
        assert_eq!(route.advance(None, true), NextHop::Port(4));
        assert_eq!(route.advance(Some(2), true), NextHop::Lid(Lid(9)));
        assert_eq!(route.advance(Some(1), false), NextHop::Here);
        route.returning = true;
        route.hop_pointer = 1;
        assert_eq!(route.advance(Some(4), true), NextHop::Lid(Lid(3)));
        assert_eq!(route.advance(Some(1), false), NextHop::Here);
    }
}
