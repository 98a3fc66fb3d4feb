//! Hosts that speak TCP: what settings mean, and that plans come back.

use super::*;
use crate::tcp::{CongestionAlgorithm, CpuModel, DctcpParameters, StackConfig};
use softfabric_units::{Bytes, Rate, Span};

const FLOW: &str = "[[workload]]\nkind = \"flow\"\nfrom = \"h0\"\nto = \"h1\"\nbytes = \"1MB\"\n";

fn stacks(plan: &Plan) -> Vec<Option<StackConfig>> {
    plan.host_profiles
        .iter()
        .map(|profile| profile.tcp)
        .collect()
}

#[test]
fn a_fabric_of_tcp_has_linux_on_every_host_and_nothing_lossless() {
    let plan = plan(&format!("[fabric]\nkind = \"tcp\"\n{STAR}{FLOW}"));
    let [Some(stack)] = stacks(&plan)[..] else {
        panic!("one profile")
    };
    assert_eq!(stack.tcp.maximum_segment, Bytes::new(8960));
    assert!(matches!(stack.tcp.congestion, CongestionAlgorithm::Cubic(_)) && !stack.tcp.ecn);
    assert_eq!(stack.cpu, Some(CpuModel::default()));
    assert!(
        plan.switch_profiles[0]
            .classes
            .iter()
            .all(|class| !class.lossless)
    );
    assert!(plan.host_profiles[0].lossless.is_empty());
    assert_eq!(plan.flows[0].udp_destination_port, 5201);
}

#[test]
fn settings_of_some_hosts() {
    let plan = plan(&format!(
        "{STAR}[switch]\nlossless = [3]\n[[host_group]]\nnames = [\"h2..h3\"]\n[host_group.tcp]\nmtu = \"1500B\"\ncongestion_control = \
         {{ kind = \"dctcp\", gain = 0.125 }}\ndelayed_acknowledgement = \"off\"\nminimum_timeout = \"5ms\"\n[host_group.tcp.cpu]\ncores = \
         2\nread_copy = \"100Gb/s\"\n{FLOW}"
    ));
    let [None, Some(stack)] = stacks(&plan)[..] else {
        panic!("two profiles")
    };
    assert_eq!(stack.tcp.maximum_segment, Bytes::new(1460));
    let expected = DctcpParameters {
        gain: 0.125,
        ..DctcpParameters::default()
    };
    assert_eq!(stack.tcp.congestion, CongestionAlgorithm::Dctcp(expected));
    assert!(stack.tcp.ecn, "DCTCP brings ECN");
    assert_eq!(
        (stack.tcp.delayed_acknowledgement, stack.tcp.minimum_timeout),
        (None, Span::millis(5))
    );
    let cpu = stack.cpu.unwrap();
    assert_eq!(
        (cpu.cores, cpu.read_copy, cpu.write_copy),
        (2, Rate::gbps(100), Rate::gbps(180))
    );
    assert!(
        plan.switch_profiles[0].classes[3].lossless,
        "the others speak RDMA"
    );
    assert_eq!(plan.flows[0].udp_destination_port, 4791);
}

#[test]
fn plans_come_back() {
    for text in [
        format!("[fabric]\nkind = \"tcp\"\nip = 6\n{STAR}{FLOW}"),
        format!(
            "[fabric]\nkind = \"tcp\"\n{STAR}[switch]\nlossless = [3]\n[host.tcp]\ncpu = {{ enabled = false }}\nnagle = true\n[[host_group]]\nnames = [\"h1\"]\n\
                 [host_group.tcp]\ncongestion_control = {{ kind = \"dctcp\" }}\necn = false\ncpu = {{ ring = 9 }}\n{FLOW}"
        ),
        format!(
            "{STAR}[[host_group]]\nnames = [\"h2..h3\"]\ntcp = {{ congestion_control = {{ kind = \"reno\" }}, call = \"1MB\" }}\n{FLOW}"
        ),
    ] {
        let plan = plan(&text);
        let again = Scenario::from_plan(&plan).unwrap().to_toml();
        let scenario = Scenario::from_toml(&again, "again.toml")
            .unwrap_or_else(|error| panic!("{error}\n{again}"));
        assert_eq!(
            scenario
                .plan()
                .unwrap_or_else(|error| panic!("{error}\n{again}")),
            plan,
            "{again}"
        );
    }
}

#[test]
fn what_is_out_of_range_is_said_with_its_place() {
    let text = format!("[fabric]\nkind = \"tcp\"\n{STAR}[host.tcp]\nmtu = \"100B\"\n{FLOW}");
    let error = Scenario::from_toml(&text, "test.toml")
        .unwrap()
        .plan()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("host.tcp.mtu") && error.contains("1500B or 9000B"),
        "{error}"
    );
    let text = format!(
        "[fabric]\nkind = \"tcp\"\n{STAR}[host.tcp]\ncongestion_control = {{ kind = \"cubic\", decrease = 1.0 }}\n{FLOW}"
    );
    let error = Scenario::from_toml(&text, "test.toml")
        .unwrap()
        .plan()
        .unwrap_err()
        .to_string();
    assert!(error.contains("CUBIC"), "{error}");
}

/// A port that is said is the port, also where it is RDMA's; and a plan with it comes back.
#[test]
fn a_port_that_is_said_stays() {
    let text = format!(
        "[fabric]\nkind = \"tcp\"\n{STAR}[[workload]]\nkind = \"flows\"\n[[workload.flow]]\nfrom = \"h0\"\nto = \"h1\"\n\
         bytes = \"1MB\"\ndestination_port = 4791\n[[workload.flow]]\nfrom = \"h0\"\nto = \"h1\"\nbytes = \"1MB\"\n"
    );
    let first = plan(&text);
    let ports = |plan: &Plan| -> Vec<u16> {
        (plan.flows.iter())
            .map(|flow| flow.udp_destination_port)
            .collect()
    };
    assert_eq!(ports(&first), [4791, 5201]);
    let again = plan(&Scenario::from_plan(&first).unwrap().to_toml());
    assert_eq!(ports(&again), [4791, 5201]);
}
