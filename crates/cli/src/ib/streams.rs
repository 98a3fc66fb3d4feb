//! The streams of programs that are linked against the drop-in libibumad: one listener, one stream for each open port.
//!
//! Nothing blocks: a program that does not read keeps only its own messages waiting, and is let go when they are too many.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use softfabric_subnet::ibsim::Server;
use softfabric_subnet::umad::{FRAME_HEADER, FrameHeader, ToServer, UserId, socket_name};
use softfabric_units::Time;

use crate::failure::Failure;

/// How many bytes may wait for one program: several tables of a large subnet.
const MOST_WAITING: usize = 256 << 20;
/// How many bytes of one program are taken before it is others' turn.
const TURN: usize = 64 << 10;

/// One program's stream.
pub(super) struct Stream {
    pub(super) socket: UnixStream,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Stream {
    /// Whether something waits to be sent.
    pub(super) fn is_waiting(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Takes what has come; false if the stream has ended or says nonsense.
    fn receive(&mut self, server: &mut Server, id: UserId, now: Time) -> bool {
        let start = self.incoming.len();
        self.incoming.resize(start + TURN, 0);
        let read = self.socket.read(&mut self.incoming[start..]);
        self.incoming
            .truncate(start + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => return false,
            Err(error) if error.kind() != ErrorKind::WouldBlock => return false,
            _ => {}
        }
        let mut at = 0;
        while let Some(header) = self.incoming[at..].first_chunk::<FRAME_HEADER>() {
            let Ok(header) = FrameHeader::decode(*header) else {
                return false;
            };
            let start = at + FRAME_HEADER;
            let Some(body) = self.incoming.get(start..start + header.length) else {
                break;
            };
            let Ok(message) = ToServer::decode(header, body) else {
                return false;
            };
            server.handle_user(now, id, message);
            at = start + header.length;
        }
        self.incoming.drain(..at);
        true
    }

    /// Sends what can be sent; false if the stream has ended.
    fn transmit(&mut self) -> bool {
        let mut sent = 0;
        let alive = loop {
            if sent == self.outgoing.len() {
                break true;
            }
            match self.socket.write(&self.outgoing[sent..]) {
                Ok(0) => break false,
                Ok(length) => sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
        };
        self.outgoing.drain(..sent);
        alive
    }
}

/// All streams of a server.
pub(super) struct Streams {
    pub(super) listener: UnixListener,
    pub(super) streams: BTreeMap<UserId, Stream>,
    /// No more fit until one has ended: this process has no descriptors left.
    full: bool,
}

impl Streams {
    /// Listens under the name of a server called `base`.
    ///
    /// # Errors
    /// If the name is taken.
    pub(super) fn bind(base: &str) -> Result<Self, Failure> {
        let name = socket_name(base);
        let listen = || -> io::Result<UnixListener> {
            let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        match listen() {
            Ok(listener) => Ok(Self {
                listener,
                streams: BTreeMap::new(),
                full: false,
            }),
            Err(error) => Err(Failure::Arguments {
                problem: format!("cannot make the socket {name}: {error}"),
                help: None,
            }),
        }
    }

    /// Whether programs that come are taken.
    pub(super) fn takes_more(&self) -> bool {
        !self.full
    }

    /// Takes the programs that come.
    pub(super) fn accept(&mut self, server: &mut Server) {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) => {
                    self.full = error.kind() != ErrorKind::WouldBlock;
                    return;
                }
            };
            let Some(id) = server.accept_user() else {
                return;
            };
            if socket.set_nonblocking(true).is_err() {
                server.forget_user(id);
                continue;
            }
            let stream = Stream {
                socket,
                incoming: Vec::new(),
                outgoing: Vec::new(),
            };
            self.streams.insert(id, stream);
        }
    }

    /// Takes what a program says.
    pub(super) fn receive(&mut self, server: &mut Server, id: UserId, now: Time) {
        let stream = self.streams.get_mut(&id);
        let alive = stream.is_none_or(|stream| stream.receive(server, id, now));
        if !alive {
            self.streams.remove(&id);
            self.full = false;
            server.forget_user(id);
        }
    }

    /// Sends what can be sent. True if a stream has ended, of which others may have to hear.
    pub(super) fn transmit(&mut self, server: &mut Server) -> bool {
        while let Some((id, message)) = server.poll_user() {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.outgoing.extend(message.encode());
            }
        }
        let before = self.streams.len();
        self.streams.retain(|id, stream| {
            let alive = stream.transmit() && stream.outgoing.len() <= MOST_WAITING;
            if !alive {
                server.forget_user(*id);
            }
            alive
        });
        let ended = self.streams.len() < before;
        self.full &= !ended;
        ended
    }
}
