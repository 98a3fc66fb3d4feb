//! Files of SONiC: headroom tables, buffers and QoS settings, as thresholds of a switch.
//!
//! ```text
//! pg_profile_lookup.ini   speed, cable ──► headroom, XON, threshold of lossless groups
//! buffers.json            pools, profiles, groups and queues of a port
//! qos.json                DSCP ─► TC ─► group and queue; PFC classes; WRED; schedulers
//!                                                          └──► SwitchProfile
//! ```
//!
//! The maps of the QoS file become the switch's: class n of its settings is priority group n and queue n.

mod buffers;
mod document;
mod lookup;
mod qos;
#[cfg(test)]
mod tests;

use std::path::Path;

use softfabric_units::{Class, ClassMask, Rate};

pub use document::{numbers_of_ports, object_name};
pub use lookup::{HeadroomEntry, read_headroom_table};

use super::ImportError;
use super::lines::read_text;
use crate::headroom::CableLength;
use crate::plan::{Plan, SwitchProfile};
use crate::scenario::{class_profile, host_profile, switch_profile};
use crate::topology::{Cable, Star};

/// Which files there are, and which port of the switch is meant.
#[derive(Clone, Copy, Debug)]
pub struct SonicFiles<'f> {
    /// A `pg_profile_lookup.ini`.
    pub headroom: Option<&'f Path>,
    /// A `buffers.json`, or a whole `config_db.json`.
    pub buffers: Option<&'f Path>,
    /// A `qos.json`, or a whole `config_db.json`.
    pub qos: Option<&'f Path>,
    /// The port whose settings all ports get; `None`: the first with settings.
    pub port: Option<&'f str>,
    /// The speed of the ports.
    pub speed: Rate,
    /// The length of their cables.
    pub cable: CableLength,
}

/// What the files say about a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct SonicSwitch {
    /// Its settings; what the files leave open is that of a scenario which says nothing.
    pub profile: SwitchProfile,
    /// What could not be taken over, or was simplified.
    pub notes: Vec<String>,
}

/// Reads the files that there are.
///
/// # Errors
/// If a file cannot be read, is wrong, or says nothing about the port.
pub fn load(files: &SonicFiles<'_>) -> Result<SonicSwitch, ImportError> {
    let mut switch = SonicSwitch {
        profile: switch_profile(&[files.speed]),
        notes: Vec::new(),
    };
    if let Some(path) = files.qos {
        qos::apply(path, &read_text(path)?, files, &mut switch)?;
    }
    if let Some(path) = files.buffers {
        buffers::apply(path, &read_text(path)?, files, &mut switch)?;
    }
    if let Some(path) = files.headroom {
        let entries = read_headroom_table(path, &read_text(path)?)?;
        let entry = lookup::find(path, &entries, files.speed, files.cable)?;
        for class in switch.profile.lossless().iter() {
            entry.apply(&mut switch.profile.classes[class.index()].ingress);
        }
    }
    Ok(switch)
}

/// A plan without flows: a star of hosts at the ports' speed and cable on a switch with these settings.
///
/// # Errors
/// As [`load`].
pub fn load_plan(
    files: &SonicFiles<'_>,
    name: &str,
    hosts: u32,
) -> Result<(Plan, Vec<String>), ImportError> {
    let switch = load(files)?;
    let cable = Cable {
        rate: files.speed,
        delay: files.cable.delay(),
    };
    let path = files.buffers.or(files.qos).or(files.headroom);
    let network = Star { hosts, cable }.build().map_err(|error| {
        let file = path.unwrap_or(Path::new("-"));
        ImportError::new(file, None, error.field, error.found, error.needed)
    })?;
    let mut plan = super::plan_of(name, network, &[switch.profile.latency]);
    let addressing = plan.host_profiles[0].addressing;
    plan.host_profiles = vec![host_profile(switch.profile.priorities(), addressing)];
    plan.switch_profiles = vec![switch.profile];
    Ok((plan, switch.notes))
}

/// Makes these classes lossless and the others lossy, with the settings of a scenario that says nothing.
fn protect(profile: &mut SwitchProfile, lossless: ClassMask, speed: Rate) {
    for class in Class::all() {
        let wanted = lossless.contains(class);
        let found = &mut profile.classes[class.index()];
        if found.lossless != wanted {
            *found = class_profile(class, wanted, &[speed]);
        }
    }
}
