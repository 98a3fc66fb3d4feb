//! The commands beside `run`: small tools around it.

mod counters;
mod device;
mod documentation;
mod headroom;
mod import;
mod presets;

pub(crate) use counters::counters;
pub(crate) use device::{device, total};
pub(crate) use documentation::{completions, manual, schema};
pub(crate) use headroom::headroom;
pub(crate) use import::import;
pub(crate) use presets::presets;
