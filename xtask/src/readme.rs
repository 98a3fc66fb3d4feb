//! The commands that README.md shows, so that what it promises is what is run.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::process::{self, workspace_root};
use crate::steps::Outcome;

/// The start of the command that shows the main job.
const MAIN_JOB: &str = "cargo run --release -- run ";

/// Runs the first command of the README that starts the main job, in the root of the repository.
pub(crate) fn smoke_run() -> Result<Outcome> {
    let path = workspace_root().join("README.md");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let commands = shell_commands(&text);
    let Some(command) = commands.iter().find(|line| line.starts_with(MAIN_JOB)) else {
        bail!("README.md shows no command that starts with `{MAIN_JOB}`");
    };
    let words = command.split_whitespace().skip(1);
    let finished = process::run(&mut process::cargo(words))?;
    let last = finished.output.lines().last().unwrap_or_default();
    if finished.success && !last.ends_with(".html") {
        println!("its last line should name the report, and is: {last}");
        return Ok(Outcome::check(false));
    }
    Ok(Outcome::check(finished.success))
}

/// The lines of all ```sh blocks, without comments.
fn shell_commands(markdown: &str) -> Vec<&str> {
    let mut inside = false;
    let mut commands = Vec::new();
    for line in markdown.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            inside = !inside && matches!(language.trim(), "sh" | "console" | "bash");
        } else if inside {
            let command = line.split(" #").next().unwrap_or_default();
            let command = command.trim().trim_start_matches("$ ");
            if !command.is_empty() && !command.starts_with('#') {
                commands.push(command);
            }
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found() {
        let text = "# x\n```sh\ncargo run --release -- run a.toml   # the main job\n# note\n```\n```toml\ncargo no\n```\n";
        assert_eq!(shell_commands(text), ["cargo run --release -- run a.toml"]);
    }
}
