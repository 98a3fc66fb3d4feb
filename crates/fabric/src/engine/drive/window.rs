//! The window-synchronous driver.
//!
//! Time advances in windows no longer than the lookahead: the least time between a cause at one node and its effect at
//! another. Inside a window every node works through its own events alone, in order, so nodes can be worked on in any
//! order and by any number of threads without changing one bit of the result.
//!
//! ```text
//!           window k                window k+1
//! node 0  ──●──●────●──┐         ┌──●───────●──
//! node 1  ─────●───●───┤ packets ├─────●──●────
//! node 2  ──●──────────┘  cross  └──●──────────
//! ```
//!
//! A window starts at the first event of the whole network, so idle time costs nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use softfabric_units::Time;

use super::super::event::Signal;
use super::super::world::World;
use super::part::{Crossing, Part};
use super::{Pause, Triggers, Until};

/// The driver's own state between calls.
#[derive(Debug)]
pub(crate) struct Windows {
    /// The part that each node belongs to.
    pub(crate) part_of: Vec<u16>,
    triggers: Triggers,
    pub(crate) windows: u64,
}

/// What the caller sees of a run under way.
pub(crate) struct Watcher<'a> {
    pub(crate) interrupt: Option<&'a AtomicBool>,
    pub(crate) progress: Option<&'a mut (dyn FnMut(Time, u64) + Send)>,
}

/// How many windows pass between two reports of progress.
const REPORT_EVERY: u64 = 512;
/// Or how many hops, if that is sooner.
const REPORT_HOPS: u64 = 500_000;

impl Windows {
    pub(crate) fn new(part_of: Vec<u16>, triggers: Triggers) -> Self {
        Self {
            part_of,
            triggers,
            windows: 0,
        }
    }

    /// Runs all parts until something in `until` holds.
    pub(crate) fn run(
        &mut self,
        parts: &mut [Part],
        world: &World,
        until: Until,
        watcher: &mut Watcher<'_>,
    ) -> Pause {
        for sender in 0..parts.len() {
            for receiver in 0..parts.len() {
                // What timed actions have sent since the last window.
                let mut boxed = std::mem::take(parts[sender].outbox(receiver));
                parts[receiver].accept(&mut boxed);
            }
        }
        if let [part] = parts {
            self.run_alone(part, world, until, watcher)
        } else {
            self.run_together(parts, world, until, watcher)
        }
    }

    fn run_alone(
        &mut self,
        part: &mut Part,
        world: &World,
        until: Until,
        watcher: &mut Watcher<'_>,
    ) -> Pause {
        let mut reported = part.work.link_hops;
        loop {
            let mut signals = part.take_signals();
            signals.sort_unstable();
            deliver(&signals, &mut self.triggers, part, &self.part_of, world);
            let start = part.first_event();
            if start >= until.end {
                return if start == Time::NEVER {
                    Pause::Drained
                } else {
                    Pause::Reached
                };
            }
            if until.when_done
                && world.flows_left.load(Ordering::Relaxed) == 0
                && part.balance() == 0
            {
                return Pause::Done;
            }
            let end = start.saturating_add(world.lookahead).min(until.end);
            part.run_window(end, world, &self.part_of);
            self.windows += 1;
            // A window of a large fabric takes long: whoever waits is heard after each.
            let asked = watcher
                .interrupt
                .is_some_and(|interrupt| interrupt.load(Ordering::Relaxed));
            if asked {
                return Pause::Interrupted;
            }
            let due = self.windows.is_multiple_of(REPORT_EVERY)
                || part.work.link_hops - reported >= REPORT_HOPS;
            if due && let Some(progress) = &mut watcher.progress {
                reported = part.work.link_hops;
                progress(end, part.work.link_hops);
            }
        }
    }

    fn run_together(
        &mut self,
        parts: &mut [Part],
        world: &World,
        until: Until,
        watcher: &mut Watcher<'_>,
    ) -> Pause {
        let count = parts.len();
        let shared = Shared {
            meeting: Meeting::new(count),
            boxes: (0..count * count).map(|_| Mutex::new(Vec::new())).collect(),
            signals: [Mutex::new(Vec::new()), Mutex::new(Vec::new())],
            first_event: [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)],
            balance: [AtomicI64::new(0), AtomicI64::new(0)],
            link_hops: AtomicU64::new(0),
            interrupted: AtomicBool::new(false),
        };
        let part_of = &self.part_of;
        let triggers = &self.triggers;
        let windows_before = self.windows;
        let outcomes: Vec<(Pause, u64, Triggers)> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            let (lead, others) = match parts.split_first_mut() {
                Some(split) => split,
                None => return Vec::new(),
            };
            for (index, part) in others.iter_mut().enumerate() {
                let shared = &shared;
                threads.push(scope.spawn(move || {
                    let mut nobody = Watcher {
                        interrupt: None,
                        progress: None,
                    };
                    work(
                        index + 1,
                        count,
                        part,
                        shared,
                        triggers.clone(),
                        part_of,
                        world,
                        until,
                        windows_before,
                        &mut nobody,
                    )
                }));
            }
            let mine = work(
                0,
                count,
                lead,
                &shared,
                triggers.clone(),
                part_of,
                world,
                until,
                windows_before,
                watcher,
            );
            let mut all = vec![mine];
            for thread in threads {
                match thread.join() {
                    Ok(outcome) => all.push(outcome),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        });
        match outcomes.into_iter().next() {
            Some((pause, windows, triggers)) => {
                self.windows = windows;
                self.triggers = triggers;
                pause
            }
            None => Pause::Drained,
        }
    }
}

/// What the threads share.
struct Shared {
    meeting: Meeting,
    /// What crosses from part a to part b, at a · count + b.
    boxes: Vec<Mutex<Vec<Crossing>>>,
    // Of what is gathered anew for each window there are two, used in turn: one is reset while the other is in use.
    signals: [Mutex<Vec<Signal>>; 2],
    /// The first event of all parts.
    first_event: [AtomicU64; 2],
    balance: [AtomicI64; 2],
    link_hops: AtomicU64,
    interrupted: AtomicBool,
}

/// The loop of one thread. All threads take the same decisions from the same shared values.
#[expect(
    clippy::too_many_arguments,
    reason = "the loop's whole state, handed over once per thread"
)]
fn work(
    me: usize,
    count: usize,
    part: &mut Part,
    shared: &Shared,
    mut triggers: Triggers,
    part_of: &[u16],
    world: &World,
    until: Until,
    mut windows: u64,
    watcher: &mut Watcher<'_>,
) -> (Pause, u64, Triggers) {
    let mut turn = 0;
    loop {
        // Exchange: everybody hands over, then everybody takes.
        for receiver in (0..count).filter(|&receiver| receiver != me) {
            let outbox = part.outbox(receiver);
            if !outbox.is_empty() {
                lock(&shared.boxes[me * count + receiver]).append(outbox);
            }
        }
        let signals = part.take_signals();
        if !signals.is_empty() {
            lock(&shared.signals[turn]).extend(signals);
        }
        if me == 0
            && watcher
                .interrupt
                .is_some_and(|interrupt| interrupt.load(Ordering::Relaxed))
        {
            shared.interrupted.store(true, Ordering::Relaxed);
        }
        shared.meeting.wait();
        for sender in (0..count).filter(|&sender| sender != me) {
            part.accept(&mut lock(&shared.boxes[sender * count + me]));
        }
        if me == 0 {
            // Everybody has read these before coming here, and nobody adds to them before all have met again.
            lock(&shared.signals[1 - turn]).clear();
        }
        let mut signals = lock(&shared.signals[turn]).clone();
        signals.sort_unstable();
        deliver(&signals, &mut triggers, part, part_of, world);
        shared.first_event[turn].fetch_min(part.first_event().as_picos(), Ordering::Relaxed);
        let flows_left = world.flows_left.load(Ordering::Relaxed);
        if until.when_done && flows_left == 0 {
            shared.balance[turn].fetch_add(part.balance(), Ordering::Relaxed);
        }
        let interrupted = shared.interrupted.load(Ordering::Relaxed);
        shared.meeting.wait();
        if me == 0 {
            shared.first_event[1 - turn].store(u64::MAX, Ordering::Relaxed);
            shared.balance[1 - turn].store(0, Ordering::Relaxed);
        }
        let start = Time::from_picos(shared.first_event[turn].load(Ordering::Relaxed));
        let balance = shared.balance[turn].load(Ordering::Relaxed);
        turn = 1 - turn;
        let pause = if start >= until.end {
            Some(if start == Time::NEVER {
                Pause::Drained
            } else {
                Pause::Reached
            })
        } else if until.when_done && flows_left == 0 && balance == 0 {
            Some(Pause::Done)
        } else if interrupted {
            Some(Pause::Interrupted)
        } else {
            None
        };
        if let Some(pause) = pause {
            return (pause, windows, triggers);
        }
        let end = start.saturating_add(world.lookahead).min(until.end);
        let before = part.work.link_hops;
        part.run_window(end, world, part_of);
        windows += 1;
        shared
            .link_hops
            .fetch_add(part.work.link_hops - before, Ordering::Relaxed);
        if me == 0
            && windows.is_multiple_of(REPORT_EVERY)
            && let Some(progress) = &mut watcher.progress
        {
            progress(end, shared.link_hops.load(Ordering::Relaxed));
        }
    }
}

/// Starts the flows of this part that the signals, already in order, set off.
fn deliver(
    signals: &[Signal],
    triggers: &mut Triggers,
    part: &mut Part,
    part_of: &[u16],
    world: &World,
) {
    for &signal in signals {
        triggers.hit(signal, world.plan, |flow, time| {
            let host = world.flows[flow as usize].starter;
            if part.holds(host) {
                part.with_node(host, part_of, |node, outlet| {
                    node.start_flow(flow, time, outlet);
                });
            }
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panic on another thread ends the run; until then what it left is still consistent.
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A place where all threads wait for each other: spins for a moment, then lets others run.
struct Meeting {
    count: usize,
    here: AtomicUsize,
    round: AtomicUsize,
}

const SPINS: u32 = 2_000;

impl Meeting {
    fn new(count: usize) -> Self {
        Self {
            count,
            here: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
        }
    }

    fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.here.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            self.here.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.round.load(Ordering::Acquire) == round {
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}
