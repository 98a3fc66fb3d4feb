//! A completion of the transport, in the numbers of the C interface.

use std::ffi::c_int;

use softfabric_transport::{Attachment, CompletedOperation, Completion, CompletionFlags, Status};

use crate::abi::*;

/// `IBV_WC_…` status.
pub(super) const fn status(status: Status) -> c_int {
    match status {
        Status::Success => IBV_WC_SUCCESS,
        Status::LocalLength => IBV_WC_LOC_LEN_ERR,
        Status::LocalOperation => IBV_WC_LOC_QP_OP_ERR,
        Status::LocalProtection => IBV_WC_LOC_PROT_ERR,
        Status::Flushed => IBV_WC_WR_FLUSH_ERR,
        Status::WindowBind => IBV_WC_MW_BIND_ERR,
        Status::BadResponse => IBV_WC_BAD_RESP_ERR,
        Status::LocalAccess => IBV_WC_LOC_ACCESS_ERR,
        Status::RemoteInvalidRequest => IBV_WC_REM_INV_REQ_ERR,
        Status::RemoteAccess => IBV_WC_REM_ACCESS_ERR,
        Status::RemoteOperation => IBV_WC_REM_OP_ERR,
        Status::RetriesExceeded => IBV_WC_RETRY_EXC_ERR,
        Status::RnrRetriesExceeded => IBV_WC_RNR_RETRY_EXC_ERR,
        Status::RemoteAborted => IBV_WC_REM_ABORT_ERR,
    }
}

/// `IBV_WC_…` operation.
pub(super) const fn opcode(operation: CompletedOperation) -> c_int {
    match operation {
        CompletedOperation::Send => IBV_WC_SEND,
        CompletedOperation::Write => IBV_WC_RDMA_WRITE,
        CompletedOperation::Read => IBV_WC_RDMA_READ,
        CompletedOperation::CompareSwap => IBV_WC_COMP_SWAP,
        CompletedOperation::FetchAdd => IBV_WC_FETCH_ADD,
        CompletedOperation::BindWindow => IBV_WC_BIND_MW,
        CompletedOperation::LocalInvalidate => IBV_WC_LOCAL_INV,
        CompletedOperation::Receive => IBV_WC_RECV,
        CompletedOperation::ReceiveWithWrite => IBV_WC_RECV_RDMA_WITH_IMM,
    }
}

/// Immediate data in network byte order, or the invalidated key.
pub(super) const fn attachment(attachment: Attachment) -> u32 {
    match attachment {
        Attachment::None => 0,
        Attachment::Immediate(data) => data.to_be(),
        Attachment::Invalidated(key) => key,
    }
}

/// `IBV_WC_…` flags.
pub(super) const fn flags(completion: &Completion) -> u32 {
    let attached = match completion.attachment {
        Attachment::None => 0,
        Attachment::Immediate(_) => IBV_WC_WITH_IMM,
        Attachment::Invalidated(_) => IBV_WC_WITH_INV,
    };
    let header = if completion.flags.contains(CompletionFlags::GRH) {
        IBV_WC_GRH
    } else {
        0
    };
    (attached | header) as u32
}

/// What RoCE hardware puts where InfiniBand has the service level of a datagram: how the header before the payload is to
/// be read. Bit 3: UDP; below it 1 for IPv6 and 2 for IPv4. UCX looks there.
#[inline]
pub(super) fn service_level(completion: &Completion) -> u8 {
    if !completion.flags.contains(CompletionFlags::GRH) {
        return 0;
    }
    if completion.source_gid.to_ip().is_ipv4() {
        0b1010
    } else {
        0b1001
    }
}

/// The whole structure.
#[inline]
pub(super) fn completion(from: &Completion) -> ibv_wc {
    ibv_wc {
        wr_id: from.id,
        status: status(from.status),
        opcode: opcode(from.operation),
        vendor_err: 0,
        byte_len: from.length,
        imm_data: attachment(from.attachment),
        qp_num: from.qp.as_u32(),
        src_qp: from.source.as_u32(),
        wc_flags: flags(from),
        pkey_index: 0,
        slid: 0,
        sl: service_level(from),
        dlid_path_bits: 0,
    }
}

#[cfg(test)]
mod tests {
    use softfabric_units::{Gid, PartitionKey, Qpn};

    use super::*;

    #[test]
    fn every_field_is_translated() {
        let received = Completion {
            id: 1,
            status: Status::Success,
            operation: CompletedOperation::Receive,
            qp: Qpn::new(2),
            length: 3,
            attachment: Attachment::Immediate(0x0102_0304),
            flags: CompletionFlags::GRH | CompletionFlags::SOLICITED,
            source: Qpn::new(4),
            source_gid: Gid([0; 16]),
            partition: PartitionKey::DEFAULT,
        };
        let wc = completion(&received);
        assert_eq!(
            (wc.wr_id, wc.status, wc.opcode),
            (1, IBV_WC_SUCCESS, IBV_WC_RECV)
        );
        assert_eq!((wc.qp_num, wc.byte_len, wc.src_qp), (2, 3, 4));
        assert_eq!(
            wc.imm_data.to_ne_bytes(),
            [1, 2, 3, 4],
            "network byte order"
        );
        assert_eq!(wc.wc_flags, (IBV_WC_GRH | IBV_WC_WITH_IMM) as u32);
        assert_eq!(wc.sl, 0b1001, "IPv6 over UDP");
        let v4 = Completion {
            source_gid: Gid::from(std::net::Ipv4Addr::LOCALHOST),
            ..received
        };
        assert_eq!(completion(&v4).sl, 0b1010, "IPv4 over UDP");

        let invalidated = Completion {
            attachment: Attachment::Invalidated(0x0102_0304),
            flags: CompletionFlags::empty(),
            status: Status::RnrRetriesExceeded,
            operation: CompletedOperation::ReceiveWithWrite,
            ..received
        };
        let wc = completion(&invalidated);
        assert_eq!(wc.imm_data, 0x0102_0304, "a key is a number of this host");
        assert_eq!(wc.wc_flags, IBV_WC_WITH_INV as u32);
        assert_eq!(wc.sl, 0, "not a datagram");
        assert_eq!(
            (wc.status, wc.opcode),
            (IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_RECV_RDMA_WITH_IMM)
        );
    }
}
