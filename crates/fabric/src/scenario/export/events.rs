//! From timed actions to `[[event]]`.

use crate::plan::{Action, LinkId, NodeId, Plan};
use crate::scenario::{Drain, Event};

pub(super) fn events(plan: &Plan) -> Result<Vec<Event>, String> {
    let name = |node: NodeId| plan.network.nodes[node.index()].name.clone();
    let between = |link: LinkId| {
        let links = &plan.network.links;
        let found = &links[link.0 as usize];
        let ends = |link: &crate::plan::Link| {
            let (a, b) = (link.a.node, link.b.node);
            (a.min(b), a.max(b))
        };
        let first = links.iter().position(|other| ends(other) == ends(found));
        if first != Some(link.0 as usize) {
            return Err("an event of one of several links between two nodes".to_owned());
        }
        Ok((name(found.a.node), name(found.b.node)))
    };
    let mut events = Vec::new();
    let mut actions = plan.actions.iter().peekable();
    while let Some(timed) = actions.next() {
        let at = timed.at;
        events.push(match timed.action {
            Action::LinkDown(link) => Event::LinkDown {
                at,
                between: between(link)?,
                until: None,
            },
            Action::LinkUp(link) => Event::LinkUp {
                at,
                between: between(link)?,
            },
            Action::BitErrorRate(link, bit_error_rate) => Event::BitErrors {
                at,
                between: between(link)?,
                bit_error_rate,
                until: None,
            },
            Action::DrainRate(host, rate) => Event::Drain {
                at,
                hosts: vec![name(host)],
                rate: Drain::from(rate),
            },
            Action::StormBegins(host, class) => {
                let end = actions
                    .next_if(|next| next.action == Action::StormEnds(host, class) && next.at > at);
                Event::Storm {
                    at,
                    host: name(host),
                    class: Some(class.as_u8()),
                    until: end.map(|end| end.at),
                }
            }
            Action::StormEnds(..) => {
                return Err("a storm ends that did not begin just before".to_owned());
            }
            Action::PfcOff(class) => Event::PfcOff {
                at,
                class: Some(class.as_u8()),
            },
            Action::Slowness(host, slowness) => Event::SlowHosts {
                at,
                hosts: vec![name(host)],
                slowness,
                until: None,
            },
            Action::SourceStops(host) => Event::StopSources {
                at,
                hosts: Some(vec![name(host)]),
            },
        });
    }
    Ok(events)
}
