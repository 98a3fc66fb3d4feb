//! The transport headers as values: what a checked packet says, with illegal combinations left out.

use softfabric_units::{Msn, PartitionKey, Psn, Qpn};

use super::opcode::Opcode;

/// BTH and extension headers of one packet, decoded. `Copy`, and the same in the simulator and on a real socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransportHeader {
    /// The base transport header.
    pub bth: Bth,
    /// The extension headers that the opcode asks for: their kind always equals `bth.opcode.extension()`.
    pub extension: Extension,
    /// The SRQ number of an XRCETH; zero where the opcode has none.
    pub xrc_srq: u32,
}

/// The base transport header (IBTA vol. 1, 9.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bth {
    /// What the packet is.
    pub opcode: Opcode,
    /// SE: the receiver's completion is a solicited event.
    pub solicited: bool,
    /// M: the migration state. RoCE sends 1 (migrated) by habit of InfiniBand; rxe sends 0.
    pub migrated: bool,
    /// How many pad bytes follow the payload, 0–3.
    pub pad: u8,
    /// The partition.
    pub partition: PartitionKey,
    /// FECN: the packet met congestion (InfiniBand).
    pub fecn: bool,
    /// BECN: the packet answers one that met congestion; set in a CNP.
    pub becn: bool,
    /// The queue pair that the packet goes to.
    pub destination: Qpn,
    /// A: an acknowledgement is asked for.
    pub acknowledge: bool,
    /// The packet sequence number.
    pub psn: Psn,
}

/// The extension headers of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extension {
    /// None.
    None,
    /// RETH.
    Reth(Reth),
    /// RETH and immediate data.
    RethImmediate(Reth, u32),
    /// Immediate data, in host order of the network's 32 bits.
    Immediate(u32),
    /// IETH: the remote key to invalidate.
    Invalidate(u32),
    /// AETH.
    Aeth(Aeth),
    /// AETH and the original value of the memory that an atomic operation changed.
    AethAtomic(Aeth, u64),
    /// AtomicETH.
    Atomic(AtomicEth),
    /// DETH.
    Deth(Deth),
    /// DETH and immediate data.
    DethImmediate(Deth, u32),
    /// The reserved bytes of a CNP.
    Notification,
}

/// RDMA extended transport header (IBTA vol. 1, 9.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reth {
    /// Where the remote memory starts.
    pub address: u64,
    /// The remote key.
    pub rkey: u32,
    /// The length of the whole message in bytes.
    pub length: u32,
}

/// Atomic extended transport header (IBTA vol. 1, 9.3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicEth {
    /// The address of the 8 bytes, a multiple of 8.
    pub address: u64,
    /// The remote key.
    pub rkey: u32,
    /// The value to swap in, or to add.
    pub swap_or_add: u64,
    /// The value to compare with; zero for fetch and add.
    pub compare: u64,
}

/// Datagram extended transport header (IBTA vol. 1, 9.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deth {
    /// The queue key.
    pub qkey: u32,
    /// The sender's queue pair.
    pub source: Qpn,
}

/// ACK extended transport header (IBTA vol. 1, 9.3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aeth {
    /// What became of the request.
    pub syndrome: Syndrome,
    /// How many requests the responder has completed.
    pub msn: Msn,
}

/// The AETH's syndrome (IBTA vol. 1, table 45). Every byte is one of these, so decoding never fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Syndrome {
    /// A positive acknowledgement and an end-to-end credit code, 0–31 (31: credits do not apply).
    Ack {
        /// The five bits of the credit code; see [`Syndrome::credits`].
        credit: u8,
    },
    /// Receiver not ready: try again after the timer.
    RnrNak(RnrTimer),
    /// A negative acknowledgement.
    Nak(NakCode),
    /// A byte that the standard reserves.
    Reserved(u8),
}

/// Why a request was refused (IBTA vol. 1, table 47).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NakCode {
    /// A packet was missed: PSN sequence error.
    SequenceError,
    /// The request was malformed or not allowed: invalid request.
    InvalidRequest,
    /// The memory key, bounds or rights did not hold: remote access error.
    RemoteAccess,
    /// The responder failed: remote operational error.
    RemoteOperational,
    /// Invalid reliable-datagram request.
    InvalidRdRequest,
}

/// The 5-bit code of a receiver-not-ready timer (IBTA vol. 1, table 46).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct RnrTimer(u8);

impl RnrTimer {
    /// The timer whose code is the low five bits of `code`.
    pub const fn from_code(code: u8) -> Self {
        Self(code & 0x1f)
    }

    /// The five bits.
    pub const fn code(self) -> u8 {
        self.0
    }
}
