//! What the manager tells and sends.

use softfabric_units::Gid;
use softfabric_wire::mad::MAD_LENGTH;
use softfabric_wire::mad::cm::{
    CommunicationId, ConnectReply, ConnectRequest, Reject, ResolutionReply, ResolutionRequest,
};

use super::listener::ListenerId;

/// Between which addresses datagrams go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Way {
    /// The device, by its place in the driver's list.
    pub device: usize,
    /// This process's number among those that share the device: the upper byte of the names that it gives, by which
    /// answers find the process.
    pub slot: u8,
    /// This side's address.
    pub local: Gid,
    /// The other side's.
    pub remote: Gid,
}

/// A datagram to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// From where and to where.
    pub way: Way,
    /// Its bytes.
    pub mad: Box<[u8; MAD_LENGTH]>,
}

/// What the manager tells the programs. Each is told once, whatever the network loses or repeats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Somebody asks for a connection: to be accepted, rejected or ignored.
    ConnectRequest {
        /// Who listens.
        listener: ListenerId,
        /// The name of the connection from now on.
        connection: CommunicationId,
        /// Where the request came from, and to which address.
        way: Way,
        /// What it says.
        request: Box<ConnectRequest>,
    },
    /// The request was accepted: the connection stands once the program is ready, or is rejected even now.
    ConnectReply {
        /// The connection.
        connection: CommunicationId,
        /// What the reply says.
        reply: Box<ConnectReply>,
    },
    /// The other side is ready: the accepted connection stands.
    Established {
        /// The connection.
        connection: CommunicationId,
    },
    /// The other side refuses. The connection is gone.
    Rejected {
        /// The connection.
        connection: CommunicationId,
        /// Why, and the program's own words.
        reject: Box<Reject>,
    },
    /// The other side does not answer. The connection is gone.
    Unreachable {
        /// The connection.
        connection: CommunicationId,
    },
    /// The connection has ended.
    Disconnected {
        /// The connection.
        connection: CommunicationId,
        /// Whether the other side knows.
        answered: bool,
    },
    /// No packet of an ended connection is under way any longer: its queue pair may be used again.
    TimeWaitOver {
        /// The connection, which is gone.
        connection: CommunicationId,
    },
    /// Somebody asks which queue pair serves datagrams.
    ResolutionRequest {
        /// Who listens.
        listener: ListenerId,
        /// The name to answer by.
        resolution: CommunicationId,
        /// Where the request came from, and to which address.
        way: Way,
        /// What it says.
        request: Box<ResolutionRequest>,
    },
    /// The queue pair that serves, or why there is none. The resolution is gone.
    ResolutionReply {
        /// The resolution.
        resolution: CommunicationId,
        /// The answer.
        reply: Box<ResolutionReply>,
    },
    /// Nobody answers. The resolution is gone.
    ResolutionUnreachable {
        /// The resolution.
        resolution: CommunicationId,
    },
}
