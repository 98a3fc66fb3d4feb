//! What came of the cases: a line for each as it ends, what failed at the end, and the counts.

use std::time::Duration;

use super::cases::Run;

/// How a case ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    Passed,
    /// After attempts that failed; what was found at each.
    PassedAgain(Vec<String>),
    /// What was found.
    Failed(String),
    /// The kernel cannot do this at all.
    Lacking(String),
}

/// The cases so far.
#[derive(Default)]
pub(super) struct Report {
    passed: usize,
    /// Those of them that needed more than one attempt.
    again: usize,
    lacking: usize,
    /// Each with what was found.
    failed: Vec<(String, String)>,
}

impl Report {
    /// Notes how a case ended, and shows it.
    pub(super) fn note(&mut self, run: &Run, ending: Ending, took: Duration) {
        let word = match &ending {
            Ending::Passed => "ok",
            Ending::PassedAgain(_) => "ok again",
            Ending::Failed(_) => "FAILED",
            Ending::Lacking(_) => "lacking",
        };
        let seconds = took.as_secs_f64();
        println!("{word:<9} {run} {seconds:>6.1} s");
        match ending {
            Ending::Passed => self.passed += 1,
            Ending::PassedAgain(found) => {
                for attempt in found {
                    println!("         an attempt failed:\n{}", indented(&attempt));
                }
                self.passed += 1;
                self.again += 1;
            }
            Ending::Lacking(reason) => {
                println!("         {reason}");
                self.lacking += 1;
            }
            Ending::Failed(found) => {
                println!("{}", indented(&found));
                self.failed.push((run.to_string(), found));
            }
        }
    }

    pub(super) const fn is_good(&self) -> bool {
        self.failed.is_empty()
    }

    /// What failed, and a last line with the counts, in the form of `cargo test`.
    pub(super) fn summary(&self) -> String {
        let mut text = String::new();
        for (name, found) in &self.failed {
            text.push_str(&format!("\nFAILED {name}\n{}\n", indented(found)));
        }
        let word = if self.is_good() { "ok" } else { "FAILED" };
        let (passed, failed, lacking) = (self.passed, self.failed.len(), self.lacking);
        if self.again > 0 {
            text.push_str(&format!(
                "\n{} passed after an attempt that failed\n",
                self.again
            ));
        }
        text.push_str(&format!(
            "\ntest result: {word}. {passed} passed; {failed} failed; {lacking} ignored\n"
        ));
        text
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("         {line}"))
        .collect();
    lines.join("\n")
}
