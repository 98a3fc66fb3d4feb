//! Every operation between two queue pairs of one device.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use softfabric_adapter::{
    ArrivedMad, EventSink, MAD_LENGTH, MadSink, Nic, Route, Settings, devices,
};
use softfabric_transport::{
    Access, AckTimeout, Attachment, CompletedOperation, Completion, CompletionQueueId, Event,
    LocalSegment, Modify, Mtu, QueuePairInit, QueuePairType, ReceiveRequest, RegionInit, Remote,
    SendFlags, SendOperation, SendRequest, Status,
};
use softfabric_units::{Psn, Qpn};

struct Pair {
    nic: Arc<Nic>,
    queue: CompletionQueueId,
    qps: [Qpn; 2],
    key: u32,
    memory: Vec<u64>,
}

const WORDS: usize = 1 << 14;

impl Pair {
    fn reliable() -> Self {
        let info = devices(&Settings::default()).unwrap().pop().unwrap();
        // SAFETY: `memory` lives as long as the device.
        #[allow(unsafe_code, reason = "promises that the memory stays")]
        let nic = unsafe { Nic::open(&info, &Settings::default()) }.unwrap();
        let memory = vec![0_u64; WORDS];
        let access = Access::LOCAL_WRITE
            | Access::REMOTE_WRITE
            | Access::REMOTE_READ
            | Access::REMOTE_ATOMIC;
        let base = memory.as_ptr().expose_provenance() as u64;
        let (queue, key, qps) = nic.with(|device, _| {
            let domain = device.alloc_domain();
            let region = RegionInit::new(base, 8 * WORDS as u64, access);
            let key = device.register_memory(domain, &region).unwrap();
            let queue = device.create_cq(64).unwrap();
            let init = QueuePairInit::new(QueuePairType::ReliableConnection, domain, queue);
            let qps = [(); 2].map(|()| device.create_qp(&init).unwrap());
            (queue, key, qps)
        });
        let path = nic.path(0, &Route::to(nic.gids()[0].gid)).unwrap();
        for (qp, peer) in [(qps[0], qps[1]), (qps[1], qps[0])] {
            let psn = Psn::new(0xff_fffe);
            let mut ready = Modify::ready_to_receive_reliable(path, Mtu::BYTES_1024, peer, psn);
            nic.fit(&mut ready);
            nic.with(|device, now| {
                device
                    .modify_qp(now, qp, &Modify::initialize(access - Access::LOCAL_WRITE))
                    .unwrap();
                device.modify_qp(now, qp, &ready).unwrap();
                let send = Modify::ready_to_send_reliable(psn, AckTimeout::from_code(14));
                device.modify_qp(now, qp, &send).unwrap();
            });
        }
        Self {
            nic,
            queue,
            qps,
            key,
            memory,
        }
    }

    fn at(&self, word: usize, words: usize) -> LocalSegment {
        LocalSegment {
            address: self.memory[word..].as_ptr().expose_provenance() as u64,
            length: 8 * words as u32,
            key: self.key,
        }
    }

    fn remote(&self, word: usize) -> Remote {
        let LocalSegment { address, key, .. } = self.at(word, 0);
        Remote { address, key }
    }

    fn word(&self, word: usize) -> u64 {
        // The device writes behind the compiler's back.
        std::hint::black_box(&self.memory)[word]
    }

    fn post(&self, request: SendRequest) {
        self.nic
            .with(|device, now| device.post_send(now, self.qps[0], request))
            .unwrap();
    }

    fn receive(&self, id: u64, local: LocalSegment) {
        let request = ReceiveRequest::new(id, local);
        self.nic
            .with(|device, _| device.post_recv(self.qps[1], request))
            .unwrap();
    }

    fn completions(&self, count: usize) -> Vec<Completion> {
        let mut done = Vec::new();
        while done.len() < count {
            self.nic
                .poll(self.queue, 1, |completion| done.push(completion));
        }
        assert!(
            done.iter()
                .all(|completion| completion.status == Status::Success),
            "{done:?}"
        );
        done
    }
}

#[test]
fn writes_reads_and_atomics() {
    let mut pair = Pair::reliable();
    for (word, value) in pair.memory[..1000].iter_mut().enumerate() {
        *value = 7 * word as u64 + 1;
    }
    pair.post(SendRequest::new(
        1,
        SendOperation::Write(pair.remote(5000)),
        pair.at(0, 1000),
    ));
    assert_eq!(pair.completions(1)[0].id, 1);
    assert_eq!(pair.memory[5000..6000], pair.memory[..1000]);

    pair.post(SendRequest::new(
        2,
        SendOperation::Read(pair.remote(5000)),
        pair.at(10_000, 1000),
    ));
    assert_eq!(pair.completions(1)[0].length, 8000);
    assert_eq!(pair.memory[10_000..11_000], pair.memory[..1000]);

    let remote = pair.remote(3);
    pair.post(SendRequest::new(
        3,
        SendOperation::FetchAdd { remote, add: 5 },
        pair.at(100, 1),
    ));
    let swap = SendOperation::CompareSwap {
        remote,
        compare: 27,
        swap: 99,
    };
    pair.post(SendRequest::new(4, swap, pair.at(101, 1)));
    assert_eq!(
        pair.completions(2)[1].operation,
        CompletedOperation::CompareSwap
    );
    assert_eq!((pair.word(100), pair.word(101), pair.word(3)), (22, 27, 99));
}

#[test]
fn sends_meet_receive_requests() {
    let mut pair = Pair::reliable();
    pair.memory[0] = 0x1122_3344;
    pair.receive(10, pair.at(200, 300));
    pair.receive(11, pair.at(600, 300));
    pair.post(SendRequest::new(12, SendOperation::Send, pair.at(0, 300)));
    let inline = SendRequest::new(13, SendOperation::SendImmediate(77), pair.at(0, 16));
    pair.post(inline.with(SendFlags::INLINE));
    pair.memory[0] = 0;
    let mut done = pair.completions(4);
    done.sort_by_key(|completion| completion.id);
    assert_eq!(
        done.iter().map(|d| d.id).collect::<Vec<_>>(),
        [10, 11, 12, 13]
    );
    assert_eq!((done[0].length, done[1].length), (2400, 128));
    assert_eq!(done[1].attachment, Attachment::Immediate(77));
    assert_eq!((pair.word(200), pair.word(600)), (0x1122_3344, 0x1122_3344));
}

#[derive(Default)]
struct Heard(Mutex<(Vec<Event>, Vec<ArrivedMad>)>);

impl EventSink for Heard {
    fn event(&self, event: Event) {
        self.0.lock().unwrap().0.push(event);
    }
}

impl MadSink for Heard {
    fn receive(&self, mad: &ArrivedMad) {
        self.0.lock().unwrap().1.push(mad.clone());
    }
}

#[test]
fn events_and_management_datagrams_are_told() {
    let pair = Pair::reliable();
    let heard = Arc::new(Heard::default());
    pair.nic.set_sink(heard.clone());
    pair.nic.general_services().set_sink(heard.clone());
    pair.receive(1, pair.at(0, 1));
    pair.nic
        .with(|device, _| device.request_notify(pair.queue, true))
        .unwrap();
    let send = SendRequest::new(2, SendOperation::SendImmediate(77), pair.at(8, 1));
    pair.post(send.with(SendFlags::SOLICITED));
    let done = pair.completions(2);
    let received = done.iter().find(|completion| completion.id == 1).unwrap();
    assert_eq!(received.attachment, Attachment::Immediate(77));
    assert!(
        heard
            .0
            .lock()
            .unwrap()
            .0
            .contains(&Event::Completion(pair.queue))
    );

    let gid = pair.nic.gids()[0].gid;
    let mad = ArrivedMad {
        source: gid,
        source_qp: Qpn::GENERAL_SERVICES,
        destination: gid,
        traffic_class: 0,
        bytes: [0x5a; MAD_LENGTH],
    };
    let services = pair.nic.general_services();
    assert!(services.hand_over(pair.nic.slot(), &mad));
    assert!(!services.hand_over(255, &mad), "nobody has that slot");
    let found = || heard.0.lock().unwrap().1.first().cloned();
    assert_eq!(within_seconds(5, found), Some(mad));
}

/// What `find` finds, if it does in time.
fn within_seconds<T>(seconds: u64, find: impl Fn() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        if let Some(found) = find() {
            return Some(found);
        }
        std::thread::yield_now();
    }
    None
}
