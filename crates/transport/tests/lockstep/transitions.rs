//! Every change of state of every type, with every attribute: what the table of the standard says, and nothing else.

use softfabric_testkit::path_to;
use softfabric_transport::{
    Access, AckTimeout, Attributes, CompletionQueueId, Datagram, Device, DeviceConfig, LengthsOnly,
    LocalSegment, Migration, Modify, ModifyError, Mtu, QueuePairInit, QueuePairType, Remote,
    RnrRetry, SendOperation, SendRequest, State, Transition,
};
use softfabric_units::{PartitionKey, Psn, Qpn, Rate, Time};
use softfabric_wire::rdma::RnrTimer;

/// The table of IBTA vol. 1, 11.2.5.2, written down once more: service, from, to, required, optional.
const TABLE: &str = "
    RC RESET INIT : PARTITION PORT ACCESS :
    UC RESET INIT : PARTITION PORT ACCESS :
    UD RESET INIT : PARTITION PORT QKEY :
    RC INIT INIT : : PARTITION PORT ACCESS
    UC INIT INIT : : PARTITION PORT ACCESS
    UD INIT INIT : : PARTITION PORT QKEY
    RC INIT RTR : PATH PATH_MTU DESTINATION RECEIVE_PSN MAX_PEER_READS MIN_RNR_TIMER : ALTERNATE_PATH ACCESS PARTITION
    UC INIT RTR : PATH PATH_MTU DESTINATION RECEIVE_PSN : ALTERNATE_PATH ACCESS PARTITION
    UD INIT RTR : : PARTITION QKEY
    RC RTR RTS : TIMEOUT RETRY_COUNT RNR_RETRY SEND_PSN MAX_READS : CURRENT_STATE ALTERNATE_PATH ACCESS MIN_RNR_TIMER MIGRATION
    UC RTR RTS : SEND_PSN : CURRENT_STATE ALTERNATE_PATH ACCESS MIGRATION
    UD RTR RTS : SEND_PSN : CURRENT_STATE QKEY
    RC RTS RTS : : CURRENT_STATE ACCESS ALTERNATE_PATH MIGRATION MIN_RNR_TIMER
    UC RTS RTS : : CURRENT_STATE ACCESS ALTERNATE_PATH MIGRATION
    UD RTS RTS : : CURRENT_STATE QKEY
    RC RTS SQD : : DRAIN_NOTIFY
    UC RTS SQD : : DRAIN_NOTIFY
    UD RTS SQD : : DRAIN_NOTIFY
    RC SQD RTS : : CURRENT_STATE ALTERNATE_PATH ACCESS MIN_RNR_TIMER MIGRATION
    UC SQD RTS : : CURRENT_STATE ALTERNATE_PATH ACCESS MIGRATION
    UD SQD RTS : : CURRENT_STATE QKEY
    RC SQD SQD : : PORT PATH TIMEOUT RETRY_COUNT RNR_RETRY MAX_READS MAX_PEER_READS ALTERNATE_PATH ACCESS PARTITION MIN_RNR_TIMER MIGRATION
    UC SQD SQD : : PATH ALTERNATE_PATH ACCESS PARTITION MIGRATION
    UD SQD SQD : : PARTITION QKEY
    UC SQE RTS : : CURRENT_STATE ACCESS
    XRC_INI RESET INIT : PARTITION PORT ACCESS :
    XRC_TGT RESET INIT : PARTITION PORT ACCESS :
    XRC_INI INIT INIT : : PARTITION PORT ACCESS
    XRC_TGT INIT INIT : : PARTITION PORT ACCESS
    XRC_INI INIT RTR : PATH PATH_MTU DESTINATION RECEIVE_PSN : ALTERNATE_PATH ACCESS PARTITION
    XRC_TGT INIT RTR : PATH PATH_MTU DESTINATION RECEIVE_PSN MAX_PEER_READS MIN_RNR_TIMER : ALTERNATE_PATH ACCESS PARTITION
    XRC_INI RTR RTS : TIMEOUT RETRY_COUNT RNR_RETRY SEND_PSN MAX_READS : CURRENT_STATE ALTERNATE_PATH ACCESS MIGRATION
    XRC_TGT RTR RTS : TIMEOUT SEND_PSN : CURRENT_STATE ALTERNATE_PATH ACCESS MIN_RNR_TIMER MIGRATION
    XRC_INI RTS RTS : : CURRENT_STATE ACCESS ALTERNATE_PATH MIGRATION
    XRC_TGT RTS RTS : : CURRENT_STATE ACCESS ALTERNATE_PATH MIGRATION MIN_RNR_TIMER
    XRC_INI RTS SQD : : DRAIN_NOTIFY
    XRC_TGT RTS SQD : : DRAIN_NOTIFY
    XRC_INI SQD RTS : : CURRENT_STATE ALTERNATE_PATH ACCESS MIGRATION
    XRC_TGT SQD RTS : : CURRENT_STATE ALTERNATE_PATH ACCESS MIN_RNR_TIMER MIGRATION
    XRC_INI SQD SQD : : PORT PATH TIMEOUT RETRY_COUNT RNR_RETRY MAX_READS ALTERNATE_PATH ACCESS PARTITION MIGRATION
    XRC_TGT SQD SQD : : PORT PATH TIMEOUT MAX_PEER_READS ALTERNATE_PATH ACCESS PARTITION MIN_RNR_TIMER MIGRATION
    UD SQE RTS : : CURRENT_STATE QKEY
";

fn attributes(names: &str) -> Attributes {
    names
        .split_whitespace()
        .map(|name| Attributes::from_name(name).unwrap_or_else(|| panic!("{name}")))
        .collect()
}

fn expected(service: QueuePairType, from: State, to: State) -> Option<Transition> {
    if matches!(to, State::Reset | State::Error) {
        return Some(Transition {
            required: Attributes::empty(),
            optional: Attributes::empty(),
        });
    }
    let row = format!("{service} {from} {to} ");
    let line = TABLE.lines().find(|line| line.trim().starts_with(&row))?;
    let mut columns = line.split(':').skip(1);
    Some(Transition {
        required: attributes(columns.next()?),
        optional: attributes(columns.next().unwrap_or("")),
    })
}

/// A change that names exactly `set`, with values that are fine.
fn naming(state: State, current: State, set: Attributes) -> Modify {
    fn some<T>(set: Attributes, attribute: Attributes, value: T) -> Option<T> {
        set.contains(attribute).then_some(value)
    }
    let modify = Modify {
        state: Some(state),
        current_state: some(set, Attributes::CURRENT_STATE, current),
        drain_notify: some(set, Attributes::DRAIN_NOTIFY, true),
        access: some(set, Attributes::ACCESS, Access::REMOTE_WRITE),
        partition: some(set, Attributes::PARTITION, PartitionKey::DEFAULT),
        port: some(set, Attributes::PORT, 1),
        qkey: some(set, Attributes::QKEY, 5),
        path: some(set, Attributes::PATH, path_to(1)),
        path_mtu: some(set, Attributes::PATH_MTU, Mtu::BYTES_1024),
        timeout: some(set, Attributes::TIMEOUT, AckTimeout::from_code(14)),
        retry_count: some(set, Attributes::RETRY_COUNT, 7),
        rnr_retry: some(set, Attributes::RNR_RETRY, RnrRetry::INFINITE),
        receive_psn: some(set, Attributes::RECEIVE_PSN, Psn::new(1)),
        send_psn: some(set, Attributes::SEND_PSN, Psn::new(2)),
        max_reads: some(set, Attributes::MAX_READS, 1),
        max_peer_reads: some(set, Attributes::MAX_PEER_READS, 1),
        min_rnr_timer: some(set, Attributes::MIN_RNR_TIMER, RnrTimer::from_code(1)),
        destination: some(set, Attributes::DESTINATION, Qpn::new(9)),
        alternate_path: some(set, Attributes::ALTERNATE_PATH, path_to(1)),
        migration: some(set, Attributes::MIGRATION, Migration::Armed),
        window: None,
    };
    assert_eq!(modify.attributes(), set);
    modify
}

struct Bench {
    device: Device<LengthsOnly>,
    queue: CompletionQueueId,
    qp: Qpn,
    service: QueuePairType,
}

impl Bench {
    fn new(service: QueuePairType) -> Self {
        let mut device = Device::new(DeviceConfig::new(Rate::gbps(100)), LengthsOnly::new());
        let domain = device.alloc_domain();
        let queue = device.create_cq(100).expect("small");
        let init = match service {
            QueuePairType::XrcTarget => QueuePairInit::xrc_target(device.alloc_xrc_domain()),
            _ => QueuePairInit::new(service, domain, queue),
        };
        let qp = device.create_qp(&init).expect("it can");
        Self {
            device,
            queue,
            qp,
            service,
        }
    }

    fn state(&self) -> State {
        self.device.query_qp(self.qp).expect("it exists").state
    }

    fn modify(&mut self, modify: &Modify) -> Result<(), ModifyError> {
        self.device.modify_qp(Time::ZERO, self.qp, modify)
    }

    fn step(&mut self, to: State) {
        let from = self.state();
        let transition = Transition::of(self.service, from, to).expect("on the way");
        self.modify(&naming(to, from, transition.required))
            .expect("all that is needed");
    }

    /// Leads a new queue pair to `state`, if its type has it.
    fn lead(mut self, state: State) -> Option<Self> {
        let way: &[State] = match state {
            State::Reset => &[],
            State::Error => &[State::Error],
            _ => &[
                State::Initialized,
                State::ReadyToReceive,
                State::ReadyToSend,
            ],
        };
        for &next in way {
            if self.state() == state {
                break;
            }
            self.step(next);
        }
        match state {
            State::SendQueueDrain => self.step(State::SendQueueDrain),
            State::SendQueueError => self.break_send_queue()?,
            _ => {}
        }
        assert_eq!(self.state(), state);
        Some(self)
    }

    /// A request with a wrong local key: UC and UD go to SQE.
    fn break_send_queue(&mut self) -> Option<()> {
        if self.service.is_reliable() {
            return None;
        }
        let wrong = LocalSegment {
            address: 0,
            length: 1,
            key: 0x99,
        };
        let mut request = SendRequest::new(1, SendOperation::Send, wrong);
        if self.service == QueuePairType::UnreliableDatagram {
            request = request.to(Datagram {
                path: path_to(1),
                destination: Qpn::new(9),
                qkey: 0,
            });
        }
        self.device
            .post_send(Time::ZERO, self.qp, request)
            .expect("posting does not check keys");
        let open = softfabric_units::ClassMask::ALL;
        assert!(self.device.poll_transmit(Time::ZERO, open).is_none());
        assert!(self.device.poll_completion(self.queue).is_some());
        Some(())
    }
}

#[test]
fn the_table_is_the_standards() {
    for service in QueuePairType::ALL {
        for from in State::ALL {
            for to in State::ALL {
                assert_eq!(
                    Transition::of(service, from, to),
                    expected(service, from, to),
                    "{service} {from} {to}"
                );
            }
        }
    }
}

#[test]
fn the_device_obeys_the_table() {
    let mut changes = 0;
    for service in QueuePairType::ALL {
        for from in State::ALL {
            for to in State::ALL {
                let bench = || Bench::new(service).lead(from);
                let Some(mut fresh) = bench() else { continue };
                let Some(rule) = expected(service, from, to) else {
                    let refused = fresh.modify(&naming(to, from, Attributes::empty()));
                    assert_eq!(refused, Err(ModifyError::Transition { service, from, to }));
                    continue;
                };
                // With everything that is needed and allowed.
                let all = rule.required | rule.optional;
                fresh.modify(&naming(to, from, all)).expect("allowed");
                assert_eq!(fresh.state(), to);
                changes += 1;
                for attribute in Attributes::all() {
                    let Some(mut bench) = bench() else { continue };
                    let given = rule.required ^ attribute;
                    let result = bench.modify(&naming(to, from, given));
                    if rule.required.contains(attribute) {
                        let missing = attribute;
                        assert_eq!(result, Err(ModifyError::Missing { from, to, missing }));
                    } else if rule.optional.contains(attribute) {
                        assert_eq!(result, Ok(()));
                    } else {
                        let excess = attribute;
                        assert_eq!(result, Err(ModifyError::Excess { from, to, excess }));
                        assert_eq!(bench.state(), from, "nothing was changed");
                    }
                }
            }
        }
    }
    let rows = TABLE.lines().filter(|line| line.contains(':')).count();
    assert_eq!(
        changes,
        rows + 2 * (3 * 6 + 2 * 7),
        "and RESET and ERR from every state"
    );
}

#[test]
fn an_assertion_about_the_state_is_checked() {
    let mut bench = Bench::new(QueuePairType::UnreliableDatagram)
        .lead(State::ReadyToSend)
        .expect("it has it");
    let modify = naming(
        State::ReadyToSend,
        State::SendQueueError,
        Attributes::CURRENT_STATE,
    );
    assert_eq!(
        bench.modify(&modify),
        Err(ModifyError::CurrentState {
            found: State::ReadyToSend,
            needed: State::SendQueueError
        })
    );
}

#[test]
fn values_out_of_range_are_refused() {
    let service = QueuePairType::ReliableConnection;
    let lead = |state| Bench::new(service).lead(state).expect("it has it");
    let refused = |bench: &mut Bench, modify: Modify| match bench.modify(&modify) {
        Err(ModifyError::Value { attribute, .. }) => attribute,
        other => panic!("{other:?}"),
    };
    let from = State::Reset;
    let required = |to| {
        Transition::of(service, from, to)
            .map(|rule| rule.required)
            .unwrap_or_default()
    };
    let mut modify = naming(State::Initialized, from, required(State::Initialized));
    modify.port = Some(2);
    assert_eq!(refused(&mut lead(from), modify), Attributes::PORT);

    let from = State::ReadyToReceive;
    let needed = Transition::of(service, from, State::ReadyToSend)
        .expect("there is")
        .required;
    let mut modify = naming(State::ReadyToSend, from, needed);
    modify.retry_count = Some(8);
    assert_eq!(refused(&mut lead(from), modify), Attributes::RETRY_COUNT);
    let mut modify = naming(State::ReadyToSend, from, needed);
    modify.max_reads = Some(129);
    assert_eq!(refused(&mut lead(from), modify), Attributes::MAX_READS);

    let from = State::Initialized;
    let needed = Transition::of(service, from, State::ReadyToReceive)
        .expect("there is")
        .required;
    let mut modify = naming(State::ReadyToReceive, from, needed);
    modify.path_mtu = Mtu::custom(5000);
    assert_eq!(refused(&mut lead(from), modify), Attributes::PATH_MTU);
}

#[test]
fn posting_needs_the_right_state() {
    for service in [
        QueuePairType::ReliableConnection,
        QueuePairType::UnreliableConnection,
        QueuePairType::XrcInitiator,
    ] {
        for state in State::ALL {
            let Some(mut bench) = Bench::new(service).lead(state) else {
                continue;
            };
            let remote = Remote { address: 0, key: 0 };
            let request = SendRequest::empty(1, SendOperation::Write(remote));
            let posted = bench.device.post_send(Time::ZERO, bench.qp, request);
            let early = matches!(
                state,
                State::Reset | State::Initialized | State::ReadyToReceive
            );
            assert_eq!(posted.is_err(), early, "{service} {state}");
            // In the states of error it comes back at once.
            let flushed = matches!(state, State::Error | State::SendQueueError);
            let completed = bench.device.poll_completion(bench.queue);
            assert_eq!(completed.is_some(), flushed, "{service} {state}");
            if service == QueuePairType::XrcInitiator {
                continue;
            }
            let received = bench
                .device
                .post_recv(bench.qp, softfabric_transport::ReceiveRequest::default());
            assert_eq!(received.is_err(), state == State::Reset);
            let completed = bench.device.poll_completion(bench.queue);
            assert_eq!(completed.is_some(), state == State::Error);
        }
    }
}
