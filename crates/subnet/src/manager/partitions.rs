//! Partitions: who may talk to whom, from a small file to the tables of ports (IBTA vol. 1, 10.9).
//!
//! ```text
//!   # name = key [, sl=level] [, defmember=full|limited|both] : members ;
//!   Default=0x7fff : ALL=full;
//!   storage=0x8001, sl=3, defmember=limited : SELF=full, 0x100001=full, 0x100003;
//! ```
//!
//! Paths in a partition have its service level, 0 where nothing is said. Members are port GUIDs, `ALL`, `ALL_CAS`, `ALL_SWITCHES` and `SELF`, the manager's port; a membership is limited where
//! nothing else is said, and `both` is one of each. It is the format of OpenSM's partitions.conf without what makes groups.
//! Where the file does not say who is in the default partition, everybody is, fully.

use softfabric_units::{Guid, PartitionKey};
use softfabric_wire::mad::subnet::{PartitionTable, Smp, SmpRoute};
use thiserror::Error;

use super::Manager;
use super::requests::Request;
use crate::subnet::PortRef;

const FULL: u16 = 0x8000;
const DEFAULT: u16 = 0x7fff;
/// Keys of a block.
const BLOCK: usize = 32;

/// Who a member is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    All,
    Adapters,
    Switches,
    Manager,
    Port(Guid),
}

/// What a member may: talk to all, or to full members only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Membership {
    full: bool,
    limited: bool,
}

impl Membership {
    const FULL: Self = Self {
        full: true,
        limited: false,
    };
    const LIMITED: Self = Self {
        full: false,
        limited: true,
    };

    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "full" => Self::FULL,
            "limited" => Self::LIMITED,
            "both" => Self {
                full: true,
                limited: true,
            },
            _ => return None,
        })
    }
}

/// A partition.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Partition {
    /// 15 bits.
    key: u16,
    /// The service level of its paths, where the file says it.
    level: Option<u8>,
    members: Vec<(Who, Membership)>,
}

/// All partitions of a subnet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partitions {
    partitions: Vec<Partition>,
}

/// A line of a file of partitions is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{file}:{line}: {problem}")]
pub struct PartitionsError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What was found, and what is needed.
    pub problem: String,
}

impl Default for Partitions {
    /// The default partition, with everybody as full members.
    fn default() -> Self {
        Self {
            partitions: vec![Partition {
                key: DEFAULT,
                level: None,
                members: vec![(Who::All, Membership::FULL)],
            }],
        }
    }
}

impl Partitions {
    /// Reads a file; `name` is for messages.
    ///
    /// # Errors
    /// With the line where it is not as above.
    pub fn read(text: &str, name: &str) -> Result<Self, PartitionsError> {
        let mut all = Self {
            partitions: Vec::new(),
        };
        let mut statement = String::new();
        let mut first = 0;
        let error = |line, problem| PartitionsError {
            file: name.to_owned(),
            line,
            problem,
        };
        for (number, line) in (1..).zip(text.lines()) {
            let mut rest = line.split('#').next().unwrap_or_default();
            while !rest.trim().is_empty() {
                if statement.trim().is_empty() {
                    first = number;
                }
                let Some((part, after)) = rest.split_once(';') else {
                    statement.push_str(rest);
                    statement.push(' ');
                    break;
                };
                statement.push_str(part);
                all.add(&statement)
                    .map_err(|problem| error(first, problem))?;
                statement.clear();
                rest = after;
            }
        }
        if !statement.trim().is_empty() {
            return Err(error(
                first,
                "what begins here has no end: a partition ends with `;`".to_owned(),
            ));
        }
        let is_default = |partition: &Partition| partition.key == DEFAULT;
        match all.partitions.iter().position(is_default) {
            // Its key comes first in every table.
            Some(place) => all.partitions[..=place].rotate_right(1),
            None => all
                .partitions
                .splice(0..0, Self::default().partitions)
                .for_each(drop),
        }
        Ok(all)
    }

    /// Adds what one statement says.
    fn add(&mut self, statement: &str) -> Result<(), String> {
        let (head, members) = statement
            .split_once(':')
            .ok_or("a partition needs its members behind `:`, as in storage=0x8001 : ALL=full;")?;
        let mut words = head.split(',').map(str::trim);
        let name = words.next().unwrap_or_default();
        let key = name.split_once('=').map_or(name, |(_, key)| key).trim();
        let number = number(key).and_then(|key| u16::try_from(key).ok());
        let key = match number.map(|key| key & DEFAULT) {
            Some(key) if key != 0 => key,
            _ => {
                return Err(format!(
                    "found the key {key:?}, needed one from 0x1 to 0x7fff"
                ));
            }
        };
        let (mut usual, mut level) = (Membership::LIMITED, None);
        for word in words {
            let value = word
                .split_once('=')
                .map(|(name, value)| (name.trim(), value.trim()));
            match value {
                Some(("defmember", value)) => {
                    usual = Membership::parse(value).ok_or(format!(
                        "found defmember={value}, needed full, limited or both"
                    ))?;
                }
                Some(("sl", value)) => {
                    let given = self::number(value).and_then(|level| u8::try_from(level).ok());
                    let given = given.filter(|level| *level < 16);
                    level = Some(given.ok_or(format!("found sl={value}, needed 0 to 15"))?);
                }
                _ => {
                    return Err(format!(
                        "found {word:?}, and only sl=0…15 and defmember=full|limited|both are known here"
                    ));
                }
            }
        }
        let mut found = Vec::new();
        for word in members
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            let (who, membership) = match word.split_once('=') {
                None => (word, usual),
                Some((who, value)) => (
                    who.trim(),
                    Membership::parse(value.trim()).ok_or(format!(
                        "found the membership {:?}, needed full, limited or both",
                        value.trim()
                    ))?,
                ),
            };
            let who = match who {
                "ALL" => Who::All,
                "ALL_CAS" => Who::Adapters,
                "ALL_SWITCHES" => Who::Switches,
                "SELF" => Who::Manager,
                other => Who::Port(Guid(self::number(other).ok_or(format!(
                    "found the member {other:?}, needed a port's GUID such as 0x100001, ALL, ALL_CAS, ALL_SWITCHES or SELF"
                ))?)),
            };
            found.push((who, membership));
        }
        match self.partitions.iter_mut().find(|known| known.key == key) {
            Some(known) => {
                if let (Some(before), Some(level)) = (known.level, level)
                    && before != level
                {
                    return Err(format!(
                        "found sl={level} for the key {key:#x}, which has sl={before} above: give it one"
                    ));
                }
                known.level = known.level.or(level);
                known.members.extend(found);
            }
            None => self.partitions.push(Partition {
                key,
                level,
                members: found,
            }),
        }
        Ok(())
    }

    /// The service level of paths in a partition, whatever the membership: 0 where nothing is said.
    pub fn level(&self, key: PartitionKey) -> u8 {
        let same = |partition: &&Partition| partition.key == key.0 & DEFAULT;
        let found = self.partitions.iter().find(same);
        found.and_then(|partition| partition.level).unwrap_or(0)
    }

    /// The first partition whose paths have another level than 0.
    pub(super) fn first_level(&self) -> Option<(PartitionKey, u8)> {
        let mut levels = self.partitions.iter().filter_map(|partition| {
            let level = partition.level.filter(|level| *level > 0)?;
            Some((PartitionKey(partition.key), level))
        });
        levels.next()
    }

    /// The keys of a port. Among several statements about it, the one about its GUID counts; else the greatest membership.
    pub fn keys(&self, guid: Guid, is_switch: bool, is_manager: bool) -> Vec<PartitionKey> {
        let mut keys = Vec::new();
        for partition in &self.partitions {
            let named = |who: &Who| match who {
                Who::Port(port) => *port == guid,
                Who::Manager => is_manager,
                _ => false,
            };
            let in_general = |who: &Who| match who {
                Who::All => true,
                Who::Adapters => !is_switch,
                Who::Switches => is_switch,
                _ => false,
            };
            let mut own: Vec<&Membership> = partition
                .members
                .iter()
                .filter(|(who, _)| named(who))
                .map(|(_, membership)| membership)
                .collect();
            if own.is_empty() {
                let general = partition.members.iter();
                own.extend(general.filter(|(who, _)| in_general(who)).map(|(_, is)| is));
            }
            let full = own.iter().any(|membership| membership.full);
            let both = own
                .iter()
                .any(|membership| membership.full && membership.limited);
            if full {
                keys.push(PartitionKey(partition.key | FULL));
            }
            if both || (!full && !own.is_empty()) {
                keys.push(PartitionKey(partition.key));
            }
        }
        keys
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A block of a table with these keys.
pub(super) fn block_of(keys: &[PartitionKey], block: u16) -> PartitionTable {
    let mut table = PartitionTable {
        keys: [PartitionKey(0); BLOCK],
    };
    let from = keys.get(usize::from(block) * BLOCK..).unwrap_or_default();
    for (place, key) in table.keys.iter_mut().zip(from) {
        *place = *key;
    }
    table
}

pub(super) fn blocks(keys: &[PartitionKey]) -> u16 {
    keys.len().div_ceil(BLOCK).max(1) as u16
}

impl Manager {
    /// The keys of an end port: of a switch, of its port 0.
    pub(super) fn keys_of(&self, end: PortRef) -> Vec<PartitionKey> {
        match &self.partitions {
            None => vec![PartitionKey::DEFAULT],
            Some(partitions) => {
                let is_switch = self.subnet.node(end.node).is_switch();
                let is_manager = self.own.is_some_and(|own| self.subnet.end_port(own) == end);
                partitions.keys(self.subnet.port(end).guid, is_switch, is_manager)
            }
        }
    }

    /// The key that packets from one end to another have: one of both, of which one is a full member; `wanted` if given.
    pub(super) fn shared_key(
        &self,
        from: PortRef,
        to: PortRef,
        wanted: Option<PartitionKey>,
    ) -> Option<PartitionKey> {
        if self.partitions.is_none() {
            let default = PartitionKey::DEFAULT;
            return wanted
                .is_none_or(|wanted| default.matches(wanted))
                .then_some(default);
        }
        let theirs = self.keys_of(to);
        self.keys_of(from).into_iter().find(|key| {
            theirs.iter().any(|other| key.matches(*other))
                && wanted.is_none_or(|wanted| (wanted.0 ^ key.0) & DEFAULT == 0)
        })
    }

    /// Whether the switch drops packets of other partitions than those of the adapter at this port.
    pub(super) fn enforces(&self, port: PortRef) -> bool {
        let can = self
            .known
            .switch(port.node)
            .is_some_and(|info| info.inbound_enforcement && info.outbound_enforcement);
        let fits = |peer| {
            let room = self.key_capacity(port);
            self.keys_of(peer).len() <= usize::from(room)
        };
        can && self.partitions.is_some() && self.guarded(port).is_some_and(fits)
    }

    /// The adapter's port at a switch's port.
    fn guarded(&self, port: PortRef) -> Option<PortRef> {
        let peer = self.subnet.port(port).peer()?;
        let is_adapter = !self.subnet.node(peer.node).is_switch();
        (port.port != 0 && is_adapter && self.subnet.node(port.node).is_switch()).then_some(peer)
    }

    /// The keys that the table of a port should have.
    pub(super) fn wanted_keys(&self, port: PortRef) -> Vec<PartitionKey> {
        self.keys_of(self.guarded(port).unwrap_or(port))
    }

    /// How many keys a port's table has room for.
    fn key_capacity(&self, port: PortRef) -> u16 {
        if self.guarded(port).is_some() {
            let switch = self.known.switch(port.node);
            return switch.map_or(0, |info| info.partition_capacity);
        }
        let info = self.known.info(port.node);
        info.map_or(0, |info| info.partition_capacity)
    }

    /// The ports whose tables the manager writes: of all ends, and of switches where they guard an adapter.
    fn partitioned_ports(&self) -> Vec<PortRef> {
        let Some((view, _)) = self.routed.as_ref() else {
            return Vec::new();
        };
        let ends = view.targets().iter().filter(|target| target.copy == 0);
        ends.flat_map(|target| {
            let guard = PortRef {
                node: view.node(target.switch as usize),
                port: target.port,
            };
            let guard = Some(guard).filter(|guard| self.enforces(*guard));
            [Some(target.end), guard]
        })
        .flatten()
        .collect()
    }

    /// The first port that has not enough room for its keys: with what it needs and has.
    pub(super) fn crowded_port(&self, ends: &[PortRef]) -> Option<(PortRef, usize, u16)> {
        self.partitions.as_ref()?;
        ends.iter().find_map(|end| {
            let (needed, room) = (self.keys_of(*end).len(), self.key_capacity(*end));
            (needed > usize::from(room)).then_some((*end, needed, room))
        })
    }

    pub(super) fn write_partitions(&mut self) {
        if self.partitions.is_none() {
            return;
        }
        for port in self.partitioned_ports() {
            let keys = self.wanted_keys(port);
            for block in 0..blocks(&keys) {
                if self.known.partitions(port, block) != Some(&block_of(&keys, block)) {
                    self.requests.ask(Request::SetPartitions { port, block });
                }
            }
        }
    }

    pub(super) fn partitions_order(&mut self, port: PortRef, block: u16) -> Option<Smp> {
        let wanted = block_of(&self.wanted_keys(port), block);
        let (route, number) = if self.subnet.node(port.node).is_switch() {
            (self.route_to(port.node)?, port.port)
        } else {
            // Every port of an adapter has a table of its own, and takes orders for that only.
            (self.route_to_port(port)?, 0)
        };
        Some(Smp::set(
            route,
            PartitionTable::modifier(number, block),
            &wanted,
        ))
    }

    /// A way that comes in by this port of an adapter.
    pub(super) fn route_to_port(&mut self, port: PortRef) -> Option<SmpRoute> {
        if self.own == Some(port) {
            return self.route_to(port.node);
        }
        let peer = self.subnet.port(port).peer()?;
        self.route_through(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# who may talk to whom
storage=0x8001, defmember=limited : SELF=full, 0x100001=full,
    0x100003, ALL_SWITCHES=both;  Default=0x7fff : ALL, SELF=full;
0x12 : ALL_CAS=full; # no name
";

    fn keys(partitions: &Partitions, guid: u64, switch: bool, manager: bool) -> Vec<u16> {
        let keys = partitions.keys(Guid(guid), switch, manager);
        keys.iter().map(|key| key.0).collect()
    }

    #[test]
    fn members_get_their_keys() {
        let partitions = Partitions::read(FILE, "file").unwrap();
        assert_eq!(
            keys(&partitions, 0x10_0001, false, false),
            [0x7fff, 0x8001, 0x8012]
        );
        assert_eq!(
            keys(&partitions, 0x10_0003, false, false),
            [0x7fff, 0x0001, 0x8012]
        );
        assert_eq!(keys(&partitions, 5, false, false), [0x7fff, 0x8012]);
        assert_eq!(keys(&partitions, 5, false, true), [0xffff, 0x8001, 0x8012]);
        assert_eq!(keys(&partitions, 6, true, false), [0x7fff, 0x8001, 0x0001]);
        let none = Partitions::read("", "file").unwrap();
        assert_eq!(none, Partitions::default());
        assert_eq!(keys(&none, 5, false, false), [0xffff]);
    }

    #[test]
    fn mistakes_are_told_with_their_lines() {
        for (text, wanted) in [
            (
                "a=1 : ALL",
                "file:1: what begins here has no end: a partition ends with `;`",
            ),
            (
                "\na=0x8000 : ALL;",
                "file:2: found the key \"0x8000\", needed one from 0x1 to 0x7fff",
            ),
            (
                "a=1;",
                "file:1: a partition needs its members behind `:`, as in storage=0x8001 : ALL=full;",
            ),
            (
                "a=1, ipoib : ALL;",
                "file:1: found \"ipoib\", and only sl=0…15 and defmember=full|limited|both are known here",
            ),
            (
                "a=1 : ALL=half;",
                "file:1: found the membership \"half\", needed full, limited or both",
            ),
            (
                "a=1 :\n\n EVERYBODY;",
                "file:1: found the member \"EVERYBODY\", needed a port's GUID such as 0x100001, ALL, ALL_CAS, ALL_SWITCHES or SELF",
            ),
        ] {
            let error = Partitions::read(text, "file").unwrap_err();
            assert_eq!(error.to_string(), wanted);
        }
    }

    #[test]
    fn partitions_have_levels() {
        let text = "Default=0x7fff : ALL=full;\na=1, sl=3, defmember=full : ALL;\nb=2 : ALL;\na=1 : SELF=full;\n";
        let partitions = Partitions::read(text, "file").unwrap();
        let levels =
            [0x7fff, 0xffff, 1, 0x8001, 2, 9].map(|key| partitions.level(PartitionKey(key)));
        assert_eq!(levels, [0, 0, 3, 3, 0, 0]);
        assert_eq!(partitions.first_level(), Some((PartitionKey(1), 3)));
        for (text, wanted) in [
            ("a=1, sl=16 : ALL;", "file:1: found sl=16, needed 0 to 15"),
            (
                "a=1, sl=3 : ALL;\na=1, sl=4 : SELF;",
                "file:2: found sl=4 for the key 0x1, which has sl=3 above: give it one",
            ),
        ] {
            assert_eq!(
                Partitions::read(text, "file").unwrap_err().to_string(),
                wanted
            );
        }
    }

    #[test]
    fn tables_are_cut_into_blocks() {
        let many: Vec<PartitionKey> = (1..=40).map(PartitionKey).collect();
        assert_eq!((blocks(&many), blocks(&many[..32]), blocks(&[])), (2, 1, 1));
        let second = block_of(&many, 1);
        assert_eq!(second.keys[7..9], [PartitionKey(40), PartitionKey(0)]);
    }
}
