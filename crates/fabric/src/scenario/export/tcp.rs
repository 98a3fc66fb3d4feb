//! From a host's stack to `[host.tcp]`.

use softfabric_units::Bytes;

use super::changed;
use crate::scenario::{CpuSettings, Interval, TcpCongestionControl, TcpSettings};
use crate::tcp::{CongestionAlgorithm, CpuModel, StackConfig};

/// What leads from the stack `base`, or from none, to `stack`.
///
/// # Errors
/// If no section says so.
pub(super) fn section(
    stack: Option<&StackConfig>,
    base: Option<&StackConfig>,
    usual: &StackConfig,
) -> Result<Option<TcpSettings>, String> {
    let Some(stack) = stack else {
        return match base {
            Some(_) => Err("some hosts speak RDMA where the others speak TCP".to_owned()),
            None => Ok(None),
        };
    };
    if base == Some(stack) {
        return Ok(None);
    }
    let from = base.unwrap_or(usual);
    let (tcp, base) = (&stack.tcp, &from.tcp);
    let fixed = (tcp.maximum_timeout == base.maximum_timeout)
        .then_some(())
        .ok_or("no section sets the longest retransmission timeout");
    fixed?;
    let congestion_control = changed(&tcp.congestion, &base.congestion).map(algorithm);
    // Congestion control has a say in the default of ECN.
    let ecn = (tcp.ecn != base.ecn || congestion_control.is_some()).then_some(tcp.ecn);
    Ok(Some(TcpSettings {
        mtu: changed(&tcp.maximum_segment, &base.maximum_segment)
            .map(|segment| segment + Bytes::new(40)),
        congestion_control,
        ecn,
        initial_window: changed(&tcp.initial_window, &base.initial_window),
        send_buffer: changed(&tcp.send_buffer, &base.send_buffer),
        receive_buffer: changed(&tcp.receive_buffer, &base.receive_buffer),
        call: changed(&stack.call, &from.call),
        minimum_timeout: changed(&tcp.minimum_timeout, &base.minimum_timeout),
        initial_timeout: changed(&tcp.initial_timeout, &base.initial_timeout),
        retries: changed(&tcp.retries, &base.retries),
        delayed_acknowledgement: changed(
            &tcp.delayed_acknowledgement,
            &base.delayed_acknowledgement,
        )
        .map(Interval::from),
        sack: changed(&tcp.sack, &base.sack),
        timestamps: changed(&tcp.timestamps, &base.timestamps),
        nagle: changed(&tcp.nagle, &base.nagle),
        cpu: changed(&stack.cpu, &from.cpu).map(|model| cpu(model.as_ref())),
    }))
}

fn algorithm(from: CongestionAlgorithm) -> TcpCongestionControl {
    match from {
        CongestionAlgorithm::Reno => TcpCongestionControl::Reno {},
        CongestionAlgorithm::Cubic(found) => TcpCongestionControl::Cubic {
            scale: Some(found.scale),
            decrease: Some(found.decrease),
            fast_convergence: Some(found.fast_convergence),
            hystart: Some(found.hystart),
        },
        CongestionAlgorithm::Dctcp(found) => TcpCongestionControl::Dctcp {
            gain: Some(found.gain),
            initial_alpha: Some(found.initial_alpha),
        },
    }
}

fn cpu(from: Option<&CpuModel>) -> CpuSettings {
    let Some(found) = from else {
        return CpuSettings {
            enabled: Some(false),
            ..CpuSettings::default()
        };
    };
    CpuSettings {
        enabled: Some(true),
        cores: Some(found.cores),
        system_call: Some(found.system_call),
        wake_up: Some(found.wake_up),
        write_copy: Some(found.write_copy),
        read_copy: Some(found.read_copy),
        segment: Some(found.segment),
        frame: Some(found.frame),
        acknowledgement: Some(found.acknowledgement),
        interrupt: Some(found.interrupt),
        coalescing: Some(found.coalescing),
        coalesced_frames: Some(found.coalesced_frames),
        budget: Some(found.budget),
        ring: Some(found.ring),
        offload: Some(found.offload),
    }
}
