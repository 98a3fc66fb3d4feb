//! What a device tells without being asked.

use softfabric_transport::Event;

/// Hears of a device's events: the C interface turns them into file descriptors.
///
/// It is called on whatever thread made progress, with the device unlocked, so it may call the device. It must not
/// wait for long: progress waits meanwhile.
pub trait EventSink: Send + Sync {
    /// Something happened.
    fn event(&self, event: Event);
}
