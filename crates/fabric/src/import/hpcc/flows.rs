//! Flow files: the number of flows, then `source destination priority port bytes start` for each.

use std::path::Path;

use softfabric_units::{Bytes, Class, Time};

use crate::import::ImportError;
use crate::import::lines::{Word, Words, read};
use crate::plan::{Network, NodeId, NodeKind};

/// A line of a flow file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpccFlow {
    /// Who sends.
    pub source: NodeId,
    /// Who receives.
    pub destination: NodeId,
    /// The priority group.
    pub class: Class,
    /// The UDP destination port, for ECMP.
    pub destination_port: u16,
    /// How much.
    pub bytes: Bytes,
    /// When it starts, in whole nanoseconds as ns-3 reads the number.
    pub start: Time,
}

/// Reads a flow file for a network whose node ids it uses.
///
/// # Errors
/// If counts, ids, sizes or times are wrong, or the starts are not in order.
pub fn read_flows(
    file: &Path,
    text: &str,
    network: &Network,
) -> Result<Vec<HpccFlow>, ImportError> {
    let mut words = Words::new(file, text);
    let count: u32 = words.read("the number of flows", "a whole number")?;
    let mut flows: Vec<HpccFlow> = Vec::new();
    for _ in 0..count {
        let (flow, line) = flow(&mut words, network)?;
        let before = flows.last().map_or(Time::ZERO, |flow| flow.start);
        let fail = |field: &str, found: String, allowed: &str| {
            Err(ImportError::new(file, Some(line), field, found, allowed))
        };
        if flow.start < before {
            let found = format!("{}, after a flow that starts at {before}", flow.start);
            return fail(
                "the start of a flow",
                found,
                "no earlier than the line before",
            );
        }
        if flow.source == flow.destination {
            let found = format!("`{}`, the source itself", flow.destination.0);
            return fail("the destination of a flow", found, "another host");
        }
        if flow.bytes.is_zero() {
            return fail("the size of a flow", "0".to_owned(), "at least 1 byte");
        }
        flows.push(flow);
    }
    words.end("the last flow")?;
    Ok(flows)
}

fn flow(words: &mut Words<'_>, network: &Network) -> Result<(HpccFlow, usize), ImportError> {
    let file = words.file;
    let (source, line) = host(words, "the source of a flow", network)?;
    let (destination, _) = host(words, "the destination of a flow", network)?;
    let priorities = "a priority from 0 to 7";
    let word = words.take("the priority of a flow", priorities)?;
    let number: u8 = read(file, word, "the priority of a flow", priorities)?;
    let Some(class) = Class::checked(number) else {
        let found = format!("`{number}`");
        return Err(ImportError::new(
            file,
            Some(word.line),
            "the priority of a flow",
            found,
            priorities,
        ));
    };
    let destination_port = words.read("the port of a flow", "a port from 0 to 65535")?;
    let bytes: u32 = words.read("the size of a flow", "bytes, at most 4294967295")?;
    let word = words.take("the start of a flow", SECONDS)?;
    let start = seconds(read_seconds(file, word)?);
    let flow = HpccFlow {
        source,
        destination,
        class,
        destination_port,
        bytes: Bytes::new(u64::from(bytes)),
        start,
    };
    Ok((flow, line))
}

const SECONDS: &str = "seconds such as 2.000000000";

fn read_seconds(file: &Path, word: Word<'_>) -> Result<f64, ImportError> {
    let value: f64 = read(file, word, "the start of a flow", SECONDS)?;
    if !(0.0..1e6).contains(&value) {
        let found = format!("`{}`", word.text);
        let line = Some(word.line);
        return Err(ImportError::new(
            file,
            line,
            "the start of a flow",
            found,
            SECONDS,
        ));
    }
    Ok(value)
}

fn host(
    words: &mut Words<'_>,
    field: &str,
    network: &Network,
) -> Result<(NodeId, usize), ImportError> {
    let allowed = "the id of a host in the topology file";
    let word = words.take(field, allowed)?;
    let id: u32 = read(words.file, word, field, allowed)?;
    match network.nodes.get(id as usize).map(|node| node.kind) {
        Some(NodeKind::Host { .. }) => Ok((NodeId(id), word.line)),
        found => {
            let found = match found {
                Some(_) => format!("`{id}`, a switch"),
                None => format!("`{id}`, which is not there"),
            };
            Err(ImportError::new(
                words.file,
                Some(word.line),
                field,
                found,
                allowed,
            ))
        }
    }
}

/// A number of seconds as ns-3's `Seconds(double)` makes it whole nanoseconds.
///
/// It holds the fraction in 2⁻⁶⁴ and rounds down, so that 2.000000273 s, which a double cannot hold, is
/// 2,000,000,272 ns.
pub fn seconds(value: f64) -> Time {
    let whole = libm::floor(value);
    let fraction = ((value - whole) * 18_446_744_073_709_551_616.0) as u64;
    let nanos = (u128::from(fraction) * 1_000_000_000) >> 64;
    Time::from_nanos(whole as u64 * 1_000_000_000 + nanos as u64)
}
