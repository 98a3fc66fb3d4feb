//! What kind of file it is, and the plan in it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use softfabric_fabric::export::Names;
use softfabric_fabric::import::hpcc;
use softfabric_fabric::plan::{Endpoint, Plan};
use softfabric_fabric::scenario::Scenario;

use crate::arguments::CaptureRequest;
use crate::failure::Failure;

/// What is to be run.
pub(crate) struct Input {
    pub(crate) plan: Plan,
    /// What the person should know before the run.
    pub(crate) notes: Vec<String>,
    /// The `fct` and `pfc` files that an HPCC config file asks for.
    pub(crate) hpcc_outputs: Option<HpccOutputs>,
}

/// Where an HPCC config file wants its outputs.
pub(crate) struct HpccOutputs {
    pub(crate) flows: PathBuf,
    pub(crate) pauses: PathBuf,
}

/// The kinds of files that can be told by their name or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Scenario,
    HpccConfig,
    HtsimMatrix,
    HtsimTopology,
    SonicHeadroom,
    Json,
    Unknown,
}

/// Settings that every config file of the HPCC simulator has at least one of.
const HPCC_SETTINGS: &[&str] = &[
    "TOPOLOGY_FILE",
    "FLOW_FILE",
    "ENABLE_QCN",
    "CC_MODE",
    "PACKET_PAYLOAD_SIZE",
];

/// Reads the file and makes a plan of it.
///
/// # Errors
/// If it cannot be read, is of a kind that cannot be run, or is wrong.
pub(crate) fn load(path: &Path, seed: Option<u64>) -> Result<Input, Failure> {
    let text = read(path)?;
    match kind_of(path, &text) {
        Kind::Scenario => {
            let mut scenario = Scenario::from_toml(&text, &path.display().to_string())?;
            scenario.seed = seed.or(scenario.seed);
            Ok(Input {
                plan: scenario.plan()?,
                notes: scenario.notes(),
                hpcc_outputs: None,
            })
        }
        Kind::HpccConfig => {
            let mut run = hpcc::load_config(path)?;
            run.plan.seed = seed.unwrap_or(run.plan.seed);
            Ok(Input {
                plan: run.plan,
                notes: run.notes,
                hpcc_outputs: Some(HpccOutputs {
                    flows: run.fct_output,
                    pauses: run.pfc_output,
                }),
            })
        }
        other => Err(wrong_kind(path, other)),
    }
}

/// The text of a scenario file.
///
/// # Errors
/// If it cannot be read, or is no scenario.
pub(crate) fn scenario_text(path: &Path) -> Result<String, Failure> {
    let text = read(path)?;
    match kind_of(path, &text) {
        Kind::Scenario => Ok(text),
        Kind::HpccConfig => Err(Failure::WrongKind {
            path: path.to_owned(),
            problem: "this is a config file of the HPCC simulator".to_owned(),
            help: "Make a scenario of it first: softfabric import hpcc FILE -o scenario.toml"
                .to_owned(),
        }),
        other => Err(wrong_kind(path, other)),
    }
}

/// Adds the ports to the plan's captures, and says which capture goes to which file.
///
/// # Errors
/// If there is no such port.
pub(crate) fn add_captures(
    plan: &mut Plan,
    requests: &[CaptureRequest],
) -> Result<Vec<(Endpoint, PathBuf)>, Failure> {
    let names = Names::new(&plan.network);
    let mut captures = Vec::new();
    for request in requests {
        let endpoint = names
            .find(&request.port)
            .map_err(|error| Failure::Arguments {
                problem: format!(
                    "--pcap {}={}: {error}",
                    request.port,
                    request.file.display()
                ),
                help: Some(
                    "A port is NODE:NUMBER, NODE:NEIGHBOUR, or the name of a host.".to_owned(),
                ),
            })?;
        captures.push((endpoint, request.file.clone()));
    }
    for (endpoint, _) in &captures {
        if !plan.recording.captures.contains(endpoint) {
            plan.recording.captures.push(*endpoint);
        }
    }
    Ok(captures)
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes);
        read.map(|_| bytes)
    } else {
        fs::read(path)
    };
    let bytes = bytes.map_err(|error| Failure::unreadable(path, error))?;
    String::from_utf8(bytes).map_err(|error| not_text(path, &error))
}

/// A text in another encoding can be saved anew; anything else is no input at all.
fn not_text(path: &Path, error: &FromUtf8Error) -> Failure {
    let valid = error.utf8_error().valid_up_to();
    let before = &error.as_bytes()[..valid];
    let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
    let is_binary = error.as_bytes().contains(&0);
    let (problem, help) = if is_binary {
        ("this is no text file".to_owned(), RUNNABLE)
    } else {
        (
            format!("line {line} has a character that is not UTF-8 (byte {valid} of the file)"),
            "Save the file as UTF-8.",
        )
    };
    Failure::WrongKind {
        path: path.to_owned(),
        problem,
        help: help.to_owned(),
    }
}

fn kind_of(path: &Path, text: &str) -> Kind {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let first_words = || {
        text.lines()
            .filter_map(|line| line.split_whitespace().next())
    };
    match extension {
        Some("toml") => Kind::Scenario,
        _ if path == Path::new("-") => Kind::Scenario,
        Some("cm") => Kind::HtsimMatrix,
        Some("topo") => Kind::HtsimTopology,
        Some("ini") => Kind::SonicHeadroom,
        _ if first_words().any(|word| HPCC_SETTINGS.contains(&word)) => Kind::HpccConfig,
        Some("json") => Kind::Json,
        _ => Kind::Unknown,
    }
}

const RUNNABLE: &str = "What can be run: a scenario (.toml, see scenarios/ and docs/scenarios.md), or a config file \
                        of the HPCC simulator.";

fn wrong_kind(path: &Path, kind: Kind) -> Failure {
    let (problem, help) = match kind {
        Kind::HtsimMatrix | Kind::HtsimTopology => (
            "this is a file of htsim, and only half of a run",
            "Make a scenario of a topology and a matrix: softfabric import htsim FILE.topo FILE.cm -o \
             scenario.toml",
        ),
        Kind::SonicHeadroom => (
            "this looks like a SONiC headroom table, which says nothing of a network",
            "Its thresholds can become part of a scenario: softfabric import sonic FILE",
        ),
        Kind::Json => (
            "this is JSON, not a scenario",
            "SONiC's buffer and QoS files can become part of a scenario: softfabric import sonic FILES",
        ),
        _ => ("I do not know this kind of file", RUNNABLE),
    };
    Failure::WrongKind {
        path: path.to_owned(),
        problem: problem.to_owned(),
        help: help.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_other_encodings_are_told_from_binary_files() {
        let said = |bytes: &[u8]| {
            let error = String::from_utf8(bytes.to_vec()).unwrap_err();
            not_text(Path::new("x.toml"), &error).to_string()
        };
        let latin = said(b"name = \"a\"\ndescription = \"caf\xe9\"\n");
        assert!(
            latin.contains("line 2 has a character that is not UTF-8"),
            "{latin}"
        );
        assert_eq!(said(b"\x7fELF\0\xff"), "x.toml: this is no text file");
    }

    #[test]
    fn kinds_are_told_apart() {
        let kind = |name: &str, text: &str| kind_of(Path::new(name), text);
        assert_eq!(kind("a.toml", "x"), Kind::Scenario);
        assert_eq!(kind("-", "x"), Kind::Scenario);
        assert_eq!(kind("w1.conf", "ENABLE_QCN 1\n"), Kind::HpccConfig);
        assert_eq!(kind("config.txt", "\nFLOW_FILE a.txt\n"), Kind::HpccConfig);
        assert_eq!(kind("w1.cm", "Nodes 17\n"), Kind::HtsimMatrix);
        assert_eq!(kind("notes.txt", "hello\n"), Kind::Unknown);
    }
}
