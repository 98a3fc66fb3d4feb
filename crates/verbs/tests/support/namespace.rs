//! Network namespaces for the programs, where the machine lets us make them.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::skipped;

/// Two namespaces joined by a cable: `veth0` in each, with an IPv4 and an IPv6 address.
pub(crate) struct Cable {
    pub(crate) names: [String; 2],
}

impl Cable {
    /// `None`, and a line that says why, where the machine does not allow it.
    pub(crate) fn lay(test: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        let cable = Self {
            names: ["a", "b"].map(|end| format!("softfabric-cm-{id}-{number}{end}")),
        };
        let [a, b] = &cable.names;
        let cables = format!("link add veth0 netns {a} type veth peer name veth0 netns {b}");
        let mut steps = vec![format!("netns add {a}"), format!("netns add {b}"), cables];
        for (end, name) in cable.names.iter().enumerate() {
            let host = end + 1;
            steps.extend([
                format!("-n {name} addr add 10.8.0.{host}/24 dev veth0"),
                format!("-n {name} addr add fd08::{host}/64 dev veth0 nodad"),
                format!("-n {name} link set veth0 up"),
                format!("-n {name} link set lo up"),
            ]);
        }
        for step in steps {
            if let Err(reason) = ip(&step) {
                skipped(test, &format!("`ip {step}`: {reason}"));
                return None;
            }
        }
        Some(cable)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn ip(step: &str) -> Result<(), String> {
    let output = Command::new("ip").args(step.split_whitespace()).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
