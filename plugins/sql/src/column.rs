//! A column of the recorded shape in the words of a dialect: how it is read, compared, ordered and written, so that
//! every database means what the value table means.

use weir_plugin_sdk::serde_json::{self, json, value::RawValue};
use weir_plugin_sdk::value::{Datetime, Value};
use weir_plugin_sdk::{Error, Field, Shape, Type, Zone};

use crate::array::ArrayColumn;
use crate::dialect::SqlDialect;
use crate::document;
use crate::mysql::MysqlColumn;
use crate::native::{self, with_era};
use crate::settings::quoted;
use crate::sqlite;
use crate::statement::StatementBuilder;

/// The time by which clocks are set back: an hour nearly everywhere, half of one on Lord Howe Island, two at Troll.
const SET_BACK: [&str; 3] = ["1 hour", "30 minutes", "2 hours"];

/// The first moment in the value table, and the one after its last.
const FIRST_MOMENT: &str = "0001-01-01 00:00:00+00 BC";
const END: &str = "10000-01-01 00:00:00+00";

#[derive(Clone, Copy)]
pub(crate) struct SqlColumn<'a> {
    pub(crate) field: &'a Field,
    dialect: SqlDialect,
    zone: &'a str,
}

impl<'a> SqlColumn<'a> {
    /// Finds a column. Only a recorded one has a name here.
    pub(crate) fn find(shape: &'a Shape, dialect: SqlDialect, key: &str) -> Result<Self, Error> {
        Ok(Self::new(shape, dialect, &shape.fields[place(shape, key)?]))
    }

    pub(crate) fn new(shape: &'a Shape, dialect: SqlDialect, field: &'a Field) -> Self {
        Self {
            field,
            dialect,
            zone: shape.timezone.as_deref().unwrap_or("UTC"),
        }
    }

    /// Returns the column as MySQL has it; `None` for one of another database.
    pub(crate) fn mysql(&self) -> Option<MysqlColumn<'a>> {
        (self.dialect == SqlDialect::Mysql).then_some(MysqlColumn {
            field: self.field,
            zone: self.zone,
        })
    }

    pub(crate) fn name(&self) -> String {
        quoted(&self.field.key)
    }

    /// Returns the expression for a SELECT or RETURNING list, which the connection can encode without losing anything.
    pub(crate) fn read(&self) -> String {
        if let Some(column) = self.mysql() {
            return column.read();
        }
        let name = self.name();
        if self.dialect == SqlDialect::Sqlite {
            return match self.field.kind {
                Type::Decimal => sqlite::spelled(&name, self.whole()),
                Type::String if !self.textual() => sqlite::spelled(&name, false),
                _ => name,
            };
        }
        match (self.field.kind, self.native()) {
            (Type::Integer, "int2" | "int4" | "int8")
            | (Type::Number, "float4" | "float8")
            | (Type::Boolean, "bool")
            | (Type::Json, "json" | "jsonb") => name,
            _ if let Some(array) = self.array() => array.read(&name),
            _ => match self.finite() {
                Some(finite) => format!("CASE WHEN {finite} THEN {name}::text END"),
                None => native::spell(&name, self.native()),
            },
        }
    }

    /// Returns the connection's answer as the column's type.
    pub(crate) fn value<'r>(&self, raw: &'r RawValue, zone: &Zone) -> Value<'r> {
        if self.dialect == SqlDialect::Postgresql {
            if let Some(array) = self.array() {
                return array.value(raw, zone);
            }
            // The year before 0001 is the year 0000 of the value table.
            let is_dated = matches!(self.field.kind, Type::Date | Type::Datetime);
            if is_dated && raw.get().ends_with(" BC\"") {
                return before_christ(raw, self.field, zone);
            }
        }
        if let Some(json) = document::value(raw, self.field, zone, self.dialect) {
            return json;
        }
        let value = Value::from_json(raw, self.field, zone);
        match self.dialect {
            SqlDialect::Sqlite => sqlite::typed(value, raw, self.field),
            SqlDialect::Postgresql | SqlDialect::Mysql => value,
        }
    }

    /// Returns the expression that is ordered and looked at for nulls, as the value table does.
    pub(crate) fn compared(&self, builder: &mut StatementBuilder) -> String {
        if let Some(column) = self.mysql() {
            return column.compared();
        }
        let plain = self.plain(builder);
        // A collation does not leave a CASE.
        let collation = match (self.dialect, self.field.kind) {
            (SqlDialect::Sqlite, Type::Decimal) if !self.whole() => " COLLATE weir_decimal",
            _ => "",
        };
        match self.finite() {
            Some(finite) => format!("(CASE WHEN {finite} THEN {plain} END){collation}"),
            None => plain,
        }
    }

    /// Returns the expression whose values are aggregated. SQLite's shows a value of another type, since no summary is
    /// right without it.
    pub(crate) fn summarized(&self, builder: &mut StatementBuilder) -> String {
        match self.dialect {
            SqlDialect::Sqlite => self.plain(builder),
            SqlDialect::Postgresql | SqlDialect::Mysql => self.compared(builder),
        }
    }

    /// Returns `true` if a record has null in place of the value that the database answered.
    pub(crate) fn is_emptied(&self, raw: &RawValue, value: &Value<'_>) -> bool {
        self.dialect == SqlDialect::Sqlite && sqlite::is_emptied(self.field, raw, value)
    }

    /// Returns `true` if a record can have neither the value nor null in its place.
    pub(crate) fn is_unfit(&self, value: &Value<'_>) -> bool {
        match self.dialect {
            SqlDialect::Sqlite => sqlite::is_unfit(self.field, value),
            _ => !self.field.nullable && value.is_null() && self.finite().is_some(),
        }
    }

    /// Returns the condition for another comparison than `=`. `None` means that no value of the column compares with
    /// this one.
    pub(crate) fn compares(
        &self,
        operator: &str,
        value: &Value<'_>,
        builder: &mut StatementBuilder,
    ) -> Option<String> {
        if let Some(column) = self.mysql() {
            return column.compares(operator, value, builder);
        }
        let plain = self.plain(builder);
        let operand = self.operand(value, builder)?;
        // An index serves a comparison with the column as it is.
        Some(match self.finite() {
            Some(finite) => format!("({plain} {operator} {operand} AND {finite})"),
            None => format!("{plain} {operator} {operand}"),
        })
    }

    /// Returns the condition for values that are not null to the value table, which has no infinities, no NaN and nothing
    /// of another type than the column's; `None` if the column holds nothing of that kind, or an expression of SQLite sees
    /// to it.
    fn finite(&self) -> Option<String> {
        if let Some(column) = self.mysql() {
            return column.finite();
        }
        let name = self.name();
        match (self.dialect, self.field.kind, self.native()) {
            (SqlDialect::Sqlite, _, _) if self.field.nullable => sqlite::fits(self.field),
            // The difference of an infinity with itself is not a number. Old servers have no infinity to compare with.
            (SqlDialect::Postgresql, Type::Number | Type::Decimal, "numeric") => {
                Some(format!("{name} - {name} = 0"))
            }
            // The bounds have the type: a column that is a text by now has no such order, and is reported as changed.
            (
                SqlDialect::Postgresql,
                Type::Number | Type::Decimal,
                native @ ("float4" | "float8"),
            ) => Some(format!(
                "{name} > '-infinity'::{native} AND {name} < 'infinity'::{native}"
            )),
            (SqlDialect::Postgresql, Type::Date, "date") => Some(format!(
                "{name} >= '0001-01-01 BC'::date AND {name} < '10000-01-01'::date"
            )),
            (SqlDialect::Postgresql, Type::Datetime, "timestamp" | "timestamptz") => {
                let [first, end] = [FIRST_MOMENT, END].map(|moment| self.bound(moment));
                Some(format!("{name} >= {first} AND {name} < {end}"))
            }
            _ => None,
        }
    }

    /// Returns the condition that the value is finite by UTC's clocks, whatever the zone is.
    pub(crate) fn finite_in_utc(&self) -> Option<String> {
        Self {
            zone: "UTC",
            ..*self
        }
        .finite()
    }

    /// Returns two conditions, one of which each row meets: that the value is finite, and that it is null to the value
    /// table. An index on the column serves the order of either, but not of both at once. `None` if it serves the whole
    /// order, or nothing of it.
    pub(crate) fn split(&self) -> Option<(String, String)> {
        if let Some(column) = self.mysql() {
            return column.split();
        }
        let name = self.name();
        let finite = self.finite()?;
        if self.dialect == SqlDialect::Sqlite {
            // The order of the others is that of an expression, which no index serves.
            let is_plain = match self.field.kind {
                Type::Integer | Type::Boolean => true,
                Type::Decimal => self.whole(),
                kind => kind == Type::Date && self.textual(),
            };
            let others = format!("({name} IS NULL OR NOT ({finite}))");
            return is_plain.then_some((finite, others));
        }
        match self.native() {
            "numeric" => Some((
                format!("{name} IS NOT NULL AND {finite}"),
                format!("({finite}) IS NOT TRUE"),
            )),
            native @ ("float4" | "float8") => {
                let odd = ["infinity", "-infinity", "NaN"]
                    .map(|odd| format!("'{odd}'::{native}"))
                    .join(", ");
                Some((finite, format!("({name} IS NULL OR {name} IN ({odd}))")))
            }
            "date" | "timestamptz" => {
                let others = format!("({name} IS NULL OR NOT ({finite}))");
                Some((finite, others))
            }
            _ => None,
        }
    }

    /// Returns the expression that is compared with a value, which is always finite.
    pub(crate) fn plain(&self, builder: &mut StatementBuilder) -> String {
        if let Some(column) = self.mysql() {
            return column.plain();
        }
        let name = self.name();
        match (self.dialect, self.field.kind) {
            (SqlDialect::Sqlite, Type::String | Type::Date) if self.textual() => {
                format!("{name} COLLATE BINARY")
            }
            (SqlDialect::Sqlite, Type::String) => {
                format!("{} COLLATE BINARY", sqlite::spelled(&name, false))
            }
            (SqlDialect::Sqlite, Type::Date) => format!("CAST({name} AS TEXT) COLLATE BINARY"),
            (SqlDialect::Sqlite, Type::Decimal) if self.whole() => name,
            (SqlDialect::Sqlite, Type::Decimal) => {
                format!("{} COLLATE weir_decimal", sqlite::spelled(&name, false))
            }
            (SqlDialect::Sqlite, Type::Number) => {
                format!("(CASE WHEN {} THEN {name} END)", sqlite::is_finite(&name))
            }
            (SqlDialect::Sqlite, Type::Datetime) => {
                let zone = builder.bind(self.zone);
                format!("weir_datetime({name}, {zone})")
            }
            (SqlDialect::Sqlite, _) => name,
            (SqlDialect::Postgresql, Type::String) => {
                format!("{} COLLATE \"C\"", native::spell(&name, self.native()))
            }
            (SqlDialect::Postgresql, Type::Decimal) if self.native() == "numeric" => name,
            (SqlDialect::Postgresql, Type::Decimal | Type::Integer) if !self.whole() => {
                format!("({name}::numeric)")
            }
            (SqlDialect::Postgresql, Type::Date) if self.native() != "date" => {
                format!("({name}::date)")
            }
            (SqlDialect::Postgresql, Type::Boolean) if self.native() != "bool" => {
                format!("({name}::bool)")
            }
            (SqlDialect::Postgresql, Type::Datetime) if self.native() == "timestamptz" => name,
            (SqlDialect::Postgresql, Type::Datetime) => {
                self.moment(&format!("{name}::timestamp"), builder)
            }
            (_, _) => name,
        }
    }

    /// Returns the day of a date or a moment, in the collection's zone. `None`: SQLite does not support zones.
    pub(crate) fn day(&self, builder: &mut StatementBuilder) -> Option<String> {
        if let Some(column) = self.mysql() {
            return column.day();
        }
        let compared = self.summarized(builder);
        match (self.dialect, self.field.kind) {
            (_, Type::Date) => Some(compared),
            // SQLite's own functions round fractions of a second, perhaps into the next day.
            (SqlDialect::Sqlite, _) => {
                (self.zone == "UTC").then(|| format!("substr({compared}, 1, 10)"))
            }
            (_, _) => {
                // A zone is bound once for each place, and rows are grouped by the place in the list.
                let zone = self.zone(builder);
                Some(format!("({compared} AT TIME ZONE {zone})::date"))
            }
        }
    }

    /// Returns the expression that equal values have in common, as a connection can encode it.
    pub(crate) fn grouped(&self, builder: &mut StatementBuilder) -> String {
        if let Some(column) = self.mysql() {
            return column.grouped().0;
        }
        match (self.dialect, self.field.kind) {
            (SqlDialect::Sqlite, _) => self.plain(builder),
            (SqlDialect::Postgresql, Type::Integer) if self.whole() => self.read(),
            (SqlDialect::Postgresql, Type::Decimal | Type::Integer) => {
                format!("trim_scale(({})::numeric)::text", self.compared(builder))
            }
            (SqlDialect::Postgresql, Type::Number) if !self.native().starts_with("float") => {
                format!("({})::float8", self.compared(builder))
            }
            // Values that are null in the value table are one group with the nulls.
            (SqlDialect::Postgresql, Type::String | Type::Number) => self.compared(builder),
            (_, _) => self.read(),
        }
    }

    /// Returns what rows are grouped by if it is not what [`Self::grouped`] selects.
    pub(crate) fn group_key(&self) -> Option<String> {
        self.mysql().and_then(|column| column.grouped().1)
    }

    /// Returns the expression for the smallest or the largest value, as a connection can encode it.
    pub(crate) fn edge(&self, function: &str, builder: &mut StatementBuilder) -> String {
        if let Some(column) = self.mysql() {
            return column.edge(function);
        }
        let compared = self.summarized(builder);
        let edge = format!("{function}({compared})");
        match (self.dialect, self.field.kind) {
            (SqlDialect::Sqlite, Type::Integer | Type::Number) if self.textual() => {
                format!("{function}({compared} COLLATE weir_decimal)")
            }
            (SqlDialect::Sqlite, _) => edge,
            // The zone goes before the era.
            (SqlDialect::Postgresql, Type::Datetime) => {
                format!("regexp_replace(({edge} AT TIME ZONE 'UTC')::text, '( BC)?$', '+00\\1')")
            }
            (_, _) => format!("({edge})::text"),
        }
    }

    /// Returns the expressions for the sum, the most decimal places of a value, and the number of values that are of
    /// another type. `None`: SQLite has no exact sum of such decimals.
    pub(crate) fn sum(&self, builder: &mut StatementBuilder) -> Option<[String; 3]> {
        if let Some(column) = self.mysql() {
            return Some(column.sum());
        }
        let compared = self.summarized(builder);
        let none = || "0".to_owned();
        Some(match (self.dialect, self.field.kind) {
            (SqlDialect::Postgresql, Type::Number) => {
                [format!("sum(({compared})::float8)"), none(), none()]
            }
            (SqlDialect::Sqlite, kind) => {
                let name = self.name();
                let types = match kind {
                    Type::Number => "'integer', 'real', 'null'",
                    _ if self.whole() || kind == Type::Integer => "'integer', 'null'",
                    _ => return None,
                };
                let odd = format!("count(CASE WHEN typeof({name}) NOT IN ({types}) THEN 1 END)");
                let sum = match kind {
                    Type::Number => format!("sum({compared})"),
                    _ => sqlite::add_in_parts(&name),
                };
                [sum, none(), odd]
            }
            (_, Type::Integer) if matches!(self.native(), "int2" | "int4" | "int8") => {
                [format!("sum({compared})::text"), none(), none()]
            }
            (_, _) => [
                format!("sum(({compared})::numeric)::text"),
                format!("coalesce(max(scale(trim_scale(({compared})::numeric))), 0)"),
                none(),
            ],
        })
    }

    /// Returns the condition for `=`, which an index on the column can serve if that is exact. `None` means that no
    /// value of the column equals this one.
    pub(crate) fn equals(
        &self,
        value: &Value<'_>,
        builder: &mut StatementBuilder,
    ) -> Option<String> {
        if let Some(column) = self.mysql() {
            return column.equals(value, builder);
        }
        let name = self.name();
        if self.dialect == SqlDialect::Postgresql && self.field.kind == Type::String {
            return match (self.native(), value) {
                // The index uses the column's collation, in which two spellings may be equal.
                ("text" | "varchar", value) => {
                    let operand = self.operand(value, builder)?;
                    Some(format!(
                        "({name} = {operand} AND {} = {operand})",
                        self.plain(builder)
                    ))
                }
                // Any other spelling of the same UUID is a different text.
                ("uuid", Value::Text(text)) if native::is_canonical_uuid(text) => {
                    let place = builder.bind(text.as_ref());
                    Some(format!("{name} = {place}::uuid"))
                }
                ("uuid", _) => None,
                _ => {
                    let operand = self.operand(value, builder)?;
                    Some(format!("{} = {operand}", self.plain(builder)))
                }
            };
        }
        let operand = self.operand(value, builder)?;
        let plain = self.plain(builder);
        Some(format!("{plain} = {operand}"))
    }

    /// Binds a value of a condition or cursor. `None` means that the column's type has no such value.
    pub(crate) fn operand(
        &self,
        value: &Value<'_>,
        builder: &mut StatementBuilder,
    ) -> Option<String> {
        if let Some(column) = self.mysql() {
            return column.operand(value, builder);
        }
        Some(match (self.dialect, value) {
            (_, Value::Null | Value::Json(_) | Value::Unfit(_)) => return None,
            (SqlDialect::Sqlite, Value::Boolean(value)) => builder.bind(i64::from(*value)),
            (SqlDialect::Sqlite, Value::Integer(value)) => match i64::try_from(*value) {
                Ok(value) => builder.bind(value),
                Err(_) => builder.bind(*value as f64),
            },
            (SqlDialect::Sqlite, Value::Number(value)) => builder.bind(*value),
            (SqlDialect::Sqlite, Value::Decimal(value)) => {
                match value.to_integer().map(i64::try_from) {
                    Some(Ok(value)) if self.whole() => builder.bind(value),
                    _ if self.whole() => builder.bind(value.as_str().parse::<f64>().ok()?),
                    _ => builder.bind(value.as_str()),
                }
            }
            (SqlDialect::Sqlite, Value::Text(value) | Value::Date(value)) => {
                builder.bind(value.as_ref())
            }
            (SqlDialect::Sqlite, Value::Datetime(value)) => {
                let place = builder.bind(value.to_string());
                format!("weir_datetime({place}, 'UTC')")
            }
            (_, Value::Boolean(value)) => {
                format!("{}::bool", builder.bind(value.to_string()))
            }
            (_, Value::Integer(value)) => {
                let cast = if self.whole() && i64::try_from(*value).is_ok() {
                    "int8"
                } else {
                    "numeric"
                };
                format!("{}::{cast}", builder.bind(value.to_string()))
            }
            (_, Value::Decimal(value)) => {
                let fits = value
                    .to_integer()
                    .is_some_and(|value| i64::try_from(value).is_ok());
                let cast = if self.whole() && fits {
                    "int8"
                } else {
                    "numeric"
                };
                format!("{}::{cast}", builder.bind(value.as_str()))
            }
            (_, Value::Number(value)) => {
                let cast = if self.native() == "float4" {
                    "float4"
                } else {
                    "float8"
                };
                format!("{}::{cast}", builder.bind(json!(value).to_string()))
            }
            (_, Value::Text(value)) => {
                // No text in PostgreSQL contains a NUL, and it refuses one as a parameter.
                if value.contains('\0') {
                    return None;
                }
                builder.bind(value.as_ref())
            }
            (_, Value::Date(value)) => {
                format!("{}::date", builder.bind(with_era(value)))
            }
            (_, Value::Datetime(value)) => {
                format!(
                    "{}::timestamptz",
                    builder.bind(with_era(&value.to_string()))
                )
            }
        })
    }

    /// Binds a value to be written. PostgreSQL casts to the column's type without its bounds, so that a value that is too
    /// long is refused and not cut.
    pub(crate) fn written(
        &self,
        value: &Value<'_>,
        builder: &mut StatementBuilder,
    ) -> Result<String, Error> {
        let keeps_clock = match self.dialect {
            SqlDialect::Sqlite => false,
            SqlDialect::Postgresql => self.native() == "timestamp",
            SqlDialect::Mysql => self.native().starts_with("datetime"),
        };
        if let (Value::Datetime(moment), true) = (value, keeps_clock) {
            self.check_clock(moment)?;
        }
        if let Some(column) = self.mysql() {
            return column.written(value, builder);
        }
        let unfit = || {
            Error::invalid(format!(
                "The value of {:?} does not fit its column.",
                self.field.key
            ))
            .field(&self.field.key)
        };
        match value {
            // A bound null would be a text, which only columns of texts take.
            Value::Null => return Ok("NULL".to_owned()),
            Value::Unfit(_) => return Err(unfit()),
            _ => {}
        }
        if self.dialect == SqlDialect::Sqlite {
            return Ok(match value {
                Value::Boolean(value) => builder.bind(i64::from(*value)),
                Value::Integer(value) => builder.bind(i64::try_from(*value).map_err(|_| unfit())?),
                Value::Number(value) => builder.bind(*value),
                Value::Text(text) | Value::Date(text) | Value::Json(text) => {
                    builder.bind(text.as_ref())
                }
                // Bound as text: a numeric column converts it to a number if nothing is lost.
                Value::Decimal(value) => builder.bind(value.as_str()),
                Value::Datetime(value) => builder.bind(value.to_string()),
                Value::Null | Value::Unfit(_) => return Err(unfit()),
            });
        }
        if let (Some(array), Value::Json(json)) = (self.array(), value) {
            let zone = Zone::parse(self.zone)?;
            let text = array.text(json, &zone).ok_or_else(unfit)?;
            return array.written(&builder.bind(text));
        }
        let text = native::text(value, self.native(), None).ok_or_else(unfit)?;
        let place = builder.bind(text);
        Ok(match self.native() {
            "text" | "varchar" | "bpchar" | "name" | "citext" | "" => place,
            "timestamp" => {
                let zone = self.zone(builder);
                format!("({place}::timestamptz AT TIME ZONE {zone})")
            }
            native => format!("{place}::{}", native::cast(native)?),
        })
    }

    /// Returns `true` if a condition on the empty text is different from one on null.
    pub(crate) fn is_text(&self) -> bool {
        self.field.kind == Type::String
    }

    /// Returns `true` if the expression compared may be null, so that an order has to state where nulls go.
    pub(crate) fn may_be_null(&self) -> bool {
        if let Some(column) = self.mysql() {
            return column.may_be_null();
        }
        self.field.nullable
            || self.finite().is_some()
            || (matches!(
                self.field.kind,
                Type::Number | Type::Datetime | Type::Decimal
            ) && !(self.dialect == SqlDialect::Postgresql && self.whole()))
    }

    /// Returns the array that the column is; `None` if it is not one of PostgreSQL's.
    fn array(&self) -> Option<ArrayColumn<'a>> {
        match self.field.kind {
            Type::List | Type::Json if self.dialect == SqlDialect::Postgresql => {
                ArrayColumn::new(self.field)
            }
            _ => None,
        }
    }

    /// Returns a moment as the column has it.
    fn bound(&self, moment: &str) -> String {
        let moment = format!("'{moment}'::timestamptz");
        if self.native() == "timestamptz" {
            return moment;
        }
        // The zone is one that was read as such, so there is no quote in it.
        let zone = self.zone.replace('\'', "");
        match zone.starts_with(['+', '-']) {
            true => format!("({moment} AT TIME ZONE '{zone}'::interval)"),
            false => format!("({moment} AT TIME ZONE '{zone}')"),
        }
    }

    fn native(&self) -> &str {
        self.field.native.as_deref().unwrap_or_default()
    }

    /// Returns `true` if the column, in SQLite, keeps texts as texts.
    fn textual(&self) -> bool {
        let native = self.native().to_ascii_uppercase();
        ["CHAR", "CLOB", "TEXT"]
            .iter()
            .any(|part| native.contains(part))
            && !native.contains("INT")
    }

    /// Returns `true` for a column of integers, whatever the shape makes of them.
    fn whole(&self) -> bool {
        match self.dialect {
            SqlDialect::Sqlite => self.native().to_ascii_uppercase().contains("INT"),
            SqlDialect::Postgresql => matches!(self.native(), "int2" | "int4" | "int8"),
            SqlDialect::Mysql => false,
        }
    }

    /// Returns the moment of a time without a zone. PostgreSQL takes the second reading of a time that the clocks of a
    /// zone show twice, the value table takes the first.
    fn moment(&self, local: &str, builder: &mut StatementBuilder) -> String {
        let zone = self.zone(builder);
        let moment = format!("({local} AT TIME ZONE {zone})");
        if self.zone == "UTC" || self.zone.starts_with(['+', '-']) {
            return moment;
        }
        let earlier = SET_BACK.map(|by| {
            let earlier = format!("{moment} - interval '{by}'");
            format!("WHEN ({earlier}) AT TIME ZONE {zone} = {local} THEN {earlier}")
        });
        // On nearly all days two hours on the clock are two hours: then there is nothing more to try.
        let (before, clock) = (
            format!("{moment} - interval '2 hours'"),
            format!("{local} - interval '2 hours'"),
        );
        let usual = format!("WHEN ({before}) AT TIME ZONE {zone} = {clock} THEN {moment}");
        format!("(CASE {usual} {} ELSE {moment} END)", earlier.join(" "))
    }

    /// Refuses a moment that a column without a zone would answer as another one: the second reading of a time that the
    /// clocks of its zone show twice.
    fn check_clock(&self, moment: &Datetime) -> Result<(), Error> {
        let zone = Zone::parse(self.zone)?;
        match moment.to_local(&zone) {
            Some(local) if Datetime::parse(&local, &zone) != Some(*moment) => {
                let (name, key) = (self.zone, &self.field.key);
                let message = format!(
                    "The clocks of {name} show {local} twice, and {key:?} keeps only the first."
                );
                Err(Error::invalid(message).field(key))
            }
            _ => Ok(()),
        }
    }

    /// Returns the zone. PostgreSQL reads the sign of an offset as POSIX does, so an offset is given as an interval.
    fn zone(&self, builder: &mut StatementBuilder) -> String {
        let place = builder.bind(self.zone);
        if self.zone.starts_with(['+', '-']) {
            format!("{place}::interval")
        } else {
            place
        }
    }
}

/// Returns the place of a column in the shape.
pub(crate) fn place(shape: &Shape, key: &str) -> Result<usize, Error> {
    let place = shape.fields.iter().position(|field| field.key == key);
    place.ok_or_else(|| {
        Error::invalid(format!("There is no column {key:?} in the recorded shape.")).field(key)
    })
}

/// Reads the date or time of a year before 0001.
pub(crate) fn before_christ(raw: &RawValue, field: &Field, zone: &Zone) -> Value<'static> {
    let text: String = serde_json::from_str(raw.get()).unwrap_or_default();
    native::without_era(&text).map_or(Value::Null, |text| {
        Value::from_text(&text, field, zone).into_owned()
    })
}
