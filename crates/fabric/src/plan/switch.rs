//! What a switch does: memory, PFC, ECN, scheduling, path choice.

use softfabric_units::{Bytes, Class, ClassMask, Rate, Span};

/// The behaviour of a switch; many switches share one profile.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchProfile {
    /// When a packet may leave.
    pub forwarding: Forwarding,
    /// From the arrival that `forwarding` waits for, to the packet's place in the egress queue.
    pub latency: Span,
    /// Bridge or router.
    pub layer: Layer,
    /// The packet memory.
    pub buffer: BufferProfile,
    /// The eight priority groups and queues: group n has the ingress side of class n, queue n all that is egress.
    pub classes: [ClassProfile; Class::COUNT],
    /// How the switch tells the traffic class of a packet.
    pub classifier: Classifier,
    /// From traffic classes to priority groups and queues, and from those to PFC priorities.
    pub maps: ClassMaps,
    /// PFC timing. Which classes it pauses is `ClassProfile::lossless`.
    pub pause: PauseProfile,
    /// The PFC watchdog, where there is one.
    pub watchdog: Option<Watchdog>,
    /// How one of several next hops is chosen.
    pub load_balancing: LoadBalancing,
}

impl SwitchProfile {
    /// The priority groups that PFC protects.
    pub fn lossless(&self) -> ClassMask {
        let classes = Class::all()
            .zip(&self.classes)
            .filter(|(_, profile)| profile.lossless);
        classes.fold(ClassMask::NONE, |mask, (class, _)| mask.with(class))
    }

    /// Whether packets of a traffic class are never to be dropped.
    pub fn protects(&self, class: Class) -> bool {
        self.lossless().contains(self.maps.group[class.index()])
    }

    /// The PFC priorities that its lossless groups pause.
    pub fn priorities(&self) -> ClassMask {
        let pauses = self
            .lossless()
            .iter()
            .map(|group| self.maps.pause[group.index()]);
        pauses.fold(ClassMask::NONE, ClassMask::with)
    }

    /// The PFC priorities in which it obeys pause frames.
    pub fn obeyed(&self) -> ClassMask {
        match (self.pause.obeys, self.pause.obeys_on_lossy) {
            (false, _) => ClassMask::NONE,
            (true, false) => self.priorities(),
            (true, true) => ClassMask::ALL,
        }
    }
}

/// How a switch tells the traffic class of a packet. It leaves with that class as its priority.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Classifier {
    /// By the priority that it comes with: the class that the sending NIC gave it.
    #[default]
    Priority,
    /// By the priority that it comes with (PCP), changed by a map (802.1Q priority regeneration; `DOT1P_TO_TC_MAP`).
    Pcp([Class; Class::COUNT]),
    /// By its DSCP: one class for each of the 64 code points (SONiC's DSCP_TO_TC_MAP and what follows it).
    Dscp(Box<[Class; 64]>),
}

impl Classifier {
    /// The traffic class of a packet that comes with this priority and DSCP (0–63).
    #[inline]
    pub fn class_of(&self, priority: Class, dscp: u8) -> Class {
        match self {
            Self::Priority => priority,
            Self::Pcp(classes) => classes[priority.index()],
            Self::Dscp(classes) => classes[usize::from(dscp & 63)],
        }
    }
}

/// What follows from a traffic class (SONiC's names of the maps in brackets).
///
/// ```text
///                       ┌─ group ─► priority group ─ pause ─► PFC priority of the frames that it sends
/// DSCP, PCP ─► traffic class
///                       └─ queue ─► egress queue  ◄─ stops ─ PFC priority of a frame that comes in
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassMaps {
    /// The ingress priority group of each traffic class (`TC_TO_PRIORITY_GROUP_MAP`).
    pub group: [Class; Class::COUNT],
    /// The egress queue of each traffic class (`TC_TO_QUEUE_MAP`).
    pub queue: [Class; Class::COUNT],
    /// The PFC priority that each priority group pauses (`PFC_PRIORITY_TO_PRIORITY_GROUP_MAP`, read backwards).
    pub pause: [Class; Class::COUNT],
    /// The queue that a pause of each PFC priority stops (`MAP_PFC_PRIORITY_TO_QUEUE`).
    pub stops: [Class; Class::COUNT],
}

impl ClassMaps {
    /// Each number stands for itself.
    pub const SAME: [Class; Class::COUNT] = [
        Class::new(0),
        Class::new(1),
        Class::new(2),
        Class::new(3),
        Class::new(4),
        Class::new(5),
        Class::new(6),
        Class::new(7),
    ];
}

/// Class n has priority group n, queue n and PFC priority n.
impl Default for ClassMaps {
    fn default() -> Self {
        Self {
            group: Self::SAME,
            queue: Self::SAME,
            pause: Self::SAME,
            stops: Self::SAME,
        }
    }
}

/// When a packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Once it is here whole.
    StoreAndForward,
    /// Once its first `header` bytes are here; never faster than it arrives.
    CutThrough {
        /// How many bytes the switch looks at.
        header: Bytes,
    },
}

/// Bridge or router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Forwards every Ethernet frame of its segment, and routes IP besides.
    Bridge,
    /// Routes IP only: RoCEv1 frames, which have no IP header, are dropped.
    Router,
}

/// The packet memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferProfile {
    /// All of it.
    pub total: Bytes,
    /// Memory is taken in cells of this size; 1 B counts bytes exactly.
    pub cell: Bytes,
    /// The headroom pool, shared by all ports. `None`: each priority group's headroom is its own and set aside.
    pub headroom_pool: Option<Bytes>,
    /// Which rules account for it.
    pub accounting: BufferAccounting,
}

/// Which rules account for the packet memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferAccounting {
    /// Ingress per priority group (reserved, shared, headroom) and egress per queue, as common ASICs do.
    SharedBuffer,
    /// The rules of the HPCC ns-3 code: 4,096 B reserved, headroom 3 · rate · delay, threshold by shifting.
    Hpcc,
}

/// One traffic class of a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassProfile {
    /// PFC protects it: it is never to be dropped.
    pub lossless: bool,
    /// What an ingress priority group may hold.
    pub ingress: IngressLimit,
    /// What an egress queue may hold.
    pub egress: EgressLimit,
    /// RED/ECN marking; the entry whose rate is the port's, or else the one without a rate.
    pub ecn: Vec<Ecn>,
    /// How the queue is served.
    pub scheduling: Scheduling,
}

/// What a priority group of an ingress port may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IngressLimit {
    /// Always there for the group.
    pub reserved: Bytes,
    /// How much of the shared pool it may take before XOFF (lossless) or drop (lossy).
    pub threshold: Alpha,
    /// What absorbs packets in flight after XOFF; `None`: computed for each port from its rate, cable and MTU.
    pub headroom: Option<Bytes>,
    /// When it lets the other end go on.
    pub xon: Xon,
}

/// How much of the shared pool one user may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpha {
    /// 2ᵏ of what is free, k = −7..=6, as SONiC's `dynamic_th`.
    Dynamic(i8),
    /// So many bytes.
    Static(Bytes),
    /// No limit but the pool itself.
    Unlimited,
}

/// When a paused group lets the other end go on: once its headroom is empty, and its shared use is at or below either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xon {
    /// This much, or less.
    pub size: Bytes,
    /// So far under the XOFF point; `None`: only `size` counts.
    pub offset: Option<Bytes>,
}

/// What an egress queue may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EgressLimit {
    /// Always there for the queue.
    pub reserved: Bytes,
    /// How much of the shared pool it may take; a lossless class is `Unlimited`, or it drops.
    pub threshold: Alpha,
}

/// RED/ECN on the instantaneous egress queue (RFC 3168; the congestion point of DCQCN).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ecn {
    /// The port rate that this entry is for; `None`: any other.
    pub rate: Option<Rate>,
    /// Below it nothing is marked.
    pub kmin: Bytes,
    /// Above it everything is marked.
    pub kmax: Bytes,
    /// The probability at `kmax`, 0.0..=1.0.
    pub pmax: f64,
    /// Packets that are not ECN-capable are dropped with the same probability (WRED).
    pub drop_not_capable: bool,
}

/// How an egress queue is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Before every weighted queue; of two strict ones, the higher class first.
    Strict,
    /// Deficit weighted round robin.
    Weighted(u32),
}

/// PFC timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseProfile {
    /// How long a pause frame asks for, in quanta of 512 bit times (1..=65535); `None`: until a resume frame.
    pub quanta: Option<u16>,
    /// From the arrival of a pause frame to the stop of the queue.
    pub response_delay: Span,
    /// The switch acts on pause frames that it receives.
    pub obeys: bool,
    /// Frames that pause a class which is not lossless here are obeyed too.
    pub obeys_on_lossy: bool,
}

/// The PFC watchdog, as SONiC's pfcwd: a queue that stays paused and does not move is stormed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// Paused without progress so long: stormed.
    pub detection: Span,
    /// Free of pause so long: restored.
    pub restoration: Span,
    /// How often it looks.
    pub poll: Span,
    /// What it does with a stormed queue.
    pub action: WatchdogAction,
}

/// What the watchdog does with a stormed queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchdogAction {
    /// Drops what is queued and what comes.
    Drop,
    /// Sends as if nothing were paused.
    Forward,
    /// Only counts.
    Alert,
}

/// How one of several next hops is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBalancing {
    /// A hash over addresses and ports with a seed of each switch.
    EcmpHash,
    /// The same, and of RoCEv2 over the destination queue pair, too.
    EcmpQueuePair,
    /// murmur3 with the node id as seed, over HPCC's addresses and ports.
    EcmpHpcc,
    /// Each packet by chance.
    SprayRandom,
    /// Each packet the next port in turn.
    SprayRoundRobin,
    /// Each packet the shortest queue.
    Adaptive,
}
