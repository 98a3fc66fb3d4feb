//! The emulated fabric as these tests use it: the manager is at the first adapter, some packets are lost, some nodes keep
//! silent, and some have their own mind.

use std::collections::BTreeSet;

use softfabric_subnet::agent::{Delivery, Fabric as Emulated, Packet};
use softfabric_subnet::{NodeId, PortRef, Subnet};
use softfabric_units::{Lid, Random};
use softfabric_wire::mad::congestion::CongestionMad;
use softfabric_wire::mad::subnet::{Notice, PortInfo, Smp, SmpRoute, StateTrap, Trap};
use softfabric_wire::mad::{Attribute, Method, NodeType, PortState};

/// Emulated nodes, and what goes wrong between them and the manager.
pub(crate) struct Fabric {
    pub(crate) emulated: Emulated,
    pub(crate) own: NodeId,
    pub(crate) random: Random,
    pub(crate) loss: f64,
    pub(crate) silent: BTreeSet<NodeId>,
    /// Those without congestion control: they do not answer to its class.
    pub(crate) deaf: BTreeSet<NodeId>,
    pub(crate) sent: usize,
}

impl Fabric {
    pub(crate) fn new(subnet: Subnet) -> Self {
        let nodes: Vec<NodeId> = subnet.nodes().map(|(node, _)| node).collect();
        let own = subnet
            .nodes()
            .find(|(_, node)| !node.is_switch())
            .unwrap()
            .0;
        let mut emulated = Emulated::new(subnet);
        // Some switches set lanes for all inputs at once.
        for node in nodes {
            emulated.agent_mut(node).switch.optimized_levels = (node.0 % 2) as u8;
        }
        Self {
            emulated,
            own,
            random: Random::from_seed(7),
            loss: 0.0,
            silent: BTreeSet::new(),
            deaf: BTreeSet::new(),
            sent: 0,
        }
    }

    pub(crate) fn subnet(&self) -> &Subnet {
        self.emulated.subnet()
    }

    /// Whether no switch has a forwarding table.
    pub(crate) fn is_untouched(&self) -> bool {
        let mut nodes = self.subnet().nodes();
        nodes.all(|(node, _)| self.emulated.agent(node).blocks.is_empty())
    }

    /// Takes a request of the manager; the answer comes back, unless something is lost.
    pub(crate) fn serve(&mut self, smp: Smp) -> Option<Smp> {
        self.sent += 1;
        let from = PortRef {
            node: self.own,
            port: 1,
        };
        let packet = Packet {
            source: Lid::PERMISSIVE,
            destination: Lid::PERMISSIVE,
            mad: smp.encode(),
        };
        let end = self.emulated.destination(from, &packet)?;
        if self.random.chance(self.loss) || self.silent.contains(&end.node) {
            return None;
        }
        let sets_port = smp.method == Method::SET && smp.attribute == PortInfo::ID;
        if sets_port && smp.data_as::<PortInfo>().unwrap().state == PortState::ACTIVE {
            self.expect_armed(end.node, smp.modifier as u8);
        }
        let Delivery::Answered(answer) = self.emulated.send(from, &packet) else {
            assert_eq!(smp.method, Method::TRAP_REPRESS, "{smp:?} gets no answer");
            return None;
        };
        let mut answer = Smp::decode(&answer).unwrap();
        let stubborn = end.node.0.is_multiple_of(3);
        if sets_port && stubborn {
            for port in &mut self.emulated.agent_mut(end.node).ports {
                port.subnet_timeout = 3;
            }
            let mut info = answer.data_as::<PortInfo>().unwrap();
            info.subnet_timeout = 3;
            answer.data = info.to_bytes();
        }
        (!self.random.chance(self.loss)).then_some(answer)
    }

    /// Takes a datagram of congestion control for the port with an identifier; the answer comes back by identifiers, too.
    pub(crate) fn serve_congestion(
        &mut self,
        to: Lid,
        mad: &CongestionMad,
    ) -> Option<CongestionMad> {
        self.sent += 1;
        let from = PortRef {
            node: self.own,
            port: 1,
        };
        let packet = Packet {
            source: self.emulated.lid(from),
            destination: to,
            mad: mad.encode(),
        };
        let end = self.emulated.destination(from, &packet)?;
        let lost = self.random.chance(self.loss) || self.silent.contains(&end.node);
        if lost || self.deaf.contains(&end.node) {
            return None;
        }
        let Delivery::Answered(answer) = self.emulated.send(from, &packet) else {
            return None;
        };
        let answer = CongestionMad::decode(&answer).unwrap();
        (!self.random.chance(self.loss)).then_some(answer)
    }

    /// A port is made active only when both ends are armed.
    fn expect_armed(&self, node: NodeId, port: u8) {
        let port = PortRef {
            node,
            port: port.max(1),
        };
        let peer = self.subnet().port(port).peer().unwrap();
        let state = self.emulated.agent(peer.node).ports[usize::from(peer.port)].state;
        assert!(state >= PortState::ARMED, "{peer:?} is {state:?}");
    }

    pub(crate) fn cut(&mut self, port: PortRef) -> PortRef {
        self.emulated.cut(port).unwrap()
    }

    pub(crate) fn mend(&mut self, port: PortRef, peer: PortRef) {
        self.emulated.mend(port, peer).unwrap();
    }

    /// The notice of a switch whose link has changed.
    pub(crate) fn trap(&self, node: NodeId) -> Smp {
        let lid = self.emulated.agent(node).ports[0].lid;
        let notice =
            Notice::of(&Trap::LinkState(StateTrap { lid }), NodeType::SWITCH, lid).unwrap();
        Smp {
            method: Method::TRAP,
            data: notice.to_smp(),
            ..Smp::get::<Notice>(SmpRoute::Lid, 0)
        }
    }
}
