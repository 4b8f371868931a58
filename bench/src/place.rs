//! Paths: the repository, the cache with the installed peers, the programs next to this one.

use std::{
    env,
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};
use tempfile::TempDir;

use crate::{mariadb::TicketDatabase, postgres::PostgresServer, rows::BenchDatabase};

pub(crate) struct BenchPaths {
    pub(crate) repository: PathBuf,
    /// `WEIR_CACHE`, as `cargo xtask bench` hands it down.
    pub(crate) cache: PathBuf,
    /// Folders of servers, removed afterwards, or by the next run if this one is killed.
    pub(crate) scratch: PathBuf,
    /// The core of servers, as `taskset` takes it.
    pub(crate) server_core: String,
    /// The core of the generator, and of everything else that is not measured.
    pub(crate) load_core: String,
    peers: PathBuf,
    postgres: Option<PostgresServer>,
    mariadb: Option<TicketDatabase>,
    /// Dropped after the servers, which are fields above.
    _scratch: TempDir,
}

impl BenchPaths {
    pub(crate) fn find() -> anyhow::Result<Self> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("bench/ lies in the repository")?;
        let cache = env::var_os("WEIR_CACHE")
            .context("run `cargo xtask bench`: it installs what is measured")?;
        remove_left_scratch(&env::temp_dir())?;
        let scratch = tempfile::Builder::new()
            .prefix(&format!("{SCRATCH}{}-", std::process::id()))
            // The user of a database server goes through it.
            .permissions(Permissions::from_mode(0o755))
            .tempdir()?;
        // All folders that this process makes lie there.
        let _ = tempfile::env::override_temp_dir(scratch.path());
        let (server_core, load_core) = cores()?;
        Ok(Self {
            repository: repository.to_owned(),
            cache: cache.into(),
            scratch: scratch.path().to_owned(),
            server_core,
            load_core,
            peers: scratch.path().join("peers"),
            postgres: None,
            mariadb: None,
            _scratch: scratch,
        })
    }

    /// Leaves the servers' core to them: this process moves to the generator's. Fails if both are the same core.
    pub(crate) fn keep_off_the_server_core(&self) -> anyhow::Result<()> {
        ensure!(
            self.server_core != self.load_core,
            "a server and its generator need a core each, and this process may use one (core {})",
            self.server_core
        );
        let mut own = CpuSet::new();
        own.set(self.load_core.parse()?)?;
        Ok(sched_setaffinity(THIS_PROCESS, &own)?)
    }

    pub(crate) fn both_cores(&self) -> String {
        format!("{},{}", self.server_core, self.load_core)
    }

    /// Returns a program of this workspace, built with this one.
    pub(crate) fn binary(&self, name: &str) -> PathBuf {
        let own = env::current_exe().unwrap_or_default();
        own.parent().unwrap_or(Path::new(".")).join(name)
    }

    /// Returns the folder of one installed peer.
    pub(crate) fn peer(&self, name: &str) -> PathBuf {
        self.cache.join("clients").join(name)
    }

    /// Returns a plugin that `cargo xtask plugins --guests` or `cargo xtask bench` built.
    pub(crate) fn guest(&self, name: &str) -> PathBuf {
        self.cache.join("test-guests").join(name)
    }

    /// Makes the folder for one peer's configuration and data; it is removed with this value.
    pub(crate) fn peer_folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.peers.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    pub(crate) fn servers(&self) -> PathBuf {
        self.repository.join("bench/servers")
    }

    /// Starts a database server unless it runs.
    pub(crate) fn start_database(&mut self, database: BenchDatabase) -> anyhow::Result<()> {
        match database {
            BenchDatabase::Postgres if self.postgres.is_none() => {
                self.postgres = Some(PostgresServer::start(&self.load_core)?);
            }
            BenchDatabase::Mariadb if self.mariadb.is_none() => {
                self.mariadb = Some(TicketDatabase::start()?);
            }
            BenchDatabase::Sqlite | BenchDatabase::Postgres | BenchDatabase::Mariadb => {}
        }
        Ok(())
    }

    pub(crate) fn mariadb(&self) -> anyhow::Result<&TicketDatabase> {
        self.mariadb.as_ref().context("MariaDB does not run")
    }

    pub(crate) fn postgres(&self) -> anyhow::Result<&PostgresServer> {
        self.postgres.as_ref().context("PostgreSQL does not run")
    }

    pub(crate) fn postgres_url(&self) -> anyhow::Result<String> {
        Ok(self.postgres()?.url())
    }
}

/// The beginning of a scratch folder's name; the number of its process follows.
const SCRATCH: &str = "weir-bench-";

/// Removes the scratch folders of runs that were killed: they hold gigabytes.
fn remove_left_scratch(temp: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(temp)?.flatten() {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix(SCRATCH)?.split_once('-'))
            .and_then(|(process, _)| process.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_dir_all(entry.path()); // it may be of another user
        }
    }
    Ok(())
}

const THIS_PROCESS: Pid = Pid::from_raw(0);

/// Returns the first two cores that this process may use; the first one twice if there is no other.
fn cores() -> anyhow::Result<(String, String)> {
    let allowed = sched_getaffinity(THIS_PROCESS)?;
    let mut cores = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false));
    let first = cores
        .next()
        .context("a process may use at least one core")?;
    Ok((first.to_string(), cores.next().unwrap_or(first).to_string()))
}

pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn folders_of_runs_that_ended_are_removed() {
        let temp = tempfile::tempdir().expect("a folder");
        let own = format!("{SCRATCH}{}-a", std::process::id());
        // No process has this number: the kernel's highest is 4,194,304.
        for name in [
            own.as_str(),
            "weir-bench-4999999-b",
            "weir-bench-notes",
            "other",
        ] {
            fs::create_dir(temp.path().join(name)).expect("a folder");
        }
        remove_left_scratch(temp.path()).expect("they can be removed");
        let left: BTreeSet<_> = fs::read_dir(temp.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        let kept = [own.as_str(), "weir-bench-notes", "other"];
        assert_eq!(left, kept.into_iter().map(Into::into).collect());
    }

    /// The cores that a thread may use are its own.
    #[test]
    fn servers_and_the_generator_have_the_cores_that_this_process_may_use() {
        let allowed = sched_getaffinity(THIS_PROCESS).expect("the kernel says");
        let allowed: Vec<usize> = (0..CpuSet::count())
            .filter(|core| allowed.is_set(*core).unwrap_or(false))
            .collect();
        let last = *allowed.last().expect("there is a core");
        let one = std::thread::spawn(move || {
            let mut one = CpuSet::new();
            one.set(last).expect("a core");
            sched_setaffinity(THIS_PROCESS, &one).expect("fewer cores are always allowed");
            cores()
        });
        let last = last.to_string();
        assert_eq!(
            one.join().expect("the thread ends").expect("a core"),
            (last.clone(), last)
        );
        let (server, load) = cores().expect("the cores of this thread");
        assert_eq!(server, allowed[0].to_string());
        assert_eq!(load == server, allowed.len() == 1);
    }
}
