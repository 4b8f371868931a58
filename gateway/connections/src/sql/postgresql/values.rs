//! Writes PostgreSQL's binary values as JSON. The statement must cast other types, since only its author knows the wanted
//! form.

use fallible_iterator::FallibleIterator;

use super::{
    super::rows::{Cell, RowsWriter},
    session::{Column, Row},
};
use crate::{Code, ConnectionError};

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
    columns: &[Column],
    writer: &mut RowsWriter,
) -> Result<(), ConnectionError> {
    let mut ranges = row.ranges();
    for (index, column) in columns.iter().enumerate() {
        let range = ranges.next().map_err(|error| unreadable(column, &error))?;
        let range = range.ok_or_else(|| unreadable(column, &"the row is too short"))?;
        let Some(range) = range else {
            writer.cell(index, Cell::Null)?;
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

fn cell<'a>(column: &Column, bytes: &'a [u8]) -> Option<Cell<'a>> {
    let text = || std::str::from_utf8(bytes).ok();
    if column.enumeration {
        return text().map(Cell::Text);
    }
    Some(match column.type_oid {
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

fn unreadable(column: &Column, details: &dyn std::fmt::Display) -> ConnectionError {
    ConnectionError::new(
        Code::UpstreamError,
        "a column of the answer has a type that cannot be read",
    )
    .field(column.name.as_str())
    .details(details)
}
