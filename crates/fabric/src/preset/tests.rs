//! That presets are complete, sourced and consistent, and that what is shown is what runs.

use std::collections::BTreeSet;

use softfabric_transport::rate::{DcqcnNicParameters, RateControlConfig};
use softfabric_units::{Bytes, Class, ClassMask, Rate, Span};

use super::*;
use crate::headroom::CableLength;
use crate::plan::{Alpha, BufferAccounting, NotificationPoint};

#[test]
fn every_value_has_a_source() {
    for preset in all() {
        assert!(!preset.summary.is_empty(), "{}", preset.name);
        for value in &preset.values {
            let (Source::Public(text) | Source::Assumed(text)) = value.source;
            assert!(
                text.len() > 5,
                "{}: {} has no source",
                preset.name,
                value.field
            );
            assert!(!value.value.is_empty(), "{}: {}", preset.name, value.field);
        }
        let fields: BTreeSet<_> = preset.values.iter().map(|value| value.field).collect();
        assert_eq!(fields.len(), preset.values.len(), "{}", preset.name);
    }
}

#[test]
fn names_and_aliases_are_unique_and_found() {
    for kind in [Kind::Switch, Kind::Nic] {
        let mut seen = BTreeSet::new();
        for preset in all().into_iter().filter(|preset| preset.kind == kind) {
            for name in preset.aliases.iter().copied().chain([preset.name]) {
                assert!(seen.insert(name), "{name} twice");
                let found = match kind {
                    Kind::Switch => switch(name).map(|found| found.name),
                    Kind::Nic => nic(name).map(|found| found.name),
                };
                assert_eq!(found, Some(preset.name));
            }
        }
    }
    assert!(switch("roci").is_none() && nic("roci").is_none());
    assert!(switch_names().count() >= 7 && nic_names().count() >= 4);
}

#[test]
fn switches_have_room_for_what_they_set_aside() {
    for name in switch_names() {
        let preset = switch(name).unwrap();
        let profile = preset.profile();
        if profile.buffer.accounting == BufferAccounting::Hpcc {
            continue;
        }
        // 32 ports at 100 Gb/s (or what the platform has) over 5 m, two lossless classes each.
        let headroom = preset
            .headroom(Rate::gbps(40), CableLength::metres(5))
            .unwrap()
            .unwrap();
        let own = profile.buffer.headroom_pool.unwrap_or(headroom * 32 * 2);
        let reserved = preset.reserved.value * 32 * 2;
        assert!(own + reserved < profile.buffer.total, "{name}");
        assert!(
            preset.xon.value.size < Bytes::kib(32),
            "{name} would resume at once"
        );
        // ECN marks before XOFF of a group that is alone: α/(1+α) of the shared memory.
        let shared = profile.buffer.total - own - reserved;
        let Alpha::Dynamic(power) = preset.alpha.value else {
            panic!("{name} has no dynamic threshold");
        };
        let alpha = libm::exp2(f64::from(power));
        let xoff = shared.as_f64() * alpha / (1.0 + alpha);
        for entry in preset.ecn.value {
            assert!(entry.kmin < entry.kmax && entry.pmax > 0.0 && entry.pmax <= 1.0);
        }
        // SONiC's one ECN profile lies above XOFF on the small Broadcom chips: what is published is what is shown.
        let marks_first = preset.ecn.value[0].kmin.as_f64() < xoff;
        assert_eq!(
            marks_first,
            !["s6100", "arista7050qx"].contains(&name),
            "{name}: {xoff}"
        );
    }
}

#[test]
fn amounts_are_whole_cells_where_the_cell_was_inferred() {
    for name in [
        "s6100",
        "arista7050qx",
        "arista7260cx3",
        "z9332f",
        "arista7060x6",
    ] {
        let preset = switch(name).unwrap();
        let cell = preset.cell.value.as_u64();
        let mut amounts = vec![preset.reserved.value];
        amounts.extend(preset.xon.value.offset);
        match preset.headroom.value {
            HeadroomSource::Table(rows) => amounts.extend(rows.iter().map(|row| row.xoff)),
            HeadroomSource::Fixed(headroom) => amounts.push(headroom),
            _ => panic!("{name} has neither table nor figure"),
        }
        for amount in amounts {
            assert!(amount.as_u64().is_multiple_of(cell), "{name}: {amount}");
        }
    }
}

#[test]
fn headroom_of_a_port() {
    let metres = CableLength::metres;
    let of = |name, gbps, cable| {
        switch(name)
            .unwrap()
            .headroom(Rate::gbps(gbps), metres(cable))
    };
    assert_eq!(of("spectrum1", 100, 40), Ok(Some(Bytes::new(38_912))));
    assert_eq!(of("spectrum4", 800, 300), Ok(Some(Bytes::new(1_150_976))));
    assert_eq!(of("tomahawk", 100, 41), Ok(Some(Bytes::new(268_736))));
    assert_eq!(of("tomahawk3", 200, 7), Ok(Some(Bytes::new(201_930))));
    assert_eq!(of("tomahawk5", 800, 30), Ok(Some(Bytes::new(612_140))));
    assert_eq!(of("hpcc", 100, 5), Ok(None));
    let error = of("tomahawk", 400, 5).unwrap_err().to_string();
    assert!(
        error.contains("s6100") && error.contains("100Gb/s over 300m"),
        "{error}"
    );
    assert!(of("tomahawk3", 400, 2_001).is_err());
}

#[test]
fn profiles_say_what_the_table_says() {
    let preset = switch("sn2700").unwrap();
    let profile = preset.profile();
    assert_eq!(profile.latency, Span::nanos(300));
    for class in Class::all() {
        let lossless = [3, 4].contains(&class.as_u8());
        let found = &profile.classes[class.index()];
        assert_eq!(found.lossless, lossless);
        assert_eq!(found.ecn.is_empty(), !lossless);
        if lossless {
            assert_eq!(found.egress.threshold, Alpha::Unlimited, "or it drops");
            assert_eq!(found.ingress.xon.size, Bytes::new(19_456));
        }
    }
    let shown = preset.values();
    let value = |field| {
        let found = shown.iter().find(|value| value.field == field);
        found.unwrap().value.clone()
    };
    assert_eq!(value("buffer"), "13945824B");
    assert_eq!(value("alpha"), "1 of what is free");
    assert_eq!(value("xon"), "at 19KiB");
    let broadcom = switch("trident2").unwrap().values();
    let resume = broadcom.iter().find(|value| value.field == "xon").unwrap();
    assert_eq!(resume.value, "at 18KiB, or 2496B under XOFF");
    assert_eq!(value("ecn"), "1MiB..2MiB to 5%");
}

#[test]
fn nics_run_what_they_show() {
    let profile = nic("cx7").unwrap().profile(Rate::gbps(400));
    assert_eq!(
        profile.nic.rate_control,
        RateControlConfig::DcqcnNic(DcqcnNicParameters::nvidia_default())
    );
    assert_eq!(profile.lossless, ClassMask::of(Class::new(3)));
    assert_eq!(
        profile.nic.notification,
        NotificationPoint::Cnp {
            interval: Span::micros(4),
            within: crate::plan::WithinInterval::Forgotten
        }
    );
    let hpcc = nic("hpcc").unwrap().profile(Rate::gbps(400));
    assert_eq!(
        hpcc.nic.rate_control,
        RateControlConfig::DcqcnNic(DcqcnNicParameters::hpcc(Rate::gbps(400)))
    );
    assert_eq!(hpcc.lossless, ClassMask::ALL);
    for name in nic_names() {
        let profile = nic(name).unwrap().profile(Rate::gbps(100));
        assert_eq!(profile.nic.rate_control.check(), Ok(()), "{name}");
        assert!(profile.receive.xon < profile.receive.xoff, "{name}");
        assert!(profile.receive.xoff < profile.receive.buffer, "{name}");
    }
    let values = nic("cx5").unwrap().values();
    let timeout = values
        .iter()
        .find(|value| value.field == "timeout")
        .unwrap();
    assert_eq!(timeout.value, "14: 67.109ms");
}
