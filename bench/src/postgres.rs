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

pub(crate) struct Postgres {
    folder: TempDir,
    pub(crate) port: u16,
    server: Child,
}

impl Postgres {
    /// Starts it on one core.
    pub(crate) fn start(core: &str) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("weir-bench-pg-")
            .tempdir()?;
        if let Some((user, group)) = unprivileged() {
            chown(folder.path(), Some(user), Some(group))?;
        }
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
        let port = free_port()?;
        let postgres = program("postgres")?;
        let mut server = as_database_user(Path::new("taskset"));
        server
            .args(["-c", core])
            .arg(postgres)
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path());
        server.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let cluster = Self {
            folder,
            port,
            server,
        };
        let asked = Instant::now();
        while let Err(error) = cluster.sql("SELECT 1") {
            if asked.elapsed() > Duration::from_secs(20) {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        cluster.sql(&format!(
            "{CREATE_TABLE}; {}; ANALYZE tickets;",
            insert_rows()
        ))?;
        Ok(cluster)
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://weir@127.0.0.1:{}/postgres", self.port)
    }

    /// Runs a statement several times over one connection, and returns how many milliseconds each took, as psql says.
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
        let file = self.folder.path().join("statements.sql");
        fs::write(&file, statements)?;
        let mut psql = Command::new(program("psql")?);
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"])
            .arg("--file")
            .arg(&file)
            .arg(self.url());
        let output = psql.output()?;
        if !output.status.success() {
            bail!("psql: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Fast shutdown; its folder goes with it.
        let _ = Command::new("kill")
            .args(["-INT", &self.server.id().to_string()])
            .status();
        let _ = self.server.wait();
    }
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
