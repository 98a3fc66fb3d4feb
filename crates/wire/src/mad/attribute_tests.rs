//! Properties of every attribute: tables are sound, bytes come back, nothing panics.

use proptest::prelude::*;

use super::administration::*;
use super::congestion::*;
use super::performance::*;
use super::subnet::*;
use super::*;

/// Fields lie within the attribute, in order, and do not overlap; arrays divide evenly.
fn table_is_sound<A: Attribute>() {
    let mut end = 0;
    for field in A::FIELDS {
        assert!(field.bit >= end, "{}.{} overlaps", A::NAME, field.name);
        end = field.bit + field.width;
        assert_eq!(
            field.width % field.components,
            0,
            "{}.{}",
            A::NAME,
            field.name
        );
        if let Some(last) = field.inner.last() {
            assert!(
                last.bit + last.width <= field.width,
                "{}.{}",
                A::NAME,
                field.name
            );
        }
    }
    assert!(
        end.div_ceil(8) <= A::LENGTH,
        "{} is longer than it says",
        A::NAME
    );
    let nothing = A::decode(&vec![0; A::LENGTH - 1])
        .err()
        .map(|error| error.to_string());
    let needed = format!(
        "{} at byte 0 needs {} bytes, found {}",
        A::NAME,
        A::LENGTH,
        A::LENGTH - 1
    );
    assert_eq!(nothing, Some(needed));
}

/// Bits of fields come back as they were, reserved ones as zero.
fn bytes_come_back<A: Attribute + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let value = A::decode(bytes).unwrap();
    let mut again = vec![0xff; A::LENGTH];
    assert_eq!(value.encode(&mut again), A::LENGTH);
    assert_eq!(A::decode(&again).as_ref(), Ok(&value));
    for bit in 0..A::LENGTH * 8 {
        let at = |bytes: &[u8]| bytes[bit / 8] >> (7 - bit % 8) & 1;
        let field = A::FIELDS
            .iter()
            .find(|field| (field.bit..field.bit + field.width).contains(&bit));
        if field.is_none() {
            assert_eq!(at(&again), 0, "{}: reserved bit {bit}", A::NAME);
        } else if field.is_some_and(|field| field.inner.is_empty() && !holds_reserved(field)) {
            assert_eq!(at(&again), at(bytes), "{}: bit {bit} of {field:?}", A::NAME);
        }
    }
}

/// Fields that are attributes with reserved bits of their own.
fn holds_reserved(field: &FieldLayout) -> bool {
    match field.name {
        "entries" | "levels" => true,
        // Settings for 32 ports; blocks of forwarding tables are 512 bits of numbers.
        "ports" => field.width == 1024,
        _ => false,
    }
}

macro_rules! every_attribute {
    ($($name:ty),* $(,)?) => {
        #[test]
        fn tables_are_sound() {
            $( table_is_sound::<$name>(); )*
        }

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(32))]
            #[test]
            fn any_bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 256)) {
                $( bytes_come_back::<$name>(&bytes); )*
            }
        }
    };
}

every_attribute!(
    NodeDescription,
    NodeInfo,
    SwitchInfo,
    GuidInfo,
    PortInfo,
    ExtendedPortInfo,
    PartitionTable,
    ServiceLevelMap,
    LaneWeight,
    VlArbitration,
    ForwardingBlock,
    MulticastBlock,
    SmInfo,
    LedInfo,
    Notice,
    GidTrap,
    StateTrap,
    PortTrap,
    CapabilityTrap,
    SystemTrap,
    ManagementKeyTrap,
    KeyTrap,
    SwitchPartitionTrap,
    ClassPortInfo,
    PortCounters,
    PortCountersExtended,
    PortTransmitDataByLevel,
    PortReceiveDataByLevel,
    CongestionInfo,
    CongestionKeyInfo,
    SwitchCongestionSetting,
    SwitchPortSetting,
    SwitchPortCongestionSetting,
    LevelReaction,
    AdapterCongestionSetting,
    ControlTableEntry,
    CongestionControlTable,
    NodeRecord,
    PortInfoRecord,
    SwitchInfoRecord,
    LevelMapRecord,
    ForwardingRecord,
    MulticastForwardingRecord,
    SmInfoRecord,
    LinkRecord,
    GuidInfoRecord,
    ServiceRecord,
    PartitionTableRecord,
    VlArbitrationRecord,
    PathRecord,
    MultiPathRecord,
    MemberRecord,
    InformInfo,
    InformInfoRecord,
);

proptest! {
    #[test]
    fn any_datagram_is_an_error_or_comes_back(
        bytes in proptest::collection::vec(any::<u8>(), 0..300), class in 0_usize..3,
    ) {
        let mut bytes = bytes;
        let start = [[1, 3, 2], [1, 4, 1], [1, 0x21, 2]][class];
        for (byte, wanted) in bytes.iter_mut().zip(start) {
            *byte = wanted;
        }
        let whole = bytes.len() >= MAD_LENGTH;
        prop_assert_eq!(AdministrationMad::decode(&bytes).is_ok(), whole && class == 0);
        if let Ok(mad) = AdministrationMad::decode(&bytes) {
            prop_assert_eq!(AdministrationMad::decode(&mad.encode()), Ok(mad));
        }
        if let Ok(mad) = PerformanceMad::decode(&bytes) {
            prop_assert_eq!(PerformanceMad::decode(&mad.encode()), Ok(mad));
        }
        if let Ok(mad) = CongestionMad::decode(&bytes) {
            prop_assert_eq!(CongestionMad::decode(&mad.encode()), Ok(mad));
        }
    }
}

#[test]
fn tables_of_records() {
    let links: Vec<LinkRecord> = (1..4)
        .map(|lid| LinkRecord {
            from_lid: softfabric_units::Lid(lid),
            ..LinkRecord::default()
        })
        .collect();
    let bytes = encode_table(&links);
    assert_eq!((attribute_offset::<LinkRecord>(), bytes.len()), (1, 24));
    assert_eq!(decode_table(&bytes, 1), Ok(links.clone()));
    // A newer manager's records may be longer, and a message may end in padding.
    let longer: Vec<u8> = bytes
        .chunks(8)
        .flat_map(|record| [record, &[9; 8]].concat())
        .collect();
    assert_eq!(decode_table(&longer[..43], 2), Ok(links));
    assert_eq!(
        decode_table::<LinkRecord>(&bytes, 0)
            .unwrap_err()
            .to_string(),
        "attribute offset at byte 44 is 0x0, needed room for the record"
    );
    // Offsets of the records that the reference table has.
    assert_eq!(attribute_offset::<PathRecord>(), 8);
    assert_eq!(attribute_offset::<NodeRecord>(), 14);
    assert_eq!(attribute_offset::<PortInfoRecord>(), 9);
    assert_eq!(attribute_offset::<MemberRecord>(), 7);
    assert_eq!(attribute_offset::<ServiceRecord>(), 22);
}

#[test]
fn errors_name_the_class() {
    let bytes = PerformanceMad::decode(&[1; 256]).unwrap_err();
    assert_eq!(
        bytes.to_string(),
        "MAD class at byte 1 is 0x1, needed 0x04 (performance)"
    );
    let mut bytes = [0; 256];
    bytes[..3].copy_from_slice(&[1, 0x21, 1]);
    assert_eq!(
        CongestionMad::decode(&bytes).unwrap_err().to_string(),
        "MAD class version at byte 2 is 0x1, needed 2"
    );
}
