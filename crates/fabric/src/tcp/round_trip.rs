//! Round-trip times and the retransmission timeout (RFC 6298).

use softfabric_units::Span;

use super::TcpConfig;

/// What is known of a connection's round-trip time.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    smoothed: Option<Span>,
    variation: Span,
    initial: Span,
    minimum: Span,
    maximum: Span,
    /// How often in a row the timeout has been doubled.
    backoff: u32,
}

impl RoundTrip {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            smoothed: None,
            variation: Span::ZERO,
            initial: config.initial_timeout,
            minimum: config.minimum_timeout,
            maximum: config.maximum_timeout,
            backoff: 0,
        }
    }

    /// A segment that was sent once has been acknowledged after `span` (RFC 6298, 2.2 and 2.3; 3: never one that was sent
    /// again).
    pub(super) fn sample(&mut self, span: Span) {
        match self.smoothed {
            None => {
                self.smoothed = Some(span);
                self.variation = span / 2;
            }
            Some(smoothed) => {
                let difference = span.max(smoothed) - span.min(smoothed);
                self.variation = (self.variation * 3 + difference) / 4;
                self.smoothed = Some((smoothed * 7 + span) / 8);
            }
        }
    }

    /// The timeout of what is sent now.
    pub(super) fn timeout(&self) -> Span {
        let base = match self.smoothed {
            Some(smoothed) => (smoothed + self.variation * 4).max(self.minimum),
            None => self.initial,
        };
        let factor = 1_u64 << self.backoff.min(30);
        let backed_off = Span::picos(base.as_picos().saturating_mul(factor));
        backed_off.min(self.maximum.max(self.minimum))
    }

    /// The timer has expired (RFC 6298, 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Something new was acknowledged.
    pub(super) fn progress(&mut self) {
        self.backoff = 0;
    }

    pub(super) fn smoothed(&self) -> Option<Span> {
        self.smoothed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 100 ms, then 180 ms. SRTT = 7/8 · 100 + 1/8 · 180 = 110; RTTVAR = 3/4 · 50 + 1/4 · 80 = 57.5.
    #[test]
    fn as_rfc_6298_computes() {
        let config = TcpConfig::default();
        let mut round_trip = RoundTrip::new(&config);
        assert_eq!(round_trip.timeout(), Span::seconds(1));
        round_trip.sample(Span::millis(100));
        assert_eq!(round_trip.timeout(), Span::millis(300));
        round_trip.sample(Span::millis(180));
        assert_eq!(round_trip.smoothed(), Some(Span::millis(110)));
        assert_eq!(round_trip.timeout(), Span::millis(340));
        round_trip.back_off();
        round_trip.back_off();
        assert_eq!(round_trip.timeout(), Span::millis(1360));
        (0..40).for_each(|_| round_trip.back_off());
        assert_eq!(round_trip.timeout(), Span::seconds(120));
        round_trip.progress();
        assert_eq!(round_trip.timeout(), Span::millis(340));
    }

    #[test]
    fn no_timeout_is_below_the_least() {
        let mut round_trip = RoundTrip::new(&TcpConfig::default());
        round_trip.sample(Span::micros(10));
        assert_eq!(round_trip.timeout(), Span::millis(200));
    }
}
