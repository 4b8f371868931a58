//! Why a session gives no answer: the server refused, or the connection broke.

use std::io;

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorResponseBody;

use crate::ConnectionError;

#[derive(Debug)]
pub(in crate::sql::postgresql) enum PostgresqlError {
    Refused(Box<PostgresqlRefusal>),
    /// The connection broke. Unless `heard`, there was no answer to the last request.
    Lost {
        error: io::Error,
        heard: bool,
    },
    /// An error that was found here.
    Own(ConnectionError),
    /// The rows have types of the database's own that are to be looked up first.
    Untyped(Vec<u32>),
}

/// The server's refusal.
#[derive(Debug, Default)]
pub(in crate::sql::postgresql) struct PostgresqlRefusal {
    pub(in crate::sql::postgresql) code: String,
    pub(in crate::sql::postgresql) message: String,
    pub(in crate::sql::postgresql) detail: Option<String>,
    pub(in crate::sql::postgresql) column: Option<String>,
    pub(in crate::sql::postgresql) constraint: Option<String>,
    /// The session is over.
    pub(in crate::sql::postgresql) fatal: bool,
}

impl From<ConnectionError> for PostgresqlError {
    fn from(error: ConnectionError) -> Self {
        Self::Own(error)
    }
}

impl From<io::Error> for PostgresqlError {
    fn from(error: io::Error) -> Self {
        Self::Lost { error, heard: true }
    }
}

impl From<&ErrorResponseBody> for PostgresqlRefusal {
    fn from(body: &ErrorResponseBody) -> Self {
        let mut refusal = Self::default();
        let mut fields = body.fields();
        while let Ok(Some(field)) = fields.next() {
            let text = || String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'V' => refusal.fatal = matches!(field.value_bytes(), b"FATAL" | b"PANIC"),
                b'C' => refusal.code = text(),
                b'M' => refusal.message = text(),
                b'D' => refusal.detail = Some(text()),
                b'c' => refusal.column = Some(text()),
                b'n' => refusal.constraint = Some(text()),
                _ => {}
            }
        }
        refusal
    }
}
