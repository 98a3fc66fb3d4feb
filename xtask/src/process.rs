//! Running other programs: their output goes to the terminal as it comes, and is kept for reading.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Context, Result};

/// What a program said and how it ended.
pub(crate) struct Finished {
    pub(crate) success: bool,
    /// Standard output and standard error, in the order in which lines came.
    pub(crate) output: String,
}

/// The root of the workspace.
pub(crate) fn workspace_root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest
        .parent()
        .map_or_else(|| manifest.clone(), PathBuf::from)
}

/// Where cargo builds.
///
/// # Errors
/// If cargo cannot tell.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(workspace_root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("cargo metadata")?;
    Ok(metadata.target_directory.into_std_path_buf())
}

/// The `cargo` that runs this task, in the root of the workspace.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(workspace_root());
    // These two describe the task's own crate; a build script below would take them for its own.
    command
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("CARGO_PKG_NAME");
    command
}

/// Runs `command` to its end, showing and keeping what it says.
///
/// # Errors
/// If the program cannot be started.
pub(crate) fn run(command: &mut Command) -> Result<Finished> {
    run_showing(command, || |_: &str| true)
}

/// The same, but showing only some lines; each of the two streams has a filter of its own.
///
/// # Errors
/// If the program cannot be started.
pub(crate) fn run_showing<F>(command: &mut Command, filter: impl Fn() -> F) -> Result<Finished>
where
    F: FnMut(&str) -> bool + Send + 'static,
{
    let shown = describe(command);
    println!("$ {shown}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let kept = Arc::new(Mutex::new(String::new()));
    let streams: [Box<dyn Read + Send>; 2] = [
        Box::new(child.stdout.take().context("no standard output")?),
        Box::new(child.stderr.take().context("no standard error")?),
    ];
    let readers = streams.map(|stream| {
        let kept = Arc::clone(&kept);
        let shows = filter();
        thread::spawn(move || copy_lines(stream, &kept, shows))
    });
    let status = child
        .wait()
        .with_context(|| format!("waiting for `{shown}`"))?;
    for reader in readers {
        // A reader that panicked lost lines only; the exit status still counts.
        let _ = reader.join();
    }
    let output = kept.lock().map(|text| text.clone()).unwrap_or_default();
    Ok(Finished {
        success: status.success(),
        output,
    })
}

/// Whether a program of this name is in the search path.
pub(crate) fn is_installed(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn copy_lines(stream: impl Read, kept: &Mutex<String>, mut shows: impl FnMut(&str) -> bool) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while let Ok(1..) = reader.read_until(b'\n', &mut line) {
        let text = String::from_utf8_lossy(&line);
        if shows(text.trim_end()) {
            let _ = std::io::stdout().write_all(text.as_bytes());
        }
        if let Ok(mut kept) = kept.lock() {
            kept.push_str(&text);
        }
        line.clear();
    }
}

fn describe(command: &Command) -> String {
    let program = command.get_program();
    let name = PathBuf::from(program).file_name().map_or_else(
        || program.to_string_lossy().into_owned(),
        |name| name.to_string_lossy().into_owned(),
    );
    let mut text = name;
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
