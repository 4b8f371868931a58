//! Explains the problem of a server, and the remedy. No message has a password: those of the server name roles and tables.

use sqlx::migrate::MigrateError;

use super::ServerAddress;
use crate::StateError;

/// Explains why a state could not be opened.
pub(crate) fn explain_start(address: &ServerAddress, error: &sqlx::Error) -> StateError {
    let message = message(error);
    let is_away = is_away(error);
    let why = match code(error).as_deref() {
        Some("28P01" | "28000") => format!(
            "the server refuses the login: {message}; correct the user or the password in `[state] url`"
        ),
        Some("3D000") => format!("{message}: create it, with the role as its owner"),
        Some("42501") => format!(
            "the role lacks rights: {message}; make it the owner of the database, or of the schema that its search_path names first"
        ),
        Some("42P01") => {
            "it has no tables yet: start a gateway on it, or move a state there with `weir state migrate`".to_owned()
        }
        Some(_) => message,
        None => format!(
            "the server cannot be reached: {message}; start it, or correct `[state] url`"
        ),
    };
    StateError::Connect {
        address: address.to_string(),
        why,
        is_away,
    }
}

pub(crate) fn explain_migration(address: &ServerAddress, error: MigrateError) -> StateError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            explain_start(address, &error)
        }
        other => StateError::Connect {
            address: address.to_string(),
            why: other.to_string(),
            is_away: false,
        },
    }
}

/// Explains that the tables are those of an earlier version; `known` is the number of this program's.
pub(crate) fn explain_version(address: &ServerAddress, version: i64, known: i64) -> StateError {
    let why = format!(
        "its tables have the number {version}, and this program needs {known}: start a gateway of this version on it first"
    );
    StateError::Connect {
        address: address.to_string(),
        why,
        is_away: false,
    }
}

/// Distinguishes a server that does not answer from one that refuses a statement.
pub(crate) fn explain_statement(error: sqlx::Error) -> StateError {
    match is_away(&error) {
        true => StateError::Unreachable(message(&error)),
        false => error.into(),
    }
}

fn is_away(error: &sqlx::Error) -> bool {
    match code(error).as_deref() {
        // It starts, stops or has no connection left; another node has the lock of writers; it is no longer the primary.
        Some(code) => {
            code.starts_with("57P")
                || code.starts_with("08")
                || matches!(code, "53300" | "55P03" | "57014" | "25006" | "25P03")
        }
        None => matches!(
            error,
            sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed
        ),
    }
}

/// Returns the code of an error that the server reports.
pub(super) fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

fn message(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::Io(error) => error.to_string(),
        sqlx::Error::PoolTimedOut => "no connection in time".to_owned(),
        other => other.to_string(),
    }
}
