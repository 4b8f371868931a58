//! A PostgreSQL cluster of one test, from Debian's packages; stopped and removed when dropped.

use std::{
    fs,
    io::Write as _,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{
    network::TestNetwork,
    place,
    upstream::{free_port, wait_for_address},
};

const INITDB: [&str; 5] = [
    "--auth=trust",
    "--username=weir",
    "--encoding=UTF8",
    "--locale=C",
    "--no-sync",
];

pub struct Postgres {
    folder: TempDir,
    host: String,
    port: u16,
    /// The namespace of the machine that it runs on, if it is another one than this.
    machine: Option<String>,
    server: Option<Child>,
}

impl Postgres {
    /// Starts a fresh cluster.
    pub fn start() -> Self {
        let mut cluster = Self::stopped();
        cluster.run();
        cluster
    }

    /// Makes a fresh cluster that does not run yet.
    pub fn stopped() -> Self {
        let folder = make_folder();
        make_data(&folder.path().join("data"));
        Self {
            folder,
            host: "127.0.0.1".to_owned(),
            port: free_port(),
            machine: None,
            server: None,
        }
    }

    /// Makes a standby that follows this cluster, and starts it.
    pub fn start_standby(&self) -> Self {
        let folder = make_folder();
        let mut copy = as_database_user(&program("pg_basebackup"));
        copy.args(["-w", "-R", "-X", "stream", "-c", "fast", "--no-sync"])
            .args(["-h", &self.host, "-p", &self.port.to_string(), "-U", "weir"])
            .arg("-D")
            .arg(folder.path().join("data"));
        let output = copy.output().expect("pg_basebackup runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "pg_basebackup: {errors}");
        let mut standby = Self {
            folder,
            host: self.host.clone(),
            port: free_port(),
            machine: None,
            server: None,
        };
        standby.run();
        standby
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        self.sql("SELECT pg_promote(true, 30)");
    }

    /// Returns the URL of this cluster and another one, of which either may be the primary.
    pub fn url_with(&self, other: &Self) -> String {
        let (host, port) = (&self.host, self.port);
        let other = format!("{}:{}", other.host, other.port);
        format!("postgres://weir@{host}:{port},{other}/postgres?target_session_attrs=read-write")
    }

    /// Moves the cluster, which is not running yet, to a machine of a network, where it serves all machines.
    pub fn move_to(&mut self, network: &TestNetwork, machine: &str) {
        let rules = self.folder.path().join("data/pg_hba.conf");
        let mut rules = fs::OpenOptions::new()
            .append(true)
            .open(rules)
            .expect("initdb wrote the rules");
        writeln!(rules, "host all all {} trust", network.range()).expect("rules can be added");
        self.host = network.address(machine);
        self.port = 5432;
        self.machine = Some(network.namespace(machine));
    }

    pub fn run(&mut self) {
        let mut postgres = match &self.machine {
            Some(machine) => on_machine(machine, &program("postgres")),
            None => as_database_user(&program("postgres")),
        };
        postgres
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .arg("-k")
            .arg(self.folder.path());
        postgres.args(["-h", &self.host, "-p", &self.port.to_string()]);
        postgres.args(["-c", "fsync=off", "-c", "log_min_messages=fatal"]);
        let log = fs::File::create(self.folder.path().join("server.log"))
            .expect("a file in the temporary folder");
        self.server = Some(
            postgres
                .stderr(log)
                .stdout(Stdio::null())
                .spawn()
                .expect("postgres starts"),
        );
        wait_for_address(&self.host, self.port, "postgres");
        // The server listens before it lets anyone in.
        let started = Instant::now();
        while let Err(error) = self.try_sql("SELECT 1") {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "postgres lets no one in: {error}"
            );
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    /// Stops at once, as a crash or a failed machine would.
    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let id = server.id();
            // A stopped process is continued first.
            let _ = send("CONT", id, &children(id));
            let _ = send("QUIT", id, "");
            let _ = server.wait();
        }
    }

    /// Sends a signal to the server and to each process that serves a connection, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let server = self.server.as_ref().expect("the server runs").id();
        assert!(send(name, server, ""), "the server runs");
        // A process that serves a connection may end at any moment, and a stopped server starts no more of them.
        let _ = send(name, server, &children(server));
    }

    pub fn url(&self) -> String {
        format!("postgres://weir@{}:{}/postgres", self.host, self.port)
    }

    /// Runs statements with `psql`.
    pub fn sql(&self, statements: &str) -> String {
        self.try_sql(statements)
            .unwrap_or_else(|error| panic!("{error}\nin: {statements}"))
    }

    fn try_sql(&self, statements: &str) -> Result<String, String> {
        let mut psql = Command::new(program("psql"));
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
        ]);
        psql.args(["--command", statements, &self.url()]);
        let output = psql.output().expect("psql runs");
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the processes that a server has started, with spaces between.
fn children(server: u32) -> String {
    fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default()
}

/// Sends a signal to a server and other processes; `false` if one of them is gone.
fn send(signal: &str, server: u32, others: &str) -> bool {
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), &server.to_string()])
        .args(others.split_whitespace())
        .stderr(Stdio::null())
        .status();
    sent.expect("kill runs").success()
}

fn make_folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("weir-pg-").tempdir();
    let folder = folder.expect("a temporary folder");
    if let Some((user, group)) = unprivileged() {
        chown(folder.path(), Some(user), Some(group)).expect("root may give folders away");
    }
    folder
}

/// Makes the folder of a fresh cluster. The first one on this machine is kept, and the others are copies of it, which takes
/// half the time.
fn make_data(data: &Path) {
    let program = program("initdb");
    let version = program.ancestors().nth(2).and_then(Path::file_name);
    let version = version.expect("Debian's folder").to_string_lossy();
    let words = Sha256::digest(INITDB.join(" "));
    let kept = place::cache().join(format!(
        "postgresql-{version}-{:02x}{:02x}",
        words[0], words[1]
    ));
    if kept.exists() {
        return copy(&kept, data);
    }
    let mut initdb = as_database_user(&program);
    let output = initdb.args(INITDB).arg("--pgdata").arg(data).output();
    let output = output.expect("initdb runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "initdb: {errors}");
    fs::create_dir_all(place::cache()).expect("a cache");
    let draft = tempfile::tempdir_in(place::cache()).expect("a folder in the cache");
    copy(data, &draft.path().join("data"));
    let _ = fs::rename(draft.path().join("data"), kept); // another test may have been faster
}

/// Copies the folder of a cluster that does not run, for the user that runs it.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.expect("cp runs").success());
    if let Some((user, group)) = unprivileged() {
        let mut own = Command::new("chown");
        own.args(["-R", &format!("{user}:{group}")]).arg(to);
        assert!(own.status().expect("chown runs").success());
    }
}

/// Returns the newest installed version's program; Debian keeps them out of `PATH`.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<PathBuf> = versions
        .map(|version| version.path().join("bin").join(name))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found
        .pop()
        .unwrap_or_else(|| panic!("PostgreSQL's {name} is missing: run `cargo xtask test`"))
}

/// Runs a program as the package's own user, since PostgreSQL refuses to run as root.
fn as_database_user(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = unprivileged() {
        command.uid(user).gid(group);
    }
    command
        .current_dir("/")
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    command
}

/// Runs a program as that user in a network namespace, which only root may enter.
fn on_machine(namespace: &str, program: &Path) -> Command {
    let (user, group) = unprivileged().expect("networks of tests need root");
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", namespace, "setpriv", "--clear-groups"])
        .arg(format!("--reuid={user}"))
        .arg(format!("--regid={group}"))
        .arg(program)
        .current_dir("/")
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    command
}

fn unprivileged() -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;
    if fs::metadata("/proc/self").expect("there is /proc").uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("there are users");
    let user = users
        .lines()
        .find(|line| line.starts_with("postgres:"))
        .expect("the package makes its user");
    let mut parts = user
        .split(':')
        .skip(2)
        .map(|part| part.parse().expect("ids are numbers"));
    Some((
        parts.next().expect("a user id"),
        parts.next().expect("a group id"),
    ))
}
