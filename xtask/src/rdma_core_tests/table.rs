//! The table of results, and its comparison with what has to pass.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde::Deserialize;

/// How a test ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// It passed.
    Pass,
    /// It found that it cannot run here.
    Skip,
    /// A comparison failed.
    Fail,
    /// Something else went wrong.
    Error,
    /// Its process ended.
    Crash,
    /// It did not end.
    Timeout,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Skip => "skip",
            Self::Fail => "FAIL",
            Self::Error => "ERROR",
            Self::Crash => "CRASH",
            Self::Timeout => "TIMEOUT",
        })
    }
}

/// One test that has run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Ended {
    pub(super) test: String,
    pub(super) outcome: Outcome,
    pub(super) seconds: f64,
    pub(super) reason: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.test.trim_start_matches("tests.");
        write!(f, "{:<8}{:>7.2} s  {name}", self.outcome, self.seconds)?;
        if !self.reason.is_empty() {
            write!(f, ": {}", self.reason)?;
        }
        Ok(())
    }
}

/// A difference from what has to pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Finding {
    /// It has to pass and did not.
    Regression {
        test: String,
        outcome: Option<Outcome>,
    },
    /// It passes and is not in the list.
    New { test: String },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Regression {
                test,
                outcome: Some(outcome),
            } => write!(f, "regression: {test} has to pass, and now: {outcome}"),
            Self::Regression {
                test,
                outcome: None,
            } => {
                write!(
                    f,
                    "regression: {test} has to pass, and is not among the tests any more"
                )
            }
            Self::New { test } => write!(
                f,
                "new: {test} passes; `cargo xtask rdma-core-tests --update` puts it on the list of what has to"
            ),
        }
    }
}

/// All tests that have run.
pub(super) struct Table {
    ended: Vec<Ended>,
}

impl Table {
    pub(super) fn new(ended: Vec<Ended>) -> Self {
        Self { ended }
    }

    /// The tests that neither passed nor were skipped.
    pub(super) fn failed(&self) -> Vec<String> {
        let ended = self.ended.iter();
        let failed = ended.filter(|one| !matches!(one.outcome, Outcome::Pass | Outcome::Skip));
        failed.map(|one| one.test.clone()).collect()
    }

    /// Puts in what second attempts gave. The first stays to be read in the reason.
    pub(super) fn correct(&mut self, second: Vec<Ended>) {
        for mut again in second {
            let Some(first) = self.ended.iter_mut().find(|one| one.test == again.test) else {
                continue;
            };
            again.reason = format!(
                "second attempt; the first: {} {}",
                first.outcome, first.reason
            );
            *first = again;
        }
    }

    /// Classes with their counts, then what did not pass, then one line.
    pub(super) fn render(&self) -> String {
        let mut classes: BTreeMap<&str, BTreeMap<Outcome, usize>> = BTreeMap::new();
        let mut total: BTreeMap<Outcome, usize> = BTreeMap::new();
        for ended in &self.ended {
            let class = ended.test.rsplit_once('.').map_or("", |(class, _)| class);
            let class = class.trim_start_matches("tests.");
            *classes
                .entry(class)
                .or_default()
                .entry(ended.outcome)
                .or_default() += 1;
            *total.entry(ended.outcome).or_default() += 1;
        }
        let mut text = format!("\n{:<44}{:>6}{:>6}{:>8}\n", "class", "pass", "skip", "not");
        let count = |counts: &BTreeMap<Outcome, usize>, wanted: fn(&Outcome) -> bool| -> usize {
            counts
                .iter()
                .filter(|(outcome, _)| wanted(outcome))
                .map(|(_, count)| count)
                .sum()
        };
        let mut line = |name: &str, counts: &BTreeMap<Outcome, usize>| {
            let pass = count(counts, |outcome| *outcome == Outcome::Pass);
            let skip = count(counts, |outcome| *outcome == Outcome::Skip);
            let not = count(counts, |outcome| *outcome > Outcome::Skip);
            let _ = writeln!(text, "{name:<44}{pass:>6}{skip:>6}{not:>8}");
        };
        for (class, counts) in &classes {
            line(class, counts);
        }
        line("all", &total);
        text
    }

    /// The names of the tests that pass, a line each.
    pub(super) fn passing(&self) -> String {
        let mut names: Vec<&str> = self.passed().collect();
        names.sort_unstable();
        names.iter().map(|name| format!("{name}\n")).collect()
    }

    fn passed(&self) -> impl Iterator<Item = &str> {
        let passed = self
            .ended
            .iter()
            .filter(|ended| ended.outcome == Outcome::Pass);
        passed.map(|ended| ended.test.as_str())
    }

    /// The differences from a list of what has to pass, among the tests that were wanted.
    pub(super) fn compare(&self, expected: &str, wanted: impl Fn(&str) -> bool) -> Vec<Finding> {
        let lines = expected.lines().map(str::trim);
        let expected: Vec<&str> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        let mut findings = Vec::new();
        for test in expected.iter().filter(|test| wanted(test)) {
            let outcome = self
                .ended
                .iter()
                .find(|ended| ended.test == *test)
                .map(|ended| ended.outcome);
            if outcome != Some(Outcome::Pass) {
                let test = (*test).to_owned();
                findings.push(Finding::Regression { test, outcome });
            }
        }
        for test in self.passed().filter(|test| !expected.contains(test)) {
            findings.push(Finding::New {
                test: test.to_owned(),
            });
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let ended = |test: &str, outcome| Ended {
            test: format!("tests.test_a.{test}"),
            outcome,
            seconds: 0.5,
            reason: String::new(),
        };
        Table::new(vec![
            ended("One.passes", Outcome::Pass),
            ended("One.fails", Outcome::Fail),
            ended("Two.hangs", Outcome::Timeout),
            ended("Two.skips", Outcome::Skip),
        ])
    }

    #[test]
    fn second_attempts_count_and_the_first_can_be_read() {
        let mut table = table();
        assert_eq!(
            table.failed(),
            ["tests.test_a.One.fails", "tests.test_a.Two.hangs"]
        );
        table.correct(vec![Ended {
            test: "tests.test_a.One.fails".to_owned(),
            outcome: Outcome::Pass,
            seconds: 0.1,
            reason: String::new(),
        }]);
        assert_eq!(table.failed(), ["tests.test_a.Two.hangs"]);
        assert!(table.ended[1].reason.contains("the first: FAIL"));
    }

    #[test]
    fn only_what_had_to_pass_is_a_regression() {
        let expected =
            "# a comment\ntests.test_a.One.fails\ntests.test_a.Two.skips\ntests.test_a.Two.gone\n";
        let findings = table().compare(expected, |_| true);
        let regression = |test: &str, outcome| Finding::Regression {
            test: format!("tests.test_a.{test}"),
            outcome,
        };
        assert_eq!(
            findings,
            [
                regression("One.fails", Some(Outcome::Fail)),
                regression("Two.skips", Some(Outcome::Skip)),
                regression("Two.gone", None),
                Finding::New {
                    test: "tests.test_a.One.passes".to_owned()
                },
            ]
        );
        let some = table().compare(expected, |name| name.contains("One"));
        assert_eq!(some.len(), 2, "the others were not asked for");
    }

    #[test]
    fn the_table_counts_by_class() {
        let text = table().render();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert!(rows.contains(&vec!["test_a.One", "1", "0", "1"]), "{text}");
        assert!(rows.contains(&vec!["test_a.Two", "0", "1", "1"]), "{text}");
        assert!(rows.contains(&vec!["all", "1", "1", "2"]), "{text}");
        assert_eq!(table().passing(), "tests.test_a.One.passes\n");
    }
}
