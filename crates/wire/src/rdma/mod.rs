//! The RDMA transport headers (IBTA vol. 1, chapter 9): what follows UDP in RoCEv2, and the LRH or GRH elsewhere.
//!
//! ```text
//! BTH (12 B) | the extension headers of its opcode | payload | pad | ICRC
//! ```

mod codec;
mod header;
mod opcode;
mod syndrome;
#[cfg(test)]
pub(crate) mod tests;

pub use header::{
    Aeth, AtomicEth, Bth, Deth, Extension, NakCode, Reth, RnrTimer, Syndrome, TransportHeader,
};
pub use opcode::{ExtensionKind, Opcode, Operation, Position, Service};
