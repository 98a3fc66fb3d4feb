//! Locks on single bytes of a file, which the kernel lets go with the last descriptor of the opened file.

#![allow(
    unsafe_code,
    reason = "locks of open file descriptions have no safe interface"
)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

fn range(byte: u8, kind: libc::c_int) -> libc::flock {
    // SAFETY: zeros are a valid value.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = libc::off_t::from(byte);
    range.l_len = 1;
    range
}

/// Takes the lock, which lives as long as `file` and its copies.
///
/// # Errors
/// If somebody else has it.
pub(crate) fn take(file: &File, byte: u8) -> io::Result<()> {
    let range = range(byte, libc::F_WRLCK);
    // SAFETY: the kernel reads the range.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether somebody has the lock through another opened file than `file`.
pub(crate) fn is_held(file: &File, byte: u8) -> bool {
    let mut range = range(byte, libc::F_WRLCK);
    // SAFETY: the kernel reads and writes the range.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut range) };
    // Where it cannot be asked, nobody is declared dead.
    result != 0 || i32::from(range.l_type) != libc::F_UNLCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_goes_with_its_file() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let open = || {
            File::options()
                .read(true)
                .write(true)
                .open(path.path())
                .unwrap()
        };
        let (one, other) = (open(), open());
        take(&one, 7).unwrap();
        assert!(is_held(&other, 7) && !is_held(&other, 8));
        assert!(take(&other, 7).is_err());
        drop(one);
        assert!(!is_held(&other, 7));
        take(&other, 7).unwrap();
    }
}
