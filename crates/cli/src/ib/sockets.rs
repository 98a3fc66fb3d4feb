//! The sockets of ibsim's protocol: one for control, one for each client, and what waits for clients that are slow.
//!
//! No send blocks: a client that does not read keeps only its own messages waiting, and those beyond [`MOST_WAITING`] are
//! dropped.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use softfabric_subnet::ibsim::{CLIENTS, CONTROL_LENGTH, Control, DATA_LENGTH, Data, Server};

use super::names;
use crate::failure::Failure;

/// How many messages may wait for one client: a manager's window is far smaller.
const MOST_WAITING: usize = 16_384;
/// How many messages of one client are taken before it is others' turn.
const TURN: usize = 64;

/// What one slot has.
pub(super) struct Slot {
    pub(super) socket: UnixDatagram,
    pub(super) waiting: VecDeque<[u8; DATA_LENGTH]>,
    pub(super) connected: bool,
}

/// All sockets of a server.
pub(super) struct Sockets {
    base: String,
    pub(super) control: UnixDatagram,
    pub(super) slots: Vec<Slot>,
}

/// The address of a socket in the abstract namespace.
pub(crate) fn address(name: &str) -> io::Result<SocketAddr> {
    // The name ends with a zero, which counts.
    SocketAddr::from_abstract_name(format!("{name}\0"))
}

fn bind(name: &str) -> Result<UnixDatagram, Failure> {
    let bound = address(name).and_then(|address| UnixDatagram::bind_addr(&address));
    let socket = bound.and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
    socket.map_err(|error| {
        let taken = error.kind() == ErrorKind::AddrInUse;
        let owner = names::owner(name).map(|owner| format!(" by process {owner}"));
        Failure::Arguments {
            problem: if taken {
                format!("the socket {name} is taken{}", owner.unwrap_or_default())
            } else {
                format!("cannot make the socket {name}: {error}")
            },
            help: taken.then(|| {
                "Another server runs under this name: end it, or choose another name with --socket-name and give \
                 programs the same in IBSIM_SOCKNAME."
                    .to_owned()
            }),
        }
    })
}

impl Sockets {
    /// Binds all names of a server called `base`.
    ///
    /// # Errors
    /// If a name is taken.
    pub(super) fn bind(base: &str) -> Result<Self, Failure> {
        let control = bind(&format!("{base}:ctl"))?;
        let slots = (0..CLIENTS)
            .map(|slot| {
                Ok(Slot {
                    socket: bind(&format!("{base}:out{slot}"))?,
                    waiting: VecDeque::new(),
                    connected: false,
                })
            })
            .collect::<Result<_, Failure>>()?;
        Ok(Self {
            base: base.to_owned(),
            control,
            slots,
        })
    }

    /// Answers all control messages that are there; returns what a person may want to know.
    ///
    /// # Errors
    /// If the socket fails.
    pub(super) fn serve_control(&mut self, server: &mut Server) -> io::Result<Vec<String>> {
        let mut remarks = Vec::new();
        let mut bytes = [0; CONTROL_LENGTH + 1];
        loop {
            let (length, from) = match self.control.recv_from(&mut bytes) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(remarks),
                Err(error) => return Err(error),
            };
            let control = match Control::decode(&bytes[..length]) {
                Ok(control) => control,
                Err(error) => {
                    remarks.push(error.to_string());
                    continue;
                }
            };
            self.forget_the_dead(server);
            let mut served = server.handle_control(&control);
            if let Some(slot) = served.connected
                && let Err(error) = self.connect(server, slot)
            {
                server.forget(slot);
                served.answer.kind = softfabric_subnet::ibsim::ControlKind::ERROR;
                served.refused = Some(format!("its socket does not answer: {error}"));
            }
            if let Some(refusal) = served.refused {
                remarks.push(format!("a client is refused: {refusal}"));
            }
            // Who asks and does not wait for the answer gets none.
            let _ = self.control.send_to_addr(&served.answer.encode(), &from);
            self.note_the_gone(server);
        }
    }

    fn connect(&mut self, server: &Server, slot: usize) -> io::Result<()> {
        let client = server.clients().find(|(number, _)| *number == slot);
        let Some((_, client)) = client else {
            return Ok(());
        };
        let place = &mut self.slots[slot];
        place.waiting.clear();
        place
            .socket
            .connect_addr(&address(&format!("{}:in{}", self.base, client.id))?)?;
        place.connected = true;
        Ok(())
    }

    /// Clients whose sockets are gone ended without a word.
    fn forget_the_dead(&mut self, server: &mut Server) {
        let dead: Vec<usize> = server
            .clients()
            .filter(|(_, client)| {
                let name = format!("{}:in{}", self.base, client.id);
                let probe =
                    UnixDatagram::unbound().and_then(|probe| probe.connect_addr(&address(&name)?));
                probe.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
            })
            .map(|(slot, _)| slot)
            .collect();
        for slot in dead {
            server.forget(slot);
        }
        self.note_the_gone(server);
    }

    fn note_the_gone(&mut self, server: &Server) {
        let mut alive = [false; CLIENTS];
        for (slot, _) in server.clients() {
            alive[slot] = true;
        }
        for (slot, alive) in self.slots.iter_mut().zip(alive) {
            if slot.connected && !alive {
                slot.connected = false;
                slot.waiting.clear();
            }
        }
    }

    /// Takes what a client sent.
    pub(super) fn receive(&mut self, server: &mut Server, slot: usize) {
        let mut bytes = [0; DATA_LENGTH + 1];
        for _ in 0..TURN {
            let Ok(length) = self.slots[slot].socket.recv(&mut bytes) else {
                return;
            };
            if let Ok(data) = Data::decode(&bytes[..length]) {
                server.handle_data(slot, &data);
            }
        }
    }

    /// Sends what can be sent.
    pub(super) fn transmit(&mut self, server: &mut Server) {
        while let Some((slot, data)) = server.poll_transmit() {
            let slot = &mut self.slots[slot];
            if slot.connected && slot.waiting.len() < MOST_WAITING {
                slot.waiting.push_back(data.encode());
            }
        }
        let mut someone_is_gone = false;
        for number in 0..self.slots.len() {
            let slot = &mut self.slots[number];
            while let Some(message) = slot.waiting.front() {
                match slot.socket.send(message) {
                    Ok(_) => {
                        slot.waiting.pop_front();
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => {
                        server.forget(number);
                        slot.connected = false;
                        someone_is_gone = true;
                        for message in slot.waiting.drain(..) {
                            if let Ok(data) = Data::decode(&message) {
                                server.undelivered(&data);
                            }
                        }
                    }
                }
            }
        }
        // Others hear of it; each client can go only once.
        if someone_is_gone {
            self.transmit(server);
        }
    }
}
