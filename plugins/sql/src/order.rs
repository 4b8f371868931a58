//! The order of a list: its columns, and the condition that continues after the last record.

use weir_plugin_sdk::{Error, Value};

use crate::column::SqlColumn;
use crate::condition;
use crate::dialect::SqlDialect;
use crate::statement::StatementBuilder;

/// The columns that a list is in the order of.
#[derive(Clone, Copy)]
pub(crate) struct OrderedColumns<'a> {
    pub(crate) columns: &'a [SqlColumn<'a>],
    pub(crate) descending: &'a [bool],
    /// Only rows are meant whose first value is finite, so that it needs no word on nulls.
    pub(crate) is_led_by_finite: bool,
}

/// A part of a list, in an order that an index may have.
pub(crate) struct SelectPart<'a> {
    pub(crate) condition: Option<String>,
    pub(crate) order: OrderedColumns<'a>,
    /// The order values of the last record, if that is in this part.
    pub(crate) last: Option<&'a [Value<'static>]>,
}

impl<'a> OrderedColumns<'a> {
    pub(crate) fn whole(self, last: Option<&'a [Value<'static>]>) -> SelectPart<'a> {
        SelectPart {
            condition: None,
            order: self,
            last,
        }
    }

    /// Returns the part that comes next, and the one after it. An index serves an order with infinities among the nulls
    /// only if the finite values are asked for separately; the others then have the same value.
    pub(crate) fn parts(
        self,
        last: Option<&'a [Value<'static>]>,
    ) -> (SelectPart<'a>, Option<SelectPart<'a>>) {
        let Some((finite, others)) = self.columns.first().and_then(SqlColumn::split) else {
            return (self.whole(last), None);
        };
        let is_among_others = last.is_some_and(|last| last[0].is_null());
        let others = SelectPart {
            condition: Some(others),
            order: Self {
                columns: &self.columns[1..],
                descending: &self.descending[1..],
                is_led_by_finite: false,
            },
            last: last.filter(|_| is_among_others).map(|last| &last[1..]),
        };
        if is_among_others {
            return (others, None);
        }
        (
            SelectPart {
                condition: Some(finite),
                order: Self {
                    is_led_by_finite: true,
                    ..self
                },
                last,
            },
            Some(others),
        )
    }

    /// Returns ` ORDER BY …`, or nothing.
    pub(crate) fn sql(&self, builder: &mut StatementBuilder) -> String {
        let mut by = Vec::new();
        for (at, (column, descending)) in self.columns.iter().zip(self.descending).enumerate() {
            let direction = if *descending { " DESC" } else { "" };
            // The order of nulls is written only if there may be nulls: an index serves the plain order.
            by.push(match column.may_be_null() && !self.is_finite(at) {
                true if builder.dialect == SqlDialect::Mysql => {
                    let compared = column.compared(builder);
                    format!("{compared} IS NULL, {compared}{direction}")
                }
                true => format!("{}{direction} NULLS LAST", column.compared(builder)),
                false => format!("{}{direction}", column.plain(builder)),
            });
        }
        if by.is_empty() {
            String::new()
        } else {
            format!(" ORDER BY {}", by.join(", "))
        }
    }

    /// Returns the condition for rows after the last one: greater in the first column, or equal there and greater in
    /// the next, and so on.
    pub(crate) fn behind(
        &self,
        last: &[Value<'_>],
        builder: &mut StatementBuilder,
    ) -> Result<String, Error> {
        let unfit = self
            .columns
            .iter()
            .zip(last)
            .find(|(_, value)| matches!(value, Value::Unfit(_)));
        if let Some((column, _)) = unfit {
            let key = &column.field.key;
            let message = format!(
                "The list cannot continue after a value of {key:?} that does not fit its column's type."
            );
            return Err(Error::source_changed(message).field(key));
        }
        let mut any = Vec::new();
        for (at, (column, descending)) in self.columns.iter().zip(self.descending).enumerate() {
            let operator = if *descending { "<" } else { ">" };
            // Nothing comes after a null.
            let Some(mut later) = self.compares(at, operator, &last[at], builder) else {
                continue;
            };
            if column.may_be_null() && !self.is_finite(at) {
                later = format!("({later} OR {} IS NULL)", column.compared(builder));
            }
            let mut all = Vec::new();
            for (column, value) in self.columns.iter().zip(last).take(at) {
                all.push(same(column, value, builder));
            }
            all.push(later);
            any.push(format!("({})", all.join(" AND ")));
        }
        let Some(first) = any.first() else {
            return Ok("1 = 0".to_owned());
        };
        let any = if any.len() == 1 {
            first.clone()
        } else {
            format!("({})", any.join(" OR "))
        };
        // An index is not entered by alternatives, but by their common condition.
        let bound = match self.is_finite(0) && self.columns.len() > 1 {
            true => self.compares(
                0,
                if self.descending[0] { "<=" } else { ">=" },
                &last[0],
                builder,
            ),
            false => None,
        };
        Ok(bound.map_or(any.clone(), |bound| format!("{bound} AND {any}")))
    }

    fn compares(
        &self,
        at: usize,
        operator: &str,
        value: &Value<'_>,
        builder: &mut StatementBuilder,
    ) -> Option<String> {
        let column = &self.columns[at];
        if !self.is_finite(at) {
            return column.compares(operator, value, builder);
        }
        let plain = column.plain(builder);
        Some(format!(
            "{plain} {operator} {}",
            column.operand(value, builder)?
        ))
    }

    fn is_finite(&self, at: usize) -> bool {
        at == 0 && self.is_led_by_finite
    }
}

fn same(column: &SqlColumn<'_>, value: &Value<'_>, builder: &mut StatementBuilder) -> String {
    match value {
        Value::Null => format!("{} IS NULL", column.compared(builder)),
        value => condition::equals(column, value, builder),
    }
}
