//! The page of a watch: one HTML document that loads nothing from elsewhere, and the JSON that it asks for once a second.
//!
//! ```text
//! GET /           the page: style, script, and the picture of the topology as it is laid out
//! GET /view.json  what there is to see now
//! ```
//!
//! The page draws with text nodes and attributes only, so that no name can become markup.

mod document;
mod picture;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use softfabric_operations::watch::View;

use self::picture::Picture;
use super::Session;
use crate::failure::Failure;
use crate::http::{self, Answer, Site};
use crate::terminal;

const STYLE: &str = include_str!("../../../assets/watch.css");
const SCRIPT: &str = include_str!("../../../assets/watch.js");
const BASE_STYLE: &str = include_str!("../../../assets/report.css");
/// Nothing is loaded from elsewhere, nobody frames the page, and answers are not kept: they are of now.
const HEADERS: &str = "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\nX-Content-Type-Options: \
    nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n";

/// What is served now.
#[derive(Default)]
pub(super) struct Published(Mutex<Current>);

#[derive(Default)]
struct Current {
    page: Arc<str>,
    document: Arc<str>,
    picture: Option<Picture>,
}

impl Published {
    /// Takes what the watch has seen.
    pub(super) fn publish(&self, session: &Session) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(recording), Some(_)) = (session.source.recording(), &session.view) {
            let topology = &recording.topology;
            if !current
                .picture
                .as_ref()
                .is_some_and(|picture| picture.is_of(topology))
            {
                let picture = Picture::of(topology, current.picture.as_ref());
                current.page = page(&recording.about, &picture).into_string().into();
                current.picture = Some(picture);
            }
        }
        let document = document::of(session, session.view.as_ref(), current.picture.as_ref());
        current.document = document.into();
    }

    fn page(&self) -> Arc<str> {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match current.page.is_empty() {
            // It asks again until there is something to draw.
            true => page("", &Picture::default()).into_string().into(),
            false => Arc::clone(&current.page),
        }
    }

    fn document(&self) -> Arc<str> {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current.document)
    }
}

/// Serves the page from a thread of its own; says at which address.
///
/// # Errors
/// If the address cannot be had.
pub(super) fn serve(address: SocketAddr, published: Arc<Published>) -> Result<SocketAddr, Failure> {
    let (listener, served) = http::listen(address)?;
    let answer = move |path: &str| match path {
        "/" => Answer::Found {
            media_type: "text/html; charset=utf-8",
            text: published.page().to_string(),
        },
        "/view.json" => Answer::Found {
            media_type: "application/json",
            text: published.document().to_string(),
        },
        _ => Answer::NotFound,
    };
    let site = Site {
        only_local_names: served.ip().is_loopback(),
        headers: HEADERS,
        not_found: "look at /\n",
        answer,
    };
    thread::spawn(move || {
        if let Err(error) = http::serve(&listener, site) {
            terminal::warn(&format!("the page is not served any more: {error}"));
        }
    });
    Ok(served)
}

/// The document for `--once --json`.
pub(super) fn document(session: &Session, view: &View) -> String {
    let mut text = document::of(session, Some(view), None);
    text.push('\n');
    text
}

fn page(about: &str, picture: &Picture) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { "softfabric watch" @if !about.is_empty() { " – " (about) } }
                style { (PreEscaped(BASE_STYLE)) (PreEscaped(STYLE)) }
            }
            body data-picture=(picture.number) {
                header {
                    p.brand { "softfabric" span { "watch" } span #about { (about) } }
                    p #link role="status" { span.dot {} span #mode { "connecting" } span #time {} }
                    h1 #title { "Looking…" }
                    p.lead #summary {}
                    p #reach {}
                    p #doubt hidden {}
                }
                main {
                    section {
                        h2 { "Timeline" }
                        p.note #timeline-note {}
                        ol #timeline {}
                    }
                    dl.tiles #tiles {}
                    section { div.charts #charts {} }
                    section #fabric { (picture.draw()) }
                    section {
                        h2 { "Ports" }
                        p.note { "The worst first. The ports that report pauses are symptoms; what is wrong is in the timeline." }
                        div.scroll { table.counters #ports { thead {} tbody {} } }
                    }
                    section {
                        h2 { "Hosts" }
                        p.note #hosts-note {}
                        div.hosts #hosts {}
                    }
                }
                footer { p #footer {} }
                noscript { p.note { "This page needs JavaScript. `softfabric watch --once` says the same in a terminal." } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}
