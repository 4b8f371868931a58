//! Builds of plugins: which were accepted, and those that are kept to be run again. The content of a kept build is a file
//! next to the database, named by its digest; where several machines share the state, it is in the database too.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::GatewayState;
use crate::{
    AcceptedBuildRow, BuildKind, KeptBuildRow, NewBuild, StateError,
    columns::from_row,
    engine::{StateChange, StateEngine, sql},
};

/// Accepted builds of one plugin that are remembered. Going back to one of them needs no consent.
const ACCEPTED_MAX: u32 = 32;
/// Kept builds of one plugin; the least recently used one is dropped.
const KEPT_MAX: u32 = 8;
/// The folder of the content of kept builds.
const CONTENT: &str = "builds";
/// The content that nodes share.
const CONTENT_OF: &str =
    "SELECT bytes, signature FROM build_contents WHERE digest = $1 AND kind = $2";
/// The characters of a digest, sha256 as hex.
const DIGEST_CHARS: usize = 64;
/// What follows the name of a build in the name of its signature, as minisign has it.
const SIGNATURE: &str = ".minisig";

from_row!(AcceptedBuildRow {
    plugin,
    digest,
    accepted_ms,
    accepted_by,
    change
});

from_row!(KeptBuildRow {
    plugin,
    definitions,
    digest,
    kind,
    size,
    used_ms
});

impl GatewayState {
    /// Returns the accepted builds of one plugin, the newest last.
    pub async fn accepted_builds(&self, plugin: &str) -> Result<Vec<AcceptedBuildRow>, StateError> {
        let query = "SELECT * FROM accepted_builds WHERE plugin = $1 ORDER BY change";
        sql(query).bind(plugin).fetch_all(&self.engine).await
    }

    /// Returns the number of the last change of accepted builds: a different number means that something was accepted.
    pub async fn last_acceptance(&self) -> Result<i64, StateError> {
        let query = "SELECT coalesce(max(change), 0) FROM accepted_builds";
        sql(query).fetch_value(&self.engine).await
    }

    /// Makes a build the newest accepted one of its plugin. Nothing changes if it already is.
    pub async fn accept_build(
        &self,
        plugin: &str,
        digest: &str,
        by: Option<&str>,
        at_ms: i64,
    ) -> Result<(), StateError> {
        let newest =
            "SELECT digest FROM accepted_builds WHERE plugin = $1 ORDER BY change DESC LIMIT 1";
        let newest: Option<String> = sql(newest).bind(plugin).find_value(&self.engine).await?;
        if newest.is_some_and(|newest| newest == digest) {
            return Ok(());
        }
        let mut change = self.change().await?;
        sql(
            "INSERT INTO accepted_builds (plugin, digest, accepted_ms, accepted_by) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (plugin, digest) DO UPDATE \
             SET accepted_ms = excluded.accepted_ms, accepted_by = coalesce(excluded.accepted_by, accepted_builds.accepted_by)",
        )
        .bind(plugin)
        .bind(digest)
        .bind(at_ms)
        .bind(by)
        .execute(&mut change)
        .await?;
        let beyond = "DELETE FROM accepted_builds WHERE plugin = $1 AND digest NOT IN (SELECT digest FROM accepted_builds \
                      WHERE plugin = $1 ORDER BY change DESC LIMIT $2)";
        sql(beyond)
            .bind(plugin)
            .bind(ACCEPTED_MAX)
            .execute(&mut change)
            .await?;
        change.commit().await?;
        Ok(())
    }

    /// Keeps a build, its content first: a row always has its file, unless another process removed it in the meantime,
    /// which is checked afterwards. While a copy of the state is read, the row waits for the database.
    pub async fn keep_build(&self, build: NewBuild) -> Result<(), StateError> {
        let path = self.content(&build.digest, build.kind);
        if self.reads_copy() {
            let kept = self.kept_builds(&build.plugin, &build.definitions).await?;
            let is_same = |row: &KeptBuildRow| row.digest == build.digest && row.kind == build.kind;
            if !kept.iter().any(is_same) {
                let build = write_content(path, build).await?;
                let row = NewBuild {
                    bytes: Vec::new(), // they are in the file
                    ..build
                };
                let mut waiting = self.waiting_builds.lock();
                let is_same = |other: &NewBuild| {
                    other.plugin == row.plugin
                        && other.definitions == row.definitions
                        && other.digest == row.digest
                };
                // Each try to load it comes by here.
                if !waiting.iter().any(is_same) {
                    waiting.push(row);
                }
            }
            return Ok(());
        }
        let build = write_content(path.clone(), build).await?;
        let mut change = self.change().await?;
        let size = i64::try_from(build.bytes.len()).unwrap_or(i64::MAX);
        let row = KeptBuildRow {
            plugin: build.plugin.clone(),
            definitions: build.definitions.clone(),
            digest: build.digest.clone(),
            kind: build.kind,
            size,
            used_ms: build.at_ms,
        };
        keep(&mut change, &row).await?;
        if let StateChange::Postgresql(_) = change {
            share_content(&mut change, &build).await?;
        }
        self.drop_unused(&mut change, &row).await?;
        change.commit().await?;
        if !path.exists() {
            write_content(path, build).await?;
        }
        Ok(())
    }

    /// Keeps the builds that came while a copy of the state was read.
    pub(crate) async fn keep_waiting_builds(&self) -> Result<(), StateError> {
        loop {
            let waiting = self.waiting_builds.lock().first().cloned();
            let Some(build) = waiting.filter(|_| !self.reads_copy()) else {
                return Ok(());
            };
            let path = self.content(&build.digest, build.kind);
            let content = path.clone();
            let read = tokio::task::spawn_blocking(move || fs::read(content)).await;
            match read.map_err(io::Error::other).flatten() {
                Ok(bytes) => self.keep_build(NewBuild { bytes, ..build }).await?,
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a build cannot be kept");
                }
            }
            self.waiting_builds.lock().remove(0); // others are added behind it
        }
    }

    /// Returns the kept builds of a plugin with these definitions, the last used first.
    pub async fn kept_builds(
        &self,
        plugin: &str,
        definitions: &str,
    ) -> Result<Vec<KeptBuildRow>, StateError> {
        let query = "SELECT * FROM kept_builds WHERE plugin = $1 AND definitions = $2 ORDER BY used_ms DESC, digest";
        sql(query)
            .bind(plugin)
            .bind(definitions)
            .fetch_all(&self.engine)
            .await
    }

    /// Notes that a kept build is used, so that others go before it.
    pub async fn use_build(&self, build: &KeptBuildRow, at_ms: i64) -> Result<(), StateError> {
        let update = "UPDATE kept_builds SET used_ms = $1 WHERE plugin = $2 AND definitions = $3 AND digest = $4";
        sql(update)
            .bind(at_ms)
            .bind(&build.plugin)
            .bind(&build.definitions)
            .bind(&build.digest)
            .execute(&self.engine)
            .await?;
        Ok(())
    }

    /// Returns the file with the content of a kept build. Where another node has kept it, it is fetched from the database
    /// first.
    pub async fn fetch_content(&self, build: &KeptBuildRow) -> Result<PathBuf, StateError> {
        let path = self.content(&build.digest, build.kind);
        if matches!(self.engine, StateEngine::Sqlite(_)) || path.exists() {
            return Ok(path);
        }
        let query = sql(CONTENT_OF).bind(&build.digest).bind(build.kind);
        let content: Option<(Vec<u8>, Option<String>)> = query.fetch_optional(&self.engine).await?;
        if let Some((bytes, signature)) = content {
            let build = NewBuild {
                plugin: build.plugin.clone(),
                definitions: build.definitions.clone(),
                digest: build.digest.clone(),
                kind: build.kind,
                bytes,
                signature,
                at_ms: build.used_ms,
            };
            write_content(path.clone(), build).await?;
        }
        Ok(path)
    }

    /// Returns the file with the content of a build. Its signature is next to it, if it has one.
    pub fn content(&self, digest: &str, kind: BuildKind) -> PathBuf {
        let folder = self.folder.join(CONTENT);
        folder.join(format!("{digest}.{kind}"))
    }

    /// Returns the content of a kept build and its signature, from wherever this state has it.
    pub(crate) async fn read_content(
        &self,
        change: &mut StateChange,
        digest: &str,
        kind: BuildKind,
    ) -> Result<Option<(Vec<u8>, Option<String>)>, StateError> {
        if let StateChange::Postgresql(_) = change {
            return sql(CONTENT_OF)
                .bind(digest)
                .bind(kind)
                .fetch_optional(change)
                .await;
        }
        let path = self.content(digest, kind);
        let signature = fs::read_to_string(signature(&path)).ok();
        Ok(fs::read(&path).ok().map(|bytes| (bytes, signature)))
    }

    /// Puts the content of a kept build to where this state has it.
    pub(crate) async fn put_content(
        &self,
        change: &mut StateChange,
        digest: &str,
        kind: BuildKind,
        bytes: Vec<u8>,
        signature: Option<String>,
    ) -> Result<(), StateError> {
        let build = NewBuild {
            plugin: String::new(),
            definitions: String::new(),
            digest: digest.to_owned(),
            kind,
            bytes,
            signature,
            at_ms: 0,
        };
        if let StateChange::Postgresql(_) = change {
            return share_content(change, &build).await;
        }
        write_content(self.content(digest, kind), build).await?;
        Ok(())
    }

    /// Removes the files of builds that no row names: another process may have dropped their rows. The lock of writers is held,
    /// so that no row is added in the meantime; a file whose row [`keep_build`](Self::keep_build) adds afterwards is written
    /// again there.
    pub async fn remove_unnamed_builds(&self) -> Result<(), StateError> {
        let entries = fs::read_dir(self.folder.join(CONTENT));
        let names = entries.into_iter().flatten().flatten();
        let found: Vec<(String, BuildKind)> = names
            .filter_map(|entry| read_name(entry.file_name().to_str()?))
            .collect();
        if found.is_empty() {
            return Ok(());
        }
        let query = "SELECT DISTINCT digest, kind FROM kept_builds";
        let mut change = self.change().await?;
        let named: Vec<(String, BuildKind)> = sql(query).fetch_all(&mut change).await?;
        let waiting = self.waiting_builds.lock().clone();
        let waits = |digest: &str| waiting.iter().any(|build| build.digest == digest);
        for (digest, kind) in found.iter().filter(|build| !named.contains(build)) {
            if !waits(digest) {
                self.remove_content(digest, *kind);
            }
        }
        change.commit().await
    }

    fn remove_content(&self, digest: &str, kind: BuildKind) {
        let path = self.content(digest, kind);
        let _ = fs::remove_file(signature(&path)); // most have none
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "a build that is no longer kept cannot be removed");
        }
    }

    /// Drops the builds of a plugin that were used longest ago, but not the new one. A file is removed if no row names it; the
    /// lock of writers is held, so that none is added in the meantime.
    async fn drop_unused(
        &self,
        change: &mut StateChange,
        new: &KeptBuildRow,
    ) -> Result<(), StateError> {
        let beyond = "DELETE FROM kept_builds WHERE plugin = $1 AND (definitions, digest) NOT IN (SELECT definitions, digest \
                      FROM kept_builds WHERE plugin = $1 ORDER BY (definitions = $2 AND digest = $3) DESC, used_ms DESC, digest \
                      LIMIT $4) RETURNING digest, kind";
        let dropped: Vec<(String, BuildKind)> = sql(beyond)
            .bind(&new.plugin)
            .bind(&new.definitions)
            .bind(&new.digest)
            .bind(KEPT_MAX)
            .fetch_all(&mut *change)
            .await?;
        for (digest, kind) in dropped {
            if drop_unnamed_content(change, &digest, kind).await? {
                self.remove_content(&digest, kind);
            }
        }
        Ok(())
    }
}

/// Accepts those that are not accepted yet, in this order.
pub(crate) async fn accept_all(
    change: &mut StateChange,
    plugin: &str,
    digests: &[String],
    at_ms: i64,
) -> Result<(), StateError> {
    for digest in digests {
        let insert = "INSERT INTO accepted_builds (plugin, digest, accepted_ms) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        sql(insert)
            .bind(plugin)
            .bind(digest)
            .bind(at_ms)
            .execute(&mut *change)
            .await?;
    }
    Ok(())
}

/// Adds a row, or its newer use.
pub(crate) async fn keep(change: &mut StateChange, build: &KeptBuildRow) -> Result<(), StateError> {
    sql(
        "INSERT INTO kept_builds (plugin, definitions, digest, kind, size, used_ms) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (plugin, definitions, digest) DO UPDATE SET used_ms = excluded.used_ms \
         WHERE kept_builds.used_ms < excluded.used_ms",
    )
    .bind(&build.plugin)
    .bind(&build.definitions)
    .bind(&build.digest)
    .bind(build.kind)
    .bind(build.size)
    .bind(build.used_ms)
    .execute(&mut *change)
    .await?;
    Ok(())
}

/// Drops the content of a build that no row names anymore from where nodes share it. Returns `true` if no kept build does.
pub(super) async fn drop_unnamed_content(
    change: &mut StateChange,
    digest: &str,
    kind: BuildKind,
) -> Result<bool, StateError> {
    let kept = "SELECT EXISTS (SELECT 1 FROM kept_builds WHERE digest = $1 AND kind = $2)";
    let kept: bool = sql(kept)
        .bind(digest)
        .bind(kind)
        .fetch_value(&mut *change)
        .await?;
    if let (false, StateChange::Postgresql(_)) = (kept, &*change) {
        let delete = "DELETE FROM build_contents WHERE digest = $1 AND kind = $2 \
                      AND NOT EXISTS (SELECT 1 FROM uploaded_builds WHERE digest = $1)";
        sql(delete).bind(digest).bind(kind).execute(change).await?;
    }
    Ok(!kept)
}

/// Keeps the content where other nodes find it.
pub(super) async fn share_content(
    change: &mut StateChange,
    build: &NewBuild,
) -> Result<(), StateError> {
    let insert = "INSERT INTO build_contents (digest, kind, bytes, signature) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (digest, kind) DO UPDATE SET signature = coalesce(excluded.signature, build_contents.signature)";
    sql(insert)
        .bind(&build.digest)
        .bind(build.kind)
        .bind(&build.bytes)
        .bind(&build.signature)
        .execute(change)
        .await?;
    Ok(())
}

/// Reads the name of a file with the content of a build.
fn read_name(name: &str) -> Option<(String, BuildKind)> {
    let (digest, kind) = name.split_once('.')?;
    let is_digest =
        digest.len() == DIGEST_CHARS && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| Some((digest.to_owned(), BuildKind::from_word(kind)?)))?
}

/// Returns the file with the signature of a build.
fn signature(content: &Path) -> PathBuf {
    let mut path = content.as_os_str().to_owned();
    path.push(SIGNATURE);
    path.into()
}

async fn write_content(path: PathBuf, build: NewBuild) -> Result<NewBuild, StateError> {
    let folder = path.with_file_name("");
    let write = move || -> io::Result<NewBuild> {
        weir_files::create_folder(&folder, 0o700)?;
        let readers = weir_files::FilePermission::Owner;
        if let Some(text) = &build.signature {
            weir_files::replace(&signature(&path), text.as_bytes(), readers)?;
        }
        if !path.exists() {
            weir_files::replace(&path, &build.bytes, readers)?;
        }
        Ok(build)
    };
    let written = tokio::task::spawn_blocking(write).await;
    written
        .map_err(io::Error::other)
        .flatten()
        .map_err(|error| StateError::Database(error.into()))
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

    use super::*;
    use crate::engine::ServerEngine;

    /// While the database is away, each try to load a build asks to keep it.
    #[tokio::test]
    async fn a_build_that_waits_is_queued_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let opened = GatewayState::open(folder.path()).await.expect("opened");
        let StateEngine::Sqlite(copy) = opened.engine else {
            panic!("the state is in a file");
        };
        let away = PgPoolOptions::new().connect_lazy_with(PgConnectOptions::new_without_pgpass());
        let engine = StateEngine::Postgresql(ServerEngine::with_copy(away, copy));
        let state = GatewayState::new(engine, folder.path());
        let digests = ["a", "b"].map(|digit| digit.repeat(DIGEST_CHARS));
        for digest in [&digests[0], &digests[0], &digests[1], &digests[0]] {
            let build = NewBuild {
                plugin: "orders".to_owned(),
                definitions: "d".to_owned(),
                digest: digest.clone(),
                kind: BuildKind::Component,
                bytes: vec![1],
                signature: None,
                at_ms: 1,
            };
            state.keep_build(build).await.expect("it waits");
        }
        let waiting = state.waiting_builds.lock();
        let waiting: Vec<&String> = waiting.iter().map(|build| &build.digest).collect();
        assert_eq!(waiting, digests.iter().collect::<Vec<_>>());
    }
}
