//! What links inside a node carry, and what of it the model has a place for.

use std::collections::BTreeMap;

use softfabric_units::Rate;

use super::document::{Device, Gpu, LinkEnd};

/// What a PCIe link carries as payload of packets of 256 B, each way; `None` for a rate or width that PCIe does not have.
///
/// Encoding: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, flits with 236 of 256 bytes for packets at 64 GT/s (PCI Express
/// Base Specification 6.0, 4.2). A packet of 256 B costs 24 B besides: framing and sequence number 4, header 16, LCRC 4; in
/// flits the header alone.
pub(super) fn pcie_payload(speed: &str, width: u32) -> Option<Rate> {
    const MBPS: [(&str, u64, (u128, u128), u128); 6] = [
        ("2.5", 2_500, (8, 10), 24),
        ("5", 5_000, (8, 10), 24),
        ("8", 8_000, (128, 130), 24),
        ("16", 16_000, (128, 130), 24),
        ("32", 32_000, (128, 130), 24),
        ("64", 64_000, (236, 256), 16),
    ];
    let number = speed.strip_suffix(" PCIe").unwrap_or(speed);
    let number = number.strip_suffix(" GT/s")?;
    let number = number.strip_suffix(".0").unwrap_or(number);
    let (_, mbps, (of, all), header) = *MBPS.iter().find(|(known, ..)| *known == number)?;
    if ![1, 2, 4, 8, 12, 16, 32].contains(&width) {
        return None;
    }
    let raw = u128::from(mbps * 1_000_000 * u64::from(width));
    let payload = raw * of * 256 / (all * (256 + header));
    Some(Rate::bps(payload as u64))
}

/// What an NVLink of a compute capability carries, each way: what NCCL reckons with (`src/graph/topo.h` of NCCL
/// 2.30: 18, 20, 20, 12, 20.6 and 40.1 GB/s), which is what transfers reach of the 20, 25, 25, 14, 25 and 50 GB/s on the wire.
fn nvlink(capability: u32) -> Rate {
    let megabytes = match capability {
        100.. => 40_100,
        90.. => 20_600,
        86 => 12_000,
        70.. => 20_000,
        _ => 18_000,
    };
    Rate::mbps(megabytes * 8)
}

/// What an accelerator can send to the others: over all its NVLinks, else over PCIe. `None`: the file does not say.
pub(super) fn between_accelerators(
    accelerators: &[&Device],
    pcie: Option<Rate>,
    notes: &mut Vec<String>,
) -> Option<Rate> {
    let gpus: Vec<&Gpu> = accelerators
        .iter()
        .filter_map(|it| it.gpu.as_ref())
        .collect();
    if gpus.is_empty() {
        notes.push("no `gpu`, so nothing is said of NVLink: see `accelerator_rate`".to_owned());
        return None;
    }
    let leads = |to: LinkEnd| {
        let mut links = gpus.iter().flat_map(|gpu| &gpu.links);
        links.any(|link| link.to == to)
    };
    if leads(LinkEnd::Unknown) {
        notes.push("how fast XGMI is, the file does not say: see `accelerator_rate`".to_owned());
        return None;
    }
    if leads(LinkEnd::Itself) {
        notes.push("NVLinks that lead to their own accelerator do not count".to_owned());
    }
    if leads(LinkEnd::Host) {
        notes.push("NVLinks to processors are not part of the model".to_owned());
    }
    if leads(LinkEnd::Accelerator) {
        notes.push(
            "NVLinks lead from accelerator to accelerator: the model has a switch between all of them, with what all links \
             of one carry"
                .to_owned(),
        );
    }
    let counted = |to: LinkEnd| matches!(to, LinkEnd::Switch | LinkEnd::Accelerator);
    let rates: Vec<Rate> = (gpus.iter())
        .map(|gpu| {
            let links = gpu.links.iter().filter(|link| counted(link.to));
            let count: u64 = links.map(|link| u64::from(link.count)).sum();
            Rate::bps(nvlink(gpu.capability).as_bps().saturating_mul(count))
        })
        .collect();
    let least = rates.iter().min().copied().unwrap_or(Rate::ZERO);
    if rates.iter().any(|rate| *rate != least) {
        notes.push(format!(
            "accelerators differ in what their NVLinks carry: all get the {least} of the slowest"
        ));
    }
    if !least.is_zero() {
        return Some(least);
    }
    match pcie {
        Some(pcie) => notes.push(format!(
            "no NVLink: accelerators reach each other at the {pcie} of PCIe, which the model does not share with NICs"
        )),
        None => notes.push("neither NVLink nor the rate of PCIe: see `accelerator_rate`".to_owned()),
    }
    pcie
}

/// What the link between accelerators and the host carries, and how many accelerators share one.
pub(super) fn uplinks(accelerators: &[&Device], notes: &mut Vec<String>) -> (Option<Rate>, u32) {
    // The second station of the way is what hangs on the socket.
    let tops: Vec<usize> = (accelerators.iter())
        .map(|accelerator| accelerator.way[1.min(accelerator.way.len() - 1)])
        .collect();
    let mut shares: BTreeMap<usize, u32> = BTreeMap::new();
    for top in &tops {
        *shares.entry(*top).or_default() += 1;
    }
    let sharing = shares.values().max().copied().unwrap_or(1);
    let in_order = tops.chunks(sharing as usize).all(|chunk| {
        let full = chunk.len() == sharing as usize;
        full && chunk.iter().all(|top| *top == chunk[0])
    });
    if !in_order {
        notes.push(format!(
            "PCIe switches hold different accelerators than {sharing} in the order of their numbers: with copies through \
             host memory, each {sharing} that follow each other share a link"
        ));
    }
    let rates: Vec<Option<Rate>> = (accelerators.iter())
        .map(|accelerator| match sharing {
            1 => accelerator.rate,
            _ => accelerator.uplink,
        })
        .collect();
    let least = rates.iter().flatten().min().copied();
    if rates.iter().flatten().any(|rate| Some(*rate) != least) {
        notes.push("accelerators differ in their PCIe links: all get the slowest".to_owned());
    }
    (least, sharing)
}

/// Says of NICs what the model does not: links that are slower than their ports, ports that differ, other sockets.
pub(super) fn compare_ports(pairs: &[(&Device, &Device)], notes: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    let apart: Vec<&str> = (pairs.iter())
        .filter(|(accelerator, nic)| accelerator.common(nic) == 0)
        .map(|(accelerator, _)| accelerator.bus.as_str())
        .collect();
    if !apart.is_empty() {
        notes.push(format!(
            "the NICs nearest to {} are on another socket; what is between sockets is not part of the model",
            apart.join(", ")
        ));
    }
    for (_, nic) in pairs {
        let name = nic.name();
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        let line = nic.line;
        let all: u64 = (nic.ports.iter().flat_map(|port| port.rate))
            .map(Rate::as_bps)
            .sum();
        if let Some(pcie) = nic.rate.filter(|pcie| pcie.as_bps() < all) {
            notes.push(format!(
                "line {line}: PCIe carries {pcie} of the NIC {name}, less than its {}; with `data_path = \"direct\"` the \
                 model does not slow it: lower the `rate` of its cable",
                Rate::bps(all)
            ));
        }
        if nic.ports.iter().any(|port| port.rate != nic.ports[0].rate) {
            notes.push(format!(
                "line {line}: the ports of {name} differ in rate: the first counts"
            ));
        }
        if nic.ports.len() > 1 {
            notes.push(format!(
                "line {line}: {name} has {} ports: how many are cabled says `topology.planes`",
                nic.ports.len()
            ));
        }
    }
    let rates: Vec<Option<Rate>> = (pairs.iter())
        .map(|(_, nic)| nic.ports.first().and_then(|port| port.rate))
        .collect();
    if rates.iter().any(|rate| *rate != rates[0]) {
        notes.push("NICs differ in rate: see `topology.rate`".to_owned());
    }
}

/// Whether NICs reach accelerators directly: both must be able to, and have a PCIe switch in common, which is how far NCCL
/// goes unless `NCCL_NET_GDR_LEVEL` says otherwise.
pub(super) fn direct(pairs: &[(&Device, &Device)], notes: &mut Vec<String>) -> Option<bool> {
    let each: Vec<Option<bool>> = (pairs.iter())
        .map(|(accelerator, nic)| {
            let flags = (accelerator.gpu.iter().map(|gpu| gpu.direct))
                .chain(nic.ports.first().map(|port| port.direct));
            let flags: Vec<Option<bool>> = flags.collect();
            // The socket is the first station that they may have in common.
            let near = accelerator.common(nic) > 1;
            if !near || flags.contains(&Some(false)) {
                Some(false)
            } else if flags == [Some(true), Some(true)] {
                Some(true)
            } else {
                None
            }
        })
        .collect();
    if each.iter().all(|one| *one == each[0]) {
        return each[0];
    }
    let indirect = each.iter().filter(|one| **one == Some(false)).count();
    notes.push(format!(
        "{indirect} of {} accelerators cannot be reached directly by their NICs: the model has one way for all, see \
         `data_path`",
        each.len()
    ));
    None
}
