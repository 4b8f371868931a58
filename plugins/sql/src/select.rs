//! Reading: one SELECT a page, going on behind the last record by its order values.

use weir_plugin_sdk::order::{bad_cursor, decode_cursor, encode_cursor, total_order};
use weir_plugin_sdk::records::Records;
use weir_plugin_sdk::{Error, Order, Page, Query, Value, sql};

use crate::Sql;
use crate::column::Column;
use crate::condition;
use crate::dialect::Dialect;
use crate::statement::{Builder, cell, rows};

pub(crate) fn read(collection: &Sql, dialect: Dialect, query: &Query) -> Result<Page, Error> {
    let Sql { settings, shape, zone, .. } = collection;
    let column = |key: &str| Column::find(shape, dialect, key);
    let wanted = match query.columns.as_slice() {
        [] => shape.fields.iter().map(|field| Column::new(shape, dialect, field)).collect::<Vec<_>>(),
        columns => columns.iter().map(|key| column(key)).collect::<Result<_, _>>()?,
    };
    let order = Ordered::new(collection, dialect, &query.order)?;
    let mut builder = Builder::new(dialect);
    let mut conditions = query
        .conditions
        .iter()
        .map(|given| condition::condition(given, &column(&given.column)?, zone, &mut builder))
        .collect::<Result<Vec<_>, Error>>()?;
    let mut offset = 0;
    match &query.cursor {
        Some(cursor) if order.total => {
            let fields: Vec<_> = order.columns.iter().map(|column| column.field).collect();
            let values = decode_cursor(cursor, &fields, zone)?;
            conditions.push(order.behind(&values, &mut builder));
        }
        Some(cursor) => offset = cursor.parse::<u64>().map_err(|_| bad_cursor())?,
        None => {}
    }
    builder.text = collection.selected(query, || {
        let mut list: Vec<_> = wanted.iter().chain(&order.columns).map(Column::read).collect();
        if list.is_empty() {
            list.push("1".to_owned());
        }
        let list: Vec<_> = list.iter().enumerate().map(|(at, read)| format!("{read} AS c{at}")).collect();
        format!("SELECT {} FROM {}", list.join(", "), settings.source().sql())
    });
    if !conditions.is_empty() {
        builder.text += &format!(" WHERE {}", conditions.join(" AND "));
    }
    let by = order.sql(&mut builder);
    if !by.is_empty() {
        builder.text += &format!(" ORDER BY {by}");
    }
    builder.text += &format!(" LIMIT {}", u64::from(query.limit) + 1);
    if offset > 0 {
        builder.text += &format!(" OFFSET {offset}");
    }
    let answer = sql::query(&builder.finish(&settings.connection, query.limit, None)).map_err(source_error)?;
    let mut records = Records::new();
    let rows = rows(&answer.records)?;
    for row in &rows {
        let members = wanted
            .iter()
            .enumerate()
            .map(|(at, column)| Ok((column.field.key.as_str(), column.value(cell(row, at)?, zone))));
        records.push(members.collect::<Result<Vec<_>, Error>>()?);
    }
    let next = match rows.last() {
        Some(last) if answer.truncated && order.total => {
            let values = order
                .columns
                .iter()
                .enumerate()
                .map(|(at, column)| Ok(column.value(cell(last, wanted.len() + at)?, zone)));
            Some(encode_cursor(&values.collect::<Result<Vec<_>, Error>>()?))
        }
        Some(_) if answer.truncated => Some((offset + rows.len() as u64).to_string()),
        _ => None,
    };
    Ok(Page { records: records.finish(), next })
}

/// The order of a list. Without a key it cannot be total: then all columns break ties and pages are counted, which is
/// exact as long as nothing is inserted in between.
struct Ordered<'a> {
    columns: Vec<Column<'a>>,
    descending: Vec<bool>,
    total: bool,
}

impl<'a> Ordered<'a> {
    fn new(collection: &'a Sql, dialect: Dialect, order: &[Order]) -> Result<Self, Error> {
        let shape = &collection.shape;
        let mut order = total_order(order, shape);
        if shape.key.is_empty() {
            for field in shape.fields.iter().filter(|field| crate::describe::ordered(field.kind)) {
                if !order.iter().any(|by| by.column == field.key) {
                    order.push(Order { column: field.key.clone(), descending: false });
                }
            }
        }
        let columns = order.iter().map(|by| Column::find(shape, dialect, &by.column)).collect::<Result<_, _>>()?;
        let descending = order.iter().map(|by| by.descending).collect();
        Ok(Self { columns, descending, total: !shape.key.is_empty() })
    }

    fn sql(&self, builder: &mut Builder) -> String {
        let mut by = Vec::new();
        for (column, descending) in self.columns.iter().zip(&self.descending) {
            let direction = if *descending { " DESC" } else { "" };
            // Said only where there may be nulls: an index serves the plain order.
            let nulls = if column.may_be_null() { " NULLS LAST" } else { "" };
            by.push(format!("{}{direction}{nulls}", column.compared(builder)));
        }
        by.join(", ")
    }

    /// Greater in the first column, or equal there and greater in the next, and so on.
    fn behind(&self, last: &[Value<'_>], builder: &mut Builder) -> String {
        let mut any = Vec::new();
        for (at, (column, descending)) in self.columns.iter().zip(&self.descending).enumerate() {
            let Some(later) = later(column, &last[at], *descending, builder) else { continue };
            let mut all = Vec::new();
            for (column, value) in self.columns.iter().zip(last).take(at) {
                all.push(same(column, value, builder));
            }
            all.push(later);
            any.push(format!("({})", all.join(" AND ")));
        }
        if any.is_empty() { "1 = 0".to_owned() } else { format!("({})", any.join(" OR ")) }
    }
}

fn same(column: &Column<'_>, value: &Value<'_>, builder: &mut Builder) -> String {
    match value {
        Value::Null => format!("{} IS NULL", column.compared(builder)),
        value => condition::equals(column, value, builder),
    }
}

/// Nothing comes behind a null.
fn later(column: &Column<'_>, value: &Value<'_>, descending: bool, builder: &mut Builder) -> Option<String> {
    let operand = column.operand(value, builder)?;
    let compared = column.compared(builder);
    let operator = if descending { "<" } else { ">" };
    Some(match column.may_be_null() {
        true => format!("({compared} {operator} {operand} OR {compared} IS NULL)"),
        false => format!("{compared} {operator} {operand}"),
    })
}

/// The connection's `not_found` is about the database, never about a record.
pub(crate) fn source_error(error: Error) -> Error {
    if error.is("not_found") { Error { code: "unavailable".to_owned(), ..error } } else { error }
}
