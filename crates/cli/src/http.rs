//! As much of HTTP/1.1 (RFC 9112) as scrapers and browsers need here: GET and HEAD, an answer with its length, and the end of
//! the connection.
//!
//! Every connection has a thread and five seconds; so many at once are served, and more are turned away. Whoever is slow, silent or
//! numerous keeps nobody else waiting for long.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use softfabric_units::{Span, Time};

use crate::clock::{self, Clock};
use crate::failure::Failure;

/// No request that is meant is longer.
const LONGEST: usize = 8 << 10;
/// A request has come and its answer is gone by then.
const PATIENCE: Span = Span::seconds(5);
/// So many connections at once.
const MOST: usize = 32;

/// What is at a path.
pub(crate) enum Answer {
    Found {
        media_type: &'static str,
        text: String,
    },
    NotFound,
}

/// What answers requests.
pub(crate) struct Site<F> {
    /// Refuses requests for other names than this machine's, when listening on this machine only: a page elsewhere may have its own
    /// name resolved to here, and must not read what is served (DNS rebinding).
    pub(crate) only_local_names: bool,
    /// Lines of the head of every answer, each with its end.
    pub(crate) headers: &'static str,
    /// What to say of paths that are not there.
    pub(crate) not_found: &'static str,
    /// What is at a path, which comes without the query.
    pub(crate) answer: F,
}

/// Takes the address.
///
/// # Errors
/// If it cannot be had.
pub(crate) fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    });
    bound.map_err(|error| unavailable(address, &error))
}

/// An address that cannot be had, or not any more.
pub(crate) fn unavailable(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::Arguments {
        problem: format!("cannot listen on {address}: {error}"),
        help: Some("Is another program there? Port 0 takes a free one.".to_owned()),
    }
}

/// Answers requests for ever.
///
/// # Errors
/// If no more connections can be taken.
pub(crate) fn serve<F>(listener: &TcpListener, site: Site<F>) -> io::Result<()>
where
    F: Fn(&str) -> Answer + Send + Sync + 'static,
{
    let site = Arc::new(site);
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let (stream, _) = listener.accept()?;
        if open.fetch_add(1, Ordering::Relaxed) >= MOST {
            // A refusal in words would take one more thread.
            open.fetch_sub(1, Ordering::Relaxed);
            drop(stream);
            continue;
        }
        let (site, served) = (Arc::clone(&site), Arc::clone(&open));
        let started = thread::Builder::new().spawn(move || {
            // A client that goes away, or says nothing, is its own loss.
            let _ = serve_one(stream, &site);
            served.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn serve_one<F: Fn(&str) -> Answer>(mut stream: TcpStream, site: &Site<F>) -> io::Result<()> {
    let clock = Clock::start();
    let deadline = Time::ZERO + PATIENCE;
    let left = || match clock::between(clock.now(), deadline) {
        Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
        left => Ok(left),
    };
    let mut request = Vec::new();
    let mut chunk = [0; 1_024];
    while !ends_head(&request) && request.len() < LONGEST {
        // The time is for the whole request: a byte now and then does not prolong it.
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut chunk)? {
            0 => break,
            read => request.extend_from_slice(&chunk[..read]),
        }
    }
    let response = match ends_head(&request) {
        true => response(&String::from_utf8_lossy(&request), site),
        false => refusal("400 Bad Request", "this is no request\n", site.headers),
    };
    let mut rest = response.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left()?))?;
        let written = stream.write(rest)?;
        rest = &rest[written..];
    }
    Ok(())
}

fn ends_head(request: &[u8]) -> bool {
    request.windows(4).any(|end| end == b"\r\n\r\n")
}

/// The whole response to a request.
fn response<F: Fn(&str) -> Answer>(request: &str, site: &Site<F>) -> String {
    let mut lines = request.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then_some(value.trim())
    });
    let words: Vec<&str> = line.split(' ').collect();
    let refused = |status, text| refusal(status, text, site.headers);
    let (method, target) = match words.as_slice() {
        [method, target, version] if version.starts_with("HTTP/1.") => (*method, *target),
        _ => return refused("400 Bad Request", "this is not HTTP\n"),
    };
    if method != "GET" && method != "HEAD" {
        let text = refused("405 Method Not Allowed", "only GET and HEAD\n");
        return text.replacen("\r\n", "\r\nAllow: GET, HEAD\r\n", 1);
    }
    if site.only_local_names && !host.is_some_and(is_local) {
        return refused(
            "421 Misdirected Request",
            "ask for localhost, or for its address\n",
        );
    }
    let path = target.split('?').next().unwrap_or(target);
    let (status, media_type, text) = match (site.answer)(path) {
        Answer::Found { media_type, text } => ("200 OK", media_type, text),
        Answer::NotFound => ("404 Not Found", PLAIN, site.not_found.to_owned()),
    };
    let body = if method == "HEAD" { "" } else { &text };
    let (length, headers) = (text.len(), site.headers);
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n{body}"
    )
}

fn refusal(status: &str, text: &str, headers: &str) -> String {
    let length = text.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {PLAIN}\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n{text}"
    )
}

/// Whether a `Host` is this machine by name or address.
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

const PLAIN: &str = "text/plain; charset=utf-8";

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn site(only_local_names: bool) -> Site<impl Fn(&str) -> Answer> {
        Site {
            only_local_names,
            headers: "X-Test: yes\r\n",
            not_found: "look at /metrics\n",
            answer: |path: &str| match path {
                "/metrics" => Answer::Found {
                    media_type: "text/x",
                    text: "hello\n".to_owned(),
                },
                _ => Answer::NotFound,
            },
        }
    }

    #[test]
    fn requests_get_what_they_ask_for_or_hear_why_not() {
        let says = |line: &str| response(&format!("{line}\r\nHost: x\r\n\r\n"), &site(false));
        let found = says("GET /metrics?a=b HTTP/1.1");
        assert!(found.starts_with(
            "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 6\r\nX-Test: yes\r\n"
        ));
        assert!(found.ends_with("\r\n\r\nhello\n"));
        let head = says("HEAD /metrics HTTP/1.1");
        assert!(head.contains("Content-Length: 6\r\n") && head.ends_with("\r\n\r\n"));
        assert!(says("GET / HTTP/1.1").starts_with("HTTP/1.1 404 "));
        let refused = says("POST /metrics HTTP/1.1");
        assert!(
            refused.starts_with("HTTP/1.1 405 ") && refused.contains("\r\nAllow: GET, HEAD\r\n")
        );
        assert!(says("hello").starts_with("HTTP/1.1 400 "));
        assert!(says("").starts_with("HTTP/1.1 400 "));
    }

    #[test]
    fn other_names_are_refused_where_only_this_machine_is_meant() {
        let status = |host: &str| {
            let text = response(
                &format!("GET /metrics HTTP/1.1\r\n{host}\r\n\r\n"),
                &site(true),
            );
            text[9..12].to_owned()
        };
        for host in [
            "localhost",
            "localhost:9750",
            "127.0.0.1:9750",
            "[::1]:9750",
            "127.0.0.1",
        ] {
            assert_eq!(status(&format!("Host: {host}")), "200", "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9750",
            "localhost.evil.example",
            "10.0.0.1",
        ] {
            assert_eq!(status(&format!("Host: {host}")), "421", "{host}");
        }
        assert_eq!(status("Accept: */*"), "421");
    }

    /// All connections but one say nothing: the one that asks is served at once.
    #[test]
    fn silent_clients_keep_nobody_waiting_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || serve(&listener, site(false)));
        let mut silent: Vec<TcpStream> = (0..MOST - 1)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        for stream in &mut silent {
            stream.write_all(b"GET /met").unwrap();
        }
        let (told, tells) = mpsc::channel();
        thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            told.send(text).unwrap();
        });
        let text = tells.recv_timeout(Duration::from_secs(1)).unwrap();
        assert!(text.ends_with("hello\n"), "{text}");
        // The silent ones are sent away, though a byte comes now and then.
        let mut one = silent.pop().unwrap();
        let clock = Clock::start();
        let mut byte = [0; 1];
        one.set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        loop {
            let _ = one.write_all(b"x");
            match one.read(&mut byte) {
                Ok(0) => break,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                _ => assert!(clock.now() < Time::ZERO + Span::seconds(10)),
            }
        }
    }
}
