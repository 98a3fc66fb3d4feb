//! Reading: a recording out of the segments of a range.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

use softfabric_operations::recording::{self, Recording, Skipped};
use softfabric_operations::topology::TopologyError;
use softfabric_operations::{History, PortIndex, Topology, Width};
use softfabric_telemetry::Counter;
use softfabric_units::Time;

use crate::names::{self, SegmentName, for_people};
use crate::{Range, Store, StoreError};

/// How counters end that do not have 64 bits.
type Widths = Vec<(PortIndex, Counter, Width)>;

impl Store {
    /// What was stored of a range. Its time begins where the range does, or with the first sample of the store that may be in
    /// it, whichever is later.
    ///
    /// Where cables were moved, those of the latest topology count.
    ///
    /// # Errors
    /// If there is nothing, more than a recording can hold, or a file cannot be read.
    pub fn read(&self, range: Range) -> Result<Recording, StoreError> {
        let mut segments = self.segments()?;
        segments.retain(|segment| segment.range.from <= range.to && segment.range.to >= range.from);
        let Some(first) = segments.first() else {
            return Err(self.nothing()?);
        };
        let start = first.range.from.max(range.from);
        let mut skipped = Skipped::default();
        let (topology, widths) = self.topology(&segments, &mut skipped)?;
        let mut history = History::new(&topology);
        for (port, counter, width) in widths {
            history.set_width(port, counter, width);
        }
        let mut too_late = false;
        for segment in &segments {
            let path = self.folder.join(segment.to_string());
            let mut unknown = Vec::new();
            let mut last: Option<(String, PortIndex)> = None;
            let mut strangers = 0;
            crate::segment::read(
                &path,
                range,
                |column| unknown.push(column.to_owned()),
                |name, unix_nanos, sample| {
                    let Some(at) = (unix_nanos - start).checked_mul(1_000) else {
                        too_late = true;
                        return;
                    };
                    if last.as_ref().is_none_or(|(known, _)| known != name) {
                        last = topology.find_port(name).map(|port| (name.to_owned(), port));
                    }
                    match &last {
                        Some((_, port)) => history.add(*port, Time::from_picos(at), sample),
                        None => strangers += 1,
                    }
                },
            )?;
            for column in unknown {
                *skipped.unknown_counters.entry(column).or_default() += 1;
            }
            if strangers > 0 {
                skipped.line(format!(
                    "{segment}: {strangers} samples of ports that its topology does not have"
                ));
            }
        }
        if too_late {
            return Err(StoreError::TooLong(self.folder.clone()));
        }
        if history.span().is_none() {
            return Err(self.nothing()?);
        }
        Ok(Recording {
            about: self.folder.display().to_string(),
            topology,
            history,
            skipped,
            start_unix_ns: start,
        })
    }

    /// All topologies of these segments in one, with how counters end.
    fn topology(
        &self,
        segments: &[SegmentName],
        skipped: &mut Skipped,
    ) -> Result<(Topology, Widths), StoreError> {
        // By the last time that each was in use.
        let mut used: BTreeMap<u32, u64> = BTreeMap::new();
        for segment in segments {
            let last = used.entry(segment.topology).or_default();
            *last = (*last).max(segment.range.to);
        }
        let mut numbers: Vec<(u64, u32)> = used
            .into_iter()
            .map(|(number, last)| (last, number))
            .collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let mut all: Option<Topology> = None;
        let mut widths = Vec::new();
        for (_, number) in numbers {
            let path = self.folder.join(names::topology(number));
            let failed = |error| StoreError::Topology {
                path: path.clone(),
                error,
            };
            let file = File::open(&path).map_err(|error| StoreError::io(&path, error))?;
            let read = recording::read(BufReader::new(file)).map_err(failed)?;
            skipped.absorb(read.skipped);
            let of_both = |error| failed(recording::RecordingError::Topology { line: 0, error });
            let all = all.get_or_insert_with(|| Topology::new(read.topology.link_layer));
            let places = add(all, &read.topology, skipped).map_err(of_both)?;
            for (port, place) in read.topology.port_indices().zip(places) {
                let of_port = read.history.widths(port);
                widths.extend(
                    of_port
                        .iter()
                        .map(|&(counter, width)| (place, counter, width)),
                );
            }
        }
        Ok((all.unwrap_or_default(), widths))
    }

    fn nothing(&self) -> Result<StoreError, StoreError> {
        let known = match self.extent()? {
            Some(Range { from, to }) => format!(
                "it has samples from {} to {}",
                for_people(from),
                for_people(to)
            ),
            None => "it has no closed segment yet".to_owned(),
        };
        Ok(StoreError::Nothing {
            folder: self.folder.clone(),
            known,
        })
    }
}

/// Adds what an older topology has and the newer ones do not; says where its ports are. Cables that were moved since are left
/// out.
fn add(
    all: &mut Topology,
    older: &Topology,
    skipped: &mut Skipped,
) -> Result<Vec<PortIndex>, TopologyError> {
    if all.link_layer != older.link_layer {
        return Err(TopologyError::LinkLayers {
            first: all.link_layer,
            second: older.link_layer,
        });
    }
    let mut places = Vec::with_capacity(older.ports().len());
    for node in older.nodes() {
        match all.find_node(&node.name) {
            Some(known) if all.node(known).kind != node.kind => {
                return Err(TopologyError::KindTwice(node.name.clone()));
            }
            Some(_) => {}
            None => {
                all.add_node(node.name.clone(), node.kind)?;
            }
        }
    }
    for port in older.ports() {
        let node = all.find_node(&older.node(port.node).name);
        places.push(match (all.find_port(&port.name), node) {
            (Some(known), _) => known,
            (None, Some(node)) => all.add_port(node, port.name.clone(), port.rate)?,
            (None, None) => return Err(TopologyError::PortTwice(port.name.clone())),
        });
    }
    for (port, &place) in older.ports().iter().zip(&places) {
        let Some(peer) = port.peer.map(|peer| places[peer.index()]) else {
            continue;
        };
        match all.connect(place, peer) {
            Err(TopologyError::CabledTwice {
                port,
                first,
                second,
            }) => {
                skipped.line(format!(
                    "`{port}` was cabled to `{second}` before, and now to `{first}`"
                ));
            }
            laid => laid?,
        }
    }
    Ok(places)
}
