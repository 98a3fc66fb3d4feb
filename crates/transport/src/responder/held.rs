//! Packets that arrived before their turn: selective repeat keeps them until the gap is filled.
//!
//! ```text
//! expected            held[0] is always empty: it is the packet that is missing
//!    ▼
//! [ none | some | some | none | some ]
//! ```

use std::collections::VecDeque;

use softfabric_wire::rdma::TransportHeader;

use crate::config::LossRecovery;
use crate::core::Core;
use crate::memory::Memory;
use crate::queue_pair::{QueuePair, State};

/// The most packets kept: more than any bandwidth–delay product of full packets.
const MOST: u32 = 1 << 16;

struct Packet<M: Memory> {
    header: TransportHeader,
    payload: M::Captured,
    length: u32,
}

pub(super) struct Held<M: Memory>(VecDeque<Option<Packet<M>>>);

impl<M: Memory> QueuePair<M> {
    /// Keeps a packet that is `ahead` of the expected one. False where it is too far ahead, or too long.
    pub(super) fn keep(
        &mut self,
        core: &mut Core<M>,
        header: &TransportHeader,
        payload: M::Incoming<'_>,
        length: u32,
        ahead: u32,
    ) -> bool {
        let most = match core.config.recovery {
            LossRecovery::SelectiveRepeat {
                bdp_cap: Some(cap), ..
            } => {
                let mtu = u64::from(self.settings.mtu.as_u32());
                // The peer's cap may be larger than ours by a little: twice is generous and bounded.
                (2 * cap.as_u64().div_ceil(mtu)).min(u64::from(MOST)) as u32
            }
            _ => MOST,
        };
        if ahead > most || length > self.settings.mtu.as_u32() {
            return false;
        }
        let index = ahead as usize;
        let held = self
            .responder
            .held
            .get_or_insert_with(|| Box::new(Held(VecDeque::new())));
        if index >= held.0.len() {
            held.0.resize_with(index + 1, || None);
        }
        if held.0[index].is_none() {
            held.0[index] = Some(Packet {
                header: *header,
                payload: core.memory.hold(payload),
                length,
            });
        }
        true
    }

    /// `consumed` PSNs were executed: what follows them without a gap is executed too.
    pub(super) fn release_held(&mut self, core: &mut Core<M>, consumed: u32) {
        let mut consumed = consumed as usize;
        while self.state != State::Error {
            let Some(held) = &mut self.responder.held else {
                return;
            };
            let gone = consumed.min(held.0.len());
            held.0.drain(..gone);
            let Some(packet) = held.0.front_mut().and_then(Option::take) else {
                break;
            };
            let before = self.responder.expected;
            let payload = M::release(&packet.payload);
            let outcome = self.execute(core, &packet.header, payload, packet.length);
            self.conclude(core, &packet.header, outcome);
            consumed = self.responder.expected.distance_from(before) as usize;
            if consumed == 0 {
                break;
            }
        }
        let empty = |held: &Held<M>| held.0.iter().all(Option::is_none);
        if self.responder.held.as_deref().is_some_and(empty) {
            self.responder.held = None;
        }
    }
}
