//! The switches.

use softfabric_units::{Bytes, Rate, Span};

use super::switch::{HeadroomRow, HeadroomSource, SwitchPreset};
use super::{Sourced, assumed, public};
use crate::headroom::{CableLength, HeadroomProfile};
use crate::plan::{
    Alpha, BufferAccounting, Ecn, Forwarding, LoadBalancing, Watchdog, WatchdogAction, Xon,
};

/// Every switch.
pub(super) const ALL: &[SwitchPreset] = &[
    SN2700,
    SN5600,
    ARISTA_7050QX,
    S6100,
    ARISTA_7260CX3,
    Z9332F,
    ARISTA_7060X6,
    HPCC,
];

/// SONiC's AZURE_LOSSLESS profile.
const AZURE_ECN: &[Ecn] = &[Ecn {
    rate: None,
    kmin: Bytes::new(1_048_576),
    kmax: Bytes::new(2_097_152),
    pmax: 0.05,
    drop_not_capable: true,
}];

const AZURE_QOS: &str =
    "SONiC src/sonic-config-engine/tests/sample_output/py3/qos-arista7050.json: AZURE_LOSSLESS";

/// What SONiC sets alike on every platform, and what is assumed alike.
const SONIC: SwitchPreset = SwitchPreset {
    name: "",
    aliases: &[],
    summary: "",
    forwarding: assumed(
        Forwarding::StoreAndForward,
        "SONiC leaves cut-through off unless it is asked for",
    ),
    latency: assumed(Span::nanos(800), "no public figure was found"),
    buffer: assumed(Bytes::ZERO, ""),
    cell: assumed(Bytes::ZERO, ""),
    accounting: assumed(
        BufferAccounting::SharedBuffer,
        "SAI's model of ingress priority groups and egress queues",
    ),
    headroom_pool: assumed(None, "the platform's files name no `xoff` for the pool"),
    headroom: assumed(HeadroomSource::Fixed(Bytes::ZERO), ""),
    lossless: public(
        &[3, 4],
        "SONiC src/sonic-config-engine/tests/sample_output/py3/qos-arista7050.json: pfc_enable 3,4",
    ),
    reserved: assumed(Bytes::ZERO, ""),
    alpha: assumed(Alpha::Dynamic(0), ""),
    xon: assumed(
        Xon {
            size: Bytes::ZERO,
            offset: None,
        },
        "",
    ),
    lossy_ingress: assumed(Alpha::Dynamic(3), ""),
    lossy_egress: assumed(Alpha::Dynamic(3), ""),
    lossy_queue_reserved: assumed(Bytes::ZERO, "the platform's files reserve none"),
    ecn: public(AZURE_ECN, AZURE_QOS),
    weights: public(
        (15, 14),
        "SONiC src/sonic-config-engine/tests/sample_output/py3/qos-arista7050.json: scheduler.1 and scheduler.0",
    ),
    pause_quanta: assumed(
        Some(u16::MAX),
        "the longest pause, as most switches ask for",
    ),
    response_delay: assumed(
        Span::nanos(311),
        "3.8 KiB at 100 Gb/s, the peer response of the SN2700's headroom table",
    ),
    watchdog: public(
        Some(Watchdog {
            detection: Span::millis(200),
            restoration: Span::millis(200),
            poll: Span::millis(200),
            action: WatchdogAction::Drop,
        }),
        "sonic-utilities pfcwd: its defaults, up to 32 ports",
    ),
    load_balancing: assumed(
        LoadBalancing::EcmpHash,
        "five-tuple hash, every platform's default",
    ),
};

const SPECTRUM_CUT_THROUGH: Sourced<Forwarding> = public(
    Forwarding::CutThrough {
        header: Bytes::new(64),
    },
    "NVIDIA's announcements of Spectrum: cut-through port to port; how much it reads first is assumed",
);

const SN2700: SwitchPreset = SwitchPreset {
    name: "sn2700",
    aliases: &["spectrum1", "msn2700"],
    summary: "NVIDIA SN2700: Spectrum-1, 32 ports of 100 Gb/s",
    forwarding: SPECTRUM_CUT_THROUGH,
    latency: public(
        Span::nanos(300),
        "Mellanox's announcement of Spectrum, June 2015: 300 ns port to port at 100 GbE",
    ),
    buffer: public(
        Bytes::new(13_945_824),
        "SONiC mellanox/x86_64-mlnx_msn2700-r0/ACS-MSN2700/buffers_defaults_t1.j2: egress_lossless_pool",
    ),
    cell: assumed(
        Bytes::new(96),
        "with it the headroom table comes out exactly",
    ),
    headroom: public(
        HeadroomSource::Formula(HeadroomProfile::spectrum1()),
        "SONiC mellanox/x86_64-mlnx_msn2700-r0/ACS-MSN2700/pg_profile_lookup.ini, all 15 rows",
    ),
    reserved: assumed(
        Bytes::ZERO,
        "the table's `size` is XON and headroom, which are accounted for apart",
    ),
    alpha: public(
        Alpha::Dynamic(0),
        "SONiC mellanox/x86_64-mlnx_msn2700-r0/ACS-MSN2700/pg_profile_lookup.ini: threshold 0",
    ),
    xon: public(
        Xon {
            size: Bytes::new(19_456),
            offset: None,
        },
        "SONiC mellanox/x86_64-mlnx_msn2700-r0/ACS-MSN2700/pg_profile_lookup.ini: xon",
    ),
    lossy_ingress: public(
        Alpha::Dynamic(3),
        "SONiC mellanox/x86_64-mlnx_msn2700-r0/ACS-MSN2700/buffers_defaults_t1.j2: ingress_lossy_profile",
    ),
    lossy_egress: public(
        Alpha::Dynamic(3),
        "SONiC mellanox/x86_64-mlnx_msn2700-r0/ACS-MSN2700/buffers_defaults_t1.j2: q_lossy_profile",
    ),
    ..SONIC
};

const SN5600: SwitchPreset = SwitchPreset {
    name: "sn5600",
    aliases: &["spectrum4"],
    summary: "NVIDIA SN5600: Spectrum-4, 64 ports of 800 Gb/s",
    forwarding: SPECTRUM_CUT_THROUGH,
    latency: assumed(
        Span::nanos(600),
        "no public figure was found; twice Spectrum-1's",
    ),
    buffer: public(
        Bytes::new(158_229_504),
        "SONiC mellanox/x86_64-nvidia_sn5600-r0/ACS-SN5600/buffers_defaults_t1.j2: egress_lossless_pool",
    ),
    cell: assumed(
        Bytes::new(192),
        "with it the headroom table comes out exactly",
    ),
    headroom: public(
        HeadroomSource::Formula(HeadroomProfile::spectrum4()),
        "SONiC mellanox/x86_64-nvidia_sn5600-r0/ACS-SN5600/pg_profile_lookup.ini, all 24 rows",
    ),
    reserved: assumed(
        Bytes::ZERO,
        "the table's `size` is XON and headroom, which are accounted for apart",
    ),
    alpha: public(
        Alpha::Dynamic(0),
        "SONiC mellanox/x86_64-nvidia_sn5600-r0/ACS-SN5600/pg_profile_lookup.ini: threshold 0",
    ),
    xon: public(
        Xon {
            size: Bytes::new(19_456),
            offset: None,
        },
        "SONiC mellanox/x86_64-nvidia_sn5600-r0/ACS-SN5600/pg_profile_lookup.ini: xon (38,912 at 800 Gb/s)",
    ),
    lossy_ingress: public(
        Alpha::Dynamic(3),
        "SONiC mellanox/x86_64-nvidia_sn5600-r0/ACS-SN5600/buffers_defaults_t1.j2: ingress_lossy_profile",
    ),
    lossy_egress: public(
        Alpha::Dynamic(3),
        "SONiC mellanox/x86_64-nvidia_sn5600-r0/ACS-SN5600/buffers_defaults_t1.j2: q_lossy_profile",
    ),
    ..SONIC
};

/// Broadcom's cell sizes are not in the files; every amount in them is a multiple of these.
const CELL_208: Sourced<Bytes> = assumed(
    Bytes::new(208),
    "every amount of its pg_profile_lookup.ini is a multiple of 208 B",
);
const CELL_254: Sourced<Bytes> = assumed(
    Bytes::new(254),
    "every amount of its pg_profile_lookup.ini is a multiple of 254 B",
);

/// SAI resumes at the larger of `xon` and XOFF less `xon_offset`.
const fn resume(xon: u64, offset: u64) -> Xon {
    Xon {
        size: Bytes::new(xon),
        offset: Some(Bytes::new(offset)),
    }
}

const ARISTA_7050QX: SwitchPreset = SwitchPreset {
    name: "arista7050qx",
    aliases: &["trident2"],
    summary: "Arista 7050QX-32S: Broadcom Trident 2, 32 ports of 40 Gb/s",
    latency: public(
        Span::nanos(550),
        "Arista 7050X data sheet, quoted at people.ucsc.edu/~warner/Bufs/Arista-7050X: 550 to 650 ns",
    ),
    buffer: public(
        Bytes::new(12_766_208),
        "SONiC arista/x86_64-arista_7050_qx32s/Arista-7050-QX-32S/buffers_defaults_t1.j2: egress_lossless_pool",
    ),
    cell: CELL_208,
    headroom: public(
        HeadroomSource::Fixed(Bytes::new(55_120)),
        "SONiC arista/x86_64-arista_7050_qx32s/Arista-7050QX32S-Q32/pg_profile_lookup.ini: all rows alike",
    ),
    reserved: public(
        Bytes::new(1_248),
        "SONiC arista/x86_64-arista_7050_qx32s/Arista-7050QX32S-Q32/pg_profile_lookup.ini: size 56,368 less xoff",
    ),
    alpha: public(
        Alpha::Dynamic(-3),
        "SONiC arista/x86_64-arista_7050_qx32s/Arista-7050QX32S-Q32/pg_profile_lookup.ini: threshold -3",
    ),
    xon: public(
        resume(18_432, 2_496),
        "SONiC arista/x86_64-arista_7050_qx32s/Arista-7050QX32S-Q32/pg_profile_lookup.ini: xon and xon_offset",
    ),
    lossy_ingress: public(
        Alpha::Dynamic(3),
        "SONiC arista/x86_64-arista_7050_qx32s/Arista-7050-QX-32S/buffers_defaults_t1.j2: ingress_lossy_profile",
    ),
    lossy_egress: public(
        Alpha::Dynamic(3),
        "SONiC arista/x86_64-arista_7050_qx32s/Arista-7050-QX-32S/buffers_defaults_t1.j2: egress_lossy_profile",
    ),
    lossy_queue_reserved: public(
        Bytes::new(1_518),
        "SONiC arista/x86_64-arista_7050_qx32s/Arista-7050-QX-32S/buffers_defaults_t1.j2: egress_lossy_profile",
    ),
    ..SONIC
};

const S6100: SwitchPreset = SwitchPreset {
    name: "s6100",
    aliases: &["tomahawk", "dell6100"],
    summary: "Dell S6100: Broadcom Tomahawk, 64 ports of 40 Gb/s",
    buffer: public(
        Bytes::new(15_982_720),
        "SONiC src/sonic-config-engine/tests/sample_output/py3/buffers-dell6100.json: egress_lossless_pool",
    ),
    cell: CELL_208,
    headroom_pool: public(
        Some(Bytes::new(4_194_112)),
        "SONiC src/sonic-config-engine/tests/sample_output/py3/buffers-dell6100.json: ingress_lossless_pool xoff",
    ),
    headroom: public(
        HeadroomSource::Table(S6100_HEADROOM),
        "SONiC dell/x86_64-dell_s6100_c2538-r0/Force10-S6100/pg_profile_lookup.ini: xoff",
    ),
    reserved: public(
        Bytes::new(1_248),
        "SONiC dell/x86_64-dell_s6100_c2538-r0/Force10-S6100/pg_profile_lookup.ini: size",
    ),
    alpha: public(
        Alpha::Dynamic(-4),
        "SONiC dell/x86_64-dell_s6100_c2538-r0/Force10-S6100/pg_profile_lookup.ini: threshold -4",
    ),
    xon: public(
        Xon {
            size: Bytes::new(2_288),
            offset: None,
        },
        "SONiC dell/x86_64-dell_s6100_c2538-r0/Force10-S6100/pg_profile_lookup.ini: xon",
    ),
    lossy_ingress: public(
        Alpha::Static(Bytes::new(10_875_072)),
        "SONiC src/sonic-config-engine/tests/sample_output/py3/buffers-dell6100.json: ingress_lossy_profile",
    ),
    lossy_egress: public(
        Alpha::Dynamic(3),
        "SONiC src/sonic-config-engine/tests/sample_output/py3/buffers-dell6100.json: egress_lossy_profile",
    ),
    lossy_queue_reserved: public(
        Bytes::new(1_518),
        "SONiC src/sonic-config-engine/tests/sample_output/py3/buffers-dell6100.json: egress_lossy_profile",
    ),
    ..SONIC
};

const ARISTA_7260CX3: SwitchPreset = SwitchPreset {
    name: "arista7260cx3",
    aliases: &["tomahawk2"],
    summary: "Arista 7260CX3-64: Broadcom Tomahawk 2, 64 ports of 100 Gb/s",
    buffer: public(
        Bytes::new(43_481_152),
        "SONiC arista/x86_64-arista_7260cx3_64/Arista-7260CX3-C64/buffers_defaults_t1.j2: egress_lossless_pool",
    ),
    cell: CELL_208,
    headroom_pool: public(
        Some(Bytes::new(8_965_632)),
        "SONiC arista/x86_64-arista_7260cx3_64/Arista-7260CX3-C64/buffers_defaults_t1.j2: ingress_lossless_pool xoff",
    ),
    headroom: public(
        HeadroomSource::Table(ARISTA_7260CX3_HEADROOM),
        "SONiC arista/x86_64-arista_7260cx3_64/Arista-7260CX3-C64/pg_profile_lookup.ini: xoff",
    ),
    reserved: public(
        Bytes::new(1_248),
        "SONiC arista/x86_64-arista_7260cx3_64/Arista-7260CX3-C64/pg_profile_lookup.ini: size",
    ),
    alpha: public(
        Alpha::Dynamic(-3),
        "SONiC arista/x86_64-arista_7260cx3_64/Arista-7260CX3-C64/pg_profile_lookup.ini: threshold -3",
    ),
    xon: public(
        resume(1_248, 2_496),
        "SONiC arista/x86_64-arista_7260cx3_64/Arista-7260CX3-C64/pg_profile_lookup.ini: xon and xon_offset",
    ),
    lossy_ingress: public(
        Alpha::Static(Bytes::new(44_302_336)),
        "SONiC arista/x86_64-arista_7260cx3_64/Arista-7260CX3-C64/buffers_defaults_t1.j2: ingress_lossy_profile",
    ),
    lossy_egress: public(
        Alpha::Dynamic(-1),
        "SONiC arista/x86_64-arista_7260cx3_64/Arista-7260CX3-C64/buffers_defaults_t1.j2: egress_lossy_profile",
    ),
    lossy_queue_reserved: public(
        Bytes::new(1_664),
        "SONiC arista/x86_64-arista_7260cx3_64/Arista-7260CX3-C64/buffers_defaults_t1.j2: egress_lossy_profile",
    ),
    ..SONIC
};

const Z9332F: SwitchPreset = SwitchPreset {
    name: "z9332f",
    aliases: &["tomahawk3"],
    summary: "Dell Z9332F: Broadcom Tomahawk 3, 32 ports of 400 Gb/s",
    buffer: public(
        Bytes::new(67_117_468),
        "SONiC dell/x86_64-dellemc_z9332f_d1508-r0/DellEMC-Z9332f-O32/buffers_defaults_t1.j2: egress_lossless_profile",
    ),
    cell: CELL_254,
    headroom_pool: public(
        Some(Bytes::new(27_200_352)),
        "SONiC dell/x86_64-dellemc_z9332f_d1508-r0/DellEMC-Z9332f-O32/buffers_defaults_t1.j2: ingress_lossless_pool xoff",
    ),
    headroom: public(
        HeadroomSource::Table(Z9332F_HEADROOM),
        "SONiC dell/x86_64-dellemc_z9332f_d1508-r0/DellEMC-Z9332f-O32/pg_profile_lookup.ini: xoff",
    ),
    reserved: public(
        Bytes::new(2_540),
        "SONiC dell/x86_64-dellemc_z9332f_d1508-r0/DellEMC-Z9332f-O32/pg_profile_lookup.ini: size",
    ),
    alpha: public(
        Alpha::Dynamic(-2),
        "SONiC dell/x86_64-dellemc_z9332f_d1508-r0/DellEMC-Z9332f-O32/pg_profile_lookup.ini: threshold -2",
    ),
    xon: public(
        resume(2_540, 2_540),
        "SONiC dell/x86_64-dellemc_z9332f_d1508-r0/DellEMC-Z9332f-O32/pg_profile_lookup.ini: xon and xon_offset",
    ),
    lossy_ingress: public(
        Alpha::Static(Bytes::new(66_394_076)),
        "SONiC dell/x86_64-dellemc_z9332f_d1508-r0/DellEMC-Z9332f-O32/buffers_defaults_t1.j2: ingress_lossy_profile",
    ),
    lossy_egress: public(
        Alpha::Dynamic(1),
        "SONiC dell/x86_64-dellemc_z9332f_d1508-r0/DellEMC-Z9332f-O32/buffers_defaults_t1.j2: egress_lossy_profile",
    ),
    lossy_queue_reserved: public(
        Bytes::new(1_778),
        "SONiC dell/x86_64-dellemc_z9332f_d1508-r0/DellEMC-Z9332f-O32/buffers_defaults_t1.j2: egress_lossy_profile",
    ),
    ..SONIC
};

const ARISTA_7060X6: SwitchPreset = SwitchPreset {
    name: "arista7060x6",
    aliases: &["tomahawk5"],
    summary: "Arista 7060X6-64PE: Broadcom Tomahawk 5, 64 ports of 800 Gb/s",
    buffer: public(
        Bytes::new(167_546_528),
        "SONiC arista/x86_64-arista_7060x6_64pe/Arista-7060X6-64PE-O128S2/buffers_defaults_t1.j2: egress_lossless_profile",
    ),
    cell: CELL_254,
    headroom_pool: public(
        Some(Bytes::new(29_423_360)),
        "SONiC arista/x86_64-arista_7060x6_64pe/Arista-7060X6-64PE-O128S2/buffers_defaults_t1.j2: ingress_lossless_pool xoff",
    ),
    headroom: public(
        HeadroomSource::Fixed(Bytes::new(612_140)),
        "SONiC arista/x86_64-arista_7060x6_64pe/Arista-7060X6-64PE-O128S2/pg_profile_lookup.ini: 400 Gb/s, 5 to 150 m",
    ),
    reserved: public(
        Bytes::new(18_796),
        "SONiC arista/x86_64-arista_7060x6_64pe/Arista-7060X6-64PE-O128S2/pg_profile_lookup.ini: size",
    ),
    alpha: public(
        Alpha::Dynamic(0),
        "SONiC arista/x86_64-arista_7060x6_64pe/Arista-7060X6-64PE-O128S2/pg_profile_lookup.ini: threshold 0",
    ),
    xon: public(
        resume(0, 3_556),
        "SONiC arista/x86_64-arista_7060x6_64pe/Arista-7060X6-64PE-O128S2/pg_profile_lookup.ini: xon and xon_offset",
    ),
    lossy_ingress: public(
        Alpha::Unlimited,
        "SONiC arista/x86_64-arista_7060x6_64pe/Arista-7060X6-64PE-O128S2/buffers_defaults_t1.j2: static_th is all memory",
    ),
    lossy_egress: public(
        Alpha::Dynamic(0),
        "SONiC arista/x86_64-arista_7060x6_64pe/Arista-7060X6-64PE-O128S2/buffers_defaults_t1.j2: egress_lossy_profile",
    ),
    lossy_queue_reserved: public(
        Bytes::new(1_778),
        "SONiC arista/x86_64-arista_7060x6_64pe/Arista-7060X6-64PE-O128S2/buffers_defaults_t1.j2: egress_lossy_profile",
    ),
    ecn: public(
        &[Ecn {
            rate: None,
            kmin: Bytes::new(131_072),
            kmax: Bytes::new(262_144),
            pmax: 0.05,
            drop_not_capable: true,
        }],
        "a qos.json that SONiC generated for an Arista 7060X6: WRED_LOSSLESS_Q3",
    ),
    weights: public(
        (20, 10),
        "a qos.json that SONiC generated for an Arista 7060X6: SCHEDULER_Q3 and SCHEDULER_DEFAULT",
    ),
    ..SONIC
};

const HPCC_CODE: &str =
    "HPCC ns-3 code (github.com/alibaba-edu/High-Precision-Congestion-Control): switch-mmu.cc";
const HPCC_SWITCH: &str =
    "HPCC ns-3 code (github.com/alibaba-edu/High-Precision-Congestion-Control): switch-node.cc";
const HPCC_CONFIG: &str =
    "HPCC ns-3 code (github.com/alibaba-edu/High-Precision-Congestion-Control): run.py";

const HPCC: SwitchPreset = SwitchPreset {
    name: "hpcc",
    aliases: &[],
    summary: "The switch of the HPCC ns-3 simulator",
    forwarding: public(Forwarding::StoreAndForward, HPCC_SWITCH),
    latency: public(Span::ZERO, HPCC_SWITCH),
    buffer: public(Bytes::mib(32), HPCC_CONFIG),
    cell: public(Bytes::new(1), HPCC_CODE),
    accounting: public(BufferAccounting::Hpcc, HPCC_CODE),
    headroom_pool: public(None, HPCC_CODE),
    headroom: public(HeadroomSource::ByAccounting, HPCC_CODE),
    lossless: public(&[0, 1, 2, 3, 4, 5, 6, 7], HPCC_CODE),
    reserved: public(Bytes::new(4_096), HPCC_CODE),
    alpha: public(Alpha::Dynamic(-3), HPCC_CODE),
    xon: public(resume(0, 3_072), HPCC_CODE),
    lossy_ingress: public(Alpha::Unlimited, HPCC_CODE),
    lossy_egress: public(Alpha::Unlimited, HPCC_CODE),
    lossy_queue_reserved: public(Bytes::ZERO, HPCC_CODE),
    ecn: public(HPCC_ECN, HPCC_CONFIG),
    weights: public((1, 1), HPCC_SWITCH),
    pause_quanta: public(None, HPCC_SWITCH),
    response_delay: public(Span::ZERO, HPCC_SWITCH),
    watchdog: public(None, HPCC_SWITCH),
    load_balancing: public(LoadBalancing::EcmpHpcc, HPCC_SWITCH),
};

/// 100 KB and 400 KB for each 25 Gb/s.
const HPCC_ECN: &[Ecn] = &[
    hpcc_ecn(25),
    hpcc_ecn(50),
    hpcc_ecn(100),
    hpcc_ecn(200),
    hpcc_ecn(400),
];

const fn hpcc_ecn(gbps: u64) -> Ecn {
    Ecn {
        rate: Some(Rate::gbps(gbps)),
        kmin: Bytes::kb(100 * gbps / 25),
        kmax: Bytes::kb(400 * gbps / 25),
        pmax: 0.2,
        drop_not_capable: false,
    }
}

const fn row(gbps: u64, metres: u32, xoff: u64) -> HeadroomRow {
    HeadroomRow {
        speed: Rate::gbps(gbps),
        cable: CableLength::metres(metres),
        xoff: Bytes::new(xoff),
    }
}

const S6100_HEADROOM: &[HeadroomRow] = &[
    row(10, 5, 35_776),
    row(25, 5, 53_248),
    row(40, 5, 66_560),
    row(50, 5, 90_272),
    row(100, 5, 165_568),
    row(10, 40, 37_024),
    row(25, 40, 53_248),
    row(40, 40, 71_552),
    row(50, 40, 96_096),
    row(100, 40, 177_632),
    row(10, 300, 46_176),
    row(25, 300, 79_040),
    row(40, 300, 108_160),
    row(50, 300, 141_856),
    row(100, 300, 268_736),
];

const ARISTA_7260CX3_HEADROOM: &[HeadroomRow] = &[
    row(40, 5, 29_536),
    row(40, 40, 31_616),
    row(40, 300, 48_256),
    row(100, 5, 54_080),
    row(100, 40, 59_696),
    row(100, 300, 101_088),
];

const Z9332F_HEADROOM: &[HeadroomRow] = &[
    row(100, 5, 68_580),
    row(100, 40, 74_422),
    row(100, 300, 117_348),
    row(100, 1_000, 233_172),
    row(100, 2_000, 398_526),
    row(400, 5, 178_562),
    row(400, 40, 201_930),
    row(400, 300, 373_888),
    row(400, 1_000, 836_676),
    row(400, 2_000, 1_498_092),
];
