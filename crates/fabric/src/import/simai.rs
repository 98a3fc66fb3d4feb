//! Topology files of SimAI (github.com/aliyun/SimAI), as its `gen_Topo_Template.py` writes them.
//!
//! ```text
//! nodes  gpus_per_server  nvswitches  switches  links  gpu_type
//! ids of the NVSwitches and then of the switches
//! a  b  rate  delay  error_rate          for each link
//! ```
//!
//! GPUs come first; each has links to the NVSwitches of its server and to the network.

use std::path::Path;

use super::ImportError;
use super::lines::{Words, read, read_text};
use crate::plan::{Network, NodeId, NodeKind, Plan};
use crate::topology::{Builder, Cable, tiers_by_distance};
use softfabric_units::{Rate, Span};

/// A topology of SimAI.
#[derive(Clone, Debug, PartialEq)]
pub struct SimaiTopology {
    /// The network: hosts `gpu0` …, NVSwitches `nvswitch` and their id, switches `s` and theirs.
    pub network: Network,
    /// How many GPUs a server has.
    pub gpus_per_server: u32,
    /// The NVSwitches.
    pub nvswitches: Vec<NodeId>,
    /// The kind of the GPUs.
    pub gpu_type: String,
}

/// Reads a topology as a plan without flows, with the switches and hosts of a scenario that says nothing.
///
/// # Errors
/// If the file cannot be read, or is wrong.
pub fn load(path: &Path) -> Result<Plan, ImportError> {
    let topology = read_topology(path, &read_text(path)?)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(super::plan_of(&name, topology.network, &[Span::ZERO]))
}

/// Reads a topology.
///
/// # Errors
/// If counts, ids, rates or delays are wrong.
pub fn read_topology(file: &Path, text: &str) -> Result<SimaiTopology, ImportError> {
    let mut words = Words::new(file, text);
    let counted = "a whole number";
    let node_count: u32 = words.read("the number of nodes", counted)?;
    let gpus_per_server: u32 = words.read("the number of GPUs a server", counted)?;
    let nvswitch_count: u32 = words.read("the number of NVSwitches", counted)?;
    let switch_count: u32 = words.read("the number of switches", counted)?;
    let link_count: u32 = words.read("the number of links", counted)?;
    let gpu_type = words.take("the type of the GPUs", "a name such as H100")?;
    // The simulator's own reader takes a file without the type's line break, too.
    let mut kinds = vec![None; node_count as usize];
    let mut nvswitches = Vec::new();
    for index in 0..u64::from(nvswitch_count) + u64::from(switch_count) {
        let id = node(&mut words, "the id of a switch", node_count)?;
        let is_nvswitch = index < u64::from(nvswitch_count);
        if is_nvswitch {
            nvswitches.push(id);
        }
        kinds[id.index()] = Some(if is_nvswitch { "nvswitch" } else { "s" });
    }
    let mut builder = Builder::default();
    for (id, kind) in (0u32..).zip(&kinds) {
        match kind {
            Some(prefix) => builder.switch(format!("{prefix}{id}"), 1),
            None => {
                let kind = NodeKind::Host {
                    profile: 0,
                    subnet: 0,
                };
                builder.node(format!("gpu{id}"), kind, 0)
            }
        };
    }
    for _ in 0..link_count {
        link(&mut words, node_count, &mut builder)?;
    }
    words.end("the last link")?;
    let mut network = builder
        .finish()
        .map_err(|error| ImportError::new(file, None, error.field, error.found, error.needed))?;
    tiers_by_distance(&mut network);
    Ok(SimaiTopology {
        network,
        gpus_per_server,
        nvswitches,
        gpu_type: gpu_type.text.to_owned(),
    })
}

fn link(words: &mut Words<'_>, node_count: u32, builder: &mut Builder) -> Result<(), ImportError> {
    let a = node(words, "the first end of a link", node_count)?;
    let b = node(words, "the second end of a link", node_count)?;
    let allowed = "a rate such as 400Gbps";
    let word = words.take("the rate of a link", allowed)?;
    let rate: Rate = read(words.file, word, "the rate of a link", allowed)?;
    let wrong = |field: &str, found: String, allowed: &str| {
        Err(ImportError::new(
            words.file,
            Some(word.line),
            field,
            found,
            allowed,
        ))
    };
    if rate.is_zero() {
        return wrong("the rate of a link", "zero".to_owned(), allowed);
    }
    let delay: Span = words.read("the delay of a link", "a delay such as 0.0005ms")?;
    let allowed = "a probability from 0 to 1";
    let error_rate: f64 = words.read("the error rate of a link", allowed)?;
    if !(0.0..=1.0).contains(&error_rate) {
        let line = Some(word.line);
        let found = error_rate.to_string();
        let field = "the error rate of a link";
        return Err(ImportError::new(words.file, line, field, found, allowed));
    }
    let link = builder.link(a, b, Cable { rate, delay });
    builder.link_mut(link).packet_error_rate = error_rate;
    Ok(())
}

fn node(words: &mut Words<'_>, field: &str, count: u32) -> Result<NodeId, ImportError> {
    let allowed = format!("a node id from 0 to {}", i64::from(count) - 1);
    let word = words.take(field, &allowed)?;
    let id: u32 = read(words.file, word, field, &allowed)?;
    if id >= count {
        let found = format!("`{id}`");
        return Err(ImportError::new(
            words.file,
            Some(word.line),
            field,
            found,
            allowed,
        ));
    }
    Ok(NodeId(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two servers of two GPUs, each with an NVSwitch, and a rail switch for each GPU of a server.
    const TEXT: &str = "8 2 2 2 8 H100\n4 5 6 7 \n0 4 2880Gbps 0.000025ms 0\n0 6 400Gbps 0.0005ms 0\n1 4 2880Gbps \
                        0.000025ms 0\n1 7 400Gbps 0.0005ms 0\n2 5 2880Gbps 0.000025ms 0\n2 6 400Gbps 0.0005ms 0\n3 5 \
                        2880Gbps 0.000025ms 0\n3 7 400Gbps 0.0005ms 0.5\n";

    #[test]
    fn a_rail_topology() {
        let topology = read_topology(Path::new("topo"), TEXT).unwrap();
        assert_eq!(
            (topology.gpus_per_server, topology.gpu_type.as_str()),
            (2, "H100")
        );
        assert_eq!(topology.nvswitches, [NodeId(4), NodeId(5)]);
        let network = &topology.network;
        let names: Vec<_> = network
            .nodes
            .iter()
            .map(|node| node.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "gpu0",
                "gpu1",
                "gpu2",
                "gpu3",
                "nvswitch4",
                "nvswitch5",
                "s6",
                "s7"
            ]
        );
        assert_eq!(network.links[0].rate, Rate::gbps(2880));
        assert_eq!(network.links[0].delay, Span::nanos(25));
        assert_eq!(network.links[7].packet_error_rate, 0.5);
    }

    #[test]
    fn what_is_wrong_names_its_line() {
        let error = |from: &str, to: &str| {
            let text = TEXT.replacen(from, to, 1);
            read_topology(Path::new("topo"), &text)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error("0 6 400Gbps", "0 9 400Gbps"),
            "topo:4: the second end of a link is `9`, but it must be a node id from 0 to 7"
        );
        assert_eq!(
            error("0.0005ms", "0.0005"),
            "topo:4: the delay of a link is `0.0005`, but it must be a delay such as 0.0005ms"
        );
        assert_eq!(
            error("0.5", "5"),
            "topo:10: the error rate of a link is 5, but it must be a probability from 0 to 1"
        );
        assert_eq!(
            error(" 8 H100", " 7 H100"),
            "topo:10: what follows the last link is `3`, but it must be the end of the file (does the count at the top fit?)"
        );
    }
}
