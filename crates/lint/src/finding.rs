//! What a rule says: where, what was found, what was expected and by which arithmetic, and what to do.

use std::fmt;

use serde::Serialize;

/// One thing that does not fit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Which rule says so.
    pub rule: Rule,
    /// How bad it is.
    pub severity: Severity,
    /// The switch, or the port of a host.
    pub device: String,
    /// The file.
    pub file: String,
    /// Its line, where that is known.
    pub line: Option<usize>,
    /// The setting, with the objects that it belongs to.
    pub field: String,
    /// What is there.
    pub found: String,
    /// What has to be there.
    pub expected: String,
    /// Why, with the arithmetic and its source.
    pub why: String,
    /// What to do.
    pub advice: String,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It may be meant so.
    Warning,
    /// Packets of a lossless class get lost, or stand still.
    Error,
}

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident $name:literal $severity:ident;)*) => {
        /// What is looked at.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$rule),*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }

            const fn severity(self) -> Severity {
                match self {
                    $(Self::$rule => Severity::$severity,)*
                }
            }
        }
    };
}

rules! {
    /// A file or value that cannot be read.
    Syntax "syntax" Error;
    /// A name of an object that is not there.
    MissingObject "missing-object" Error;
    /// Less headroom than rate, cable and MTU need.
    Headroom "headroom" Error;
    /// A priority group with headroom, and PFC off for it.
    LosslessWithoutPfc "lossless-without-pfc" Error;
    /// PFC on for a priority whose group has no headroom.
    PfcWithoutHeadroom "pfc-without-headroom" Error;
    /// Groups are promised more memory than the pool has.
    PoolOversubscribed "pool-oversubscribed" Error;
    /// ECN begins to mark above the point at which PFC pauses.
    EcnAboveXoff "ecn-above-xoff" Error;
    /// A lossless queue that nothing marks.
    LosslessWithoutEcn "lossless-without-ecn" Warning;
    /// RED drops in a lossless queue.
    RedOnLossless "red-on-lossless" Error;
    /// Thresholds of ECN that are too close together to be told apart.
    EcnTooNarrow "ecn-too-narrow" Warning;
    /// A pause stops another queue than the one that the packets are in.
    PauseStopsAnotherQueue "pause-stops-another-queue" Error;
    /// A pause is sent for another priority than the packets came with.
    PauseOfAnotherPriority "pause-of-another-priority" Error;
    /// A lossy class in a lossless priority group.
    LossyInLosslessGroup "lossy-in-lossless-group" Error;
    /// Congestion notifications in a lossless class, or without precedence.
    CnpClass "cnp-class" Warning;
    /// Times of the watchdog that contradict each other or the range.
    WatchdogTimes "watchdog-times" Error;
    /// PFC without a watchdog.
    NoWatchdog "no-watchdog" Warning;
    /// PFC is on for other priorities at both ends of a cable.
    PfcDiffersAtEnds "pfc-differs-at-ends" Error;
    /// A DSCP is lossless at one end of a cable only.
    DscpDiffersAtEnds "dscp-differs-at-ends" Error;
    /// Both ends of a cable have other rates or MTUs.
    LinkDiffersAtEnds "link-differs-at-ends" Error;
    /// A host that sorts packets by something else than its switch.
    Trust "trust" Error;
    /// ECN is off at a host for a priority that has PFC.
    HostWithoutEcn "host-without-ecn" Warning;
}

impl Finding {
    pub(crate) fn new(
        rule: Rule,
        device: &str,
        file: &str,
        line: Option<usize>,
        field: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            severity: rule.severity(),
            device: device.to_owned(),
            file: file.to_owned(),
            line,
            field: field.into(),
            found: String::new(),
            expected: String::new(),
            why: String::new(),
            advice: String::new(),
        }
    }

    pub(crate) fn found(mut self, found: impl Into<String>) -> Self {
        self.found = found.into();
        self
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>, why: impl Into<String>) -> Self {
        self.expected = expected.into();
        self.why = why.into();
        self
    }

    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}[{}] {} ", self.rule.name(), self.device)?;
        match self.line {
            Some(line) => writeln!(f, "({}:{line})", self.file)?,
            None => writeln!(f, "({})", self.file)?,
        }
        writeln!(f, "  {}: {}", self.field, self.found)?;
        writeln!(f, "  expected: {}", self.expected)?;
        writeln!(f, "  why: {}", self.why)?;
        writeln!(f, "  do: {}", self.advice)
    }
}
