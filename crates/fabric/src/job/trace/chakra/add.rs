//! From the nodes of all ranks to tasks: who sends to whom, and which nodes are one collective.

use std::collections::BTreeMap;

use softfabric_units::Bytes;

use super::{Action, Group, Node, Traces};
use crate::import::ImportError;
use crate::job::collective::{self, Collective};
use crate::job::trace::message::{Ends, Pair, Unpaired};
use crate::job::trace::wrong;
use crate::job::{Frontier, JobBuilder, Slicing};
use crate::plan::order;

/// Nodes of several ranks that are one collective.
#[derive(Debug)]
struct Meeting {
    /// Each as rank and place in it.
    nodes: Vec<(u32, u32)>,
}

impl Traces {
    /// Adds what every rank does.
    pub(in crate::job::trace) fn add(
        &self,
        builder: &mut JobBuilder,
        slicing: Slicing,
        after: &Frontier,
    ) -> Result<Frontier, ImportError> {
        let messages = self.messages()?;
        let collectives = self.collectives(builder)?;
        let order = self.order(&messages, &collectives)?;
        // What each node ends with; of messages both ends first, so that they come in the same order on a channel.
        let mut ends: Vec<Frontier> = self
            .ranks
            .iter()
            .map(|rank| vec![Vec::new(); rank.nodes.len()])
            .collect();
        for pair in &messages {
            let ((from, sender), (to, receiver)) = (pair.send, pair.receive);
            if let Action::Send(message) = &self.node(pair.send).action {
                let (count, slice) = slicing.cut(message.bytes);
                let send = builder.send((from, to), (count, slice), Vec::new(), &[]);
                let receive = builder.receive((from, to), count, slicing.handling, &[]);
                ends[from as usize][sender as usize].push(send);
                ends[to as usize][receiver as usize].push(receive);
            }
        }
        for step in order {
            match step {
                Step::Node((rank, place)) => {
                    let before = self.before((rank, place), &ends, after);
                    let own = &mut ends[rank as usize][place as usize];
                    match &self.node((rank, place)).action {
                        Action::Nothing => *own = before,
                        Action::Compute { span, on_cpu } => {
                            let processor = u8::from(*on_cpu);
                            *own = vec![builder.compute_on(processor, rank, *span, &before)];
                        }
                        Action::Send(_) | Action::Receive(_) => {
                            builder.begin_after(own[0], before);
                        }
                        // Done for all its ranks at once.
                        Action::Collective { .. } => {}
                    }
                }
                Step::Collective(meeting) => {
                    let nodes = &collectives[meeting].nodes;
                    let members: Vec<u32> = nodes.iter().map(|(rank, _)| *rank).collect();
                    let before: Frontier = nodes
                        .iter()
                        .map(|at| self.before(*at, &ends, after))
                        .collect();
                    let over = self.collective(builder, &members, nodes[0], slicing, &before)?;
                    for ((rank, place), over) in nodes.iter().zip(over) {
                        ends[*rank as usize][*place as usize] = over;
                    }
                }
            }
        }
        Ok((self.ranks.iter().zip(&ends).zip(after))
            .map(|((rank, ends), after)| {
                let mut last = vec![true; rank.nodes.len()];
                for before in rank.nodes.iter().flat_map(|node| &node.after) {
                    last[*before as usize] = false;
                }
                let left = ends.iter().zip(last).filter(|(_, last)| *last);
                let mut tasks: Vec<u32> = left.flat_map(|(ends, _)| ends).copied().collect();
                tasks.sort_unstable();
                tasks.dedup();
                if tasks.is_empty() {
                    after.clone()
                } else {
                    tasks
                }
            })
            .collect())
    }

    fn collective(
        &self,
        builder: &mut JobBuilder,
        members: &[u32],
        first: (u32, u32),
        slicing: Slicing,
        before: &Frontier,
    ) -> Result<Frontier, ImportError> {
        let Action::Collective {
            collective, bytes, ..
        } = &self.node(first).action
        else {
            return Ok(before.clone());
        };
        // What is whole, in the sense of nccl-tests.
        let whole = match collective {
            Collective::AllGather => Bytes::new(bytes.as_u64() * members.len() as u64),
            _ => *bytes,
        };
        collective::usual(builder, *collective, members, whole, slicing, before)
            .map_err(|found| self.wrong(first, "the ranks", found, "a collective of a group"))
    }

    fn node(&self, (rank, place): (u32, u32)) -> &Node {
        &self.ranks[rank as usize].nodes[place as usize]
    }

    /// The tasks that a node begins after.
    fn before(&self, at: (u32, u32), ends: &[Frontier], begin: &Frontier) -> Vec<u32> {
        let after = &self.node(at).after;
        if after.is_empty() {
            return begin[at.0 as usize].clone();
        }
        let ends = &ends[at.0 as usize];
        let mut tasks: Vec<u32> = after
            .iter()
            .flat_map(|before| &ends[*before as usize])
            .copied()
            .collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }

    /// The nodes of each rank in an order in which it can do them.
    fn orders(&self) -> Result<Vec<Vec<u32>>, ImportError> {
        (0..)
            .zip(&self.ranks)
            .map(|(rank, trace)| {
                let waits: Vec<Vec<u32>> =
                    trace.nodes.iter().map(|node| node.after.clone()).collect();
                order(&waits).map_err(|circle| {
                    let nodes: Vec<(u32, u32)> =
                        circle.into_iter().map(|place| (rank, place)).collect();
                    self.circle(&nodes)
                })
            })
            .collect()
    }

    /// Which send is for which receive.
    fn messages(&self) -> Result<Vec<Pair>, ImportError> {
        let mut ends = Ends::default();
        for (rank, order) in (0..).zip(self.orders()?) {
            for at in order.into_iter().map(|place| (rank, place)) {
                match self.node(at).action {
                    Action::Send(message) => ends.send(at, message),
                    Action::Receive(message) => ends.receive(at, message),
                    _ => {}
                }
            }
        }
        ends.pairs().map_err(|unpaired| match unpaired {
            Unpaired::Sent {
                send,
                to,
                tag,
                received,
            } => {
                let found = format!("with tag {tag} to rank {to}, which takes {received} such");
                self.wrong(send, "the message", found, "one that is received")
            }
            Unpaired::Awaited {
                receive,
                from,
                tag,
                sent,
            } => {
                let found = format!("with tag {tag} from rank {from}, which sends {sent} such");
                self.wrong(receive, "the message", found, "one that is sent")
            }
            Unpaired::Short { pair, sent, taken } => {
                let allowed = format!("at least {sent}, what rank {} sends", pair.send.0);
                self.wrong(pair.receive, "comm_size", taken.to_string(), allowed)
            }
        })
    }

    /// Which nodes are the same collective: the n-th of a group on each of its ranks.
    fn collectives(&self, builder: &JobBuilder) -> Result<Vec<Meeting>, ImportError> {
        let mut groups: BTreeMap<(Group, u32), BTreeMap<u32, Vec<u32>>> = BTreeMap::new();
        for (rank, order) in (0..).zip(self.orders()?) {
            for place in order {
                let Action::Collective { group, .. } = &self.node((rank, place)).action else {
                    continue;
                };
                let which = match group {
                    Group::All | Group::Named(_) => 0,
                    Group::Server => builder.rank(rank).host.0,
                    Group::Rail => builder.rank(rank).accelerator,
                };
                let of_group = groups.entry((group.clone(), which)).or_default();
                of_group.entry(rank).or_default().push(place);
            }
        }
        let mut meetings = Vec::new();
        for ((group, which), ranks) in groups {
            let belongs = |rank: &u32| match &group {
                Group::All => true,
                Group::Server => builder.rank(*rank).host.0 == which,
                Group::Rail => builder.rank(*rank).accelerator == which,
                Group::Named(_) => ranks.contains_key(rank),
            };
            let members: Vec<u32> = (0..self.ranks.len() as u32).filter(belongs).collect();
            let nothing = Vec::new();
            let of = |rank: &u32| ranks.get(rank).unwrap_or(&nothing);
            let most = members
                .iter()
                .copied()
                // Of equal ones the first.
                .rev()
                .max_by_key(|rank| of(rank).len())
                .unwrap_or(0);
            for (number, &place) in of(&most).iter().enumerate() {
                let mut nodes = Vec::with_capacity(members.len());
                for rank in &members {
                    let Some(other) = of(rank).get(number) else {
                        let found = format!(
                            "collective {number} of its group, of which rank {rank} has {number}"
                        );
                        let allowed = "one in which all ranks of the group take part";
                        return Err(self.wrong((most, place), "the node", found, allowed));
                    };
                    nodes.push((*rank, *other));
                }
                self.alike(&nodes)?;
                meetings.push(Meeting { nodes });
            }
        }
        Ok(meetings)
    }

    /// Whether all ranks mean the same collective.
    fn alike(&self, nodes: &[(u32, u32)]) -> Result<(), ImportError> {
        let first = self.node(nodes[0]);
        for &at in nodes {
            let other = self.node(at);
            if other.action != first.action {
                let what = |action: &Action| match action {
                    Action::Collective {
                        collective, bytes, ..
                    } => {
                        format!("{collective:?} of {bytes}")
                    }
                    _ => String::new(),
                };
                let allowed = format!(
                    "{}, as node {} of rank {}, which meets it",
                    what(&first.action),
                    first.id,
                    nodes[0].0
                );
                return Err(self.wrong(at, "the collective", what(&other.action), allowed));
            }
        }
        Ok(())
    }

    /// All nodes and collectives in an order in which nothing comes before what it waits for.
    fn order(&self, messages: &[Pair], collectives: &[Meeting]) -> Result<Vec<Step>, ImportError> {
        let mut steps = Vec::new();
        let mut first = Vec::with_capacity(self.ranks.len());
        for (rank, trace) in (0..).zip(&self.ranks) {
            first.push(steps.len() as u32);
            steps.extend((0..trace.nodes.len() as u32).map(|place| Step::Node((rank, place))));
        }
        let number = |(rank, place): (u32, u32)| first[rank as usize] + place;
        let mut waits: Vec<Vec<u32>> = (0..)
            .zip(&self.ranks)
            .flat_map(|(rank, trace)| {
                let of_rank = move |place: &u32| number((rank, *place));
                (trace.nodes.iter()).map(move |node| node.after.iter().map(of_rank).collect())
            })
            .collect();
        for pair in messages {
            waits[number(pair.receive) as usize].push(number(pair.send));
        }
        for (place, meeting) in collectives.iter().enumerate() {
            // The collective waits for what its nodes wait for, and they for it.
            let own = steps.len() as u32;
            steps.push(Step::Collective(place));
            let mut together = Vec::new();
            for at in &meeting.nodes {
                together.append(&mut waits[number(*at) as usize]);
                waits[number(*at) as usize] = vec![own];
            }
            waits.push(together);
        }
        let order = order(&waits).map_err(|circle| {
            let node = |step: &u32| match steps[*step as usize] {
                Step::Node(at) => Some(at),
                Step::Collective(_) => None,
            };
            let nodes: Vec<(u32, u32)> = circle.iter().filter_map(node).collect();
            self.circle(&nodes)
        })?;
        Ok(order.into_iter().map(|step| steps[step as usize]).collect())
    }

    fn circle(&self, nodes: &[(u32, u32)]) -> ImportError {
        let first = nodes.first().copied().unwrap_or_default();
        let name = |at: &(u32, u32)| format!("node {} of rank {}", self.node(*at).id, at.0);
        let mut names: Vec<String> = nodes.iter().skip(1).take(8).map(name).collect();
        if nodes.len() > names.len() + 1 {
            names.push("…".to_owned());
        }
        names.push("itself".to_owned());
        let found = format!("for {}", names.join(", which waits for "));
        self.wrong(first, "the wait", found, "without a circle")
    }

    fn wrong(
        &self,
        at: (u32, u32),
        field: &str,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ImportError {
        let node = self.node(at);
        let field = format!("{field} of node {} `{}`", node.id, node.name);
        wrong(&self.ranks[at.0 as usize].file, None, field, found, allowed)
    }
}

/// A node, or a collective, for all its ranks.
#[derive(Clone, Copy, Debug)]
enum Step {
    Node((u32, u32)),
    Collective(usize),
}
