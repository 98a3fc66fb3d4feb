//! Documentation that the program writes about itself: kept in the repository for readers, and kept true by this check.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::process::{self, workspace_root};

/// A file, and the arguments that make `softfabric` print it.
const GENERATED: &[(&str, &[&str])] = &[
    ("docs/scenarios.md", &["schema", "--format", "markdown"]),
    ("docs/counters.md", &["counters", "--format", "markdown"]),
    ("docs/command-line.md", &["man", "--format", "markdown"]),
];

/// Writes each file, or with `check` only says which are out of date; says whether all were or are right.
pub(crate) fn run(check: bool) -> Result<bool> {
    let mut stale = 0;
    for (path, arguments) in GENERATED {
        let expected = print(arguments)?;
        let full_path = workspace_root().join(path);
        let found = fs::read_to_string(&full_path).unwrap_or_default();
        if found == expected {
            println!("{path} is up to date");
        } else if check {
            stale += 1;
            println!(
                "{path} is out of date: run `cargo xtask docs`{}",
                first_difference(&found, &expected)
            );
        } else {
            fs::write(&full_path, expected).with_context(|| format!("writing {path}"))?;
            println!("{path} written");
        }
    }
    Ok(stale == 0)
}

/// What `softfabric` prints.
fn print(arguments: &[&str]) -> Result<String> {
    let mut command = process::cargo(["run", "--quiet", "--package", "softfabric", "--"]);
    command.args(arguments).stderr(Stdio::inherit());
    let output = command.output().context("running softfabric")?;
    if !output.status.success() {
        bail!("`softfabric {}` failed", arguments.join(" "));
    }
    String::from_utf8(output.stdout).context("softfabric printed something that is not UTF-8")
}

fn first_difference(found: &str, expected: &str) -> String {
    let mut line = 1;
    let (mut found, mut expected) = (found.lines(), expected.lines());
    loop {
        match (found.next(), expected.next()) {
            (Some(a), Some(b)) if a == b => line += 1,
            (None, None) => return String::new(),
            (_, expected) => {
                let expected = expected.unwrap_or("the end of the file");
                return format!(" (line {line} should be: {expected})");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_located() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), "");
        assert!(first_difference("a\nx\n", "a\nb\n").contains("line 2 should be: b"));
        assert!(first_difference("a\nb\n", "a\n").contains("the end"));
    }
}
