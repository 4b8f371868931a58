//! Defines the kinds of databases, and how their statements take values.

use weir_plugin_sdk::serde_json::Value as Json;
use weir_plugin_sdk::{Error, Type, sql};
use weir_statements::SqlSyntax;

/// The mark around a place in the text for MySQL, which counts places as they come in the text and not as values are bound.
/// No name and no query contains it.
const MARK: char = '\0';
/// The mark before the number of a list whose values each get a place.
const EACH: char = '*';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SqlDialect {
    Sqlite,
    Postgresql,
    /// MariaDB, too.
    Mysql,
}

impl SqlDialect {
    pub(crate) fn from_connection(connection: &str) -> Result<Self, Error> {
        match sql::dialect(connection)?.as_str() {
            "sqlite" => Ok(Self::Sqlite),
            "postgresql" => Ok(Self::Postgresql),
            "mysql" => Ok(Self::Mysql),
            other => Err(Error::unsupported(format!(
                "Databases of the kind {other} are not supported."
            ))),
        }
    }

    /// Returns the rules for the text of a statement.
    pub(crate) fn syntax(self) -> SqlSyntax {
        match self {
            Self::Sqlite => SqlSyntax::Sqlite,
            Self::Postgresql => SqlSyntax::Postgresql,
            Self::Mysql => SqlSyntax::Mysql,
        }
    }

    /// Returns the place of a bound value in the text of a statement.
    pub(crate) fn placeholder(self, number: usize) -> String {
        match self {
            Self::Sqlite => format!("?{number}"),
            // Each is sent to PostgreSQL as a text, which it casts.
            Self::Postgresql => format!("${number}::text"),
            Self::Mysql => mysql_place(number),
        }
    }

    /// Returns the expression for a parameter of a type. The type is written, since a database cannot always infer it from
    /// the tokens around the parameter.
    pub(crate) fn parameter(self, number: usize, kind: Type, is_list: bool) -> String {
        let place = self.placeholder(number);
        match self {
            Self::Sqlite if kind == Type::Datetime && !is_list => {
                format!("weir_datetime({place}, 'UTC')")
            }
            Self::Sqlite => place,
            Self::Postgresql => {
                let dimension = if is_list { "[]" } else { "" };
                format!("CAST({place} AS {}{dimension})", postgresql_type(kind))
            }
            // The type of the value decides how it is compared.
            Self::Mysql => match kind {
                Type::Decimal if !is_list => format!("CAST({place} AS DECIMAL(65,30))"),
                Type::Date if !is_list => format!("CAST({place} AS DATE)"),
                Type::Datetime if !is_list => format!("CAST({place} AS DATETIME(6))"),
                _ => place,
            },
        }
    }

    /// Returns the SELECT of the values of a list, or for MySQL the values.
    pub(crate) fn values_of_list(self, number: usize, kind: Type) -> String {
        match self {
            Self::Sqlite => {
                let value = match kind {
                    Type::Datetime => "weir_datetime(value, 'UTC')",
                    _ => "value",
                };
                format!("SELECT {value} FROM json_each(?{number})")
            }
            Self::Postgresql => format!("SELECT unnest({})", self.parameter(number, kind, true)),
            Self::Mysql => mysql_places(number),
        }
    }
}

/// Returns PostgreSQL's type for values of a type of the value table.
pub(crate) fn postgresql_type(kind: Type) -> &'static str {
    match kind {
        Type::Integer => "int8",
        Type::Decimal => "numeric",
        Type::Number => "float8",
        Type::Boolean => "bool",
        Type::Date => "date",
        Type::Datetime => "timestamptz",
        Type::Json | Type::Record | Type::List => "jsonb",
        Type::String => "text",
    }
}

/// Returns the place of a bound value in a text for MySQL.
pub(crate) fn mysql_place(number: usize) -> String {
    format!("{MARK}{}{MARK}", number - 1)
}

/// Returns the places of the values of a bound list.
pub(crate) fn mysql_places(number: usize) -> String {
    format!("{MARK}{EACH}{}{MARK}", number - 1)
}

/// Returns the text with `?` for each place, and the values in the order of the places. A list in one place is its JSON.
pub(crate) fn mysql_parts(text: &str, bound: &[Json]) -> (String, Vec<Json>) {
    let mut parts = String::with_capacity(text.len());
    let mut values = Vec::with_capacity(bound.len());
    for (at, part) in text.split(MARK).enumerate() {
        let number = part.trim_start_matches(EACH).parse::<usize>().ok();
        let Some(value) = number
            .filter(|_| at % 2 == 1)
            .and_then(|place| bound.get(place))
        else {
            parts.push_str(part);
            continue;
        };
        match value {
            Json::Array(list) if part.starts_with(EACH) => {
                // An empty list is a SELECT of no values.
                match list.len() {
                    0 => parts.push_str("SELECT NULL FROM DUAL WHERE FALSE"),
                    count => parts.push_str(&vec!["?"; count].join(", ")),
                }
                values.extend(list.iter().cloned());
            }
            Json::Null if part.starts_with(EACH) => {
                parts.push_str("SELECT NULL FROM DUAL WHERE FALSE");
            }
            Json::Array(_) => {
                parts.push('?');
                values.push(value.to_string().into());
            }
            _ => {
                parts.push('?');
                values.push(value.clone());
            }
        }
    }
    (parts, values)
}
