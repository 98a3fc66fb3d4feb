//! One connection: its state, and the message that it repeats until there is an answer.

use softfabric_units::{Qpn, Span, Time};
use softfabric_wire::mad::MAD_LENGTH;
use softfabric_wire::mad::cm::{CmMad, CommunicationId, Message, Stage};

use super::super::event::Way;

/// How long the first repetition waits. The standard's timeout is that of a slow network (the kernel asks for 4.3 s);
/// repeating sooner at first costs a datagram and makes a lost one cheap.
const FIRST_REPETITION: Span = Span::millis(100);

/// How long a DREQ is repeated, whatever the timeouts of the connection.
const LONGEST_END: Span = Span::seconds(5);

pub(super) type MadBytes = Box<[u8; MAD_LENGTH]>;

/// A connection, from the first message to the end of time wait.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) way: Way,
    pub(super) local: CommunicationId,
    /// What the other side calls it, once it has said so.
    pub(super) remote: Option<CommunicationId>,
    pub(super) transaction: u64,
    pub(super) local_qpn: Qpn,
    pub(super) remote_qpn: Qpn,
    pub(super) state: State,
    pub(super) patience: Patience,
    /// Since when the program thinks about what has come.
    pub(super) since: Time,
    /// Whether a program knows the connection and hears of it.
    pub(super) owned: bool,
    /// When the state's timer is due; kept equal to the manager's timers.
    pub(super) due: Option<Time>,
}

/// The states of IBTA vol. 1, 12.9, where those that differ only by an MRA are one.
#[derive(Debug)]
pub(super) enum State {
    /// Active: the REQ is on its way.
    RequestSent(Repeat),
    /// Active: the REP has come; the program makes its queue pair ready.
    ReplyReceived,
    /// Passive: the REQ has come; the program decides.
    RequestReceived,
    /// Passive: the REP is on its way.
    ReplySent(Repeat),
    /// Both sides may send. The active side repeats its RTU where the REP comes again.
    Established(Option<MadBytes>),
    /// The DREQ is on its way.
    DisconnectSent(Repeat),
    /// Over; packets of the connection may still be under way. A DREQ that comes again gets its DREP again.
    TimeWait,
    /// Refused by the program; who asks again gets the REJ again.
    Refused(MadBytes),
}

/// How long to wait for the other side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// For one answer.
    pub(super) response: Span,
    /// How often to ask again.
    pub(super) retries: u8,
    /// How long packets may be under way after the end.
    pub(super) time_wait: Span,
}

impl Patience {
    /// How long to wait for the answer to a DREQ. A process that has ended answers nothing, and nothing depends on the
    /// answer: both sides have ended the connection by then.
    pub(super) fn to_end(self) -> Self {
        Self {
            response: self.response.min(LONGEST_END),
            retries: 0,
            ..self
        }
    }
}

/// A message that goes out again and again until it is answered.
#[derive(Debug)]
pub(super) struct Repeat {
    mad: MadBytes,
    interval: Span,
    longest: Span,
    give_up: Time,
}

impl Repeat {
    /// A message that was sent at `now`, and when it is due again.
    pub(super) fn new(now: Time, mad: MadBytes, patience: Patience) -> (Self, Time) {
        let interval = FIRST_REPETITION.min(patience.response);
        let attempts = u64::from(patience.retries) + 1;
        let whole = Span::picos(patience.response.as_picos().saturating_mul(attempts));
        let repeat = Self {
            mad,
            interval,
            longest: patience.response,
            give_up: now.saturating_add(whole),
        };
        (repeat, now.saturating_add(interval))
    }

    /// The timer is due: the message to send again and when to come back, or nothing once it is time to give up.
    pub(super) fn again(&mut self, now: Time) -> Option<(MadBytes, Time)> {
        if now >= self.give_up {
            return None;
        }
        self.interval = Span::picos(self.interval.as_picos().saturating_mul(2)).min(self.longest);
        let due = now.saturating_add(self.interval).min(self.give_up);
        Some((self.mad.clone(), due))
    }

    /// The other side asks for `longer`: when the message is due again.
    pub(super) fn wait(&mut self, now: Time, longer: Span) -> Time {
        let due = now.saturating_add(longer);
        self.give_up = self.give_up.max(due.saturating_add(self.longest));
        due
    }

    pub(super) fn mad(&self) -> MadBytes {
        self.mad.clone()
    }
}

impl Connection {
    /// A message of this connection as bytes.
    pub(super) fn encode(&self, message: Message) -> MadBytes {
        encode(self.transaction, message)
    }

    /// Which message of the other side a REJ or MRA of ours is about.
    pub(super) const fn stage(&self) -> Stage {
        match self.state {
            State::RequestReceived => Stage::Request,
            State::ReplyReceived => Stage::Reply,
            _ => Stage::Other,
        }
    }

    /// Whether the other side, which asks again, should be asked for patience: if the program has taken longer than an
    /// answer may take. Who asks again sooner may just have lost one, and would wait for nothing if the next is lost too.
    pub(super) fn is_slow(&self, now: Time) -> bool {
        now.since(self.since) >= self.patience.response
    }

    /// Whether a message comes from the other side of this connection.
    pub(super) fn is_peer(&self, way: &Way, remote: CommunicationId) -> bool {
        self.way.device == way.device
            && self.way.remote == way.remote
            && self.remote.is_none_or(|known| known == remote)
    }
}

impl State {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::RequestSent(_) => "waiting for an answer to its request",
            Self::ReplyReceived => "accepted by the other side",
            Self::RequestReceived => "requested by the other side",
            Self::ReplySent(_) => "waiting for the other side to be ready",
            Self::Established(_) => "established",
            Self::DisconnectSent(_) => "ending",
            Self::TimeWait => "ended",
            Self::Refused(_) => "refused",
        }
    }
}

pub(super) fn encode(transaction: u64, message: Message) -> MadBytes {
    let mad = CmMad {
        transaction,
        modifier: 0,
        message,
    };
    Box::new(mad.encode())
}
