//! What a kernel would show of a device in files: `/sys/class/infiniband/softfabric0/…`.
//!
//! ```text
//! class/infiniband/softfabric0/  node_type, node_guid, fw_ver, …      device/net/eth0/
//!                                ports/1/  state, rate, gids/0, gid_attrs/types/0, counters/…, hw_counters/…
//! class/infiniband_verbs/        abi_version, uverbs0/ibdev, uverbs0/dev
//! ```
//!
//! Programs that ask through the library are answered from memory. For those that open files themselves, a launcher
//! writes [`sysfs_files`] into a folder and names it in `SYSFS_PATH`; the devices' paths then lead there.
#![allow(
    unsafe_code,
    reason = "the program's texts are read and its buffers filled"
)]

use std::ffi::{CStr, c_char, c_int};
use std::fmt::Write;
use std::sync::OnceLock;

use softfabric_adapter::{DeviceInfo, devices};

use super::list::settings;
use crate::address;
use crate::errno::{Errno, minus_one};
use crate::hub::Hub;

/// A file of the tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SysfsFile {
    /// Its path below the root of sysfs.
    pub path: String,
    /// What is in it, with the newline at the end.
    pub content: String,
}

/// The root of sysfs: `SYSFS_PATH`, or `/sys`. No slash at the end.
pub(super) fn root() -> &'static str {
    static ROOT: OnceLock<String> = OnceLock::new();
    ROOT.get_or_init(|| {
        let told = std::env::var("SYSFS_PATH").unwrap_or_default();
        let told = told.trim_end_matches('/');
        if told.is_empty() {
            "/sys".to_owned()
        } else {
            told.to_owned()
        }
    })
}

/// The name of a device's character device.
pub(crate) fn character_device(info: &DeviceInfo) -> String {
    format!("uverbs{}", info.index)
}

fn guid(guid: [u8; 8]) -> String {
    let words: Vec<String> = guid
        .chunks(2)
        .map(|pair| format!("{:02x}{:02x}", pair[0], pair[1]))
        .collect();
    words.join(":")
}

fn gid(gid: [u8; 16]) -> String {
    let words: Vec<String> = gid
        .chunks(2)
        .map(|pair| format!("{:02x}{:02x}", pair[0], pair[1]))
        .collect();
    words.join(":")
}

/// Every file that a kernel would show of a device.
///
/// A launcher may write them below a folder and set `SYSFS_PATH` to it. Counters are those of the device if this process
/// has it open, and zero otherwise.
pub fn sysfs_files(info: &DeviceInfo) -> Vec<SysfsFile> {
    let mut files = Vec::new();
    let device = format!("class/infiniband/{}", info.name);
    let character_device = character_device(info);
    let verbs = format!("class/infiniband_verbs/{character_device}");
    let mut add = |path: String, content: &str| {
        files.push(SysfsFile {
            path,
            content: format!("{content}\n"),
        });
    };
    add("class/infiniband_verbs/abi_version".to_owned(), "6");
    add(format!("{verbs}/ibdev"), &info.name);
    add(format!("{verbs}/abi_version"), "1");
    add(format!("{verbs}/dev"), &format!("231:{}", 192 + info.index));
    for (name, content) in [
        ("node_type", "1: CA".to_owned()),
        ("node_guid", guid(info.guid)),
        ("sys_image_guid", guid(info.guid)),
        ("node_desc", format!("softfabric on {}", info.netdev)),
        (
            "fw_ver",
            concat!("softfabric ", env!("CARGO_PKG_VERSION")).to_owned(),
        ),
        ("hca_type", "softfabric".to_owned()),
        ("parent", info.netdev.clone()),
        ("device/numa_node", "-1".to_owned()),
        ("device/vendor", "0xffffff".to_owned()),
        ("device/device", "0x0000".to_owned()),
    ] {
        add(format!("{device}/{name}"), &content);
    }
    add(
        format!("{device}/device/net/{}/ifindex", info.netdev),
        &info.interface.to_string(),
    );
    let port = format!("{device}/ports/1");
    for (name, content) in [
        ("state", "4: ACTIVE"),
        ("phys_state", "5: LinkUp"),
        ("rate", "100 Gb/sec (4X EDR)"),
        ("link_layer", "Ethernet"),
        ("lid_mask_count", "0"),
        ("sm_lid", "0x0"),
        ("sm_sl", "0"),
        ("cap_mask", "0x04010000"),
        ("pkeys/0", "0xffff"),
    ] {
        add(format!("{port}/{name}"), content);
    }
    add(
        format!("{port}/lid"),
        &format!("{:#x}", address::local_identifier(info)),
    );
    for place in 0..info.gids.len().max(16) {
        let entry = info.gids.get(place);
        add(
            format!("{port}/gids/{place}"),
            &gid(entry.map_or([0; 16], |entry| entry.gid.0)),
        );
        if let Some(entry) = entry {
            add(format!("{port}/gid_attrs/types/{place}"), "RoCE v2");
            add(format!("{port}/gid_attrs/ndevs/{place}"), &entry.netdev);
        }
    }
    files.extend(counter_files(info));
    files
}

/// The files of counters: those of the port where InfiniBand defines them, the others as hardware vendors name them.
pub(crate) fn counter_files(info: &DeviceInfo) -> Vec<SysfsFile> {
    let (device, port) = Hub::counters(&info.name).unwrap_or_default();
    let folder = format!("class/infiniband/{}/ports/1", info.name);
    let file = |kind: &str, name: &str, value: u64| SysfsFile {
        path: format!("{folder}/{kind}/{name}"),
        content: format!("{value}\n"),
    };
    // Names that InfiniBand has begin so; the rest are an interface's own and belong to ethtool.
    let of_port = port.iter().filter_map(|(counter, value)| {
        let definition = counter.definition();
        let name = definition.linux;
        // Data is counted in words of four bytes (IBTA vol. 1, 16.1.3.5).
        let words = if name.ends_with("_data") { 4 } else { 1 };
        let known = name.starts_with("port_") || name.starts_with("link_");
        known.then(|| file("counters", name, value / words))
    });
    let of_device = device.iter().filter_map(|(counter, value)| {
        let name = counter.definition().linux;
        (!name.is_empty()).then(|| file("hw_counters", name, value))
    });
    of_port.chain(of_device).collect()
}

/// What a file below the root holds, if it is one of a device's.
fn answer(path: &str) -> Option<String> {
    let path = path.strip_prefix(root())?.trim_start_matches('/');
    if !path.starts_with("class/infiniband") {
        return None;
    }
    // Slashes may be doubled where a program puts a path together.
    let mut wanted = String::with_capacity(path.len());
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let slash = if wanted.is_empty() { "" } else { "/" };
        let _ = write!(wanted, "{slash}{part}");
    }
    let devices = devices(settings()).ok()?;
    let files = devices.iter().flat_map(sysfs_files);
    files
        .into_iter()
        .find(|file| file.path == wanted)
        .map(|file| file.content)
}

/// Reads a file: from memory where it is a device's, from the file system otherwise.
pub(super) fn read(folder: &str, file: &str) -> Result<String, Errno> {
    let path = format!("{folder}/{file}");
    if let Some(content) = answer(&path) {
        return Ok(content);
    }
    std::fs::read_to_string(path).map_err(|error| Errno::of(&error))
}

/// `ibv_get_sysfs_path`
pub(crate) extern "C" fn get_sysfs_path() -> *const c_char {
    static PATH: OnceLock<std::ffi::CString> = OnceLock::new();
    PATH.get_or_init(|| std::ffi::CString::new(root()).unwrap_or_default())
        .as_ptr()
}

/// `ibv_read_sysfs_file`: the length without the newline at the end, or −1
///
/// # Safety
/// The texts end with a zero, and the buffer has `room` bytes.
pub(crate) unsafe extern "C" fn read_sysfs_file(
    folder: *const c_char,
    file: *const c_char,
    buffer: *mut c_char,
    room: usize,
) -> c_int {
    minus_one(|| {
        if folder.is_null() || file.is_null() || buffer.is_null() || room == 0 {
            return Err(Errno::EINVAL);
        }
        // SAFETY: as promised by the caller.
        let (folder, file) = unsafe { (CStr::from_ptr(folder), CStr::from_ptr(file)) };
        let content = read(&folder.to_string_lossy(), &file.to_string_lossy())?;
        let content = content.strip_suffix('\n').unwrap_or(&content);
        let length = content.len().min(room);
        // SAFETY: no more is written than there is room for; the zero at the end only where it fits.
        unsafe {
            std::ptr::copy_nonoverlapping(content.as_ptr().cast(), buffer, length);
            if length < room {
                buffer.add(length).write(0);
            }
        }
        Ok(length as c_int)
    })
}

/// `ibv_read_ibdev_sysfs_file`: its device is a structure of the drivers' interface, which nobody here can have.
pub(crate) extern "C" fn read_ibdev_sysfs_file() -> c_int {
    crate::refuse::refuse_negative()
}
