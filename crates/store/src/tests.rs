//! What is stored is read again; what goes wrong leaves the rest readable.

use std::fs;

use proptest::prelude::*;
use softfabric_operations::recording::Recording;
use softfabric_operations::{
    History, LinkLayer, NodeKind, PortIndex, PortSample, Topology, Width, Window,
};
use softfabric_telemetry::{ClassCounter, Counter, DeviceCounter, PortCounter};
use softfabric_units::{Class, Rate, Span, Time};

use crate::{Range, Settings, Store, StoreError};

const SECOND: u64 = 1_000_000_000;
const BEGIN: u64 = 1_764_555_420 * SECOND;
const COUNTERS: [Counter; 5] = [
    Counter::Port(PortCounter::TransmitBytes),
    Counter::Port(PortCounter::TransmitWait),
    Counter::Port(PortCounter::LinkDowned),
    Counter::Class(Class::new(3), ClassCounter::PauseReceivedDuration),
    Counter::Device(DeviceCounter::CnpSent),
];
/// Microseconds, in picoseconds.
const MICRO: u64 = 1_000_000;
const STAYS_AT: u64 = 255;
const WIDTHS: [(Counter, Width); 2] = [
    (
        Counter::Port(PortCounter::LinkDowned),
        Width::StaysAt(STAYS_AT),
    ),
    (Counter::Port(PortCounter::TransmitBytes), Width::Bits32),
];

fn topology() -> Topology {
    let mut topology = Topology::new(LinkLayer::Ethernet);
    let switch = topology.add_node("leaf0", NodeKind::Switch).unwrap();
    for host in 0..3 {
        let name = format!("h{host}");
        let node = topology.add_node(name.clone(), NodeKind::Host).unwrap();
        let there = topology.add_port(node, name, None).unwrap();
        let rate = Some(Rate::gbps(100));
        let here = topology
            .add_port(switch, format!("leaf0:{host}"), rate)
            .unwrap();
        topology.connect(here, there).unwrap();
    }
    topology
}

#[derive(Clone, Debug)]
struct Told {
    port: PortIndex,
    /// Milliseconds after the beginning.
    at: u64,
    sample: PortSample,
}

/// Samples as devices and networks make them: wraps, resets, ends of counters, missing rounds, late samples, and counters
/// that are not always told. Not the last two at once: what a counter said between its samples is then anybody's guess, and
/// depends on which came first.
fn told() -> impl Strategy<Value = Vec<Told>> {
    any::<bool>().prop_flat_map(|late| {
        let value = prop_oneof![
            Just(0_u64),
            Just(u64::from(u32::MAX)),
            Just(u64::MAX),
            0..300_u64,
            any::<u64>()
        ];
        let counters = prop::collection::vec(prop::option::weighted(0.8, value), COUNTERS.len());
        let up = prop::option::weighted(0.8, any::<bool>());
        let one = (0..6_u32, 0..20_000_u64, up, counters);
        let one = one.prop_map(move |(port, at, up, counters)| match late {
            true => {
                let counters = counters.into_iter().map(|value| value.or(Some(0)));
                sample((port, at, up.or(Some(true)), counters.collect()))
            }
            false => sample((port, at, up, counters)),
        });
        prop::collection::vec(one, 1..400).prop_map(move |mut all| {
            let mut known = std::collections::BTreeSet::new();
            all.retain(|told| known.insert((told.port, told.at)));
            // Mostly in order, as rounds come.
            all.sort_by_key(|told| if late { told.at / 3_000 } else { told.at });
            all
        })
    })
}

fn sample((port, at, up, values): (u32, u64, Option<bool>, Vec<Option<u64>>)) -> Told {
    let values = COUNTERS.iter().zip(values);
    let values = values.filter_map(|(&counter, value)| {
        // Files have microseconds, and picoseconds must hold them.
        let value = match counter.name().as_str() {
            "port_xmit_wait" | "rx_prio3_pause_duration" => value? % (1 << 40) * MICRO,
            _ => value?,
        };
        Some((counter, value))
    });
    let sample = PortSample {
        up,
        values: values.collect(),
    };
    let port = PortIndex(port);
    Told { port, at, sample }
}

fn store(folder: &std::path::Path, topology: &Topology, told: &[Told], settings: Settings) {
    let store = Store::create(folder).unwrap();
    let widths = |_| WIDTHS.as_slice();
    let mut session = store
        .session(topology, "by hand", widths, settings)
        .unwrap();
    for told in told {
        let at = BEGIN + told.at * 1_000_000;
        session.add(told.port, at, &told.sample).unwrap();
    }
    session.finish().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A store says of every port, counter and time what a history of the same samples says.
    #[test]
    fn what_is_stored_is_read(told in told(), seconds in 1_u64..30, memory in prop_oneof![Just(0), Just(1 << 20)]) {
        let folder = tempfile::tempdir().unwrap();
        let topology = topology();
        let segment = Span::seconds(seconds);
        store(folder.path(), &topology, &told, Settings { segment, keep: None, memory });
        let read = all(folder.path());
        prop_assert_eq!(&read.topology, &topology);
        prop_assert_eq!(read.skipped.lines, 0);
        let first = told.iter().map(|told| told.at).min().unwrap();
        prop_assert_eq!(read.start_unix_ns, BEGIN + first * 1_000_000);
        let mut history = History::new(&topology);
        for port in topology.port_indices() {
            for (counter, width) in WIDTHS {
                history.set_width(port, counter, width);
            }
        }
        let time = |told: &Told| Time::ZERO + Span::millis(told.at - first);
        for told in &told {
            history.add(told.port, time(told), &told.sample);
        }
        let whole = history.span().unwrap();
        prop_assert_eq!(read.history.span(), Some(whole));
        let (grown, read_grown) = (history.growth(), read.history.growth());
        for port in topology.port_indices() {
            let times = history.times(port);
            prop_assert_eq!(read.history.times(port), times);
            let widths = |history: &History| {
                let mut widths = history.widths(port).to_vec();
                widths.sort_by_key(|(counter, _)| counter.index());
                widths
            };
            prop_assert_eq!(widths(&read.history), widths(&history));
            for &time in times {
                prop_assert_eq!(read.history.up_at(port, time), history.up_at(port, time));
            }
            for counter in COUNTERS {
                for &time in times {
                    let value = |history: &History| history.value_at(port, counter, time);
                    prop_assert_eq!(value(&read.history), value(&history), "{} at {:?}", counter, time);
                }
                for pair in times.windows(2) {
                    for window in [Window { from: pair[0], to: pair[1] }, whole] {
                        let read = read_grown.of(port, counter, window);
                        prop_assert_eq!(read, grown.of(port, counter, window));
                    }
                }
            }
        }
    }
}

/// So many rounds of all ports, a second apart, with one counter that counts.
fn rounds(rounds: std::ops::Range<u64>) -> Vec<Told> {
    let of_round = |round: u64| {
        (0..6).map(move |port| Told {
            port: PortIndex(port),
            at: round * 1_000,
            sample: PortSample {
                up: Some(true),
                values: vec![(COUNTERS[0], round * 10)],
            },
        })
    };
    rounds.flat_map(of_round).collect()
}

fn seconds(from: u64, to: u64) -> Range {
    Range {
        from: BEGIN + from * SECOND,
        to: BEGIN + to * SECOND,
    }
}

/// The files whose names begin so.
fn files(folder: &std::path::Path, prefix: &str) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}

/// Everything that a store has.
fn all(folder: &std::path::Path) -> Recording {
    let store = Store::open(folder).unwrap();
    store.read(Range::ALL).unwrap()
}

const TENS: Settings = Settings {
    segment: Span::seconds(10),
    keep: None,
    memory: 1 << 20,
};

#[test]
fn a_range_is_read_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), &topology(), &rounds(0..35), TENS);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.extent().unwrap(), Some(seconds(0, 34)));
    let read = store.read(seconds(18, 21)).unwrap();
    assert_eq!(read.start_unix_ns, BEGIN + 18 * SECOND);
    let port = read.topology.find_port("h1").unwrap();
    assert_eq!(read.history.times(port).len(), 4);
    assert_eq!(read.history.last(port, COUNTERS[0]), Some(210));
    // Between the last sample and the end asked for there is nothing to be told.
    let late = store.read(seconds(30, 100)).unwrap();
    assert_eq!(late.history.times(port).len(), 5);
    let error = store.read(seconds(100, 200)).unwrap_err().to_string();
    assert!(
        error.contains("from 2025-12-01T02:17:00Z to 2025-12-01T02:17:34Z"),
        "{error}"
    );
}

#[test]
fn a_session_that_ends_without_a_word_loses_its_open_segment_only() {
    let folder = tempfile::tempdir().unwrap();
    let topology = topology();
    {
        let store = Store::create(folder.path()).unwrap();
        let mut session = store.session(&topology, "lost", |_| &[], TENS).unwrap();
        for told in rounds(0..25) {
            session
                .add(told.port, BEGIN + told.at * 1_000_000, &told.sample)
                .unwrap();
        }
        // As if the process were gone: nothing is dropped, nothing is removed.
        std::mem::forget(session);
    }
    fs::write(folder.path().join(".open-lost"), b"PAR1 and no end").unwrap();
    let read = all(folder.path());
    let last = read.history.span().unwrap().to;
    assert_eq!(last, Time::ZERO + Span::seconds(19));
    // The next session goes on beside it. It says something else of itself, so its topology is another file.
    store(folder.path(), &topology, &rounds(30..32), TENS);
    let names = files(folder.path(), "topology");
    assert_eq!(names.len(), 2, "{names:?}");
    let read = all(folder.path());
    assert_eq!(
        read.history.span().unwrap().to,
        Time::ZERO + Span::seconds(31)
    );
}

#[test]
fn samples_are_kept_for_as_long_as_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        keep: Some(Span::seconds(25)),
        ..TENS
    };
    store(folder.path(), &topology(), &rounds(0..60), settings);
    // Of the last, 59 s, 25 s back: 34 s is in the segment that begins at 30 s.
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.extent().unwrap(), Some(seconds(30, 59)));
}

#[test]
fn sessions_of_the_same_time_do_not_overwrite_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let topology = topology();
    let (mine, others): (Vec<_>, Vec<_>) =
        rounds(0..5).into_iter().partition(|told| told.port.0 < 3);
    store(folder.path(), &topology, &mine, TENS);
    store(folder.path(), &topology, &others, TENS);
    let names = files(folder.path(), "samples");
    assert_eq!(names.len(), 2, "{names:?}");
    let read = all(folder.path());
    for port in topology.port_indices() {
        assert_eq!(read.history.times(port).len(), 5);
    }
}

/// A cable that was moved between sessions: the latest topology counts, and the reader hears of it.
#[test]
fn the_latest_cables_count() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), &topology(), &rounds(0..5), TENS);
    let mut moved = Topology::new(LinkLayer::Ethernet);
    let leaf = moved.add_node("leaf0", NodeKind::Switch).unwrap();
    let host = moved.add_node("h0", NodeKind::Host).unwrap();
    let here = moved.add_port(leaf, "leaf0:1", None).unwrap();
    let there = moved.add_port(host, "h0", None).unwrap();
    moved.connect(here, there).unwrap();
    let later: Vec<Told> = rounds(10..12)
        .into_iter()
        .filter(|told| told.port.0 < 2)
        .collect();
    store(folder.path(), &moved, &later, TENS);
    let read = all(folder.path());
    let find = |name| read.topology.find_port(name).unwrap();
    assert_eq!(read.topology.peer(find("h0")), Some(find("leaf0:1")));
    assert_eq!(read.topology.peer(find("leaf0:0")), None);
    assert_eq!(read.history.times(find("h0")).len(), 7, "of both sessions");
    assert!(
        read.skipped.first[0].contains("was cabled to"),
        "{:?}",
        read.skipped
    );
}

#[test]
fn what_is_no_segment_is_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        Store::open(folder.path()),
        Err(StoreError::Nothing { .. })
    ));
    store(folder.path(), &topology(), &rounds(0..5), TENS);
    let name = files(folder.path(), "samples").remove(0);
    fs::write(folder.path().join(&name), b"not Parquet").unwrap();
    let error = Store::open(folder.path())
        .unwrap()
        .read(Range::ALL)
        .unwrap_err();
    assert!(matches!(error, StoreError::Segment { .. }));
    assert!(error.to_string().contains(&name), "{error}");
}
