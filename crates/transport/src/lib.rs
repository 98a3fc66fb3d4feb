//! To be written.

pub mod rate;
