//! `softfabric headroom`: how much memory a lossless class needs beyond its XOFF point.

use std::process::ExitCode;

use softfabric_fabric::headroom::{CableLength, Headroom, HeadroomProfile};
use softfabric_fabric::preset::{self, HeadroomSource, SwitchPreset};
use softfabric_units::{Bytes, Rate};

use crate::arguments::HeadroomArguments;
use crate::failure::Failure;
use crate::format;
use crate::summary::wrap;
use crate::table::Table;
use crate::terminal::{self, BOLD, FAINT, Stream};

/// The speeds and cables of `--table`.
const SPEEDS_GBPS: &[u64] = &[10, 25, 40, 50, 100, 200, 400, 800];
const CABLES: &[CableLength] = &[
    CableLength::metres(5),
    CableLength::metres(40),
    CableLength::metres(300),
];

/// Prints the headroom, or a table of them.
///
/// # Errors
/// If the platform is unknown, or says nothing about the speed.
pub(crate) fn headroom(arguments: &HeadroomArguments) -> Result<ExitCode, Failure> {
    let platform = Platform::find(&arguments.platform)?;
    let platform = platform.with_mtu(arguments.mtu, arguments.lossless_mtu)?;
    let text = match (arguments.rate, arguments.cable) {
        (Some(rate), Some(cable)) => single(&platform, rate, cable)?,
        _ => table(&platform),
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Where headrooms come from.
struct Platform {
    name: String,
    source: Source,
}

enum Source {
    Formula(HeadroomProfile),
    Preset(&'static SwitchPreset),
}

impl Platform {
    /// A switch of the presets, or a profile of the formula.
    fn find(name: &str) -> Result<Self, Failure> {
        let source = match (preset::switch(name), HeadroomProfile::by_name(name)) {
            (Some(preset), _) => match preset.headroom.value {
                HeadroomSource::Formula(profile) => Source::Formula(profile),
                _ => Source::Preset(preset),
            },
            (None, Some(profile)) => Source::Formula(profile),
            (None, None) => {
                let switches = preset::switch_names();
                let profiles = HeadroomProfile::NAMES.iter().map(|(name, _)| *name);
                let known: Vec<&str> = switches.chain(profiles).collect();
                return Err(Failure::Arguments {
                    problem: format!("no headroom is known for the platform `{name}`"),
                    help: Some(format!("Known are: {}", known.join(", "))),
                });
            }
        };
        Ok(Self {
            name: name.to_owned(),
            source,
        })
    }

    fn with_mtu(self, port: Option<Bytes>, lossless: Option<Bytes>) -> Result<Self, Failure> {
        match self.source {
            _ if port.is_none() && lossless.is_none() => Ok(self),
            Source::Formula(profile) => {
                let port = port.unwrap_or(profile.port_mtu);
                let lossless = lossless.unwrap_or(profile.lossless_mtu);
                Ok(Self {
                    source: Source::Formula(profile.with_mtu(port, lossless)),
                    ..self
                })
            }
            Source::Preset(_) => Err(Failure::Arguments {
                problem: format!(
                    "the headroom of {} is tabled for one MTU, it cannot be worked out for another",
                    self.name
                ),
                help: Some(
                    "Leave out --mtu and --lossless-mtu, or choose another platform.".to_owned(),
                ),
            }),
        }
    }

    fn headroom(&self, rate: Rate, cable: CableLength) -> Result<Option<Headroom>, String> {
        match &self.source {
            Source::Formula(profile) => match profile.headroom(rate, cable) {
                Ok(found) => Ok(Some(found)),
                Err(error) => Err(error.to_string()),
            },
            Source::Preset(preset) => match preset.headroom(rate, cable) {
                Ok(xoff) => Ok(xoff.map(|xoff| Headroom {
                    xoff,
                    xon: Bytes::ZERO,
                })),
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

fn single(platform: &Platform, rate: Rate, cable: CableLength) -> Result<String, Failure> {
    let wrong = |problem: String| Failure::Arguments {
        problem,
        help: None,
    };
    let found = platform
        .headroom(rate, cable)
        .map_err(wrong)?
        .ok_or_else(|| {
            wrong(format!(
                "{} works out its own headroom, from rate and delay of each link",
                platform.name
            ))
        })?;
    let line = |name: &str, value: Bytes, meaning: &str| {
        format!(
            "{name:<6}{BOLD}{:>9} B{BOLD:#}  {FAINT}{meaning}{FAINT:#}\n",
            format::grouped(value.as_u64())
        )
    };
    let mut text = format!(
        "Headroom of a lossless priority at {rate} over {cable} on {}\n\n{}",
        platform.name,
        line(
            "xoff",
            found.xoff,
            "what may still arrive after a pause was decided"
        ),
    );
    if !found.xon.is_zero() {
        text.push_str(&line(
            "xon",
            found.xon,
            "set aside for the pipeline after resume",
        ));
        text.push_str(&line(
            "size",
            found.size(),
            "both, without a shared headroom pool",
        ));
    }
    if let Source::Formula(profile) = &platform.source {
        let assumed = format!(
            "Frames of up to {} B in the way, lossless packets of up to {} B, cells of {} B, packets of {} B on average.",
            profile.port_mtu.as_u64(),
            profile.lossless_mtu.as_u64(),
            profile.cell.as_u64(),
            profile.average_packet.as_u64(),
        );
        text.push_str(&format!(
            "\n{}\n",
            wrap(&assumed, Stream::Output.width(), 0)
        ));
    }
    Ok(text)
}

fn table(platform: &Platform) -> String {
    let mut table = Table::new()
        .words("xoff in bytes", 0)
        .figures("5 m", 0)
        .figures("40 m", 0)
        .figures("300 m", 0);
    for &gbps in SPEEDS_GBPS {
        let rate = Rate::gbps(gbps);
        let cells: Vec<String> = CABLES
            .iter()
            .map(|&cable| match platform.headroom(rate, cable) {
                Ok(Some(found)) => format::grouped(found.xoff.as_u64()),
                Ok(None) | Err(_) => "–".to_owned(),
            })
            .collect();
        if cells.iter().any(|cell| cell != "–") {
            table.row(std::iter::once(rate.to_string()).chain(cells));
        }
    }
    table.render(Stream::Output.width())
}
