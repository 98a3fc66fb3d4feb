//! The RDMA transport of one NIC, without I/O and without a clock.

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
mod timer;
mod work;

pub use address::AddressVector;
pub use completion::{
    Attachment, CompletedOperation, Completion, CompletionFlags, CompletionQueueError,
    CompletionQueueId, Status,
};
pub use config::{
    Acknowledgement, Arbitration, ClassChoice, ClassOrder, Coalescing, DeviceConfig, FrameSizing,
    Limits, LossRecovery, Mtu, NotificationPoint, NotificationScope, PaceRounding, Pacing,
    RateChange, ResponseOrder,
};
pub use device::Device;
pub use event::Event;
pub use memory::{
    Access, AtomicOperation, BindError, Domain, KeyFault, LengthsOnly, Memory, MemoryFault,
    RegionInit, RegisterError, ReleaseKeyError, Segment, WindowKind,
};
pub use packet::{Arrival, Transmit};
pub use queue_pair::{
    AckTimeout, Attributes, Capacity, CreateError, Migration, Modify, ModifyError, QueuePairInit,
    QueuePairStatistics, QueuePairStatus, QueuePairType, RnrRetry, Settings, State, Transition,
};
pub use receive_queue::{SharedQueueError, SharedQueueId, SharedQueueInit};
pub use work::{
    BindWindow, Datagram, LocalSegment, LocalSegments, PostError, ReceiveRequest, Remote,
    SendFlags, SendOperation, SendRequest,
};
