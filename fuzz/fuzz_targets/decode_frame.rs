//! Any bytes are an error, or a frame that encodes to the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use softfabric_wire::{Body, Frame};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(frame) = Frame::decode(bytes) {
        assert_eq!(frame.to_bytes(), bytes, "{frame:?}");
        if let Body::Roce(packet) = frame.body {
            packet.icrc_is_right();
        }
    }
});
