//! What work on packets costs a host's processors.
//!
//! ```text
//!   write: system call, copy, stack per offloaded segment ─► NIC cuts it (TSO)
//!   wire ─► ring ─ coalescing ─► interrupt ─► driver per frame, merged (GRO), stack per merged segment ─► wake-up
//!                                                                        read: system call, copy ◄────────┘
//! ```
//!
//! Both are the model of Linux with segmentation offload and aligned receive steering: all work of a connection is one
//! core's. Interrupt work goes before the application's. What a core has not done yet delays what follows on it, and shows
//! as latency, as a receive window that shuts, and as frames that find the ring full.

use softfabric_units::{Bytes, Rate, Span, Time};

/// The costs, and the NIC's batching. All are for one core; the defaults fit what Cai, Chaudhary, Vuppalapati, Hwang and Agarwal
/// measured ("Understanding Host Network Stack Overheads", SIGCOMM 2021) on 3.4 GHz Xeons with 9,000 B frames: a receiving
/// core takes about 42 Gb/s, half of that time in copies, and a sending core feeds about twice as much. With 64 KiB a merged segment,
/// 42 Gb/s are 12.5 µs each: 6.1 µs of copy, 7.3 frames of 350 ns, 2.5 µs of stack, and a system call with its wake-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuModel {
    /// Cores that share the connections, by their number.
    pub cores: u32,
    /// A read or a write, without its copy.
    pub system_call: Span,
    /// To wake the application that waits in a read.
    pub wake_up: Span,
    /// How fast a write is copied: the source is in the cache.
    pub write_copy: Rate,
    /// How fast a read is copied: half of the time that the study's receivers spend.
    pub read_copy: Rate,
    /// The stack's way for a segment, as offloaded or merged, each way.
    pub segment: Span,
    /// Driver, buffer and merging for each frame that comes in.
    pub frame: Span,
    /// The stack's way for an acknowledgement without data.
    pub acknowledgement: Span,
    /// To take an interrupt and start polling.
    pub interrupt: Span,
    /// The NIC waits so long after a frame until it interrupts. 16 µs: `MLX5E_PARAMS_DEFAULT_RX_CQ_MODERATION_USEC` of Linux.
    pub coalescing: Span,
    /// Or for so many frames. 32: `MLX5E_PARAMS_DEFAULT_RX_CQ_MODERATION_PKTS` of Linux.
    pub coalesced_frames: u32,
    /// Frames that one poll takes at most. 64: `NAPI_POLL_WEIGHT` of Linux.
    pub budget: u32,
    /// Frames that a core's receive ring holds. 1,024: `MLX5E_PARAMS_DEFAULT_LOG_RQ_SIZE` of Linux is 10.
    pub ring: u32,
    /// The largest segment that is offloaded or merged. 64 KiB: `GSO_LEGACY_MAX_SIZE` of Linux.
    pub offload: Bytes,
}

impl Default for CpuModel {
    fn default() -> Self {
        Self {
            cores: 8,
            system_call: Span::nanos(300),
            wake_up: Span::micros(1),
            write_copy: Rate::gbps(180),
            read_copy: Rate::gbps(86),
            segment: Span::nanos(2_500),
            frame: Span::nanos(350),
            acknowledgement: Span::nanos(500),
            interrupt: Span::micros(1),
            coalescing: Span::micros(16),
            coalesced_frames: 32,
            budget: 64,
            ring: 1_024,
            offload: Bytes::kib(64),
        }
    }
}

/// What processor time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    SystemCall,
    Copy,
    Stack,
    Interrupt,
}

/// Time of all cores, by what it was spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// System calls and wake-ups.
    pub system_calls: Span,
    /// Copies.
    pub copies: Span,
    /// The stack and the driver.
    pub stack: Span,
    /// Interrupts.
    pub interrupts: Span,
}

impl CpuTime {
    pub(super) fn add(&mut self, work: Work, span: Span) {
        *match work {
            Work::SystemCall => &mut self.system_calls,
            Work::Copy => &mut self.copies,
            Work::Stack => &mut self.stack,
            Work::Interrupt => &mut self.interrupts,
        } += span;
    }

    /// All of it.
    pub fn total(&self) -> Span {
        self.system_calls + self.copies + self.stack + self.interrupts
    }
}

/// One core's time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Core {
    busy_until: Time,
}

impl Core {
    /// The application's work: it is done when this says.
    pub(super) fn run(&mut self, now: Time, span: Span) -> Time {
        self.busy_until = self.busy_until.max(now) + span;
        self.busy_until
    }

    /// An interrupt's work: it starts now, and what waits waits longer.
    pub(super) fn interrupt(&mut self, now: Time, span: Span) -> Time {
        self.run(now, span);
        now + span
    }
}
