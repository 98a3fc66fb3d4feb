//! Helpers that the tests of several crates share: two devices in lockstep under a virtual clock, the faulty wire between
//! them, and memory made of bytes; and other people's programs, where a machine has them.
//!
//! ```
//! use softfabric_testkit::{ByteMemory, Pair, PairOptions, A, B};
//! use softfabric_transport::{Remote, SendOperation};
//!
//! let mut pair = Pair::<ByteMemory>::reliable(PairOptions::default());
//! pair.fill(A, 0, b"forty-two");
//! let remote = Remote { address: 4096, key: pair.key(B) };
//! pair.send(A, 1, SendOperation::Write(remote), 0, 9);
//! pair.run();
//! assert_eq!(pair.bytes(B, 4096, 9), b"forty-two");
//! assert_eq!(pair.completions(A).len(), 1);
//! ```

mod bytes;
mod pair;
pub mod programs;
mod wire;

pub use bytes::{ByteMemory, Carry};
pub use pair::{A, B, End, Pair, PairOptions, Side, path_to};
pub use wire::{Fate, Faults, Rule, Sent, Wire};
