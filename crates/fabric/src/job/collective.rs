//! Collectives, by their algorithms.
//!
//! ```text
//! ring              n − 1 steps to reduce, n − 1 to gather; each rank passes on what it got, slice by slice
//! double tree       two binary trees, each for one half: up to reduce, down to spread
//! halving–doubling  log₂ n exchanges of halves, quarters …, and back
//! hierarchical      reduce-scatter inside each server, a ring for each rail across servers, all-gather inside
//! direct            everybody sends to everybody
//! by rail (PXN)     over the server's own links to the accelerator on the receiver's rail, then along the rail
//! ```
//!
//! Bandwidths are those of nccl-tests: algorithm bandwidth is bytes over time; bus bandwidth is what each link carries.

use softfabric_units::{Bytes, Span};

use super::{Frontier, JobBuilder, Slicing, tree};
use crate::plan::{Gate, Measure};

/// Who takes part, by rank, in order.
pub type Members = [u32];

/// What a collective does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// Everybody gets the sum of all.
    AllReduce,
    /// Everybody gets all parts.
    AllGather,
    /// Everybody gets its part of the sum.
    ReduceScatter,
    /// Everybody sends a different part to everybody.
    AllToAll,
    /// One sends to all.
    Broadcast,
    /// Everybody sends to one other, and takes from one.
    SendReceive,
}

impl Collective {
    /// What nccl-tests multiply algorithm bandwidth with to get bus bandwidth (its file `doc/PERFORMANCE.md`).
    pub fn bus_factor(self, members: usize) -> f64 {
        let n = members as f64;
        match self {
            Self::AllReduce => 2.0 * (n - 1.0) / n,
            Self::AllGather | Self::ReduceScatter | Self::AllToAll => (n - 1.0) / n,
            Self::Broadcast | Self::SendReceive => 1.0,
        }
    }

    /// How it is measured, for `bytes` in the sense of nccl-tests: what a rank has of it where it is whole.
    pub fn measure(self, bytes: Bytes, members: usize) -> Measure {
        Measure {
            bytes,
            bus_factor: self.bus_factor(members),
        }
    }
}

/// A part of n equal ones, rounded up.
fn part(bytes: Bytes, parts: usize) -> Bytes {
    Bytes::new(bytes.as_u64().div_ceil(parts.max(1) as u64))
}

/// Message by message as these receives get theirs.
fn as_received(receives: &[u32]) -> Vec<Gate> {
    (receives.iter())
        .map(|&receive| Gate { receive, lead: 0 })
        .collect()
}

/// A ring, round which each member passes on for `steps` steps what it got in the step before.
fn ring(
    builder: &mut JobBuilder,
    members: &Members,
    (chunk, steps): (Bytes, u32),
    slicing: Slicing,
    after: &Frontier,
) -> Frontier {
    let n = members.len();
    let (slices, slice) = slicing.cut(chunk);
    let messages = steps.saturating_mul(slices);
    (0..n)
        .map(|place| {
            let (me, before) = (members[place], members[(place + n - 1) % n]);
            let next = members[(place + 1) % n];
            let receive = builder.receive((before, me), messages, slicing.handling, &after[place]);
            let gate = Gate {
                receive,
                lead: i32::try_from(slices).unwrap_or(i32::MAX),
            };
            let send = builder.send((me, next), (messages, slice), vec![gate], &after[place]);
            vec![receive, send]
        })
        .collect()
}

/// All-reduce, all-gather or reduce-scatter round a ring.
pub fn by_ring(
    builder: &mut JobBuilder,
    collective: Collective,
    members: &Members,
    bytes: Bytes,
    slicing: Slicing,
    after: &Frontier,
) -> Frontier {
    let n = members.len();
    if n < 2 {
        return after.clone();
    }
    let steps = (n as u32 - 1)
        * if collective == Collective::AllReduce {
            2
        } else {
            1
        };
    ring(builder, members, (part(bytes, n), steps), slicing, after)
}

/// A chain from the first member to the last, slice by slice.
pub fn broadcast_chain(
    builder: &mut JobBuilder,
    members: &Members,
    bytes: Bytes,
    slicing: Slicing,
    after: &Frontier,
) -> Frontier {
    let (messages, slice) = slicing.cut(bytes);
    let mut ends = after.clone();
    let mut got: Option<u32> = None;
    for place in 0..members.len() {
        let mut end = Vec::new();
        let me = members[place];
        let gates = as_received(got.as_slice());
        end.extend(got.take());
        if let Some(&next) = members.get(place + 1) {
            end.push(builder.send((me, next), (messages, slice), gates, &after[place]));
            let receive =
                builder.receive((me, next), messages, slicing.handling, &after[place + 1]);
            got = Some(receive);
        }
        if !end.is_empty() {
            ends[place] = end;
        }
    }
    ends
}

/// All-reduce over two binary trees.
pub fn all_reduce_double_tree(
    builder: &mut JobBuilder,
    members: &Members,
    bytes: Bytes,
    slicing: Slicing,
    after: &Frontier,
) -> Frontier {
    let n = members.len();
    if n < 2 {
        return after.clone();
    }
    let mut ends: Frontier = vec![Vec::new(); n];
    let (messages, slice) = slicing.cut(part(bytes, 2));
    for parents in [tree::in_order(n as u32), tree::second(n as u32)] {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (place, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent as usize].push(place);
            }
        }
        for place in 0..n {
            let me = members[place];
            let gathered: Vec<u32> = (children[place].iter())
                .map(|&child| {
                    let ends = (members[child], me);
                    builder.receive(ends, messages, slicing.handling, &after[place])
                })
                .collect();
            let mut whole = gathered.clone();
            if let Some(parent) = parents[place] {
                let parent = members[parent as usize];
                let up = builder.send(
                    (me, parent),
                    (messages, slice),
                    as_received(&gathered),
                    &after[place],
                );
                let down = builder.receive((parent, me), messages, Span::ZERO, &after[place]);
                ends[place].extend([up, down]);
                whole = vec![down];
            }
            for &child in &children[place] {
                let down = builder.send(
                    (me, members[child]),
                    (messages, slice),
                    as_received(&whole),
                    &after[place],
                );
                ends[place].push(down);
            }
            ends[place].extend(gathered);
        }
    }
    ends
}

/// All-reduce by halving and doubling; the number of members is a power of two.
///
/// # Errors
/// If it is none.
pub fn all_reduce_halving_doubling(
    builder: &mut JobBuilder,
    members: &Members,
    bytes: Bytes,
    slicing: Slicing,
    after: &Frontier,
) -> Result<Frontier, String> {
    let n = members.len();
    if !n.is_power_of_two() {
        return Err(format!("{n} ranks, which is no power of two"));
    }
    let steps = n.ilog2();
    let exchanges = (1..=steps).chain((1..=steps).rev());
    let mut ends = after.clone();
    for (number, step) in exchanges.enumerate() {
        let (messages, slice) = slicing.cut(part(bytes, 1 << step));
        let handling = if number < steps as usize {
            slicing.handling
        } else {
            Span::ZERO
        };
        let before = ends.clone();
        for place in 0..n {
            let (me, other) = (members[place], members[place ^ (n >> step)]);
            let send = builder.send((me, other), (messages, slice), Vec::new(), &before[place]);
            let receive = builder.receive((other, me), messages, handling, &before[place]);
            ends[place] = vec![send, receive];
        }
    }
    Ok(ends)
}

/// A collective by the algorithm that is usual for it: by server and rail where several servers have several members each, else
/// a ring, a chain for broadcasts, and everybody to everybody for all-to-all. `bytes` are those of nccl-tests: what a member has
/// where it is whole.
///
/// # Errors
/// If it is no collective of a group: send and receive.
pub fn usual(
    builder: &mut JobBuilder,
    collective: Collective,
    members: &Members,
    bytes: Bytes,
    slicing: Slicing,
    after: &Frontier,
) -> Result<Frontier, String> {
    if members.len() < 2 {
        return Ok(after.clone());
    }
    let by_server = grid(builder, members).is_ok_and(|grid| grid.len() > 1 && grid[0].len() > 1);
    match (collective, by_server) {
        (Collective::AllReduce, true) => {
            all_reduce_hierarchical(builder, members, bytes, slicing, after)
        }
        (Collective::AllToAll, true) => all_to_all_by_rail(builder, members, bytes, slicing, after),
        (Collective::AllToAll, false) => {
            Ok(all_to_all_direct(builder, members, bytes, slicing, after))
        }
        (Collective::Broadcast, _) => Ok(broadcast_chain(builder, members, bytes, slicing, after)),
        (Collective::AllReduce | Collective::AllGather | Collective::ReduceScatter, _) => {
            Ok(by_ring(builder, collective, members, bytes, slicing, after))
        }
        (Collective::SendReceive, _) => Err("a send and a receive".to_owned()),
    }
}

/// Everybody sends a part to everybody, nearest first.
pub fn all_to_all_direct(
    builder: &mut JobBuilder,
    members: &Members,
    bytes: Bytes,
    slicing: Slicing,
    after: &Frontier,
) -> Frontier {
    let n = members.len();
    let mut ends = vec![Vec::new(); n];
    let (messages, slice) = slicing.cut(part(bytes, n));
    for distance in 1..n {
        for place in 0..n {
            let to = (place + distance) % n;
            let pair = (members[place], members[to]);
            ends[place].push(builder.send(pair, (messages, slice), Vec::new(), &after[place]));
            ends[to].push(builder.receive(pair, messages, Span::ZERO, &after[to]));
        }
    }
    ends
}

/// Members by server and rail: `grid[server][accelerator]`.
///
/// # Errors
/// If servers have different numbers of members.
pub fn grid(builder: &JobBuilder, members: &Members) -> Result<Vec<Vec<usize>>, String> {
    let mut servers: Vec<(crate::plan::NodeId, Vec<usize>)> = Vec::new();
    for (place, &member) in members.iter().enumerate() {
        let host = builder.rank(member).host;
        match servers.iter_mut().find(|(server, _)| *server == host) {
            Some((_, places)) => places.push(place),
            None => servers.push((host, vec![place])),
        }
    }
    let width = servers.first().map_or(0, |(_, places)| places.len());
    if let Some((_, other)) = servers.iter().find(|(_, places)| places.len() != width) {
        return Err(format!(
            "servers with {width} and with {} ranks",
            other.len()
        ));
    }
    Ok(servers.into_iter().map(|(_, places)| places).collect())
}

/// All-reduce by rail: reduce-scatter inside each server, a ring for each rail, all-gather inside; all three at once, slice
/// by slice.
///
/// # Errors
/// If servers have different numbers of members.
pub fn all_reduce_hierarchical(
    builder: &mut JobBuilder,
    members: &Members,
    bytes: Bytes,
    slicing: Slicing,
    after: &Frontier,
) -> Result<Frontier, String> {
    let grid = grid(builder, members)?;
    let (servers, width) = (grid.len(), grid.first().map_or(0, Vec::len));
    let share = part(bytes, width);
    let (slices, slice) = slicing.cut(part(share, servers));
    // What a rail reduces, in the order in which its ring needs it.
    let all = slices.saturating_mul(servers as u32);
    let mut ends: Frontier = vec![Vec::new(); members.len()];
    for server in 0..servers {
        for rail in 0..width {
            let place = grid[server][rail];
            let me = members[place];
            let others: Vec<u32> = (1..width)
                .map(|distance| members[grid[server][(rail + distance) % width]])
                .collect();
            let after = &after[place];
            // Inside: everybody's share of this rail comes here, and theirs goes there.
            let mut own = Vec::new();
            for &other in &others {
                own.push(builder.receive((other, me), all, slicing.handling, after));
                ends[place].push(builder.send((me, other), (all, slice), Vec::new(), after));
            }
            let mut whole = as_received(&own);
            if servers > 1 {
                // The ring of the rail. A slice goes out when it has come from inside, too.
                let before = members[grid[(server + servers - 1) % servers][rail]];
                let next = members[grid[(server + 1) % servers][rail]];
                let messages = slices.saturating_mul(2 * (servers as u32 - 1));
                let receive = builder.receive((before, me), messages, slicing.handling, after);
                let mut gates = whole.clone();
                gates.push(Gate {
                    receive,
                    lead: i32::try_from(slices).unwrap_or(i32::MAX),
                });
                ends[place].push(builder.send((me, next), (messages, slice), gates, after));
                ends[place].push(receive);
                // The first slices are whole when the last reduction has come.
                whole.push(Gate {
                    receive,
                    lead: -i32::try_from(slices)
                        .unwrap_or(i32::MAX)
                        .saturating_mul(servers as i32 - 2),
                });
            }
            // Inside again: what is whole goes to everybody.
            for &other in &others {
                let gathered = builder.receive((other, me), all, Span::ZERO, after);
                let send = builder.send((me, other), (all, slice), whole.clone(), after);
                ends[place].extend([gathered, send]);
            }
            ends[place].extend(own);
        }
    }
    Ok(ends)
}

/// All-to-all by rail: what is for another server goes over the links inside to the accelerator on the receiver's rail, and
/// from there, together with what the others of the server have for the same receiver, along the rail (NCCL's PXN).
///
/// # Errors
/// If servers have different numbers of members.
pub fn all_to_all_by_rail(
    builder: &mut JobBuilder,
    members: &Members,
    bytes: Bytes,
    slicing: Slicing,
    after: &Frontier,
) -> Result<Frontier, String> {
    let grid = grid(builder, members)?;
    let (servers, width) = (grid.len(), grid.first().map_or(0, Vec::len));
    let each = part(bytes, members.len());
    let mut ends: Frontier = vec![Vec::new(); members.len()];
    for server in 0..servers {
        for rail in 0..width {
            let place = grid[server][rail];
            let me = members[place];
            let after = &after[place];
            let others: Vec<u32> = (1..width)
                .map(|distance| members[grid[server][(rail + distance) % width]])
                .collect();
            // For each server of the rail, its own last, what the others have for it comes here.
            for distance in (1..servers).chain([0]) {
                let mut gathered = after.clone();
                for &peer in &others {
                    ends[place].push(builder.send((me, peer), (1, each), Vec::new(), after));
                    gathered.push(builder.receive((peer, me), 1, Span::ZERO, after));
                }
                if distance > 0 {
                    let to = members[grid[(server + distance) % servers][rail]];
                    let from = members[grid[(server + servers - distance) % servers][rail]];
                    let (messages, slice) = slicing.cut(Bytes::new(each.as_u64() * width as u64));
                    let send = builder.send((me, to), (messages, slice), Vec::new(), &gathered);
                    ends[place].push(send);
                    ends[place].push(builder.receive((from, me), messages, Span::ZERO, after));
                }
                ends[place].extend(&gathered[after.len()..]);
            }
        }
    }
    Ok(ends)
}

/// Every rank of the job sends to the one `distance` places further on, round in a circle.
pub fn shift(
    builder: &mut JobBuilder,
    bytes: Bytes,
    distance: u32,
    slicing: Slicing,
    after: &Frontier,
) -> Frontier {
    let count = builder.ranks();
    let (messages, slice) = slicing.cut(bytes);
    let mut ends = vec![Vec::new(); count as usize];
    for rank in 0..count {
        let to = (rank + distance) % count;
        let (from, into) = (rank as usize, to as usize);
        ends[from].push(builder.send((rank, to), (messages, slice), Vec::new(), &after[from]));
        ends[into].push(builder.receive((rank, to), messages, slicing.handling, &after[into]));
    }
    ends
}
