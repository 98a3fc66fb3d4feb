//! `softfabric presets`: platforms whose settings scenarios can name.

use std::process::ExitCode;

use softfabric_fabric::preset::{self, Description};

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
        Some(name) => show(find(&all, name)?, width),
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn find<'a>(all: &'a [Description], name: &str) -> Result<&'a Description, Failure> {
    let found = all
        .iter()
        .find(|preset| preset.name == name || preset.aliases.contains(&name));
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|preset| preset.name).collect();
        Failure::Arguments {
            problem: format!("there is no preset `{name}`"),
            help: Some(format!("There are: {}", names.join(", "))),
        }
    })
}

fn list(all: &[Description], width: usize) -> String {
    let mut table = Table::new()
        .words("name", 0)
        .words("kind", 1)
        .words("stands for", 0);
    for preset in all {
        table.row([
            preset.name.to_owned(),
            preset.kind.to_string(),
            preset.summary.to_owned(),
        ]);
    }
    table.render(width)
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
            let shown = show(find(&all, preset.name).unwrap(), 4_000);
            for value in &preset.values {
                assert!(shown.contains(&value.source.to_string()), "{}", value.field);
            }
        }
        let failure = find(&all, "sn1").unwrap_err();
        assert!(failure.to_string().contains("sn1"));
    }
}
