//! PFC: pause frames that come and go, their timers, and the watchdog over queues that stay paused.

use softfabric_telemetry::ClassCounter;
use softfabric_units::{Bytes, Class, Time};

use super::Switch;
use crate::engine::event::{Event, Scheduler};
use crate::engine::frame::{PauseFrame, PauseRequest};
use crate::engine::world::World;
use crate::plan::WatchdogAction;
use crate::results::DropReason;

/// The timers of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Timer {
    /// A delayed pause frame of the port takes effect.
    PauseEffect(usize),
    /// A pause of the class on the port runs out.
    PauseExpiry(usize, Class),
    /// A pause that this switch asks for is about to run out.
    PauseRefresh(usize, Class),
    /// The watchdog looks.
    Watchdog,
}

impl Timer {
    fn event(self) -> Event {
        let number =
            |kind: u32, port: usize, class: u8| kind << 24 | (port as u32) << 3 | u32::from(class);
        Event::timer(match self {
            Self::PauseEffect(port) => number(0, port, 0),
            Self::PauseExpiry(port, class) => number(1, port, class.as_u8()),
            Self::PauseRefresh(port, class) => number(2, port, class.as_u8()),
            Self::Watchdog => number(3, 0, 0),
        })
    }

    fn from_number(number: u32) -> Self {
        let port = (number >> 3 & 0x1f_ffff) as usize;
        let class = Class::new((number & 7) as u8);
        match number >> 24 {
            0 => Self::PauseEffect(port),
            1 => Self::PauseExpiry(port, class),
            2 => Self::PauseRefresh(port, class),
            _ => Self::Watchdog,
        }
    }
}

impl Switch {
    /// A pause frame has come in by `port`.
    pub(crate) fn pause<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: PauseFrame,
        world: &World,
        scheduler: &mut S,
    ) {
        let transmitter = &mut self.ports[port].transmitter;
        transmitter.count_pause(now, &frame);
        if let Some(recorder) = &mut self.recorder {
            recorder.log_pause(now, port, &frame);
        }
        if !self.obeyed.contains(frame.class) {
            return;
        }
        if self.response_delay.is_zero() {
            self.obey(now, port, frame, world, scheduler);
        } else {
            let effect = now + self.response_delay;
            self.ports[port].delayed.push_back((effect, frame));
            scheduler.at(effect, Timer::PauseEffect(port).event());
        }
    }

    pub(super) fn obey<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: PauseFrame,
        world: &World,
        scheduler: &mut S,
    ) {
        let transmitter = &mut self.ports[port].transmitter;
        let obeyed = transmitter.obey(now, frame.class, frame.request);
        if let Some(end) = obeyed.ends {
            scheduler.at(end, Timer::PauseExpiry(port, frame.class).event());
        }
        if frame.request.is_pause()
            && let Some(watch) = &mut self.watch
            && let Some(look) = watch.arm(now)
        {
            scheduler.at(look, Timer::Watchdog.event());
        }
        if obeyed.goes_on {
            self.transmit(now, port, world, scheduler);
        }
    }

    /// A timer has run out.
    pub(crate) fn timer<S: Scheduler>(
        &mut self,
        now: Time,
        number: u32,
        world: &World,
        scheduler: &mut S,
    ) {
        match Timer::from_number(number) {
            Timer::PauseEffect(port) => {
                // The link may have failed in between, and PFC may have been turned off.
                let delayed = &mut self.ports[port].delayed;
                if let Some(&(effect, frame)) = delayed.front()
                    && effect == now
                {
                    delayed.pop_front();
                    if self.obeyed.contains(frame.class) {
                        self.obey(now, port, frame, world, scheduler);
                    }
                }
            }
            Timer::PauseExpiry(port, class) => {
                if self.ports[port].transmitter.pause_expires(now, class) {
                    self.transmit(now, port, world, scheduler);
                }
            }
            Timer::PauseRefresh(port, class) => {
                if self.ports[port].pausing.contains(class) {
                    self.speak(now, port, class, self.pause_request, world, scheduler);
                }
            }
            Timer::Watchdog => self.look(now, world, scheduler),
        }
    }

    /// Sends a pause or resume frame for `class` out of `port`.
    pub(super) fn speak<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        class: Class,
        request: PauseRequest,
        world: &World,
        scheduler: &mut S,
    ) {
        let at = &mut self.ports[port];
        at.pausing = if request.is_pause() {
            at.pausing.with(class)
        } else {
            at.pausing.without(class)
        };
        at.transmitter.pauses.push_back(PauseFrame {
            time: Time::NEVER,
            class,
            request,
        });
        if let PauseRequest::Quanta(quanta) = request {
            // Asked again at half time, so that the pause never runs out while it is meant.
            let half = at
                .transmitter
                .link
                .rate
                .time_for(Bytes::new(u64::from(quanta) * 32));
            scheduler.at(now + half, Timer::PauseRefresh(port, class).event());
        }
        self.transmit(now, port, world, scheduler);
    }

    pub(super) fn resume_if_allowed<S: Scheduler>(
        &mut self,
        now: Time,
        ingress: usize,
        group: Class,
        world: &World,
        scheduler: &mut S,
    ) {
        let priority = self.maps.pause[group.index()];
        if self.ports[ingress].pausing.contains(priority)
            && self.memory.allows_resume(ingress, group)
        {
            self.speak(
                now,
                ingress,
                priority,
                PauseRequest::Resume,
                world,
                scheduler,
            );
        }
    }

    /// Nobody speaks PFC for priority `class` any more.
    pub(crate) fn pfc_off<S: Scheduler>(
        &mut self,
        now: Time,
        class: Class,
        world: &World,
        scheduler: &mut S,
    ) {
        self.obeyed = self.obeyed.without(class);
        for group in Class::all() {
            if self.maps.pause[group.index()] == class {
                self.spoken = self.spoken.without(group);
            }
        }
        for port in 0..self.ports.len() {
            self.ports[port].pausing = self.ports[port].pausing.without(class);
            if self.ports[port].transmitter.forget_pauses(now, class) {
                self.transmit(now, port, world, scheduler);
            }
        }
    }

    /// The watchdog looks at every paused queue.
    pub(super) fn look<S: Scheduler>(&mut self, now: Time, world: &World, scheduler: &mut S) {
        let Some(mut watch) = self.watch.take() else {
            return;
        };
        for port in 0..self.ports.len() {
            let at = &mut self.ports[port];
            let verdicts = watch.judge(port, at.transmitter.paused.queues, at.queues.waiting());
            for class in verdicts.stormed.iter() {
                at.transmitter.classes[class.index()].count(ClassCounter::WatchdogStorms);
            }
            for class in verdicts.restored.iter() {
                at.transmitter.classes[class.index()].count(ClassCounter::WatchdogRestored);
            }
            if watch.action() == WatchdogAction::Drop && !verdicts.stormed.is_empty() {
                self.flush(
                    now,
                    port,
                    verdicts.stormed,
                    DropReason::Watchdog,
                    world,
                    scheduler,
                );
            }
        }
        let any_paused = self
            .ports
            .iter()
            .any(|port| !port.transmitter.paused.mask.is_empty());
        if let Some(next) = watch.rearm(now, any_paused) {
            scheduler.at(next, Timer::Watchdog.event());
        }
        self.watch = Some(watch);
        if self
            .watch
            .as_ref()
            .is_some_and(|watch| watch.action() == WatchdogAction::Forward)
        {
            for port in 0..self.ports.len() {
                self.transmit(now, port, world, scheduler);
            }
        }
    }
}
