//! Knows where things lie: the repository, the cache with the installed peers, the programs beside this one.

use std::{
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
};

use anyhow::Context;
use tempfile::TempDir;

use crate::postgres::Postgres;

pub(crate) struct Place {
    pub(crate) repository: PathBuf,
    /// `WEIR_CACHE`, as `cargo xtask bench` hands it down.
    pub(crate) cache: PathBuf,
    /// Folders of servers, removed afterwards.
    pub(crate) scratch: PathBuf,
    peers: TempDir,
    postgres: Option<Postgres>,
}

impl Place {
    pub(crate) fn find() -> anyhow::Result<Self> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("bench/ lies in the repository")?;
        let cache = env::var_os("WEIR_CACHE").context("run `cargo xtask bench`: it installs what is measured")?;
        let scratch = env::temp_dir();
        let peers = tempfile::Builder::new().prefix("weir-bench-peers-").tempdir()?;
        Ok(Self { repository: repository.to_owned(), cache: cache.into(), scratch, peers, postgres: None })
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

    /// Makes the folder for one peer's configuration and data; it is gone with this place.
    pub(crate) fn peer_folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.peers.path().join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    pub(crate) fn servers(&self) -> PathBuf {
        self.repository.join("bench/servers")
    }

    pub(crate) fn start_postgres(&mut self) -> anyhow::Result<()> {
        if self.postgres.is_none() {
            self.postgres = Some(Postgres::start()?);
        }
        Ok(())
    }

    pub(crate) fn postgres(&self) -> anyhow::Result<&Postgres> {
        self.postgres.as_ref().context("PostgreSQL does not run")
    }

    pub(crate) fn postgres_url(&self) -> anyhow::Result<String> {
        Ok(self.postgres()?.url())
    }
}

pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
