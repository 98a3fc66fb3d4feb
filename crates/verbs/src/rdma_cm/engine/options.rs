//! Options of an identifier.

use super::super::abi;
use super::super::descriptors::ChannelId;
use super::{Cm, State};
use crate::errno::Errno;

/// The level of options of the identifier itself.
const LEVEL_ID: u32 = 0;
const TYPE_OF_SERVICE: u32 = 0;
const REUSE_ADDRESS: u32 = 1;
const ONLY_IPV6: u32 = 2;
const ACK_TIMEOUT: u32 = 3;

impl Cm {
    /// Changes an option to the value in `bytes`.
    pub(crate) fn set_option(
        &mut self,
        channel: ChannelId,
        command: &abi::SetOption,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        let id = self.id(channel, command.id)?;
        if command.level != LEVEL_ID {
            return Err(Errno::ENOSYS);
        }
        let byte = || match bytes {
            [byte] => Ok(*byte),
            _ => Err(Errno::EINVAL),
        };
        let truth = || match <[u8; 4]>::try_from(bytes) {
            Ok(bytes) => Ok(i32::from_ne_bytes(bytes) != 0),
            Err(_) => Err(Errno::EINVAL),
        };
        match command.name {
            TYPE_OF_SERVICE => id.traffic_class = byte()?,
            REUSE_ADDRESS if id.state == State::Idle => id.reuse = truth()?,
            ONLY_IPV6 if matches!(id.state, State::Idle | State::Bound) => id.only_ipv6 = truth()?,
            REUSE_ADDRESS | ONLY_IPV6 => return Err(Errno::EINVAL),
            ACK_TIMEOUT => {
                let code = byte()?;
                if code > 31 || id.is_datagram() {
                    return Err(Errno::EINVAL);
                }
                id.ack_timeout = Some(code);
            }
            _ => return Err(Errno::ENOSYS),
        }
        Ok(())
    }
}
