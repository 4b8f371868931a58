//! Counts and summaries: one SELECT with GROUP BY. The database computes each group; order, limit and the last division are
//! those of every source.

use std::collections::HashMap;

use weir_plugin_sdk::summary::{
    DateStep, ExactSum, GROUPS_MAX, GroupRow, SummaryFunction, SummaryGroup, check_group,
    check_measure, computed, find, step_label, too_many_groups, unfit, write_groups,
};
use weir_plugin_sdk::{Error, Field, SummaryPage, SummaryQuery, Type, Value, sql};

use crate::Sql;
use crate::column::Column;
use crate::condition;
use crate::dialect::Dialect;
use crate::select::source_error;
use crate::statement::{self, Builder, Row, cell};

/// The most different values of one column that are added here.
const VALUES_MAX: u32 = 100_000;

pub(crate) fn summarize(
    collection: &Sql,
    dialect: Dialect,
    query: &SummaryQuery,
) -> Result<SummaryPage, Error> {
    let plan = Plan::new(collection, dialect, query)?;
    let mut builder = Builder::new(dialect);
    let mut list = Vec::new();
    let mut places = Vec::new();
    for (group, column) in &plan.groups {
        list.push(grouped(group, column, &mut builder)?);
        places.push(list.len().to_string());
    }
    for (function, column) in &plan.measures {
        list.extend(measured(*function, column.as_ref(), &mut builder)?);
    }
    let list: Vec<_> = list
        .iter()
        .enumerate()
        .map(|(at, part)| format!("{part} AS c{at}"))
        .collect();
    let conditions = condition::all(collection, &query.conditions, &mut builder)?;
    let source = collection.settings.source().sql();
    let by = match places.is_empty() {
        true => String::new(),
        false => format!(" GROUP BY {}", places.join(", ")),
    };
    let limit = GROUPS_MAX as u32 + 1;
    builder.text = format!(
        "SELECT {} FROM {source}{conditions}{by} LIMIT {limit}",
        list.join(", ")
    );
    let statement = builder.finish(&collection.settings.connection, limit, None);
    let answer = sql::query(&statement).map_err(source_error)?;
    let rows = statement::rows(&answer.records)?;
    if answer.truncated || rows.len() > GROUPS_MAX {
        return Err(too_many_groups());
    }
    let rows = rows.iter().map(|row| plan.row(row));
    let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
    plan.add_by_value(&mut rows, dialect, query)?;
    write_groups(query, &collection.shape, &collection.zone, rows)
}

/// A query whose columns are known, and whose groups and measures have a meaning.
struct Plan<'q> {
    collection: &'q Sql,
    groups: Vec<(&'q SummaryGroup, Column<'q>)>,
    measures: Vec<(SummaryFunction, Option<Column<'q>>)>,
}

impl<'q> Plan<'q> {
    fn new(collection: &'q Sql, dialect: Dialect, query: &'q SummaryQuery) -> Result<Self, Error> {
        let shape = &collection.shape;
        let mut groups = Vec::new();
        for group in &query.groups {
            check_group(group, find(shape, &group.column)?)?;
            groups.push((group, Column::find(shape, dialect, &group.column)?));
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
                    Some(Column::find(shape, dialect, column)?)
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
    fn groups(&self, row: &Row<'_>) -> Result<Vec<Value<'static>>, Error> {
        let zone = &self.collection.zone;
        let mut groups = Vec::with_capacity(self.groups.len());
        for (at, (group, column)) in self.groups.iter().enumerate() {
            let value = match group.step {
                None => column.value(cell(row, at)?, zone).into_owned(),
                Some(step) => labelled(&read(row, at, Type::Date, zone)?, step),
            };
            if let Value::Unfit(_) = value {
                return Err(unfit(column.field));
            }
            groups.push(value);
        }
        Ok(groups)
    }

    /// Reads a row: its groups, and its measures as every source has them.
    fn row(&self, row: &Row<'_>) -> Result<GroupRow, Error> {
        let zone = &self.collection.zone;
        let groups = self.groups(row)?;
        let mut at = groups.len();
        let mut measures = Vec::with_capacity(self.measures.len());
        for (function, column) in &self.measures {
            let whole = |at| match read(row, at, Type::Integer, zone)? {
                Value::Integer(number) => u64::try_from(number)
                    .map_err(|_| Error::internal("The database counted less than nothing.")),
                _ => Ok(0),
            };
            let value = match (function, column) {
                (SummaryFunction::Minimum | SummaryFunction::Maximum, Some(column)) => {
                    column.value(cell(row, at)?, zone).into_owned()
                }
                (SummaryFunction::Sum | SummaryFunction::Average, Some(column)) => {
                    let (count, odd) = (whole(at + 1)?, whole(at + 3)?);
                    if odd > 0 {
                        return Err(unfit(column.field));
                    }
                    let places = u32::try_from(whole(at + 2)?).unwrap_or(u32::MAX);
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

impl Plan<'_> {
    /// Computes the sums that SQLite has no exact type for: it groups by the values too, and they are added here.
    fn add_by_value(
        &self,
        rows: &mut [GroupRow],
        dialect: Dialect,
        query: &SummaryQuery,
    ) -> Result<(), Error> {
        let sums = |function| matches!(function, SummaryFunction::Sum | SummaryFunction::Average);
        for (at, (function, column)) in self.measures.iter().enumerate() {
            let Some(column) = column.as_ref().filter(|_| sums(*function)) else {
                continue;
            };
            if column.sum(&mut Builder::new(dialect)).is_some() {
                continue;
            }
            let totals = self.totals_by_value(column, dialect, query)?;
            for (groups, measures) in rows.iter_mut() {
                if let Some((sum, count)) = totals.get(&key(groups)) {
                    measures[at] = computed(*function, column.field.kind, *sum, 0.0, *count)?;
                }
            }
        }
        Ok(())
    }

    fn totals_by_value(
        &self,
        column: &Column<'_>,
        dialect: Dialect,
        query: &SummaryQuery,
    ) -> Result<HashMap<String, (ExactSum, u64)>, Error> {
        let mut builder = Builder::new(dialect);
        let mut list = Vec::new();
        for (group, column) in &self.groups {
            list.push(grouped(group, column, &mut builder)?);
        }
        list.push(column.compared(&mut builder));
        let places: Vec<_> = (1..=list.len()).map(|place| place.to_string()).collect();
        list.push("count(*)".to_owned());
        let list: Vec<_> = list
            .iter()
            .enumerate()
            .map(|(at, part)| format!("{part} AS c{at}"))
            .collect();
        let conditions = condition::all(self.collection, &query.conditions, &mut builder)?;
        let settings = &self.collection.settings;
        builder.text = format!(
            "SELECT {} FROM {}{conditions} GROUP BY {} LIMIT {}",
            list.join(", "),
            settings.source().sql(),
            places.join(", "),
            VALUES_MAX + 1
        );
        let statement = builder.finish(&settings.connection, VALUES_MAX + 1, None);
        let answer = sql::query(&statement).map_err(source_error)?;
        let rows = statement::rows(&answer.records)?;
        if answer.truncated || rows.len() > VALUES_MAX as usize {
            let message = format!(
                "There are more than {VALUES_MAX} different values of {:?} to add; narrow the conditions.",
                column.field.key
            );
            return Err(Error::new("too_large", message));
        }
        let mut totals: HashMap<String, (ExactSum, u64)> = HashMap::new();
        for row in &rows {
            let groups = self.groups(row)?;
            let value = column.value(cell(row, groups.len())?, &self.collection.zone);
            let count = read(row, groups.len() + 1, Type::Integer, &self.collection.zone)?;
            match (value, count) {
                (Value::Null, _) => {}
                (value @ Value::Decimal(_), Value::Integer(count)) => {
                    let (sum, values) = totals.entry(key(&groups)).or_default();
                    sum.add_times(&value, count)?;
                    *values += u64::try_from(count).unwrap_or_default();
                }
                _ => return Err(unfit(column.field)),
            }
        }
        Ok(totals)
    }
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
    match function {
        SummaryFunction::Sum | SummaryFunction::Average => 4,
        _ => 1,
    }
}

/// Returns the expression that rows are grouped by: the value, or the day on which its stretch of time begins.
fn grouped(
    group: &SummaryGroup,
    column: &Column<'_>,
    builder: &mut Builder,
) -> Result<String, Error> {
    let Some(step) = group.step else {
        return Ok(column.grouped(builder));
    };
    let day = column.day(builder).ok_or_else(|| {
        let message = format!(
            "SQLite cannot tell on which day of the zone a time of {:?} is; leave out `timezone`.",
            column.field.key
        );
        Error::unsupported(message).field(&column.field.key)
    })?;
    Ok(match (builder.dialect, step) {
        (Dialect::Postgresql, DateStep::Day) => format!("({day})::text"),
        (Dialect::Postgresql, step) => {
            format!("date_trunc('{}', {day})::date::text", step.name())
        }
        (Dialect::Sqlite, DateStep::Day) => format!("date({day})"),
        // The Sunday at the end of the week, and back to its Monday.
        (Dialect::Sqlite, DateStep::Week) => format!("date({day}, 'weekday 0', '-6 days')"),
        (Dialect::Sqlite, DateStep::Month) => format!("date({day}, 'start of month')"),
        (Dialect::Sqlite, DateStep::Quarter) => format!(
            "date({day}, 'start of month', '-' || ((CAST(strftime('%m', {day}) AS INTEGER) - 1) % 3) || ' months')"
        ),
        (Dialect::Sqlite, DateStep::Year) => format!("date({day}, 'start of year')"),
    })
}

/// Returns the expressions of a measure. A sum comes with the number of its values, the most decimal places that one of
/// them has, and how many values are of another type.
fn measured(
    function: SummaryFunction,
    column: Option<&Column<'_>>,
    builder: &mut Builder,
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
            let count = format!("count({})", column.compared(builder));
            match column.sum(builder) {
                Some([sum, places, odd]) => vec![sum, count, places, odd],
                // It is computed value by value.
                None => ["NULL", "0", "0", "0"].map(str::to_owned).to_vec(),
            }
        }
    })
}

fn cell_of_sum(
    row: &Row<'_>,
    at: usize,
    column: &Column<'_>,
    zone: &weir_plugin_sdk::Zone,
) -> Result<Value<'static>, Error> {
    // The sum of integers may have more digits than one of them.
    let kind = match column.field.kind {
        Type::Integer => Type::Decimal,
        kind => kind,
    };
    read(row, at, kind, zone)
}

fn summed(
    function: SummaryFunction,
    column: &Column<'_>,
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
    row: &Row<'_>,
    at: usize,
    kind: Type,
    zone: &weir_plugin_sdk::Zone,
) -> Result<Value<'static>, Error> {
    let mut field = Field::new("", kind);
    field.nullable = true;
    Ok(Value::from_json(cell(row, at)?, &field, zone).into_owned())
}

fn labelled(day: &Value<'_>, step: DateStep) -> Value<'static> {
    let label = match day {
        Value::Date(day) => step_label(day, step),
        _ => None,
    };
    label.map_or(Value::Null, |label| Value::Text(label.into()))
}
