//! Topology files: `nodes switches links`, the ids of the switches, then `a b rate delay error_rate` for each link.

use std::path::Path;

use softfabric_units::{Rate, Span};

use crate::import::ImportError;
use crate::import::lines::{Words, read};
use crate::plan::{Network, NodeId, NodeKind};
use crate::topology::{Builder, Cable, tiers_by_distance};

/// Reads a topology file. Hosts are named `h` and their id, switches `s` and theirs. Links that have no error rate of
/// their own get `error_rate`, per packet (`ERROR_RATE_PER_LINK`).
///
/// # Errors
/// If counts, ids, rates or delays are wrong.
pub fn read_topology(file: &Path, text: &str, error_rate: f64) -> Result<Network, ImportError> {
    let mut words = Words::new(file, text);
    let counted = "a whole number";
    let node_count: u32 = words.read("the number of nodes", counted)?;
    let switch_count: u32 = words.read("the number of switches", counted)?;
    let link_count: u32 = words.read("the number of links", counted)?;
    let mut is_switch = Vec::new();
    is_switch.resize(node_count as usize, false);
    for _ in 0..switch_count {
        let id = node(&mut words, "the id of a switch", node_count)?;
        is_switch[id.index()] = true;
    }
    let mut builder = Builder::default();
    for (id, is_switch) in (0u32..).zip(&is_switch) {
        if *is_switch {
            builder.switch(format!("s{id}"), 1);
        } else {
            builder.node(
                format!("h{id}"),
                NodeKind::Host {
                    profile: 0,
                    subnet: 0,
                },
                0,
            );
        }
    }
    for _ in 0..link_count {
        let a = node(&mut words, "the first end of a link", node_count)?;
        let b = node(&mut words, "the second end of a link", node_count)?;
        let word = words.take("the rate of a link", RATE)?;
        let rate: Rate = read(file, word, "the rate of a link", RATE)?;
        if rate.is_zero() {
            let line = Some(word.line);
            return Err(ImportError::new(
                file,
                line,
                "the rate of a link",
                "zero",
                RATE,
            ));
        }
        let delay: Span = words.read("the delay of a link", DELAY)?;
        let own: f64 = words.read("the error rate of a link", ERROR_RATE)?;
        if !(0.0..=1.0).contains(&own) {
            let line = Some(word.line);
            let found = own.to_string();
            return Err(ImportError::new(
                file,
                line,
                "the error rate of a link",
                found,
                ERROR_RATE,
            ));
        }
        let link = builder.link(a, b, Cable { rate, delay });
        builder.link_mut(link).packet_error_rate = if own > 0.0 { own } else { error_rate };
    }
    words.end("the last link")?;
    let mut network = builder
        .finish()
        .map_err(|error| ImportError::new(file, None, error.field, error.found, error.needed))?;
    tiers_by_distance(&mut network);
    Ok(network)
}

const RATE: &str = "a rate such as 100Gbps";
const DELAY: &str = "a delay such as 1000ns";
const ERROR_RATE: &str = "a probability from 0 to 1";

fn node(words: &mut Words<'_>, field: &str, count: u32) -> Result<NodeId, ImportError> {
    let allowed = format!("a node id from 0 to {}", i64::from(count) - 1);
    let word = words.take(field, &allowed)?;
    let id: u32 = read(words.file, word, field, &allowed)?;
    if id >= count {
        let line = Some(word.line);
        return Err(ImportError::new(
            words.file,
            line,
            field,
            format!("`{id}`"),
            allowed,
        ));
    }
    Ok(NodeId(id))
}
