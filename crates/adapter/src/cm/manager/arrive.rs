//! Datagrams that arrive, each to its place.

use softfabric_units::Time;
use softfabric_wire::DecodeError;
use softfabric_wire::mad::PrivateData;
use softfabric_wire::mad::cm::{
    AlternatePathResponse, AlternatePathStatus, CmMad, LoadAlternatePath, Message,
};

use super::super::event::Way;
use super::Manager;
use super::connection::encode;

impl Manager {
    /// A datagram has come for queue pair 1: to `way.local`, from `way.remote`.
    ///
    /// # Errors
    /// If it is no message of connection management. Messages that fit no connection are answered as the standard says,
    /// or ignored.
    pub fn handle_mad(&mut self, now: Time, way: Way, bytes: &[u8]) -> Result<(), DecodeError> {
        let mad = CmMad::decode(bytes)?;
        let transaction = mad.transaction;
        match mad.message {
            Message::ConnectRequest(request) => self.on_request(now, way, transaction, request),
            Message::ConnectReply(reply) => self.on_reply(now, way, transaction, reply),
            Message::ReadyToUse(ready) => self.on_ready(way, &ready),
            Message::ReceiptAcknowledgement(receipt) => self.on_receipt(now, way, &receipt),
            Message::Reject(reject) => self.on_reject(now, way, reject),
            Message::DisconnectRequest(request) => {
                self.on_disconnect(now, way, transaction, &request);
            }
            Message::DisconnectReply(reply) => self.on_disconnect_reply(now, way, &reply),
            Message::ResolutionRequest(request) => self.on_resolution(way, transaction, request),
            Message::ResolutionReply(reply) => self.on_resolution_reply(way, reply),
            Message::LoadAlternatePath(load) => self.refuse_path(way, transaction, &load),
            Message::AlternatePathResponse(_) => {}
        }
        Ok(())
    }

    /// Connections have one path here.
    fn refuse_path(&mut self, way: Way, transaction: u64, load: &LoadAlternatePath) {
        let entry = self.connections.get(&load.remote);
        let status = match entry {
            Some(entry) if entry.is_peer(&way, load.local) => AlternatePathStatus::UNSUPPORTED,
            _ => AlternatePathStatus::INVALID_COMMUNICATION_ID,
        };
        let response = Message::AlternatePathResponse(AlternatePathResponse {
            local: load.remote,
            remote: load.local,
            information_length: 0,
            status,
            information: PrivateData::default(),
            private_data: PrivateData::default(),
        });
        self.send(way, encode(transaction, response));
    }
}
