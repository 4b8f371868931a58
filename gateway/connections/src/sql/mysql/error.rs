//! The words of MySQL and MariaDB for a failure, in ours.

use sqlx::{Error, mysql::MySqlDatabaseError};

use super::super::refused;
use crate::{ConnectionError, FailureCode};

/// The error for the caller, and what became of the session.
pub(super) struct SessionFailure {
    pub(super) error: ConnectionError,
    /// The server has answered, and waits for the next statement.
    pub(super) is_answered: bool,
    /// Another transaction came between, so that this one may be tried again.
    pub(super) is_deadlock: bool,
    /// What became of a write cannot be known.
    pub(super) is_unknown: bool,
}

impl From<ConnectionError> for SessionFailure {
    fn from(error: ConnectionError) -> Self {
        Self {
            error,
            is_answered: true,
            is_deadlock: false,
            is_unknown: false,
        }
    }
}

impl From<Error> for SessionFailure {
    fn from(error: Error) -> Self {
        match database_error(&error) {
            Some(refusal) => Self {
                error: described(refusal).details(refusal),
                is_answered: !is_ended(refusal.number()),
                is_deadlock: matches!(refusal.number(), 1213 | 1020),
                is_unknown: false,
            },
            None => Self {
                is_answered: false,
                ..refused::unavailable().details(error).into()
            },
        }
    }
}

impl SessionFailure {
    /// The session is in the middle of an answer.
    pub(super) fn cut(error: ConnectionError) -> Self {
        Self {
            is_answered: false,
            ..error.into()
        }
    }
}

/// Reads an error while connecting, which always means that the database is not there for us.
pub(super) fn while_connecting(error: Error) -> ConnectionError {
    let login = |details: &dyn std::fmt::Display| {
        ConnectionError::new(
            FailureCode::UpstreamError,
            "the database refuses the connection's login",
        )
        .details(details)
    };
    match (database_error(&error), &error) {
        (Some(refusal), _) => match refusal.number() {
            // The server reports a missing database and one without rights on it in the same way.
            1044 | 1049 => ConnectionError::new(
                FailureCode::UpstreamError,
                "the connection's account may use no database of the name in its URL",
            )
            .details(refusal),
            1045 | 1130 | 1251 | 1275 | 1698 | 1862 | 3118 | 3955 | 4151 => login(refusal),
            _ => refused::unavailable().details(refusal),
        },
        // A password is sent in clear only over TLS, and RSA is not supported for it here.
        (None, Error::Configuration(_)) => login(&error),
        (None, _) => refused::unavailable().details(error),
    }
}

/// Reads an error while committing. A COMMIT whose answer is lost may have happened.
pub(super) fn while_committing(error: Error) -> SessionFailure {
    match database_error(&error) {
        Some(refusal) if !is_ended(refusal.number()) => error.into(),
        _ => unknown(error),
    }
}

pub(super) fn unknown(reason: impl std::fmt::Display) -> SessionFailure {
    let error = ConnectionError::new(
        FailureCode::Unavailable,
        "the connection broke; whether the change was made is unknown",
    );
    SessionFailure {
        is_answered: false,
        is_unknown: true,
        ..error.details(reason).into()
    }
}

fn database_error(error: &Error) -> Option<&MySqlDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

/// The server has ended the session, or is about to.
fn is_ended(number: u16) -> bool {
    matches!(number, 1053 | 1077 | 1079 | 1080 | 1927 | 4031)
}

fn described(refusal: &MySqlDatabaseError) -> ConnectionError {
    let text = refusal.message();
    match refusal.number() {
        1022 | 1062 | 1169 | 1586 => with_field(refused::taken(), index_name(text)),
        1048 | 1364 => with_field(refused::missing(), quoted(text)),
        1216 | 1217 | 1451 => refused::referred(),
        1452 => with_field(refused::referred(), referring_column(text)),
        1044 | 1142 | 1143 | 1227 | 1290 | 1370 | 1792 | 1836 => refused::denied(),
        1054 | 1166 => refused::gone(quoted(text).and_then(refused::column_name)),
        1146 | 1305 | 1049 | 1267 | 1271 => refused::changed(),
        1317 | 1969 | 3024 => refused::timed_out(),
        1020 | 1213 => ConnectionError::new(
            FailureCode::Conflict,
            "another change was made at the same time; try again",
        ),
        1205 | 3572 => ConnectionError::new(
            FailureCode::Unavailable,
            "the record is locked by another session",
        ),
        1038 | 1118 | 1153 | 1390 | 1436 => ConnectionError::new(
            FailureCode::TooLarge,
            "the statement is too large for the database",
        ),
        1264 | 1265 | 1292 | 1366 | 1367 | 1406 | 1411 | 1690 | 3140 | 3141 => {
            with_field(refused::unfit(), column_of(text))
        }
        3819 | 4025 => with_field(refused::rule(), rule_name(text)),
        1040 | 1053 | 1077 | 1079 | 1080 | 1203 | 1226 | 1927 | 4031 => refused::unavailable(),
        _ => match refusal.code().and_then(|code| code.get(..2)) {
            Some("22") => with_field(refused::unfit(), column_of(text)),
            Some("23" | "44" | "45") => refused::rule(),
            Some("08") => refused::unavailable(),
            _ => refused::statement(),
        },
    }
}

fn with_field(error: ConnectionError, field: Option<&str>) -> ConnectionError {
    match field.filter(|name| !name.contains(['.', ';'])) {
        Some(field) => error.field(field),
        None => error,
    }
}

/// Returns the first name in single quotes.
fn quoted(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('\'')?.1.split_once('\'')?;
    (!name.is_empty()).then_some(name)
}

/// Returns the name of the index in `Duplicate entry '1' for key 't.code'`, which is that of its first column unless
/// another was given. A primary key's name tells nothing.
fn index_name(text: &str) -> Option<&str> {
    let name = text.rsplit_once("key '")?.1.trim_end_matches('\'');
    let name = name.rsplit_once('.').map_or(name, |(_, name)| name);
    (name != "PRIMARY").then_some(name)
}

/// Returns the column in `… CONSTRAINT "c" FOREIGN KEY ("p") REFERENCES …`, if it is a single one. The mode of the session
/// determines which quotes are used.
fn referring_column(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("FOREIGN KEY (")?;
    let (column, _) = rest.split_once(") REFERENCES")?;
    let column = column.trim_matches(['"', '`']);
    (!column.contains(['"', '`'])).then_some(column)
}

/// Returns the name of the rule in ``CONSTRAINT `t.v` failed for `d`.`t` ``, which is its column's if that has it, or in
/// `Check constraint 'c' is violated.`
fn rule_name(text: &str) -> Option<&str> {
    let name = match text.strip_prefix("CONSTRAINT `") {
        Some(rest) => rest.split_once("` failed")?.0,
        None => quoted(text)?,
    };
    Some(name.rsplit_once('.').map_or(name, |(_, name)| name))
}

/// Returns the column in `Data too long for column 'v' at row 1` and in ``… for column `d`.`t`.`v` at row 1``.
fn column_of(text: &str) -> Option<&str> {
    let rest = text.rsplit_once("column ")?.1;
    let name = rest.split_once(" at row").map_or(rest, |(name, _)| name);
    let name = name.rsplit_once('.').map_or(name, |(_, name)| name);
    refused::column_name(name.trim_matches(['\'', '`']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_is_read_from_the_message() {
        for (text, name) in [
            ("Duplicate entry '1' for key 'PRIMARY'", None),
            ("Duplicate entry 'a'b' for key 't.code'", Some("code")),
            ("Duplicate entry 'x' for key 'code'", Some("code")),
        ] {
            assert_eq!(index_name(text), name, "{text}");
        }
        for (text, name) in [
            ("Data too long for column 'v' at row 1", Some("v")),
            (
                "Incorrect date value: 'x' for column `d`.`t`.`day` at row 1",
                Some("day"),
            ),
            ("Truncated incorrect DECIMAL value: 'x'", None),
        ] {
            assert_eq!(column_of(text), name, "{text}");
        }
        for (text, name) in [
            ("CONSTRAINT `t.g` failed for `d0`.`t`", Some("g")),
            (
                "CONSTRAINT `positive` failed for `d0`.`t`",
                Some("positive"),
            ),
            ("Check constraint 't_chk_1' is violated.", Some("t_chk_1")),
        ] {
            assert_eq!(rule_name(text), name, "{text}");
        }
        for (keys, name) in [
            ("\"p\"", Some("p")),
            ("`p`", Some("p")),
            ("\"p\", \"q\"", None),
        ] {
            let text = format!(
                "a foreign key constraint fails (\"d\".\"t\", CONSTRAINT \"c\" FOREIGN KEY ({keys}) REFERENCES \"t\" (\"id\"))"
            );
            assert_eq!(referring_column(&text), name, "{text}");
        }
        assert_eq!(quoted("Column 'v' cannot be null"), Some("v"));
        assert_eq!(quoted("nothing"), None);
    }
}
