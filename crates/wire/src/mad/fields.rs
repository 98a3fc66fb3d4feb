//! Fields that several messages share: logarithmic timeouts and private data.

use std::fmt;
use std::ops::Deref;

use softfabric_units::Span;

/// The unit of logarithmic timeouts: 4.096 µs.
const TIMEOUT_UNIT: Span = Span::nanos(4_096);

/// A time of 4.096 µs × 2^code, code 0–31, as acknowledgement and response timeouts are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct TimeoutCode(u8);

impl TimeoutCode {
    /// The longest: two and a half hours.
    pub const MAX: Self = Self(31);

    /// The timeout whose code is the low five bits of `code`.
    pub const fn from_code(code: u8) -> Self {
        Self(code & 0x1f)
    }

    /// 0–31.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The time that the code stands for. (An acknowledgement timeout of code 0 means "never"; that is for its reader.)
    pub const fn span(self) -> Span {
        Span::picos(TIMEOUT_UNIT.as_picos() << self.0)
    }

    /// The shortest timeout of at least `span`, or the longest there is.
    pub fn covering(span: Span) -> Self {
        (0..Self::MAX.0)
            .map(Self)
            .find(|code| code.span() >= span)
            .unwrap_or(Self::MAX)
    }
}

/// What a message carries for the programs at its ends: always `N` bytes on the wire, zeros after what was given.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PrivateData<const N: usize>([u8; N]);

impl<const N: usize> PrivateData<N> {
    /// How many bytes there are.
    pub const LENGTH: usize = N;

    /// All `N` bytes.
    pub const fn new(bytes: [u8; N]) -> Self {
        Self(bytes)
    }

    /// `bytes`, then zeros; `None` if there are more than `N`.
    pub fn padded(bytes: &[u8]) -> Option<Self> {
        let mut data = [0; N];
        data.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self(data))
    }

    /// All `N` bytes.
    pub const fn bytes(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> Default for PrivateData<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Deref for PrivateData<N> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Writes the bytes up to the last that is not zero, as hexadecimal digits.
impl<const N: usize> fmt::Debug for PrivateData<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.0.iter().rposition(|byte| *byte != 0);
        let used = used.map_or(0, |last| last + 1);
        for byte in &self.0[..used] {
            write!(f, "{byte:02x}")?;
        }
        write!(f, "({used} of {N})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_timeouts() {
        assert_eq!(TimeoutCode::from_code(0).span(), Span::nanos(4_096));
        // 4.096 µs × 2^20 is 4.29 s, the response timeout that the kernel asks for.
        assert_eq!(
            TimeoutCode::from_code(20).span(),
            Span::nanos(4_294_967_296)
        );
        assert_eq!(TimeoutCode::from_code(0x34).code(), 0x14, "five bits");
        assert_eq!(TimeoutCode::covering(Span::ZERO).code(), 0);
        assert_eq!(TimeoutCode::covering(Span::nanos(4_097)).code(), 1);
        assert_eq!(TimeoutCode::covering(Span::MAX), TimeoutCode::MAX);
    }

    #[test]
    fn private_data_is_padded_or_refused() {
        let data = PrivateData::<4>::padded(&[1, 0, 2]).unwrap();
        assert_eq!(data.bytes(), &[1, 0, 2, 0]);
        assert_eq!(format!("{data:?}"), "010002(3 of 4)");
        assert_eq!(PrivateData::<4>::padded(&[0; 5]), None);
        assert_eq!(format!("{:?}", PrivateData::<4>::default()), "(0 of 4)");
    }
}
