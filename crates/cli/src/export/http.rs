//! As much of HTTP/1.1 (RFC 9112) as a scraper speaks: GET, an answer with its length, and the end of the connection.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

/// No request that is meant is longer.
const LONGEST: usize = 8 << 10;
/// Whoever is slower than this keeps others from being served.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is at a path.
pub(super) enum Answer {
    Found {
        media_type: &'static str,
        text: String,
    },
    NotFound,
}

/// Answers one request after the other, for ever.
///
/// # Errors
/// If no more connections can be taken.
pub(super) fn serve(
    listener: &TcpListener,
    answer: impl Fn(&str) -> Answer,
) -> io::Result<ExitCode> {
    loop {
        let (stream, _) = listener.accept()?;
        // A client that goes away, or says nothing, is its own loss.
        let _ = serve_one(stream, &answer);
    }
}

fn serve_one(mut stream: TcpStream, answer: &impl Fn(&str) -> Answer) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut chunk = [0; 1_024];
    while !ends_head(&request) && request.len() < LONGEST {
        match stream.read(&mut chunk)? {
            0 => break,
            read => request.extend_from_slice(&chunk[..read]),
        }
    }
    let text = String::from_utf8_lossy(&request);
    let response = response(text.lines().next().unwrap_or_default(), answer);
    stream.write_all(response.as_bytes())
}

fn ends_head(request: &[u8]) -> bool {
    request.windows(4).any(|end| end == b"\r\n\r\n")
}

/// The whole response to a request line.
fn response(line: &str, answer: &impl Fn(&str) -> Answer) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let (status, media_type, text) = match words.as_slice() {
        ["GET", target, version] if version.starts_with("HTTP/1.") => {
            let path = target.split('?').next().unwrap_or(target);
            match answer(path) {
                Answer::Found { media_type, text } => ("200 OK", media_type, text),
                Answer::NotFound => ("404 Not Found", PLAIN, "look at /metrics\n".to_owned()),
            }
        }
        [_, _, version] if version.starts_with("HTTP/1.") => {
            ("405 Method Not Allowed", PLAIN, "only GET\n".to_owned())
        }
        _ => ("400 Bad Request", PLAIN, "this is not HTTP\n".to_owned()),
    };
    let length = text.len();
    let allow = if status.starts_with("405") {
        "Allow: GET\r\n"
    } else {
        ""
    };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n{text}"
    )
}

const PLAIN: &str = "text/plain; charset=utf-8";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_get_what_they_ask_for_or_hear_why_not() {
        let answer = |path: &str| match path {
            "/metrics" => Answer::Found {
                media_type: "text/x",
                text: "hello\n".to_owned(),
            },
            _ => Answer::NotFound,
        };
        let says = |line: &str| response(line, &answer);
        let found = says("GET /metrics?a=b HTTP/1.1");
        assert!(
            found.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 6\r\n")
        );
        assert!(found.ends_with("\r\n\r\nhello\n"));
        assert!(says("GET / HTTP/1.1").starts_with("HTTP/1.1 404 "));
        let refused = says("POST /metrics HTTP/1.1");
        assert!(refused.starts_with("HTTP/1.1 405 ") && refused.contains("\r\nAllow: GET\r\n"));
        assert!(says("hello").starts_with("HTTP/1.1 400 "));
        assert!(says("").starts_with("HTTP/1.1 400 "));
    }
}
