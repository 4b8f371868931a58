//! Tables, views and queries of SQLite and PostgreSQL as collections.
//!
//! [`describe`] reads the database's catalogue; a call builds one statement ([`select`], [`change`]) from the recorded
//! shape and bound values alone. [`column`] is where the two dialects differ: how a column is read, compared and
//! ordered so that both mean what the value table means. What is decided is in `docs/adapters/sql.md`.

mod change;
mod column;
mod condition;
mod describe;
mod dialect;
mod select;
mod settings;
mod statement;

use weir_plugin_sdk::serde_json::{self, json};
use weir_plugin_sdk::{Adapter, Change, Error, Page, Query, Shape, Zone};

use dialect::Dialect;
use settings::Settings;

/// One open table, view or query.
pub struct Sql {
    settings: Settings,
    shape: Shape,
    zone: Zone,
}

impl Adapter for Sql {
    const NAME: &'static str = "sql";
    const REQUESTS: &'static [&'static str] = &["sql"];

    fn settings_schema() -> serde_json::Value {
        json!({
            "type": "object",
            "properties": {
                "connection": { "type": "string", "description": "Name of the database connection the operator granted." },
                "table": { "type": "string", "description": "A table or view; schema.table where it is not in the usual schema." },
                "schema": { "type": "string", "description": "The schema; then a dot in the table's name is part of it." },
                "query": { "type": "string", "description": "A SELECT of your own instead of a table: read-only." }
            },
            "required": ["connection"],
            "oneOf": [{ "required": ["table"] }, { "required": ["query"] }],
            "additionalProperties": false
        })
    }

    fn describe(settings: &str) -> Result<Shape, Error> {
        let settings = Settings::parse(settings)?;
        describe::describe(&settings, Dialect::of(&settings.connection)?)
    }

    fn open(settings: &str, shape: &Shape) -> Result<Self, Error> {
        Ok(Self { settings: Settings::parse(settings)?, shape: shape.clone(), zone: Zone::of(shape)? })
    }

    fn read(&self, query: &Query) -> Result<Page, Error> {
        select::read(self, Dialect::of(&self.settings.connection)?, query)
    }

    fn write(&self, change: &Change) -> Result<String, Error> {
        change::write(self, Dialect::of(&self.settings.connection)?, change)
    }
}

weir_plugin_sdk::export!(Sql);
