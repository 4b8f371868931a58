//! Reading: one SELECT a page, going on behind the last record by its order values.

use std::fmt::Write;

use weir_plugin_sdk::order::{bad_cursor, decode_cursor, encode_cursor, total_order};
use weir_plugin_sdk::records::Records;
use weir_plugin_sdk::{Error, Order, Page, Query, Shape, Value, sql};

use crate::Sql;
use crate::column::{Column, place};
use crate::condition;
use crate::dialect::Dialect;
use crate::statement::{Builder, cell, rows};

pub(crate) fn read(collection: &Sql, dialect: Dialect, query: &Query) -> Result<Page, Error> {
    let Sql { settings, shape, zone, .. } = collection;
    let column = |at: &usize| Column::new(shape, dialect, &shape.fields[*at]);
    let selected = collection.selected(query, dialect)?;
    let order = selected.order(shape, dialect);
    let mut builder = Builder::new(dialect);
    let mut conditions = query
        .conditions
        .iter()
        .map(|given| {
            let column = Column::find(shape, dialect, &given.column)?;
            condition::condition(given, &column, zone, &mut builder)
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let mut offset = 0;
    match &query.cursor {
        Some(cursor) if order.total => {
            let fields: Vec<_> = order.columns.iter().map(|column| column.field).collect();
            let values = decode_cursor(cursor, &fields, zone)?;
            conditions.push(order.behind(&values, &mut builder)?);
        }
        Some(cursor) => offset = cursor.parse::<u64>().map_err(|_| bad_cursor())?,
        None => {}
    }
    let mut text = String::with_capacity(selected.text.len() + 256);
    text.push_str(&selected.text);
    for (at, condition) in conditions.iter().enumerate() {
        text.push_str(if at == 0 { " WHERE " } else { " AND " });
        text.push_str(condition);
    }
    match &selected.order_by {
        Some(order_by) => text.push_str(order_by),
        None => text.push_str(&order.sql(&mut builder)),
    }
    write!(text, " LIMIT {}", u64::from(query.limit) + 1).expect("a String takes all");
    if offset > 0 {
        write!(text, " OFFSET {offset}").expect("a String takes all");
    }
    builder.text = text;
    let answer = sql::query(&builder.finish(&settings.connection, query.limit, None)).map_err(source_error)?;
    let mut records = Records::new();
    let rows = rows(&answer.records)?;
    let wanted: Vec<_> = selected.wanted.iter().map(column).collect();
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

/// The prepared text for one list of columns in one order, without conditions.
pub(crate) struct Selected {
    asked_columns: Vec<String>,
    asked_order: Vec<Order>,
    /// Places in the shape.
    wanted: Vec<usize>,
    by: Vec<usize>,
    descending: Vec<bool>,
    /// `SELECT … FROM …`.
    text: String,
    /// The order as text; `None` if it binds values, whose places depend on the conditions.
    order_by: Option<String>,
}

impl Selected {
    pub(crate) fn new(collection: &Sql, dialect: Dialect, query: &Query) -> Result<Self, Error> {
        let shape = &collection.shape;
        let wanted = match query.columns.as_slice() {
            [] => (0..shape.fields.len()).collect::<Vec<_>>(),
            columns => columns.iter().map(|key| place(shape, key)).collect::<Result<_, _>>()?,
        };
        let order = order(&query.order, shape);
        let by = order.iter().map(|by| place(shape, &by.column)).collect::<Result<Vec<_>, _>>()?;
        let read = |at: &usize| Column::new(shape, dialect, &shape.fields[*at]).read();
        // Pages that are counted need no order values of their last record.
        let remembered = if shape.key.is_empty() { &[][..] } else { &by };
        let mut list: Vec<_> = wanted.iter().chain(remembered).map(read).collect();
        if list.is_empty() {
            list.push("1".to_owned());
        }
        let list: Vec<_> = list.iter().enumerate().map(|(at, read)| format!("{read} AS c{at}")).collect();
        let mut selected = Self {
            asked_columns: query.columns.clone(),
            asked_order: query.order.clone(),
            wanted,
            by,
            descending: order.iter().map(|by| by.descending).collect(),
            text: format!("SELECT {} FROM {}", list.join(", "), collection.settings.source().sql()),
            order_by: None,
        };
        let mut builder = Builder::new(dialect);
        let order_by = selected.order(shape, dialect).sql(&mut builder);
        selected.order_by = (!builder.binds()).then_some(order_by);
        Ok(selected)
    }

    fn order<'a>(&'a self, shape: &'a Shape, dialect: Dialect) -> Ordered<'a> {
        Ordered {
            columns: self.by.iter().map(|at| Column::new(shape, dialect, &shape.fields[*at])).collect(),
            descending: &self.descending,
            total: !shape.key.is_empty(),
        }
    }

    pub(crate) fn is_of(&self, query: &Query) -> bool {
        self.asked_columns == query.columns && self.asked_order == query.order
    }
}

/// Returns the order of a list. Without a key it cannot be total: then all columns break ties and pages are counted,
/// which is exact as long as nothing is inserted in between.
fn order(asked: &[Order], shape: &Shape) -> Vec<Order> {
    let mut order = total_order(asked, shape);
    if shape.key.is_empty() {
        for field in shape.fields.iter().filter(|field| crate::describe::ordered(field.kind)) {
            if !order.iter().any(|by| by.column == field.key) {
                order.push(Order { column: field.key.clone(), descending: false });
            }
        }
    }
    order
}

struct Ordered<'a> {
    columns: Vec<Column<'a>>,
    descending: &'a [bool],
    total: bool,
}

impl Ordered<'_> {
    /// Returns ` ORDER BY …`, or nothing.
    fn sql(&self, builder: &mut Builder) -> String {
        let mut by = Vec::new();
        for (column, descending) in self.columns.iter().zip(self.descending) {
            let direction = if *descending { " DESC" } else { "" };
            // This is said only if there may be nulls: an index serves the plain order.
            let nulls = if column.may_be_null() { " NULLS LAST" } else { "" };
            by.push(format!("{}{direction}{nulls}", column.compared(builder)));
        }
        if by.is_empty() { String::new() } else { format!(" ORDER BY {}", by.join(", ")) }
    }

    /// Returns the condition for rows behind the last one: greater in the first column, or equal there and greater in
    /// the next, and so on.
    fn behind(&self, last: &[Value<'_>], builder: &mut Builder) -> Result<String, Error> {
        let unfit = self.columns.iter().zip(last).find(|(_, value)| matches!(value, Value::Unfit(_)));
        if let Some((column, _)) = unfit {
            let key = &column.field.key;
            let message =
                format!("The list cannot go on behind a value of {key:?} that does not fit its column's type.");
            return Err(Error::source_changed(message).field(key));
        }
        let mut any = Vec::new();
        for (at, (column, descending)) in self.columns.iter().zip(self.descending).enumerate() {
            let Some(later) = later(column, &last[at], *descending, builder) else { continue };
            let mut all = Vec::new();
            for (column, value) in self.columns.iter().zip(last).take(at) {
                all.push(same(column, value, builder));
            }
            all.push(later);
            any.push(format!("({})", all.join(" AND ")));
        }
        Ok(if any.is_empty() { "1 = 0".to_owned() } else { format!("({})", any.join(" OR ")) })
    }
}

fn same(column: &Column<'_>, value: &Value<'_>, builder: &mut Builder) -> String {
    match value {
        Value::Null => format!("{} IS NULL", column.compared(builder)),
        value => condition::equals(column, value, builder),
    }
}

/// Returns the condition for later values. Nothing comes behind a null.
fn later(column: &Column<'_>, value: &Value<'_>, descending: bool, builder: &mut Builder) -> Option<String> {
    let later = column.compares(if descending { "<" } else { ">" }, value, builder)?;
    Some(match column.may_be_null() {
        true => format!("({later} OR {} IS NULL)", column.compared(builder)),
        false => later,
    })
}

/// Renames the connection's `not_found`, which is about the database, never about a record.
pub(crate) fn source_error(error: Error) -> Error {
    if error.is("not_found") { Error { code: "unavailable".to_owned(), ..error } } else { error }
}
