//! What benchmarks and measuring programs share.

#![allow(dead_code, reason = "each program uses its own part of this")]

pub(crate) mod digest;
pub(crate) mod plans;
pub(crate) mod process;
