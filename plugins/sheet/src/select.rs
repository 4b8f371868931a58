//! Selects the rows that match a query, and a page of these: the best `limit` rows after the cursor, kept while the
//! rows are read.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use weir_plugin_sdk::matches::{Matcher, operand};
use weir_plugin_sdk::order::{bad_cursor, compare, decode_cursor, encode_cursor, total_order};
use weir_plugin_sdk::records::Records;
use weir_plugin_sdk::serde_json::json;
use weir_plugin_sdk::value::INTEGER_MAX;
use weir_plugin_sdk::{Comparison, Error, Field, Order, Page, Query, Shape, Type, Value, Zone};

use crate::header::ColumnPositions;
use crate::table::{OwnedRow, SheetRow, SheetTable};

/// A page ends early rather than run into the host's limit on an answer.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// The bound on records of one page, whatever is asked for.
const LIMIT_MAX: u32 = 100_000;
/// Rows kept beyond the requested ones, so that sorting is rare.
const SPARE_ROWS: usize = 64;

/// A query, checked against the recorded shape.
pub(crate) struct SheetSelect<'q> {
    shape: &'q Shape,
    zone: &'q Zone,
    /// The conditions, by index of the field.
    conditions: Vec<(usize, Matcher)>,
    order: Vec<Order>,
    order_fields: Vec<usize>,
    columns: Vec<usize>,
    limit: usize,
    cursor: Option<SheetCursor>,
    /// An `equals` that an index can answer.
    sought: Option<(usize, Value<'static>)>,
}

/// The records that no condition ruled out and that one could not judge.
#[derive(Debug, Default)]
pub(crate) struct UnclearRows {
    count: u64,
    /// The columns that could not be judged, by index of the field.
    fields: BTreeSet<usize>,
}

/// The verdict of the conditions on a row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RowVerdict {
    Meets,
    Fails,
    /// No condition excludes it, but those on these fields cannot judge it.
    Unclear(Vec<usize>),
}

/// A condition on the cells of a column.
pub(crate) struct CellCondition<'s> {
    column: usize,
    /// The index of the field.
    at: usize,
    pub(crate) field: &'s Field,
    matcher: &'s Matcher,
    zone: &'s Zone,
}

/// The judgement of a condition about a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellJudged {
    Meets,
    Fails,
    Unclear,
}

impl CellCondition<'_> {
    pub(crate) fn judge(&self, cell: &str) -> CellJudged {
        if let Some(text) = self.matcher.exact_text() {
            let is_null = cell.is_empty() && self.field.nullable || self.field.is_null_word(cell);
            return match cell == text && !is_null {
                true => CellJudged::Meets,
                false => CellJudged::Fails,
            };
        }
        self.judge_value(&cell_value(cell, self.field, self.zone))
    }

    /// Judges a cell that is not text by its value.
    pub(crate) fn judge_value(&self, value: &Value<'_>) -> CellJudged {
        if self.field.empties_misfits && self.matcher.cannot_judge(value) {
            CellJudged::Unclear
        } else if self.matcher.matches(value) {
            CellJudged::Meets
        } else {
            CellJudged::Fails
        }
    }
}

impl UnclearRows {
    pub(crate) fn add(&mut self, fields: Vec<usize>) {
        self.count += 1;
        self.fields.extend(fields);
    }
}

/// The order values of the last record of a page, and how many records with exactly these values there were so far:
/// one with a unique key, and the position among equals without one.
struct SheetCursor {
    values: Vec<Value<'static>>,
    count: u64,
}

impl<'q> SheetSelect<'q> {
    pub(crate) fn new(shape: &'q Shape, zone: &'q Zone, query: &Query) -> Result<Self, Error> {
        let field = |column: &str| {
            let known = shape.fields.iter().position(|field| field.key == column);
            known.ok_or_else(|| {
                Error::invalid(format!("The collection has no column {column:?}.")).field(column)
            })
        };
        let mut conditions = Vec::with_capacity(query.conditions.len());
        let mut sought = None;
        for condition in &query.conditions {
            let at = field(&condition.column)?;
            conditions.push((at, Matcher::new(condition, &shape.fields[at], zone)?));
            let kind = shape.fields[at].kind;
            if condition.comparison == Comparison::Equals
                && sought.is_none()
                && kind != Type::Datetime
            {
                sought = Some((at, operand(&condition.value, &shape.fields[at], zone)?));
            }
        }
        let order = total_order(&query.order, shape);
        let order_fields = order
            .iter()
            .map(|by| field(&by.column))
            .collect::<Result<Vec<_>, _>>()?;
        let columns = match query.columns.as_slice() {
            [] => (0..shape.fields.len()).collect(),
            columns => columns
                .iter()
                .map(|column| field(column))
                .collect::<Result<_, _>>()?,
        };
        let cursor = match &query.cursor {
            Some(cursor) => Some(SheetCursor::decode(cursor, &order_fields, shape, zone)?),
            None => None,
        };
        let limit = query.limit.clamp(1, LIMIT_MAX) as usize;
        Ok(Self {
            shape,
            zone,
            conditions,
            order,
            order_fields,
            columns,
            limit,
            cursor,
            sought,
        })
    }

    /// Checks the conditions and columns of a summary, which needs no order and no other column.
    pub(crate) fn for_summary(
        shape: &'q Shape,
        zone: &'q Zone,
        query: &Query,
    ) -> Result<Self, Error> {
        let mut select = Self::new(shape, zone, query)?;
        select.order.clear();
        select.order_fields.clear();
        if query.columns.is_empty() {
            select.columns.clear();
        }
        Ok(select)
    }

    /// Makes a collector for a file with these columns; refuses if one that the query needs is gone.
    pub(crate) fn over(&'q self, columns: &ColumnPositions) -> Result<RowCollector<'q>, Error> {
        let at = |field: &usize| {
            Ok((
                columns.position(*field, self.shape)?,
                &self.shape.fields[*field],
            ))
        };
        Ok(RowCollector {
            select: self,
            conditions: self
                .conditions
                .iter()
                .map(|(position, matcher)| {
                    let (column, field) = at(position)?;
                    Ok(CellCondition {
                        column,
                        at: *position,
                        field,
                        matcher,
                        zone: self.zone,
                    })
                })
                .collect::<Result<_, Error>>()?,
            order: self
                .order_fields
                .iter()
                .map(at)
                .collect::<Result<_, Error>>()?,
            columns: self.columns.iter().map(at).collect::<Result<_, Error>>()?,
            best: Vec::new(),
            worst: None,
            equal_to_cursor: 0,
            skipped: UnclearRows::default(),
        })
    }

    /// Returns the fields whose cells a condition may not be able to judge, if such records are counted. Then each row
    /// has to be examined, wherever the page ends.
    pub(crate) fn counted_fields(&self) -> impl Iterator<Item = usize> + '_ {
        let fields = self.conditions.iter().map(|(at, _)| *at);
        fields.filter(|at| {
            let field = &self.shape.fields[*at];
            field.empties_misfits && field.kind != Type::String
        })
    }

    pub(crate) fn counts_skipped(&self) -> bool {
        self.counted_fields().next().is_some()
    }

    /// Returns the columns that a summary reads, by index of the field: the first one present in the file if it only
    /// counts records.
    pub(crate) fn fields_read(&self, columns: &ColumnPositions) -> Vec<usize> {
        let conditions = self.conditions.iter().map(|(at, _)| *at);
        let mut fields: Vec<usize> = conditions.chain(self.columns.iter().copied()).collect();
        fields.sort_unstable();
        fields.dedup();
        if fields.is_empty() {
            let mut all = 0..self.shape.fields.len();
            fields.extend(all.find(|at| columns.position(*at, self.shape).is_ok()));
        }
        fields
    }

    /// Returns the column that a list is ordered by first, and whether downwards.
    pub(crate) fn order_field(&self) -> Option<(usize, bool)> {
        Some((*self.order_fields.first()?, self.order.first()?.descending))
    }

    /// Returns that column's value in the last record of the previous page.
    pub(crate) fn cursor_value(&self) -> Option<&Value<'static>> {
        self.cursor.as_ref()?.values.first()
    }

    /// Returns the rows of a table that may match, if an index can narrow them.
    pub(crate) fn candidates<'t>(
        &self,
        table: &'t SheetTable,
        columns: &ColumnPositions,
    ) -> Option<Vec<SheetRow<'t>>> {
        // Those that a condition cannot judge are found in no index of values.
        if self.counts_skipped() {
            return None;
        }
        let (field, value) = self.sought.as_ref()?;
        let column = columns.position(*field, self.shape).ok()?;
        Some(table.candidates(column, &self.shape.fields[*field], value))
    }
}

/// Receives rows and keeps the best ones.
pub(crate) struct RowCollector<'s> {
    select: &'s SheetSelect<'s>,
    conditions: Vec<CellCondition<'s>>,
    order: Vec<(usize, &'s Field)>,
    columns: Vec<(usize, &'s Field)>,
    /// At least the best rows so far, in the file's order since they were last sorted.
    best: Vec<CollectedRow>,
    /// The order values of the last row that could still be on the page, once there are enough.
    worst: Option<Vec<Value<'static>>>,
    equal_to_cursor: u64,
    skipped: UnclearRows,
}

struct CollectedRow {
    values: Vec<Value<'static>>,
    row: OwnedRow,
}

impl RowCollector<'_> {
    /// Returns `true` once no later row can change the page: rows are wanted in their own order, and there are enough.
    pub(crate) fn is_done(&self) -> bool {
        self.order.is_empty()
            && self.best.len() > self.select.limit
            && !self.select.counts_skipped()
    }

    /// Returns `true` if the page is full, and another one is known to follow.
    pub(crate) fn has_enough(&self) -> bool {
        self.best.len() >= self.wanted()
    }

    /// Checks a row against the conditions.
    pub(crate) fn judge(&self, row: SheetRow<'_>) -> RowVerdict {
        self.judge_each(|condition| condition.judge(row.cell(condition.column)))
    }

    /// Checks a record against the conditions; `judge` returns how each judges its cell.
    pub(crate) fn judge_each(
        &self,
        mut judge: impl FnMut(&CellCondition<'_>) -> CellJudged,
    ) -> RowVerdict {
        let mut unclear = Vec::new();
        for condition in &self.conditions {
            match judge(condition) {
                CellJudged::Meets => {}
                CellJudged::Fails => return RowVerdict::Fails,
                CellJudged::Unclear => unclear.push(condition.at),
            }
        }
        match unclear.is_empty() {
            true => RowVerdict::Meets,
            false => RowVerdict::Unclear(unclear),
        }
    }

    pub(crate) fn conditions(&self) -> &[CellCondition<'_>] {
        &self.conditions
    }

    /// Takes the count of records that could not be judged from elsewhere.
    pub(crate) fn set_skipped(&mut self, skipped: UnclearRows) {
        self.skipped = skipped;
    }

    /// Returns the cell of a column that the query names.
    pub(crate) fn cell<'r>(&self, row: SheetRow<'r>, wanted: &Field) -> &'r str {
        let column = self
            .columns
            .iter()
            .find(|(_, field)| std::ptr::eq(*field, wanted));
        column.map_or("", |(column, _)| row.cell(*column))
    }

    /// Counts a record that these fields keep from being judged.
    pub(crate) fn skip(&mut self, fields: Vec<usize>) {
        self.skipped.add(fields);
    }

    pub(crate) fn consider(&mut self, row: SheetRow<'_>) {
        let zone = self.select.zone;
        match self.judge(row) {
            RowVerdict::Meets => {}
            RowVerdict::Fails => return,
            RowVerdict::Unclear(fields) => return self.skipped.add(fields),
        }
        if let (Some(worst), Some((column, field))) = (&self.worst, self.order.first()) {
            let first = cell_value(row.cell(*column), field, zone);
            if first.order(&worst[0], self.select.order[0].descending) == Ordering::Greater {
                return;
            }
        }
        let values: Vec<Value<'_>> = self
            .order
            .iter()
            .map(|(column, field)| cell_value(row.cell(*column), field, zone))
            .collect();
        if let Some(cursor) = &self.select.cursor {
            match compare(&values, &cursor.values, &self.select.order) {
                Ordering::Less => return,
                Ordering::Equal => {
                    self.equal_to_cursor += 1;
                    if self.equal_to_cursor <= cursor.count {
                        return;
                    }
                }
                Ordering::Greater => {}
            }
        }
        // Equal ones keep the order of the file, so a later one never displaces an earlier.
        let order = &self.select.order;
        if self
            .worst
            .as_ref()
            .is_some_and(|worst| compare(&values, worst, order) != Ordering::Less)
        {
            return;
        }
        let values = values.into_iter().map(Value::into_owned).collect();
        self.best.push(CollectedRow {
            values,
            row: row.to_owned(),
        });
        if self.best.len() >= 2 * self.wanted() + SPARE_ROWS {
            self.keep_best();
        }
    }

    /// Returns one more than the limit, to find out whether there is another page.
    fn wanted(&self) -> usize {
        self.select.limit.saturating_add(1)
    }

    /// Keeps the best rows. Sorting now and then costs less than keeping the rows sorted all the time.
    fn keep_best(&mut self) {
        let order = &self.select.order;
        self.best
            .sort_by(|left, right| compare(&left.values, &right.values, order));
        self.best.truncate(self.wanted());
        if self.best.len() == self.wanted() {
            self.worst = self.best.last().map(|entry| entry.values.clone());
        }
    }

    pub(crate) fn finish(mut self) -> Page {
        self.keep_best();
        let mut records = Records::new();
        let mut last = 0;
        for (index, entry) in self.best.iter().take(self.select.limit).enumerate() {
            if records.len() > PAGE_BYTES_MAX {
                break;
            }
            records.push(members(entry.row.as_row(), &self.columns, self.select.zone));
            last = index;
        }
        let taken = records.count() as usize;
        let next = (taken > 0 && taken < self.best.len()).then(|| self.cursor_behind(last));
        Page {
            records: self.reported(records.finish()),
            next,
        }
    }

    /// Returns the records with the number of those that could not be judged, if there are any.
    pub(crate) fn reported(&self, records: String) -> String {
        if self.skipped.count == 0 {
            return records;
        }
        let fields = self.skipped.fields.iter();
        let columns: Vec<&str> = fields
            .map(|at| self.select.shape.fields[*at].key.as_str())
            .collect();
        let skipped = json!({ "count": self.skipped.count, "columns": columns });
        format!("{{\"skipped\":{skipped},\"records\":{records}}}")
    }

    fn cursor_behind(&self, last: usize) -> String {
        let order = &self.select.order;
        let values = &self.best[last].values;
        let equal = |others: &[Value<'_>]| compare(others, values, order) == Ordering::Equal;
        let mut count = self.best[..=last]
            .iter()
            .rev()
            .take_while(|entry| equal(&entry.values))
            .count() as u64;
        // The whole page may be equal to the previous page's last record.
        if let Some(cursor) = &self.select.cursor
            && equal(&cursor.values)
        {
            count += cursor.count;
        }
        let mut values = values.clone();
        values.push(Value::Integer(i128::from(count)));
        encode_cursor(&values)
    }
}

impl SheetCursor {
    fn decode(cursor: &str, order: &[usize], shape: &Shape, zone: &Zone) -> Result<Self, Error> {
        let count = Field::new("", Type::Integer);
        let fields: Vec<&Field> = order
            .iter()
            .map(|field| &shape.fields[*field])
            .chain([&count])
            .collect();
        let mut values = decode_cursor(cursor, &fields, zone)?;
        match values.pop() {
            Some(Value::Integer(count)) => Ok(Self {
                values,
                count: u64::try_from(count).map_err(|_| bad_cursor())?,
            }),
            _ => Err(bad_cursor()),
        }
    }
}

/// Returns a row as the members of a record.
pub(crate) fn members<'v>(
    row: SheetRow<'v>,
    columns: &'v [(usize, &'v Field)],
    zone: &'v Zone,
) -> impl Iterator<Item = (&'v str, Value<'v>)> {
    columns.iter().map(move |(column, field)| {
        let value = match cell_value(row.cell(*column), field, zone) {
            Value::Unfit(_) if field.empties_misfits => Value::Null,
            value => value,
        };
        (field.key.as_str(), value)
    })
}

/// Returns a cell as its column's type. Workbooks have only points in time, so a date arrives as its midnight.
pub(crate) fn cell_value<'a>(cell: &'a str, field: &Field, zone: &Zone) -> Value<'a> {
    let cell = match (field.kind, cell.strip_suffix(crate::workbook::MIDNIGHT)) {
        (Type::Date, Some(date)) => date,
        _ => cell,
    };
    match Value::from_text(cell, field, zone) {
        Value::Integer(integer)
            if bounds_integers(field) && integer.unsigned_abs() > INTEGER_MAX.unsigned_abs() =>
        {
            Value::Unfit(Cow::Owned(json!(cell).to_string()))
        }
        value => value,
    }
}

/// Returns `true` for a column in which an integer too large for an answer is not a value, just as a text is not. Unless
/// such cells count as empty, the gateway refuses the record in both cases.
pub(crate) fn bounds_integers(field: &Field) -> bool {
    field.kind == Type::Integer && field.empties_misfits
}
