//! A buffer of a program's: the kernel's header with status and address, then the datagram.
//!
//! ```text
//!   0 agent · 4 status · 8 timeout · 12 retries · 16 length · 20 address, 44 bytes · 64 datagram
//! ```
#![allow(
    unsafe_code,
    reason = "fields of C buffers are read and written by pointer"
)]

use std::ffi::{c_int, c_void};
use std::io::Write;

use softfabric_subnet::umad::Envelope;
use softfabric_units::Lid;

use crate::errno::contain;

/// `struct ib_mad_addr`. Numbers are big-endian, but for the place of the partition key.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Address {
    qpn: u32,
    qkey: u32,
    lid: u16,
    sl: u8,
    path_bits: u8,
    grh_present: u8,
    gid_index: u8,
    hop_limit: u8,
    traffic_class: u8,
    gid: [u8; 16],
    flow_label: u32,
    pkey_index: u16,
    reserved: [u8; 6],
}

/// `struct ib_user_mad`, without the datagram.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) agent: u32,
    pub(crate) status: u32,
    pub(crate) timeout: u32,
    pub(crate) retries: u32,
    pub(crate) length: u32,
    pub(crate) address: Address,
}

/// Bytes before the datagram.
pub(crate) const HEADER: usize = size_of::<Header>();

impl Address {
    pub(crate) fn envelope(&self) -> Envelope {
        Envelope {
            lid: Lid(u16::from_be(self.lid)),
            queue_pair: u32::from_be(self.qpn),
            queue_key: u32::from_be(self.qkey),
            level: self.sl & 0xf,
            partition: self.pkey_index,
        }
    }

    pub(crate) fn of(envelope: &Envelope) -> Self {
        Self {
            qpn: envelope.queue_pair.to_be(),
            qkey: envelope.queue_key.to_be(),
            lid: envelope.lid.0.to_be(),
            sl: envelope.level,
            path_bits: 0,
            grh_present: 0,
            gid_index: 0,
            hop_limit: 0,
            traffic_class: 0,
            gid: [0; 16],
            flow_label: 0,
            pkey_index: envelope.partition,
            reserved: [0; 6],
        }
    }
}

/// The header of a buffer.
///
/// # Safety
/// The buffer has the header's bytes. They may lie anywhere: programs put them into arrays of bytes.
unsafe fn header(buffer: *mut c_void) -> Header {
    // SAFETY: the caller says so, and nothing asks for alignment.
    unsafe { buffer.cast::<Header>().read_unaligned() }
}

/// Changes the header of a buffer.
///
/// # Safety
/// The buffer has the header's bytes. They may lie anywhere: programs put them into arrays of bytes.
pub(crate) unsafe fn update(buffer: *mut c_void, body: impl FnOnce(&mut Header)) {
    let place = buffer.cast::<Header>();
    // SAFETY: the caller says so, and nothing asks for alignment.
    unsafe {
        let mut header = place.read_unaligned();
        body(&mut header);
        place.write_unaligned(header);
    }
}

/// `umad_size`.
pub(crate) extern "C" fn size() -> usize {
    HEADER
}

/// `umad_get_mad`.
pub(crate) extern "C" fn get_mad(buffer: *mut c_void) -> *mut c_void {
    buffer.cast::<u8>().wrapping_add(HEADER).cast()
}

/// `umad_get_mad_addr`.
pub(crate) extern "C" fn get_mad_addr(buffer: *mut c_void) -> *mut c_void {
    let place = std::mem::offset_of!(Header, address);
    buffer.cast::<u8>().wrapping_add(place).cast()
}

/// `umad_status`.
pub(crate) unsafe extern "C" fn status(buffer: *mut c_void) -> c_int {
    // SAFETY: a buffer of the caller's.
    unsafe { header(buffer) }.status as c_int
}

/// `umad_set_addr_net`: numbers as they go on the wire.
pub(crate) unsafe extern "C" fn set_addr_net(
    buffer: *mut c_void,
    lid: u16,
    queue_pair: u32,
    level: c_int,
    queue_key: u32,
) -> c_int {
    // SAFETY: a buffer of the caller's.
    unsafe {
        update(buffer, |header| {
            let address = &mut header.address;
            (address.lid, address.qpn, address.qkey) = (lid, queue_pair, queue_key);
            address.sl = level as u8;
        });
    }
    0
}

/// `umad_set_addr`.
pub(crate) unsafe extern "C" fn set_addr(
    buffer: *mut c_void,
    lid: c_int,
    queue_pair: c_int,
    level: c_int,
    queue_key: c_int,
) -> c_int {
    let (lid, queue_pair) = ((lid as u16).to_be(), (queue_pair as u32).to_be());
    // SAFETY: a buffer of the caller's.
    unsafe { set_addr_net(buffer, lid, queue_pair, level, (queue_key as u32).to_be()) }
}

/// `umad_set_grh` and `umad_set_grh_net`: a global route, or none for a null pointer.
pub(crate) unsafe extern "C" fn set_grh(buffer: *mut c_void, address: *mut c_void) -> c_int {
    // SAFETY: a buffer, and an address or none, of the caller's.
    unsafe {
        let given = (!address.is_null()).then(|| address.cast::<Address>().read_unaligned());
        update(buffer, |header| {
            header.address.grh_present = u8::from(given.is_some());
            if let Some(given) = given {
                let own = &mut header.address;
                (own.gid, own.flow_label) = (given.gid, given.flow_label);
                (own.hop_limit, own.traffic_class) = (given.hop_limit, given.traffic_class);
                own.gid_index = given.gid_index;
            }
        });
    }
    0
}

/// `umad_set_pkey`.
pub(crate) unsafe extern "C" fn set_pkey(buffer: *mut c_void, index: c_int) -> c_int {
    // SAFETY: a buffer of the caller's.
    unsafe { update(buffer, |header| header.address.pkey_index = index as u16) };
    0
}

/// `umad_get_pkey`.
pub(crate) unsafe extern "C" fn get_pkey(buffer: *mut c_void) -> c_int {
    // SAFETY: a buffer of the caller's.
    c_int::from(unsafe { header(buffer) }.address.pkey_index)
}

/// `umad_addr_dump`.
pub(crate) unsafe extern "C" fn addr_dump(address: *const c_void) {
    if !address.is_null() {
        // SAFETY: an address of the caller's.
        let address = unsafe { address.cast::<Address>().read_unaligned() };
        tell(&described(&address));
    }
}

fn described(address: &Address) -> String {
    let to = address.envelope();
    format!(
        "qpn {} qkey 0x{:x} lid {} sl {} grh_present {} pkey_index {}\n",
        to.queue_pair, to.queue_key, to.lid.0, address.sl, address.grh_present, to.partition
    )
}

/// `umad_dump`.
pub(crate) unsafe extern "C" fn dump(buffer: *mut c_void) {
    if !buffer.is_null() {
        // SAFETY: a buffer of the caller's.
        let header = unsafe { header(buffer) };
        tell(&format!(
            "agent id {} status {} timeout {} retries {}\n{}",
            header.agent,
            header.status,
            header.timeout,
            header.retries,
            described(&header.address)
        ));
    }
}

/// To standard error, whether that takes it or not.
fn tell(text: &str) {
    contain(|| {
        let _ = std::io::stderr().write_all(text.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_that_of_c() {
        assert_eq!((size_of::<Address>(), HEADER), (44, 64));
        assert_eq!(std::mem::offset_of!(Header, address), 20);
        assert_eq!(std::mem::offset_of!(Address, pkey_index), 36);
    }

    #[test]
    fn addresses_come_back() {
        let envelope = Envelope {
            lid: Lid(0x1234),
            queue_pair: 1,
            queue_key: 0x8001_0000,
            level: 5,
            partition: 3,
        };
        assert_eq!(Address::of(&envelope).envelope(), envelope);
        let mut buffer = [0_u8; HEADER];
        let pointer = buffer.as_mut_ptr().cast();
        // SAFETY: the buffer has the header's bytes.
        unsafe {
            set_addr(pointer, 0x1234, 1, 5, 0x8001_0000_u32 as c_int);
            set_pkey(pointer, 3);
            assert_eq!(get_pkey(pointer), 3);
            update(pointer, |header| {
                assert_eq!(header.address.envelope(), envelope);
            });
        }
        assert_eq!(buffer[20..24], [0, 0, 0, 1]);
        assert_eq!(buffer[28..30], [0x12, 0x34]);
    }
}
