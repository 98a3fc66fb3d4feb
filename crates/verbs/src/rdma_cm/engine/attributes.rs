//! How a queue pair is to be changed for its connection: what librdmacm gives to `ibv_modify_qp`.

use super::super::abi;
use super::super::descriptors::ChannelId;
use super::{Cm, DATAGRAM_QKEY, Id, Peer};
use crate::abi::*;
use crate::errno::Errno;

impl Cm {
    /// The attributes for the state that the program wants to reach.
    pub(crate) fn init_qp_attributes(
        &mut self,
        channel: ChannelId,
        command: &abi::InitQpAttributes,
    ) -> Result<ib_uverbs_qp_attr, Errno> {
        let id = self.id(channel, command.id)?;
        if id.local.is_none() {
            return Err(Errno::EINVAL);
        }
        let mut attributes = ib_uverbs_qp_attr {
            qp_state: command.state,
            ..Default::default()
        };
        let mask = match command.state as i32 {
            IBV_QPS_INIT => id.initialise(&mut attributes),
            IBV_QPS_RTR => id.ready_to_receive(&mut attributes)?,
            IBV_QPS_RTS => id.ready_to_send(&mut attributes)?,
            _ => return Err(Errno::EINVAL),
        };
        attributes.qp_attr_mask = (mask | IBV_QP_STATE) as u32;
        Ok(attributes)
    }
}

impl Id {
    fn is_reliable(&self) -> bool {
        i32::from(self.qp_type) != IBV_QPT_UC
    }

    fn initialise(&self, attributes: &mut ib_uverbs_qp_attr) -> i32 {
        attributes.port_num = 1;
        if self.is_datagram() {
            attributes.qkey = self.qkey.unwrap_or(DATAGRAM_QKEY);
            return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
        }
        // What the peer may do is known once it is.
        let access = match &self.peer {
            None => 0,
            Some(peer) if peer.responder_resources == 0 => IBV_ACCESS_REMOTE_WRITE,
            Some(_) => IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
        };
        attributes.qp_access_flags = access as u32;
        IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
    }

    fn ready_to_receive(&self, attributes: &mut ib_uverbs_qp_attr) -> Result<i32, Errno> {
        if self.is_datagram() {
            return Ok(0);
        }
        let peer = self.known_peer()?;
        attributes.ah_attr = self.path_attributes(self.destination_gid().ok_or(Errno::EINVAL)?);
        attributes.path_mtu = u32::from(peer.mtu.code().min(self.mtu().code()));
        attributes.dest_qp_num = peer.qpn.as_u32();
        attributes.rq_psn = self.psn.as_u32();
        let mut mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        if self.is_reliable() && i32::from(self.qp_type) != IBV_QPT_XRC_SEND {
            attributes.max_dest_rd_atomic = peer.responder_resources;
            mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        }
        Ok(mask)
    }

    fn ready_to_send(&self, attributes: &mut ib_uverbs_qp_attr) -> Result<i32, Errno> {
        if self.is_datagram() {
            return Ok(IBV_QP_SQ_PSN);
        }
        let peer = self.known_peer()?;
        attributes.sq_psn = peer.psn.as_u32();
        let mut mask = IBV_QP_SQ_PSN;
        if self.is_reliable() {
            attributes.timeout = self.ack_timeout.unwrap_or(peer.ack_timeout.code());
            mask |= IBV_QP_TIMEOUT;
        }
        if self.is_reliable() && i32::from(self.qp_type) != IBV_QPT_XRC_RECV {
            attributes.retry_cnt = peer.retries;
            attributes.rnr_retry = peer.rnr_retries;
            attributes.max_rd_atomic = peer.initiator_depth;
            mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        }
        Ok(mask)
    }

    /// The other side, once it has said who it is.
    fn known_peer(&self) -> Result<&Peer, Errno> {
        let peer = self.peer.as_ref().filter(|peer| peer.qpn.as_u32() != 0);
        peer.ok_or(Errno::EINVAL)
    }
}
