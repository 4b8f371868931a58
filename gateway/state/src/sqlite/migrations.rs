//! The changes that led to the current tables, in order. A released one is never edited: SQLite keeps its checksum.

use sqlx::SqlStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

const MIGRATIONS: [(i64, &str, &str); 21] = [
    (
        1,
        "first",
        include_str!("../../migrations/sqlite/0001_first.sql"),
    ),
    (
        2,
        "profiles",
        include_str!("../../migrations/sqlite/0002_profiles.sql"),
    ),
    (
        3,
        "waiting",
        include_str!("../../migrations/sqlite/0003_waiting.sql"),
    ),
    (
        4,
        "before",
        include_str!("../../migrations/sqlite/0004_before.sql"),
    ),
    (
        5,
        "owners",
        include_str!("../../migrations/sqlite/0005_owners.sql"),
    ),
    (
        6,
        "key changes",
        include_str!("../../migrations/sqlite/0006_key_changes.sql"),
    ),
    (
        7,
        "key views",
        include_str!("../../migrations/sqlite/0007_key_views.sql"),
    ),
    (
        8,
        "draft order",
        include_str!("../../migrations/sqlite/0008_draft_order.sql"),
    ),
    (
        9,
        "one store",
        include_str!("../../migrations/sqlite/0009_one_store.sql"),
    ),
    (
        10,
        "sessions",
        include_str!("../../migrations/sqlite/0010_sessions.sql"),
    ),
    (
        11,
        "auditors",
        include_str!("../../migrations/sqlite/0011_auditors.sql"),
    ),
    (
        12,
        "key uses",
        include_str!("../../migrations/sqlite/0012_key_uses.sql"),
    ),
    (
        13,
        "agent calls",
        include_str!("../../migrations/sqlite/0013_agent_calls.sql"),
    ),
    (
        14,
        "accounts",
        include_str!("../../migrations/sqlite/0014_accounts.sql"),
    ),
    (
        16,
        "versions",
        include_str!("../../migrations/sqlite/0016_versions.sql"),
    ),
    (
        18,
        "client sessions",
        include_str!("../../migrations/sqlite/0018_client_sessions.sql"),
    ),
    (
        19,
        "messages",
        include_str!("../../migrations/sqlite/0019_messages.sql"),
    ),
    (
        21,
        "plans",
        include_str!("../../migrations/sqlite/0021_plans.sql"),
    ),
    (
        22,
        "call replies",
        include_str!("../../migrations/sqlite/0022_call_replies.sql"),
    ),
    (
        23,
        "audit heads",
        include_str!("../../migrations/sqlite/0023_audit_heads.sql"),
    ),
    (
        25,
        "approvers",
        include_str!("../../migrations/sqlite/0025_approvers.sql"),
    ),
];

pub(crate) fn migrator() -> Migrator {
    let migration = |(version, description, sql): (i64, &'static str, &'static str)| {
        Migration::new(
            version,
            description.into(),
            MigrationType::Simple,
            SqlStr::from_static(sql),
            false,
        )
    };
    Migrator::with_migrations(MIGRATIONS.into_iter().map(migration).collect())
}

/// Returns the number of the last migration.
pub(super) fn newest() -> i64 {
    MIGRATIONS[MIGRATIONS.len() - 1].0
}
