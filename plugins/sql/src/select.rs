//! Reading: one SELECT per page, which continues after the last record by its order values.

use std::collections::BTreeSet;
use std::fmt::Write;

use weir_plugin_sdk::order::{bad_cursor, decode_cursor, encode_cursor, total_order};
use weir_plugin_sdk::records::Records;
use weir_plugin_sdk::{Error, Order, Page, Query, Shape, Value, Zone, log, sql};

use crate::SqlAdapter;
use crate::column::{SqlColumn, place};
use crate::condition;
use crate::dialect::SqlDialect;
use crate::left_out;
use crate::order::{OrderedColumns, SelectPart};
use crate::sqlite;
use crate::statement::{self, SelectedRow, StatementBuilder, cell};

/// The beginning of a cursor after which only rows that fit their columns are read, since others were met: the records
/// of a list without a key are counted.
const FITTING: &str = "~";

pub(crate) fn read(
    collection: &SqlAdapter,
    dialect: SqlDialect,
    query: &Query,
) -> Result<Page, Error> {
    let cursor = query.cursor.as_deref().unwrap_or_default();
    if !cursor.starts_with(FITTING)
        && let Some(page) = read_page(collection, dialect, query, false)?
    {
        return Ok(page);
    }
    // A row whose value fits a column neither as itself nor as null is not a record, and does not affect the others.
    let Some(page) = read_page(collection, dialect, query, true)? else {
        return Err(Error::internal("The records cannot be read alone."));
    };
    let shape = &collection.shape;
    let places = collection.selected(query, dialect)?.places();
    let columns = places.iter().map(|at| &shape.fields[*at]);
    let columns = columns.map(|field| SqlColumn::new(shape, dialect, field));
    let columns: Vec<_> = columns.collect();
    let records = left_out::add_number(collection, dialect, query, &columns, page.records)?;
    Ok(Page { records, ..page })
}

/// Reads a page, either of all rows or only of those that fit the columns which may not be null. Returns `None` if all rows
/// are read and one does not fit.
fn read_page(
    collection: &SqlAdapter,
    dialect: SqlDialect,
    query: &Query,
    only_fitting: bool,
) -> Result<Option<Page>, Error> {
    let SqlAdapter { shape, zone, .. } = collection;
    let selected = collection.selected(query, dialect)?;
    let columns = |places: &[usize]| -> Vec<_> {
        places
            .iter()
            .map(|at| SqlColumn::new(shape, dialect, &shape.fields[*at]))
            .collect()
    };
    let (wanted, by) = (columns(&selected.wanted), columns(&selected.by));
    let order = OrderedColumns {
        columns: &by,
        descending: &selected.descending,
        is_led_by_finite: false,
    };
    let is_total = !shape.key.is_empty();
    // Of two rows with one key, the one behind the end of a page would be lost.
    let looks_ahead = dialect == SqlDialect::Sqlite && sqlite::may_repeat_keys(shape);
    let (last, offset, behind) = begin(query, &by, is_total, zone)?;
    let (first, others) = if is_total && offset == 0 && !looks_ahead {
        order.parts(last.as_deref())
    } else {
        (order.whole(last.as_deref()), None)
    };
    let reading = SqlReader {
        collection,
        dialect,
        query,
        selected: &selected,
        only_fitting,
        looks_ahead,
    };
    let limit = query.limit as usize;
    let answer = sql::query(&reading.part(&first, offset)?).map_err(source_error)?;
    let mut rows = statement::rows(&answer.records)?;
    let mut is_last = !answer.truncated;
    let both;
    if let (true, Some(others)) = (is_last, &others) {
        // Each statement sees the rows of another moment: one that has changed from part to part since the first was
        // read would be in both, or in none.
        let left = limit.saturating_sub(rows.len());
        both = sql::query(&reading.both(&first, others, left)?).map_err(source_error)?;
        let (others, finite): (Vec<_>, Vec<_>) = statement::rows(&both.records)?
            .into_iter()
            .partition(|row| row.last() == Some(OTHERS));
        is_last = others.len() <= left && finite.len() + others.len() <= limit;
        rows = finite.into_iter().chain(others).take(limit).collect();
    }
    let following = (rows.len() > limit).then(|| rows.pop()).flatten();
    is_last &= following.is_none();
    let mut records = Records::new();
    let (mut emptied, mut unfit) = (BTreeSet::new(), None);
    for row in &rows {
        let members = wanted.iter().enumerate().map(|(at, column)| {
            let (key, raw) = (column.field.key.as_str(), cell(row, at)?);
            let value = column.value(raw, zone);
            if column.is_emptied(raw, &value) {
                emptied.insert(key);
            }
            if !only_fitting && column.is_unfit(&value) {
                unfit = Some(key);
            }
            Ok((key, value))
        });
        records.push(members.collect::<Result<Vec<_>, Error>>()?);
    }
    if let Some(key) = unfit {
        log::warn(&format!(
            "Records are left out: {key:?} may not be null, and holds a value that a record can only have as null."
        ));
        return Ok(None);
    }
    if !emptied.is_empty() {
        log::warn(&format!(
            "A value that is not of its column's type is null, in {emptied:?}."
        ));
    }
    let count = offset + rows.len() as u64;
    let next = match rows.last() {
        Some(last) if !is_last && is_total => {
            match reading.cursor(&by, last, following.as_ref(), (count, behind))? {
                None => return Ok(None),
                next => next,
            }
        }
        Some(_) if !is_last => Some(count.to_string()),
        _ => None,
    };
    let mark = if only_fitting { FITTING } else { "" };
    Ok(Some(Page {
        records: records.finish(),
        next: next.map(|next| format!("{mark}{next}")),
    }))
}

/// Reads where a page begins: after the order values of a record, if the cursor has some, how many records after it, and that
/// record as the cursor names it.
fn begin<'q>(
    query: &'q Query,
    by: &[SqlColumn<'_>],
    is_total: bool,
    zone: &Zone,
) -> Result<(Option<Vec<Value<'static>>>, u64, &'q str), Error> {
    let Some(cursor) = query.cursor.as_deref() else {
        return Ok((None, 0, ""));
    };
    let cursor = cursor.strip_prefix(FITTING).unwrap_or(cursor);
    let (offset, behind) = counted(cursor, is_total)?;
    if behind.is_empty() {
        return Ok((None, offset, behind));
    }
    let fields: Vec<_> = by.iter().map(|column| column.field).collect();
    Ok((Some(decode_cursor(behind, &fields, zone)?), offset, behind))
}

/// Reads how many records a cursor leaves out, and after which record. Without a key, records are only counted.
fn counted(cursor: &str, is_total: bool) -> Result<(u64, &str), Error> {
    let behind = cursor.trim_start_matches(|char: char| char.is_ascii_digit());
    let count = &cursor[..cursor.len() - behind.len()];
    match (count, behind) {
        ("", "") => Err(bad_cursor()),
        (_, behind) if !is_total && !behind.is_empty() => Err(bad_cursor()),
        ("", behind) => Ok((0, behind)),
        _ => Ok((count.parse().map_err(|_| bad_cursor())?, behind)),
    }
}

/// The bytes of a text by which MySQL orders: a connection sets `max_sort_length`.
const MYSQL_SORTED_BYTES: usize = 1024;

/// Returns `true` if a list cannot continue after the value: SQLite may store a text that is not UTF-8 in its place, and
/// MySQL orders a long text by its beginning.
fn is_lossy(value: &Value<'_>, dialect: SqlDialect) -> bool {
    match (dialect, value) {
        (SqlDialect::Sqlite, Value::Text(text)) => text.contains('\u{fffd}'),
        (SqlDialect::Mysql, Value::Text(text)) => text.len() >= MYSQL_SORTED_BYTES,
        _ => false,
    }
}

/// Returns the values by which a row is ordered.
fn order_values<'r>(
    by: &[SqlColumn<'_>],
    row: &SelectedRow<'r>,
    places: &[usize],
    zone: &Zone,
) -> Result<Vec<Value<'r>>, Error> {
    let values = by.iter().zip(places);
    values
        .map(|(column, at)| Ok(column.value(cell(row, *at)?, zone)))
        .collect()
}

/// Returns `true` if a list cannot continue behind the values of a record: one is lossy, or is a time that MySQL keeps as another
/// one than is shown, since the clocks of its zone skip it.
fn is_counted(
    row: &SelectedRow<'_>,
    by: &[SqlColumn<'_>],
    places: &[usize],
    values: &[Value<'_>],
    dialect: SqlDialect,
) -> bool {
    let is_skipped = |column: &SqlColumn<'_>, at: usize, value: &Value<'_>| {
        let column = column.mysql();
        column.is_some_and(|column| cell(row, at).is_ok_and(|raw| column.is_skipped(raw, value)))
    };
    let mut each = by.iter().zip(places).zip(values);
    each.any(|((column, at), value)| is_lossy(value, dialect) || is_skipped(column, *at, value))
}

/// The last column of a row whose first order value is not finite.
const OTHERS: &str = "1";

struct SqlReader<'a> {
    collection: &'a SqlAdapter,
    dialect: SqlDialect,
    query: &'a Query,
    selected: &'a PreparedSelect,
    only_fitting: bool,
    /// The row behind the page is read too.
    looks_ahead: bool,
}

impl SqlReader<'_> {
    /// Returns the statement that reads one part of the list.
    fn part(&self, part: &SelectPart<'_>, offset: u64) -> Result<sql::Statement, Error> {
        let mut builder = self.collection.builder(self.dialect, &self.query.options)?;
        let conditions = self.conditions(&mut builder)?;
        let mut text = self.select(part, &conditions, self.query.limit as usize, &mut builder)?;
        if offset > 0 {
            write!(text, " OFFSET {offset}").expect("a String takes all");
        }
        builder.text = text;
        let ahead = u32::from(self.looks_ahead);
        let limit = self.query.limit.saturating_add(ahead);
        Ok(builder.finish(&self.collection.settings.connection, limit, None))
    }

    /// Returns the statement that reads both parts, in any order, with at most `left` rows of the other part. A last
    /// column gives the part to which a row belongs.
    fn both(
        &self,
        finite: &SelectPart<'_>,
        others: &SelectPart<'_>,
        left: usize,
    ) -> Result<sql::Statement, Error> {
        let mut builder = self.collection.builder(self.dialect, &self.query.options)?;
        let conditions = self.conditions(&mut builder)?;
        let finite = self.select(finite, &conditions, self.query.limit as usize, &mut builder)?;
        let others = self.select(others, &conditions, left, &mut builder)?;
        builder.text = format!(
            "SELECT finite.*, 0 AS part FROM ({finite}) AS finite UNION ALL SELECT others.*, {OTHERS} FROM ({others}) AS others"
        );
        let limit = self
            .query
            .limit
            .saturating_add(left as u32)
            .saturating_add(2);
        Ok(builder.finish(&self.collection.settings.connection, limit, None))
    }

    /// Returns the cursor behind the last row of a page, which is the last of so many behind the record that a cursor names;
    /// `None` if the row is no record. `following` is the row after it, if that has been read.
    fn cursor(
        &self,
        by: &[SqlColumn<'_>],
        last: &SelectedRow<'_>,
        following: Option<&SelectedRow<'_>>,
        (count, behind): (u64, &str),
    ) -> Result<Option<String>, Error> {
        let places = &self.selected.remembered;
        let values = order_values(by, last, places, &self.collection.zone)?;
        let mut each = by.iter().zip(&values);
        if !self.only_fitting && each.any(|(column, value)| column.is_unfit(value)) {
            return Ok(None);
        }
        let following = following
            .map(|row| order_values(by, row, places, &self.collection.zone))
            .transpose()?;
        let is_repeated = following.is_some_and(|following| following == values);
        let is_counted = is_repeated || is_counted(last, by, places, &values, self.dialect);
        Ok(Some(match is_counted {
            true => format!("{count}{behind}"),
            false => encode_cursor(&values),
        }))
    }

    fn conditions(&self, builder: &mut StatementBuilder) -> Result<Vec<String>, Error> {
        let SqlAdapter { shape, zone, .. } = self.collection;
        let mut conditions = condition::of_records(shape, self.dialect);
        if self.only_fitting {
            conditions.extend(self.selected.places().into_iter().filter_map(|at| {
                let column = SqlColumn::new(shape, self.dialect, &shape.fields[at]);
                condition::has_value(&column, self.dialect)
            }));
        }
        for given in &self.query.conditions {
            let column = SqlColumn::find(shape, self.dialect, &given.column)?;
            conditions.push(condition::condition(given, &column, zone, builder)?);
        }
        Ok(conditions)
    }

    /// Returns the SELECT for one part of the list, and one row more than `limit`.
    fn select(
        &self,
        part: &SelectPart<'_>,
        conditions: &[String],
        limit: usize,
        builder: &mut StatementBuilder,
    ) -> Result<String, Error> {
        let behind = part
            .last
            .map(|last| part.order.behind(last, builder))
            .transpose()?;
        let mut text = String::with_capacity(self.selected.text.len() + 256);
        text.push_str(&self.selected.text);
        for (at, condition) in conditions
            .iter()
            .chain(&part.condition)
            .chain(&behind)
            .enumerate()
        {
            text.push_str(if at == 0 { " WHERE " } else { " AND " });
            text.push_str(condition);
        }
        match &self.selected.order_by {
            Some(order_by) if part.condition.is_none() => text.push_str(order_by),
            _ => text.push_str(&part.order.sql(builder)),
        }
        write!(text, " LIMIT {}", limit as u64 + 1).expect("a String takes all");
        Ok(text)
    }
}

/// The prepared text for one list of columns in one order, without conditions.
pub(crate) struct PreparedSelect {
    asked_columns: Vec<String>,
    asked_order: Vec<Order>,
    /// Places in the shape.
    wanted: Vec<usize>,
    by: Vec<usize>,
    /// The order values' places in a row.
    remembered: Vec<usize>,
    descending: Vec<bool>,
    /// `SELECT … FROM …`.
    text: String,
    /// The order as text; `None` if it binds values, whose places depend on the conditions.
    order_by: Option<String>,
}

impl PreparedSelect {
    pub(crate) fn new(
        collection: &SqlAdapter,
        dialect: SqlDialect,
        query: &Query,
    ) -> Result<Self, Error> {
        let shape = &collection.shape;
        let wanted = match query.columns.as_slice() {
            [] => (0..shape.fields.len()).collect::<Vec<_>>(),
            columns => columns
                .iter()
                .map(|key| place(shape, key))
                .collect::<Result<_, _>>()?,
        };
        let order = order(&query.order, shape);
        let by = order
            .iter()
            .map(|by| place(shape, &by.column))
            .collect::<Result<Vec<_>, _>>()?;
        let mut asked = wanted.clone();
        let mut remembered = Vec::new();
        // Pages that are counted need no order values of their last record.
        for at in by.iter().filter(|_| !shape.key.is_empty()) {
            remembered.push(
                asked
                    .iter()
                    .position(|asked| asked == at)
                    .unwrap_or(asked.len()),
            );
            if remembered.last() == Some(&asked.len()) {
                asked.push(*at);
            }
        }
        let mut list: Vec<_> = asked
            .iter()
            .map(|at| SqlColumn::new(shape, dialect, &shape.fields[*at]).read())
            .collect();
        if list.is_empty() {
            list.push("1".to_owned());
        }
        let name = free_name(shape);
        let list: Vec<_> = list
            .iter()
            .enumerate()
            .map(|(at, read)| format!("{read} AS {name}{at}"))
            .collect();
        let mut selected = Self {
            asked_columns: query.columns.clone(),
            asked_order: query.order.clone(),
            wanted,
            by,
            remembered,
            descending: order.iter().map(|by| by.descending).collect(),
            text: format!(
                "SELECT {} FROM {}",
                list.join(", "),
                collection.source(dialect)?
            ),
            order_by: None,
        };
        let mut builder = StatementBuilder::new(dialect);
        let columns: Vec<_> = selected
            .by
            .iter()
            .map(|at| SqlColumn::new(shape, dialect, &shape.fields[*at]))
            .collect();
        let order = OrderedColumns {
            columns: &columns,
            descending: &selected.descending,
            is_led_by_finite: false,
        };
        let order_by = order.sql(&mut builder);
        selected.order_by = (!builder.binds()).then_some(order_by);
        Ok(selected)
    }

    /// Returns the places in the shape of the columns that are shown or ordered by.
    fn places(&self) -> BTreeSet<usize> {
        self.wanted.iter().chain(&self.by).copied().collect()
    }

    pub(crate) fn is_of(&self, query: &Query) -> bool {
        self.asked_columns == query.columns && self.asked_order == query.order
    }
}

/// Returns a name that, followed by a number, is not that of any of the shape's columns. ORDER BY takes a name for the
/// answer's column before it takes it for the table's.
fn free_name(shape: &Shape) -> String {
    let mut free = "c".to_owned();
    let is_taken = |name: &str| {
        shape.fields.iter().any(|field| {
            let parts = field.key.as_bytes().split_at_checked(name.len());
            parts.is_some_and(|(head, number)| {
                head.eq_ignore_ascii_case(name.as_bytes()) && number.iter().all(u8::is_ascii_digit)
            })
        })
    };
    while is_taken(&free) {
        free.push('_');
    }
    free
}

/// Returns the order of a list. Without a key it cannot be total: then all columns break ties and pages are counted,
/// which is exact as long as nothing is inserted in between.
fn order(asked: &[Order], shape: &Shape) -> Vec<Order> {
    let mut order = total_order(asked, shape);
    if shape.key.is_empty() {
        for field in shape
            .fields
            .iter()
            .filter(|field| crate::describe::ordered(field.kind))
        {
            if !order.iter().any(|by| by.column == field.key) {
                order.push(Order {
                    column: field.key.clone(),
                    descending: false,
                });
            }
        }
    }
    order
}

/// Renames the connection's `not_found`, which is about the database, never about a record.
pub(crate) fn source_error(error: Error) -> Error {
    if error.is("not_found") {
        Error {
            code: "unavailable".to_owned(),
            ..error
        }
    } else {
        error
    }
}
