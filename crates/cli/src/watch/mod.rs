//! `softfabric watch`: a fabric on the screen, in a browser, or as lines in a pipe.
//!
//! ```text
//! Source ──► Recording ──► operations::Watch ──► View ─┬─► screen   a terminal, until q
//!   file, pipe, scenario,   looks again and again      ├─► page     HTML and JSON over HTTP
//!   Prometheus, this host                              └─► lines    what began, changed, ended
//! ```

pub(crate) mod arguments;
mod lines;
mod page;
mod screen;
mod source;
mod text;

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use softfabric_operations::baseline::Baseline;
use softfabric_operations::watch::{Moment, Options, View, Watch};
use softfabric_units::{Span, Time};

use self::arguments::WatchArguments;
use self::page::Published;
use self::source::{Source, Supply};
use self::text::Layout;
use crate::clock::Clock;
use crate::diagnose;
use crate::failure::Failure;
use crate::terminal::{self, Stream};

/// Eyes do not follow anything faster.
const FASTEST: Span = Span::millis(200);
/// Nobody should wait longer for news.
const SLOWEST: Span = Span::seconds(1);
/// Going through a recording, it looks so often in each window.
const LOOKS_IN_WINDOW: u64 = 10;
/// Of a long recording so many windows are gone through.
const WINDOWS: u64 = 200;

/// Watches until somebody ends it, or the source does.
///
/// # Errors
/// If the source cannot be read, or the address cannot be had.
pub(crate) fn run(arguments: &WatchArguments) -> Result<ExitCode, Failure> {
    let baseline = arguments
        .baseline
        .as_deref()
        .map(read_baseline)
        .transpose()?;
    let source = Source::open(arguments)?;
    let mut session = Session {
        source,
        watch: None,
        baseline,
        window: arguments.window,
        looked: Moment::default(),
        view: None,
        clock: Clock::start(),
        fresh: Time::ZERO,
        held: None,
        trouble: None,
        supply: Supply::Flows,
    };
    if arguments.once {
        return once(&mut session, arguments.json);
    }
    let published = Arc::new(Published::default());
    if let Some(address) = arguments.listen {
        let served = page::serve(address, Arc::clone(&published))?;
        let _ = Stream::Error.print(&format!("serving http://{served}/\n"));
        if !served.ip().is_loopback() {
            terminal::warn(
                "everybody who reaches this address can read the page: there is no password",
            );
        }
    }
    match io::stdout().is_terminal() && io::stdin().is_terminal() {
        true => screen::show(&mut session, &published),
        false => lines::print(&mut session, &published, arguments.listen.is_some()),
    }
}

/// Reads a baseline.
///
/// # Errors
/// If it cannot be read, or is none.
pub(crate) fn read_baseline(path: &Path) -> Result<Baseline, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::unreadable(path, error))?;
    Baseline::read(&text).map_err(|error| Failure::WrongKind {
        path: path.to_owned(),
        problem: error.to_string(),
        help: "softfabric commission writes baselines.".to_owned(),
    })
}

/// Waits for a first look that has an answer, prints it, and says it by the exit code.
fn once(session: &mut Session, json: bool) -> Result<ExitCode, Failure> {
    while session.step(&mut |_, _| ())? == Supply::Flows && !session.has_enough() {
        thread::sleep(Duration::from_millis(50));
    }
    let Some(view) = &session.view else {
        return Err(Failure::Arguments {
            problem: "no port has told anything".to_owned(),
            help: None,
        });
    };
    if let (false, Some(recording)) = (json, session.source.recording()) {
        diagnose::warn_of(&recording.skipped);
    }
    let text = match json {
        true => page::document(session, view),
        false => {
            let layout = Layout {
                width: Stream::Output.width(),
                ports: 12,
                episodes: 12,
                chosen: None,
            };
            let mut text = text::whole(view, layout);
            for episode in view.open_episodes().take(3) {
                text.push('\n');
                text.push_str(&text::evidence(view, episode, layout.width));
            }
            text
        }
    };
    terminal::print(&text)?;
    Ok(diagnose::exit_code(view.verdict))
}

/// A watch that goes on.
struct Session {
    source: Source,
    watch: Option<Watch>,
    baseline: Option<Baseline>,
    window: Option<Span>,
    /// Up to when it has been looked at, by the clock of the source.
    looked: Moment,
    view: Option<View>,
    clock: Clock,
    /// When there was news, by our clock.
    fresh: Time,
    /// When a replay was held, by our clock.
    held: Option<Time>,
    /// What is wrong with the source.
    trouble: Option<String>,
    supply: Supply,
}

impl Session {
    /// Takes what has come, and looks at it: at all of it, one step after the other. `seen` gets each view, with the one before it.
    ///
    /// # Errors
    /// If the source cannot be used at all. One that was there and is gone is a trouble that may end.
    fn step(&mut self, seen: &mut dyn FnMut(Option<&View>, &View)) -> Result<Supply, Failure> {
        let window = self.watch.as_ref().map(|watch| watch.options().window);
        match self.source.advance(window) {
            Ok(supply) => {
                self.supply = supply;
                self.trouble = None;
            }
            Err(failure) if self.view.is_some() => self.trouble = Some(failure.to_string()),
            Err(failure) => return Err(failure),
        }
        let now = self.source.now(self.passed());
        let Some(interval) = self.source.interval() else {
            return Ok(self.supply);
        };
        let Some(recording) = self.source.recording() else {
            return Ok(self.supply);
        };
        let watch = self.watch.get_or_insert_with(|| {
            let options = Options::of_interval(interval);
            let options = match self.window {
                Some(window) => options.with_window(window),
                None => options,
            };
            let watch = Watch::new(options);
            match self.baseline.take() {
                Some(baseline) => watch.with_baseline(baseline),
                None => watch,
            }
        });
        let window = watch.options().window;
        let step = interval.max(window / LOOKS_IN_WINDOW);
        let earliest =
            Time::from_picos(now.as_picos().saturating_sub((window * WINDOWS).as_picos()));
        // A Prometheus that is asked anew counts from another start: only moments can be compared.
        let origin = Moment::from_nanos(recording.start_unix_ns);
        let looked = Time::ZERO + self.looked.since(origin);
        let mut at = looked.max(earliest).max(self.source.beginning());
        if now <= looked && self.view.is_some() {
            return Ok(self.supply);
        }
        loop {
            at = match at.saturating_add(step) < now {
                true => at.saturating_add(step),
                false => now,
            };
            let view = watch.look(recording, at);
            seen(self.view.as_ref(), &view);
            self.view = Some(view);
            if at >= now {
                break;
            }
        }
        self.looked = Moment::from_nanos(recording.start_unix_ns + now.as_nanos());
        self.fresh = self.clock.now();
        Ok(self.supply)
    }

    /// How long the watch has been running, without the time for which it was held.
    fn passed(&self) -> Span {
        let now = self.held.unwrap_or_else(|| self.clock.now());
        now.since(Time::ZERO)
    }

    /// Holds a replay, or lets it go on where it was.
    fn hold(&mut self) {
        match self.held.take() {
            Some(since) => self.clock = self.clock.set_back(self.clock.now().since(since)),
            None => self.held = Some(self.clock.now()),
        }
    }

    /// Whether one look is enough. It is not where polls begin only now: those end by themselves.
    fn has_enough(&self) -> bool {
        !self.source.is_polled() && self.view.is_some()
    }

    /// Whether nothing will change any more.
    fn is_over(&self) -> bool {
        let end = self.source.now(Span::MAX).as_nanos();
        let begin = self
            .source
            .recording()
            .map_or(0, |recording| recording.start_unix_ns);
        let replayed =
            self.source.speed().is_none() || self.looked.as_nanos() >= begin.saturating_add(end);
        self.supply == Supply::Ended && replayed
    }

    /// How long to wait until the next look.
    fn pace(&self) -> Span {
        let interval = self.source.interval().unwrap_or(SLOWEST);
        let interval = match self.source.speed() {
            Some(speed) => Span::picos((interval.as_picos() as f64 / speed) as u64),
            None => interval,
        };
        interval.clamp(FASTEST, SLOWEST)
    }

    /// Whether what is seen may be old: the source is in trouble, or has said nothing for long.
    fn is_stale(&self) -> bool {
        let quiet = self.clock.now().since(self.fresh);
        self.trouble.is_some() || self.source.may_grow() && quiet > self.patience()
    }

    /// A source that is quiet for longer has missed several polls.
    fn patience(&self) -> Span {
        self.source.interval().unwrap_or(SLOWEST).max(SLOWEST) * 5
    }

    /// How the source is doing, in a few words.
    fn mode(&self) -> String {
        let quiet = self.clock.now().since(self.fresh);
        if let Some(trouble) = &self.trouble {
            return format!("no answer: {trouble}");
        }
        if self.held.is_some() {
            return "replay held".to_owned();
        }
        match self.source.speed() {
            Some(_) if self.is_over() => "the replay's end".to_owned(),
            Some(speed) => format!("replay ×{speed}"),
            None if self.supply == Supply::Ended => "the recording's end".to_owned(),
            None if self.is_stale() => format!("nothing new for {}", text::lasting(quiet)),
            None => "live".to_owned(),
        }
    }
}
