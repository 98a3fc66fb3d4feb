//! The C library's functions that take paths, with ours in front of them.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

use super::tree;
use crate::elf;

/// A path for the C library: ours where it leads into the tree, the program's own otherwise.
struct Path {
    own: *const c_char,
    ours: Option<CString>,
}

impl Path {
    /// # Safety
    /// The path is null, or ends with a zero.
    #[inline]
    unsafe fn new(own: *const c_char) -> Self {
        let ours = if own.is_null() {
            None
        } else {
            // SAFETY: as promised by the caller. A panic must not reach C.
            let path = unsafe { CStr::from_ptr(own) };
            let redirect = std::panic::AssertUnwindSafe(|| tree::redirect(path));
            std::panic::catch_unwind(redirect).unwrap_or_default()
        };
        Self { own, ours }
    }

    fn get(&self) -> *const c_char {
        self.ours.as_ref().map_or(self.own, |ours| ours.as_ptr())
    }
}

/// Puts one function in front of another: the path is the argument named so, everything else is passed on.
macro_rules! stand_ins {
    ($($(#[doc = $doc:literal])* fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty { path: $path:ident, call: $call:expr })+) => {
        $(
            #[doc = concat!("`", stringify!($name), "`, with paths redirected.")]
            ///
            /// # Safety
            /// As the C library's function.
            unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                // SAFETY: as promised by the caller.
                let redirected = unsafe { Path::new($path) };
                let $path = redirected.get();
                // SAFETY: as promised by the caller; a redirected path is one of the same kind.
                #[allow(clippy::macro_metavars_in_unsafe, reason = "the calls are listed in this file")]
                unsafe { $call }
            }
        )+
    };
}

unsafe extern "C" {
    fn scandir(
        path: *const c_char,
        list: *mut *mut *mut libc::dirent,
        filter: Option<unsafe extern "C" fn(*const libc::dirent) -> c_int>,
        compare: Option<
            unsafe extern "C" fn(*mut *const libc::dirent, *mut *const libc::dirent) -> c_int,
        >,
    ) -> c_int;
}

type Filter = Option<unsafe extern "C" fn(*const libc::dirent) -> c_int>;
type Compare =
    Option<unsafe extern "C" fn(*mut *const libc::dirent, *mut *const libc::dirent) -> c_int>;

stand_ins! {
    fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
        path: path, call: libc::open(path, flags, mode)
    }
    fn open_2(path: *const c_char, flags: c_int) -> c_int {
        path: path, call: libc::open(path, flags)
    }
    fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
        path: path, call: libc::openat(folder, path, flags, mode)
    }
    fn openat_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
        path: path, call: libc::openat(folder, path, flags)
    }
    fn fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
        path: path, call: libc::fopen(path, mode)
    }
    fn opendir(path: *const c_char) -> *mut libc::DIR {
        path: path, call: libc::opendir(path)
    }
    fn list(path: *const c_char, into: *mut *mut *mut libc::dirent, filter: Filter, compare: Compare) -> c_int {
        path: path, call: scandir(path, into, filter, compare)
    }
    fn stat(path: *const c_char, into: *mut libc::stat) -> c_int {
        path: path, call: libc::stat(path, into)
    }
    fn lstat(path: *const c_char, into: *mut libc::stat) -> c_int {
        path: path, call: libc::lstat(path, into)
    }
    fn old_stat(_version: c_int, path: *const c_char, into: *mut libc::stat) -> c_int {
        path: path, call: libc::stat(path, into)
    }
    fn old_lstat(_version: c_int, path: *const c_char, into: *mut libc::stat) -> c_int {
        path: path, call: libc::lstat(path, into)
    }
    fn fstatat(folder: c_int, path: *const c_char, into: *mut libc::stat, flags: c_int) -> c_int {
        path: path, call: libc::fstatat(folder, path, into, flags)
    }
    fn statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, into: *mut libc::statx) -> c_int {
        path: path, call: libc::statx(folder, path, flags, mask, into)
    }
    fn access(path: *const c_char, mode: c_int) -> c_int {
        path: path, call: libc::access(path, mode)
    }
    fn faccessat(folder: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int {
        path: path, call: libc::faccessat(folder, path, mode, flags)
    }
    fn readlink(path: *const c_char, into: *mut c_char, room: usize) -> isize {
        path: path, call: libc::readlink(path, into, room)
    }
    fn checked_readlink(path: *const c_char, into: *mut c_char, room: usize, _size: usize) -> isize {
        path: path, call: libc::readlink(path, into, room)
    }
    fn realpath(path: *const c_char, into: *mut c_char) -> *mut c_char {
        path: path, call: libc::realpath(path, into)
    }
    fn checked_realpath(path: *const c_char, into: *mut c_char, _size: usize) -> *mut c_char {
        path: path, call: libc::realpath(path, into)
    }
}

/// Changes the tables of every loaded object but the C library and the linker, this library, and `librdmacm`, whose
/// calls lead to the connection manager.
pub(super) fn install() {
    let address = |function: *const c_void| function.expose_provenance();
    let replacements: [elf::Replacement; 32] = [
        (c"open", address(open as *const c_void)),
        (c"open64", address(open as *const c_void)),
        (c"__open_2", address(open_2 as *const c_void)),
        (c"__open64_2", address(open_2 as *const c_void)),
        (c"openat", address(openat as *const c_void)),
        (c"openat64", address(openat as *const c_void)),
        (c"__openat_2", address(openat_2 as *const c_void)),
        (c"__openat64_2", address(openat_2 as *const c_void)),
        (c"fopen", address(fopen as *const c_void)),
        (c"fopen64", address(fopen as *const c_void)),
        (c"opendir", address(opendir as *const c_void)),
        (c"scandir", address(list as *const c_void)),
        (c"scandir64", address(list as *const c_void)),
        (c"stat", address(stat as *const c_void)),
        (c"stat64", address(stat as *const c_void)),
        (c"lstat", address(lstat as *const c_void)),
        (c"lstat64", address(lstat as *const c_void)),
        (c"__xstat", address(old_stat as *const c_void)),
        (c"__xstat64", address(old_stat as *const c_void)),
        (c"__lxstat", address(old_lstat as *const c_void)),
        (c"__lxstat64", address(old_lstat as *const c_void)),
        (c"fstatat", address(fstatat as *const c_void)),
        (c"fstatat64", address(fstatat as *const c_void)),
        (c"statx", address(statx as *const c_void)),
        (c"access", address(access as *const c_void)),
        (c"euidaccess", address(access as *const c_void)),
        (c"faccessat", address(faccessat as *const c_void)),
        (c"readlink", address(readlink as *const c_void)),
        (
            c"__readlink_chk",
            address(checked_readlink as *const c_void),
        ),
        (c"realpath", address(realpath as *const c_void)),
        (
            c"__realpath_chk",
            address(checked_realpath as *const c_void),
        ),
        (
            c"canonicalize_file_name",
            address(canonical as *const c_void),
        ),
    ];
    elf::replace_where(&is_program_s, &replacements);
}

/// `canonicalize_file_name`, with paths redirected.
///
/// # Safety
/// As the C library's function.
unsafe extern "C" fn canonical(path: *const c_char) -> *mut c_char {
    // SAFETY: as promised by the caller.
    unsafe { realpath(path, std::ptr::null_mut()) }
}

/// Whether an object is the program's, by the name of its file; the program itself has none.
fn is_program_s(file: &str) -> bool {
    let others = [
        "libc.so",
        "libc-",
        "libpthread",
        "ld-linux",
        "linux-vdso",
        "librdmacm.so",
        "libsoftfabric_verbs",
    ];
    !others.iter().any(|other| file.starts_with(other)) && !file.starts_with("libibverbs.so")
}
