//! What communication costs the processors of hosts: by what it is spent on, by byte, and at the busiest host.

use softfabric_telemetry::StackCounter;
use softfabric_units::{Bytes, Span};

use crate::plan::NodeId;
use crate::results::{ProcessorResult, Results, StackResult};

/// What communication cost the processors of hosts. Computations of ranks are not among it, and accelerators have processors
/// of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorFigures {
    /// Time of all cores of all hosts.
    pub time: Span,
    /// What it was spent on; parts without any time are left out.
    pub parts: Vec<(ProcessorWork, Span)>,
    /// Payload that was delivered between hosts.
    pub delivered: Bytes,
    /// The host whose cores were busiest.
    pub busiest: NodeId,
    /// How many of its cores were busy, on average over the time in which the run was active.
    pub busiest_cores: f64,
}

/// What a processor does for communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessorWork {
    /// System calls, and waking who waits in one.
    SystemCalls,
    /// Copies between applications and sockets.
    Copies,
    /// TCP's way through the stack, and the driver.
    Stack,
    /// Interrupts.
    Interrupts,
    /// Work requests and their completions, or their like.
    Requests,
    /// Starting copies between accelerators and host memory.
    Staging,
}

impl ProcessorWork {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::SystemCalls,
        Self::Copies,
        Self::Stack,
        Self::Interrupts,
        Self::Requests,
        Self::Staging,
    ];

    /// Its name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SystemCalls => "system_calls",
            Self::Copies => "copies",
            Self::Stack => "stack",
            Self::Interrupts => "interrupts",
            Self::Requests => "requests",
            Self::Staging => "staging",
        }
    }

    /// What a host spent on it.
    fn of(self, stack: Option<&StackResult>, ranks: Option<&ProcessorResult>) -> Span {
        let counter = |counter| {
            stack.map_or(Span::ZERO, |stack| {
                Span::picos(stack.counters.value(counter))
            })
        };
        match self {
            Self::SystemCalls => counter(StackCounter::SystemCallTime),
            Self::Copies => counter(StackCounter::CopyTime),
            Self::Stack => counter(StackCounter::StackTime),
            Self::Interrupts => counter(StackCounter::InterruptTime),
            Self::Requests => ranks.map_or(Span::ZERO, |ranks| ranks.requests),
            Self::Staging => ranks.map_or(Span::ZERO, |ranks| ranks.copies),
        }
    }
}

impl ProcessorFigures {
    /// `None` where no host has ranks of jobs or speaks TCP at a price.
    pub(super) fn of(results: &Results, active: Span) -> Option<Self> {
        let mut hosts: Vec<NodeId> = (results.stacks.iter())
            .filter(|stack| stack.cores > 0)
            .map(|stack| stack.node)
            .chain(results.processors.iter().map(|host| host.node))
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        let spent = |host: NodeId| {
            let stack = results
                .stacks
                .binary_search_by_key(&host, |stack| stack.node);
            let ranks = (results.processors).binary_search_by_key(&host, |ranks| ranks.node);
            let stack = stack.ok().map(|place| &results.stacks[place]);
            let ranks = ranks.ok().map(|place| &results.processors[place]);
            ProcessorWork::ALL.map(|work| work.of(stack, ranks))
        };
        let mut parts = [Span::ZERO; ProcessorWork::ALL.len()];
        let mut busiest: Option<(NodeId, Span)> = None;
        for host in hosts {
            let of_host = spent(host);
            for (sum, part) in parts.iter_mut().zip(of_host) {
                *sum += part;
            }
            let all = of_host.into_iter().sum();
            // Of equals the first.
            if busiest.is_none_or(|(_, most)| all > most) {
                busiest = Some((host, all));
            }
        }
        let (busiest, most) = busiest?;
        Some(Self {
            time: parts.into_iter().sum(),
            parts: (ProcessorWork::ALL.into_iter().zip(parts))
                .filter(|(_, span)| !span.is_zero())
                .collect(),
            delivered: results.flows.iter().map(|flow| flow.delivered).sum(),
            busiest,
            busiest_cores: most.as_picos() as f64 / active.as_picos().max(1) as f64,
        })
    }

    /// The share of the time that was spent on a kind of work, 0–1.
    pub fn share(&self, work: ProcessorWork) -> f64 {
        let found = self.parts.iter().find(|(of, _)| *of == work);
        let picos = found.map_or(0, |(_, span)| span.as_picos());
        picos as f64 / self.time.as_picos().max(1) as f64
    }

    /// Nanoseconds of processors for each byte of payload, both ends together; `None` if nothing was delivered.
    pub fn nanoseconds_per_byte(&self) -> Option<f64> {
        let bytes = self.delivered.as_u64();
        (bytes > 0).then(|| self.time.as_picos() as f64 / 1e3 / bytes as f64)
    }

    /// How many cores it takes, both ends together, to move 100 Gb/s of payload.
    pub fn cores_for_100_gbps(&self) -> Option<f64> {
        Some(self.nanoseconds_per_byte()? * 12.5)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn parts_of_all_hosts_add_up() {
        let (_, mut results) = sample::incast();
        let active = Span::millis(1);
        assert_eq!(ProcessorFigures::of(&results, active), None, "nobody asked");
        let ranks = |node, requests, copies| ProcessorResult {
            node: NodeId(node),
            requests: Span::micros(requests),
            copies: Span::micros(copies),
        };
        results.processors = vec![ranks(0, 100, 0), ranks(1, 200, 300)];
        let mut counters = softfabric_telemetry::StackCounters::default();
        counters.add(StackCounter::CopyTime, Span::micros(1_400).as_picos());
        results.stacks = vec![StackResult {
            node: NodeId(1),
            counters,
            cores: 8,
        }];
        let found = ProcessorFigures::of(&results, active).unwrap();
        assert_eq!(found.time, Span::micros(2_000));
        assert_eq!((found.busiest, found.busiest_cores), (NodeId(1), 1.9));
        assert_eq!(found.share(ProcessorWork::Copies), 0.7);
        assert_eq!(found.share(ProcessorWork::Requests), 0.15);
        assert_eq!(found.share(ProcessorWork::Staging), 0.15);
        assert_eq!(found.parts.len(), 3);
        let delivered: u64 = results
            .flows
            .iter()
            .map(|flow| flow.delivered.as_u64())
            .sum();
        let per_byte = found.nanoseconds_per_byte().unwrap();
        assert!((per_byte * delivered as f64 / 2e6 - 1.0).abs() < 1e-9);
        assert!((found.cores_for_100_gbps().unwrap() / per_byte - 12.5).abs() < 1e-9);
    }
}
