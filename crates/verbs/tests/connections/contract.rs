//! A C program checks what librdmacm promises, call by call.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support;
use crate::support::place::{End, Place};
use crate::support::running::Running;

/// The compiled program; `None`, and a line that says why, where it cannot be.
fn compiled(test: &str) -> Option<PathBuf> {
    if !support::has(test, "cc", "gcc") {
        return None;
    }
    let probe = Command::new("cc")
        .args([
            "-fsyntax-only",
            "-include",
            "rdma/rdma_cma.h",
            "-x",
            "c",
            "/dev/null",
        ])
        .output()
        .expect("the compiler starts");
    if !probe.status.success() {
        support::skipped(
            test,
            "<rdma/rdma_cma.h> is not there (package librdmacm-dev)",
        );
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/connections.c");
    let program =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("connections-{}", std::process::id()));
    let output = Command::new("cc")
        .args(["-Wall", "-Werror", "-O1", "-o"])
        .args([&program, &source])
        .args(["-lrdmacm", "-libverbs"])
        .output()
        .expect("the compiler starts");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    Some(program)
}

#[test]
#[allow(clippy::disallowed_methods, reason = "real programs take real time")]
fn what_librdmacm_promises() {
    let test = "what_librdmacm_promises";
    let Some(program) = compiled(test) else {
        return;
    };
    let Some(place) = Place::one_host(test) else {
        return;
    };
    let words = program.display().to_string();
    let command = place.command(End::Server, &[&words], &[]);
    let running = Running::start(command, &words);
    let ended = running.finish(Instant::now() + Duration::from_secs(120));
    let _ = std::fs::remove_file(&program);
    assert!(ended.status.success(), "{}: {}", ended.status, ended.said);
    assert!(ended.said.contains("0 wrong"), "{}", ended.said);
}
