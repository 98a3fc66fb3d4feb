//! Which descriptors of the process are channels: asked at every `write` and `close` of `librdmacm`.
//!
//! A channel's number holds the process that opened it, so that a forked child knows that it has inherited one.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Descriptors from here on cannot be channels.
const COUNT: usize = 1 << 16;

/// The channel of each descriptor; 0: none. Pages of it that nobody touches cost nothing.
static CHANNELS: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];

/// A channel: the process that opened it, and a count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ChannelId(u64);

impl ChannelId {
    /// A new one of this process.
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(u64::from(std::process::id()) << 32 | u64::from(count))
    }

    /// Whether this process has opened it, rather than the one that this process is a fork of.
    pub(super) fn is_own(self) -> bool {
        self.0 >> 32 == u64::from(std::process::id())
    }
}

fn place(descriptor: i32) -> Option<&'static AtomicU64> {
    CHANNELS.get(usize::try_from(descriptor).ok()?)
}

/// The channel of a descriptor.
pub(super) fn channel(descriptor: i32) -> Option<ChannelId> {
    match place(descriptor)?.load(Ordering::Acquire) {
        0 => None,
        number => Some(ChannelId(number)),
    }
}

/// The descriptor is a channel from now on. Says whether that can be.
pub(super) fn insert(descriptor: i32, channel: ChannelId) -> bool {
    place(descriptor).is_some_and(|place| {
        place.store(channel.0, Ordering::Release);
        true
    })
}

/// The descriptor is none any longer.
pub(super) fn remove(descriptor: i32) -> Option<ChannelId> {
    match place(descriptor)?.swap(0, Ordering::AcqRel) {
        0 => None,
        number => Some(ChannelId(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_come_and_go() {
        let own = ChannelId::new();
        assert!(own.is_own() && own != ChannelId::new());
        assert!(insert(60_000, own));
        assert_eq!(channel(60_000), Some(own));
        assert_eq!(
            (channel(60_001), channel(-1), channel(1 << 20)),
            (None, None, None)
        );
        assert_eq!(remove(60_000), Some(own));
        assert_eq!((remove(60_000), channel(60_000)), (None, None));
        assert!(!insert(1 << 20, own) && !insert(-1, own));
        assert!(!ChannelId(1 << 32 | 5).is_own(), "init's");
    }
}
