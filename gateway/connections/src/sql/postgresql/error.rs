//! PostgreSQL's words for a failure, in ours.

use super::{
    super::refused,
    session::{PostgresqlError, PostgresqlRefusal},
};
use crate::{ConnectionError, FailureCode};

/// The error for the caller, and what may be tried first.
pub(super) struct PostgresqlFailure {
    pub(super) error: ConnectionError,
    pub(super) next: RecoveryStep,
}

#[derive(PartialEq, Eq)]
pub(super) enum RecoveryStep {
    Say,
    /// Try again, on the same session.
    Again,
    /// Look up these types, and try again.
    Typed(Vec<u32>),
    /// The connection broke before any answer: try another one, if this one was used before. The statement has not run, or
    /// was a read, which changes nothing.
    Elsewhere,
    /// The effect of a write is unknown.
    Unknown,
}

impl From<ConnectionError> for PostgresqlFailure {
    fn from(error: ConnectionError) -> Self {
        Self {
            error,
            next: RecoveryStep::Say,
        }
    }
}

impl From<PostgresqlError> for PostgresqlFailure {
    fn from(error: PostgresqlError) -> Self {
        match error {
            PostgresqlError::Refused(refusal) => refused_by(&refusal),
            PostgresqlError::Lost { error, heard } => {
                let next = if heard {
                    RecoveryStep::Say
                } else {
                    RecoveryStep::Elsewhere
                };
                Self {
                    error: refused::unavailable().details(error),
                    next,
                }
            }
            PostgresqlError::Own(error) => error.into(),
            PostgresqlError::Untyped(oids) => Self {
                error: refused::statement().details("its rows have other types each time"),
                next: RecoveryStep::Typed(oids),
            },
        }
    }
}

/// Reads an error while connecting, which always means that the database is not there for us.
pub(super) fn while_connecting(error: PostgresqlError) -> ConnectionError {
    match error {
        PostgresqlError::Refused(refusal) if refusal.code.starts_with("28") => {
            let error = ConnectionError::new(
                FailureCode::UpstreamError,
                "the database refuses the connection's login",
            );
            error.details(details(&refusal))
        }
        PostgresqlError::Refused(refusal) => refused::unavailable().details(details(&refusal)),
        PostgresqlError::Lost { error, .. } => refused::unavailable().details(error),
        PostgresqlError::Own(error) => error,
        PostgresqlError::Untyped(_) => refused::unavailable().details("rows in a login"),
    }
}

/// Reads an error while writing. A write that was sent may have run, so it is never sent a second time unless the
/// server reports that it has not.
pub(super) fn while_writing(error: PostgresqlError) -> PostgresqlFailure {
    let failure = PostgresqlFailure::from(error);
    PostgresqlFailure {
        next: if failure.next == RecoveryStep::Elsewhere {
            RecoveryStep::Say
        } else {
            failure.next
        },
        ..failure
    }
}

/// Reads an error while committing. A COMMIT whose answer is lost may have happened, even if the server ends the
/// session over it.
pub(super) fn while_committing(error: PostgresqlError) -> PostgresqlFailure {
    match error {
        PostgresqlError::Refused(refusal) if refusal.fatal => unknown(details(&refusal)),
        PostgresqlError::Refused(refusal) => PostgresqlFailure {
            next: RecoveryStep::Say,
            ..refused_by(&refusal)
        },
        PostgresqlError::Lost { error, .. } => unknown(error),
        error => error.into(),
    }
}

pub(super) fn unknown(reason: impl std::fmt::Display) -> PostgresqlFailure {
    let error = ConnectionError::new(
        FailureCode::Unavailable,
        "the connection broke; whether the change was made is unknown",
    );
    PostgresqlFailure {
        error: error.details(reason),
        next: RecoveryStep::Unknown,
    }
}

fn refused_by(refusal: &PostgresqlRefusal) -> PostgresqlFailure {
    let error = match refusal.code.as_str() {
        "23505" | "23P01" => with_field(refused::taken(), key_columns(refusal.detail.as_deref())),
        "23502" => with_field(refused::missing(), refusal.column.as_deref()),
        "23503" => with_field(refused::referred(), key_columns(refusal.detail.as_deref())),
        "23514" => with_field(refused::rule(), refusal.constraint.as_deref()),
        "25006" | "42501" => refused::denied(),
        "42703" => refused::gone(
            refusal
                .message
                .strip_prefix("column ")
                .and_then(refused::column_name),
        ),
        "42P01" | "3F000" | "42804" | "42846" | "42883" => refused::changed(),
        "57014" => refused::timed_out(),
        "40001" | "40P01" => ConnectionError::new(
            FailureCode::Conflict,
            "another change was made at the same time; try again",
        ),
        "55P03" => ConnectionError::new(
            FailureCode::Unavailable,
            "the record is locked by another session",
        ),
        "54000" | "54001" => ConnectionError::new(
            FailureCode::TooLarge,
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
        "0A000" if refusal.message.contains("cached plan") => RecoveryStep::Again,
        "40001" | "40P01" => RecoveryStep::Again,
        _ => RecoveryStep::Say,
    };
    PostgresqlFailure {
        error: error.details(details(refusal)),
        next,
    }
}

fn details(refusal: &PostgresqlRefusal) -> String {
    format!("{}: {}", refusal.code, refusal.message)
}

fn with_field(error: ConnectionError, field: Option<&str>) -> ConnectionError {
    match field {
        Some(field) => error.field(field),
        None => error,
    }
}

/// Returns the column that `Key (id)=(1) already exists.` names, or what else the parentheses hold: several columns, or an
/// expression of them.
fn key_columns(detail: Option<&str>) -> Option<&str> {
    let (columns, _) = detail?.split_once('(')?.1.split_once(")=(")?;
    let plain = columns
        .strip_prefix('"')
        .and_then(|columns| columns.strip_suffix('"'))
        .filter(|column| !column.contains('"'));
    Some(plain.unwrap_or(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_a_key_are_read_from_the_detail() {
        for (detail, columns) in [
            ("Key (id)=(1) already exists.", Some("id")),
            ("Key (\"Id Col\")=(1) already exists.", Some("Id Col")),
            (
                "Key (a, \"B\")=(1, (2)=(3)) already exists.",
                Some("a, \"B\""),
            ),
            ("Key (lower(b))=(x) already exists.", Some("lower(b)")),
            ("Key (p)=(7) is not present in table \"t\".", Some("p")),
            ("Failing row contains (1, 2).", None),
        ] {
            assert_eq!(key_columns(Some(detail)), columns, "{detail}");
        }
        assert_eq!(key_columns(None), None);
    }
}
