//! Address handles: where datagrams go, and how a connection's path is written.
#![allow(unsafe_code, reason = "the program's pointers are followed")]

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr};

use softfabric_adapter::{DeviceInfo, Nic, PathError, Route};
use softfabric_transport::AddressVector;
use softfabric_units::Gid;

use crate::abi::*;
use crate::context::Context;
use crate::domain::ProtectionDomain;
use crate::errno::{Errno, minus_one, number, pointer};
use crate::object::{Object, Shared, handle};

/// The length of the global routing header before a datagram's payload.
const GRH: usize = 40;

/// An address handle.
#[repr(C)]
pub(crate) struct AddressHandle {
    c: Shared<ibv_ah>,
    pub(crate) path: AddressVector,
}

// SAFETY: it is `repr(C)` and begins with its C structure.
unsafe impl Object for AddressHandle {
    type C = ibv_ah;
}

/// The local identifier of a device: RoCE has none, but programs that know nothing else (qperf) exchange it. It is the
/// lower half of the first IPv4 address, which says enough among hosts that share the upper half.
pub(crate) fn local_identifier(info: &DeviceInfo) -> u16 {
    first_ipv4(info).map_or(0, |(_, address)| u32::from(address) as u16)
}

fn first_ipv4(info: &DeviceInfo) -> Option<(usize, Ipv4Addr)> {
    let found = info.gids.iter().map(|entry| (entry.index, entry.ip));
    found.into_iter().find_map(|(index, ip)| match ip {
        IpAddr::V4(address) => Some((index, address)),
        IpAddr::V6(_) => None,
    })
}

/// The path that address attributes describe.
///
/// # Errors
/// `EINVAL` where there is no such port or source, or neither a global part nor a [`local_identifier`]; what a kernel
/// says that finds no way to the destination otherwise.
pub(crate) fn path(nic: &Nic, attributes: &ibv_ah_attr) -> Result<AddressVector, Errno> {
    if attributes.port_num != 1 {
        return Err(Errno::EINVAL);
    }
    let (source, route) = if attributes.is_global != 0 {
        let grh = &attributes.grh;
        let route = Route {
            traffic_class: grh.traffic_class,
            hop_limit: grh.hop_limit,
            flow_label: grh.flow_label,
            source_port: source_port(grh.flow_label),
            ..Route::to(Gid(grh.dgid.raw))
        };
        (usize::from(grh.sgid_index), route)
    } else {
        let (source, own) = first_ipv4(nic.info()).ok_or(Errno::EINVAL)?;
        if attributes.dlid == 0 {
            return Err(Errno::EINVAL);
        }
        let address = u32::from(own) & 0xffff_0000 | u32::from(attributes.dlid);
        (source, Route::to(Gid::from(Ipv4Addr::from(address))))
    };
    let route = Route {
        service_level: attributes.sl,
        ..route
    };
    nic.path(source, &route).map_err(|error| match error {
        PathError::SourceIndex { .. } | PathError::Family { .. } | PathError::Unspecified(_) => {
            Errno::EINVAL
        }
        #[allow(unreachable_patterns, reason = "the adapter may learn other reasons")]
        _ => Errno::EHOSTUNREACH,
    })
}

/// The UDP source port that a flow label asks for: 14 bits folded from 20 (what Linux and hardware do); 0 asks for none.
fn source_port(flow_label: u32) -> u16 {
    if flow_label == 0 {
        return 0;
    }
    let folded = (flow_label & 0x3fff) ^ (flow_label >> 14 & 0x3f);
    0xc000 | folded as u16
}

/// `ibv_create_ah`
///
/// # Safety
/// The domain is one of ours, and the attributes are a structure of the caller.
pub(crate) unsafe extern "C" fn create_ah(
    pd: *mut ibv_pd,
    attributes: *mut ibv_ah_attr,
) -> *mut ibv_ah {
    // SAFETY: as promised by the caller.
    pointer(|| unsafe { create(pd, attributes.as_ref().ok_or(Errno::EINVAL)?) })
}

/// # Safety
/// The domain is one of ours, or null.
unsafe fn create(pd: *mut ibv_pd, attributes: &ibv_ah_attr) -> Result<*mut ibv_ah, Errno> {
    // SAFETY: as promised by the caller.
    let domain = unsafe { ProtectionDomain::of(pd) }?;
    let path = path(&domain.hub().nic, attributes)?;
    domain.join();
    Ok(AddressHandle {
        c: Shared::new(ibv_ah {
            context: domain.context_pointer(),
            pd,
            handle: handle(),
        }),
        path,
    }
    .publish())
}

/// `ibv_destroy_ah`
///
/// # Safety
/// The handle is one of ours, and nobody will use it again.
pub(crate) unsafe extern "C" fn destroy_ah(ah: *mut ibv_ah) -> c_int {
    number(|| {
        // SAFETY: as promised by the caller.
        let pd = unsafe { (*AddressHandle::of(ah)?.c.get()).pd };
        // SAFETY: a domain does not end before its address handles.
        unsafe { ProtectionDomain::of(pd) }?.leave();
        // SAFETY: the caller gives it up.
        drop(unsafe { AddressHandle::reclaim(ah) });
        Ok(())
    })
}

/// Who sent a datagram and to whom, by the header that lies before it: IPv6, or IPv4 in the header's second half (IBTA
/// annex A17.4.5.2).
struct Header {
    source: Gid,
    destination: Gid,
    traffic_class: u8,
    flow_label: u32,
}

fn read(grh: &[u8; GRH]) -> Option<Header> {
    let address = |at: usize| -> [u8; 16] { std::array::from_fn(|i| grh[at + i]) };
    let v4 = |at: usize| Ipv4Addr::new(grh[at], grh[at + 1], grh[at + 2], grh[at + 3]);
    // An IPv4 header is known by its version, its length of five words, and its checksum.
    let words = grh[20..]
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let checksum = (sum & 0xffff) + (sum >> 16);
    if grh[20] == 0x45 && (checksum & 0xffff) + (checksum >> 16) == 0xffff {
        return Some(Header {
            source: Gid::from(v4(32)),
            destination: Gid::from(v4(36)),
            traffic_class: grh[21],
            flow_label: 0,
        });
    }
    if grh[0] >> 4 != 6 {
        return None;
    }
    let first = u32::from_be_bytes([grh[0], grh[1], grh[2], grh[3]]);
    Some(Header {
        source: Gid(address(8)),
        destination: Gid(address(24)),
        traffic_class: (first >> 20) as u8,
        flow_label: first & 0xf_ffff,
    })
}

/// The address attributes that lead back to the sender of a datagram.
fn back(nic: &Nic, port: u8, wc: &ibv_wc, grh: Option<&[u8; GRH]>) -> Result<ibv_ah_attr, Errno> {
    let mut attributes = ibv_ah_attr {
        dlid: wc.slid,
        src_path_bits: wc.dlid_path_bits,
        port_num: port,
        ..Default::default()
    };
    if wc.wc_flags & IBV_WC_GRH as u32 != 0 {
        let header = grh.and_then(read).ok_or(Errno::EINVAL)?;
        let own = nic
            .gids()
            .iter()
            .find(|entry| entry.gid == header.destination);
        // What came to a multicast group is answered from the first address of the sender's kind.
        let own = own.or_else(|| {
            let family = header.source.to_ip().is_ipv4();
            nic.gids().iter().find(|entry| entry.ip.is_ipv4() == family)
        });
        let own = own.ok_or(Errno::EINVAL)?;
        attributes.is_global = 1;
        attributes.grh = ibv_global_route {
            dgid: ibv_gid {
                raw: header.source.0,
            },
            flow_label: header.flow_label,
            sgid_index: own.index as u8,
            hop_limit: 0xff,
            traffic_class: header.traffic_class,
        };
    }
    Ok(attributes)
}

/// `ibv_init_ah_from_wc`
///
/// # Safety
/// The context is open; the other pointers are structures of the caller, `grh` 40 bytes or null.
pub(crate) unsafe extern "C" fn init_ah_from_wc(
    context: *mut ibv_context,
    port: u8,
    wc: *const ibv_wc,
    grh: *const ibv_grh,
    attributes: *mut ibv_ah_attr,
) -> c_int {
    minus_one(|| {
        // SAFETY: as promised by the caller.
        let (context, wc, grh) = unsafe {
            let grh = grh.cast::<[u8; GRH]>().as_ref();
            (
                Context::of(context)?,
                wc.as_ref().ok_or(Errno::EINVAL)?,
                grh,
            )
        };
        if attributes.is_null() {
            return Err(Errno::EINVAL);
        }
        let back = back(&context.hub.nic, port, wc, grh)?;
        // SAFETY: the caller's structure; what was in it does not matter.
        unsafe { attributes.write(back) };
        Ok(0)
    })
}

/// `ibv_create_ah_from_wc`
///
/// # Safety
/// The domain is one of ours; the other pointers are structures of the caller, `grh` 40 bytes or null.
pub(crate) unsafe extern "C" fn create_ah_from_wc(
    pd: *mut ibv_pd,
    wc: *const ibv_wc,
    grh: *const ibv_grh,
    port: u8,
) -> *mut ibv_ah {
    pointer(|| {
        // SAFETY: as promised by the caller.
        let (domain, wc, grh) = unsafe {
            let grh = grh.cast::<[u8; GRH]>().as_ref();
            (
                ProtectionDomain::of(pd)?,
                wc.as_ref().ok_or(Errno::EINVAL)?,
                grh,
            )
        };
        let attributes = back(&domain.hub().nic, port, wc, grh)?;
        // SAFETY: as promised by the caller.
        unsafe { create(pd, &attributes) }
    })
}

/// `ibv_resolve_eth_l2_from_gid`: the kernel's neighbour tables know link addresses; packets here go through sockets, so
/// nobody needs one.
pub(crate) extern "C" fn resolve_eth_l2_from_gid(
    _context: *mut ibv_context,
    _attributes: *mut ibv_ah_attr,
    _mac: *mut u8,
    _vlan: *mut u16,
) -> c_int {
    Errno::EOPNOTSUPP.code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_headers_are_read() {
        let mut grh = [0_u8; GRH];
        grh[..4].copy_from_slice(&[0x62, 0xa1, 0x23, 0x45]);
        grh[8..24].copy_from_slice(&[1; 16]);
        grh[24..40].copy_from_slice(&[2; 16]);
        let header = read(&grh).unwrap();
        assert_eq!(
            (header.source, header.destination),
            (Gid([1; 16]), Gid([2; 16]))
        );
        assert_eq!((header.traffic_class, header.flow_label), (0x2a, 0x12345));

        // RFC 1071's sum of this header is right.
        let mut grh = [0_u8; GRH];
        grh[20..].copy_from_slice(&[
            0x45, 0x08, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
        ]);
        assert!(read(&grh).is_none(), "its checksum is still missing");
        let sum: u32 = grh[20..]
            .chunks_exact(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
        grh[30..32].copy_from_slice(&checksum.to_be_bytes());
        let header = read(&grh).unwrap();
        assert_eq!(header.source, Gid::from(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(header.destination, Gid::from(Ipv4Addr::new(192, 0, 2, 2)));
        assert_eq!(header.traffic_class, 8);
    }

    #[test]
    fn ports_are_in_the_dynamic_range() {
        assert_eq!(source_port(0), 0);
        assert_eq!(source_port(1), 0xc001);
        assert_eq!(source_port(0xf_ffff), 0xc000 | (0x3fff ^ 0x3f));
    }
}
