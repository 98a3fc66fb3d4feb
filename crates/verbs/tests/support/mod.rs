//! Where the built library is, what this machine has, and how programs run on it.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod namespace;
pub(crate) mod pair;
pub(crate) mod place;
pub(crate) mod running;

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use softfabric_testkit::programs::{has, skipped};

/// The built shared library: it lies beside the test program.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.parent().expect("a program lies in a folder");
    let library = folder.join("libsoftfabric_verbs.so");
    assert!(
        library.is_file(),
        "cargo builds {} before the tests",
        library.display()
    );
    library
}

/// A folder in which the library has the name that programs look for; for `LD_LIBRARY_PATH`.
pub(crate) fn library_folder() -> PathBuf {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("library-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("cargo's folder for tests can be written to");
    let link = folder.join("libibverbs.so.1");
    // Tests run side by side in one process: the first makes the link.
    match std::os::unix::fs::symlink(library(), &link) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            panic!("{}: {error}", link.display())
        }
        _ => folder,
    }
}

/// Runs a C compiler over `source`; `None` if there is none, or the verbs headers are missing.
pub(crate) fn compile(test: &str, name: &str, source: &str) -> Option<PathBuf> {
    compile_with(test, name, source, &[])
}

/// The same with more libraries, as the linker's options.
pub(crate) fn compile_with(
    test: &str,
    name: &str,
    source: &str,
    libraries: &[&str],
) -> Option<PathBuf> {
    if !has(test, "cc", "gcc") {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let probe = Command::new("cc")
        .args([
            "-fsyntax-only",
            "-include",
            "infiniband/verbs.h",
            "-x",
            "c",
            "/dev/null",
        ])
        .output()
        .expect("the compiler starts");
    if !probe.status.success() {
        skipped(
            test,
            "<infiniband/verbs.h> is not there (package libibverbs-dev)",
        );
        return None;
    }
    let (input, output) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&input, source).expect("cargo's folder for tests can be written to");
    let compiled = Command::new("cc")
        .args(["-w", "-O1", "-o"])
        .args([&output, &input])
        // Linked as a program of today would be, against the library itself.
        .arg("-Wl,--as-needed")
        .arg(library_folder().join("libibverbs.so.1"))
        .args(["-ldl", "-lpthread"])
        .args(libraries)
        .output()
        .expect("the compiler starts");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    Some(output)
}
