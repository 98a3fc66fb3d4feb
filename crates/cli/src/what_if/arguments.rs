//! The arguments of `softfabric what-if`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use softfabric_units::{Class, Time};

/// Run a scenario as it is and with something done about it, and compare.
#[derive(Args)]
pub(crate) struct WhatIfArguments {
    #[command(subcommand)]
    pub(crate) command: WhatIfCommand,
}

#[derive(Subcommand)]
pub(crate) enum WhatIfCommand {
    PfcOff(PfcOffArguments),
}

/// What if somebody turned PFC off to end a storm?
///
/// Runs the scenario as it is and with PFC turned off everywhere, and prints both side by side: pauses, losses, packets sent
/// again, goodput of the flows to the host that pauses and of all others, completion times, jobs. The sentence below follows
/// from the figures, whatever they say.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct PfcOffArguments {
    /// A scenario (.toml), or - to read one from standard input. Where it turns PFC off itself, it is run without that, too.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,
    /// When PFC is turned off. Default: as the scenario says, or when its first storm or slow receiver begins, or 0s.
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    pub(crate) at: Option<Time>,
    /// For which class. Default: all that are lossless at any switch.
    #[arg(long, value_name = "N", value_parser = class)]
    pub(crate) class: Option<Class>,
    /// The seed of every random choice, in place of the scenario's.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  softfabric what-if pfc-off scenarios/storm_pfc_on.toml
  softfabric what-if pfc-off scenarios/storm_pfc_on.toml --at 1500us
  softfabric what-if pfc-off scenarios/storm_pfc_on.toml --json | jq .outcome";

fn class(text: &str) -> Result<Class, String> {
    let class = text.parse().ok().and_then(Class::checked);
    class.ok_or_else(|| "it must be a class from 0 to 7".to_owned())
}

fn point_in_time(text: &str) -> Result<Time, String> {
    let span: softfabric_units::Span = text.parse().map_err(|error| format!("{error}"))?;
    Ok(Time::ZERO + span)
}
