use softfabric_units::{Bytes, Random};

use super::*;
use crate::plan::{
    BufferProfile, ClassProfile, EgressLimit, Forwarding, IngressLimit, Layer, LoadBalancing,
    PauseProfile, Scheduling, Xon,
};

const CLASS: Class = Class::new(3);
const LOSSY: Class = Class::new(0);

fn profile(total: u64, alpha: i8, headroom: u64, pool: Option<u64>) -> SwitchProfile {
    let class = |lossless: bool| ClassProfile {
        lossless,
        ingress: IngressLimit {
            reserved: Bytes::new(2_000),
            threshold: Alpha::Dynamic(alpha),
            headroom: Some(Bytes::new(headroom)),
            xon: Xon {
                size: Bytes::ZERO,
                offset: Some(Bytes::new(3_000)),
            },
        },
        egress: EgressLimit {
            reserved: Bytes::ZERO,
            threshold: if lossless {
                Alpha::Unlimited
            } else {
                Alpha::Static(Bytes::new(5_000))
            },
        },
        ecn: Vec::new(),
        scheduling: Scheduling::Weighted(1),
    };
    SwitchProfile {
        forwarding: Forwarding::StoreAndForward,
        latency: Span::ZERO,
        layer: Layer::Router,
        buffer: BufferProfile {
            total: Bytes::new(total),
            cell: Bytes::new(1),
            headroom_pool: pool.map(Bytes::new),
            accounting: BufferAccounting::SharedBuffer,
        },
        classes: std::array::from_fn(|index| class(index == CLASS.index())),
        pause: PauseProfile {
            quanta: None,
            response_delay: Span::ZERO,
            obeys: true,
            obeys_on_lossy: false,
        },
        watchdog: None,
        classifier: crate::plan::Classifier::Priority,
        maps: crate::plan::ClassMaps::default(),
        load_balancing: LoadBalancing::EcmpHash,
    }
}

fn memory(profile: &SwitchProfile, ports: usize) -> Memory {
    let shape = PortShape {
        rate: Rate::gbps(100),
        delay: Span::micros(1),
        headroom: 0,
    };
    Memory::new(profile, &vec![shape; ports], Rate::gbps(100))
}

#[test]
fn reserved_then_shared_then_headroom_then_nothing() {
    // 2 ports: 2 · 8 · 2,000 B reserved and 2 · 4,000 B headroom leave 20,000 B shared; α = 1/2.
    let mut memory = memory(&profile(60_000, -1, 4_000, None), 2);
    let admit = |memory: &mut Memory| memory.admit(0, 1, CLASS, CLASS, 1_000);
    assert_eq!(
        (admit(&mut memory), admit(&mut memory)),
        (Admission::Accepted, Admission::Accepted)
    );
    assert_eq!(memory.shared_of(0, CLASS), 0, "the reserve comes first");
    // A packet fits while used + 1,000 ≤ (20,000 − used) / 2: for the last time at 6,000.
    for _ in 0..7 {
        assert_eq!(admit(&mut memory), Admission::Accepted);
    }
    assert_eq!(
        (memory.shared_of(0, CLASS), memory.headroom_of(0, CLASS)),
        (7_000, 0)
    );
    assert!(
        memory.wants_pause(0, CLASS),
        "7,000 is not under (20,000 − 7,000) / 2"
    );
    for _ in 0..4 {
        assert_eq!(admit(&mut memory), Admission::Accepted);
    }
    assert_eq!(memory.headroom_of(0, CLASS), 4_000);
    assert_eq!(
        admit(&mut memory),
        Admission::Dropped(DropReason::HeadroomFull)
    );
    assert_eq!(memory.audit(), None);
    // Headroom is emptied first, and only then may the other end go on, 3,000 B under the threshold.
    for _ in 0..4 {
        assert!(!memory.allows_resume(0, CLASS));
        memory.release(0, 1, CLASS, CLASS, 1_000);
    }
    assert_eq!(memory.headroom_of(0, CLASS), 0);
    let resumed_at = (0..9).find(|_| {
        memory.release(0, 1, CLASS, CLASS, 1_000);
        memory.allows_resume(0, CLASS)
    });
    assert_eq!(
        (resumed_at, memory.shared_of(0, CLASS)),
        (Some(2), 4_000),
        "5,000 + 3,000 > 15,000 / 2, and 4,000 + 3,000 ≤ 16,000 / 2"
    );
}

#[test]
fn lossy_classes_drop_at_their_thresholds() {
    let mut memory = memory(&profile(60_000, -1, 4_000, None), 2);
    let admitted = (0..20)
        .filter(|_| memory.admit(0, 1, LOSSY, LOSSY, 1_000) == Admission::Accepted)
        .count();
    assert_eq!(admitted, 5, "the egress queue's 5,000 B");
    assert_eq!(
        memory.admit(0, 1, LOSSY, LOSSY, 1_000),
        Admission::Dropped(DropReason::EgressThreshold)
    );
    assert!(!memory.wants_pause(0, LOSSY));
    for egress in 0..2 {
        while memory.admit(1, egress, LOSSY, LOSSY, 500) == Admission::Accepted {}
    }
    assert_eq!(
        memory.headroom_of(1, LOSSY),
        0,
        "no headroom for lossy traffic"
    );
    assert_eq!(memory.audit(), None);
}

#[test]
fn a_headroom_pool_is_shared() {
    let mut memory = memory(&profile(60_000, -7, 4_000, Some(6_000)), 3);
    let fill = |memory: &mut Memory, port| {
        (0..20)
            .filter(|_| memory.admit(port, 2, CLASS, CLASS, 1_000) == Admission::Accepted)
            .count()
    };
    assert_eq!(fill(&mut memory, 0), 6, "2,000 reserved and 4,000 headroom");
    assert_eq!(
        fill(&mut memory, 1),
        4,
        "2,000 reserved and what is left of the pool"
    );
    assert_eq!(memory.audit(), None);
}

#[test]
fn cells_are_taken_whole() {
    let mut profile = profile(60_000, 0, 4_000, None);
    profile.buffer.cell = Bytes::new(256);
    let mut memory = memory(&profile, 2);
    assert_eq!(memory.admit(0, 1, CLASS, CLASS, 257), Admission::Accepted);
    assert_eq!(memory.queued(1, CLASS), 512);
    memory.release(0, 1, CLASS, CLASS, 257);
    assert_eq!(memory.totals(), (0, 0));
}

/// Packets in and out at random: the books always balance, and an empty memory is empty.
#[test]
fn books_balance_under_random_traffic() {
    for accounting in [BufferAccounting::SharedBuffer, BufferAccounting::Hpcc] {
        for seed in 0..20 {
            let mut random = Random::from_seed(seed);
            let mut profile = profile(
                400_000,
                -2,
                9_000,
                if seed % 2 == 0 { None } else { Some(20_000) },
            );
            profile.buffer.accounting = accounting;
            profile.buffer.cell = Bytes::new(if accounting == BufferAccounting::Hpcc {
                1
            } else {
                1 + random.below(255)
            });
            let mut memory = memory(&profile, 4);
            let mut held = Vec::new();
            for _ in 0..3_000 {
                if random.chance(0.55) {
                    let ports = (random.below(4) as usize, random.below(4) as usize);
                    let class = Class::new(random.below(8) as u8);
                    let length = 64 + random.below(4_000);
                    if memory.admit(ports.0, ports.1, class, class, length) == Admission::Accepted {
                        held.push((ports, class, length));
                    }
                } else if !held.is_empty() {
                    let ((ingress, egress), class, length) =
                        held.swap_remove(random.below(held.len() as u64) as usize);
                    memory.release(ingress, egress, class, class, length);
                }
                assert_eq!(memory.audit(), None, "seed {seed}");
            }
            for ((ingress, egress), class, length) in held {
                memory.release(ingress, egress, class, class, length);
            }
            assert_eq!(
                (memory.totals(), memory.audit()),
                ((0, 0), None),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn hpcc_thresholds_depend_on_the_port_rate() {
    let mut profile = profile(4 << 20, 0, 0, None);
    profile.buffer.accounting = BufferAccounting::Hpcc;
    let shape = |gbps| PortShape {
        rate: Rate::gbps(gbps),
        delay: Span::micros(1),
        headroom: 0,
    };
    let memory = Memory::new(&profile, &[shape(100), shape(400)], Rate::gbps(100));
    assert_eq!(memory.groups[CLASS.index()].headroom_limit, 37_500);
    assert_eq!(memory.groups[8 + CLASS.index()].headroom_limit, 150_000);
    assert_eq!((memory.groups[0].shift, memory.groups[8].shift), (3, 1));
    assert_eq!(memory.shared_total, (4 << 20) - 187_500 - 2 * 4096);
}
