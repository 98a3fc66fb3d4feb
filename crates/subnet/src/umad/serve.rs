//! What the server does for programs on streams.

use softfabric_units::{Lid, Time};
use softfabric_wire::mad::subnet::PortInfo;
use softfabric_wire::mad::{MAD_LENGTH, ManagementClass, Method, NodeType};

use super::message::{Adapter, AdapterPort, AgentId, Envelope, FromServer, ToServer};
use super::users::{Assembly, Overdue, User, UserId};
use crate::agent::{Delivery, Packet};
use crate::ibsim::{CLASS, METHOD, Server, TRANSACTION};
use crate::subnet::PortRef;

impl Server {
    /// A stream that begins; its number, unless there are too many.
    pub fn accept_user(&mut self) -> Option<UserId> {
        self.users.begin()
    }

    /// The programs on streams that have a port.
    pub fn users(&self) -> impl Iterator<Item = (UserId, &User)> {
        self.users.iter()
    }

    /// A stream has ended.
    pub fn forget_user(&mut self, id: UserId) {
        if let Some(user) = self.users.remove(id)
            && user.manager
        {
            self.set_manager(user.port, false);
        }
    }

    /// Takes what a program says.
    pub fn handle_user(&mut self, now: Time, id: UserId, message: ToServer) {
        match message {
            ToServer::Describe { node } => {
                let answer = match self.place(&node, 0) {
                    Ok(port) => FromServer::Adapter(self.adapter(port)),
                    Err(reason) => FromServer::Refused(reason),
                };
                self.users.send(id, answer);
            }
            ToServer::Open {
                node,
                port,
                process,
            } => {
                let place = match self.users.get(id) {
                    None => self.place(&node, port),
                    Some(_) => Err("the stream has a port already".to_owned()),
                };
                let answer = match place {
                    Ok(port) => {
                        self.users.add(id, process, port);
                        FromServer::Opened
                    }
                    Err(reason) => FromServer::Refused(reason),
                };
                self.users.send(id, answer);
            }
            ToServer::Register(registration) => self.users.register(id, registration),
            ToServer::Unregister(agent) => self.users.unregister(id, agent),
            ToServer::Manager(runs) => {
                if let Some(port) = self.users.set_manager(id, runs) {
                    self.set_manager(port, runs);
                }
            }
            ToServer::Send {
                agent,
                timeout,
                retries,
                to,
                mut mad,
            } => {
                if mad.len() < MAD_LENGTH || !self.users.has_agent(id, agent) {
                    return;
                }
                if !Method(mad[METHOD]).is_response() {
                    mad[TRANSACTION..TRANSACTION + 2].copy_from_slice(&id.mark().to_be_bytes());
                    mad[TRANSACTION + 2..TRANSACTION + 4]
                        .copy_from_slice(&(agent as u16).to_be_bytes());
                    if timeout > 0 {
                        self.users
                            .expect(now, (id, agent), (timeout, retries), to, &mad);
                    }
                }
                self.send_for(id, agent, to, &mad);
            }
        }
    }

    /// What the next stream is to hear.
    pub fn poll_user(&mut self) -> Option<(UserId, FromServer)> {
        self.users.poll()
    }

    /// When [`Server::handle_user_timeout`] wants to be called.
    pub fn poll_user_timeout(&self) -> Option<Time> {
        self.users.next_deadline()
    }

    /// Sends requests again that nobody has answered, and gives up those that were sent often enough.
    pub fn handle_user_timeout(&mut self, now: Time) {
        while let Some(overdue) = self.users.overdue(now) {
            if let Overdue::Again {
                user,
                agent,
                to,
                mad,
            } = overdue
            {
                self.send_for(user, agent, to, &mad);
            }
        }
    }

    fn send_for(&mut self, id: UserId, agent: AgentId, to: Envelope, mad: &[u8]) {
        let Some(from) = self.users.get(id).map(|user| user.port) else {
            return;
        };
        let (head, tail) = mad.split_at(MAD_LENGTH);
        let packet = Packet {
            source: self.fabric().lid(from),
            destination: to.lid,
            mad: head.try_into().expect("it was measured"),
        };
        match self.carry(from, &packet) {
            Delivery::Answered(mad) => self.user_hears(id, agent, to, &mad),
            Delivery::Arrived { at, mad } => {
                let whole = [&mad[..], tail].concat();
                let queue_pair = to.queue_pair;
                let from = Envelope {
                    lid: packet.source,
                    queue_pair: u32::from(queue_pair > 0),
                    ..to
                };
                if !self.arrived(at, from, queue_pair, &whole) {
                    self.users.give_up(id, agent, &whole);
                }
            }
            Delivery::Lost => self.users.give_up(id, agent, mad),
        }
        self.send_traps();
    }

    /// A datagram is for a program on a stream at `at`, if there is one that wants it.
    pub(crate) fn user_takes(&mut self, at: PortRef, from: Envelope, mad: &[u8]) -> bool {
        if Method(mad[METHOD]).is_response() {
            let half = |place: usize| u16::from_be_bytes([mad[place], mad[place + 1]]);
            let Some(id) = UserId::of_mark(half(TRANSACTION)) else {
                return false;
            };
            let here = self.users.get(id).is_some_and(|user| user.port == at);
            if here {
                let agent = AgentId::from(half(TRANSACTION + 2));
                match self.users.assemble(id, agent, mad) {
                    Assembly::Whole => self.user_hears(id, agent, from, mad),
                    Assembly::Partial { reply, message } => {
                        if let Some(message) = message {
                            self.user_hears(id, agent, from, &message);
                        }
                        if let Some(reply) = reply {
                            self.acknowledge(at, from, &reply);
                        }
                    }
                }
            }
            return here;
        }
        let class = ManagementClass(mad[CLASS]);
        let Some((id, agent)) = self.users.listener(at, class, mad[METHOD]) else {
            return false;
        };
        self.deliver(id, agent, from, mad);
        true
    }

    /// What a program does not see: an acknowledgement of a segment goes back to its sender.
    fn acknowledge(&mut self, at: PortRef, to: Envelope, mad: &[u8; MAD_LENGTH]) {
        let packet = Packet {
            source: self.fabric().lid(at),
            destination: to.lid,
            mad: *mad,
        };
        if let Delivery::Arrived { at, mad } = self.carry(at, &packet) {
            let from = Envelope {
                lid: packet.source,
                queue_pair: 1,
                ..to
            };
            self.arrived(at, from, to.queue_pair.max(1), &mad);
        }
    }

    /// An answer, which its agent hears if it still waits.
    fn user_hears(&mut self, id: UserId, agent: AgentId, from: Envelope, mad: &[u8]) {
        if self.users.answered(id, agent, mad) {
            self.deliver(id, agent, from, mad);
        }
    }

    fn deliver(&mut self, id: UserId, agent: AgentId, from: Envelope, mad: &[u8]) {
        let message = FromServer::Received {
            agent,
            status: 0,
            from,
            mad: mad.to_vec(),
        };
        self.users.send(id, message);
    }

    /// The port of a node, or what is wrong. Without a name, the server's choice; without a number, the first.
    fn place(&self, node: &str, port: u8) -> Result<PortRef, String> {
        let end = self.end(node)?;
        let description = self.fabric().subnet().node(end.node);
        let known = if description.is_switch() {
            0..=0
        } else {
            1..=description.ports
        };
        match port {
            0 => Ok(end),
            port if known.contains(&port) => Ok(PortRef { port, ..end }),
            port => Err(format!("{:?} has no port {port}", description.id)),
        }
    }

    fn adapter(&self, at: PortRef) -> Adapter {
        let info = self.fabric().describe(at);
        let switch = info.node_type == NodeType::SWITCH;
        let numbers = if switch { 0..=0 } else { 1..=info.ports };
        Adapter {
            kind: info.node_type.0,
            guid: info.node,
            system: info.system,
            device: info.device,
            ports: numbers
                .map(|port| self.adapter_port(PortRef { port, ..at }))
                .collect(),
        }
    }

    fn adapter_port(&self, at: PortRef) -> AdapterPort {
        let info: PortInfo = self.fabric().agent(at.node).ports[usize::from(at.port)];
        let keys = self.fabric().partitions(at).keys;
        AdapterPort {
            number: at.port,
            lid: info.lid,
            lmc: info.lmc,
            manager: info.manager_lid,
            manager_level: info.manager_level.as_u8(),
            state: info.state.0,
            physical_state: info.physical_state.0,
            rate: info.rate().map_or(10, |rate| rate.as_gbps_f64() as u32),
            capabilities: info.capabilities.0,
            prefix: info.gid_prefix,
            guid: self.fabric().subnet().port(at).guid,
            partitions: std::array::from_fn(|place| keys[place].0),
        }
    }
}

/// Where a datagram on ibsim's protocol came from, for a program on a stream.
pub(crate) const fn envelope(source: Lid, queue_pair: u32) -> Envelope {
    Envelope {
        lid: source,
        queue_pair,
        queue_key: 0,
        level: 0,
        partition: 0,
    }
}
