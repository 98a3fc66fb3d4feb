//! Requests that complete without a packet: binding and invalidating memory windows.

use softfabric_units::Time;

use super::Posted;
use crate::completion::Status;
use crate::core::Core;
use crate::memory::{Access, Bind, Memory};
use crate::queue_pair::{QueuePair, QueuePairType, State};
use crate::work::{SendFlags, SendOperation};

impl<M: Memory> QueuePair<M> {
    /// Carries out local requests that have come to their turn, and completes what is done.
    #[inline]
    pub(crate) fn prepare(&mut self, core: &mut Core<M>, now: Time) {
        let _ = now;
        let Some(posted) = self.requester.queue.get(self.requester.index as usize) else {
            return;
        };
        if posted.is_local() && self.state == State::ReadyToSend {
            self.run_local(core);
        }
    }

    fn run_local(&mut self, core: &mut Core<M>) {
        loop {
            let index = self.requester.index as usize;
            let fenced = self.requester.reads > 0;
            let next = self.requester.next;
            let Some(posted) = self.requester.queue.get_mut(index) else {
                break;
            };
            if !posted.is_local() {
                break;
            }
            if posted.ended.is_none() {
                if fenced && posted.request.flags.contains(SendFlags::FENCE) {
                    break;
                }
                posted.begun = true;
                posted.first = next;
                let status = Self::do_local(core, posted, self.service, self.domain, self.number);
                posted.ended = Some(status);
                if status != Status::Success {
                    break;
                }
            }
            self.requester.index += 1;
            self.requester.packet = 0;
        }
        self.reap(core);
    }

    fn do_local(
        core: &mut Core<M>,
        posted: &Posted<M>,
        service: QueuePairType,
        domain: crate::memory::Domain,
        number: softfabric_units::Qpn,
    ) -> Status {
        match posted.request.operation {
            SendOperation::BindWindow(bind) => {
                // IBTA vol. 1, 10.6.7.2.1: unreliable connections bind without remote reads and atomics.
                let unreliable = service == QueuePairType::UnreliableConnection;
                if unreliable
                    && bind
                        .access
                        .intersects(Access::REMOTE_READ | Access::REMOTE_ATOMIC)
                {
                    return Status::WindowBind;
                }
                let bind = Bind {
                    window: bind.window,
                    new_key: bind.new_key,
                    region: bind.region,
                    address: bind.address,
                    length: bind.length,
                    access: bind.access,
                };
                match core.keys.bind(&bind, domain, number) {
                    Ok(()) => Status::Success,
                    Err(_) => Status::WindowBind,
                }
            }
            SendOperation::LocalInvalidate(key) => {
                match core.keys.invalidate(key, domain, number, false) {
                    Ok(()) => Status::Success,
                    Err(_) => Status::LocalOperation,
                }
            }
            _ => Status::Success,
        }
    }
}
