//! The settings of a collection.

use weir_plugin_sdk::adapter::parse_settings;
use weir_plugin_sdk::shape::Param;
use weir_plugin_sdk::{Error, serde_json};
use weir_statements::{SqlSyntax, StatementToken, tokens};

use crate::dialect::SqlDialect;
use crate::parameters::{DeclaredParameters, SqlTemplate};
use crate::written::WrittenStatement;

/// The most rows that one statement may be let to change.
const ROWS_MAX: u32 = 1_000;

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SqlSettings {
    pub(crate) connection: String,
    table: Option<String>,
    schema: Option<String>,
    query: Option<String>,
    parameters: Option<DeclaredParameters>,
    statement: Option<String>,
    rows_max: Option<u32>,
    /// Values for the placeholders of a query whose parameters have become such.
    #[serde(skip)]
    pub(crate) examples: Vec<serde_json::Value>,
}

/// The table or query that records are selected from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SqlSource<'a> {
    Table {
        schema: Option<&'a str>,
        table: &'a str,
    },
    Query(&'a str),
}

impl SqlSettings {
    pub(crate) fn parse(settings: &str) -> Result<Self, Error> {
        let settings: Self = parse_settings(settings)?;
        let is_statement = settings.statement.is_some();
        // Each fault with the setting that has it.
        let problem = match (&settings.table, &settings.query, &settings.schema) {
            (None, None, None) if is_statement => None,
            (None, None, None) => Some((
                "settings",
                "either `table`, `query` or `statement` is needed",
            )),
            _ if is_statement => Some((
                "statement",
                "`statement` excludes `table`, `schema` and `query`",
            )),
            (None, None, _) => Some(("schema", "either `table` or `query` is needed")),
            (Some(_), Some(_), _) => {
                Some(("query", "`table` and `query` exclude each other: keep one"))
            }
            (None, Some(_), Some(_)) => Some((
                "schema",
                "`schema` goes with `table`: drop it next to a `query`",
            )),
            (Some(_), ..) if settings.parameters.is_some() => Some((
                "parameters",
                "`parameters` goes with `query` or `statement`: drop it next to a `table`",
            )),
            _ => settings
                .unnamed()
                .map(|key| (key, "a name is empty or not one")),
        };
        let problem = problem.or(match settings.rows_max {
            Some(_) if !is_statement => Some((
                "rows_max",
                "`rows_max` goes with `statement`: a tool has its own `limits`",
            )),
            Some(most) if !(1..=ROWS_MAX).contains(&most) => {
                Some(("rows_max", "`rows_max` is a number from 1 to 1,000"))
            }
            _ => None,
        });
        match problem {
            Some((key, problem)) => {
                Err(Error::invalid(format!("The settings are wrong: {problem}.")).field(key))
            }
            None => Ok(settings),
        }
    }

    pub(crate) fn source(&self) -> SqlSource<'_> {
        if let Some(query) = &self.query {
            return SqlSource::Query(bare_query(query));
        }
        let table = self.table.as_deref().unwrap_or_default();
        match (self.schema.as_deref(), table.split_once('.')) {
            (Some(schema), _) => SqlSource::Table {
                schema: Some(schema),
                table,
            },
            (None, Some((schema, table))) => SqlSource::Table {
                schema: Some(schema),
                table,
            },
            (None, None) => SqlSource::Table {
                schema: None,
                table,
            },
        }
    }

    /// Returns the query with its parameters as placeholders; `None` for one that declares none, which is taken as it is.
    pub(crate) fn template(&self, dialect: SqlDialect) -> Result<Option<SqlTemplate>, Error> {
        match (self.source(), &self.parameters) {
            (SqlSource::Query(query), Some(declared)) => {
                let template = SqlTemplate::parse(query, declared, dialect);
                template
                    .map(Some)
                    .map_err(|error| name_setting("query", error))
            }
            _ => Ok(None),
        }
    }

    /// Returns the query if its parameters are to be guessed.
    pub(crate) fn guessed_query(&self) -> Option<&str> {
        let query = self.query.as_deref()?;
        let parameters = self.parameters.as_ref()?;
        parameters.is_guess().then_some(query)
    }

    /// Returns the settings with the parameters that a shape has.
    pub(crate) fn with_params(self, params: &[Param]) -> Self {
        Self {
            parameters: Some(DeclaredParameters::from_params(params)),
            ..self
        }
    }

    /// Returns the statement that writes, if that is what the collection is.
    pub(crate) fn statement(&self, dialect: SqlDialect) -> Result<Option<WrittenStatement>, Error> {
        let Some(text) = &self.statement else {
            return Ok(None);
        };
        let none = DeclaredParameters::default();
        let declared = self.parameters.as_ref().unwrap_or(&none);
        let statement = WrittenStatement::parse(text, declared, dialect);
        statement
            .map(Some)
            .map_err(|error| name_setting("statement", error))
    }

    /// Returns how many rows a statement may change.
    pub(crate) fn rows_max(&self) -> u32 {
        self.rows_max.unwrap_or(1)
    }

    /// Returns the settings for a table of the same connection.
    pub(crate) fn with_table(&self, table: &str) -> Self {
        Self {
            table: Some(table.to_owned()),
            statement: None,
            ..self.clone()
        }
    }

    /// Returns the settings to describe, with placeholders in the query and a value for each.
    pub(crate) fn with_placeholders(self, template: &SqlTemplate) -> Result<Self, Error> {
        let (query, examples) = template.described()?;
        Ok(Self {
            query: Some(query),
            parameters: None,
            examples,
            ..self
        })
    }

    pub(crate) fn name(&self) -> &str {
        if self.statement.is_some() {
            return "statement";
        }
        match self.source() {
            SqlSource::Table { table, .. } => table,
            SqlSource::Query(_) => "query",
        }
    }

    /// Returns the setting whose text is neither a name nor a statement.
    fn unnamed(&self) -> Option<&'static str> {
        let texts = [
            ("table", &self.table),
            ("schema", &self.schema),
            ("query", &self.query),
            ("statement", &self.statement),
        ];
        let is_none = |text: &Option<String>| {
            let text = text.as_deref();
            text.is_some_and(|text| text.is_empty() || text.contains('\0'))
        };
        let mut texts = texts.into_iter();
        texts.find(|(_, text)| is_none(text)).map(|(key, _)| key)
    }
}

/// Returns a query without comments in front of it, since a connection recognizes it by its first word, and without a
/// semicolon at its end and comments after that, since it becomes a part of another statement.
fn bare_query(query: &str) -> &str {
    let query = query.trim().trim_end_matches(';');
    if !query.starts_with("--") && !query.starts_with("/*") && !query.contains(';') {
        return query;
    }
    // All databases read comments alike, but for some that MySQL runs.
    let Ok(all) = tokens(query, SqlSyntax::Postgresql) else {
        return query;
    };
    let is_run = |token: &StatementToken<'_>| {
        token.is_code() || token.text.starts_with("/*!") || token.text.starts_with("/*M!")
    };
    let begin = all.iter().find(|token| is_run(token));
    let last = all
        .iter()
        .rposition(|token| is_run(token) && !token.is_symbol(";"));
    let (Some(begin), Some(last)) = (begin, last) else {
        return query;
    };
    let end = all[last..].iter().find(|token| token.is_symbol(";"));
    query[begin.at..end.map_or(query.len(), |end| end.at)].trim_end()
}

/// Names the setting at fault in an error about the text of a query or a statement.
fn name_setting(key: &str, error: Error) -> Error {
    match error.field.as_deref() {
        Some("settings") => error.field(key),
        _ => error,
    }
}

impl SqlSource<'_> {
    /// Returns a FROM clause.
    pub(crate) fn sql(self) -> String {
        match self {
            Self::Table {
                schema: Some(schema),
                table,
            } => format!("{}.{}", quoted(schema), quoted(table)),
            Self::Table {
                schema: None,
                table,
            } => quoted(table),
            // The query is on separate lines, since it may end in a comment.
            Self::Query(query) => format!("(\n{query}\n) AS weir_query"),
        }
    }
}

/// Quotes an identifier, in the spelling all dialects share.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\"").replace('\0', ""))
}
