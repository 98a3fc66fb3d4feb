//! What the program says about itself: schema, completions, manual page.

use std::process::ExitCode;

use clap::{Arg, Command, CommandFactory};
use softfabric_fabric::scenario;

use crate::arguments::{
    Arguments, CompletionsArguments, ManArguments, ManualFormat, SchemaArguments, SchemaFormat,
};
use crate::failure::Failure;
use crate::terminal;

/// Prints the schema of scenario files.
///
/// # Errors
/// If it cannot be printed.
pub(crate) fn schema(arguments: &SchemaArguments) -> Result<ExitCode, Failure> {
    let text = match arguments.format {
        SchemaFormat::Json => format!("{:#}\n", scenario::schema()),
        SchemaFormat::Markdown => scenario::reference_markdown(),
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a shell's completions.
///
/// # Errors
/// If they cannot be printed.
pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "softfabric", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual.
///
/// # Errors
/// If it cannot be printed.
pub(crate) fn manual(arguments: &ManArguments) -> Result<ExitCode, Failure> {
    let text = match arguments.format {
        ManualFormat::Roff => roff(),
        ManualFormat::Markdown => markdown(),
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// One page with all commands: what `man` shows for the program, then for each command.
fn roff() -> String {
    let mut command = Arguments::command();
    command.build();
    let mut page = Vec::new();
    // Writing into memory cannot fail.
    let _ = clap_mangen::Man::new(command.clone()).render(&mut page);
    for (path, command) in commands(&command) {
        let name = full_name(&path);
        let manual = clap_mangen::Man::new(command.clone().bin_name(&name));
        let _ = std::io::Write::write_all(
            &mut page,
            format!(".SH \"{}\"\n", name.to_uppercase()).as_bytes(),
        );
        let _ = manual.render_description_section(&mut page);
        let _ = manual.render_synopsis_section(&mut page);
        let _ = manual.render_options_section(&mut page);
    }
    String::from_utf8_lossy(&page).into_owned()
}

fn markdown() -> String {
    let mut command = Arguments::command();
    command.build();
    let mut text = String::from(
        "# Command line\n\n\
         What `softfabric --help` and the help of each command say. This page is made by `cargo xtask docs`.\n",
    );
    for (path, command) in commands(&command) {
        let name = full_name(&path);
        let about = command.get_long_about().or(command.get_about());
        let about = about.map(ToString::to_string).unwrap_or_default();
        let usage = command.clone().bin_name(&name).render_usage();
        let usage = usage.to_string();
        let usage = usage.trim_start_matches("Usage: ");
        text.push_str(&format!(
            "\n## `{name}`\n\n{about}\n\n```text\n{usage}\n```\n\n"
        ));
        let shown = command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set());
        for argument in
            shown.filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
        {
            text.push_str(&argument_line(argument));
        }
        if let Some(examples) = command.get_after_help() {
            let examples = examples.to_string();
            text.push_str(&format!("\n```text\n{}\n```\n", examples.trim_end()));
        }
    }
    text
}

fn argument_line(argument: &Arg) -> String {
    let help = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let defaults = argument.get_default_values();
    let takes_value = argument.get_action().takes_values();
    let default = match defaults.first() {
        Some(value) if takes_value => format!(" Default: `{}`.", value.to_string_lossy()),
        _ => String::new(),
    };
    let possible: Vec<String> = if takes_value {
        let values = argument.get_possible_values();
        values
            .iter()
            .map(|value| format!("`{}`", value.get_name()))
            .collect()
    } else {
        Vec::new()
    };
    let possible = if possible.is_empty() {
        String::new()
    } else {
        format!(" One of {}.", possible.join(", "))
    };
    format!(
        "- `{argument}`: {}.{possible}{default}\n",
        help.trim_end_matches('.')
    )
}

/// The commands in their order, without clap's own `help`.
///
/// Those that only hold others (`ib`) are followed by what they hold (`ib serve`); each has the path of its names.
fn commands(command: &Command) -> Vec<(Vec<String>, &Command)> {
    let mut all = Vec::new();
    let named = command.get_subcommands();
    for command in named.filter(|command| command.get_name() != "help") {
        let name = command.get_name().to_owned();
        all.push((vec![name.clone()], command));
        for (path, inner) in commands(command) {
            all.push(([vec![name.clone()], path].concat(), inner));
        }
    }
    all
}

fn full_name(path: &[String]) -> String {
    format!("softfabric {}", path.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_every_command_and_argument() {
        let (roff, markdown) = (roff(), markdown());
        let command = Arguments::command();
        for (path, command) in commands(&command) {
            let name = full_name(&path);
            assert!(roff.contains(&name.to_uppercase()), "{name}");
            assert!(markdown.contains(&format!("## `{name}`")), "{name}");
            for argument in command.get_arguments() {
                if let Some(long) = argument.get_long() {
                    assert!(markdown.contains(&format!("--{long}")), "{name} --{long}");
                }
            }
        }
    }
}
