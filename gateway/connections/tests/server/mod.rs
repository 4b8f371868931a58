//! A PostgreSQL server of a test's own, in a temporary folder, reached by a socket there.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub(crate) struct Server {
    folder: tempfile::TempDir,
    programs: PathBuf,
}

impl Server {
    /// Set up, not started.
    pub(crate) fn new() -> Self {
        let server = Self { folder: tempfile::tempdir().expect("a folder"), programs: programs() };
        let folder = server.folder.path();
        if is_root() {
            let status = Command::new("chown").arg("postgres").arg(folder).status().expect("chown runs");
            assert!(status.success());
        }
        let options = ["-A", "trust", "-U", "weir", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"];
        server.run("initdb", &[&["-D", &server.data()], &options[..]].concat());
        server
    }

    pub(crate) fn started() -> Self {
        let server = Self::new();
        server.start();
        server
    }

    pub(crate) fn start(&self) {
        let folder = self.folder.path().display();
        let options = format!("-k {folder} -c listen_addresses= -c fsync=off -c max_connections=40");
        let log = format!("{folder}/log");
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-l", &log, "-o", &options, "start"]);
    }

    pub(crate) fn stop(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-m", "immediate", "stop"]);
    }

    pub(crate) fn url(&self) -> String {
        format!("postgresql://weir@localhost/postgres?host={}", self.folder.path().display())
    }

    /// Runs statements as psql does.
    pub(crate) fn script(&self, text: &str) {
        let socket = self.folder.path().display().to_string();
        self.run(
            "psql",
            &["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", &socket, "-U", "weir", "-d", "postgres", "-c", text],
        );
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    /// The server refuses to run as root, so there it runs as the user its package made.
    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(&program);
            command
        } else {
            Command::new(&program)
        };
        command.args(arguments).current_dir(self.folder.path()).stdout(Stdio::null()).stdin(Stdio::null());
        let status = command.status().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        assert!(status.success(), "{} {arguments:?}", program.display());
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

/// Debian keeps them out of the PATH, one folder a version.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> =
        versions.map(|version| version.path().join("bin")).filter(|bin| bin.join("initdb").exists()).collect();
    found.sort();
    found.pop().unwrap_or_default()
}
