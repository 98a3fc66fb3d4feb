//! Other people's programs in tests: whether the machine has them, and their end.

use std::path::Path;
use std::process::Child;

/// Ends a program with the test.
#[derive(Debug)]
pub struct Ends(pub Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says that a test checked nothing.
pub fn skipped(test: &str, reason: &str) {
    println!("SKIPPED {test}: {reason}");
}

/// Whether a program can be started from the search path; says so where it cannot.
pub fn has(test: &str, program: &str, package: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        skipped(
            test,
            &format!("`{program}` is not installed (package {package})"),
        );
    }
    found
}

/// Where the library is that leads Debian's programs to ibsim; says so where it is not.
pub fn umad2sim(test: &str) -> Option<String> {
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib",
    ];
    let library = folders
        .iter()
        .map(|folder| format!("{folder}/umad2sim/libumad2sim.so"))
        .find(|path| Path::new(path).is_file());
    if library.is_none() {
        skipped(test, "`libumad2sim.so` is not there (package libumad2sim0)");
    }
    library
}
