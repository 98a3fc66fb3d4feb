//! Running the engine: with progress, and with Ctrl-C, which ends the run early and keeps what there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use softfabric_fabric::engine::{self, Progress, RunOptions};
use softfabric_fabric::plan::Plan;
use softfabric_fabric::results::Results;

use super::progress::Bar;
use crate::failure::Failure;
use crate::terminal;

/// A run that has ended.
pub(crate) struct Run {
    pub(crate) results: Results,
    /// How long it took by a real clock.
    pub(crate) wall_seconds: f64,
}

/// The exit code of a program that was ended by Ctrl-C.
const KILLED_BY_INTERRUPT: i32 = 130;

/// Runs the plan to its end, or until Ctrl-C.
///
/// # Errors
/// If the plan contradicts itself.
pub(crate) fn simulate(plan: &Plan, threads: usize, quiet: bool) -> Result<Run, Failure> {
    let interrupt = Arc::new(AtomicBool::new(false));
    catch_interrupts(&interrupt);
    let bar = Bar::new(quiet);
    let mut show = |progress: Progress| bar.show(&progress);
    #[expect(
        clippy::disallowed_methods,
        reason = "a person wants to know how long the run took; nothing simulated sees it"
    )]
    let begin = Instant::now();
    let outcome = engine::run(
        plan,
        &mut RunOptions {
            threads,
            interrupt: Some(&interrupt),
            progress: Some(&mut show),
            ..RunOptions::default()
        },
    );
    let wall_seconds = begin.elapsed().as_secs_f64();
    bar.finish();
    Ok(Run {
        results: outcome?,
        wall_seconds,
    })
}

/// The first Ctrl-C asks the engine to stop; the second stops everything.
pub(super) fn catch_interrupts(interrupt: &Arc<AtomicBool>) {
    let interrupt = Arc::clone(interrupt);
    let caught = ctrlc::set_handler(move || {
        if interrupt.load(Ordering::Relaxed) {
            std::process::exit(KILLED_BY_INTERRUPT);
        }
        // Said first: once the engine is told, the program may end before this thread goes on.
        terminal::warn("interrupted: writing what there is (Ctrl-C again to stop at once)");
        interrupt.store(true, Ordering::Relaxed);
    });
    if let Err(error) = caught {
        terminal::warn(&format!("Ctrl-C will lose the run: {error}"));
    }
}
