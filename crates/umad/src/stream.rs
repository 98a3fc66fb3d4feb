//! A stream to the server: whole frames in and out.
//!
//! Only one frame is ever read ahead of the program, and only its header is looked at without taking it: so the descriptor
//! is readable exactly while a datagram waits, and programs may poll it.
#![allow(
    unsafe_code,
    reason = "a descriptor that C holds is used without owning it"
)]

use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use softfabric_cabi::cancel::{self, Waited};
use softfabric_subnet::ibsim::{DEFAULT_NAME, NAME_VARIABLE, NODE_VARIABLE};
use softfabric_subnet::umad::{FRAME_HEADER, FrameHeader, FromServer, ToServer, socket_name};

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
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(socket_name(name))?)
}

/// Says something, and hears the answer.
///
/// # Errors
/// If the stream ends, or the server says what it should not.
pub(crate) fn ask(stream: &mut UnixStream, message: &ToServer) -> io::Result<FromServer> {
    stream.write_all(&message.encode())?;
    FromServer::read(stream)
}

/// The header of the next frame, which stays where it is.
///
/// # Errors
/// If the stream ends.
fn peek(stream: &UnixStream) -> io::Result<FrameHeader> {
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
        length if length == FRAME_HEADER as isize => FrameHeader::decode(header)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        -1 => Err(io::Error::last_os_error()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// One frame is written at a time, and one read, whichever threads do it: as with the kernel's files.
static SENDING: Mutex<()> = Mutex::new(());
static RECEIVING: Mutex<()> = Mutex::new(());

fn turn(of: &Mutex<()>) -> MutexGuard<'_, ()> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says something on the stream of a descriptor.
///
/// # Errors
/// If the stream has ended.
pub(crate) fn say(descriptor: RawFd, message: &ToServer) -> io::Result<()> {
    let frame = message.encode();
    let _turn = turn(&SENDING);
    with(descriptor, |stream| stream.write_all(&frame))
}

/// What waits on a stream.
pub(crate) enum Heard {
    /// This, and it was taken.
    Frame(FromServer),
    /// A datagram that is longer than there is room for; it stays.
    TooLong(usize),
    /// Nothing any more: another thread was faster.
    Nothing,
}

/// Takes what waits on the stream of a descriptor, if it is no datagram of more than `room` bytes.
///
/// # Errors
/// If the stream has ended.
pub(crate) fn hear(descriptor: RawFd, room: usize) -> io::Result<Heard> {
    let _turn = turn(&RECEIVING);
    if cancel::poll(descriptor, 0) == Waited::TimedOut {
        return Ok(Heard::Nothing);
    }
    with(descriptor, |stream| {
        let needed = FromServer::datagram_length(peek(stream)?).unwrap_or(0);
        if needed > room {
            return Ok(Heard::TooLong(needed));
        }
        FromServer::read(stream).map(Heard::Frame)
    })
}

/// Runs `body` on the stream of a descriptor, which stays open.
fn with<T>(
    descriptor: RawFd,
    body: impl FnOnce(&mut UnixStream) -> io::Result<T>,
) -> io::Result<T> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the program holds the descriptor open during the call, as with any; it is never closed here.
    let mut stream = ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(descriptor) });
    body(&mut stream)
}
