//! `cargo xtask rdma-core-tests`: the test suite of rdma-core, as Debian ships it, against our `libibverbs.so.1`.
//!
//! ```text
//! /usr/share/doc/rdma-core/tests ── unpacked ──► runner.py, one process for each class of tests
//!                                                  │ a line of JSON when a test begins and when it ends
//!                                                  ▼
//!                        table, compared with expected.txt: a test that passed before has to pass
//! ```
//!
//! Some tests wait for ever where a device does not work. Each has a time limit of its own; the process of one that
//! exceeds it is ended, and another one goes on with the tests after it.

mod run;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::workspace_root;
use crate::steps::Outcome;
use table::{Finding, Table};

/// Where Debian puts the tests (packages `rdma-core` and `python3-pyverbs`).
const TESTS: &str = "/usr/share/doc/rdma-core/tests";
/// Debian's Python has the bindings; another in the search path has not.
const PYTHON: &str = "/usr/bin/python3";
/// What has to pass, beside this file.
const EXPECTED: &str = "xtask/src/rdma_core_tests/expected.txt";
/// Modules of one vendor's hardware.
const VENDORS: [&str; 3] = ["mlx5", "efa", "cuda"];

/// What is asked for on the command line.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Only tests whose name contains one of these.
    pub(crate) names: Vec<String>,
    /// How many seconds a test may take.
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: u64,
    /// Write down what passes now as what has to pass.
    #[arg(long)]
    pub(crate) update: bool,
}

/// Runs the tests and prints the table; says whether everything passes that has to.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let Some(missing) = missing() {
        bail!("{missing}");
    }
    let library = crate::library::in_folder("rdma-core-tests/library")?;
    let table = all(options, &library)?;
    print!("{}", table.render());
    let path = workspace_root().join(EXPECTED);
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if options.update {
        if !options.names.is_empty() {
            bail!("--update writes the whole list: it needs a run of all tests");
        }
        std::fs::write(&path, table.passing())
            .with_context(|| format!("cannot write {EXPECTED}"))?;
        println!("{EXPECTED} is written");
        return Ok(true);
    }
    Ok(judge(&table, &expected, options))
}

/// The step of `cargo xtask test`: all tests, or a word why not.
pub(crate) fn step() -> Result<Outcome> {
    if let Some(missing) = missing() {
        return Ok(Outcome::Skipped(missing));
    }
    let options = Options {
        limit: 20,
        ..Options::default()
    };
    run(&options).map(Outcome::check)
}

/// What is not there of Debian's packages.
fn missing() -> Option<String> {
    let tests = Path::new(TESTS).join("run_tests.py");
    let bindings = Command::new(PYTHON)
        .args(["-c", "import pyverbs.device"])
        .output();
    if !tests.is_file() {
        return Some(format!("{TESTS} is not there (apt-get install rdma-core)"));
    }
    match bindings {
        Ok(output) if output.status.success() => None,
        _ => Some("Python's pyverbs is not there (apt-get install python3-pyverbs)".to_owned()),
    }
}

/// Compares with what has to pass, and tells of every difference.
fn judge(table: &Table, expected: &str, options: &Options) -> bool {
    let findings = table.compare(expected, |name| {
        options.names.is_empty() || wanted(name, &options.names)
    });
    for finding in &findings {
        println!("{finding}");
    }
    !findings
        .iter()
        .any(|finding| matches!(finding, Finding::Regression { .. }))
}

fn wanted(name: &str, wishes: &[String]) -> bool {
    wishes.is_empty() || wishes.iter().any(|wish| name.contains(wish.as_str()))
}

/// Runs every test that is wanted.
fn all(options: &Options, library: &Path) -> Result<Table> {
    let tests = unpack(library)?;
    let runner = run::Runner {
        python: PYTHON,
        tests: &tests,
        library,
        limit: Duration::from_secs(options.limit),
    };
    let names = runner.list()?.into_iter();
    let names = names.filter(|name| !VENDORS.iter().any(|vendor| name.contains(vendor)));
    let names: Vec<String> = names.filter(|name| wanted(name, &options.names)).collect();
    if names.is_empty() {
        bail!("no test has such a name");
    }
    println!("{} tests, {} s each at most", names.len(), options.limit);
    let mut table = Table::new(runner.run(&names)?);
    // Another process of the machine may have been in the way; what fails for a reason of its own fails again.
    let failed = table.failed();
    if !failed.is_empty() {
        println!("{} did not pass and run once more", failed.len());
        table.correct(runner.run(&failed)?);
    }
    Ok(table)
}

/// Copies the tests: Debian compresses the longer ones.
fn unpack(library: &Path) -> Result<PathBuf> {
    let folder = library.with_file_name("tests");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    for entry in std::fs::read_dir(TESTS)? {
        let from = entry?.path();
        let name = from
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let Some(plain) = name.strip_suffix(".gz") else {
            if from.is_file() {
                std::fs::copy(&from, folder.join(&name))?;
            }
            continue;
        };
        let unpacked = Command::new("gzip")
            .arg("-dc")
            .arg(&from)
            .output()
            .context("cannot start gzip")?;
        std::fs::write(folder.join(plain), unpacked.stdout)?;
    }
    Ok(folder)
}
