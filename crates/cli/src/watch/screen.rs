//! A watch on a terminal: the whole screen, until q or Ctrl-C.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Once;
use std::time::Duration;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::execute;
use crossterm::terminal::{
    self as raw, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen,
};
use softfabric_operations::watch::View;
use softfabric_units::Time;

use super::Session;
use super::page::Published;
use super::text::{self, Layout};
use crate::clock;
use crate::failure::Failure;
use crate::terminal::{BOLD, DOUBTFUL, FAINT};

/// Keys are answered at once.
const KEYS: Duration = Duration::from_millis(50);

/// The terminal as it was, when this goes away: at the end, on an error, or in a panic.
struct Screen;

impl Screen {
    fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                report(panic);
            }));
        });
        raw::enable_raw_mode()?;
        let screen = Self;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = raw::disable_raw_mode();
}

/// What the person has chosen to see.
#[derive(Default)]
struct Choice {
    episode: usize,
    /// The evidence is open, scrolled by so many lines.
    evidence: Option<usize>,
}

/// Shows until q or Ctrl-C.
///
/// # Errors
/// If the source cannot be used, or the terminal goes away.
pub(super) fn show(session: &mut Session, published: &Published) -> Result<ExitCode, Failure> {
    let gone = |error: io::Error| Failure::unwritable("the terminal".as_ref(), error);
    // What is wrong from the start is said on the ordinary screen.
    session.step(&mut |_, _| ())?;
    published.publish(session);
    let screen = Screen::take().map_err(gone)?;
    let mut choice = Choice::default();
    let mut due = session.clock.now();
    let mut stale = true;
    loop {
        if session.clock.now() >= due {
            session.step(&mut |_, _| ())?;
            published.publish(session);
            due = session.clock.now().saturating_add(session.pace());
            stale = true;
        }
        if stale {
            draw(session, &choice).map_err(gone)?;
            stale = false;
        }
        let wait = clock::between(session.clock.now(), due).min(KEYS);
        if !event::poll(wait).map_err(gone)? {
            continue;
        }
        match event::read().map_err(gone)? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('c') if control => break,
                    KeyCode::Char('q') => break,
                    KeyCode::Char('p' | ' ') if session.source.speed().is_some() => {
                        session.hold();
                        // The clock was set back with the replay.
                        due = Time::ZERO;
                    }
                    code => press(&mut choice, code, session.view.as_ref()),
                }
                stale = true;
            }
            Event::Resize(..) => stale = true,
            _ => {}
        }
    }
    drop(screen);
    Ok(ExitCode::SUCCESS)
}

fn press(choice: &mut Choice, code: KeyCode, view: Option<&View>) {
    let last = view.map_or(0, |view| view.episodes.len().saturating_sub(1));
    match (code, &mut choice.evidence) {
        (KeyCode::Down | KeyCode::Char('j'), Some(scroll)) => *scroll += 1,
        (KeyCode::Up | KeyCode::Char('k'), Some(scroll)) => *scroll = scroll.saturating_sub(1),
        (KeyCode::PageDown, Some(scroll)) => *scroll += 10,
        (KeyCode::PageUp, Some(scroll)) => *scroll = scroll.saturating_sub(10),
        (KeyCode::Down | KeyCode::Char('j'), None) => {
            choice.episode = (choice.episode + 1).min(last);
        }
        (KeyCode::Up | KeyCode::Char('k'), None) => {
            choice.episode = choice.episode.saturating_sub(1);
        }
        (KeyCode::Enter, None) if view.is_some_and(|view| !view.episodes.is_empty()) => {
            choice.evidence = Some(0);
        }
        (KeyCode::Enter | KeyCode::Esc, Some(_)) => choice.evidence = None,
        _ => {}
    }
}

fn draw(session: &Session, choice: &Choice) -> io::Result<()> {
    let (width, height) = raw::size()?;
    let lines = compose(session, choice, usize::from(width), usize::from(height));
    let colourless = anstream::AutoStream::choice(&io::stdout()) == anstream::ColorChoice::Never;
    let mut out = Vec::new();
    execute!(out, MoveTo(0, 0))?;
    for (row, line) in lines.iter().enumerate() {
        execute!(out, MoveTo(0, row as u16), Clear(ClearType::UntilNewLine))?;
        match colourless {
            true => write!(out, "{}", anstream::adapter::strip_str(line))?,
            false => out.write_all(line.as_bytes())?,
        }
    }
    execute!(
        out,
        MoveTo(0, lines.len() as u16),
        Clear(ClearType::FromCursorDown)
    )?;
    // In one write, so that nothing flickers.
    let mut stdout = io::stdout().lock();
    stdout.write_all(&out)?;
    stdout.flush()
}

/// The lines of the screen, none of them wider than it.
fn compose(session: &Session, choice: &Choice, width: usize, height: usize) -> Vec<String> {
    let mut lines = vec![title(session, width)];
    let keys = match (choice.evidence, session.source.speed()) {
        (Some(_), _) => "Enter back  ↑↓ scroll  q quit",
        (None, Some(_)) => "↑↓ choose  Enter evidence  p hold  q quit",
        (None, None) => "↑↓ choose  Enter evidence  q quit",
    };
    let room = height.saturating_sub(2);
    let Some(view) = &session.view else {
        lines.push("no port has told anything yet".to_owned());
        lines.push(format!("{FAINT}{keys}{FAINT:#}"));
        return lines;
    };
    let body = body(view, choice, width, room);
    lines.extend(body.into_iter().take(room));
    let filled = lines.len();
    lines.extend(std::iter::repeat_n(
        String::new(),
        height.saturating_sub(1).saturating_sub(filled),
    ));
    lines.push(format!("{FAINT}{}{FAINT:#}", cut(keys, width)));
    lines.truncate(height);
    lines
}

fn body(view: &View, choice: &Choice, width: usize, room: usize) -> Vec<String> {
    let episode = view.episodes.get(choice.episode);
    if let (Some(scroll), Some(episode)) = (choice.evidence, episode) {
        let text = text::evidence(view, episode, width);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let scroll = scroll.min(lines.len().saturating_sub(room));
        return lines.into_iter().skip(scroll).collect();
    }
    // Ports get what the rest leaves, and the timeline a third of the screen at most.
    let episodes = view.episodes.len().clamp(1, (room / 3).max(1));
    let mut layout = Layout {
        width,
        ports: 0,
        episodes,
        chosen: Some(choice.episode),
    };
    let without = text::whole(view, layout).lines().count();
    layout.ports = room.saturating_sub(without).min(view.ports.len());
    text::whole(view, layout)
        .lines()
        .map(str::to_owned)
        .collect()
}

fn title(session: &Session, width: usize) -> String {
    let about = session
        .view
        .as_ref()
        .map_or(String::new(), |view| view.about.clone());
    let (left, mode) = (format!("softfabric watch · {about}"), session.mode());
    let time = session
        .view
        .as_ref()
        .map_or(String::new(), |view| text::moment(view, view.now));
    let right = cut(&format!("{time} · {mode}"), width);
    let space = width.saturating_sub(right.chars().count() + 1);
    let left = cut(&left, space);
    let gap = width.saturating_sub(left.chars().count() + right.chars().count());
    let style = if session.trouble.is_some() {
        DOUBTFUL
    } else {
        FAINT
    };
    format!(
        "{BOLD}{left}{BOLD:#}{}{style}{right}{style:#}",
        " ".repeat(gap)
    )
}

fn cut(text: &str, width: usize) -> String {
    match text.chars().count() <= width {
        true => text.to_owned(),
        false => {
            let short: String = text.chars().take(width.saturating_sub(1)).collect();
            match width {
                0 => short,
                _ => format!("{short}…"),
            }
        }
    }
}
