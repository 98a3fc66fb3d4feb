//! What is compared: the table of measures, and one value of each over several seeds.

use serde::Serialize;

use crate::export::format;

/// How values of a measure are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bit/s.
    BitsPerSecond,
    /// GB/s, 10⁹ bytes a second.
    GigabytesPerSecond,
    /// How many times as long.
    Factor,
    /// A number of things.
    Count,
    /// A share of a whole, 0–1.
    Share,
    /// Seconds of processor time for each 10⁹ bytes of payload.
    CoreSecondsPerGigabyte,
}

/// Which values are to be wished for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Small ones.
    Lower,
    /// Large ones.
    Higher,
    /// Neither: it says what happened, not how good it was.
    Neither,
}

/// A row of the table of measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Definition {
    /// The name in files.
    pub id: &'static str,
    /// The name for people.
    pub name: &'static str,
    /// How its values are written.
    pub unit: Unit,
    /// Which values are to be wished for.
    pub better: Better,
    /// What exactly it is, in one sentence.
    pub help: &'static str,
}

macro_rules! measures {
    ($($variant:ident $id:literal $name:literal $unit:ident $better:ident $help:literal;)*) => {
        /// What is compared.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Measure {
            $(#[doc = $help] $variant,)*
        }

        impl Measure {
            /// All of them, in the order of tables.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            const DEFINITIONS: &'static [Definition] = &[$(Definition {
                id: $id,
                name: $name,
                unit: Unit::$unit,
                better: Better::$better,
                help: $help,
            }),*];

            /// The row of the table.
            pub const fn definition(self) -> &'static Definition {
                &Self::DEFINITIONS[self as usize]
            }
        }
    };
}

measures! {
    JobTime "job_time" "job time" Nanoseconds Lower
        "From the start of the first job to the end of the last one.";
    BusBandwidth "bus_bandwidth" "bus bandwidth" GigabytesPerSecond Higher
        "The median of the collectives' bus bandwidths, as nccl-tests define them.";
    CompletionMedian "completion_p50" "FCT median" Nanoseconds Lower
        "Flow completion time that half of the flows do not exceed.";
    CompletionP99 "completion_p99" "FCT p99" Nanoseconds Lower
        "Flow completion time that 99 of 100 flows do not exceed.";
    CompletionP999 "completion_p999" "FCT p99.9" Nanoseconds Lower
        "Flow completion time that 999 of 1,000 flows do not exceed; of fewer flows, the longest one.";
    SlowdownMedian "slowdown_p50" "slowdown median" Factor Lower
        "Completion time over that of the same flow alone, over the same technology; the median.";
    SlowdownP99 "slowdown_p99" "slowdown p99" Factor Lower
        "Completion time over that of the same flow alone, over the same technology; 99 of 100 flows do not exceed it.";
    SlowdownP999 "slowdown_p999" "slowdown p99.9" Factor Lower
        "Completion time over that of the same flow alone, over the same technology; 999 of 1,000 flows do not exceed it.";
    Throughput "throughput" "throughput" BitsPerSecond Higher
        "Payload that arrived, all hosts together, over the time from the first start to the end of the last flow or job.";
    Undone "undone" "flows not done" Count Lower
        "Flows that failed or were not done when the run ended.";
    SmallMessage "small_message" "64 B message" Nanoseconds Lower
        "A message of 64 bytes between programs on the first and the last host of an idle network, one way: the mean of many, each an answer to the one before.";
    ProcessorTime "processor_time" "CPU time per GB" CoreSecondsPerGigabyte Lower
        "Processor time of both ends for each gigabyte of payload, as far as it is modelled.";
    CopyTime "copy_time" "of that, copies" CoreSecondsPerGigabyte Lower
        "Processor time of copies for each gigabyte of payload.";
    PauseFrames "pause_frames" "pause frames" Count Lower
        "PFC pause frames received, resume frames left out.";
    PausedShare "paused_share" "paused longest" Share Lower
        "The share of the time for which the port that was paused longest was paused.";
    CreditShare "credit_share" "credit stall longest" Share Lower
        "The share of the time for which the port that waited longest for credit waited.";
    Drops "drops" "packets dropped" Count Lower
        "Packets dropped, by any reason.";
    LosslessDrops "lossless_drops" "of lossless classes" Count Lower
        "Packets that were dropped although their class was to be lossless.";
    Retransmissions "retransmissions" "sent again" Count Lower
        "Packets or segments that were sent again.";
    Timeouts "timeouts" "timeouts" Count Lower
        "How often a retransmission timer expired.";
    Marks "marks" "ECN or FECN marks" Count Neither
        "Packets that switches marked.";
    Notifications "notifications" "told to senders" Count Neither
        "CNPs, BECNs or ECN-Echoes that reached senders.";
}

impl Measure {
    /// A value of it for people.
    pub fn show(self, value: f64) -> String {
        match self.definition().unit {
            Unit::Nanoseconds => format::nanoseconds(value),
            Unit::BitsPerSecond => format::bit_rate(value),
            Unit::GigabytesPerSecond => format::gigabytes(value),
            Unit::Factor => format::factor(value),
            Unit::Count => format::grouped(libm::round(value) as u64),
            Unit::Share => format::percent(value),
            Unit::CoreSecondsPerGigabyte if value == 0.0 => "0".to_owned(),
            Unit::CoreSecondsPerGigabyte => format::nanoseconds(value * 1e9),
        }
    }

    /// The median, and where seeds differ, their range.
    pub fn show_spread(self, spread: &Spread) -> String {
        let (min, max) = (self.show(spread.min), self.show(spread.max));
        match min == max {
            true => self.show(spread.median),
            false => format!("{} ({min} to {max})", self.show(spread.median)),
        }
    }
}

impl Serialize for Measure {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.definition().id)
    }
}

/// A value over several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median; of an even number the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// How many seeds have it.
    pub seeds: usize,
}

impl Spread {
    /// Of these values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => (values[middle - 1] + values[middle]) / 2.0,
            _ => values[middle],
        };
        Some(Self {
            median,
            min,
            max,
            seeds: values.len(),
        })
    }

    /// Whether no value of the one is among those of the other, and their medians differ by a share that matters.
    pub fn differs(&self, other: &Self) -> bool {
        let apart = self.max < other.min || other.max < self.min;
        let (small, large) = if self.median < other.median {
            (self.median, other.median)
        } else {
            (other.median, self.median)
        };
        apart && large > small * (1.0 + WORTH_SAYING)
    }
}

/// Medians that are nearer to each other than this are not called different, whatever the seeds say.
const WORTH_SAYING: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_differ_when_their_ranges_do_not_meet() {
        let of = |values: &[f64]| Spread::of(values.iter().copied()).unwrap();
        assert!(of(&[1.0, 1.1, 1.2]).differs(&of(&[1.3, 1.4])));
        assert!(!of(&[1.0, 1.35]).differs(&of(&[1.3, 1.4])), "they overlap");
        assert!(!of(&[1.0]).differs(&of(&[1.01])), "one percent is nothing");
        assert!(of(&[0.0]).differs(&of(&[5.0])), "some is not none");
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn names_are_unique() {
        let mut ids: Vec<_> = Measure::ALL.iter().map(|m| m.definition().id).collect();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
