//! The software RDMA NIC: the transport of `softfabric-transport`, driven with real bytes and real time.
//!
//! ```text
//!  program ── verbs ──► Nic ── with · poll ──► Device<ProcessMemory>
//!                        │
//!                        ├─ in this process: straight from one queue pair to the other
//!                        ├─ on this host: shared memory
//!                        └─ anywhere: RoCEv2 over UDP 4791
//! ```
//!
//! [`devices`] lists the RDMA devices that the host's network interfaces make. [`Nic::open`] opens one.
//! [`Nic::with`] gives the transport's [`Device`](softfabric_transport::Device) under the device's lock: all verbs are
//! its methods. [`Nic::poll`] takes completions.
//!
//! # Two queue pairs of one process
//!
//! ```
//! use softfabric_adapter::{Nic, ProcessMemory, Route, Settings, devices};
//! use softfabric_transport::*;
//! use softfabric_units::{Psn, Qpn};
//!
//! let settings = Settings::default();
//! let info = devices(&settings)?.pop().expect("the loopback interface is a device");
//! let mut memory = vec![0_u8; 4096];
//! memory[..5].copy_from_slice(b"hello");
//! let base = memory.as_mut_ptr() as u64;
//! // SAFETY: `memory` outlives its registration.
//! let nic = unsafe { Nic::open(&info, &settings)? };
//!
//! // Objects are made with the transport's own calls.
//! let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
//! let (queue, key, qps) = nic.with(|device, _now| {
//!     let domain = device.alloc_domain();
//!     let key = device.register_memory(domain, &RegionInit::new(base, 4096, access)).unwrap();
//!     let queue = device.create_cq(16).unwrap();
//!     let init = QueuePairInit::new(QueuePairType::ReliableConnection, domain, queue);
//!     let qps = [(); 2].map(|()| device.create_qp(&init).unwrap());
//!     (queue, key, qps)
//! });
//!
//! // A path is looked up once; `fit` adapts the change to the link before the transport gets it.
//! let path = nic.path(0, &Route::to(nic.gids()[0].gid))?;
//! for (qp, peer) in [(qps[0], qps[1]), (qps[1], qps[0])] {
//!     let (mtu, psn) = (Mtu::BYTES_1024, Psn::new(0));
//!     let mut ready = Modify::ready_to_receive_reliable(path, mtu, peer, psn);
//!     nic.fit(&mut ready);
//!     nic.with(|device, now| {
//!         device.modify_qp(now, qp, &Modify::initialize(Access::REMOTE_WRITE)).unwrap();
//!         device.modify_qp(now, qp, &ready).unwrap();
//!         let send = Modify::ready_to_send_reliable(psn, AckTimeout::from_code(14));
//!         device.modify_qp(now, qp, &send).unwrap();
//!     });
//! }
//!
//! let local = LocalSegment { address: base, length: 5, key };
//! let write = SendOperation::Write(Remote { address: base + 2048, key });
//! nic.with(|device, now| device.post_send(now, qps[0], SendRequest::new(7, write, local)))?;
//! let mut done = Vec::new();
//! while nic.poll(queue, 16, |completion| done.push(completion)) == 0 {}
//! assert_eq!((done[0].id, done[0].status), (7, Status::Success));
//! assert_eq!(memory[2048..2053], *b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Memory
//!
//! Addresses are pointers of the process: [`RegionInit::new`](softfabric_transport::RegionInit::new) with the pointer
//! registers memory that stays mapped. Where pages may come and go (on-demand paging), `region:
//! ProcessMemory::CHECKED` makes every access one that can fail. [`ProcessMemory::is_reachable`] tells whether a range
//! is mapped, so that a registration can be refused.

mod clock;
pub mod cm;
mod faults;
mod host;
mod memory;
mod neighbours;
mod nic;
mod port;
mod record;
mod settings;

pub use faults::{Fault, Point, Rule, RuleError};
pub use host::{DeviceInfo, GidEntry, HostError, devices};
pub use memory::{Captured, Incoming, Payload, Pieces, ProcessMemory};
pub use neighbours::{Counters, JoinError, Neighbour, Report, report};
pub use nic::{
    ArrivedMad, AttachError, EventSink, GeneralServices, MAD_LENGTH, MadSink, Nic, OpenError,
    PathError, Route, Statistics,
};
pub use record::RecordError;
pub use settings::{CongestionControl, Settings, SettingsError, VARIABLE};
