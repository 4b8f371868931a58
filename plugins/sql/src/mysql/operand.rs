//! The values of conditions, as the columns of MySQL and MariaDB can hold them.

use weir_plugin_sdk::Zone;
use weir_plugin_sdk::value::{Datetime, Value};

use super::{DIGITS_MAX, MysqlColumn, PLACES_MAX};
use crate::statement::StatementBuilder;

/// Clocks are set back by two hours at most.
const SET_BACK_MAX_MINUTES: u32 = 121;

/// A value of a condition as a column can hold it.
enum BoundOperand {
    /// The place of the value.
    Exact(String),
    /// No value of the column equals it: those after it begin with the one at this place.
    Before(String),
    /// As before, but they begin after the one at this place.
    Behind(String),
}

impl MysqlColumn<'_> {
    /// Returns the condition for `=`, which an index on the column can serve if that is exact.
    pub(crate) fn equals(
        &self,
        value: &Value<'_>,
        builder: &mut StatementBuilder,
    ) -> Option<String> {
        let BoundOperand::Exact(operand) = self.bound(value, builder)? else {
            return None;
        };
        let exact = format!("{} = {operand}", self.plain());
        match value {
            // The index is asked in the column's collation, to which two spellings may be equal.
            Value::Text(text) if self.native().ends_with(" charset utf8mb4") => {
                let place = builder.bind(text.as_ref());
                Some(format!("({} = {place} AND {exact})", self.name()))
            }
            _ => Some(exact),
        }
    }

    /// Returns the condition for another comparison than `=`.
    pub(crate) fn compares(
        &self,
        operator: &str,
        value: &Value<'_>,
        builder: &mut StatementBuilder,
    ) -> Option<String> {
        let plain = self.plain();
        let is_behind = operator.starts_with('>');
        let compared = match (self.bound(value, builder)?, operator) {
            (BoundOperand::Exact(operand), _) => format!("{plain} {operator} {operand}"),
            (_, "<>") => return None,
            (BoundOperand::Before(operand), _) => {
                format!("{plain} {} {operand}", if is_behind { ">=" } else { "<" })
            }
            (BoundOperand::Behind(operand), _) => {
                format!("{plain} {} {operand}", if is_behind { ">" } else { "<=" })
            }
        };
        Some(match self.finite() {
            Some(finite) => format!("({compared} AND {finite})"),
            None => compared,
        })
    }

    /// Binds a value that the column's type holds.
    pub(crate) fn operand(
        &self,
        value: &Value<'_>,
        builder: &mut StatementBuilder,
    ) -> Option<String> {
        match self.bound(value, builder)? {
            BoundOperand::Exact(operand) => Some(operand),
            _ => None,
        }
    }

    fn bound(&self, value: &Value<'_>, builder: &mut StatementBuilder) -> Option<BoundOperand> {
        Some(BoundOperand::Exact(match value {
            Value::Null | Value::Json(_) | Value::Unfit(_) => return None,
            Value::Boolean(value) => builder.bind(i64::from(*value)),
            // The servers do not support these years, and take 2 for 2002.
            Value::Integer(1..=1900) if self.base() == "year" => {
                return Some(BoundOperand::Before(builder.bind(1901)));
            }
            Value::Integer(value) => match i64::try_from(*value) {
                Ok(value) => builder.bind(value),
                Err(_) => decimal(&value.to_string(), builder),
            },
            Value::Decimal(value) => match value.to_integer().map(i64::try_from) {
                Some(Ok(value)) if self.is_whole() => builder.bind(value),
                _ => decimal(value.as_str(), builder),
            },
            Value::Number(value) if self.base() == "float" => {
                format!("CAST({} AS FLOAT)", builder.bind(*value))
            }
            Value::Number(value) => builder.bind(*value),
            Value::Text(value) => format!("CAST({} AS BINARY)", builder.bind(value.as_ref())),
            Value::Date(value) => return Some(self.bound_day(value, builder)),
            Value::Datetime(value) => return self.bound_moment(value, builder),
        }))
    }

    fn bound_day(&self, day: &str, builder: &mut StatementBuilder) -> BoundOperand {
        let mut cast = |day: &str| format!("CAST({} AS DATE)", builder.bind(day));
        match day {
            // The year 0000 has no such day here.
            "0000-02-29" => BoundOperand::Before(cast("0000-03-01")),
            day => BoundOperand::Exact(cast(day)),
        }
    }

    /// Binds a moment as the column shows it: UTC's, or as the clocks of the zone show it.
    fn bound_moment(
        &self,
        moment: &Datetime,
        builder: &mut StatementBuilder,
    ) -> Option<BoundOperand> {
        let utc = moment.to_string();
        let mut cast = |moment: &str| {
            format!(
                "CAST({} AS DATETIME(6))",
                builder.bind(moment.replace('T', " "))
            )
        };
        let (local, is_first_reading) = match self.base() {
            "timestamp" => (utc.trim_end_matches('Z').to_owned(), true),
            _ => {
                let zone = Zone::parse(self.zone).ok()?;
                let Some(local) = moment.to_local(&zone) else {
                    // The clocks show no such time: all that they show comes before the end, or after the beginning.
                    return Some(match utc.starts_with("9999") {
                        true => BoundOperand::Behind(cast("9999-12-31 23:59:59.999999")),
                        false => BoundOperand::Before(cast("0000-01-01 00:00:00")),
                    });
                };
                let is_first_reading = Datetime::parse(&local, &zone) == Some(*moment);
                if !is_first_reading && let Some(behind) = behind_set_back(&local, moment, &zone) {
                    return Some(BoundOperand::Before(cast(&behind)));
                }
                (local, is_first_reading)
            }
        };
        if local.starts_with("0000-02-29") {
            return Some(BoundOperand::Before(cast("0000-03-01 00:00:00")));
        }
        // The servers keep millionths of a second.
        Some(match local.char_indices().nth(26) {
            Some((end, _)) => BoundOperand::Behind(cast(&local[..end])),
            None if is_first_reading => BoundOperand::Exact(cast(&local)),
            None => BoundOperand::Behind(cast(&local)),
        })
    }
}

/// Binds a decimal with as many digits as it has. One with more than the servers have is compared as a double.
fn decimal(text: &str, builder: &mut StatementBuilder) -> String {
    let digits = text.trim_start_matches(['-', '+']);
    let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
    let size = whole.len() + places.len();
    match size <= DIGITS_MAX && places.len() <= PLACES_MAX {
        true => format!(
            "CAST({} AS DECIMAL({size}, {}))",
            builder.bind(text),
            places.len()
        ),
        false => builder.bind(text.parse::<f64>().unwrap_or(f64::MAX)),
    }
}

/// Returns the first time on the clocks, after those that they show twice, that is not before a moment.
fn behind_set_back(local: &str, moment: &Datetime, zone: &Zone) -> Option<String> {
    let minute = local.get(..16)?;
    let (date, clock) = minute.split_once('T')?;
    let (hour, minute) = clock.split_once(':')?;
    let first = hour.parse::<u32>().ok()? * 60 + minute.parse::<u32>().ok()?;
    let clocks = (1..=SET_BACK_MAX_MINUTES).map(|more| first + more);
    // Clocks are not set back over midnight into the day before last; a time after midnight belongs to another day.
    let mut times = clocks
        .take_while(|minutes| *minutes < 24 * 60)
        .map(|minutes| format!("{date}T{:02}:{:02}:00", minutes / 60, minutes % 60));
    times.find(|time| Datetime::parse(time, zone).is_some_and(|time| time >= *moment))
}
