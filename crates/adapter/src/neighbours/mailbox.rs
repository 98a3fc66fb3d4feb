//! Letters between the processes of one user and network namespace.
//!
//! ```text
//! abstract datagram socket  \0softfabric/<uid>/<slot>     packets that came to the wrong process, links, questions
//! ```
//!
//! The kernel says who sent a letter: those of other users are dropped. Names of such sockets belong to the network
//! namespace, as ports do.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg,
    sendmsg_addr, socket_with, sockopt,
};

/// The longest letter.
const LONGEST: usize = 80 << 10;
/// The most descriptors of one letter.
pub(crate) const DESCRIPTORS: usize = 4;

/// A member's mailbox.
#[derive(Debug)]
pub(crate) struct Mailbox {
    socket: OwnedFd,
    user: u32,
}

/// Memory that letters are read into.
#[derive(Debug)]
pub(crate) struct Room(Box<[u8]>);

impl Default for Room {
    fn default() -> Self {
        Self(vec![0; LONGEST].into_boxed_slice())
    }
}

/// A letter of a process of this user.
#[derive(Debug)]
pub(crate) struct Letter<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) descriptors: Vec<OwnedFd>,
    /// Where an answer goes, if the sender has a name.
    pub(crate) sender: Option<SocketAddrUnix>,
    /// The slot of the member that wrote it, if it was one.
    pub(crate) slot: Option<u8>,
}

/// A letter that is read later.
#[derive(Debug)]
pub(crate) struct OwnedLetter {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
    pub(crate) sender: Option<SocketAddrUnix>,
    pub(crate) slot: Option<u8>,
}

impl Letter<'_> {
    pub(crate) fn keep(self) -> OwnedLetter {
        OwnedLetter {
            bytes: self.bytes.to_vec(),
            descriptors: self.descriptors,
            sender: self.sender,
            slot: self.slot,
        }
    }
}

fn address(user: u32, slot: u8) -> io::Result<SocketAddrUnix> {
    let name = format!("softfabric/{user}/{slot}");
    Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?)
}

impl Mailbox {
    /// Opens the mailbox of a slot.
    ///
    /// # Errors
    /// `AddrInUse` if somebody has it.
    pub(crate) fn open(slot: u8) -> io::Result<Self> {
        let mailbox = Self::unnamed()?;
        rustix::net::bind(&mailbox.socket, &address(mailbox.user, slot)?)?;
        Ok(mailbox)
    }

    /// A mailbox that answers to letters can be sent to, and that nobody knows otherwise.
    pub(crate) fn to_ask() -> io::Result<Self> {
        let mailbox = Self::unnamed()?;
        let name = format!(
            "softfabric/{}/asks/{}",
            mailbox.user,
            rustix::process::getpid().as_raw_nonzero()
        );
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        rustix::net::bind(&mailbox.socket, &address)?;
        Ok(mailbox)
    }

    fn unnamed() -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        sockopt::set_socket_passcred(&socket, true)?;
        Ok(Self {
            socket,
            user: rustix::process::geteuid().as_raw(),
        })
    }

    /// Sends a letter to a slot. It does not wait.
    ///
    /// # Errors
    /// `ConnectionRefused` if nobody has the slot, `WouldBlock` if the mailbox is full.
    pub(crate) fn send(
        &self,
        slot: u8,
        pieces: &[&[u8]],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        self.send_to(&address(self.user, slot)?, pieces, descriptors)
    }

    /// Sends a letter to where another came from.
    ///
    /// # Errors
    /// As [`Mailbox::send`].
    pub(crate) fn send_to(
        &self,
        to: &SocketAddrUnix,
        pieces: &[&[u8]],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let pieces: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        sendmsg_addr(&self.socket, to, &pieces, &mut control, SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// The slot that has a name: only its member can have bound it.
    fn slot_of(&self, name: &SocketAddrUnix) -> Option<u8> {
        let name = std::str::from_utf8(name.abstract_name()?).ok()?;
        let slot = name
            .strip_prefix("softfabric/")?
            .strip_prefix(&self.user.to_string())?;
        slot.strip_prefix('/')?.parse().ok()
    }

    /// Takes the letters that wait, up to a few, and gives each to `read`.
    pub(crate) fn receive(&self, room: &mut Room, mut read: impl FnMut(Letter<'_>)) {
        for _ in 0..16 {
            let mut space = [MaybeUninit::uninit();
                rustix::cmsg_space!(ScmRights(DESCRIPTORS), ScmCredentials(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut pieces = [IoSliceMut::new(&mut room.0)];
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let Ok(message) = recvmsg(&self.socket, &mut pieces, &mut control, flags) else {
                return;
            };
            let mut descriptors = Vec::new();
            let mut sender = None;
            for part in control.drain() {
                match part {
                    RecvAncillaryMessage::ScmRights(rights) => descriptors.extend(rights),
                    RecvAncillaryMessage::ScmCredentials(found) => sender = Some(found.uid),
                    _ => {}
                }
            }
            if sender.is_some_and(|sender| sender.as_raw() == self.user) {
                let named = message
                    .address
                    .and_then(|any| SocketAddrUnix::try_from(any).ok());
                read(Letter {
                    bytes: &room.0[..message.bytes],
                    descriptors,
                    slot: named.as_ref().and_then(|name| self.slot_of(name)),
                    sender: named.filter(|name| name.abstract_name().is_some()),
                });
            }
        }
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn letters_carry_bytes_and_descriptors_and_can_be_answered() {
        // Slots that no member has.
        let (one, other) = (Mailbox::open(0).unwrap(), Mailbox::to_ask().unwrap());
        let mut room = Room::default();
        assert_eq!(
            Mailbox::open(0).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"enclosed").unwrap();
        other
            .send(0, &[b"two ", b"pieces"], &[file.as_fd()])
            .unwrap();
        let mut read = 0;
        let mut answer_to = None;
        one.receive(&mut room, |mut letter| {
            read += 1;
            assert_eq!((letter.bytes, letter.slot), (&b"two pieces"[..], None));
            let mut enclosed = File::from(letter.descriptors.pop().unwrap());
            enclosed.rewind().unwrap();
            let mut text = String::new();
            enclosed.read_to_string(&mut text).unwrap();
            assert_eq!(text, "enclosed");
            answer_to = letter.sender;
        });
        assert_eq!(read, 1);
        one.send_to(&answer_to.unwrap(), &[b"thanks"], &[]).unwrap();
        other.receive(&mut room, |letter| {
            assert_eq!((letter.bytes, letter.slot), (&b"thanks"[..], Some(0)));
        });
        drop(one);
        let refused = other.send(0, &[b"anybody?"], &[]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
