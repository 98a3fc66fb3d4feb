//! What the figures of a comparison say, in sentences that each carry their numbers.
//!
//! A sentence is said when the data say it: when the seeds of one variant lie all on one side of those of the other
//! ([`Spread::differs`]), or when something happened to one that did not happen to the other. Nothing is said of what the
//! technologies are reputed to do.

use serde::Serialize;

use super::dimensions::counted;
use super::{Better, Comparison, Measure, Spread, VariantFigures};
use crate::export::format;

/// A sentence of the reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// What it is about.
    pub topic: &'static str,
    /// It.
    pub text: String,
}

/// So many seeds at least, or nothing is known of how much they matter.
const SEEDS: usize = 2;

pub(super) fn of(comparison: &Comparison) -> Vec<Sentence> {
    let able: Vec<&VariantFigures> = (comparison.variants.iter())
        .filter(|variant| !variant.runs.is_empty())
        .collect();
    let mut all = Vec::new();
    let mut say = |topic, text: Option<String>| {
        all.extend(text.map(|text| Sentence { topic, text }));
    };
    for variant in &comparison.variants {
        if !variant.refused.is_empty() {
            let text = format!(
                "{} did not run: {}.",
                variant.name,
                variant.refused.join("; ")
            );
            say("not run", Some(text));
        }
    }
    if comparison.seeds.len() < SEEDS {
        let text = "One seed says nothing about how much seeds matter: only what happened to one and not to the others is read \
                    here. More seeds (--seeds 3) let differences be read.";
        say("seeds", Some(text.to_owned()));
    } else {
        say(
            "time",
            ranking(&able, Measure::JobTime, "finishes the job first"),
        );
        if able.iter().all(|v| v.spread(Measure::JobTime).is_none()) {
            say(
                "time",
                ranking(
                    &able,
                    Measure::CompletionMedian,
                    "has the shortest median completion time",
                ),
            );
        }
        say(
            "tail",
            ranking(
                &able,
                Measure::CompletionP99,
                "has the shortest tail (FCT p99)",
            ),
        );
        say(
            "throughput",
            ranking(&able, Measure::Throughput, "delivers most payload"),
        );
        say(
            "processors",
            ranking(
                &able,
                Measure::ProcessorTime,
                "needs least processor time for a gigabyte",
            ),
        );
    }
    // One message in an idle network has no chance in it: one value is all there is.
    say(
        "small messages",
        ranking(
            &able,
            Measure::SmallMessage,
            "delivers a small message soonest",
        ),
    );
    for variant in &able {
        say("processors", copies(variant));
        say("losses", losses(variant));
        say("congestion", congestion(variant));
        for sentence in failures(variant) {
            say("failures", Some(sentence));
        }
        say("settings", settings(variant));
    }
    all
}

/// Who leads in a measure, and by how much from each of those that differ.
fn ranking(variants: &[&VariantFigures], measure: Measure, leads: &str) -> Option<String> {
    let mut ranked: Vec<(&VariantFigures, Spread)> = (variants.iter())
        .filter_map(|variant| Some((*variant, variant.spread(measure)?)))
        .collect();
    let sign = match measure.definition().better {
        Better::Lower | Better::Neither => 1.0,
        Better::Higher => -1.0,
    };
    ranked.sort_by(|a, b| (sign * a.1.median).total_cmp(&(sign * b.1.median)));
    let ((first, best), rest) = ranked.split_first()?;
    let (apart, near): (Vec<_>, Vec<_>) =
        (rest.iter()).partition(|(_, spread)| best.differs(spread));
    if apart.is_empty() {
        return None;
    }
    let show = |spread: &Spread| measure.show_spread(spread);
    let others: Vec<String> = (apart.iter())
        .map(|(variant, spread)| {
            let ratio = match sign > 0.0 {
                true => spread.median / best.median,
                false => best.median / spread.median,
            };
            match ratio.is_finite() && ratio < 1e6 {
                true => format!(
                    "{} over {} ({}×)",
                    show(spread),
                    variant.name,
                    format::factor(ratio)
                ),
                false => format!("{} over {}", show(spread), variant.name),
            }
        })
        .collect();
    let mut text = format!(
        "{} {leads}: {}, against {}.",
        first.name,
        show(best),
        others.join(" and ")
    );
    if !near.is_empty() {
        let near: Vec<String> = (near.iter())
            .map(|(variant, spread)| format!("{} ({})", variant.name, show(spread)))
            .collect();
        text.push_str(&format!(" Too near to tell: {}.", near.join(" and ")));
    }
    Some(text)
}

/// What copies cost, where there are any.
fn copies(variant: &VariantFigures) -> Option<String> {
    let (all, copies) = (
        variant.spread(Measure::ProcessorTime)?,
        variant.spread(Measure::CopyTime)?,
    );
    (copies.median > 0.0).then(|| {
        format!(
            "Over {}, a gigabyte costs {} of processor time, {} of it in copies.",
            variant.name,
            Measure::ProcessorTime.show(all.median),
            format::percent(copies.median / all.median)
        )
    })
}

/// A median of counts.
fn whole(count: f64) -> String {
    format::grouped(libm::round(count) as u64)
}

fn losses(variant: &VariantFigures) -> Option<String> {
    let of = |measure| variant.median(measure);
    let (drops, again) = (of(Measure::Drops), of(Measure::Retransmissions));
    if drops == 0.0 && again == 0.0 {
        return None;
    }
    let lossless = of(Measure::LosslessDrops);
    let mut text = format!(
        "Over {}, {} packets were dropped and {} sent again, with {}",
        variant.name,
        whole(drops),
        whole(again),
        counted(
            libm::round(of(Measure::Timeouts)) as u32,
            "timeout",
            "timeouts"
        ),
    );
    if lossless > 0.0 {
        text.push_str(&format!(
            "; {} of them were of classes that were to be lossless",
            whole(lossless)
        ));
    }
    text.push('.');
    Some(text)
}

/// What acted against congestion, and what acted first of it.
fn congestion(variant: &VariantFigures) -> Option<String> {
    let of = |measure| variant.median(measure);
    let marks = of(Measure::Marks);
    if let Some(share) = variant.spread(Measure::CreditShare)
        && share.median > 0.0
    {
        return Some(format!(
            "Over {}, want of credit held senders back: the port that waited longest did so for {} of the time{}.",
            variant.name,
            format::percent(share.median),
            if marks > 0.0 {
                format!("; {} packets were marked", whole(marks))
            } else {
                String::new()
            }
        ));
    }
    let pauses = of(Measure::PauseFrames);
    if pauses > 0.0 {
        let marked = match marks > 0.0 {
            true => format!("{} marks did not spare the fabric", whole(marks)),
            false => "nothing was marked, and the fabric was held by".to_owned(),
        };
        return Some(format!(
            "Over {}, {marked} {} pause frames: the port that was paused longest stood still for {} of the time.",
            variant.name,
            whole(pauses),
            format::percent(of(Measure::PausedShare))
        ));
    }
    let drops = of(Measure::Drops);
    (marks > 0.0).then(|| match drops > 0.0 {
        true => format!(
            "Over {}, {} packets were marked, and yet {} dropped: nothing paused.",
            variant.name,
            whole(marks),
            whole(drops)
        ),
        false => format!(
            "Over {}, {} packets were marked, and that was enough: none was dropped, and nothing paused.",
            variant.name,
            whole(marks)
        ),
    })
}

fn failures(variant: &VariantFigures) -> Vec<String> {
    let mut said = Vec::new();
    for aftermath in variant.aftermath() {
        let rate = |value: Option<f64>| value.map_or("nothing".to_owned(), format::bit_rate);
        let mut text = format!(
            "{}, over {}: {} arrived before",
            aftermath.name,
            variant.name,
            rate(aftermath.before_bps)
        );
        if aftermath.outage_ns > 0.0 {
            text.push_str(&format!(
                ", less than half of it for {} ({})",
                format::nanoseconds(aftermath.outage_ns),
                rate(aftermath.during_bps)
            ));
        }
        text.push_str(&format!(", {} afterwards.", rate(aftermath.after_bps)));
        said.push(text);
    }
    let time = |spread: fn(&VariantFigures, Measure) -> Option<Spread>| {
        spread(variant, Measure::JobTime).or_else(|| spread(variant, Measure::CompletionP99))
    };
    let (survived, seeds) = (variant.survived(), variant.runs.len());
    if !variant.calm.is_empty() {
        let word = match survived == seeds {
            true => "Everything came to its end".to_owned(),
            false => format!("Only {survived} of {seeds} seeds came to their end"),
        };
        let factor = time(VariantFigures::spread).zip(time(VariantFigures::calm_spread));
        let rest = factor.map_or(String::new(), |(with, without)| {
            format!(
                ", in {} times the time that it takes without the events",
                format::factor(with.median / without.median.max(1e-3))
            )
        });
        said.push(format!("{word} over {}{rest}.", variant.name));
    }
    said
}

fn settings(variant: &VariantFigures) -> Option<String> {
    let needed: Vec<_> = variant
        .without
        .iter()
        .filter(|found| found.needed)
        .collect();
    if needed.is_empty() {
        return None;
    }
    let each: Vec<String> = (needed.iter())
        .map(|found| {
            let what = if !found.survived {
                "not everything comes to its end".to_owned()
            } else if found.drops > 0.0 {
                format!("{} packets are dropped", whole(found.drops))
            } else {
                let factor = found.time_factor.unwrap_or(1.0);
                format!("it takes {} times as long", format::factor(factor))
            };
            format!(
                "without its {} of {} {what}",
                counted(found.settings, "setting", "settings"),
                found.family
            )
        })
        .collect();
    Some(format!(
        "{} depends on its settings here: {}.",
        variant.name,
        each.join("; ")
    ))
}
