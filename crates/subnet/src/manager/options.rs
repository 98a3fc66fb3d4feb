//! OpenSM's file of options: lanes of ports and congestion control, under the names that OpenSM gives them.
//!
//! ```text
//!   qos TRUE
//!   qos_max_vls 8                            # also qos_ca_…, qos_sw0_…, qos_swe_…, qos_rtr_…: for one kind of ports
//!   qos_high_limit 4
//!   qos_vlarb_high 0:64,1:16                 # lane:weight
//!   qos_vlarb_low 0:4,1:4,2:8
//!   qos_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3
//!   congestion_control TRUE
//!   cc_sw_cong_setting_threshold 0x0F
//!   cc_ca_cong_setting_ccti_timer 0 150      # level, value
//!   cc_cct 0:0,0:1,1:3                       # shift:multiplier
//! ```
//!
//! One more name is ours, for settings of single ports: `cc_sw_port_cong_setting GUID|ALL PORT THRESHOLD PACKET_SIZE
//! MARKING_RATE`. Names of other things that OpenSM can do are left to their owners: [`Options::others`] has them.

use softfabric_units::Guid;
use softfabric_wire::infiniband::VirtualLane;
use softfabric_wire::mad::congestion::{ControlTableEntry, SwitchPortSetting};
use softfabric_wire::mad::subnet::{LaneWeight, ServiceLevelMap};
use thiserror::Error;

use super::congestion::{CongestionControl, PortSetting};
use super::quality::{LaneSettings, MOST_LANES, MOST_TURNS, PortKind, QualityOfService};

/// What OpenSM writes for "nothing is set".
const NOTHING: &str = "(null)";
/// Entries of the largest control table: as many blocks as an adapter can name.
const MOST_ENTRIES: usize = 255 * 64;

/// What a file of options says.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Of lanes, where `qos` is TRUE.
    pub quality: Option<QualityOfService>,
    /// Of congestion control, where `congestion_control` is TRUE.
    pub congestion: Option<CongestionControl>,
    /// Names that are of something else, each once, in the order of the file.
    pub others: Vec<String>,
}

/// A line of a file of options is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{file}:{line}: {problem}")]
pub struct OptionsError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What was found, and what is needed.
    pub problem: String,
}

/// What has been read so far.
#[derive(Default)]
struct Reader {
    has_quality: bool,
    has_congestion: bool,
    quality: QualityOfService,
    congestion: CongestionControl,
    others: Vec<String>,
}

impl Options {
    /// Reads a file; `name` is for messages.
    ///
    /// # Errors
    /// With the line whose value cannot be, or whose name begins as one of these and is none.
    pub fn read(text: &str, name: &str) -> Result<Self, OptionsError> {
        let mut reader = Reader::default();
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            let (key, value) = content
                .split_once(char::is_whitespace)
                .unwrap_or((content, ""));
            let value = value.trim().trim_matches(['"', '\'']);
            reader.take(key, value).map_err(|problem| OptionsError {
                file: name.to_owned(),
                line,
                problem: format!("{key}: {problem}"),
            })?;
        }
        Ok(Self {
            quality: reader.has_quality.then_some(reader.quality),
            congestion: reader.has_congestion.then_some(reader.congestion),
            others: reader.others,
        })
    }
}

impl Reader {
    fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "qos" => self.has_quality = truth(value)?,
            "congestion_control" => self.has_congestion = truth(value)?,
            // Rules have a file of their own; here the window is the manager's.
            "qos_policy_file" | "cc_max_outstanding_mads" => self.pass(key),
            _ => {
                if let Some(name) = key.strip_prefix("qos_") {
                    self.lanes(name, value)?;
                } else if let Some(name) = key.strip_prefix("cc_") {
                    self.control(name, value)?;
                } else {
                    self.pass(key);
                }
            }
        }
        Ok(())
    }

    fn pass(&mut self, key: &str) {
        if !self.others.iter().any(|other| other == key) {
            self.others.push(key.to_owned());
        }
    }

    fn lanes(&mut self, name: &str, value: &str) -> Result<(), String> {
        const KINDS: [(&str, PortKind); 4] = [
            ("ca_", PortKind::Adapter),
            ("sw0_", PortKind::SwitchPort0),
            ("swe_", PortKind::Switch),
            ("rtr_", PortKind::Router),
        ];
        let of_kind = KINDS
            .iter()
            .find_map(|(prefix, kind)| Some((name.strip_prefix(prefix)?, *kind)));
        let (name, settings): (&str, &mut LaneSettings) = match of_kind {
            Some((name, kind)) => (name, self.quality.kind_mut(kind)),
            None => (name, &mut self.quality.general),
        };
        let is_set = value != NOTHING;
        match name {
            // OpenSM writes 0 and −1 where nothing is set.
            "max_vls" => {
                let lanes = number(value, 0, MOST_LANES.into())? as u8;
                settings.most_lanes = (lanes > 0).then_some(lanes);
            }
            "high_limit" if value == "-1" => settings.high_limit = None,
            "high_limit" => settings.high_limit = Some(number(value, 0, 255)? as u8),
            "vlarb_high" => settings.high = is_set.then(|| turns(value)).transpose()?,
            "vlarb_low" => settings.low = is_set.then(|| turns(value)).transpose()?,
            "sl2vl" => settings.lanes = is_set.then(|| lanes_of_levels(value)).transpose()?,
            _ => {
                return Err("not known: there are max_vls, high_limit, vlarb_high, vlarb_low and sl2vl, with qos_, \
                     qos_ca_, qos_sw0_, qos_swe_ or qos_rtr_ before it"
                    .to_owned());
            }
        }
        Ok(())
    }

    fn control(&mut self, name: &str, value: &str) -> Result<(), String> {
        let settings = &mut self.congestion;
        let switch = &mut settings.switch;
        let adapter = &mut settings.adapter;
        match name {
            "key" => settings.key = number(value, 0, u64::MAX)?,
            "sw_cong_setting_control_map" => {
                switch.control_map = number(value, 0, u32::MAX.into())? as u32;
            }
            "sw_cong_setting_victim_mask" => switch.victim_mask = mask(value)?,
            "sw_cong_setting_credit_mask" => switch.credit_mask = mask(value)?,
            "sw_cong_setting_threshold" => switch.threshold = number(value, 0, 15)? as u8,
            "sw_cong_setting_packet_size" => switch.packet_size = number(value, 0, 255)? as u8,
            "sw_cong_setting_credit_starvation_threshold" => {
                switch.starvation_threshold = number(value, 0, 15)? as u8;
            }
            "sw_cong_setting_credit_starvation_return_delay" => {
                let delay = entry(value)?;
                switch.starvation_return_delay = u16::from(delay.shift) << 14 | delay.multiplier;
            }
            "sw_cong_setting_marking_rate" => {
                switch.marking_rate = number(value, 0, 0xffff)? as u16;
            }
            "sw_port_cong_setting" => settings.ports.push(port_setting(value)?),
            "ca_cong_setting_port_control" => {
                adapter.port_control = number(value, 0, 0xffff)? as u16;
            }
            "ca_cong_setting_control_map" => {
                adapter.control_map = number(value, 0, 0xffff)? as u16;
            }
            "ca_cong_setting_ccti_timer" => {
                let (level, value) = of_level(value, 0xffff)?;
                adapter.levels[level].timer = value;
            }
            "ca_cong_setting_ccti_increase" => {
                let (level, value) = of_level(value, 255)?;
                adapter.levels[level].increase = value as u8;
            }
            "ca_cong_setting_trigger_threshold" => {
                let (level, value) = of_level(value, 255)?;
                adapter.levels[level].trigger = value as u8;
            }
            "ca_cong_setting_ccti_min" => {
                let (level, value) = of_level(value, 255)?;
                adapter.levels[level].minimum = value as u8;
            }
            "cct" if value == NOTHING => settings.table.clear(),
            "cct" => settings.table = list(value, MOST_ENTRIES, entry)?,
            _ => {
                return Err(
                    "not known: see `cc_…` in OpenSM's file of options, and cc_sw_port_cong_setting"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }
}

fn truth(value: &str) -> Result<bool, String> {
    match value.to_ascii_uppercase().as_str() {
        "TRUE" => Ok(true),
        "FALSE" => Ok(false),
        _ => Err(format!("found {value:?}, needed TRUE or FALSE")),
    }
}

/// A number in decimal, hexadecimal with 0x, or octal with a leading 0, as C reads it.
fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let text = text.trim();
    let hexadecimal = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let octal = text.strip_prefix('0').filter(|rest| !rest.is_empty());
    let parsed = match (hexadecimal, octal) {
        (Some(digits), _) => u64::from_str_radix(digits, 16),
        (None, Some(digits)) => u64::from_str_radix(digits, 8),
        (None, None) => text.parse(),
    };
    let found = parsed.ok().filter(|found| (least..=most).contains(found));
    found.ok_or(format!("found {text:?}, needed {least} to {most}"))
}

/// What stands between commas.
fn list<T>(
    text: &str,
    most: usize,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let items = text.split(',').map(str::trim);
    let found = items.map(read).collect::<Result<Vec<T>, String>>()?;
    if found.len() > most {
        return Err(format!(
            "found {} entries, needed at most {most}",
            found.len()
        ));
    }
    Ok(found)
}

fn turns(text: &str) -> Result<Vec<LaneWeight>, String> {
    list(text, MOST_TURNS, |item| {
        let (number, weight) = item
            .split_once(':')
            .ok_or(format!("found {item:?}, needed lane:weight, as in 0:64"))?;
        Ok(LaneWeight {
            lane: lane(number, MOST_LANES - 1)?,
            weight: self::number(weight, 0, 255)? as u8,
        })
    })
}

fn lane(text: &str, most: u8) -> Result<VirtualLane, String> {
    let found = number(text, 0, most.into())? as u8;
    VirtualLane::checked(found).ok_or(format!("found {found}, needed a lane"))
}

fn lanes_of_levels(text: &str) -> Result<ServiceLevelMap, String> {
    let lanes = list(text, 16, |item| lane(item, 15))?;
    let lanes = <[VirtualLane; 16]>::try_from(lanes);
    let lanes = lanes.map_err(|found| {
        format!(
            "found {} lanes, needed 16: one for each service level",
            found.len()
        )
    })?;
    Ok(ServiceLevelMap { lanes })
}

/// Up to 64 hexadecimal digits: bit n is port n.
fn mask(text: &str) -> Result<[u8; 32], String> {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let digits = digits.unwrap_or(text).as_bytes();
    let mut mask = [0; 32];
    let nibble = |digit: &u8| char::from(*digit).to_digit(16);
    let all: Option<Vec<u32>> = digits.iter().map(nibble).collect();
    let all = all.filter(|all| (1..=64).contains(&all.len()));
    let all = all.ok_or(format!("found {text:?}, needed 1 to 64 hexadecimal digits"))?;
    for (place, nibble) in all.iter().rev().enumerate() {
        mask[31 - place / 2] |= (*nibble as u8) << (place % 2 * 4);
    }
    Ok(mask)
}

fn entry(text: &str) -> Result<ControlTableEntry, String> {
    let (shift, multiplier) = text.split_once(':').ok_or(format!(
        "found {text:?}, needed shift:multiplier, as in 1:200"
    ))?;
    Ok(ControlTableEntry {
        shift: number(shift, 0, 3)? as u8,
        multiplier: number(multiplier, 0, 0x3fff)? as u16,
    })
}

fn of_level(text: &str, most: u64) -> Result<(usize, u16), String> {
    let (level, value) = text.split_once(char::is_whitespace).ok_or(format!(
        "found {text:?}, needed a service level and its value, as in 0 150"
    ))?;
    Ok((
        number(level, 0, 15)? as usize,
        number(value, 0, most)? as u16,
    ))
}

fn port_setting(text: &str) -> Result<PortSetting, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [switch, port, threshold, size, rate] = words[..] else {
        return Err(format!(
            "found {text:?}, needed GUID|ALL PORT THRESHOLD PACKET_SIZE MARKING_RATE"
        ));
    };
    Ok(PortSetting {
        switch: match switch {
            "ALL" => None,
            guid => Some(Guid(number(guid, 1, u64::MAX)?)),
        },
        port: number(port, 0, 254)? as u8,
        setting: SwitchPortSetting {
            valid: true,
            starvation: false,
            threshold: number(threshold, 0, 15)? as u8,
            packet_size: number(size, 0, 255)? as u8,
            parameter: number(rate, 0, 0xffff)? as u16,
        },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "\
# lanes
qos TRUE
qos_max_vls 4
qos_swe_max_vls 0
qos_high_limit -1
qos_ca_high_limit 0x10
qos_vlarb_high 0:64,1:16
qos_vlarb_low (null)
qos_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,15
routing_engine updn   # somebody else's
routing_engine ftree
congestion_control TRUE
cc_key 0x10
cc_sw_cong_setting_control_map 0x1f
cc_sw_cong_setting_victim_mask 0x103
cc_sw_cong_setting_credit_starvation_return_delay 2:5
cc_sw_port_cong_setting 0x200001 3 8 4 100
cc_ca_cong_setting_ccti_timer 3 150
cc_cct 0:0, 1:16383
";

    #[test]
    fn a_file_is_read() {
        let options = Options::read(FILE, "opensm.conf").unwrap();
        assert_eq!(options.others, ["routing_engine"]);
        let quality = options.quality.unwrap();
        assert_eq!(quality.general.most_lanes, Some(4));
        assert_eq!(quality.general.high_limit, None);
        assert_eq!(quality.general.high.as_ref().unwrap()[1].weight, 16);
        assert_eq!(quality.general.low, None);
        assert_eq!(
            quality.general.lanes.unwrap().lanes[15],
            VirtualLane::MANAGEMENT
        );
        assert_eq!(quality.kind(PortKind::Adapter).high_limit, Some(16));
        let congestion = options.congestion.unwrap();
        assert_eq!((congestion.key, congestion.switch.control_map), (16, 31));
        assert_eq!(congestion.switch.victim_mask[29..], [0, 1, 3]);
        assert_eq!(congestion.switch.starvation_return_delay, 0x8005);
        assert_eq!(congestion.ports[0].switch, Some(Guid(0x20_0001)));
        assert_eq!(congestion.ports[0].setting.parameter, 100);
        assert_eq!(congestion.adapter.levels[3].timer, 150);
        assert_eq!(congestion.table[1].multiplier, 16_383);
        let off = Options::read("qos FALSE\nqos_max_vls 2\n", "").unwrap();
        assert_eq!(off, Options::default());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(lines in proptest::collection::vec((0_usize..12, ".{0,24}"), 0..8)) {
            const KEYS: [&str; 12] = [
                "qos", "qos_max_vls", "qos_ca_vlarb_low", "qos_sl2vl", "qos_high_limit", "cc_key", "cc_cct",
                "cc_sw_cong_setting_victim_mask", "cc_ca_cong_setting_ccti_timer", "cc_sw_port_cong_setting",
                "cc_sw_cong_setting_credit_starvation_return_delay", "",
            ];
            let lines = lines.iter().map(|(key, value)| format!("{} {value}", KEYS[*key]));
            let _ = Options::read(&lines.collect::<Vec<_>>().join("\n"), "options");
        }
    }

    #[test]
    fn what_cannot_be_is_told_with_its_line() {
        for (line, wanted) in [
            ("qos yes", "needed TRUE or FALSE"),
            ("qos_max_vls 16", "found \"16\", needed 0 to 15"),
            ("qos_ca_high_limit 256", "needed 0 to 255"),
            ("qos_vlarb_low 0:4,15:4", "found \"15\", needed 0 to 14"),
            ("qos_vlarb_low 0:4,1", "found \"1\", needed lane:weight"),
            ("qos_vlarb_low 0:256", "needed 0 to 255"),
            ("qos_sl2vl 0,1,2", "found 3 lanes, needed 16"),
            ("qos_sw1_max_vls 3", "not known"),
            ("cc_cct 4:1", "found \"4\", needed 0 to 3"),
            ("cc_cct 1:16384", "needed 0 to 16383"),
            ("cc_sw_cong_setting_threshold 16", "needed 0 to 15"),
            (
                "cc_sw_cong_setting_victim_mask 0xg",
                "needed 1 to 64 hexadecimal digits",
            ),
            (
                "cc_ca_cong_setting_ccti_min 16 1",
                "found \"16\", needed 0 to 15",
            ),
            (
                "cc_ca_cong_setting_ccti_min 1",
                "a service level and its value",
            ),
            ("cc_ca_cong_seting_ccti_min 1 1", "not known"),
            ("cc_sw_port_cong_setting ALL 1 2", "GUID|ALL PORT"),
        ] {
            let error = Options::read(&format!("\n{line}\n"), "opensm.conf").unwrap_err();
            let told = error.to_string();
            let key = line.split(' ').next().unwrap();
            assert!(
                told.starts_with(&format!("opensm.conf:2: {key}: ")),
                "{told}"
            );
            assert!(told.contains(wanted), "{line}: {told}");
        }
        let many = vec!["0:1"; 65].join(",");
        let error = Options::read(&format!("qos_vlarb_high {many}"), "").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("found 65 entries, needed at most 64")
        );
    }
}
