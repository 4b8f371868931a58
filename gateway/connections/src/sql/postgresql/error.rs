//! PostgreSQL's words for a failure, in ours.

use super::{
    super::refused,
    session::{Error, Refusal},
};
use crate::{Code, ConnectionError};

/// The error for the caller, and what may be tried first.
pub(super) struct Failure {
    pub(super) said: ConnectionError,
    pub(super) next: Next,
}

#[derive(PartialEq, Eq)]
pub(super) enum Next {
    Say,
    /// Try once more, on the same session.
    Again,
    /// Look up these types, and try once more.
    Typed(Vec<u32>),
    /// The connection broke before any answer: try another one, if this one was used before. The statement has not run, or
    /// was a read, which changes nothing.
    Elsewhere,
    /// The effect of a write is unknown.
    Unknown,
}

impl From<ConnectionError> for Failure {
    fn from(said: ConnectionError) -> Self {
        Self {
            said,
            next: Next::Say,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refused_by(&refusal),
            Error::Lost { error, heard } => {
                let next = if heard { Next::Say } else { Next::Elsewhere };
                Self {
                    said: refused::unavailable().details(error),
                    next,
                }
            }
            Error::Said(said) => said.into(),
            Error::Untyped(oids) => Self {
                said: refused::statement().details("its rows have other types each time"),
                next: Next::Typed(oids),
            },
        }
    }
}

/// Reads an error while connecting, which always means that the database is not there for us.
pub(super) fn while_connecting(error: Error) -> ConnectionError {
    match error {
        Error::Refused(refusal) if refusal.code.starts_with("28") => {
            let said = ConnectionError::new(
                Code::UpstreamError,
                "the database refuses the connection's login",
            );
            said.details(details(&refusal))
        }
        Error::Refused(refusal) => refused::unavailable().details(details(&refusal)),
        Error::Lost { error, .. } => refused::unavailable().details(error),
        Error::Said(said) => said,
        Error::Untyped(_) => refused::unavailable().details("rows in a login"),
    }
}

/// Reads an error while writing. A write that was sent may have run, so it is never sent a second time unless the
/// server says that it has not.
pub(super) fn while_writing(error: Error) -> Failure {
    let failure = Failure::from(error);
    Failure {
        next: if failure.next == Next::Elsewhere {
            Next::Say
        } else {
            failure.next
        },
        ..failure
    }
}

/// Reads an error while committing. A COMMIT whose answer is lost may have happened, even if the server ends the
/// session over it.
pub(super) fn while_committing(error: Error) -> Failure {
    match error {
        Error::Refused(refusal) if refusal.fatal => unknown(details(&refusal)),
        Error::Refused(refusal) => Failure {
            next: Next::Say,
            ..refused_by(&refusal)
        },
        Error::Lost { error, .. } => unknown(error),
        error => error.into(),
    }
}

pub(super) fn unknown(reason: impl std::fmt::Display) -> Failure {
    let said = ConnectionError::new(
        Code::Unavailable,
        "the connection broke; whether the change was made is unknown",
    );
    Failure {
        said: said.details(reason),
        next: Next::Unknown,
    }
}

fn refused_by(refusal: &Refusal) -> Failure {
    let said = match refusal.code.as_str() {
        "23505" => with_field(refused::taken(), key_column(refusal.detail.as_deref())),
        "23P01" => refused::taken(),
        "23502" => with_field(refused::missing(), refusal.column.as_deref()),
        "23503" => refused::referred(),
        "25006" | "42501" => refused::denied(),
        "42703" => refused::gone(
            refusal
                .message
                .strip_prefix("column ")
                .and_then(refused::column_name),
        ),
        "42P01" | "3F000" | "42804" | "42846" | "42883" => refused::changed(),
        "57014" => refused::timed_out(),
        "40001" | "40P01" => {
            ConnectionError::new(Code::Conflict, "another change came between; try again")
        }
        "55P03" => {
            ConnectionError::new(Code::Unavailable, "the record is locked by another session")
        }
        "54000" | "54001" => ConnectionError::new(
            Code::TooLarge,
            "the statement is too large for the database",
        ),
        code => match code.get(..2).unwrap_or_default() {
            "22" => with_field(refused::unfit(), refusal.column.as_deref()),
            "23" | "44" | "P0" => refused::rule(),
            "08" | "53" | "57" | "58" => refused::unavailable(),
            _ => refused::statement(),
        },
    };
    let next = match refusal.code.as_str() {
        // A function's own plan is of before an alteration, or another transaction came between.
        "0A000" if refusal.message.contains("cached plan") => Next::Again,
        "40001" | "40P01" => Next::Again,
        _ => Next::Say,
    };
    Failure {
        said: said.details(details(refusal)),
        next,
    }
}

fn details(refusal: &Refusal) -> String {
    format!("{}: {}", refusal.code, refusal.message)
}

fn with_field(error: ConnectionError, field: Option<&str>) -> ConnectionError {
    match field {
        Some(field) => error.field(field),
        None => error,
    }
}

/// Returns the column that `Key (id)=(1) already exists.` names, if it is one column.
fn key_column(detail: Option<&str>) -> Option<&str> {
    let (column, _) = detail?.split_once('(')?.1.split_once(")=(")?;
    (!column.contains([',', '(', '"', ' '])).then_some(column)
}
