//! `cargo xtask test`: every check, one after another; a failure does not stop the others.

use anyhow::Result;

use crate::process::{self, Finished, cargo};
use crate::steps::{Outcome, Steps};
use crate::{
    counts, dependencies, documentation, kernel_interop, packages, rdma_core_tests, readme,
    rust_programs,
};

/// Runs every check; says whether all passed.
pub(crate) fn run(full: bool) -> Result<bool> {
    let mut steps = Steps::default();
    steps.run("packages for tests", |steps| packages::install(steps, full));
    steps.run("format", |_| {
        quality(&["fmt", "--all", "--", "--check"], "")
    });
    steps.run("crate dependencies", |_| {
        Ok(Outcome::check(dependencies::run()?))
    });
    steps.run("lints", |_| {
        let all = ["clippy", "--workspace", "--all-targets", "--locked"];
        quality(&[&all[..], &["--", "-D", "warnings"]].concat(), "")
    });
    steps.run("rustdoc", |_| {
        let all = [
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
            "--locked",
        ];
        quality(&all, "-D warnings")
    });
    steps.run("tests", |steps| tests(steps, full));
    steps.run("documentation tests", |steps| {
        count(
            steps,
            &process::run(&mut cargo(["test", "--workspace", "--doc", "--locked"]))?,
        )
    });
    steps.run("rdma-core's own tests", |_| rdma_core_tests::step());
    steps.run("examples of Rust crates", |_| rust_programs::step());
    steps.run("the kernel's soft-RoCE", |_| kernel_interop::step(full));
    steps.run("generated documentation", |_| {
        Ok(Outcome::check(documentation::run(true)?))
    });
    steps.run("fuzz targets compile", |_| fuzz());
    steps.run("licences and sources", |_| licences());
    if full {
        steps.run("benchmarks once", |_| {
            quality(&["bench", "--workspace", "--locked", "--", "--test"], "")
        });
    }
    steps.run("the README's command", |_| readme::smoke_run());
    Ok(steps.finish())
}

fn quality(arguments: &[&str], rustdoc_flags: &str) -> Result<Outcome> {
    let mut command = cargo(arguments.iter().copied());
    if !rustdoc_flags.is_empty() {
        command.env("RUSTDOCFLAGS", rustdoc_flags);
    }
    Ok(Outcome::check(process::run(&mut command)?.success))
}

/// All unit and integration tests: with nextest, where it is installed, which runs them side by side.
fn tests(steps: &mut Steps, full: bool) -> Result<Outcome> {
    let nextest = process::is_installed("cargo-nextest");
    let mut arguments = if nextest {
        vec![
            "nextest",
            "run",
            "--workspace",
            "--locked",
            "--no-fail-fast",
            "--color",
            "never",
        ]
    } else {
        vec![
            "test",
            "--workspace",
            "--all-targets",
            "--locked",
            "--no-fail-fast",
        ]
    };
    match (nextest, full) {
        // What a passing test prints is where it says that it skipped something.
        (true, true) => arguments.extend(["--success-output", "immediate", "--run-ignored", "all"]),
        (true, false) => arguments.extend(["--success-output", "immediate"]),
        (false, true) => arguments.extend(["--", "--include-ignored", "--show-output"]),
        (false, false) => arguments.extend(["--", "--show-output"]),
    }
    let finished = process::run_showing(&mut cargo(arguments), || {
        let mut shown = counts::PassingTestsInOneLine::default();
        move |line: &str| !nextest || shown.shows(line)
    })?;
    if !full {
        steps.note_skipped("tests marked as long: `cargo xtask test --full` runs them".to_owned());
    }
    count(steps, &finished)
}

/// Counts the tests of a run. A test that printed `SKIPPED …` passed without checking anything.
fn count(steps: &mut Steps, finished: &Finished) -> Result<Outcome> {
    let mut counts = counts::read(&finished.output);
    for reason in counts::skipped_by_themselves(&finished.output) {
        if counts.passed > 0 {
            counts.passed -= 1;
            counts.skipped += 1;
        }
        steps.note_skipped(format!("a test: {reason}"));
    }
    Ok(Outcome::tests(counts, finished.success))
}

fn fuzz() -> Result<Outcome> {
    if !process::workspace_root().join("fuzz/Cargo.toml").is_file() {
        return Ok(Outcome::Skipped("there is no fuzz/Cargo.toml".to_owned()));
    }
    quality(&["check", "--manifest-path", "fuzz/Cargo.toml"], "")
}

fn licences() -> Result<Outcome> {
    if !process::is_installed("cargo-deny") {
        return Ok(Outcome::Skipped(
            "cargo-deny is not installed (cargo install cargo-deny)".to_owned(),
        ));
    }
    // Advisories need a database from the network; licences, sources and bans do not.
    quality(
        &["deny", "--offline", "check", "licenses", "bans", "sources"],
        "",
    )
}
