//! Writing packet captures that Wireshark opens (pcapng, draft-ietf-opsawg-pcapng).
//!
//! ```text
//! section header | interface description × n | enhanced packet × m     (interfaces may also come between packets)
//! every block:   type (4) | length (4) | body, options | length (4)    all multiples of 4 bytes, little endian
//! ```
//!
//! Times are nanoseconds since the driver's zero, so the capture shows 1970. (In picoseconds Wireshark up to 4.0 would
//! show them wrong: its arithmetic overflows 18 ms after each whole second.) Blocks go out as they are written; nothing
//! is kept.

use std::io::{self, Write};

use softfabric_units::{Rate, Time};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LENGTH_UNKNOWN: u64 = u64::MAX;
/// 10⁻⁹ s.
const NANOSECONDS: u8 = 9;
/// The longest text that an option holds.
const MAX_OPTION: usize = u16::MAX as usize;

/// The codes of options; their meaning depends on the block.
mod options {
    pub(super) const END: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    pub(super) const SECTION_APPLICATION: u16 = 4;
    pub(super) const INTERFACE_NAME: u16 = 2;
    pub(super) const INTERFACE_DESCRIPTION: u16 = 3;
    pub(super) const INTERFACE_SPEED: u16 = 8;
    pub(super) const INTERFACE_TIME_RESOLUTION: u16 = 9;
    pub(super) const PACKET_FLAGS: u16 = 2;
}

/// Writes one capture.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    out: W,
    interfaces: Vec<LinkType>,
    /// The block that is being made.
    block: Vec<u8>,
}

/// An interface of one capture.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InterfaceId(u32);

/// What a capture says about an interface.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Interface<'a> {
    /// Its name, such as `leaf1/port3`.
    pub name: &'a str,
    /// A longer description; empty for none.
    pub description: &'a str,
    /// Its speed, where it has one.
    pub speed: Option<Rate>,
}

/// What the frames of an interface start with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum LinkType {
    /// An Ethernet header; without FCS.
    #[default]
    Ethernet,
    /// An LRH, with VCRC at the end; or a flow-control packet. Each lies in a record of Endace's extensible format, as
    /// Wireshark reads InfiniBand from nothing else.
    InfiniBand,
}

/// The header of such a record.
const ERF_HEADER: usize = 16;
const ERF_INFINIBAND: u8 = 21;
const ERF_INFINIBAND_LINK: u8 = 25;

impl LinkType {
    const fn code(self) -> u16 {
        match self {
            Self::Ethernet => 1,
            Self::InfiniBand => 197,
        }
    }

    /// What goes before the frame, and how much of it.
    fn record_header(self, packet: &Captured<'_>) -> ([u8; ERF_HEADER], usize) {
        let mut header = [0; ERF_HEADER];
        if self == Self::Ethernet {
            return (header, 0);
        }
        let picos = u128::from(packet.time.as_picos());
        // Seconds, then their fraction of 32 bits.
        let stamp = ((picos << 32) / 1_000_000_000_000) as u64;
        let kind = if packet.original_length == crate::infiniband::FlowControl::LENGTH {
            ERF_INFINIBAND_LINK
        } else {
            ERF_INFINIBAND
        };
        let short = |length: usize| u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
        header[..8].copy_from_slice(&stamp.to_le_bytes());
        header[8] = kind;
        header[9] = 4; // records of varying length
        header[10..12].copy_from_slice(&short(ERF_HEADER + packet.bytes.len()));
        header[14..16].copy_from_slice(&short(packet.original_length));
        (header, ERF_HEADER)
    }
}

/// Which way a packet passed the interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// It was received.
    Inbound,
    /// It was sent.
    Outbound,
}

/// One captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// When it passed.
    pub time: Time,
    /// Where it passed.
    pub interface: InterfaceId,
    /// Which way, where that is known.
    pub direction: Option<Direction>,
    /// Its first bytes, without FCS.
    pub bytes: &'a [u8],
    /// How long it was on the wire, without FCS: at least as long as `bytes`.
    pub original_length: usize,
    /// A remark to show beside it, such as why it was dropped; empty for none.
    pub comment: &'a str,
}

impl<'a> Captured<'a> {
    /// A whole frame without direction or remark.
    pub const fn whole(time: Time, interface: InterfaceId, bytes: &'a [u8]) -> Self {
        Self {
            time,
            interface,
            direction: None,
            bytes,
            original_length: bytes.len(),
            comment: "",
        }
    }
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a capture made by `application`.
    ///
    /// # Errors
    /// If `out` fails; so in everything that writes.
    pub fn new(out: W, application: &str) -> io::Result<Self> {
        let mut writer = Self {
            out,
            interfaces: Vec::new(),
            block: Vec::new(),
        };
        writer.begin(SECTION_HEADER);
        writer.u32(BYTE_ORDER_MAGIC);
        writer.u16(1);
        writer.u16(0);
        writer.block.extend(LENGTH_UNKNOWN.to_le_bytes());
        writer.text(options::SECTION_APPLICATION, application);
        writer.end()?;
        Ok(writer)
    }

    /// Adds an Ethernet interface.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn add_interface(&mut self, interface: &Interface<'_>) -> io::Result<InterfaceId> {
        self.add_interface_of(LinkType::Ethernet, interface)
    }

    /// Adds an interface of any kind.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn add_interface_of(
        &mut self,
        link: LinkType,
        interface: &Interface<'_>,
    ) -> io::Result<InterfaceId> {
        self.begin(INTERFACE_DESCRIPTION);
        self.u16(link.code());
        self.u16(0);
        self.u32(0); // no limit on a packet's bytes
        self.text(options::INTERFACE_NAME, interface.name);
        self.text(options::INTERFACE_DESCRIPTION, interface.description);
        if let Some(speed) = interface.speed {
            self.option(options::INTERFACE_SPEED, &speed.as_bps().to_le_bytes());
        }
        self.option(options::INTERFACE_TIME_RESOLUTION, &[NANOSECONDS]);
        self.end()?;
        let id = InterfaceId(self.interfaces.len() as u32);
        self.interfaces.push(link);
        Ok(id)
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// If `out` fails, or the interface is not of this capture.
    pub fn write(&mut self, packet: &Captured<'_>) -> io::Result<()> {
        let Some(link) = self.interfaces.get(packet.interface.0 as usize) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "interface {} of a capture that has {}",
                    packet.interface.0,
                    self.interfaces.len()
                ),
            ));
        };
        let (record, record_length) = link.record_header(packet);
        let nanos = packet.time.as_nanos();
        self.begin(ENHANCED_PACKET);
        self.u32(packet.interface.0);
        self.u32((nanos >> 32) as u32);
        self.u32(nanos as u32);
        self.u32(length_field(record_length + packet.bytes.len())?);
        self.u32(length_field(
            record_length + packet.original_length.max(packet.bytes.len()),
        )?);
        self.block.extend(&record[..record_length]);
        self.block.extend(packet.bytes);
        self.pad();
        if let Some(direction) = packet.direction {
            let flags: u32 = match direction {
                Direction::Inbound => 0b01,
                Direction::Outbound => 0b10,
            };
            self.option(options::PACKET_FLAGS, &flags.to_le_bytes());
        }
        self.text(options::COMMENT, packet.comment);
        self.end()
    }

    /// Flushes and gives back what was written to.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        self.u32(0); // the length, once it is known
    }

    /// Ends the options and the block, and writes it.
    fn end(&mut self) -> io::Result<()> {
        self.option(options::END, &[]);
        let length = length_field(self.block.len() + 4)?;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.u32(length);
        self.out.write_all(&self.block)
    }

    /// Adds a text option; an empty text adds none, and what is too long for one is cut.
    fn text(&mut self, code: u16, text: &str) {
        if !text.is_empty() {
            let mut cut = text.len().min(MAX_OPTION);
            while !text.is_char_boundary(cut) {
                cut -= 1;
            }
            self.option(code, &text.as_bytes()[..cut]);
        }
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(value.len() as u16);
        self.block.extend(value);
        self.pad();
    }

    fn u16(&mut self, value: u16) {
        self.block.extend(value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.block.extend(value.to_le_bytes());
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }
}

fn length_field(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{length} bytes are too long for a pcapng block"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rustfmt::skip]
    #[test]
    fn blocks_byte_for_byte() {
        let mut writer = PcapngWriter::new(Vec::new(), "soft").unwrap();
        let interface = Interface { name: "p0", description: "", speed: Some(Rate::bps(0x0102)) };
        let id = writer.add_interface(&interface).unwrap();
        writer.write(&Captured {
            direction: Some(Direction::Outbound),
            original_length: 7,
            comment: "x",
            ..Captured::whole(Time::from_picos(0x0001_0000_0002 * 1000 + 999), id, &[0xaa; 5])
        }).unwrap();
        let bytes = writer.finish().unwrap();
        let expected: &[&[u8]] = &[
            &[0x0a, 0x0d, 0x0d, 0x0a, 40, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0], &[0xff; 8],
            &[4, 0, 4, 0], b"soft", &[0, 0, 0, 0, 40, 0, 0, 0],
            &[1, 0, 0, 0, 52, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
            &[2, 0, 2, 0], b"p0", &[0, 0],
            &[8, 0, 8, 0, 2, 1, 0, 0, 0, 0, 0, 0],
            &[9, 0, 1, 0, 9, 0, 0, 0],
            &[0, 0, 0, 0, 52, 0, 0, 0],
            &[6, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0],
            &[0xaa; 5], &[0; 3],
            &[2, 0, 4, 0, 2, 0, 0, 0], &[1, 0, 1, 0, b'x', 0, 0, 0], &[0, 0, 0, 0, 60, 0, 0, 0],
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let mut writer = PcapngWriter::new(Vec::new(), &"é".repeat(40_000)).unwrap();
        let id = writer.add_interface(&Interface::default()).unwrap();
        writer.write(&Captured::whole(Time::ZERO, id, &[])).unwrap();
        let bytes = writer.finish().unwrap();
        assert_eq!(bytes[24..28], [4, 0, 0xfe, 0xff], "an even number of bytes");
    }

    #[test]
    fn interfaces_of_other_captures_are_refused() {
        let mut one = PcapngWriter::new(Vec::new(), "a").unwrap();
        let id = one.add_interface(&Interface::default()).unwrap();
        let mut other = PcapngWriter::new(Vec::new(), "b").unwrap();
        let error = other
            .write(&Captured::whole(Time::ZERO, id, &[]))
            .unwrap_err();
        assert_eq!(error.to_string(), "interface 0 of a capture that has 0");
    }
}
