//! Asking a Prometheus: one request over HTTP or HTTPS.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use softfabric_operations::recording::Recording;
use softfabric_operations::sources::prometheus::{self, QUERY};
use softfabric_units::Span;
use ureq::http::StatusCode;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::clock;
use crate::failure::Failure;

/// Who does not take a connection within this time is not there.
const CONNECTS: Duration = Duration::from_secs(10);
/// Prometheus gives up after two minutes by itself.
const PATIENCE: Duration = Duration::from_secs(130);
/// No answer is meant to be longer.
const LONGEST: u64 = 4 << 30;
/// Where credentials are looked for if no file is named.
const BEARER: &str = "SOFTFABRIC_PROMETHEUS_BEARER";
const BASIC: &str = "SOFTFABRIC_PROMETHEUS_BASIC";

/// Where a Prometheus is: `http://` or `https://`, a host, maybe a port and what stands before `/api`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url(String);

/// How a Prometheus is reached that does not answer everybody.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Access {
    /// A file with the token to show to Prometheus. Default: the variable SOFTFABRIC_PROMETHEUS_BEARER.
    #[arg(long, value_name = "FILE", requires = "prometheus", conflicts_with = "basic", value_hint = ValueHint::FilePath)]
    pub(crate) bearer: Option<PathBuf>,
    /// A file with USER:PASSWORD for Prometheus. Default: the variable SOFTFABRIC_PROMETHEUS_BASIC.
    #[arg(long, value_name = "FILE", requires = "prometheus", value_hint = ValueHint::FilePath)]
    pub(crate) basic: Option<PathBuf>,
    /// Certificates (PEM) of those who may vouch for the Prometheus. Default: whom this system trusts.
    #[arg(long, value_name = "FILE", requires = "prometheus", value_hint = ValueHint::FilePath)]
    pub(crate) ca: Option<PathBuf>,
}

/// `http[s]://HOST[:PORT][/PATH]`.
pub(crate) fn url(text: &str) -> Result<Url, String> {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))
        .ok_or("it must be a URL such as https://prometheus:9090")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return Err("it must name a host, such as https://prometheus:9090".to_owned());
    }
    if host.contains('@') {
        // Other users see command lines.
        return Err("credentials do not belong here: --bearer and --basic read them".to_owned());
    }
    Ok(Url(text.trim_end_matches('/').to_owned()))
}

/// All counters of the last while.
///
/// # Errors
/// If nobody answers, or the answer is none.
pub(crate) fn ask(
    url: &Url,
    access: &Access,
    last: Span,
    step: Span,
) -> Result<Recording, Failure> {
    let Url(url) = url;
    let wrong = |problem: String, help: &str| Failure::Arguments {
        problem: format!("{url}: {problem}"),
        help: Some(help.to_owned()),
    };
    let end = clock::unix_nanos() as f64 / 1e9;
    let target = format!(
        "{url}/api/v1/query_range?query={}&start={:.3}&end={end:.3}&step={}",
        escaped(QUERY),
        end - last.as_seconds_f64(),
        step.as_seconds_f64()
    );
    let mut request = agent(access)?
        .get(target)
        .header("Accept", "application/json");
    if let Some(authorization) = authorization(access)? {
        request = request.header("Authorization", authorization);
    }
    let ask_by_hand = "Is this a Prometheus, and does `curl URL/api/v1/query?query=up` answer?";
    let mut response = request.call().map_err(|error| match &error {
        ureq::Error::Timeout(ureq::Timeout::Connect) => wrong(
            format!(
                "nobody takes the connection within {} s",
                CONNECTS.as_secs()
            ),
            ask_by_hand,
        ),
        ureq::Error::Timeout(_) => wrong(
            format!("no answer within {} s", PATIENCE.as_secs()),
            "Ask for less: a shorter --last or a longer --step.",
        ),
        ureq::Error::Rustls(_) => wrong(
            error.to_string(),
            "--ca names the certificate of who vouches for it.",
        ),
        _ => wrong(error.to_string(), ask_by_hand),
    })?;
    if let refused @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) = response.status() {
        return Err(wrong(
            format!("it answers {refused}"),
            "--bearer and --basic name a file with the token, or with USER:PASSWORD.",
        ));
    }
    // The body has its own word for what is wrong, whatever the status.
    let body = response.body_mut().with_config().limit(LONGEST);
    let body = body
        .read_to_string()
        .map_err(|error| wrong(error.to_string(), ask_by_hand))?;
    prometheus::read(&body).map_err(|error| wrong(error.to_string(), ask_by_hand))
}

fn agent(access: &Access) -> Result<ureq::Agent, Failure> {
    let roots = match &access.ca {
        Some(path) => RootCerts::Specific(Arc::new(certificates(path)?)),
        None => RootCerts::PlatformVerifier,
    };
    let tls = TlsConfig::builder()
        .root_certs(roots)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = ureq::Agent::config_builder()
        .tls_config(tls.build())
        .timeout_connect(Some(CONNECTS))
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false);
    Ok(config.build().into())
}

fn certificates(path: &Path) -> Result<Vec<ureq::tls::Certificate<'static>>, Failure> {
    let text = fs::read(path).map_err(|error| Failure::unreadable(path, error))?;
    let certificates = parse_pem(&text).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(error.to_string())),
    });
    let certificates: Result<Vec<_>, String> = certificates.collect();
    match certificates {
        Ok(found) if !found.is_empty() => Ok(found),
        found => Err(Failure::WrongKind {
            path: path.to_owned(),
            problem: found
                .err()
                .unwrap_or_else(|| "it has no certificate".to_owned()),
            help: "A PEM file is needed, with -----BEGIN CERTIFICATE-----.".to_owned(),
        }),
    }
}

/// The header that shows who asks, if there is anything to show.
fn authorization(access: &Access) -> Result<Option<String>, Failure> {
    let read = |path: &Path| {
        let text = fs::read_to_string(path).map_err(|error| Failure::unreadable(path, error))?;
        Ok::<_, Failure>(text.trim().to_owned())
    };
    if let Some(path) = &access.bearer {
        return Ok(Some(format!("Bearer {}", read(path)?)));
    }
    if let Some(path) = &access.basic {
        return Ok(Some(basic(&read(path)?)));
    }
    let bearer = std::env::var(BEARER)
        .ok()
        .map(|token| format!("Bearer {token}"));
    Ok(bearer.or_else(|| std::env::var(BASIC).ok().map(|pair| basic(&pair))))
}

/// RFC 7617.
fn basic(pair: &str) -> String {
    format!("Basic {}", base64(pair.as_bytes()))
}

/// RFC 4648, 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let all = [0, 1, 2].map(|place| u32::from(chunk.get(place).copied().unwrap_or(0)));
        let bits = all[0] << 16 | all[1] << 8 | all[2];
        for place in 0..4 {
            match place <= chunk.len() {
                true => text.push(char::from(
                    LETTERS[(bits >> (18 - 6 * place) & 63) as usize],
                )),
                false => text.push('='),
            }
        }
    }
    text
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
    fn urls_name_a_host_and_no_credentials() {
        let at = |text: &str| Ok(Url(text.to_owned()));
        assert_eq!(url("http://p:9090"), at("http://p:9090"));
        assert_eq!(url("https://p/prom/x/"), at("https://p/prom/x"));
        assert_eq!(url("http://[::1]:9090/"), at("http://[::1]:9090"));
        for wrong in [
            "p:9090",
            "ftp://p",
            "http:///x",
            "https://:9090",
            "https://me:secret@p",
        ] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
        assert_eq!(escaped("a{b=~\"c|d\"}"), "a%7Bb%3D~%22c%7Cd%22%7D");
    }

    /// RFC 7617's own example, and the lengths that are padded (RFC 4648, 10).
    #[test]
    fn credentials_are_written_as_the_standards_write_them() {
        assert_eq!(
            basic("Aladdin:open sesame"),
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
        let padded = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(padded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }
}
