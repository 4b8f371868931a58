//! A MariaDB server of a test process's own, from Debian's packages, in a temporary folder, reached by a socket there. A
//! shell ends it, and removes the folder, when the process that started it is gone.

#![allow(
    unreachable_pub,
    reason = "the harness of the tests uses this file, too"
)]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

static SHARED: OnceLock<MariadbServer> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

pub struct MariadbServer {
    folder: PathBuf,
    /// The shells, one for each start. A server ends, and the folder goes, when their input is closed.
    lifelines: Vec<(Child, ChildStdin)>,
}

impl MariadbServer {
    /// Returns the server that all tests of the process share; each makes a database of its own.
    pub fn shared() -> &'static Self {
        SHARED.get_or_init(|| Self::started(&["--skip-networking"]))
    }

    /// Starts a server with options.
    pub fn started(options: &[&str]) -> Self {
        let mut server = Self::new();
        server.start(options);
        server
    }

    /// Sets up a server without starting it.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("weir-maria-")
            .tempdir()
            .expect("a temporary folder");
        let data = folder.path().join("data");
        let mut install = Command::new(program("mariadb-install-db"));
        install
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            // Temporary tables of servers that begin at the same time have the same names.
            .arg(format!("--tmpdir={}", folder.path().display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .args([
                "--skip-name-resolve",
                "--innodb-log-file-size=4M",
                "--innodb-use-native-aio=0",
            ]);
        if is_root() {
            install.arg("--user=root");
        }
        let output = install.output().expect("mariadb-install-db runs");
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        assert!(output.status.success(), "mariadb-install-db: {printed}");
        Self {
            folder: folder.keep(),
            lifelines: Vec::new(),
        }
    }

    pub fn start(&mut self, options: &[&str]) {
        let folder = self.folder.display();
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "folder=$1; shift; \"$@\" >\"$folder/log\" 2>&1 & cat >/dev/null; kill -9 $!; wait; rm -rf \"$folder\"",
            "sh",
        ]);
        shell
            .arg(&self.folder)
            .arg(program("mariadbd"))
            .arg("--no-defaults")
            .arg(format!("--datadir={folder}/data"))
            .arg(format!("--socket={folder}/s.sock"))
            .arg(format!("--pid-file={folder}/pid"))
            .arg(format!("--tmpdir={folder}"))
            .args([
                "--skip-log-bin",
                "--skip-name-resolve",
                "--innodb-log-file-size=4M",
            ])
            .args([
                "--innodb-buffer-pool-size=32M",
                "--innodb-flush-log-at-trx-commit=0",
            ])
            // A character set that is not the one of connections, so that an adapter that forgets to say which is caught.
            .args(["--character-set-server=latin1", "--max-allowed-packet=64M"])
            // The kernel has few places for asynchronous requests, and every server asks for many.
            .arg("--innodb-use-native-aio=0")
            .args(options);
        if is_root() {
            shell.arg("--user=root");
        }
        let mut child = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let stdin = child.stdin.take().expect("its input");
        self.lifelines.push((child, stdin));
        let begin = Instant::now();
        while let Err(error) = self.run("", "SELECT 1") {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "MariaDB takes no login: {error}\n{log}"
            );
            thread::sleep(Duration::from_millis(25));
        }
    }

    /// Ends the server at once, as a crash would. It may be started again.
    #[allow(dead_code, reason = "some tests with a server do not use this")]
    pub fn stop(&self) {
        let pid = fs::read_to_string(self.folder.join("pid")).expect("a running server");
        let process = Path::new("/proc").join(pid.trim());
        let killed = Command::new("kill").args(["-9", pid.trim()]).status();
        assert!(killed.expect("kill runs").success());
        // What is ended but not waited for has no memory any more.
        while fs::read_to_string(process.join("statm"))
            .is_ok_and(|memory| !memory.starts_with("0 "))
        {
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[allow(dead_code, reason = "some tests with a server do not use this")]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a database, and returns the URL of it for an account of its name that has rights on it alone.
    pub fn database(&self) -> String {
        let name = format!("d{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        self.script(
            "",
            &format!(
                "CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
                 CREATE USER {name}@localhost; GRANT ALL ON {name}.* TO {name}@localhost;"
            ),
        );
        self.url(&name)
    }

    fn url(&self, database: &str) -> String {
        let folder = self.folder.display();
        format!("mysql://{database}@localhost/{database}?socket={folder}/s.sock")
    }

    /// Runs statements as `root`, in the database that a URL or a name says.
    pub fn script(&self, database: &str, text: &str) {
        if let Err(error) = self.run(database, text) {
            panic!("{error}\nin: {text}");
        }
    }

    fn run(&self, database: &str, text: &str) -> Result<(), String> {
        let path = database.split('?').next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let modes = "STRICT_ALL_TABLES,ANSI_QUOTES,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO";
        let mut client = Command::new(program("mariadb"))
            .arg("--no-defaults")
            .arg(format!("--socket={}/s.sock", self.folder.display()))
            .arg(format!(
                "--init-command=SET sql_mode='{modes}', time_zone='+00:00'"
            ))
            .args(["--user=root", "--default-character-set=utf8mb4", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("mariadb runs");
        let mut stdin = client.stdin.take().expect("its input");
        // A client that was refused reads nothing.
        let _ = stdin.write_all(text.as_bytes());
        drop(stdin);
        let output = client.wait_with_output().expect("mariadb ends");
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

impl Default for MariadbServer {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for MariadbServer {
    fn drop(&mut self) {
        for (mut child, stdin) in self.lifelines.drain(..) {
            drop(stdin);
            let _ = child.wait();
        }
    }
}

fn program(name: &str) -> PathBuf {
    let found = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"]
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.exists());
    found.unwrap_or_else(|| panic!("MariaDB's {name} is missing: run `cargo xtask test`"))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}
