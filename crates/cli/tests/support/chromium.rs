//! Which browser is installed, and how it is started by itself.

use std::process::Command;

use softfabric_testkit::programs::skipped;

const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// Never reach for the network: no updates, no experiments, no synchronisation.
pub(crate) const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// Its name; `None`, and a word about it, where no browser is installed.
pub(crate) fn installed(test: &str) -> Option<&'static str> {
    let starts = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let found = NAMES.iter().find(starts).copied();
    if found.is_none() {
        skipped(test, "no chromium is installed");
    }
    found
}
