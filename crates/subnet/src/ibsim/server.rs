//! The server's state: clients and their ports, and whom a datagram is for.
//!
//! The upper 16 bits of a request's transaction number become the client's slot; by them its answer finds the way back,
//! since several clients may be at one port.

use std::collections::VecDeque;

use softfabric_units::Lid;
use softfabric_wire::mad::subnet::{DirectedRoute, PartitionTable, Smp, SmpRoute};
use softfabric_wire::mad::{Attribute, MAD_LENGTH, Method};

use super::message::{Connect, Control, ControlKind, Data, METHOD, TIMED_OUT, TRANSACTION};
use crate::agent::{Delivery, Fabric, Packet};
use crate::subnet::PortRef;
use crate::umad::{Envelope, Users, envelope};

/// How many clients there can be: as many as `libumad2sim.so` knows.
pub const CLIENTS: usize = 10;

/// A program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Client {
    /// Its process, which names its sockets.
    pub id: u32,
    /// Where it is: an adapter's port, or port 0 of a switch.
    pub port: PortRef,
    queue_pair: u32,
    manager: bool,
}

/// What became of a control message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Served {
    /// The answer.
    pub answer: Control,
    /// The slot of a client that is new; where there was another one before, that is gone.
    pub connected: Option<usize>,
    /// Why it was refused.
    pub refused: Option<String>,
}

/// A server of ibsim's protocol over an emulated fabric.
#[derive(Clone, Debug)]
pub struct Server {
    fabric: Fabric,
    default_port: Option<PortRef>,
    clients: [Option<Client>; CLIENTS],
    outgoing: VecDeque<(usize, Data)>,
    /// The programs that come by the other door.
    pub(crate) users: Users,
}

impl Server {
    /// A server without clients. Those that do not say where they want to be are at the first adapter's first port, or at
    /// the first switch where there is no adapter.
    pub fn new(fabric: Fabric) -> Self {
        let subnet = fabric.subnet();
        let adapter = subnet
            .nodes()
            .find(|(_, node)| !node.is_switch() && node.ports > 0);
        let first = adapter.or_else(|| subnet.nodes().find(|(_, node)| node.is_switch()));
        let default_port = first.map(|(node, description)| PortRef {
            node,
            port: u8::from(!description.is_switch()),
        });
        Self {
            fabric,
            default_port,
            clients: Default::default(),
            outgoing: VecDeque::new(),
            users: Users::default(),
        }
    }

    /// The fabric.
    pub const fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Takes a port's cable away; see [`Fabric::cut`].
    pub fn cut(&mut self, port: PortRef) -> Option<PortRef> {
        let peer = self.fabric.cut(port);
        self.send_traps();
        peer
    }

    /// Cables two ports; see [`Fabric::mend`].
    ///
    /// # Errors
    /// As there.
    pub fn mend(&mut self, port: PortRef, peer: PortRef) -> Result<(), crate::BuildError> {
        let mended = self.fabric.mend(port, peer);
        self.send_traps();
        mended
    }

    /// The clients by their slots.
    pub fn clients(&self) -> impl Iterator<Item = (usize, &Client)> {
        let slots = self.clients.iter().enumerate();
        slots.filter_map(|(slot, client)| Some((slot, client.as_ref()?)))
    }

    /// A client is gone without a word.
    pub fn forget(&mut self, slot: usize) {
        if let Some(client) = self.clients.get_mut(slot).and_then(Option::take)
            && client.manager
        {
            self.set_manager(client.port, false);
        }
    }

    /// A program at `port` manages the subnet, or does not any more; then there may be another one.
    pub(crate) fn set_manager(&mut self, port: PortRef, runs: bool) {
        let still = self.managers().any(|manager| manager == port);
        self.fabric.set_manager(port, runs || still);
        self.send_traps();
    }

    /// Sends a packet through the fabric.
    pub(crate) fn carry(&mut self, from: PortRef, packet: &Packet) -> Delivery {
        self.fabric.send(from, packet)
    }

    /// The next data message and the slot of the client that it is for.
    pub fn poll_transmit(&mut self) -> Option<(usize, Data)> {
        self.outgoing.pop_front()
    }

    /// Takes a control message.
    pub fn handle_control(&mut self, request: &Control) -> Served {
        let mut served = Served {
            answer: *request,
            connected: None,
            refused: None,
        };
        let outcome = if request.kind == ControlKind::CONNECT {
            self.connect(&Connect::decode(&request.data))
                .map(|(slot, answer)| {
                    served.connected = Some(slot);
                    answer.encode()
                })
        } else {
            self.ask(request)
        };
        match outcome {
            Ok(data) => served.answer.data = data,
            Err(refusal) => {
                served.answer.kind = ControlKind::ERROR;
                served.refused = Some(refusal);
            }
        }
        served
    }

    fn connect(&mut self, connect: &Connect) -> Result<(usize, Connect), String> {
        let port = self.end(&connect.node)?;
        if connect.manager && self.has_manager(port) {
            return Err(self.second_manager(port));
        }
        // A process with that number connects anew, or the number is another's now.
        let before = self.clients().find(|(_, client)| client.id == connect.id);
        if let Some((slot, _)) = before {
            self.forget(slot);
        }
        let slot = self
            .clients
            .iter()
            .position(Option::is_none)
            .ok_or_else(|| format!("there are {CLIENTS} clients already, and no more fit"))?;
        self.clients[slot] = Some(Client {
            id: connect.id,
            port,
            queue_pair: connect.queue_pair,
            manager: connect.manager,
        });
        let node = if connect.node.is_empty() {
            self.fabric.subnet().node(port.node).id.clone()
        } else {
            connect.node.clone()
        };
        let answer = Connect {
            id: slot as u32,
            node,
            ..connect.clone()
        };
        Ok((slot, answer))
    }

    /// The end port that a program names; without a name, the usual one.
    ///
    /// # Errors
    /// With what is wrong.
    pub(crate) fn end(&self, name: &str) -> Result<PortRef, String> {
        if name.is_empty() {
            return self
                .default_port
                .ok_or_else(|| "the fabric has no port for clients".to_owned());
        }
        self.find(name)
            .ok_or_else(|| format!("no node is called {name:?}"))
    }

    /// Whether a program manages the subnet from the node of `port`.
    fn has_manager(&self, port: PortRef) -> bool {
        self.managers().any(|manager| manager.node == port.node)
    }

    fn second_manager(&self, port: PortRef) -> String {
        let node = &self.fabric.subnet().node(port.node).id;
        format!("{node:?} has a subnet manager already")
    }

    /// Where programs manage the subnet from.
    fn managers(&self) -> impl Iterator<Item = PortRef> {
        let clients = self.clients().map(|(_, client)| client);
        let clients = clients
            .filter(|client| client.manager)
            .map(|client| client.port);
        let users = self.users.iter().map(|(_, user)| user);
        let users = users.filter(|user| user.manager).map(|user| user.port);
        clients.chain(users)
    }

    /// A node by its name, description or GUID, or a port of it (`name:port`).
    fn find(&self, name: &str) -> Option<PortRef> {
        let subnet = self.fabric.subnet();
        let end = match subnet.find(name) {
            Some(node) => PortRef {
                node,
                port: u8::from(!subnet.node(node).is_switch()),
            },
            None => {
                let (name, port) = name.rsplit_once(':')?;
                PortRef {
                    node: subnet.find(name)?,
                    port: port.parse().ok()?,
                }
            }
        };
        let node = subnet.node(end.node);
        let exists = if node.is_switch() {
            end.port == 0
        } else {
            (1..=node.ports).contains(&end.port)
        };
        exists.then_some(end)
    }

    fn ask(&mut self, request: &Control) -> Result<[u8; 64], String> {
        let slot = request.client as usize;
        let Some(client) = self.clients.get(slot).and_then(Option::as_ref) else {
            return Err(format!("there is no client {slot}"));
        };
        let port = client.port;
        let mut data = [0; 64];
        match request.kind {
            ControlKind::DISCONNECT => self.forget(slot),
            ControlKind::PORT => {
                let info = self.fabric.agent(port.node).ports[usize::from(port.port)];
                data[..2].copy_from_slice(&info.lid.0.to_le_bytes());
                data[2] = info.state.0;
            }
            ControlKind::VENDOR => {
                let node = self.fabric.subnet().node(port.node);
                data[..4].copy_from_slice(&node.vendor.to_le_bytes());
                data[4..8].copy_from_slice(&u32::from(node.device).to_le_bytes());
                data[16] = 1;
            }
            ControlKind::GID => {
                let prefix = self.fabric.agent(port.node).ports[usize::from(port.port)].gid_prefix;
                data[..8].copy_from_slice(&prefix.to_be_bytes());
                data[8..16].copy_from_slice(&self.apparent_guid(port).to_be_bytes());
            }
            ControlKind::GUID => data[..8].copy_from_slice(&self.apparent_guid(port).to_be_bytes()),
            ControlKind::NODE_INFO => {
                data = self.fabric.describe(port).to_bytes();
                data[12..20].copy_from_slice(&self.apparent_guid(port).to_be_bytes());
            }
            ControlKind::PORT_INFO => data = self.fabric.read_port(port, request.data[0]),
            ControlKind::SET_MANAGER => {
                let manager = request.data[..4] != [0; 4];
                if manager && !client.manager && self.has_manager(port) {
                    return Err(self.second_manager(port));
                }
                if let Some(client) = &mut self.clients[slot] {
                    client.manager = manager;
                }
                self.set_manager(port, manager);
            }
            ControlKind::PARTITIONS => {
                let table: PartitionTable = self.fabric.partitions(port);
                data = table.to_bytes();
            }
            ControlKind(other) => return Err(format!("control messages have no kind {other}")),
        }
        Ok(data)
    }

    /// The GUID that the node has for its client, which takes the port's for this plus the port's number.
    fn apparent_guid(&self, port: PortRef) -> u64 {
        let guid = self.fabric.subnet().port(port).guid.0;
        guid.wrapping_sub(u64::from(port.port))
    }

    /// Takes a data message of a client.
    pub fn handle_data(&mut self, slot: usize, message: &Data) {
        let Some(client) = self.clients.get(slot).and_then(Option::as_ref) else {
            return;
        };
        let (from, lid) = (client.port, self.fabric.lid(client.port));
        let method = Method(message.mad[METHOD]);
        if method == Method::TRAP_REPRESS && is_agents(&message.mad) {
            return; // it sends each trap once, whoever hears it
        }
        let mut data = *message;
        if data.source == Lid(0) {
            data.source = lid;
        }
        if !method.is_response() {
            let slot = (slot as u16).to_be_bytes();
            data.mad[TRANSACTION..TRANSACTION + 2].copy_from_slice(&slot);
        }
        let packet = Packet {
            source: data.source,
            destination: data.destination,
            mad: at_the_start_of_its_way_back(&data.mad),
        };
        match self.fabric.send(from, &packet) {
            Delivery::Answered(mad) => {
                let answer = Data {
                    destination: data.source,
                    source: data.destination,
                    destination_qp: data.source_qp,
                    source_qp: data.destination_qp,
                    status: 0,
                    length: MAD_LENGTH as u64,
                    mad,
                };
                self.outgoing.push_back((slot, answer));
            }
            Delivery::Arrived { at, mad } => {
                let from = envelope(data.source, data.source_qp);
                if !self.user_takes(at, from, &mad) && !self.client_takes(at, Data { mad, ..data })
                {
                    self.time_out(slot, data);
                }
            }
            Delivery::Lost => self.time_out(slot, data),
        }
        self.send_traps();
    }

    /// A message could not be handed to its receiver, which is gone: its sender hears that nobody answers.
    pub fn undelivered(&mut self, message: &Data) {
        let slot = u16::from_be_bytes([message.mad[TRANSACTION], message.mad[TRANSACTION + 1]]);
        if !Method(message.mad[METHOD]).is_response() && !is_agents(&message.mad) {
            self.time_out(usize::from(slot), *message);
        }
    }

    /// Tells a client that nobody answers; not to an answer.
    fn time_out(&mut self, slot: usize, message: Data) {
        if Method(message.mad[METHOD]) == Method::TRAP_REPRESS {
            return;
        }
        let status = TIMED_OUT;
        self.outgoing.push_back((slot, Data { status, ..message }));
    }

    /// A datagram of a program on a stream has arrived at `at`: true if somebody takes it.
    pub(crate) fn arrived(
        &mut self,
        at: PortRef,
        from: Envelope,
        queue_pair: u32,
        mad: &[u8],
    ) -> bool {
        self.user_takes(at, from, mad)
            || self.client_takes(
                at,
                Data {
                    destination: self.fabric.lid(at),
                    source: from.lid,
                    destination_qp: queue_pair,
                    source_qp: from.queue_pair,
                    status: 0,
                    length: MAD_LENGTH as u64,
                    // As with ibsim, its clients see what fits one datagram.
                    mad: std::array::from_fn(|place| mad[place]),
                },
            )
    }

    fn client_takes(&mut self, at: PortRef, data: Data) -> bool {
        let receiver = self.receiver(at, &data);
        self.outgoing.extend(receiver.map(|slot| (slot, data)));
        receiver.is_some()
    }

    /// The client at `at` that a datagram is for: the one that asked, the one with the queue pair, or the manager.
    fn receiver(&self, at: PortRef, data: &Data) -> Option<usize> {
        let here = || self.clients().filter(|(_, client)| client.port == at);
        if Method(data.mad[METHOD]).is_response() {
            let slot = u16::from_be_bytes([data.mad[TRANSACTION], data.mad[TRANSACTION + 1]]);
            if let Some((asked, _)) = here().find(|(found, _)| *found == usize::from(slot)) {
                return Some(asked);
            }
        }
        if data.destination_qp > 1 {
            let listens = |client: &Client| client.queue_pair == data.destination_qp;
            return here()
                .find(|(_, client)| listens(client))
                .map(|(slot, _)| slot);
        }
        here()
            .find(|(_, client)| client.manager)
            .map(|(slot, _)| slot)
    }

    pub(crate) fn send_traps(&mut self) {
        while let Some((from, packet)) = self.fabric.poll_trap() {
            let Delivery::Arrived { at, mad } = self.fabric.send(from, &packet) else {
                continue;
            };
            let data = Data {
                destination: packet.destination,
                source: packet.source,
                destination_qp: 0,
                source_qp: 0,
                status: 0,
                length: MAD_LENGTH as u64,
                mad,
            };
            if !self.user_takes(at, envelope(packet.source, 0), &data.mad) {
                self.client_takes(at, data);
            }
        }
    }
}

/// Whether a trap, or the answer to one, is of an agent: they do not number theirs.
fn is_agents(mad: &[u8; MAD_LENGTH]) -> bool {
    mad[TRANSACTION + 2..TRANSACTION + 8] == [0; 6]
}

/// Programs may answer a directed request with its pointer at 0: the way back starts at the far end.
fn at_the_start_of_its_way_back(mad: &[u8; MAD_LENGTH]) -> [u8; MAD_LENGTH] {
    let Ok(mut smp) = Smp::decode(mad) else {
        return *mad;
    };
    match &mut smp.route {
        SmpRoute::Directed(
            route @ DirectedRoute {
                returning: true,
                hop_pointer: 0,
                ..
            },
        ) => {
            route.hop_pointer = route.hop_count.saturating_add(1);
            smp.encode()
        }
        _ => *mad,
    }
}
