//! The library exports what Debian's does, and what came later; no symbol more, none without a version.

mod support;

use std::collections::BTreeSet;
use std::process::Command;

const DEBIAN: &str = include_str!("data/debian-12.exports");
const LATER: &str = include_str!("data/later.exports");

/// The lines of `nm -D` for defined symbols, without addresses.
fn exported() -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(support::library())
        .output()
        .expect("nm starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split_once(' ').map(|(_, symbol)| symbol.to_owned()))
        // The version nodes themselves.
        .filter(|symbol| !symbol.starts_with("A "))
        .collect()
}

#[test]
fn the_symbols_and_versions_are_those_of_the_lists() {
    if !support::has(
        "the_symbols_and_versions_are_those_of_the_lists",
        "nm",
        "binutils",
    ) {
        return;
    }
    assert_eq!(DEBIAN.lines().count(), 180);
    let wanted: BTreeSet<String> = DEBIAN
        .lines()
        .chain(LATER.lines())
        .map(str::to_owned)
        .collect();
    let found = exported();
    let missing: Vec<_> = wanted.difference(&found).collect();
    let excess: Vec<_> = found.difference(&wanted).collect();
    assert!(
        missing.is_empty() && excess.is_empty(),
        "missing {missing:#?}, too much {excess:#?}"
    );
}

#[test]
fn the_name_of_the_library_is_the_one_that_programs_ask_for() {
    if !support::has(
        "the_name_of_the_library_is_the_one_that_programs_ask_for",
        "readelf",
        "binutils",
    ) {
        return;
    }
    let output = Command::new("readelf")
        .arg("-dW")
        .arg(support::library())
        .output()
        .expect("readelf starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Library soname: [libibverbs.so.1]"), "{text}");
}

/// Programs that load the library themselves ask for a symbol of a version (NCCL does).
#[test]
fn a_loading_program_finds_each_version() {
    let test = "a_loading_program_finds_each_version";
    let source = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdio.h>
        int main(int argc, char **argv) {
            void *library = dlopen("libibverbs.so.1", RTLD_NOW);
            if (!library) { puts(dlerror()); return 1; }
            for (int i = 1; i + 1 < argc; i += 2) {
                if (!dlvsym(library, argv[i], argv[i + 1])) { puts(dlerror()); return 2; }
            }
            return 0;
        }"#;
    let Some(program) = support::compile(test, "versions", source) else {
        return;
    };
    let symbols = DEBIAN.lines().chain(LATER.lines()).flat_map(|line| {
        let (name, version) = line[2..].split_once('@').expect("a version");
        [name.to_owned(), version.trim_start_matches('@').to_owned()]
    });
    let output = Command::new(program)
        .args(symbols)
        .env("LD_LIBRARY_PATH", support::library_folder())
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Everything that Debian links against the library loads with ours, every symbol bound.
#[test]
fn debian_s_programs_and_libraries_bind() {
    let test = "debian_s_programs_and_libraries_bind";
    if !support::has(test, "ldd", "libc-bin") {
        return;
    }
    let candidates = [
        "/usr/bin/ibv_devinfo",
        "/usr/bin/ibv_rc_pingpong",
        "/usr/bin/ibv_xsrq_pingpong",
        "/usr/bin/ib_write_bw",
        "/usr/bin/ib_atomic_lat",
        "/usr/bin/qperf",
        "/usr/bin/rping",
        "/usr/lib/x86_64-linux-gnu/librdmacm.so.1",
        "/usr/lib/x86_64-linux-gnu/libmlx5.so.1",
        "/usr/lib/x86_64-linux-gnu/libefa.so.1",
        "/usr/lib/x86_64-linux-gnu/libmana.so.1",
        "/usr/lib/x86_64-linux-gnu/ucx/libuct_ib.so.0",
        "/usr/lib/x86_64-linux-gnu/libfabric.so.1",
    ];
    let there: Vec<_> = candidates
        .iter()
        .filter(|path| std::path::Path::new(path).exists())
        .collect();
    if there.is_empty() {
        support::skipped(
            test,
            "no program with RDMA is installed (package ibverbs-utils, perftest)",
        );
        return;
    }
    for path in there {
        let output = Command::new("ldd")
            .args(["-r", path])
            .env("LD_LIBRARY_PATH", support::library_folder())
            .output()
            .expect("ldd starts");
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        for problem in [
            "undefined symbol",
            "no version information",
            "not defined in file",
            "not found",
        ] {
            assert!(!text.contains(problem), "{path}: {text}");
        }
    }
}
