//! Defines what a summary asks: how many records there are, and what groups of records amount to.

mod exact;
mod one_pass;
mod table;

use serde_json::{Map, Value as Json};

use crate::adapter::{Comparison, Condition, Order};
use crate::error::{Error, Result};

pub use exact::ExactSum;
pub use one_pass::{Summarizer, check_group, check_measure, computed, unfit};
pub use table::{GROUPS_MAX, GroupRow, find, step_label, too_many_groups, write_groups};

/// A question about many records at once: a count, or measures of groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryQuery {
    /// The conditions, all of which a record must meet.
    pub conditions: Vec<Condition>,
    /// What records are grouped by. Without groups, all records form one group, even if there are no records.
    pub groups: Vec<SummaryGroup>,
    /// The measures of each group.
    pub measures: Vec<SummaryMeasure>,
    /// The conditions on measures, by their names, that a group must meet.
    pub having: Vec<Condition>,
    /// Names of groups and measures to order by, the first one first. The groups break ties.
    pub order: Vec<Order>,
    /// The largest number of groups to return.
    pub limit: u32,
    /// The inputs that a form sends with `param:`, as the adapter declared them: `{"params": {…}}`.
    pub options: Map<String, Json>,
}

/// A column that records are grouped by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryGroup {
    /// The name of its member in each record.
    pub name: String,
    /// The column. Nulls form a separate group.
    pub column: String,
    /// The period that dates and datetimes are grouped by; `None` to group by each value.
    pub step: Option<DateStep>,
}

/// Something that is computed of all records of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryMeasure {
    /// The name of its member in each record.
    pub name: String,
    /// The function to compute.
    pub function: SummaryFunction,
    /// The column that it is computed of; none for a count.
    pub column: Option<String>,
}

/// The function that a measure computes. All but the count leave nulls out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SummaryFunction {
    /// The number of records.
    Count,
    /// The sum of the values; null without any.
    Sum,
    /// The sum divided by the number of values; null without any.
    Average,
    /// The smallest value; null without any.
    Minimum,
    /// The largest value; null without any.
    Maximum,
    /// The number of different values.
    Distinct,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateStep {
    /// A day, such as `2026-10-05`.
    Day,
    /// A week of ISO 8601, such as `2026-W41`.
    Week,
    /// A month, such as `2026-10`.
    Month,
    /// A quarter of a year, such as `2026-Q4`.
    Quarter,
    /// A year, such as `2026`.
    Year,
}

/// The records of a summary: one for each group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryPage {
    /// A JSON array of objects; [`crate::records::Records`] writes it.
    pub records: String,
    /// Whether there are further groups.
    pub more: bool,
}

impl SummaryFunction {
    const ALL: [Self; 6] = [
        Self::Count,
        Self::Sum,
        Self::Average,
        Self::Minimum,
        Self::Maximum,
        Self::Distinct,
    ];

    /// Returns the name on the wire, such as `avg`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Average => "avg",
            Self::Minimum => "min",
            Self::Maximum => "max",
            Self::Distinct => "distinct",
        }
    }

    /// Returns the function of a name; an unknown one is `unsupported`.
    pub fn parse(name: &str) -> Result<Self> {
        let known = Self::ALL
            .into_iter()
            .find(|function| function.name() == name);
        known.ok_or_else(|| Error::unsupported(format!("The measure {name:?} is unknown.")))
    }
}

impl DateStep {
    const ALL: [Self; 5] = [
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Quarter,
        Self::Year,
    ];

    /// Returns the name on the wire, such as `week`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
        }
    }

    /// Returns the step of a name; an unknown one is `unsupported`.
    pub fn parse(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|step| step.name() == name);
        known.ok_or_else(|| Error::unsupported(format!("The stretch of time {name:?} is unknown.")))
    }
}

/// The parts of a query as the component interface carries them: names and JSON text.
#[doc(hidden)]
pub struct WiredQuery {
    /// Column, comparison and value.
    pub conditions: Vec<(String, String, String)>,
    /// Name, column and step.
    pub groups: Vec<(String, String, Option<String>)>,
    /// Name, function and column.
    pub measures: Vec<(String, String, Option<String>)>,
    pub having: Vec<(String, String, String)>,
    pub order: Vec<String>,
    pub limit: u32,
    pub options: Option<String>,
}

impl WiredQuery {
    /// Parses the words of the query. `Err` names a word that the SDK does not know.
    #[doc(hidden)]
    pub fn parse(self) -> Result<SummaryQuery> {
        let groups = self.groups.into_iter().map(|(name, column, step)| {
            let step = step.as_deref().map(DateStep::parse).transpose()?;
            Ok(SummaryGroup { name, column, step })
        });
        let measures = self.measures.into_iter().map(|(name, function, column)| {
            Ok(SummaryMeasure {
                function: SummaryFunction::parse(&function)?,
                name,
                column,
            })
        });
        Ok(SummaryQuery {
            groups: groups.collect::<Result<_>>()?,
            measures: measures.collect::<Result<_>>()?,
            conditions: parse_conditions(self.conditions)?,
            having: parse_conditions(self.having)?,
            order: self.order.iter().map(|name| Order::parse(name)).collect(),
            limit: self.limit,
            options: crate::plugin::object(self.options.as_deref(), "options")?,
        })
    }
}

/// Reads conditions as the component interface carries them.
pub(crate) fn parse_conditions(given: Vec<(String, String, String)>) -> Result<Vec<Condition>> {
    let parsed = given.into_iter().map(|(column, comparison, value)| {
        let value = serde_json::from_str(&value).map_err(|_| {
            Error::invalid(format!(
                "The value of the condition on {column:?} is not JSON."
            ))
            .field(&column)
        })?;
        Ok(Condition {
            comparison: Comparison::parse(&comparison)?,
            column,
            value,
        })
    });
    parsed.collect()
}
