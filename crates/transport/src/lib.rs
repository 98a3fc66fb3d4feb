//! The RDMA transport of one NIC, without I/O and without a clock.
//!
//! A [`Device`] holds everything that a NIC holds: queue pairs and completion queues, memory keys, the state of every
//! connection, rate control, and the arbiter that decides which packet leaves next. It does nothing by itself. A driver
//! tells it what happened and when, and asks what follows:
//!
//! ```text
//!   verbs          post_send · post_recv · bind · modify …           poll_completion · poll_event
//!                         │                                                    ▲
//!                 ┌───────▼────────────────────────────────────────────────────┴──────┐
//!                 │ requester        send queue → packets, responses → completions    │
//!      Device     │ responder        packets → checks → memory, receive queue, ACKs   │
//!                 │ arbitration      lanes of classes, turns of queue pairs           │
//!                 │ rate             how fast each queue pair may send                │
//!                 └───────▲────────────────────────────────────────────────────┬──────┘
//!                         │                                                    ▼
//!   driver         handle_packet(now) · handle_timeout(now)          poll_transmit(now) · poll_timeout
//! ```
//!
//! Two worlds drive it. A simulator gives it virtual time and [`LengthsOnly`] memory; a software NIC gives it real time
//! and real bytes. Both make it emit the same packets. Paused classes and missing credits are the driver's business: it
//! just does not ask for packets of such a class.
//!
//! What a peer sends leads to an answer, a completion, or a counter: never to a panic.
//!
//! # One write between two devices
//!
//! ```
//! use softfabric_transport::*;
//! use softfabric_units::{ClassMask, Psn, Qpn, Rate, Time};
//!
//! // A device with one reliable queue pair and 1 MiB of registered memory.
//! fn nic() -> (Device<LengthsOnly>, CompletionQueueId, Qpn, u32) {
//!     let mut nic = Device::new(DeviceConfig::new(Rate::gbps(100)), LengthsOnly::new());
//!     let domain = nic.alloc_domain();
//!     let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
//!     let key = nic.register_memory(domain, &RegionInit::new(0, 1 << 20, access)).unwrap();
//!     let queue = nic.create_cq(16).unwrap();
//!     let service = QueuePairType::ReliableConnection;
//!     let qp = nic.create_qp(&QueuePairInit::new(service, domain, queue)).unwrap();
//!     (nic, queue, qp, key)
//! }
//! let (mut a, queue, qp_a, key_a) = nic();
//! let (mut b, _, qp_b, key_b) = nic();
//!
//! // Each is led from RESET to RTS, and told of the other.
//! let (now, path) = (Time::ZERO, AddressVector::default());
//! for (nic, qp, peer) in [(&mut a, qp_a, qp_b), (&mut b, qp_b, qp_a)] {
//!     let (mtu, psn) = (Mtu::BYTES_1024, Psn::new(0));
//!     nic.modify_qp(now, qp, &Modify::initialize(Access::REMOTE_WRITE)).unwrap();
//!     nic.modify_qp(now, qp, &Modify::ready_to_receive_reliable(path, mtu, peer, psn)).unwrap();
//!     nic.modify_qp(now, qp, &Modify::ready_to_send_reliable(psn, AckTimeout::from_code(14))).unwrap();
//! }
//!
//! // 3000 bytes are written from A to B: three packets, carried by hand.
//! let local = LocalSegment { address: 0, length: 3000, key: key_a };
//! let write = SendOperation::Write(Remote { address: 4096, key: key_b });
//! a.post_send(now, qp_a, SendRequest::new(7, write, local)).unwrap();
//! let mut packets = 0;
//! let (mut from, mut to) = (&mut a, &mut b);
//! for _direction in 0..2 {
//!     while let Some(packet) = from.poll_transmit(now, ClassMask::ALL) {
//!         packets += 1;
//!         to.handle_packet(now, Arrival {
//!             header: &packet.header,
//!             payload: packet.payload,
//!             payload_length: packet.payload_length,
//!             congestion: false,
//!             source: &path,
//!             destination: None,
//!             grh: None,
//!         });
//!     }
//!     std::mem::swap(&mut from, &mut to);
//! }
//! assert_eq!(packets, 4, "three packets of data and an acknowledgement");
//! let done = a.poll_completion(queue).unwrap();
//! assert_eq!((done.id, done.status), (7, Status::Success));
//! ```
//!
//! # Where things are
//!
//! | module | what it does |
//! |---|---|
//! | `device` | the driver's calls and the verbs; objects by number |
//! | `queue_pair` | states, attributes, table of transitions, pacing |
//! | `requester` | the send queue: packets out, answers in, recovery |
//! | `responder` | requests in: order, checks, execution, answers out |
//! | `memory` | keys, regions, windows, and the [`Memory`] trait behind them |
//! | `arbitration` | lanes of traffic classes, turns of queue pairs |
//! | `notification` | congestion marks and notifications |
//! | [`rate`] | rate control of a queue pair |
//!
//! Clauses of the InfiniBand Architecture Specification, volume 1, are named at the lines that implement them.
//!
//! # What the driver owes
//!
//! - It says where a packet came from: [`Arrival::source`] has the address of the sender as the network gives it. A
//!   connected queue pair takes packets of its peer's address alone, and counts the others.
//! - It has checked the ICRC, and that the packet was sent to an address of this device.
//! - Multicast datagrams need [`Arrival::destination`]. To join and leave groups on the network, and to give a queue
//!   pair's own datagrams back to the members on this device, is the driver's.
//! - Both ends of a link inside one host get the same [`Mtu::local`].
//!
//! # Selective repeat on the wire
//!
//! [`LossRecovery::SelectiveRepeat`] needs no header of its own. The responder keeps packets that arrive ahead, and
//! answers each with a NAK "PSN sequence error" whose PSN is the missing one, as ever; the MSN field, which means
//! nothing there, names the PSN that arrived. So a requester learns what is missing and what is not. Both ends of a
//! connection have to agree on it.

mod address;
mod arbitration;
mod completion;
mod config;
mod core;
mod device;
mod event;
mod memory;
mod notification;
mod packet;
mod queue_pair;
pub mod rate;
mod receive_queue;
mod requester;
mod responder;
mod table;
mod timer;
mod work;

pub use address::AddressVector;
pub use completion::{
    Attachment, CompletedOperation, Completion, CompletionFlags, CompletionQueueError,
    CompletionQueueId, CompletionQueueStatus, Status,
};
pub use config::{
    Acknowledgement, Arbitration, ClassChoice, ClassOrder, Coalescing, DeviceConfig, FrameSizing,
    Limits, LossRecovery, Mtu, NotificationPoint, NotificationScope, PaceRounding, Pacing,
    QueuePairNumbers, RateChange, ResponseOrder, WithinInterval,
};
pub use device::{Device, MulticastError};
pub use event::Event;
pub use memory::{
    Access, AtomicOperation, BindError, Domain, KeyFault, LengthsOnly, Memory, MemoryFault,
    NULL_REGION, PlaceError, RegionChange, RegionInit, RegionRange, RegisterError, ReleaseKeyError,
    ReregisterError, Segment, WindowKind,
};
pub use packet::{Arrival, Transmit};
pub use queue_pair::{
    AckTimeout, Attributes, Capacity, CreateError, GENERAL_SERVICES_QKEY, Migration, Modify,
    ModifyError, QueuePairInit, QueuePairStatistics, QueuePairStatus, QueuePairType, RnrRetry,
    Settings, State, Transition,
};
pub use receive_queue::{
    SharedQueueError, SharedQueueId, SharedQueueInit, SharedQueueStatus, XrcDomain, XrcError,
    XrcQueueInit,
};
pub use work::{
    BindWindow, Datagram, LocalSegment, LocalSegments, PostError, ReceiveRequest, Remote,
    SendFlags, SendOperation, SendRequest,
};
