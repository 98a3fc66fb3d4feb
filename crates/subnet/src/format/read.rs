//! Reading topologies: the grammar that ibsim's `.net` files and ibnetdiscover's output share.
//!
//! ```text
//! # a remark
//! vendid=0x2c9  devid=0x1234  sysimgguid=0x…  switchguid=0x…(0x…)  caguid=0x…      before a node: of that node
//! width=2  speed=7  extspeed=7                                                    from here on, masks as PortInfo has them
//! Switch  8 "S-…"   # "description" base port 0 lid 3 lmc 0
//! [1](guid)  "H-…"[1](guid)   # … lid 4 lmc 0 … 4xHDR
//! ```
//!
//! Nodes without a GUID get one by ibsim's rule: adapters from 0x100000 on, switches from 0x200000. A cable may stand at one
//! of its ends or at both; then both must say the same.

use rustc_hash::FxHashMap;
use softfabric_units::{Guid, Lid};
use softfabric_wire::mad::{ExtendedSpeeds, LinkSpeeds, LinkWidths};
use thiserror::Error;

use super::SPEEDS;
use crate::subnet::{BuildError, NodeId, NodeKind, PortRef, Subnet};

/// The longest line and name that ibsim reads.
const MAX_LINE: usize = 255;
const MAX_ID: usize = 64;
const FIRST_ADAPTER: u64 = 0x10_0000;
const FIRST_SWITCH: u64 = 0x20_0000;

/// What is wrong with a topology file, and where.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{file}:{line}: {problem}")]
pub struct TopologyError {
    /// The file's name, as the caller gave it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: TopologyProblem,
}

/// What is wrong with a line.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TopologyProblem {
    /// It is none of the grammar's lines.
    #[error("found {found:?}, needed {needed}")]
    Syntax {
        /// What stands there.
        found: String,
        /// What may.
        needed: &'static str,
    },
    /// It is longer than ibsim and ibnetdiscover can read.
    #[error("the line has {found} bytes, needed at most 255")]
    LineTooLong {
        /// Its bytes.
        found: usize,
    },
    /// A node's name is longer than ibsim can read.
    #[error("the name {found:?} has {} bytes, needed at most 64", found.len())]
    NameTooLong {
        /// The name.
        found: String,
    },
    /// Two nodes have one name.
    #[error("the name {name:?} is that of the node in line {first}, too: each needs its own")]
    DuplicateName {
        /// The name.
        name: String,
        /// Where the other node is.
        first: usize,
    },
    /// A cable leads to a node that is not in the file.
    #[error("the cable leads to {name:?}, and the file has no node of this name")]
    UnknownPeer {
        /// The name.
        name: String,
    },
    /// The other end says something else.
    #[error(
        "port {port} of {node:?} is cabled to port {peer_port} of {peer:?}, and line {other} cables that port to port {other_port} of {other_node:?}: both ends must agree"
    )]
    Disagreement {
        /// The node.
        node: String,
        /// Its port.
        port: u8,
        /// The node at the other end.
        peer: String,
        /// Its port.
        peer_port: u8,
        /// Where the other end stands.
        other: usize,
        /// The node that it names.
        other_node: String,
        /// The port that it names.
        other_port: u8,
    },
    /// The graph cannot be so.
    #[error(transparent)]
    Build(#[from] BuildError),
}

use TopologyProblem as Problem;

/// Reads a topology; `file` is its name for errors.
///
/// # Errors
/// At the first line that is wrong.
pub fn read_topology(text: &str, file: &str) -> Result<Subnet, TopologyError> {
    let mut reader = Reader::default();
    let located = |line, problem| TopologyError {
        file: file.to_owned(),
        line,
        problem,
    };
    for (number, line) in (1..).zip(text.lines()) {
        reader
            .line(number, line)
            .map_err(|problem| located(number, problem))?;
    }
    reader
        .cables()
        .map_err(|(line, problem)| located(line, problem))
}

/// What the next node is to have.
#[derive(Default)]
struct Attributes {
    guid: Option<Guid>,
    port_guid: Option<Guid>,
    system: Option<Guid>,
    vendor: u32,
    device: u16,
}

/// A cable as one end says it.
struct Claim {
    line: usize,
    from: PortRef,
    peer: String,
    peer_port: u8,
}

#[derive(Default)]
struct Reader {
    subnet: Subnet,
    /// By name, with the line.
    names: FxHashMap<String, (NodeId, usize)>,
    next: Attributes,
    masks: Masks,
    current: Option<NodeId>,
    claims: Vec<Claim>,
    adapters: u64,
    switches: u64,
}

/// What links can do.
#[derive(Clone, Copy)]
struct Masks {
    width: LinkWidths,
    speed: LinkSpeeds,
    extended: ExtendedSpeeds,
}

impl Default for Masks {
    fn default() -> Self {
        Self {
            width: LinkWidths::X4,
            speed: LinkSpeeds::QDR,
            extended: ExtendedSpeeds::HDR,
        }
    }
}

/// The best one of a mask.
const fn highest(mask: u8) -> u8 {
    if mask == 0 { 0 } else { 1 << mask.ilog2() }
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), Problem> {
        if line.len() > MAX_LINE {
            return Err(Problem::LineTooLong { found: line.len() });
        }
        let line = line.trim();
        if line.is_empty() {
            self.current = None;
            return Ok(());
        }
        if line.starts_with(['#', '@']) {
            return Ok(());
        }
        if line.starts_with('[') {
            return self.port(number, line);
        }
        self.current = None;
        let word = line.split_whitespace().next().unwrap_or_default();
        match word {
            "Switch" => self.node(number, line, NodeKind::Switch),
            "Hca" | "Ca" => self.node(number, line, NodeKind::Adapter),
            "Rt" | "Router" => self.node(number, line, NodeKind::Router),
            _ => match line.split_once('=') {
                Some((key, value)) => self.attribute(key.trim(), value.trim()),
                None => Err(Problem::Syntax {
                    found: word.to_owned(),
                    needed: "`Switch`, `Hca`, `Ca`, `Rt`, a port `[n]`, `key=value` or a remark `#`",
                }),
            },
        }
    }

    fn attribute(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        // `switchguid=0x2(0x3)`: the port's GUID in brackets.
        let (outer, inner) = match value.split_once('(') {
            Some((outer, inner)) => (outer, Some(inner.trim_end_matches(')'))),
            None => (value, None),
        };
        let outer = outer.split_whitespace().next().unwrap_or_default();
        let whole = number(outer)?;
        match key {
            "vendid" => self.next.vendor = whole as u32 & 0xff_ffff,
            "devid" => self.next.device = whole as u16,
            "sysimgguid" => self.next.system = Some(Guid(whole)),
            "switchguid" | "caguid" | "hcaguid" | "rtguid" => {
                self.next.guid = Some(Guid(whole));
                self.next.port_guid = inner.map(hexadecimal).transpose()?.map(Guid);
            }
            "width" => self.masks.width = LinkWidths(whole as u8),
            "speed" => self.masks.speed = LinkSpeeds(highest(whole as u8)),
            "extspeed" => self.masks.extended = ExtendedSpeeds(highest(whole as u8)),
            _ => {
                return Err(Problem::Syntax {
                    found: format!("{key}="),
                    needed: "one of vendid, devid, sysimgguid, switchguid, caguid, rtguid, width, speed, extspeed",
                });
            }
        }
        Ok(())
    }

    fn node(&mut self, line_number: usize, line: &str, kind: NodeKind) -> Result<(), Problem> {
        let syntax = |needed| Problem::Syntax {
            found: line.to_owned(),
            needed,
        };
        let (head, remark) = split_remark(line);
        let (count, rest) = head
            .split_once(char::is_whitespace)
            .and_then(|(_, rest)| rest.trim_start().split_once(char::is_whitespace))
            .ok_or_else(|| syntax("a kind, a number of ports and a name in quotes"))?;
        let ports: u8 = count
            .parse()
            .ok()
            .filter(|count| *count < u8::MAX)
            .ok_or_else(|| Problem::Syntax {
                found: count.to_owned(),
                needed: "a number of ports, 0 to 254",
            })?;
        let (id, _) =
            quoted(rest.trim_start()).ok_or_else(|| syntax("a name in quotes after the ports"))?;
        if id.len() > MAX_ID {
            return Err(Problem::NameTooLong {
                found: id.to_owned(),
            });
        }
        if let Some((_, first)) = self.names.get(id) {
            return Err(Problem::DuplicateName {
                name: id.to_owned(),
                first: *first,
            });
        }
        let next = std::mem::take(&mut self.next);
        let guid = next.guid.unwrap_or_else(|| self.made_up_guid(kind, ports));
        let node = self.subnet.add_node(kind, guid, ports, id)?;
        let place = self.subnet.node_mut(node);
        place.system = next.system.unwrap_or(guid);
        (place.vendor, place.device) = (next.vendor, next.device);
        if let Some((description, _)) = remark.and_then(quoted) {
            description.clone_into(&mut place.description);
        }
        let first = u8::from(kind != NodeKind::Switch);
        for port in first..=ports {
            let state = self.subnet.port_mut(PortRef { node, port });
            state.width = self.masks.width.widest().unwrap_or(LinkWidths::X4);
            (state.speed, state.extended_speed) = (self.masks.speed, self.masks.extended);
        }
        if kind == NodeKind::Switch {
            let port = self.subnet.port_mut(PortRef { node, port: 0 });
            if let Some(remark) = remark {
                port.lid = Lid(after(remark, "lid").unwrap_or(0) as u16);
            }
        } else if let (Some(guid), true) = (next.port_guid, ports > 0) {
            self.subnet.port_mut(PortRef { node, port: 1 }).guid = guid;
        }
        self.names.insert(id.to_owned(), (node, line_number));
        self.current = Some(node);
        Ok(())
    }

    fn made_up_guid(&mut self, kind: NodeKind, ports: u8) -> Guid {
        let (first, counter, step) = match kind {
            NodeKind::Switch => (FIRST_SWITCH, &mut self.switches, 1),
            _ => (FIRST_ADAPTER, &mut self.adapters, u64::from(ports) + 1),
        };
        let guid = Guid(first + *counter);
        *counter += step;
        guid
    }

    /// `[p](guid) "peer"[q](guid)  # remark`
    fn port(&mut self, line_number: usize, line: &str) -> Result<(), Problem> {
        const NEEDED: &str = "`[port] \"name\"[port]`, each port maybe with (GUID)";
        let syntax = || Problem::Syntax {
            found: line.to_owned(),
            needed: NEEDED,
        };
        let Some(node) = self.current else {
            return Err(Problem::Syntax {
                found: line.to_owned(),
                needed: "a node before its ports",
            });
        };
        let (head, remark) = split_remark(line);
        let (port, guid, rest) = bracketed(head).ok_or_else(syntax)?;
        let (peer, rest) = quoted(rest.trim_start()).ok_or_else(syntax)?;
        let (peer_port, _, rest) = bracketed(rest).ok_or_else(syntax)?;
        if !rest.trim().is_empty() {
            return Err(syntax());
        }
        let described = self.subnet.node(node);
        if port == 0 || port > described.ports {
            return Err(BuildError::NoSuchPort {
                node: described.id.clone(),
                port,
                first: 1,
                last: described.ports,
            }
            .into());
        }
        let adapter = !described.is_switch();
        let from = PortRef { node, port };
        let state = self.subnet.port_mut(from);
        if let Some(guid) = guid.filter(|_| adapter) {
            state.guid = Guid(hexadecimal(guid)?);
        }
        if let Some(remark) = remark {
            if adapter {
                // The first `lid` of an adapter's line is its own.
                state.lid = Lid(after(remark, "lid").unwrap_or(0) as u16);
                state.lmc = after(remark, "lmc").unwrap_or(0) as u8 & 7;
            }
            if let Some((lanes, speed)) = link_name(remark) {
                state.width = lanes;
                (state.speed, state.extended_speed) = speed;
            }
        }
        self.claims.push(Claim {
            line: line_number,
            from,
            peer: peer.to_owned(),
            peer_port,
        });
        Ok(())
    }

    /// Makes the cables, once all nodes are known.
    fn cables(mut self) -> Result<Subnet, (usize, Problem)> {
        let mut stated: FxHashMap<PortRef, (PortRef, usize)> = FxHashMap::default();
        for claim in &self.claims {
            let Some((peer, _)) = self.names.get(&claim.peer) else {
                let name = claim.peer.clone();
                return Err((claim.line, Problem::UnknownPeer { name }));
            };
            let to = PortRef {
                node: *peer,
                port: claim.peer_port,
            };
            let name = |node| self.subnet.node(node).id.clone();
            if let Some((other, line)) = stated.insert(claim.from, (to, claim.line)) {
                let problem = Problem::Disagreement {
                    node: name(to.node),
                    port: to.port,
                    peer: name(claim.from.node),
                    peer_port: claim.from.port,
                    other: line,
                    other_node: name(other.node),
                    other_port: other.port,
                };
                return Err((claim.line, problem));
            }
        }
        for claim in &self.claims {
            let (to, _) = stated[&claim.from];
            let back = stated.get(&to);
            match back {
                Some((other, line)) if *other != claim.from => {
                    let name = |node| self.subnet.node(node).id.clone();
                    let problem = Problem::Disagreement {
                        node: name(claim.from.node),
                        port: claim.from.port,
                        peer: name(to.node),
                        peer_port: to.port,
                        other: *line,
                        other_node: name(other.node),
                        other_port: other.port,
                    };
                    return Err((claim.line, problem));
                }
                // Made from the other end.
                Some(_) if to < claim.from => continue,
                _ => {}
            }
            self.subnet
                .connect(claim.from, to)
                .map_err(|problem| (claim.line, problem.into()))?;
        }
        Ok(self.subnet)
    }
}

/// A line before its remark, and the remark. A `#` within quotes is none.
fn split_remark(line: &str) -> (&str, Option<&str>) {
    let mut inside = false;
    for (at, letter) in line.char_indices() {
        match letter {
            '"' => inside = !inside,
            '#' if !inside => return (&line[..at], Some(line[at + 1..].trim())),
            _ => {}
        }
    }
    (line, None)
}

/// The text in quotes at the start, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}

/// `[n]` or `[n](guid)` at the start: number, GUID, and what follows.
fn bracketed(text: &str) -> Option<(u8, Option<&str>, &str)> {
    let (number, rest) = text.strip_prefix('[')?.split_once(']')?;
    let number = number.trim().parse().ok()?;
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((guid, rest)) => Some((number, Some(guid), rest)),
        None => Some((number, None, rest)),
    }
}

/// The number after the first `word` that is not in quotes.
fn after(remark: &str, word: &str) -> Option<u64> {
    let bare: String = remark.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let mut words = bare.split_whitespace();
    words.find(|found| *found == word)?;
    words.next()?.parse().ok()
}

/// The width and speeds of a word such as `4xHDR` at the end.
fn link_name(remark: &str) -> Option<(LinkWidths, (LinkSpeeds, ExtendedSpeeds))> {
    let word = remark.split_whitespace().next_back()?;
    let (lanes, speed) = word.split_once('x')?;
    let width = match lanes {
        "1" => LinkWidths::X1,
        "2" => LinkWidths::X2,
        "4" => LinkWidths::X4,
        "8" => LinkWidths::X8,
        "12" => LinkWidths::X12,
        _ => return None,
    };
    let (_, first, extended) = SPEEDS.iter().find(|(name, _, _)| *name == speed)?;
    Some((width, (*first, *extended)))
}

/// A number, hexadecimal with 0x.
fn number(text: &str) -> Result<u64, Problem> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| Problem::Syntax {
        found: text.to_owned(),
        needed: "a number, hexadecimal after 0x",
    })
}

/// A GUID in brackets: hexadecimal with or without 0x.
fn hexadecimal(text: &str) -> Result<u64, Problem> {
    let digits = text.trim().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).map_err(|_| Problem::Syntax {
        found: text.to_owned(),
        needed: "a GUID of 1 to 16 hexadecimal digits",
    })
}
