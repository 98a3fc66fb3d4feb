//! The frames of a captured port as a pcapng file, which Wireshark opens: data, CNPs, pause frames, flow control of
//! InfiniBand, both directions.

use std::io::{self, Write};

use softfabric_wire::pcapng::{Captured, Direction, Interface, LinkType, PcapngWriter};

use super::Names;
use crate::plan::{LinkLayer, Plan};
use crate::results::Capture;

/// Writes the capture as one interface that bears the port's name.
///
/// # Errors
/// What `out` says.
pub fn write(out: &mut dyn Write, plan: &Plan, capture: &Capture) -> io::Result<()> {
    let names = Names::new(&plan.network);
    let name = names.port(capture.endpoint);
    let peer = names.peer(capture.endpoint);
    let description = peer.map_or(String::new(), |peer| format!("to {}", names.port(peer)));
    let application = concat!("softfabric ", env!("CARGO_PKG_VERSION"));
    let mut writer = PcapngWriter::new(out, application)?;
    let link_type = match plan.link_layer {
        LinkLayer::Ethernet => LinkType::Ethernet,
        LinkLayer::Infiniband(_) => LinkType::InfiniBand,
    };
    let interface = Interface {
        name: &name,
        description: &description,
        speed: names.link(capture.endpoint).map(|link| link.rate),
    };
    let interface = writer.add_interface_of(link_type, &interface)?;
    for frame in &capture.frames {
        let direction = if frame.sent {
            Direction::Outbound
        } else {
            Direction::Inbound
        };
        writer.write(&Captured {
            time: frame.time,
            interface,
            direction: Some(direction),
            bytes: &frame.bytes,
            original_length: frame.length as usize,
            comment: "",
        })?;
    }
    writer.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use softfabric_units::Time;

    use super::super::sample;
    use super::*;
    use crate::plan::{Endpoint, NodeId, PortId};
    use crate::results::CapturedFrame;

    #[test]
    fn the_port_and_its_frames_are_there() {
        let (plan, _) = sample::incast();
        let capture = Capture {
            endpoint: Endpoint {
                node: NodeId(sample::SWITCH),
                port: PortId(0),
            },
            frames: vec![CapturedFrame {
                time: Time::from_nanos(5),
                sent: true,
                bytes: vec![0xa5; 60],
                length: 1_500,
            }],
        };
        let mut bytes = Vec::new();
        write(&mut bytes, &plan, &capture).unwrap();
        let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        assert!(has(b"leaf0:0") && has(b"to host0"));
        assert!(has(&[0xa5; 60]) && has(&1_500_u32.to_le_bytes()));
    }
}
