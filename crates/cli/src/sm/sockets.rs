//! A client's two sockets of ibsim's protocol: one for control, one for datagrams. Neither blocks once it has joined.

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use softfabric_subnet::ibsim::{
    CONTROL_LENGTH, Control, DATA_LENGTH, Data, Joined, Joining, Progress,
};

use crate::failure::Failure;
use crate::ib::sockets::address;

/// How long a server may take to answer to a control message: ibsim answers between datagrams of others.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client of a server.
pub(super) struct Sockets {
    control: UnixDatagram,
    pub(super) data: UnixDatagram,
    joined: Joined,
}

impl Sockets {
    /// Joins the server called `base` as a manager, at `node` or where the server likes.
    ///
    /// # Errors
    /// If there is no server, or it refuses.
    pub(super) fn join(base: &str, node: &str) -> Result<Self, Failure> {
        let id = std::process::id();
        let failed = |error: io::Error| Failure::Arguments {
            problem: format!("cannot make the sockets of a client of {base:?}: {error}"),
            help: None,
        };
        let bind = |name: String| address(&name).and_then(|name| UnixDatagram::bind_addr(&name));
        let control = bind(format!("{base}:ctl{id}")).map_err(failed)?;
        let data = bind(format!("{base}:in{id}")).map_err(failed)?;
        let server = address(&format!("{base}:ctl")).map_err(failed)?;
        control
            .connect_addr(&server)
            .map_err(|error| no_server(base, &error))?;
        control.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        data.set_nonblocking(true).map_err(failed)?;
        let mut joining = Joining::new(id, node, true);
        loop {
            let answer =
                ask(&control, &joining.request()).map_err(|error| no_server(base, &error))?;
            let refused = |problem: String| {
                Failure::Arguments {
                problem,
                help: Some(
                    "Does the topology have this node, as a file or its description calls it? Is there another manager on \
                     it already? A server has room for 10 programs."
                        .to_owned(),
                ),
            }
            };
            match joining
                .handle(&answer)
                .map_err(|error| refused(error.to_string()))?
            {
                Progress::Unrelated => {}
                Progress::Connected(joined) => {
                    let slot = address(&format!("{base}:out{}", joined.slot));
                    slot.and_then(|slot| data.connect_addr(&slot))
                        .map_err(failed)?;
                }
                Progress::Done(joined) => {
                    return Ok(Self {
                        control,
                        data,
                        joined,
                    });
                }
            }
        }
    }

    /// The node that it is at; empty where the server does not say.
    pub(super) fn node(&self) -> &str {
        &self.joined.node
    }

    /// The next datagram that is there.
    pub(super) fn receive(&self) -> io::Result<Option<Data>> {
        let mut bytes = [0; DATA_LENGTH + 1];
        loop {
            match self.data.recv(&mut bytes) {
                // What is no message is skipped.
                Ok(length) => {
                    if let Ok(data) = Data::decode(&bytes[..length]) {
                        return Ok(Some(data));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a datagram; false where there is no room for it now.
    pub(super) fn send(&self, data: &Data) -> io::Result<bool> {
        loop {
            match self.data.send(&data.encode()) {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Sockets {
    /// Says goodbye; a server that is gone does not hear it.
    fn drop(&mut self) {
        let _ = ask(&self.control, &self.joined.farewell());
    }
}

fn ask(control: &UnixDatagram, request: &Control) -> io::Result<Control> {
    control.send(&request.encode())?;
    let mut bytes = [0; CONTROL_LENGTH + 1];
    loop {
        let length = control.recv(&mut bytes)?;
        if let Ok(answer) = Control::decode(&bytes[..length]) {
            return Ok(answer);
        }
    }
}

fn no_server(base: &str, error: &io::Error) -> Failure {
    let silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    Failure::Arguments {
        problem: if silent {
            format!("the server {base:?} does not answer")
        } else {
            format!("there is no server called {base:?}: {error}")
        },
        help: Some(
            "Start one with `softfabric ib serve TOPOLOGY`, or `ibsim -s TOPOLOGY`. One with another name is found with \
             --socket-name or IBSIM_SOCKNAME."
                .to_owned(),
        ),
    }
}
