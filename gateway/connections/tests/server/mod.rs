//! A PostgreSQL server of a test's own, in a temporary folder, reached by a socket there.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub(crate) struct Server {
    folder: tempfile::TempDir,
    programs: PathBuf,
}

impl Server {
    /// Sets up a server without starting it.
    pub(crate) fn new() -> Self {
        let server = Self {
            folder: tempfile::tempdir().expect("a folder"),
            programs: programs(),
        };
        let folder = server.folder.path();
        if is_root() {
            let status = Command::new("chown")
                .arg("postgres")
                .arg(folder)
                .status()
                .expect("chown runs");
            assert!(status.success());
        }
        let options = [
            "-A",
            "trust",
            "-U",
            "weir",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ];
        server.run("initdb", &[&["-D", &server.data()], &options[..]].concat());
        server
    }

    pub(crate) fn started() -> Self {
        let server = Self::new();
        server.start();
        server
    }

    pub(crate) fn start(&self) {
        self.start_with("-c listen_addresses=");
    }

    /// Starts the server on a port of this machine too, with TLS, for users whose passwords are asked for in different
    /// ways. Returns the port. The certificate names `localhost` and comes from the authority in `ca.pem`.
    #[allow(dead_code, reason = "some tests with a server do not use this")]
    pub(crate) fn start_with_tls(&self) -> u16 {
        let script = "set -e; umask 077
            openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority
            openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
            echo subjectAltName=DNS:localhost > names
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names
            chmod a+r ca.pem";
        let output = self
            .command("sh")
            .args(["-c", script])
            .output()
            .expect("a shell");
        assert!(
            output.status.success(),
            "openssl: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let rules = "local all weir trust
            hostssl all scram all scram-sha-256
            hostssl all md5 all md5
            host all plain all password\n";
        fs::write(Path::new(&self.data()).join("pg_hba.conf"), rules).expect("the rules");
        // The kernel gives ports from 32,768 on to sockets that name none.
        let mut ports = 20_000 + (std::process::id() % 10_000) as u16..32_000;
        let port = ports
            .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .expect("a free port");
        let folder = self.folder.path().display();
        self.start_with(&format!(
            "-c listen_addresses=127.0.0.1 -p {port} -c ssl=on -c ssl_cert_file={folder}/server.pem -c ssl_key_file={folder}/server.key"
        ));
        port
    }

    fn start_with(&self, more: &str) {
        let folder = self.folder.path().display();
        let options = format!("-k {folder} -c fsync=off -c max_connections=40 {more}");
        let log = format!("{folder}/log");
        self.run(
            "pg_ctl",
            &[
                "-D",
                &self.data(),
                "-w",
                "-l",
                &log,
                "-o",
                &options,
                "start",
            ],
        );
    }

    pub(crate) fn stop(&self) {
        self.run(
            "pg_ctl",
            &["-D", &self.data(), "-w", "-m", "immediate", "stop"],
        );
    }

    pub(crate) fn url(&self) -> String {
        format!(
            "postgresql://weir@localhost/postgres?host={}",
            self.folder.path().display()
        )
    }

    #[allow(dead_code, reason = "some tests with a server do not use this")]
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs statements as psql does.
    pub(crate) fn script(&self, text: &str) {
        let socket = self.folder.path().display().to_string();
        let port = fs::read_to_string(Path::new(&self.data()).join("postmaster.pid"))
            .expect("a running server");
        let port = port.lines().nth(3).expect("its port");
        self.run(
            "psql",
            &[
                "-X",
                "-q",
                "-v",
                "ON_ERROR_STOP=1",
                "-h",
                &socket,
                "-p",
                port,
                "-U",
                "weir",
                "-d",
                "postgres",
                "-c",
                text,
            ],
        );
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.programs.join(program);
        let mut command = self.command(&program.display().to_string());
        let status = command
            .args(arguments)
            .status()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        assert!(status.success(), "{} {arguments:?}", program.display());
    }

    /// Runs a program as the user its package made, since the server refuses to run as root.
    fn command(&self, program: &str) -> Command {
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--", program]);
            command
        } else {
            Command::new(program)
        };
        command
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            if Path::new(&self.data()).join("postmaster.pid").exists() {
                self.stop();
            }
        }));
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// Finds the programs, which Debian keeps out of the PATH, in one folder for each version.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<_> = versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_default()
}
