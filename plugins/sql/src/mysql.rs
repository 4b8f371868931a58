//! A column in the words of MySQL and MariaDB.
//!
//! Texts are compared as their bytes: every collation that both servers support treats a text and the same text with
//! trailing blanks as equal. A time without a zone is compared as the clocks of the zone show it, since neither server
//! reliably supports zones.

mod operand;

use weir_plugin_sdk::serde_json::{self, value::RawValue};
use weir_plugin_sdk::value::{Datetime, Value};
use weir_plugin_sdk::{Error, Field, Type, Zone};

use crate::settings::quoted;
use crate::statement::StatementBuilder;

/// The first day that both have. A date of zeros comes before it, and is null to the value table.
const FIRST_DAY: &str = "DATE '0000-01-01'";
const FIRST_MOMENT: &str = "TIMESTAMP '0000-01-01 00:00:00'";

/// The most digits of a decimal, and the most after the point.
const DIGITS_MAX: usize = 65;
const PLACES_MAX: usize = 30;

/// Returns the type of a column by its name in the catalogue; `None` for bytes, which have no place in the value table.
pub(crate) fn kind(native: &str) -> Option<Type> {
    Some(match base(native) {
        "tinyint" if native.starts_with("tinyint(1)") => Type::Boolean,
        "bit" if native.starts_with("bit(1)") => Type::Boolean,
        "tinyint" | "smallint" | "mediumint" | "int" | "year" => Type::Integer,
        // The value may exceed 2^53; a contract may override it with `integer`.
        "bigint" | "decimal" => Type::Decimal,
        "float" | "double" => Type::Number,
        "date" => Type::Date,
        "datetime" | "timestamp" => Type::Datetime,
        "json" => Type::Json,
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "geometry"
        | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geometrycollection" | "vector" => return None,
        _ => Type::String,
    })
}

/// Returns the name of a type without its size and anything after it.
fn base(native: &str) -> &str {
    native.split(['(', ' ']).next().unwrap_or_default()
}

#[derive(Clone, Copy)]
pub(crate) struct MysqlColumn<'a> {
    pub(crate) field: &'a Field,
    pub(crate) zone: &'a str,
}

impl MysqlColumn<'_> {
    fn name(&self) -> String {
        quoted(&self.field.key)
    }

    fn native(&self) -> &str {
        self.field.native.as_deref().unwrap_or_default()
    }

    fn base(&self) -> &str {
        base(self.native())
    }

    /// Returns `true` for a column of integers, whatever the shape makes of them.
    fn is_whole(&self) -> bool {
        matches!(
            self.base(),
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year"
        )
    }

    fn is_numeric(&self) -> bool {
        self.is_whole() || matches!(self.base(), "decimal" | "float" | "double")
    }

    /// Returns the expression for a SELECT list, which the connection can encode without losing anything.
    pub(crate) fn read(&self) -> String {
        let name = self.name();
        match (self.field.kind, self.base()) {
            (Type::Integer | Type::Number | Type::Decimal | Type::Boolean, "bit") => {
                format!("({name} + 0)")
            }
            (Type::Integer | Type::Number | Type::Decimal | Type::Boolean, _)
                if self.is_numeric() =>
            {
                name
            }
            _ => match self.finite() {
                Some(finite) => format!("CASE WHEN {finite} THEN {} END", self.text()),
                None => self.text(),
            },
        }
    }

    /// Returns the value as a text.
    fn text(&self) -> String {
        let name = self.name();
        match self.base() {
            // A session's times are UTC's.
            "timestamp" => self.at_utc(&name),
            // A fraction has no zeros at its end.
            "time" if self.native().starts_with("time(") => {
                format!("TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST({name} AS CHAR)))")
            }
            "bit" => {
                let size = self.native().trim_start_matches("bit(");
                let size: u32 = size.trim_end_matches(')').parse().unwrap_or(1);
                format!("LPAD(BIN({name} + 0), {size}, '0')")
            }
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum"
            | "set" => name,
            _ => format!("CAST({name} AS CHAR)"),
        }
    }

    fn at_utc(&self, moment: &str) -> String {
        match self.base() {
            "timestamp" => format!("CONCAT(CAST({moment} AS CHAR), '+00')"),
            _ => format!("CAST({moment} AS CHAR)"),
        }
    }

    /// Returns the expression that is ordered and looked at for nulls, as the value table does.
    pub(crate) fn compared(&self) -> String {
        let plain = self.plain();
        match self.finite() {
            Some(finite) => format!("(CASE WHEN {finite} THEN {plain} END)"),
            None => plain,
        }
    }

    /// Returns the expression that is compared with a value.
    pub(crate) fn plain(&self) -> String {
        let name = self.name();
        match self.field.kind {
            Type::String => format!("CAST(CONVERT({} USING utf8mb4) AS BINARY)", self.text()),
            Type::Integer | Type::Decimal | Type::Number | Type::Boolean
                if self.base() == "bit" =>
            {
                format!("({name} + 0)")
            }
            Type::Integer | Type::Decimal if !self.is_numeric() => {
                format!("CAST({name} AS DECIMAL({DIGITS_MAX}, {PLACES_MAX}))")
            }
            Type::Number if !self.is_numeric() => format!("CAST({name} AS DOUBLE)"),
            Type::Date if self.base() != "date" => format!("CAST({name} AS DATE)"),
            Type::Datetime if !self.is_moment() => format!("CAST({name} AS DATETIME(6))"),
            _ => name,
        }
    }

    fn is_moment(&self) -> bool {
        matches!(self.base(), "datetime" | "timestamp")
    }

    /// Returns the condition for values that are not null to the value table, which has no date of zeros and no day that is
    /// in no calendar. It is never unknown, so that each row meets it or its opposite.
    pub(crate) fn finite(&self) -> Option<String> {
        let name = self.name();
        let bounds = match (self.field.kind, self.base()) {
            (Type::Date, "date") => format!("{name} >= {FIRST_DAY}"),
            (Type::Datetime, "datetime") => self.bounds(),
            // A moment of a `timestamp` is one of a calendar, or all zeros.
            (Type::Datetime, "timestamp") => return Some(format!("{name} >= {FIRST_MOMENT}")),
            _ => return None,
        };
        let is_day = format!("DAYOFMONTH({name}) BETWEEN 1 AND DAYOFMONTH(LAST_DAY({name}))");
        Some(format!("{bounds} AND IFNULL({is_day}, FALSE)"))
    }

    /// Returns the condition that a time on the clocks of the zone is one of the calendar's years in UTC too.
    fn bounds(&self) -> String {
        let name = self.name();
        if self.zone == "UTC" {
            return format!("{name} >= {FIRST_MOMENT}");
        }
        let zone = Zone::parse(self.zone).ok();
        let on_clocks = |moment: &str| {
            let moment = Datetime::parse(moment, &Zone::utc())?;
            let local = moment.to_local(zone.as_ref()?)?;
            Some(format!("TIMESTAMP '{}'", local.replace('T', " ")))
        };
        // Clocks behind UTC show no time before the calendar's first, and those ahead of UTC none after its last.
        let first = on_clocks("0000-01-01T00:00:00Z").unwrap_or_else(|| FIRST_MOMENT.to_owned());
        match on_clocks("9999-12-31T23:59:59.999999Z") {
            Some(last) => format!("{name} >= {first} AND {name} <= {last}"),
            None => format!("{name} >= {first}"),
        }
    }

    /// Returns two conditions, one of which each row meets: that there is a value, and that there is none. Neither server
    /// puts nulls last on its own, so an index serves the order of each part only separately.
    pub(crate) fn split(&self) -> Option<(String, String)> {
        let name = self.name();
        match self.finite() {
            Some(finite) => {
                let others = format!("({name} IS NULL OR NOT ({finite}))");
                Some((finite, others))
            }
            None if self.field.nullable && self.is_numeric() => {
                Some((format!("{name} IS NOT NULL"), format!("{name} IS NULL")))
            }
            None => None,
        }
    }

    /// Returns `true` for a time that the clocks of the zone skip, or show at no moment of the calendar. It is shown as another
    /// time, from which a list cannot continue.
    pub(crate) fn is_skipped(&self, raw: &RawValue, value: &Value<'_>) -> bool {
        let (Value::Datetime(moment), "datetime") = (value, self.base()) else {
            return false;
        };
        let on_clocks = |text: String| Datetime::parse(&text, &Zone::utc());
        let kept = serde_json::from_str(raw.get()).ok().and_then(on_clocks);
        let zone = Zone::parse(self.zone).ok();
        let shown = zone
            .and_then(|zone| moment.to_local(&zone))
            .and_then(on_clocks);
        kept != shown
    }

    pub(crate) fn may_be_null(&self) -> bool {
        self.field.nullable
            || self.finite().is_some()
            || (self.field.kind != Type::String && !self.is_numeric())
    }

    /// Returns the day of a date or a moment, in the collection's zone; `None` if the server would have to know the zone.
    pub(crate) fn day(&self) -> Option<String> {
        let compared = self.compared();
        match (self.field.kind, self.base()) {
            (Type::Date, _) => Some(compared),
            (_, "timestamp") => match self.zone {
                "UTC" => Some(format!("DATE({compared})")),
                zone => {
                    let minutes = offset_minutes(zone)?;
                    Some(format!("DATE({compared} + INTERVAL {minutes} MINUTE)"))
                }
            },
            _ => Some(format!("DATE({compared})")),
        }
    }

    /// Returns the common expression of equal values, and the expression to group rows by if it differs.
    pub(crate) fn grouped(&self) -> (String, Option<String>) {
        match self.field.kind {
            // Texts are equal by their bytes, which cannot be read as text.
            Type::String => (self.read(), Some(self.plain())),
            Type::Integer | Type::Decimal | Type::Number if !self.is_numeric() => {
                (self.compared(), None)
            }
            _ => (self.read(), None),
        }
    }

    /// Returns the expression for the smallest or the largest value, as a connection can encode it.
    pub(crate) fn edge(&self, function: &str) -> String {
        let edge = format!("{function}({})", self.compared());
        match self.field.kind {
            Type::Datetime => self.at_utc(&edge),
            Type::Date => format!("CAST({edge} AS CHAR)"),
            Type::String => format!("CONVERT({edge} USING utf8mb4)"),
            _ => edge,
        }
    }

    /// Returns the expressions for the sum, the most decimal places of a value, and the number of values of another type.
    pub(crate) fn sum(&self) -> [String; 3] {
        let compared = self.compared();
        let none = || "0".to_owned();
        if self.field.kind == Type::Number {
            let sum = match self.base() {
                "float" | "double" => format!("SUM({compared})"),
                _ => format!("SUM(CAST({compared} AS DOUBLE))"),
            };
            return [sum, none(), none()];
        }
        if self.is_whole() {
            return [format!("SUM({compared})"), none(), none()];
        }
        let text = format!("CAST({compared} AS CHAR)");
        let places = format!(
            "IF(LOCATE('.', {text}) = 0, 0, CHAR_LENGTH(TRIM(TRAILING '0' FROM SUBSTRING_INDEX({text}, '.', -1))))"
        );
        [
            format!("SUM({compared})"),
            format!("COALESCE(MAX({places}), 0)"),
            none(),
        ]
    }

    /// Returns `true` for a number that no member of the enum or set is called: the servers take it for the place of one.
    fn is_place_of_member(&self, text: &str) -> bool {
        let digits = text.trim().trim_start_matches(['+', '-']);
        matches!(self.base(), "enum" | "set")
            && !digits.is_empty()
            && digits.bytes().all(|digit| digit.is_ascii_digit())
            && !self.native().contains(&format!("'{text}'"))
    }

    /// Binds a value to be written.
    pub(crate) fn written(
        &self,
        value: &Value<'_>,
        builder: &mut StatementBuilder,
    ) -> Result<String, Error> {
        let unfit = || {
            let message = format!("The value of {:?} does not fit its column.", self.field.key);
            Error::invalid(message).field(&self.field.key)
        };
        Ok(match value {
            Value::Null => "NULL".to_owned(),
            Value::Unfit(_) => return Err(unfit()),
            Value::Boolean(value) => builder.bind(i64::from(*value)),
            // Of a year of two digits the servers make one of this century or the last.
            Value::Integer(1..=1900) if self.base() == "year" => return Err(unfit()),
            Value::Integer(value) => builder.bind(i64::try_from(*value).map_err(|_| unfit())?),
            Value::Number(value) => builder.bind(*value),
            // The servers would round it silently.
            Value::Decimal(value) if self.is_whole() && has_fraction(value.as_str()) => {
                return Err(unfit());
            }
            Value::Decimal(value) => builder.bind(value.as_str()),
            Value::Text(text) if self.is_place_of_member(text) => return Err(unfit()),
            Value::Text(text) if self.base() == "bit" => {
                let is_bit = |bit: u8| matches!(bit, b'0' | b'1');
                if text.is_empty() || text.len() > 64 || !text.bytes().all(is_bit) {
                    return Err(unfit());
                }
                format!(
                    "CAST(CONV({}, 2, 10) AS UNSIGNED)",
                    builder.bind(text.as_ref())
                )
            }
            Value::Text(text) | Value::Date(text) | Value::Json(text) => {
                builder.bind(text.as_ref())
            }
            Value::Datetime(value) if self.base() == "timestamp" => {
                builder.bind(value.to_string().trim_end_matches('Z').replace('T', " "))
            }
            Value::Datetime(value) if self.base() == "datetime" => {
                let local = value.to_local(&Zone::parse(self.zone)?).ok_or_else(unfit)?;
                builder.bind(local.replace('T', " "))
            }
            Value::Datetime(value) => builder.bind(value.to_string()),
        })
    }
}

/// Returns `true` for a decimal that is not an integer.
fn has_fraction(decimal: &str) -> bool {
    let fraction = decimal.split_once('.').map(|(_, fraction)| fraction);
    fraction.is_some_and(|fraction| fraction.bytes().any(|digit| digit != b'0'))
}

/// Returns the minutes of an offset such as `+05:30`.
fn offset_minutes(zone: &str) -> Option<i32> {
    let (sign, clock) = match zone.strip_prefix('-') {
        Some(clock) => (-1, clock),
        None => (1, zone.strip_prefix('+')?),
    };
    let (hours, minutes) = match clock.split_once(':') {
        Some(parts) => parts,
        None if clock.len() == 4 && clock.is_ascii() => clock.split_at(2),
        None if clock.len() <= 2 => (clock, "0"),
        None => return None,
    };
    let minutes = hours.parse::<i32>().ok()? * 60 + minutes.parse::<i32>().ok()?;
    Some(sign * minutes)
}
