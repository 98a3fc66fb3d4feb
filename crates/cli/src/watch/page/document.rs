//! The view as JSON, for the page and for `--once --json`: numbers have their unit in the name, and shares have none.

use serde::Serialize;
use serde_json::{Value, json};
use softfabric_operations::diagnose::{Certainty, Verdict};
use softfabric_operations::watch::{Episode, PortView, View, What};
use softfabric_operations::{NodeKind, PortIndex};
use softfabric_units::{Bytes, Rate};

use super::picture::Picture;
use crate::watch::Session;
use crate::watch::text;

/// So many ports are told, the worst first; a page with thousands of lines helps nobody.
const PORTS: usize = 40;
/// So many hosts.
const HOSTS: usize = 128;
/// So many entries of the timeline.
const EPISODES: usize = 60;

#[derive(Serialize)]
struct Port<'a> {
    name: &'a str,
    node: &'a str,
    peer: Option<&'a str>,
    state: &'static str,
    class: Option<u8>,
    rate_bps: Option<u64>,
    held: Option<f64>,
    holds: Option<f64>,
    transmits_bps: Option<u64>,
    receives_bps: Option<u64>,
    marked: Option<f64>,
    notifications_per_s: Option<f64>,
    queue_bytes: Option<u64>,
    buffer_bytes: Option<u64>,
    drops_per_s: Option<f64>,
    damaged_per_s: Option<f64>,
}

/// The document.
pub(super) fn of(session: &Session, view: Option<&View>, picture: Option<&Picture>) -> String {
    let document = match view {
        Some(view) => whole(session, view, picture),
        None => json!({ "picture": 0, "mode": session.mode(), "verdict": null }),
    };
    document.to_string()
}

fn whole(session: &Session, view: &View, picture: Option<&Picture>) -> Value {
    let bps = |rate: Option<Rate>| rate.map(Rate::as_bps);
    let order = view.worst_ports();
    let ports: Vec<Port<'_>> = order
        .iter()
        .take(PORTS)
        .map(|&port| port_of(view, port))
        .collect();
    let baseline = session.watch.as_ref().and_then(|watch| watch.baseline());
    let mut hosts: Vec<_> = view
        .nodes
        .iter()
        .filter(|node| node.kind == NodeKind::Host)
        .collect();
    let all_hosts = hosts.len();
    if hosts.len() > HOSTS {
        hosts.sort_by(|a, b| b.state.cmp(&a.state).then(b.held.total_cmp(&a.held)));
        hosts.truncate(HOSTS);
    }
    let hosts: Vec<Value> = hosts
        .into_iter()
        .map(|node| {
            let usual = baseline
                .and_then(|baseline| baseline.hosts.iter().find(|host| host.host == node.name));
            json!({
                "name": node.name, "state": node.state.name(), "held": node.held,
                "transmits_bps": bps(node.transmits), "receives_bps": bps(node.receives),
                "usual_transmits_bps": usual.map(|host| host.sends_bps),
                "usual_receives_bps": usual.map(|host| host.receives_bps),
            })
        })
        .collect();
    let kind = match view.verdict {
        Verdict::Cause(_) => "cause",
        Verdict::NotTheFabric => "calm",
        Verdict::NotEnoughData => "doubt",
    };
    json!({
        "picture": picture.map_or(0, |picture| picture.number),
        "about": view.about,
        "mode": session.mode(),
        "trouble": session.trouble.is_some(),
        "stale": session.is_stale(),
        "now": text::moment(view, view.now),
        "now_ns": view.now.as_nanos(),
        "is_time_of_day": view.is_time_of_day,
        "window_ns": view.window.as_nanos(),
        "stretch_ns": view.stretch.as_nanos(),
        "verdict": view.verdict.name(),
        "kind": kind,
        "summary": view.summary,
        "held_ports": view.held_ports(),
        "all_ports": view.ports.len(),
        "many_held_since": view.many_held_since().map(|since| text::moment(view, since)),
        "victims": view.victims.iter().map(|victim| json!({ "host": victim.host, "held": victim.held })).collect::<Vec<_>>(),
        "coverage": {
            "ports": view.coverage.ports, "heard": view.coverage.heard,
            "silent": view.coverage.silent, "uncabled": view.coverage.uncabled,
        },
        "baseline": view.compared.as_ref().map(|compared| json!({
            "about": compared.about, "compared": compared.ports, "deviations": compared.deviations.len(), "explained": compared.explained,
        })),
        "trend": {
            "at": view.trend.iter().map(|s| text::moment(view, s.to)).collect::<Vec<_>>(),
            "held_ports": view.trend.iter().map(|s| s.held_ports).collect::<Vec<_>>(),
            "worst": view.trend.iter().map(|s| s.worst).collect::<Vec<_>>(),
            "marked": view.trend.iter().map(|s| s.marked).collect::<Vec<_>>(),
            "queue_bytes": view.trend.iter().map(|s| s.queue.map(Bytes::as_u64)).collect::<Vec<_>>(),
            "received_bps": view.trend.iter().map(|s| bps(s.received)).collect::<Vec<_>>(),
            "drops": view.trend.iter().map(|s| s.drops).collect::<Vec<_>>(),
        },
        "ports": ports,
        "hosts": hosts,
        "all_hosts": all_hosts,
        "episodes": view.episodes.iter().take(EPISODES).map(|episode| told(view, episode)).collect::<Vec<_>>(),
        "all_episodes": view.episodes.len(),
        "cells": picture.map_or_else(Vec::new, |picture| picture.cells(view)),
        "bundles": picture.map_or_else(Vec::new, |picture| picture.bundles(view)),
    })
}

fn port_of(view: &View, index: PortIndex) -> Port<'_> {
    let port: &PortView = &view.ports[index.index()];
    let bytes = |bytes: Option<Bytes>| bytes.map(Bytes::as_u64);
    Port {
        name: &port.name,
        node: &view.node(port.node).name,
        peer: port.peer.map(|peer| view.ports[peer.index()].name.as_str()),
        state: port.state.name(),
        class: port.class.map(softfabric_units::Class::as_u8),
        rate_bps: port.rate.map(Rate::as_bps),
        held: port.held,
        holds: port.holds,
        transmits_bps: port.transmits.map(Rate::as_bps),
        receives_bps: port.receives.map(Rate::as_bps),
        marked: port.marked,
        notifications_per_s: port.notifications,
        queue_bytes: bytes(port.queue),
        buffer_bytes: bytes(port.buffer),
        drops_per_s: port.drops,
        damaged_per_s: port.damaged,
    }
}

fn told(view: &View, episode: &Episode) -> Value {
    let sure = match episode.certainty() {
        Certainty::High => "high",
        Certainty::Moderate => "moderate",
    };
    let mut told = json!({
        "kind": match episode.what { What::Finding(_) => "finding", What::Deviation(_) => "deviation" },
        "title": episode.title(),
        "place": episode.place(),
        "summary": episode.summary(),
        "since": text::moment(view, episode.since),
        "since_ns": episode.since.as_nanos(),
        "until": text::moment(view, episode.until),
        "until_ns": episode.until.as_nanos(),
        "lasted": text::lasting(episode.until.since(episode.since)),
        "ended": episode.has_ended,
        "certainty": sure,
    });
    let evidence = match &episode.what {
        What::Finding(finding) => {
            told["ports"] = json!(finding.ports);
            told["explains"] = json!(finding.explains);
            told["trail"] = json!(finding.trail);
            told["confirm"] = json!(finding.confirm);
            told["actions"] = json!(finding.actions);
            told["avoid"] = json!(finding.avoid);
            &finding.evidence
        }
        What::Deviation(deviation) => &deviation.evidence,
    };
    told["evidence"] = json!(evidence);
    told
}
