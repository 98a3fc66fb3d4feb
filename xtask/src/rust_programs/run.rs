//! Running the examples: alone, or one as server and one as client.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long one example may take.
const LIMIT: Duration = Duration::from_secs(30);

/// What is run, and what it says where all is well.
struct Example {
    package: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// What the client's command line has besides, if there are a server and a client.
    client: Option<&'static [&'static str]>,
    says: &'static [&'static str],
}

const EXAMPLES: [Example; 8] = [
    Example {
        package: "sideway",
        program: "ibv_devinfo",
        arguments: &[],
        client: None,
        says: &["softfabric0", "InfiniBand", "max_qp"],
    },
    Example {
        package: "sideway",
        program: "show_gids",
        arguments: &[],
        client: None,
        says: &["softfabric0", "RoCEv2"],
    },
    Example {
        package: "sideway",
        program: "rc_pingpong",
        arguments: &["-d", "softfabric0", "-n", "200", "-p", "18851"],
        client: Some(&["127.0.0.1"]),
        says: &["200 iters"],
    },
    Example {
        package: "sideway",
        program: "rc_pingpong",
        arguments: &[
            "-d",
            "softfabric0",
            "-n",
            "50",
            "-s",
            "65536",
            "-t",
            "-p",
            "18852",
        ],
        client: Some(&["127.0.0.1"]),
        says: &["50 iters"],
    },
    Example {
        package: "sideway",
        program: "rc_pingpong_split",
        arguments: &["-d", "softfabric0", "-n", "200", "-p", "18853"],
        client: Some(&["127.0.0.1"]),
        says: &["200 iters"],
    },
    Example {
        package: "sideway",
        program: "cmtime",
        arguments: &["-c", "20", "-p", "18854"],
        client: Some(&["-s", "127.0.0.1"]),
        says: &["Connect ", "Disconnect"],
    },
    Example {
        package: "sideway",
        program: "cmtime",
        arguments: &["-c", "20", "-q", "-p", "18855"],
        client: Some(&["-s", "127.0.0.1"]),
        says: &["Connect ", "Disconnect"],
    },
    Example {
        package: "ibverbs",
        program: "loopback",
        arguments: &[],
        client: None,
        says: &["sent", "received"],
    },
];

/// Runs a package's examples; says whether all did what they should.
pub(super) fn examples(package: &str, folder: &Path, library: &Path) -> Result<bool> {
    let mut good = true;
    for example in EXAMPLES.iter().filter(|example| example.package == package) {
        let problem = one(example, folder, library)?;
        let line = format!(
            "{package}: {} {}",
            example.program,
            example.arguments.join(" ")
        );
        match problem {
            None => println!("ok      {}", line.trim_end()),
            Some(problem) => {
                good = false;
                println!("FAILED  {}\n{problem}", line.trim_end());
            }
        }
    }
    Ok(good)
}

/// What went wrong, if something did.
fn one(example: &Example, folder: &Path, library: &Path) -> Result<Option<String>> {
    let start = |more: &[&str]| {
        Command::new(folder.join(example.program))
            .args(example.arguments)
            .args(more)
            .env("LD_LIBRARY_PATH", library)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", example.program))
    };
    let since = now();
    let Some(client) = example.client else {
        return finish(start(&[])?, since).map(|ended| ended.judge(example.says));
    };
    let mut server = start(&[])?;
    // Until the server listens, a client is refused and tries again.
    let problem = loop {
        let ended = finish(start(client)?, since)?;
        let problem = ended.judge(example.says);
        let gone = server.try_wait()?.is_some();
        if problem.is_none() || gone || since.elapsed() > LIMIT / 3 {
            break problem;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if problem.is_some() {
        let _ = server.kill();
    }
    let server = finish(server, since)?;
    Ok(problem
        .or_else(|| server.judge(&[]))
        .map(|problem| format!("{problem}\nserver: {}", server.said)))
}

struct Ended {
    success: bool,
    said: String,
}

impl Ended {
    fn judge(&self, says: &[&str]) -> Option<String> {
        let missing = says.iter().find(|word| !self.said.contains(**word));
        match (self.success, missing) {
            (true, None) => None,
            (true, Some(word)) => Some(format!("it does not say `{word}`: {}", self.said)),
            (false, _) => Some(format!("it failed: {}", self.said)),
        }
    }
}

/// Waits for a program's end; ends it itself after the limit.
fn finish(mut child: Child, since: Instant) -> Result<Ended> {
    while child.try_wait()?.is_none() {
        if since.elapsed() > LIMIT {
            let _ = child.kill();
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output()?;
    let said =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    Ok(Ended {
        success: output.status.success(),
        said: said.concat(),
    })
}

#[expect(clippy::disallowed_methods, reason = "real programs take real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_has_to_say_everything() {
        let ended = |success, said: &str| Ended {
            success,
            said: said.to_owned(),
        };
        assert_eq!(
            ended(true, "sent\nreceived").judge(&["sent", "received"]),
            None
        );
        let silent = ended(true, "sent").judge(&["sent", "received"]).unwrap();
        assert!(silent.contains("`received`"), "{silent}");
        let failed = ended(false, "sent received").judge(&["sent"]).unwrap();
        assert!(failed.contains("it failed"), "{failed}");
    }
}
