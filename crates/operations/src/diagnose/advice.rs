//! What would confirm a finding, what can be done, and what that costs.
//!
//! Every action has its price beside it. Turning PFC off is never an action: it stops the pauses and begins the losses,
//! and go-back-N makes every loss many packets.

use super::blind::hosts_that_pause;
use super::facts::Facts;
use super::judge::percent;
use super::roots::Unexplained;
use super::{Action, Cause, Coverage, Diagnosis, Finding};
use crate::history::Window;
use crate::topology::{LinkLayer, NodeKind, Topology};

/// Adds what would confirm the finding and what to do.
pub(crate) fn advise(topology: &Topology, finding: &mut Finding) {
    let infiniband = topology.link_layer == LinkLayer::Infiniband;
    let port = finding.ports.first().cloned().unwrap_or_default();
    let facing = finding.ports.get(1).cloned().unwrap_or_default();
    let node = finding.node.clone();
    let is_host = topology
        .find_node(&node)
        .is_some_and(|node| topology.node(node).kind == NodeKind::Host);
    let (confirm, actions) = match finding.cause {
        Cause::HostStorm if infiniband => (
            vec![
                format!(
                    "on {node}: is the adapter alive (ibstat, the kernel's log), and does memory still take data?"
                ),
                format!(
                    "perfquery -x on {facing}: PortXmitWait grows as fast as time, PortXmitData does not"
                ),
            ],
            vec![
                act(
                    &format!("drain {node} and reset its adapter, or reboot it"),
                    "the jobs on it end",
                ),
                act(
                    &format!("disable {facing} (ibportstate)"),
                    "the host is cut off; its peers' connections fail after their retries",
                ),
            ],
        ),
        Cause::HostStorm => (
            vec![
                format!(
                    "on {node}: ethtool -S shows tx_pause_storm_error_events above 0, or the kernel's log a hung driver"
                ),
                format!(
                    "with {facing} shut for a moment, the pauses on all symptoms below end within one poll"
                ),
            ],
            vec![
                act(
                    &format!("drain {node} from the scheduler and reset its NIC"),
                    "the jobs on it end",
                ),
                act(
                    &format!("let the PFC watchdog of {facing} drop what waits for {node}"),
                    "packets to this host on this priority are lost and sent again; everybody else is free",
                ),
                act(
                    &format!("shut {facing}"),
                    "the host is cut off; its peers' connections fail after their retries",
                ),
            ],
        ),
        Cause::SlowReceiver => (
            vec![
                format!(
                    "on {node}: outbound_pci_stalled_wr, out_of_buffer, PCIe width and speed (lspci -vv), memory of the other socket, ACS"
                ),
                format!("{node} receives steadily, and never more than now, whoever sends"),
            ],
            vec![
                act(
                    &format!(
                        "give {node} less to receive: fewer senders at a time, or a place with fewer neighbours"
                    ),
                    "its jobs run as fast as it can receive, as they do now",
                ),
                act(
                    &format!(
                        "repair what slows {node}: PCIe, IOMMU and ACS, memory placement, adapter firmware"
                    ),
                    "the host is out of service meanwhile",
                ),
                act(
                    "let senders hear of it earlier: a NIC that marks ECN by its receive buffer, if it can",
                    "the same rate with a shorter queue; it heals nothing",
                ),
            ],
        ),
        Cause::Incast if infiniband => (
            vec![
                format!(
                    "{port} sends at its full rate and waits for nothing (PortXmitWait stands still)"
                ),
                "which senders: the hosts among the victims that send to the same place".to_owned(),
            ],
            vec![
                act(
                    "let fewer send to one at a time: another collective algorithm, or staggered starts",
                    "a change of the application",
                ),
                act(
                    "turn on congestion control in the subnet manager, with its root at this switch",
                    "senders to this port are slowed down; wrong thresholds slow down others, too",
                ),
            ],
        ),
        Cause::Incast => (
            vec![
                format!("{port} sends at its full rate and is not paused"),
                "CNPs: np_cnp_sent grows at the receiver, and rp_cnp_handled at the senders"
                    .to_owned(),
            ],
            vec![
                act(
                    "let fewer send to one at a time: another collective algorithm, or staggered starts",
                    "a change of the application",
                ),
                act(
                    &format!(
                        "let ECN at {port} mark earlier (a smaller Kmin), so that senders slow down before PFC acts"
                    ),
                    "some throughput where bursts are harmless",
                ),
                act(
                    "give control messages that wait behind the bulk a class of their own",
                    "a queue and its maps on every hop and host",
                ),
                act(
                    "turn on DCQCN where senders do not answer to CNPs",
                    "a setting on every host; rates fall when packets are marked",
                ),
            ],
        ),
        Cause::Deadlock => (
            vec![
                "senders stop, and the ports of the circle stay held: nothing drains".to_owned(),
                "routes: some packets go down and then up again, or round a ring".to_owned(),
            ],
            vec![
                act(
                    &format!("shut {port} for a moment, so that the circle breaks"),
                    "packets in its queue are lost, and sent again; the circle forms anew under the same routes",
                ),
                act(
                    "let the PFC watchdog drop one queue of the circle",
                    "the packets of that queue are lost, and sent again",
                ),
                act(
                    if infiniband {
                        "route without circles: a routing engine that is free of credit loops (updn, dfsssp, torus-2QoS)"
                    } else {
                        "route without circles: up and then down only, also after cables fail"
                    },
                    "some ways become longer, and some cables idle",
                ),
            ],
        ),
        Cause::Misconfiguration if is_host => (
            vec![
                format!(
                    "on {node}: mlnx_qos -i INTERFACE (or dcb pfc show) says which priorities have PFC, and trust (DSCP or PCP) which \
                     priority a packet gets"
                ),
                format!(
                    "ethtool -S on {node}: rx_prioN_pause grows for the priority that {facing} pauses, and rx_prioN_pause_duration \
                     for none"
                ),
            ],
            vec![
                act(
                    &format!(
                        "set PFC, trust and the map from DSCP to priority of {node} as on hosts that work (mlnx_qos --pfc, --trust)"
                    ),
                    "the link may go down for a moment while it changes",
                ),
                act(
                    &format!("until then, keep jobs off {node}"),
                    "the host is idle",
                ),
            ],
        ),
        Cause::Misconfiguration => (
            vec![
                format!(
                    "compare {node} with a switch that works: PFC priorities, DSCP to class to priority group, headroom, WRED thresholds"
                ),
                "the priority on which pauses, drops and data are counted is the same on every hop"
                    .to_owned(),
            ],
            vec![
                act(
                    &format!("correct the settings of {node} as those of its neighbours"),
                    "buffers may be emptied while they change: do it without traffic",
                ),
                act(
                    &format!("until then, route around {node}"),
                    "less bandwidth",
                ),
            ],
        ),
        Cause::FailedLink => (
            vec![
                format!(
                    "the state of {port} and {facing} at both ends, and the log of when it changed"
                ),
                "the ports that carry its traffic are the ones that are overloaded".to_owned(),
            ],
            vec![
                act(
                    "repair it: clean and reseat, then replace the transceiver or cable",
                    "nothing more is lost while it is down",
                ),
                act(
                    "if it comes and goes, shut it until it is repaired",
                    "its bandwidth, which comes and goes anyhow",
                ),
                act(
                    "slow down or move the largest jobs that cross this place",
                    "those jobs",
                ),
            ],
        ),
        Cause::DegradedLink => (
            vec![
                if infiniband {
                    format!(
                        "ibqueryerrors: SymbolErrorCounter, LinkErrorRecovery and LocalLinkIntegrityErrors of {facing}"
                    )
                } else {
                    format!(
                        "ethtool --phy-statistics and FEC counters of {facing}; light levels at both ends (ethtool -m)"
                    )
                },
                "the errors move with the cable when it is swapped".to_owned(),
            ],
            vec![
                act(
                    &format!("shut the cable {port} – {facing}, if other ways have room"),
                    "its bandwidth; a link that loses packets costs more than one that is gone",
                ),
                act(
                    "clean and reseat, then replace the transceiver or cable",
                    "the link is down meanwhile",
                ),
            ],
        ),
        Cause::HashCollision => (
            vec![
                format!(
                    "the flows on {port}: few, large, and alike in what is hashed (one UDP source port for all?)"
                ),
                "with other UDP source ports the load moves".to_owned(),
            ],
            vec![
                act(
                    "give every queue pair a UDP source port of its own, or several queue pairs to each pair of hosts",
                    "a setting of the application or library",
                ),
                act(
                    "let the switch balance by flowlets or packets",
                    "packets arrive out of order: only for NICs that take that",
                ),
                act(
                    "pin these flows to other ways",
                    "work by hand, until the job ends",
                ),
            ],
        ),
    };
    finding.confirm = confirm;
    finding.actions = actions;
    finding.avoid = avoid(infiniband, finding.cause);
}

fn avoid(infiniband: bool, cause: Cause) -> Vec<String> {
    let mut avoid = Vec::new();
    if !infiniband && cause != Cause::DegradedLink {
        avoid.push(
            "Turning PFC off: the pauses end and packets are lost instead, and go-back-N sends many for each; what was \
             slow fails."
                .to_owned(),
        );
    }
    if matches!(
        cause,
        Cause::HostStorm | Cause::SlowReceiver | Cause::Incast
    ) {
        avoid.push("Resetting the ports that report most pauses: they are symptoms.".to_owned());
    }
    avoid
}

fn act(act: &str, price: &str) -> Action {
    Action {
        act: act.to_owned(),
        price: price.to_owned(),
    }
}

/// Nothing is wrong: says what was looked at.
pub(crate) fn all_clear(facts: &Facts<'_>, whole: Window) -> String {
    let topology = facts.topology;
    let busiest = topology
        .port_indices()
        .filter_map(|port| Some((facts.busy(port, whole)?, port)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let load = busiest.map_or_else(
        || "no port tells how busy it is".to_owned(),
        |(busy, port)| {
            let name = &topology.port(port).name;
            format!("the busiest port, {name}, is used at {}", percent(busy))
        },
    );
    format!(
        "Nobody is held back for long, no cable is down or damages packets, and nothing is dropped; {load}. If the \
         application is slow, look at hosts and application."
    )
}

/// What is missing for an answer.
pub(crate) fn too_little(
    facts: &Facts<'_>,
    unexplained: &Unexplained,
    waiting: f64,
    lost: bool,
    coverage: &Coverage,
    whole: Window,
) -> String {
    match unexplained.port {
        // There is no cable to follow anything by.
        _ if coverage.ports == 0 => format!(
            "No cable is known, so nobody can be followed to the source: LLDP tables of switches or a list of cables tell who \
             is wired to whom.{}",
            hosts_that_pause(facts, whole)
        ),
        Some(port) => {
            let topology = facts.topology;
            let name = &topology.port(port).name;
            let holder = topology
                .neighbour(port)
                .map_or("nobody", |node| node.name.as_str());
            format!(
                "{} of all waiting leads to {holder}, which holds {name}, and is lost there: counters of its other ports \
                 are missing.",
                percent(unexplained.share)
            )
        }
        None if waiting >= Diagnosis::MUCH_WAITING => format!(
            "Ports wait for as long as {waiting:.1} ports together would that are held all the time, and no reason for it \
             lasts or can be seen."
        ),
        None if lost => "Hosts say that packets are missing, and no port that was heard tells where they were lost."
            .to_owned(),
        None if coverage.without_cable > 0 => format!(
            "Only {} of {} ports were heard, and {} more are in use whose cables lead nobody knows where: what goes on there \
             is unknown.{}",
            coverage.heard,
            coverage.ports,
            coverage.without_cable,
            hosts_that_pause(facts, whole)
        ),
        None => format!(
            "Only {} of {} ports were heard: what the others do is unknown.",
            coverage.heard, coverage.ports
        ),
    }
}
