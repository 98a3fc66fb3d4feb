//! One number for all of a run's results, to see that two runs gave the same.

use std::fmt::{self, Write};

use softfabric_fabric::results::Results;

/// FNV-1a over the results as `Debug` prints them, which leaves nothing out.
pub(crate) fn digest(results: &Results) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    write!(hash, "{results:?}").expect("nothing here fails");
    hash.0
}

struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}
