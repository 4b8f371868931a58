//! The tools of a draft that ask about many records: a list, and a summary of the same records.

use std::{collections::HashSet, fmt::Write as _};

use super::{ContractDrafter, can, help, help_and, titled, worth::ColumnWorth, yaml::scalar};
use crate::{
    name,
    shape::{ShapeField, SummarySupport, ValueType},
};

/// The longest name of a column in a measure: `sum(…)` is a name of at most 200 characters.
const MEASURED_MAX: usize = 195;
/// A list with more filters than this does not help an agent.
const FILTERS_MAX: usize = 20;
/// Columns of a record if an agent does not choose any. More would burden each answer.
const COLUMNS_MAX: usize = 12;
/// Columns that an agent may ask for in addition to these.
const FURTHER_MAX: usize = 100;
/// Columns to order by, to group by and to compute of: each is two to five words in a schema.
const ORDERS_MAX: usize = 8;
const GROUPS_MAX: usize = 8;
const NUMBERS_MAX: usize = 4;
/// Arguments that a list or a summary always has.
const OWN: [&str; 7] = [
    "limit", "cursor", "order_by", "columns", "group_by", "measures", "having",
];
/// The last words of columns whose numbers are names: their sum means nothing.
const NAMES: [&str; 14] = [
    "id", "no", "nr", "number", "code", "zip", "postcode", "phone", "year", "month", "day", "lat",
    "lon", "version",
];

impl<'a> ContractDrafter<'a> {
    /// Writes the list, and what sums its records up.
    pub(super) fn questions(&mut self, text: &mut String) {
        if !self.shape.capabilities.read {
            return;
        }
        let mut taken: HashSet<String> = OWN.map(str::to_owned).into();
        let parameters = super::parameters::fields(self.shape, &mut taken);
        let mut by_column = Vec::new();
        for field in self.columns.iter().copied() {
            let mut lines = Vec::new();
            self.filters(field, &mut taken, &mut lines);
            by_column.push((field, lines));
        }
        let (mut lines, all) = self.best_filters(by_column, FILTERS_MAX);
        if lines.len() < all {
            self.notes.push(format!(
                "The list has {} of {all} filters: those of its key, of columns with few values, times, names and amounts first.",
                lines.len()
            ));
        }
        lines.splice(..0, parameters);
        self.list(&lines, text);
        self.summary(&lines, text);
    }

    fn list(&mut self, filters: &[String], text: &mut String) {
        let described = format!(
            "Lists {}, page by page{}.",
            self.noun.many,
            rule_of(filters)
        );
        let mut keys = self.names_of("order_by", &self.orders());
        let (answered, further) = self.answered();
        if !further.is_empty() {
            let others = match further.len() {
                FURTHER_MAX => format!("{FURTHER_MAX} others"),
                _ => "the others".to_owned(),
            };
            self.notes.push(format!(
                "The list answers {} of {} columns; agents ask for {others} by `columns`.",
                answered.len(),
                self.columns.len()
            ));
            keys.push_str(&self.names_of("returns", &answered));
            keys.push_str(&self.names_of("columns", &further));
        }
        if let Some(rows) = self.rows_default(&answered) {
            let _ = writeln!(keys, "    limits: {{ rows_default: {rows} }}");
        }
        self.head_with(text, "list", &self.noun.many, &described, "list", &keys);
        write_fields(filters, text);
    }

    /// Writes a summary, which returns a count if nothing else is asked for, or a tool that only counts.
    fn summary(&self, filters: &[String], text: &mut String) {
        let (mut groups, measures) = (self.groups(), self.measures());
        // A column that is called like a measure cannot be distinguished from it.
        groups.retain(|field| !measures.contains(&field.key));
        let many = &self.noun.many;
        let rule = rule_of(filters);
        match self.shape.capabilities.summaries {
            SummarySupport::All if !groups.is_empty() || measures.len() > 1 => {
                let what = match measures.len() {
                    1 => "",
                    _ => ", and computes sums, averages, minimums and maximums",
                };
                let described = format!("Counts {many}{what}, in total or by group{rule}.");
                let mut keys = self.names_of("group_by", &groups);
                let measures: Vec<String> =
                    measures.iter().map(|measure| scalar(measure)).collect();
                let _ = writeln!(keys, "    measures: [{}]", measures.join(", "));
                self.head_with(text, "summarize", many, &described, "summarize", &keys);
                write_fields(filters, text);
            }
            SummarySupport::None => {}
            SummarySupport::All | SummarySupport::Count => {
                let described = format!("Counts {many}{rule}.");
                self.head_with(text, "count", many, &described, "count", "");
                write_fields(filters, text);
            }
        }
    }

    /// Writes a key of a tool that names columns, if there are any.
    fn names_of(&self, key: &str, columns: &[&ShapeField]) -> String {
        if columns.is_empty() {
            return String::new();
        }
        let names: Vec<String> = columns.iter().map(|field| scalar(&field.key)).collect();
        format!("    {key}: [{}]\n", names.join(", "))
    }

    /// Returns the columns that the list answers, and those that it answers only where an agent asks for them.
    fn answered(&self) -> (Vec<&'a ShapeField>, Vec<&'a ShapeField>) {
        if self.columns.len() <= COLUMNS_MAX {
            return (self.columns.clone(), Vec::new());
        }
        let mut ranked: Vec<(usize, bool, bool)> = Vec::new();
        for (at, field) in self.columns.iter().enumerate() {
            let worth = self.judge(field);
            ranked.push((at, worth == ColumnWorth::Key, worth == ColumnWorth::Remote));
        }
        // The key, then the first useful columns, then the rest in their order.
        ranked.sort_by_key(|(at, is_key, is_remote)| (!is_key, *is_remote, *at));
        let keys = ranked.iter().filter(|(_, is_key, _)| *is_key).count();
        let first: HashSet<usize> = ranked
            .iter()
            .take(COLUMNS_MAX.max(keys))
            .map(|(at, ..)| *at)
            .collect();
        let (mut answered, mut further) = (Vec::new(), Vec::new());
        for (at, field) in self.columns.iter().copied().enumerate() {
            match first.contains(&at) {
                true => answered.push(field),
                false => further.push(field),
            }
        }
        further.truncate(FURTHER_MAX);
        (answered, further)
    }

    /// Returns the columns with a meaningful order: numbers, times, and the key.
    fn orders(&self) -> Vec<&'a ShapeField> {
        let says_something = |field: &&ShapeField| {
            let is_measured = matches!(
                field.kind,
                ValueType::Integer
                    | ValueType::Number
                    | ValueType::Decimal
                    | ValueType::Date
                    | ValueType::Datetime
            );
            (is_measured || self.shape.key.contains(&field.key))
                && !field.key.starts_with('-')
                && self.shape.capabilities.orders(&field.key)
        };
        let columns = self.columns.iter().copied().filter(says_something);
        columns.take(ORDERS_MAX).collect()
    }

    /// Returns the columns that records are grouped by: those of few values first, then times and keys of other
    /// tables, then texts.
    fn groups(&self) -> Vec<&'a ShapeField> {
        let rank = |field: &ShapeField| match field.kind {
            _ if self.shape.key.contains(&field.key) => None,
            ValueType::Boolean => Some(0),
            ValueType::String if self.choices(field).is_some() => Some(0),
            ValueType::Date | ValueType::Datetime => Some(1),
            _ if self.names_record(&field.key) => Some(1),
            ValueType::String => Some(2),
            _ => None,
        };
        let mut ranked: Vec<(u8, &ShapeField)> = self
            .columns
            .iter()
            .filter_map(|field| Some((rank(field)?, *field)))
            .collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.truncate(GROUPS_MAX);
        ranked.into_iter().map(|(_, field)| field).collect()
    }

    /// Returns what can be computed: how many there are, and sums, averages and extremes of numbers that are amounts.
    fn measures(&self) -> Vec<String> {
        let is_amount = |field: &&&ShapeField| {
            let is_number = matches!(
                field.kind,
                ValueType::Integer | ValueType::Number | ValueType::Decimal
            );
            let last = name::words(&field.key).pop().unwrap_or_default();
            is_number
                && field.key.chars().count() <= MEASURED_MAX
                && !self.shape.key.contains(&field.key)
                && !NAMES.contains(&last.as_str())
        };
        let amounts = self.columns.iter().filter(is_amount).take(NUMBERS_MAX);
        let of_each = amounts.flat_map(|field| {
            ["sum", "avg", "min", "max"].map(|function| format!("{function}({})", field.key))
        });
        std::iter::once("count".to_owned()).chain(of_each).collect()
    }

    /// Adds the filters for one column that make sense and that the source does exactly.
    fn filters(&self, field: &ShapeField, taken: &mut HashSet<String>, lines: &mut Vec<String>) {
        let shape = self.shape;
        let mut add =
            |wanted: String, comparison: &str, typed: String, side: &str, help: String| {
                lines.extend(self.filter(field, wanted, comparison, &typed, (side, &help), taken));
            };
        let key = self.name(field).to_owned();
        match field.kind {
            ValueType::String if self.choices(field).is_some() => {
                add(key, "equals", self.type_of_filter(field), "", help(field))
            }
            ValueType::String if can(shape, field, "contains-ci") => {
                add(
                    key,
                    "contains-ci",
                    "type: text".to_owned(),
                    "",
                    help_and(field, "contains this"),
                );
            }
            ValueType::String if can(shape, field, "contains") => {
                add(
                    key,
                    "contains",
                    "type: text".to_owned(),
                    "",
                    help_and(field, "contains this, in the same case"),
                );
            }
            ValueType::String | ValueType::Boolean => {
                add(key, "equals", self.type_of(field, false), "", help(field))
            }
            ValueType::Integer | ValueType::Number | ValueType::Decimal
                if self.shape.key.contains(&field.key) =>
            {
                add(
                    key,
                    "equals",
                    self.type_of(field, false),
                    "",
                    self.help_of_key(field),
                );
            }
            ValueType::Integer if self.holds_keys(&field.key) => {
                add(
                    key,
                    "equals",
                    self.type_of(field, false),
                    "",
                    help_and(field, "is this"),
                );
            }
            // The digits of a number of JSON may be too few for a key.
            ValueType::Decimal if self.relates_by(&field.key) => {
                let typed = "type: text".to_owned();
                add(key, "equals", typed, "", help_and(field, "is this"));
            }
            ValueType::Integer | ValueType::Number | ValueType::Decimal => {
                bound_number(field, &key, &mut add);
            }
            ValueType::Date | ValueType::Datetime => {
                self.bound_time(field, &key, &mut add);
            }
            ValueType::Json | ValueType::Record | ValueType::List => {}
        }
    }

    /// Writes one filter, if the source does it and its name is free.
    fn filter(
        &self,
        field: &ShapeField,
        wanted: String,
        comparison: &str,
        typed: &str,
        (side, help): (&str, &str),
        taken: &mut HashSet<String>,
    ) -> Option<String> {
        if !can(self.shape, field, comparison) {
            return None;
        }
        let named = match taken.contains(&wanted) {
            true => format!("{wanted}_value"),
            false => wanted,
        };
        if name::check_field(&named).is_err() || !taken.insert(named.clone()) {
            return None;
        }
        let column = if named == field.key {
            String::new()
        } else {
            format!(", column: {}", scalar(&field.key))
        };
        let matched = if comparison == "equals" {
            String::new()
        } else {
            format!(", match: {comparison}")
        };
        let title = if self.name(field) == field.key {
            String::new()
        } else {
            titled(field, side)
        };
        Some(format!(
            "{{ name: {}, {typed}{column}{matched}{title}{help} }}",
            scalar(&named)
        ))
    }

    /// Adds the first and the last time of a range.
    fn bound_time(
        &self,
        field: &ShapeField,
        key: &str,
        add: &mut impl FnMut(String, &str, String, &str, String),
    ) {
        let typed = self.type_of(field, false);
        let when = if field.kind == ValueType::Date {
            "day"
        } else {
            "time"
        };
        let [from, to] =
            ["from", "up to"].map(|side| help_and(field, &format!("{side} this {when}")));
        add(
            format!("{key}_from"),
            "at-least",
            typed.clone(),
            ", from",
            from,
        );
        add(format!("{key}_to"), "at-most", typed, ", to", to);
    }
}

/// Adds the least and the greatest number of a range.
fn bound_number(
    field: &ShapeField,
    key: &str,
    add: &mut impl FnMut(String, &str, String, &str, String),
) {
    let typed = || "type: number".to_owned();
    add(
        format!("min_{key}"),
        "at-least",
        typed(),
        ", at least",
        help_and(field, "of at least this"),
    );
    add(
        format!("max_{key}"),
        "at-most",
        typed(),
        ", at most",
        help_and(field, "of at most this"),
    );
}

/// States how filters are combined, and how texts are compared, once for all filters.
fn rule_of(filters: &[String]) -> &'static str {
    let ignores_case = |line: &String| line.contains(", match: contains-ci");
    match filters.is_empty() {
        true => "",
        false if filters.iter().any(ignores_case) => {
            "; all given filters must match, ignoring the case of A to Z"
        }
        false => "; all given filters must match",
    }
}

fn write_fields(lines: &[String], text: &mut String) {
    if lines.is_empty() {
        text.truncate(text.trim_end().len());
        text.push_str(" []\n");
    }
    lines.iter().for_each(|line| {
        let _ = writeln!(text, "      - {line}");
    });
}
