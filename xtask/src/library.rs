//! The drop-in `libibverbs.so.1`, built, in a folder where it has the name that programs look for.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::process::{self, cargo, target_folder};

/// Builds the library and returns a folder for `LD_LIBRARY_PATH`: `name` under cargo's target folder.
///
/// # Errors
/// If it does not build, or the folder cannot be made.
pub(crate) fn in_folder(name: &str) -> Result<PathBuf> {
    let built = process::run(&mut cargo([
        "build",
        "--package",
        "softfabric-verbs",
        "--locked",
    ]))?;
    if !built.success {
        bail!("the library does not build");
    }
    let target = target_folder()?;
    let folder = target.join(name);
    std::fs::create_dir_all(&folder)?;
    let link = folder.join("libibverbs.so.1");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(target.join("debug/libsoftfabric_verbs.so"), &link)
        .with_context(|| format!("cannot make {}", link.display()))?;
    Ok(folder)
}
