//! The RDMA transport headers (IBTA vol. 1, chapter 9): what follows UDP in RoCEv2, and the LRH or GRH elsewhere.
//!
//! ```text
//! BTH (12 B) | the extension headers of its opcode | payload | pad | ICRC
//! ```

mod codec;
mod grh;
mod header;
mod icrc;
mod opcode;
mod packet;
mod syndrome;
#[cfg(test)]
pub(crate) mod tests;

pub use grh::Grh;
pub use header::{
    Aeth, AtomicEth, Bth, Deth, Extension, NakCode, Reth, RnrTimer, Syndrome, TransportHeader,
};
pub use icrc::{HiddenFields, ICRC_LENGTH, Icrc, IdentificationSolver};
pub use opcode::{ExtensionKind, Opcode, Operation, Position, Service};
pub use packet::{RdmaPacket, Reserved, pad_of};
