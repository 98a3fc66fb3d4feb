//! A node: a host or a switch, behind one set of calls.

use softfabric_units::{Span, Time};

use super::event::{Event, EventKind, Scheduler};
use super::frame::{Control, Frame};
use super::host::Host;
use super::infiniband::{LaneSwitch, Tables};
use super::poll::Poller;
use super::port::Transmitter;
use super::recorder::{Losses, NodeRecorder};
use super::switch::Switch;
use super::tcp::TcpHost;
use super::world::World;
use crate::plan::{Action, Lanes, NodeId};
use crate::results::CounterSample;

/// One node of the network.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// When the recorder or the poller wants its next sample.
    sample_at: Time,
    /// Polls the counters, if the plan wants that.
    poller: Option<Box<Poller>>,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Host(Box<Host>),
    Switch(Box<Switch>),
    LaneSwitch(Box<LaneSwitch>),
    TcpHost(Box<TcpHost>),
}

impl Node {
    pub(crate) fn new(kind: Kind) -> Self {
        let mut node = Self {
            kind,
            sample_at: Time::NEVER,
            poller: None,
        };
        node.sample_at = node.next_sample();
        node
    }

    /// Polls the counters of all ports every `interval` from `origin` on.
    pub(crate) fn poll_counters(&mut self, id: NodeId, origin: Time, interval: Span) {
        let ports = self.transmitters().count();
        self.poller = Some(Box::new(Poller::new(id, ports, origin, interval)));
        self.sample_at = self.next_sample();
    }

    /// What was polled.
    pub(crate) fn take_samples(&mut self) -> Vec<CounterSample> {
        let poller = self.poller.as_mut();
        poller.map_or_else(Vec::new, |poller| std::mem::take(&mut poller.samples))
    }

    fn next_sample(&self) -> Time {
        let recorder = self
            .recorder()
            .map_or(Time::NEVER, NodeRecorder::next_sample);
        let poller = self.poller.as_ref();
        recorder.min(poller.map_or(Time::NEVER, |poller| poller.next))
    }

    /// A packet has come in by `port`.
    #[inline]
    pub(crate) fn packet<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: &Frame,
        world: &World,
        scheduler: &mut S,
    ) {
        self.sample_if_due(now);
        match &mut self.kind {
            Kind::Switch(switch) => switch.packet(now, port, frame, world, scheduler),
            Kind::LaneSwitch(switch) => switch.packet(now, port, frame, world, scheduler),
            Kind::Host(host) => host.packet(now, port, frame, world, scheduler),
            Kind::TcpHost(host) => host.packet(now, port, frame, world, scheduler),
        }
    }

    /// A control frame has come in by `port`.
    pub(crate) fn control<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        control: Control,
        world: &World,
        scheduler: &mut S,
    ) {
        self.sample_if_due(now);
        match (&mut self.kind, control) {
            (Kind::Switch(switch), Control::Pause(frame)) => {
                switch.pause(now, port, frame, world, scheduler);
            }
            (Kind::LaneSwitch(switch), Control::Credit(credit)) => {
                switch.credit(now, port, credit, world, scheduler);
            }
            (Kind::Host(host), Control::Pause(frame)) => {
                host.pause(now, port, frame, world, scheduler);
            }
            (Kind::Host(host), Control::Credit(credit)) => {
                host.credit(now, port, credit, world, scheduler);
            }
            (Kind::TcpHost(host), Control::Pause(frame)) => {
                host.pause(now, port, frame, world, scheduler);
            }
            // A fabric is of one kind.
            (Kind::Switch(_) | Kind::TcpHost(_), Control::Credit(_))
            | (Kind::LaneSwitch(_), Control::Pause(_)) => {}
        }
    }

    /// Something that the node itself has asked for.
    #[inline]
    pub(crate) fn event<S: Scheduler>(
        &mut self,
        now: Time,
        event: Event,
        world: &World,
        scheduler: &mut S,
    ) {
        self.sample_if_due(now);
        match (event.kind(), &mut self.kind) {
            (EventKind::PortFree(port), Kind::Switch(switch)) => {
                switch.port_free(now, port, world, scheduler);
            }
            (EventKind::PortFree(port), Kind::LaneSwitch(switch)) => {
                switch.port_free(now, port, world, scheduler);
            }
            (EventKind::PortFree(port), Kind::Host(host)) => {
                host.port_free(now, port, world, scheduler);
            }
            (EventKind::PortFree(port), Kind::TcpHost(host)) => {
                host.port_free(now, port, world, scheduler);
            }
            (EventKind::Timer(number), Kind::TcpHost(host)) => {
                host.timer(now, number, world, scheduler);
            }
            (EventKind::Timer(number), Kind::Switch(switch)) => {
                switch.timer(now, number, world, scheduler);
            }
            (EventKind::Timer(number), Kind::LaneSwitch(switch)) => {
                switch.timer(now, number, world, scheduler);
            }
            (EventKind::Timer(number), Kind::Host(host)) => {
                host.timer(now, number, world, scheduler);
            }
            // The packet or control frame was lost with its link.
            (EventKind::Packet(_) | EventKind::Control(_), _) => {}
        }
    }

    /// The flow is to start at `time`; only hosts have flows.
    pub(crate) fn start_flow<S: Scheduler>(&mut self, flow: u32, time: Time, scheduler: &mut S) {
        match &mut self.kind {
            Kind::Host(host) => host.schedule_flow(flow, time, scheduler),
            Kind::TcpHost(host) => host.schedule_flow(flow, time, scheduler),
            Kind::Switch(_) | Kind::LaneSwitch(_) => {}
        }
    }

    /// The ranks of this node, if it has any, ask for the time at which they begin.
    pub(crate) fn schedule_program<S: Scheduler>(&mut self, scheduler: &mut S) {
        match &mut self.kind {
            Kind::Host(host) => host.schedule_program(scheduler),
            Kind::TcpHost(host) => host.schedule_program(scheduler),
            Kind::Switch(_) | Kind::LaneSwitch(_) => {}
        }
    }

    /// Something happens to this node, other than to its links.
    pub(crate) fn act<S: Scheduler>(
        &mut self,
        now: Time,
        action: Action,
        world: &World,
        scheduler: &mut S,
    ) {
        self.sample_if_due(now);
        match (&mut self.kind, action) {
            (Kind::Switch(switch), Action::PfcOff(class)) => {
                switch.pfc_off(now, class, world, scheduler);
            }
            (Kind::Host(host), action) => host.act(now, action, world, scheduler),
            (Kind::TcpHost(host), action) => host.act(now, action, world, scheduler),
            (Kind::Switch(_) | Kind::LaneSwitch(_), _) => {}
        }
    }

    /// InfiniBand's subnet manager says how switches route and which lanes they use.
    pub(crate) fn program(&mut self, tables: &Tables, usual: &Lanes) {
        if let Kind::LaneSwitch(switch) = &mut self.kind {
            switch.program(tables, usual);
        }
    }

    /// The link of `port` goes down or comes back.
    pub(crate) fn set_link<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        up: bool,
        world: &World,
        scheduler: &mut S,
    ) {
        self.sample_if_due(now);
        match (&mut self.kind, up) {
            (Kind::Switch(switch), true) => switch.link_up(port),
            (Kind::Switch(switch), false) => switch.link_down(now, port, world, scheduler),
            (Kind::LaneSwitch(switch), true) => switch.link_up(now, port, world, scheduler),
            (Kind::LaneSwitch(switch), false) => switch.link_down(now, port, world, scheduler),
            (Kind::Host(host), up) => host.set_link(now, port, up, world, scheduler),
            (Kind::TcpHost(host), up) => host.set_link(now, port, up, world, scheduler),
        }
    }

    /// The node's ports, in order.
    pub(crate) fn transmitters(&self) -> Box<dyn Iterator<Item = &Transmitter> + '_> {
        match &self.kind {
            Kind::Switch(switch) => Box::new(switch.ports.iter().map(|port| &port.transmitter)),
            Kind::LaneSwitch(switch) => Box::new(switch.ports.iter().map(|port| &port.transmitter)),
            Kind::Host(host) => Box::new(host.nics.iter().map(|nic| &nic.transmitter)),
            Kind::TcpHost(host) => Box::new(host.ports.iter()),
        }
    }

    pub(crate) fn transmitter_mut(&mut self, port: usize) -> &mut Transmitter {
        match &mut self.kind {
            Kind::Switch(switch) => &mut switch.ports[port].transmitter,
            Kind::LaneSwitch(switch) => &mut switch.ports[port].transmitter,
            Kind::Host(host) => &mut host.nics[port].transmitter,
            Kind::TcpHost(host) => &mut host.ports[port],
        }
    }

    pub(crate) fn recorder(&self) -> Option<&NodeRecorder> {
        match &self.kind {
            Kind::Switch(switch) => switch.recorder.as_ref(),
            Kind::LaneSwitch(switch) => switch.recorder.as_ref(),
            Kind::Host(host) => host.recorder.as_ref(),
            Kind::TcpHost(host) => host.recorder.as_ref(),
        }
    }

    pub(crate) fn losses_mut(&mut self) -> &mut Losses {
        match &mut self.kind {
            Kind::Switch(switch) => &mut switch.losses,
            Kind::LaneSwitch(switch) => &mut switch.losses,
            Kind::Host(host) => &mut host.losses,
            Kind::TcpHost(host) => &mut host.losses,
        }
    }

    pub(crate) fn losses(&self) -> &Losses {
        match &self.kind {
            Kind::Switch(switch) => &switch.losses,
            Kind::LaneSwitch(switch) => &switch.losses,
            Kind::Host(host) => &host.losses,
            Kind::TcpHost(host) => &host.losses,
        }
    }

    /// Packets sent and copied, less those delivered, less those lost, at this node.
    pub(crate) fn balance(&self) -> i64 {
        match &self.kind {
            Kind::Switch(_) => -(self.losses().total as i64),
            Kind::LaneSwitch(switch) => switch.copies() as i64 - switch.losses.total as i64,
            Kind::Host(host) => host.sent as i64 - host.delivered as i64 - host.losses.total as i64,
            Kind::TcpHost(host) => host.balance(),
        }
    }

    /// Closes all open accounts of time at the end of a run.
    pub(crate) fn close(&mut self, now: Time) {
        self.sample_if_due(now);
        match &mut self.kind {
            Kind::Switch(switch) => switch.close(now),
            Kind::LaneSwitch(switch) => switch.close(now),
            Kind::Host(host) => host
                .nics
                .iter_mut()
                .for_each(|nic| nic.transmitter.close(now)),
            Kind::TcpHost(host) => host.ports.iter_mut().for_each(|port| port.close(now)),
        }
    }

    #[inline]
    fn sample_if_due(&mut self, now: Time) {
        if now >= self.sample_at {
            self.sample(now);
        }
    }

    #[cold]
    fn sample(&mut self, now: Time) {
        match &mut self.kind {
            Kind::Switch(switch) => switch.sample(now),
            Kind::LaneSwitch(switch) => switch.sample(now),
            Kind::Host(host) => host.sample(now),
            Kind::TcpHost(host) => host.sample(now),
        }
        self.poll_until(now);
        self.sample_at = self.next_sample();
    }

    /// Takes all polls that are due at `now`.
    pub(crate) fn poll_until(&mut self, now: Time) {
        if let Some(mut poller) = self.poller.take() {
            if poller.next <= now {
                match &mut self.kind {
                    Kind::Switch(switch) => switch.raise_watermarks(),
                    Kind::LaneSwitch(switch) => switch.raise_watermarks(),
                    Kind::Host(_) | Kind::TcpHost(_) => {}
                }
            }
            while poller.next <= now {
                for (port, transmitter) in self.transmitters().enumerate() {
                    let device = match &self.kind {
                        Kind::Host(host) => Some(host.nics[port].device.counters()),
                        Kind::Switch(_) | Kind::LaneSwitch(_) | Kind::TcpHost(_) => None,
                    };
                    poller.poll(poller.next, port, transmitter, device);
                }
                poller.advance();
            }
            self.poller = Some(poller);
        }
    }
}
