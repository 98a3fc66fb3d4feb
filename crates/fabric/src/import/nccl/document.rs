//! The elements of a file: which devices there are, and behind which PCIe switches.

use std::path::Path;

use roxmltree::Node;
use softfabric_units::Rate;

use super::super::ImportError;
use super::links;

/// What a file says of devices.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) devices: Vec<Device>,
    pub(super) notes: Vec<String>,
}

/// A device on PCIe, or a NIC without: a virtual one.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) kind: Kind,
    pub(super) line: usize,
    pub(super) bus: String,
    /// What leads to it: its socket, the PCIe links from there to its own, each by its place in the file.
    pub(super) way: Vec<usize>,
    /// The payload that the slowest of these links carries; `None`: the file does not say it of one.
    pub(super) rate: Option<Rate>,
    /// The payload that the link nearest to the socket carries.
    pub(super) uplink: Option<Rate>,
    pub(super) gpu: Option<Gpu>,
    pub(super) ports: Vec<Port>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Accelerator,
    Nic,
}

/// What `gpu` says.
#[derive(Debug)]
pub(super) struct Gpu {
    /// The device number.
    pub(super) number: u32,
    /// The compute capability, times ten.
    pub(super) capability: u32,
    pub(super) direct: Option<bool>,
    pub(super) links: Vec<AcceleratorLink>,
}

/// What `nvlink` says.
#[derive(Debug)]
pub(super) struct AcceleratorLink {
    pub(super) count: u32,
    pub(super) to: LinkEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkEnd {
    Switch,
    Accelerator,
    Itself,
    Host,
    /// XGMI of AMD: the file does not say how fast.
    Unknown,
}

/// What `net` says.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) rate: Option<Rate>,
    pub(super) direct: Option<bool>,
}

/// Known elements, and what each is in.
const ELEMENTS: &[(&str, &[&str])] = &[
    ("cpu", &["system"]),
    ("pci", &["cpu", "pci"]),
    ("gpu", &["pci"]),
    ("nvlink", &["gpu"]),
    ("xgmi", &["gpu"]),
    ("nic", &["pci", "cpu"]),
    ("net", &["nic"]),
];

/// Elements that the model has no place for.
const BESIDE: &[(&str, &str)] = &[
    ("c2c", "links between accelerators and processors (C2C)"),
    ("pcilink", "links between PCIe switches"),
    ("gin", "networks that accelerators drive themselves (GIN)"),
    ("rma", "networks for remote memory access alone (RMA)"),
];

pub(super) fn read(file: &Path, text: &str) -> Result<Document, ImportError> {
    let parsed = roxmltree::Document::parse(text).map_err(|error| {
        let line = Some(error.pos().row as usize);
        ImportError::new(file, line, "the text", error.to_string(), "XML")
    })?;
    let reader = Reader {
        file,
        document: &parsed,
    };
    let root = parsed.root_element();
    if !root.has_tag_name("system") {
        let found = format!("`{}`", root.tag_name().name());
        let error = reader.error(root, "the outermost element", found, "`system`");
        return Err(error.advise("is this a topology file of NCCL, and not its graph file?"));
    }
    // Version 2 is RCCL's.
    let version = root.attribute("version");
    if version.is_some_and(|version| !["1", "2"].contains(&version)) {
        return Err(reader.wrong(root, "version", "`1` or `2`"));
    }
    let mut document = Document::default();
    let mut node_of = None;
    for element in root.descendants().skip(1).filter(Node::is_element) {
        let name = element.tag_name().name();
        let Some((_, parents)) = ELEMENTS.iter().find(|(known, _)| *known == name) else {
            let what = BESIDE.iter().find(|(known, _)| *known == name);
            let note = match what {
                Some((_, what)) => format!("`{name}`: {what} are not part of the model"),
                None => format!("`{name}`: an element that NCCL does not know"),
            };
            if !document.notes.contains(&note) {
                document.notes.push(note);
            }
            continue;
        };
        let parent = element.parent_element().unwrap_or(root).tag_name().name();
        if !parents.contains(&parent) && known(parent) {
            let allowed = format!("inside `{}`", parents.join("` or `"));
            let found = format!("inside `{parent}`");
            return Err(reader.error(element, format!("the element `{name}`"), found, allowed));
        }
        match name {
            "cpu" => {
                reader.number(element, "numaid")?;
                let host = element.attribute("host_hash");
                if *node_of.get_or_insert(host) != host {
                    return Err(reader.wrong(
                        element,
                        "host_hash",
                        "that of the first `cpu`: a file is of one node",
                    ));
                }
            }
            "pci" => document
                .devices
                .extend(reader.pci(element, &mut document.notes)?),
            "nic" if parent == "cpu" => document.devices.push(reader.virtual_nic(element)?),
            _ => {}
        }
    }
    let mut seen = rustc_hash::FxHashMap::default();
    for device in &document.devices {
        if let Some(first) = seen.insert(device.bus.as_str(), device.line) {
            return Err(ImportError::new(
                file,
                Some(device.line),
                "`busid` of `pci`",
                format!("`{}`, that of line {first}", device.bus),
                "an address of its own",
            ));
        }
    }
    Ok(document)
}

fn known(name: &str) -> bool {
    name == "system" || ELEMENTS.iter().any(|(known, _)| *known == name)
}

impl Device {
    /// How many of the first stations of the way to it are on the way to another one, too: the socket, then switches.
    pub(super) fn common(&self, other: &Self) -> usize {
        (self.way.iter().zip(&other.way))
            .take_while(|(one, another)| one == another)
            .count()
    }

    pub(super) fn name(&self) -> &str {
        self.ports
            .first()
            .map_or(self.bus.as_str(), |port| port.name.as_str())
    }
}

struct Reader<'r, 'i> {
    file: &'r Path,
    document: &'r roxmltree::Document<'i>,
}

impl Reader<'_, '_> {
    /// The device of a `pci`, unless it is a switch or something else that neither computes nor communicates.
    fn pci(
        &self,
        element: Node<'_, '_>,
        notes: &mut Vec<String>,
    ) -> Result<Option<Device>, ImportError> {
        let bus = self.address(element, "busid")?.to_owned();
        let class = self.attribute(element, "class")?;
        if !class.starts_with("0x") || u32::from_str_radix(&class[2..], 16).is_err() {
            return Err(self.wrong(element, "class", "a PCI class such as `0x030200`"));
        }
        let own = self.link(element)?;
        let gpu = element.children().find(|child| child.has_tag_name("gpu"));
        let nic = element.children().find(|child| child.has_tag_name("nic"));
        let kind = match (gpu, nic) {
            (Some(_), _) => Kind::Accelerator,
            (None, Some(_)) => Kind::Nic,
            (None, None) if class.starts_with("0x03") => Kind::Accelerator,
            (None, None) if class.starts_with("0x02") => Kind::Nic,
            (None, None) => return Ok(None),
        };
        let mut rate = own;
        let mut uplink = own;
        let mut way = vec![element.id().get_usize()];
        for above in element.ancestors().skip(1) {
            if above.has_tag_name("pci") {
                uplink = self.link(above)?;
                rate = rate.zip(uplink).map(|(one, other)| one.min(other));
            }
            if above.has_tag_name("pci") || above.has_tag_name("cpu") {
                way.push(above.id().get_usize());
            }
        }
        way.reverse();
        let parts = element.children().filter(|child| child.has_tag_name("gpu"));
        let parts = parts.count();
        if parts > 1 {
            notes.push(format!(
                "line {}: {bus} is in {parts} parts (`mlopart`), which the model takes as one accelerator",
                self.line(element)
            ));
        }
        let gpu = gpu.map(|gpu| self.gpu(gpu, &bus)).transpose()?;
        let ports = nic.map_or(Ok(Vec::new()), |nic| self.ports(nic))?;
        if rate.is_none() {
            notes.push(format!(
                "line {}: how fast the PCIe links to {bus} are is not said",
                self.line(element)
            ));
        }
        Ok(Some(Device {
            kind,
            line: self.line(element),
            bus,
            way,
            rate,
            uplink,
            gpu,
            ports,
        }))
    }

    /// A NIC that is on no PCIe bus.
    fn virtual_nic(&self, element: Node<'_, '_>) -> Result<Device, ImportError> {
        let cpu = element.parent_element().map(|cpu| cpu.id().get_usize());
        let line = self.line(element);
        Ok(Device {
            kind: Kind::Nic,
            line,
            bus: format!("of line {line}"),
            way: cpu.into_iter().collect(),
            rate: None,
            uplink: None,
            gpu: None,
            ports: self.ports(element)?,
        })
    }

    fn gpu(&self, element: Node<'_, '_>, bus: &str) -> Result<Gpu, ImportError> {
        let links = (element.children())
            .filter(|child| child.has_tag_name("nvlink") || child.has_tag_name("xgmi"))
            .map(|link| {
                let class = self.attribute(link, "tclass")?;
                let to = match class {
                    _ if link.has_tag_name("xgmi") => LinkEnd::Unknown,
                    // What NCCL tells NVSwitches and processors by.
                    "0x068000" => LinkEnd::Switch,
                    "0x068001" => LinkEnd::Host,
                    _ if class.starts_with("0x03") => {
                        let target = self.address(link, "target")?;
                        match target.eq_ignore_ascii_case(bus) {
                            true => LinkEnd::Itself,
                            false => LinkEnd::Accelerator,
                        }
                    }
                    _ => {
                        let allowed = "`0x068000` (NVSwitch), `0x068001` (processor) or `0x03…` \
                                       (accelerator)";
                        return Err(self.wrong(link, "tclass", allowed));
                    }
                };
                let count = self.number(link, "count")?;
                Ok(AcceleratorLink { count, to })
            })
            .collect::<Result<_, _>>()?;
        Ok(Gpu {
            number: self.number(element, "dev")?,
            capability: self.number(element, "sm")?,
            direct: self.flag(element, "gdr")?,
            links,
        })
    }

    fn ports(&self, nic: Node<'_, '_>) -> Result<Vec<Port>, ImportError> {
        (nic.children())
            .filter(|child| child.has_tag_name("net"))
            // Of newer files: what is there for other ways to communicate alone.
            .filter(|net| net.attribute("net") != Some("0"))
            .map(|net| {
                let number = self.number(net, "dev")?;
                let speed: i64 = match net.attribute("speed") {
                    None => 0,
                    Some(text) => (text.parse()).map_err(|_| {
                        self.wrong(net, "speed", "a rate in Mb/s, such as `400000`")
                    })?,
                };
                Ok(Port {
                    name: (net.attribute("name"))
                        .map_or_else(|| format!("net {number}"), str::to_owned),
                    // Some drivers say −1.
                    rate: (speed > 0).then(|| Rate::mbps(speed as u64)),
                    direct: self.flag(net, "gdr")?,
                })
            })
            .collect()
    }

    /// The payload that the link of a `pci` carries, each way.
    fn link(&self, element: Node<'_, '_>) -> Result<Option<Rate>, ImportError> {
        let speed = element.attribute("link_speed").unwrap_or("");
        let width = match element.attribute("link_width").unwrap_or("") {
            "" => 0,
            _ => self.number(element, "link_width")?,
        };
        if speed.is_empty() || speed.starts_with("Unknown") || width == 0 {
            return Ok(None);
        }
        match links::pcie_payload(speed, width) {
            Some(rate) => Ok(Some(rate)),
            None if links::pcie_payload(speed, 1).is_some() => {
                Err(self.wrong(element, "link_width", "1, 2, 4, 8, 12, 16 or 32 lanes"))
            }
            None => {
                let allowed =
                    "a rate of PCIe such as `32.0 GT/s PCIe`: 2.5, 5, 8, 16, 32 or 64 GT/s";
                Err(self.wrong(element, "link_speed", allowed))
            }
        }
    }

    fn attribute<'e>(&self, element: Node<'e, '_>, name: &str) -> Result<&'e str, ImportError> {
        (element.attribute(name)).ok_or_else(|| self.wrong(element, name, "given"))
    }

    /// A PCI address: `0000:1b:00.0`, also in the short form of made-up switches, `ffff:ff:01.0`.
    fn address<'e>(&self, element: Node<'e, '_>, name: &str) -> Result<&'e str, ImportError> {
        let text = self.attribute(element, name)?;
        let parts: Vec<&str> = text.split([':', '.']).collect();
        let hexadecimal =
            |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_hexdigit());
        if (3..=4).contains(&parts.len()) && parts.iter().all(hexadecimal) {
            return Ok(text);
        }
        Err(self.wrong(element, name, "a PCI address such as `0000:1b:00.0`"))
    }

    fn number(&self, element: Node<'_, '_>, name: &str) -> Result<u32, ImportError> {
        (self.attribute(element, name)?.parse())
            .map_err(|_| self.wrong(element, name, "a whole number"))
    }

    fn flag(&self, element: Node<'_, '_>, name: &str) -> Result<Option<bool>, ImportError> {
        match element.attribute(name) {
            None => Ok(None),
            Some("0") => Ok(Some(false)),
            Some("1") => Ok(Some(true)),
            Some(_) => Err(self.wrong(element, name, "`0` or `1`")),
        }
    }

    fn wrong(&self, element: Node<'_, '_>, name: &str, allowed: &str) -> ImportError {
        let field = format!("`{name}` of `{}`", element.tag_name().name());
        let found = (element.attribute(name))
            .map_or_else(|| "not given".to_owned(), |value| format!("`{value}`"));
        self.error(element, field, found, allowed)
    }

    fn error(
        &self,
        element: Node<'_, '_>,
        field: impl Into<String>,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ImportError {
        ImportError::new(self.file, Some(self.line(element)), field, found, allowed)
    }

    fn line(&self, element: Node<'_, '_>) -> usize {
        self.document.text_pos_at(element.range().start).row as usize
    }
}
