//! The choices of a question: groups and measures of a summary, order and columns of a list.

use serde::{Deserialize, Serialize};

use crate::shape::{CollectionShape, ShapeField, ValueType};

/// The choices of an agent for a list, besides its filters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListChoices {
    /// Columns that records can be ordered by, either way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order_by: Vec<String>,
    /// Every column that a record can have; empty if an agent cannot choose. A record always has those of the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Whether an agent can ask how many records there are in total.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_total: bool,
}

/// The groups and measures that one tool offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryChoices {
    pub groups: Vec<GroupChoice>,
    pub measures: Vec<MeasureChoice>,
}

/// A column that records can be put together by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupChoice {
    /// Such as `status` or `month(placed)`.
    pub name: String,
    pub column: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<GroupStep>,
}

/// Something that can be computed of all records of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureChoice {
    /// Such as `count` or `sum(total)`.
    pub name: String,
    pub function: MeasureFunction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Whether its values are decimals, so that it is compared with digits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decimal: bool,
}

/// A period that dates are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupStep {
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

/// The function that a measure computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasureFunction {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    Distinct,
}

impl GroupStep {
    pub const ALL: [Self; 5] = [
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Quarter,
        Self::Year,
    ];

    /// Returns the word of contract files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
        }
    }
}

impl MeasureFunction {
    pub const ALL: [Self; 6] = [
        Self::Count,
        Self::Sum,
        Self::Avg,
        Self::Min,
        Self::Max,
        Self::Distinct,
    ];

    /// Returns the word of contract files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Distinct => "distinct",
        }
    }

    /// Returns `true` if it has a meaning for a column of this type.
    pub(crate) fn fits(self, kind: ValueType) -> bool {
        let is_number = matches!(
            kind,
            ValueType::Integer | ValueType::Number | ValueType::Decimal
        );
        match self {
            Self::Count => false,
            Self::Sum | Self::Avg => is_number,
            Self::Min | Self::Max => {
                is_number || matches!(kind, ValueType::Date | ValueType::Datetime)
            }
            Self::Distinct => is_groupable(kind),
        }
    }
}

/// Returns `true` for types whose values can be grouped.
pub(crate) fn is_groupable(kind: ValueType) -> bool {
    !matches!(kind, ValueType::Json | ValueType::Record | ValueType::List)
}

impl SummaryChoices {
    /// Returns the names of the groups and the measures, in the form's order.
    pub fn names(&self) -> Vec<String> {
        let groups = self.groups.iter().map(|group| group.name.clone());
        let measures = self.measures.iter().map(|measure| measure.name.clone());
        groups.chain(measures).collect()
    }

    /// Returns `true` if the values of a measure are decimals.
    pub fn is_decimal(&self, measure: &str) -> bool {
        let measure = self.measures.iter().find(|one| one.name == measure);
        measure.is_some_and(|one| one.decimal)
    }

    /// Returns the fields that the records of an answer may have, in the form's order.
    pub fn fields(&self, shape: &CollectionShape) -> Vec<ShapeField> {
        let column = |name: &String| shape.field(name);
        let groups = self.groups.iter().filter_map(|group| {
            let column = column(&group.column)?;
            let kind = match group.step {
                Some(_) => ValueType::String,
                None => column.kind,
            };
            let mut field = ShapeField::new(&group.name, kind);
            field.nullable = column.nullable;
            Some(field)
        });
        let measures = self.measures.iter().map(|measure| {
            let kind = measure.column.as_ref().and_then(column);
            let kind = kind.map_or(ValueType::Integer, |column| column.kind);
            let (kind, nullable) = match measure.function {
                MeasureFunction::Count | MeasureFunction::Distinct => (ValueType::Integer, false),
                MeasureFunction::Avg if kind == ValueType::Integer => (ValueType::Number, true),
                _ => (kind, true),
            };
            let mut field = ShapeField::new(&measure.name, kind);
            field.nullable = nullable;
            field
        });
        groups.chain(measures).collect()
    }
}
