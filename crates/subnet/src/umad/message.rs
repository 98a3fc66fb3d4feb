//! Messages of the stream: a header with length and kind, then a body in little-endian order.

use std::io::{self, Read};

use softfabric_units::{Guid, Lid};
use thiserror::Error;

/// Bytes of a frame's header.
pub const FRAME_HEADER: usize = 8;
/// The longest body: a table of a whole subnet.
pub const LONGEST_FRAME: usize = 64 << 20;

/// The number of an agent, on its stream: 0–31.
pub type AgentId = u32;

/// The header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    /// Bytes of the body.
    pub length: usize,
    kind: u32,
}

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FrameError {
    /// A body that nobody would send.
    #[error("a message of {0} bytes is longer than any")]
    TooLong(usize),
    /// It ends before its contents do.
    #[error("a message of kind {0} ends too early")]
    Short(u32),
    /// A kind that does not exist.
    #[error("messages have no kind {0}")]
    Kind(u32),
}

/// Where a datagram goes, or comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Envelope {
    /// The identifier of the other side's port.
    pub lid: Lid,
    /// Its queue pair.
    pub queue_pair: u32,
    /// The key of the queue pair.
    pub queue_key: u32,
    /// The service level.
    pub level: u8,
    /// The place of the partition key in the port's table.
    pub partition: u16,
}

/// What an agent wants to hear.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Registration {
    /// Its number on its stream.
    pub agent: AgentId,
    /// The management class.
    pub class: u8,
    /// The version of the class.
    pub version: u8,
    /// A bit for each method of requests that it answers.
    pub methods: u128,
}

/// What programs say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ToServer {
    /// Tell about the adapter at a node; an empty name is the server's choice.
    Describe {
        /// The node.
        node: String,
    },
    /// Be at a port of the node from now on. Port 0 is the server's choice.
    Open {
        /// The node.
        node: String,
        /// The port.
        port: u8,
        /// The process.
        process: u32,
    },
    /// An agent listens.
    Register(Registration),
    /// It does not any more.
    Unregister(AgentId),
    /// The port has a subnet manager, or none.
    Manager(bool),
    /// Send a datagram.
    Send {
        /// Whose it is.
        agent: AgentId,
        /// How long to wait for an answer, in milliseconds; 0: there is none to come.
        timeout: u32,
        /// How often to send it again.
        retries: u32,
        /// Where it goes.
        to: Envelope,
        /// Its bytes.
        mad: Vec<u8>,
    },
}

/// What the server says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromServer {
    /// The adapter.
    Adapter(Adapter),
    /// The port is open.
    Opened,
    /// It is not, and why.
    Refused(String),
    /// A datagram has come.
    Received {
        /// For this agent.
        agent: AgentId,
        /// 0, or the errno with which one's own request comes back.
        status: u32,
        /// Where from.
        from: Envelope,
        /// Its bytes.
        mad: Vec<u8>,
    },
}

/// An adapter, or a switch's own end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Adapter {
    /// 1 for adapters, 2 for switches.
    pub kind: u8,
    /// Its GUID.
    pub guid: Guid,
    /// Its system's.
    pub system: Guid,
    /// The vendor's number of the device.
    pub device: u16,
    /// Its ports, by number.
    pub ports: Vec<AdapterPort>,
}

/// One of its ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AdapterPort {
    /// The number: 0 of a switch.
    pub number: u8,
    /// The first identifier.
    pub lid: Lid,
    /// It has 2 to the power of this identifiers.
    pub lmc: u8,
    /// The manager's identifier.
    pub manager: Lid,
    /// The service level to the manager.
    pub manager_level: u8,
    /// 1 down, 2 initialised, 3 armed, 4 active.
    pub state: u8,
    /// 5: the link is trained.
    pub physical_state: u8,
    /// What the link carries, in Gb/s.
    pub rate: u32,
    /// What the port can do.
    pub capabilities: u32,
    /// The subnet's part of the GID.
    pub prefix: u64,
    /// The port's GUID.
    pub guid: Guid,
    /// The first partition keys of its table.
    pub partitions: [u16; 8],
}

impl FrameHeader {
    /// Reads a header.
    ///
    /// # Errors
    /// If the body is longer than any.
    pub fn decode(bytes: [u8; FRAME_HEADER]) -> Result<Self, FrameError> {
        let mut reader = Reader(&bytes);
        let (length, kind) = (reader.u32().unwrap_or(0), reader.u32().unwrap_or(0));
        let length = length as usize;
        if length > LONGEST_FRAME {
            return Err(FrameError::TooLong(length));
        }
        Ok(Self { length, kind })
    }
}

const DESCRIBE: u32 = 1;
const OPEN: u32 = 2;
const REGISTER: u32 = 3;
const UNREGISTER: u32 = 4;
const MANAGER: u32 = 5;
const SEND: u32 = 6;
const ADAPTER: u32 = 16;
const OPENED: u32 = 17;
const REFUSED: u32 = 18;
const RECEIVED: u32 = 19;

impl ToServer {
    /// The whole frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let kind = match self {
            Self::Describe { node } => {
                writer.text(node);
                DESCRIBE
            }
            Self::Open {
                node,
                port,
                process,
            } => {
                writer.u8(*port).u32(*process).text(node);
                OPEN
            }
            Self::Register(registration) => {
                writer
                    .u32(registration.agent)
                    .u8(registration.class)
                    .u8(registration.version);
                writer.0.extend(registration.methods.to_le_bytes());
                REGISTER
            }
            Self::Unregister(agent) => {
                writer.u32(*agent);
                UNREGISTER
            }
            Self::Manager(runs) => {
                writer.u8(u8::from(*runs));
                MANAGER
            }
            Self::Send {
                agent,
                timeout,
                retries,
                to,
                mad,
            } => {
                writer.u32(*agent).u32(*timeout).u32(*retries).envelope(to);
                writer.0.extend(mad);
                SEND
            }
        };
        writer.finish(kind)
    }

    /// Reads a body.
    ///
    /// # Errors
    /// If it is none.
    pub fn decode(header: FrameHeader, body: &[u8]) -> Result<Self, FrameError> {
        let mut reader = Reader(body);
        let read = |reader: &mut Reader<'_>| {
            Some(match header.kind {
                DESCRIBE => Self::Describe {
                    node: reader.text(),
                },
                OPEN => Self::Open {
                    port: reader.u8()?,
                    process: reader.u32()?,
                    node: reader.text(),
                },
                REGISTER => Self::Register(Registration {
                    agent: reader.u32()?,
                    class: reader.u8()?,
                    version: reader.u8()?,
                    methods: u128::from_le_bytes(reader.array()?),
                }),
                UNREGISTER => Self::Unregister(reader.u32()?),
                MANAGER => Self::Manager(reader.u8()? != 0),
                _ => Self::Send {
                    agent: reader.u32()?,
                    timeout: reader.u32()?,
                    retries: reader.u32()?,
                    to: reader.envelope()?,
                    mad: reader.rest(),
                },
            })
        };
        if !(DESCRIBE..=SEND).contains(&header.kind) {
            return Err(FrameError::Kind(header.kind));
        }
        read(&mut reader).ok_or(FrameError::Short(header.kind))
    }
}

impl FromServer {
    /// The whole frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let kind = match self {
            Self::Adapter(adapter) => {
                writer
                    .u8(adapter.kind)
                    .u64(adapter.guid.0)
                    .u64(adapter.system.0)
                    .u16(adapter.device);
                for port in &adapter.ports {
                    writer.port(port);
                }
                ADAPTER
            }
            Self::Opened => OPENED,
            Self::Refused(reason) => {
                writer.text(reason);
                REFUSED
            }
            Self::Received {
                agent,
                status,
                from,
                mad,
            } => {
                writer.u32(*agent).u32(*status).envelope(from);
                writer.0.extend(mad);
                RECEIVED
            }
        };
        writer.finish(kind)
    }

    /// Reads a body.
    ///
    /// # Errors
    /// If it is none.
    pub fn decode(header: FrameHeader, body: &[u8]) -> Result<Self, FrameError> {
        let mut reader = Reader(body);
        let read = |reader: &mut Reader<'_>| {
            Some(match header.kind {
                ADAPTER => {
                    let mut adapter = Adapter {
                        kind: reader.u8()?,
                        guid: Guid(reader.u64()?),
                        system: Guid(reader.u64()?),
                        device: reader.u16()?,
                        ports: Vec::new(),
                    };
                    while !reader.0.is_empty() {
                        adapter.ports.push(reader.port()?);
                    }
                    Self::Adapter(adapter)
                }
                OPENED => Self::Opened,
                REFUSED => Self::Refused(reader.text()),
                _ => Self::Received {
                    agent: reader.u32()?,
                    status: reader.u32()?,
                    from: reader.envelope()?,
                    mad: reader.rest(),
                },
            })
        };
        if !(ADAPTER..=RECEIVED).contains(&header.kind) {
            return Err(FrameError::Kind(header.kind));
        }
        read(&mut reader).ok_or(FrameError::Short(header.kind))
    }

    /// Reads the next frame of a stream, waiting for all of it.
    ///
    /// # Errors
    /// If the stream ends or fails, or it is none.
    pub fn read(stream: &mut impl Read) -> io::Result<Self> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut header = [0; FRAME_HEADER];
        stream.read_exact(&mut header)?;
        let header = FrameHeader::decode(header).map_err(invalid)?;
        let mut body = vec![0; header.length];
        stream.read_exact(&mut body)?;
        Self::decode(header, &body).map_err(invalid)
    }

    /// How many bytes of datagram a frame with this header brings, if it brings one.
    pub const fn datagram_length(header: FrameHeader) -> Option<usize> {
        if header.kind == RECEIVED {
            header.length.checked_sub(8 + ENVELOPE)
        } else {
            None
        }
    }
}

const ENVELOPE: usize = 2 + 4 + 4 + 1 + 2;

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Text takes the rest of a body.
    fn text(&mut self, text: &str) {
        self.0.extend(text.as_bytes());
    }

    fn envelope(&mut self, envelope: &Envelope) -> &mut Self {
        self.u16(envelope.lid.0)
            .u32(envelope.queue_pair)
            .u32(envelope.queue_key)
            .u8(envelope.level)
            .u16(envelope.partition)
    }

    fn port(&mut self, port: &AdapterPort) {
        self.u8(port.number)
            .u16(port.lid.0)
            .u8(port.lmc)
            .u16(port.manager.0)
            .u8(port.manager_level)
            .u8(port.state)
            .u8(port.physical_state)
            .u32(port.rate)
            .u32(port.capabilities)
            .u64(port.prefix)
            .u64(port.guid.0);
        for key in port.partitions {
            self.u16(key);
        }
    }

    fn finish(self, kind: u32) -> Vec<u8> {
        let mut frame = Vec::with_capacity(FRAME_HEADER + self.0.len());
        frame.extend((self.0.len() as u32).to_le_bytes());
        frame.extend(kind.to_le_bytes());
        frame.extend(self.0);
        frame
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).to_vec()
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(&self.rest()).into_owned()
    }

    fn envelope(&mut self) -> Option<Envelope> {
        Some(Envelope {
            lid: Lid(self.u16()?),
            queue_pair: self.u32()?,
            queue_key: self.u32()?,
            level: self.u8()?,
            partition: self.u16()?,
        })
    }

    fn port(&mut self) -> Option<AdapterPort> {
        let mut port = AdapterPort {
            number: self.u8()?,
            lid: Lid(self.u16()?),
            lmc: self.u8()?,
            manager: Lid(self.u16()?),
            manager_level: self.u8()?,
            state: self.u8()?,
            physical_state: self.u8()?,
            rate: self.u32()?,
            capabilities: self.u32()?,
            prefix: self.u64()?,
            guid: Guid(self.u64()?),
            partitions: [0; 8],
        };
        for key in &mut port.partitions {
            *key = self.u16()?;
        }
        Some(port)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(frame: &[u8]) -> (FrameHeader, &[u8]) {
        let (header, body) = frame.split_first_chunk().unwrap();
        let header = FrameHeader::decode(*header).unwrap();
        assert_eq!(header.length, body.len());
        (header, body)
    }

    #[test]
    fn what_is_said_is_heard() {
        let to = Envelope {
            lid: Lid(7),
            queue_pair: 1,
            queue_key: 0x8001_0000,
            level: 3,
            partition: 2,
        };
        for said in [
            ToServer::Describe { node: "H-1".into() },
            ToServer::Open {
                node: String::new(),
                port: 2,
                process: 77,
            },
            ToServer::Register(Registration {
                agent: 3,
                class: 0x81,
                version: 1,
                methods: 1 << 100 | 6,
            }),
            ToServer::Unregister(9),
            ToServer::Manager(true),
            ToServer::Send {
                agent: 1,
                timeout: 200,
                retries: 3,
                to,
                mad: (0..=255).collect(),
            },
        ] {
            let frame = said.encode();
            let (header, body) = header(&frame);
            assert_eq!(ToServer::decode(header, body), Ok(said));
        }
        let port = AdapterPort {
            number: 1,
            lid: Lid(9),
            guid: Guid(5),
            partitions: [0xffff, 0x8001, 0, 0, 0, 0, 0, 3],
            ..AdapterPort::default()
        };
        for said in [
            FromServer::Opened,
            FromServer::Refused("no".into()),
            FromServer::Adapter(Adapter {
                kind: 1,
                guid: Guid(4),
                ports: vec![port, port],
                ..Adapter::default()
            }),
            FromServer::Received {
                agent: 2,
                status: 110,
                from: to,
                mad: vec![1; 3000],
            },
        ] {
            let frame = said.encode();
            let (header, body) = header(&frame);
            if let FromServer::Received { mad, .. } = &said {
                assert_eq!(FromServer::datagram_length(header), Some(mad.len()));
            }
            assert_eq!(FromServer::decode(header, body), Ok(said));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(kind in 0_u32..25, body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let header = FrameHeader { length: body.len(), kind };
            let _ = ToServer::decode(header, &body);
            let _ = FromServer::decode(header, &body);
        }
    }
}
