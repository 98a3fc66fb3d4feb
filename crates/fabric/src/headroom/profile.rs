//! What the headroom formula has to know about a switch and its peer, for real platforms.

use softfabric_units::{Bytes, Rate, Span};

use super::HeadroomError;

/// An amount of data in tenths of a KiB, as SONiC's ASIC tables give delays (`0.8`, `3.8`): not always whole bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TenthsOfKib(pub u32);

impl TenthsOfKib {
    /// In tenths of a byte, exactly.
    pub(super) const fn tenths_of_bytes(self) -> u64 {
        self.0 as u64 * 1024
    }
}

/// How much a peer still sends between the arrival of a pause frame and its silence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerResponse {
    /// The same at every speed.
    Fixed(TenthsOfKib),
    /// So many pause quanta (512 bit times, 64 B) at each speed, as IEEE 802.3 31B.3.7 allows.
    Quanta(&'static [(Rate, u32)]),
    /// So long after the frame's arrival, and then at most one frame of this size that is already being sent.
    Delay {
        /// From the arrival to the stop.
        response: Span,
        /// The longest frame of the peer.
        frame: Bytes,
    },
}

impl PeerResponse {
    /// In tenths of a byte at `speed`.
    pub(super) fn tenths_of_bytes(self, speed: Rate) -> Result<u64, HeadroomError> {
        match self {
            Self::Fixed(amount) => Ok(amount.tenths_of_bytes()),
            Self::Quanta(table) => {
                let row = table.iter().find(|(tabled, _)| *tabled == speed);
                let unknown = || {
                    let speeds: Vec<_> = table.iter().map(|(rate, _)| rate.to_string()).collect();
                    HeadroomError::UnknownSpeed {
                        found: speed,
                        needed: speeds.join(", "),
                    }
                };
                row.map(|(_, quanta)| u64::from(*quanta) * 64 * 10)
                    .ok_or_else(unknown)
            }
            Self::Delay { response, frame } => {
                // One byte more: the whole bytes that pass in a span are rounded down.
                let silent_after = speed.bytes_in(response) + Bytes::new(1);
                Ok((silent_after + frame).as_u64() * 10)
            }
        }
    }
}

/// Pause quanta that a peer may take at each speed (IEEE 802.3 31B.3.7, as sonic-swss
/// `cfgmgr/buffer_headroom_mellanox.lua` has them).
pub(super) const QUANTA_BY_SPEED: &[(Rate, u32)] = &[
    (Rate::mbps(100), 1),
    (Rate::gbps(1), 2),
    (Rate::gbps(10), 67),
    (Rate::gbps(25), 80),
    (Rate::gbps(40), 118),
    (Rate::gbps(50), 147),
    (Rate::gbps(100), 394),
    (Rate::gbps(200), 453),
    (Rate::gbps(400), 905),
    (Rate::gbps(800), 905),
];

/// What the formula has to know about a switch and its peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadroomProfile {
    /// Memory is taken in cells of this size.
    pub cell: Bytes,
    /// The largest frame that the port sends: it may be in the pause frame's way.
    pub port_mtu: Bytes,
    /// The largest packet of the lossless class: it may be half received.
    pub lossless_mtu: Bytes,
    /// The average packet; 64 B is the worst case, in which most of a cell is wasted.
    pub average_packet: Bytes,
    /// What passes in the delay of MAC and PHY.
    pub mac_phy_delay: TenthsOfKib,
    /// How much the peer still sends.
    pub peer_response: PeerResponse,
    /// What more passes in the switch's own tiles, for each Gb/s of the port's speed.
    pub tile_per_gbps: Bytes,
    /// The delay of a gearbox between port and PHY.
    pub gearbox_delay: Span,
    /// What passes in the switch's pipeline: the size of XON.
    pub pipeline: Bytes,
}

impl HeadroomProfile {
    /// NVIDIA Spectrum-1 (SN2700, SN2410).
    ///
    /// Reproduces `pg_profile_lookup.ini` of `x86_64-mlnx_msn2700-r0` in sonic-buildimage: cell 96 B, peer response
    /// 3.8 KiB, mac/phy 0.8 KiB, pipeline 19 KiB (its `xon` column), MTU 9,100 B, lossless MTU 1,024 B.
    pub const fn spectrum1() -> Self {
        Self {
            cell: Bytes::new(96),
            port_mtu: Bytes::new(9_100),
            lossless_mtu: Bytes::new(1_024),
            average_packet: Bytes::new(64),
            mac_phy_delay: TenthsOfKib(8),
            peer_response: PeerResponse::Fixed(TenthsOfKib(38)),
            tile_per_gbps: Bytes::ZERO,
            gearbox_delay: Span::ZERO,
            pipeline: Bytes::kib(19),
        }
    }

    /// NVIDIA Spectrum-4 (SN5600).
    ///
    /// Reproduces the `xoff` column of `pg_profile_lookup.ini` of `x86_64-nvidia_sn5600-r0/ACS-SN5600` in
    /// sonic-buildimage: cell 192 B, MTU 9,216 B, lossless MTU 1,024 B, peer response by quanta, 15 B a Gb/s for tiles
    /// (`port_speed / 1000 * 120 / 8`). Its `xon` is 19 KiB, and 38 KiB for ports of eight lanes at 800 Gb/s.
    pub const fn spectrum4() -> Self {
        Self {
            cell: Bytes::new(192),
            port_mtu: Bytes::new(9_216),
            lossless_mtu: Bytes::new(1_024),
            average_packet: Bytes::new(64),
            mac_phy_delay: TenthsOfKib(8),
            peer_response: PeerResponse::Quanta(QUANTA_BY_SPEED),
            tile_per_gbps: Bytes::new(15),
            gearbox_delay: Span::ZERO,
            pipeline: Bytes::kib(19),
        }
    }

    /// NVIDIA Spectrum-4 for RDMA of MTU 4,096 with few small packets.
    ///
    /// Reproduces the `xoff` column of `pg_profile_lookup.ini` of `x86_64-nvidia_sn5600-r0/Mellanox-SN5600-V256` in
    /// sonic-buildimage. Assumed, because all 24 rows then come out: lossless MTU 4,096 B, average packet 128 B.
    pub const fn spectrum4_large_packets() -> Self {
        Self {
            lossless_mtu: Bytes::new(4_096),
            average_packet: Bytes::new(128),
            ..Self::spectrum4()
        }
    }

    /// A switch that counts bytes exactly and a peer that stops `response` after the pause frame's arrival, at the end
    /// of the frame it is sending: what the simulator's own links and switches need for frames of at most `frame`.
    ///
    /// All terms are this formula's, none is a platform's; preamble and gap are within the margin of the rounding up.
    pub const fn exact(frame: Bytes, cell: Bytes, response: Span) -> Self {
        Self {
            cell,
            port_mtu: frame,
            lossless_mtu: frame,
            average_packet: frame,
            mac_phy_delay: TenthsOfKib(1),
            peer_response: PeerResponse::Delay { response, frame },
            tile_per_gbps: Bytes::ZERO,
            gearbox_delay: Span::ZERO,
            pipeline: Bytes::ZERO,
        }
    }

    /// The profile for other packet sizes: the largest frame of the port, and the largest of the lossless class.
    #[must_use]
    pub const fn with_mtu(self, port_mtu: Bytes, lossless_mtu: Bytes) -> Self {
        Self {
            port_mtu,
            lossless_mtu,
            ..self
        }
    }

    /// The names by which profiles are asked for, with what each stands for.
    pub const NAMES: &'static [(&'static str, &'static str)] = &[
        ("spectrum1", "NVIDIA Spectrum-1, SN2700: 64 B packets"),
        ("spectrum4", "NVIDIA Spectrum-4, SN5600: 64 B packets"),
        (
            "spectrum4-large-packets",
            "NVIDIA Spectrum-4, SN5600-V256: MTU 4096, 128 B packets on average",
        ),
    ];

    /// The profile of a name in [`Self::NAMES`].
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "spectrum1" => Some(Self::spectrum1()),
            "spectrum4" => Some(Self::spectrum4()),
            "spectrum4-large-packets" => Some(Self::spectrum4_large_packets()),
            _ => None,
        }
    }
}
