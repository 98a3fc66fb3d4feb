//! Published tables row by row, and what must hold for every profile.

use proptest::prelude::*;
use softfabric_units::{Bytes, Rate, Span};

use super::*;

const CABLES: [CableLength; 3] = [
    CableLength::metres(5),
    CableLength::metres(40),
    CableLength::metres(300),
];

/// One row of a table: the speed in Gb/s, and `xoff` in bytes at 5, 40 and 300 m.
type Row = (u64, [u64; 3]);

fn assert_table(profile: HeadroomProfile, rows: &[Row]) {
    for (gbps, expected) in rows {
        for (cable, xoff) in CABLES.iter().zip(expected) {
            let found = profile.headroom(Rate::gbps(*gbps), *cable).unwrap();
            assert_eq!(
                found.xoff.as_u64(),
                *xoff,
                "{gbps}Gb/s over {cable} with {profile:?}"
            );
        }
    }
}

/// sonic-buildimage `device/mellanox/x86_64-mlnx_msn2700-r0/ACS-MSN2700/pg_profile_lookup.ini`.
#[test]
fn sn2700_as_published() {
    assert_table(
        HeadroomProfile::spectrum1(),
        &[
            (10, [29_696, 29_696, 36_864]),
            (25, [29_696, 31_744, 48_128]),
            (40, [29_696, 32_768, 59_392]),
            (50, [29_696, 33_792, 66_560]),
            (100, [30_720, 38_912, 104_448]),
        ],
    );
    let headroom = HeadroomProfile::spectrum1()
        .headroom(Rate::gbps(100), CableLength::metres(300))
        .unwrap();
    assert_eq!(headroom.xon.as_u64(), 19_456);
    assert_eq!(headroom.size().as_u64(), 123_904, "its `size` column");
}

/// sonic-buildimage `device/mellanox/x86_64-nvidia_sn5600-r0/ACS-SN5600/pg_profile_lookup.ini`.
#[test]
fn sn5600_as_published() {
    assert_table(
        HeadroomProfile::spectrum4(),
        &[
            (10, [45_056, 46_080, 56_320]),
            (25, [48_128, 52_224, 76_800]),
            (40, [57_344, 62_464, 101_376]),
            (50, [63_488, 69_632, 118_784]),
            (100, [113_664, 126_976, 225_280]),
            (200, [131_072, 157_696, 355_328]),
            (400, [231_424, 283_648, 677_888]),
            (800, [257_024, 362_496, 1_150_976]),
        ],
    );
}

/// sonic-buildimage `device/mellanox/x86_64-nvidia_sn5600-r0/Mellanox-SN5600-V256/pg_profile_lookup.ini`.
#[test]
fn sn5600_v256_as_published() {
    assert_table(
        HeadroomProfile::spectrum4_large_packets(),
        &[
            (10, [33_792, 34_816, 40_960]),
            (25, [35_840, 37_888, 54_272]),
            (40, [41_984, 45_056, 71_680]),
            (50, [46_080, 50_176, 82_944]),
            (100, [79_872, 88_064, 153_600]),
            (200, [91_136, 108_544, 240_640]),
            (400, [157_696, 192_512, 455_680]),
            (800, [175_104, 245_760, 771_072]),
        ],
    );
}

#[test]
fn a_gearbox_counts_twice() {
    let plain = HeadroomProfile::spectrum1();
    let gearbox = HeadroomProfile {
        gearbox_delay: Span::nanos(80),
        ..plain
    };
    let xoff = |profile: HeadroomProfile| {
        let headroom = profile.headroom(Rate::gbps(100), CableLength::metres(5));
        headroom.unwrap().xoff.as_u64()
    };
    // 80 ns at 100 Gb/s are 1,000 B, twice, of which each packet of 64 B takes two cells' worth.
    let more = xoff(gearbox) - xoff(plain);
    assert!(more.abs_diff(4_000) < 1_024, "{more}");
}

#[test]
fn an_exact_profile_covers_what_can_arrive() {
    let frame = Bytes::new(1_088);
    let (speed, delay, response) = (Rate::gbps(100), Span::micros(1), Span::nanos(500));
    let profile = HeadroomProfile::exact(frame, Bytes::new(1), response);
    let xoff = profile.headroom(speed, delay).unwrap().xoff;
    // The frame that crosses XOFF, the one in the pause frame's way, the pause frame, both ways, the response, and the
    // frame that the peer is sending.
    let needed = frame * 3 + Bytes::new(64) + speed.bytes_in(delay * 2 + response);
    assert!(xoff >= needed, "{xoff} for {needed}");
    assert!(
        xoff < needed + Bytes::kib(2),
        "{xoff} is wasteful for {needed}"
    );
}

#[test]
fn what_is_not_known_is_said() {
    let profile = HeadroomProfile::spectrum4();
    let error = profile
        .headroom(Rate::gbps(56), CableLength::metres(5))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("56Gb/s") && error.contains("50Gb/s, 100Gb/s"),
        "{error}"
    );
    assert!(
        profile
            .headroom(Rate::ZERO, CableLength::metres(5))
            .is_err()
    );
    let tiny = HeadroomProfile {
        average_packet: Bytes::new(63),
        ..profile
    };
    assert!(
        tiny.headroom(Rate::gbps(100), CableLength::metres(5))
            .is_err()
    );
}

#[test]
fn names_lead_to_profiles() {
    for (name, _) in HeadroomProfile::NAMES {
        assert!(HeadroomProfile::by_name(name).is_some(), "{name}");
    }
    assert_eq!(HeadroomProfile::by_name("spectrum9"), None);
}

#[test]
fn cable_text_and_back() {
    for text in ["5m", "300m", "0.5m", "2.05m", "0m"] {
        assert_eq!(text.parse::<CableLength>().unwrap().to_string(), text);
    }
    assert_eq!("40.50 m".parse(), Ok(CableLength::centimetres(4_050)));
    for text in ["5", "m", "-5m", "1.234m", ".5m", "5.m", "5km", "99999999m"] {
        let error = text.parse::<CableLength>().unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("0.5m"), "{error}");
    }
    let json = serde_json::to_string(&CableLength::metres(40)).unwrap();
    assert_eq!(json, "\"40m\"");
    assert_eq!(
        serde_json::from_str::<CableLength>(&json).unwrap(),
        CableLength::metres(40)
    );
}

#[test]
fn light_takes_five_nanoseconds_a_metre() {
    assert_eq!(CableLength::metres(198).delay(), Span::micros(1));
    assert_eq!(CableLength::metres(1).delay(), Span::picos(5_051));
    assert_eq!(CableLength::default().delay(), Span::ZERO);
}

proptest! {
    #[test]
    fn more_never_needs_less(
        centimetres in 0..100_000u32,
        longer in 0..100_000u32,
        mtu in 64..9_216u64,
        larger in 0..1_000u64,
        index in 0..7usize,
    ) {
        let speeds: Vec<_> = profile::QUANTA_BY_SPEED.iter().map(|(rate, _)| *rate).collect();
        for (name, _) in HeadroomProfile::NAMES {
            let profile = HeadroomProfile::by_name(name).unwrap();
            let small = profile.with_mtu(Bytes::new(mtu), Bytes::new(mtu));
            let large = profile.with_mtu(Bytes::new(mtu + larger), Bytes::new(mtu + larger));
            let short = CableLength::centimetres(centimetres);
            let long = CableLength::centimetres(centimetres + longer);
            let xoff = |profile: HeadroomProfile, speed, cable: CableLength| {
                profile.headroom(speed, cable).unwrap().xoff
            };
            let base = xoff(small, speeds[index], short);
            prop_assert!(xoff(small, speeds[index], long) >= base);
            prop_assert!(xoff(large, speeds[index], short) >= base);
            prop_assert!(xoff(small, speeds[index + 1], short) >= base);
            // The delay is rounded up, so a cable's own never gives less.
            let by_delay = small.headroom(speeds[index], short.delay()).unwrap().xoff;
            prop_assert!(by_delay >= base && by_delay <= base + Bytes::kib(1));
        }
    }
}
