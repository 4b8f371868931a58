//! Summarizes records that go by one after the other.

use std::collections::{HashMap, HashSet};

use super::exact::ExactSum;
use super::table::{GROUPS_MAX, find, step_label, too_many_groups, write_groups};
use super::{SummaryFunction, SummaryGroup, SummaryMeasure, SummaryPage, SummaryQuery};
use crate::error::{Error, Result};
use crate::shape::{Field, Shape, Type};
use crate::value::{Value, Zone};

/// The most different values that all measures together keep apart.
const DISTINCT_MAX: usize = 200_000;

/// Computes the measures of groups in one pass, in memory that is bounded by the groups.
pub struct Summarizer<'q> {
    query: &'q SummaryQuery,
    shape: &'q Shape,
    zone: &'q Zone,
    groups: Vec<(&'q SummaryGroup, &'q Field)>,
    measures: Vec<(&'q SummaryMeasure, Option<&'q Field>)>,
    /// The place of each group, by its values as JSON.
    places: HashMap<String, usize>,
    rows: Vec<(Vec<Value<'static>>, Vec<MeasureState>)>,
    distinct: usize,
    key: String,
}

/// The intermediate result of one measure of one group.
#[derive(Default)]
struct MeasureState {
    count: u64,
    exact: ExactSum,
    number: f64,
    /// The error of adding floating point numbers so far.
    lost: f64,
    edge: Option<Value<'static>>,
    seen: HashSet<String>,
}

impl<'q> Summarizer<'q> {
    /// Refuses what has no meaning for a column's type.
    pub fn new(query: &'q SummaryQuery, shape: &'q Shape, zone: &'q Zone) -> Result<Self> {
        let mut groups = Vec::new();
        for group in &query.groups {
            let field = find(shape, &group.column)?;
            check_group(group, field)?;
            groups.push((group, field));
        }
        let mut measures = Vec::new();
        for measure in &query.measures {
            let field = match (&measure.column, measure.function) {
                (None, SummaryFunction::Count) => None,
                (Some(column), function) => {
                    let field = find(shape, column)?;
                    check_measure(function, field)?;
                    Some(field)
                }
                (None, function) => {
                    let message = format!("The measure {} needs a column.", function.name());
                    return Err(Error::invalid(message));
                }
            };
            measures.push((measure, field));
        }
        let mut summarizer = Self {
            query,
            shape,
            zone,
            groups,
            measures,
            places: HashMap::new(),
            rows: Vec::new(),
            distinct: 0,
            key: String::new(),
        };
        if query.groups.is_empty() {
            summarizer.place(Vec::new())?;
        }
        Ok(summarizer)
    }

    /// Takes a record. `value` returns its value of a column; one that does not fit its column's type is an error.
    pub fn add<'v>(&mut self, mut value: impl FnMut(&Field) -> Value<'v>) -> Result<()> {
        let at = self.group(&mut value)?;
        self.add_to(at, value)
    }

    /// Returns the place of a record's group. Records with the same values in the groups' columns have the same place.
    pub fn group<'v>(&mut self, mut value: impl FnMut(&Field) -> Value<'v>) -> Result<usize> {
        if self.groups.is_empty() {
            return Ok(0);
        }
        let mut groups = Vec::with_capacity(self.groups.len());
        for (group, field) in &self.groups {
            groups.push(grouped(group, checked(value(field), field)?, self.zone));
        }
        self.place(groups)
    }

    /// Takes a record of the group at this place.
    pub fn add_to<'v>(
        &mut self,
        at: usize,
        mut value: impl FnMut(&Field) -> Value<'v>,
    ) -> Result<()> {
        for measure in 0..self.measures.len() {
            match self.measures[measure].1 {
                None => self.count_record(measure, at),
                Some(field) => self.add_value(measure, at, value(field))?,
            }
        }
        Ok(())
    }

    /// Returns the measures in their order, each with its column.
    pub fn measures(&self) -> impl ExactSizeIterator<Item = (SummaryFunction, Option<&'q Field>)> {
        let measures = self.measures.iter();
        measures.map(|(measure, field)| (measure.function, *field))
    }

    /// Counts a record for one measure of the group at this place.
    pub fn count_record(&mut self, measure: usize, at: usize) {
        self.rows[at].1[measure].count += 1;
    }

    /// Takes a number for a sum or an average of a column of numbers.
    pub fn add_number(&mut self, measure: usize, at: usize, number: f64) {
        let running = &mut self.rows[at].1[measure];
        running.count += 1;
        running.add_number(number);
    }

    /// Takes a decimal by its digits, of which `places` are after the point, for a sum or an average of a column of decimals.
    pub fn add_units(&mut self, measure: usize, at: usize, units: i64, places: u8) -> Result<()> {
        let running = &mut self.rows[at].1[measure];
        running.count += 1;
        running.exact.add_units(units, places)
    }

    /// Takes a record's value of a measure's column for that measure.
    pub fn add_value(&mut self, measure: usize, at: usize, value: Value<'_>) -> Result<()> {
        let (asked, field) = &self.measures[measure];
        let Some(field) = field else {
            self.count_record(measure, at);
            return Ok(());
        };
        if !matches!(
            asked.function,
            SummaryFunction::Count | SummaryFunction::Distinct
        ) {
            check_unit(&value, field)?;
        }
        let value = checked(value, field)?;
        if value.is_null() {
            return Ok(());
        }
        let running = &mut self.rows[at].1[measure];
        self.distinct += usize::from(running.add(asked.function, value)?);
        if self.distinct > DISTINCT_MAX {
            let message = format!(
                "There are more than {DISTINCT_MAX} different values to keep apart; narrow the conditions."
            );
            return Err(Error::new("too_large", message));
        }
        Ok(())
    }

    fn place(&mut self, groups: Vec<Value<'static>>) -> Result<usize> {
        self.key.clear();
        for value in &groups {
            value.write_json(&mut self.key);
            self.key.push(',');
        }
        if let Some(at) = self.places.get(&self.key) {
            return Ok(*at);
        }
        if self.rows.len() == GROUPS_MAX {
            return Err(too_many_groups());
        }
        let at = self.rows.len();
        self.places.insert(self.key.clone(), at);
        let measures = self.measures.iter().map(|_| MeasureState::default());
        self.rows.push((groups, measures.collect()));
        Ok(at)
    }

    /// Returns the records of the answer.
    pub fn finish(self) -> Result<SummaryPage> {
        let mut rows = Vec::with_capacity(self.rows.len());
        for (groups, running) in self.rows {
            let measures = running.into_iter().zip(&self.measures);
            let measures = measures
                .map(|(running, (measure, field))| running.finish(measure.function, *field));
            rows.push((groups, measures.collect::<Result<_>>()?));
        }
        write_groups(self.query, self.shape, self.zone, rows)
    }
}

/// Refuses a group that has no meaning for the column's type.
pub fn check_group(group: &SummaryGroup, field: &Field) -> Result<()> {
    let fits = match group.step {
        Some(_) => matches!(field.kind, Type::Date | Type::Datetime),
        None => !matches!(field.kind, Type::Json | Type::Record | Type::List),
    };
    match fits {
        true => Ok(()),
        false => {
            let message = format!("The column {:?} makes no such groups.", field.key);
            Err(Error::unsupported(message).field(&field.key))
        }
    }
}

/// Refuses a measure that has no meaning for the column's type.
pub fn check_measure(function: SummaryFunction, field: &Field) -> Result<()> {
    let fits = match function {
        SummaryFunction::Count => false,
        SummaryFunction::Sum | SummaryFunction::Average => {
            matches!(field.kind, Type::Integer | Type::Number | Type::Decimal)
        }
        SummaryFunction::Minimum | SummaryFunction::Maximum => matches!(
            field.kind,
            Type::Integer | Type::Number | Type::Decimal | Type::Date | Type::Datetime
        ),
        SummaryFunction::Distinct => !matches!(field.kind, Type::Json | Type::Record | Type::List),
    };
    match fits {
        true => Ok(()),
        false => Err(Error::unsupported(format!(
            "The column {:?} has no {}.",
            field.key,
            function.name()
        ))
        .field(&field.key)),
    }
}

/// Returns the value that records with this one have in common.
fn grouped(group: &SummaryGroup, value: Value<'_>, zone: &Zone) -> Value<'static> {
    let Some(step) = group.step else {
        return value.into_owned();
    };
    let label = match &value {
        Value::Date(date) => step_label(date, step),
        Value::Datetime(moment) => {
            let local = moment.to_local(zone);
            local.and_then(|local| step_label(local.get(..10)?, step))
        }
        _ => None,
    };
    label.map_or(Value::Null, |label| Value::Text(label.into()))
}

fn checked<'v>(value: Value<'v>, field: &Field) -> Result<Value<'v>> {
    match value {
        Value::Unfit(_) if field.empties_misfits => Ok(Value::Null),
        Value::Unfit(_) => Err(unfit(field)),
        value => Ok(value),
    }
}

/// Refuses to add or compare a value with a unit other than the column's, since nothing would show that it was left out.
fn check_unit(value: &Value<'_>, field: &Field) -> Result<()> {
    let Value::Unfit(json) = value else {
        return Ok(());
    };
    let Some(format) = field
        .format
        .as_deref()
        .filter(|format| format.unit.is_some())
    else {
        return Ok(());
    };
    let text: String = serde_json::from_str(json).unwrap_or_default();
    match format.has_other_unit(&text) {
        false => Ok(()),
        true => Err(Error::unsupported(format!(
            "The column {:?} holds a number with another unit, such as {text:?}, so that it has no sum, average, minimum and maximum. Narrow \
             the conditions to records of one unit.",
            field.key
        ))
        .field(&field.key)),
    }
}

/// Returns the error for a column that holds a value of another type.
pub fn unfit(field: &Field) -> Error {
    Error::source_changed(format!(
        "The column {:?} holds a value that does not fit its type, so nothing can be computed of it.",
        field.key
    ))
    .field(&field.key)
}

impl MeasureState {
    /// Takes a value. Returns `true` if another different one is kept.
    fn add(&mut self, function: SummaryFunction, value: Value<'_>) -> Result<bool> {
        self.count += 1;
        match function {
            SummaryFunction::Count => {}
            SummaryFunction::Sum | SummaryFunction::Average => match value {
                Value::Number(number) => self.add_number(number),
                value => self.exact.add(&value)?,
            },
            SummaryFunction::Minimum | SummaryFunction::Maximum => {
                let is_new = self.edge.as_ref().is_none_or(|edge| {
                    value
                        .order(edge, function == SummaryFunction::Maximum)
                        .is_lt()
                });
                if is_new {
                    self.edge = Some(value.into_owned());
                }
            }
            SummaryFunction::Distinct => return Ok(self.seen.insert(value.to_json())),
        }
        Ok(false)
    }

    /// Adds by the method of Neumaier, so that the order of records does not matter much.
    fn add_number(&mut self, number: f64) {
        let sum = self.number + number;
        self.lost += match self.number.abs() >= number.abs() {
            true => (self.number - sum) + number,
            false => (number - sum) + self.number,
        };
        self.number = sum;
    }

    fn finish(self, function: SummaryFunction, field: Option<&Field>) -> Result<Value<'static>> {
        let number = self.number + self.lost;
        match function {
            SummaryFunction::Count => Ok(Value::Integer(self.count.into())),
            SummaryFunction::Distinct => Ok(Value::Integer(self.seen.len() as i128)),
            SummaryFunction::Minimum | SummaryFunction::Maximum => {
                Ok(self.edge.unwrap_or(Value::Null))
            }
            SummaryFunction::Sum | SummaryFunction::Average if self.count == 0 => Ok(Value::Null),
            _ => computed(
                function,
                field.map_or(Type::Integer, |field| field.kind),
                self.exact,
                number,
                self.count,
            ),
        }
    }
}

/// Returns a sum or an average of a column of this type.
pub fn computed(
    function: SummaryFunction,
    kind: Type,
    exact: ExactSum,
    number: f64,
    count: u64,
) -> Result<Value<'static>> {
    let is_average = function == SummaryFunction::Average;
    let finite = |number: f64| match number.is_finite() {
        true => Value::Number(number),
        false => Value::Null,
    };
    Ok(match (kind, is_average) {
        (Type::Number, true) => finite(number / count as f64),
        (Type::Number, false) => finite(number),
        (Type::Integer, false) => exact.integer(),
        (Type::Integer, true) => match exact.average(count)? {
            Value::Decimal(average) => finite(average.as_str().parse().unwrap_or(f64::NAN)),
            other => other,
        },
        (_, true) => exact.average(count)?,
        (_, false) => exact.decimal(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::Order;
    use crate::summary::DateStep;

    fn shape() -> Shape {
        let mut shape = Shape::new("orders");
        let columns = [
            ("city", Type::String),
            ("total", Type::Decimal),
            ("pieces", Type::Integer),
            ("placed", Type::Datetime),
        ];
        shape.fields = columns
            .map(|(name, kind)| Field {
                nullable: true,
                ..Field::new(name, kind)
            })
            .to_vec();
        shape
    }

    fn measure(function: SummaryFunction, column: Option<&str>) -> SummaryMeasure {
        SummaryMeasure {
            name: function.name().to_owned(),
            function,
            column: column.map(str::to_owned),
        }
    }

    fn group(column: &str, step: Option<DateStep>) -> SummaryGroup {
        SummaryGroup {
            name: column.to_owned(),
            column: column.to_owned(),
            step,
        }
    }

    fn summarized(query: &SummaryQuery, zone: &str) -> Result<SummaryPage> {
        let (shape, zone) = (shape(), Zone::parse(zone)?);
        let mut summarizer = Summarizer::new(query, &shape, &zone)?;
        for row in [
            ["Oslo", "1.10", "1", "2026-10-31T23:30:00Z"],
            ["Oslo", "2.2", "2", "2026-11-01T00:00:00Z"],
            ["Bergen", "", "4", "2027-01-01T00:00:00Z"],
            ["", "-0.05", "", ""],
        ] {
            let place = |field: &Field| shape.fields.iter().position(|one| one.key == field.key);
            summarizer.add(|field| {
                let cell = row[place(field).expect("a column")];
                Value::from_text(cell, field, &zone)
            })?;
        }
        summarizer.finish()
    }

    #[test]
    fn groups_have_exact_measures_and_nulls_a_group_of_their_own() {
        let query = SummaryQuery {
            groups: vec![group("city", None)],
            measures: vec![
                measure(SummaryFunction::Count, None),
                measure(SummaryFunction::Sum, Some("total")),
                measure(SummaryFunction::Average, Some("pieces")),
                measure(SummaryFunction::Distinct, Some("placed")),
            ],
            order: vec![Order::parse("-count")],
            limit: 10,
            ..SummaryQuery::default()
        };
        let page = summarized(&query, "UTC").expect("it is answered");
        assert_eq!(
            page.records,
            r#"[{"city":"Oslo","count":2,"sum":"3.3","avg":1.5,"distinct":2},{"city":"Bergen","count":1,"sum":null,"avg":4,"distinct":1},{"city":null,"count":1,"sum":"-0.05","avg":null,"distinct":0}]"#
        );
        let two = SummaryQuery { limit: 2, ..query };
        let page = summarized(&two, "UTC").expect("it is answered");
        assert!(page.more && !page.records.contains("null,\"count\":1"));
    }

    #[test]
    fn steps_are_those_of_the_zone() {
        for (step, zone, expected) in [
            (
                DateStep::Month,
                "UTC",
                r#"["2026-10","2026-11","2027-01",null]"#,
            ),
            (
                DateStep::Month,
                "Europe/Oslo",
                r#"["2026-11","2027-01",null]"#,
            ),
            (DateStep::Week, "UTC", r#"["2026-W44","2026-W53",null]"#),
            (DateStep::Quarter, "UTC", r#"["2026-Q4","2027-Q1",null]"#),
            (DateStep::Year, "UTC", r#"["2026","2027",null]"#),
            (
                DateStep::Day,
                "UTC",
                r#"["2026-10-31","2026-11-01","2027-01-01",null]"#,
            ),
        ] {
            let query = SummaryQuery {
                groups: vec![group("placed", Some(step))],
                measures: vec![measure(SummaryFunction::Count, None)],
                limit: 10,
                ..SummaryQuery::default()
            };
            let page = summarized(&query, zone).expect("it is answered");
            let records: Vec<serde_json::Value> =
                serde_json::from_str(&page.records).expect("JSON");
            let labels: Vec<_> = records.iter().map(|one| one["placed"].clone()).collect();
            assert_eq!(serde_json::json!(labels).to_string(), expected, "{step:?}");
        }
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        for (groups, measures) in [
            (vec![group("city", Some(DateStep::Day))], vec![]),
            (vec![group("nowhere", None)], vec![]),
            (vec![], vec![measure(SummaryFunction::Sum, Some("city"))]),
            (vec![], vec![measure(SummaryFunction::Sum, None)]),
        ] {
            let query = SummaryQuery {
                groups,
                measures,
                ..SummaryQuery::default()
            };
            assert!(summarized(&query, "UTC").is_err(), "{query:?}");
        }
    }
}
