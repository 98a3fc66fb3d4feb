//! What one NIC does where the standard leaves a choice: plain values, fixed when the device is made.

use softfabric_units::{Bytes, Class, Qpn, Rate, Span};

use crate::rate::RateControlConfig;

/// The most payload of one packet: 256, 512, 1024, 2048 or 4096 bytes on real links.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mtu {
    bytes: u32,
    /// Of a link inside one host: no port's MTU limits it.
    local: bool,
}

impl Mtu {
    /// 256 bytes.
    pub const BYTES_256: Self = Self::wire(256);
    /// 512 bytes.
    pub const BYTES_512: Self = Self::wire(512);
    /// 1024 bytes.
    pub const BYTES_1024: Self = Self::wire(1024);
    /// 2048 bytes.
    pub const BYTES_2048: Self = Self::wire(2048);
    /// 4096 bytes.
    pub const BYTES_4096: Self = Self::wire(4096);

    const fn wire(bytes: u32) -> Self {
        Self {
            bytes,
            local: false,
        }
    }

    /// The standard MTU of `bytes` bytes (IBTA vol. 1, 7.7.8), if it is one.
    pub const fn standard(bytes: u32) -> Option<Self> {
        match bytes {
            256 | 512 | 1024 | 2048 | 4096 => Some(Self::wire(bytes)),
            _ => None,
        }
    }

    /// An MTU that no link has, such as the 1000 bytes of some published simulations; 1 to 65,535 bytes.
    pub const fn custom(bytes: u16) -> Option<Self> {
        if bytes == 0 {
            None
        } else {
            Some(Self::wire(bytes as u32))
        }
    }

    /// The MTU of a link that does not leave the host: a multiple of 4096 bytes, up to 1 MiB. Only connected queue pairs
    /// take it, both of them; datagrams stay with the device's MTU.
    pub const fn local(bytes: u32) -> Option<Self> {
        if bytes == 0 || bytes > 1 << 20 || !bytes.is_multiple_of(4096) {
            return None;
        }
        Some(Self { bytes, local: true })
    }

    /// The number of bytes.
    #[inline]
    pub const fn as_u32(self) -> u32 {
        self.bytes
    }

    /// Whether it is of a link inside one host.
    pub const fn is_local(self) -> bool {
        self.local
    }
}

/// The numbers that a device gives to queue pairs which ask for none.
///
/// They are given in turn, so that a number which was freed comes back only after all others: packets that are still on
/// their way to the old queue pair rarely meet a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuePairNumbers {
    first: u32,
    last: u32,
}

impl QueuePairNumbers {
    /// All that no purpose is reserved for: 2 to 0xfffffe.
    pub const ALL: Self = Self {
        first: 2,
        last: 0xff_fffe,
    };

    /// The numbers from `first` to `last`; `None` where there are none, or one of them is reserved: 0 and 1 are
    /// management, 0xffffff is multicast.
    pub const fn new(first: Qpn, last: Qpn) -> Option<Self> {
        let (first, last) = (first.as_u32(), last.as_u32());
        if first < Self::ALL.first || last > Self::ALL.last || first > last {
            return None;
        }
        Some(Self { first, last })
    }

    /// The first number.
    pub const fn first(self) -> Qpn {
        Qpn::new(self.first)
    }

    /// How many there are.
    pub const fn count(self) -> u32 {
        self.last - self.first + 1
    }

    /// The number after `number`, going around.
    pub(crate) fn after(self, number: Qpn) -> Qpn {
        if number.as_u32() >= self.last || number.as_u32() < self.first {
            self.first()
        } else {
            Qpn::new(number.as_u32() + 1)
        }
    }
}

/// Everything that may differ between one NIC and another.
#[derive(Clone, Copy, Debug)]
pub struct DeviceConfig {
    /// The rate of the port: where rate control starts, and what DWRR shares.
    pub line_rate: Rate,
    /// The port's MTU: the longest datagram, and the most that a path MTU may be, but for links inside the host.
    pub mtu: Mtu,
    /// How requests are acknowledged.
    pub acknowledgement: Acknowledgement,
    /// How marked packets are answered.
    pub notification: NotificationPoint,
    /// The traffic class of congestion notification packets.
    pub notification_class: ClassChoice,
    /// What happens after a loss.
    pub recovery: LossRecovery,
    /// Who sends next.
    pub arbitration: Arbitration,
    /// How a rate becomes the time of the next packet.
    pub pacing: Pacing,
    /// The rate control of queue pairs that do not ask for their own.
    pub rate_control: RateControlConfig,
    /// The most that objects may ask for.
    pub limits: Limits,
    /// The numbers of queue pairs that ask for none.
    pub qp_numbers: QueuePairNumbers,
}

impl DeviceConfig {
    /// A NIC on a port of `line_rate`: acknowledges every 16 packets, goes back N, notifies every 50 µs, control first.
    pub fn new(line_rate: Rate) -> Self {
        Self {
            line_rate,
            mtu: Mtu::BYTES_4096,
            acknowledgement: Acknowledgement::default(),
            notification: NotificationPoint::default(),
            notification_class: ClassChoice::Explicit(Class::new(6)),
            recovery: LossRecovery::default(),
            arbitration: Arbitration::default(),
            pacing: Pacing::default(),
            rate_control: RateControlConfig::None,
            limits: Limits::default(),
            qp_numbers: QueuePairNumbers::ALL,
        }
    }
}

/// A traffic class that is fixed, or that of the traffic which is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClassChoice {
    /// The class of the queue pair's path.
    Same,
    /// This one.
    Explicit(Class),
}

impl ClassChoice {
    /// The class, for a queue pair whose traffic is in `class`.
    pub const fn or(self, class: Class) -> Class {
        match self {
            Self::Same => class,
            Self::Explicit(class) => class,
        }
    }
}

/// How requests are acknowledged (IBTA vol. 1, 9.7.5.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledgement {
    /// How many packets one ACK may stand for.
    pub coalescing: Coalescing,
    /// The traffic class of ACKs and NAKs. Read responses stay in the class of the queue pair.
    pub class: ClassChoice,
    /// Whether ACKs advertise end-to-end credits (IBTA vol. 1, 9.7.7.2). Without, and with a shared receive queue, the
    /// code 31 says that credits do not apply.
    pub credits: bool,
    /// Whether a duplicate is acknowledged (IBTA vol. 1, 9.7.5.1.3 wants it; some simulators do not).
    pub duplicates: bool,
    /// After how long a gap is reported again while it stays. `None`: a gap is reported once (IBTA vol. 1, 9.7.5.1.4).
    pub nak_interval: Option<Span>,
}

impl Default for Acknowledgement {
    fn default() -> Self {
        Self {
            coalescing: Coalescing::AtMost(16),
            class: ClassChoice::Same,
            credits: false,
            duplicates: true,
            nak_interval: None,
        }
    }
}

/// How many packets one ACK may stand for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coalescing {
    /// Every request packet has an ACK of its own, however many wait.
    EveryPacket,
    /// An ACK whenever the requester asks for one, and at the latest after so many packets. ACKs that wait are merged.
    AtMost(u16),
}

/// What the receiver does about packets that met congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotificationPoint {
    /// Nothing.
    Off,
    /// It sends congestion notification packets (annex A17.9), at most one per interval.
    Cnp {
        /// The least time between two.
        interval: Span,
        /// What the interval counts for.
        scope: NotificationScope,
        /// What becomes of a mark within the interval.
        within: WithinInterval,
    },
    /// It sets BECN in the ACK of the marked packet, as some published simulations do.
    OnAcknowledge,
    /// What InfiniBand does: BECN in the ACK of the marked packet, and at once a congestion notification packet for what
    /// has no ACK: responses, and requests of unreliable services (annex A10.2.1).
    Becn,
}

impl Default for NotificationPoint {
    fn default() -> Self {
        Self::Cnp {
            interval: Span::micros(50),
            scope: NotificationScope::QueuePair,
            within: WithinInterval::Forgotten,
        }
    }
}

/// What becomes of a mark that arrives less than an interval after the last notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WithinInterval {
    /// Nothing: only a later mark leads to a notification. NICs that keep a least time between CNPs do this.
    #[default]
    Forgotten,
    /// It is answered when the interval ends, as DCQCN was published (Zhu et al., SIGCOMM 2015, 3.1).
    Deferred,
}

/// What the interval between two notifications counts for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotificationScope {
    /// Each queue pair.
    QueuePair,
    /// Each sender address, over all queue pairs.
    Destination,
}

/// What a requester and a responder do after a loss: both ends of a connection must agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossRecovery {
    /// The responder drops what is ahead; the requester sends again from the lost packet on (IBTA vol. 1, 9.7.5.1.4).
    #[default]
    GoBackN,
    /// As early RoCE NICs: both ends start again at the first packet of the message.
    GoBack0,
    /// As IRN: the responder keeps what is ahead, the requester sends only what is lost.
    SelectiveRepeat {
        /// The most bytes in flight, counted in full packets: the bandwidth–delay product.
        bdp_cap: Option<Bytes>,
    },
}

/// Who sends next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arbitration {
    /// Between responses and requests.
    pub responses: ResponseOrder,
    /// Between traffic classes. Within one, queue pairs take turns in the order of their creation, a packet each.
    pub classes: ClassOrder,
}

/// Between responses and requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ResponseOrder {
    /// Notifications, then ACKs, then read responses, then requests.
    #[default]
    First,
    /// Notifications, then ACKs; read responses and requests in turn.
    InTurn,
}

/// Between traffic classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClassOrder {
    /// Class 7 first, class 0 last.
    #[default]
    Strict,
    /// Deficit-weighted round robin: bytes in proportion to the weights. A weight of zero counts as one.
    Weighted([u8; Class::COUNT]),
}

/// How a rate becomes the time of the next packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pacing {
    /// How many bytes a packet counts for.
    pub sizing: FrameSizing,
    /// How its time is rounded.
    pub rounding: PaceRounding,
    /// Whether a new rate moves a packet that already waits.
    pub rate_change: RateChange,
}

/// How many bytes a packet counts for, in pacing and in byte counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameSizing {
    /// Transport headers, payload, pad, and so many more.
    Overhead(Bytes),
    /// Payload and so many more, whatever the headers; packets without payload have one size.
    Fixed {
        /// Added to the payload.
        data: Bytes,
        /// The size of a packet without payload.
        control: Bytes,
    },
}

impl Default for FrameSizing {
    /// Ethernet, IPv4, UDP, ICRC and FCS: 14 + 20 + 8 + 4 + 4 bytes.
    fn default() -> Self {
        Self::Overhead(Bytes::new(50))
    }
}

impl FrameSizing {
    /// The bytes of a packet with `header` bytes of transport headers and `payload` bytes of payload.
    #[inline]
    pub const fn size(self, header: usize, payload: u32) -> Bytes {
        match self {
            Self::Overhead(more) => {
                let padded = (payload as u64).next_multiple_of(4);
                Bytes::new(more.as_u64() + header as u64 + padded)
            }
            Self::Fixed { control, .. } if payload == 0 => control,
            Self::Fixed { data, .. } => Bytes::new(data.as_u64() + payload as u64),
        }
    }
}

/// How the time that a packet takes at a rate is rounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PaceRounding {
    /// Up to a whole picosecond.
    #[default]
    Exact,
    /// Down to a whole nanosecond, and one less where it is whole already, as a simulator that converts through binary
    /// fractions of a second does.
    WholeNanoseconds,
}

/// Whether a new rate moves a packet that already waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RateChange {
    /// No: it counts from the next packet sent.
    #[default]
    FromNextPacket,
    /// Yes: the waiting packet leaves when the new rate says.
    MovesWaiting,
}

/// The most that objects may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Queue pairs.
    pub queue_pairs: u32,
    /// Work requests of one queue.
    pub work_requests: u32,
    /// Scatter/gather entries of one work request.
    pub segments: u32,
    /// Bytes of inline data.
    pub inline: u32,
    /// Entries of a completion queue.
    pub completions: u32,
    /// Reads and atomics in flight, in either direction.
    pub reads: u8,
    /// Bytes of one message (IBTA vol. 1, 9.7.1: 2³¹).
    pub message: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queue_pairs: 1 << 18,
            work_requests: 1 << 15,
            segments: 30,
            inline: 1024,
            completions: 1 << 22,
            reads: 128,
            message: 1 << 31,
        }
    }
}
