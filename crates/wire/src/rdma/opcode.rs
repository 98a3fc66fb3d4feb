//! The one table of opcodes: which headers follow the BTH, and what place a packet has in its message.

use std::fmt;

/// The transport service: the top three bits of an opcode (IBTA vol. 1, 9.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Service {
    /// Reliable connection (RC).
    ReliableConnection,
    /// Unreliable connection (UC).
    UnreliableConnection,
    /// Unreliable datagram (UD).
    UnreliableDatagram,
    /// Congestion notification: RoCEv2's CNP (annex A17.9) and InfiniBand's CN packet.
    CongestionNotification,
    /// Extended reliable connection (XRC, annex A14).
    ExtendedReliableConnection,
}

/// What a packet does, whatever its service and its place in the message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Part of a SEND, with or without immediate or invalidate.
    Send,
    /// Part of an RDMA WRITE, with or without immediate.
    Write,
    /// A request to read remote memory.
    ReadRequest,
    /// Part of the answer to a read request.
    ReadResponse,
    /// An acknowledgement, positive or negative.
    Acknowledge,
    /// The answer to an atomic operation.
    AtomicAcknowledge,
    /// Compare and swap.
    CompareSwap,
    /// Fetch and add.
    FetchAdd,
    /// A congestion notification.
    Notification,
}

/// The place of a packet in its message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Position {
    /// The first of several packets.
    First,
    /// Neither first nor last.
    Middle,
    /// The last of several packets.
    Last,
    /// The message is this one packet.
    Only,
}

impl Position {
    /// Whether a message starts with the packet.
    pub const fn starts(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// Whether a message ends with the packet.
    pub const fn ends(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

/// Which extension headers follow the BTH.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ExtensionKind {
    /// None: the payload follows.
    None,
    /// RETH, 16 B.
    Reth,
    /// RETH and ImmDt, 20 B.
    RethImmediate,
    /// ImmDt, 4 B.
    Immediate,
    /// IETH, 4 B.
    Invalidate,
    /// AETH, 4 B.
    Aeth,
    /// AETH and AtomicAckETH, 12 B.
    AethAtomic,
    /// AtomicETH, 28 B.
    Atomic,
    /// DETH, 8 B.
    Deth,
    /// DETH and ImmDt, 12 B.
    DethImmediate,
    /// The 16 reserved bytes of a CNP.
    Notification,
}

impl ExtensionKind {
    /// The length of the extension headers in bytes, without the XRCETH.
    pub const fn length(self) -> usize {
        match self {
            Self::None => 0,
            Self::Immediate | Self::Invalidate | Self::Aeth => 4,
            Self::Deth => 8,
            Self::AethAtomic | Self::DethImmediate => 12,
            Self::Reth | Self::Notification => 16,
            Self::RethImmediate => 20,
            Self::Atomic => 28,
        }
    }
}

/// One row of the table: a few bytes, as every packet looks its opcode up several times.
#[derive(Clone, Copy)]
struct Row {
    /// Whether the code is one of the table's; the other fields of a row that is not say nothing.
    known: bool,
    service: Service,
    operation: Operation,
    position: Position,
    extension: ExtensionKind,
    /// An XRCETH (4 B) comes before the other extension headers.
    xrc: bool,
    payload: bool,
}

const UNKNOWN: Row = Row {
    known: false,
    service: Service::ReliableConnection,
    operation: Operation::Send,
    position: Position::Only,
    extension: ExtensionKind::None,
    xrc: false,
    payload: false,
};

/// An opcode that the table knows. What it does not know does not become an `Opcode`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opcode(u8);

/// Writes the rows: name of the constant, code, and the row's properties.
macro_rules! opcodes {
    ($($constant:ident $code:literal $name:literal
        $service:ident $operation:ident $position:ident $extension:ident $payload:literal;)*) => {
        impl Opcode {
            $(#[doc = concat!("`", $name, "`, code ", stringify!($code), ".")]
            pub const $constant: Self = Self($code);)*

            /// Every opcode of the table, in the order of the codes.
            pub const ALL: &'static [Self] = &[$(Self($code)),*];
        }

        static NAMES: [&str; 256] = {
            let mut names = [""; 256];
            $(names[$code] = $name;)*
            names
        };

        static TABLE: [Row; 256] = {
            let mut table = [UNKNOWN; 256];
            $(table[$code] = Row {
                known: true,
                service: Service::$service,
                operation: Operation::$operation,
                position: Position::$position,
                extension: ExtensionKind::$extension,
                xrc: $code >= 0xa0 && !matches!(
                    Operation::$operation,
                    Operation::ReadResponse | Operation::Acknowledge | Operation::AtomicAcknowledge
                ),
                payload: $payload,
            };)*
            table
        };
    };
}

opcodes! {
    RC_SEND_FIRST 0x00 "RC SEND First" ReliableConnection Send First None true;
    RC_SEND_MIDDLE 0x01 "RC SEND Middle" ReliableConnection Send Middle None true;
    RC_SEND_LAST 0x02 "RC SEND Last" ReliableConnection Send Last None true;
    RC_SEND_LAST_IMMEDIATE 0x03 "RC SEND Last with Immediate" ReliableConnection Send Last Immediate true;
    RC_SEND_ONLY 0x04 "RC SEND Only" ReliableConnection Send Only None true;
    RC_SEND_ONLY_IMMEDIATE 0x05 "RC SEND Only with Immediate" ReliableConnection Send Only Immediate true;
    RC_WRITE_FIRST 0x06 "RC RDMA WRITE First" ReliableConnection Write First Reth true;
    RC_WRITE_MIDDLE 0x07 "RC RDMA WRITE Middle" ReliableConnection Write Middle None true;
    RC_WRITE_LAST 0x08 "RC RDMA WRITE Last" ReliableConnection Write Last None true;
    RC_WRITE_LAST_IMMEDIATE 0x09 "RC RDMA WRITE Last with Immediate" ReliableConnection Write Last Immediate true;
    RC_WRITE_ONLY 0x0a "RC RDMA WRITE Only" ReliableConnection Write Only Reth true;
    RC_WRITE_ONLY_IMMEDIATE 0x0b "RC RDMA WRITE Only with Immediate" ReliableConnection Write Only RethImmediate true;
    RC_READ_REQUEST 0x0c "RC RDMA READ Request" ReliableConnection ReadRequest Only Reth false;
    RC_READ_RESPONSE_FIRST 0x0d "RC RDMA READ response First" ReliableConnection ReadResponse First Aeth true;
    RC_READ_RESPONSE_MIDDLE 0x0e "RC RDMA READ response Middle" ReliableConnection ReadResponse Middle None true;
    RC_READ_RESPONSE_LAST 0x0f "RC RDMA READ response Last" ReliableConnection ReadResponse Last Aeth true;
    RC_READ_RESPONSE_ONLY 0x10 "RC RDMA READ response Only" ReliableConnection ReadResponse Only Aeth true;
    RC_ACKNOWLEDGE 0x11 "RC Acknowledge" ReliableConnection Acknowledge Only Aeth false;
    RC_ATOMIC_ACKNOWLEDGE 0x12 "RC ATOMIC Acknowledge" ReliableConnection AtomicAcknowledge Only AethAtomic false;
    RC_COMPARE_SWAP 0x13 "RC CmpSwap" ReliableConnection CompareSwap Only Atomic false;
    RC_FETCH_ADD 0x14 "RC FetchAdd" ReliableConnection FetchAdd Only Atomic false;
    RC_SEND_LAST_INVALIDATE 0x16 "RC SEND Last with Invalidate" ReliableConnection Send Last Invalidate true;
    RC_SEND_ONLY_INVALIDATE 0x17 "RC SEND Only with Invalidate" ReliableConnection Send Only Invalidate true;

    UC_SEND_FIRST 0x20 "UC SEND First" UnreliableConnection Send First None true;
    UC_SEND_MIDDLE 0x21 "UC SEND Middle" UnreliableConnection Send Middle None true;
    UC_SEND_LAST 0x22 "UC SEND Last" UnreliableConnection Send Last None true;
    UC_SEND_LAST_IMMEDIATE 0x23 "UC SEND Last with Immediate" UnreliableConnection Send Last Immediate true;
    UC_SEND_ONLY 0x24 "UC SEND Only" UnreliableConnection Send Only None true;
    UC_SEND_ONLY_IMMEDIATE 0x25 "UC SEND Only with Immediate" UnreliableConnection Send Only Immediate true;
    UC_WRITE_FIRST 0x26 "UC RDMA WRITE First" UnreliableConnection Write First Reth true;
    UC_WRITE_MIDDLE 0x27 "UC RDMA WRITE Middle" UnreliableConnection Write Middle None true;
    UC_WRITE_LAST 0x28 "UC RDMA WRITE Last" UnreliableConnection Write Last None true;
    UC_WRITE_LAST_IMMEDIATE 0x29 "UC RDMA WRITE Last with Immediate" UnreliableConnection Write Last Immediate true;
    UC_WRITE_ONLY 0x2a "UC RDMA WRITE Only" UnreliableConnection Write Only Reth true;
    UC_WRITE_ONLY_IMMEDIATE 0x2b "UC RDMA WRITE Only with Immediate" UnreliableConnection Write Only RethImmediate true;

    UD_SEND_ONLY 0x64 "UD SEND Only" UnreliableDatagram Send Only Deth true;
    UD_SEND_ONLY_IMMEDIATE 0x65 "UD SEND Only with Immediate" UnreliableDatagram Send Only DethImmediate true;

    CNP 0x81 "CNP" CongestionNotification Notification Only Notification false;

    XRC_SEND_FIRST 0xa0 "XRC SEND First" ExtendedReliableConnection Send First None true;
    XRC_SEND_MIDDLE 0xa1 "XRC SEND Middle" ExtendedReliableConnection Send Middle None true;
    XRC_SEND_LAST 0xa2 "XRC SEND Last" ExtendedReliableConnection Send Last None true;
    XRC_SEND_LAST_IMMEDIATE 0xa3 "XRC SEND Last with Immediate" ExtendedReliableConnection Send Last Immediate true;
    XRC_SEND_ONLY 0xa4 "XRC SEND Only" ExtendedReliableConnection Send Only None true;
    XRC_SEND_ONLY_IMMEDIATE 0xa5 "XRC SEND Only with Immediate" ExtendedReliableConnection Send Only Immediate true;
    XRC_WRITE_FIRST 0xa6 "XRC RDMA WRITE First" ExtendedReliableConnection Write First Reth true;
    XRC_WRITE_MIDDLE 0xa7 "XRC RDMA WRITE Middle" ExtendedReliableConnection Write Middle None true;
    XRC_WRITE_LAST 0xa8 "XRC RDMA WRITE Last" ExtendedReliableConnection Write Last None true;
    XRC_WRITE_LAST_IMMEDIATE 0xa9 "XRC RDMA WRITE Last with Immediate" ExtendedReliableConnection Write Last Immediate true;
    XRC_WRITE_ONLY 0xaa "XRC RDMA WRITE Only" ExtendedReliableConnection Write Only Reth true;
    XRC_WRITE_ONLY_IMMEDIATE 0xab "XRC RDMA WRITE Only with Immediate" ExtendedReliableConnection Write Only RethImmediate true;
    XRC_READ_REQUEST 0xac "XRC RDMA READ Request" ExtendedReliableConnection ReadRequest Only Reth false;
    XRC_READ_RESPONSE_FIRST 0xad "XRC RDMA READ response First" ExtendedReliableConnection ReadResponse First Aeth true;
    XRC_READ_RESPONSE_MIDDLE 0xae "XRC RDMA READ response Middle" ExtendedReliableConnection ReadResponse Middle None true;
    XRC_READ_RESPONSE_LAST 0xaf "XRC RDMA READ response Last" ExtendedReliableConnection ReadResponse Last Aeth true;
    XRC_READ_RESPONSE_ONLY 0xb0 "XRC RDMA READ response Only" ExtendedReliableConnection ReadResponse Only Aeth true;
    XRC_ACKNOWLEDGE 0xb1 "XRC Acknowledge" ExtendedReliableConnection Acknowledge Only Aeth false;
    XRC_ATOMIC_ACKNOWLEDGE 0xb2 "XRC ATOMIC Acknowledge" ExtendedReliableConnection AtomicAcknowledge Only AethAtomic false;
    XRC_COMPARE_SWAP 0xb3 "XRC CmpSwap" ExtendedReliableConnection CompareSwap Only Atomic false;
    XRC_FETCH_ADD 0xb4 "XRC FetchAdd" ExtendedReliableConnection FetchAdd Only Atomic false;
    XRC_SEND_LAST_INVALIDATE 0xb6 "XRC SEND Last with Invalidate" ExtendedReliableConnection Send Last Invalidate true;
    XRC_SEND_ONLY_INVALIDATE 0xb7 "XRC SEND Only with Invalidate" ExtendedReliableConnection Send Only Invalidate true;
}

impl Opcode {
    /// The opcode of `code`, if the table has it.
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        if TABLE[code as usize].known {
            Some(Self(code))
        } else {
            None
        }
    }

    /// The byte on the wire.
    #[inline]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The opcode that does under XRC what this one does under RC (annex A14); every other stays what it is.
    #[inline]
    pub const fn extended(self) -> Self {
        match self.service() {
            Service::ReliableConnection => Self(self.0 | 0xa0),
            _ => self,
        }
    }

    #[inline]
    const fn row(self) -> &'static Row {
        &TABLE[self.0 as usize]
    }

    /// The service that carries it.
    #[inline]
    pub const fn service(self) -> Service {
        self.row().service
    }

    /// What the packet does.
    #[inline]
    pub const fn operation(self) -> Operation {
        self.row().operation
    }

    /// Its place in the message.
    #[inline]
    pub const fn position(self) -> Position {
        self.row().position
    }

    /// The extension headers that follow the BTH (and the XRCETH, where there is one).
    #[inline]
    pub const fn extension(self) -> ExtensionKind {
        self.row().extension
    }

    /// Whether an XRCETH follows the BTH.
    #[inline]
    pub const fn has_xrc(self) -> bool {
        self.row().xrc
    }

    /// Whether the packet may carry a payload.
    #[inline]
    pub const fn has_payload(self) -> bool {
        self.row().payload
    }

    /// Whether the packet is sent by a responder: an acknowledgement or a response.
    #[inline]
    pub const fn is_response(self) -> bool {
        matches!(
            self.operation(),
            Operation::ReadResponse | Operation::Acknowledge | Operation::AtomicAcknowledge
        )
    }

    /// Whether the packet carries immediate data.
    #[inline]
    pub const fn has_immediate(self) -> bool {
        matches!(
            self.extension(),
            ExtensionKind::Immediate | ExtensionKind::RethImmediate | ExtensionKind::DethImmediate
        )
    }

    /// The length of BTH and all extension headers, in bytes.
    #[inline]
    pub const fn header_length(self) -> usize {
        12 + self.extension().length() + if self.has_xrc() { 4 } else { 0 }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES[self.0 as usize])
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
