//! Completion queues and the channels that tell of their events.

mod channel;
mod extended;
mod queue;
mod translate;

pub(crate) use channel::{ack_cq_events, create_comp_channel, destroy_comp_channel, get_cq_event};
pub(crate) use extended::create_cq_ex;
pub(crate) use queue::{
    CompletionQueue, create_cq, destroy_cq, modify_cq, poll_cq, req_notify_cq, resize_cq,
};
