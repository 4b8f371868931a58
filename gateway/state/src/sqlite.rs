//! The state in one SQLite file, which processes of one machine share. Every change is one IMMEDIATE transaction.

mod migrations;
mod take_over;

use std::{
    fs, io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    migrate::MigrateError,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqliteSynchronous},
};

use crate::{GatewayState, StateError, engine::StateEngine, file_database::FileDatabase};

/// The file in the state folder.
pub const FILE: &str = "weir.db";
/// The file that is locked while the database is made and its tables are brought to this version.
const LOCK: &str = "weir.db.lock";
/// The most connections of one process.
const CONNECTIONS_MAX: usize = 4;
/// The time that a process waits for exclusive access to the file.
const ALONE: Duration = Duration::from_secs(1);
/// The time a change waits for another process that is writing.
const BUSY: Duration = Duration::from_secs(10);

impl GatewayState {
    /// Opens or creates the file, readable only by its owner, and migrates it to this version's tables. What an
    /// earlier version kept in files next to it is imported.
    pub async fn open(folder: &Path) -> Result<Self, StateError> {
        let path = folder.join(FILE);
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| StateError::Open {
            path: path.clone(),
            error,
        };
        create(folder, &path).map_err(|error| failed(error.into()))?;
        // If several processes start at once, the others wait here: SQLite has no lock for migrations, and turning a
        // new file to WAL does not wait for others that do the same.
        let lock = fs::File::create(folder.join(LOCK)).map_err(|error| failed(error.into()))?;
        weir_files::hand_over(&lock, folder);
        lock.lock().map_err(|error| failed(error.into()))?;
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY);
        let file = FileDatabase::open(options, CONNECTIONS_MAX)
            .await
            .map_err(|error| failed(error.into()))?;
        let mut connection = file.acquire().await.map_err(|error| failed(error.into()))?;
        migrations::migrator()
            .run_direct(None, &mut *connection, false)
            .await
            .map_err(|error| failed(explain_migration(error)))?;
        drop(connection);
        let state = Self::new(StateEngine::Sqlite(file), folder);
        state.take_over_files(folder).await?;
        drop(lock);
        Ok(state)
    }

    /// Opens an existing state, and changes nothing in it: for commands that look something up. A state of another
    /// version is refused.
    pub async fn open_to_read(folder: &Path) -> Result<Self, StateError> {
        let path = folder.join(FILE);
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .read_only(true)
            .busy_timeout(BUSY);
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| StateError::Open {
            path: path.clone(),
            error,
        };
        let looked = async {
            let file = FileDatabase::open(options, 1).await?;
            let version: i64 = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations")
                .fetch_one(&mut *file.acquire().await?)
                .await?;
            Ok::<_, sqlx::Error>((file, version))
        };
        let (file, version) = looked.await.map_err(|error| failed(error.into()))?;
        if version > migrations::newest() {
            return Err(failed(explain_later(version).into()));
        }
        if version < migrations::newest() {
            let why = "an earlier version of weir wrote it: start the gateway of this version on it first, or use that program";
            return Err(failed(why.into()));
        }
        Ok(Self::new(StateEngine::Sqlite(file), folder))
    }

    /// Opens an existing state exclusively for this process: this is refused while a gateway has it open, and no
    /// other process can open it in the meantime.
    pub async fn open_alone(folder: &Path) -> Result<Self, StateError> {
        drop(Self::open_to_read(folder).await?);
        let path = folder.join(FILE);
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .locking_mode(SqliteLockingMode::Exclusive)
            .busy_timeout(ALONE);
        let opened = match FileDatabase::open(options, 1).await {
            Ok(file) => {
                let state = Self::new(StateEngine::Sqlite(file), folder);
                state.generation().await.map(|_| state)
            }
            Err(error) => Err(error.into()),
        };
        opened.map_err(|error| StateError::Open {
            path,
            error: format!("a gateway or a command uses it: stop the gateway first ({error})")
                .into(),
        })
    }

    /// Returns the file of a state that is in one.
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Copies everything as it is at one moment, while others work on; `to` must not exist yet.
    pub async fn back_up(&self, to: &Path) -> Result<(), StateError> {
        let StateEngine::Sqlite(file) = &self.engine else {
            let why = "a state in PostgreSQL is copied with pg_dump, or with `weir state migrate --to FOLDER`";
            return Err(StateError::Database(why.into()));
        };
        sqlx::query("VACUUM INTO ?")
            .bind(to.to_string_lossy())
            .execute(&mut *file.acquire().await?)
            .await?;
        Ok(())
    }
}

/// Explains why the tables could not be brought to this version.
fn explain_migration(error: MigrateError) -> Box<dyn std::error::Error + Send + Sync> {
    match error {
        MigrateError::VersionMissing(version) => explain_later(version).into(),
        other => other.into(),
    }
}

fn explain_later(version: i64) -> String {
    let known = migrations::newest();
    format!(
        "a later version of weir has changed it: its tables have the number {version}, and this program knows {known}: use that \
         program, or a copy from before the upgrade"
    )
}

fn create(folder: &Path, path: &Path) -> io::Result<()> {
    weir_files::create_folder(folder, 0o700)?;
    // SQLite gives its other files to the owner of this one.
    let file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    // The gateway's own secrets are in it.
    if file.metadata()?.permissions().mode() & 0o077 != 0
        && let Err(error) = file.set_permissions(fs::Permissions::from_mode(0o600))
    {
        tracing::warn!(path = %path.display(), %error, "others can read the state, and the secrets in it");
    }
    weir_files::hand_over(&file, folder);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sql_made;

    /// Sets how many pages the one connection lets the database have, as if the disk had no more room.
    async fn limit_pages(state: &GatewayState, pages_max: u32) {
        let limit = sql_made(format!("PRAGMA max_page_count = {pages_max}"));
        let _: i64 = limit.fetch_value(&state.engine).await.expect("it is set");
    }

    #[tokio::test]
    async fn changes_go_on_after_the_disk_was_full() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(GatewayState::open(folder.path()).await.expect("made"));
        let options = SqliteConnectOptions::new().filename(folder.path().join(FILE));
        let file = FileDatabase::open(options, 1).await.expect("opened");
        let engine = StateEngine::Sqlite(file);
        let state = GatewayState::new(engine, folder.path());
        let long = "r".repeat(200_000);
        limit_pages(&state, 1).await;
        let full = state.begin_reply("ann", "key", &long, 1).await;
        let full = full.expect_err("there is no room").to_string();
        assert!(full.contains("disk is full"), "{full}");
        limit_pages(&state, 1_000_000).await;
        let begun = state.begin_reply("ann", "key", &long, 1).await;
        begun.expect("there is room again");
    }
}
