//! Writing what a run leaves behind. One output that fails does not keep the others from being written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use softfabric_fabric::export::findings::Finding;
use softfabric_fabric::export::{csv, hpcc, json, pcapng};
use softfabric_fabric::plan::Endpoint;
use tempfile::NamedTempFile;

use super::counters;
use super::input::Input;
use super::simulate::Run;
use crate::arguments::RunArguments;
use crate::failure::Failure;
use crate::report::{self, Report};
use crate::terminal::forgive_closed_pipe;

/// Everything that outputs are made of.
pub(super) struct Outputs<'a> {
    pub(super) arguments: &'a RunArguments,
    pub(super) input: &'a Input,
    pub(super) run: &'a Run,
    pub(super) findings: &'a [Finding],
    pub(super) captures: &'a [(Endpoint, PathBuf)],
}

impl Outputs<'_> {
    pub(super) fn json_goes_to_standard_output(&self) -> bool {
        self.arguments.json.as_deref() == Some(Path::new("-"))
    }

    /// Writes all but the report; says what could not be written.
    pub(super) fn write_files(&self) -> Vec<Failure> {
        let (plan, results) = (&self.input.plan, &self.run.results);
        let mut failures = Vec::new();
        let mut keep = |outcome: Result<(), Failure>| failures.extend(outcome.err());
        if let Some(path) = &self.arguments.json {
            let circumstances = json::Circumstances {
                wall_seconds: Some(self.run.wall_seconds),
            };
            keep(write(path, &|mut out| {
                json::write(&mut out, plan, results, &circumstances)
            }));
        }
        if let Some(path) = &self.arguments.counters {
            let about = repeating_command(self.arguments);
            keep(write(path, &|out| {
                counters::write(out, plan, results, &about)
            }));
        }
        if let Some(folder) = &self.arguments.csv {
            match fs::create_dir_all(folder) {
                Err(error) => keep(Err(Failure::unwritable(folder, error))),
                Ok(()) => {
                    for (name, table) in csv::TABLES {
                        keep(write(&folder.join(name), &|out| table(out, plan, results)));
                    }
                }
            }
        }
        for (endpoint, path) in self.captures {
            let taken = results
                .captures
                .iter()
                .find(|capture| capture.endpoint == *endpoint);
            match taken {
                Some(capture) => keep(write(path, &|out| pcapng::write(out, plan, capture))),
                None => {
                    let error = io::Error::other("the run captured nothing at this port");
                    keep(Err(Failure::unwritable(path, error)));
                }
            }
        }
        if let Some(outputs) = &self.input.hpcc_outputs {
            for path in [&outputs.flows, &outputs.pauses] {
                // Where this fails, writing the file fails too, and says so.
                let _ = path.parent().map(fs::create_dir_all);
            }
            keep(write(&outputs.flows, &|out| {
                hpcc::write_flows(out, plan, results)
            }));
            keep(write(&outputs.pauses, &|out| {
                hpcc::write_pauses(out, plan, results)
            }));
        }
        failures
    }

    /// Writes the HTML report, if one is wanted, and says where.
    pub(super) fn write_report(&self) -> Result<Option<&Path>, Failure> {
        if self.arguments.no_report {
            return Ok(None);
        }
        let page = report::render(&Report {
            plan: &self.input.plan,
            results: &self.run.results,
            findings: self.findings,
            wall_seconds: self.run.wall_seconds,
            command: &repeating_command(self.arguments),
        });
        let path = &self.arguments.report;
        write(path, &|out| out.write_all(page.as_bytes()))?;
        Ok(Some(path))
    }
}

pub(super) type Writer<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

/// Writes a file whole or not at all: beside its place first, then in its place. Standard output (`-`), devices and
/// pipes are written as they are.
pub(super) fn write(path: &Path, content: Writer<'_>) -> Result<(), Failure> {
    let written = if path == Path::new("-") {
        forgive_closed_pipe(write_into(&mut io::stdout().lock(), content))
    } else if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        File::create(path).and_then(|mut file| forgive_closed_pipe(write_into(&mut file, content)))
    } else {
        write_beside(path, content)
    };
    written.map_err(|error| Failure::unwritable(path, error))
}

fn write_beside(path: &Path, content: Writer<'_>) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    // A temporary file is private at first; the finished one is as public as any new file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file: NamedTempFile = builder
        .prefix(".softfabric-")
        .tempfile_in(folder)
        .map_err(plain)?;
    write_into(file.as_file_mut(), content)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The error without the name of the temporary file, which means nothing to people.
fn plain(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((problem, _)) => io::Error::new(error.kind(), problem),
        None => error,
    }
}

fn write_into(out: &mut dyn Write, content: Writer<'_>) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(1 << 16, out);
    content(&mut buffered)?;
    buffered.flush()
}

/// The command that repeats the run: what decides the result, not where outputs go.
fn repeating_command(arguments: &RunArguments) -> String {
    let mut command = format!(
        "softfabric run {}",
        quoted(&arguments.scenario.display().to_string())
    );
    if let Some(seed) = arguments.seed {
        command.push_str(&format!(" --seed {seed}"));
    }
    if arguments.check_wire {
        command.push_str(" --check-wire");
    }
    command
}

/// As a shell takes it for one word.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a/b-1.toml"), "a/b-1.toml");
        assert_eq!(quoted("my file"), "'my file'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_failed_file_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        fs::write(&path, "old").unwrap();
        let fails = |out: &mut dyn Write| {
            out.write_all(b"half of the new")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        let failure = write(&path, &fails).unwrap_err().to_string();
        assert!(failure.contains("out.json"), "{failure}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "no rest is left"
        );
    }
}
