//! The parameters of a statement: a JSON array, bound one by one.

use serde_json::value::RawValue;

use crate::{ConnectionError, FailureCode};

const COUNT_MAX: usize = 2000;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum StatementParameter {
    Null,
    Boolean(bool),
    Integer(i64),
    /// The double, and the number as it was written.
    Real(f64, String),
    /// A string, or the JSON text of an array or object.
    Text(String),
}

pub(super) fn read(json: &str) -> Result<Vec<StatementParameter>, ConnectionError> {
    let wrong = |error: serde_json::Error| {
        ConnectionError::new(
            FailureCode::InvalidArguments,
            "the statement's parameters are not a JSON array",
        )
        .details(error)
    };
    let raw: Vec<&RawValue> = serde_json::from_str(json).map_err(wrong)?;
    if raw.len() > COUNT_MAX {
        return Err(ConnectionError::new(
            FailureCode::TooLarge,
            "a statement takes at most 2,000 parameters",
        ));
    }
    raw.into_iter()
        .map(|value| parameter(value.get()).map_err(wrong))
        .collect()
}

fn parameter(text: &str) -> Result<StatementParameter, serde_json::Error> {
    Ok(match text.as_bytes().first() {
        Some(b'n') => StatementParameter::Null,
        Some(b't') => StatementParameter::Boolean(true),
        Some(b'f') => StatementParameter::Boolean(false),
        Some(b'"') => StatementParameter::Text(serde_json::from_str(text)?),
        Some(b'[' | b'{') => StatementParameter::Text(text.to_owned()),
        _ => match text.parse() {
            Ok(integer) => StatementParameter::Integer(integer),
            Err(_) => StatementParameter::Real(serde_json::from_str(text)?, text.to_owned()),
        },
    })
}
