//! Runs a statement of the operator's own that writes.

use std::collections::BTreeMap;

use weir_plugin_sdk::records::{Records, record};
use weir_plugin_sdk::serde_json::{self, json, value::RawValue};
use weir_plugin_sdk::{Change, Error, Value, sql};

use crate::SqlAdapter;
use crate::column::SqlColumn;
use crate::dialect::SqlDialect;
use crate::statement::StatementBuilder;
use crate::written::{RECORDS, ROWS, WrittenStatement};

/// Runs the statement of a collection. Its answer has the columns of the recorded operation.
pub(crate) fn run(
    collection: &SqlAdapter,
    dialect: SqlDialect,
    change: &Change,
) -> Result<String, Error> {
    let operations = &collection.shape.capabilities.operations;
    let asked = change
        .options
        .get("operation")
        .and_then(|name| name.as_str());
    let Some(operation) = operations
        .iter()
        .find(|operation| asked == Some(operation.name.as_str()))
    else {
        return Err(Error::unsupported("The collection has no such operation."));
    };
    let Some(statement) = collection.statement(dialect)? else {
        return Err(Error::unsupported("The collection has no statement."));
    };
    let settings = &collection.settings;
    let most = settings.rows_max();
    let records = operation.returns.iter().find(|field| field.key == RECORDS);
    let items = records.and_then(|field| field.items.as_ref());
    let fields = match (statement.returns, items) {
        (false, _) => &[][..],
        (true, Some(items)) if most > 1 => &items.fields[..],
        (true, _) => &operation.returns[..],
    };
    let columns: Vec<_> = fields
        .iter()
        .map(|field| SqlColumn::new(&collection.shape, dialect, field))
        .collect();
    let mut builder = StatementBuilder::new(dialect);
    statement
        .template
        .bind(&change.options, &collection.zone, &mut builder)?;
    builder.text = text(statement, dialect, &columns);
    let options = json!({ "write": true, "statement": true, "rows_max": most }).to_string();
    let given = builder.finish(&settings.connection, most, Some(&options));
    if !statement.returns {
        let changed = sql::execute(&given)?;
        return Ok(json!({ ROWS: changed }).to_string());
    }
    let answer = sql::query(&given)?;
    let rows: Vec<BTreeMap<String, &RawValue>> = serde_json::from_str(&answer.records)
        .map_err(|_| Error::internal("The rows of the database cannot be read."))?;
    // SQLite answers under the names of RETURNING, columns of bytes among them.
    let names: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| match dialect {
            SqlDialect::Sqlite => column.field.key.clone(),
            _ => format!("c{at}"),
        })
        .collect();
    let mut records = Records::new();
    let mut last = None;
    for row in &rows {
        let members = columns.iter().zip(&names).map(|(column, name)| {
            let cell = row.get(name).copied();
            let cell = cell.ok_or_else(|| Error::internal("A column of the answer is missing."))?;
            let value = column.value(cell, &collection.zone);
            Ok((column.field.key.as_str(), value))
        });
        let members = members.collect::<Result<Vec<_>, Error>>()?;
        match most {
            1 => last = Some(record(members)),
            _ => records.push(members),
        }
    }
    if most > 1 {
        let records = Value::Json(records.finish().into());
        let count = Value::Integer(rows.len() as i128);
        return Ok(record([(ROWS, count), (RECORDS, records)]));
    }
    last.ok_or_else(|| Error::not_found("The statement met no record, and nothing was changed."))
}

/// Returns the text that is run. PostgreSQL writes the columns as the adapter reads them.
fn text(statement: &WrittenStatement, dialect: SqlDialect, columns: &[SqlColumn<'_>]) -> String {
    let text = &statement.template.text;
    if dialect == SqlDialect::Sqlite || !statement.returns {
        return text.clone();
    }
    let list = columns.iter().map(SqlColumn::read).enumerate();
    let list: Vec<_> = list.map(|(at, read)| format!("{read} AS c{at}")).collect();
    format!(
        "WITH weir_statement AS (\n{text}\n) SELECT {} FROM weir_statement",
        list.join(", ")
    )
}
