//! Counts and summaries: one SELECT with GROUP BY. The database computes each group; order, limit and the last division are
//! those of every source.

use std::collections::HashMap;

use weir_plugin_sdk::serde_json::value::RawValue;
use weir_plugin_sdk::summary::{
    DateStep, ExactSum, GROUPS_MAX, GroupRow, SummaryFunction, SummaryGroup, check_group,
    check_measure, computed, find, step_label, too_many_groups, unfit, write_groups,
};
use weir_plugin_sdk::{Error, Field, SummaryPage, SummaryQuery, Type, Value, sql};

use crate::SqlAdapter;
use crate::column::{SqlColumn, before_christ};
use crate::condition;
use crate::dialect::SqlDialect;
use crate::select::source_error;
use crate::sqlite;
use crate::statement::{self, SelectedRow, StatementBuilder, cell};

/// The most different values of one column that are added here.
const VALUES_MAX: u32 = 100_000;

/// The first day that the value table has. Its week begins before, and is named after this day.
const FIRST_DAY: &str = "0000-01-01";

/// The cells of a row before its groups: which SELECT it is of.
const LEADING: usize = 1;

pub(crate) fn summarize(
    collection: &SqlAdapter,
    dialect: SqlDialect,
    query: &SummaryQuery,
) -> Result<SummaryPage, Error> {
    let plan = SummaryPlan::new(collection, dialect, query)?;
    let mut builder = collection.builder(dialect, &query.options)?;
    let by_value = plan.by_value(dialect);
    let measures: usize = plan.measures.iter().map(|one| width(one.0)).sum();
    // A value and its count take two places.
    let width = LEADING + plan.groups.len() + measures.max(2 * by_value.len().min(1));
    let mut selects = vec![plan.select_groups(width, query, &mut builder)?];
    let mut limit = GROUPS_MAX as u32 + 1;
    for (at, column) in by_value.iter().enumerate() {
        selects.push(plan.select_values(at + 1, column, width, query, &mut builder)?);
        limit += VALUES_MAX + 1;
    }
    builder.text = match &mut selects[..] {
        [one] => std::mem::take(one),
        // One statement, so that all its rows are of the same moment.
        several => {
            let each = several.iter().map(|one| format!("SELECT * FROM ({one})"));
            each.collect::<Vec<_>>().join(" UNION ALL ")
        }
    };
    let statement = builder.finish(&collection.settings.connection, limit, None);
    let answer = sql::query(&statement).map_err(source_error)?;
    let mut parts: Vec<Vec<SelectedRow<'_>>> = selects.iter().map(|_| Vec::new()).collect();
    for row in statement::rows(&answer.records)? {
        let part = plan.whole(&row, 0)?;
        let part = usize::try_from(part).ok().and_then(|at| parts.get_mut(at));
        part.ok_or_else(|| Error::internal("The database answered a row of no SELECT."))?
            .push(row);
    }
    if parts[0].len() > GROUPS_MAX {
        return Err(too_many_groups());
    }
    let rows = parts[0].iter().map(|row| plan.row(row));
    let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
    for (column, values) in by_value.iter().zip(&parts[1..]) {
        plan.add_values(&mut rows, column, values)?;
    }
    if answer.truncated {
        return Err(too_many_groups());
    }
    write_groups(query, &collection.shape, &collection.zone, rows)
}

/// A query whose columns are known, and whose groups and measures have a meaning.
struct SummaryPlan<'q> {
    collection: &'q SqlAdapter,
    groups: Vec<(&'q SummaryGroup, SqlColumn<'q>)>,
    measures: Vec<(SummaryFunction, Option<SqlColumn<'q>>)>,
}

impl<'q> SummaryPlan<'q> {
    fn new(
        collection: &'q SqlAdapter,
        dialect: SqlDialect,
        query: &'q SummaryQuery,
    ) -> Result<Self, Error> {
        let shape = &collection.shape;
        let mut groups = Vec::new();
        for group in &query.groups {
            check_group(group, find(shape, &group.column)?)?;
            groups.push((group, SqlColumn::find(shape, dialect, &group.column)?));
        }
        let mut measures = Vec::new();
        for measure in &query.measures {
            let column = match (&measure.column, measure.function) {
                (None, SummaryFunction::Count) => None,
                (None, function) => {
                    let message = format!("The measure {} needs a column.", function.name());
                    return Err(Error::invalid(message));
                }
                (Some(column), function) => {
                    check_measure(function, find(shape, column)?)?;
                    Some(SqlColumn::find(shape, dialect, column)?)
                }
            };
            measures.push((measure.function, column));
        }
        Ok(Self {
            collection,
            groups,
            measures,
        })
    }

    /// Reads the groups of a row, which are its first cells.
    fn groups(&self, row: &SelectedRow<'_>) -> Result<Vec<Value<'static>>, Error> {
        let zone = &self.collection.zone;
        let mut groups = Vec::with_capacity(self.groups.len());
        for (at, (group, column)) in (LEADING..).zip(&self.groups) {
            let value = match group.step {
                None => whole_value(column, cell(row, at)?, zone)?,
                Some(step) => labelled(read(row, at, Type::Date, zone)?, step),
            };
            if let Value::Unfit(_) = value {
                return Err(unfit(column.field));
            }
            groups.push(value);
        }
        Ok(groups)
    }

    /// Reads a row: its groups, and its measures as every source has them.
    fn row(&self, row: &SelectedRow<'_>) -> Result<GroupRow, Error> {
        let zone = &self.collection.zone;
        let groups = self.groups(row)?;
        let mut at = LEADING + groups.len();
        let mut measures = Vec::with_capacity(self.measures.len());
        for (function, column) in &self.measures {
            let whole = |at| self.whole(row, at);
            let value = match (function, column) {
                (SummaryFunction::Minimum | SummaryFunction::Maximum, Some(column)) => {
                    whole_value(column, cell(row, at)?, zone)?
                }
                (SummaryFunction::Sum | SummaryFunction::Average, Some(column)) => {
                    let (count, odd) = (whole(at + 1)?, whole(at + 3)?);
                    if odd > 0 {
                        return Err(unfit(column.field));
                    }
                    let places = u32::try_from(whole(at + 2)?).unwrap_or(u32::MAX);
                    if places > 0 && column.field.kind == Type::Integer {
                        return Err(unfit(column.field));
                    }
                    summed(
                        *function,
                        column,
                        cell_of_sum(row, at, column, zone)?,
                        count,
                        places,
                    )?
                }
                _ => read(row, at, Type::Integer, zone)?,
            };
            if let (Value::Unfit(_), Some(column)) = (&value, column) {
                return Err(unfit(column.field));
            }
            at += width(*function);
            measures.push(value);
        }
        Ok((groups, measures))
    }
}

impl<'q> SummaryPlan<'q> {
    /// Returns the number in a cell, which the database has counted.
    fn whole(&self, row: &SelectedRow<'_>, at: usize) -> Result<u64, Error> {
        match read(row, at, Type::Integer, &self.collection.zone)? {
            Value::Integer(number) => u64::try_from(number)
                .map_err(|_| Error::internal("The database counted less than nothing.")),
            _ => Ok(0),
        }
    }

    /// Returns the columns that SQLite has no exact sum of: it groups by their values too, and they are added here.
    fn by_value(&self, dialect: SqlDialect) -> Vec<&SqlColumn<'q>> {
        let mut columns: Vec<&SqlColumn<'q>> = Vec::new();
        for (function, column) in &self.measures {
            if let Some(column) = column
                && is_sum(*function)
                && column.sum(&mut StatementBuilder::new(dialect)).is_none()
                && !columns.iter().any(|known| known.field == column.field)
            {
                columns.push(column);
            }
        }
        columns
    }

    fn select_groups(
        &self,
        width: usize,
        query: &SummaryQuery,
        builder: &mut StatementBuilder,
    ) -> Result<String, Error> {
        let mut list = vec!["0".to_owned()];
        let by = self.list_groups(&mut list, builder)?;
        for (function, column) in &self.measures {
            list.extend(measured(*function, column.as_ref(), builder)?);
        }
        self.select(list, &by, width, GROUPS_MAX as u32 + 1, query, builder)
    }

    /// Selects the values of a column in each group, and how often each occurs.
    fn select_values(
        &self,
        part: usize,
        column: &SqlColumn<'_>,
        width: usize,
        query: &SummaryQuery,
        builder: &mut StatementBuilder,
    ) -> Result<String, Error> {
        let mut list = vec![part.to_string()];
        let mut by = self.list_groups(&mut list, builder)?;
        list.push(column.summarized(builder));
        by.push(list.len().to_string());
        list.push("count(*)".to_owned());
        self.select(list, &by, width, VALUES_MAX + 1, query, builder)
    }

    /// Adds the groups to a list, and returns what rows are grouped by: places in the list, or expressions.
    fn list_groups(
        &self,
        list: &mut Vec<String>,
        builder: &mut StatementBuilder,
    ) -> Result<Vec<String>, Error> {
        let mut by = Vec::new();
        for (group, column) in &self.groups {
            list.push(grouped(group, column, builder)?);
            let key = column.group_key().filter(|_| group.step.is_none());
            by.push(key.unwrap_or_else(|| list.len().to_string()));
        }
        Ok(by)
    }

    /// Returns a SELECT of a list.
    fn select(
        &self,
        mut list: Vec<String>,
        by: &[String],
        width: usize,
        limit: u32,
        query: &SummaryQuery,
        builder: &mut StatementBuilder,
    ) -> Result<String, Error> {
        list.resize(list.len().max(width), "NULL".to_owned());
        let list: Vec<_> = list
            .iter()
            .enumerate()
            .map(|(at, part)| format!("{part} AS c{at}"))
            .collect();
        let conditions = condition::all(self.collection, &query.conditions, builder)?;
        let source = self.collection.source(builder.dialect)?;
        let by = match by.is_empty() {
            true => String::new(),
            false => format!(" GROUP BY {}", by.join(", ")),
        };
        let list = list.join(", ");
        Ok(format!(
            "SELECT {list} FROM {source}{conditions}{by} LIMIT {limit}"
        ))
    }

    /// Adds the values of a column, and writes the sums and averages into their groups.
    fn add_values(
        &self,
        rows: &mut [GroupRow],
        column: &SqlColumn<'_>,
        values: &[SelectedRow<'_>],
    ) -> Result<(), Error> {
        if values.len() > VALUES_MAX as usize {
            let message = format!(
                "There are more than {VALUES_MAX} different values of {:?} to add; narrow the conditions.",
                column.field.key
            );
            return Err(Error::new("too_large", message));
        }
        let mut totals: HashMap<String, (ExactSum, u64)> = HashMap::new();
        for row in values {
            let groups = self.groups(row)?;
            let at = LEADING + groups.len();
            match whole_value(column, cell(row, at)?, &self.collection.zone)? {
                Value::Null => {}
                value @ Value::Decimal(_) => {
                    let count = self.whole(row, at + 1)?;
                    let (sum, values) = totals.entry(key(&groups)).or_default();
                    sum.add_times(&value, count.into())?;
                    *values += count;
                }
                _ => return Err(unfit(column.field)),
            }
        }
        let sums = self.measures.iter().enumerate().filter(|(_, measure)| {
            let (function, of) = measure;
            is_sum(*function) && of.as_ref().is_some_and(|of| of.field == column.field)
        });
        for (at, (function, _)) in sums {
            for (groups, measures) in rows.iter_mut() {
                if let Some((sum, count)) = totals.get(&key(groups)) {
                    measures[at] = computed(*function, column.field.kind, *sum, 0.0, *count)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a value of a group; one that a record would have null for is refused, since no summary is right without it.
fn whole_value(
    column: &SqlColumn<'_>,
    raw: &RawValue,
    zone: &weir_plugin_sdk::Zone,
) -> Result<Value<'static>, Error> {
    let value = column.value(raw, zone);
    match column.is_emptied(raw, &value) {
        true => Err(unfit(column.field)),
        false => Ok(value.into_owned()),
    }
}

fn is_sum(function: SummaryFunction) -> bool {
    matches!(function, SummaryFunction::Sum | SummaryFunction::Average)
}

/// Returns a text that only equal groups have.
fn key(groups: &[Value<'_>]) -> String {
    let mut key = String::new();
    for value in groups {
        value.write_json(&mut key);
        key.push(',');
    }
    key
}

/// The number of columns that a measure takes in the SELECT.
fn width(function: SummaryFunction) -> usize {
    if is_sum(function) { 4 } else { 1 }
}

/// Returns the expression that rows are grouped by: the value, or the day on which its stretch of time begins.
fn grouped(
    group: &SummaryGroup,
    column: &SqlColumn<'_>,
    builder: &mut StatementBuilder,
) -> Result<String, Error> {
    let Some(step) = group.step else {
        return Ok(column.grouped(builder));
    };
    let day = column.day(builder).ok_or_else(|| {
        let database = match builder.dialect {
            SqlDialect::Mysql => "MySQL",
            _ => "SQLite",
        };
        let message = format!(
            "{database} cannot tell on which day of the zone a time of {:?} is; leave out `timezone`.",
            column.field.key
        );
        Error::unsupported(message).field(&column.field.key)
    })?;
    let stepped = match (builder.dialect, step) {
        (SqlDialect::Postgresql, DateStep::Day) => format!("({day})::text"),
        (SqlDialect::Postgresql, DateStep::Week) => {
            let monday = format!("date_trunc('week', {day})::date");
            format!(
                "(CASE WHEN {monday} < '0001-01-01 BC' THEN '0001-01-01 BC' ELSE {monday} END)::text"
            )
        }
        (SqlDialect::Postgresql, step) => {
            format!("date_trunc('{}', {day})::date::text", step.name())
        }
        (SqlDialect::Mysql, DateStep::Day) => format!("CAST({day} AS CHAR)"),
        (SqlDialect::Mysql, DateStep::Week) => mysql_week(&day),
        (SqlDialect::Mysql, DateStep::Month) => format!("DATE_FORMAT({day}, '%Y-%m-01')"),
        (SqlDialect::Mysql, DateStep::Quarter) => format!(
            "CONCAT(DATE_FORMAT({day}, '%Y-'), LPAD(QUARTER({day}) * 3 - 2, 2, '0'), '-01')"
        ),
        (SqlDialect::Mysql, DateStep::Year) => format!("DATE_FORMAT({day}, '%Y-01-01')"),
        (SqlDialect::Sqlite, DateStep::Day) => format!("date({day})"),
        // The Sunday at the end of the week, and back to its Monday.
        (SqlDialect::Sqlite, DateStep::Week) => {
            format!("max(date({day}, 'weekday 0', '-6 days'), '{FIRST_DAY}')")
        }
        (SqlDialect::Sqlite, DateStep::Month) => format!("date({day}, 'start of month')"),
        (SqlDialect::Sqlite, DateStep::Quarter) => format!(
            "date({day}, 'start of month', '-' || ((CAST(strftime('%m', {day}) AS INTEGER) - 1) % 3) || ' months')"
        ),
        (SqlDialect::Sqlite, DateStep::Year) => format!("date({day}, 'start of year')"),
    };
    Ok(match builder.dialect {
        SqlDialect::Postgresql | SqlDialect::Mysql => stepped,
        // A column of SQLite may contain anything, and its dates are more than those of the value table. Any other value is
        // grouped as a text that is not a date.
        SqlDialect::Sqlite => {
            let fits = match column.field.kind {
                Type::Date => format!("date({day}, '+0 days') = {day}"),
                _ => format!("{day} IS NOT NULL"),
            };
            let name = column.name();
            format!("CASE WHEN {name} IS NULL OR {fits} THEN {stepped} ELSE '?' END")
        }
    })
}

/// Returns the Monday of a day's week, or the first day. MySQL does not compute days before the year 1, whose calendar is that
/// of 400 years later.
fn mysql_week(day: &str) -> String {
    let monday = |day: &str| format!("CAST(DATE_SUB({day}, INTERVAL WEEKDAY({day}) DAY) AS CHAR)");
    let later = monday(&format!(
        "CAST(CONCAT('0400', SUBSTRING({day}, 5)) AS DATE)"
    ));
    format!(
        "(CASE WHEN {day} >= '0001-01-01' THEN {} ELSE CONCAT('0000', SUBSTRING(GREATEST({later}, '0400-01-01'), 5)) END)",
        monday(day)
    )
}

/// Returns the expressions of a measure. A sum or an average comes with the number of its values and the most decimal places
/// that any of them has, if needed, and with the number of values of another type.
fn measured(
    function: SummaryFunction,
    column: Option<&SqlColumn<'_>>,
    builder: &mut StatementBuilder,
) -> Result<Vec<String>, Error> {
    let Some(column) = column else {
        return Ok(vec!["count(*)".to_owned()]);
    };
    Ok(match function {
        SummaryFunction::Count => vec!["count(*)".to_owned()],
        SummaryFunction::Distinct => vec![format!("count(DISTINCT {})", column.compared(builder))],
        SummaryFunction::Minimum | SummaryFunction::Maximum => {
            vec![column.edge(function.name(), builder)]
        }
        SummaryFunction::Sum | SummaryFunction::Average => {
            let is_average = function == SummaryFunction::Average;
            let Some([sum, places, odd]) = column.sum(builder) else {
                // It is computed value by value; the count makes one row of a SELECT without groups.
                return Ok(["NULL", "count(*)", "0", "0"].map(str::to_owned).to_vec());
            };
            // A sum without values is null, and has the places that it is written with.
            let count = match is_average {
                true => format!("count({})", column.compared(builder)),
                false => "1".to_owned(),
            };
            let places = match is_average || column.field.kind == Type::Integer {
                true => places,
                false => "0".to_owned(),
            };
            vec![sum, count, places, odd]
        }
    })
}

fn cell_of_sum(
    row: &SelectedRow<'_>,
    at: usize,
    column: &SqlColumn<'_>,
    zone: &weir_plugin_sdk::Zone,
) -> Result<Value<'static>, Error> {
    // The sum of integers may have more digits than each integer.
    let kind = match column.field.kind {
        Type::Integer => Type::Decimal,
        kind => kind,
    };
    match sqlite::join_parts(cell(row, at)?) {
        Some(sum) => Ok(sum),
        None => read(row, at, kind, zone),
    }
}

fn summed(
    function: SummaryFunction,
    column: &SqlColumn<'_>,
    sum: Value<'_>,
    count: u64,
    places: u32,
) -> Result<Value<'static>, Error> {
    if count == 0 || sum.is_null() {
        return Ok(Value::Null);
    }
    let number = match sum {
        Value::Number(number) => number,
        _ => 0.0,
    };
    let exact = ExactSum::of_source(&sum, places)?;
    computed(function, column.field.kind, exact, number, count)
}

fn read(
    row: &SelectedRow<'_>,
    at: usize,
    kind: Type,
    zone: &weir_plugin_sdk::Zone,
) -> Result<Value<'static>, Error> {
    let mut field = Field::new("", kind);
    field.nullable = true;
    let raw = cell(row, at)?;
    if kind == Type::Date && raw.get().ends_with(" BC\"") {
        return Ok(before_christ(raw, &field, zone));
    }
    Ok(Value::from_json(raw, &field, zone).into_owned())
}

/// Returns the label of a period; a value that is not a date remains a misfit.
fn labelled(day: Value<'static>, step: DateStep) -> Value<'static> {
    match &day {
        Value::Date(date) => match step_label(date, step) {
            Some(label) => Value::Text(label.into()),
            None => Value::Unfit(date.clone()),
        },
        _ => day,
    }
}
