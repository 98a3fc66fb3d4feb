//! `cargo xtask rust-programs`: the examples of Rust crates that other people wrote, as they published them, run on our
//! `libibverbs.so.1`.
//!
//! ```text
//! registry ── cargo fetch ──► target/rust-programs/<crate> ── cargo build --examples --locked ──► run.rs
//! ```
//!
//! cargo checks what it fetches against the registry's hashes. Each crate is built in a copy of its own, with the lock file
//! that its authors published; only the word that it is no member of this workspace is added to its manifest.

mod run;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{self, cargo, target_folder};
use crate::steps::Outcome;

/// A published crate.
struct Published {
    name: &'static str,
    version: &'static str,
}

/// Crates whose examples run: bindings and safe layers over libibverbs and librdmacm.
const CRATES: [Published; 2] = [
    Published {
        name: "sideway",
        version: "0.4.3",
    },
    Published {
        name: "ibverbs",
        version: "0.9.2",
    },
];

/// What the crates' build scripts call: a program or a file, and Debian's package.
const NEEDED: [(&str, &str); 4] = [
    ("cmake", "cmake"),
    ("cc", "gcc"),
    ("/usr/include/infiniband/verbs.h", "libibverbs-dev"),
    (LIBCLANG, "libclang-dev"),
];

/// A library that bindings are generated with. Its release is part of its file's name.
pub(crate) const LIBCLANG: &str = "libclang";

/// Builds and runs all examples; says whether all did what they should.
pub(crate) fn run() -> Result<bool> {
    step()?.into_verdict()
}

/// The step of `cargo xtask test`: all examples, or a word why not.
pub(crate) fn step() -> Result<Outcome> {
    if let Some(missing) = missing() {
        return Ok(Outcome::Skipped(missing));
    }
    let folder = folder()?;
    let Some(sources) = fetch(&folder)? else {
        let reason = "the crates cannot be fetched: is the registry out of reach?";
        return Ok(Outcome::Skipped(reason.to_owned()));
    };
    let library = crate::library::in_folder("rust-programs/library")?;
    let mut good = true;
    for (published, source) in CRATES.iter().zip(&sources) {
        let examples = build(&folder, published, source)?;
        good &= run::examples(published.name, &examples, &library)?;
    }
    Ok(Outcome::check(good))
}

/// What is not there.
fn missing() -> Option<String> {
    let missing: Vec<_> = NEEDED
        .iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| *package)
        .collect();
    (!missing.is_empty()).then(|| format!("apt-get install {}", missing.join(" ")))
}

/// Whether a program, a file or libclang is there.
pub(crate) fn is_there(program: &str) -> bool {
    if program != LIBCLANG {
        return process::is_installed(program);
    }
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ];
    let entries = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    entries.into_iter().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with("libclang-") && name.contains(".so") && !name.contains("cpp")
    })
}

/// Where it all happens.
fn folder() -> Result<PathBuf> {
    let folder = target_folder()?.join("rust-programs");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Lets cargo fetch the crates, and returns where it put each of them; `None` if it cannot.
fn fetch(folder: &Path) -> Result<Option<Vec<PathBuf>>> {
    let scratch = folder.join("fetch");
    std::fs::create_dir_all(scratch.join("src"))?;
    std::fs::write(scratch.join("src/lib.rs"), "")?;
    let mut manifest = "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
                        [workspace]\n\n[dependencies]\n"
        .to_owned();
    for Published { name, version } in &CRATES {
        writeln!(manifest, "{name} = \"={version}\"")?;
    }
    let path = scratch.join("Cargo.toml");
    std::fs::write(&path, manifest)?;
    let manifest = path.display().to_string();
    let fetched = process::run(&mut cargo([
        "fetch",
        "--quiet",
        "--manifest-path",
        &manifest,
    ]))?;
    if !fetched.success {
        return Ok(None);
    }
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(&path)
        .exec()
        .context("cargo metadata")?;
    let source = |published: &Published| {
        let mut packages = metadata.packages.iter();
        let package = packages.find(|package| package.name.as_str() == published.name);
        let manifest = package?.manifest_path.clone().into_std_path_buf();
        manifest.parent().map(Path::to_owned)
    };
    let sources: Option<Vec<_>> = CRATES.iter().map(source).collect();
    Ok(Some(sources.context("cargo fetched something else")?))
}

/// Builds a crate's examples, and returns the folder in which they are.
fn build(folder: &Path, published: &Published, source: &Path) -> Result<PathBuf> {
    let copy = folder.join(published.name);
    let version = copy.join("version");
    // A copy that was built stays: cargo sees that nothing has changed.
    if std::fs::read_to_string(&version).unwrap_or_default() != published.version {
        let _ = std::fs::remove_dir_all(&copy);
        let copied = Command::new("cp")
            .args(["-r", "--no-preserve=mode"])
            .args([source, &copy])
            .status()
            .context("cannot start cp")?;
        if !copied.success() {
            bail!(
                "{} cannot be copied to {}",
                source.display(),
                copy.display()
            );
        }
        let manifest = copy.join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest)?;
        std::fs::write(&manifest, format!("{text}\n[workspace]\n"))?;
        std::fs::write(&version, published.version)?;
    }
    let manifest = copy.join("Cargo.toml").display().to_string();
    let target = folder.join("target");
    let arguments = [
        "build",
        "--examples",
        "--locked",
        "--quiet",
        "--manifest-path",
        &manifest,
    ];
    let mut command = cargo(arguments);
    // Nobody debugs them: without that, they build in less time.
    command
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0");
    if !process::run(&mut command)?.success {
        bail!(
            "the examples of {} {} do not build",
            published.name,
            published.version
        );
    }
    Ok(target.join("debug/examples"))
}
