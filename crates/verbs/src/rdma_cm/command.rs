//! Commands, as they are written to a channel.
#![allow(unsafe_code, reason = "commands and answers are the program's memory")]

use std::ffi::c_void;
use std::net::SocketAddr;

use super::abi::{self, Header, read};
use super::descriptors::{self, ChannelId};
use super::engine::Local;
use super::process::Running;
use super::route;
use crate::errno::Errno;

/// The longest command.
const LONGEST: usize = 512;

/// Whether a command asks for the next event, and may have to wait for it.
///
/// # Safety
/// `bytes` is null, or there are `count`.
pub(super) unsafe fn waits(bytes: *const c_void, count: usize) -> bool {
    !bytes.is_null()
        && count >= size_of::<Header>()
        // SAFETY: as promised by the caller.
        && unsafe { bytes.cast::<Header>().read_unaligned() }.command == NEXT_EVENT
}

const NEXT_EVENT: u32 = 12;

/// Does the command that `bytes` hold. `descriptor` is the channel's.
///
/// # Errors
/// What a kernel's device would say.
///
/// # Safety
/// Addresses in the command are the program's, as it says.
pub(super) unsafe fn execute(
    descriptor: i32,
    channel: ChannelId,
    bytes: &[u8],
) -> Result<(), Errno> {
    let header: Header = read(bytes);
    let command = bytes.get(size_of::<Header>()..).ok_or(Errno::EINVAL)?;
    if bytes.len() > LONGEST || command.len() < usize::from(header.input) {
        return Err(Errno::EINVAL);
    }
    let running = Running::here().ok_or(Errno::EINVAL)?;
    let call = Call {
        running,
        channel,
        command,
        room: usize::from(header.output),
    };
    // SAFETY: as promised by the caller.
    unsafe {
        match header.command {
            0 => call.create(),
            1 => call.destroy(),
            2 => call.bind_ip(),
            3 => call.resolve_ip(),
            4 => call.resolve_route(),
            5 => call.query_route(),
            6 => call.connect(),
            7 => call.listen(),
            8 => call.accept(),
            9 => call.reject(),
            10 => call.disconnect(),
            11 => call.init_qp_attributes(),
            NEXT_EVENT => call.next_event(descriptor),
            14 => call.set_option(),
            15 => call.notify(),
            16 => call.join_ip(),
            17 => call.leave(),
            18 => call.migrate(),
            19 => call.query(),
            20 => call.bind(),
            21 => call.resolve_address(),
            22 => call.join(),
            // What later versions have added, and what no version has.
            _ => Err(Errno::ENOSYS),
        }
    }
}

struct Call<'a> {
    running: &'static Running,
    channel: ChannelId,
    command: &'a [u8],
    /// How long the answer may be.
    room: usize,
}

impl Call<'_> {
    unsafe fn answer<T: abi::Plain>(&self, response: u64, value: &T) -> Result<(), Errno> {
        // SAFETY: as promised to `execute`.
        unsafe { abi::respond(response, self.room, value) }
    }

    /// An answer for which there must be room.
    unsafe fn answer_whole<T: abi::Plain>(&self, response: u64, value: &T) -> Result<(), Errno> {
        if self.room < size_of::<T>() {
            return Err(Errno::ENOSPC);
        }
        // SAFETY: as promised to `execute`.
        unsafe { self.answer(response, value) }
    }

    unsafe fn create(&self) -> Result<(), Errno> {
        let command: abi::CreateId = read(self.command);
        let service = &self.running.service;
        let answer = service.with(|_, cm, _| cm.create(self.channel, &command))?;
        // SAFETY: as promised to `execute`.
        unsafe { self.answer_whole(command.response, &answer) }
    }

    unsafe fn destroy(&self) -> Result<(), Errno> {
        let command: abi::DestroyId = read(self.command);
        let service = &self.running.service;
        let answer =
            service.with(|manager, cm, now| cm.destroy(manager, now, self.channel, command.id))?;
        // SAFETY: as promised to `execute`.
        unsafe { self.answer_whole(command.response, &answer) }
    }

    fn bind_ip(&self) -> Result<(), Errno> {
        let command: abi::BindIp = read(self.command);
        self.bind_to(command.id, abi::decode_address(&command.address))
    }

    fn bind(&self) -> Result<(), Errno> {
        let command: abi::Bind = read(self.command);
        // librdmacm tries InfiniBand's own addresses first: refused, it uses IP addresses only.
        self.bind_to(command.id, abi::decode_address(&command.address))
    }

    fn bind_to(&self, id: u32, address: Option<SocketAddr>) -> Result<(), Errno> {
        let address = address.ok_or(Errno::EINVAL)?;
        let local = match route::is_any_device(address) {
            true => None,
            false => Some(self.running.local(address)?),
        };
        let service = &self.running.service;
        service.with(|_, cm, _| cm.bind(self.channel, id, address, local))
    }

    fn resolve_ip(&self) -> Result<(), Errno> {
        let command: abi::ResolveIp = read(self.command);
        self.resolve(command.id, &command.source, &command.destination)
    }

    fn resolve_address(&self) -> Result<(), Errno> {
        let command: abi::ResolveAddress = read(self.command);
        self.resolve(command.id, &command.source, &command.destination)
    }

    fn resolve(&self, id: u32, source: &[u8], destination: &[u8]) -> Result<(), Errno> {
        let destination = abi::decode_address(destination).ok_or(Errno::EINVAL)?;
        let service = &self.running.service;
        let bound = service.with(|_, cm, _| cm.bound_address(self.channel, id))?;
        let given = match abi::family(source) {
            libc::AF_UNSPEC => None,
            _ => Some(abi::decode_address(source).ok_or(Errno::EINVAL)?),
        };
        // An address that the program names is bound, as far as it says one.
        if let (None, Some(given)) = (bound, given) {
            self.bind_to(id, Some(given))?;
        }
        let chosen = bound
            .or(given)
            .filter(|address| !address.ip().is_unspecified());
        let found = self.way(destination, chosen);
        let destination = route::loopback(destination, chosen);
        service.with(|_, cm, _| cm.address_resolved(self.channel, id, destination, found))
    }

    fn way(
        &self,
        destination: SocketAddr,
        chosen: Option<SocketAddr>,
    ) -> Result<(SocketAddr, Local), Errno> {
        let destination = route::loopback(destination, chosen);
        // Whoever wants this host by its own name for itself has chosen no device: the first one, as in Linux. It says
        // `127.0.0.1` of itself to programs.
        if destination.ip().is_loopback() && chosen.is_none_or(route::is_any_device) {
            return Ok((destination, self.running.first()?));
        }
        let source = route::source(destination, chosen)?;
        Ok((source, self.running.local(source)?))
    }

    fn resolve_route(&self) -> Result<(), Errno> {
        let command: abi::ResolveRoute = read(self.command);
        let service = &self.running.service;
        service.with(|_, cm, _| cm.resolve_route(self.channel, command.id))
    }

    unsafe fn query_route(&self) -> Result<(), Errno> {
        let command: abi::Query = read(self.command);
        let service = &self.running.service;
        let answer = service.with(|_, cm, _| cm.query_route(self.channel, command.id))?;
        // SAFETY: as promised to `execute`.
        unsafe { self.answer(command.response, &answer) }
    }

    unsafe fn query(&self) -> Result<(), Errno> {
        const ADDRESS: u32 = 0;
        const PATH: u32 = 1;
        const GID: u32 = 2;
        let command: abi::Query = read(self.command);
        let (channel, id) = (self.channel, command.id);
        let service = &self.running.service;
        // SAFETY: as promised to `execute`.
        unsafe {
            match command.option {
                ADDRESS => {
                    let answer = service.with(|_, cm, _| cm.query_address(channel, id))?;
                    self.answer(command.response, &answer)
                }
                PATH => {
                    let answer = service.with(|_, cm, _| cm.query_path(channel, id))?;
                    self.answer(command.response, &answer)
                }
                GID => {
                    let answer = service.with(|_, cm, _| cm.query_gid(channel, id))?;
                    self.answer(command.response, &answer)
                }
                _ => Err(Errno::ENOSYS),
            }
        }
    }

    fn connect(&self) -> Result<(), Errno> {
        let command: abi::Connect = read(self.command);
        let service = &self.running.service;
        service.with(|manager, cm, now| cm.connect(manager, now, self.channel, &command))
    }

    fn listen(&self) -> Result<(), Errno> {
        let command: abi::Listen = read(self.command);
        let service = &self.running.service;
        let address = service.with(|_, cm, _| cm.listen_address(self.channel, command.id))?;
        if route::is_any_device(address) {
            self.running.open_all()?;
        }
        service.with(|manager, cm, _| cm.listen(manager, self.channel, &command))
    }

    fn accept(&self) -> Result<(), Errno> {
        let command: abi::Accept = read(self.command);
        let service = &self.running.service;
        service.with(|manager, cm, now| cm.accept(manager, now, self.channel, &command))
    }

    fn reject(&self) -> Result<(), Errno> {
        let command: abi::Reject = read(self.command);
        let service = &self.running.service;
        service.with(|manager, cm, now| cm.reject(manager, now, self.channel, &command))
    }

    fn disconnect(&self) -> Result<(), Errno> {
        let command: abi::Disconnect = read(self.command);
        let service = &self.running.service;
        service.with(|manager, cm, now| cm.disconnect(manager, now, self.channel, command))
    }

    unsafe fn init_qp_attributes(&self) -> Result<(), Errno> {
        let command: abi::InitQpAttributes = read(self.command);
        let service = &self.running.service;
        let answer = service.with(|_, cm, _| cm.init_qp_attributes(self.channel, &command))?;
        // SAFETY: as promised to `execute`.
        unsafe { self.answer_whole(command.response, &answer) }
    }

    /// Takes an event, and waits for one if the program's descriptor waits.
    unsafe fn next_event(&self, descriptor: i32) -> Result<(), Errno> {
        let command: abi::GetEvent = read(self.command);
        if self.room < size_of::<abi::Event>() {
            return Err(Errno::ENOSPC);
        }
        loop {
            let mut count = [0_u8; 8];
            // SAFETY: eight bytes are written to a local array.
            let read = unsafe { libc::read(descriptor, count.as_mut_ptr().cast(), count.len()) };
            if read < 0 {
                return Err(Errno::last());
            }
            // Another thread may have forgotten the event for which the descriptor counted.
            let service = &self.running.service;
            if let Some(event) = service.with(|_, cm, _| cm.next_event(self.channel)) {
                // SAFETY: as promised to `execute`.
                return unsafe { self.answer(command.response, &*event) };
            }
        }
    }

    unsafe fn set_option(&self) -> Result<(), Errno> {
        /// Longer than any option.
        const LONGEST: u32 = 4096;
        let command: abi::SetOption = read(self.command);
        let value = std::ptr::with_exposed_provenance::<u8>(command.value as usize);
        if command.length > LONGEST {
            return Err(Errno::EINVAL);
        }
        if value.is_null() {
            return Err(Errno::EFAULT);
        }
        // SAFETY: as promised to `execute`.
        let value = unsafe { std::slice::from_raw_parts(value, command.length as usize) };
        let service = &self.running.service;
        service.with(|_, cm, _| cm.set_option(self.channel, &command, value))
    }

    fn notify(&self) -> Result<(), Errno> {
        let command: abi::Notify = read(self.command);
        let service = &self.running.service;
        service.with(|manager, cm, _| cm.notify(manager, self.channel, &command))
    }

    unsafe fn join_ip(&self) -> Result<(), Errno> {
        let command: abi::JoinIp = read(self.command);
        let address = abi::decode_address(&command.address);
        // SAFETY: as promised to `execute`.
        unsafe { self.join_group(command.response, command.user, command.id, address) }
    }

    unsafe fn join(&self) -> Result<(), Errno> {
        let command: abi::Join = read(self.command);
        let address = abi::decode_address(&command.address);
        // SAFETY: as promised to `execute`.
        unsafe { self.join_group(command.response, command.user, command.id, address) }
    }

    unsafe fn join_group(
        &self,
        response: u64,
        user: u64,
        id: u32,
        address: Option<SocketAddr>,
    ) -> Result<(), Errno> {
        let service = &self.running.service;
        let answer = service.with(|_, cm, _| cm.join(self.channel, id, user, address))?;
        // SAFETY: as promised to `execute`.
        unsafe { self.answer_whole(response, &answer) }
    }

    unsafe fn leave(&self) -> Result<(), Errno> {
        let command: abi::DestroyId = read(self.command);
        let service = &self.running.service;
        let answer = service.with(|_, cm, _| cm.leave(self.channel, command.id))?;
        // SAFETY: as promised to `execute`.
        unsafe { self.answer_whole(command.response, &answer) }
    }

    unsafe fn migrate(&self) -> Result<(), Errno> {
        let command: abi::Migrate = read(self.command);
        let from = i32::try_from(command.descriptor).ok();
        let from = from.and_then(descriptors::channel).ok_or(Errno::ENOENT)?;
        let service = &self.running.service;
        let answer = service.with(|_, cm, _| cm.migrate(self.channel, from, command.id))?;
        // SAFETY: as promised to `execute`.
        unsafe { self.answer_whole(command.response, &answer) }
    }
}
