//! Files of subnets: topologies as ibsim and ibnetdiscover write them, tables as OpenSM dumps them.
//!
//! | file | read | written |
//! |---|---|---|
//! | ibsim `.net` | [`read_topology`] | [`write_net`] |
//! | ibnetdiscover | [`read_topology`] | [`write_ibnetdiscover`] |
//! | `guid2lid`, `neighbors` | | [`dump::guid2lid`], [`dump::neighbors`] |
//! | `opensm-lfts.dump`, `opensm.fdbs`, `opensm-subnet.lst` | | [`dump::lfts`], [`dump::fdbs`], [`dump::subnet_list`] |
//! | `opensm.mcfdbs` | | [`dump::mcfdbs`] |
//! | `opensm-sl2vl.dump`, and what `ibdmchk` wants to know of levels | | [`dump::sl2vl`], [`dump::ibdmchk_levels`] |

pub mod dump;
mod read;
mod write;

pub use read::{TopologyError, TopologyProblem, read_topology};
pub use write::{write_ibnetdiscover, write_net};

use softfabric_units::Rate;
use softfabric_wire::mad::{ExtendedSpeeds, LinkSpeeds, LinkWidths};

use crate::subnet::Port;

/// Speeds of a lane as the diagnostics name them, with what a port says of them.
const SPEEDS: [(&str, LinkSpeeds, ExtendedSpeeds); 7] = [
    ("SDR", LinkSpeeds::SDR, ExtendedSpeeds::NONE),
    ("DDR", LinkSpeeds::DDR, ExtendedSpeeds::NONE),
    ("QDR", LinkSpeeds::QDR, ExtendedSpeeds::NONE),
    ("FDR", LinkSpeeds::QDR, ExtendedSpeeds::FDR),
    ("EDR", LinkSpeeds::QDR, ExtendedSpeeds::EDR),
    ("HDR", LinkSpeeds::QDR, ExtendedSpeeds::HDR),
    ("NDR", LinkSpeeds::QDR, ExtendedSpeeds::NDR),
];

/// The name of a port's lane speed.
fn speed_name(port: &Port) -> &'static str {
    SPEEDS
        .iter()
        .rev()
        .find(|(_, speed, extended)| {
            if port.extended_speed == ExtendedSpeeds::NONE {
                *extended == ExtendedSpeeds::NONE && port.speed.contains(*speed)
            } else {
                *extended != ExtendedSpeeds::NONE && port.extended_speed.contains(*extended)
            }
        })
        .map_or("SDR", |(name, _, _)| name)
}

/// The lanes of a port's link.
fn lanes(port: &Port) -> u8 {
    port.width.widest().and_then(LinkWidths::lanes).unwrap_or(4)
}

/// The rate of one lane as OpenSM's lists print it, in Gb/s.
fn lane_rate(port: &Port) -> &'static str {
    match speed_name(port) {
        "SDR" => "2.5",
        "DDR" => "5",
        "QDR" => "10",
        "FDR" => "14",
        "EDR" => "25",
        "HDR" => "50",
        _ => "100",
    }
}

/// The nominal rate of a port's link.
pub fn link_rate(port: &Port) -> Option<Rate> {
    let width = port.width.widest()?;
    let (_, speed, extended) = SPEEDS
        .iter()
        .find(|(name, _, _)| *name == speed_name(port))?;
    softfabric_wire::mad::RateCode::of_link(width, *speed, *extended)?.rate()
}
