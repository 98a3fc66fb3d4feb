//! A watch into a pipe or a file: a line whenever something begins, changes or ends, and now and then how it stands.

use std::process::ExitCode;
use std::thread;

use softfabric_operations::watch::{Episode, Moment, View};
use softfabric_units::{Span, Time};

use super::page::Published;
use super::source::Supply;
use super::{Session, text};
use crate::clock;
use crate::diagnose;
use crate::failure::Failure;
use crate::terminal;

/// Without news, a line so often.
const STATUS: Span = Span::seconds(60);

/// Prints until the source ends, or for ever: whoever serves a page goes on doing that.
///
/// # Errors
/// If the source cannot be used, or nothing can be printed.
pub(super) fn print(
    session: &mut Session,
    published: &Published,
    serves: bool,
) -> Result<ExitCode, Failure> {
    let mut next_status = Time::ZERO;
    // How it stands in the end is said once, however long the page is served after that.
    let mut end_is_said = false;
    loop {
        let mut news = String::new();
        let supply = session.step(&mut |before, view| news.push_str(&changes(before, view)))?;
        published.publish(session);
        let now = session.clock.now();
        if let Some(view) = &session.view
            && !end_is_said
            && (now >= next_status || session.is_over())
        {
            news.push_str(&text::status(view));
            next_status = now.saturating_add(STATUS);
            end_is_said = session.is_over();
        }
        terminal::print(&news)?;
        if supply == Supply::Ended && session.is_over() && !serves {
            let verdict = session.view.as_ref().map(|view| view.verdict);
            return verdict
                .map(diagnose::exit_code)
                .ok_or_else(|| Failure::Arguments {
                    problem: "no port has told anything".to_owned(),
                    help: None,
                });
        }
        thread::sleep(clock::between(Time::ZERO, Time::ZERO + session.pace()));
    }
}

/// What one view has that the one before it had not.
fn changes(before: Option<&View>, view: &View) -> String {
    let known = |episode: &Episode| -> Option<&Episode> {
        let mut before = before?.episodes.iter();
        // Two of the same name differ in when they began; the beginning of one moves only backwards.
        before.find(|known| {
            known.title() == episode.title()
                && known.place() == episode.place()
                && known.since >= episode.since
        })
    };
    let mut events: Vec<(Moment, String)> = Vec::new();
    for episode in &view.episodes {
        let event = |word: &str, at: Moment| (at, text::event(view, word, at, episode));
        match known(episode) {
            None => events.push(event("begins ", episode.since)),
            Some(known) if known.has_ended && !episode.has_ended => {
                events.push(event("returns", view.now));
            }
            Some(known) if known.certainty() != episode.certainty() && !episode.has_ended => {
                events.push(event("changes", view.now));
            }
            Some(_) => {}
        }
        let had_ended = known(episode).is_some_and(|known| known.has_ended);
        if episode.has_ended && !had_ended {
            events.push(event("ends   ", episode.until));
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events.into_iter().map(|(_, line)| line).collect()
}
