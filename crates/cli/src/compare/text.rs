//! A comparison in the terminal: figures side by side where there is room, below each other where there is not.

use softfabric_fabric::compare::{Comparison, Measure, Spread, Unit, VariantFigures};

use crate::format;
use crate::summary::wrap;
use crate::table::Table;
use crate::terminal::{BAD, BOLD, DOUBTFUL, FAINT};

/// Everything, in at most `width` columns.
pub(super) fn render(comparison: &Comparison, width: usize) -> String {
    let mut text = headline(comparison, width);
    text.push('\n');
    text.push_str(&figures(comparison, width));
    let events = events(comparison);
    if let Some(table) = events {
        text.push('\n');
        text.push_str(&table.render(width));
    }
    for variant in &comparison.variants {
        text.push_str(&refusal(variant, width));
    }
    text.push_str(&heading("What these runs say of each technology"));
    text.push_str(&dimensions(comparison, width));
    text.push_str(&heading("Reading"));
    for sentence in &comparison.reading {
        text.push_str(&format!("• {}\n", wrap(&sentence.text, width, 2)));
    }
    text.push_str(&left_out(comparison, width));
    text
}

fn heading(title: &str) -> String {
    format!("\n{BOLD}{title}{BOLD:#}\n")
}

fn headline(comparison: &Comparison, width: usize) -> String {
    let seeds = comparison.seeds.len();
    let seeds = match seeds {
        1 => "one seed".to_owned(),
        more => format!("medians of {more} seeds"),
    };
    let names: Vec<_> = comparison
        .variants
        .iter()
        .map(|v| v.name.as_str())
        .collect();
    let text = wrap(
        &format!("{} over {}: {seeds}", comparison.name, names.join(", ")),
        width,
        0,
    );
    format!(
        "{}\n",
        text.replacen(
            &comparison.name,
            &format!("{BOLD}{}{BOLD:#}", comparison.name),
            1
        )
    )
}

/// Measures that somebody has.
pub(super) fn rows(comparison: &Comparison) -> Vec<(Measure, Vec<Option<Spread>>)> {
    let with_values = Measure::ALL.iter().map(|&measure| {
        let spreads = comparison
            .variants
            .iter()
            .map(|variant| variant.spread(measure));
        (measure, spreads.collect::<Vec<_>>())
    });
    let kept = with_values.filter(|(_, spreads)| spreads.iter().any(Option::is_some));
    kept.collect()
}

/// With ranges where there is room for them, without where there is not, and else each measure a block.
fn figures(comparison: &Comparison, width: usize) -> String {
    let rows = rows(comparison);
    for with_ranges in [true, false] {
        let mut table = Table::new().words("", 0);
        for variant in &comparison.variants {
            table = table.figures(variant.name.clone(), 0);
        }
        for (measure, spreads) in &rows {
            let cells = spreads
                .iter()
                .map(|spread| cell(*measure, *spread, with_ranges));
            table.row(std::iter::once(measure.definition().name.to_owned()).chain(cells));
        }
        if table.fits(width) {
            return table.render(width);
        }
    }
    let mut text = String::new();
    for (measure, spreads) in &rows {
        text.push_str(&format!("{FAINT}{}{FAINT:#}\n", measure.definition().name));
        let mut table = Table::new().words("", 0).figures("", 0);
        for (variant, spread) in comparison.variants.iter().zip(spreads) {
            table.row([
                format!("  {}", variant.name),
                cell(*measure, *spread, false),
            ]);
        }
        let rendered = table.render(width);
        // The head has no words.
        text.push_str(rendered.split_once('\n').map_or("", |(_, rest)| rest));
    }
    text
}

fn cell(measure: Measure, spread: Option<Spread>, with_range: bool) -> String {
    match spread {
        None => "–".to_owned(),
        Some(spread) if with_range && measure.definition().unit != Unit::Count => {
            measure.show_spread(&spread)
        }
        Some(spread) => measure.show(spread.median),
    }
}

/// What events did to each technology.
fn events(comparison: &Comparison) -> Option<Table> {
    let mut table = Table::new()
        .words("event", 0)
        .words("over", 0)
        .figures("before", 2)
        .figures("for", 1)
        .figures("during", 3)
        .figures("after", 0)
        .figures("survived", 0);
    let mut any = false;
    for variant in &comparison.variants {
        for found in variant.aftermath() {
            any = true;
            let rate = |value: Option<f64>| value.map_or("–".to_owned(), format::bit_rate);
            let outage = match found.outage_ns > 0.0 {
                true => format::nanoseconds(found.outage_ns),
                false => "–".to_owned(),
            };
            table.row([
                found.name.clone(),
                variant.name.clone(),
                rate(found.before_bps),
                outage,
                rate(found.during_bps),
                rate(found.after_bps),
                format!("{} of {}", variant.survived(), variant.runs.len()),
            ]);
        }
    }
    any.then_some(table)
}

fn refusal(variant: &VariantFigures, width: usize) -> String {
    let mut text = String::new();
    for why in &variant.refused {
        let line = wrap(&format!("{}: {why}", variant.name), width, 8);
        text.push_str(&format!("\n{BAD}NOT RUN{BAD:#} {line}\n"));
    }
    if let Some(run) = variant.runs.iter().find(|run| !run.findings.is_empty()) {
        for finding in run.findings.iter().take(3) {
            let line = wrap(&format!("{}: {finding}", variant.name), width, 5);
            text.push_str(&format!("\n{DOUBTFUL}NOTE{DOUBTFUL:#} {line}\n"));
        }
    }
    text
}

fn dimensions(comparison: &Comparison, width: usize) -> String {
    let longest = comparison
        .variants
        .iter()
        .map(|v| v.name.chars().count())
        .max();
    let indent = longest.unwrap_or(0).min(20) + 4;
    let mut text = String::new();
    for dimension in &comparison.dimensions {
        text.push_str(&format!("{}\n", dimension.name));
        let same = dimension.cells.windows(2).all(|pair| pair[0] == pair[1]);
        let cells = dimension.cells.iter().zip(&comparison.variants);
        for (place, (cell, variant)) in cells.enumerate() {
            if same && place > 0 {
                break;
            }
            let name = if same { "all" } else { &variant.name };
            let lead = format!("  {name:<room$}", room = indent - 2);
            text.push_str(&format!(
                "{FAINT}{lead}{FAINT:#}{}\n",
                wrap(cell, width, lead.chars().count())
            ));
        }
    }
    text
}

fn left_out(comparison: &Comparison, width: usize) -> String {
    let mut text = String::new();
    let mut said: Vec<&str> = Vec::new();
    for variant in &comparison.variants {
        // Variants of one technology leave out the same.
        if variant.left_out.is_empty() || said.contains(&variant.technology) {
            continue;
        }
        said.push(variant.technology);
        let mut reasons: Vec<&str> = variant.left_out.iter().map(|(_, reason)| *reason).collect();
        reasons.dedup();
        for reason in reasons {
            let fields: Vec<&str> = (variant.left_out.iter())
                .filter(|(_, other)| *other == reason)
                .map(|(field, _)| field.as_str())
                .collect();
            let line = format!(
                "left out over {}: {} ({reason})",
                variant.technology,
                fields.join(", ")
            );
            text.push_str(&format!("{FAINT}{}{FAINT:#}\n", wrap(&line, width, 2)));
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("\n{text}"),
    }
}
