//! Congestion control: what switches mark and how adapters slow down (IBTA vol. 1, annex A10).
//!
//! ```text
//!  ports are active ──► Get(CongestionInfo) ──► switches: SwitchCongestionSetting, SwitchPortCongestionSetting
//!                       to each end, by LID  └─► adapters: CACongestionSetting, CongestionControlTable, block by block
//! ```
//!
//! Nodes without the class are asked once, and again when they were away. What a node has answered is not written again.

use softfabric_units::{Guid, Lid, Time};
use softfabric_wire::mad::congestion::{
    AdapterCongestionSetting, CONGESTION_DATA_LENGTH, CongestionControlTable, CongestionInfo,
    CongestionMad, ControlTableEntry, SwitchCongestionSetting, SwitchPortCongestionSetting,
    SwitchPortSetting,
};
use softfabric_wire::mad::{Attribute, Method};

use super::requests::Request;
use super::{Cause, Event, Manager, Phase, Problem};
use crate::subnet::{NodeKind, PortRef};

/// Entries of a block of a control table.
const BLOCK: usize = 64;
/// Ports of a block of settings.
const PORTS: usize = 32;

/// The setting of one port of a switch, in place of the switch's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortSetting {
    /// The switch; `None` is all of them.
    pub switch: Option<Guid>,
    /// Its port.
    pub port: u8,
    /// What it gets.
    pub setting: SwitchPortSetting,
}

/// What the manager sets everywhere.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CongestionControl {
    /// The key that requests carry. Nodes hold theirs already: it is not set.
    pub key: u64,
    /// Of all switches; its map says which fields a switch takes.
    pub switch: SwitchCongestionSetting,
    /// Of single ports of switches. Where several are for one port, the last counts.
    pub ports: Vec<PortSetting>,
    /// Of all adapters; its map says which levels an adapter takes.
    pub adapter: AdapterCongestionSetting,
    /// The control table of all adapters. Without entries, adapters are told that the highest index is 0.
    pub table: Vec<ControlTableEntry>,
}

impl CongestionControl {
    /// How many blocks the control table takes.
    fn blocks(&self) -> u8 {
        self.table.len().div_ceil(BLOCK).clamp(1, 255) as u8
    }

    /// A block of the control table.
    fn block(&self, block: u8) -> CongestionControlTable {
        let mut table = CongestionControlTable {
            limit: self.table.len().saturating_sub(1) as u16,
            ..CongestionControlTable::default()
        };
        let rest = self.table.get(usize::from(block) * BLOCK..);
        for (place, entry) in table.entries.iter_mut().zip(rest.unwrap_or_default()) {
            *place = *entry;
        }
        table
    }

    /// The settings of a block of a switch's ports; `None` where none of them has one.
    fn ports(&self, switch: Guid, block: u8) -> Option<SwitchPortCongestionSetting> {
        let mut settings = SwitchPortCongestionSetting::default();
        let mut any = false;
        for one in &self.ports {
            let meant = one.switch.is_none_or(|guid| guid == switch);
            if meant && usize::from(one.port) / PORTS == usize::from(block) {
                settings.ports[usize::from(one.port) % PORTS] = one.setting;
                any = true;
            }
        }
        any.then_some(settings)
    }
}

impl Manager {
    /// The next datagram to send from queue pair 1 to the one of a port, until there is none.
    pub fn poll_congestion(&mut self, now: Time) -> Option<(Lid, CongestionMad)> {
        self.now = self.now.max(now);
        loop {
            let (transaction, request) = self.general.next(now)?;
            match self.congestion_order(&request) {
                Some((to, mad)) => {
                    self.summary.requests += 1;
                    self.summary.writes += u64::from(mad.method == Method::SET);
                    let transaction = u64::from(transaction);
                    return Some((to, CongestionMad { transaction, ..mad }));
                }
                None => {
                    self.general.done(transaction);
                    self.next_phase();
                }
            }
        }
    }

    /// Takes a datagram of congestion control that arrived: an answer.
    pub fn handle_congestion(&mut self, now: Time, mad: &CongestionMad) {
        self.now = self.now.max(now);
        if mad.method != Method::GET_RESPONSE {
            return;
        }
        let Some((request, _)) = self.general.done(mad.transaction as u32) else {
            return; // an answer to what was asked twice
        };
        if mad.status & 0x1c != 0 || mad.attribute != request.attribute() {
            let node = self.describe(&request);
            self.without_congestion(&request);
            // Who has none of it, says so once.
            self.events.push_back(Event::Problem(Problem::Refused {
                node,
                request: request.name(),
                status: mad.status,
            }));
        } else {
            self.take_congestion(request, mad);
        }
        self.next_phase();
    }

    /// Requests whose time is up are sent again, or given up.
    pub(super) fn expire_congestion(&mut self, now: Time) {
        while let Some(request) = self.general.expire(now) {
            let node = self.describe(&request);
            self.without_congestion(&request);
            self.events.push_back(Event::Problem(Problem::Silent {
                node,
                request: request.name(),
            }));
        }
    }

    /// The node of a request is left alone until it has been away, or a whole sweep starts.
    fn without_congestion(&mut self, request: &Request) {
        if let Some(port) = request.port() {
            self.known.congestion_mut(port).info = Some(None);
        }
    }

    /// Asks ends that have not been asked, and writes what the others do not have.
    pub(super) fn write_congestion(&mut self) {
        // Members of groups change nothing here.
        if self.congestion.is_none() || self.summary.cause == Cause::Groups {
            return;
        }
        let Some((view, _)) = &self.routed else {
            return;
        };
        let ends: Vec<PortRef> = self.ends(view).map(|(end, _)| end).collect();
        for port in ends {
            match self.known.congestion(port).and_then(|known| known.info) {
                None if self.subnet.node(port.node).kind != NodeKind::Router => {
                    self.general.ask(Request::CongestionInfo { port });
                }
                None | Some(None) => {}
                Some(Some(info)) => self.write_congestion_of(port, &info),
            }
        }
    }

    fn write_congestion_of(&mut self, port: PortRef, info: &CongestionInfo) {
        let Some(settings) = self.congestion.as_ref() else {
            return;
        };
        let known = self.known.congestion(port).cloned().unwrap_or_default();
        let node = self.subnet.node(port.node);
        if node.is_switch() {
            if known.switch.as_ref() != Some(&settings.switch) {
                self.general.ask(Request::SetSwitchCongestion { port });
            }
            for block in 0..=node.ports / PORTS as u8 {
                let wanted = settings.ports(node.guid, block);
                if wanted.is_some() && known.ports.get(&block) != wanted.as_ref() {
                    self.general.ask(Request::SetPortCongestion { port, block });
                }
            }
            return;
        }
        if settings.blocks() > info.table_blocks {
            let problem = Problem::ControlTable {
                needed: settings.table.len(),
                available: usize::from(info.table_blocks) * BLOCK,
                node: self.named(port.node),
            };
            self.known.congestion_mut(port).info = Some(None);
            self.events.push_back(Event::Problem(problem));
            return;
        }
        if known.adapter.as_ref() != Some(&settings.adapter) {
            self.general.ask(Request::SetAdapterCongestion { port });
        }
        for block in 0..settings.blocks() {
            if known.table.get(&block) != Some(&settings.block(block)) {
                self.general.ask(Request::SetControlTable { port, block });
            }
        }
    }

    /// The datagram of a request, and where it goes; `None` where the port has no identifier.
    fn congestion_order(&self, request: &Request) -> Option<(Lid, CongestionMad)> {
        let settings = self.congestion.as_ref()?;
        let (method, modifier, data) = match *request {
            Request::CongestionInfo { .. } => (Method::GET, 0, [0; CONGESTION_DATA_LENGTH]),
            Request::SetSwitchCongestion { .. } => (Method::SET, 0, settings.switch.to_bytes()),
            Request::SetPortCongestion { port, block } => {
                let wanted = settings.ports(self.subnet.node(port.node).guid, block)?;
                (Method::SET, block.into(), wanted.to_bytes())
            }
            Request::SetAdapterCongestion { .. } => (Method::SET, 0, settings.adapter.to_bytes()),
            Request::SetControlTable { block, .. } => {
                (Method::SET, block.into(), settings.block(block).to_bytes())
            }
            _ => return None,
        };
        let to = self.lid_of(request.port()?);
        let mad = CongestionMad {
            method,
            status: 0,
            transaction: 0,
            attribute: request.attribute(),
            modifier,
            key: settings.key,
            data,
        };
        to.is_unicast().then_some((to, mad))
    }

    /// Takes the answer to a request. As a node answers what it holds, and not all that it is told is meant for it, what it was
    /// told is what counts.
    fn take_congestion(&mut self, request: Request, mad: &CongestionMad) {
        let Some(settings) = self.congestion.as_ref() else {
            return;
        };
        match request {
            Request::CongestionInfo { port } => {
                if let Some(info) = mad.data_as::<CongestionInfo>() {
                    self.known.congestion_mut(port).info = Some(Some(info));
                    if self.phase == Phase::Congestion {
                        self.write_congestion_of(port, &info);
                    }
                }
            }
            Request::SetSwitchCongestion { port } => {
                self.known.congestion_mut(port).switch = Some(settings.switch);
            }
            Request::SetPortCongestion { port, block } => {
                let told = settings.ports(self.subnet.node(port.node).guid, block);
                let known = self.known.congestion_mut(port);
                known.ports.extend(told.map(|told| (block, told)));
            }
            Request::SetAdapterCongestion { port } => {
                self.known.congestion_mut(port).adapter = Some(settings.adapter);
            }
            Request::SetControlTable { port, block } => {
                let told = settings.block(block);
                self.known.congestion_mut(port).table.insert(block, told);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_comes_in_blocks() {
        let entry = |multiplier| ControlTableEntry {
            shift: 1,
            multiplier,
        };
        let mut settings = CongestionControl::default();
        assert_eq!(settings.blocks(), 1);
        assert_eq!(settings.block(0), CongestionControlTable::default());
        settings.table = (0..65).map(entry).collect();
        assert_eq!(settings.blocks(), 2);
        let [first, second] = [0, 1].map(|block| settings.block(block));
        assert_eq!((first.limit, second.limit), (64, 64));
        assert_eq!(
            (first.entries[63], second.entries[0]),
            (entry(63), entry(64))
        );
        assert_eq!(second.entries[1], ControlTableEntry::default());
    }

    #[test]
    fn ports_have_settings_where_they_are_given() {
        let setting = SwitchPortSetting {
            valid: true,
            threshold: 3,
            ..SwitchPortSetting::default()
        };
        let port = |switch, port| PortSetting {
            switch,
            port,
            setting,
        };
        let settings = CongestionControl {
            ports: vec![port(Some(Guid(7)), 3), port(None, 33)],
            ..CongestionControl::default()
        };
        assert_eq!(settings.ports(Guid(8), 0), None);
        assert_eq!(
            settings.ports(Guid(7), 0).map(|found| found.ports[3]),
            Some(setting)
        );
        assert_eq!(
            settings.ports(Guid(8), 1).map(|found| found.ports[1]),
            Some(setting)
        );
    }
}
