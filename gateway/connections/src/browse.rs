//! Looks at a connection itself: whether it leads anywhere, and what there is to choose from.

mod foreign_keys;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::{
    ConnectionError, ConnectionHandle, FailureCode,
    files::FileRoot,
    http::{HttpConnection, HttpRequest},
    sql::{SqlConnection, SqlStatement},
};

pub use foreign_keys::ForeignKey;

/// Sources in one answer.
const PAGE_MAX: u32 = 200;
/// Files that the `sheet` adapter reads.
const SHEET_ENDINGS: [&str; 4] = [".csv", ".tsv", ".xlsx", ".ods"];
/// The time that one walk of a folder may take.
const WALK_MAX: Duration = Duration::from_secs(5);

/// Tables that a read may select from. A name that has a point is one with its schema.
const SQLITE: &str = "SELECT name, kind FROM (SELECT CASE WHEN instr(name, '.') THEN 'main.' || name ELSE name END AS name, \
     type AS kind FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
     AND name NOT IN (SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow')) \
     WHERE name > ?1 AND instr(lower(name), lower(?2)) > 0 ORDER BY name";
const POSTGRESQL: &str = "SELECT name, kind FROM (SELECT CASE WHEN n.nspname = current_schema() AND position('.' in c.relname) = 0 \
     THEN c.relname::text ELSE n.nspname || '.' || c.relname END COLLATE \"C\" AS name, \
     CASE WHEN c.relkind IN ('v', 'm') THEN 'view' ELSE 'table' END AS kind \
     FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
     AND n.nspname NOT LIKE 'pg\\_%' AND pg_catalog.has_table_privilege(c.oid, 'SELECT')) AS readable \
     WHERE name > $1::text AND position(lower($2::text) in lower(name)) > 0 ORDER BY name";

/// `information_schema` shows what the account may read of; the place of a parameter is its turn in the text.
const MYSQL: &str = "SELECT CONVERT(name USING utf8mb4) AS name, kind FROM (SELECT CASE WHEN TABLE_SCHEMA = DATABASE() \
     AND LOCATE('.', TABLE_NAME) = 0 THEN TABLE_NAME ELSE CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) END AS name, \
     CASE WHEN TABLE_TYPE IN ('VIEW', 'SYSTEM VIEW') THEN 'view' ELSE 'table' END AS kind FROM information_schema.TABLES \
     WHERE TABLE_TYPE IN ('BASE TABLE', 'VIEW', 'SYSTEM VERSIONED') \
     AND TABLE_SCHEMA NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')) AS readable \
     WHERE CAST(CONVERT(name USING utf8mb4) AS BINARY) > CAST(? AS BINARY) AND LOCATE(LOWER(?), LOWER(name)) > 0 \
     ORDER BY CAST(CONVERT(name USING utf8mb4) AS BINARY)";

/// The search for sources.
#[derive(Clone, Copy, Debug)]
pub struct SourceQuery<'a> {
    /// A part of the name, in any case; empty: all.
    pub text: &'a str,
    /// The name after which the answer begins; empty: at the first.
    pub after: &'a str,
    pub deadline: Instant,
}

/// A table, a view or a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundSource {
    pub name: String,
    pub kind: String,
}

/// Some sources, by name.
#[derive(Clone, Debug, Default)]
pub struct SourcePage {
    pub sources: Vec<FoundSource>,
    /// The name after which there are more.
    pub next: Option<String>,
}

impl ConnectionHandle {
    /// Asks whether the other end answers.
    pub async fn check(&self, deadline: Instant) -> Result<(), ConnectionError> {
        match self {
            Self::Sql(sql) => {
                let statement = SqlStatement {
                    text: "SELECT 1 AS one",
                    parameters: "[]",
                    limit: 1,
                    options: None,
                    deadline,
                };
                sql.query(statement).await.map(drop)
            }
            Self::Files(files) => files.check().await,
            Self::Http(http) => check_service(http, deadline).await,
        }
    }

    /// Returns one page of the connection's content.
    pub async fn sources(&self, query: SourceQuery<'_>) -> Result<SourcePage, ConnectionError> {
        match self {
            Self::Sql(sql) => tables(sql, query).await,
            Self::Files(files) => sheets(files, query).await,
            Self::Http(_) => Err(ConnectionError::new(
                FailureCode::Unsupported,
                "a web service does not list its content: name one of its paths",
            )),
        }
    }
}

/// Checks a service. It counts as reachable whatever it answers to the path, unless it refuses the credential, or has failed.
async fn check_service(http: &HttpConnection, deadline: Instant) -> Result<(), ConnectionError> {
    let request = HttpRequest {
        method: "HEAD".to_owned(),
        path: String::new(),
        query: Vec::new(),
        query_encoded: None,
        headers: Vec::new(),
        trace: None,
        body: None,
    };
    let status = http.send(request, deadline).await?.status;
    match status {
        401 | 403 | 407 => Err(ConnectionError::new(
            FailureCode::Forbidden,
            format!("the web service answers with {status}: look at the credential in `headers`"),
        )),
        500.. if status != 501 => Err(ConnectionError::new(
            FailureCode::UpstreamError,
            format!("the web service answers with {status}"),
        )),
        _ => Ok(()),
    }
}

async fn tables(
    sql: &SqlConnection,
    query: SourceQuery<'_>,
) -> Result<SourcePage, ConnectionError> {
    let parameters = serde_json::json!([query.after, query.text]).to_string();
    let statement = SqlStatement {
        text: match sql.dialect() {
            "sqlite" => SQLITE,
            "mysql" => MYSQL,
            _ => POSTGRESQL,
        },
        parameters: &parameters,
        limit: PAGE_MAX,
        options: None,
        deadline: query.deadline,
    };
    let rows = sql.query(statement).await?;
    let sources: Vec<FoundSource> = serde_json::from_str(&rows.records).map_err(|error| {
        ConnectionError::new(FailureCode::UpstreamError, "the database lists no tables")
            .details(error)
    })?;
    let last = sources.last().map(|source| source.name.clone());
    Ok(SourcePage {
        next: last.filter(|_| rows.truncated),
        sources,
    })
}

/// Returns `true` for the name of a file that the `sheet` adapter reads.
pub fn is_sheet(path: &str) -> bool {
    let path = path.to_lowercase();
    SHEET_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// Looks for spreadsheets; a page of files without any is passed over.
async fn sheets(files: &FileRoot, query: SourceQuery<'_>) -> Result<SourcePage, ConnectionError> {
    let text = query.text.to_lowercase();
    let fits = |path: &String| is_sheet(path) && path.to_lowercase().contains(&text);
    let mut page = SourcePage::default();
    let mut after = (!query.after.is_empty()).then(|| query.after.to_owned());
    loop {
        let listing = files.list("", after.as_deref()).await?;
        for name in listing.paths.into_iter().filter(fits) {
            if page.sources.len() == PAGE_MAX as usize {
                page.next = page.sources.last().map(|last| last.name.clone());
                return Ok(page);
            }
            let kind = "file".to_owned();
            page.sources.push(FoundSource { name, kind });
        }
        if listing.next.is_none() {
            return Ok(page);
        }
        // The remaining time must be enough for another walk; the next page continues from there.
        if Instant::now() + WALK_MAX >= query.deadline {
            page.next = listing.next;
            return Ok(page);
        }
        after = listing.next;
    }
}
