//! A Prometheus behind TLS that wants to know who asks: Python's server, with a certificate that openssl makes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use softfabric_testkit::programs::{Ends, has};

/// Answers those who show the token or the password, with one counter that grows, and says on which port it listens.
const SERVER: &str = r#"
import http.server, json, ssl, sys, urllib.parse
ACCEPTED = ("Bearer secret-token", "Basic bWU6b3BlbiBzZXNhbWU=")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        granted = self.headers.get("Authorization") in ACCEPTED
        query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
        values = []
        if granted:
            end = float(query["end"][0])
            values = [[end - 60 + 15 * step, str(1000 * step)] for step in range(5)]
        metric = {"__name__": "node_infiniband_port_data_transmitted_bytes_total",
                  "instance": "gpu17:9100", "device": "mlx5_0", "port": "1"}
        answer = {"status": "success", "data": {"resultType": "matrix",
                  "result": [{"metric": metric, "values": values}]}}
        body = json.dumps(answer).encode()
        self.send_response(200 if granted else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + "/cert.pem", sys.argv[1] + "/key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

fn certificate(folder: &Path) -> bool {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ])
        .args([
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output()
        .unwrap();
    made.status.success()
}

#[test]
fn a_prometheus_behind_tls_is_asked_with_credentials() {
    let test = "a_prometheus_behind_tls_is_asked_with_credentials";
    if !has(test, "openssl", "openssl") || !has(test, "python3", "python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(certificate(folder.path()));
    let mut child = Command::new("python3")
        .args(["-c", SERVER])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    let output = child.stdout.take().unwrap();
    let _server = Ends(child);
    BufReader::new(output).read_line(&mut port).unwrap();
    let url = format!("https://localhost:{}", port.trim());
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let ca = folder.path().join("cert.pem").display().to_string();
    let (token, pair) = (
        file("token", "secret-token\n"),
        file("pair", "me:open sesame\n"),
    );
    let stale = file("stale", "another\n");
    let ask = |arguments: &[&str], variable: &str| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_softfabric"));
        command
            .env("NO_COLOR", "1")
            .env("SOFTFABRIC_PROMETHEUS_BEARER", variable);
        if variable.is_empty() {
            command.env_remove("SOFTFABRIC_PROMETHEUS_BEARER");
        }
        let asked = ["diagnose", "--json", "--prometheus", &url];
        command.args(asked).args(arguments).output().unwrap()
    };
    let is_read = |output: Output| {
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains("\"watched\": \"60s\""),
            "{text} {:?}",
            output.stderr
        );
    };
    is_read(ask(&["--ca", &ca, "--bearer", &token], ""));
    is_read(ask(&["--ca", &ca, "--basic", &pair], ""));
    is_read(ask(&["--ca", &ca], "secret-token"));
    let refused = |output: Output, why: &str| {
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(why), "{error}");
    };
    refused(ask(&["--ca", &ca], ""), "401");
    refused(ask(&["--ca", &ca, "--bearer", &stale], ""), "401");
    // Nobody vouches for it.
    refused(ask(&["--bearer", &token], ""), "certificate");
    refused(
        ask(&["--ca", &token, "--bearer", &token], ""),
        "no certificate",
    );
}
