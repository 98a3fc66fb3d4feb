//! Whole runs with adaptive routing: what it wins over one way for each destination, what it costs, and whom it refuses.

use softfabric_telemetry::PortCounter;
use softfabric_units::{Bytes, Time};

use super::tests::{of_port, settings};
use crate::engine::feature_tests::simulate;
use crate::engine::{RunOptions, run};
use crate::plan::*;
use crate::results::{Ending, Results};
use crate::scenario::Scenario;

/// Five leaves with four hosts each, and four spines. Each host of the first leaf sends to the first host of another one, and
/// the numbers of all of these ask for the same spine: d-mod-k knows nothing of who else sends.
fn colliding(more: &str) -> Plan {
    let flows: String = (0..4)
        .map(|from| {
            let to = 4 + 4 * from;
            format!("{{ from = \"h{from}\", to = \"h{to}\", bytes = \"4MB\" }},")
        })
        .collect();
    let text = format!(
        "[fabric]\nkind = \"infiniband\"\nrouting = \"fat_tree\"\n[topology]\nkind = \"leaf_spine\"\nleaves = 5\nspines = \
         4\nhosts_per_leaf = 4\n[host]\nloss_recovery = \"selective_repeat\"\n[[workload]]\nkind = \"flows\"\nflow = \
         [{flows}]\n[infiniband]\n{more}"
    );
    let plan = Scenario::from_toml(&text, "colliding.toml").unwrap().plan();
    plan.unwrap()
}

fn last(results: &Results) -> Time {
    let received = results
        .flows
        .iter()
        .map(|flow| flow.received.expect("done"));
    received.max().unwrap()
}

/// Four flows that share one cable have four.
#[test]
fn a_colliding_permutation_is_spread() {
    let fixed = simulate(&colliding(""));
    let adaptive = simulate(&colliding("adaptive_routing = true"));
    for results in [&fixed, &adaptive] {
        assert_eq!(results.ending, Ending::Completed);
        assert_eq!(
            (results.conservation.dropped, results.lossless_drops),
            (0, 0)
        );
    }
    let wire = 4e6 * 8.0 / 100e9 * 4122.0 / 4096.0;
    let times = |results: &Results| last(results).as_picos() as f64 / 1e12 / wire;
    let (fixed, spread) = (times(&fixed), times(&adaptive));
    assert!(
        (3.98..4.1).contains(&fixed),
        "all four take one cable: {fixed}"
    );
    assert!(
        (1.0..1.1).contains(&spread),
        "each has one of its own: {spread}"
    );
}

/// However many threads and whichever driver: the same choices.
#[test]
fn choices_are_the_same_for_any_number_of_threads() {
    let mut plan = colliding("adaptive_routing = true");
    let more: Vec<Flow> = (plan.flows.iter())
        .map(|flow| Flow {
            source: flow.destination,
            destination: flow.source,
            ..flow.clone()
        })
        .collect();
    plan.flows.extend(more);
    let one = simulate(&plan);
    for threads in [2, 5] {
        let options = RunOptions {
            threads,
            ..RunOptions::default()
        };
        let results = run(&plan, &mut { options }).unwrap();
        assert_eq!(results.flows, one.flows);
        assert_eq!(results.ports, one.ports);
    }
}

/// Alone, a flow keeps its way, and so its order.
#[test]
fn an_idle_fabric_keeps_packets_in_order() {
    let mut plan = colliding("adaptive_routing = true");
    plan.flows.truncate(1);
    let adaptive = simulate(&plan);
    settings(&mut plan).adaptive = false;
    let fixed = simulate(&plan);
    assert_eq!(adaptive.flows, fixed.flows);
    assert_eq!(adaptive.ports, fixed.ports);
}

/// A switch does not choose a link of its own that is down: nothing waits for the manager's sweep.
#[test]
fn a_lost_uplink_is_avoided_at_once() {
    let lost = |more: &str| {
        let mut plan = colliding(more);
        // From h1 to h8: data by the first spine, acknowledgements by the second.
        plan.flows = vec![plan.flows[1].clone()];
        plan.flows[0].bytes = Bytes::new(40_000_000);
        plan.stop.at = Time::from_nanos(40_000_000);
        // The cable that the first flow takes: its leaf's to the spine of the destination's number.
        let results = simulate(&plan);
        let leaf = plan
            .network
            .nodes
            .iter()
            .position(|node| node.name == "leaf0")
            .unwrap();
        let busy = |link: &Link| {
            let spine = |node: NodeId| plan.network.nodes[node.index()].name.starts_with("spine");
            let end = if spine(link.a.node) { link.b } else { link.a };
            (spine(link.a.node) || spine(link.b.node))
                && end.node.index() == leaf
                && of_port(
                    &results,
                    end.node.0,
                    end.port.0,
                    PortCounter::TransmitPackets,
                ) > 1000
        };
        let link = plan.network.links.iter().position(busy).unwrap();
        plan.actions = vec![TimedAction {
            at: Time::from_nanos(1_000_000),
            action: Action::LinkDown(LinkId(link as u32)),
        }];
        simulate(&plan)
    };
    let fixed = lost("repair = \"10ms\"");
    let adaptive = lost("repair = \"10ms\"\nadaptive_routing = true");
    // Only what was on the cable and what waited for it.
    assert!(
        adaptive.conservation.dropped < 40,
        "{}",
        adaptive.conservation.dropped
    );
    assert!(
        fixed.flows[0]
            .finished
            .is_none_or(|time| time > Time::from_nanos(11_000_000))
    );
    assert!(
        adaptive.flows[0]
            .finished
            .is_some_and(|time| time < Time::from_nanos(6_000_000))
    );
}

/// Whose ways make a circle, and who has one way only, is refused; who sends all again after an overtaking is warned of.
#[test]
fn what_does_not_fit_is_refused() {
    let torus = |routing: &str| {
        let text = format!(
            "[fabric]\nkind = \"infiniband\"\nrouting = \"{routing}\"\n[topology]\nkind = \"torus\"\ndimensions = [4, \
             4]\n[infiniband]\nlanes = 2\nadaptive_routing = true\n"
        );
        let scenario = Scenario::from_toml(&text, "torus.toml").unwrap();
        scenario.plan().err().map(|error| error.to_string())
    };
    let circle = torus("min_hop").unwrap();
    assert!(
        circle.contains("can lock up") && circle.contains("up_down or fat_tree"),
        "{circle}"
    );
    let one_way = torus("nue").unwrap();
    assert!(one_way.contains("cannot choose among several"), "{one_way}");
    assert_eq!(torus("up_down"), None);
    let mut plan = colliding("adaptive_routing = true");
    assert_eq!(plan.check(), []);
    plan.host_profiles[0].nic.loss_recovery = LossRecovery::GoBackN;
    let warnings = plan.check();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].severity, Severity::Warning);
    assert!(warnings[0].problem.contains("overtake"), "{warnings:?}");
}
