//! Connection management messages (IBTA vol. 1, 12.6): how two sides make, refuse and end a connection.
//!
//! ```text
//!   active side                     passive side
//!        REQ ─────────────────────────►          who I am, what I offer, the service that I want
//!            ◄───────────────────────── REP      or REJ; MRA first, where the answer takes long
//!        RTU ─────────────────────────►
//!            ══════ queue pairs talk ══
//!       DREQ ─────────────────────────►          from either side
//!            ◄───────────────────────── DREP
//!
//!   SIDR_REQ ─────────────────────────►          datagrams only ask which queue pair serves
//!            ◄───────────────────────── SIDR_REP
//! ```
//!
//! Each side names the connection by a [`CommunicationId`] of its own. Encoding writes reserved bits as zero; decoding
//! ignores them.

mod alternate;
mod disconnect;
mod ip_service;
mod reply;
mod request;
mod resolution;
#[cfg(test)]
mod tests;

use std::fmt;

use zerocopy::FromBytes;

pub use alternate::{AlternatePathResponse, AlternatePathStatus, LoadAlternatePath};
pub use disconnect::{DisconnectReply, DisconnectRequest};
pub use ip_service::{IpHeader, IpService};
pub use reply::{ConnectReply, ReadyToUse, ReceiptAcknowledgement, Reject, RejectReason, Stage};
pub use request::{ConnectRequest, Path, PathMtuCode, TransportService};
pub use resolution::{ResolutionReply, ResolutionRequest, ResolutionStatus};

use super::{MAD_LENGTH, MadHeader, ManagementClass, Method};
use crate::bytes::take;
use crate::error::DecodeError;

/// The version of connection management's messages.
const CLASS_VERSION: u8 = 2;

/// The bytes of a message after the header.
const BODY_LENGTH: usize = MAD_LENGTH - MadHeader::LENGTH;

/// What one side calls a connection; unique among those of one address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CommunicationId(pub u32);

impl fmt::Debug for CommunicationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommunicationId({:#010x})", self.0)
    }
}

/// What a listener offers and a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ServiceId(pub u64);

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

impl fmt::Debug for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceId({self})")
    }
}

/// One datagram of connection management.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CmMad {
    /// The exchange that the message belongs to: REQ, REP, RTU and their MRA and REJ share it.
    pub transaction: u64,
    /// The header's modifier: the attribute of an enhanced connection establishment, or zero.
    pub modifier: u32,
    /// What it says.
    pub message: Message,
}

/// What a datagram of connection management says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// REQ.
    ConnectRequest(ConnectRequest),
    /// MRA.
    ReceiptAcknowledgement(ReceiptAcknowledgement),
    /// REJ.
    Reject(Reject),
    /// REP.
    ConnectReply(ConnectReply),
    /// RTU.
    ReadyToUse(ReadyToUse),
    /// DREQ.
    DisconnectRequest(DisconnectRequest),
    /// DREP.
    DisconnectReply(DisconnectReply),
    /// SIDR_REQ.
    ResolutionRequest(ResolutionRequest),
    /// SIDR_REP.
    ResolutionReply(ResolutionReply),
    /// LAP.
    LoadAlternatePath(LoadAlternatePath),
    /// APR.
    AlternatePathResponse(AlternatePathResponse),
}

/// A message of one attribute: 232 bytes after the header.
trait Body: Sized {
    /// The bytes on the wire.
    type Raw: FromBytes + zerocopy::IntoBytes + zerocopy::Immutable;
    /// Its name, for errors.
    const NAME: &'static str;
    fn to_raw(&self) -> Self::Raw;
    fn from_raw(raw: &Self::Raw) -> Self;
}

impl CmMad {
    /// Reads one datagram; bytes after its 256 are ignored.
    ///
    /// # Errors
    /// If the bytes end too early, or the header is not one of connection management, version 2, or the attribute is
    /// not one of its messages.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let header = MadHeader::decode(bytes)?;
        let value = |what, offset, found: u8, needed| DecodeError::Value {
            what,
            offset,
            found: u64::from(found),
            needed,
        };
        if header.class != ManagementClass::COMMUNICATION {
            let needed = "7 (connection management)";
            return Err(value("MAD class", 1, header.class.0, needed));
        }
        if header.class_version != CLASS_VERSION {
            return Err(value("MAD class version", 2, header.class_version, "2"));
        }
        if header.method != Method::SEND {
            return Err(value("MAD method", 3, header.method.0, "3 (Send)"));
        }
        Ok(Self {
            transaction: header.transaction,
            modifier: header.modifier,
            message: Message::decode(header.attribute, bytes)?,
        })
    }

    /// The datagram's bytes.
    pub fn encode(&self) -> [u8; MAD_LENGTH] {
        let mut bytes = [0; MAD_LENGTH];
        let header = MadHeader {
            class: ManagementClass::COMMUNICATION,
            class_version: CLASS_VERSION,
            method: Method::SEND,
            status: 0,
            class_specific: 0,
            transaction: self.transaction,
            attribute: self.message.attribute(),
            modifier: self.modifier,
        };
        let at = header.encode(&mut bytes);
        self.message.encode(&mut bytes[at..]);
        bytes
    }
}

impl Message {
    /// The attribute identifier in the header.
    pub const fn attribute(&self) -> u16 {
        match self {
            Self::ConnectRequest(_) => 0x10,
            Self::ReceiptAcknowledgement(_) => 0x11,
            Self::Reject(_) => 0x12,
            Self::ConnectReply(_) => 0x13,
            Self::ReadyToUse(_) => 0x14,
            Self::DisconnectRequest(_) => 0x15,
            Self::DisconnectReply(_) => 0x16,
            Self::ResolutionRequest(_) => 0x17,
            Self::ResolutionReply(_) => 0x18,
            Self::LoadAlternatePath(_) => 0x19,
            Self::AlternatePathResponse(_) => 0x1a,
        }
    }

    /// The name that the standard gives the message.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ConnectRequest(_) => ConnectRequest::NAME,
            Self::ReceiptAcknowledgement(_) => ReceiptAcknowledgement::NAME,
            Self::Reject(_) => Reject::NAME,
            Self::ConnectReply(_) => ConnectReply::NAME,
            Self::ReadyToUse(_) => ReadyToUse::NAME,
            Self::DisconnectRequest(_) => DisconnectRequest::NAME,
            Self::DisconnectReply(_) => DisconnectReply::NAME,
            Self::ResolutionRequest(_) => ResolutionRequest::NAME,
            Self::ResolutionReply(_) => ResolutionReply::NAME,
            Self::LoadAlternatePath(_) => LoadAlternatePath::NAME,
            Self::AlternatePathResponse(_) => AlternatePathResponse::NAME,
        }
    }

    /// The identifier by which the receiver knows the connection; `None` of the messages that come first. The receiver
    /// of a SIDR_REP knows its request.
    pub const fn receiver(&self) -> Option<CommunicationId> {
        match self {
            Self::ConnectRequest(_) | Self::ResolutionRequest(_) => None,
            Self::ReceiptAcknowledgement(message) => Some(message.remote),
            Self::Reject(message) => Some(message.remote),
            Self::ConnectReply(message) => Some(message.remote),
            Self::ReadyToUse(message) => Some(message.remote),
            Self::DisconnectRequest(message) => Some(message.remote),
            Self::DisconnectReply(message) => Some(message.remote),
            Self::ResolutionReply(message) => Some(message.request),
            Self::LoadAlternatePath(message) => Some(message.remote),
            Self::AlternatePathResponse(message) => Some(message.remote),
        }
    }

    fn encode(&self, bytes: &mut [u8]) {
        match self {
            Self::ConnectRequest(message) => put(bytes, message),
            Self::ReceiptAcknowledgement(message) => put(bytes, message),
            Self::Reject(message) => put(bytes, message),
            Self::ConnectReply(message) => put(bytes, message),
            Self::ReadyToUse(message) => put(bytes, message),
            Self::DisconnectRequest(message) => put(bytes, message),
            Self::DisconnectReply(message) => put(bytes, message),
            Self::ResolutionRequest(message) => put(bytes, message),
            Self::ResolutionReply(message) => put(bytes, message),
            Self::LoadAlternatePath(message) => put(bytes, message),
            Self::AlternatePathResponse(message) => put(bytes, message),
        }
    }

    fn decode(attribute: u16, bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(match attribute {
            0x10 => Self::ConnectRequest(body(bytes)?),
            0x11 => Self::ReceiptAcknowledgement(body(bytes)?),
            0x12 => Self::Reject(body(bytes)?),
            0x13 => Self::ConnectReply(body(bytes)?),
            0x14 => Self::ReadyToUse(body(bytes)?),
            0x15 => Self::DisconnectRequest(body(bytes)?),
            0x16 => Self::DisconnectReply(body(bytes)?),
            0x17 => Self::ResolutionRequest(body(bytes)?),
            0x18 => Self::ResolutionReply(body(bytes)?),
            0x19 => Self::LoadAlternatePath(body(bytes)?),
            0x1a => Self::AlternatePathResponse(body(bytes)?),
            found => {
                return Err(DecodeError::Value {
                    what: "attribute of connection management",
                    offset: 16,
                    found: u64::from(found),
                    needed: "0x10 (REQ) to 0x1a (APR)",
                });
            }
        })
    }
}

fn put<B: Body>(bytes: &mut [u8], message: &B) {
    const { assert!(size_of::<B::Raw>() == BODY_LENGTH) };
    crate::bytes::put(bytes, 0, &message.to_raw());
}

fn body<B: Body>(bytes: &[u8]) -> Result<B, DecodeError> {
    take(bytes, MadHeader::LENGTH, B::NAME).map(|raw| B::from_raw(&raw))
}
