//! How much memory a lossless class needs beyond its XOFF point: what still arrives after a pause was decided.
//!
//! ```text
//!   this switch                          cable                        the other end
//!   XOFF decided ──► frame in the way ──► ─────────── pause frame ──► mac/phy, response
//!        ▲                                                            frame in the way
//!        └──── last byte ◄────────────── ──── bytes on the cable ◄─── then it is silent
//! ```
//!
//! The formula is SONiC's (`cfgmgr/buffer_headroom_mellanox.lua` of sonic-swss, with the term for tiles of its later
//! versions):
//!
//! ```text
//! bytes on cable  = 2 · length · speed / (1.98e8 m/s · 8)
//! propagation     = port MTU + bytes on cable + 2 · gearbox + mac/phy + peer response + tile
//! worst factor    = ceil(cell / 64)  if cell > 128,  else ceil(2 · cell / (1 + cell))
//! occupancy       = (100 − share + share · worst factor) / 100,   share = 100 · 64 / average packet
//! xoff            = ceil to 1 KiB (lossless MTU + propagation · occupancy)
//! ```
//!
//! It is worked out in whole numbers, so that rounding up is exact. Three tables that switches are shipped with come
//! out of it row by row; see the tests.
//!
//! Invariant: more speed, a longer cable, a larger MTU or a slower peer never needs less.

mod cable;
mod profile;
#[cfg(test)]
mod tests;

use softfabric_units::{Bytes, Rate, Span};
use thiserror::Error;

pub use cable::{CableLength, ParseCableLengthError};
pub use profile::{HeadroomProfile, PeerResponse, TenthsOfKib};

/// What a lossless priority group of a port needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headroom {
    /// The headroom: what may still arrive after XOFF.
    pub xoff: Bytes,
    /// What is set aside so that the port does not run dry after XON: the switch's own pipeline.
    pub xon: Bytes,
}

impl Headroom {
    /// Both together: what a switch without a shared headroom pool sets aside.
    pub fn size(self) -> Bytes {
        self.xoff + self.xon
    }
}

/// Why a headroom cannot be worked out.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum HeadroomError {
    /// The peer's response is tabled by speed, and this speed is not in the table.
    #[error("no response time is known for a peer at {found}; needed is one of {needed}")]
    UnknownSpeed {
        /// The speed asked for.
        found: Rate,
        /// The speeds in the table.
        needed: String,
    },
    /// Nothing moves, so nothing needs headroom.
    #[error("the port's speed is {found}; needed is more than 0")]
    NoSpeed {
        /// The speed asked for.
        found: Rate,
    },
    /// Packets are smaller than Ethernet's smallest.
    #[error("the average packet is {found}; needed is {needed} or more")]
    PacketTooSmall {
        /// The average packet size.
        found: Bytes,
        /// The smallest Ethernet frame.
        needed: Bytes,
    },
}

/// How far apart the two ends are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distance {
    /// A cable of this length.
    Cable(CableLength),
    /// A link that takes so long from one end to the other.
    Delay(Span),
}

impl From<CableLength> for Distance {
    fn from(length: CableLength) -> Self {
        Self::Cable(length)
    }
}

impl From<Span> for Distance {
    fn from(delay: Span) -> Self {
        Self::Delay(delay)
    }
}

/// The smallest Ethernet frame.
const SMALLEST_PACKET: u64 = 64;

impl HeadroomProfile {
    /// The headroom of a port at `speed` over `distance` (a [`CableLength`], or a one-way delay).
    ///
    /// # Errors
    /// [`HeadroomError`] where the profile says nothing about the speed, or its packets are too small.
    pub fn headroom(
        &self,
        speed: Rate,
        distance: impl Into<Distance>,
    ) -> Result<Headroom, HeadroomError> {
        if speed.is_zero() {
            return Err(HeadroomError::NoSpeed { found: speed });
        }
        let average = self.average_packet.as_u64();
        if average < SMALLEST_PACKET {
            return Err(HeadroomError::PacketTooSmall {
                found: self.average_packet,
                needed: Bytes::new(SMALLEST_PACKET),
            });
        }
        let response = self.peer_response.tenths_of_bytes(speed)?;
        let tenths = self.port_mtu.as_u64() * 10
            + 2 * speed.bytes_in(self.gearbox_delay).as_u64() * 10
            + self.mac_phy_delay.tenths_of_bytes()
            + response
            + self.tile_per_gbps.as_u64() * speed.as_bps() * 10 / 1_000_000_000;
        let (cable, cable_divisor) = bytes_on_cable(speed, distance.into());
        // lossless MTU + (tenths / 10 + cable / divisor) · (average + 64 · (factor − 1)) / average, as one fraction.
        let occupied = u128::from(average + SMALLEST_PACKET * (self.worst_factor() - 1));
        let divisor = 10 * cable_divisor * u128::from(average);
        let propagation = u128::from(tenths) * cable_divisor + 10 * cable;
        let xoff = u128::from(self.lossless_mtu.as_u64()) * divisor + propagation * occupied;
        let kibibytes = xoff.div_ceil(divisor * 1024);
        Ok(Headroom {
            xoff: Bytes::kib(u64::try_from(kibibytes).unwrap_or(u64::MAX >> 10)),
            xon: self.pipeline,
        })
    }

    /// How many times its own size a packet of the worst size takes up in cells.
    fn worst_factor(&self) -> u64 {
        let cell = self.cell.as_u64();
        if cell > 2 * SMALLEST_PACKET {
            cell.div_ceil(SMALLEST_PACKET)
        } else {
            (2 * cell).div_ceil(1 + cell)
        }
    }
}

/// What is on the cable in both directions, as a fraction of bytes: numerator and divisor.
fn bytes_on_cable(speed: Rate, distance: Distance) -> (u128, u128) {
    let speed = u128::from(speed.as_bps());
    match distance {
        Distance::Cable(length) => (
            2 * u128::from(length.as_centimetres()) * speed,
            100 * u128::from(CableLength::METRES_PER_SECOND) * 8,
        ),
        Distance::Delay(delay) => (
            2 * u128::from(delay.as_picos()) * speed,
            8 * 1_000_000_000_000,
        ),
    }
}
