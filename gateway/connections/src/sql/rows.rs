//! Rows on their way out: a JSON array of objects, written as they come, bounded in number and bytes.

use std::sync::Arc;

use super::{RECORDS_MAX_BYTES, SqlRows};
use crate::{ConnectionError, FailureCode};

/// Room for a usual record.
const TEXT_FIRST_BYTES: usize = 1024;

/// The columns of a statement's rows.
pub(super) struct RowHeader {
    names: Vec<String>,
    /// `"name":` of each.
    keys: Vec<Vec<u8>>,
}

pub(super) struct RowsWriter {
    header: Arc<RowHeader>,
    text: Vec<u8>,
    count: u32,
    limit: u32,
    truncated: bool,
}

/// A value of a row.
pub(super) enum SqlCell<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// A real. One that is not finite becomes null, as defined by the value table.
    Real(f64),
    /// A 4-byte float, so that its own shortest digits are written.
    Single(f32),
    Text(&'a str),
    /// Already JSON.
    Json(&'a str),
    Bytes(&'a [u8]),
}

impl RowHeader {
    pub(super) fn new(names: Vec<String>) -> Result<Self, ConnectionError> {
        let mut sorted: Vec<_> = names.iter().collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ConnectionError::new(
                FailureCode::InvalidArguments,
                "two columns of the result have the same name",
            )
            .field(twice[0]));
        }
        let mut keys = Vec::with_capacity(names.len());
        for name in &names {
            let mut key = Vec::with_capacity(name.len() + 3);
            string(&mut key, name);
            key.push(b':');
            keys.push(key);
        }
        Ok(Self { names, keys })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}

impl RowsWriter {
    pub(super) fn new(header: Arc<RowHeader>, limit: u32) -> Self {
        let mut text = Vec::with_capacity(TEXT_FIRST_BYTES);
        text.push(b'[');
        Self {
            header,
            text,
            count: 0,
            limit,
            truncated: false,
        }
    }

    /// Begins a row. Returns `false` once there are as many rows as asked for, which are then known not to be all.
    pub(super) fn begin_row(&mut self) -> bool {
        if self.count == self.limit {
            self.truncated = true;
            return false;
        }
        self.text
            .extend_from_slice(if self.count == 0 { b"{" } else { b",{" });
        self.count += 1;
        true
    }

    pub(super) fn cell(&mut self, column: usize, cell: SqlCell<'_>) -> Result<(), ConnectionError> {
        if column > 0 {
            self.text.push(b',');
        }
        self.text.extend_from_slice(&self.header.keys[column]);
        let to = &mut self.text;
        match cell {
            SqlCell::Null => to.extend_from_slice(b"null"),
            SqlCell::Boolean(value) => to.extend_from_slice(if value { b"true" } else { b"false" }),
            SqlCell::Integer(value) => number(to, value),
            SqlCell::Real(value) => number(to, value),
            SqlCell::Single(value) => number(to, value),
            SqlCell::Text(value) => string(to, value),
            SqlCell::Json(value) => to.extend_from_slice(value.as_bytes()),
            SqlCell::Bytes(value) => {
                use base64::Engine;
                to.push(b'"');
                to.extend_from_slice(
                    base64::engine::general_purpose::STANDARD
                        .encode(value)
                        .as_bytes(),
                );
                to.push(b'"');
            }
        }
        self.bounded()
    }

    pub(super) fn end_row(&mut self) -> Result<(), ConnectionError> {
        self.text.push(b'}');
        self.bounded()
    }

    fn bounded(&self) -> Result<(), ConnectionError> {
        match self.text.len() <= RECORDS_MAX_BYTES {
            true => Ok(()),
            false => Err(ConnectionError::new(
                FailureCode::TooLarge,
                "the records are larger than 8 MiB; ask for fewer",
            )),
        }
    }

    pub(super) fn finish(mut self) -> SqlRows {
        self.text.push(b']');
        let records = String::from_utf8(self.text).expect("only text was written");
        SqlRows {
            records,
            truncated: self.truncated,
        }
    }
}

fn number(to: &mut Vec<u8>, value: impl serde::Serialize) {
    serde_json::to_writer(to, &value).expect("writing to memory does not fail");
}

fn string(to: &mut Vec<u8>, value: &str) {
    serde_json::to_writer(to, value).expect("writing to memory does not fail");
}
