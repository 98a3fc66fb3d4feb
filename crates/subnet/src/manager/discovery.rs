//! Discovery: each port that is up is asked who is at its other end, until nobody new answers.

use softfabric_wire::mad::subnet::{
    DirectedRoute, NodeDescription, NodeInfo, PortInfo, Smp, SmpRoute, SwitchInfo,
};
use softfabric_wire::mad::{ExtendedSpeeds, LinkSpeeds, NodeType, PortState};

use super::requests::Request;
use super::{Event, Manager, Phase, Problem};
use crate::subnet::{NodeId, NodeKind, PortRef};

impl Manager {
    /// Reads a switch and all its ports.
    pub(super) fn read_switch(&mut self, node: NodeId) {
        self.requests.ask(Request::SwitchInfo { node });
        for port in 0..=self.subnet.node(node).ports {
            self.requests.ask(Request::PortInfo {
                port: PortRef { node, port },
            });
        }
    }

    /// The packet of a question; `None` where no way leads to whom it is for.
    pub(super) fn question(&mut self, request: &Request) -> Option<Smp> {
        Some(match request {
            Request::NodeInfo { from: None } => {
                Smp::get::<NodeInfo>(SmpRoute::Directed(DirectedRoute::along(&[])?), 0)
            }
            Request::NodeInfo { from: Some(from) } => {
                let mut ports = self.ports_to(from.node)?;
                ports.push(from.port);
                Smp::get::<NodeInfo>(SmpRoute::Directed(DirectedRoute::along(&ports)?), 0)
            }
            Request::Description { node } => Smp::get::<NodeDescription>(self.route_to(*node)?, 0),
            Request::SwitchInfo { node } => Smp::get::<SwitchInfo>(self.route_to(*node)?, 0),
            Request::PortInfo { port } => {
                Smp::get::<PortInfo>(self.route_to(port.node)?, u32::from(port.port))
            }
            _ => return None,
        })
    }

    pub(super) fn route_to(&mut self, node: NodeId) -> Option<SmpRoute> {
        let ports = self.ports_to(node)?;
        DirectedRoute::along(&ports).map(SmpRoute::Directed)
    }

    /// The way that leaves a switch by this port of it.
    pub(super) fn route_through(&mut self, port: PortRef) -> Option<SmpRoute> {
        let mut ports = self.ports_to(port.node)?;
        ports.push(port.port);
        DirectedRoute::along(&ports).map(SmpRoute::Directed)
    }

    /// The ports to leave by, from the own node to `node`.
    fn ports_to(&mut self, node: NodeId) -> Option<Vec<u8>> {
        let own = self.own?;
        if self.tree_is_old {
            self.grow_tree(own.node);
        }
        let mut ports = Vec::new();
        let mut here = node;
        while here != own.node {
            let above = self.tree.get(here.index()).copied().flatten()?;
            ports.push(above.port);
            here = above.node;
        }
        ports.reverse();
        Some(ports)
    }

    fn grow_tree(&mut self, own: NodeId) {
        self.tree_is_old = false;
        self.tree.clear();
        self.tree.resize(self.subnet.nodes().len(), None);
        let mut queue = vec![own];
        let mut next = 0;
        while let Some(here) = queue.get(next).copied() {
            next += 1;
            // Only switches pass packets on.
            if here != own && !self.subnet.node(here).is_switch() {
                continue;
            }
            for (port, state) in self.subnet.external_ports(here) {
                let Some(peer) = state.peer().map(|peer| peer.node) else {
                    continue;
                };
                if peer != own && self.tree[peer.index()].is_none() {
                    self.tree[peer.index()] = Some(port);
                    queue.push(peer);
                }
            }
        }
    }

    /// Takes the answer to a question.
    pub(super) fn learn(&mut self, request: Request, smp: &Smp) {
        match request {
            Request::NodeInfo { from } => {
                if let Some(info) = smp.data_as::<NodeInfo>() {
                    self.learn_node(from, &info);
                }
            }
            Request::Description { node } => {
                if let Some(description) = smp.data_as::<NodeDescription>() {
                    self.subnet.node_mut(node).description = description.to_text();
                }
            }
            Request::SwitchInfo { node } => {
                if let Some(info) = smp.data_as::<SwitchInfo>() {
                    // A switch that has started anew has an empty table.
                    let known = self.known.switch(node).map(|known| known.linear_top);
                    let new = known.is_some_and(|top| top != info.linear_top);
                    if new {
                        self.known.forget_tables(node);
                    }
                    self.known.set_switch(node, info);
                    if self.phase == Phase::Looking && (new || info.state_change) {
                        self.election.news.push(node);
                    }
                }
            }
            Request::PortInfo { port } => {
                if let Some(info) = smp.data_as::<PortInfo>() {
                    self.learn_port(port, info);
                    if self.phase == Phase::Looking {
                        self.meet(port);
                    }
                }
            }
            _ => {}
        }
    }

    fn learn_node(&mut self, from: Option<PortRef>, info: &NodeInfo) {
        let (node, new) = match self.subnet.by_guid(info.node) {
            Some(node) => (node, false),
            None => {
                let kind = match info.node_type {
                    NodeType::SWITCH => NodeKind::Switch,
                    NodeType::ROUTER => NodeKind::Router,
                    _ => NodeKind::Adapter,
                };
                let id = info.node.to_string();
                let added = self.subnet.add_node(kind, info.node, info.ports, &id);
                let Ok(node) = added else { return };
                let place = self.subnet.node_mut(node);
                place.system = info.system;
                (place.vendor, place.device) = (info.vendor.as_u32(), info.device);
                (node, true)
            }
        };
        let described = self.subnet.node(node);
        let (is_switch, ports) = (described.is_switch(), described.ports);
        let arrived = PortRef {
            node,
            port: info.local_port,
        };
        if info.local_port > ports || (info.local_port == 0 && !is_switch) {
            return;
        }
        if !is_switch {
            self.subnet.port_mut(arrived).guid = info.port;
        }
        self.known.set_info(node, *info);
        match from {
            None => self.own = Some(arrived),
            Some(from) => self.learn_cable(from, arrived),
        }
        self.tree_is_old = true;
        let routed = self.routed.as_ref();
        let away = routed.is_some_and(|(view, _)| view.switch_of(node).is_none());
        let back = !new && is_switch && away && !self.returned.contains(&node);
        if back {
            self.known.forget_tables(node);
            self.returned.push(node);
        }
        if new || back {
            self.requests.ask(Request::Description { node });
            if is_switch {
                self.read_switch(node);
                return;
            }
        }
        if !is_switch {
            self.requests.ask(Request::PortInfo { port: arrived });
        }
    }

    fn learn_cable(&mut self, from: PortRef, to: PortRef) {
        if self.subnet.port(from).peer() == Some(to) {
            return;
        }
        if let Some(other) = self.subnet.port(to).peer() {
            let gone = self
                .known
                .port(other)
                .is_some_and(|info| info.state == PortState::DOWN);
            if !gone && other != from {
                let node = self.subnet.node(to.node);
                self.events
                    .push_back(Event::Problem(Problem::DuplicateGuid {
                        node: node.description.clone(),
                        port: to.port,
                        guid: node.guid,
                    }));
                return;
            }
            self.subnet.disconnect(to);
        }
        self.subnet.disconnect(from);
        if !self.subnet.node(to.node).is_switch() {
            // Whoever takes a cable may have started anew. A switch's table tells that of a switch.
            self.known.forget_end(to);
        }
        // Ports were checked: what remains is a cable from a port to itself.
        let _ = self.subnet.connect(from, to);
    }

    fn learn_port(&mut self, port: PortRef, info: PortInfo) {
        let before = self.known.port(port).map(|known| known.state);
        let went_down = info.state == PortState::INITIALISE
            && before.is_some_and(|before| before > PortState::INITIALISE);
        self.known.set_port(port, info);
        let node = self.subnet.node(port.node);
        let identified = port.port == 0 || !node.is_switch();
        let own = self.own.is_some_and(|own| own.node == port.node);
        let explores = (node.is_switch() && port.port != 0) || (own && !node.is_switch());
        let place = self.subnet.port_mut(port);
        if identified && place.lid.0 == 0 {
            place.lid = info.lid;
        }
        place.width = info.width_active;
        (place.speed, place.extended_speed) = (info.speed_active, info.extended_speed_active);
        if info.speed_active == LinkSpeeds::NONE
            && info.extended_speed_active == ExtendedSpeeds::NONE
        {
            place.speed = LinkSpeeds::SDR;
        }
        if !explores {
            return;
        }
        let peer = place.peer();
        match (info.state == PortState::DOWN, peer) {
            (true, Some(_)) => {
                self.subnet.disconnect(port);
                self.tree_is_old = true;
                self.requests.ways_have_changed();
            }
            (false, None) => self.requests.ask(Request::NodeInfo { from: Some(port) }),
            (false, Some(peer)) if went_down && !self.subnet.node(peer.node).is_switch() => {
                // An adapter tells nobody that its link was down in between.
                self.known.forget_end(peer);
                self.requests.ask(Request::PortInfo { port: peer });
            }
            _ => {}
        }
    }

    /// Nobody answered.
    pub(super) fn give_up(&mut self, request: Request) {
        // Nothing is known of it: the next sweep asks again.
        match request {
            Request::SetForwarding { node, .. } => {
                self.requests.ask(Request::SwitchInfo { node });
            }
            Request::SwitchInfo { .. } if self.phase == Phase::Looking => {
                self.election.is_lost = true;
            }
            _ => {}
        }
    }
}
