//! `softfabric counters`: the one table, for people who look for the name that they know.

use std::process::ExitCode;

use softfabric_fabric::export::exported_unit;
use softfabric_telemetry::{
    ClassCounter, CounterDefinition, DeviceCounter, Kind, PortCounter, StackCounter,
};

use crate::arguments::{CountersArguments, TextFormat};
use crate::failure::Failure;
use crate::summary::wrap;
use crate::terminal::{self, BOLD, FAINT, Stream};

/// A scope with its heading and its rows.
type Scope = (&'static str, Vec<&'static CounterDefinition>);

/// Prints the table.
///
/// # Errors
/// If it cannot be printed.
pub(crate) fn counters(arguments: &CountersArguments) -> Result<ExitCode, Failure> {
    let text = match arguments.format {
        TextFormat::Text => text(Stream::Output.width()),
        TextFormat::Markdown => markdown(),
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn scopes() -> [Scope; 4] {
    [
        (
            "Of a port",
            PortCounter::ALL
                .iter()
                .map(|counter| counter.definition())
                .collect(),
        ),
        (
            "Of a traffic class on a port",
            ClassCounter::ALL
                .iter()
                .map(|counter| counter.definition())
                .collect(),
        ),
        (
            "Of an RDMA device",
            DeviceCounter::ALL
                .iter()
                .map(|counter| counter.definition())
                .collect(),
        ),
        (
            "Of a host's TCP/IP stack",
            StackCounter::ALL
                .iter()
                .map(|counter| counter.definition())
                .collect(),
        ),
    ]
}

fn text(width: usize) -> String {
    let mut text = String::new();
    for (heading, rows) in scopes() {
        text.push_str(&format!("{BOLD}{heading}{BOLD:#}\n\n"));
        for row in rows {
            text.push_str(&format!(
                "  {BOLD}{}{BOLD:#} {FAINT}({}){FAINT:#}\n    {}\n",
                row.id,
                exported_unit(row.unit),
                wrap(row.help, width, 4)
            ));
            for (system, name) in names(row) {
                text.push_str(&format!("    {FAINT}{system:<11}{FAINT:#}{name}\n"));
            }
            text.push('\n');
        }
    }
    text
}

fn markdown() -> String {
    let mut text = String::from(
        "# Counters\n\n\
         Everything that softfabric counts, under the name that its own outputs use and the names that real systems \
         use. `{n}` stands for the traffic class. Times are in microseconds.\n\n\
         This page is made by `cargo xtask docs`.\n",
    );
    for (heading, rows) in scopes() {
        text.push_str(&format!(
            "\n## {heading}\n\n| counter | unit | kind | meaning | Linux | SONiC | Prometheus |\n|---|---|---|---|---|---|---|\n"
        ));
        for row in rows {
            let code = |name: &str| match name {
                "" => "–".to_owned(),
                name => format!("`{name}`"),
            };
            text.push_str(&format!(
                "| `{}` | {} | {} | {} | {} | {} | {} |\n",
                row.id,
                exported_unit(row.unit),
                match row.kind {
                    Kind::Total => "total",
                    Kind::Watermark => "watermark",
                },
                row.help,
                code(row.linux),
                code(row.sonic),
                code(row.prometheus),
            ));
        }
    }
    text
}

/// The names of real systems, where they have one that differs.
fn names(row: &CounterDefinition) -> impl Iterator<Item = (&'static str, &'static str)> {
    let names = [
        ("Linux", row.linux),
        ("SONiC", row.sonic),
        ("Prometheus", row.prometheus),
    ];
    names.into_iter().filter(|(_, name)| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_both_forms() {
        let (text, markdown) = (text(80), markdown());
        let mut rows = 0;
        for (_, definitions) in scopes() {
            for row in definitions {
                rows += 1;
                assert!(
                    text.contains(row.id) && text.contains(row.prometheus),
                    "{}",
                    row.id
                );
                assert!(
                    markdown.contains(&format!("| `{}` |", row.id)),
                    "{}",
                    row.id
                );
            }
        }
        assert_eq!(
            rows,
            PortCounter::ALL.len()
                + ClassCounter::ALL.len()
                + DeviceCounter::ALL.len()
                + StackCounter::ALL.len()
        );
    }
}
