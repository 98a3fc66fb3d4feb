//! Memory keys: which bytes of whom a key opens, and for what (IBTA vol. 1, 10.6).
//!
//! ```text
//! key = index (24 bits) | variant (8 bits)      index → slot: a region, or a window onto a region
//! ```
//!
//! A slot's variant moves on whenever the slot is used again, so a key that was released, or a window's key from before
//! its last binding, opens nothing. `lkey` and `rkey` of a region are the same number.
//!
//! Every change that can close a key moves the table's epoch: whoever has checked a key at an epoch need not check it
//! again before the epoch moves.

use bitflags::bitflags;
use softfabric_units::Qpn;

use super::window::WindowKind;
use crate::table::Table;

bitflags! {
    /// What a region or window may be used for, and what a queue pair lets its peer do.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub struct Access: u8 {
        /// The device may write: receives, read responses, results of atomics.
        const LOCAL_WRITE = 1;
        /// The peer may write.
        const REMOTE_WRITE = 2;
        /// The peer may read.
        const REMOTE_READ = 4;
        /// The peer may do atomic operations.
        const REMOTE_ATOMIC = 8;
        /// Windows may be bound to the region.
        const BIND_WINDOW = 16;
        /// Addresses count from the start of the region or window.
        const ZERO_BASED = 32;
    }
}

/// A protection domain: queue pairs use only memory of their own (IBTA vol. 1, 10.2.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Domain(pub(crate) u32);

impl Domain {
    /// None: nothing belongs to it.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// A region to register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionInit {
    /// The address that peers and work requests use; zero-based regions have none.
    pub virtual_address: u64,
    /// Where the bytes are, in the driver's addresses; often the same.
    pub address: u64,
    /// The length in bytes.
    pub length: u64,
    /// What it may be used for.
    pub access: Access,
    /// Belongs to the driver: given back with each [`Segment`](super::Segment).
    pub region: u64,
}

impl RegionInit {
    /// A region whose virtual addresses are the driver's.
    pub const fn new(address: u64, length: u64, access: Access) -> Self {
        Self {
            virtual_address: address,
            address,
            length,
            access,
            region: 0,
        }
    }

    /// A region over all addresses without a byte behind it: what is read from it is zero, what is written to it is
    /// lost. [`Memory`](super::Memory) knows it by [`NULL_REGION`].
    pub const fn null(access: Access) -> Self {
        Self {
            region: NULL_REGION,
            ..Self::new(0, u64::MAX, access)
        }
    }
}

/// The [`RegionInit::region`] of memory that has no bytes: see [`RegionInit::null`].
pub const NULL_REGION: u64 = u64::MAX;

/// What a region becomes; what is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RegionChange {
    /// Whose it is.
    pub domain: Option<Domain>,
    /// Where it is.
    pub range: Option<RegionRange>,
    /// What it may be used for.
    pub access: Option<Access>,
}

/// Where a region is: the fields of [`RegionInit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionRange {
    /// The address that peers and work requests use.
    pub virtual_address: u64,
    /// Where the bytes are, in the driver's addresses.
    pub address: u64,
    /// The length in bytes.
    pub length: u64,
    /// Belongs to the driver.
    pub region: u64,
}

/// Why a region was not registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegisterError {
    /// The domain is not one of this device.
    #[error("{0:?} does not exist")]
    UnknownDomain(Domain),
    /// Remote writes and atomics ask for local write (IBTA vol. 1, 10.6.3.1).
    #[error("{0:?} needs LOCAL_WRITE as well")]
    NeedsLocalWrite(Access),
    /// The region passes the end of the address space.
    #[error("{length} bytes from {address:#x} pass the end of the address space")]
    Wraps {
        /// The first address.
        address: u64,
        /// The length.
        length: u64,
    },
    /// There are no more keys.
    #[error("all 2^24 memory keys are in use")]
    NoKeys,
}

/// Why a region was not changed. It is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReregisterError {
    /// The key is no region's.
    #[error("key {0:#010x} is no memory region's")]
    UnknownKey(u32),
    /// Windows are bound to the region (IBTA vol. 1, 11.2.8.7).
    #[error("{0} windows are still bound to the region")]
    WindowsBound(u32),
    /// A region could not be registered so either.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

/// Why a region, window or domain was not released.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReleaseKeyError {
    /// No such key.
    #[error("key {0:#010x} opens nothing")]
    UnknownKey(u32),
    /// Windows are bound to the region.
    #[error("{0} windows are still bound to the region")]
    WindowsBound(u32),
    /// No such domain.
    #[error("{0:?} does not exist")]
    UnknownDomain(Domain),
    /// Queue pairs, regions or windows belong to the domain.
    #[error("{1} objects still belong to {0:?}")]
    DomainInUse(Domain, u32),
}

/// Why a key does not open what was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyFault {
    /// No such key, or one from before.
    #[error("the key opens nothing")]
    Unknown,
    /// It belongs to another domain, or the window to another queue pair.
    #[error("the key belongs to somebody else")]
    Foreign,
    /// The range leaves the region or window.
    #[error("the range is out of bounds")]
    Bounds,
    /// The right is missing.
    #[error("the key does not give the right")]
    Rights,
}

/// Where a checked range is: the driver's region and address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Translation {
    pub(crate) region: u64,
    pub(crate) address: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Region {
        windows: u32,
    },
    /// `valid`: bound with a length. `qp`: of a type 2 window, who bound it.
    Window {
        kind: WindowKind,
        region: u32,
        valid: bool,
        qp: Qpn,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) domain: Domain,
    pub(super) virtual_address: u64,
    pub(super) length: u64,
    pub(super) translation: Translation,
    pub(super) access: Access,
    pub(super) kind: Kind,
}

impl Entry {
    /// The entry of a region, if its rights and its range hold.
    fn region(domain: Domain, init: &RegionInit) -> Result<Self, RegisterError> {
        let remote = Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        if init.access.intersects(remote) && !init.access.contains(Access::LOCAL_WRITE) {
            return Err(RegisterError::NeedsLocalWrite(init.access));
        }
        let virtual_address = if init.access.contains(Access::ZERO_BASED) {
            0
        } else {
            init.virtual_address
        };
        for address in [virtual_address, init.address] {
            if address.checked_add(init.length).is_none() {
                let length = init.length;
                return Err(RegisterError::Wraps { address, length });
            }
        }
        Ok(Self {
            domain,
            virtual_address,
            length: init.length,
            translation: Translation {
                region: init.region,
                address: init.address,
            },
            access: init.access,
            kind: Kind::Region { windows: 0 },
        })
    }
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) variant: u8,
    pub(super) entry: Option<Entry>,
}

#[derive(Debug, Default)]
pub(crate) struct KeyTable {
    pub(super) slots: Vec<Slot>,
    free: Vec<u32>,
    /// How many objects belong to each domain.
    domains: Table<u32>,
    pub(super) epoch: u32,
}

impl KeyTable {
    /// Moves whenever a key may have closed.
    #[inline]
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    pub(crate) fn alloc_domain(&mut self) -> Domain {
        Domain(self.domains.insert(0))
    }

    pub(crate) fn dealloc_domain(&mut self, domain: Domain) -> Result<(), ReleaseKeyError> {
        match self.members(domain) {
            None => Err(ReleaseKeyError::UnknownDomain(domain)),
            Some(0) => {
                self.domains.remove(domain.0);
                Ok(())
            }
            Some(members) => Err(ReleaseKeyError::DomainInUse(domain, *members)),
        }
    }

    pub(crate) fn has_domain(&self, domain: Domain) -> bool {
        self.domains.contains(domain.0)
    }

    fn members(&mut self, domain: Domain) -> Option<&mut u32> {
        self.domains.get_mut(domain.0)
    }

    /// Counts an object in or out of a domain; false where the domain does not exist.
    pub(crate) fn join(&mut self, domain: Domain) -> bool {
        self.members(domain).map(|members| *members += 1).is_some()
    }

    pub(crate) fn leave(&mut self, domain: Domain) {
        if let Some(members) = self.members(domain) {
            *members = members.saturating_sub(1);
        }
    }

    pub(crate) fn register(
        &mut self,
        domain: Domain,
        init: &RegionInit,
    ) -> Result<u32, RegisterError> {
        self.insert(Entry::region(domain, init)?)
    }

    /// Changes a region under its key (IBTA vol. 1, 11.2.8.7). Whoever is in the middle of using it is checked anew.
    pub(crate) fn reregister(
        &mut self,
        key: u32,
        change: &RegionChange,
    ) -> Result<(), ReregisterError> {
        let entry = *self.entry(key).ok_or(ReregisterError::UnknownKey(key))?;
        match entry.kind {
            Kind::Window { .. } => return Err(ReregisterError::UnknownKey(key)),
            Kind::Region { windows: 0 } => {}
            Kind::Region { windows } => return Err(ReregisterError::WindowsBound(windows)),
        }
        let range = change.range.unwrap_or(RegionRange {
            virtual_address: entry.virtual_address,
            address: entry.translation.address,
            length: entry.length,
            region: entry.translation.region,
        });
        let domain = change.domain.unwrap_or(entry.domain);
        let init = RegionInit {
            virtual_address: range.virtual_address,
            address: range.address,
            length: range.length,
            access: change.access.unwrap_or(entry.access),
            region: range.region,
        };
        let changed = Entry::region(domain, &init)?;
        if !self.join(domain) {
            return Err(RegisterError::UnknownDomain(domain).into());
        }
        self.leave(entry.domain);
        self.slots[(key >> 8) as usize].entry = Some(changed);
        self.epoch = self.epoch.wrapping_add(1);
        Ok(())
    }

    pub(crate) fn alloc_window(
        &mut self,
        domain: Domain,
        kind: WindowKind,
    ) -> Result<u32, RegisterError> {
        self.insert(Entry {
            domain,
            virtual_address: 0,
            length: 0,
            translation: Translation::default(),
            access: Access::empty(),
            kind: Kind::Window {
                kind,
                region: 0,
                valid: false,
                qp: Qpn::default(),
            },
        })
    }

    fn insert(&mut self, entry: Entry) -> Result<u32, RegisterError> {
        if self.free.is_empty() && self.slots.len() >= 1 << 24 {
            return Err(RegisterError::NoKeys);
        }
        if !self.join(entry.domain) {
            return Err(RegisterError::UnknownDomain(entry.domain));
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                variant: 0,
                entry: None,
            });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.variant = slot.variant.wrapping_add(1);
        slot.entry = Some(entry);
        Ok(index << 8 | u32::from(slot.variant))
    }

    /// Releases a region, or a window whether bound or not.
    pub(crate) fn release(&mut self, key: u32) -> Result<(), ReleaseKeyError> {
        let entry = *self.entry(key).ok_or(ReleaseKeyError::UnknownKey(key))?;
        match entry.kind {
            Kind::Region { windows: 1.. } => {
                let Kind::Region { windows } = entry.kind else {
                    return Ok(());
                };
                return Err(ReleaseKeyError::WindowsBound(windows));
            }
            Kind::Window { .. } => self.unbind(key),
            Kind::Region { .. } => {}
        }
        self.leave(entry.domain);
        self.slots[(key >> 8) as usize].entry = None;
        self.free.push(key >> 8);
        self.epoch = self.epoch.wrapping_add(1);
        Ok(())
    }

    #[inline]
    pub(super) fn entry(&self, key: u32) -> Option<&Entry> {
        let slot = self.slots.get((key >> 8) as usize)?;
        if slot.variant == key as u8 {
            slot.entry.as_ref()
        } else {
            None
        }
    }

    /// Checks a range of local memory for `need` (IBTA vol. 1, 10.6.3.3): windows are for remote access only.
    #[inline]
    pub(crate) fn check_local(
        &self,
        key: u32,
        domain: Domain,
        address: u64,
        length: u64,
        need: Access,
    ) -> Result<Translation, KeyFault> {
        let entry = self.entry(key).ok_or(KeyFault::Unknown)?;
        if !matches!(entry.kind, Kind::Region { .. }) {
            return Err(KeyFault::Unknown);
        }
        check(entry, domain, address, length, need)
    }

    /// Checks a range for a peer (IBTA vol. 1, 9.7.4.1.5 and 10.6.3.3). A length of zero asks for no key at all; the
    /// caller sees to that.
    #[inline]
    pub(crate) fn check_remote(
        &self,
        key: u32,
        domain: Domain,
        qp: Qpn,
        address: u64,
        length: u64,
        need: Access,
    ) -> Result<Translation, KeyFault> {
        let entry = self.entry(key).ok_or(KeyFault::Unknown)?;
        if let Kind::Window {
            kind,
            valid,
            qp: owner,
            ..
        } = entry.kind
        {
            if !valid {
                return Err(KeyFault::Unknown);
            }
            if kind == WindowKind::Type2 && owner != qp {
                return Err(KeyFault::Foreign);
            }
        }
        check(entry, domain, address, length, need)
    }
}

#[inline]
pub(super) fn check(
    entry: &Entry,
    domain: Domain,
    address: u64,
    length: u64,
    need: Access,
) -> Result<Translation, KeyFault> {
    if entry.domain != domain {
        return Err(KeyFault::Foreign);
    }
    if !entry.access.contains(need) {
        return Err(KeyFault::Rights);
    }
    let offset = address
        .checked_sub(entry.virtual_address)
        .ok_or(KeyFault::Bounds)?;
    let end = offset.checked_add(length).ok_or(KeyFault::Bounds)?;
    if end > entry.length {
        return Err(KeyFault::Bounds);
    }
    Ok(Translation {
        region: entry.translation.region,
        address: entry.translation.address + offset,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> (KeyTable, Domain) {
        let mut table = KeyTable::default();
        let domain = table.alloc_domain();
        (table, domain)
    }

    #[test]
    fn bounds_are_exact() {
        let (mut table, domain) = table();
        let region = RegionInit {
            virtual_address: 0x1000,
            address: 0x9000,
            length: 0x100,
            access: Access::LOCAL_WRITE,
            region: 7,
        };
        let key = table.register(domain, &region).unwrap();
        let check =
            |address, length| table.check_local(key, domain, address, length, Access::LOCAL_WRITE);
        let inside = Translation {
            region: 7,
            address: 0x90ff,
        };
        assert_eq!(check(0x10ff, 1), Ok(inside));
        assert!(check(0x1000, 0x100).is_ok());
        for (address, length) in [
            (0xfff, 1),
            (0x10ff, 2),
            (0x1000, 0x101),
            (0x1100, 1),
            (u64::MAX, 1),
            (0x1001, u64::MAX),
        ] {
            assert_eq!(
                check(address, length),
                Err(KeyFault::Bounds),
                "{address:#x}"
            );
        }
        assert_eq!(
            table.check_local(key, domain, 0x1000, 1, Access::REMOTE_READ),
            Err(KeyFault::Rights)
        );
        assert_eq!(
            table.check_local(key, Domain(5), 0x1000, 1, Access::empty()),
            Err(KeyFault::Foreign)
        );
    }

    /// The largest region there is: the end is not passed by one.
    #[test]
    fn everything_may_be_registered() {
        let (mut table, domain) = table();
        let all = RegionInit::new(0, u64::MAX, Access::LOCAL_WRITE);
        let key = table.register(domain, &all).unwrap();
        let last = table.check_local(key, domain, u64::MAX - 1, 1, Access::empty());
        assert!(last.is_ok());
        assert!(matches!(
            table.register(domain, &RegionInit::new(1, u64::MAX, Access::empty())),
            Err(RegisterError::Wraps { .. })
        ));
    }

    #[test]
    fn a_slot_has_256_keys_and_the_epoch_moves() {
        let (mut table, domain) = table();
        let region = RegionInit::new(0, 10, Access::empty());
        let mut keys = Vec::new();
        for _ in 0..256 {
            let epoch = table.epoch();
            let key = table.register(domain, &region).unwrap();
            assert_eq!(table.epoch(), epoch, "a new key closes none");
            table.release(key).unwrap();
            assert_ne!(table.epoch(), epoch);
            keys.push(key);
        }
        assert!(keys.iter().all(|key| key >> 8 == 0));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 256);
    }

    #[test]
    fn domains_are_counted() {
        let (mut table, domain) = table();
        let other = table.alloc_domain();
        assert_ne!(domain, other);
        assert_eq!(table.dealloc_domain(domain), Ok(()));
        assert_eq!(
            table.dealloc_domain(domain),
            Err(ReleaseKeyError::UnknownDomain(domain))
        );
        assert_ne!(table.alloc_domain(), domain, "nobody gets its number soon");
    }
}
