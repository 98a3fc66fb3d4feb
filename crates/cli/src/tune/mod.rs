//! `softfabric tune`: settings of ECN, DCQCN and PFC that suit a scenario, what they are worth, and a file that has them.

pub(crate) mod arguments;

use std::path::Path;
use std::process::ExitCode;

use softfabric_fabric::tune::{Point, Request, Search, TuneError, Tuned, Worth};

use self::arguments::TuneArguments;
use crate::failure::{self, Failure};
use crate::format;
use crate::run::{self, many};
use crate::summary::wrap;
use crate::table::Table;
use crate::terminal::{self, BOLD, Stream};

/// At most so many points of the front are listed.
const POINTS: usize = 12;

/// Searches, and writes all outputs.
///
/// # Errors
/// If the input is wrong: then nothing ran, and nothing was written.
pub(crate) fn run(arguments: &TuneArguments) -> Result<ExitCode, Failure> {
    let text = run::scenario_text(&arguments.scenario)?;
    let request = Request {
        budget: arguments.budget,
        seeds: arguments.seeds,
    };
    let name = arguments.scenario.display().to_string();
    let search = Search::new(&text, &name, request).map_err(failure_of)?;
    let tuned = many::run(
        search.simulations(),
        arguments.threads.map(usize::from),
        arguments.quiet,
        |threads, interrupt, done| search.run(threads, interrupt, done),
    );
    let tuned = tuned.map_err(failure_of)?;

    let on_output = |path: &Option<std::path::PathBuf>| path.as_deref() == Some(Path::new("-"));
    let taken = on_output(&arguments.output) || on_output(&arguments.json);
    let stream = if taken { Stream::Error } else { Stream::Output };
    let mut unwritten = Vec::new();
    if !arguments.quiet {
        let printed = stream.print(&render(&tuned, stream.width()));
        let failed = |error| Failure::unwritable("the terminal".as_ref(), error);
        unwritten.extend(printed.err().map(failed));
    }
    if let Some(path) = &arguments.json {
        let written = terminal::json(&tuned).and_then(|json| run::write_text(path, &json));
        unwritten.extend(written.err());
    }
    if let Some(path) = &arguments.output {
        unwritten.extend(run::write_text(path, &tuned.text).err());
    }
    for failure in &unwritten {
        terminal::complain(failure);
    }
    Ok(match unwritten.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(failure::BAD_INPUT),
    })
}

fn failure_of(error: TuneError) -> Failure {
    let help = match &error {
        TuneError::Budget { least, .. } => {
            Some(format!("Give --budget {least} or more, or fewer --seeds."))
        }
        TuneError::Nothing(_) => {
            Some("Give a scenario with fabric.kind = \"rocev2\" and traffic.".to_owned())
        }
        TuneError::Scenario(_) | TuneError::Edit(_) => None,
    };
    match error {
        TuneError::Scenario(error) => error.into(),
        other => Failure::Arguments {
            problem: other.to_string(),
            help,
        },
    }
}

fn render(tuned: &Tuned, width: usize) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#}\n", wrap(&headline(tuned), width, 0));
    text.push('\n');
    text.push_str(&settings(tuned).render(width));
    text.push('\n');
    text.push_str(&worths(tuned).render(width));
    text.push('\n');
    text.push_str(&format!("{}\n\n", wrap(&verdict(tuned), width, 0)));
    text.push_str("What nothing beats in tail, pause and throughput at once:\n");
    text.push_str(&front(tuned).render(width));
    text
}

fn headline(tuned: &Tuned) -> String {
    format!(
        "{}: {} simulations with {} search {}",
        tuned.name,
        format::grouped(u64::from(tuned.simulations)),
        tuned.seeds.len(),
        if tuned.seeds.len() == 1 {
            "seed"
        } else {
            "seeds"
        }
    )
}

fn settings(tuned: &Tuned) -> Table {
    let mut table = Table::new()
        .words("setting", 0)
        .figures("before", 1)
        .figures("best", 0);
    for (before, best) in tuned.start.settings.iter().zip(&tuned.best.settings) {
        table.row([best.field.clone(), before.value.clone(), best.value.clone()]);
    }
    table
}

fn worths(tuned: &Tuned) -> Table {
    let mut table = Table::new()
        .words("", 0)
        .figures("tail", 0)
        .figures("paused", 0)
        .figures("throughput", 0)
        .figures("pause frames", 1)
        .figures("marks", 2)
        .figures("dropped", 3);
    let mut row = |name: &str, worth: &Worth| {
        table.row([
            name.to_owned(),
            format::nanoseconds(worth.tail_ns),
            format::nanoseconds(worth.paused_ns),
            format::bit_rate(worth.throughput_bps),
            format::grouped(worth.pause_frames.round() as u64),
            format::grouped(worth.marks.round() as u64),
            format::grouped(worth.drops.round() as u64),
        ]);
    };
    row("before", &tuned.start.worth);
    row("best", &tuned.best.worth);
    if let (Some(before), Some(best)) = (&tuned.start_held_out, &tuned.best_held_out) {
        row("before, other seeds", before);
        row("best, other seeds", best);
    }
    table
}

/// How much better, with the seeds of the search and with others.
fn verdict(tuned: &Tuned) -> String {
    let factor = |before: f64, best: f64| format::percent(best / before.max(1e-9));
    let compare = |before: &Worth, best: &Worth| {
        let paused = match before.paused_ns > 0.0 {
            true => factor(before.paused_ns, best.paused_ns),
            false => format::nanoseconds(best.paused_ns),
        };
        format!(
            "tail {}, pause {paused}, throughput {} of before",
            factor(before.tail_ns, best.tail_ns),
            factor(before.throughput_bps, best.throughput_bps)
        )
    };
    let mut text = format!(
        "With the search's seeds: {}.",
        compare(&tuned.start.worth, &tuned.best.worth)
    );
    match (&tuned.start_held_out, &tuned.best_held_out) {
        (Some(before), Some(best)) => {
            text.push_str(&format!(
                " With seeds that it has not seen: {}.",
                compare(before, best)
            ));
        }
        _ => text.push_str(" The search was interrupted: nothing was run with other seeds."),
    }
    let first = |worth: &Worth| match worth.marked_first {
        _ if worth.marks + worth.pause_frames == 0.0 => "nothing is marked or paused",
        1.0 => "marks come first",
        0.0 => "pauses come first",
        _ => "now marks come first, now pauses",
    };
    text.push_str(&format!(
        " Before, {}; with the best settings, {}.",
        first(&tuned.start.worth),
        first(&tuned.best.worth)
    ));
    if tuned.best.settings == tuned.start.settings {
        text.push_str(" Nothing better was found than what the scenario has.");
    }
    text
}

fn front(tuned: &Tuned) -> Table {
    let mut table = Table::new()
        .figures("tail", 0)
        .figures("paused", 0)
        .figures("throughput", 0);
    for parameter in &tuned.best.settings {
        let name = parameter
            .field
            .rsplit('.')
            .next()
            .unwrap_or(&parameter.field);
        table = table.figures(name.to_owned(), 2);
    }
    for point in tuned.front.iter().take(POINTS) {
        let Point { settings, worth } = point;
        let figures = [
            format::nanoseconds(worth.tail_ns),
            format::nanoseconds(worth.paused_ns),
            format::bit_rate(worth.throughput_bps),
        ];
        table.row(
            figures
                .into_iter()
                .chain(settings.iter().map(|setting| setting.value.clone())),
        );
    }
    table
}
