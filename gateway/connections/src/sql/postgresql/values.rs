//! Writes PostgreSQL's binary values as JSON. The statement must cast other types, since only its author knows the
//! required form.

use fallible_iterator::FallibleIterator;

use super::{
    super::rows::{RowsWriter, SqlCell},
    session::{PostgresqlColumn, Row},
};
use crate::{ConnectionError, FailureCode};

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

pub(super) fn write(
    row: &Row,
    columns: &[PostgresqlColumn],
    writer: &mut RowsWriter,
) -> Result<(), ConnectionError> {
    let mut ranges = row.ranges();
    for (index, column) in columns.iter().enumerate() {
        let range = ranges.next().map_err(|error| unreadable(column, &error))?;
        let range = range.ok_or_else(|| unreadable(column, &"the row is too short"))?;
        let Some(range) = range else {
            writer.cell(index, SqlCell::Null)?;
            continue;
        };
        match cell(column, &row.buffer()[range]) {
            Some(cell) => writer.cell(index, cell)?,
            None => {
                return Err(unreadable(
                    column,
                    &format!("type {}: cast it", column.type_oid),
                ));
            }
        }
    }
    writer.end_row()
}

fn cell<'a>(column: &PostgresqlColumn, bytes: &'a [u8]) -> Option<SqlCell<'a>> {
    let text = || std::str::from_utf8(bytes).ok();
    if column.enumeration {
        return text().map(SqlCell::Text);
    }
    Some(match column.type_oid {
        BOOL => SqlCell::Boolean(*bytes.first()? != 0),
        INT2 => SqlCell::Integer(i16::from_be_bytes(bytes.try_into().ok()?).into()),
        INT4 => SqlCell::Integer(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        OID => SqlCell::Integer(u32::from_be_bytes(bytes.try_into().ok()?).into()),
        INT8 => SqlCell::Integer(i64::from_be_bytes(bytes.try_into().ok()?)),
        FLOAT4 => SqlCell::Single(f32::from_be_bytes(bytes.try_into().ok()?)),
        FLOAT8 => SqlCell::Real(f64::from_be_bytes(bytes.try_into().ok()?)),
        TEXT | VARCHAR | BPCHAR | NAME | CHAR | UNKNOWN => SqlCell::Text(text()?),
        BYTEA => SqlCell::Bytes(bytes),
        JSON => SqlCell::Json(text()?),
        // The first byte is the format's version.
        JSONB if bytes.first() == Some(&1) => SqlCell::Json(std::str::from_utf8(&bytes[1..]).ok()?),
        _ => return None,
    })
}

fn unreadable(column: &PostgresqlColumn, details: &dyn std::fmt::Display) -> ConnectionError {
    ConnectionError::new(
        FailureCode::UpstreamError,
        "a column of the answer has a type that cannot be read",
    )
    .field(column.name.as_str())
    .details(details)
}
