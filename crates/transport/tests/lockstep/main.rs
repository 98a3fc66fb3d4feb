//! Two devices in lockstep under a virtual clock: one binary, a module per subject.

mod captures;
mod congestion;
mod forged;
mod garbage;
mod identity;
mod links;
mod lost_payloads;
mod multicast;
mod numbers;
mod objects;
mod properties;
mod refusals;
mod regions;
mod reliable;
mod retries;
mod targets;
mod transitions;
mod unreliable;
mod windows;
mod xrc;
