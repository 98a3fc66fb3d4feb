//! Changes of a queue pair: attributes of the C interface become a [`Modify`] of the transport, which judges them.

use std::ffi::c_int;

use softfabric_transport::{
    Access, AckTimeout, Migration, Modify, ModifyError, Mtu, RnrRetry, State,
};
use softfabric_units::{PartitionKey, Psn, Qpn};
use softfabric_wire::rdma::RnrTimer;

use super::QueuePair;
use crate::abi::*;
use crate::address;
use crate::errno::{Errno, number};
use crate::memory;
use crate::object::lock;

fn state(number: c_int) -> Result<State, Errno> {
    Ok(match number {
        IBV_QPS_RESET => State::Reset,
        IBV_QPS_INIT => State::Initialized,
        IBV_QPS_RTR => State::ReadyToReceive,
        IBV_QPS_RTS => State::ReadyToSend,
        IBV_QPS_SQD => State::SendQueueDrain,
        IBV_QPS_SQE => State::SendQueueError,
        IBV_QPS_ERR => State::Error,
        _ => return Err(Errno::EINVAL),
    })
}

/// The C interface's number of a state.
pub(super) const fn state_number(state: State) -> c_int {
    match state {
        State::Reset => IBV_QPS_RESET,
        State::Initialized => IBV_QPS_INIT,
        State::ReadyToReceive => IBV_QPS_RTR,
        State::ReadyToSend => IBV_QPS_RTS,
        State::SendQueueDrain => IBV_QPS_SQD,
        State::SendQueueError => IBV_QPS_SQE,
        State::Error => IBV_QPS_ERR,
    }
}

fn mtu(number: c_int) -> Result<Mtu, Errno> {
    Ok(match number {
        IBV_MTU_256 => Mtu::BYTES_256,
        IBV_MTU_512 => Mtu::BYTES_512,
        IBV_MTU_1024 => Mtu::BYTES_1024,
        IBV_MTU_2048 => Mtu::BYTES_2048,
        IBV_MTU_4096 => Mtu::BYTES_4096,
        _ => return Err(Errno::EINVAL),
    })
}

fn migration(number: c_int) -> Result<Migration, Errno> {
    Ok(match number {
        IBV_MIG_MIGRATED => Migration::Migrated,
        IBV_MIG_REARM => Migration::Rearm,
        IBV_MIG_ARMED => Migration::Armed,
        _ => return Err(Errno::EINVAL),
    })
}

/// Every attribute that there is.
const KNOWN: i32 = IBV_QP_STATE
    | IBV_QP_CUR_STATE
    | IBV_QP_EN_SQD_ASYNC_NOTIFY
    | IBV_QP_ACCESS_FLAGS
    | IBV_QP_PKEY_INDEX
    | IBV_QP_PORT
    | IBV_QP_QKEY
    | IBV_QP_AV
    | IBV_QP_PATH_MTU
    | IBV_QP_TIMEOUT
    | IBV_QP_RETRY_CNT
    | IBV_QP_RNR_RETRY
    | IBV_QP_RQ_PSN
    | IBV_QP_MAX_QP_RD_ATOMIC
    | IBV_QP_ALT_PATH
    | IBV_QP_MIN_RNR_TIMER
    | IBV_QP_SQ_PSN
    | IBV_QP_MAX_DEST_RD_ATOMIC
    | IBV_QP_PATH_MIG_STATE
    | IBV_QP_DEST_QPN;

/// The change that attributes and their mask describe.
///
/// # Errors
/// `EINVAL` for a value that is none. Sizes (`IBV_QP_CAP`) and rates cannot be changed on this device: `EINVAL` too, as
/// a kernel says of attributes that no transition allows.
fn translate(qp: &QueuePair, attributes: &ibv_qp_attr, mask: c_int) -> Result<Modify, Errno> {
    if mask & !KNOWN != 0 {
        return Err(Errno::EINVAL);
    }
    let nic = &qp.hub.nic;
    let given = |attribute: i32| mask & attribute != 0;
    let mut modify = Modify::default();
    if given(IBV_QP_STATE) {
        modify.state = Some(state(attributes.qp_state)?);
    }
    if given(IBV_QP_CUR_STATE) {
        modify.current_state = Some(state(attributes.cur_qp_state)?);
    }
    if given(IBV_QP_EN_SQD_ASYNC_NOTIFY) {
        modify.drain_notify = Some(attributes.en_sqd_async_notify != 0);
    }
    if given(IBV_QP_ACCESS_FLAGS) {
        let remote = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        modify.access = Some(memory::access(attributes.qp_access_flags)? & remote);
    }
    if given(IBV_QP_PKEY_INDEX) {
        if attributes.pkey_index != 0 {
            return Err(Errno::EINVAL);
        }
        modify.partition = Some(PartitionKey::DEFAULT);
    }
    if given(IBV_QP_PORT) {
        if attributes.port_num != 1 {
            return Err(Errno::EINVAL);
        }
        modify.port = Some(attributes.port_num);
    }
    if given(IBV_QP_QKEY) {
        modify.qkey = Some(attributes.qkey);
    }
    if given(IBV_QP_AV) {
        let mut path = attributes.ah_attr;
        // The kernel takes the port of the queue pair where the path names none.
        if path.port_num == 0 {
            path.port_num = 1;
        }
        modify.path = Some(address::path(nic, &path)?);
    }
    if given(IBV_QP_PATH_MTU) {
        modify.path_mtu = Some(mtu(attributes.path_mtu)?);
    }
    if given(IBV_QP_TIMEOUT) {
        modify.timeout = Some(AckTimeout::from_code(attributes.timeout));
    }
    if given(IBV_QP_RETRY_CNT) {
        modify.retry_count = Some(attributes.retry_cnt);
    }
    if given(IBV_QP_RNR_RETRY) {
        if attributes.rnr_retry > 7 {
            return Err(Errno::EINVAL);
        }
        modify.rnr_retry = Some(RnrRetry::new(attributes.rnr_retry));
    }
    if given(IBV_QP_RQ_PSN) {
        modify.receive_psn = Some(Psn::new(attributes.rq_psn));
    }
    if given(IBV_QP_MAX_QP_RD_ATOMIC) {
        modify.max_reads = Some(attributes.max_rd_atomic);
    }
    if given(IBV_QP_ALT_PATH) {
        if attributes.alt_port_num != 1 || attributes.alt_pkey_index != 0 {
            return Err(Errno::EINVAL);
        }
        modify.alternate_path = Some(address::path(nic, &attributes.alt_ah_attr)?);
    }
    if given(IBV_QP_MIN_RNR_TIMER) {
        if attributes.min_rnr_timer > 31 {
            return Err(Errno::EINVAL);
        }
        modify.min_rnr_timer = Some(RnrTimer::from_code(attributes.min_rnr_timer));
    }
    if given(IBV_QP_SQ_PSN) {
        modify.send_psn = Some(Psn::new(attributes.sq_psn));
    }
    if given(IBV_QP_MAX_DEST_RD_ATOMIC) {
        modify.max_peer_reads = Some(attributes.max_dest_rd_atomic);
    }
    if given(IBV_QP_PATH_MIG_STATE) {
        modify.migration = Some(migration(attributes.path_mig_state)?);
    }
    if given(IBV_QP_DEST_QPN) {
        modify.destination = Some(Qpn::new(attributes.dest_qp_num));
    }
    nic.fit(&mut modify);
    Ok(modify)
}

fn errno(error: ModifyError) -> Errno {
    match error {
        ModifyError::Attached(_) => Errno::EBUSY,
        _ => Errno::EINVAL,
    }
}

/// Remembers what the transport does not keep as the program wrote it.
fn keep(qp: &QueuePair, attributes: &ibv_qp_attr, mask: c_int) {
    let given = |attribute: i32| mask & attribute != 0;
    let mut kept = lock(&qp.kept);
    if given(IBV_QP_STATE) && attributes.qp_state == IBV_QPS_RESET {
        *kept = super::Kept::default();
    }
    if given(IBV_QP_ACCESS_FLAGS) {
        kept.access = attributes.qp_access_flags;
    }
    if given(IBV_QP_PORT) {
        kept.port_num = attributes.port_num;
    }
    if given(IBV_QP_AV) {
        kept.ah_attr = attributes.ah_attr;
    }
    if given(IBV_QP_PATH_MTU) {
        kept.path_mtu = attributes.path_mtu;
    }
    if given(IBV_QP_ALT_PATH) {
        kept.alt_ah_attr = attributes.alt_ah_attr;
        kept.alt_port_num = attributes.alt_port_num;
        kept.alt_timeout = attributes.alt_timeout;
    }
}

/// `ibv_modify_qp`
///
/// # Safety
/// The queue pair is one of ours, and the attributes are a structure of the caller.
pub(crate) unsafe extern "C" fn modify_qp(
    qp: *mut ibv_qp,
    attributes: *mut ibv_qp_attr,
    mask: c_int,
) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let (this, attributes) = unsafe {
            (
                QueuePair::of_qp(qp)?,
                attributes.as_ref().ok_or(Errno::EINVAL)?,
            )
        };
        let modify = translate(this, attributes, mask)?;
        this.hub
            .nic
            .with(|device, now| device.modify_qp(now, this.number, &modify))
            .map_err(errno)?;
        keep(this, attributes, mask);
        if mask & IBV_QP_STATE != 0 {
            // SAFETY: the field belongs to the library; programs look at it.
            unsafe { (&raw mut (*qp).state).write(attributes.qp_state) };
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_go_both_ways() {
        for here in State::ALL {
            assert_eq!(state(state_number(here)), Ok(here));
        }
        assert_eq!(state(IBV_QPS_UNKNOWN), Err(Errno::EINVAL));
        assert_eq!(state(-1), Err(Errno::EINVAL));
        assert_eq!(mtu(0).err(), Some(Errno::EINVAL));
        assert_eq!(mtu(6).err(), Some(Errno::EINVAL));
    }
}
