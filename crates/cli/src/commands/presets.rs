//! `softfabric presets`: platforms whose settings scenarios can name.

use std::process::ExitCode;

use softfabric_fabric::preset::{self, Description, Kind};

use crate::arguments::PresetsArguments;
use crate::failure::Failure;
use crate::summary::wrap;
use crate::table::Table;
use crate::terminal::{self, BOLD, FAINT, Stream};

/// Prints the list, or one preset with its values and their sources.
///
/// # Errors
/// If there is no preset of the name.
pub(crate) fn presets(arguments: &PresetsArguments) -> Result<ExitCode, Failure> {
    let all = preset::all();
    let width = Stream::Output.width();
    let text = match &arguments.name {
        None => list(&all, width),
        Some(name) => {
            let shown = find(&all, name)?
                .into_iter()
                .map(|preset| show(preset, width));
            shown.collect::<Vec<String>>().join("\n")
        }
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A switch and a NIC may go by the same name: then both.
fn find<'a>(all: &'a [Description], name: &str) -> Result<Vec<&'a Description>, Failure> {
    let found: Vec<&Description> = all
        .iter()
        .filter(|preset| preset.name == name || preset.aliases.contains(&name))
        .collect();
    if found.is_empty() {
        let mut names: Vec<&str> = all.iter().map(|preset| preset.name).collect();
        names.sort_unstable();
        names.dedup();
        return Err(Failure::Arguments {
            problem: format!("there is no preset `{name}`"),
            help: Some(format!("There are: {}", names.join(", "))),
        });
    }
    Ok(found)
}

fn list(all: &[Description], width: usize) -> String {
    let mut text = String::new();
    for (kind, heading) in [(Kind::Switch, "switches"), (Kind::Nic, "NICs")] {
        let mut table = Table::new().words(heading, 0).words("", 1);
        for preset in all.iter().filter(|preset| preset.kind == kind) {
            table.row([preset.name.to_owned(), preset.summary.to_owned()]);
        }
        text.push_str(&table.render(width));
        text.push('\n');
    }
    text.push_str("Each with its values and their sources: softfabric presets NAME\n");
    text
}

fn show(preset: &Description, width: usize) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#} ({})", preset.name, preset.kind);
    if !preset.aliases.is_empty() {
        text.push_str(&format!(", also {}", preset.aliases.join(", ")));
    }
    text.push_str(&format!("\n{}\n\n", wrap(preset.summary, width, 0)));
    for value in &preset.values {
        text.push_str(&format!(
            "{} = {BOLD}{}{BOLD:#}\n    {FAINT}{}{FAINT:#}\n",
            value.field,
            value.value,
            wrap(&value.source.to_string(), width, 4)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_shown_with_its_sources() {
        let all = preset::all();
        assert!(!all.is_empty());
        let list = list(&all, 120);
        for preset in &all {
            assert!(list.contains(preset.name));
            let shown = find(&all, preset.name)
                .unwrap()
                .into_iter()
                .map(|preset| show(preset, 4_000));
            let shown: String = shown.collect();
            for value in &preset.values {
                assert!(shown.contains(&value.source.to_string()), "{}", value.field);
            }
        }
        let failure = find(&all, "sn1").unwrap_err();
        assert!(failure.to_string().contains("sn1"));
    }
}
