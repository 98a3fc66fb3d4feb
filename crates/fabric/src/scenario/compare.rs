//! `[compare]`: what is different for one technology when a scenario runs over several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fabric, FabricKind, Host, InfinibandSettings, Switch, is_default};

/// What is different for one technology when `softfabric compare` runs the scenario over several. Machines, cables, traffic
/// and events are the same for all, so they cannot be given here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Compare {
    /// Over TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Overlay>,
    /// Over RoCEv2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rocev2: Option<Overlay>,
    /// Over RoCEv1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rocev1: Option<Overlay>,
    /// Over InfiniBand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infiniband: Option<Overlay>,
}

/// Settings of one technology, laid over those of the scenario: a table goes into the table of the same name, field by field; a
/// list, and a table of another `kind`, takes the place of the one before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Overlay {
    /// Routing, segments and the IP version; the kind is given already.
    #[serde(skip_serializing_if = "is_default")]
    pub fabric: Fabric,
    /// What switches do.
    #[serde(skip_serializing_if = "is_default")]
    pub switch: Switch,
    /// Changes to some switches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switch_group: Vec<Switch>,
    /// What an InfiniBand fabric does.
    #[serde(skip_serializing_if = "is_default")]
    pub infiniband: InfinibandSettings,
    /// What hosts do.
    #[serde(skip_serializing_if = "is_default")]
    pub host: Host,
    /// Changes to some hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_group: Vec<Host>,
}

impl Compare {
    /// The settings of one technology.
    pub(super) fn overlay(&self, kind: FabricKind) -> Option<&Overlay> {
        match kind {
            FabricKind::RoceV2 => self.rocev2.as_ref(),
            FabricKind::RoceV1 => self.rocev1.as_ref(),
            FabricKind::Infiniband => self.infiniband.as_ref(),
            FabricKind::Tcp => self.tcp.as_ref(),
        }
    }
}

impl FabricKind {
    /// As scenarios write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::RoceV2 => "rocev2",
            Self::RoceV1 => "rocev1",
            Self::Infiniband => "infiniband",
            Self::Tcp => "tcp",
        }
    }

    /// As people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoceV2 => "RoCEv2",
            Self::RoceV1 => "RoCEv1",
            Self::Infiniband => "InfiniBand",
            Self::Tcp => "TCP/IP",
        }
    }
}
