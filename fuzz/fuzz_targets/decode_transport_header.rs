//! Any bytes are an error, or a header that comes back when it is encoded.

#![no_main]

use libfuzzer_sys::fuzz_target;
use softfabric_wire::rdma::TransportHeader;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((header, length)) = TransportHeader::decode(bytes) {
        let mut again = [0; TransportHeader::MAX_LENGTH];
        assert_eq!(header.encode(&mut again), length);
        assert_eq!(TransportHeader::decode(&again), Ok((header, length)));
    }
});
