//! A manager with its two queue pairs: who asked, whom answers are for, and tables in parts.
//!
//! ```text
//!   QP 0 ── answers, traps, Get(SMInfo) ──►  ┌─────────┐
//!   QP 1 ── queries, acknowledgements ────►  │ Station │ ── datagrams with their addresses ──►
//!                                            └─────────┘
//! ```
//!
//! The driver moves datagrams between it and a port, ours, a server of ibsim's protocol, or real. Whatever arrives, the
//! manager goes on, and at most [`MOST_TRANSFERS`] tables are under way.

use std::collections::VecDeque;

use softfabric_units::{Lid, Time};
use softfabric_wire::mad::administration::rmpp::{RmppHeader, RmppKind, RmppPatience, RmppSender};
use softfabric_wire::mad::administration::{ADMINISTRATION_DATA, AdministrationMad};
use softfabric_wire::mad::congestion::CongestionMad;
use softfabric_wire::mad::subnet::{Smp, SmpRoute};
use softfabric_wire::mad::{MAD_LENGTH, MadHeader, ManagementClass, Method};

use super::{Answer, Manager};

/// How many tables may be under way at once; whoever asks for more is told that the manager is busy.
pub const MOST_TRANSFERS: usize = 256;

/// Where lengths of parts start to count.
const CLASS_HEADER: usize = 36;
/// Where a datagram is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The port; permissive on directed routes.
    pub lid: Lid,
    /// The queue pair.
    pub queue_pair: u32,
}

/// A datagram to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Where it goes: permissive on directed routes.
    pub to: Address,
    /// The queue pair that it is sent from: 0 or 1.
    pub from_queue_pair: u32,
    /// Its bytes.
    pub mad: [u8; MAD_LENGTH],
    /// How many of them count.
    pub length: usize,
}

/// A table on its way.
struct Transfer {
    to: Address,
    transaction: u64,
    sender: RmppSender,
}

/// A manager at its port.
pub struct Station {
    manager: Manager,
    patience: RmppPatience,
    replies: VecDeque<Outgoing>,
    transfers: Vec<Transfer>,
}

impl Station {
    /// Puts a manager at a port. Parts of tables that are not acknowledged are sent again as `patience` says: not at all
    /// where nothing gets lost.
    pub const fn new(manager: Manager, patience: RmppPatience) -> Self {
        Self {
            manager,
            patience,
            replies: VecDeque::new(),
            transfers: Vec::new(),
        }
    }

    /// The manager.
    pub const fn manager(&self) -> &Manager {
        &self.manager
    }

    /// The manager, to start it and to hear its events.
    pub const fn manager_mut(&mut self) -> &mut Manager {
        &mut self.manager
    }

    /// Takes a datagram that arrived. What is none of the manager's business is dropped.
    pub fn handle(&mut self, now: Time, from: Address, mad: &[u8]) {
        let Ok(header) = MadHeader::decode(mad) else {
            return;
        };
        match header.class {
            ManagementClass::SUBNET_LID_ROUTED | ManagementClass::SUBNET_DIRECTED => {
                if let Ok(smp) = Smp::decode(mad) {
                    self.handle_smp(now, from, &smp);
                }
            }
            ManagementClass::CONGESTION_CONTROL => {
                if let Ok(answer) = CongestionMad::decode(mad) {
                    self.manager.handle_congestion(now, &answer);
                }
            }
            ManagementClass::SUBNET_ADMINISTRATION => {
                if let Ok(query) = AdministrationMad::decode(mad) {
                    self.handle_query(now, from, &query);
                }
            }
            _ => {}
        }
    }

    /// A datagram of its own came back: nobody has taken it.
    pub fn handle_lost(&mut self, mad: &[u8]) {
        if let Ok(smp) = Smp::decode(mad)
            && matches!(smp.method, Method::GET | Method::SET)
        {
            self.manager.handle_lost(smp.transaction);
        }
    }

    fn handle_smp(&mut self, now: Time, from: Address, smp: &Smp) {
        self.manager.handle_smp(now, smp);
        while let Some(reply) = self.manager.poll_reply() {
            let directed = matches!(reply.route, SmpRoute::Directed(_));
            let lid = if directed { Lid::PERMISSIVE } else { from.lid };
            self.replies.push_back(Outgoing {
                to: Address {
                    lid,
                    queue_pair: from.queue_pair,
                },
                from_queue_pair: 0,
                mad: reply.encode(),
                length: MAD_LENGTH,
            });
        }
    }

    fn handle_query(&mut self, now: Time, from: Address, query: &AdministrationMad) {
        let belongs = |transfer: &Transfer| {
            transfer.to.lid == from.lid && transfer.transaction == query.transaction
        };
        if query.rmpp.active && query.rmpp.kind != RmppKind::DATA {
            if let Some(transfer) = self.transfers.iter_mut().find(|transfer| belongs(transfer)) {
                transfer.sender.handle(now, &query.rmpp);
            }
            return self.forget_ended();
        }
        if query.method.is_response() {
            return;
        }
        if self.transfers.iter().any(belongs) {
            return; // asked again while the answer is on its way
        }
        let Answer { head, table } = self.manager.administer_from(query, from.lid);
        let Some(table) = table else {
            return self.reply(from, &head);
        };
        if self.transfers.len() >= MOST_TRANSFERS {
            let busy = AdministrationMad {
                status: softfabric_wire::mad::status::BUSY,
                ..head
            };
            return self.reply(from, &busy);
        }
        self.transfers.push(Transfer {
            to: from,
            transaction: query.transaction,
            sender: RmppSender::new(head.encode(), ADMINISTRATION_DATA, table, self.patience),
        });
    }

    fn reply(&mut self, to: Address, head: &AdministrationMad) {
        let head = AdministrationMad {
            rmpp: RmppHeader::NONE,
            ..*head
        };
        self.replies.push_back(Outgoing {
            to,
            from_queue_pair: 1,
            mad: head.encode(),
            length: MAD_LENGTH,
        });
    }

    /// The next datagram to send, until there is none.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Outgoing> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply);
        }
        if let Some(report) = self.manager.poll_report() {
            return Some(Outgoing {
                to: Address {
                    lid: report.to,
                    queue_pair: report.queue_pair.as_u32(),
                },
                from_queue_pair: 1,
                mad: report.mad.encode(),
                length: MAD_LENGTH,
            });
        }
        for transfer in &mut self.transfers {
            if let Some(mad) = transfer.sender.poll_transmit(now) {
                return Some(Outgoing {
                    to: transfer.to,
                    from_queue_pair: 1,
                    mad,
                    length: part_length(&mad),
                });
            }
        }
        self.forget_ended();
        if let Some((lid, mad)) = self.manager.poll_congestion(now) {
            return Some(Outgoing {
                to: Address { lid, queue_pair: 1 },
                from_queue_pair: 1,
                mad: mad.encode(),
                length: MAD_LENGTH,
            });
        }
        let smp = self.manager.poll_transmit(now)?;
        Some(Outgoing {
            to: Address {
                lid: Lid::PERMISSIVE,
                queue_pair: 0,
            },
            from_queue_pair: 0,
            mad: smp.encode(),
            length: MAD_LENGTH,
        })
    }

    fn forget_ended(&mut self) {
        self.transfers
            .retain(|transfer| transfer.sender.outcome().is_none());
    }

    /// When [`Station::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Time> {
        let transfers = self.transfers.iter();
        transfers
            .filter_map(|transfer| transfer.sender.poll_timeout())
            .chain(self.manager.poll_timeout())
            .min()
    }

    /// Sends again what has not been answered, or gives up on it.
    pub fn handle_timeout(&mut self, now: Time) {
        for transfer in &mut self.transfers {
            transfer.sender.handle_timeout(now);
        }
        // Who has not answered to any part is gone, and hears nothing of the end.
        self.forget_ended();
        self.manager.handle_timeout(now);
    }

    /// Whether nothing is on its way.
    pub fn is_quiet(&self) -> bool {
        self.replies.is_empty() && self.transfers.is_empty()
    }
}

/// The bytes of a part that count: of the last one, as its header says.
fn part_length(mad: &[u8; MAD_LENGTH]) -> usize {
    match RmppHeader::decode(mad) {
        Ok(header) if header.last => (CLASS_HEADER + header.length as usize).min(MAD_LENGTH),
        _ => MAD_LENGTH,
    }
}
