//! SQLite's words for a failure, in ours.

use rusqlite::{
    Error, ErrorCode,
    ffi::{
        SQLITE_CONSTRAINT_CHECK, SQLITE_CONSTRAINT_DATATYPE, SQLITE_CONSTRAINT_FOREIGNKEY,
        SQLITE_CONSTRAINT_NOTNULL, SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID,
        SQLITE_CONSTRAINT_UNIQUE,
    },
};

use super::{
    super::refused,
    guard::{InterruptReason, SqliteGuard},
};
use crate::{ConnectionError, FailureCode};

pub(super) fn from(error: Error, guard: &SqliteGuard) -> ConnectionError {
    let described = match &error {
        Error::SqliteFailure(code, message) => {
            let text = message.as_deref().unwrap_or_default();
            match code.code {
                ErrorCode::OperationInterrupted => {
                    return match guard.interrupted() {
                        Some(InterruptReason::Gone) => refused::cancelled(),
                        _ => refused::timed_out(),
                    };
                }
                ErrorCode::ConstraintViolation => constraint(code.extended_code, text),
                code => plain(code, text),
            }
        }
        Error::SqlInputError { error, msg, .. } => plain(error.code, msg),
        Error::MultipleStatement => {
            ConnectionError::new(FailureCode::Forbidden, "one call runs one statement")
        }
        Error::NulError(_) => ConnectionError::new(
            FailureCode::InvalidArguments,
            "the statement contains a NUL character",
        ),
        _ => refused::statement(),
    };
    described.details(error)
}

fn plain(code: ErrorCode, text: &str) -> ConnectionError {
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => ConnectionError::new(
            FailureCode::Unavailable,
            "the database is busy with other writers",
        ),
        ErrorCode::CannotOpen
        | ErrorCode::SystemIoFailure
        | ErrorCode::DiskFull
        | ErrorCode::OutOfMemory => refused::unavailable(),
        ErrorCode::AuthorizationForStatementDenied | ErrorCode::PermissionDenied => {
            refused::denied()
        }
        ErrorCode::ReadOnly => {
            ConnectionError::new(FailureCode::Forbidden, "the database is read-only")
        }
        ErrorCode::TooBig => ConnectionError::new(
            FailureCode::TooLarge,
            "a value is too large for the database connection",
        ),
        ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => {
            ConnectionError::new(FailureCode::UpstreamError, "the database file is damaged")
        }
        ErrorCode::TypeMismatch => refused::unfit(),
        ErrorCode::SchemaChanged => refused::changed(),
        _ if text.contains("no such table") => refused::changed(),
        _ if gone(text).is_some() => refused::gone(gone(text).and_then(refused::column_name)),
        _ if text.contains("not authorized") || text.contains("prohibited") => refused::denied(),
        _ => refused::statement(),
    }
}

/// Returns the name that follows, if the text reports that a column is missing.
fn gone(text: &str) -> Option<&str> {
    let parts = ["no such column: ", "has no column named "]
        .iter()
        .find_map(|words| text.split_once(words));
    parts.map(|(_, column)| column)
}

/// Reads a violated constraint. The text ends in `table.column`, several of these with commas between them, `index 'name'`, or
/// for a rule in its name or its text.
fn constraint(extended_code: i32, text: &str) -> ConnectionError {
    let named = text.split_once(": ").map_or("", |(_, named)| named);
    let columns: Vec<_> = named
        .split(", ")
        .map(|column| column.rsplit_once('.').map_or(column, |(_, column)| column))
        .collect();
    let columns = columns.join(", ");
    let (error, named) = match extended_code {
        SQLITE_CONSTRAINT_UNIQUE | SQLITE_CONSTRAINT_PRIMARYKEY | SQLITE_CONSTRAINT_ROWID => {
            (refused::taken(), columns.as_str())
        }
        SQLITE_CONSTRAINT_NOTNULL => (refused::missing(), columns.as_str()),
        SQLITE_CONSTRAINT_DATATYPE => (refused::unfit(), columns.as_str()),
        SQLITE_CONSTRAINT_FOREIGNKEY => return refused::referred(),
        SQLITE_CONSTRAINT_CHECK => (refused::rule(), named),
        _ => return refused::rule(),
    };
    match named {
        "" => error,
        named => error.field(named),
    }
}
