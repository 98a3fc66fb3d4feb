//! Open ports: each is a stream to the server, and its descriptor is the number that programs have for it.
#![allow(unsafe_code, reason = "C programs hand over buffers by pointer")]

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

use softfabric_cabi::cancel::{self, Waited};
use softfabric_subnet::umad::{AgentId, FromServer, Registration, ToServer};

use crate::adapters::{choose, is_ours};
use crate::datagram::{Address, HEADER, Header};
use crate::errno::{self, guard, negative};
use crate::stream::{self, Heard};

/// Agents of one port at most, as in the kernel.
const MOST_AGENTS: AgentId = 32;
/// Where programs that manage the subnet open a file: to have it open says that they do. Here the port says so from when
/// they ask for its name.
const MANAGER_FILE: &[u8] = b"/dev/null\0";

/// The agents of each port, a bit each, by descriptor; and the stream that says that this process manages.
struct Ports {
    agents: BTreeMap<c_int, u32>,
    manager: Option<UnixStream>,
}

static PORTS: Mutex<Ports> = Mutex::new(Ports {
    agents: BTreeMap::new(),
    manager: None,
});

fn ports() -> MutexGuard<'static, Ports> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(outcome: io::Result<c_int>) -> c_int {
    outcome.unwrap_or_else(|error| negative(&error))
}

/// A stream that is at a port.
fn open(number: u8) -> io::Result<UnixStream> {
    let mut stream = stream::connect()?;
    let question = ToServer::Open {
        node: stream::node(),
        port: number,
        process: std::process::id(),
    };
    match stream::ask(&mut stream, &question)? {
        FromServer::Opened => Ok(stream),
        _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    }
}

/// `umad_init`, `umad_done`: nothing is needed.
pub(crate) extern "C" fn nothing() -> c_int {
    0
}

/// `umad_open_port`, `umad_open_smi_port`: a descriptor, or a negative number.
pub(crate) unsafe extern "C" fn open_port(ca: *const c_char, number: c_int) -> c_int {
    guard(|| {
        // SAFETY: the caller gives a C string or none.
        if !unsafe { is_ours(ca) } {
            return -libc::ENODEV;
        }
        answer(
            choose(number)
                .and_then(|port| open(port.number))
                .map(|stream| {
                    let descriptor = stream.into_raw_fd();
                    ports().agents.insert(descriptor, 0);
                    descriptor
                }),
        )
    })
}

/// `umad_close_port`.
pub(crate) extern "C" fn close_port(port: c_int) -> c_int {
    guard(|| {
        if ports().agents.remove(&port).is_none() {
            return -libc::EINVAL;
        }
        // SAFETY: it was ours, and nobody uses it any more.
        unsafe { libc::close(port) };
        0
    })
}

/// `umad_get_fd`.
pub(crate) extern "C" fn get_fd(port: c_int) -> c_int {
    port
}

/// `umad_get_issm_path`: the name of a file to hold open.
pub(crate) unsafe extern "C" fn get_issm_path(
    ca: *const c_char,
    number: c_int,
    path: *mut c_char,
    max: c_int,
) -> c_int {
    guard(|| {
        // SAFETY: the caller gives a C string or none.
        if !unsafe { is_ours(ca) } {
            return -libc::ENODEV;
        }
        if path.is_null() || !usize::try_from(max).is_ok_and(|max| max >= MANAGER_FILE.len()) {
            return -libc::ENAMETOOLONG;
        }
        // One stream says it; it is not said twice.
        ports().manager = None;
        let manages = choose(number)
            .and_then(|port| open(port.number))
            .and_then(|mut stream| {
                stream.write_all(&ToServer::Manager(true).encode())?;
                Ok(stream)
            });
        match manages {
            Ok(stream) => ports().manager = Some(stream),
            Err(error) => return negative(&error),
        }
        for (place, byte) in MANAGER_FILE.iter().enumerate() {
            // SAFETY: there is room for it.
            unsafe { path.add(place).write(*byte as c_char) };
        }
        0
    })
}

fn add_agent(port: c_int, class: u8, version: u8, methods: u128) -> io::Result<AgentId> {
    let number = {
        let mut ports = ports();
        let no_port = || io::Error::from_raw_os_error(libc::EINVAL);
        let taken = ports.agents.get_mut(&port).ok_or_else(no_port)?;
        let number = taken.trailing_ones();
        if number >= MOST_AGENTS {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        *taken |= 1 << number;
        number
    };
    let registration = Registration {
        agent: number,
        class,
        version,
        methods,
    };
    stream::say(port, &ToServer::Register(registration))?;
    Ok(number)
}

/// The bits of a mask of methods; a null pointer has none.
///
/// # Safety
/// `mask` is null or has 128 bits.
unsafe fn methods(mask: *const c_long) -> u128 {
    if mask.is_null() {
        return 0;
    }
    // SAFETY: the caller says so.
    u128::from_ne_bytes(unsafe { mask.cast::<[u8; 16]>().read_unaligned() })
}

/// `umad_register`: the agent's number, or a negative one.
pub(crate) unsafe extern "C" fn register(
    port: c_int,
    class: c_int,
    version: c_int,
    _rmpp_version: u8,
    mask: *const c_long,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's mask.
        let methods = unsafe { methods(mask) };
        answer(add_agent(port, class as u8, version as u8, methods).map(|agent| agent as c_int))
    })
}

/// `umad_register_oui`: the same for the classes of vendors.
pub(crate) unsafe extern "C" fn register_oui(
    port: c_int,
    class: c_int,
    _rmpp_version: u8,
    _oui: *const u8,
    mask: *const c_long,
) -> c_int {
    guard(|| {
        if !(0x30..0x50).contains(&class) {
            return -libc::EINVAL;
        }
        // SAFETY: the caller's mask.
        let methods = unsafe { methods(mask) };
        answer(add_agent(port, class as u8, 1, methods).map(|agent| agent as c_int))
    })
}

/// `struct umad_reg_attr`.
#[repr(C)]
pub(crate) struct RegistrationAttributes {
    mgmt_class: u8,
    mgmt_class_version: u8,
    flags: u32,
    method_mask: [u64; 2],
    oui: u32,
    rmpp_version: u8,
}

/// `umad_register2`: 0, or a positive error.
pub(crate) unsafe extern "C" fn register2(
    port: c_int,
    attributes: *mut RegistrationAttributes,
    agent: *mut u32,
) -> c_int {
    guard(|| {
        if attributes.is_null() || agent.is_null() {
            return libc::EINVAL;
        }
        // SAFETY: the caller's structure.
        let wanted = unsafe { &*attributes };
        let [low, high] = wanted.method_mask;
        let methods = u128::from(high) << 64 | u128::from(low);
        match add_agent(port, wanted.mgmt_class, wanted.mgmt_class_version, methods) {
            Ok(number) => {
                // SAFETY: the caller's number.
                unsafe { agent.write(number) };
                0
            }
            Err(error) => -negative(&error),
        }
    })
}

/// `umad_unregister`.
pub(crate) extern "C" fn unregister(port: c_int, agent: c_int) -> c_int {
    guard(|| {
        let known = {
            let mut ports = ports();
            let bit = u32::try_from(agent)
                .ok()
                .and_then(|agent| 1_u32.checked_shl(agent));
            let taken = ports.agents.get_mut(&port).zip(bit);
            taken.is_some_and(|(taken, bit)| {
                let known = *taken & bit != 0;
                *taken &= !bit;
                known
            })
        };
        if !known {
            return -libc::EINVAL;
        }
        answer(stream::say(port, &ToServer::Unregister(agent as AgentId)).map(|()| 0))
    })
}

/// `umad_send`: 0, or a negative number. `length` is that of the datagram; `timeout` in milliseconds.
pub(crate) unsafe extern "C" fn send(
    port: c_int,
    agent: c_int,
    buffer: *mut c_void,
    length: c_int,
    timeout: c_int,
    retries: c_int,
) -> c_int {
    guard(|| {
        let (false, Ok(length)) = (buffer.is_null(), usize::try_from(length)) else {
            return -libc::EINVAL;
        };
        let mut to = None;
        // SAFETY: the caller's buffer: a header, and `length` bytes behind it.
        let mad = unsafe {
            crate::datagram::update(buffer, |header| {
                header.agent = agent as u32;
                header.timeout = timeout as u32;
                header.retries = retries as u32;
                to = Some(header.address.envelope());
            });
            std::slice::from_raw_parts(buffer.cast::<u8>().add(HEADER), length)
        };
        // Shorter datagrams have zeros behind them.
        let mut mad = mad.to_vec();
        mad.resize(mad.len().max(softfabric_subnet::umad::DATAGRAM), 0);
        let message = ToServer::Send {
            agent: agent as AgentId,
            timeout: timeout.max(0) as u32,
            retries: retries.max(0) as u32,
            to: to.unwrap_or_default(),
            mad,
        };
        answer(stream::say(port, &message).map(|()| 0))
    })
}

/// `umad_recv`: the agent's number, or a negative one. Where the buffer is too short for what waits, `length` says how much
/// is needed, and it stays.
pub(crate) unsafe extern "C-unwind" fn receive(
    port: c_int,
    buffer: *mut c_void,
    length: *mut c_int,
    timeout: c_int,
) -> c_int {
    if buffer.is_null() || length.is_null() {
        return errno::set(libc::EINVAL);
    }
    loop {
        // Without time to wait, only what is there; the kernel's file is opened so that it does not block.
        match cancel::poll(port, timeout) {
            Waited::Readable => {}
            Waited::TimedOut if timeout == 0 => return errno::set(libc::EWOULDBLOCK),
            Waited::TimedOut => return errno::set(libc::ETIMEDOUT),
            Waited::Closed => return errno::set(libc::EBADF),
            Waited::Failed(number) => return errno::set(number),
        }
        // SAFETY: the caller's buffer and number.
        let taken = guard(|| unsafe { take(port, buffer, length) });
        if taken != NOTHING {
            return taken;
        }
    }
}

/// No agent and no error has this number.
const NOTHING: c_int = c_int::MAX;

/// Takes what waits into a buffer, as [`receive`] tells; [`NOTHING`] if another thread was faster.
///
/// # Safety
/// The number says how much room the buffer has behind its header.
unsafe fn take(port: c_int, buffer: *mut c_void, length: *mut c_int) -> c_int {
    // SAFETY: the caller's number.
    let room = unsafe { length.read() };
    let (agent, status, from, mad) = match stream::hear(port, room.max(0) as usize) {
        Ok(Heard::Frame(FromServer::Received {
            agent,
            status,
            from,
            mad,
        })) => (agent, status, from, mad),
        Ok(Heard::TooLong(needed)) => {
            // SAFETY: the caller's number.
            unsafe { length.write(needed as c_int) };
            return -libc::ENOSPC;
        }
        Ok(Heard::Nothing) => return NOTHING,
        Ok(Heard::Frame(_)) => return -libc::EIO,
        Err(error) => return negative(&error),
    };
    let header = Header {
        agent,
        status,
        timeout: 0,
        retries: 0,
        length: (HEADER + mad.len()) as u32,
        address: Address::of(&from),
    };
    // SAFETY: the buffer has room for `room` bytes behind its header, and the datagram is not longer.
    unsafe {
        buffer.cast::<Header>().write_unaligned(header);
        let data = buffer.cast::<u8>().add(HEADER);
        std::ptr::copy_nonoverlapping(mad.as_ptr(), data, mad.len());
        length.write(mad.len() as c_int);
    }
    agent as c_int
}

/// `umad_poll`: 0 when a datagram waits, or a negative number.
pub(crate) extern "C-unwind" fn poll(port: c_int, timeout: c_int) -> c_int {
    match cancel::poll(port, timeout) {
        Waited::Readable => 0,
        Waited::TimedOut => errno::set(libc::ETIMEDOUT),
        Waited::Closed => errno::set(libc::EBADF),
        Waited::Failed(number) => errno::set(number),
    }
}

/// `umad_debug`: what is said of the library's work; there is nothing to say. The level before.
pub(crate) extern "C" fn debug(_level: c_int) -> c_int {
    0
}

const _: () = assert!(size_of::<RegistrationAttributes>() == 32 && size_of::<c_uint>() == 4);
