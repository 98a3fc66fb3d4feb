//! The arguments of `softfabric lint`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};

use crate::diagnose::arguments::LldpTable;

/// Check settings of switches and hosts: headroom, ECN, PFC, maps, pools, watchdogs, and whether both ends of cables agree.
///
/// Takes SONiC's JSON (config_db.json, buffers.json, qos.json), its headroom tables (pg_profile_lookup.ini), what mlnx_qos -i
/// prints, and folders /sys/class/net/INTERFACE/ecn. What kind a file is, it tells by its text, and a headroom table by its ending, .ini. Each finding says device, file, line
/// and field, what was found and expected, by which arithmetic and source, and what to do.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct LintArguments {
    /// Files, with the name of the device before them where they do not say it: leaf0=qos.json, gpu17:eth0=mlnx_qos.txt,
    /// gpu17:eth0=/sys/class/net/eth0/ecn. Several of one device are taken together.
    #[arg(required = true, value_name = "[DEVICE=]FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) files: Vec<DeviceFile>,
    /// Cables: a file with the names of two ports on each line.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cables: Vec<PathBuf>,
    /// Cables from a switch's LLDP table (show lldp table): the switch's name and a file. May be given more than once.
    #[arg(long, value_name = "SWITCH=FILE")]
    pub(crate) lldp: Vec<LldpTable>,
    /// The platform by which headrooms are computed, where the files do not say theirs: a name that `softfabric presets` lists,
    /// such as sn5600.
    #[arg(long, value_name = "NAME")]
    pub(crate) platform: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `DEVICE=FILE`, or a file alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceFile {
    pub(crate) device: Option<String>,
    pub(crate) file: PathBuf,
}

impl FromStr for DeviceFile {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once('=') {
            // A name of a device is no path.
            Some((device, file)) if !device.is_empty() && !device.contains('/') => Self {
                device: Some(device.to_owned()),
                file: PathBuf::from(file),
            },
            _ => Self {
                device: None,
                file: PathBuf::from(text),
            },
        })
    }
}

const EXAMPLES: &str = "\
Examples:
  softfabric lint config_db.json
  softfabric lint leaf0=buffers.json leaf0=qos.json --platform sn2700
  softfabric lint leaf*.json gpu17:eth0=gpu17-qos.txt --lldp leaf0=lldp.txt
  softfabric lint config_db.json --json | jq -r '.findings[].rule'

Exit codes:
  0  nothing that loses packets; there may be warnings
  1  a setting that does: an error
  2  misuse or bad input";
