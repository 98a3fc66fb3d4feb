//! TCP headers as frames carry them.
//!
//! A frame has 35 bytes for the transport header. Of a TCP header it holds the wire's own bytes from the sequence number to
//! the window, and the options without the no-operations that align them; what is elsewhere is left out: the ports are the
//! flow's, the checksum follows from all of the packet, and the urgent pointer is never used.

use softfabric_wire::tcp::{TcpFlags, TcpHeader, TcpOptions};

use crate::engine::frame::HEADER_ROOM;
use crate::plan::Flow;

/// Sequence number, acknowledgement number, offset and flags, window.
const FIXED: usize = 12;
/// Where that is in a header.
const WIRE: std::ops::Range<usize> = 4..4 + FIXED;

/// The bytes that a frame holds of a header.
///
/// # Panics
/// If the options are longer than any that our own connections send: SYN's are 19 B, and those with SACK 20 B at most.
pub(crate) fn pack(header: &TcpHeader) -> [u8; HEADER_ROOM] {
    let mut whole = [0; TcpHeader::LONGEST];
    header.encode(&mut whole);
    let mut packed = [0; HEADER_ROOM];
    packed[..FIXED].copy_from_slice(&whole[WIRE]);
    header.options.encode_unpadded(&mut packed[FIXED..]);
    packed
}

/// The header that a frame of `flow` holds, with ports; `reverse` on the way back to the flow's sender. `None` if no header
/// has such bytes.
pub(crate) fn unpack(packed: &[u8; HEADER_ROOM], flow: &Flow, reverse: bool) -> Option<TcpHeader> {
    let word = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&packed[at..at + 4]);
        u32::from_be_bytes(bytes)
    };
    let (flags, window) = ((word(8) >> 16) as u16, word(8) as u16);
    let ports = (flow.udp_source_port, flow.udp_destination_port);
    let (source_port, destination_port) = if reverse { (ports.1, ports.0) } else { ports };
    Some(TcpHeader {
        source_port,
        destination_port,
        sequence: word(0),
        acknowledgement: word(4),
        flags: TcpFlags::from_bits(flags),
        window,
        checksum: 0,
        urgent: 0,
        options: TcpOptions::decode(&packed[FIXED..]).ok()?,
    })
}
