//! HyStart++ (RFC 9406): slow start ends before packets are lost, when round trips become longer.

use softfabric_units::Span;

use super::Acknowledged;

const LEAST_RISE: Span = Span::millis(4);
const MOST_RISE: Span = Span::millis(16);
const RISE_DIVISOR: u64 = 8;
const SAMPLES: u32 = 8;
const CONSERVATIVE_DIVISOR: u64 = 4;
const CONSERVATIVE_ROUNDS: u32 = 5;

/// Round trips of this round and of the last.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// The round ends when this is acknowledged.
    window_end: u64,
    last: Option<Span>,
    current: Option<Span>,
    samples: u32,
    /// Conservative slow start: the round trip that led to it, and rounds since.
    conservative: Option<(Span, u32)>,
}

impl HyStart {
    pub(super) fn new() -> Self {
        Self {
            window_end: 0,
            last: None,
            current: None,
            samples: 0,
            conservative: None,
        }
    }

    /// By how much slower than in plain slow start the window is to grow.
    pub(super) fn acknowledged(&mut self, acknowledged: &Acknowledged) -> u64 {
        if acknowledged.position > self.window_end {
            self.window_end = acknowledged.sent;
            self.last = self.current.take();
            self.samples = 0;
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
            }
        }
        if let Some(span) = acknowledged.latest {
            self.current = Some(self.current.map_or(span, |current| current.min(span)));
            self.samples += 1;
        }
        if let (Some(current), true) = (self.current, self.samples >= SAMPLES) {
            match (self.conservative, self.last) {
                (None, Some(last)) => {
                    let rise = (last / RISE_DIVISOR).max(LEAST_RISE).min(MOST_RISE);
                    if current >= last + rise {
                        self.conservative = Some((current, 0));
                    }
                }
                // The rise was a passing one.
                (Some((baseline, _)), _) if current < baseline => self.conservative = None,
                _ => {}
            }
        }
        match self.conservative {
            Some(_) => CONSERVATIVE_DIVISOR,
            None => 1,
        }
    }

    /// Slow start is to end.
    pub(super) fn is_over(&self) -> bool {
        self.conservative
            .is_some_and(|(_, rounds)| rounds >= CONSERVATIVE_ROUNDS)
    }
}
