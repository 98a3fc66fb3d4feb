//! `softfabric watch`: once, in a pipe, of a recording that grows, on a terminal, and in a real browser.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::disallowed_methods, reason = "other programs run in real time")]

#[path = "support/browser.rs"]
mod browser;

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use softfabric_testkit::programs::{Ends, has};

use browser::Browser;

fn softfabric() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_softfabric"));
    command
        .env("NO_COLOR", "1")
        .env("COLUMNS", "120")
        .stdin(Stdio::null());
    command
}

fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(name)
}

/// A scenario, polled, as a recording in the folder.
fn record(folder: &Path, name: &str) -> PathBuf {
    let recording = folder.join("recording.jsonl");
    let run = softfabric()
        .arg("run")
        .arg(scenario(name))
        .args(["--no-report", "--quiet", "--poll", "200us", "--counters"])
        .arg(&recording)
        .output()
        .unwrap();
    assert_ne!(run.status.code(), Some(2), "{run:?}");
    recording
}

fn once(arguments: &[&str], source: &Path) -> Output {
    softfabric()
        .args(["watch", "--once"])
        .args(arguments)
        .arg(source)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn one_look_says_what_is_wrong_and_exits_like_a_diagnosis() {
    let output = once(&[], &scenario("diagnose_host_storm.toml"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.starts_with("host storm at h11 for 17 ms\n"), "{said}");
    assert!(
        said.contains("the ports that report pauses are symptoms"),
        "{said}"
    );
    let source = said.lines().find(|line| line.contains(" source ")).unwrap();
    assert!(source.starts_with("h11"), "the source stands first: {said}");
    assert!(said.contains("held by h11"), "{said}");
    let healthy = once(&[], &scenario("diagnose_healthy_load.toml"));
    assert_eq!(healthy.status.code(), Some(0), "{healthy:?}");
    assert!(text(&healthy.stdout).contains("nothing was wrong"));
    let document = once(&["--json"], &scenario("diagnose_host_storm.toml"));
    let document: Value = serde_json::from_slice(&document.stdout).unwrap();
    assert_eq!(document["episodes"][0]["place"], "h11");
    assert_eq!(document["episodes"][0]["since_ns"], 3_000_000);
    assert!(document["ports"][0]["queue_bytes"].is_u64(), "{document:#}");
    let deepest = document["trend"]["queue_bytes"].as_array().unwrap().iter();
    assert!(
        deepest.filter_map(Value::as_u64).max().unwrap() > 100_000,
        "queues were deep"
    );
}

#[test]
fn it_fits_narrow_terminals() {
    for width in [44, 60, 80, 120] {
        let output = softfabric()
            .env("COLUMNS", width.to_string())
            .args(["watch", "--once"])
            .arg(scenario("diagnose_host_storm.toml"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        for line in text(&output.stdout).lines() {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
        }
    }
}

#[test]
fn a_pipe_gets_a_line_for_what_begins_and_ends() {
    let output = softfabric()
        .arg("watch")
        .arg(scenario("diagnose_host_storm.toml"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stdout);
    let storm = said
        .lines()
        .position(|line| line.contains("begins   host storm at h11"))
        .unwrap();
    let slow = said
        .lines()
        .position(|line| line.contains("ends     slow receiver at h11"));
    assert!(slow.is_some_and(|slow| slow > storm), "{said}");
    assert!(
        said.lines().last().unwrap().contains("17 of 36 ports held"),
        "{said}"
    );
}

#[test]
fn nonsense_is_refused_with_what_is_wrong() {
    let refused = |arguments: &[&str]| {
        let output = softfabric().arg("watch").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        text(&output.stderr)
    };
    assert!(refused(&["nowhere.jsonl"]).contains("cannot read nowhere.jsonl"));
    assert!(refused(&["--once", "--root", "/nowhere"]).contains("/nowhere"));
    assert!(refused(&["--speed", "0", "x.jsonl"]).contains("above 0"));
    assert!(refused(&["--prometheus", "https://p"]).contains("https"));
    assert!(refused(&["--prometheus", "ftp://p"]).contains("it must be a URL"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baseline.json");
    fs::write(&file, "{\"softfabric_baseline\": 1, \"about\": 5}").unwrap();
    let said = refused(&["--baseline", file.to_str().unwrap(), "x.jsonl"]);
    assert!(
        said.contains("baseline.json") && said.contains("field `about`"),
        "{said}"
    );
}

/// A watch of a recording, and what it prints.
struct Watched {
    process: Ends,
    errors: BufReader<ChildStderr>,
}

impl Watched {
    fn start(arguments: &[&str], source: &Path) -> Self {
        let mut child = softfabric()
            .arg("watch")
            .arg(source)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self {
            process: Ends(child),
            errors,
        }
    }

    /// Where the page is served.
    fn address(&mut self) -> String {
        let mut line = String::new();
        self.errors.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("serving http://");
        address
            .unwrap_or_else(|| panic!("{line}"))
            .trim_end_matches('/')
            .to_owned()
    }
}

/// The first half of a recording has no storm yet; the second half is written while it is watched, a line in two pieces.
#[test]
fn a_recording_is_watched_while_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record(folder.path(), "diagnose_host_storm.toml");
    let whole = fs::read_to_string(&recording).unwrap();
    let storm = whole.find("{\"at_ns\":4000000,").unwrap();
    let growing = folder.path().join("growing.jsonl");
    fs::write(&growing, &whole[..storm + 5]).unwrap();
    let mut watched = Watched::start(&[], &growing);
    let mut output = BufReader::new(watched.process.0.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    while !line.contains("ports held") {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0);
    }
    let mut file = OpenOptions::new().append(true).open(&growing).unwrap();
    file.write_all(&whole.as_bytes()[storm + 5..]).unwrap();
    let mut said = String::new();
    while !said.contains("begins   host storm at h11") {
        assert_ne!(output.read_line(&mut said).unwrap(), 0, "{said}");
    }
}

/// A page goes on after a scenario's end; the pipe beside it has said how that was. A recording might still grow.
#[test]
fn the_end_is_said_once() {
    let storm = scenario("diagnose_host_storm.toml");
    let mut watched = Watched::start(&["--listen", "127.0.0.1:0"], &storm);
    watched.address();
    let mut output = BufReader::new(watched.process.0.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("ports held") {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0);
    }
    std::thread::sleep(Duration::from_millis(500));
    drop(watched);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

/// The body of what is at a path, and its head.
fn get(address: &str, path: &str, host: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// A name that would be markup, if it could.
#[test]
fn names_stay_names() {
    let folder = tempfile::tempdir().unwrap();
    let recording = record(folder.path(), "diagnose_host_storm.toml");
    let evil = "<img src=x onerror=alert(1)>";
    let changed = fs::read_to_string(&recording)
        .unwrap()
        .replace("\"h11\"", &format!("\"{evil}\""));
    fs::write(&recording, changed).unwrap();
    let mut watched = Watched::start(&["--listen", "127.0.0.1:0"], &recording);
    let address = watched.address();
    let begin = Instant::now();
    let page = loop {
        let (head, page) = get(&address, "/", &address);
        assert!(
            head.contains("Content-Security-Policy: default-src 'none';"),
            "{head}"
        );
        if page.contains("&lt;img") || begin.elapsed() > Duration::from_secs(20) {
            break page;
        }
    };
    assert!(
        page.contains("&lt;img src=x") && !page.contains("<img"),
        "{page}"
    );
    let (_, document) = get(&address, "/view.json", "localhost");
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["episodes"][0]["place"], evil);
    assert!(
        get(&address, "/view.json", "evil.example")
            .0
            .starts_with("HTTP/1.1 421")
    );
    assert!(
        get(&address, "/etc/passwd", &address)
            .0
            .starts_with("HTTP/1.1 404")
    );
    if let Some(mut browser) = Browser::open("names_stay_names", &format!("http://{address}/")) {
        browser.wait_for("document.querySelectorAll('#timeline li').length > 0");
        assert_eq!(browser.evaluate("document.images.length"), json!(0));
        assert_eq!(browser.complaints, [""; 0]);
    }
}

#[test]
fn a_browser_shows_the_source_its_evidence_and_fits_a_phone() {
    let test = "a_browser_shows_the_source_its_evidence_and_fits_a_phone";
    let folder = tempfile::tempdir().unwrap();
    let recording = record(folder.path(), "diagnose_host_storm.toml");
    let baseline = folder.path().join("baseline.json");
    let commissioned = softfabric()
        .arg("commission")
        .arg(scenario("diagnose_healthy_load.toml"))
        .args(["--quiet", "-o"])
        .arg(&baseline)
        .output()
        .unwrap();
    assert!(commissioned.status.success(), "{commissioned:?}");
    let arguments = [
        "--listen",
        "127.0.0.1:0",
        "--baseline",
        baseline.to_str().unwrap(),
    ];
    let mut watched = Watched::start(&arguments, &recording);
    let address = watched.address();
    let Some(mut browser) = Browser::open(test, &format!("http://{address}/")) else {
        return;
    };
    browser.wait_for("document.getElementById('title').textContent === 'host storm at h11'");
    let reach = browser.evaluate("document.getElementById('reach').textContent");
    let reach = reach.as_str().unwrap();
    assert!(
        reach.starts_with("17 of 36 ports are held") && reach.ends_with("symptoms of one source."),
        "{reach}"
    );
    let names_of = |state: &str| {
        format!("[...document.querySelectorAll('g.node.{state}')].map((g) => g.dataset.names)")
    };
    assert_eq!(browser.evaluate(&names_of("source")), json!(["h11"]));
    let held = browser.evaluate(&names_of("held"));
    assert!(held.as_array().unwrap().contains(&json!("h0")), "{held}");
    let colour = "getComputedStyle(document.querySelector('g.node.source .halo')).stroke";
    let calm = "getComputedStyle(document.querySelector('g.node.held .halo')).stroke";
    assert_ne!(browser.evaluate(colour), browser.evaluate(calm));
    assert_eq!(
        browser.evaluate("document.querySelectorAll('#charts svg').length"),
        json!(6)
    );
    // A click shows the whole chain of evidence, and it stays open when the next view comes.
    browser.evaluate("document.querySelector('#timeline button').click()");
    browser.evaluate("new Promise((done) => setTimeout(done, 2500))");
    let chain = browser.evaluate("document.querySelector('.chain').innerText");
    let chain = chain.as_str().unwrap();
    for words in [
        "rx_prio3_pause_duration",
        "held 100 % by",
        "price:",
        "Turning PFC off",
    ] {
        assert!(chain.contains(words), "{words}: {chain}");
    }
    let end = browser.evaluate("document.querySelector('.chain .trail li.end').textContent");
    assert_eq!(end, json!("h11"));
    let usual = browser.evaluate("document.getElementById('hosts-note').textContent");
    assert!(
        usual
            .as_str()
            .unwrap()
            .contains("against what each did at commissioning"),
        "{usual}"
    );
    for width in [390, 320] {
        browser.narrow(width);
        browser.evaluate("new Promise((done) => setTimeout(done, 1500))");
        let widest = browser.evaluate("document.documentElement.scrollWidth");
        assert_eq!(
            widest,
            json!(width),
            "the page is as wide as the window, with the evidence open"
        );
    }
    assert_eq!(browser.complaints, [""; 0]);
    // When the program ends, the page says so.
    drop(watched);
    browser.wait_for("document.getElementById('mode').textContent.includes('does not answer')");
}

/// On a terminal: it fills the screen, answers keys, and leaves everything as it was.
#[test]
fn a_terminal_is_left_as_it_was() {
    let test = "a_terminal_is_left_as_it_was";
    if !has(test, "script", "bsdutils") {
        return;
    }
    let command = format!(
        "stty rows 30 cols 70; stty -a > before; {} watch {}; echo code $?; stty -a > after",
        env!("CARGO_BIN_EXE_softfabric"),
        scenario("diagnose_host_storm.toml").display()
    );
    for keys in ["\r\r jkq", "\u{3}"] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("script")
            .current_dir(folder.path())
            .env("TERM", "xterm-256color")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut input = child.stdin.take().unwrap();
        let _ended = Ends(child);
        let mut seen = Vec::new();
        let mut typed = false;
        loop {
            let mut chunk = [0; 4_096];
            match output.read(&mut chunk) {
                Ok(0) | Err(_) => break,
                Ok(read) => seen.extend_from_slice(&chunk[..read]),
            }
            if !typed && String::from_utf8_lossy(&seen).contains("q quit") {
                input.write_all(keys.as_bytes()).unwrap();
                input.flush().unwrap();
                typed = true;
            }
            if String::from_utf8_lossy(&seen).contains("code ") {
                break;
            }
        }
        let seen = String::from_utf8_lossy(&seen).into_owned();
        assert!(seen.contains("host storm at h11"), "{seen}");
        assert!(seen.contains("code 0"), "{seen}");
        assert!(
            seen.contains("\u{1b}[?1049h") && seen.contains("\u{1b}[?1049l"),
            "the other screen comes and goes"
        );
        assert_eq!(
            keys.contains('\r'),
            seen.contains("from a symptom to the source"),
            "Enter shows the evidence: {seen}"
        );
        drop(input);
        let begin = Instant::now();
        let state = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        while state("after").is_empty() && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!state("before").is_empty());
        assert_eq!(state("before"), state("after"));
    }
}
