//! Foreign web services: json-server over a file, Datasette over a database, plain or with TLS, Prism over a document.

use std::{
    fs,
    net::TcpListener,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::foreign;

/// Serves `{collection: [record, …]}` with create, update and delete; killed when dropped.
pub struct JsonServer {
    _running: Running,
    pub base: String,
    _folder: TempDir,
}

impl JsonServer {
    /// Starts the service. `id` names the key field of every collection.
    pub fn start(database: &Value, id: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("db.json");
        fs::write(&file, database.to_string()).expect("a file in the temporary folder");
        let port = free_port();
        let mut command = foreign::node();
        command.arg(foreign::node_module("json-server/lib/cli/bin.js"));
        command
            .args([
                "--host",
                "127.0.0.1",
                "--port",
                &port.to_string(),
                "--id",
                id,
                "--quiet",
            ])
            .arg(&file);
        let running = Running::silent(&mut command, "json-server");
        let server = Self {
            _running: running,
            base: format!("http://127.0.0.1:{port}"),
            _folder: folder,
        };
        wait_for_port(port, "json-server");
        server
    }
}

/// Answers as an OpenAPI document describes, with its examples or with values that fit its schemas; killed when dropped.
pub struct Mock {
    _running: Running,
    pub base: String,
}

impl Mock {
    pub fn start(document: &Path) -> Self {
        let port = free_port();
        let mut command = foreign::node();
        command.arg(foreign::node_module_in(
            "openapi",
            "@stoplight/prism-cli/dist/index.js",
        ));
        command
            .args(["mock", "--host", "127.0.0.1", "--port", &port.to_string()])
            .arg(document);
        let running = Running::silent(&mut command, "prism");
        let mock = Self {
            _running: running,
            base: format!("http://127.0.0.1:{port}"),
        };
        // It reads a document of megabytes for minutes where others work, too.
        wait_for_port_within(Duration::from_secs(240), port, "prism");
        mock
    }
}

/// A program that is killed when dropped, with all that it started: the program called `node` may start the real one.
pub struct Running(Child);

impl Running {
    pub fn start(command: &mut Command, name: &str) -> Self {
        command.stdin(Stdio::null()).process_group(0);
        Self(
            command
                .spawn()
                .unwrap_or_else(|error| panic!("{name} does not start: {error}")),
        )
    }

    /// Starts a program whose output is discarded.
    pub fn silent(command: &mut Command, name: &str) -> Self {
        Self::start(command.stdout(Stdio::null()).stderr(Stdio::null()), name)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-KILL", "--", &format!("-{}", self.0.id())])
            .status();
        let _ = self.0.wait();
    }
}

/// Serves a SQLite file, read-only; killed when dropped.
pub struct Datasette {
    _running: Running,
    pub base: String,
}

impl Datasette {
    pub fn start(database: &Path, certificate: Option<&Certificate>) -> Self {
        let port = free_port();
        let mut command = foreign::python("python-services");
        command
            .args([
                "-m",
                "datasette",
                "serve",
                "--host",
                "127.0.0.1",
                "--port",
                &port.to_string(),
            ])
            .arg(database);
        if let Some(Certificate { folder }) = certificate {
            command
                .arg("--ssl-keyfile")
                .arg(folder.path().join("server.key"));
            command
                .arg("--ssl-certfile")
                .arg(folder.path().join("server.pem"));
        }
        let running = Running::silent(&mut command, "Datasette");
        let scheme = if certificate.is_some() {
            "https"
        } else {
            "http"
        };
        let server = Self {
            _running: running,
            base: format!("{scheme}://127.0.0.1:{port}"),
        };
        wait_for_port(port, "Datasette");
        server
    }
}

/// A certificate and its own authority, which has signed it.
pub struct Certificate {
    folder: TempDir,
}

impl Certificate {
    /// Makes a certificate. `name` is the host or address that it is for.
    pub fn of(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = foreign::python("python-services");
        command
            .args(["-m", "trustme", "--quiet", "--identities", name, "--dir"])
            .arg(folder.path());
        assert!(
            command.status().expect("trustme starts").success(),
            "trustme makes no certificate"
        );
        Self { folder }
    }

    /// Returns the authority's certificate in PEM.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("client.pem")
    }
}

/// Returns a free port, a different one each time. It is below those that the kernel assigns to sockets without one.
pub fn free_port() -> u16 {
    const FIRST: u32 = 20_000;
    const COUNT: u32 = 12_000;
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Each process of tests begins elsewhere.
    let begin = std::process::id().wrapping_mul(100);
    let ports = (0..COUNT)
        .map(|_| FIRST + begin.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % COUNT);
    let mut ports = ports.map(|port| u16::try_from(port).expect("it is below 32,000"));
    ports
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}

pub fn wait_for_port(port: u16, what: &str) {
    wait_for_port_within(Duration::from_secs(60), port, what);
}

pub fn wait_for_address(host: &str, port: u16, what: &str) {
    wait_within(Duration::from_secs(60), host, port, what);
}

fn wait_for_port_within(limit: Duration, port: u16, what: &str) {
    wait_within(limit, "127.0.0.1", port, what);
}

fn wait_within(limit: Duration, host: &str, port: u16, what: &str) {
    let started = Instant::now();
    while std::net::TcpStream::connect((host, port)).is_err() {
        assert!(
            started.elapsed() < limit,
            "{what} does not listen on {host}:{port}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server of buckets that speaks S3 and keeps them in memory; killed when dropped.
pub struct BucketServer {
    _running: Running,
}

impl BucketServer {
    pub fn start(port: u16) -> Self {
        let mut command = foreign::python("python-buckets");
        let port_text = port.to_string();
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port_text]);
        let running = Running::silent(&mut command, "moto");
        wait_for_port(port, "moto");
        Self { _running: running }
    }
}
