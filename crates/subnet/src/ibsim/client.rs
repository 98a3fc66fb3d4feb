//! The other side of the protocol: how a program joins a server, ours or ibsim's, and what it sends then.
//!
//! ```text
//!   Joining::request ──► control ──► server ──► control ──► Joining::handle ──► the next request, or Joined
//! ```
//!
//! Each question has one answer, in order. The transaction numbers of a client's datagrams may use the lower 48 bits: the
//! server has the others for itself.

use softfabric_units::Lid;
use softfabric_wire::mad::MAD_LENGTH;
use thiserror::Error;

use super::message::{Connect, Control, ControlKind, Data};
use crate::manager::Outgoing;

/// A program that joins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joining {
    id: u32,
    node: String,
    manager: bool,
    slot: Option<u32>,
    is_at: String,
}

/// A program that has joined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    /// Its slot: the server's socket for its datagrams has this number.
    pub slot: u32,
    /// The node that it is at, as the server calls it; ibsim leaves this empty where nobody asked for one.
    pub node: String,
}

/// What comes of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Nothing: it was to another question.
    Unrelated,
    /// It is a client now. Where it wants to be a manager, the next request says so; its data socket must be ready by then.
    Connected(Joined),
    /// All is done.
    Done(Joined),
}

/// The server says no. It does not say why.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum JoinError {
    /// To a client at all.
    #[error("the server takes no client at {}", place(.node))]
    Refused {
        /// Where it wanted to be.
        node: String,
    },
    /// To a manager.
    #[error("the server takes no subnet manager at {}", place(.node))]
    NoManager {
        /// Where it is.
        node: String,
    },
}

fn place(node: &str) -> String {
    if node.is_empty() {
        "its first node".to_owned()
    } else {
        format!("node {node:?}")
    }
}

impl Joining {
    /// A program that joins as `id`, which names its sockets: at `node`, or where the server likes if that is empty.
    pub fn new(id: u32, node: &str, manager: bool) -> Self {
        Self {
            id,
            node: node.to_owned(),
            manager,
            slot: None,
            is_at: String::new(),
        }
    }

    /// What to ask the server now.
    pub fn request(&self) -> Control {
        match self.slot {
            None => {
                let connect = Connect {
                    id: self.id,
                    queue_pair: 0,
                    manager: false,
                    node: self.node.clone(),
                };
                Control {
                    client: 0,
                    kind: ControlKind::CONNECT,
                    length: Connect::LENGTH,
                    data: connect.encode(),
                }
            }
            Some(slot) => {
                let mut data = [0; 64];
                data[0] = 1;
                Control {
                    client: slot,
                    kind: ControlKind::SET_MANAGER,
                    length: 4,
                    data,
                }
            }
        }
    }

    /// Takes the server's answer.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn handle(&mut self, answer: &Control) -> Result<Progress, JoinError> {
        let node = if self.is_at.is_empty() {
            self.node.clone()
        } else {
            self.is_at.clone()
        };
        let joined = |slot: u32, node: &str| Joined {
            slot,
            node: node.to_owned(),
        };
        Ok(match (self.slot, answer.kind) {
            (None, ControlKind::ERROR) => return Err(JoinError::Refused { node }),
            (Some(_), ControlKind::ERROR) => return Err(JoinError::NoManager { node }),
            (None, ControlKind::CONNECT) => {
                let found = Connect::decode(&answer.data);
                self.slot = Some(found.id);
                self.is_at = found.node;
                let joined = joined(found.id, &self.is_at);
                if self.manager {
                    Progress::Connected(joined)
                } else {
                    Progress::Done(joined)
                }
            }
            (Some(slot), ControlKind::SET_MANAGER) => Progress::Done(joined(slot, &node)),
            _ => Progress::Unrelated,
        })
    }
}

impl Joined {
    /// The word that it leaves.
    pub const fn farewell(&self) -> Control {
        Control {
            client: self.slot,
            kind: ControlKind::DISCONNECT,
            length: 0,
            data: [0; 64],
        }
    }
}

impl Data {
    /// A datagram from the own queue pair `from` to queue pair `to` at `destination` (permissive: by its own directed
    /// route), of which `length` bytes count.
    pub const fn outgoing(
        destination: Lid,
        from: u32,
        to: u32,
        mad: [u8; MAD_LENGTH],
        length: usize,
    ) -> Self {
        Self {
            destination,
            source: if destination.0 == Lid::PERMISSIVE.0 {
                Lid::PERMISSIVE
            } else {
                Lid(0)
            },
            destination_qp: to,
            source_qp: from,
            status: 0,
            length: length as u64,
            mad,
        }
    }
}

impl From<Outgoing> for Data {
    fn from(out: Outgoing) -> Self {
        Self::outgoing(
            out.to.lid,
            out.from_queue_pair,
            out.to.queue_pair,
            out.mad,
            out.length,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Fabric;
    use crate::generate::fat_tree;
    use crate::ibsim::Server;

    fn join(server: &mut Server, joining: &mut Joining) -> Result<Joined, JoinError> {
        for _ in 0..2 {
            let served = server.handle_control(&joining.request());
            if let Progress::Done(joined) = joining.handle(&served.answer)? {
                return Ok(joined);
            }
        }
        panic!("{joining:?}")
    }

    #[test]
    fn a_manager_joins_where_it_wants_and_leaves() {
        let mut server = Server::new(Fabric::new(fat_tree(4, 2).unwrap()));
        let first = join(&mut server, &mut Joining::new(7, "H-00001", true)).unwrap();
        assert_eq!((first.slot, &*first.node), (0, "H-00001"));
        assert_eq!(server.clients().count(), 1);
        let second = join(&mut server, &mut Joining::new(8, "", false)).unwrap();
        assert_eq!((second.slot, &*second.node), (1, "H-00000"));
        let refused = join(&mut server, &mut Joining::new(9, "nowhere", true)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the server takes no client at node \"nowhere\""
        );
        server.handle_control(&first.farewell());
        let left: Vec<u32> = server.clients().map(|(_, client)| client.id).collect();
        assert_eq!(left, [8]);
    }

    #[test]
    fn stray_answers_change_nothing() {
        let mut joining = Joining::new(1, "", true);
        let stray = Control {
            client: 0,
            kind: ControlKind::PORT,
            length: 0,
            data: [0; 64],
        };
        let before = joining.clone();
        assert_eq!(joining.handle(&stray), Ok(Progress::Unrelated));
        assert_eq!(joining, before);
    }
}
