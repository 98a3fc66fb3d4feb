//! The list of what was done: each step with its outcome and its time, and the counts under it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How a step ended.
pub(crate) enum Outcome {
    /// All well: so many tests, or one check.
    Passed(Counts),
    /// Something is wrong.
    Failed(Counts),
    /// It could not be done here.
    Skipped(String),
}

/// How many tests stand behind a step. A step that is no test run counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Outcome {
    /// Whether all is well, for who asked for this alone.
    ///
    /// # Errors
    /// If it could not be done here.
    pub(crate) fn into_verdict(self) -> Result<bool> {
        match self {
            Self::Passed(_) => Ok(true),
            Self::Failed(_) => Ok(false),
            Self::Skipped(reason) => bail!("{reason}"),
        }
    }

    /// One check, well or not.
    pub(crate) fn check(good: bool) -> Self {
        if good {
            Self::Passed(Counts {
                passed: 1,
                ..Counts::default()
            })
        } else {
            Self::Failed(Counts {
                failed: 1,
                ..Counts::default()
            })
        }
    }

    /// A test run: what it counted, and whether its program was content. A run that failed without a failed test
    /// (it did not compile, it was killed) counts one failure.
    pub(crate) fn tests(mut counts: Counts, good: bool) -> Self {
        if good && counts.failed == 0 {
            return Self::Passed(counts);
        }
        counts.failed = counts.failed.max(1);
        Self::Failed(counts)
    }

    fn counts(&self) -> Counts {
        match self {
            Self::Passed(counts) | Self::Failed(counts) => *counts,
            Self::Skipped(_) => Counts {
                skipped: 1,
                ..Counts::default()
            },
        }
    }
}

struct Step {
    name: String,
    outcome: Outcome,
    took: Duration,
}

/// The steps so far.
#[derive(Default)]
pub(crate) struct Steps {
    steps: Vec<Step>,
    skipped: Vec<String>,
}

impl Steps {
    /// Does one step. An error of its own (a program that cannot be started) is a failure, and the next step goes on.
    pub(crate) fn run(&mut self, name: &str, step: impl FnOnce(&mut Self) -> Result<Outcome>) {
        println!("\n── {name} ──");
        #[expect(
            clippy::disallowed_methods,
            reason = "the task tells how long its steps took"
        )]
        let begin = Instant::now();
        let outcome = step(self).unwrap_or_else(|error| {
            println!("error: {error:#}");
            Outcome::check(false)
        });
        if let Outcome::Skipped(reason) = &outcome {
            println!("(left out: {reason})");
            self.note_skipped(format!("{name}: {reason}"));
        }
        self.steps.push(Step {
            name: name.to_owned(),
            outcome,
            took: begin.elapsed(),
        });
    }

    /// Notes something that was not checked, for the list at the end.
    pub(crate) fn note_skipped(&mut self, what: String) {
        if !self.skipped.contains(&what) {
            self.skipped.push(what);
        }
    }

    /// Prints the table, what was skipped and the last line; says whether nothing failed.
    pub(crate) fn finish(&self) -> bool {
        print!("{}", self.render());
        self.all_good()
    }

    fn all_good(&self) -> bool {
        self.total().failed == 0
    }

    fn total(&self) -> Counts {
        let mut total = Counts::default();
        for step in &self.steps {
            total.add(step.outcome.counts());
        }
        total
    }

    fn render(&self) -> String {
        let width = self
            .steps
            .iter()
            .map(|step| step.name.chars().count())
            .max();
        let width = width.unwrap_or(0);
        let mut text = String::from("\n── Summary ──\n");
        for step in &self.steps {
            let (word, note) = match &step.outcome {
                Outcome::Passed(counts) => ("ok", tests_note(*counts)),
                Outcome::Failed(counts) => ("FAILED", tests_note(*counts)),
                Outcome::Skipped(_) => ("skipped", String::new()),
            };
            let seconds = step.took.as_secs_f64();
            let line = format!("{word:<8} {:<width$} {seconds:>7.1} s  {note}", step.name);
            text.push_str(line.trim_end());
            text.push('\n');
        }
        if !self.skipped.is_empty() {
            text.push_str("\nNot checked here:\n");
            for reason in &self.skipped {
                text.push_str(&format!("  - {reason}\n"));
            }
        }
        let Counts {
            passed,
            failed,
            skipped,
        } = self.total();
        text.push_str(&format!(
            "\nTests, and each other check as one:\n{passed} passed, {failed} failed, {skipped} skipped\n"
        ));
        text
    }
}

fn tests_note(counts: Counts) -> String {
    let Counts {
        passed,
        failed,
        skipped,
    } = counts;
    if passed + failed + skipped <= 1 {
        return String::new();
    }
    let mut note = format!("{passed} passed");
    if failed > 0 {
        note.push_str(&format!(", {failed} failed"));
    }
    if skipped > 0 {
        note.push_str(&format!(", {skipped} skipped"));
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_everything() {
        let mut steps = Steps::default();
        steps.run("format", |_| Ok(Outcome::check(true)));
        steps.run("tests", |_| {
            let counts = Counts {
                passed: 40,
                failed: 2,
                skipped: 3,
            };
            Ok(Outcome::tests(counts, false))
        });
        steps.run("licences", |_| Ok(Outcome::Skipped("no cargo-deny".into())));
        steps.run("broken", |_| anyhow::bail!("no such program"));
        let text = steps.render();
        assert_eq!(
            text.lines().last(),
            Some("41 passed, 3 failed, 4 skipped"),
            "{text}"
        );
        assert!(text.contains("  - licences: no cargo-deny"), "{text}");
        assert!(!steps.all_good());
    }

    #[test]
    fn a_run_that_did_not_compile_is_a_failure() {
        let Outcome::Failed(counts) = Outcome::tests(Counts::default(), false) else {
            panic!("it must fail");
        };
        assert_eq!(counts.failed, 1);
    }
}
