//! Counts: one SELECT over the rows that meet the conditions.

use weir_plugin_sdk::records::Records;
use weir_plugin_sdk::summary::SummaryFunction;
use weir_plugin_sdk::{Error, Field, SummaryPage, SummaryQuery, Type, Value, sql};

use crate::Sql;
use crate::condition;
use crate::dialect::Dialect;
use crate::select::source_error;
use crate::statement::{self, Builder, cell};

pub(crate) fn summarize(
    collection: &Sql,
    dialect: Dialect,
    query: &SummaryQuery,
) -> Result<SummaryPage, Error> {
    let is_count = |function| function == SummaryFunction::Count;
    if !query.groups.is_empty() || !query.measures.iter().all(|one| is_count(one.function)) {
        return Err(Error::unsupported("Tables can only be counted."));
    }
    let mut builder = Builder::new(dialect);
    let conditions = condition::all(collection, &query.conditions, &mut builder)?;
    let source = collection.settings.source().sql();
    builder.text = format!("SELECT count(*) AS c0 FROM {source}{conditions}");
    let statement = builder.finish(&collection.settings.connection, 1, None);
    let answer = sql::query(&statement).map_err(source_error)?;
    let rows = statement::rows(&answer.records)?;
    let row = rows
        .first()
        .ok_or_else(|| Error::internal("The database answered no count."))?;
    let count = Value::from_json(
        cell(row, 0)?,
        &Field::new("count", Type::Integer),
        &collection.zone,
    );
    let mut records = Records::new();
    let measures = query.measures.iter();
    records.push(measures.map(|measure| (measure.name.as_str(), count.clone())));
    Ok(SummaryPage {
        records: records.finish(),
        more: false,
    })
}
