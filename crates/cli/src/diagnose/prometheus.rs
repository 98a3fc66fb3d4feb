//! Asking a Prometheus: one request over plain HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use softfabric_operations::recording::Recording;
use softfabric_operations::sources::prometheus::{self, QUERY};
use softfabric_units::Span;

use crate::clock;
use crate::failure::Failure;

/// Prometheus gives up after two minutes by itself.
const PATIENCE: Duration = Duration::from_secs(130);

/// Where a Prometheus is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// Host and port.
    address: String,
    /// What stands before `/api`.
    path: String,
}

/// `http://HOST[:PORT][/PATH]`.
pub(crate) fn url(text: &str) -> Result<Url, String> {
    let rest = text
        .strip_prefix("http://")
        .ok_or_else(|| match text.starts_with("https://") {
            true => "https is not spoken here: a proxy or a tunnel can do that".to_owned(),
            false => "it must be a URL such as http://prometheus:9090".to_owned(),
        })?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    if address.is_empty() {
        return Err("it must name a host, such as http://prometheus:9090".to_owned());
    }
    let address = match address.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => address.to_owned(),
        _ => format!("{address}:80"),
    };
    let path = path.trim_end_matches('/');
    let path = if path.is_empty() {
        String::new()
    } else {
        format!("/{path}")
    };
    Ok(Url { address, path })
}

/// All counters of the last while.
///
/// # Errors
/// If nobody answers, or the answer is none.
pub(crate) fn ask(url: &Url, last: Span, step: Span) -> Result<Recording, Failure> {
    let end = clock::unix_nanos() as f64 / 1e9;
    let target = format!(
        "{}/api/v1/query_range?query={}&start={:.3}&end={end:.3}&step={}",
        url.path,
        escaped(QUERY),
        end - last.as_seconds_f64(),
        step.as_seconds_f64()
    );
    let wrong = |problem: String| Failure::Arguments {
        problem: format!("http://{}: {problem}", url.address),
        help: Some(
            "Is this a Prometheus, and does `curl URL/api/v1/query?query=up` answer?".to_owned(),
        ),
    };
    let text = get(&url.address, &target).map_err(|error| wrong(error.to_string()))?;
    // The body has its own word for what is wrong, whatever the status.
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    prometheus::read(body).map_err(|error| wrong(error.to_string()))
}

/// With HTTP/1.0 the answer comes whole, and ends with the connection.
fn get(address: &str, target: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET {target} HTTP/1.0\r\nHost: {address}\r\nAccept: application/json\r\n\r\n"
    )?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// As part of a URL (RFC 3986, 2.1).
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_an_address_and_a_path() {
        let at = |address: &str, path: &str| {
            Ok(Url {
                address: address.to_owned(),
                path: path.to_owned(),
            })
        };
        assert_eq!(url("http://p:9090"), at("p:9090", ""));
        assert_eq!(url("http://p/prom/x/"), at("p:80", "/prom/x"));
        assert_eq!(url("http://[::1]:9090/"), at("[::1]:9090", ""));
        for wrong in ["p:9090", "https://p", "http:///x"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
        assert_eq!(escaped("a{b=~\"c|d\"}"), "a%7Bb%3D~%22c%7Cd%22%7D");
    }
}
