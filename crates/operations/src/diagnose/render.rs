//! A diagnosis as text: the answer first, then why, then what to do.

use std::fmt;

use super::judge::percent;
use super::{Certainty, Diagnosis, Finding, Verdict};

/// So many symptoms and victims are listed.
const LISTED: usize = 12;

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "verdict: {}", self.verdict.name())?;
        writeln!(f, "  {}", self.summary)?;
        for (number, finding) in self.findings.iter().enumerate() {
            if number > 0 {
                writeln!(f, "\nalso: {}", finding.cause.name())?;
                writeln!(f, "  {}", finding.summary)?;
            } else if self.verdict == Verdict::NotEnoughData {
                writeln!(f, "\nwhat is known: {}", finding.cause.name())?;
                writeln!(f, "  {}", finding.summary)?;
            }
            finding.write(f)?;
        }
        if !self.symptoms.is_empty() {
            writeln!(f, "\nonly symptoms ({} ports)", self.symptoms.len())?;
            for symptom in self.symptoms.iter().take(LISTED) {
                let held = percent(symptom.held);
                writeln!(
                    f,
                    "  {} held by {}, {held} at worst",
                    symptom.port, symptom.by
                )?;
            }
            more(f, self.symptoms.len())?;
        }
        if !self.victims.is_empty() {
            writeln!(f, "\nvictims ({} hosts)", self.victims.len())?;
            for victim in self.victims.iter().take(LISTED) {
                let held = percent(victim.held);
                writeln!(f, "  {} kept from sending, {held} at worst", victim.host)?;
            }
            more(f, self.victims.len())?;
        }
        let coverage = &self.coverage;
        writeln!(
            f,
            "\nseen: {} of {} ports, {} in stretches of {}",
            coverage.heard, coverage.ports, coverage.watched, coverage.interval
        )?;
        if !coverage.silent.is_empty() {
            writeln!(f, "  not heard: {}", coverage.silent.join(", "))?;
        }
        if !coverage.uncabled.is_empty() {
            let names = coverage.uncabled.join(", ");
            writeln!(
                f,
                "  in use, and nobody knows where their cables lead: {names}"
            )?;
        }
        Ok(())
    }
}

fn more(f: &mut fmt::Formatter<'_>, all: usize) -> fmt::Result {
    if all > LISTED {
        writeln!(f, "  and {} more", all - LISTED)?;
    }
    Ok(())
}

impl Finding {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sure = match self.certainty {
            Certainty::High => "high",
            Certainty::Moderate => "moderate: something else could look like this",
        };
        writeln!(
            f,
            "  at {}; from {} to {}; explains {} of all waiting; certainty {sure}",
            self.ports.join(", "),
            self.from,
            self.until,
            percent(self.explains)
        )?;
        writeln!(f, "  evidence")?;
        for evidence in &self.evidence {
            let (port, counter) = (&evidence.port, &evidence.counter);
            writeln!(f, "    {port} {counter}: {}", evidence.says)?;
        }
        if !self.trail.is_empty() {
            writeln!(f, "  trail")?;
            for step in &self.trail {
                let held = percent(step.held);
                writeln!(
                    f,
                    "    {} is held by {}, {held} of the time",
                    step.port, step.by
                )?;
            }
        }
        list(f, "would confirm it", self.confirm.iter())?;
        writeln!(f, "  what to do")?;
        for action in &self.actions {
            writeln!(f, "    {} (price: {})", action.act, action.price)?;
        }
        list(f, "what not to do", self.avoid.iter())
    }
}

fn list<'a>(
    f: &mut fmt::Formatter<'_>,
    heading: &str,
    lines: impl ExactSizeIterator<Item = &'a String>,
) -> fmt::Result {
    if lines.len() > 0 {
        writeln!(f, "  {heading}")?;
    }
    for line in lines {
        writeln!(f, "    {line}")?;
    }
    Ok(())
}
