//! Explains what a database refuses, in the same words for every kind of database.

use crate::{ConnectionError, FailureCode};

pub(super) fn taken() -> ConnectionError {
    ConnectionError::new(
        FailureCode::Conflict,
        "a record with this value already exists",
    )
}

pub(super) fn missing() -> ConnectionError {
    ConnectionError::new(FailureCode::InvalidArguments, "a value is required")
}

pub(super) fn unfit() -> ConnectionError {
    ConnectionError::new(
        FailureCode::InvalidArguments,
        "a value does not fit its column",
    )
}

pub(super) fn referred() -> ConnectionError {
    ConnectionError::new(
        FailureCode::InvalidArguments,
        "a record that this one refers to is missing, or others refer to this one",
    )
}

pub(super) fn rule() -> ConnectionError {
    ConnectionError::new(
        FailureCode::InvalidArguments,
        "a rule of the table refuses the record",
    )
}

pub(super) fn changed() -> ConnectionError {
    ConnectionError::new(FailureCode::SourceChanged, "the table has changed")
}

/// Returns the error for a missing column, with its name if the database's message has it.
pub(super) fn gone(column: Option<&str>) -> ConnectionError {
    match column {
        None => changed(),
        Some(column) => ConnectionError::new(
            FailureCode::SourceChanged,
            format!("the table no longer has the column `{column}`"),
        )
        .field(column),
    }
}

/// Returns the name at the start of a database's message: in double quotes, or up to the next space, without its table.
pub(super) fn column_name(text: &str) -> Option<&str> {
    let name = match text.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.0,
        None => text.split([' ', ',', ')']).next()?.rsplit('.').next()?,
    };
    let plain = |char: char| char.is_alphanumeric() || " _-$".contains(char);
    ((1..=128).contains(&name.len()) && name.chars().all(plain)).then_some(name)
}

pub(super) fn denied() -> ConnectionError {
    ConnectionError::new(
        FailureCode::Forbidden,
        "the statement asks for more than this connection allows",
    )
}

pub(super) fn statement() -> ConnectionError {
    ConnectionError::new(
        FailureCode::UpstreamError,
        "the database refused the statement",
    )
}

pub(super) fn unavailable() -> ConnectionError {
    ConnectionError::new(FailureCode::Unavailable, "the database cannot be reached")
}

pub(super) fn timed_out() -> ConnectionError {
    ConnectionError::new(FailureCode::Timeout, "the database did not answer in time")
}

pub(super) fn cancelled() -> ConnectionError {
    ConnectionError::new(FailureCode::Cancelled, "the statement was interrupted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gone_column_is_named() {
        let cases = [
            ("\"born\" does not exist", Some("born")),
            ("people.born does not exist", Some("born")),
            ("born", Some("born")),
            (
                "\"Geboren am\" of relation \"people\" does not exist",
                Some("Geboren am"),
            ),
            ("\"a;b\" does not exist", None),
            ("", None),
        ];
        for (text, name) in cases {
            assert_eq!(column_name(text), name, "{text}");
        }
        let error = gone(Some("born"));
        assert_eq!(
            (error.code, error.field.as_deref()),
            (FailureCode::SourceChanged, Some("born"))
        );
        assert!(error.message.contains("`born`"));
        assert_eq!(gone(None), changed());
    }
}
