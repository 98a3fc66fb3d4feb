//! Topology files of NCCL: what is inside a node, as `NCCL_TOPO_FILE` is read and `NCCL_TOPO_DUMP_FILE` written.
//!
//! ```text
//! system ─► cpu ─► pci (switch) ─┬─► pci ─► gpu ─► nvlink      accelerator, and its NVLinks
//!                                └─► pci ─► nic ─► net         NIC, and its ports
//! ```
//!
//! Files that are given to NCCL may leave out `gpu`, `nic` and `net`: it finds those when it runs. Here the class of a PCI
//! function says then what it is.
//!
//! What the file says and the model has no place for is a note, never dropped in silence.

mod document;
mod links;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use softfabric_units::Rate;

use super::ImportError;
use super::lines::read_text;
use document::{Device, Document, Kind};

/// What is inside a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTopology {
    /// The accelerators, in the order of their device numbers; of a file that leaves these out, in that of the file.
    pub accelerators: Vec<Accelerator>,
    /// The NICs that are nearest to an accelerator, in the order of the first accelerator that each is nearest to.
    pub nics: Vec<Nic>,
    /// What an accelerator can send to those of its node, each way; `None`: the file does not say.
    pub accelerator_rate: Option<Rate>,
    /// Whether NICs reach accelerators directly (GPUDirect RDMA); `None`: the file does not say, or says both.
    pub direct: Option<bool>,
    /// What the PCIe link between accelerators and the host carries as payload, each way; `None`: the file does not say.
    pub pcie_rate: Option<Rate>,
    /// How many accelerators share one such link.
    pub pcie_sharing: u32,
    /// What the model has no place for, or takes more simply.
    pub notes: Vec<String>,
}

/// An accelerator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accelerator {
    /// Its PCI address.
    pub bus: String,
    /// The NIC nearest to it, an index of [`NodeTopology::nics`].
    pub nic: u32,
}

/// A NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// The name of its first port, such as `mlx5_0`, or its PCI address.
    pub name: String,
    /// The rate of a port; `None`: the file does not say.
    pub rate: Option<Rate>,
}

/// Reads a file.
///
/// # Errors
/// If it cannot be read, is no XML, or an element or attribute is not as NCCL has it.
pub fn load(path: &Path) -> Result<NodeTopology, ImportError> {
    read(path, &read_text(path)?)
}

/// Reads the text of a file.
///
/// # Errors
/// As [`load`].
pub fn read(file: &Path, text: &str) -> Result<NodeTopology, ImportError> {
    let Document { devices, mut notes } = document::read(file, text)?;
    let accelerators = accelerators(&devices, &mut notes);
    if accelerators.is_empty() {
        return Err(ImportError::new(
            file,
            None,
            "what is inside `system`",
            "no accelerator",
            "at least one `pci` with a `gpu` in it, or of class 0x03…",
        ));
    }
    let nics = nics(&devices, &mut notes);
    if nics.is_empty() {
        return Err(ImportError::new(
            file,
            None,
            "what is inside `system`",
            "no NIC",
            "at least one `pci` with a `nic` in it, or of class 0x02…",
        ));
    }
    let nearest = nearest(&accelerators, &nics);
    let used = in_use(&nearest);
    for (place, nic) in nics.iter().enumerate() {
        if !used.contains(&place) {
            notes.push(format!(
                "line {}: the NIC {} is nearest to no accelerator, and left out",
                nic.line,
                nic.name()
            ));
        }
    }
    let place_of = |nic: usize| used.iter().position(|other| *other == nic).unwrap_or(0) as u32;
    let pairs: Vec<(&Device, &Device)> = (accelerators.iter().zip(&nearest))
        .map(|(accelerator, nic)| (*accelerator, nics[*nic]))
        .collect();
    links::compare_ports(&pairs, &mut notes);
    let (pcie_rate, pcie_sharing) = links::uplinks(&accelerators, &mut notes);
    Ok(NodeTopology {
        accelerators: (accelerators.iter().zip(&nearest))
            .map(|(accelerator, nic)| Accelerator {
                bus: accelerator.bus.clone(),
                nic: place_of(*nic),
            })
            .collect(),
        nics: (used.iter().map(|place| nics[*place]))
            .map(|nic| Nic {
                name: nic.name().to_owned(),
                rate: nic.ports.first().and_then(|port| port.rate),
            })
            .collect(),
        accelerator_rate: links::between_accelerators(&accelerators, pcie_rate, &mut notes),
        direct: links::direct(&pairs, &mut notes),
        pcie_rate,
        pcie_sharing,
        notes,
    })
}

impl NodeTopology {
    /// The rate of a port, if all NICs have the same.
    pub fn port_rate(&self) -> Option<Rate> {
        let first = self.nics.first()?.rate?;
        (self.nics.iter().all(|nic| nic.rate == Some(first))).then_some(first)
    }
}

/// Accelerators by their device numbers, where all have one.
fn accelerators<'d>(devices: &'d [Device], notes: &mut Vec<String>) -> Vec<&'d Device> {
    let of_class = |device: &&Device| device.kind == Kind::Accelerator;
    let named = devices.iter().any(|device| device.gpu.is_some());
    let (mut kept, unused): (Vec<_>, Vec<_>) = (devices.iter().filter(of_class))
        .partition(|device: &&Device| device.gpu.is_some() || !named);
    for device in unused {
        notes.push(format!(
            "line {}: {} has no `gpu` in it, as others have: NCCL does not use it, and it is left out",
            device.line, device.bus
        ));
    }
    kept.sort_by_key(|device| device.gpu.as_ref().map(|gpu| gpu.number));
    kept
}

/// NICs in the order of the file.
fn nics<'d>(devices: &'d [Device], notes: &mut Vec<String>) -> Vec<&'d Device> {
    let of_class = |device: &&Device| device.kind == Kind::Nic;
    let named = devices.iter().any(|device| !device.ports.is_empty());
    let (kept, unused): (Vec<_>, Vec<_>) = (devices.iter().filter(of_class))
        .partition(|device: &&Device| !device.ports.is_empty() || !named);
    for device in unused {
        notes.push(format!(
            "line {}: {} has no `net` in it, as others have: NCCL does not use it, and it is left out",
            device.line, device.bus
        ));
    }
    kept
}

/// For each accelerator the NIC with which it has the most PCIe switches in common, else the socket, else nothing.
/// Accelerators that are as near to the same NICs take them in turn.
fn nearest(accelerators: &[&Device], nics: &[&Device]) -> Vec<usize> {
    let mut turns: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    (accelerators.iter())
        .map(|accelerator| {
            let near = |nic: &&Device| accelerator.common(nic);
            let most = nics.iter().map(near).max().unwrap_or(0);
            let equal: Vec<usize> = (0..nics.len())
                .filter(|place| near(&nics[*place]) == most)
                .collect();
            let turn = turns.entry(equal.clone()).or_default();
            *turn += 1;
            equal[(*turn - 1) % equal.len()]
        })
        .collect()
}

/// The NICs that are nearest to an accelerator, each once.
fn in_use(nearest: &[usize]) -> Vec<usize> {
    let mut used = Vec::new();
    for nic in nearest {
        if !used.contains(nic) {
            used.push(*nic);
        }
    }
    used
}
