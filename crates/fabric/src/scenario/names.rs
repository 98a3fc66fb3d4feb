//! Finds nodes, links and ports by their names.

use rustc_hash::FxHashMap;

use super::error::nearest;
use crate::plan::{Endpoint, LinkId, Network, NodeId, NodeKind, PortId};

/// The names of a network's nodes, for looking up. Only looked up, never iterated.
pub(super) struct Names<'n> {
    network: &'n Network,
    by_name: FxHashMap<&'n str, NodeId>,
}

/// A name that means nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown {
    pub(super) found: String,
    pub(super) allowed: String,
    pub(super) advice: Option<String>,
}

/// What kind of node is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Host,
    Switch,
    Any,
}

impl<'n> Names<'n> {
    pub(super) fn new(network: &'n Network) -> Self {
        let by_name = (network.ids())
            .map(|id| (network.nodes[id.index()].name.as_str(), id))
            .collect();
        Self { network, by_name }
    }

    /// The node of a name.
    pub(super) fn node(&self, name: &str, wanted: Wanted) -> Result<NodeId, Unknown> {
        let Some(id) = self.by_name.get(name).copied() else {
            return Err(self.unknown(name, wanted));
        };
        if !self.is(id, wanted) {
            let (is, needed) = match wanted {
                Wanted::Host => ("a switch", "a host"),
                _ => ("a host", "a switch"),
            };
            return Err(Unknown {
                found: format!("`{name}`, which is {is}"),
                allowed: format!("{needed}: {}", self.summary(wanted)),
                advice: None,
            });
        }
        Ok(id)
    }

    /// The nodes of a name, a range `a0..a9` with both ends, or a pattern with `*`.
    pub(super) fn select(&self, pattern: &str, wanted: Wanted) -> Result<Vec<NodeId>, Unknown> {
        if let Some((first, last)) = pattern.split_once("..") {
            return self.range(pattern, first, last, wanted);
        }
        if !pattern.contains('*') {
            return Ok(vec![self.node(pattern, wanted)?]);
        }
        let found: Vec<_> = (self.network.ids())
            .filter(|id| self.is(*id, wanted))
            .filter(|id| matches(pattern, &self.network.nodes[id.index()].name))
            .collect();
        if found.is_empty() {
            return Err(self.unknown(pattern, wanted));
        }
        Ok(found)
    }

    /// The first link between two nodes.
    pub(super) fn link(&self, a: NodeId, b: NodeId) -> Option<LinkId> {
        let place = (self.network.links.iter()).position(|link| {
            let ends = (link.a.node, link.b.node);
            ends == (a, b) || ends == (b, a)
        })?;
        Some(LinkId(place as u32))
    }

    /// The port of `node:port` or `node:neighbour`.
    pub(super) fn port(&self, text: &str) -> Result<Endpoint, Unknown> {
        let allowed = "`node:port`, such as `s0:3`, or `node:neighbour`, such as `s0:h3`";
        let unknown = |found: String| Unknown {
            found,
            allowed: allowed.to_owned(),
            advice: None,
        };
        let ends =
            || (self.network.links.iter()).flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
        let Some((name, port)) = text.rsplit_once(':') else {
            return Err(unknown(format!("`{text}`")));
        };
        let node = self.node(name, Wanted::Any)?;
        let end = match port.parse().map(PortId) {
            Ok(port) => ends().find(|(near, _)| *near == Endpoint { node, port }),
            Err(_) => {
                let neighbour = self.node(port, Wanted::Any)?;
                ends().find(|(near, far)| near.node == node && far.node == neighbour)
            }
        };
        end.map(|(near, _)| near)
            .ok_or_else(|| unknown(format!("`{text}`, a port that is not there")))
    }

    fn range(
        &self,
        pattern: &str,
        first: &str,
        last: &str,
        wanted: Wanted,
    ) -> Result<Vec<NodeId>, Unknown> {
        let parts = |name: &str| -> Option<(String, u32)> {
            let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            Some((name[..digits].to_owned(), name[digits..].parse().ok()?))
        };
        let broken = || Unknown {
            found: format!("`{pattern}`"),
            allowed: "a range such as h0..h15, both ends included".to_owned(),
            advice: None,
        };
        let (prefix, from) = parts(first).ok_or_else(broken)?;
        // `h0..15` means the same as `h0..h15`.
        let (other, to) = parts(last).ok_or_else(broken)?;
        if !(other.is_empty() || other == prefix) || to < from {
            return Err(broken());
        }
        (from..=to)
            .map(|number| self.node(&format!("{prefix}{number}"), wanted))
            .collect()
    }

    fn is(&self, id: NodeId, wanted: Wanted) -> bool {
        let is_host = matches!(self.network.nodes[id.index()].kind, NodeKind::Host { .. });
        match wanted {
            Wanted::Any => true,
            Wanted::Host => is_host,
            Wanted::Switch => !is_host,
        }
    }

    fn unknown(&self, name: &str, wanted: Wanted) -> Unknown {
        // Which number was meant nobody can guess; a mistyped word can be.
        let word = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let names = (self.network.ids())
            .filter(|id| self.is(*id, wanted))
            .map(|id| self.network.nodes[id.index()].name.as_str())
            .filter(|known| known[..word(known)] != name[..word(name)]);
        let what = match wanted {
            Wanted::Host => "host",
            Wanted::Switch => "switch",
            Wanted::Any => "node",
        };
        Unknown {
            found: format!("`{name}`, which is not a {what}"),
            allowed: self.summary(wanted),
            advice: nearest(name, names).map(|name| format!("did you mean `{name}`?")),
        }
    }

    /// The names of a kind of node: the first and the last of each prefix.
    fn summary(&self, wanted: Wanted) -> String {
        let mut runs: Vec<(&str, &str, &str)> = Vec::new();
        for id in self.network.ids().filter(|id| self.is(*id, wanted)) {
            let name = self.network.nodes[id.index()].name.as_str();
            let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
            match runs.iter().position(|(known, _, _)| *known == prefix) {
                Some(run) => runs[run].2 = name,
                None if runs.len() < 8 => runs.push((prefix, name, name)),
                None => {}
            }
        }
        let runs: Vec<_> = (runs.iter())
            .map(|(_, first, last)| {
                if first == last {
                    (*first).to_owned()
                } else {
                    format!("{first} to {last}")
                }
            })
            .collect();
        runs.join(", ")
    }
}

/// Whether a name fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| matches(after, &rest[at..]))
        }),
    }
}
