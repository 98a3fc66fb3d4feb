//! How far a run is, on standard error, while a person looks at it.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use softfabric_fabric::engine::Progress;
use softfabric_units::Time;

use crate::format;
use crate::terminal;

/// The bar counts in thousandths.
const FULL: u64 = 1_000;

/// A bar that shows simulated time and flows.
pub(super) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// Nothing is shown to nobody: without a terminal, or where quiet was asked for, it stays silent.
    pub(super) fn new(quiet: bool) -> Self {
        if quiet || !terminal::is_watched() {
            return Self {
                bar: ProgressBar::hidden(),
            };
        }
        let bar = ProgressBar::new(FULL);
        let style = ProgressStyle::with_template("{elapsed:>4} {bar:24.cyan/dim} {wide_msg}");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("━━─"));
        }
        bar.set_message("starting");
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    pub(super) fn show(&self, progress: &Progress) {
        let by_flows = share(progress.flows_done, progress.flows);
        let by_time = share(progress.simulated.as_picos(), progress.stop.as_picos());
        self.bar.set_position(by_flows.max(by_time).min(FULL));
        self.bar.set_message(format!(
            "{} simulated, {} of {} flows done, {} packet hops",
            format::span(progress.simulated.since(Time::ZERO)),
            format::grouped(progress.flows_done),
            format::grouped(progress.flows),
            format::short_count(progress.link_hops as f64),
        ));
    }

    pub(super) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn share(part: u64, whole: u64) -> u64 {
    match whole {
        0 => 0,
        _ => (u128::from(part) * u128::from(FULL) / u128::from(whole)) as u64,
    }
}
