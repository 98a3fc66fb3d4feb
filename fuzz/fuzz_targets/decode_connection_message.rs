//! Any bytes are an error, or a connection management message that comes back when it is encoded.

#![no_main]

use libfuzzer_sys::fuzz_target;
use softfabric_wire::mad::cm::{CmMad, IpHeader, Message};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mad) = CmMad::decode(bytes) else {
        return;
    };
    assert_eq!(CmMad::decode(&mad.encode()).as_ref(), Ok(&mad));
    let private_data: &[u8] = match &mad.message {
        Message::ConnectRequest(request) => &request.private_data,
        Message::ResolutionRequest(request) => &request.private_data,
        _ => return,
    };
    if let Ok(header) = IpHeader::decode(private_data) {
        let mut again = [0; IpHeader::LENGTH];
        header.encode(&mut again);
        assert_eq!(IpHeader::decode(&again), Ok(header));
    }
});
