//! `[host.tcp]`: the stacks of hosts that speak TCP, and what is different in a fabric of them.

use std::borrow::Cow;

use softfabric_units::{Bytes, Class, Rate};
use softfabric_wire::udp::ROCE_PORT;

use super::defaults::class_profile;
use super::hosts::STAGING;
use super::switches::set;
use crate::plan::{DataPath, HostProfile, Network, NodeId, NodeKind, SwitchProfile};
use crate::scenario::error::Problems;
use crate::scenario::{CpuSettings, FabricKind, Scenario, TcpCongestionControl, TcpSettings};
use crate::tcp::{
    CongestionAlgorithm, CpuModel, CubicParameters, DctcpParameters, StackConfig, TcpConfig,
};

/// IPv4 and TCP headers (RFC 6691).
const HEADERS: Bytes = Bytes::new(40);
/// The port of iperf3: what flows that say nothing go to.
const PORT: u16 = 5201;

/// Linux with jumbo frames.
pub(in crate::scenario) fn default_stack() -> StackConfig {
    StackConfig {
        tcp: TcpConfig {
            maximum_segment: Bytes::new(9000).saturating_sub(HEADERS),
            ..TcpConfig::default()
        },
        cpu: Some(CpuModel::default()),
        call: Bytes::kib(128),
    }
}

/// The scenario with the defaults of a fabric of TCP: no class is lossless.
pub(super) fn defaults(scenario: &Scenario) -> Cow<'_, Scenario> {
    if scenario.fabric.kind != Some(FabricKind::Tcp) {
        return Cow::Borrowed(scenario);
    }
    let mut scenario = scenario.clone();
    scenario.switch.lossless.get_or_insert_default();
    scenario.host.tcp.get_or_insert_default();
    Cow::Owned(scenario)
}

/// The same for profiles: what a scenario of TCP that says nothing leads to.
pub(in crate::scenario) fn default_profiles(
    switch: &mut SwitchProfile,
    host: &mut HostProfile,
    rates: &[Rate],
) {
    for class in Class::all() {
        if switch.classes[class.index()].lossless {
            switch.classes[class.index()] = class_profile(class, false, rates);
        }
    }
    host.tcp = Some(default_stack());
    host.server.data_path = DataPath::Staged(STAGING);
}

/// The port that flows of a host go to where nothing is said.
pub(in crate::scenario) const fn usual_port(speaks_tcp: bool) -> u16 {
    if speaks_tcp { PORT } else { ROCE_PORT }
}

/// The same by the host's profile.
pub(super) fn port_of(host: NodeId, network: &Network, profiles: &[HostProfile]) -> u16 {
    usual_port(match network.nodes[host.index()].kind {
        NodeKind::Host { profile, .. } => profiles[profile as usize].tcp.is_some(),
        NodeKind::Switch { .. } => false,
    })
}

/// The stack that a section leads to, from the one before.
pub(super) fn stack(
    from: &TcpSettings,
    before: Option<StackConfig>,
    field: &str,
    problems: &mut Problems<'_>,
) -> StackConfig {
    let mut to = before.unwrap_or_else(default_stack);
    let tcp = &mut to.tcp;
    if let Some(mtu) = from.mtu {
        if mtu.as_u64() < 576 || mtu.as_u64() > 65_000 {
            let allowed = "576B to 65000B, such as 1500B or 9000B";
            problems.add(format!("{field}.mtu"), mtu.to_string(), allowed, None);
        }
        tcp.maximum_segment = mtu.saturating_sub(HEADERS);
    }
    if let Some(control) = &from.congestion_control {
        tcp.congestion = algorithm(*control);
        // What the algorithm needs is the default; a later section may say otherwise.
        tcp.ecn = matches!(tcp.congestion, CongestionAlgorithm::Dctcp(_));
    }
    set(&mut tcp.ecn, from.ecn);
    set(&mut tcp.initial_window, from.initial_window);
    set(&mut tcp.send_buffer, from.send_buffer);
    set(&mut tcp.receive_buffer, from.receive_buffer);
    set(&mut tcp.minimum_timeout, from.minimum_timeout);
    set(&mut tcp.initial_timeout, from.initial_timeout);
    set(&mut tcp.retries, from.retries);
    if let Some(delay) = from.delayed_acknowledgement {
        tcp.delayed_acknowledgement = delay.value();
    }
    set(&mut tcp.sack, from.sack);
    set(&mut tcp.timestamps, from.timestamps);
    set(&mut tcp.nagle, from.nagle);
    set(&mut to.call, from.call);
    if let Some(settings) = &from.cpu {
        to.cpu = cpu(settings, to.cpu);
    }
    to
}

fn algorithm(from: TcpCongestionControl) -> CongestionAlgorithm {
    match from {
        TcpCongestionControl::Reno {} => CongestionAlgorithm::Reno,
        TcpCongestionControl::Cubic {
            scale,
            decrease,
            fast_convergence,
            hystart,
        } => {
            let mut to = CubicParameters::default();
            set(&mut to.scale, scale);
            set(&mut to.decrease, decrease);
            set(&mut to.fast_convergence, fast_convergence);
            set(&mut to.hystart, hystart);
            CongestionAlgorithm::Cubic(to)
        }
        TcpCongestionControl::Dctcp {
            gain,
            initial_alpha,
        } => {
            let mut to = DctcpParameters::default();
            set(&mut to.gain, gain);
            set(&mut to.initial_alpha, initial_alpha);
            CongestionAlgorithm::Dctcp(to)
        }
    }
}

fn cpu(from: &CpuSettings, before: Option<CpuModel>) -> Option<CpuModel> {
    if from.enabled == Some(false) {
        return None;
    }
    let mut to = before.unwrap_or_default();
    set(&mut to.cores, from.cores);
    set(&mut to.system_call, from.system_call);
    set(&mut to.wake_up, from.wake_up);
    set(&mut to.write_copy, from.write_copy);
    set(&mut to.read_copy, from.read_copy);
    set(&mut to.segment, from.segment);
    set(&mut to.frame, from.frame);
    set(&mut to.acknowledgement, from.acknowledgement);
    set(&mut to.interrupt, from.interrupt);
    set(&mut to.coalescing, from.coalescing);
    set(&mut to.coalesced_frames, from.coalesced_frames);
    set(&mut to.budget, from.budget);
    set(&mut to.ring, from.ring);
    set(&mut to.offload, from.offload);
    Some(to)
}
