//! The one table of counters.
//!
//! A counter is a row: its id, its unit, a sentence of help, and the names that real systems give it. Whatever
//! softfabric counts, in the simulator or in the real adapter, it counts here, so that a report, a Prometheus scrape and
//! a diagnosis speak of the same thing.
//!
//! There are four scopes, each with a fixed array of values that is cheap to count into:
//!
//! ```text
//! PortCounters     one per port       packets, bytes, errors, waits          /sys/class/infiniband/…/counters
//! ClassCounters    one per port and   pause frames and durations, marks,     ethtool -S, SONiC COUNTERS_DB
//!                  traffic class      drops, watermarks
//! DeviceCounters   one per RDMA       CNPs, retransmissions, sequence        /sys/class/infiniband/…/hw_counters
//!                  device             errors, timeouts
//! StackCounters    one per TCP/IP     segments, retransmissions, processor   /proc/net/snmp, /proc/net/netstat
//!                  host               time
//! ```
//!
//! `{n}` in a name stands for the traffic class.

mod key;
mod series;
mod table;

pub use key::Counter;
pub use series::{Reduce, Sample, Series};
pub use table::{
    ClassCounter, ClassCounters, CounterDefinition, DeviceCounter, DeviceCounters, Kind,
    PortCounter, PortCounters, StackCounter, StackCounters, Unit,
};
