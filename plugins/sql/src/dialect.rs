//! Tells which database it is, and how its statements take values.

use weir_plugin_sdk::{Error, Type, sql};
use weir_statements::SqlSyntax;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgresql,
}

impl Dialect {
    pub(crate) fn of(connection: &str) -> Result<Self, Error> {
        match sql::dialect(connection)?.as_str() {
            "sqlite" => Ok(Self::Sqlite),
            "postgresql" => Ok(Self::Postgresql),
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
        }
    }

    /// Returns the place of a bound value in the text of a statement.
    pub(crate) fn placeholder(self, number: usize) -> String {
        match self {
            Self::Sqlite => format!("?{number}"),
            // PostgreSQL is told that each is a text, and casts.
            Self::Postgresql => format!("${number}::text"),
        }
    }

    /// Returns the expression for a parameter of a type. The type is said, since a database cannot always tell it from
    /// what stands around the parameter.
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
        }
    }

    /// Returns the SELECT of the values of a list. Its text is the same however many there are.
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
