//! A stream to the server: whole frames in and out.
//!
//! Only one frame is ever read ahead of the program, and only its header is looked at without taking it: so the descriptor
//! is readable exactly while a datagram waits, and programs may poll it.
#![allow(
    unsafe_code,
    reason = "a descriptor that C holds is used without owning it"
)]

use std::ffi::c_int;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use softfabric_subnet::umad::{FRAME_HEADER, FrameHeader, FromServer, ToServer};

/// The name where nobody chooses one.
const DEFAULT_NAME: &str = "sim";
const NAME_VARIABLE: &str = "IBSIM_SOCKNAME";
const NODE_VARIABLE: &str = "SIM_HOST";

/// The node that the program wants to be at; empty: any.
pub(crate) fn node() -> String {
    std::env::var(NODE_VARIABLE).unwrap_or_default()
}

/// A stream to the server.
///
/// # Errors
/// If there is no server.
pub(crate) fn connect() -> io::Result<UnixStream> {
    let name = std::env::var(NAME_VARIABLE).ok();
    let name = name.filter(|name| !name.is_empty());
    let name = name.as_deref().unwrap_or(DEFAULT_NAME);
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(format!("{name}:umad"))?)
}

/// Says something, and hears the answer.
///
/// # Errors
/// If the stream ends, or the server says what it should not.
pub(crate) fn ask(stream: &mut UnixStream, message: &ToServer) -> io::Result<FromServer> {
    stream.write_all(&message.encode())?;
    read(stream)
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Reads the next frame.
///
/// # Errors
/// If the stream ends, or it is none.
pub(crate) fn read(stream: &mut UnixStream) -> io::Result<FromServer> {
    let mut header = [0; FRAME_HEADER];
    stream.read_exact(&mut header)?;
    let header = FrameHeader::decode(header).map_err(invalid)?;
    let mut body = vec![0; header.length];
    stream.read_exact(&mut body)?;
    FromServer::decode(header, &body).map_err(invalid)
}

/// The header of the next frame, which stays where it is.
///
/// # Errors
/// If the stream ends.
pub(crate) fn peek(stream: &UnixStream) -> io::Result<FrameHeader> {
    let mut header = [0_u8; FRAME_HEADER];
    // SAFETY: the buffer is as long as is said, and the descriptor is the stream's.
    let length = unsafe {
        libc::recv(
            stream.as_raw_fd(),
            header.as_mut_ptr().cast(),
            FRAME_HEADER,
            libc::MSG_PEEK | libc::MSG_WAITALL,
        )
    };
    match length {
        8 => FrameHeader::decode(header).map_err(invalid),
        -1 => Err(io::Error::last_os_error()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Runs `body` on the stream of a descriptor, which stays open.
pub(crate) fn with<T>(
    descriptor: RawFd,
    body: impl FnOnce(&mut UnixStream) -> io::Result<T>,
) -> io::Result<T> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the program holds the descriptor open during the call, as with any; it is given back before this returns.
    let mut stream = unsafe { UnixStream::from_raw_fd(descriptor) };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&mut stream)));
    let _ = stream.into_raw_fd();
    outcome.unwrap_or_else(|_| Err(io::Error::from_raw_os_error(libc::EIO)))
}

unsafe extern "C-unwind" {
    /// The one call in which a thread of the program's may be cancelled: the unwinding that this starts passes frames
    /// without anything to drop.
    fn poll(entries: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int;
}

/// Waits until the descriptor is readable. False if `timeout` milliseconds have passed first; negative: for ever.
///
/// Threads may be cancelled here (OpenSM's are): not to be called with anything to drop, or inside of
/// [`guard`](crate::errno::guard).
///
/// # Errors
/// As `poll`.
pub(crate) fn wait(descriptor: RawFd, timeout: c_int) -> Result<bool, c_int> {
    let mut wanted = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, as is said.
    match unsafe { poll(&raw mut wanted, 1, timeout) } {
        0 => Ok(false),
        // SAFETY: `errno` is the thread's own.
        -1 => Err(unsafe { *libc::__errno_location() }),
        _ => Ok(true),
    }
}
