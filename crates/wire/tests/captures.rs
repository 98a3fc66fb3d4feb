//! Recordings of the Linux kernel's soft-RoCE judge the codec: see `captures/README.md`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use pcap_parser::{LegacyPcapReader, PcapBlockOwned, PcapError, traits::PcapReaderIterator};
use softfabric_units::{Gid, PartitionKey, Psn, Qpn};
use softfabric_wire::ip::Ecn;
use softfabric_wire::mad::GENERAL_SERVICES_QKEY;
use softfabric_wire::mad::cm::{
    CmMad, CommunicationId, IpHeader, IpService, Message, ResolutionStatus, TransportService,
};
use softfabric_wire::rdma::{
    Extension, HiddenFields, IdentificationSolver, NakCode, Opcode, RnrTimer, Syndrome,
};
use softfabric_wire::{Body, Data, Frame, RoceNetwork, RocePacket};

/// Every recording: its name and its frames.
fn captures() -> Vec<(String, Vec<Vec<u8>>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "pcap")
        })
        .collect();
    paths.sort();
    assert_eq!(paths.len(), 27, "recordings are missing");
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let frames = read_pcap(&fs::read(path).unwrap());
            assert!(!frames.is_empty(), "{name} is empty");
            (name, frames)
        })
        .collect()
}

fn read_pcap(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = LegacyPcapReader::new(1 << 16, bytes).unwrap();
    let mut frames = Vec::new();
    loop {
        match reader.next() {
            Ok((length, block)) => {
                if let PcapBlockOwned::Legacy(block) = block {
                    assert_eq!(block.caplen, block.origlen, "a frame was cut");
                    frames.push(block.data.to_vec());
                }
                reader.consume(length);
            }
            Err(PcapError::Eof) => return frames,
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn packet<'a>(name: &str, index: usize, bytes: &'a [u8]) -> RocePacket<'a> {
    let frame =
        Frame::decode(bytes).unwrap_or_else(|error| panic!("{name}, frame {index}: {error}"));
    match frame.body {
        Body::Roce(packet) => packet,
        body => panic!("{name}, frame {index}: {body:?}"),
    }
}

#[test]
fn every_frame_comes_back_and_every_icrc_is_right() {
    let mut frames = 0;
    for (name, capture) in captures() {
        for (index, bytes) in capture.iter().enumerate() {
            let packet = packet(&name, index, bytes);
            let frame = Frame::decode(bytes).unwrap();
            assert_eq!(&frame.to_bytes(), bytes, "{name}, frame {index}");
            assert!(
                packet.icrc_is_right(),
                "{name}, frame {index}: ICRC {:#x}, computed {:#x}",
                packet.rdma.icrc,
                packet.computed_icrc()
            );
            frames += 1;
        }
    }
    assert_eq!(frames, 549, "what the recordings hold");
}

#[test]
fn hidden_fields_are_solved_from_the_icrc() {
    let mut identifications = BTreeMap::<u16, usize>::new();
    for (name, capture) in captures() {
        for (index, bytes) in capture.iter().enumerate() {
            let mut packet = packet(&name, index, bytes);
            let RoceNetwork::Ipv4 { ip, .. } = &mut packet.network else {
                continue;
            };
            let truth = HiddenFields {
                identification: ip.identification,
                dont_fragment: ip.dont_fragment,
            };
            *identifications.entry(ip.identification).or_default() += 1;
            ip.identification = 0;
            ip.dont_fragment = false;
            let computed = packet.computed_icrc();
            let solver = IdentificationSolver::for_total_length(packet.length() as u16);
            assert_eq!(
                solver.solve(packet.rdma.icrc, computed),
                Some(truth),
                "{name}, frame {index}"
            );
            // A damaged packet has no solution; that one bit suffices is luck, of 1 in 2¹⁵ packets the lack of it.
            assert_eq!(
                solver.solve(packet.rdma.icrc ^ 0x0400_0000, computed),
                None,
                "{name}, frame {index}, damaged"
            );
        }
    }
    assert!(
        identifications.len() > 100,
        "the recordings hold many identifications: {identifications:?}"
    );
}

#[test]
fn recordings_hold_what_they_are_named_for() {
    let mut syndromes = BTreeMap::<u8, usize>::new();
    let mut opcodes = BTreeMap::<Opcode, usize>::new();
    let mut marked = 0;
    for (name, capture) in captures() {
        for (index, bytes) in capture.iter().enumerate() {
            let packet = packet(&name, index, bytes);
            let header = packet.rdma.header;
            *opcodes.entry(header.bth.opcode).or_default() += 1;
            if let Extension::Aeth(aeth) | Extension::AethAtomic(aeth, _) = header.extension {
                *syndromes.entry(aeth.syndrome.to_byte()).or_default() += 1;
            }
            if packet.network.traffic_class().ecn == Ecn::CongestionExperienced {
                marked += 1;
            }
            assert_eq!(
                matches!(packet.network, RoceNetwork::Ipv6 { .. }),
                name == "rc-send-ipv6",
                "{name}"
            );
        }
    }
    for syndrome in [
        Syndrome::ACK,
        Syndrome::RnrNak(RnrTimer::from_code(12)),
        Syndrome::Nak(NakCode::SequenceError),
        Syndrome::Nak(NakCode::RemoteAccess),
        Syndrome::Nak(NakCode::RemoteOperational),
    ] {
        assert!(
            syndromes.contains_key(&syndrome.to_byte()),
            "{syndrome:?} is in none of {syndromes:x?}"
        );
    }
    for opcode in [
        Opcode::RC_SEND_ONLY,
        Opcode::RC_SEND_ONLY_IMMEDIATE,
        Opcode::RC_SEND_ONLY_INVALIDATE,
        Opcode::RC_WRITE_FIRST,
        Opcode::RC_READ_RESPONSE_MIDDLE,
        Opcode::RC_COMPARE_SWAP,
        Opcode::RC_FETCH_ADD,
        Opcode::RC_ATOMIC_ACKNOWLEDGE,
        Opcode::UC_SEND_ONLY,
        Opcode::UC_WRITE_ONLY_IMMEDIATE,
        Opcode::UD_SEND_ONLY,
        Opcode::UD_SEND_ONLY_IMMEDIATE,
    ] {
        assert!(
            opcodes.contains_key(&opcode),
            "{opcode} is in none of {opcodes:?}"
        );
    }
    assert!(marked > 0, "no packet met congestion");
}

/// Every connection management message of a recording, in order.
fn messages(name: &str) -> Vec<CmMad> {
    let captures = captures();
    let (_, frames) = captures.iter().find(|(found, _)| found == name).unwrap();
    let mut mads = Vec::new();
    for (index, bytes) in frames.iter().enumerate() {
        let packet = packet(name, index, bytes);
        let Extension::Deth(deth) = packet.rdma.header.extension else {
            continue;
        };
        if packet.rdma.header.bth.destination != Qpn::GENERAL_SERVICES {
            continue;
        }
        assert_eq!(deth.qkey, GENERAL_SERVICES_QKEY, "{name}, frame {index}");
        let Data::Bytes(payload) = packet.rdma.payload else {
            panic!("{name}, frame {index} has no bytes");
        };
        let mad =
            CmMad::decode(payload).unwrap_or_else(|error| panic!("{name}, frame {index}: {error}"));
        assert_eq!(mad.encode().as_slice(), payload, "{name}, frame {index}");
        mads.push(mad);
    }
    mads
}

#[test]
fn a_connection_as_the_kernel_makes_and_ends_it() {
    let mads = messages("cm-rping");
    let names: Vec<_> = mads.iter().map(|mad| mad.message.name()).collect();
    assert_eq!(names, ["REQ", "REP", "RTU", "DREQ", "DREP"]);
    assert!(
        mads.iter().all(|mad| mad.transaction == 0x2_8544_f833),
        "the kernel keeps the transaction to the end"
    );
    let [active, passive] = [CommunicationId(0x33f8_4485), CommunicationId(0x97dd_c1fc)];
    let Message::ConnectRequest(request) = &mads[0].message else {
        panic!("{:?}", mads[0]);
    };
    assert_eq!(request.local, active);
    let service = IpService::from_id(request.service).unwrap();
    assert_eq!((service.protocol.0, service.port), (6, 7174));
    assert_eq!(request.guid, 0x5054_00ff_fe77_0011);
    assert_eq!(request.qpn, Qpn::new(0x39));
    assert_eq!(
        (request.responder_resources, request.initiator_depth),
        (1, 1)
    );
    assert_eq!(request.transport, TransportService::Reliable);
    assert_eq!(request.starting_psn, Psn::new(0xd0_1023));
    assert_eq!(request.remote_response_timeout.code(), 20);
    assert_eq!(request.local_response_timeout.code(), 20);
    assert_eq!(
        (request.retries, request.rnr_retries, request.cm_retries),
        (7, 7, 15)
    );
    assert_eq!(request.partition, PartitionKey::DEFAULT);
    assert_eq!(request.mtu.bytes(), Some(1024));
    assert_eq!(
        request.primary.local_gid,
        Gid::from_ip([10, 77, 0, 11].into())
    );
    assert_eq!(
        request.primary.remote_gid,
        Gid::from_ip([10, 77, 0, 12].into())
    );
    assert_eq!(request.primary.flow_label.as_u32(), 0x2ba65);
    assert_eq!(request.primary.hop_limit, 64);
    assert_eq!(request.primary.ack_timeout.code(), 19);
    let addresses = IpHeader::decode(&request.private_data).unwrap();
    assert_eq!(addresses.source().to_string(), "10.77.0.11");
    assert_eq!(addresses.source_port(), 0x99c1);
    assert_eq!(addresses.destination().to_string(), "10.77.0.12");

    let Message::ConnectReply(reply) = &mads[1].message else {
        panic!("{:?}", mads[1]);
    };
    assert_eq!((reply.local, reply.remote), (passive, active));
    assert_eq!(
        (reply.qpn, reply.starting_psn),
        (Qpn::new(0x29), Psn::new(0x29_11d7))
    );
    assert_eq!((reply.ack_delay.code(), reply.rnr_retries), (15, 7));
    let Message::DisconnectRequest(end) = &mads[3].message else {
        panic!("{:?}", mads[3]);
    };
    assert_eq!(end.remote_qpn, reply.qpn);
    assert_eq!(mads[4].message.receiver(), Some(active));
}

#[test]
fn a_datagram_service_as_the_kernel_resolves_it() {
    let mads = messages("cm-ud");
    let names: Vec<_> = mads.iter().map(|mad| mad.message.name()).collect();
    assert_eq!(names, ["SIDR_REQ", "SIDR_REP"]);
    let Message::ResolutionRequest(request) = &mads[0].message else {
        panic!("{:?}", mads[0]);
    };
    let service = IpService::from_id(request.service).unwrap();
    assert_eq!((service.protocol.0, service.port), (0x11, 7174));
    let addresses = IpHeader::decode(&request.private_data).unwrap();
    assert_eq!(addresses.destination().to_string(), "10.77.0.12");
    let Message::ResolutionReply(reply) = &mads[1].message else {
        panic!("{:?}", mads[1]);
    };
    assert_eq!(reply.request, request.request);
    assert_eq!(reply.status, ResolutionStatus::SUCCESS);
    assert_eq!((reply.qpn, reply.qkey), (Qpn::new(0x2d), 0x0123_4567));
    assert_eq!(reply.service, request.service);
}
