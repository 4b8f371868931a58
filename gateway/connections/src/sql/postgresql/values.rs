//! Values as PostgreSQL sends them (binary), written as JSON. Types beyond these are cast in the statement, by
//! whoever knows what they are to become.

use sqlx::{
    Row, TypeInfo, ValueRef,
    postgres::{PgRow, PgTypeKind, PgValueRef},
};

use super::super::rows::{Cell, RowsWriter};
use crate::ConnectionError;

const BOOL: u32 = 16;
const BYTEA: u32 = 17;
const CHAR: u32 = 18;
const NAME: u32 = 19;
const INT8: u32 = 20;
const INT2: u32 = 21;
const INT4: u32 = 23;
const TEXT: u32 = 25;
const OID: u32 = 26;
const JSON: u32 = 114;
const FLOAT4: u32 = 700;
const FLOAT8: u32 = 701;
const UNKNOWN: u32 = 705;
const BPCHAR: u32 = 1042;
const VARCHAR: u32 = 1043;
const JSONB: u32 = 3802;

pub(super) fn write(row: &PgRow, writer: &mut RowsWriter) -> Result<(), ConnectionError> {
    for column in 0..row.columns().len() {
        let value = row.try_get_raw(column).map_err(|error| unreadable(writer, column, &error))?;
        if value.is_null() {
            writer.cell(column, Cell::Null)?;
            continue;
        }
        match cell(&value) {
            Some(cell) => writer.cell(column, cell)?,
            None => return Err(unreadable(writer, column, &format!("type {}: cast it", value.type_info().name()))),
        }
    }
    writer.end_row();
    Ok(())
}

fn cell<'a>(value: &PgValueRef<'a>) -> Option<Cell<'a>> {
    let bytes = value.as_bytes().ok()?;
    let text = || std::str::from_utf8(bytes).ok();
    let info = value.type_info();
    if matches!(info.kind(), PgTypeKind::Enum(_)) {
        return text().map(Cell::Text);
    }
    Some(match info.oid()?.0 {
        BOOL => Cell::Boolean(*bytes.first()? != 0),
        INT2 => Cell::Integer(i16::from_be_bytes(bytes.try_into().ok()?).into()),
        INT4 => Cell::Integer(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        OID => Cell::Integer(u32::from_be_bytes(bytes.try_into().ok()?).into()),
        INT8 => Cell::Integer(i64::from_be_bytes(bytes.try_into().ok()?)),
        FLOAT4 => Cell::Single(f32::from_be_bytes(bytes.try_into().ok()?)),
        FLOAT8 => Cell::Real(f64::from_be_bytes(bytes.try_into().ok()?)),
        TEXT | VARCHAR | BPCHAR | NAME | CHAR | UNKNOWN => Cell::Text(text()?),
        BYTEA => Cell::Bytes(bytes),
        JSON => Cell::Json(text()?),
        // The first byte is the format's version.
        JSONB if bytes.first() == Some(&1) => Cell::Json(std::str::from_utf8(&bytes[1..]).ok()?),
        _ => return None,
    })
}

fn unreadable(writer: &RowsWriter, column: usize, details: &dyn std::fmt::Display) -> ConnectionError {
    ConnectionError::new("upstream_error", "a column of the answer has a type that cannot be read")
        .field(writer.names()[column].as_str())
        .details(details)
}
