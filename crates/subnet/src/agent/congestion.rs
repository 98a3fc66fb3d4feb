//! The agent of congestion control (class 0x21): it keeps what a manager sets (IBTA vol. 1, annex A10).

use std::collections::BTreeMap;

use softfabric_wire::mad::congestion::{
    AdapterCongestionSetting, CONGESTION_DATA_LENGTH, CongestionControlTable, CongestionInfo,
    CongestionKeyInfo, CongestionMad, SwitchCongestionSetting, SwitchPortCongestionSetting,
};
use softfabric_wire::mad::performance::ClassPortInfo;
use softfabric_wire::mad::{Attribute, Method, status};

/// Blocks of 64 entries of an adapter's control table.
const TABLE_BLOCKS: u8 = 2;
/// Ports of one block of a switch's port settings.
const PORTS_OF_A_BLOCK: u32 = 32;

type Data = [u8; CONGESTION_DATA_LENGTH];

/// The settings of one node.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Congestion {
    /// The key that guards them.
    pub key: CongestionKeyInfo,
    /// Of a switch.
    pub switch: SwitchCongestionSetting,
    /// Of a switch's ports, by block.
    pub ports: BTreeMap<u32, SwitchPortCongestionSetting>,
    /// Of an adapter.
    pub adapter: AdapterCongestionSetting,
    /// An adapter's control table, by block.
    pub table: BTreeMap<u32, CongestionControlTable>,
}

impl Congestion {
    /// The answer to a request; `None` where it is dropped, as its key is wrong.
    pub(super) fn answer(
        &mut self,
        mad: &CongestionMad,
        is_switch: bool,
        ports: u8,
    ) -> Option<CongestionMad> {
        let set = mad.method == Method::SET;
        if self.key.key != 0 && mad.key != self.key.key && (set || self.key.protect) {
            self.key.violations = self.key.violations.saturating_add(1);
            return None;
        }
        let (status, data) = self.take(mad, set, is_switch, ports);
        Some(CongestionMad {
            method: Method::GET_RESPONSE,
            status,
            data,
            ..*mad
        })
    }

    fn take(&mut self, mad: &CongestionMad, set: bool, is_switch: bool, ports: u8) -> (u16, Data) {
        let unsupported = (status::UNSUPPORTED_ATTRIBUTE, mad.data);
        match mad.attribute {
            ClassPortInfo::ID if !set => {
                let info = ClassPortInfo {
                    base_version: 1,
                    class_version: 2,
                    response_time: 18,
                    ..ClassPortInfo::default()
                };
                (0, info.to_bytes())
            }
            CongestionInfo::ID if !set => {
                let info = CongestionInfo {
                    capabilities: 0,
                    table_blocks: if is_switch { 0 } else { TABLE_BLOCKS },
                };
                (0, info.to_bytes())
            }
            CongestionKeyInfo::ID => {
                if let (true, Some(new)) = (set, mad.data_as::<CongestionKeyInfo>()) {
                    self.key = new;
                }
                (0, self.key.to_bytes())
            }
            SwitchCongestionSetting::ID if is_switch => {
                if let (true, Some(new)) = (set, mad.data_as::<SwitchCongestionSetting>()) {
                    set_switch(&mut self.switch, &new);
                }
                (0, self.switch.to_bytes())
            }
            SwitchPortCongestionSetting::ID if is_switch => {
                if mad.modifier > u32::from(ports) / PORTS_OF_A_BLOCK {
                    return (status::INVALID_FIELD, mad.data);
                }
                let setting = self.ports.entry(mad.modifier).or_default();
                if let (true, Some(new)) = (set, mad.data_as()) {
                    *setting = new;
                }
                (0, setting.to_bytes())
            }
            AdapterCongestionSetting::ID if !is_switch => {
                if let (true, Some(new)) = (set, mad.data_as::<AdapterCongestionSetting>()) {
                    self.adapter.port_control = new.port_control;
                    self.adapter.control_map = new.control_map;
                    for (level, (old, new)) in
                        (0..).zip(self.adapter.levels.iter_mut().zip(new.levels))
                    {
                        if new_is_meant(self.adapter.control_map, level) {
                            *old = new;
                        }
                    }
                }
                (0, self.adapter.to_bytes())
            }
            CongestionControlTable::ID if !is_switch => {
                if mad.modifier >= u32::from(TABLE_BLOCKS) {
                    return (status::INVALID_FIELD, mad.data);
                }
                let table = self.table.entry(mad.modifier).or_default();
                if let (true, Some(new)) = (set, mad.data_as()) {
                    *table = new;
                }
                (0, table.to_bytes())
            }
            _ => unsupported,
        }
    }
}

const fn new_is_meant(map: u16, level: u32) -> bool {
    map >> level & 1 != 0
}

/// Takes over the fields that the new setting's map names (IBTA vol. 1, A10.4.3.6).
fn set_switch(old: &mut SwitchCongestionSetting, new: &SwitchCongestionSetting) {
    let meant = |bit: u32| new.control_map >> bit & 1 != 0;
    old.control_map = new.control_map;
    if meant(0) {
        old.victim_mask = new.victim_mask;
    }
    if meant(1) {
        old.credit_mask = new.credit_mask;
    }
    if meant(2) {
        (old.threshold, old.packet_size) = (new.threshold, new.packet_size);
    }
    if meant(3) {
        old.starvation_threshold = new.starvation_threshold;
        old.starvation_return_delay = new.starvation_return_delay;
    }
    if meant(4) {
        old.marking_rate = new.marking_rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, attribute: u16, data: Data) -> CongestionMad {
        CongestionMad {
            method,
            status: 0,
            transaction: 9,
            attribute,
            modifier: 0,
            key: 0,
            data,
        }
    }

    #[test]
    fn only_what_the_map_names_is_set() {
        let mut agent = Congestion::default();
        let new = SwitchCongestionSetting {
            control_map: 1 << 2,
            threshold: 12,
            packet_size: 3,
            marking_rate: 77,
            ..SwitchCongestionSetting::default()
        };
        let set = request(Method::SET, SwitchCongestionSetting::ID, new.to_bytes());
        let answer = agent.answer(&set, true, 4).unwrap();
        assert_eq!(answer.status, 0);
        let kept = answer.data_as::<SwitchCongestionSetting>().unwrap();
        assert_eq!(
            (kept.threshold, kept.packet_size, kept.marking_rate),
            (12, 3, 0)
        );
        let answer = agent.answer(&set, false, 1).unwrap();
        assert_eq!(answer.status, status::UNSUPPORTED_ATTRIBUTE, "of adapters");
    }

    #[test]
    fn a_wrong_key_is_counted_and_not_answered() {
        let mut agent = Congestion::default();
        agent.key.key = 5;
        let mut set = request(Method::SET, CongestionControlTable::ID, [0; 192]);
        assert_eq!(agent.answer(&set, false, 1), None);
        assert_eq!(agent.key.violations, 1);
        set.key = 5;
        assert_eq!(agent.answer(&set, false, 1).unwrap().status, 0);
        set.modifier = 2;
        let refused = agent.answer(&set, false, 1).unwrap();
        assert_eq!(refused.status, status::INVALID_FIELD);
    }
}
