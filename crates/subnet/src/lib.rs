//! InfiniBand subnets, without I/O and without a clock: what is cabled, how packets are routed, whether they can lock up.
//!
//! ```text
//!  files ──► Subnet ──► assign_lids ──► RoutingView ──► engine ──► Routes ──► files
//!  (.net, ibnetdiscover)                                             │
//!                                                                    └──► check: loops of credits, broken paths
//! ```
//!
//! [`Subnet`] is the graph: nodes, ports, cables, identifiers. A [`routing::RoutingEngine`] turns it into
//! [`routing::Routes`]: forwarding tables, and which service level and lane each path takes. [`check`](mod@check) judges
//! routes of any engine, ours or not. A [`manager::Manager`] does all of that to a subnet that it knows by its answers only.
//! An [`agent::Fabric`] gives such answers for every node of a graph, and an [`ibsim::Server`] lets other programs ask.
//! Nothing here iterates in hash order, so equal subnets have equal routes.
//!
//! ```
//! use softfabric_subnet::check::check;
//! use softfabric_subnet::generate::fat_tree;
//! use softfabric_subnet::routing::{FatTree, RoutingEngine, RoutingView};
//!
//! let mut subnet = fat_tree(4, 3)?;
//! subnet.assign_lids(0)?;
//! let view = RoutingView::new(&subnet);
//! let routes = FatTree::default().route(&view)?;
//! let report = check(&view, &routes);
//! assert!(report.credit_loop.is_none() && report.broken.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agent;
pub mod check;
pub mod format;
pub mod generate;
pub mod ibsim;
pub mod manager;
pub mod routing;
mod subnet;
pub mod umad;

pub use subnet::{BuildError, LidError, Node, NodeId, NodeKind, Port, PortRef, Subnet};
