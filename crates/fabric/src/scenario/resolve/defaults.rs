//! What holds where a scenario says nothing: a generic switch and a generic NIC, not those of a product.

use softfabric_transport::rate::{DcqcnNicParameters, RateControlConfig};
use softfabric_units::{Bytes, Class, ClassMask, Rate, Span};

use crate::plan::{
    AcknowledgementClass, Addressing, Alpha, Arbitration, BufferAccounting, BufferProfile,
    ClassProfile, Ecn, EgressLimit, Forwarding, HostProfile, IngressLimit, Layer, LoadBalancing,
    LossRecovery, NicProfile, NotificationPoint, PauseProfile, ReceivePath, Scheduling,
    ServerProfile, SwitchProfile, Xon,
};

/// The class that PFC protects.
const LOSSLESS: Class = Class::new(3);

/// From the class of CNPs on, queues are served first.
const FIRST_STRICT: Class = Class::new(6);

pub(crate) fn switch_profile(rates: &[Rate]) -> SwitchProfile {
    SwitchProfile {
        forwarding: Forwarding::StoreAndForward,
        latency: Span::nanos(500),
        layer: Layer::Bridge,
        buffer: BufferProfile {
            total: Bytes::mib(32),
            cell: Bytes::new(256),
            headroom_pool: None,
            accounting: BufferAccounting::SharedBuffer,
        },
        classes: std::array::from_fn(|index| {
            let class = Class::new(index as u8);
            class_profile(class, class == LOSSLESS, rates)
        }),
        pause: PauseProfile {
            quanta: Some(u16::MAX),
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

/// A lossless class pauses at 1/8 of the free memory and is marked; a lossy one drops at egress.
pub(crate) fn class_profile(class: Class, lossless: bool, rates: &[Rate]) -> ClassProfile {
    let scheduling = if class >= FIRST_STRICT {
        Scheduling::Strict
    } else {
        Scheduling::Weighted(1)
    };
    if !lossless {
        return ClassProfile {
            lossless,
            ingress: IngressLimit {
                reserved: Bytes::ZERO,
                threshold: Alpha::Unlimited,
                headroom: Some(Bytes::ZERO),
                xon: Xon {
                    size: Bytes::ZERO,
                    offset: None,
                },
            },
            egress: EgressLimit {
                reserved: Bytes::ZERO,
                threshold: Alpha::Dynamic(0),
            },
            ecn: Vec::new(),
            scheduling,
        };
    }
    ClassProfile {
        lossless,
        ingress: IngressLimit {
            reserved: Bytes::kib(4),
            threshold: Alpha::Dynamic(-3),
            headroom: None,
            xon: Xon {
                size: Bytes::ZERO,
                offset: Some(Bytes::kib(8)),
            },
        },
        egress: EgressLimit {
            reserved: Bytes::ZERO,
            threshold: Alpha::Unlimited,
        },
        ecn: (rates.iter()).map(|rate| marking(*rate)).collect(),
        scheduling,
    }
}

/// 100 KB, 400 KB and 20 % for each 25 Gb/s, as the HPCC paper's DCQCN.
fn marking(rate: Rate) -> Ecn {
    let share = |bytes: u64| {
        let scaled = u128::from(bytes) * u128::from(rate.as_bps()) / 25_000_000_000;
        Bytes::new(scaled as u64)
    };
    Ecn {
        rate: Some(rate),
        kmin: share(100_000),
        kmax: share(400_000),
        pmax: 0.2,
        drop_not_capable: false,
    }
}

pub(crate) fn host_profile(lossless: ClassMask, addressing: Addressing) -> HostProfile {
    HostProfile {
        tcp: None,
        nic: NicProfile {
            mtu: Bytes::new(4096),
            rate_control: RateControlConfig::DcqcnNic(DcqcnNicParameters::nvidia_default()),
            window: None,
            loss_recovery: LossRecovery::GoBackN,
            notification: NotificationPoint::Cnp {
                interval: NIC_INTERVAL,
                within: crate::plan::WithinInterval::Forgotten,
            },
            acknowledge_every: 1,
            acknowledgement_class: AcknowledgementClass::Request,
            notification_class: FIRST_STRICT,
            arbitration: Arbitration::ControlFirst,
            timeout: 14,
            retry_count: 7,
            rnr_retry: 7,
            max_reads: 16,
        },
        addressing,
        receive: ReceivePath {
            drain: None,
            buffer: Bytes::mib(2),
            xoff: Bytes::mib(1),
            xon: Bytes::kib(768),
        },
        lossless,
        pause_quanta: Some(u16::MAX),
        server: ServerProfile::default(),
    }
}

/// NVIDIA's `min_time_between_cnps`.
pub(super) const NIC_INTERVAL: Span = Span::micros(4);

/// The interval of DCQCN's paper.
pub(super) const PAPER_INTERVAL: Span = Span::micros(50);
