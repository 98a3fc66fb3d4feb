//! Copies by the kernel: what cannot be reached is an error instead of a signal.
//!
//! ```text
//! process_vm_readv, process_vm_writev   one call; sandboxes may forbid them
//! a pipe                                two calls for each page; always there
//! ```

#![allow(
    unsafe_code,
    reason = "addresses are given to the kernel, which checks them"
)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::pipe::{PipeFlags, pipe_with};
use softfabric_transport::MemoryFault;

use super::copy::pointer;

const PAGE: u64 = 4096;

/// Copies between `near` and the address `far` of this process by the kernel, which reports what cannot be reached on
/// either side: from `far` to `near`, or with `write` the other way.
///
/// # Errors
/// If a side cannot be reached.
pub(super) fn kernel_copy(
    near: *mut u8,
    far: u64,
    length: usize,
    write: bool,
) -> Result<(), MemoryFault> {
    let mut pipe = None;
    copy_with(&mut pipe, near, far, length, write)
}

/// Whether a range can be read, or written, right now. It is tried at one byte of each page.
pub(super) fn reachable(address: u64, length: u64, writable: bool) -> bool {
    let Some(end) = address.checked_add(length) else {
        return false;
    };
    let mut pipe = None;
    let mut at = address;
    while at < end {
        let mut byte = 0_u8;
        if copy_with(&mut pipe, &mut byte, at, 1, false).is_err()
            || (writable && copy_with(&mut pipe, &mut byte, at, 1, true).is_err())
        {
            return false;
        }
        at = (at / PAGE + 1) * PAGE;
    }
    true
}

/// Whether this process may not use the calls for memory of other processes: not even for its own.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

fn copy_with(
    pipe: &mut Option<Pipe>,
    near: *mut u8,
    far: u64,
    length: usize,
    write: bool,
) -> Result<(), MemoryFault> {
    if !FORBIDDEN.load(Ordering::Relaxed) {
        match by_one_call(near, far, length, write) {
            Ok(()) => return Ok(()),
            Err(Refusal::Fault) => return Err(MemoryFault),
            Err(Refusal::Forbidden) => FORBIDDEN.store(true, Ordering::Relaxed),
        }
    }
    let pipe = match pipe {
        Some(pipe) => pipe,
        None => pipe.insert(Pipe::open().map_err(|_| MemoryFault)?),
    };
    let far = pointer(far).cast_mut();
    if write {
        pipe.copy(near, far, length)
    } else {
        pipe.copy(far, near, length)
    }
}

enum Refusal {
    Forbidden,
    Fault,
}

fn by_one_call(near: *mut u8, far: u64, length: usize, write: bool) -> Result<(), Refusal> {
    let mut done = 0;
    while done < length {
        let local = libc::iovec {
            iov_base: near.wrapping_add(done).cast(),
            iov_len: length - done,
        };
        let remote = libc::iovec {
            iov_base: pointer(far + done as u64).cast_mut().cast(),
            iov_len: length - done,
        };
        // SAFETY: both vectors live across the call; the kernel checks the addresses in them.
        let moved = unsafe {
            let pid = libc::getpid();
            if write {
                libc::process_vm_writev(pid, &local, 1, &remote, 1, 0)
            } else {
                libc::process_vm_readv(pid, &local, 1, &remote, 1, 0)
            }
        };
        if moved < 0 {
            let error = io::Error::last_os_error().raw_os_error();
            return Err(match error {
                Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => Refusal::Forbidden,
                _ => Refusal::Fault,
            });
        }
        if moved == 0 {
            return Err(Refusal::Fault);
        }
        done += moved as usize;
    }
    Ok(())
}

struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    fn open() -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { reader, writer })
    }

    fn copy(&self, from: *const u8, to: *mut u8, length: usize) -> Result<(), MemoryFault> {
        let mut done = 0;
        while done < length {
            // A page always fits into an empty pipe.
            let some = (length - done).min(PAGE as usize);
            // SAFETY: the kernel checks both addresses; the first call stores nothing in this process, the second at
            // most what the first has taken, which is within the caller's range.
            let moved = unsafe {
                let source = from.wrapping_add(done).cast();
                let taken = libc::write(self.writer.as_raw_fd(), source, some);
                let Ok(taken @ 1..) = usize::try_from(taken) else {
                    return Err(MemoryFault);
                };
                let target = to.wrapping_add(done).cast();
                let given = libc::read(self.reader.as_raw_fd(), target, taken);
                if usize::try_from(given) != Ok(taken) {
                    return Err(MemoryFault);
                }
                taken
            };
            done += moved;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_cannot_be_reached() {
        let here = [0_u8; 9000];
        let address = here.as_ptr().expose_provenance() as u64;
        assert!(reachable(address, 9000, true));
        assert!(!reachable(8, 32, false));
        assert!(!reachable(u64::MAX - 5, 32, false));
        let constant = "text".as_ptr().expose_provenance() as u64;
        assert!(reachable(constant, 4, false));
        assert!(!reachable(constant, 4, true), "it is read-only");
    }

    #[test]
    fn a_pipe_copies_as_the_one_call_does() {
        let pipe = Pipe::open().unwrap();
        let source: Vec<u8> = (0..10_000).map(|at| (at * 7) as u8).collect();
        for length in [0, 1, 4096, 4097, 10_000] {
            let mut target = vec![0; 10_000];
            let (from, to) = (source.as_ptr(), target.as_mut_ptr());
            pipe.copy(from, to, length).unwrap();
            assert_eq!(target[..length], source[..length]);
            assert!(target[length..].iter().all(|byte| *byte == 0));
        }
        let mut target = [0_u8; 16];
        let (nowhere, text) = (pointer(8).cast_mut(), "text".as_ptr().cast_mut());
        assert!(pipe.copy(nowhere, target.as_mut_ptr(), 16).is_err());
        assert!(pipe.copy(target.as_ptr(), nowhere, 16).is_err());
        let read_only = Pipe::open().unwrap().copy(target.as_ptr(), text, 4);
        assert!(read_only.is_err());
    }
}
