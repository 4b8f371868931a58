//! Rows that a list leaves out, since a column that may not be null holds a value that no answer has: their number is answered
//! beside the records of a page.

use weir_plugin_sdk::serde_json::json;
use weir_plugin_sdk::{Error, Query, log, sql};

use crate::SqlAdapter;
use crate::column::SqlColumn;
use crate::condition;
use crate::dialect::SqlDialect;
use crate::statement::{self, cell};

/// The rows in which they are counted.
const ROWS_SEARCHED: u64 = 100_000;

/// Returns the records of a page with the number of rows that a query's list leaves out, of whatever page, and the columns at
/// fault: `{"left_out": {"count": 2, "columns": ["n"], "more": false}, "records": […]}`. Where there is none, it is the array of
/// the records. `columns` are those that are shown or ordered by.
pub(crate) fn add_number(
    collection: &SqlAdapter,
    dialect: SqlDialect,
    query: &Query,
    columns: &[SqlColumn<'_>],
    records: String,
) -> Result<String, Error> {
    let judged: Vec<(&SqlColumn<'_>, String)> = columns
        .iter()
        .filter_map(|column| Some((column, condition::has_value(column, dialect)?)))
        .collect();
    if judged.is_empty() {
        return Ok(records);
    }
    let count = |fits: &str| format!("count(CASE WHEN {fits} THEN NULL ELSE 1 END)");
    let (mut names, mut all) = (Vec::new(), Vec::new());
    for (column, fits) in &judged {
        names.push(column.name());
        all.push(fits.as_str());
    }
    let mut list = vec!["count(*)".to_owned(), count(&all.join(" AND "))];
    list.extend(all.into_iter().map(count));
    let list = list.iter().enumerate();
    let list: Vec<_> = list.map(|(at, part)| format!("{part} AS c{at}")).collect();
    let mut builder = collection.builder(dialect, &query.options)?;
    let conditions = condition::all(collection, &query.conditions, &mut builder)?;
    builder.text = format!(
        "SELECT {} FROM (SELECT {} FROM {}{conditions} LIMIT {ROWS_SEARCHED}) AS searched",
        list.join(", "),
        names.join(", "),
        collection.source(dialect)?
    );
    let statement = builder.finish(&collection.settings.connection, 1, None);
    let answer = match sql::query(&statement) {
        Ok(answer) => answer,
        // The page is worth more than the number.
        Err(error) => {
            log::warn(&format!(
                "Records that are left out cannot be counted: {error}"
            ));
            return Ok(records);
        }
    };
    let rows = statement::rows(&answer.records)?;
    let Some(row) = rows.first() else {
        return Ok(records);
    };
    let number = |at: usize| -> Result<u64, Error> {
        let number = cell(row, at)?.get().trim_matches('"').parse::<u64>();
        number.map_err(|_| Error::internal("The database answered no count."))
    };
    let left_out = number(1)?;
    if left_out == 0 {
        return Ok(records);
    }
    let mut at_fault = Vec::new();
    for (at, (column, _)) in judged.iter().enumerate() {
        if number(at + 2)? > 0 {
            at_fault.push(&column.field.key);
        }
    }
    let more = number(0)? >= ROWS_SEARCHED;
    let left_out = json!({ "count": left_out, "columns": at_fault, "more": more });
    Ok(format!(r#"{{"left_out":{left_out},"records":{records}}}"#))
}
