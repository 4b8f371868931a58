//! The state in a PostgreSQL database, which the gateways of several machines share.

use std::{path::Path, sync::Arc};

use sqlx::{
    PgPool, SqlStr,
    migrate::{Migration, MigrationType, Migrator},
};

use crate::{
    StateError,
    engine::{ServerEngine, StateEngine},
    server::{self, ServerAddress, failure},
    state::GatewayState,
};

/// A migration has the number of the one in SQLite with the same effect, if there is one: buckets that nodes share, and which
/// rights have ended, exist only here.
const MIGRATIONS: [(i64, &str, &str); 10] = [
    (
        15,
        "first",
        include_str!("../migrations/postgresql/0015_first.sql"),
    ),
    (
        16,
        "versions",
        include_str!("../migrations/postgresql/0016_versions.sql"),
    ),
    (
        18,
        "client sessions",
        include_str!("../migrations/postgresql/0018_client_sessions.sql"),
    ),
    (
        19,
        "messages",
        include_str!("../migrations/postgresql/0019_messages.sql"),
    ),
    (
        20,
        "limit buckets",
        include_str!("../migrations/postgresql/0020_limit_buckets.sql"),
    ),
    (
        21,
        "plans",
        include_str!("../migrations/postgresql/0021_plans.sql"),
    ),
    (
        22,
        "call replies",
        include_str!("../migrations/postgresql/0022_call_replies.sql"),
    ),
    (
        23,
        "audit heads",
        include_str!("../migrations/postgresql/0023_audit_heads.sql"),
    ),
    (
        25,
        "approvers",
        include_str!("../migrations/postgresql/0025_approvers.sql"),
    ),
    (
        26,
        "endings",
        include_str!("../migrations/postgresql/0026_endings.sql"),
    ),
];

impl GatewayState {
    /// Opens the state in a database, and brings it to this version's tables. `folder` has the files of this machine.
    pub async fn connect(address: &ServerAddress, folder: &Path) -> Result<Self, StateError> {
        let folder_failed = |error: std::io::Error| StateError::Open {
            path: folder.to_owned(),
            error: error.into(),
        };
        weir_files::create_folder(folder, 0o700).map_err(folder_failed)?;
        let timeline = Arc::default();
        let pool = server::open(address, &timeline).await?;
        migrate(address, &pool).await?;
        let engine = StateEngine::Postgresql(ServerEngine::new(pool));
        let mut state = Self::new(engine, folder);
        state.address = Some(address.clone());
        state.timeline = timeline;
        Ok(state)
    }

    /// Opens an existing state, without changing its tables: for commands that look something up. A state of an earlier
    /// version is refused.
    pub async fn connect_to_read(
        address: &ServerAddress,
        folder: &Path,
    ) -> Result<Self, StateError> {
        let pool = server::open(&address.to_read(), &Arc::default()).await?;
        let version = "SELECT max(version) FROM _sqlx_migrations";
        let version: Option<i64> = sqlx::query_scalar(version)
            .fetch_one(&pool)
            .await
            .map_err(|error| failure::explain_start(address, &error))?;
        if version.is_none_or(|version| version < newest()) {
            return Err(failure::explain_version(
                address,
                version.unwrap_or(0),
                newest(),
            ));
        }
        let engine = StateEngine::Postgresql(ServerEngine::new(pool));
        Ok(Self::new(engine, folder))
    }
}

impl GatewayState {
    /// Brings the tables of a database that was away at the start to this version.
    pub(crate) async fn migrate(&self, pool: &PgPool) -> Result<(), StateError> {
        match &self.address {
            Some(address) => migrate(address, pool).await,
            None => Ok(()),
        }
    }

    /// Refuses tables of a later version, whose rows this program would not copy.
    pub(crate) async fn check_tables(&self) -> Result<(), StateError> {
        let StateEngine::Postgresql(ServerEngine { pool, .. }) = &self.engine else {
            return Ok(());
        };
        let version = "SELECT max(version) FROM _sqlx_migrations";
        let version: i64 = server::in_time(sqlx::query_scalar(version).fetch_one(pool)).await?;
        match version > newest() {
            true => {
                let known = newest();
                let why = format!(
                    "its tables have the number {version}, and this program knows {known}: copy it with the later version of weir"
                );
                Err(StateError::Database(why.into()))
            }
            false => Ok(()),
        }
    }
}

async fn migrate(address: &ServerAddress, pool: &PgPool) -> Result<(), StateError> {
    let migrated = migrator().run(pool).await;
    migrated.map_err(|error| failure::explain_migration(address, error))
}

/// Returns the migrations of this program. Those of later versions may have run: a migration only adds, and what is no longer
/// read is removed by the following release, so that an upgrade can be reverted.
fn migrator() -> Migrator {
    let migration = |(version, description, sql): (i64, &'static str, &'static str)| {
        let kind = MigrationType::Simple;
        let sql = SqlStr::from_static(sql);
        Migration::new(version, description.into(), kind, sql, false)
    };
    let mut migrator = Migrator::with_migrations(MIGRATIONS.into_iter().map(migration).collect());
    migrator.set_ignore_missing(true);
    migrator
}

/// Returns the number of the last migration.
fn newest() -> i64 {
    MIGRATIONS[MIGRATIONS.len() - 1].0
}
