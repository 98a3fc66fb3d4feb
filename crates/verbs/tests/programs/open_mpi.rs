//! Open MPI: four ranks of a C program that checks every byte, over UCX and over libfabric.
//!
//! All ways but the chosen one are closed, so ranks that the library does not join are not joined at all.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support;
use crate::support::place::{End, Place};
use crate::support::running::Running;

/// The compiled program; `None`, and a line that says why, where it cannot be.
fn compiled(test: &str) -> Option<PathBuf> {
    if !support::has(test, "mpirun", "openmpi-bin")
        || !support::has(test, "mpicc", "libopenmpi-dev")
    {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/mpi.c");
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("mpi-{test}-{}", std::process::id()));
    let output = Command::new("mpicc")
        .args(["-Wall", "-O1", "-o"])
        .args([&program, &source])
        .output()
        .expect("the compiler starts");
    let complaints = String::from_utf8_lossy(&output.stderr);
    if complaints.contains("mpi.h: No such file") || complaints.contains("cannot open data file") {
        support::skipped(test, "<mpi.h> is not there (package libopenmpi-dev)");
        return None;
    }
    assert!(output.status.success(), "{complaints}");
    Some(program)
}

/// Runs four ranks; `options` say what joins them.
#[allow(clippy::disallowed_methods, reason = "real programs take real time")]
fn ranks(test: &str, options: &[&str], variables: &[(&str, &str)]) {
    let Some(program) = compiled(test) else {
        return;
    };
    let path = program.display().to_string();
    // Asked to end, mpirun ends its ranks; they are no group of its own.
    let launcher = [
        "timeout",
        "--kill-after=5",
        "80",
        "mpirun",
        "--allow-run-as-root",
        "--oversubscribe",
        "-np",
        "4",
        // No remote hosts, so no remote shell.
        "--mca",
        "plm",
        "isolated",
    ];
    let words = [&launcher[..], options, &[&path]].concat();
    let command = Place::Here.command(End::Client, &words, variables);
    let deadline = Instant::now() + Duration::from_secs(90);
    let ended = Running::start(command, &words.join(" ")).finish(deadline);
    let _ = std::fs::remove_file(&program);
    assert!(ended.status.success(), "{}: {}", ended.status, ended.said);
    let good = ended.said.contains("4 ranks, all as it should be");
    assert!(good, "{}", ended.said);
}

const OVER_UCX: [&str; 6] = ["--mca", "pml", "ucx", "--mca", "osc", "ucx"];

#[test]
fn open_mpi_over_reliable_connections() {
    let variables = [
        ("UCX_TLS", "rc_v,self"),
        ("UCX_NET_DEVICES", "softfabric0:1"),
    ];
    ranks("open_mpi_over_reliable_connections", &OVER_UCX, &variables);
}

#[test]
fn open_mpi_over_datagrams() {
    let variables = [
        ("UCX_TLS", "ud_v,self"),
        ("UCX_NET_DEVICES", "softfabric0:1"),
    ];
    ranks("open_mpi_over_datagrams", &OVER_UCX, &variables);
}

#[test]
fn open_mpi_over_libfabric() {
    let options = ["--mca", "pml", "cm", "--mca", "mtl", "ofi"];
    let provider = ["--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm"];
    let test = "open_mpi_over_libfabric";
    ranks(test, &[&options[..], &provider].concat(), &[]);
}
