//! What a person chooses about the adapter, carried to the program in the environment variable `SOFTFABRIC`.
//!
//! `softfabric exec` writes it and the device reads it when it is opened. Everything has a default, so a program that
//! merely loads the library works.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use softfabric_units::Rate;

use crate::faults::Rule;

/// The environment variable that holds [`Settings`] as JSON.
pub const VARIABLE: &str = "SOFTFABRIC";

/// How devices are made and driven.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The network interfaces that become devices, by name; empty: all that have an address.
    pub interfaces: Vec<String>,
    /// Whether packets between processes of this host may go through shared memory. Faults and recordings are of the wire,
    /// so they turn it off: see [`Settings::shares_memory`].
    pub shared_memory: bool,
    /// The faults that packets on the wire meet.
    pub faults: Vec<Rule>,
    /// What chance says about faults: equal seeds say equal things.
    pub seed: u64,
    /// The pcapng file that packets on the wire are recorded to. A second device of the same run writes beside it.
    pub recording: Option<PathBuf>,
    /// Whether packets may be marked by the network, and notifications slow down who sends.
    pub congestion_control: CongestionControl,
    /// The rate that congestion control starts from and returns to: what the link can do.
    pub line_rate: Rate,
}

/// What is done about congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// Nothing, beside the answers that others want to their marked packets.
    #[default]
    Off,
    /// DCQCN, with the parameters of NVIDIA's NICs.
    Dcqcn,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interfaces: Vec::new(),
            shared_memory: true,
            faults: Vec::new(),
            seed: 1,
            recording: None,
            congestion_control: CongestionControl::Off,
            line_rate: Rate::gbps(100),
        }
    }
}

impl Settings {
    /// Whether packets really go through shared memory.
    pub fn shares_memory(&self) -> bool {
        self.shared_memory && self.faults.is_empty() && self.recording.is_none()
    }
}

/// Why the environment's settings are not used.
#[derive(Debug, thiserror::Error)]
#[error(
    "the environment variable {VARIABLE} does not hold settings: {0}; unset it, or start the program by `softfabric exec`"
)]
pub struct SettingsError(#[from] serde_json::Error);

impl Settings {
    /// The settings of the environment, or the defaults without any.
    ///
    /// # Errors
    /// If the variable holds something else.
    pub fn from_environment() -> Result<Self, SettingsError> {
        match std::env::var_os(VARIABLE) {
            None => Ok(Self::default()),
            Some(text) => Self::from_json(&text.to_string_lossy()),
        }
    }

    /// Reads what [`Settings::to_json`] wrote.
    ///
    /// # Errors
    /// If the text is not JSON, or names a setting that does not exist.
    pub fn from_json(text: &str) -> Result<Self, SettingsError> {
        Ok(serde_json::from_str(text)?)
    }

    /// The text for the environment.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("settings are plain values with text keys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_from_their_text() {
        let settings = Settings {
            interfaces: vec!["eth0".to_owned()],
            shared_memory: false,
            faults: vec!["drop:p=0.5".parse().unwrap()],
            recording: Some("run.pcapng".into()),
            congestion_control: CongestionControl::Dcqcn,
            line_rate: Rate::gbps(25),
            ..Settings::default()
        };
        assert_eq!(Settings::from_json(&settings.to_json()).unwrap(), settings);
        assert_eq!(Settings::from_json("{}").unwrap(), Settings::default());
    }

    #[test]
    fn faults_and_recordings_want_the_wire() {
        let mut settings = Settings::default();
        assert!(settings.shares_memory());
        settings.faults = vec!["drop".parse().unwrap()];
        assert!(!settings.shares_memory());
    }

    #[test]
    fn unknown_settings_are_refused() {
        let error = Settings::from_json(r#"{"shared_memroy":true}"#).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("shared_memroy") && message.contains("SOFTFABRIC"),
            "{message}"
        );
    }
}
