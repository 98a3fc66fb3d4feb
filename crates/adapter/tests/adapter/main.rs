//! Devices of this very process.

mod loopback;
