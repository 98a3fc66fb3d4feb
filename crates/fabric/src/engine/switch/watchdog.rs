//! The PFC watchdog: finds queues that stay paused and do not move, as SONiC's pfcwd does.

use softfabric_units::{Class, ClassMask, Span, Time};

use crate::plan::{Watchdog, WatchdogAction};

/// What the watchdog knows.
#[derive(Debug)]
pub(super) struct Watch {
    settings: Watchdog,
    armed: bool,
    ports: Vec<PortWatch>,
}

#[derive(Clone, Debug, Default)]
struct PortWatch {
    /// Classes that have sent something since the last look.
    moved: ClassMask,
    stormed: ClassMask,
    /// How long each class has been paused without moving, or, when stormed, free of pause.
    streak: [Span; Class::COUNT],
}

/// What a look at a port found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdicts {
    pub(super) stormed: ClassMask,
    pub(super) restored: ClassMask,
}

impl Watch {
    pub(super) fn new(settings: Watchdog) -> Self {
        Self {
            settings,
            armed: false,
            ports: Vec::new(),
        }
    }

    pub(super) fn action(&self) -> WatchdogAction {
        self.settings.action
    }

    /// A queue has been paused: when to look next, if nobody is to look yet.
    pub(super) fn arm(&mut self, now: Time) -> Option<Time> {
        let fresh = !self.armed;
        self.armed = true;
        fresh.then(|| now + self.settings.poll)
    }

    /// After a look: when to look again.
    pub(super) fn rearm(&mut self, now: Time, any_paused: bool) -> Option<Time> {
        self.armed = any_paused || self.ports.iter().any(|port| !port.stormed.is_empty());
        self.armed.then(|| now + self.settings.poll)
    }

    /// A packet of the class went out.
    pub(super) fn sent(&mut self, port: usize, class: Class) {
        let watched = self.port(port);
        watched.moved = watched.moved.with(class);
    }

    /// Whether packets for this queue are to be dropped.
    pub(super) fn drops(&mut self, port: usize, class: Class) -> bool {
        self.settings.action == WatchdogAction::Drop && self.port(port).stormed.contains(class)
    }

    /// The classes of a port that are sent although paused.
    pub(super) fn forwarding(&self, port: usize) -> ClassMask {
        match self.settings.action {
            WatchdogAction::Forward => self
                .ports
                .get(port)
                .map_or(ClassMask::NONE, |watched| watched.stormed),
            _ => ClassMask::NONE,
        }
    }

    /// Looks at a port: which classes are newly stormed, which restored.
    pub(super) fn judge(&mut self, port: usize, paused: ClassMask, waiting: ClassMask) -> Verdicts {
        let Watchdog {
            poll,
            detection,
            restoration,
            ..
        } = self.settings;
        let watched = self.port(port);
        let mut verdicts = Verdicts::default();
        for class in Class::all() {
            let streak = &mut watched.streak[class.index()];
            if watched.stormed.contains(class) {
                *streak = if paused.contains(class) {
                    Span::ZERO
                } else {
                    *streak + poll
                };
                if *streak >= restoration {
                    watched.stormed = watched.stormed.without(class);
                    verdicts.restored = verdicts.restored.with(class);
                    *streak = Span::ZERO;
                }
            } else {
                let stuck = paused.contains(class)
                    && waiting.contains(class)
                    && !watched.moved.contains(class);
                *streak = if stuck { *streak + poll } else { Span::ZERO };
                if *streak >= detection {
                    watched.stormed = watched.stormed.with(class);
                    verdicts.stormed = verdicts.stormed.with(class);
                    *streak = Span::ZERO;
                }
            }
        }
        watched.moved = ClassMask::NONE;
        verdicts
    }

    fn port(&mut self, port: usize) -> &mut PortWatch {
        if port >= self.ports.len() {
            self.ports.resize_with(port + 1, PortWatch::default);
        }
        &mut self.ports[port]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_stays_paused_is_stormed_and_later_restored() {
        let ms = Span::millis;
        let mut watch = Watch::new(Watchdog {
            detection: ms(200),
            restoration: ms(200),
            poll: ms(100),
            action: WatchdogAction::Drop,
        });
        let class = Class::new(3);
        let (three, none) = (ClassMask::of(class), ClassMask::NONE);
        assert_eq!(watch.arm(Time::ZERO), Some(Time::ZERO + ms(100)));
        assert_eq!(watch.arm(Time::ZERO), None, "armed once");
        assert_eq!(watch.judge(2, three, three), Verdicts::default());
        watch.sent(2, class);
        assert_eq!(watch.judge(2, three, three).stormed, none, "it moved");
        assert_eq!(watch.judge(2, three, three).stormed, none);
        assert_eq!(watch.judge(2, three, three).stormed, three);
        assert!(watch.drops(2, class) && !watch.drops(2, Class::new(4)) && !watch.drops(1, class));
        assert!(
            watch.rearm(Time::ZERO, false).is_some(),
            "it goes on looking until all is restored"
        );
        assert_eq!(watch.judge(2, none, none).restored, none);
        assert_eq!(watch.judge(2, none, none).restored, three);
        assert!(!watch.drops(2, class));
        assert_eq!(watch.rearm(Time::ZERO, false), None);
    }

    #[test]
    fn an_empty_queue_is_no_storm_and_a_pause_starts_restoration_anew() {
        let ms = Span::millis;
        let mut watch = Watch::new(Watchdog {
            detection: ms(200),
            restoration: ms(200),
            poll: ms(100),
            action: WatchdogAction::Drop,
        });
        let (three, none) = (ClassMask::of(Class::new(3)), ClassMask::NONE);
        let mut judge = |paused, waiting| watch.judge(0, paused, waiting);
        for _ in 0..5 {
            assert_eq!(judge(three, none), Verdicts::default(), "nothing waits");
        }
        judge(three, three);
        assert_eq!(judge(three, three).stormed, three);
        for paused in [none, three, none] {
            assert_eq!(judge(paused, none).restored, none);
        }
        assert_eq!(judge(none, none).restored, three);
    }
}
