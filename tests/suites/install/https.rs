//! Components from a server that speaks TLS, with a certificate that only some clients trust.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_tests::{House, place, read_output};

use super::{altered, guest, house, keys, lies_there, sha256, sign};

/// Serves the files of a folder over TLS.
const SERVER: &str = r#"
import functools, http.server, ssl
files = functools.partial(http.server.SimpleHTTPRequestHandler, directory="served")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), files)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("server.pem", "server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// A server with a certificate for 127.0.0.1 by its own authority, `authority.pem`.
struct Tls {
    folder: TempDir,
    child: Child,
    port: u16,
}

impl Tls {
    fn start() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("weir-tls-")
            .tempdir()
            .expect("a temporary folder");
        fs::create_dir(folder.path().join("served")).expect("a folder in the temporary folder");
        let subject = |name: &str| format!("/CN={name}");
        certificate(
            folder.path(),
            "authority",
            &[
                "-subj",
                &subject("An authority"),
                "-addext",
                "keyUsage=keyCertSign",
            ],
        );
        let by = ["-CA", "authority.pem", "-CAkey", "authority.key"];
        let of = [
            "-subj",
            &subject("A server"),
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ];
        let server = [
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-addext",
            "extendedKeyUsage=serverAuth",
        ];
        certificate(folder.path(), "server", &[&by[..], &of, &server].concat());
        let python = place::present(
            place::cache().join("clients/python-mcp1/bin/python"),
            "cargo xtask test",
        );
        let mut child = Command::new(python)
            .args(["-c", SERVER])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python starts");
        let mut line = String::new();
        let listens =
            BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line);
        listens.expect("it says where it listens");
        let port = line.trim().parse().expect("a port");
        Self {
            folder,
            child,
            port,
        }
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.folder.path().join("served").join(name), content).expect("a file is served");
    }

    fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/made.wasm", self.port)
    }

    /// Installs for a user that trusts that authority, and no other.
    fn install(&self, house: &House, source: &str) -> (i32, String, String) {
        let mut command = house.weir(&["plugin", "install", source]);
        command
            .env("SSL_CERT_FILE", self.folder.path().join("authority.pem"))
            .env_remove("SSL_CERT_DIR");
        read_output(command.output().expect("weir starts"))
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes `NAME.pem` and `NAME.key`.
fn certificate(folder: &Path, name: &str, words: &[&str]) {
    let (key, certificate) = (format!("{name}.key"), format!("{name}.pem"));
    let output = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-noenc",
            "-days",
            "2",
        ])
        .args(["-keyout", &key, "-out", &certificate])
        .args(words)
        .current_dir(folder)
        .output()
        .expect("`openssl` makes certificates; install it");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn over_tls_whose_authority_is_known_it_is_installed_and_otherwise_not() {
    let maker = keys();
    let (house, server) = (house(&maker), Tls::start());
    let component = guest("tools-js");
    let url = server.url("127.0.0.1");
    server.put("made.wasm", &component);
    let refused = |answer: (i32, String, String), words: &str| {
        let (code, out, err) = answer;
        assert_eq!(code, 1, "{words}: {out} {err}");
        assert!(
            err.contains(words) && err.contains("nothing is installed"),
            "{words}: {err}"
        );
        assert!(!lies_there(&house), "{words}");
    };
    refused(server.install(&house, &url), "it has no signature");
    server.put("made.wasm.minisig", sign(&maker, &component));
    refused(house.run(&["plugin", "install", &url]), "cannot be fetched");
    refused(
        server.install(&house, &server.url("localhost")),
        "cannot be fetched",
    );
    house.write("made.wasm", &component);
    let digest = sha256(&house.path().join("made.wasm"));
    let pinned = format!("{url}@sha256:{digest}");
    server.put("made.wasm", altered(&component));
    refused(
        server.install(&house, &url),
        "its signature is not by maker",
    );
    refused(server.install(&house, &pinned), "was asked for");

    server.put("made.wasm", &component);
    for source in [&url, &pinned] {
        let (code, out, err) = server.install(&house, source);
        assert_eq!(code, 0, "{source}: {err}");
        assert!(
            out.contains("signed by maker") && out.contains(&digest),
            "{out}"
        );
        let origin =
            fs::read(house.path().join("plugins/tools-js.origin.json")).expect("an origin");
        let origin: Value = serde_json::from_slice(&origin).expect("JSON");
        assert_eq!(
            origin,
            json!({"source": url, "sha256": digest, "signed_by": "maker"})
        );
    }
}
