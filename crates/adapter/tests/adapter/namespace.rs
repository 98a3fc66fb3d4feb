//! Network namespaces for tests, where the machine lets us make them.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Two namespaces joined by a cable: `veth0` in each, with an IPv4, an IPv6 and a link-local address.
pub(crate) struct Cable {
    /// Their names.
    pub(crate) names: [String; 2],
}

impl Cable {
    /// `None`, and a line that says why, where the machine does not allow it.
    pub(crate) fn lay(test: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        let cable = Self {
            names: ["a", "b"].map(|end| format!("softfabric-{id}-{number}{end}")),
        };
        let [a, b] = &cable.names;
        let cables = format!("link add veth0 netns {a} type veth peer name veth0 netns {b}");
        let mut steps = vec![format!("netns add {a}"), format!("netns add {b}"), cables];
        for name in &cable.names {
            steps.extend([
                format!("-n {name} link set veth0 addrgenmode none"),
                format!("-n {name} link set veth0 up"),
                format!("-n {name} link set lo up"),
            ]);
        }
        for (end, name) in cable.names.iter().enumerate() {
            let host = end + 1;
            steps.extend([
                format!("-n {name} addr add 10.9.0.{host}/24 dev veth0"),
                format!("-n {name} addr add fd09::{host}/64 dev veth0 nodad"),
                format!("-n {name} addr add fe80::{host}/64 dev veth0 nodad"),
            ]);
        }
        for step in steps {
            if let Err(reason) = ip(&step) {
                println!("SKIPPED {test}: `ip {step}`: {reason}");
                return None;
            }
        }
        cable.wait_for_addresses();
        Some(cable)
    }

    /// Changes something in the namespace of an end.
    pub(crate) fn ip(&self, end: usize, step: &str) {
        ip(&format!("-n {} {step}", self.names[end])).unwrap();
    }

    /// IPv6 takes a moment to see that the cable is plugged in: until then, addresses have no routes.
    fn wait_for_addresses(&self) {
        for name in &self.names {
            for _ in 0..500 {
                let routes = ip(&format!("-n {name} -6 route show table local")).unwrap();
                if routes.contains("fd09::") && routes.contains("fe80::") {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn ip(step: &str) -> Result<String, String> {
    let output = Command::new("ip").args(step.split_whitespace()).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
