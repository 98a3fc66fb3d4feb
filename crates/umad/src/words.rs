//! Names of classes, methods, attributes and states, for people.

use std::ffi::{CStr, c_char};

fn find<K: PartialEq + Copy>(
    table: &'static [(K, &'static CStr)],
    key: K,
) -> Option<&'static CStr> {
    let found = table.iter().find(|(known, _)| *known == key);
    found.map(|(_, text)| *text)
}

const UNKNOWN: &CStr = c"<unknown>";

const CLASSES: &[(u8, &CStr)] = &[
    (0x01, c"Subn"),
    (0x81, c"SubnDirected"),
    (0x03, c"SA"),
    (0x04, c"Perf"),
    (0x05, c"BM"),
    (0x06, c"DevMgmt"),
    (0x07, c"CM"),
    (0x08, c"SNMP"),
    (0x10, c"DevAdm"),
    (0x11, c"BootMgmt"),
    (0x12, c"BIS"),
    (0x21, c"CongestionControl"),
];

/// `umad_class_str`.
pub(crate) extern "C" fn class_str(class: u8) -> *const c_char {
    let text = match class {
        0x09..=0x0f => c"Vendor",
        0x30..=0x4f => c"Vendor OUI",
        _ => find(CLASSES, class).unwrap_or(UNKNOWN),
    };
    text.as_ptr()
}

const METHODS: &[(u8, &CStr)] = &[
    (0x01, c"Get"),
    (0x02, c"Set"),
    (0x03, c"Send"),
    (0x05, c"Trap"),
    (0x06, c"Report"),
    (0x07, c"TrapRepress"),
    (0x81, c"GetResp"),
    (0x86, c"ReportResp"),
];

const SA_METHODS: &[(u8, &CStr)] = &[
    (0x12, c"GetTable"),
    (0x13, c"GetTraceTable"),
    (0x14, c"GetMulti"),
    (0x15, c"Delete"),
    (0x92, c"GetTableResp"),
    (0x94, c"GetMultiResp"),
    (0x95, c"DeleteResp"),
];

/// `umad_method_str`.
pub(crate) extern "C" fn method_str(class: u8, method: u8) -> *const c_char {
    let of_class = (class == 0x03).then(|| find(SA_METHODS, method)).flatten();
    of_class
        .or_else(|| find(METHODS, method))
        .unwrap_or(UNKNOWN)
        .as_ptr()
}

const COMMON_ATTRIBUTES: &[(u16, &CStr)] = &[
    (0x01, c"Class Port Info"),
    (0x02, c"Notice"),
    (0x03, c"Inform Info"),
];

const SUBNET_ATTRIBUTES: &[(u16, &CStr)] = &[
    (0x10, c"Node Description"),
    (0x11, c"Node Info"),
    (0x12, c"Switch Info"),
    (0x14, c"GUID Info"),
    (0x15, c"Port Info"),
    (0x16, c"P_Key Table"),
    (0x17, c"SL to VL Table"),
    (0x18, c"VL Arb Table"),
    (0x19, c"Linear FT"),
    (0x1a, c"Random FT"),
    (0x1b, c"Multicast FT"),
    (0x20, c"SM Info"),
    (0x30, c"Vendor Diag"),
    (0x31, c"Led Info"),
];

const SA_ATTRIBUTES: &[(u16, &CStr)] = &[
    (0x11, c"Node Record"),
    (0x12, c"Port Info Record"),
    (0x13, c"SL to VL Record"),
    (0x14, c"Switch Info Record"),
    (0x15, c"Linear FT Record"),
    (0x16, c"Random FT Record"),
    (0x17, c"Multicast FT Record"),
    (0x18, c"SM Info Record"),
    (0x19, c"Link Speed Width Table Record"),
    (0x20, c"Link Record"),
    (0x30, c"GUID Info Record"),
    (0x31, c"Service Record"),
    (0x33, c"P_Key Table Record"),
    (0x35, c"Path Record"),
    (0x36, c"VL Arb Record"),
    (0x38, c"MC Member Record"),
    (0x39, c"Trace Record"),
    (0x3a, c"Multi Path Record"),
    (0x3b, c"Service Association Record"),
    (0x3c, c"Hierarchy Info Record"),
    (0x3d, c"Cable Info Record"),
    (0x3e, c"Port Info Extended Record"),
    (0xf3, c"Inform Info Record"),
];

/// `umad_attribute_str`; the attribute as it goes on the wire.
pub(crate) extern "C" fn attribute_str(class: u8, attribute: u16) -> *const c_char {
    let attribute = u16::from_be(attribute);
    let of_class = match class {
        0x01 | 0x81 => find(SUBNET_ATTRIBUTES, attribute),
        0x03 => find(SA_ATTRIBUTES, attribute),
        _ => None,
    };
    let common = || find(COMMON_ATTRIBUTES, attribute);
    of_class.or_else(common).unwrap_or(UNKNOWN).as_ptr()
}

const STATES: &[(u16, &CStr)] = &[
    (0, c"Success"),
    (1, c"Busy"),
    (2, c"Redirect required"),
    (4 << 2, c"Bad Version"),
    (2 << 2, c"Method not supported"),
    (3 << 2, c"Method / Attribute combo not supported"),
    (7 << 2, c"Invalid attribute / modifier field"),
];

/// `umad_common_mad_status_str`; the state as it goes on the wire.
pub(crate) extern "C" fn common_mad_status_str(status: u16) -> *const c_char {
    let status = u16::from_be(status) & 0x1f;
    find(STATES, status).unwrap_or(c"Unknown status").as_ptr()
}

const SA_STATES: &[(u16, &CStr)] = &[
    (0, c"Success"),
    (1, c"No Resources"),
    (2, c"Request Invalid"),
    (3, c"No Records"),
    (4, c"Too Many Records"),
    (5, c"Invalid GID"),
    (6, c"Insufficient Components"),
    (7, c"Request Denied"),
    (8, c"Priority Suggested"),
];

/// `umad_sa_mad_status_str`; the state as it goes on the wire.
pub(crate) extern "C" fn sa_mad_status_str(status: u16) -> *const c_char {
    let status = u16::from_be(status) >> 8;
    find(SA_STATES, status)
        .unwrap_or(c"Undefined Error")
        .as_ptr()
}
