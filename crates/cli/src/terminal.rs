//! The terminal: how wide it is, what it can show, and that a closed pipe is no error.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Color, Style};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use serde::Serialize;

use crate::failure::Failure;
use crate::summary;

/// What is assumed where there is no terminal.
const DEFAULT_WIDTH: usize = 80;
/// Tables get no wider: eyes lose the line.
const WIDEST: usize = 120;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const BAD: Style = color(AnsiColor::Red).bold();
pub(crate) const DOUBTFUL: Style = color(AnsiColor::Yellow).bold();
pub(crate) const GOOD: Style = color(AnsiColor::Green);

const fn color(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(color)))
}

/// One of the two standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    Error,
}

impl Stream {
    /// Columns for text.
    pub(crate) fn width(self) -> usize {
        let size = match self {
            Self::Output => terminal_size::terminal_size_of(io::stdout()),
            Self::Error => terminal_size::terminal_size_of(io::stderr()),
        };
        let asked = || std::env::var("COLUMNS").ok()?.parse().ok();
        let width = size.map(|(width, _)| usize::from(width.0)).or_else(asked);
        width
            .filter(|&width| width > 0)
            .unwrap_or(DEFAULT_WIDTH)
            .min(WIDEST)
    }

    /// Writes a text; its colours stay where the stream shows them. A reader that went away is no error.
    ///
    /// # Errors
    /// What else the stream says, such as a full disk.
    pub(crate) fn print(self, text: &str) -> io::Result<()> {
        let written = match self {
            Self::Output => write_all(&mut anstream::stdout().lock(), text.as_bytes()),
            Self::Error => write_all(&mut anstream::stderr().lock(), text.as_bytes()),
        };
        forgive_closed_pipe(written)
    }
}

/// Prints to standard output.
///
/// # Errors
/// If standard output cannot be written, other than by a reader that went away.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let written = Stream::Output.print(text);
    written.map_err(|error| Failure::unwritable("standard output".as_ref(), error))
}

/// A value as JSON, as `--json` prints it: indented, with an end of line.
///
/// # Errors
/// If it has something that JSON has not, such as a map whose names are no texts.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    let text =
        text.map_err(|error| Failure::unwritable("the JSON".as_ref(), io::Error::other(error)))?;
    Ok(text + "\n")
}

/// Prints a value as JSON.
///
/// # Errors
/// As [`json`] and [`print()`].
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&json(value)?)
}

/// Whether a person looks at standard error.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Says what went wrong, on standard error: each problem of a scenario for itself, with its place.
pub(crate) fn complain(failure: &Failure) {
    let width = Stream::Error.width();
    let text = match failure.related() {
        Some(problems) => {
            let problems: String = problems.map(|problem| render(problem, width)).collect();
            format!("{problems}{BAD}error:{BAD:#} {failure}\n")
        }
        None => render(failure, width),
    };
    let _ = Stream::Error.print(&text);
}

/// A remark on standard error, wrapped to its width.
pub(crate) fn warn(text: &str) {
    let indent = "warning: ".len();
    let text = summary::wrap(text, Stream::Error.width(), indent);
    let _ = Stream::Error.print(&format!("{DOUBTFUL}warning:{DOUBTFUL:#} {text}\n"));
}

/// Nothing but a reader that went away.
pub(crate) fn forgive_closed_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn write_all(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

fn render(problem: &dyn Diagnostic, width: usize) -> String {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode())
        .with_width(width)
        .with_context_lines(1);
    let mut text = String::new();
    match handler.render_report(&mut text, problem) {
        Ok(()) => text,
        Err(_) => format!("error: {problem}\n"),
    }
}
