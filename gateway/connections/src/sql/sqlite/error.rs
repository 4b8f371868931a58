//! SQLite's words for a failure, in ours.

use rusqlite::{
    Error, ErrorCode,
    ffi::{
        SQLITE_CONSTRAINT_CHECK, SQLITE_CONSTRAINT_DATATYPE, SQLITE_CONSTRAINT_FOREIGNKEY, SQLITE_CONSTRAINT_NOTNULL,
        SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID, SQLITE_CONSTRAINT_UNIQUE,
    },
};

use super::{
    cancelled,
    guard::{Guard, Interrupted},
    timed_out,
};
use crate::ConnectionError;

pub(super) fn from(error: Error, guard: &Guard) -> ConnectionError {
    let described = match &error {
        Error::SqliteFailure(code, message) => {
            let text = message.as_deref().unwrap_or_default();
            match code.code {
                ErrorCode::OperationInterrupted => {
                    return match guard.interrupted() {
                        Some(Interrupted::Gone) => cancelled(),
                        _ => timed_out(),
                    };
                }
                ErrorCode::ConstraintViolation => constraint(code.extended_code, text),
                code => plain(code, text),
            }
        }
        Error::SqlInputError { error, msg, .. } => plain(error.code, msg),
        Error::MultipleStatement => ConnectionError::new("denied", "one call runs one statement"),
        Error::NulError(_) => ConnectionError::new("invalid", "the statement holds a NUL character"),
        _ => ConnectionError::new("upstream_error", "the database refused the statement"),
    };
    described.details(error)
}

fn plain(code: ErrorCode, text: &str) -> ConnectionError {
    let (code, message) = match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            ("unavailable", "the database is busy with other writers")
        }
        ErrorCode::CannotOpen | ErrorCode::SystemIoFailure | ErrorCode::DiskFull | ErrorCode::OutOfMemory => {
            ("unavailable", "the database cannot be used at the moment")
        }
        ErrorCode::AuthorizationForStatementDenied | ErrorCode::PermissionDenied => {
            ("denied", "the statement asks for more than this connection allows")
        }
        ErrorCode::ReadOnly => ("denied", "the database is read-only"),
        ErrorCode::TooBig => ("too_large", "a value is too large for the database connection"),
        ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => ("upstream_error", "the database file is damaged"),
        ErrorCode::TypeMismatch => ("invalid", "a value has the wrong type for its column"),
        ErrorCode::SchemaChanged => ("source_changed", "the database's schema has changed"),
        _ if text.contains("no such table") || text.contains("no such column") || text.contains("has no column") => {
            ("source_changed", "the table is no longer what it was")
        }
        _ if text.contains("not authorized") || text.contains("prohibited") => {
            ("denied", "the statement asks for more than this connection allows")
        }
        _ => ("upstream_error", "the database refused the statement"),
    };
    ConnectionError::new(code, message)
}

/// The text ends in `table.column` (several, separated by commas, for a key of several columns).
fn constraint(extended_code: i32, text: &str) -> ConnectionError {
    let columns = text.split_once(": ").map_or("", |(_, columns)| columns);
    let column = columns.rsplit_once('.').filter(|_| !columns.contains(", ")).map(|(_, column)| column);
    let error = match extended_code {
        SQLITE_CONSTRAINT_UNIQUE | SQLITE_CONSTRAINT_PRIMARYKEY | SQLITE_CONSTRAINT_ROWID => {
            ConnectionError::new("conflict", "a record with this value is there already")
        }
        SQLITE_CONSTRAINT_NOTNULL => ConnectionError::new("invalid", "a value is required"),
        SQLITE_CONSTRAINT_FOREIGNKEY => {
            return ConnectionError::new(
                "invalid",
                "a record that this one refers to, or is referred to by, is in the way",
            );
        }
        SQLITE_CONSTRAINT_CHECK => return ConnectionError::new("invalid", "a rule of the table refuses the record"),
        SQLITE_CONSTRAINT_DATATYPE => ConnectionError::new("invalid", "a value has the wrong type for its column"),
        _ => return ConnectionError::new("invalid", "a rule of the table refuses the change"),
    };
    match column {
        Some(column) => error.field(column),
        None => error,
    }
}
