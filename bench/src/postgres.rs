//! PostgreSQL with the table of tickets, on the generator's core: what Weir and its peers spend is counted, not this.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::{
    place::free_port,
    weir::{CREATE_TABLE, insert_rows},
};

pub(crate) struct PostgresServer {
    folder: TempDir,
    pub(crate) port: u16,
    core: String,
    /// `None` once it was stopped.
    server: Option<Child>,
}

impl PostgresServer {
    /// Starts it on one core.
    pub(crate) fn start(core: &str) -> anyhow::Result<Self> {
        let folder = make_folder()?;
        let data = folder.path().join("data");
        let mut initdb = as_database_user(&program("initdb")?);
        initdb.args([
            "--auth=trust",
            "--username=weir",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--pgdata",
        ]);
        let made = initdb.arg(&data).output()?;
        if !made.status.success() {
            bail!("initdb: {}", String::from_utf8_lossy(&made.stderr));
        }
        let mut cluster = Self {
            folder,
            port: free_port()?,
            core: core.to_owned(),
            server: None,
        };
        cluster.run()?;
        cluster.sql(&format!(
            "{CREATE_TABLE}; {}; ANALYZE tickets;",
            insert_rows()
        ))?;
        Ok(cluster)
    }

    /// Makes a standby that follows this server.
    pub(crate) fn start_standby(&self) -> anyhow::Result<Self> {
        let folder = make_folder()?;
        let mut copy = as_database_user(&program("pg_basebackup")?);
        copy.args(["-w", "-R", "-X", "stream", "-c", "fast", "--no-sync"])
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-U", "weir", "-D"])
            .arg(folder.path().join("data"));
        let copied = copy.output()?;
        if !copied.status.success() {
            bail!("pg_basebackup: {}", String::from_utf8_lossy(&copied.stderr));
        }
        let mut standby = Self {
            folder,
            port: free_port()?,
            core: self.core.clone(),
            server: None,
        };
        standby.run()?;
        Ok(standby)
    }

    /// Makes a standby the primary.
    pub(crate) fn promote(&self) -> anyhow::Result<()> {
        self.sql("SELECT pg_promote(true, 30);").map(drop)
    }

    /// Stops at once, as a failed machine does.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        if let Some(mut server) = self.server.take() {
            let mut stop = as_database_user(&program("pg_ctl")?);
            stop.args(["stop", "-m", "immediate", "-s", "-D"]);
            stop.arg(self.folder.path().join("data")).status()?;
            server.wait()?;
        }
        Ok(())
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let mut server = as_database_user(Path::new("taskset"));
        server
            .args(["-c", &self.core])
            .arg(program("postgres")?)
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .arg("-k")
            .arg(self.folder.path())
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        self.server = Some(server);
        let asked = Instant::now();
        while let Err(error) = self.sql("SELECT 1") {
            if asked.elapsed() > Duration::from_secs(20) {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    pub(crate) fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// Returns the URL of one database.
    pub(crate) fn url_of(&self, database: &str) -> String {
        format!("postgres://weir@127.0.0.1:{}/{database}", self.port)
    }

    /// Returns the URL of this server and another one, of which either may be the primary.
    pub(crate) fn url_with(&self, other: &Self) -> String {
        let (port, other) = (self.port, other.port);
        format!("postgres://weir@127.0.0.1:{port},127.0.0.1:{other}/postgres")
    }

    /// Runs a statement several times over one connection, and returns how many milliseconds each took, as reported by psql.
    pub(crate) fn times(&self, statement: &str, times: usize) -> anyhow::Result<Vec<f64>> {
        let printed = self.sql(&format!(
            "\\timing on\n{}",
            format!("{statement};\n").repeat(times)
        ))?;
        let taken = printed
            .lines()
            .filter_map(|line| line.strip_prefix("Time: ")?.split(' ').next());
        let taken: Vec<f64> = taken.map(str::parse).collect::<Result<_, _>>()?;
        if taken.len() != times {
            bail!("psql printed no times: {printed}");
        }
        Ok(taken)
    }

    /// Runs statements, and returns what psql prints.
    pub(crate) fn sql(&self, statements: &str) -> anyhow::Result<String> {
        self.sql_in("postgres", statements)
    }

    /// Returns the one number that a query of a database returns.
    pub(crate) fn number_in(&self, database: &str, query: &str) -> anyhow::Result<f64> {
        let printed = self.sql_in(
            database,
            &format!("\\pset tuples_only on\n\\pset format unaligned\n{query};"),
        )?;
        let number = printed.lines().find_map(|line| line.trim().parse().ok());
        number.with_context(|| format!("psql printed no number: {printed}"))
    }

    /// Runs statements in a database, and returns what psql prints.
    pub(crate) fn sql_in(&self, database: &str, statements: &str) -> anyhow::Result<String> {
        let file = self.folder.path().join("statements.sql");
        fs::write(&file, statements)?;
        let mut psql = Command::new(program("psql")?);
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"])
            .arg("--file")
            .arg(&file)
            .arg(self.url_of(database));
        let output = psql.output()?;
        if !output.status.success() {
            bail!("psql: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // Fast shutdown; its folder is removed with it.
        if let Some(mut server) = self.server.take() {
            let _ = Command::new("kill")
                .args(["-INT", &server.id().to_string()])
                .status();
            let _ = server.wait();
        }
    }
}

/// Makes the folder of a server, writable by its user.
fn make_folder() -> anyhow::Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix("weir-bench-pg-")
        .tempdir()?;
    if let Some((user, group)) = unprivileged() {
        chown(folder.path(), Some(user), Some(group))?;
    }
    Ok(folder)
}

/// Returns the newest installed version's program; Debian keeps them out of `PATH`.
pub(crate) fn program(name: &str) -> anyhow::Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let paths = versions.map(|version| version.path().join("bin").join(name));
    paths
        .filter(|path| path.exists())
        .max()
        .with_context(|| format!("PostgreSQL's {name} is missing"))
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

fn unprivileged() -> Option<(u32, u32)> {
    if fs::metadata("/proc/self").ok()?.uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let user = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut ids = user.split(':').skip(2).map(|part| part.parse().ok());
    Some((ids.next()??, ids.next()??))
}
