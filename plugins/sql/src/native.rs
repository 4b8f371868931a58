//! PostgreSQL's names of types, and its spelling of values that the value table spells differently.

use std::borrow::Cow;

use weir_plugin_sdk::value::Datetime;
use weir_plugin_sdk::{Error, Type, Value, Zone};

/// Returns the type of a column by its name in the catalogue; `None` for bytes, which have no place in the value table.
pub(crate) fn kind(native: &str) -> Option<Type> {
    Some(match native {
        "int2" | "int4" => Type::Integer,
        // The value may exceed 2^53; a contract may override it with `integer`.
        "int8" | "numeric" => Type::Decimal,
        "float4" | "float8" => Type::Number,
        "bool" => Type::Boolean,
        "date" => Type::Date,
        "timestamp" | "timestamptz" => Type::Datetime,
        "json" | "jsonb" => Type::Json,
        "bytea" => return None,
        // Texts, enums, UUIDs, and whatever else has a spelling.
        _ => Type::String,
    })
}

/// Returns the type of an array's elements, and how many dimensions the array was described with.
pub(crate) fn element(native: &str) -> Option<(&str, usize)> {
    let element = native.trim_end_matches("[]");
    let dimensions = (native.len() - element.len()) / 2;
    (dimensions > 0).then_some((element, dimensions))
}

/// Returns the expression for a value as the database shows it. A cast adds `/32` to the address of a host, as nothing else does.
pub(crate) fn spell(name: &str, native: &str) -> String {
    match native {
        "inet" => format!(
            "(CASE WHEN masklen({name}) = CASE family({name}) WHEN 4 THEN 32 ELSE 128 END THEN host({name}) ELSE {name}::text END)"
        ),
        _ => format!("{name}::text"),
    }
}

/// Returns a type for a cast. The name comes from the recorded shape and becomes part of a statement, so outside of quotes it
/// may have only the characters of such names.
pub(crate) fn cast(native: &str) -> Result<&str, Error> {
    match native {
        // Without quotes these are `bit(1)` and `character(1)`, to which a value is cut.
        "bit" => Ok("\"bit\""),
        "char" => Ok("\"char\""),
        _ if is_type_name(native) => Ok(native),
        _ => Err(
            Error::invalid("A type of the recorded shape is not the name of a type.")
                .field("shape"),
        ),
    }
}

/// Returns `true` for names with what is between them; a quote within quotes is doubled.
fn is_type_name(native: &str) -> bool {
    let mut is_quoted = false;
    let is_allowed = |char: char| match char {
        '"' => {
            is_quoted = !is_quoted;
            true
        }
        '\0' => false,
        _ => is_quoted || char.is_alphanumeric() || matches!(char, '_' | ' ' | '.'),
    };
    native.chars().all(is_allowed) && !is_quoted
}

/// The bytes of PostgreSQL's type for the names of its own catalogue.
const NAME_MAX_BYTES: usize = 63;

/// Returns a value as text for a cast to a type; `None` for one that PostgreSQL cannot hold or would cut. A time for a column
/// without a zone is written as the clocks of `zone` show it if there is one.
pub(crate) fn text(value: &Value<'_>, native: &str, zone: Option<&Zone>) -> Option<String> {
    let text = match value {
        Value::Null | Value::Unfit(_) => return None,
        Value::Date(date) => with_era(date),
        Value::Datetime(datetime) => match zone.filter(|_| native == "timestamp") {
            Some(zone) => {
                let local = datetime.to_local(zone)?;
                // The second reading of a time that the clocks show twice would come out as the first.
                (Datetime::parse(&local, zone) == Some(*datetime)).then(|| with_era(&local))?
            }
            None => with_era(&datetime.to_string()),
        },
        Value::Text(text) | Value::Json(text) => text.to_string(),
        Value::Decimal(decimal) => decimal.as_str().to_owned(),
        Value::Boolean(_) | Value::Integer(_) | Value::Number(_) => value.to_json(),
    };
    let is_cut = match native {
        "char" => text.len() > 1 || !text.is_ascii(),
        "name" => text.len() > NAME_MAX_BYTES,
        _ => false,
    };
    (!text.contains('\0') && !is_cut).then_some(text)
}

/// Writes the year 0000, which PostgreSQL does not have: the year before 0001 is 1 BC.
pub(crate) fn with_era(text: &str) -> String {
    text.strip_prefix("0000")
        .map_or_else(|| text.to_owned(), |rest| format!("0001{rest} BC"))
}

/// Reads a date or time as the value table writes it; `None` if it is infinite or its year is not one of 0000 to 9999.
pub(crate) fn without_era(text: &str) -> Option<Cow<'_, str>> {
    match text.strip_suffix(" BC") {
        Some(text) => text
            .strip_prefix("0001")
            .map(|rest| Cow::Owned(format!("0000{rest}"))),
        None => (text.find('-') == Some(4)).then_some(Cow::Borrowed(text)),
    }
}

/// Returns `true` for the spelling of a number that is not finite.
pub(crate) fn is_not_finite(text: &str) -> bool {
    matches!(text, "NaN" | "Infinity" | "-Infinity")
}

/// Returns `true` for a UUID as PostgreSQL spells it.
pub(crate) fn is_canonical_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}
