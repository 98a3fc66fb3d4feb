//! What a program may ask of an identifier.

use softfabric_wire::mad::cm::PathMtuCode;

use super::super::abi;
use super::super::descriptors::ChannelId;
use super::{Cm, Id, State};
use crate::abi::ib_user_path_rec;
use crate::errno::Errno;

/// The only port of a device.
const PORT: u8 = 1;
/// Which addresses [`Cm::query_address`] shows: socket addresses, or GIDs in the form of `sockaddr_ib`.
const ADDRESS_FAMILY_IB: u16 = 27;

impl Cm {
    /// Addresses, device and path.
    pub(crate) fn query_route(
        &mut self,
        channel: ChannelId,
        number: u32,
    ) -> Result<abi::RouteAnswer, Errno> {
        let id = self.id(channel, number)?;
        let mut answer: abi::RouteAnswer = abi::read(&[]);
        (answer.source, _) = abi::encode_address(id.source);
        (answer.destination, _) = abi::encode_address(id.destination);
        let Some(local) = &id.local else {
            return Ok(answer);
        };
        answer.guid = local.info.guid;
        answer.device = local.info.index as u32;
        answer.port = PORT;
        if let Some(path) = id.path_record() {
            answer.paths[0] = on_the_wire(path);
            answer.path_count = u32::from(id.has_route());
        }
        Ok(answer)
    }

    /// Addresses and device.
    pub(crate) fn query_address(
        &mut self,
        channel: ChannelId,
        number: u32,
    ) -> Result<abi::AddressAnswer, Errno> {
        let id = self.id(channel, number)?;
        let mut answer = id.address_answer();
        (answer.source, answer.source_length) = abi::encode_address(id.source);
        (answer.destination, answer.destination_length) = abi::encode_address(id.destination);
        Ok(answer)
    }

    /// GIDs and device.
    pub(crate) fn query_gid(
        &mut self,
        channel: ChannelId,
        number: u32,
    ) -> Result<abi::AddressAnswer, Errno> {
        let id = self.id(channel, number)?;
        let mut answer = id.address_answer();
        let gid = |gid: Option<softfabric_units::Gid>| {
            // family, partition, flow, GID, service, its mask, scope
            let mut bytes = [0; 128];
            bytes[..2].copy_from_slice(&ADDRESS_FAMILY_IB.to_ne_bytes());
            bytes[2..4].copy_from_slice(&0xffff_u16.to_be_bytes());
            bytes[8..24].copy_from_slice(&gid.unwrap_or_default().0);
            (bytes, 48)
        };
        (answer.source, answer.source_length) = gid(id.source_gid());
        (answer.destination, answer.destination_length) = gid(id.destination_gid());
        Ok(answer)
    }

    /// The path as subnet administration would write it.
    pub(crate) fn query_path(
        &mut self,
        channel: ChannelId,
        number: u32,
    ) -> Result<abi::PathAnswer, Errno> {
        /// For management too, the first, both ways.
        const FLAGS: u32 = 0x1 | 0x2 | 0x8 | 0x20;
        let id = self.id(channel, number)?;
        let mut answer: abi::PathAnswer = abi::read(&[]);
        if let Some(path) = id.path_record().filter(|_| id.has_route()) {
            answer.count = 1;
            answer.flags = FLAGS;
            answer.record = record(&path);
        }
        Ok(answer)
    }
}

impl Id {
    fn has_route(&self) -> bool {
        matches!(
            self.state,
            State::RouteResolved | State::Connected | State::Disconnected
        )
    }

    fn address_answer(&self) -> abi::AddressAnswer {
        let mut answer: abi::AddressAnswer = abi::read(&[]);
        if let Some(local) = &self.local {
            answer.guid = local.info.guid;
            answer.device = local.info.index as u32;
            answer.port = PORT;
            answer.partition = 0xffff;
        }
        answer
    }
}

/// The record with its larger numbers in network order.
fn on_the_wire(path: ib_user_path_rec) -> ib_user_path_rec {
    ib_user_path_rec {
        dlid: path.dlid.to_be(),
        slid: path.slid.to_be(),
        flow_label: path.flow_label.to_be(),
        pkey: path.pkey.to_be(),
        ..path
    }
}

/// The 64 bytes of a path record (IBTA vol. 1, table 216).
fn record(path: &ib_user_path_rec) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[8..24].copy_from_slice(&path.dgid);
    bytes[24..40].copy_from_slice(&path.sgid);
    bytes[40..42].copy_from_slice(&path.dlid.to_be_bytes());
    bytes[42..44].copy_from_slice(&path.slid.to_be_bytes());
    let flow = path.flow_label << 8 | u32::from(path.hop_limit);
    bytes[44..48].copy_from_slice(&flow.to_be_bytes());
    bytes[48] = path.traffic_class;
    bytes[49] = (path.reversible as u8) << 7 | path.numb_path;
    bytes[50..52].copy_from_slice(&path.pkey.to_be_bytes());
    bytes[53] = path.sl & 0xf;
    let mtu = PathMtuCode::from_code(path.mtu as u8).code();
    bytes[54] = path.mtu_selector << 6 | mtu;
    bytes[55] = path.rate_selector << 6 | path.rate;
    bytes[56] = path.packet_life_time_selector << 6 | path.packet_life_time;
    bytes[57] = path.preference;
    bytes
}
