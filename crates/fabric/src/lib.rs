//! Packet-level simulator of RDMA fabrics.
//!
//! A [`Plan`](plan::Plan) says everything that a run needs: nodes, links, switches, hosts, flows. The
//! [`engine`] takes it and returns [`Results`](results::Results): what became of each flow, and what every port and device
//! counted. Both are plain values, so a program can make one and read the other:
//!
//! ```
//! use softfabric_fabric::engine::{RunOptions, run};
//! use softfabric_fabric::scenario::Scenario;
//!
//! let text = r#"
//!     name = "two into one"
//!     [topology]
//!     kind = "star"
//!     hosts = 3
//!     [[workload]]
//!     kind = "incast"
//!     bytes = "1MB"
//! "#;
//! let plan = Scenario::from_toml(text, "two.toml")?.plan()?;
//! let results = run(&plan, &mut RunOptions::default())?;
//! assert!(results.flows.iter().all(|flow| flow.finished.is_some()));
//! assert_eq!(results.lossless_drops, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`scenario`], [`import`] | files that people and other simulators write, made into plans |
//! | [`topology`], [`workload`], [`job`], [`preset`] | what plans are made of |
//! | [`plan`] | what the engine takes, and what contradicts itself in it |
//! | [`tcp`] | TCP/IP hosts: connections, and what they cost processors |
//! | [`subnet`] | what an InfiniBand subnet manager makes of a network |
//! | [`engine`] | time passes |
//! | [`results`], [`export`] | what is left, and its forms |
//! | [`batch`], [`compare`] | many runs at once, and one scenario over several technologies |
//! | [`tune`] | a search for settings of ECN, DCQCN and PFC |
//! | [`headroom`], [`theory`] | arithmetic beside the simulation: PFC headroom, DCQCN's fluid model, ideal times |

// The sample run of the tests of `export` is also that of the command line's tests, under this name.
#[cfg(test)]
extern crate self as softfabric_fabric;

pub mod batch;
pub mod compare;
pub mod engine;
pub mod export;
pub mod headroom;
pub mod import;
pub mod job;
pub mod plan;
pub mod preset;
pub mod results;
pub mod scenario;
pub mod subnet;
pub mod tcp;
pub mod theory;
pub mod topology;
pub mod tune;
pub mod workload;
