//! One port of a host: what `mlnx_qos` prints, and the ECN settings under `/sys`.
//!
//! ```text
//! Priority trust state: dscp                        mlnx_qos -i eth0
//! dscp2prio mapping:
//!         prio:3 dscp:24,25,26,27,28,29,30,31,
//! PFC configuration:
//!         priority    0   1   2   3   4   5   6   7
//!         enabled     0   0   0   1   0   0   0   0
//!
//! /sys/class/net/eth0/ecn/roce_np/enable/3          1
//!                         roce_rp/enable/3          1
//!                         roce_np/cnp_802p_prio     6
//!                         roce_np/cnp_dscp          48
//! ```

use std::collections::BTreeMap;

/// A text and where it stood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) file: String,
    pub(crate) line: Option<usize>,
}

/// A port of a host.
#[derive(Clone, Debug)]
pub struct HostPort {
    pub(crate) name: String,
    /// `dscp` or `pcp`.
    pub(crate) trust: Option<Placed<String>>,
    /// PFC by priority.
    pub(crate) pfc: Option<Placed<[bool; 8]>>,
    /// The priority of each DSCP, where the program prints the map.
    pub(crate) priority_of_dscp: BTreeMap<u8, Placed<u8>>,
    /// Files under `ecn`, by their path there.
    pub(crate) ecn: BTreeMap<String, Placed<i64>>,
    /// Lines that are none: file, line, text.
    pub(crate) unreadable: Vec<(String, usize, String)>,
}

impl HostPort {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            trust: None,
            pfc: None,
            priority_of_dscp: BTreeMap::new(),
            ecn: BTreeMap::new(),
            unreadable: Vec::new(),
        }
    }

    /// Reads what `mlnx_qos -i INTERFACE` printed. Sections that it has besides are left out.
    pub(crate) fn read_mlnx_qos(&mut self, file: &str, text: &str) {
        let mut in_pfc = false;
        for (number, line) in (1..).zip(text.lines()) {
            let placed = |file: &str| (file.to_owned(), Some(number));
            let words: Vec<&str> = line.split_whitespace().collect();
            let lower = line.trim().to_ascii_lowercase();
            if let Some(trust) = lower.strip_prefix("priority trust state:") {
                let (file, line) = placed(file);
                let value = trust.trim().to_owned();
                self.trust = Some(Placed { value, file, line });
            } else if lower.starts_with("pfc configuration") {
                in_pfc = true;
            } else if !line.starts_with(char::is_whitespace) && !line.is_empty() {
                in_pfc = false;
            } else if in_pfc && words.first() == Some(&"enabled") {
                let bits: Vec<bool> = words[1..].iter().map(|&word| word != "0").collect();
                match <[bool; 8]>::try_from(bits) {
                    Ok(value) => {
                        let (file, line) = placed(file);
                        self.pfc = Some(Placed { value, file, line });
                    }
                    Err(_) => {
                        self.unreadable
                            .push((file.to_owned(), number, line.trim().to_owned()));
                    }
                }
            } else if let Some((priority, codes)) = dscp_line(&words) {
                for code in codes {
                    let (file, line) = placed(file);
                    let value = priority;
                    self.priority_of_dscp
                        .insert(code, Placed { value, file, line });
                }
            }
        }
    }

    /// Reads one file below `ecn`.
    pub(crate) fn read_ecn(&mut self, file: &str, path: &str, text: &str) {
        match text.trim().parse() {
            Ok(value) => {
                let placed = Placed {
                    value,
                    file: file.to_owned(),
                    line: None,
                };
                self.ecn.insert(path.to_owned(), placed);
            }
            Err(_) => self
                .unreadable
                .push((file.to_owned(), 1, text.trim().to_owned())),
        }
    }

    /// Priorities with PFC.
    pub(crate) fn lossless(&self) -> Option<Vec<u8>> {
        let enabled = self.pfc.as_ref()?.value;
        Some(
            (0..8)
                .filter(|&priority| enabled[usize::from(priority)])
                .collect(),
        )
    }

    /// The priority of packets with this DSCP, where it is known: by the map, or by its upper three bits, which is the driver's
    /// map until somebody changes it.
    pub(crate) fn priority(&self, dscp: u8) -> Option<u8> {
        let trust = self.trust.as_ref()?;
        if trust.value != "dscp" {
            return None;
        }
        let mapped = self.priority_of_dscp.get(&dscp).map(|placed| placed.value);
        Some(mapped.unwrap_or(dscp / 8))
    }
}

/// `prio:3 dscp:24,25,26,`.
fn dscp_line(words: &[&str]) -> Option<(u8, Vec<u8>)> {
    let [priority, codes, ..] = words else {
        return None;
    };
    let priority = priority.strip_prefix("prio:")?.parse().ok()?;
    let codes = codes.strip_prefix("dscp:")?;
    let codes = codes.split(',').filter_map(|code| code.parse().ok());
    Some((priority, codes.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mlnx_qos_prints_is_read() {
        let mut port = HostPort::new("gpu17:eth0");
        port.read_mlnx_qos("qos.txt", crate::tests::MLNX_QOS);
        assert_eq!(port.trust.as_ref().unwrap().value, "dscp");
        assert_eq!(port.lossless(), Some(vec![3]));
        assert_eq!(port.pfc.as_ref().unwrap().line, Some(17));
        assert_eq!(port.priority(26), Some(3));
        assert_eq!(port.priority_of_dscp[&31].line, Some(7));
        assert_eq!(port.unreadable, []);
        port.read_mlnx_qos("broken.txt", "PFC configuration:\n\tenabled  0 1\n");
        assert_eq!(port.unreadable[0].1, 2);
    }
}
