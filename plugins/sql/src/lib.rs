//! Tables, views and queries of SQLite, PostgreSQL, MySQL and MariaDB as collections.
//!
//! [`describe`] reads the database's catalogue; a call builds one statement ([`select`], [`change`]) from only the recorded
//! shape and bound values. [`column`] contains the differences of the dialects: how a column is read, compared and ordered so
//! that all mean the same as the value table. The decisions are in `docs/adapters/sql.md`.

mod array;
mod change;
mod column;
mod condition;
mod describe;
mod dialect;
mod document;
mod left_out;
mod mysql;
mod native;
mod operation;
mod order;
mod parameters;
mod refusal;
mod select;
mod settings;
mod sqlite;
mod statement;
mod summarize;
mod written;

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use weir_plugin_sdk::serde_json::{self, json};
use weir_plugin_sdk::{
    Adapter, Change, Error, Page, Query, Shape, SummaryPage, SummaryQuery, Zone,
};

use dialect::SqlDialect;
use parameters::SqlTemplate;
use select::PreparedSelect;
use settings::{SqlSettings, SqlSource};
use statement::StatementBuilder;
use written::WrittenStatement;

/// An open table, view or query.
pub struct SqlAdapter {
    settings: SqlSettings,
    shape: Shape,
    zone: Zone,
    dialect: OnceCell<SqlDialect>,
    template: OnceCell<Option<SqlTemplate>>,
    statement: OnceCell<Option<WrittenStatement>>,
    selected: RefCell<Option<Rc<PreparedSelect>>>,
}

impl SqlAdapter {
    /// Returns the dialect. It is asked for once, since an instance keeps its connections.
    fn dialect(&self) -> Result<SqlDialect, Error> {
        if let Some(dialect) = self.dialect.get() {
            return Ok(*dialect);
        }
        let dialect = SqlDialect::from_connection(&self.settings.connection)?;
        Ok(*self.dialect.get_or_init(|| dialect))
    }

    /// Returns the query with its parameters as placeholders, if it has any.
    fn template(&self, dialect: SqlDialect) -> Result<Option<&SqlTemplate>, Error> {
        if let Some(template) = self.template.get() {
            return Ok(template.as_ref());
        }
        let template = self.settings.template(dialect)?;
        Ok(self.template.get_or_init(|| template).as_ref())
    }

    /// Returns the statement that writes, if that is what the collection is.
    fn statement(&self, dialect: SqlDialect) -> Result<Option<&WrittenStatement>, Error> {
        if let Some(statement) = self.statement.get() {
            return Ok(statement.as_ref());
        }
        let statement = self.settings.statement(dialect)?;
        Ok(self.statement.get_or_init(|| statement).as_ref())
    }

    /// Returns the FROM clause.
    fn source(&self, dialect: SqlDialect) -> Result<String, Error> {
        Ok(match self.template(dialect)? {
            Some(template) => SqlSource::Query(&template.text).sql(),
            None => self.settings.source().sql(),
        })
    }

    /// Begins a statement with the values of the query's parameters, which its FROM clause names by their numbers.
    fn builder(
        &self,
        dialect: SqlDialect,
        options: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<StatementBuilder, Error> {
        let mut builder = StatementBuilder::new(dialect);
        if let Some(template) = self.template(dialect)? {
            template.bind(options, &self.zone, &mut builder)?;
        }
        Ok(builder)
    }

    /// Returns the prepared selection. The last one is kept, since a tool asks for the same again and again.
    fn selected(&self, query: &Query, dialect: SqlDialect) -> Result<Rc<PreparedSelect>, Error> {
        if let Some(last) = &*self.selected.borrow()
            && last.is_of(query)
        {
            return Ok(Rc::clone(last));
        }
        let selected = Rc::new(PreparedSelect::new(self, dialect, query)?);
        self.selected.replace(Some(Rc::clone(&selected)));
        Ok(selected)
    }
}

impl Adapter for SqlAdapter {
    const NAME: &'static str = "sql";
    const REQUESTS: &'static [&'static str] = &["sql"];

    fn settings_schema() -> serde_json::Value {
        json!({
            "type": "object",
            "properties": {
                "connection": { "type": "string", "description": "Name of the database connection the operator granted." },
                "table": { "type": "string", "description": "A table or view; schema.table where it is not in the usual schema." },
                "schema": { "type": "string", "description": "The schema; then a dot in the table's name is part of it." },
                "query": { "type": "string", "description": "A SELECT of your own instead of a table: read-only." },
                "parameters": { "type": ["object", "string"], "description": "The parameters of the query or statement, written `:name` there: a type, or an object with type, of, required, description and example. The word `guess` takes them from what they are compared with." },
                "statement": { "type": "string", "description": "An INSERT, UPDATE, DELETE or MERGE of your own, for the operation `run`. It needs the grant \"statements\"." },
                "rows_max": { "type": "integer", "minimum": 1, "maximum": 1000, "description": "The most rows that the statement may change; one more, and nothing is. Default 1." }
            },
            "required": ["connection"],
            "oneOf": [{ "required": ["table"] }, { "required": ["query"] }, { "required": ["statement"] }],
            "additionalProperties": false
        })
    }

    fn describe(settings: &str) -> Result<Shape, Error> {
        let settings = SqlSettings::parse(settings)?;
        let dialect = SqlDialect::from_connection(&settings.connection)?;
        describe::describe(settings, dialect)
    }

    fn open(settings: &str, shape: &Shape) -> Result<Self, Error> {
        let mut settings = SqlSettings::parse(settings)?;
        if settings.guessed_query().is_some() {
            settings = settings.with_params(&shape.capabilities.params);
        }
        Ok(Self {
            settings,
            shape: shape.clone(),
            zone: Zone::from_shape(shape)?,
            dialect: OnceCell::new(),
            template: OnceCell::new(),
            statement: OnceCell::new(),
            selected: RefCell::default(),
        })
    }

    fn read(&self, query: &Query) -> Result<Page, Error> {
        select::read(self, self.dialect()?, query)
    }

    fn summarize(&self, query: &SummaryQuery) -> Result<SummaryPage, Error> {
        summarize::summarize(self, self.dialect()?, query)
    }

    fn write(&self, change: &Change) -> Result<String, Error> {
        change::write(self, self.dialect()?, change)
    }
}

weir_plugin_sdk::export!(SqlAdapter);
