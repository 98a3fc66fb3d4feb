//! What is asked, what is on its way, and what has waited too long.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use softfabric_units::{Span, Time};
use softfabric_wire::mad::Attribute;
use softfabric_wire::mad::congestion::{
    AdapterCongestionSetting, CongestionControlTable, CongestionInfo, SwitchCongestionSetting,
    SwitchPortCongestionSetting,
};
use softfabric_wire::mad::subnet::{
    ForwardingBlock, MulticastBlock, NodeDescription, NodeInfo, PartitionTable, PortInfo,
    ServiceLevelMap, SmInfo, SwitchInfo, VlArbitration,
};

use super::Settings;
use crate::subnet::{NodeId, PortRef};

/// A question or an order. Packets are made of it when they are sent, from what is known then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Request {
    /// Who is at the other end of this port? `None`: who am I?
    NodeInfo {
        from: Option<PortRef>,
    },
    Description {
        node: NodeId,
    },
    SwitchInfo {
        node: NodeId,
    },
    PortInfo {
        port: PortRef,
    },
    SetSwitchInfo {
        node: NodeId,
    },
    SetForwarding {
        node: NodeId,
        block: u16,
    },
    /// Lanes of levels, for packets that come in by a port of the same node, and of adapters by port 0.
    SetLevels {
        output: PortRef,
        input: u8,
    },
    SetMulticast {
        node: NodeId,
        block: u16,
        position: u8,
    },
    /// Another manager's state.
    ManagerInfo {
        port: PortRef,
    },
    /// Another manager takes the subnet.
    HandOver {
        port: PortRef,
    },
    /// The subnet was taken from another manager.
    Acknowledge {
        port: PortRef,
    },
    /// Partitions.
    SetPartitions {
        port: PortRef,
        block: u16,
    },
    /// Turns of lanes.
    SetArbitration {
        port: PortRef,
        block: u8,
    },
    /// Identifiers and the like, and where the link is up, the state armed.
    SetPort {
        port: PortRef,
    },
    Activate {
        port: PortRef,
    },
    /// What an end port can of congestion control; from here on by identifiers, from queue pair 1.
    CongestionInfo {
        port: PortRef,
    },
    SetSwitchCongestion {
        port: PortRef,
    },
    /// Ports of a switch.
    SetPortCongestion {
        port: PortRef,
        block: u8,
    },
    SetAdapterCongestion {
        port: PortRef,
    },
    SetControlTable {
        port: PortRef,
        block: u8,
    },
}

impl Request {
    pub(super) const fn attribute(&self) -> u16 {
        match self {
            Self::NodeInfo { .. } => NodeInfo::ID,
            Self::Description { .. } => NodeDescription::ID,
            Self::SwitchInfo { .. } | Self::SetSwitchInfo { .. } => SwitchInfo::ID,
            Self::PortInfo { .. } | Self::SetPort { .. } | Self::Activate { .. } => PortInfo::ID,
            Self::SetForwarding { .. } => ForwardingBlock::ID,
            Self::SetLevels { .. } => ServiceLevelMap::ID,
            Self::SetMulticast { .. } => MulticastBlock::ID,
            Self::ManagerInfo { .. } | Self::HandOver { .. } | Self::Acknowledge { .. } => {
                SmInfo::ID
            }
            Self::SetPartitions { .. } => PartitionTable::ID,
            Self::SetArbitration { .. } => VlArbitration::ID,
            Self::CongestionInfo { .. } => CongestionInfo::ID,
            Self::SetSwitchCongestion { .. } => SwitchCongestionSetting::ID,
            Self::SetPortCongestion { .. } => SwitchPortCongestionSetting::ID,
            Self::SetAdapterCongestion { .. } => AdapterCongestionSetting::ID,
            Self::SetControlTable { .. } => CongestionControlTable::ID,
        }
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::NodeInfo { .. } => "Get(NodeInfo)",
            Self::Description { .. } => "Get(NodeDescription)",
            Self::SwitchInfo { .. } => "Get(SwitchInfo)",
            Self::PortInfo { .. } => "Get(PortInfo)",
            Self::SetSwitchInfo { .. } => "Set(SwitchInfo)",
            Self::SetForwarding { .. } => "Set(LinearForwardingTable)",
            Self::SetLevels { .. } => "Set(SLtoVLMappingTable)",
            Self::SetMulticast { .. } => "Set(MulticastForwardingTable)",
            Self::ManagerInfo { .. } => "Get(SMInfo)",
            Self::HandOver { .. } | Self::Acknowledge { .. } => "Set(SMInfo)",
            Self::SetPartitions { .. } => "Set(P_KeyTable)",
            Self::SetArbitration { .. } => "Set(VLArbitrationTable)",
            Self::SetPort { .. } => "Set(PortInfo)",
            Self::Activate { .. } => "Set(PortInfo), active",
            Self::CongestionInfo { .. } => "Get(CongestionInfo)",
            Self::SetSwitchCongestion { .. } => "Set(SwitchCongestionSetting)",
            Self::SetPortCongestion { .. } => "Set(SwitchPortCongestionSetting)",
            Self::SetAdapterCongestion { .. } => "Set(CACongestionSetting)",
            Self::SetControlTable { .. } => "Set(CongestionControlTable)",
        }
    }

    /// The end port that a request of congestion control is for.
    pub(super) const fn port(&self) -> Option<PortRef> {
        match self {
            Self::CongestionInfo { port }
            | Self::SetSwitchCongestion { port }
            | Self::SetPortCongestion { port, .. }
            | Self::SetAdapterCongestion { port }
            | Self::SetControlTable { port, .. } => Some(*port),
            _ => None,
        }
    }

    /// The node that answers, where it is known.
    pub(super) const fn node(&self) -> Option<NodeId> {
        match self {
            Self::NodeInfo { .. } => None,
            Self::Description { node }
            | Self::SwitchInfo { node }
            | Self::SetSwitchInfo { node }
            | Self::SetForwarding { node, .. }
            | Self::SetMulticast { node, .. } => Some(*node),
            Self::PortInfo { port }
            | Self::ManagerInfo { port }
            | Self::HandOver { port }
            | Self::Acknowledge { port }
            | Self::SetPartitions { port, .. }
            | Self::SetArbitration { port, .. }
            | Self::SetLevels { output: port, .. }
            | Self::SetPort { port }
            | Self::Activate { port }
            | Self::CongestionInfo { port }
            | Self::SetSwitchCongestion { port }
            | Self::SetPortCongestion { port, .. }
            | Self::SetAdapterCongestion { port }
            | Self::SetControlTable { port, .. } => Some(port.node),
        }
    }
}

#[derive(Clone, Copy)]
struct OnItsWay {
    request: Request,
    deadline: Time,
    retries_left: u8,
    /// How often ways had changed when it was sent.
    ways: u32,
    /// It is known not to have arrived.
    lost: bool,
}

/// Requests that wait, and those that are on their way: at most a window of these.
pub(super) struct Requests {
    window: usize,
    timeout: Span,
    retries: u8,
    waiting: VecDeque<(Request, u8)>,
    on_their_way: FxHashMap<u32, OnItsWay>,
    /// In the order of deadlines, as all wait equally long. What has been answered since is skipped.
    deadlines: VecDeque<(Time, u32)>,
    next_transaction: u32,
    ways: u32,
}

impl Requests {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            window: settings.window.max(1),
            timeout: settings.timeout,
            retries: settings.retries,
            waiting: VecDeque::new(),
            on_their_way: FxHashMap::default(),
            deadlines: VecDeque::new(),
            next_transaction: 1,
            ways: 0,
        }
    }

    pub(super) fn ask(&mut self, request: Request) {
        self.waiting.push_back((request, self.retries));
    }

    /// The next request to send now, and its transaction.
    pub(super) fn next(&mut self, now: Time) -> Option<(u32, Request)> {
        if self.on_their_way.len() >= self.window {
            return None;
        }
        let (request, retries_left) = self.waiting.pop_front()?;
        let transaction = self.next_transaction;
        self.next_transaction = self.next_transaction.wrapping_add(1).max(1);
        let deadline = now + self.timeout;
        self.deadlines.push_back((deadline, transaction));
        let sent = OnItsWay {
            request,
            deadline,
            retries_left,
            ways: self.ways,
            lost: false,
        };
        self.on_their_way.insert(transaction, sent);
        Some((transaction, request))
    }

    /// The request that was answered, if it was on its way, and whether it had been sent before.
    pub(super) fn done(&mut self, transaction: u32) -> Option<(Request, bool)> {
        let sent = self.on_their_way.remove(&transaction)?;
        while let Some((_, first)) = self.deadlines.front() {
            if self.on_their_way.contains_key(first) {
                break;
            }
            self.deadlines.pop_front();
        }
        Some((sent.request, sent.retries_left < self.retries))
    }

    /// A request did not arrive. If there are other ways since it was sent, or as soon as there are, it is sent again.
    pub(super) fn lost(&mut self, transaction: u32) {
        let Some(sent) = self.on_their_way.get_mut(&transaction) else {
            return;
        };
        sent.lost = true;
        if sent.ways != self.ways {
            let waiting = (sent.request, sent.retries_left);
            self.on_their_way.remove(&transaction);
            self.waiting.push_back(waiting);
        }
    }

    /// Cables are gone, or new: what was lost may find another way now.
    pub(super) fn ways_have_changed(&mut self) {
        self.ways = self.ways.wrapping_add(1);
        for (_, transaction) in &self.deadlines {
            if let Some(sent) = self.on_their_way.get(transaction)
                && sent.lost
            {
                self.waiting.push_back((sent.request, sent.retries_left));
                self.on_their_way.remove(transaction);
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadlines.front().map(|(deadline, _)| *deadline)
    }

    /// Puts requests whose time is up back to the others; returns one that has had all its retries.
    pub(super) fn expire(&mut self, now: Time) -> Option<Request> {
        while let Some((deadline, transaction)) = self.deadlines.front().copied() {
            if deadline > now {
                return None;
            }
            self.deadlines.pop_front();
            let Some(sent) = self.on_their_way.remove(&transaction) else {
                continue;
            };
            debug_assert_eq!(sent.deadline, deadline);
            match sent.retries_left.checked_sub(1) {
                Some(left) => self.waiting.push_front((sent.request, left)),
                None => return Some(sent.request),
            }
        }
        None
    }

    /// Forgets everything; answers that still come mean nothing.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
        self.on_their_way.clear();
        self.deadlines.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.on_their_way.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(node: u32) -> Request {
        Request::SwitchInfo { node: NodeId(node) }
    }

    #[test]
    fn what_is_lost_takes_another_way_as_soon_as_there_is_one() {
        let mut requests = Requests::new(&Settings::default());
        requests.ask(asked(1));
        requests.ask(asked(2));
        let (first, _) = requests.next(Time::ZERO).unwrap();
        let (second, _) = requests.next(Time::ZERO).unwrap();
        // The first is known to be lost before there is another way, the second after.
        requests.lost(first);
        assert_eq!(requests.next(Time::ZERO), None);
        requests.ways_have_changed();
        let (again, request) = requests.next(Time::ZERO).unwrap();
        assert_eq!(request, asked(1));
        assert_eq!(requests.next(Time::ZERO), None);
        requests.lost(second);
        let (_, request) = requests.next(Time::ZERO).unwrap();
        assert_eq!(request, asked(2));
        // An answer to what was given up means nothing; one to what was sent again is one.
        assert_eq!(requests.done(first), None);
        assert_eq!(requests.done(again), Some((asked(1), false)));
        requests.lost(again);
        assert_eq!(requests.next(Time::ZERO), None);
    }

    #[test]
    fn without_another_way_it_waits_for_its_time() {
        let mut requests = Requests::new(&Settings::default());
        requests.ask(asked(1));
        let (first, _) = requests.next(Time::ZERO).unwrap();
        requests.lost(first);
        let due = requests.deadline().unwrap();
        assert_eq!(requests.expire(due), None);
        assert_eq!(
            requests.next(due).map(|(_, request)| request),
            Some(asked(1))
        );
    }
}
