//! The library exports what Debian's does, and what came later; and a C program that was compiled against Debian's headers
//! finds its structures and its answers to mistakes as they should be.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use softfabric_testkit::programs::{has, skipped};

const DEBIAN: &str = include_str!("data/debian-12.exports");
const LATER: &str = include_str!("data/later.exports");

fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.parent().unwrap().join("libsoftfabric_umad.so");
    assert!(
        library.is_file(),
        "cargo builds {} first",
        library.display()
    );
    library
}

#[test]
fn the_symbols_and_versions_are_those_of_the_lists() {
    let test = "the_symbols_and_versions_are_those_of_the_lists";
    if !has(test, "nm", "binutils") {
        return;
    }
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let found: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_once(' ').map(|(_, symbol)| symbol))
        // The version nodes themselves.
        .filter(|symbol| !symbol.starts_with("A "))
        .collect();
    assert_eq!(DEBIAN.lines().count(), 39);
    let wanted: BTreeSet<&str> = DEBIAN.lines().chain(LATER.lines()).collect();
    assert_eq!(found, wanted);
}

/// Compiled against Debian's headers, run on our library without a server.
#[test]
fn a_c_program_finds_what_the_headers_say() {
    let test = "a_c_program_finds_what_the_headers_say";
    if !has(test, "cc", "gcc") {
        return;
    }
    if !Path::new("/usr/include/infiniband/umad.h").is_file() {
        return skipped(
            test,
            "<infiniband/umad.h> is not there (package libibumad-dev)",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (
        folder.path().join("contract.c"),
        folder.path().join("contract"),
    );
    std::fs::write(&source, include_str!("c/contract.c")).unwrap();
    let real = folder.path().join("libibumad.so.3");
    symlink(library(), &real).unwrap();
    let compiled = Command::new("cc")
        .args(["-w", "-O1", "-o"])
        .args([&program, &source, &real])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    let output = Command::new(program)
        .env("LD_LIBRARY_PATH", folder.path())
        .env("IBSIM_SOCKNAME", "softfabric-nobody-serves-this")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let wrong: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("NOT OK"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(
        output.status.success() && text.ends_with("done\n"),
        "{text}"
    );
    assert!(
        text.lines().filter(|line| line.starts_with("ok ")).count() >= 40,
        "{text}"
    );
}
