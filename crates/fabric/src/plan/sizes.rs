//! Sizes that follow from a plan: frames, and the headroom that a profile leaves to be worked out.

use softfabric_units::Bytes;

use super::{Addressing, HostProfile, Link, Plan, SwitchProfile};
use crate::headroom::HeadroomProfile;

/// The smallest Ethernet frame (802.3, 4.4.2).
pub(crate) const SMALLEST_FRAME: Bytes = Bytes::new(64);
/// The most that one work request can carry: 2³¹ bytes (IBTA vol. 1, 9.7).
pub(crate) const LARGEST_MESSAGE: Bytes = Bytes::gib(2);
/// BTH and RETH: the longest transport headers of a packet with data.
const LONGEST_HEADERS: Bytes = Bytes::new(28);
const TCP_HEADER: Bytes = Bytes::new(20);

impl Addressing {
    /// Bytes around the transport headers and the payload, from Ethernet header to FCS.
    pub const fn overhead(self) -> Bytes {
        const ETHERNET: u64 = 14;
        const IPV4: u64 = 20;
        const IPV6_OR_GRH: u64 = 40;
        const UDP: u64 = 8;
        const ICRC_AND_FCS: u64 = 8;
        Bytes::new(
            ETHERNET
                + ICRC_AND_FCS
                + match self {
                    Self::RoceV2Ipv4 => IPV4 + UDP,
                    Self::RoceV2Ipv6 => IPV6_OR_GRH + UDP,
                    Self::RoceV1 => IPV6_OR_GRH,
                },
        )
    }

    /// Bytes around the header and the payload of a TCP segment, from Ethernet header to FCS.
    pub const fn tcp_overhead(self) -> Bytes {
        const ETHERNET_AND_FCS: u64 = 18;
        Bytes::new(match self {
            Self::RoceV2Ipv4 | Self::RoceV1 => ETHERNET_AND_FCS + 20,
            Self::RoceV2Ipv6 => ETHERNET_AND_FCS + 40,
        })
    }
}

impl Plan {
    /// The largest frame that any host sends.
    pub(crate) fn largest_frame(&self) -> Bytes {
        let frame = |profile: &HostProfile| match &profile.tcp {
            // The maximum segment size has room for the options of data (RFC 6691).
            Some(stack) => {
                stack.tcp.maximum_segment + TCP_HEADER + profile.addressing.tcp_overhead()
            }
            None => profile.nic.mtu + LONGEST_HEADERS + profile.addressing.overhead(),
        };
        let frames = self.host_profiles.iter().map(frame);
        frames.max().unwrap_or(SMALLEST_FRAME)
    }

    /// What a lossless class of a switch needs on this link so that nothing is lost after XOFF, where its profile leaves
    /// that to be worked out.
    pub(crate) fn needed_headroom(&self, profile: &SwitchProfile, link: &Link) -> Bytes {
        let response = profile.pause.response_delay;
        let mut needs = HeadroomProfile::exact(self.largest_frame(), profile.buffer.cell, response);
        // Acknowledgements ride in lossless classes, too, and each of them takes a cell.
        needs.average_packet = SMALLEST_FRAME;
        let headroom = needs.headroom(link.rate, link.delay + profile.latency);
        headroom.map_or(Bytes::ZERO, |headroom| headroom.xoff)
    }
}
