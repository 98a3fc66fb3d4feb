//! Settings of switches and hosts that do not fit together, found before they cost packets.
//!
//! ```text
//! config_db.json, buffers.json, qos.json ─► Switch ─┐
//! pg_profile_lookup.ini ──────────────────► table ──┤
//! mlnx_qos, /sys/class/net/*/ecn ─────────► HostPort┼─► rules ─► Finding   device, file, line, field;
//! who is wired to whom ───────────────────► cables ─┘                      found, expected and why; what to do
//! ```
//!
//! Nothing here reads files: whoever has them hands in their texts. A rule speaks only of what the texts say; what they leave
//! open (a buffer model that computes headrooms itself, a port without a speed) is left out and not guessed.

mod finding;
mod headroom_table;
mod host;
mod rules;
mod sonic;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use finding::{Finding, Rule, Severity};
pub use host::HostPort;
pub use sonic::Switch;

use softfabric_fabric::headroom::HeadroomProfile;
use softfabric_fabric::import::Located;

/// Everything that is checked together.
#[derive(Debug, Default)]
pub struct Fabric {
    /// Switches by name.
    pub switches: BTreeMap<String, Switch>,
    /// Ports of hosts by their name, such as `gpu17:eth0`.
    pub hosts: BTreeMap<String, HostPort>,
    /// Headroom tables: device, file and text.
    pub tables: Vec<(String, String, String)>,
    /// Both ends of each cable, as `leaf0:Ethernet0` and `gpu17:eth0`.
    pub cables: Vec<(String, String)>,
    /// The platform by which headrooms are computed, where a switch does not say its own.
    pub platform: Option<HeadroomProfile>,
    /// What was wrong with the texts themselves.
    unreadable: Vec<Finding>,
}

impl Fabric {
    /// Nothing yet; with the platform of switches that do not say theirs.
    pub fn new(platform: Option<HeadroomProfile>) -> Self {
        Self {
            platform,
            ..Self::default()
        }
    }

    /// Adds a JSON file of SONiC to the switch of this name; several files of one switch are taken together. Without a name, it
    /// is the host name in the file, or the file's.
    pub fn add_sonic(&mut self, name: Option<&str>, file: &str, text: &str) {
        let document = match Located::read(file, text) {
            Ok(document) => document,
            Err((line, problem)) => {
                let device = name.unwrap_or(file);
                let finding = Finding::new(Rule::Syntax, device, file, Some(line), "the file")
                    .found(problem)
                    .expected("JSON", "SONiC reads nothing else")
                    .advice("correct it there");
                self.unreadable.push(finding);
                return;
            }
        };
        let hostname = document.text(&["DEVICE_METADATA", "localhost", "hostname"]);
        let name = name.or(hostname).unwrap_or(file).to_owned();
        let switch = self.switches.entry(name.clone());
        switch
            .or_insert_with(|| Switch::new(name))
            .documents
            .push(document);
    }

    /// Adds a `pg_profile_lookup.ini`.
    pub fn add_headroom_table(&mut self, device: &str, file: &str, text: &str) {
        self.tables
            .push((device.to_owned(), file.to_owned(), text.to_owned()));
    }

    /// Adds what `mlnx_qos -i` printed for a port of a host.
    pub fn add_mlnx_qos(&mut self, port: &str, file: &str, text: &str) {
        self.host(port).read_mlnx_qos(file, text);
    }

    /// Adds a file below `/sys/class/net/INTERFACE/ecn`, by its path there, such as `roce_np/enable/3`.
    pub fn add_ecn_setting(&mut self, port: &str, file: &str, path: &str, text: &str) {
        self.host(port).read_ecn(file, path, text);
    }

    /// The names of all ports that can be ends of cables.
    pub fn ports(&self) -> BTreeSet<String> {
        let of_switches = self.switches.iter().flat_map(|(name, switch)| {
            let tables = ["PORT", "PORT_QOS_MAP"].map(|table| switch.table(table));
            let ports = tables.into_iter().flatten().map(|entry| entry.name);
            ports.map(move |port| format!("{name}:{port}"))
        });
        of_switches.chain(self.hosts.keys().cloned()).collect()
    }

    fn host(&mut self, port: &str) -> &mut HostPort {
        let host = self.hosts.entry(port.to_owned());
        host.or_insert_with(|| HostPort::new(port))
    }

    /// All findings, in the order of device, file and line.
    pub fn check(&self) -> Vec<Finding> {
        let mut findings = self.unreadable.clone();
        for switch in self.switches.values() {
            rules::switch(self, switch, &mut findings);
        }
        for (device, file, text) in &self.tables {
            headroom_table::check(self.platform, device, file, text, &mut findings);
        }
        for host in self.hosts.values() {
            rules::host(host, &mut findings);
        }
        for (a, b) in &self.cables {
            rules::cable(self, a, b, &mut findings);
        }
        findings.sort_by(|a, b| {
            let place = (&a.device, &a.file, a.line).cmp(&(&b.device, &b.file, b.line));
            // Equal ones must be neighbours to be told once.
            let [a, b] = [a, b].map(|it| (it.rule, &it.field, &it.found, &it.expected));
            place.then_with(|| a.cmp(&b))
        });
        findings.dedup();
        findings
    }
}
