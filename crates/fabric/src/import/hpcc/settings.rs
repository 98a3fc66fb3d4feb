//! From a config file's values to profiles and a plan.

use std::collections::BTreeMap;

use softfabric_transport::rate::{DcqcnNicParameters, RateControlConfig};
use softfabric_units::{Bytes, Class, ClassMask, Rate, Span, Time};

use super::config::Config;
use super::flows::{HpccFlow, seconds};
use crate::import::ImportError;
use crate::plan::{
    AcknowledgementClass, Action, Addressing, Alpha, Arbitration, BufferAccounting, BufferProfile,
    ClassProfile, Ecn, EgressLimit, Flow, Forwarding, HostProfile, IngressLimit, Layer, LinkId,
    LinkLayer, LoadBalancing, LossRecovery, Network, NicProfile, NodeKind, NotificationPoint,
    Operation, PauseProfile, Plan, PortId, ReceivePath, Recording, Routing, Scheduling,
    ServerProfile, Start, Stop, SwitchProfile, TimedAction, Timing, Xon,
};

/// HPCC's first source port; the next flow of the same pair has the next one.
const FIRST_PORT: u16 = 10_000;

pub(super) fn plan(
    config: &Config<'_>,
    name: &str,
    network: Network,
    flows: &[HpccFlow],
) -> Result<Plan, ImportError> {
    let switch = switch_profile(config, &network)?;
    let host = host_profile(config)?;
    let actions = link_down(config, &network)?;
    let stop: f64 = config.number("SIMULATOR_STOP_TIME", 3.01)?;
    if !(stop > 0.0 && stop < 1e6) {
        let found = stop.to_string();
        return Err(config.wrong("SIMULATOR_STOP_TIME", found, "seconds above zero"));
    }
    Ok(Plan {
        name: name.to_owned(),
        seed: 1,
        timing: Timing::Hpcc,
        network,
        link_layer: LinkLayer::Ethernet,
        routing: Routing::Shortest,
        reroute: Span::ZERO,
        switch_profiles: vec![switch],
        host_profiles: vec![host],
        flows: number_ports(flows),
        triggers: Vec::new(),
        jobs: Vec::new(),
        actions,
        recording: Recording {
            pause_log: true,
            ..Recording::default()
        },
        stop: Stop {
            at: seconds(stop),
            when_done: true,
        },
    })
}

/// Flows with the source ports that HPCC allots: 10000, counting up for each (source, destination).
fn number_ports(flows: &[HpccFlow]) -> Vec<Flow> {
    let mut next = BTreeMap::new();
    (flows.iter())
        .map(|flow| {
            let port = next
                .entry((flow.source, flow.destination))
                .or_insert(FIRST_PORT);
            let udp_source_port = *port;
            *port = port.wrapping_add(1);
            Flow {
                source: flow.source,
                destination: flow.destination,
                source_nic: PortId(0),
                destination_nic: PortId(0),
                bytes: flow.bytes,
                message: None,
                operation: Operation::Write,
                start: Start::At(flow.start),
                class: flow.class,
                dscp: None,
                ecn_capable: true,
                udp_source_port,
                udp_destination_port: flow.destination_port,
                path: None,
                group: String::new(),
                on_sent: None,
                on_received: None,
            }
        })
        .collect()
}

fn switch_profile(config: &Config<'_>, network: &Network) -> Result<SwitchProfile, ImportError> {
    let buffer: u64 = config.number("BUFFER_SIZE", 16)?;
    if !(1..4096).contains(&buffer) {
        let found = buffer.to_string();
        return Err(config.wrong("BUFFER_SIZE", found, "1 to 4095 MiB"));
    }
    let ecn = if config.flag("ENABLE_QCN", true)? {
        marking(config, network)?
    } else {
        Vec::new()
    };
    let class = ClassProfile {
        lossless: true,
        ingress: IngressLimit {
            reserved: Bytes::new(4_096),
            threshold: Alpha::Dynamic(-3),
            headroom: None,
            xon: Xon {
                size: Bytes::ZERO,
                offset: Some(Bytes::new(3_072)),
            },
        },
        egress: EgressLimit {
            reserved: Bytes::ZERO,
            threshold: Alpha::Unlimited,
        },
        ecn,
        scheduling: Scheduling::Weighted(1),
    };
    Ok(SwitchProfile {
        forwarding: Forwarding::StoreAndForward,
        latency: Span::ZERO,
        layer: Layer::Bridge,
        buffer: BufferProfile {
            total: Bytes::mib(buffer),
            cell: Bytes::new(1),
            headroom_pool: None,
            accounting: BufferAccounting::Hpcc,
        },
        classes: std::array::from_fn(|_| class.clone()),
        pause: PauseProfile {
            quanta: None,
            response_delay: Span::ZERO,
            obeys: true,
            obeys_on_lossy: true,
        },
        watchdog: None,
        classifier: crate::plan::Classifier::Priority,
        maps: crate::plan::ClassMaps::default(),
        load_balancing: LoadBalancing::EcmpHpcc,
    })
}

/// KMIN_MAP, KMAX_MAP and PMAX_MAP in one; thresholds are in units of 1,000 B.
fn marking(config: &Config<'_>, network: &Network) -> Result<Vec<Ecn>, ImportError> {
    let maximum = config.map("KMAX_MAP")?;
    let minimum = config.map("KMIN_MAP")?;
    let probability = config.map("PMAX_MAP")?;
    let of = |map: &[(Rate, f64)], key: &str, rate: Rate| {
        (map.iter())
            .find(|(entry, _)| *entry == rate)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                let found = format!("without an entry for {rate}");
                config.wrong(key, found, "an entry for every port rate of a switch")
            })
    };
    let is_switch = |end: crate::plan::Endpoint| {
        matches!(
            network.nodes[end.node.index()].kind,
            NodeKind::Switch { .. }
        )
    };
    for link in &network.links {
        if is_switch(link.a) || is_switch(link.b) {
            of(&maximum, "KMAX_MAP", link.rate)?;
        }
    }
    let mut entries = Vec::new();
    for (rate, kmax) in &maximum {
        let kmin = of(&minimum, "KMIN_MAP", *rate)?;
        let pmax = of(&probability, "PMAX_MAP", *rate)?;
        if !(kmin >= 0.0 && kmin <= *kmax) {
            let found = format!("{kmin} for {rate}, where KMAX_MAP is {kmax}");
            return Err(config.wrong("KMIN_MAP", found, "at most KMAX_MAP"));
        }
        if !(0.0..=1.0).contains(&pmax) {
            let found = format!("{pmax} for {rate}");
            return Err(config.wrong("PMAX_MAP", found, "a probability from 0 to 1"));
        }
        entries.push(Ecn {
            rate: Some(*rate),
            kmin: Bytes::new((kmin * 1e3) as u64),
            kmax: Bytes::new((kmax * 1e3) as u64),
            pmax,
            drop_not_capable: false,
        });
    }
    Ok(entries)
}

fn host_profile(config: &Config<'_>) -> Result<HostProfile, ImportError> {
    let payload: u64 = config.number("PACKET_PAYLOAD_SIZE", 1000)?;
    if !(1..=9_000).contains(&payload) {
        let found = payload.to_string();
        return Err(config.wrong("PACKET_PAYLOAD_SIZE", found, "1 to 9000 bytes"));
    }
    Ok(HostProfile {
        tcp: None,
        nic: NicProfile {
            mtu: Bytes::new(payload),
            rate_control: RateControlConfig::DcqcnNic(dcqcn(config)?),
            window: None,
            loss_recovery: if config.flag("L2_BACK_TO_ZERO", false)? {
                LossRecovery::GoBackZero
            } else {
                LossRecovery::GoBackN
            },
            notification: NotificationPoint::OnAcknowledgement,
            acknowledge_every: 1,
            acknowledgement_class: if config.flag("ACK_HIGH_PRIO", false)? {
                AcknowledgementClass::RequestUnpausedAtHost
            } else {
                AcknowledgementClass::Request
            },
            notification_class: Class::new(0),
            arbitration: Arbitration::ControlFirst,
            timeout: 0,
            retry_count: 7,
            rnr_retry: 7,
            max_reads: 16,
        },
        addressing: Addressing::RoceV2Ipv4,
        receive: ReceivePath {
            drain: None,
            buffer: Bytes::mib(1),
            xoff: Bytes::mib(1),
            xon: Bytes::mib(1),
        },
        lossless: ClassMask::ALL,
        pause_quanta: None,
        server: ServerProfile::default(),
    })
}

fn dcqcn(config: &Config<'_>) -> Result<DcqcnNicParameters, ImportError> {
    let parameters = DcqcnNicParameters {
        alpha_gain: config.number("EWMA_GAIN", 0.0)?,
        alpha_period: micros(config, "ALPHA_RESUME_INTERVAL", 55.0)?,
        decrease_period: micros(config, "RATE_DECREASE_INTERVAL", 4.0)?,
        clamp_target: config.flag("CLAMP_TARGET_RATE", false)?,
        minimum_rate: config.rate("MIN_RATE", Some(Rate::mbps(100)))?,
        increase_period: micros(config, "RP_TIMER", 0.0)?,
        fast_recovery_stages: config.number("FAST_RECOVERY_TIMES", 5)?,
        additive_increase: config.rate("RATE_AI", None)?,
        hyper_increase: config.rate("RATE_HAI", None)?,
        ..DcqcnNicParameters::hpcc(Rate::gbps(100))
    };
    parameters.check().map_err(|error| {
        let key = match error.parameter {
            "alpha_gain" => "EWMA_GAIN",
            "alpha_period" => "ALPHA_RESUME_INTERVAL",
            "decrease_period" => "RATE_DECREASE_INTERVAL",
            "increase_period" => "RP_TIMER",
            "minimum_rate" => "MIN_RATE",
            other => other,
        };
        config.wrong(key, error.found, error.needed)
    })?;
    Ok(parameters)
}

/// HPCC hands these to `MicroSeconds(uint64_t)`, which drops the fraction.
fn micros(config: &Config<'_>, key: &'static str, default: f64) -> Result<Span, ImportError> {
    let value: f64 = config.number(key, default)?;
    if !(0.0..1e9).contains(&value) {
        return Err(config.wrong(key, value.to_string(), "microseconds"));
    }
    Ok(Span::micros(value as u64))
}

/// `LINK_DOWN t a b`: t µs after 2 s the link between a and b goes down; 0 for none.
fn link_down(config: &Config<'_>, network: &Network) -> Result<Vec<TimedAction>, ImportError> {
    let [time, a, b] = config.three("LINK_DOWN")?;
    if time == 0 {
        return Ok(Vec::new());
    }
    let link = network.links.iter().position(|link| {
        let ends = (u64::from(link.a.node.0), u64::from(link.b.node.0));
        ends == (a, b) || ends == (b, a)
    });
    let Some(link) = link else {
        let found = format!("between {a} and {b}");
        return Err(config.wrong("LINK_DOWN", found, "a link of the topology file"));
    };
    Ok(vec![TimedAction {
        at: Time::from_nanos(2_000_000_000) + Span::micros(time),
        action: Action::LinkDown(LinkId(link as u32)),
    }])
}
