//! The rules, by what they look at.

mod buffers;
mod cables;
mod classes;
pub(crate) mod headroom;
mod hosts;
mod marking;
mod watchdog;

use crate::Fabric;
use crate::finding::Finding;
use crate::host::HostPort;
use crate::sonic::Switch;

/// What is wrong within one switch.
pub(crate) fn switch(fabric: &Fabric, switch: &Switch, findings: &mut Vec<Finding>) {
    headroom::check(fabric, switch, findings);
    buffers::check(switch, findings);
    classes::check(switch, findings);
    marking::check(switch, findings);
    watchdog::check(switch, findings);
}

/// What is wrong within one port of a host.
pub(crate) fn host(host: &HostPort, findings: &mut Vec<Finding>) {
    hosts::check(host, findings);
}

/// What does not fit between the two ends of a cable.
pub(crate) fn cable(fabric: &Fabric, a: &str, b: &str, findings: &mut Vec<Finding>) {
    cables::check(fabric, a, b, findings);
}
