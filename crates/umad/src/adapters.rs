//! What there is: one adapter, with the ports of the node that the program is at.
//!
//! Structures are those of `infiniband/umad.h`; what they point to is made with `malloc` and freed by the release functions.
#![allow(unsafe_code, reason = "structures of C are filled by pointer")]

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::io;

use softfabric_subnet::umad::{Adapter, AdapterPort, FromServer, ToServer};

use crate::errno::{contain, guard, negative};
use crate::stream;

/// The adapter's name.
const NAME: &CStr = c"softfabric0";
const NAME_LENGTH: usize = 20;
const MOST_PORTS: usize = 10;

/// `umad_port_t`.
#[repr(C)]
pub(crate) struct Port {
    ca_name: [c_char; NAME_LENGTH],
    portnum: c_int,
    base_lid: c_uint,
    lmc: c_uint,
    sm_lid: c_uint,
    sm_sl: c_uint,
    state: c_uint,
    phys_state: c_uint,
    rate: c_uint,
    capmask: u32,
    gid_prefix: u64,
    port_guid: u64,
    pkeys_size: c_uint,
    pkeys: *mut u16,
    link_layer: [c_char; NAME_LENGTH],
}

/// `umad_ca_t`.
#[repr(C)]
pub(crate) struct Ca {
    ca_name: [c_char; NAME_LENGTH],
    node_type: c_uint,
    numports: c_int,
    fw_ver: [c_char; 20],
    ca_type: [c_char; 40],
    hw_ver: [c_char; 20],
    node_guid: u64,
    system_guid: u64,
    ports: [*mut Port; MOST_PORTS],
}

/// `struct umad_device_node`.
#[repr(C)]
pub(crate) struct DeviceNode {
    next: *mut DeviceNode,
    ca_name: *const c_char,
}

/// `struct umad_ca_pair`.
#[repr(C)]
pub(crate) struct CaPair {
    smi_name: [c_char; NAME_LENGTH],
    smi_preferred_port: u32,
    gsi_name: [c_char; NAME_LENGTH],
    gsi_preferred_port: u32,
}

fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    for (to, from) in field.iter_mut().zip(text.bytes().take(N - 1)) {
        *to = from as c_char;
    }
    field
}

fn name() -> [c_char; NAME_LENGTH] {
    text(&NAME.to_string_lossy())
}

/// The adapter as the server describes it.
fn adapter() -> io::Result<Adapter> {
    let mut stream = stream::connect()?;
    let question = ToServer::Describe {
        node: stream::node(),
    };
    match stream::ask(&mut stream, &question)? {
        FromServer::Adapter(adapter) => Ok(adapter),
        _ => Err(io::Error::from_raw_os_error(libc::ENODEV)),
    }
}

/// Whether a name that a program gives is the adapter's; none means any.
///
/// # Safety
/// `name` is null or a C string.
pub(crate) unsafe fn is_ours(name: *const c_char) -> bool {
    // SAFETY: the caller says so.
    name.is_null() || unsafe { CStr::from_ptr(name) } == NAME
}

/// The port that a program means: 0 is the first that is active, else the first that is not down,
/// else the first.
pub(crate) fn choose(number: c_int) -> io::Result<AdapterPort> {
    let adapter = adapter()?;
    let find = |least: u8| adapter.ports.iter().find(|port| port.state >= least);
    let found = if number == 0 {
        find(4).or_else(|| find(2)).or(adapter.ports.first())
    } else {
        let named = |port: &&AdapterPort| c_int::from(port.number) == number;
        adapter.ports.iter().find(named)
    };
    found
        .copied()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
}

fn port(port: &AdapterPort) -> io::Result<Port> {
    let count = port.partitions.len();
    // SAFETY: memory for so many numbers, looked at before it is used.
    let keys = unsafe { libc::calloc(count, size_of::<u16>()) }.cast::<u16>();
    if keys.is_null() {
        return Err(io::Error::from_raw_os_error(libc::ENOMEM));
    }
    for (place, key) in port.partitions.iter().enumerate() {
        // SAFETY: within what was just made.
        unsafe { keys.add(place).write(*key) };
    }
    Ok(Port {
        ca_name: name(),
        portnum: c_int::from(port.number),
        base_lid: c_uint::from(port.lid.0),
        lmc: c_uint::from(port.lmc),
        sm_lid: c_uint::from(port.manager.0),
        sm_sl: c_uint::from(port.manager_level),
        state: c_uint::from(port.state),
        phys_state: c_uint::from(port.physical_state),
        rate: port.rate,
        capmask: port.capabilities.to_be(),
        gid_prefix: port.prefix.to_be(),
        port_guid: port.guid.0.to_be(),
        pkeys_size: count as c_uint,
        pkeys: keys,
        link_layer: text("InfiniBand"),
    })
}

/// `umad_get_cas_names`: how many names were written.
pub(crate) unsafe extern "C" fn get_cas_names(
    names: *mut [c_char; NAME_LENGTH],
    max: c_int,
) -> c_int {
    guard(|| {
        if names.is_null() || max < 1 || adapter().is_err() {
            return 0;
        }
        // SAFETY: there is room for `max` names.
        unsafe { names.write(name()) };
        1
    })
}

/// `umad_get_ca_portguids`: GUIDs by port number, the first of port 0.
pub(crate) unsafe extern "C" fn get_ca_portguids(
    ca: *const c_char,
    guids: *mut u64,
    max: c_int,
) -> c_int {
    guard(|| {
        // SAFETY: the caller gives a C string or none.
        if !unsafe { is_ours(ca) } {
            return -libc::ENODEV;
        }
        let adapter = match adapter() {
            Ok(adapter) => adapter,
            Err(error) => return negative(&error),
        };
        let last = adapter.ports.iter().map(|port| port.number).max();
        let count = c_int::from(last.unwrap_or(0)) + 1;
        if guids.is_null() {
            return count;
        }
        if max < count {
            return -libc::ENOMEM;
        }
        for number in 0..count {
            let port = adapter
                .ports
                .iter()
                .find(|port| c_int::from(port.number) == number);
            let guid = port.map_or(0, |port| port.guid.0.to_be());
            // SAFETY: `count` is not above `max`.
            unsafe { guids.add(number as usize).write(guid) };
        }
        count
    })
}

/// `umad_get_ca`.
pub(crate) unsafe extern "C" fn get_ca(wanted: *const c_char, ca: *mut Ca) -> c_int {
    guard(|| {
        // SAFETY: the caller gives a C string or none.
        if ca.is_null() || !unsafe { is_ours(wanted) } {
            return -libc::ENODEV;
        }
        match adapter().and_then(|adapter| describe(&adapter)) {
            Ok(described) => {
                // SAFETY: the caller's structure.
                unsafe { ca.write(described) };
                0
            }
            Err(error) => negative(&error),
        }
    })
}

fn describe(adapter: &Adapter) -> io::Result<Ca> {
    let mut described = Ca {
        ca_name: name(),
        node_type: c_uint::from(adapter.kind),
        numports: 0,
        fw_ver: text("1.0.0"),
        ca_type: text(&format!("softfabric-{}", adapter.device)),
        hw_ver: text("0"),
        node_guid: adapter.guid.0.to_be(),
        system_guid: adapter.system.0.to_be(),
        ports: [std::ptr::null_mut(); MOST_PORTS],
    };
    for found in adapter
        .ports
        .iter()
        .filter(|port| usize::from(port.number) < MOST_PORTS)
    {
        match placed(found) {
            Ok(place) => described.ports[usize::from(found.number)] = place,
            Err(error) => {
                // SAFETY: what is there was made here.
                unsafe { release_ca(&raw mut described) };
                return Err(error);
            }
        }
        described.numports = described.numports.max(c_int::from(found.number));
    }
    Ok(described)
}

/// A port in memory of its own.
fn placed(found: &AdapterPort) -> io::Result<*mut Port> {
    // SAFETY: memory for one port, looked at before it is used.
    let place = unsafe { libc::malloc(size_of::<Port>()) }.cast::<Port>();
    if place.is_null() {
        return Err(io::Error::from_raw_os_error(libc::ENOMEM));
    }
    match port(found) {
        Ok(filled) => {
            // SAFETY: it was just made for this.
            unsafe { place.write(filled) };
            Ok(place)
        }
        Err(error) => {
            // SAFETY: it was just made, and is nobody's.
            unsafe { libc::free(place.cast()) };
            Err(error)
        }
    }
}

/// `umad_release_ca`.
pub(crate) unsafe extern "C" fn release_ca(ca: *mut Ca) -> c_int {
    if ca.is_null() {
        return -libc::ENODEV;
    }
    // SAFETY: filled by `get_ca`; each pointer is cleared when it is freed.
    unsafe {
        for place in &mut (*ca).ports {
            if !place.is_null() {
                release_port(*place);
                libc::free(place.cast());
                *place = std::ptr::null_mut();
            }
        }
    }
    0
}

/// `umad_get_port`.
pub(crate) unsafe extern "C" fn get_port(
    ca: *const c_char,
    number: c_int,
    filled: *mut Port,
) -> c_int {
    guard(|| {
        // SAFETY: the caller gives a C string or none.
        if filled.is_null() || !unsafe { is_ours(ca) } {
            return -libc::ENODEV;
        }
        match choose(number).and_then(|found| port(&found)) {
            Ok(port) => {
                // SAFETY: the caller's structure.
                unsafe { filled.write(port) };
                0
            }
            Err(error) => negative(&error),
        }
    })
}

/// `umad_release_port`.
pub(crate) unsafe extern "C" fn release_port(port: *mut Port) -> c_int {
    if port.is_null() {
        return -libc::ENODEV;
    }
    // SAFETY: filled by `get_port` or `get_ca`; the pointer is cleared when it is freed.
    unsafe {
        libc::free((*port).pkeys.cast());
        (*port).pkeys = std::ptr::null_mut();
        (*port).pkeys_size = 0;
    }
    0
}

/// `umad_get_ca_device_list`: a list with the adapter; null and `errno` 0 where there is none.
pub(crate) extern "C" fn get_ca_device_list() -> *mut DeviceNode {
    if !matches!(contain(adapter), Some(Ok(_))) {
        crate::errno::set(0);
        return std::ptr::null_mut();
    }
    // SAFETY: memory for one node, looked at before it is used.
    let node = unsafe { libc::malloc(size_of::<DeviceNode>()) }.cast::<DeviceNode>();
    if !node.is_null() {
        let contents = DeviceNode {
            next: std::ptr::null_mut(),
            ca_name: NAME.as_ptr(),
        };
        // SAFETY: it was just made for this.
        unsafe { node.write(contents) };
    }
    node
}

/// `umad_free_ca_device_list`.
pub(crate) unsafe extern "C" fn free_ca_device_list(head: *mut DeviceNode) {
    let mut node = head;
    while !node.is_null() {
        // SAFETY: made by `get_ca_device_list`; names are static.
        unsafe {
            let next = (*node).next;
            libc::free(node.cast());
            node = next;
        }
    }
}

/// `umad_sort_ca_device_list`: by name; for C programs that have joined lists. 0, or 1 for a null pointer.
pub(crate) unsafe extern "C" fn sort_ca_device_list(
    head: *mut *mut DeviceNode,
    _size: usize,
) -> c_int {
    if head.is_null() {
        return 1;
    }
    let mut nodes = Vec::new();
    // SAFETY: a list of the caller's, ended by a null pointer, whose names are C strings.
    unsafe {
        let mut node = *head;
        while !node.is_null() {
            nodes.push(node);
            node = (*node).next;
        }
        nodes.sort_by_key(|node| CStr::from_ptr((**node).ca_name));
        let mut next = std::ptr::null_mut();
        for node in nodes.into_iter().rev() {
            (*node).next = next;
            next = node;
        }
        *head = next;
    }
    0
}

/// `umad_get_smi_gsi_pairs`: the adapter is its own partner.
pub(crate) unsafe extern "C" fn get_smi_gsi_pairs(pairs: *mut CaPair, max: usize) -> c_int {
    guard(|| {
        if pairs.is_null() || max == 0 {
            return -libc::EINVAL;
        }
        let Ok(preferred) = choose(0).map(|port| port.number) else {
            return 0;
        };
        let pair = CaPair {
            smi_name: name(),
            smi_preferred_port: u32::from(preferred),
            gsi_name: name(),
            gsi_preferred_port: u32::from(preferred),
        };
        // SAFETY: there is room for `max` pairs.
        unsafe { pairs.write(pair) };
        1
    })
}

/// `umad_get_smi_gsi_pair_by_ca_name`: 0, or a negative number.
pub(crate) unsafe extern "C" fn get_smi_gsi_pair_by_ca_name(
    ca: *const c_char,
    number: u8,
    pair: *mut CaPair,
    _enforce_smi: c_uint,
) -> c_int {
    guard(|| {
        // SAFETY: the caller gives a C string or none.
        if pair.is_null() || !unsafe { is_ours(ca) } {
            return -libc::ENODEV;
        }
        let chosen = match choose(c_int::from(number)) {
            Ok(chosen) => u32::from(chosen.number),
            Err(error) => return negative(&error),
        };
        let found = CaPair {
            smi_name: name(),
            smi_preferred_port: chosen,
            gsi_name: name(),
            gsi_preferred_port: chosen,
        };
        // SAFETY: the caller's structure.
        unsafe { pair.write(found) };
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes and places as the C headers have them, on machines with 64-bit pointers.
    #[test]
    fn structures_are_those_of_c() {
        assert_eq!(size_of::<Port>(), 112);
        assert_eq!(std::mem::offset_of!(Port, capmask), 52);
        assert_eq!(std::mem::offset_of!(Port, gid_prefix), 56);
        assert_eq!(std::mem::offset_of!(Port, pkeys), 80);
        assert_eq!(size_of::<Ca>(), 208);
        assert_eq!(std::mem::offset_of!(Ca, node_guid), 112);
        assert_eq!(std::mem::offset_of!(Ca, ports), 128);
        assert_eq!(size_of::<CaPair>(), 48);
    }
}
