//! What a machine has of Debian's programs, and their end.

use std::path::Path;
use std::process::Child;

/// Ends a program with the test.
pub(crate) struct Ends(pub(crate) Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a program can be started; says so where it cannot.
pub(crate) fn has(test: &str, program: &str, package: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        println!("SKIPPED {test}: `{program}` is not installed (package {package})");
    }
    found
}

/// Where the library is that leads Debian's programs to ibsim; says so where it is not.
pub(crate) fn umad2sim(test: &str) -> Option<String> {
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
        println!("SKIPPED {test}: `libumad2sim.so` is not there (package libumad2sim0)");
    }
    library
}
