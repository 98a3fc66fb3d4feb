//! Numbers in words: statuses, events, states, kinds of devices.
//!
//! The words are those of the InfiniBand Architecture Specification (volume 1, 11.6.2 and 11.6.3), which people search
//! for and scripts compare. A number that nobody knows is `unknown`.

use std::ffi::{CStr, c_char, c_int};

/// Words by number, from `first` on.
struct Words {
    first: c_int,
    words: &'static [&'static CStr],
}

impl Words {
    /// The words of `number`.
    fn of(&self, number: c_int) -> *const c_char {
        let place = number.checked_sub(self.first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        let found = place.and_then(|place| self.words.get(place));
        found.copied().unwrap_or(c"unknown").as_ptr()
    }
}

const STATUS: Words = Words {
    first: 0,
    words: &[
        c"success",
        c"local length error",
        c"local QP operation error",
        c"local EE context operation error",
        c"local protection error",
        c"Work Request Flushed Error",
        c"memory window bind error",
        c"bad response error",
        c"local access error",
        c"remote invalid request error",
        c"remote access error",
        c"remote operation error",
        c"transport retry counter exceeded",
        c"RNR retry counter exceeded",
        c"local RDD violation error",
        c"remote invalid RD request",
        c"remote aborted error",
        c"invalid EE context number",
        c"invalid EE context state",
        c"fatal error",
        c"response timeout error",
        c"general error",
        c"tag matching error",
        c"tag matching rendezvous incomplete",
    ],
};

const NODE: Words = Words {
    first: 1,
    words: &[
        c"InfiniBand channel adapter",
        c"InfiniBand switch",
        c"InfiniBand router",
        c"iWARP NIC",
        c"usNIC",
        c"usNIC UDP",
        c"unspecified",
    ],
};

const PORT_STATE: Words = Words {
    first: 0,
    words: &[
        c"no change",
        c"down",
        c"init",
        c"armed",
        c"active",
        c"active defer",
    ],
};

const EVENT: Words = Words {
    first: 0,
    words: &[
        c"completion queue error",
        c"local work queue catastrophic error",
        c"invalid request local work queue error",
        c"local access violation work queue error",
        c"communication established",
        c"send queue drained",
        c"path migrated",
        c"path migration request error",
        c"local catastrophic error",
        c"port active",
        c"port error",
        c"LID change",
        c"P_Key change",
        c"SM change",
        c"shared receive queue catastrophic error",
        c"shared receive queue limit reached",
        c"last work request reached",
        c"client reregistration",
        c"GID change",
        c"work queue fatal error",
    ],
};

/// `ibv_wc_status_str`
pub(crate) extern "C" fn wc_status_str(status: c_int) -> *const c_char {
    STATUS.of(status)
}

/// `ibv_node_type_str`
pub(crate) extern "C" fn node_type_str(node: c_int) -> *const c_char {
    NODE.of(node)
}

/// `ibv_port_state_str`
pub(crate) extern "C" fn port_state_str(state: c_int) -> *const c_char {
    PORT_STATE.of(state)
}

/// `ibv_event_type_str`
pub(crate) extern "C" fn event_type_str(event: c_int) -> *const c_char {
    EVENT.of(event)
}

#[cfg(test)]
#[allow(unsafe_code, reason = "the words are read back through their pointers")]
mod tests {
    use super::*;
    use crate::abi::*;

    fn read(words: *const c_char) -> &'static str {
        // SAFETY: every answer points to a constant text that ends with a zero.
        unsafe { CStr::from_ptr(words) }.to_str().unwrap()
    }

    #[test]
    fn each_number_has_its_words() {
        assert_eq!(read(wc_status_str(IBV_WC_SUCCESS)), "success");
        assert_eq!(
            read(wc_status_str(IBV_WC_RETRY_EXC_ERR)),
            "transport retry counter exceeded"
        );
        assert_eq!(
            read(wc_status_str(IBV_WC_TM_RNDV_INCOMPLETE)),
            "tag matching rendezvous incomplete"
        );
        assert_eq!(
            read(node_type_str(IBV_NODE_CA)),
            "InfiniBand channel adapter"
        );
        assert_eq!(read(port_state_str(IBV_PORT_ACTIVE)), "active");
        assert_eq!(read(event_type_str(IBV_EVENT_GID_CHANGE)), "GID change");
        assert_eq!(
            read(event_type_str(IBV_EVENT_WQ_FATAL)),
            "work queue fatal error"
        );
        for number in [-1, c_int::MIN, c_int::MAX, 24, 0x100] {
            assert_eq!(read(wc_status_str(number)), "unknown");
        }
        assert_eq!(read(node_type_str(0)), "unknown");
        assert_eq!(read(port_state_str(6)), "unknown");
        assert_eq!(read(event_type_str(20)), "unknown");
    }
}
