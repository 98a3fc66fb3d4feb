//! Where the processes of one user and network namespace find each other: a private folder.
//!
//! ```text
//! /dev/shm/softfabric-<uid>/<network namespace>.table      else below /tmp
//! ```
//!
//! The folder belongs to the user and nobody else can enter it. One that somebody else has put there is refused.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The folders to try, in order: every process has to come to the same.
const BASES: [&str; 2] = ["/dev/shm", "/tmp"];

/// The folder and the name of a namespace's table.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    namespace: u64,
}

impl Place {
    /// The place of this process, whose folder exists.
    pub(crate) fn find() -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for base in BASES {
            match Self::below(Path::new(base)) {
                Ok(place) => return Ok(place),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The place below a folder.
    pub(crate) fn below(base: &Path) -> io::Result<Self> {
        let user = rustix::process::geteuid().as_raw();
        let folder = base.join(format!("softfabric-{user}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(&folder)?;
        if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "{} is not a private folder of user {user}: remove it",
                    folder.display()
                ),
            ));
        }
        Ok(Self {
            folder,
            namespace: namespace(),
        })
    }

    pub(super) fn open(&self) -> io::Result<File> {
        self.open_file("table")
    }

    /// Takes the table away; a new one is made by the next who opens it.
    pub(super) fn clear(&self) -> io::Result<()> {
        fs::remove_file(self.path("table"))
    }

    fn path(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.namespace))
    }

    /// Opens a file that the processes of this user and namespace share, and makes it if need be.
    pub(crate) fn open_file(&self, kind: &str) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(self.path(kind))
    }
}

/// The number of this network namespace, which no other gets until the host starts anew; its inode where the kernel
/// (before 5.14) does not tell, which another may get later; 0 where nothing tells.
fn namespace() -> u64 {
    cookie().unwrap_or_else(|_| fs::metadata("/proc/self/ns/net").map_or(0, |found| found.ino()))
}

/// The kernel's cookie of this network namespace.
#[allow(unsafe_code, reason = "no crate in use knows this socket option")]
fn cookie() -> io::Result<u64> {
    let socket = std::net::UdpSocket::bind(("127.0.0.1", 0))
        .or_else(|_| std::net::UdpSocket::bind("[::]:0"))?;
    let (mut cookie, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the socket is open, and the kernel writes no more than `length` bytes to `cookie`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok(cookie),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `SO_NETNS_COOKIE` of `asm-generic/socket.h`.
const NETNS_COOKIE: libc::c_int = 71;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_others_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let place = Place::below(base.path()).unwrap();
        assert_eq!(fs::metadata(&place.folder).unwrap().mode() & 0o777, 0o700);
        place.open().unwrap();
        Place::below(base.path()).unwrap();

        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(&place.folder, open).unwrap();
        assert!(Place::below(base.path()).is_err(), "anybody could enter");

        fs::remove_dir_all(&place.folder).unwrap();
        std::os::unix::fs::symlink("/", &place.folder).unwrap();
        assert!(Place::below(base.path()).is_err(), "leads elsewhere");
    }

    use std::os::unix::fs::PermissionsExt;
}
