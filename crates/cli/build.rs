//! Builds the drop-in libraries that the binary carries: `softfabric exec` unpacks them, so that one file is enough.
//!
//! They are C libraries, which cargo does not build for a dependent. So cargo is asked once more, in a folder of its own;
//! only what has changed is built again.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates that end up in the libraries.
const CRATES: [&str; 9] = [
    "units",
    "telemetry",
    "wire",
    "transport",
    "subnet",
    "adapter",
    "cabi",
    "umad",
    "verbs",
];
/// The libraries' crates, and the variables by which the binary finds what was built.
const LIBRARIES: [(&str, &str); 2] = [
    ("verbs", "SOFTFABRIC_LIBIBVERBS"),
    ("umad", "SOFTFABRIC_LIBIBUMAD"),
];
/// The profile of the workspace that is made for them.
const PROFILE: &str = "carried";

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    println!(
        "cargo::rerun-if-changed={}",
        workspace.join("Cargo.toml").display()
    );
    for name in CRATES {
        for part in ["src", "build.rs", "Cargo.toml"] {
            let path = workspace.join("crates").join(name).join(part);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
    let folder = build(&workspace);
    for (name, variable) in LIBRARIES {
        let library = folder.join(format!("libsoftfabric_{name}.so"));
        println!("cargo::rustc-env={variable}={}", library.display());
    }
}

/// Builds the libraries and returns the folder that they are in.
fn build(workspace: &Path) -> PathBuf {
    let variable = |name| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let folder = PathBuf::from(variable("OUT_DIR")).join("library");
    let target = variable("TARGET");
    let status = Command::new(variable("CARGO"))
        .current_dir(workspace)
        .args(["build", "--quiet", "--lib"])
        .args(LIBRARIES.map(|(name, _)| format!("--package=softfabric-{name}")))
        .args(["--profile", PROFILE])
        .arg("--target")
        .arg(&target)
        .arg("--target-dir")
        .arg(&folder)
        // Those of the outer cargo: another tool in the compiler's place, and flags for the binary.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CLIPPY_ARGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("CARGO_TARGET_DIR")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("the drop-in libraries were not built: {status}"),
        Err(error) => panic!("cargo does not start to build the drop-in libraries: {error}"),
    }
    folder.join(target).join(PROFILE)
}
