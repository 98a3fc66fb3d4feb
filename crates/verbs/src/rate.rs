//! Codes of static rates (IBTA vol. 1, 9.11.1 and table 61 with later additions): to and from multiples and megabits.

use std::ffi::c_int;

/// The code that stands for no limit, and the answer where no code fits.
const MAX: c_int = 0;

/// `(code, multiple of 2.5 Gb/s where the interface has one, Mb/s of data and headers)`.
const RATES: [(c_int, Option<c_int>, c_int); 23] = [
    (2, Some(1), 2_500),
    (5, Some(2), 5_000),
    (3, Some(4), 10_000),
    (6, Some(8), 20_000),
    (4, Some(12), 30_000),
    (7, Some(16), 40_000),
    (8, Some(24), 60_000),
    (9, Some(32), 80_000),
    (10, Some(48), 120_000),
    (11, None, 14_062),
    (12, None, 56_250),
    (13, None, 112_500),
    (14, None, 168_750),
    (15, None, 25_781),
    (16, None, 103_125),
    (17, None, 206_250),
    (18, None, 309_375),
    (19, Some(11), 28_125),
    (20, Some(20), 53_125),
    (21, Some(160), 425_000),
    (22, Some(240), 637_500),
    (23, Some(320), 850_000),
    (24, Some(480), 1_275_000),
];

/// `ibv_rate_to_mult`
pub(crate) extern "C" fn rate_to_mult(rate: c_int) -> c_int {
    let found = RATES.iter().find(|(code, ..)| *code == rate);
    found.and_then(|(_, multiple, _)| *multiple).unwrap_or(-1)
}

/// `mult_to_ibv_rate`
pub(crate) extern "C" fn mult_to_rate(multiple: c_int) -> c_int {
    let found = RATES.iter().find(|(_, have, _)| *have == Some(multiple));
    found.map_or(MAX, |(code, ..)| *code)
}

/// `ibv_rate_to_mbps`
pub(crate) extern "C" fn rate_to_mbps(rate: c_int) -> c_int {
    let found = RATES.iter().find(|(code, ..)| *code == rate);
    found.map_or(-1, |(.., mbps)| *mbps)
}

/// `mbps_to_ibv_rate`
pub(crate) extern "C" fn mbps_to_rate(mbps: c_int) -> c_int {
    let found = RATES.iter().find(|(.., have)| *have == mbps);
    found.map_or(MAX, |(code, ..)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_go_both_ways() {
        for (code, multiple, mbps) in RATES {
            assert_eq!(mbps_to_rate(rate_to_mbps(code)), code);
            assert_eq!(rate_to_mbps(code), mbps);
            assert_eq!(rate_to_mult(code), multiple.unwrap_or(-1));
            if let Some(multiple) = multiple {
                assert_eq!(mult_to_rate(multiple), code);
            }
        }
        assert_eq!(
            [rate_to_mult(0), rate_to_mbps(0), rate_to_mbps(25)],
            [-1; 3]
        );
        assert_eq!(
            [mult_to_rate(0), mult_to_rate(3), mbps_to_rate(1)],
            [MAX; 3]
        );
    }
}
