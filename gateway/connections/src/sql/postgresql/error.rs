//! PostgreSQL's words for a failure, in ours.

use sqlx::{Error, postgres::PgDatabaseError};

use super::super::refused;
use crate::ConnectionError;

/// What is said to the caller, and whether to try once more first.
pub(super) struct Failure {
    pub(super) said: ConnectionError,
    pub(super) again: bool,
}

impl From<ConnectionError> for Failure {
    fn from(said: ConnectionError) -> Self {
        Self { said, again: false }
    }
}

pub(super) fn from(error: Error) -> Failure {
    let Error::Database(database) = &error else {
        let said = match &error {
            Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::PoolClosed | Error::WorkerCrashed => {
                refused::unavailable()
            }
            _ => refused::statement(),
        };
        return said.details(error).into();
    };
    match database.try_downcast_ref::<PgDatabaseError>() {
        Some(database) => from_database(database),
        None => refused::statement().details(database).into(),
    }
}

/// While connecting, whatever goes wrong means that the database is not there for us.
pub(super) fn from_connect(error: Error) -> ConnectionError {
    let login =
        matches!(&error, Error::Database(database) if database.code().is_some_and(|code| code.starts_with("28")));
    if login {
        return ConnectionError::new("upstream_error", "the database refuses the connection's login").details(error);
    }
    refused::unavailable().details(error)
}

/// A COMMIT whose answer is lost may have happened.
pub(super) fn from_commit(error: Error) -> Failure {
    match &error {
        Error::Database(_) => Failure { again: false, ..from(error) },
        _ => ConnectionError::new("unavailable", "the connection broke; whether the change was made is unknown")
            .details(error)
            .into(),
    }
}

fn from_database(error: &PgDatabaseError) -> Failure {
    let details = format!("{}: {}", error.code(), error.message());
    let said = match error.code() {
        "23505" => with_field(refused::taken(), key_column(error.detail())),
        "23P01" => refused::taken(),
        "23502" => with_field(refused::missing(), error.column()),
        "23503" => refused::referred(),
        "25006" | "42501" => refused::denied(),
        "42P01" | "42703" | "3F000" => refused::changed(),
        "57014" => refused::timed_out(),
        "40001" | "40P01" => ConnectionError::new("conflict", "another change came between; try again"),
        "55P03" => ConnectionError::new("unavailable", "the record is locked by somebody else"),
        "54000" | "54001" => ConnectionError::new("too_large", "the statement is too large for the database"),
        code => match &code[..2.min(code.len())] {
            "22" => with_field(refused::unfit(), error.column()),
            "23" | "44" | "P0" => refused::rule(),
            "08" | "53" | "57" | "58" => refused::unavailable(),
            _ => refused::statement(),
        },
    };
    // A plan made before the table was altered: it is prepared anew.
    let stale = error.code() == "0A000" && error.message().contains("cached plan");
    Failure { said: said.details(details), again: stale || matches!(error.code(), "40001" | "40P01") }
}

fn with_field(error: ConnectionError, field: Option<&str>) -> ConnectionError {
    match field {
        Some(field) => error.field(field),
        None => error,
    }
}

/// `Key (id)=(1) already exists.` names the column, where it is one.
fn key_column(detail: Option<&str>) -> Option<&str> {
    let (column, _) = detail?.split_once('(')?.1.split_once(")=(")?;
    (!column.contains([',', '(', '"', ' '])).then_some(column)
}
