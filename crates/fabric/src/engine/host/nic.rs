//! A NIC: the transport and the transmitter that it feeds.

use softfabric_telemetry::{DeviceCounter, PortCounter};
use softfabric_transport::{
    Access, Arrival, CompletionQueueId, Device, DeviceConfig, Domain, RegionInit, Transmit,
};
use softfabric_units::{Bytes, Class, ClassMask, Rate, Time};
use softfabric_wire::rdma::{Operation, TransportHeader};

use super::Timer;
use super::flows::{FlowTable, QueuePairSettings, flow_of, level_of};
use super::lanes::HostLanes;
use super::memory::CountingMemory;
use super::receive::ReceiveBuffer;
use crate::engine::capture::check_codec;
use crate::engine::event::Scheduler;
use crate::engine::frame::{Control, Flags, Frame, HEADER_ROOM, PauseFrame, PauseRequest};
use crate::engine::port::Transmitter;
use crate::engine::program::Note;
use crate::engine::world::World;
use crate::plan::Addressing;

/// One NIC port of a host.
#[derive(Debug)]
pub(crate) struct Nic {
    pub(crate) transmitter: Transmitter,
    pub(crate) device: Device<CountingMemory>,
    pub(crate) receive: ReceiveBuffer,
    pub(crate) flows: FlowTable,
    /// Classes in which pause frames are obeyed and sent.
    pub(crate) lossless: ClassMask,
    obeyed: ClassMask,
    spoken: ClassMask,
    /// Classes whose sender this NIC has paused.
    pub(crate) pausing: ClassMask,
    /// Classes for which the broken NIC sends pause without end.
    pub(crate) storming: ClassMask,
    pause_request: PauseRequest,
    /// Acknowledgements leave in this class of the NIC, which nothing pauses, and travel in the class of their flow.
    unpaused_acknowledgements: Option<Class>,
    addressing: Addressing,
    /// InfiniBand's lanes, where the link is that.
    pub(crate) lanes: Option<Box<HostLanes>>,
    /// The first packet that the wire codec did not carry as it was.
    pub(crate) wire_fault: Option<String>,
    /// When the transport is to be woken, as far as it is scheduled.
    wake_at: Time,
    pub(super) domain: Domain,
    pub(super) key: u32,
    pub(super) completions: CompletionQueueId,
    /// What the ranks of jobs have not heard yet.
    pub(super) notes: Vec<Note>,
    pub(super) settings: QueuePairSettings,
}

/// Everything that a NIC is made of.
pub(crate) struct NicSetup {
    pub(crate) transmitter: Transmitter,
    pub(crate) config: DeviceConfig,
    pub(crate) receive: crate::plan::ReceivePath,
    pub(crate) lossless: ClassMask,
    pub(crate) pause_request: PauseRequest,
    pub(crate) unpaused_acknowledgements: Option<Class>,
    pub(crate) addressing: Addressing,
    pub(crate) lanes: Option<Box<HostLanes>>,
    pub(crate) queue_pairs: QueuePairSettings,
}

/// Completions never overflow: a flow has few requests posted at once, and the host takes completions at every event.
const COMPLETIONS: u32 = 1 << 20;

impl Nic {
    pub(crate) fn new(setup: NicSetup) -> Self {
        let mut device = Device::new(setup.config, CountingMemory::default());
        let domain = device.alloc_domain();
        let everything = RegionInit::new(
            0,
            u64::MAX,
            Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ,
        );
        let key = device
            .register_memory(domain, &everything)
            .expect("a fresh domain takes a region");
        let completions = device
            .create_cq(COMPLETIONS)
            .expect("a fresh device takes a completion queue");
        Self {
            transmitter: setup.transmitter,
            device,
            receive: ReceiveBuffer::new(setup.receive),
            flows: FlowTable::default(),
            lossless: setup.lossless,
            obeyed: setup.lossless,
            spoken: setup.lossless,
            pausing: ClassMask::NONE,
            storming: ClassMask::NONE,
            pause_request: setup.pause_request,
            unpaused_acknowledgements: setup.unpaused_acknowledgements,
            addressing: setup.addressing,
            lanes: setup.lanes,
            wire_fault: None,
            wake_at: Time::NEVER,
            domain,
            key,
            completions,
            notes: Vec::new(),
            settings: setup.queue_pairs,
        }
    }

    /// What its queue pairs are set to.
    pub(crate) fn settings(&self) -> &QueuePairSettings {
        &self.settings
    }

    /// When the last of its flows finished.
    pub(crate) fn last_finish(&self) -> Option<Time> {
        self.flows.last_finish()
    }

    /// Payload bytes that memory has taken.
    pub(crate) fn placed(&self) -> u64 {
        self.device.memory().placed
    }

    /// Notifications of congestion: CNPs sent, or, on InfiniBand, packets with BECN received.
    pub(super) fn notifications(&self) -> u64 {
        match self.lanes {
            Some(_) => self.transmitter.port.value(PortCounter::BecnReceived),
            None => self.device.counters().value(DeviceCounter::CnpSent),
        }
    }

    /// Gives a packet to the transport; returns how many payload bytes it placed.
    pub(super) fn take<S: Scheduler>(
        &mut self,
        now: Time,
        frame: &Frame,
        host: u32,
        world: &World,
        scheduler: &mut S,
    ) -> u64 {
        let Ok((header, _)) = TransportHeader::decode(&frame.header) else {
            debug_assert!(false, "a header that the transport made does not decode");
            return 0;
        };
        if self.lanes.is_some() {
            let counters = &mut self.transmitter.port;
            if header.bth.fecn {
                counters.count(PortCounter::FecnReceived);
            }
            if header.bth.becn {
                counters.count(PortCounter::BecnReceived);
            }
            if frame.flags.has(Flags::MULTICAST) {
                return self.hear(now, frame, &header, host, world, scheduler);
            }
        }
        self.answer_flow(now, frame.flow, host, world);
        let before = self.placed();
        let source = self.flow_path(frame.flow, host, world);
        self.device.handle_packet(
            now,
            Arrival {
                header: &header,
                payload: (),
                payload_length: u32::from(frame.payload),
                congestion: frame.flags.has(Flags::MARKED),
                source: &source,
                destination: None,
                grh: None,
            },
        );
        let placed = self.placed() - before;
        if placed > 0 {
            self.flow_received(now, frame.flow, placed, world, scheduler);
        }
        placed
    }

    /// The transport's alarm: true if it was due.
    pub(super) fn wake(&mut self, now: Time) -> bool {
        if now < self.wake_at {
            return false;
        }
        self.wake_at = Time::NEVER;
        self.device.handle_timeout(now);
        true
    }

    /// Sends what may be sent next, if the transmitter is free. True if that was a packet.
    pub(super) fn transmit<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        host: u32,
        world: &World,
        scheduler: &mut S,
    ) -> bool {
        if self.transmitter.must_wait(now, port, scheduler) {
            return false;
        }
        if let Some(pause) = self.transmitter.pauses.pop_front() {
            let pause = self
                .transmitter
                .occupy_for_pause(now, pause, world.sizes.pause);
            self.transmitter.tell_when_free(port, scheduler);
            scheduler.send_control(&self.transmitter.link, Control::Pause(pause));
            return false;
        }
        if let Some(lanes) = &mut self.lanes
            && let Some(credit) = lanes.credits.next_announcement()
        {
            let credit = self.transmitter.occupy_for_credit(now, credit);
            self.transmitter.tell_when_free(port, scheduler);
            scheduler.send_control(&self.transmitter.link, Control::Credit(credit));
            return false;
        }
        let Some(transmit) = self.next_packet(now) else {
            if self.lanes.is_some() && !self.device.waiting().is_empty() {
                self.transmitter.block(now);
            }
            self.set_alarm(now, port, scheduler);
            return false;
        };
        let frame = self.frame(&transmit, host, world);
        let length = u32::from(frame.length);
        let mut is_datagram = false;
        if let Some(lanes) = &mut self.lanes {
            lanes.credits.sent(frame.lane(), length);
            lanes.arbiter.sent(length);
            is_datagram = frame.flags.has(Flags::MULTICAST);
        }
        let busy = self.transmitter.occupy(now, length, frame.class);
        if let Some(tap) = &mut self.transmitter.tap {
            tap.packet(now, true, &frame, world);
        }
        if world.plan.recording.check_wire && self.wire_fault.is_none() {
            self.wire_fault = check_codec(&frame, world);
        }
        self.transmitter.tell_when_free(port, scheduler);
        self.transmitter.launch(now, busy, frame, scheduler);
        if is_datagram {
            self.has_left(now, world, scheduler);
        }
        true
    }

    /// Sends the next packet of any class, paused or not, although there is no link.
    pub(super) fn waste<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        host: u32,
        world: &World,
        scheduler: &mut S,
    ) -> Option<Frame> {
        if self.transmitter.is_busy(now) {
            self.transmitter.tell_when_free(port, scheduler);
            return None;
        }
        let Some(transmit) = self.device.poll_transmit(now, ClassMask::ALL) else {
            self.set_alarm(now, port, scheduler);
            return None;
        };
        let frame = self.frame(&transmit, host, world);
        self.transmitter
            .occupy_in_vain(now, u32::from(frame.length));
        self.transmitter.tell_when_free(port, scheduler);
        if frame.flags.has(Flags::MULTICAST) {
            self.reap(now, world, scheduler);
        }
        Some(frame)
    }

    /// A datagram has left, which completes its request.
    #[cold]
    fn has_left<S: Scheduler>(&mut self, now: Time, world: &World, scheduler: &mut S) {
        let counters = &mut self.transmitter.port;
        counters.count(PortCounter::MulticastTransmitPackets);
        self.reap(now, world, scheduler);
    }

    /// The packet that goes next, of those that are not paused or, on InfiniBand, have credit.
    #[inline]
    fn next_packet(&mut self, now: Time) -> Option<Transmit<()>> {
        let Some(lanes) = &mut self.lanes else {
            let open = ClassMask::ALL.minus(self.transmitter.paused.mask);
            return self.device.poll_transmit(now, open);
        };
        let mut ready = lanes.open();
        while let Some(lane) = lanes.arbiter.pick(ready) {
            let classes = HostLanes::classes_of(lane);
            if let Some(transmit) = self.device.poll_transmit(now, classes) {
                return Some(transmit);
            }
            ready &= !(1 << lane);
        }
        None
    }

    /// Makes sure that the transport is woken when it wants to be. Only called with nothing to send: while packets
    /// leave, every free transmitter looks at the transport again.
    fn set_alarm<S: Scheduler>(&mut self, now: Time, port: usize, scheduler: &mut S) {
        if let Some(time) = self.device.poll_timeout()
            && time < self.wake_at
        {
            self.wake_at = time.max(now);
            scheduler.at(self.wake_at, Timer::Wake(port).event());
        }
    }

    /// A packet of the transport as the network sees it.
    fn frame(&self, transmit: &Transmit<()>, host: u32, world: &World) -> Frame {
        let mut header = [0; HEADER_ROOM];
        let header_length = transmit.header.encode(&mut header);
        let flow = flow_of(&transmit.path);
        let address = &world.flows[flow as usize];
        let plan = &world.plan.flows[flow as usize];
        let forward = plan.source.0 == host;
        let (destination, entropy) = if forward {
            (address.destination, address.entropy)
        } else {
            (address.source, address.reverse_entropy)
        };
        let acknowledges = transmit.header.bth.opcode.operation() == Operation::Acknowledge;
        let class = match self.unpaused_acknowledgements {
            Some(_) if acknowledges => plan.class,
            _ => transmit.class,
        };
        let flags = Flags::default()
            .with(Flags::REVERSE, !forward)
            .with(Flags::ECN_CAPABLE, transmit.ecn_capable)
            .with(Flags::UNROUTABLE, self.addressing == Addressing::RoceV1);
        let size = self
            .settings
            .sizing
            .size(header_length, transmit.payload_length);
        let mut frame = Frame {
            time: Time::NEVER,
            destination,
            flow,
            entropy,
            length: size.as_u64().max(self.settings.smallest.as_u64()) as u16,
            payload: transmit.payload_length as u16,
            ingress: 0,
            class,
            mark: match plan.dscp {
                Some(dscp) if class == plan.class => dscp,
                _ => class.as_u8() << 3,
            },
            flags,
            header,
        };
        if let Some(lanes) = &self.lanes {
            lanes.mark(&mut frame, level_of(&transmit.path));
            if let Some(group) = plan.operation.group() {
                frame.address(group);
            }
        }
        frame
    }

    /// A pause frame has come in: true if something may be sent now that could not be before.
    pub(super) fn pause<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        frame: PauseFrame,
        scheduler: &mut S,
    ) -> bool {
        let transmitter = &mut self.transmitter;
        transmitter.count_pause(now, &frame);
        if !self.obeyed.contains(frame.class) {
            return false;
        }
        let obeyed = transmitter.obey(now, frame.class, frame.request);
        if let Some(end) = obeyed.ends {
            scheduler.at(end, Timer::PauseExpiry(port, frame.class).event());
        }
        obeyed.goes_on
    }

    /// Whether the switch must stop sending the class.
    pub(super) fn wants_pause(&self, class: Class) -> bool {
        self.spoken.contains(class) && !self.pausing.contains(class) && self.receive.is_over_xoff()
    }

    /// Whether the switch may send the class again.
    pub(super) fn allows_resume(&self, class: Class) -> bool {
        self.pausing.contains(class)
            && !self.storming.contains(class)
            && self.receive.is_under_xon()
    }

    /// Queues a pause or resume frame for `class`.
    pub(super) fn speak<S: Scheduler>(
        &mut self,
        now: Time,
        port: usize,
        class: Class,
        pause: bool,
        scheduler: &mut S,
    ) {
        let request = match (pause, self.storming.contains(class)) {
            (false, _) => PauseRequest::Resume,
            // A broken NIC repeats itself; one frame asks for the longest time that there is.
            (true, true) => PauseRequest::Quanta(u16::MAX),
            (true, false) => self.pause_request,
        };
        self.pausing = if pause {
            self.pausing.with(class)
        } else {
            self.pausing.without(class)
        };
        self.transmitter.pauses.push_back(PauseFrame {
            time: Time::NEVER,
            class,
            request,
        });
        if let PauseRequest::Quanta(quanta) = request {
            // Asked again at half time, so that the pause never runs out while it is meant.
            let half = self
                .transmitter
                .link
                .rate
                .time_for(Bytes::new(u64::from(quanta) * 32));
            scheduler.at(now + half, Timer::PauseRefresh(port, class).event());
        }
    }

    /// PFC is turned off for the class.
    pub(super) fn pfc_off(&mut self, now: Time, class: Class) {
        self.obeyed = self.obeyed.without(class);
        self.spoken = self.spoken.without(class);
        self.pausing = self.pausing.without(class);
        self.transmitter.forget_pauses(now, class);
    }

    /// The rate that rate control allows the sender of `flow`, if this NIC has it and it is under way.
    pub(super) fn allowed_rate(&mut self, now: Time, flow: u32) -> Option<Rate> {
        let number = self.flows.sending(flow)?;
        self.device.rate(number, now)
    }
}
