//! The protocol between two managers under a virtual clock.
//!
//! ```text
//!  Side ── Manager ──┐            ┌── Manager ── Side
//!                    └── network ─┘   loses, repeats, delays
//! ```

mod lossy;
mod messages;

use std::collections::VecDeque;

use softfabric_units::{Gid, PartitionKey, Psn, Qpn, Span, Time};
use softfabric_wire::infiniband::ServiceLevel;
use softfabric_wire::ip::{FlowLabel, IpProtocol};
use softfabric_wire::mad::cm::{
    CmMad, CommunicationId, ConnectReply, ConnectRequest, IpService, Path, PathMtuCode,
    RejectReason, ResolutionReply, ResolutionRequest, ResolutionStatus, ServiceId,
    TransportService,
};
use softfabric_wire::mad::{PrivateData, TimeoutCode};

use super::super::event::{Event, Transmit, Way};
use super::super::listener::ListenAddress;
use super::{CallError, Manager};

/// The service that tests ask for.
fn service() -> ServiceId {
    let protocol = IpProtocol::TCP;
    IpService {
        protocol,
        port: 7471,
    }
    .id()
}

fn gid(last: u8) -> Gid {
    Gid::from_ip([10, 0, 0, last].into())
}

/// From address `from` to address `to`; the slot is the address's last byte.
fn way(from: u8, to: u8) -> Way {
    Way {
        device: 0,
        slot: from,
        local: gid(from),
        remote: gid(to),
    }
}

fn request(qpn: u32) -> ConnectRequest {
    let path = Path {
        local_gid: gid(1),
        remote_gid: gid(2),
        flow_label: FlowLabel::NONE,
        service_level: ServiceLevel::default(),
        ack_timeout: TimeoutCode::from_code(17),
        hop_limit: 64,
        ..Path::default()
    };
    ConnectRequest {
        local: CommunicationId::default(),
        vendor: 0,
        service: service(),
        guid: 1,
        qkey: 0,
        qpn: Qpn::new(qpn),
        responder_resources: 1,
        initiator_depth: 1,
        local_context: Qpn::new(0),
        remote_context: Qpn::new(0),
        remote_response_timeout: TimeoutCode::from_code(20),
        transport: TransportService::Reliable,
        flow_control: false,
        starting_psn: Psn::new(5),
        local_response_timeout: TimeoutCode::from_code(20),
        retries: 7,
        partition: PartitionKey::DEFAULT,
        mtu: PathMtuCode::from_code(3),
        channel_exists: false,
        rnr_retries: 7,
        cm_retries: 15,
        shared_receive_queue: false,
        primary: path,
        alternate: Path::default(),
        private_data: PrivateData::default(),
    }
}

fn reply(qpn: u32) -> ConnectReply {
    ConnectReply {
        local: CommunicationId::default(),
        remote: CommunicationId::default(),
        qkey: 0,
        qpn: Qpn::new(qpn),
        local_context: Qpn::new(0),
        vendor: 0,
        starting_psn: Psn::new(6),
        responder_resources: 1,
        initiator_depth: 1,
        ack_delay: TimeoutCode::from_code(15),
        failover: 0,
        flow_control: false,
        rnr_retries: 7,
        shared_receive_queue: false,
        guid: 2,
        private_data: PrivateData::default(),
    }
}

fn resolution() -> ResolutionRequest {
    ResolutionRequest {
        request: CommunicationId::default(),
        partition: PartitionKey::DEFAULT,
        service: service(),
        private_data: PrivateData::default(),
    }
}

fn resolved(qpn: u32) -> ResolutionReply {
    ResolutionReply {
        request: CommunicationId::default(),
        status: ResolutionStatus::SUCCESS,
        information_length: 0,
        vendor: 0,
        qpn: Qpn::new(qpn),
        service: ServiceId::default(),
        qkey: 0x0123_4567,
        information: PrivateData::default(),
        private_data: PrivateData::default(),
    }
}

/// Two managers at addresses 1 and 2, and the datagrams between them, which the test moves by hand.
struct Pair {
    now: Time,
    sides: [Manager; 2],
    /// What waits to arrive at each side.
    inbox: [VecDeque<Transmit>; 2],
}

const ACTIVE: usize = 0;
const PASSIVE: usize = 1;

impl Pair {
    /// The passive side listens.
    fn new() -> Self {
        let mut pair = Self {
            now: Time::from_nanos(1),
            sides: [Manager::new(1), Manager::new(2)],
            inbox: Default::default(),
        };
        pair.sides[PASSIVE]
            .listen(service(), ListenAddress::Any)
            .unwrap();
        pair
    }

    /// The datagrams that a side has sent: their names, put where they arrive.
    fn sent(&mut self, side: usize) -> Vec<&'static str> {
        let mut names = Vec::new();
        while let Some(transmit) = self.sides[side].poll_transmit() {
            names.push(CmMad::decode(&*transmit.mad).unwrap().message.name());
            self.inbox[1 - side].push_back(transmit);
        }
        names
    }

    /// Loses what a side has sent.
    fn lose(&mut self, side: usize) -> Vec<&'static str> {
        let names = self.sent(side);
        self.inbox[1 - side].clear();
        names
    }

    /// What waits arrives at a side.
    fn arrive(&mut self, side: usize) {
        while let Some(transmit) = self.inbox[side].pop_front() {
            let sent = transmit.way;
            let to = side as u8 + 1;
            let way = Way {
                device: 0,
                slot: to,
                local: sent.remote,
                remote: sent.local,
            };
            let manager = &mut self.sides[side];
            manager.handle_mad(self.now, way, &*transmit.mad).unwrap();
        }
    }

    /// One message from `from`, named, arrives at the other side.
    fn message(&mut self, from: usize, name: &str) {
        assert_eq!(self.sent(from), [name]);
        self.arrive(1 - from);
    }

    fn event(&mut self, side: usize) -> Event {
        let event = self.sides[side].poll_event().expect("an event");
        assert_eq!(self.sides[side].poll_event(), None, "after {event:?}");
        event
    }

    fn nothing(&mut self, side: usize) {
        assert_eq!(self.sides[side].poll_event(), None);
        assert_eq!(self.sides[side].poll_transmit(), None);
    }

    /// Goes on to the next timer of a side.
    fn wait(&mut self, side: usize) -> Span {
        let due = self.sides[side].poll_timeout().expect("a timer");
        let waited = due.since(self.now);
        self.now = self.now.max(due);
        self.sides[side].handle_timeout(self.now);
        waited
    }

    /// Goes on until nothing is left to wait for, and says how long that took. What is sent meanwhile is lost.
    fn wait_for_silence(&mut self) -> Span {
        let start = self.now;
        while let Some(side) = (0..2)
            .filter(|side| self.sides[*side].poll_timeout().is_some())
            .min_by_key(|side| self.sides[*side].poll_timeout())
        {
            self.wait(side);
            self.lose(side);
        }
        assert!(self.sides.iter().all(Manager::is_idle), "{:?}", self.sides);
        self.now.since(start)
    }

    fn connect(&mut self) -> CommunicationId {
        let connect = self.sides[ACTIVE].connect(self.now, way(1, 2), request(0x11));
        connect.unwrap()
    }

    /// The passive side hears of a request.
    fn requested(&mut self) -> CommunicationId {
        match self.event(PASSIVE) {
            Event::ConnectRequest {
                connection,
                way: asked,
                ..
            } => {
                assert_eq!(asked, way(2, 1));
                connection
            }
            event => panic!("{event:?}"),
        }
    }

    fn accept(&mut self, connection: CommunicationId) {
        self.sides[PASSIVE]
            .accept(self.now, connection, reply(0x22))
            .unwrap();
    }

    fn ready(&mut self, connection: CommunicationId) {
        self.sides[ACTIVE]
            .ready(connection, PrivateData::default())
            .unwrap();
    }

    fn disconnect(&mut self, side: usize, connection: CommunicationId) {
        self.sides[side]
            .disconnect(self.now, connection, PrivateData::default())
            .unwrap();
    }

    /// A connection that stands: what each side calls it.
    fn connected(&mut self) -> [CommunicationId; 2] {
        let active = self.connect();
        self.message(ACTIVE, "REQ");
        let passive = self.requested();
        self.accept(passive);
        self.message(PASSIVE, "REP");
        assert!(
            matches!(self.event(ACTIVE), Event::ConnectReply { connection, .. } if connection == active)
        );
        self.ready(active);
        self.message(ACTIVE, "RTU");
        let event = Event::Established {
            connection: passive,
        };
        assert_eq!(self.event(PASSIVE), event);
        [active, passive]
    }

    fn destroy(&mut self, side: usize, connection: CommunicationId) {
        self.sides[side].destroy(self.now, connection);
    }
}

fn disconnected(connection: CommunicationId, answered: bool) -> Event {
    Event::Disconnected {
        connection,
        answered,
    }
}

fn reason(event: &Event) -> RejectReason {
    match event {
        Event::Rejected { reject, .. } => reject.reason,
        event => panic!("{event:?}"),
    }
}
