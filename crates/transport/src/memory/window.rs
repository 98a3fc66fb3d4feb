//! Memory windows: keys that open part of a region, for as long as they are bound (IBTA vol. 1, 10.6.7).

use softfabric_units::Qpn;

use super::key::{Access, Domain, Entry, KeyFault, KeyTable, Kind, check};

/// The two types of memory windows (IBTA vol. 1, 10.6.7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowKind {
    /// Usable by every queue pair of its protection domain; rebinding moves it.
    Type1,
    /// Usable only by the queue pair that bound it (type 2B); must be invalidated before it is bound again.
    Type2,
}

/// Why a window was not bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BindError {
    /// The window or region key does not hold.
    #[error(transparent)]
    Key(#[from] KeyFault),
    /// The window is of type 2 and still valid.
    #[error("a type 2 window must be invalidated before it is bound again")]
    StillValid,
    /// The new key names another window.
    #[error("the new key names another window")]
    WrongKey,
}

/// A binding to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bind {
    pub(crate) window: u32,
    pub(crate) new_key: u32,
    pub(crate) region: u32,
    pub(crate) address: u64,
    pub(crate) length: u64,
    pub(crate) access: Access,
}

impl KeyTable {
    /// Binds a window (IBTA vol. 1, 10.6.7.2). A length of zero unbinds it.
    pub(crate) fn bind(&mut self, bind: &Bind, domain: Domain, qp: Qpn) -> Result<(), BindError> {
        let window = *self.entry(bind.window).ok_or(KeyFault::Unknown)?;
        let Kind::Window { kind, valid, .. } = window.kind else {
            return Err(KeyFault::Unknown.into());
        };
        if window.domain != domain {
            return Err(KeyFault::Foreign.into());
        }
        if bind.new_key >> 8 != bind.window >> 8 {
            return Err(BindError::WrongKey);
        }
        if kind == WindowKind::Type2 && valid {
            return Err(BindError::StillValid);
        }
        let mut bound = window;
        let mut bound_region = 0;
        if bind.length > 0 {
            let region = self.entry(bind.region).ok_or(KeyFault::Unknown)?;
            if !matches!(region.kind, Kind::Region { .. }) {
                return Err(KeyFault::Unknown.into());
            }
            let mut need = Access::BIND_WINDOW;
            if bind
                .access
                .intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC)
            {
                need |= Access::LOCAL_WRITE;
            }
            bound.translation = check(region, domain, bind.address, bind.length, need)?;
            bound.length = bind.length;
            bound.access = bind.access;
            bound.virtual_address = if bind.access.contains(Access::ZERO_BASED) {
                0
            } else {
                bind.address
            };
            bound_region = bind.region;
        }
        self.unbind(bind.window);
        bound.kind = Kind::Window {
            kind,
            region: bound_region,
            valid: bind.length > 0,
            qp,
        };
        if bind.length > 0 {
            self.count_windows(bound_region, 1);
        }
        let slot = &mut self.slots[(bind.window >> 8) as usize];
        slot.variant = bind.new_key as u8;
        slot.entry = Some(bound);
        Ok(())
    }

    pub(super) fn unbind(&mut self, window: u32) {
        let Some(entry) = self.slots[(window >> 8) as usize].entry.as_mut() else {
            return;
        };
        if let Kind::Window { region, valid, .. } = &mut entry.kind
            && *valid
        {
            *valid = false;
            let region = *region;
            self.count_windows(region, -1);
            self.epoch = self.epoch.wrapping_add(1);
        }
    }

    fn count_windows(&mut self, region: u32, change: i32) {
        let slot = self.slots.get_mut((region >> 8) as usize);
        if let Some(Entry {
            kind: Kind::Region { windows },
            ..
        }) = slot.and_then(|slot| slot.entry.as_mut())
        {
            *windows = windows.saturating_add_signed(change);
        }
    }

    /// Invalidates a type 2 window, by a local work request or by a peer's SEND (IBTA vol. 1, 10.6.7.2.6).
    pub(crate) fn invalidate(
        &mut self,
        key: u32,
        domain: Domain,
        qp: Qpn,
        remote: bool,
    ) -> Result<(), KeyFault> {
        let entry = self.entry(key).ok_or(KeyFault::Unknown)?;
        if entry.domain != domain {
            return Err(KeyFault::Foreign);
        }
        match entry.kind {
            Kind::Window {
                kind: WindowKind::Type2,
                qp: owner,
                valid,
                ..
            } => {
                if valid && owner != qp {
                    return Err(KeyFault::Foreign);
                }
                if remote && !valid {
                    return Err(KeyFault::Unknown);
                }
                self.unbind(key);
                Ok(())
            }
            Kind::Window { .. } | Kind::Region { .. } => Err(KeyFault::Rights),
        }
    }
}
