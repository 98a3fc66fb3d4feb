//! What this process has used: processor time and memory, as Linux counts them.
//!
//! Elsewhere, or without `/proc`, there is nothing to read and every answer is `None`.

use std::time::Duration;

/// Processor time in user mode, of all threads that are or were. In steps of 10 ms.
pub(crate) fn user_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program stands in parentheses and may hold anything; utime is the 14th field (proc(5)).
    let after_name = stat.rsplit_once(')')?.1;
    let ticks: u64 = after_name.split_whitespace().nth(11)?.parse().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

/// The most memory that was resident at once, in bytes.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
