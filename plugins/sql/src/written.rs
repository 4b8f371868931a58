//! Checks a statement of the operator's own that writes.

use weir_plugin_sdk::{Error, Type};
use weir_statements::{
    StatementToken, tokens,
    write::{WrittenTable, check_write},
};

use crate::dialect::SqlDialect;
use crate::parameters::{DeclaredParameters, SqlTemplate, refused};

/// The operation that a collection with a statement has.
pub(crate) const OPERATION: &str = "run";
/// The members of an answer that is not one record.
pub(crate) const ROWS: &str = "rows";
pub(crate) const RECORDS: &str = "records";

#[derive(Clone, Debug)]
pub(crate) struct WrittenStatement {
    pub(crate) template: SqlTemplate,
    /// Whether it answers rows, by RETURNING.
    pub(crate) returns: bool,
    /// The table that it writes, if its name is plain.
    pub(crate) table: Option<WrittenTable>,
}

impl WrittenStatement {
    pub(crate) fn parse(
        text: &str,
        declared: &DeclaredParameters,
        dialect: SqlDialect,
    ) -> Result<Self, Error> {
        if text.contains('\0') {
            return Err(refused(&"it has a null character; leave it out"));
        }
        let all = tokens(text, dialect.syntax()).map_err(|unclosed| refused(&unclosed))?;
        let code: Vec<&StatementToken<'_>> = all.iter().filter(|token| token.is_code()).collect();
        // A connection takes no comment in front, and a statement in another one no end.
        let last = code.iter().rposition(|token| !token.is_symbol(";"));
        let code = &code[..last.map_or(0, |last| last + 1)];
        let (Some(first), Some(last)) = (code.first(), code.last()) else {
            let why = "it is empty; write one INSERT, UPDATE, DELETE or MERGE";
            return Err(refused(&why));
        };
        let written = check_write(code, dialect.syntax()).map_err(|why| refused(&why))?;
        let text = &text[first.at..last.at + last.text.len()];
        Ok(Self {
            template: SqlTemplate::parse(text, declared, dialect)?,
            returns: written.returns,
            table: written.table,
        })
    }
}

/// Returns the types of an answer without its own columns.
pub(crate) fn count_field() -> weir_plugin_sdk::Field {
    weir_plugin_sdk::Field::new(ROWS, Type::Integer)
}
