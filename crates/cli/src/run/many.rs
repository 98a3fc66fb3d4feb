//! Many runs at once: on all processors, with a count of those that are done, and with Ctrl-C, which keeps those.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::simulate::catch_interrupts;
use crate::terminal;

/// Calls `work` with how many threads to use, what ends it early, and whom to tell how many of the `count` runs are done.
pub(crate) fn run<T>(
    count: usize,
    threads: Option<usize>,
    quiet: bool,
    work: impl FnOnce(usize, &AtomicBool, &(dyn Fn(usize) + Sync)) -> T,
) -> T {
    let interrupt = Arc::new(AtomicBool::new(false));
    catch_interrupts(&interrupt);
    let threads = threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    let bar = match quiet || !terminal::is_watched() {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(count as u64),
    };
    let style = ProgressStyle::with_template("{elapsed:>4} {bar:24.cyan/dim} {pos} of {len} runs");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    let outcome = work(threads, &interrupt, &|done| bar.set_position(done as u64));
    bar.finish_and_clear();
    outcome
}
