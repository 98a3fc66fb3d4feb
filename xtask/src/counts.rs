//! Reading how many tests ran from what the test runners print.

use crate::steps::Counts;

/// Adds up the summary lines of `cargo nextest` (`Summary […] 12 tests run: 11 passed, 1 failed, 2 skipped`) and of
/// `cargo test` (`test result: ok. 3 passed; 0 failed; 1 ignored; …`).
pub(crate) fn read(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines() {
        let Some(list) = summary_of(line) else {
            continue;
        };
        for item in list.split([',', ';']) {
            let mut words = item.split_whitespace();
            let (Some(number), Some(word)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match word {
                "passed" => counts.passed += number,
                "failed" | "timed" | "exec" => counts.failed += number,
                "skipped" | "ignored" => counts.skipped += number,
                _ => {}
            }
        }
    }
    counts
}

/// Tests that passed because they could not run: each says so in a line `SKIPPED test_name: reason`, and does no more.
pub(crate) fn skipped_by_themselves(output: &str) -> Vec<String> {
    let reasons = output
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("SKIPPED "));
    reasons.map(|reason| reason.trim().to_owned()).collect()
}

/// Which lines of nextest's output are worth showing: of a test that passed, the one that says so, and what it skipped.
#[derive(Default)]
pub(crate) struct PassingTestsInOneLine {
    inside: bool,
}

impl PassingTestsInOneLine {
    /// Whether to show the next line.
    pub(crate) fn shows(&mut self, line: &str) -> bool {
        // A status line is a word of capitals, flush right before a time in brackets.
        let status = line.trim_start().split(" [").next().unwrap_or_default();
        let is_status = !status.is_empty()
            && line.contains(" [")
            && status
                .chars()
                .all(|c| c.is_ascii_uppercase() || c == ' ' || c.is_ascii_digit());
        if is_status || line.starts_with('─') {
            self.inside = status == "PASS";
            return true;
        }
        !self.inside || line.trim_start().starts_with("SKIPPED ")
    }
}

/// The list of counts in a summary line, if it is one. Inside the output of a test, which nextest indents, a
/// `test result:` is that of one test, which the summary counts too.
fn summary_of(line: &str) -> Option<&str> {
    if line.trim_start().starts_with("Summary [") {
        // "Summary [ 0.5s] 12 tests run: 11 passed (1 slow), 1 failed": what follows the last colon.
        return line.rsplit_once(": ").map(|(_, list)| list);
    }
    let result = line.strip_prefix("test result: ")?;
    result.split_once(". ").map(|(_, list)| list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextest_and_cargo_test() {
        let output = "
    test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.01s
     Summary [   0.012s] 14 tests run: 11 passed (1 slow), 2 failed, 1 timed out, 4 skipped
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out
";
        let expected = Counts {
            passed: 14,
            failed: 5,
            skipped: 5,
        };
        assert_eq!(read(output), expected);
    }

    #[test]
    fn passing_tests_are_shown_in_one_line() {
        let output = "
   Compiling x
        PASS [   0.084s] (  1/3) x a
  stdout ───
    test a ... ok
    SKIPPED a: no tshark
        FAIL [   0.084s] (  2/3) x b
  stdout ───
    panicked at b
        PASS [   0.084s] (  3/3) x c
  stdout ───
    test c ... ok
────────────
     Summary [   0.1s] 3 tests run: 2 passed, 1 failed, 0 skipped
";
        let mut shown = PassingTestsInOneLine::default();
        let lines: Vec<&str> = output.lines().filter(|line| shown.shows(line)).collect();
        let text = lines.join("\n");
        assert!(
            !text.contains("test a") && !text.contains("test c"),
            "{text}"
        );
        for kept in [
            "Compiling",
            "x a",
            "SKIPPED",
            "panicked at b",
            "x c",
            "Summary",
        ] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
    }

    #[test]
    fn other_lines_do_not_count() {
        assert_eq!(read("12 passed\nrunning 3 tests\n"), Counts::default());
    }

    #[test]
    fn tests_say_that_they_skipped() {
        let output = "    SKIPPED reads_it: tshark is not installed\n  no SKIPPED here\n";
        assert_eq!(
            skipped_by_themselves(output),
            ["reads_it: tshark is not installed"]
        );
    }
}
