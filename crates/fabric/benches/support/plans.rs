//! The runs that are measured.
//!
//! | name | network | traffic |
//! |---|---|---|
//! | W1 | 16 hosts and a receiver on one switch | 10 MB each to the receiver |
//! | W2 | fat-tree of k = 8: 128 hosts, 80 switches | 10 MB each to host (37 · n + 11) mod 128 |
//! | W3 | 320 hosts, 20 + 20 + 16 switches, 400 Gb/s between them | Poisson arrivals, sizes from a distribution |
//! | big | fat-tree of k = 64: 65,536 hosts, 5,120 switches | a permutation |
//!
//! All have W2's switches and NICs: PFC, ECN and DCQCN of the HPCC code, 100 Gb/s, 1 µs a link, 1000 B a packet.

use std::path::{Path, PathBuf};

use softfabric_fabric::import::hpcc::load_config;
use softfabric_fabric::plan::{
    Flow, Network, Operation, Plan, PortId, Recording, Start, Stop, Timing,
};
use softfabric_fabric::topology::{Builder, Cable, FatTree};
use softfabric_fabric::workload::{Demand, Poisson, SizeDistribution, permutation, poisson};
use softfabric_units::{Bytes, Class, Rate, Span, Time};

/// W1 as the HPCC code's files have it.
pub(crate) fn w1(timing: Timing) -> Plan {
    from_file("w1_dcqcn.conf", timing)
}

/// W2 as the HPCC code's files have it.
pub(crate) fn w2(timing: Timing) -> Plan {
    from_file("w2_dcqcn.conf", timing)
}

/// W2 with a tenth of the bytes.
pub(crate) fn w2_tenth(timing: Timing) -> Plan {
    let mut plan = w2(timing);
    for flow in &mut plan.flows {
        flow.bytes = Bytes::new(flow.bytes.as_u64() / 10);
    }
    plan
}

/// The network of W3, and arrivals like its own, drawn anew: for so long, at this load, of these sizes.
pub(crate) fn w3_like(timing: Timing, span: Span, load: f64, sizes: &SizeDistribution) -> Plan {
    let network = w3_network();
    let hosts: Vec<_> = network.hosts().collect();
    let start = Time::ZERO;
    let arrivals = Poisson {
        hosts: &hosts,
        rate: Rate::gbps(100),
        load,
        sizes,
        start,
        end: start + span,
    };
    let demands = poisson(&arrivals, 1, 0);
    like_w2(network, &demands, timing)
}

/// A fat-tree of three tiers whose hosts each send `bytes` to one other host.
pub(crate) fn big(k: u32, bytes: Bytes) -> Plan {
    let cable = cable(100);
    let shape = FatTree {
        k,
        oversubscription: 1,
        cable,
        uplink: cable,
    };
    let network = shape.build().expect("the arity is even");
    let hosts: Vec<_> = network.hosts().collect();
    let demands = permutation(&hosts, bytes, Time::ZERO, 1, 0);
    like_w2(network, &demands, Timing::Exact)
}

fn from_file(name: &str, timing: Timing) -> Plan {
    let mut plan = load_config(&file(name)).expect("the file is a test's").plan;
    plan.timing = timing;
    plan
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/hpcc")
        .join(name)
}

fn cable(gbps: u64) -> Cable {
    Cable {
        rate: Rate::gbps(gbps),
        delay: Span::micros(1),
    }
}

/// Five pods of 4 edge switches with 16 hosts each and 4 aggregation switches; 16 cores.
fn w3_network() -> Network {
    const PODS: usize = 5;
    const WIDTH: usize = 4;
    const HOSTS: usize = 16;
    let mut builder = Builder::default();
    let hosts: Vec<_> = (0..PODS * WIDTH * HOSTS)
        .map(|host| builder.host(format!("h{host}"), (host / HOSTS) as u32))
        .collect();
    let mut tier = |prefix: &str, count: usize, tier: u8| -> Vec<_> {
        (0..count)
            .map(|index| builder.switch(format!("{prefix}{index}"), tier))
            .collect()
    };
    let edges = tier("edge", PODS * WIDTH, 1);
    let aggregations = tier("agg", PODS * WIDTH, 2);
    let cores = tier("core", WIDTH * WIDTH, 3);
    for (index, &host) in hosts.iter().enumerate() {
        builder.link(host, edges[index / HOSTS], cable(100));
    }
    for (index, &edge) in edges.iter().enumerate() {
        for &aggregation in &aggregations[index / WIDTH * WIDTH..][..WIDTH] {
            builder.link(edge, aggregation, cable(400));
        }
    }
    for (index, &aggregation) in aggregations.iter().enumerate() {
        for &core in &cores[index % WIDTH * WIDTH..][..WIDTH] {
            builder.link(aggregation, core, cable(400));
        }
    }
    builder.finish().expect("no node has too many ports")
}

/// W2's switches and NICs in another network, with other traffic.
fn like_w2(network: Network, demands: &[Demand], timing: Timing) -> Plan {
    let mut plan = w2(timing);
    plan.network = network;
    plan.flows = demands.iter().zip(10_000..).map(flow).collect();
    plan.recording = Recording::default();
    plan.stop = Stop {
        at: Time::ZERO + Span::seconds(1),
        when_done: true,
    };
    plan
}

fn flow((demand, number): (&Demand, u32)) -> Flow {
    Flow {
        source: demand.source,
        destination: demand.destination,
        source_nic: PortId(0),
        destination_nic: PortId(0),
        bytes: demand.bytes,
        message: None,
        operation: Operation::Write,
        start: Start::At(demand.start),
        class: Class::new(3),
        dscp: None,
        ecn_capable: true,
        // Wraps: the source port only has to spread flows.
        udp_source_port: number as u16,
        udp_destination_port: 100,
        path: None,
        group: String::new(),
        on_sent: None,
        on_received: None,
    }
}
