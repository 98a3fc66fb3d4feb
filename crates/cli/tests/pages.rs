//! Pages of the documentation are run as they stand: their files are written, their commands run, their output compared.
//!
//! ```text
//! ```toml file=first.toml             the block becomes the file
//! ```toml file=first.toml table=host  the block takes the place of that table in the file, or is added
//! ```console                          each `$ softfabric …` is run; what follows is what it prints
//! ```console exit=1                   and its exit code, where it is not 0
//! ```
//!
//! Commands are a shell's, with the repository's `scenarios` in the current folder. In expected output `[..]` stands for
//! anything on the rest of a line: times by a real clock. After a change of the simulator
//! `SOFTFABRIC_UPDATE=1 cargo test -p softfabric --test pages` writes the true output into the pages.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const WILDCARD: &str = "[..]";

/// A fenced block of a page.
struct Block {
    language: String,
    options: Vec<(String, String)>,
    /// The lines between the fences.
    lines: std::ops::Range<usize>,
}

impl Block {
    fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[test]
fn the_tutorial_is_true() {
    is_true("tutorial.md", 5);
}

#[test]
fn claims_and_their_figures_are_true() {
    is_true("chapter.md", 20);
}

/// Runs the page, which has at least so many commands.
fn is_true(page: &str, least: usize) {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = repository.join("docs").join(page);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let folder = tempfile::tempdir().unwrap();
    let scenarios = fs::canonicalize(repository.join("scenarios")).unwrap();
    std::os::unix::fs::symlink(scenarios, folder.path().join("scenarios")).unwrap();
    let mut updated = Vec::new();
    let mut copied = 0;
    let mut commands = 0;
    for block in blocks(&lines) {
        let content = &lines[block.lines.clone()];
        match (block.language.as_str(), block.option("file")) {
            ("toml", Some(file)) => write_file(folder.path(), file, block.option("table"), content),
            ("console", _) => {
                let exit_code = block.option("exit").map_or(0, |code| code.parse().unwrap());
                let (ran, actual) = run_commands(folder.path(), content, exit_code);
                commands += ran;
                updated.extend(
                    lines[copied..block.lines.start]
                        .iter()
                        .map(ToString::to_string),
                );
                updated.extend(actual);
                copied = block.lines.end;
            }
            _ => {}
        }
    }
    updated.extend(lines[copied..].iter().map(ToString::to_string));
    assert!(commands >= least, "only {commands} commands");
    if std::env::var_os("SOFTFABRIC_UPDATE").is_some() {
        fs::write(&path, updated.join("\n") + "\n").unwrap();
        return;
    }
    for (number, (expected, actual)) in lines.iter().zip(&updated).enumerate() {
        assert!(
            matches(expected, actual),
            "docs/{page}:{}\n  says    {expected}\n  but is  {actual}",
            number + 1
        );
    }
    assert_eq!(
        lines.len(),
        updated.len(),
        "an output has more or fewer lines"
    );
}

fn blocks(lines: &[&str]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, &str)> = None;
    for (number, line) in lines.iter().enumerate() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        match open.take() {
            None => open = Some((number + 1, info)),
            Some((start, info)) => {
                let mut words = info.split_whitespace();
                let language = words.next().unwrap_or_default().to_owned();
                let options = words.filter_map(|word| word.split_once('='));
                let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
                blocks.push(Block {
                    language,
                    options: options.collect(),
                    lines: start..number,
                });
            }
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

fn write_file(folder: &Path, file: &str, table: Option<&str>, content: &[&str]) {
    let path = folder.join(file);
    let Some(table) = table else {
        fs::write(path, content.join("\n") + "\n").unwrap();
        return;
    };
    let text = fs::read_to_string(&path).unwrap();
    let mut kept: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with('[') {
            inside = line == format!("[{table}]");
        }
        if !inside {
            kept.push(line);
        }
    }
    kept.push("");
    kept.extend(content);
    fs::write(path, kept.join("\n") + "\n").unwrap();
}

/// Runs each command of the block; gives how many ran, and the block as it should be.
fn run_commands(folder: &Path, content: &[&str], exit_code: i32) -> (usize, Vec<String>) {
    let mut actual = Vec::new();
    let mut commands = 0;
    for line in content {
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        commands += 1;
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(folder)
            .env("PATH", search_path())
            .env("NO_COLOR", "1")
            .env("COLUMNS", "80")
            .output()
            .unwrap();
        actual.push((*line).to_owned());
        for stream in [output.stderr, output.stdout] {
            let text = String::from_utf8(stream).unwrap();
            actual.extend(text.lines().map(without_clock));
        }
        assert_eq!(
            output.status.code(),
            Some(exit_code),
            "{command}: {actual:#?}"
        );
    }
    (commands, actual)
}

/// Where commands are looked for: this build's first.
fn search_path() -> std::ffi::OsString {
    let binary = Path::new(env!("CARGO_BIN_EXE_softfabric"));
    let own = binary.parent().unwrap().to_path_buf();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(own).chain(std::env::split_paths(&others).collect::<Vec<_>>());
    std::env::join_paths(folders).unwrap()
}

/// The line of a table that says how fast the run was differs each time.
fn without_clock(line: &str) -> String {
    match line.split_once(" packet hops in ") {
        Some((hops, _)) => format!("{hops} packet hops in {WILDCARD}"),
        None => line.to_owned(),
    }
}

fn matches(expected: &str, actual: &str) -> bool {
    match expected.split_once(WILDCARD) {
        Some((start, _)) => actual.starts_with(start),
        None => expected == actual,
    }
}
