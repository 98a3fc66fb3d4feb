//! A real browser that shows a page, and is asked about it over its DevTools protocol.
//!
//! The protocol is JSON over a WebSocket (RFC 6455); as much of it is here as one question and one answer after the other need.

#[path = "chromium.rs"]
mod chromium;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use softfabric_testkit::programs::Ends;

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Browser {
    _process: Ends,
    _profile: tempfile::TempDir,
    stream: TcpStream,
    number: u64,
    /// What the page's script complained of.
    pub(crate) complaints: Vec<String>,
}

impl Browser {
    /// Opens a page; `None`, and a word about it, where no browser is installed.
    pub(crate) fn open(test: &str, url: &str) -> Option<Self> {
        let browser = chromium::installed(test)?;
        let profile = tempfile::tempdir().unwrap();
        let process = Command::new(browser)
            .args(chromium::FLAGS)
            .args(["--remote-debugging-port=0", "--window-size=1280,1600"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let process = Ends(process);
        let port = until(|| port(profile.path()));
        let page = until(|| {
            let targets: Value = serde_json::from_str(&get(port, "/json/list")?).ok()?;
            let page = targets
                .as_array()?
                .iter()
                .find(|target| target["type"] == "page")?;
            let address = page["webSocketDebuggerUrl"].as_str()?;
            Some(
                address
                    .split_once("127.0.0.1")?
                    .1
                    .split_once('/')?
                    .1
                    .to_owned(),
            )
        });
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "GET /{page} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: \
             13\r\nSec-WebSocket-Key: c29mdGZhYnJpYyB0ZXN0cw==\r\n\r\n"
        )
        .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(
            head.starts_with(b"HTTP/1.1 101 "),
            "{}",
            String::from_utf8_lossy(&head)
        );
        let mut browser = Self {
            _process: process,
            _profile: profile,
            stream,
            number: 0,
            complaints: Vec::new(),
        };
        browser.call("Runtime.enable", &json!({}));
        browser.call("Log.enable", &json!({}));
        browser.call("Page.navigate", &json!({ "url": url }));
        Some(browser)
    }

    /// A window so wide, as a phone's.
    pub(crate) fn narrow(&mut self, width: u32) {
        let metrics =
            json!({ "width": width, "height": 844, "deviceScaleFactor": 2, "mobile": true });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// The value of an expression in the page.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            &json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }),
        );
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer:#}"
        );
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true; a page that is not there yet has nothing of which it could be.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let expression =
            &format!("(() => {{ try {{ return {expression} }} catch {{ return false }} }})()");
        let begin = Instant::now();
        while self.evaluate(expression) != json!(true) {
            let body =
                |browser: &mut Self| browser.evaluate("document.body.innerText.slice(0, 2000)");
            assert!(begin.elapsed() < PATIENCE, "{expression}: {}", body(self));
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let message =
            json!({ "id": self.number, "method": method, "params": parameters }).to_string();
        self.send(message.as_bytes());
        loop {
            let answer: Value = serde_json::from_slice(&self.receive()).unwrap();
            if answer["id"] == self.number {
                assert!(answer["error"].is_null(), "{method}: {answer:#}");
                return answer["result"].clone();
            }
            match answer["method"].as_str() {
                Some("Runtime.exceptionThrown") => self.complaints.push(answer.to_string()),
                Some("Log.entryAdded") if answer["params"]["entry"]["level"] == "error" => {
                    self.complaints.push(answer.to_string());
                }
                _ => {}
            }
        }
    }

    /// One frame with the whole text; from the client it is masked (5.3), here with zeros.
    fn send(&mut self, text: &[u8]) {
        let mut frame = vec![0x81];
        match text.len() {
            short @ 0..126 => frame.push(0x80 | short as u8),
            long => {
                frame.push(0x80 | 127);
                frame.extend_from_slice(&(long as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text);
        self.stream.write_all(&frame).unwrap();
    }

    /// One message, of as many frames as it has.
    fn receive(&mut self) -> Vec<u8> {
        let mut message = Vec::new();
        loop {
            let mut head = [0; 2];
            self.stream.read_exact(&mut head).unwrap();
            let length = match head[1] & 0x7F {
                126 => {
                    let mut length = [0; 2];
                    self.stream.read_exact(&mut length).unwrap();
                    u64::from(u16::from_be_bytes(length))
                }
                127 => {
                    let mut length = [0; 8];
                    self.stream.read_exact(&mut length).unwrap();
                    u64::from_be_bytes(length)
                }
                short => u64::from(short),
            };
            let before = message.len();
            message.resize(before + length as usize, 0);
            self.stream.read_exact(&mut message[before..]).unwrap();
            // Pings and other control frames have numbers from 8 on.
            if head[0] & 0x0F >= 8 {
                message.truncate(before);
            } else if head[0] & 0x80 != 0 {
                return message;
            }
        }
    }
}

fn until<T>(mut there: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "the browser does not start");
        thread::sleep(Duration::from_millis(50));
    }
}

fn port(profile: &Path) -> Option<u16> {
    let text = fs::read_to_string(profile.join("DevToolsActivePort")).ok()?;
    text.lines().next()?.parse().ok()
}

/// The body of an answer that says its length; the connection stays open.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    )
    .ok()?;
    let mut input = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let (name, value) = match line.trim_end() {
            "" => break,
            line => line.split_once(':').unwrap_or((line, "")),
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}
