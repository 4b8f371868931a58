//! The parameters of a statement: a JSON array, bound one by one.

use serde_json::value::RawValue;

use crate::{Code, ConnectionError};

const COUNT_MAX: usize = 2000;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Parameter {
    Null,
    Boolean(bool),
    Integer(i64),
    /// The double, and the number as it was written.
    Real(f64, String),
    /// A string, or the JSON text of an array or object.
    Text(String),
}

pub(super) fn read(json: &str) -> Result<Vec<Parameter>, ConnectionError> {
    let wrong = |error: serde_json::Error| {
        ConnectionError::new(
            Code::InvalidArguments,
            "the statement's parameters are not a JSON array",
        )
        .details(error)
    };
    let raw: Vec<&RawValue> = serde_json::from_str(json).map_err(wrong)?;
    if raw.len() > COUNT_MAX {
        return Err(ConnectionError::new(
            Code::TooLarge,
            "a statement takes at most 2,000 parameters",
        ));
    }
    raw.into_iter()
        .map(|value| parameter(value.get()).map_err(wrong))
        .collect()
}

fn parameter(text: &str) -> Result<Parameter, serde_json::Error> {
    Ok(match text.as_bytes().first() {
        Some(b'n') => Parameter::Null,
        Some(b't') => Parameter::Boolean(true),
        Some(b'f') => Parameter::Boolean(false),
        Some(b'"') => Parameter::Text(serde_json::from_str(text)?),
        Some(b'[' | b'{') => Parameter::Text(text.to_owned()),
        _ => match text.parse() {
            Ok(integer) => Parameter::Integer(integer),
            Err(_) => Parameter::Real(serde_json::from_str(text)?, text.to_owned()),
        },
    })
}
