//! The settings of a collection.

use weir_plugin_sdk::Error;
use weir_plugin_sdk::adapter::parse_settings;

#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) connection: String,
    table: Option<String>,
    schema: Option<String>,
    query: Option<String>,
}

/// The table or query that records are selected from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    Table {
        schema: Option<&'a str>,
        table: &'a str,
    },
    Query(&'a str),
}

impl Settings {
    pub(crate) fn parse(settings: &str) -> Result<Self, Error> {
        let settings: Self = parse_settings(settings)?;
        let problem = match (&settings.table, &settings.query, &settings.schema) {
            (None, None, _) => Some("either `table` or `query` is needed"),
            (Some(_), Some(_), _) => Some("`table` and `query` exclude each other"),
            (None, Some(_), Some(_)) => Some("`schema` goes with `table`"),
            _ if settings
                .names()
                .any(|name| name.is_empty() || name.contains('\0')) =>
            {
                Some("a name is empty or not one")
            }
            _ => None,
        };
        match problem {
            Some(problem) => {
                Err(Error::invalid(format!("The settings are wrong: {problem}.")).field("settings"))
            }
            None => Ok(settings),
        }
    }

    pub(crate) fn source(&self) -> Source<'_> {
        if let Some(query) = &self.query {
            return Source::Query(query.trim().trim_end_matches(';'));
        }
        let table = self.table.as_deref().unwrap_or_default();
        match (self.schema.as_deref(), table.split_once('.')) {
            (Some(schema), _) => Source::Table {
                schema: Some(schema),
                table,
            },
            (None, Some((schema, table))) => Source::Table {
                schema: Some(schema),
                table,
            },
            (None, None) => Source::Table {
                schema: None,
                table,
            },
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self.source() {
            Source::Table { table, .. } => table,
            Source::Query(_) => "query",
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        [&self.table, &self.schema, &self.query]
            .into_iter()
            .flatten()
            .map(String::as_str)
    }
}

impl Source<'_> {
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
            // The query stands on lines of its own, since it may end in a comment.
            Self::Query(query) => format!("(\n{query}\n) AS weir_query"),
        }
    }
}

/// Quotes an identifier, in the spelling both dialects share.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
