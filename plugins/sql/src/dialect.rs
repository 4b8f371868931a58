//! Tells which database it is, and how its statements take values.

use weir_plugin_sdk::{Error, Type, sql};
use weir_statements::SqlSyntax;

use crate::statement::{mysql_place, mysql_places};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgresql,
    /// MariaDB, too.
    Mysql,
}

impl Dialect {
    pub(crate) fn of(connection: &str) -> Result<Self, Error> {
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
            // PostgreSQL is told that each is a text, and casts.
            Self::Postgresql => format!("${number}::text"),
            Self::Mysql => mysql_place(number),
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
            // The type of the value says how it is compared.
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
