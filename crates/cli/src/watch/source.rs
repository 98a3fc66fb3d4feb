//! Where the counters of a watch come from, behind one face: what is known by now, and what time it is there.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread::{self, JoinHandle};

use softfabric_operations::recording::{self, Reader, Recording, RecordingError};
use softfabric_operations::watch;
use softfabric_units::{Span, Time};

use super::arguments::WatchArguments;
use crate::clock::Clock;
use crate::diagnose;
use crate::diagnose::prometheus::{self, Access, Url};
use crate::failure::Failure;
use crate::record;
use crate::record::arguments::RecordArguments;
use crate::run;
use crate::terminal;

/// How long lines may wait to be read: a poll of a large switch.
const WAITING_LINES: usize = 100_000;
/// Of a store so much is read, where no window is given.
const STORED: Span = Span::seconds(600);
/// How often a simulation polls its counters.
const SIMULATED_INTERVAL: Span = Span::micros(100);

/// A source of counters.
pub(super) struct Source {
    kind: Kind,
    cables: Cables,
    /// Polls come so often, as far as that is known.
    interval: Option<Span>,
}

enum Kind {
    /// All of it is here.
    Whole(Whole),
    /// It grows by lines.
    Growing(Growing),
    /// Somebody who is asked again and again.
    Asked(Asked),
}

struct Asked {
    whom: Whom,
    last: Span,
    step: Span,
    recording: Recording,
    clock: Clock,
    /// When to ask again.
    due: Time,
    /// Answers may take long: the screen does not wait for them.
    asking: Option<JoinHandle<Result<Recording, Failure>>>,
}

/// Who is asked for the last while.
#[derive(Clone)]
enum Whom {
    Prometheus(Url, Access),
    Store(PathBuf),
}

impl Whom {
    fn ask(&self, last: Span, step: Span) -> Result<Recording, Failure> {
        match self {
            Self::Prometheus(url, access) => prometheus::ask(url, access, last, step),
            Self::Store(folder) => diagnose::read_last(folder, last),
        }
    }
}

struct Whole {
    recording: Recording,
    span: (Time, Time),
    /// Replayed so fast; not at all if `None`.
    speed: Option<f64>,
}

struct Growing {
    reader: Option<Reader>,
    lines: Lines,
    /// What must be known before old samples are forgotten.
    window: Option<Span>,
    path: PathBuf,
    /// Why no more lines come.
    failure: Option<String>,
}

enum Lines {
    /// A file, and the line that is not whole yet.
    File(BufReader<File>, String),
    /// A pipe, which somebody else waits for.
    Pipe(
        Receiver<io::Result<String>>,
        Option<JoinHandle<Result<(), Failure>>>,
    ),
}

/// Cables that the source does not tell.
struct Cables {
    lists: Vec<PathBuf>,
    tables: Vec<diagnose::arguments::LldpTable>,
}

/// What there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Supply {
    /// More will come.
    Flows,
    /// That was all.
    Ended,
}

impl Source {
    /// Opens what the arguments name.
    ///
    /// # Errors
    /// If it cannot be read, or is none.
    pub(super) fn open(arguments: &WatchArguments) -> Result<Self, Failure> {
        let kind = match arguments.source.as_slice() {
            [] => Self::live(arguments)?,
            [path]
                if path
                    .extension()
                    .is_some_and(|extension| extension == "toml") =>
            {
                let every = arguments.every.unwrap_or(SIMULATED_INTERVAL);
                let recording = simulated(path, every)?;
                Kind::Whole(Whole::new(recording, arguments.speed)?)
            }
            [path] if path.is_dir() && arguments.speed.is_none() && !arguments.once => {
                let last = arguments.window.unwrap_or(STORED);
                let step = arguments.every.unwrap_or(Span::seconds(1));
                Kind::Asked(Asked::new(Whom::Store(path.clone()), last, step)?)
            }
            [path] if arguments.speed.is_none() && !arguments.once => {
                Kind::Growing(Growing::open(path)?)
            }
            paths => {
                let recordings = paths.iter().map(|path| diagnose::read(path));
                let recordings: Vec<Recording> = recordings.collect::<Result<_, _>>()?;
                let merged = recording::merge(recordings);
                let merged = merged.map_err(|error| diagnose::contradiction(&error))?;
                Kind::Whole(Whole::new(merged, arguments.speed)?)
            }
        };
        let interval = match &kind {
            Kind::Asked(asked) => match asked.whom {
                Whom::Prometheus(..) => Some(asked.step),
                Whom::Store(_) => None,
            },
            Kind::Whole(_) => None,
            Kind::Growing(_) => arguments.every,
        };
        let mut source = Self {
            kind,
            cables: Cables {
                lists: arguments.cables.clone(),
                tables: arguments.lldp.clone(),
            },
            interval,
        };
        source.lay_cables()?;
        Ok(source)
    }

    /// A Prometheus, a switch, software devices, or this host.
    fn live(arguments: &WatchArguments) -> Result<Kind, Failure> {
        if let Some(url) = &arguments.prometheus {
            let step = arguments.every.unwrap_or(Span::seconds(15));
            let window = arguments.window.unwrap_or(step * 60);
            let last = window.max(step * 8);
            let prometheus = Whom::Prometheus(url.clone(), arguments.access.clone());
            return Ok(Kind::Asked(Asked::new(prometheus, last, step)?));
        }
        let polled = RecordArguments::watching(
            arguments.every.unwrap_or(Span::seconds(1)),
            arguments.once.then_some(10),
            arguments.redis.clone(),
            arguments.devices,
            arguments.root.clone(),
        );
        let (reads, writes) =
            io::pipe().map_err(|error| Failure::unreadable("a pipe".as_ref(), error))?;
        let recorder = thread::spawn(move || {
            let out: Box<dyn Write> = Box::new(writes);
            record::into(&polled, out)
        });
        Ok(Kind::Growing(Growing {
            reader: None,
            lines: Lines::pipe(BufReader::new(reads), Some(recorder)),
            window: arguments.window,
            path: PathBuf::from("the counters of this host"),
            failure: None,
        }))
    }

    /// Takes what has come by now. What is older than a few windows is forgotten.
    ///
    /// # Errors
    /// If the source goes away, or contradicts itself.
    pub(super) fn advance(&mut self, window: Option<Span>) -> Result<Supply, Failure> {
        let supply = match &mut self.kind {
            Kind::Whole(_) => Supply::Ended,
            Kind::Asked(asked) => {
                if asked.advance()? {
                    self.lay_cables()?;
                }
                Supply::Flows
            }
            Kind::Growing(growing) => {
                let begun = growing.has_begun();
                growing.window = window;
                let supply = growing.advance()?;
                if !begun && growing.has_begun() {
                    self.lay_cables()?;
                }
                supply
            }
        };
        Ok(supply)
    }

    /// What is known, once there are samples.
    pub(super) fn recording(&self) -> Option<&Recording> {
        let recording = match &self.kind {
            Kind::Whole(whole) => &whole.recording,
            Kind::Asked(asked) => &asked.recording,
            Kind::Growing(growing) => growing.reader.as_ref()?.recording(),
        };
        recording.history.span().map(|_| recording)
    }

    /// What time it is there, so long after the watch began: the latest sample, or where a replay has come to.
    pub(super) fn now(&self, passed: Span) -> Time {
        match &self.kind {
            Kind::Whole(Whole {
                span: (from, to),
                speed: Some(speed),
                ..
            }) => {
                let passed = Span::picos((passed.as_picos() as f64 * speed) as u64);
                from.saturating_add(passed).min(*to)
            }
            _ => self
                .recording()
                .and_then(|recording| recording.history.span())
                .map_or(Time::ZERO, |span| span.to),
        }
    }

    /// Where it begins.
    pub(super) fn beginning(&self) -> Time {
        self.recording()
            .and_then(|recording| recording.history.span())
            .map_or(Time::ZERO, |span| span.from)
    }

    /// How fast it is replayed, if it is.
    pub(super) fn speed(&self) -> Option<f64> {
        match &self.kind {
            Kind::Whole(whole) => whole.speed,
            Kind::Growing(_) | Kind::Asked(_) => None,
        }
    }

    /// Whether more may come.
    pub(super) fn may_grow(&self) -> bool {
        !matches!(self.kind, Kind::Whole(_))
    }

    /// Whether polls come one by one, so that the first view is of a few of them only.
    pub(super) fn is_polled(&self) -> bool {
        matches!(&self.kind, Kind::Growing(growing) if matches!(growing.lines, Lines::Pipe(..)))
    }

    /// How often counters are polled.
    pub(super) fn interval(&self) -> Option<Span> {
        let recording = self.recording()?;
        let measured = || watch::interval(&recording.topology, &recording.history);
        self.interval.or_else(measured)
    }

    fn lay_cables(&mut self) -> Result<(), Failure> {
        let recording = match &mut self.kind {
            Kind::Whole(whole) => &mut whole.recording,
            Kind::Asked(asked) => &mut asked.recording,
            Kind::Growing(growing) => match &mut growing.reader {
                Some(reader) if reader.has_begun() => reader.recording_mut(),
                _ => return Ok(()),
            },
        };
        let Cables { lists, tables } = &self.cables;
        if lists.is_empty() && tables.is_empty() {
            return Ok(());
        }
        diagnose::lay_cables(recording, lists, tables)
    }
}

impl Asked {
    fn new(whom: Whom, last: Span, step: Span) -> Result<Self, Failure> {
        Ok(Self {
            recording: whom.ask(last, step)?,
            whom,
            last,
            step,
            clock: Clock::start(),
            due: Time::ZERO + step,
            asking: None,
        })
    }

    /// Asks if it is time to; says whether there is an answer.
    fn advance(&mut self) -> Result<bool, Failure> {
        match self.asking.take() {
            Some(asking) if asking.is_finished() => {
                let Ok(answer) = asking.join() else {
                    return Ok(false);
                };
                self.recording = answer?;
                return Ok(true);
            }
            Some(asking) => self.asking = Some(asking),
            None if self.clock.now() >= self.due => {
                self.due = self.clock.now() + self.step;
                let (whom, last, step) = (self.whom.clone(), self.last, self.step);
                self.asking = Some(thread::spawn(move || whom.ask(last, step)));
            }
            None => {}
        }
        Ok(false)
    }
}

impl Whole {
    fn new(recording: Recording, speed: Option<f64>) -> Result<Self, Failure> {
        let Some(span) = recording.history.span() else {
            return Err(Failure::Arguments {
                problem: "the recording has no samples".to_owned(),
                help: None,
            });
        };
        Ok(Self {
            recording,
            span: (span.from, span.to),
            speed,
        })
    }
}

/// Runs a scenario, and takes what its counters said for a recording.
fn simulated(path: &Path, every: Span) -> Result<Recording, Failure> {
    let mut input = run::input::load(path, None)?;
    for note in &input.notes {
        terminal::warn(note);
    }
    input.plan.recording.counters = Some(every);
    let run = run::simulate(&input.plan, 1, !terminal::is_watched())?;
    let about = format!("softfabric run {}", path.display());
    let recording = run::counters::recording(&input.plan, &run.results, &about);
    recording.map_err(|error| Failure::WrongKind {
        path: path.to_owned(),
        problem: error.to_string(),
        help: "softfabric run shows what the scenario does.".to_owned(),
    })
}

impl Growing {
    fn open(path: &Path) -> Result<Self, Failure> {
        let lines = if path == Path::new("-") {
            Lines::pipe(BufReader::new(io::stdin()), None)
        } else {
            let file = File::open(path).map_err(|error| Failure::unreadable(path, error))?;
            Lines::File(BufReader::with_capacity(1 << 16, file), String::new())
        };
        Ok(Self {
            reader: None,
            lines,
            window: None,
            path: path.to_owned(),
            failure: None,
        })
    }

    fn has_begun(&self) -> bool {
        self.reader.as_ref().is_some_and(Reader::has_begun)
    }

    fn advance(&mut self) -> Result<Supply, Failure> {
        let wrong = |path: &Path, error: &RecordingError| Failure::WrongKind {
            path: path.to_owned(),
            problem: error.to_string(),
            help: "softfabric run SCENARIO --counters FILE and softfabric record write recordings."
                .to_owned(),
        };
        loop {
            match self.lines.next() {
                Next::Line(line) => match &mut self.reader {
                    None => {
                        let reader =
                            Reader::new(&line).map_err(|error| wrong(&self.path, &error))?;
                        self.reader = Some(reader);
                    }
                    Some(reader) => reader
                        .line(&line)
                        .map_err(|error| wrong(&self.path, &error))?,
                },
                Next::NotYet => break,
                Next::Failed(error) => return Err(Failure::unreadable(&self.path, error)),
                Next::Ended => {
                    if let Lines::Pipe(_, recorder) = &mut self.lines
                        && let Some(recorder) = recorder.take()
                    {
                        let ended = recorder.join().unwrap_or(Ok(()));
                        if let Err(failure) = ended {
                            self.failure = Some(failure.to_string());
                            return Err(failure);
                        }
                    }
                    if let Some(problem) = self.failure.clone() {
                        return Err(Failure::Arguments {
                            problem,
                            help: None,
                        });
                    }
                    if self.reader.is_none() {
                        return Err(wrong(&self.path, &RecordingError::NoHead));
                    }
                    return Ok(Supply::Ended);
                }
            }
        }
        // Whoever watches for months needs the last while only: two windows, so that not every look moves everything.
        if let (Some(reader), Some(window)) = (&mut self.reader, self.window)
            && let Some(span) = reader.recording().history.span()
            && span.length() > window * 3
        {
            let kept = Time::from_picos(span.to.as_picos().saturating_sub((window * 2).as_picos()));
            reader.recording_mut().history.forget_before(kept);
        }
        Ok(Supply::Flows)
    }
}

enum Next {
    Line(String),
    NotYet,
    Ended,
    Failed(io::Error),
}

impl Lines {
    fn pipe(
        input: impl BufRead + Send + 'static,
        recorder: Option<JoinHandle<Result<(), Failure>>>,
    ) -> Self {
        let (tells, told) = mpsc::sync_channel(WAITING_LINES);
        thread::spawn(move || {
            for line in input.lines() {
                if tells.send(line).is_err() {
                    break;
                }
            }
        });
        Self::Pipe(told, recorder)
    }

    fn next(&mut self) -> Next {
        match self {
            Self::File(file, begun) => match file.read_line(begun) {
                Ok(_) if begun.ends_with('\n') => {
                    let line = std::mem::take(begun);
                    Next::Line(line.trim_end().to_owned())
                }
                // The rest of the line is still being written.
                Ok(_) => Next::NotYet,
                Err(error) => Next::Failed(error),
            },
            Self::Pipe(told, _) => match told.try_recv() {
                Ok(Ok(line)) => Next::Line(line),
                Ok(Err(error)) => Next::Failed(error),
                Err(TryRecvError::Empty) => Next::NotYet,
                Err(TryRecvError::Disconnected) => Next::Ended,
            },
        }
    }
}
