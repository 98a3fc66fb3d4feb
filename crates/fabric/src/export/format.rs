//! Figures for people: three or four digits, and the unit that makes them small.

use softfabric_units::Span;

pub use super::grouped;

/// `13.28 ms`, of nanoseconds.
pub fn nanoseconds(value: f64) -> String {
    scaled(value, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
}

/// `13.28 ms`.
pub fn span(span: Span) -> String {
    if span.is_zero() {
        return "0".to_owned();
    }
    nanoseconds(span.as_picos() as f64 / 1e3)
}

/// `11.9 Gb/s`, of bit/s.
pub fn bit_rate(value: f64) -> String {
    scaled(
        value,
        &[
            (1e12, "Tb/s"),
            (1e9, "Gb/s"),
            (1e6, "Mb/s"),
            (1e3, "kb/s"),
            (1.0, "b/s"),
        ],
    )
}

/// `48.9 GB/s`, of GB/s.
pub fn gigabytes(value: f64) -> String {
    scaled(
        value * 1e9,
        &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")],
    )
}

/// `10 MB`, of bytes.
pub fn bytes(value: u64) -> String {
    scaled(
        value as f64,
        &[
            (1e12, "TB"),
            (1e9, "GB"),
            (1e6, "MB"),
            (1e3, "KB"),
            (1.0, "B"),
        ],
    )
}

/// `1.02`, `13.4`, `1,340`.
pub fn factor(value: f64) -> String {
    match value {
        v if v >= 1_000.0 => grouped(v.round() as u64),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// `81 %`, `0.4 %`, `< 0.1 %`.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 0.1 => "< 0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// `5.4 M`.
pub fn short_count(value: f64) -> String {
    scaled(value, &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")])
        .trim_end()
        .to_owned()
}

/// Four digits at most, without zeros at the end, in the largest unit that is not larger than the value.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let smallest = units.last().copied().unwrap_or((1.0, ""));
    // 999.96 would be shown as 1000: it belongs to the next unit.
    let fits = units
        .iter()
        .copied()
        .find(|(size, _)| value >= *size * 0.99995);
    let (size, unit) = fits.unwrap_or(smallest);
    let value = value / size;
    let text = match value {
        v if v >= 999.5 => grouped(v.round() as u64),
        v if v >= 99.95 => format!("{v:.1}"),
        v if v >= 9.995 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    };
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(nanoseconds(13_284_091.0), "13.28 ms");
        assert_eq!(nanoseconds(999_999.9), "1 ms");
        assert_eq!(nanoseconds(4_014.0), "4.014 µs");
        assert_eq!(nanoseconds(0.5), "0.5 ns");
        assert_eq!(span(Span::micros(20)), "20 µs");
        assert_eq!(bit_rate(11_912_345_678.0), "11.91 Gb/s");
        assert_eq!(bytes(10_000_000), "10 MB");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(factor(1.004), "1.00");
        assert_eq!(factor(12_345.6), "12,346");
        assert_eq!(percent(0.814), "81 %");
        assert_eq!(percent(0.0004), "< 0.1 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(short_count(5_412_000.0), "5.412 M");
        assert_eq!(short_count(12.0), "12");
    }
}
