//! Settings of real platforms, each value with where it comes from.
//!
//! ```text
//! name ──► switch("sn5600") ──► SwitchPreset ──► profile()   what the engine runs
//!                                            └─► headroom()  for a port's speed and cable
//!                                            └─► values()    the same, with sources, for people
//! ```
//!
//! A value is either read in a public file or document, which is named, or assumed, and then the reason is given.
//! Values and profile come from the same table, so what is shown is what runs. Everything can be overridden.
//!
//! "SONiC" stands for the repository sonic-net/sonic-buildimage and its forks; paths are below its `device` folder, but for
//! those that start with `src`.

mod nic;
mod nics;
mod switch;
mod switches;
#[cfg(test)]
mod tests;

use std::fmt;

pub use nic::NicPreset;
pub use switch::{HeadroomRow, HeadroomSource, PresetHeadroomError, SwitchPreset};

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Read in this public file or document.
    Public(&'static str),
    /// Not found in public; the reason for the value.
    Assumed(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public(place) => f.write_str(place),
            Self::Assumed(reason) => write!(f, "assumed: {reason}"),
        }
    }
}

/// A value and where it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Its source.
    pub source: Source,
}

/// A value that was read in public.
const fn public<T: Copy>(value: T, place: &'static str) -> Sourced<T> {
    Sourced {
        value,
        source: Source::Public(place),
    }
}

/// A value that was not.
const fn assumed<T: Copy>(value: T, reason: &'static str) -> Sourced<T> {
    Sourced {
        value,
        source: Source::Assumed(reason),
    }
}

/// One value of a preset, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// What it sets.
    pub field: &'static str,
    /// The value as text.
    pub value: String,
    /// Where it comes from.
    pub source: Source,
}

/// What a preset is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A switch.
    Switch,
    /// A NIC and its host.
    Nic,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Switch => "switch",
            Self::Nic => "nic",
        })
    }
}

/// A preset, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// The name to ask for.
    pub name: &'static str,
    /// Other names for the same.
    pub aliases: &'static [&'static str],
    /// What it is for.
    pub kind: Kind,
    /// What it stands for.
    pub summary: &'static str,
    /// What it sets.
    pub values: Vec<Value>,
}

/// Every preset, switches first.
pub fn all() -> Vec<Description> {
    let switches = switches::ALL.iter().map(|preset| Description {
        name: preset.name,
        aliases: preset.aliases,
        kind: Kind::Switch,
        summary: preset.summary,
        values: preset.values(),
    });
    let nics = nics::ALL.iter().map(|preset| Description {
        name: preset.name,
        aliases: preset.aliases,
        kind: Kind::Nic,
        summary: preset.summary,
        values: preset.values(),
    });
    switches.chain(nics).collect()
}

/// The switch of a name or alias.
pub fn switch(name: &str) -> Option<&'static SwitchPreset> {
    (switches::ALL.iter()).find(|preset| preset.name == name || preset.aliases.contains(&name))
}

/// The NIC of a name or alias.
pub fn nic(name: &str) -> Option<&'static NicPreset> {
    (nics::ALL.iter()).find(|preset| preset.name == name || preset.aliases.contains(&name))
}

/// The names of all switches, for messages that say what is allowed.
pub fn switch_names() -> impl Iterator<Item = &'static str> {
    switches::ALL.iter().map(|preset| preset.name)
}

/// The names of all NICs.
pub fn nic_names() -> impl Iterator<Item = &'static str> {
    nics::ALL.iter().map(|preset| preset.name)
}
