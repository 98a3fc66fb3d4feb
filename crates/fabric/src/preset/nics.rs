//! The NICs.

use softfabric_transport::rate::DcqcnNicParameters;
use softfabric_units::{Bytes, Class, Rate, Span};

use super::nic::NicPreset;
use super::{assumed, public};
use crate::plan::{
    AcknowledgementClass, Arbitration, LossRecovery, NotificationPoint, ReceivePath,
};

/// Every NIC.
pub(super) const ALL: &[NicPreset] = &[CONNECTX5, CONNECTX6, CONNECTX7, HPCC];

const PERFTEST: &str = "linux-rdma/perftest perftest_parameters.h";
const QUERIED: &str = "mlxconfig queries of ConnectX-4 Lx, -5 and later, all alike; NVIDIA's DCQCN CC Parameters page";

fn nvidia(_line: Rate) -> DcqcnNicParameters {
    DcqcnNicParameters::nvidia_default()
}

/// What NVIDIA's NICs have in common.
const CONNECTX: NicPreset = NicPreset {
    name: "",
    aliases: &[],
    summary: "",
    mtu: assumed(
        Bytes::new(4_096),
        "the largest, which an Ethernet MTU of 9,000 allows",
    ),
    rate_control: public(nvidia, QUERIED),
    loss_recovery: public(
        LossRecovery::GoBackN,
        "an mlxconfig query: RDMA_SELECTIVE_REPEAT_EN false",
    ),
    notification: public(
        NotificationPoint::Cnp {
            interval: Span::micros(4),
            within: crate::plan::WithinInterval::Forgotten,
        },
        "mlxconfig queries, firmware 16.35 and later: MIN_TIME_BETWEEN_CNPS 4",
    ),
    notification_class: public(Class::new(6), "mlxconfig queries: CNP_802P_PRIO 6"),
    notification_dscp: public(Some(48), "mlxconfig queries: CNP_DSCP 48"),
    acknowledge_every: assumed(1, "not documented"),
    acknowledgement_class: assumed(
        AcknowledgementClass::Request,
        "acknowledgements are sent on the queue pair's service level",
    ),
    arbitration: assumed(Arbitration::ControlFirst, "not documented"),
    timeout: public(14, PERFTEST),
    retry_count: assumed(7, "the most, as perftest and NCCL set it"),
    rnr_retry: assumed(7, "for ever, as perftest and NCCL set it"),
    max_reads: assumed(16, "ibv_devinfo's max_qp_rd_atom of mlx5 devices"),
    receive: assumed(
        ReceivePath {
            drain: None,
            buffer: Bytes::kib(512),
            xoff: Bytes::kib(256),
            xon: Bytes::kib(192),
        },
        "the order of what mlnx_qos shows; firmware sets it by link and MTU",
    ),
    lossless: assumed(
        &[3],
        "the class that RoCE guides enable PFC on; firmware has none",
    ),
    pause_quanta: assumed(Some(u16::MAX), "the longest pause"),
};

const CONNECTX5: NicPreset = NicPreset {
    name: "connectx5",
    aliases: &["cx5", "connectx-5"],
    summary: "NVIDIA ConnectX-5, 100 Gb/s",
    loss_recovery: assumed(
        LossRecovery::GoBackN,
        "its mlxconfig query shows no selective repeat",
    ),
    ..CONNECTX
};

const CONNECTX6: NicPreset = NicPreset {
    name: "connectx6",
    aliases: &["cx6", "connectx-6"],
    summary: "NVIDIA ConnectX-6 and -6 Dx, 200 Gb/s",
    ..CONNECTX
};

const CONNECTX7: NicPreset = NicPreset {
    name: "connectx7",
    aliases: &["cx7", "connectx-7"],
    summary: "NVIDIA ConnectX-7, 400 Gb/s",
    ..CONNECTX
};

const HPCC_CONFIG: &str =
    "HPCC ns-3 code (github.com/alibaba-edu/High-Precision-Congestion-Control): run.py";
const HPCC_CODE: &str =
    "HPCC ns-3 code (github.com/alibaba-edu/High-Precision-Congestion-Control): rdma-hw.cc";

const HPCC: NicPreset = NicPreset {
    name: "hpcc",
    aliases: &[],
    summary: "The host of the HPCC ns-3 simulator with DCQCN",
    mtu: public(Bytes::new(1_000), HPCC_CONFIG),
    rate_control: public(DcqcnNicParameters::hpcc, HPCC_CONFIG),
    loss_recovery: public(LossRecovery::GoBackN, HPCC_CONFIG),
    notification: public(NotificationPoint::OnAcknowledgement, HPCC_CODE),
    notification_class: public(Class::new(3), HPCC_CODE),
    notification_dscp: public(None, HPCC_CODE),
    acknowledge_every: public(1, HPCC_CONFIG),
    acknowledgement_class: public(AcknowledgementClass::RequestUnpausedAtHost, HPCC_CONFIG),
    arbitration: public(Arbitration::ControlFirst, HPCC_CODE),
    timeout: public(0, HPCC_CODE),
    retry_count: assumed(7, "it has no retry limit"),
    rnr_retry: assumed(7, "it has no receive queue"),
    max_reads: assumed(16, "it has no reads"),
    receive: assumed(
        ReceivePath {
            drain: None,
            buffer: Bytes::mib(32),
            xoff: Bytes::mib(16),
            xon: Bytes::mib(8),
        },
        "its hosts take everything as it comes, so none of it is reached",
    ),
    lossless: public(&[0, 1, 2, 3, 4, 5, 6, 7], HPCC_CODE),
    pause_quanta: public(None, HPCC_CODE),
};
