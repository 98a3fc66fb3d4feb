//! The tree of files, and which paths lead into it.
//!
//! ```text
//! /sys/class/infiniband…       <private folder>/files-<network namespace>/sys/class/infiniband…
//! /dev/infiniband/uverbs0  ──► <private folder>/files-<network namespace>/dev/infiniband/uverbs0 ──► /dev/null
//! ```
//!
//! The tree is written when the first path leads into it. Processes write the same, each file at once or not at all, so
//! they need not know of each other.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use softfabric_adapter::{DeviceInfo, devices};

use crate::device::{character_device, counter_files, settings, sysfs_files};

/// The folders that lead into the tree.
const FOLDERS: [&[u8]; 3] = [
    b"/sys/class/infiniband",
    b"/sys/class/infiniband_verbs",
    b"/dev/infiniband",
];

/// The kernel's device of the connection manager: it is served elsewhere.
const CONNECTION_MANAGER: &[u8] = b"/dev/infiniband/rdma_cm";

/// The file of the tree that a path stands for, if it is one of ours.
pub(super) fn redirect(path: &CStr) -> Option<CString> {
    let bytes = path.to_bytes();
    if !is_ours(bytes) {
        return None;
    }
    let root = root()?;
    if bytes.windows(9).any(|part| part == b"counters/") {
        refresh(root);
    }
    let mut target = root.as_os_str().as_bytes().to_vec();
    target.extend_from_slice(bytes);
    CString::new(target).ok()
}

/// Whether a path is one that a kernel with RDMA would have, and this one may not.
#[inline]
fn is_ours(path: &[u8]) -> bool {
    // Nearly every path ends here.
    if !(path.starts_with(b"/sys/class/infiniband") || path.starts_with(b"/dev/infiniband")) {
        return false;
    }
    if path.starts_with(CONNECTION_MANAGER) {
        return false;
    }
    let rest = FOLDERS
        .iter()
        .filter_map(|folder| path.strip_prefix(*folder));
    rest.into_iter().any(|rest| matches!(rest, [] | [b'/', ..]))
}

/// The root of the tree, which is written when it is first asked for.
fn root() -> Option<&'static Path> {
    static ROOT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let root = ROOT.get_or_init(|| {
        let devices = devices(settings()).ok()?;
        for base in ["/dev/shm", "/tmp"] {
            if let Ok(root) = write(Path::new(base), &devices) {
                return Some(root);
            }
        }
        None
    });
    root.as_deref()
}

/// Writes the tree below a folder that anybody may write to.
fn write(base: &Path, devices: &[DeviceInfo]) -> io::Result<PathBuf> {
    let root = private_folder(base)?.join(format!("files-{}", namespace()));
    for device in devices {
        for file in sysfs_files(device) {
            place(&root.join("sys").join(&file.path), file.content.as_bytes())?;
        }
        let link = root.join("dev/infiniband").join(character_device(device));
        fs::create_dir_all(link.parent().unwrap_or(&root))?;
        match symlink("/dev/null", &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    remove_others(&root.join("sys/class/infiniband"), devices);
    Ok(root)
}

/// Writes the counters as they are now: they are those of this process, as far as it has devices open.
fn refresh(root: &Path) {
    for device in devices(settings()).into_iter().flatten() {
        for file in counter_files(&device) {
            let _ = place(&root.join("sys").join(&file.path), file.content.as_bytes());
        }
    }
}

/// A device that is no more, an address that has changed: what an earlier process wrote of it must not be found.
fn remove_others(folder: &Path, devices: &[DeviceInfo]) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !devices.iter().any(|device| *device.name == *name) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Puts a file where it belongs, unless it is there already: whole, or not at all.
fn place(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    let mut own = path.as_os_str().to_owned();
    own.push(format!(".{}", std::process::id()));
    fs::write(&own, content)?;
    fs::rename(&own, path)
}

/// A folder that nobody else can enter; one that somebody else has put there is refused.
fn private_folder(base: &Path) -> io::Result<PathBuf> {
    // SAFETY: no pointers are passed.
    let user = unsafe { libc::geteuid() };
    let folder = base.join(format!("softfabric-{user}"));
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(&folder)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(folder)
}

/// What tells network namespaces apart: each has devices of its own.
fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/net").map_or(0, |metadata| metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rdma_s_paths_are_ours() {
        for ours in [
            "/sys/class/infiniband",
            "/sys/class/infiniband/",
            "/sys/class/infiniband/softfabric0/ports/1/gids/0",
            "/sys/class/infiniband_verbs/abi_version",
            "/dev/infiniband",
            "/dev/infiniband/uverbs0",
        ] {
            assert!(is_ours(ours.as_bytes()), "{ours}");
        }
        for other in [
            "",
            "/",
            "/sys/class/net",
            "/sys/class/infiniband_mad",
            "/sys/class/infinibandage",
            "/dev/infiniband/rdma_cm",
            "/dev/null",
            "sys/class/infiniband",
        ] {
            assert!(!is_ours(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn the_tree_has_what_programs_look_for() {
        let base = std::env::temp_dir().join(format!("softfabric-tree-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let devices = devices(&softfabric_adapter::Settings::default()).unwrap();
        let root = write(&base, &devices).unwrap();
        let gone = root.join("sys/class/infiniband/softfabric99");
        fs::create_dir_all(&gone).unwrap();
        assert_eq!(
            write(&base, &devices).unwrap(),
            root,
            "once more changes nothing"
        );
        assert!(!gone.exists());
        let port = root.join("sys/class/infiniband/softfabric0/ports/1");
        assert_eq!(
            fs::read_to_string(port.join("state")).unwrap(),
            "4: ACTIVE\n"
        );
        assert_eq!(
            fs::read_to_string(port.join("gid_attrs/types/0")).unwrap(),
            "RoCE v2\n"
        );
        let netdev = fs::read_to_string(port.join("gid_attrs/ndevs/0")).unwrap();
        let folder = root
            .join("sys/class/infiniband/softfabric0/device/net")
            .join(netdev.trim());
        assert!(folder.is_dir(), "{}", folder.display());
        use std::os::unix::fs::FileTypeExt;
        let device = fs::metadata(root.join("dev/infiniband/uverbs0")).unwrap();
        assert!(device.file_type().is_char_device());
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_folder_of_others_is_refused() {
        let base = std::env::temp_dir().join(format!("softfabric-open-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let folder = private_folder(&base).unwrap();
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(private_folder(&base).is_err(), "others could enter it");
        fs::remove_dir_all(base).unwrap();
    }
}
