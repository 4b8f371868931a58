//! Writes the servers' binary values as JSON. The statement must cast other types, since only its author knows the
//! required form.

use sqlx::{
    Column, Decode, Row, Type, TypeInfo, ValueRef,
    mysql::{MySql, MySqlColumn, MySqlRow, MySqlTypeInfo},
};

use super::super::rows::{RowsWriter, SqlCell};
use crate::{ConnectionError, FailureCode};

pub(super) fn write(row: &MySqlRow, writer: &mut RowsWriter) -> Result<(), ConnectionError> {
    for (index, column) in row.columns().iter().enumerate() {
        let raw = row
            .try_get_raw(index)
            .map_err(|error| unreadable(column, &error))?;
        // A date of zeros counts as null, too.
        if raw.is_null() {
            writer.cell(index, SqlCell::Null)?;
            continue;
        }
        let bytes =
            <&[u8] as Decode<MySql>>::decode(raw).map_err(|error| unreadable(column, &error))?;
        let cell = cell(column.type_info(), bytes, index, writer)?;
        if cell.is_none() {
            let kind = column.type_info().name();
            return Err(unreadable(column, &format!("type {kind}: cast it")));
        }
    }
    writer.end_row()
}

/// Returns about as many bytes as the row takes.
pub(super) fn size(row: &MySqlRow) -> usize {
    let length = |index| {
        let raw = row.try_get_raw(index).ok()?;
        <&[u8] as Decode<MySql>>::decode(raw).ok().map(<[u8]>::len)
    };
    (0..row.columns().len())
        .map(|index| length(index).unwrap_or(0))
        .sum::<usize>()
        .max(1)
}

/// Writes a value; `None` if its type is not one that can be.
fn cell(
    kind: &MySqlTypeInfo,
    bytes: &[u8],
    index: usize,
    writer: &mut RowsWriter,
) -> Result<Option<()>, ConnectionError> {
    let number;
    let Some(cell) = (match kind.name() {
        "BIGINT UNSIGNED" => {
            number = bytes
                .try_into()
                .map(u64::from_le_bytes)
                .unwrap_or(0)
                .to_string();
            Some(SqlCell::Json(&number))
        }
        "FLOAT" => bytes
            .try_into()
            .ok()
            .map(|bytes| SqlCell::Single(f32::from_le_bytes(bytes))),
        "DOUBLE" => bytes
            .try_into()
            .ok()
            .map(|bytes| SqlCell::Real(f64::from_le_bytes(bytes))),
        "DECIMAL" => std::str::from_utf8(bytes).ok().map(SqlCell::Text),
        "JSON" => std::str::from_utf8(bytes).ok().map(SqlCell::Json),
        name if is_whole(name) => whole(bytes, kind).map(SqlCell::Integer),
        _ if is_text(kind) => std::str::from_utf8(bytes).ok().map(SqlCell::Text),
        _ if is_binary(kind) => Some(SqlCell::Bytes(bytes)),
        _ => None,
    }) else {
        return Ok(None);
    };
    writer.cell(index, cell).map(Some)
}

fn is_whole(name: &str) -> bool {
    name == "BOOLEAN" || name == "YEAR" || name.trim_end_matches(" UNSIGNED").ends_with("INT")
}

fn whole(bytes: &[u8], kind: &MySqlTypeInfo) -> Option<i64> {
    // A `tinyint(1)` is called BOOLEAN, with a sign or without.
    let is_unsigned = <u8 as Type<MySql>>::compatible(kind) || kind.name() == "YEAR";
    Some(match (bytes.len(), is_unsigned) {
        (1, true) => bytes[0].into(),
        (1, false) => i8::from_le_bytes(bytes.try_into().ok()?).into(),
        (2, true) => u16::from_le_bytes(bytes.try_into().ok()?).into(),
        (2, false) => i16::from_le_bytes(bytes.try_into().ok()?).into(),
        (4, true) => u32::from_le_bytes(bytes.try_into().ok()?).into(),
        (4, false) => i32::from_le_bytes(bytes.try_into().ok()?).into(),
        (8, _) => i64::from_le_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

fn is_text(kind: &MySqlTypeInfo) -> bool {
    <str as Type<MySql>>::compatible(kind) || matches!(kind.name(), "ENUM" | "SET")
}

fn is_binary(kind: &MySqlTypeInfo) -> bool {
    <[u8] as Type<MySql>>::compatible(kind) || matches!(kind.name(), "BIT" | "GEOMETRY")
}

/// Returns the name of a column's type as used in a description.
pub(super) fn type_name(kind: &MySqlTypeInfo) -> String {
    match kind.name() {
        "JSON" => "json".to_owned(),
        "BIT" => "bit".to_owned(),
        "ENUM" => "enum".to_owned(),
        "SET" => "set".to_owned(),
        "GEOMETRY" => "geometry".to_owned(),
        "BOOLEAN" => "tinyint(1)".to_owned(),
        _ if is_text(kind) => "text".to_owned(),
        _ if is_binary(kind) => "blob".to_owned(),
        name => name.to_ascii_lowercase(),
    }
}

fn unreadable(column: &MySqlColumn, details: &dyn std::fmt::Display) -> ConnectionError {
    ConnectionError::new(
        FailureCode::UpstreamError,
        "a column of the answer has a type that cannot be read",
    )
    .field(column.name())
    .details(details)
}
