//! Bounds what a statement on a SQLite connection may do, and for how long.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Instant,
};

use parking_lot::Mutex;
use rusqlite::{
    Connection, OpenFlags, Result,
    config::DbConfig,
    hooks::{AuthAction, AuthContext, Authorization},
    limits::Limit,
};

use super::{
    super::{RECORDS_MAX_BYTES, TEXT_MAX_BYTES},
    words,
};

/// Steps of SQLite's machine between two looks at the clock: about 20 µs.
const STEPS_BETWEEN_CHECKS: i32 = 2000;
/// The number of looks that a read may take if other work waits for it.
const LOOKS_AT_ONCE: u32 = 4;
/// The bytes that are searched in the time of one look.
const BYTES_IN_A_LOOK: usize = 64 << 10;
const STATEMENTS_KEPT: usize = 64;
/// The memory that SQLite may allocate in this process, whatever statements make of their rows.
const HEAP_MAX_BYTES: i64 = 512 << 20;

/// Looks at the schema, and how FTS5 learns that its table has changed; none changes anything.
const PRAGMAS: [&str; 9] = [
    "data_version",
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "collation_list",
];

/// The ends of the names of the tables in which an R*Tree is kept.
const RTREE_TABLES: [&str; 3] = ["_node", "_rowid", "_parent"];

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SqliteAccess {
    Nothing,
    Reading,
    /// Rows, not the schema.
    Writing,
    /// Our own words: BEGIN, COMMIT, ROLLBACK.
    Everything,
}

pub(super) struct SqliteGuard {
    allowed: AtomicU8,
    call: Mutex<Option<GuardedCall>>,
}

enum GuardedCall {
    /// A call on its own thread.
    Watched {
        deadline: Instant,
        gone: Arc<AtomicBool>,
    },
    /// A call on the caller's thread, with this many looks left.
    AtOnce { looks: u32 },
}

/// Why the running statement was, or would be, interrupted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptReason {
    Deadline,
    Gone,
    TooLongAtOnce,
}

impl Default for SqliteGuard {
    fn default() -> Self {
        Self {
            allowed: AtomicU8::new(SqliteAccess::Nothing as u8),
            call: Mutex::default(),
        }
    }
}

impl SqliteGuard {
    pub(super) fn watch(&self, deadline: Instant, gone: Arc<AtomicBool>) {
        *self.call.lock() = Some(GuardedCall::Watched { deadline, gone });
    }

    pub(super) fn at_once(&self) {
        *self.call.lock() = Some(GuardedCall::AtOnce {
            looks: LOOKS_AT_ONCE,
        });
    }

    pub(super) fn rest(&self) {
        *self.call.lock() = None;
    }

    pub(super) fn interrupted(&self) -> Option<InterruptReason> {
        match self.call.lock().as_ref()? {
            GuardedCall::Watched { gone, .. } if gone.load(Ordering::Relaxed) => {
                Some(InterruptReason::Gone)
            }
            GuardedCall::Watched { deadline, .. } => {
                (Instant::now() >= *deadline).then_some(InterruptReason::Deadline)
            }
            GuardedCall::AtOnce { looks } => {
                (*looks == 0).then_some(InterruptReason::TooLongAtOnce)
            }
        }
    }

    /// Decides whether to interrupt; SQLite asks after a fixed number of steps.
    fn look(&self) -> bool {
        if let Some(GuardedCall::AtOnce { looks }) = self.call.lock().as_mut() {
            *looks = looks.saturating_sub(1);
        }
        self.interrupted().is_some()
    }

    /// Counts the bytes that a function is about to read within one of SQLite's steps. Returns `false` if it may not
    /// continue.
    pub(super) fn spend(&self, bytes: usize) -> bool {
        let looks = u32::try_from(bytes / BYTES_IN_A_LOOK).unwrap_or(u32::MAX);
        if looks == 0 {
            return true;
        }
        if let Some(GuardedCall::AtOnce { looks: left }) = self.call.lock().as_mut() {
            *left = left.saturating_sub(looks);
        }
        self.interrupted().is_none()
    }

    pub(super) fn allow<T>(&self, what: SqliteAccess, work: impl FnOnce() -> T) -> T {
        let before = self.allowed.swap(what as u8, Ordering::Relaxed);
        let result = work();
        self.allowed.store(before, Ordering::Relaxed);
        result
    }

    fn authorize(&self, action: &AuthAction<'_>) -> bool {
        let allowed = self.allowed.load(Ordering::Relaxed);
        if allowed == SqliteAccess::Everything as u8 {
            return true;
        }
        let writing = allowed == SqliteAccess::Writing as u8;
        match action {
            AuthAction::Select | AuthAction::Recursive => true,
            // This table shows raw pages, deleted rows among them.
            AuthAction::Read { table_name, .. } => *table_name != "sqlite_dbpage",
            AuthAction::Function { function_name } => !matches!(
                *function_name,
                "load_extension" | "fts3_tokenizer" | "sqlite_log"
            ),
            AuthAction::Pragma { pragma_name, .. } => PRAGMAS.contains(pragma_name),
            // An R*Tree prepares its changes when it is first read. What a read itself prepares is not run if it changes
            // anything.
            AuthAction::Insert { table_name }
            | AuthAction::Update { table_name, .. }
            | AuthAction::Delete { table_name }
                if RTREE_TABLES.iter().any(|end| table_name.ends_with(end)) =>
            {
                !table_name.starts_with("sqlite_")
            }
            AuthAction::Insert { table_name }
            | AuthAction::Update { table_name, .. }
            | AuthAction::Delete { table_name } => writing && !table_name.starts_with("sqlite_"),
            _ => false,
        }
    }
}

pub(super) fn open(path: &Path, writable: bool) -> Result<(Connection, Arc<SqliteGuard>)> {
    let access = if writable {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    // Without CREATE a missing database is not created, and without URI a path is only a path.
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    harden(&connection)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    let guard = Arc::new(SqliteGuard::default());
    words::teach(&connection, &guard)?;
    let authorizer = guard.clone();
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        if authorizer.authorize(&context.action) {
            Authorization::Allow
        } else {
            Authorization::Deny
        }
    }))?;
    let clock = guard.clone();
    connection.progress_handler(STEPS_BETWEEN_CHECKS, Some(move || clock.look()))?;
    Ok((connection, guard))
}

fn harden(connection: &Connection) -> Result<()> {
    // The limit holds for the process; only the first call lowers it.
    connection.pragma_update(None, "hard_heap_limit", HEAP_MAX_BYTES)?;
    for (config, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
        // Otherwise "a column that is gone" is read as a text of that name.
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
    ] {
        connection.set_db_config(config, on)?;
    }
    // The limit on columns remains SQLite's own (2000): with a lower one, a wider table makes the whole file
    // unreadable. The heap's limit bounds what a row takes.
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        (Limit::SQLITE_LIMIT_LENGTH, RECORDS_MAX_BYTES as i32),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, TEXT_MAX_BYTES as i32),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 50),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 2000),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    ] {
        connection.set_limit(limit, value)?;
    }
    Ok(())
}
