//! Copies a whole state from one engine to the other, in one transaction, and proves that nothing is missing.

use sha2::{Digest, Sha256};
use sqlx::{Column as _, Row, TypeInfo as _, postgres::PgRow, sqlite::SqliteRow};

use crate::{
    BuildKind, StateError,
    engine::{SqlValue, StateChange, sql, sql_made},
    state::GatewayState,
};

/// The tables that are copied, with their columns, the key first: a row comes after those that it refers to. Nodes and
/// messages between them are left out: no node runs in the meantime.
const TABLES: [CopyTable; 24] = [
    CopyTable::new(
        "keys",
        1,
        "id, secret_hash, agent, tenant, access, view, limits, created_ms, created_by, expires_ms, revoked_ms, change",
    ),
    CopyTable::new(
        "admins",
        1,
        "id, secret_hash, name, role, created_ms, created_by, revoked_ms",
    ),
    CopyTable::new("approvers", 1, "admin"),
    CopyTable::new(
        "sessions",
        1,
        "id, secret_hash, admin, kind, created_ms, expires_ms, used_ms",
    ),
    CopyTable::new(
        "contracts",
        1,
        "name, origin, owner, live, revision, last, rolled_back",
    ),
    CopyTable::new(
        "versions",
        2,
        "contract, version, artifact, source, class, fingerprint, published_ms, published_by",
    ),
    CopyTable::new(
        "served",
        2,
        "contract, major, version, shim, sunset_ms, kept_ms, kept_by",
    ),
    CopyTable::new("pins", 2, "agent, contract, major, created_ms, created_by"),
    CopyTable::new("client_sessions", 1, "id, note, expires_ms, change"),
    CopyTable::new(
        "audit_heads",
        1,
        "chain, node, segment, seq, hash, written_ms",
    ),
    CopyTable::new(
        "plans",
        1,
        "id, caller, agent, tenant, subject, contract, tool, change, fingerprint, sealed, status, created_ms, expires_ms, decided_ms, decided_by, reason",
    ),
    CopyTable::new(
        "call_replies",
        3,
        "caller, tool, key, request, status, sealed, lease_ms, created_ms",
    ),
    CopyTable::new(
        "drafts",
        1,
        "id, contract, base, version, artifact, source, origin, owner, class, fingerprint, report, status, created_ms, created_by, decided_ms, decided_by",
    ),
    CopyTable::new(
        "replies",
        2,
        "admin, key, request, status, body, created_ms",
    ),
    CopyTable::new("profiles", 5, "day, contract, tool, agent, profile, calls"),
    CopyTable::new(
        "shapes",
        2,
        "contract, collection, adapter, settings, shape",
    ),
    CopyTable::new("secrets", 1, "purpose, bytes, created_ms"),
    CopyTable::new(
        "accepted_builds",
        2,
        "plugin, digest, accepted_ms, accepted_by, change",
    ),
    CopyTable::new(
        "kept_builds",
        3,
        "plugin, definitions, digest, kind, size, used_ms",
    ),
    CopyTable::new("key_uses", 2, "key, hour, calls, last_ms"),
    CopyTable::new("agent_calls", 3, "tenant, agent, day, calls"),
    CopyTable::new(
        "accounts",
        1,
        "number, upstream, owner, label, server, issuer, sealed, version, renewing_until_ms, created_ms, renewed_ms",
    ),
    CopyTable::new("oauth_clients", 2, "issuer, redirect, sealed"),
    CopyTable::new(
        "connect_links",
        1,
        "hash, kind, upstream, owner, label, sealed, expires_ms",
    ),
];
/// What calls leave behind, and what is decided only in the database.
const NOT_FOR_STARTS: [&str; 7] = [
    "sessions",
    "plans",
    "call_replies",
    "replies",
    "profiles",
    "key_uses",
    "connect_links",
];
/// Rows that are in memory at once.
const PAGE: u32 = 200;

struct CopyTable {
    name: &'static str,
    /// The number of columns in the key.
    key: usize,
    columns: &'static str,
}

impl CopyTable {
    const fn new(name: &'static str, key: usize, columns: &'static str) -> Self {
        Self { name, key, columns }
    }

    fn columns(&self) -> Vec<&'static str> {
        self.columns.split(", ").collect()
    }
}

/// A table as it was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    pub name: &'static str,
    pub rows: u64,
    /// sha256 of all its values, hex.
    pub digest: String,
}

/// A row of any table.
struct AnyRow(Vec<AnyValue>);

enum AnyValue {
    Integer(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

macro_rules! any_row {
    ($row:ty) => {
        impl<'r> sqlx::FromRow<'r, $row> for AnyRow {
            fn from_row(row: &'r $row) -> Result<Self, sqlx::Error> {
                let value = |(index, column): (
                    usize,
                    &<<$row as Row>::Database as sqlx::Database>::Column,
                )| {
                    Ok(match column.type_info().name() {
                        "INTEGER" | "INT8" => AnyValue::Integer(row.try_get(index)?),
                        "BLOB" | "BYTEA" => AnyValue::Bytes(row.try_get(index)?),
                        _ => AnyValue::Text(row.try_get(index)?),
                    })
                };
                let values = row.columns().iter().enumerate().map(value);
                values.collect::<Result<_, sqlx::Error>>().map(Self)
            }
        }
    };
}

any_row!(SqliteRow);
any_row!(PgRow);

impl GatewayState {
    /// Copies everything of this state into one that is empty, in one transaction, and compares the two. Nothing else writes
    /// to either in the meantime.
    pub async fn copy_to(&self, to: &Self) -> Result<Vec<CopiedTable>, StateError> {
        for state in [self, to] {
            state.check_tables().await?;
            state.check_idle().await?;
        }
        let (mut source, mut target) = (self.change().await?, to.change().await?);
        for change in [&mut source, &mut target] {
            allow_pauses(change).await?;
        }
        for table in &TABLES {
            if table_page(&mut target, table, None).await?.is_empty() {
                continue;
            }
            return Err(refusal(
                "the state that is copied to is not empty: name another one",
            ));
        }
        let mut copied = Vec::new();
        for table in &TABLES {
            begin_table(&mut target, table).await?;
            copy_rows(&mut source, &mut target, table).await?;
            end_table(&mut target, table).await?;
            let (before, after) = (
                sum_up(&mut source, table).await?,
                sum_up(&mut target, table).await?,
            );
            if before != after {
                let what = format!(
                    "the table {} did not arrive whole: nothing was copied",
                    table.name
                );
                return Err(refusal(&what));
            }
            copied.push(after);
        }
        copy_numbers(&mut source, &mut target).await?;
        self.copy_contents(&mut source, to, &mut target).await?;
        target.commit().await?;
        Ok(copied)
    }

    /// Copies what a start needs into a state that is empty, as it is at one moment. Returns the number of the last copied
    /// change.
    pub(crate) async fn copy_to_start(&self, to: &Self) -> Result<i64, StateError> {
        let mut source = self.engine.begin_reading().await?;
        allow_pauses(&mut source).await?;
        let mut target = to.change().await?;
        let is_needed = |table: &&CopyTable| !NOT_FOR_STARTS.contains(&table.name);
        for table in TABLES.iter().filter(is_needed) {
            copy_rows(&mut source, &mut target, table).await?;
        }
        copy_numbers(&mut source, &mut target).await?;
        let number = sql("SELECT n FROM generation")
            .fetch_value(&mut source)
            .await?;
        target.commit().await?;
        Ok(number)
    }

    /// Returns the digests of all tables.
    pub async fn sums(&self) -> Result<Vec<CopiedTable>, StateError> {
        let mut change = self.change().await?;
        let mut sums = Vec::new();
        for table in &TABLES {
            sums.push(sum_up(&mut change, table).await?);
        }
        Ok(sums)
    }

    async fn check_idle(&self) -> Result<(), StateError> {
        let nodes = self.nodes().await?;
        match nodes.iter().find(|node| node.is_live()) {
            Some(node) => Err(refusal(&format!(
                "the gateway {} on {} runs on it: stop it first",
                node.id, node.name
            ))),
            None => Ok(()),
        }
    }

    /// Copies the content of kept builds: between files and rows.
    async fn copy_contents(
        &self,
        source: &mut StateChange,
        to: &Self,
        target: &mut StateChange,
    ) -> Result<(), StateError> {
        let query = "SELECT DISTINCT digest, kind FROM kept_builds";
        let builds: Vec<(String, BuildKind)> = sql(query).fetch_all(&mut *source).await?;
        for (digest, kind) in builds {
            if let Some((bytes, signature)) = self.read_content(source, &digest, kind).await? {
                to.put_content(target, &digest, kind, bytes, signature)
                    .await?;
            }
        }
        Ok(())
    }
}

/// Returns the rows after one, in the order of the key.
async fn table_page(
    change: &mut StateChange,
    table: &CopyTable,
    after: Option<&AnyRow>,
) -> Result<Vec<AnyRow>, StateError> {
    let key = table.columns()[..table.key].join(", ");
    let places: Vec<String> = (0..table.key)
        .map(|place| format!("${}", place + 2))
        .collect();
    let is_after = match after {
        Some(_) => format!("WHERE ({key}) > ({})", places.join(", ")),
        None => String::new(),
    };
    let text = format!(
        "SELECT {} FROM {} {is_after} ORDER BY {key} LIMIT $1",
        table.columns, table.name
    );
    let last = after.map_or(&[][..], |row| &row.0[..table.key]);
    let page = last
        .iter()
        .fold(sql_made(text).bind(PAGE), |query, value| query.bind(value));
    page.fetch_all(change).await
}

async fn copy_rows(
    source: &mut StateChange,
    target: &mut StateChange,
    table: &CopyTable,
) -> Result<(), StateError> {
    let mut last = None;
    loop {
        let mut rows = table_page(source, table, last.as_ref()).await?;
        for row in &rows {
            insert_row(target, table, row).await?;
        }
        if rows.len() < PAGE as usize {
            return Ok(());
        }
        last = rows.pop();
    }
}

async fn insert_row(
    change: &mut StateChange,
    table: &CopyTable,
    row: &AnyRow,
) -> Result<(), StateError> {
    let places: Vec<String> = (1..=row.0.len()).map(|place| format!("${place}")).collect();
    let text = format!(
        "INSERT INTO {} ({}) VALUES ({})",
        table.name,
        table.columns,
        places.join(", ")
    );
    let bound = row
        .0
        .iter()
        .fold(sql_made(text), |query, value| query.bind(value));
    bound.execute(&mut *change).await?;
    // A trigger gave the row another number.
    if let (StateChange::Sqlite(_), Some("change")) = (&*change, table.columns().last().copied()) {
        let key = table.columns();
        let is_key: Vec<String> = key[..table.key]
            .iter()
            .enumerate()
            .map(|(place, column)| format!("{column} = ${}", place + 2))
            .collect();
        let text = format!(
            "UPDATE {} SET change = $1 WHERE {}",
            table.name,
            is_key.join(" AND ")
        );
        let last = row.0.last().map_or(SqlValue::Integer(None), SqlValue::from);
        let update = sql_made(text).bind(last);
        let update = row.0[..table.key]
            .iter()
            .fold(update, |query, value| query.bind(value));
        update.execute(change).await?;
    }
    Ok(())
}

/// A transaction of PostgreSQL waits here while the other side works.
async fn allow_pauses(change: &mut StateChange) -> Result<(), StateError> {
    if let StateChange::Postgresql(_) = change {
        let set = "SET LOCAL idle_in_transaction_session_timeout = 0";
        sql(set).execute(change).await?;
    }
    Ok(())
}

/// The triggers of PostgreSQL would renumber rows.
async fn begin_table(change: &mut StateChange, table: &CopyTable) -> Result<(), StateError> {
    if let StateChange::Postgresql(_) = change {
        let text = format!("ALTER TABLE {} DISABLE TRIGGER USER", table.name);
        sql_made(text).execute(change).await?;
    }
    Ok(())
}

async fn end_table(change: &mut StateChange, table: &CopyTable) -> Result<(), StateError> {
    if let StateChange::Postgresql(_) = change {
        let text = format!("ALTER TABLE {} ENABLE TRIGGER USER", table.name);
        sql_made(text).execute(change).await?;
    }
    Ok(())
}

/// Copies the numbers of the last changes, and the last number of an account: none is given twice.
async fn copy_numbers(
    source: &mut StateChange,
    target: &mut StateChange,
) -> Result<(), StateError> {
    for table in ["generation", "key_changes", "session_changes"] {
        let number: i64 = sql_made(format!("SELECT n FROM {table}"))
            .fetch_value(&mut *source)
            .await?;
        let update = sql_made(format!("UPDATE {table} SET n = $1"));
        update.bind(number).execute(&mut *target).await?;
    }
    let last = match source {
        StateChange::Sqlite(_) => {
            "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'accounts'), 0)"
        }
        StateChange::Postgresql(_) => {
            "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM accounts_number_seq"
        }
    };
    let last: i64 = sql(last).fetch_value(source).await?;
    if last == 0 {
        return Ok(());
    }
    match target {
        StateChange::Sqlite(_) => {
            sql("DELETE FROM sqlite_sequence WHERE name = 'accounts'")
                .execute(&mut *target)
                .await?;
            let insert = "INSERT INTO sqlite_sequence (name, seq) VALUES ('accounts', $1)";
            sql(insert).bind(last).execute(target).await?;
        }
        StateChange::Postgresql(_) => {
            let set = "SELECT setval('accounts_number_seq', $1)";
            sql(set).bind(last).execute(target).await?;
        }
    }
    Ok(())
}

async fn sum_up(change: &mut StateChange, table: &CopyTable) -> Result<CopiedTable, StateError> {
    let (mut digest, mut rows, mut last) = (Sha256::new(), 0, None);
    loop {
        let mut page = table_page(change, table, last.as_ref()).await?;
        for value in page.iter().flat_map(|row| &row.0) {
            value.add_to(&mut digest);
        }
        rows += page.len() as u64;
        if page.len() < PAGE as usize {
            break;
        }
        last = page.pop();
    }
    let digest = digest.finalize();
    let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(CopiedTable {
        name: table.name,
        rows,
        digest,
    })
}

impl AnyValue {
    /// Adds its kind, its length and itself.
    fn add_to(&self, digest: &mut Sha256) {
        let mut add = |kind: u8, bytes: Option<&[u8]>| {
            digest.update([kind, u8::from(bytes.is_some())]);
            let bytes = bytes.unwrap_or_default();
            digest.update((bytes.len() as u64).to_be_bytes());
            digest.update(bytes);
        };
        match self {
            Self::Integer(value) => add(0, value.map(i64::to_be_bytes).as_ref().map(|it| &it[..])),
            Self::Text(value) => add(1, value.as_ref().map(String::as_bytes)),
            Self::Bytes(value) => add(2, value.as_deref()),
        }
    }
}

impl<'q> From<&'q AnyValue> for SqlValue<'q> {
    fn from(value: &'q AnyValue) -> Self {
        match value {
            AnyValue::Integer(value) => Self::Integer(*value),
            AnyValue::Text(value) => Self::Text(value.as_deref()),
            AnyValue::Bytes(value) => Self::Bytes(value.as_deref()),
        }
    }
}

fn refusal(why: &str) -> StateError {
    StateError::Database(why.into())
}
