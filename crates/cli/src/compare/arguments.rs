//! The arguments of `softfabric compare`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum, ValueHint};
use softfabric_fabric::scenario::FabricKind;

/// Run a scenario over TCP/IP, RoCEv2 and InfiniBand, and set the figures side by side.
///
/// The same machines, cables, traffic and events, whatever the file's own fabric.kind. What only one technology has (PFC,
/// DCQCN, lanes) stays with that one, and the output says what was left out. Tables [compare.tcp], [compare.rocev2] and
/// [compare.infiniband] of the file are laid over the scenario of their technology. Ctrl-C keeps what is done.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct CompareArguments {
    /// A scenario (.toml), or - to read it from standard input.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,
    /// Only these technologies.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "tcp,rocev2,infiniband"
    )]
    pub(crate) only: Vec<Technology>,
    /// Try these values of a setting: host.mtu=1024B,4096B. May be given more than once; all combinations run. With
    /// fabric.kind the technologies are those values.
    #[arg(long, value_name = "FIELD=VALUES")]
    pub(crate) set: Vec<GridAxis>,
    /// How many seeds, from the scenario's on: differences that seeds make are not read as differences.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seeds: u32,
    /// No runs but those of the scenario: none without its events, none without groups of settings, no small messages.
    #[arg(long)]
    pub(crate) quick: bool,
    /// How many runs at once. Default: as many as there are processors. The figures are the same for any number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Write a report as one HTML page.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Write everything as JSON; - is standard output, and moves the table to standard error.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// No progress and no table.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  softfabric compare scenarios/compare_incast.toml
  softfabric compare scenarios/compare_rail_loss.toml --only rocev2,infiniband --html rails.html
  softfabric compare scenarios/incast.toml --set host.mtu=1024B,4096B --only rocev2
  softfabric compare scenarios/incast.toml --json - | jq '.reading[].text'

Exit codes:
  0  something was compared
  1  a technology lost packets of a lossless class, or did not come to its end, or none could run
  2  misuse, bad input, or an output that could not be written";

/// A technology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Technology {
    /// TCP over IP and Ethernet, by the processors.
    Tcp,
    /// RDMA over UDP and IP.
    #[value(name = "rocev2")]
    RoceV2,
    /// RDMA over Ethernet, within one segment.
    #[value(name = "rocev1")]
    RoceV1,
    /// RDMA over InfiniBand.
    Infiniband,
}

impl Technology {
    pub(crate) const fn kind(self) -> FabricKind {
        match self {
            Self::Tcp => FabricKind::Tcp,
            Self::RoceV2 => FabricKind::RoceV2,
            Self::RoceV1 => FabricKind::RoceV1,
            Self::Infiniband => FabricKind::Infiniband,
        }
    }
}

/// `FIELD=VALUE,VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GridAxis {
    pub(crate) field: String,
    pub(crate) values: Vec<String>,
}

impl FromStr for GridAxis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "it must be FIELD=VALUES, such as host.mtu=1024B,4096B".to_owned();
        let (field, values) = text.split_once('=').ok_or_else(wrong)?;
        let values = apart(values);
        if field.is_empty() || values.iter().any(String::is_empty) {
            return Err(wrong());
        }
        Ok(Self {
            field: field.to_owned(),
            values,
        })
    }
}

/// Splits at commas that are not within brackets, braces or quotes.
fn apart(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut depth, mut quoted) = (0i32, false);
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(character);
        }
    }
    parts
        .into_iter()
        .map(|part| part.trim().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_stay_whole() {
        let axis: GridAxis = "switch.lossless=[3, 4],[]".parse().unwrap();
        assert_eq!(axis.values, ["[3, 4]", "[]"]);
        let axis: GridAxis = "host.mtu=1024B, 4096B".parse().unwrap();
        assert_eq!(axis.values, ["1024B", "4096B"]);
        for wrong in ["host.mtu", "=1", "host.mtu=", "host.mtu=1,"] {
            assert!(wrong.parse::<GridAxis>().is_err(), "{wrong}");
        }
    }
}
