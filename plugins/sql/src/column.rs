//! A column of the recorded shape in the words of a dialect: how it is read, compared, ordered and written, so that
//! every database means what the value table means.

use std::borrow::Cow;

use weir_plugin_sdk::serde_json::{self, json, value::RawValue};
use weir_plugin_sdk::value::{Value, compact_json};
use weir_plugin_sdk::{Error, Field, Shape, Type, Zone};

use crate::dialect::Dialect;
use crate::settings::quoted;
use crate::statement::Builder;

/// How far clocks are set back: by an hour nearly everywhere, by half of one on Lord Howe Island, by two at Troll.
const SET_BACK: [&str; 3] = ["1 hour", "30 minutes", "2 hours"];

#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    pub(crate) field: &'a Field,
    dialect: Dialect,
    zone: &'a str,
}

impl<'a> Column<'a> {
    /// Finds a column. Only a recorded one has a name here.
    pub(crate) fn find(shape: &'a Shape, dialect: Dialect, key: &str) -> Result<Self, Error> {
        Ok(Self::new(shape, dialect, &shape.fields[place(shape, key)?]))
    }

    pub(crate) fn new(shape: &'a Shape, dialect: Dialect, field: &'a Field) -> Self {
        Self {
            field,
            dialect,
            zone: shape.timezone.as_deref().unwrap_or("UTC"),
        }
    }

    pub(crate) fn name(&self) -> String {
        quoted(&self.field.key)
    }

    /// Returns the expression for a SELECT or RETURNING list, which the connection can encode without losing anything.
    pub(crate) fn read(&self) -> String {
        let name = self.name();
        if self.dialect == Dialect::Sqlite {
            return if self.field.kind == Type::Decimal {
                self.sqlite_decimal()
            } else {
                name
            };
        }
        match (self.field.kind, self.native()) {
            (Type::Integer, "int2" | "int4" | "int8")
            | (Type::Number, "float4" | "float8")
            | (Type::Boolean, "bool")
            | (Type::Json, "json" | "jsonb") => name,
            (Type::List, _) if self.native().ends_with("[]") => format!("array_to_json({name})"),
            _ => match self.finite() {
                Some(finite) => format!("CASE WHEN {finite} THEN {name}::text END"),
                None => format!("{name}::text"),
            },
        }
    }

    /// Returns the connection's answer as the column's type. SQLite keeps JSON as the text it is.
    pub(crate) fn value<'r>(&self, raw: &'r RawValue, zone: &Zone) -> Value<'r> {
        let nested = matches!(self.field.kind, Type::Json | Type::Record | Type::List);
        if nested && self.dialect == Dialect::Sqlite && raw.get().starts_with('"') {
            let text: String = serde_json::from_str(raw.get()).unwrap_or_default();
            if let Some(json) = compact_json(&text, self.field, zone) {
                return Value::Json(Cow::Owned(json));
            }
        }
        Value::from_json(raw, self.field, zone)
    }

    /// Returns the expression that is ordered and looked at for nulls, as the value table does.
    pub(crate) fn compared(&self, builder: &mut Builder) -> String {
        let plain = self.plain(builder);
        match self.finite() {
            Some(finite) => format!("(CASE WHEN {finite} THEN {plain} END)"),
            None => plain,
        }
    }

    /// Returns the condition for another comparison than `=`. `None` means that no value of the column compares with
    /// this one.
    pub(crate) fn compares(
        &self,
        operator: &str,
        value: &Value<'_>,
        builder: &mut Builder,
    ) -> Option<String> {
        let plain = self.plain(builder);
        let operand = self.operand(value, builder)?;
        // An index serves a comparison with the column as it is.
        Some(match self.finite() {
            Some(finite) => format!("({plain} {operator} {operand} AND {finite})"),
            None => format!("{plain} {operator} {operand}"),
        })
    }

    /// Returns the condition for values that are not null to the value table, which has no infinities and no NaN; `None`
    /// if the column holds nothing of that kind, or SQLite's own expression sees to it.
    fn finite(&self) -> Option<String> {
        let name = self.name();
        match (self.dialect, self.field.kind, self.native()) {
            // The difference of an infinity with itself is not a number. Old servers have no infinity to compare with.
            (Dialect::Postgresql, Type::Number | Type::Decimal, "numeric") => {
                Some(format!("{name} - {name} = 0"))
            }
            // The bounds have the type: a column that is a text by now has no such order, and is told to have changed.
            (Dialect::Postgresql, Type::Number, native @ ("float4" | "float8"))
            | (
                Dialect::Postgresql,
                Type::Date | Type::Datetime,
                native @ ("date" | "timestamp" | "timestamptz"),
            ) => Some(format!(
                "{name} > '-infinity'::{native} AND {name} < 'infinity'::{native}"
            )),
            _ => None,
        }
    }

    /// Returns two conditions, one of which each row meets: that the value is finite, and that it is null to the value
    /// table. An index on the column serves the order of either, but not of both at once. `None` if it serves the whole
    /// order, or nothing of it.
    pub(crate) fn split(&self) -> Option<(String, String)> {
        let name = self.name();
        let finite = self.finite()?;
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
            native @ ("date" | "timestamptz") => Some((
                finite,
                format!(
                    "({name} IS NULL OR {name} IN ('infinity'::{native}, '-infinity'::{native}))"
                ),
            )),
            _ => None,
        }
    }

    /// Returns the expression that is compared with a value, which is always finite.
    pub(crate) fn plain(&self, builder: &mut Builder) -> String {
        let name = self.name();
        match (self.dialect, self.field.kind) {
            (Dialect::Sqlite, Type::String | Type::Date) if self.textual() => {
                format!("{name} COLLATE BINARY")
            }
            (Dialect::Sqlite, Type::String | Type::Date) => {
                format!("CAST({name} AS TEXT) COLLATE BINARY")
            }
            (Dialect::Sqlite, Type::Decimal) if self.whole() => name,
            (Dialect::Sqlite, Type::Decimal) => {
                format!("{} COLLATE weir_decimal", self.sqlite_decimal())
            }
            (Dialect::Sqlite, Type::Number) => {
                format!("(CASE WHEN abs({name}) <= 1.7976931348623157e308 THEN {name} END)")
            }
            (Dialect::Sqlite, Type::Datetime) => {
                let zone = builder.bind(self.zone);
                format!("weir_datetime({name}, {zone})")
            }
            (Dialect::Sqlite, _) => name,
            (Dialect::Postgresql, Type::String) => format!("{name}::text COLLATE \"C\""),
            (Dialect::Postgresql, Type::Decimal) if self.native() == "numeric" => name,
            (Dialect::Postgresql, Type::Decimal | Type::Integer) if !self.whole() => {
                format!("({name}::numeric)")
            }
            (Dialect::Postgresql, Type::Date) if self.native() != "date" => {
                format!("({name}::date)")
            }
            (Dialect::Postgresql, Type::Boolean) if self.native() != "bool" => {
                format!("({name}::bool)")
            }
            (Dialect::Postgresql, Type::Datetime) if self.native() == "timestamptz" => name,
            (Dialect::Postgresql, Type::Datetime) => {
                self.moment(&format!("{name}::timestamp"), builder)
            }
            (Dialect::Postgresql, _) => name,
        }
    }

    /// Returns the condition for `=`, which an index on the column can serve if that is exact. `None` means that no
    /// value of the column equals this one.
    pub(crate) fn equals(&self, value: &Value<'_>, builder: &mut Builder) -> Option<String> {
        let name = self.name();
        if self.dialect == Dialect::Postgresql && self.field.kind == Type::String {
            return match (self.native(), value) {
                // The index is asked in the column's collation, to which two spellings may be equal.
                ("text" | "varchar", value) => {
                    let operand = self.operand(value, builder)?;
                    Some(format!(
                        "({name} = {operand} AND {} = {operand})",
                        self.plain(builder)
                    ))
                }
                // Any other spelling of the same UUID is another text.
                ("uuid", Value::Text(text)) if is_canonical_uuid(text) => {
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

    /// Binds a value of a condition or cursor. `None` means that the column's type holds no such value.
    pub(crate) fn operand(&self, value: &Value<'_>, builder: &mut Builder) -> Option<String> {
        Some(match (self.dialect, value) {
            (_, Value::Null | Value::Json(_) | Value::Unfit(_)) => return None,
            (Dialect::Sqlite, Value::Boolean(value)) => builder.bind(i64::from(*value)),
            (Dialect::Sqlite, Value::Integer(value)) => match i64::try_from(*value) {
                Ok(value) => builder.bind(value),
                Err(_) => builder.bind(*value as f64),
            },
            (Dialect::Sqlite, Value::Number(value)) => builder.bind(*value),
            (Dialect::Sqlite, Value::Decimal(value)) => match value.to_integer().map(i64::try_from)
            {
                Some(Ok(value)) if self.whole() => builder.bind(value),
                _ if self.whole() => builder.bind(value.as_str().parse::<f64>().ok()?),
                _ => builder.bind(value.as_str()),
            },
            (Dialect::Sqlite, Value::Text(value) | Value::Date(value)) => {
                builder.bind(value.as_ref())
            }
            (Dialect::Sqlite, Value::Datetime(value)) => {
                let place = builder.bind(value.to_string());
                format!("weir_datetime({place}, 'UTC')")
            }
            (Dialect::Postgresql, Value::Boolean(value)) => {
                format!("{}::bool", builder.bind(value.to_string()))
            }
            (Dialect::Postgresql, Value::Integer(value)) => {
                let cast = if self.whole() && i64::try_from(*value).is_ok() {
                    "int8"
                } else {
                    "numeric"
                };
                format!("{}::{cast}", builder.bind(value.to_string()))
            }
            (Dialect::Postgresql, Value::Decimal(value)) => {
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
            (Dialect::Postgresql, Value::Number(value)) => {
                let cast = if self.native() == "float4" {
                    "float4"
                } else {
                    "float8"
                };
                format!("{}::{cast}", builder.bind(json!(value).to_string()))
            }
            (Dialect::Postgresql, Value::Text(value)) => {
                // No text of PostgreSQL holds a NUL, and it refuses to be asked for one.
                if value.contains('\0') {
                    return None;
                }
                builder.bind(value.as_ref())
            }
            (Dialect::Postgresql, Value::Date(value)) => {
                format!("{}::date", builder.bind(with_era(value)))
            }
            (Dialect::Postgresql, Value::Datetime(value)) => {
                format!(
                    "{}::timestamptz",
                    builder.bind(with_era(&value.to_string()))
                )
            }
        })
    }

    /// Binds a value to be written. PostgreSQL casts to the column's type without its bounds, so that what is too long
    /// is refused and not cut.
    pub(crate) fn written(
        &self,
        value: &Value<'_>,
        builder: &mut Builder,
    ) -> Result<String, Error> {
        let unfit = || {
            Error::invalid(format!(
                "The value of {:?} does not fit its column.",
                self.field.key
            ))
            .field(&self.field.key)
        };
        let text = match value {
            // A bound null would be a text, which only columns of texts take.
            Value::Null => return Ok("NULL".to_owned()),
            Value::Unfit(_) => return Err(unfit()),
            Value::Text(value) | Value::Date(value) | Value::Json(value) => value.to_string(),
            Value::Boolean(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::Decimal(value) => value.as_str().to_owned(),
            Value::Number(value) => json!(value).to_string(),
            Value::Datetime(value) => value.to_string(),
        };
        if self.dialect == Dialect::Sqlite {
            return Ok(match value {
                Value::Boolean(value) => builder.bind(i64::from(*value)),
                Value::Integer(value) => builder.bind(i64::try_from(*value).map_err(|_| unfit())?),
                Value::Number(value) => builder.bind(*value),
                // Bound as text: a numeric column makes a number of it where that loses nothing.
                _ => builder.bind(text),
            });
        }
        if text.contains('\0') {
            return Err(unfit());
        }
        let place = builder.bind(text);
        Ok(match self.native() {
            "text" | "varchar" | "bpchar" | "name" | "citext" | "" => place,
            "timestamp" => {
                let zone = self.zone(builder);
                format!("({place}::timestamptz AT TIME ZONE {zone})")
            }
            native => match native.strip_suffix("[]") {
                Some(element) => {
                    format!(
                        "ARRAY(SELECT e::{} FROM jsonb_array_elements_text({place}::jsonb) AS e)",
                        type_name(element)?
                    )
                }
                None => format!("{place}::{}", type_name(native)?),
            },
        })
    }

    /// Returns `true` if a condition on the empty text is different from one on null.
    pub(crate) fn is_text(&self) -> bool {
        self.field.kind == Type::String
    }

    /// Returns `true` if the expression compared may be null, so that an order has to say where nulls go.
    pub(crate) fn may_be_null(&self) -> bool {
        self.field.nullable
            || self.finite().is_some()
            || (matches!(
                self.field.kind,
                Type::Number | Type::Datetime | Type::Decimal
            ) && !(self.dialect == Dialect::Postgresql && self.whole()))
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
            Dialect::Sqlite => self.native().to_ascii_uppercase().contains("INT"),
            Dialect::Postgresql => matches!(self.native(), "int2" | "int4" | "int8"),
        }
    }

    /// Returns a decimal of SQLite as the text that SQLite writes, which is both shown and compared: a double has more
    /// digits than that. One that is not finite is null.
    fn sqlite_decimal(&self) -> String {
        let name = self.name();
        if self.whole() {
            return name;
        }
        let finite = format!("typeof({name}) <> 'real' OR abs({name}) <= 1.7976931348623157e308");
        format!("(CASE WHEN {finite} THEN CAST({name} AS TEXT) END)")
    }

    /// Returns the moment of a time without a zone. PostgreSQL takes the second reading of a time that the clocks of a
    /// zone show twice, the value table takes the first.
    fn moment(&self, local: &str, builder: &mut Builder) -> String {
        let zone = self.zone(builder);
        let moment = format!("({local} AT TIME ZONE {zone})");
        if self.zone == "UTC" || self.zone.starts_with(['+', '-']) {
            return moment;
        }
        let earlier = SET_BACK.map(|by| {
            let earlier = format!("{moment} - interval '{by}'");
            format!("WHEN ({earlier}) AT TIME ZONE {zone} = {local} THEN {earlier}")
        });
        // On nearly all days two hours on the clock are two hours: then there is nothing more to be tried.
        let (before, clock) = (
            format!("{moment} - interval '2 hours'"),
            format!("{local} - interval '2 hours'"),
        );
        let usual = format!("WHEN ({before}) AT TIME ZONE {zone} = {clock} THEN {moment}");
        format!("(CASE {usual} {} ELSE {moment} END)", earlier.join(" "))
    }

    /// Returns the zone. PostgreSQL reads the sign of an offset as POSIX does, so an offset is given as an interval.
    fn zone(&self, builder: &mut Builder) -> String {
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

/// Writes the year 0000, which PostgreSQL does not have: the year before 0001 is 1 BC.
fn with_era(text: &str) -> String {
    text.strip_prefix("0000")
        .map_or_else(|| text.to_owned(), |rest| format!("0001{rest} BC"))
}

/// Returns the name of a type as the catalogue spelt it. It comes from the recorded shape and stands in the text of a
/// statement, so it may hold nothing but what such names are made of.
fn type_name(native: &str) -> Result<&str, Error> {
    let allowed = |char: char| char.is_alphanumeric() || matches!(char, '_' | ' ' | '.' | '"');
    if native.chars().all(allowed) && native.matches('"').count().is_multiple_of(2) {
        Ok(native)
    } else {
        Err(
            Error::invalid("A type of the recorded shape is not the name of a type.")
                .field("shape"),
        )
    }
}

fn is_canonical_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}
