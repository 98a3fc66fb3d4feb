//! The HTML report in a real browser: its script runs, every chart is drawn, nothing is complained of.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/chromium.rs"]
mod chromium;

use std::fs;
use std::process::Command;

/// Load the page, let its script run, and print what it has become.
const FLAGS: &[&str] = &[
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
    "--window-size=1280,2000",
    "--dump-dom",
];

const SCENARIO: &str = r#"
[topology]
kind = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 4

[switch]
buffer = "2MiB"
ecn = [{ kmin = "20KB", kmax = "200KB", pmax = 0.1 }]

[[workload]]
kind = "incast"
from = ["h0..h5"]
to = "h7"
bytes = "2MB"

[[workload]]
kind = "incast"
from = ["h0..h3"]
to = "h6"
bytes = "20KB"
"#;

#[test]
fn a_browser_draws_every_chart() {
    let Some(seen) = Seen::of(
        "a_browser_draws_every_chart",
        &["run", "small.toml", "--quiet", "--report", "page.html"],
    ) else {
        return;
    };
    assert_eq!(seen.charts, 6, "all kinds of charts");
    assert!(seen.drawn.contains("leaf0"), "the topology is there");
}

#[test]
fn a_browser_draws_a_comparison() {
    let Some(seen) = Seen::of(
        "a_browser_draws_a_comparison",
        &["compare", "small.toml", "--quiet", "--html", "page.html"],
    ) else {
        return;
    };
    assert_eq!(seen.charts, 1, "the curve of completion times");
    let bars = seen.drawn.matches("class=\"fill\"").count();
    assert!(bars >= 3 * 3, "{bars} bars");
}

/// A page as a browser has drawn it: all its charts, without a complaint.
struct Seen {
    charts: usize,
    drawn: String,
}

impl Seen {
    /// The page that the program writes with these arguments; `None`, and a word about it, where no browser is installed.
    fn of(test: &str, arguments: &[&str]) -> Option<Self> {
        let browser = chromium::installed(test)?;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("small.toml"), SCENARIO).unwrap();
        let run = Command::new(env!("CARGO_BIN_EXE_softfabric"))
            .current_dir(folder.path())
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        let page = folder.path().join("page.html");
        let output = Command::new("timeout")
            .args(["120", browser])
            .args(chromium::FLAGS)
            .args(FLAGS)
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ))
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        let drawn = String::from_utf8_lossy(&output.stdout).into_owned();
        let source = fs::read_to_string(&page).unwrap();
        let charts = source.matches(" data-chart=\"").count();
        assert_eq!(
            drawn.matches("<canvas").count(),
            charts,
            "canvases in the page"
        );
        let log = String::from_utf8_lossy(&output.stderr);
        let complaints: Vec<&str> = log
            .lines()
            .filter(|line| line.contains(":CONSOLE"))
            .collect();
        assert_eq!(complaints, [""; 0], "the page's script complained");
        Some(Self { charts, drawn })
    }
}
