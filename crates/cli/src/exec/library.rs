//! The drop-in libraries that the binary carries, and the folder that each is unpacked to.
//!
//! Only this user may write the folders and the files, and a file's bytes are compared with those carried each time:
//! what is loaded into a program is what was built with this binary.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A library.
pub(super) struct Library {
    /// The name that programs ask for.
    name: &'static str,
    bytes: &'static [u8],
}

/// RDMA verbs.
pub(super) const VERBS: Library = Library {
    name: "libibverbs.so.1",
    bytes: include_bytes!(env!("SOFTFABRIC_LIBIBVERBS")),
};

/// Management datagrams of InfiniBand.
pub(super) const UMAD: Library = Library {
    name: "libibumad.so.3",
    bytes: include_bytes!(env!("SOFTFABRIC_LIBIBUMAD")),
};

/// Unpacks a library, where it is not unpacked yet, and returns its path.
///
/// # Errors
/// If no folder takes it, with the reason of each.
pub(super) fn unpack(library: &Library) -> Result<PathBuf, Failure> {
    let mut reasons = Vec::new();
    for folder in candidates() {
        match unpack_into(library, &folder) {
            Ok(path) => return Ok(path),
            Err(error) => reasons.push(format!("{}: {error}", folder.display())),
        }
    }
    Err(Failure::Arguments {
        problem: format!(
            "there is no folder for the library that programs load:\n{}",
            reasons.join("\n")
        ),
        help: Some(
            "Set XDG_CACHE_HOME to a folder that you can write and execute files from.".to_owned(),
        ),
    })
}

/// Where it may go: the user's cache, else a temporary folder of the user's.
fn candidates() -> Vec<PathBuf> {
    let variable = |name| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let user = rustix::process::geteuid().as_raw();
    let cache =
        variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    let cache = cache.map(|cache| cache.join("softfabric"));
    let temporary = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()]
        .map(|folder| folder.join(format!("softfabric-{user}")));
    cache.into_iter().chain(temporary).collect()
}

fn unpack_into(library: &Library, parent: &Path) -> io::Result<PathBuf> {
    let folder = parent.join(format!("{:016x}", fingerprint(library.bytes)));
    for folder in [parent, &folder] {
        make_private(folder)?;
    }
    refuse_noexec(&folder)?;
    let path = folder.join(library.name);
    if fs::read(&path).is_ok_and(|found| found == library.bytes) {
        return Ok(path);
    }
    // Another process may do the same at this moment: each renames a whole file into place.
    let fresh = folder.join(format!("{}.{}", library.name, std::process::id()));
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o700)
        .open(&fresh)
        .and_then(|mut file| file.write_all(library.bytes))
        .and_then(|()| fs::rename(&fresh, &path));
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written.map(|()| path)
}

/// Makes a folder that only this user may write, or sees that it is one.
fn make_private(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
    {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let found = fs::symlink_metadata(folder)?;
    let foreign = found.uid() != rustix::process::geteuid().as_raw();
    if !found.is_dir() || foreign || found.mode() & 0o022 != 0 {
        let problem = "it is no folder that only you may write";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    Ok(())
}

/// A library cannot be loaded from where nothing may be executed.
fn refuse_noexec(folder: &Path) -> io::Result<()> {
    let flags = rustix::fs::statvfs(folder)?.f_flag;
    if flags.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
        let problem = "nothing may be executed from it (mounted noexec)";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    Ok(())
}

/// FNV-1a, which only names the folder: whether the file is the right one, its bytes tell.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_was_changed_is_written_anew() {
        let parent = tempfile::tempdir().unwrap();
        let path = unpack_into(&VERBS, parent.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), VERBS.bytes);
        let mut other = VERBS.bytes.to_vec();
        other[VERBS.bytes.len() / 2] ^= 1;
        fs::write(&path, other).unwrap();
        assert_eq!(unpack_into(&VERBS, parent.path()).unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), VERBS.bytes);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
        let left = path.parent().unwrap().read_dir().unwrap();
        assert_eq!(left.count(), 1);
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = unpack_into(&VERBS, parent.path()).unwrap_err();
        assert!(error.to_string().contains("only you may write"), "{error}");
    }

    #[test]
    fn a_link_is_no_folder() {
        let parent = tempfile::tempdir().unwrap();
        let link = parent.path().join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        assert!(unpack_into(&VERBS, &link).is_err());
    }
}
