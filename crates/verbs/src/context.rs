//! An open device: the context that a program holds, with its tables of functions.
#![allow(unsafe_code, reason = "the program's pointers lead here")]

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::sync::{Arc, Mutex};

use softfabric_transport::{CompletionQueueId, Domain, SharedQueueId, XrcDomain};
use softfabric_units::Qpn;

use crate::abi::*;
use crate::device::Device;
use crate::errno::{Errno, number, pointer};
use crate::event::{Element, Waiting};
use crate::hub::Hub;
use crate::object::{EventQueue, Shared, lock};
use crate::refuse::unsupported_pointer;
use crate::{completion, device, domain, memory, queue_pair, shared_queue, xrc};

/// How many completion vectors there are. They only spread interrupts; here is nothing to spread.
pub(crate) const COMPLETION_VECTORS: c_int = 1;

/// An open device.
#[repr(C)]
pub(crate) struct Context {
    verbs: Shared<verbs_context>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) device: &'static Device,
    pub(crate) events: EventQueue<Waiting>,
    living: Mutex<BTreeSet<Living>>,
    /// Keeps `cmd_fd` a descriptor of our own.
    _command: EventQueue<()>,
}

/// What the device holds for a context, in the order in which it has to be taken away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Living {
    QueuePair(Qpn),
    SharedQueue(SharedQueueId),
    CompletionQueue(CompletionQueueId),
    Window(u32),
    Region(u32),
    Domain(Domain),
    XrcDomain(XrcDomain),
}

impl Context {
    /// The context behind a program's pointer, which leads into its middle.
    ///
    /// # Safety
    /// The pointer is null, or that of a context that is open.
    pub(crate) unsafe fn of<'a>(context: *const ibv_context) -> Result<&'a Self, Errno> {
        if context.is_null() {
            return Err(Errno::EINVAL);
        }
        let start = context
            .cast::<u8>()
            .wrapping_sub(offset_of!(verbs_context, context));
        // SAFETY: contexts are made by `open_device` only, where `context` is a field of `Context::verbs`.
        Ok(unsafe { &*start.cast::<Self>() })
    }

    /// What the program holds.
    pub(crate) fn as_ibv(&self) -> *mut ibv_context {
        // SAFETY: the structure lives as long as `self`; only an address is formed.
        unsafe { &raw mut (*self.verbs.get()).context }
    }

    /// Notes that the device holds something for this context.
    pub(crate) fn born(&self, living: Living) {
        lock(&self.living).insert(living);
    }

    /// Notes that it does no more.
    pub(crate) fn died(&self, living: Living) {
        lock(&self.living).remove(&living);
    }

    /// Whether the device holds it for this context.
    pub(crate) fn holds(&self, living: Living) -> bool {
        lock(&self.living).contains(&living)
    }

    /// Tells the program of an asynchronous event.
    pub(crate) fn raise(&self, number: c_int, element: Element) {
        self.events.push(Waiting { number, element });
    }

    /// Takes away what the program has left on the device, as a kernel does when a device's file is closed.
    fn clean(&self) {
        let living = std::mem::take(&mut *lock(&self.living));
        for living in living {
            match living {
                Living::QueuePair(number) => self.hub.listeners.remove_queue_pair(number, None),
                Living::SharedQueue(id) => self.hub.listeners.remove_shared_queue(id),
                Living::CompletionQueue(id) => self.hub.listeners.remove_completion_queue(id),
                Living::Window(_)
                | Living::Region(_)
                | Living::Domain(_)
                | Living::XrcDomain(_) => {}
            }
            if let Living::XrcDomain(domain) = living {
                let _ = self.hub.close_xrc_domain(domain);
                continue;
            }
            if let Living::QueuePair(number) = living {
                let nic = &self.hub.nic;
                let groups: Vec<_> =
                    nic.with(|device, _| device.multicast_groups(number).collect());
                for group in groups {
                    let _ = nic.detach_multicast(number, group);
                }
            }
            self.hub.nic.with(|device, _| {
                // What another context still uses stays until the device ends.
                let _ = match living {
                    Living::QueuePair(number) => device.destroy_qp(number).is_ok(),
                    Living::SharedQueue(id) => device.destroy_srq(id).is_ok(),
                    Living::CompletionQueue(id) => device.destroy_cq(id).is_ok(),
                    Living::Window(key) => memory::release_window(device, key),
                    Living::Region(key) => device.deregister_memory(key).is_ok(),
                    Living::Domain(domain) => device.dealloc_domain(domain).is_ok(),
                    Living::XrcDomain(_) => false,
                };
            });
        }
    }
}

/// `ibv_open_device`
///
/// # Safety
/// The device is null, or one of a list.
pub(crate) unsafe extern "C" fn open_device(device: *mut ibv_device) -> *mut ibv_context {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let device = unsafe { Device::of(device) }?;
        let hub = Hub::open(&device.info(), device::settings())?;
        let (events, command) = (EventQueue::new()?, EventQueue::new()?);
        let verbs = functions(device.as_ibv(), command.descriptor(), events.descriptor());
        let context = Box::new(Context {
            verbs: Shared::new(verbs),
            hub,
            device,
            events,
            living: Mutex::new(BTreeSet::new()),
            _command: command,
        });
        Ok(Box::leak(context).as_ibv())
    })
}

/// `ibv_close_device`
///
/// # Safety
/// The context is open, and nobody will use it, or anything that was made with it, again.
pub(crate) unsafe extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let context = unsafe { Context::of(context) }?;
        context.clean();
        // SAFETY: it came from `Box::leak` and ends here.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(context).cast_mut()) });
        Ok(())
    })
}

/// The tables of functions of a new context.
fn functions(device: *mut ibv_device, cmd_fd: c_int, async_fd: c_int) -> verbs_context {
    verbs_context {
        free_buf: None,
        alloc_buf: None,
        dm_export_dmabuf_fd: None,
        reg_mr_ex: None,
        dealloc_dmah: None,
        alloc_dmah: None,
        query_port: Some(device::query_port_ex),
        advise_mr: Some(memory::advise_mr),
        alloc_null_mr: Some(memory::alloc_null_mr),
        read_counters: None,
        attach_counters_point_flow: None,
        create_counters: None,
        destroy_counters: None,
        reg_dm_mr: Some(memory::reg_dm_mr),
        alloc_dm: Some(memory::alloc_dm),
        free_dm: Some(memory::free_dm),
        modify_flow_action_esp: None,
        destroy_flow_action: None,
        create_flow_action_esp: None,
        modify_qp_rate_limit: None,
        alloc_parent_domain: Some(domain::alloc_parent_domain),
        dealloc_td: Some(domain::dealloc_td),
        alloc_td: Some(domain::alloc_td),
        modify_cq: Some(completion::modify_cq),
        post_srq_ops: None,
        destroy_rwq_ind_table: None,
        create_rwq_ind_table: None,
        destroy_wq: None,
        modify_wq: None,
        create_wq: None,
        query_rt_values: Some(device::query_rt_values),
        create_cq_ex: Some(completion::create_cq_ex),
        r#priv: std::ptr::null_mut(),
        query_device_ex: Some(device::query_device_ex),
        ibv_destroy_flow: None,
        ABI_placeholder2: None,
        ibv_create_flow: None,
        ABI_placeholder1: None,
        open_qp: Some(queue_pair::open_qp),
        create_qp_ex: Some(queue_pair::create_qp_ex),
        get_srq_num: Some(shared_queue::get_srq_num),
        create_srq_ex: Some(shared_queue::create_srq_ex),
        open_xrcd: Some(xrc::open_xrcd),
        close_xrcd: Some(xrc::close_xrcd),
        _ABI_placeholder3: 0,
        sz: size_of::<verbs_context>(),
        context: ibv_context {
            device,
            ops: operations(),
            cmd_fd,
            async_fd,
            num_comp_vectors: COMPLETION_VECTORS,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            abi_compat: std::ptr::without_provenance_mut(usize::MAX),
        },
    }
}

fn operations() -> ibv_context_ops {
    ibv_context_ops {
        _compat_query_device: Some(device::query_device),
        _compat_query_port: Some(device::query_port),
        alloc_mw: Some(memory::alloc_mw),
        bind_mw: Some(queue_pair::bind_mw),
        dealloc_mw: Some(memory::dealloc_mw),
        poll_cq: Some(completion::poll_cq),
        req_notify_cq: Some(completion::req_notify_cq),
        post_srq_recv: Some(shared_queue::post_srq_recv),
        post_send: Some(queue_pair::post_send),
        post_recv: Some(queue_pair::post_recv),
        ..Default::default()
    }
}

/// `ibv_import_device`, and everything else that is shared between processes by handles: there is no kernel object to
/// share.
pub(crate) extern "C" fn import_device(_descriptor: c_int) -> *mut c_void {
    unsupported_pointer()
}
