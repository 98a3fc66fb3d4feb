//! Which process of the host a datagram for queue pair 1 is for.
//!
//! ```text
//! network ──► the process with the lowest slot ─┬─ a connection's message: the slot in its name
//!                                               ├─ a request: who listens, as the registry says
//!                                               └─ nobody: an answer that says so
//! ```

use softfabric_units::{Gid, Time};
use softfabric_wire::mad::MAD_LENGTH;
use softfabric_wire::mad::cm::{CmMad, IpService, Message};

use super::event::Way;
use super::manager::{Manager, asked_address};
use super::names::slot_of;
use super::registry::serving_slot;
use crate::neighbours::Place;
use crate::nic::ArrivedMad;

/// The slot of the process that a datagram is for which came here, if it is for one.
pub(crate) fn addressee(mad: &ArrivedMad) -> Option<u8> {
    recipient(mad.destination, &mad.bytes)
}

/// The slot of the process that a datagram is for at this host's `address`, if it is for one.
pub(super) fn recipient(address: Gid, bytes: &[u8; MAD_LENGTH]) -> Option<u8> {
    let message = CmMad::decode(bytes).ok()?.message;
    let (service, private_data): (_, &[u8]) = match &message {
        Message::ConnectRequest(request) => (request.service, &request.private_data),
        Message::ResolutionRequest(request) => (request.service, &request.private_data),
        // Who refuses before there was an answer has no name to say; that is of no consequence.
        _ => return message.receiver().map(slot_of).filter(|slot| *slot != 0),
    };
    let address = asked_address(service, private_data, address);
    serving_slot(&Place::find().ok()?, IpService::from_id(service)?, address)
}

/// The answer to a datagram that is for nobody on this host, if it wants one.
pub(crate) fn answer_for_nobody(mad: &ArrivedMad) -> Option<Box<[u8; MAD_LENGTH]>> {
    let way = Way {
        device: 0,
        slot: 0,
        local: mad.destination,
        remote: mad.source,
    };
    // A manager that knows nobody and nothing.
    let mut manager = Manager::new(0);
    manager.handle_mad(Time::ZERO, way, &mad.bytes).ok()?;
    manager.poll_transmit().map(|transmit| transmit.mad)
}

#[cfg(test)]
mod tests {
    use softfabric_units::{Gid, Qpn};
    use softfabric_wire::mad::PrivateData;
    use softfabric_wire::mad::cm::{
        CommunicationId, DisconnectRequest, Reject, RejectReason, Stage,
    };

    use super::*;

    fn arrived(message: Message) -> ArrivedMad {
        let mad = CmMad {
            transaction: 1,
            modifier: 0,
            message,
        };
        ArrivedMad {
            source: Gid([1; 16]),
            source_qp: Qpn::GENERAL_SERVICES,
            destination: Gid([2; 16]),
            traffic_class: 0,
            bytes: mad.encode(),
        }
    }

    fn disconnect(remote: u32) -> ArrivedMad {
        arrived(Message::DisconnectRequest(DisconnectRequest {
            local: CommunicationId(1),
            remote: CommunicationId(remote),
            remote_qpn: Qpn::new(1),
            private_data: PrivateData::default(),
        }))
    }

    #[test]
    fn names_say_the_slot() {
        assert_eq!(addressee(&disconnect(0x0700_0001)), Some(7));
        assert_eq!(
            addressee(&disconnect(1)),
            None,
            "no process gives such names"
        );
        let mut other = disconnect(0x0700_0001);
        other.bytes[1] = 3;
        assert_eq!(addressee(&other), None, "of another class");
        assert_eq!(answer_for_nobody(&other), None);
    }

    #[test]
    fn nobody_answers_too() {
        let answer = answer_for_nobody(&disconnect(0x0700_0001)).unwrap();
        let answer = CmMad::decode(&*answer).unwrap();
        assert_eq!(answer.message.name(), "DREP");
        let reject = arrived(Message::Reject(Reject {
            local: CommunicationId(1),
            remote: CommunicationId(2),
            stage: Stage::Request,
            reason: RejectReason::TIMEOUT,
            information_length: 0,
            information: PrivateData::default(),
            private_data: PrivateData::default(),
        }));
        assert_eq!(
            answer_for_nobody(&reject),
            None,
            "a refusal needs no answer"
        );
    }
}
