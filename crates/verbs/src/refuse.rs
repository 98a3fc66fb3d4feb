//! What the library does not do, said honestly.

use std::ffi::{c_int, c_void};

use crate::errno::{Errno, set_errno};

/// Answers a call that returns a number: `ENOSYS`.
pub(crate) extern "C" fn refuse() -> c_int {
    Errno::ENOSYS.code()
}

/// Answers a call that returns a pointer: none, and `ENOSYS` in `errno`.
pub(crate) extern "C" fn refuse_pointer() -> *mut c_void {
    set_errno(Errno::ENOSYS);
    std::ptr::null_mut()
}

/// Answers a call that returns nothing, or where zero is the answer that does no harm.
pub(crate) extern "C" fn refuse_quietly() -> u64 {
    0
}

/// Answers a call that tells its failure as −1: `EOPNOTSUPP` in `errno`.
pub(crate) extern "C" fn refuse_negative() -> c_int {
    set_errno(Errno::EOPNOTSUPP);
    -1
}

/// Answers a call for something that a device may lack: `EOPNOTSUPP`.
pub(crate) extern "C" fn unsupported() -> c_int {
    Errno::EOPNOTSUPP.code()
}

/// The same where a pointer is returned.
pub(crate) extern "C" fn unsupported_pointer() -> *mut c_void {
    set_errno(Errno::EOPNOTSUPP);
    std::ptr::null_mut()
}
