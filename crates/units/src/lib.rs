//! Quantities with units, identifiers, PSN arithmetic and seeded randomness.
//!
//! Every public function of softfabric speaks in these types, never in bare numbers: a [`Time`] is not a [`Span`], a
//! [`Rate`] is not a number of bits, and a [`Psn`] wraps where the wire wraps. All arithmetic is on integers, so equal
//! inputs give equal results on every machine.
//!
//! ```
//! use softfabric_units::{Bytes, Rate, Time};
//!
//! let line = Rate::gbps(400);
//! let sent = Time::ZERO + line.time_for(Bytes::new(4096));
//! assert_eq!(sent.as_picos(), 4096 * 20);
//! assert_eq!("25Gb/s".parse::<Rate>().unwrap(), Rate::gbps(25));
//! ```

mod bytes;
mod identifiers;
mod parse;
mod psn;
mod random;
mod rate;
mod time;

pub use bytes::Bytes;
pub use identifiers::{Class, ClassMask, Gid, Guid, Lid, MacAddress, PartitionKey, Qpn};
pub use parse::ParseQuantityError;
pub use psn::{Msn, Psn};
pub use random::Random;
pub use rate::Rate;
pub use time::{Span, Time};
