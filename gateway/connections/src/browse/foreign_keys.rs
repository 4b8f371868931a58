//! The foreign keys of a database, as its catalogue has them.

use std::time::Instant;

use serde::Deserialize;

use crate::{ConnectionError, ConnectionHandle, FailureCode, sql::SqlStatement};

/// Columns of foreign keys in one answer.
const COLUMNS_MAX: u32 = 20_000;

/// Tables are named as [`ConnectionHandle::sources`] names them.
const SQLITE: &str = "SELECT m.shown AS source, f.id || '' AS id, f.\"table\" AS target, f.\"from\" AS own, f.\"to\" AS other \
     FROM (SELECT name, CASE WHEN instr(name, '.') THEN 'main.' || name ELSE name END AS shown FROM sqlite_schema \
     WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\') AS m JOIN pragma_foreign_key_list(m.name) AS f \
     ORDER BY m.shown, f.id, f.seq";
const POSTGRESQL: &str = "WITH tables AS (SELECT c.oid, CASE WHEN n.nspname = current_schema() \
     AND position('.' in c.relname) = 0 THEN c.relname::text ELSE n.nspname || '.' || c.relname END AS shown \
     FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')) \
     SELECT s.shown AS source, f.conname::text AS id, t.shown AS target, a.attname::text AS own, b.attname::text AS other \
     FROM pg_catalog.pg_constraint f JOIN tables s ON s.oid = f.conrelid JOIN tables t ON t.oid = f.confrelid \
     CROSS JOIN LATERAL unnest(f.conkey, f.confkey) WITH ORDINALITY AS k (own, other, place) \
     JOIN pg_catalog.pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.own \
     JOIN pg_catalog.pg_attribute b ON b.attrelid = f.confrelid AND b.attnum = k.other \
     WHERE f.contype = 'f' ORDER BY s.shown COLLATE \"C\", f.conname::text COLLATE \"C\", k.place";

const MYSQL: &str = "SELECT CONVERT(CASE WHEN TABLE_SCHEMA = DATABASE() AND LOCATE('.', TABLE_NAME) = 0 THEN TABLE_NAME \
     ELSE CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) END USING utf8mb4) AS source, CONVERT(CONSTRAINT_NAME USING utf8mb4) AS id, \
     CONVERT(CASE WHEN REFERENCED_TABLE_SCHEMA = DATABASE() AND LOCATE('.', REFERENCED_TABLE_NAME) = 0 THEN REFERENCED_TABLE_NAME \
     ELSE CONCAT(REFERENCED_TABLE_SCHEMA, '.', REFERENCED_TABLE_NAME) END USING utf8mb4) AS target, \
     CONVERT(COLUMN_NAME USING utf8mb4) AS own, CONVERT(REFERENCED_COLUMN_NAME USING utf8mb4) AS other \
     FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL ORDER BY 1, 2, ORDINAL_POSITION";

/// Columns of a table with the key of a record of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    pub table: String,
    pub columns: Vec<String>,
    pub other_table: String,
    /// The columns there, in the same order; `None`: its primary key.
    pub other_columns: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ForeignKeyColumn {
    source: String,
    id: String,
    target: String,
    own: String,
    other: Option<String>,
}

impl ConnectionHandle {
    /// Returns the foreign keys between readable tables, by table. A connection without a database of a known kind has none.
    pub async fn foreign_keys(
        &self,
        deadline: Instant,
    ) -> Result<Vec<ForeignKey>, ConnectionError> {
        let Self::Sql(sql) = self else {
            return Ok(Vec::new());
        };
        let text = match sql.dialect() {
            "sqlite" => SQLITE,
            "postgresql" => POSTGRESQL,
            "mysql" => MYSQL,
            _ => return Ok(Vec::new()),
        };
        let statement = SqlStatement {
            text,
            parameters: "[]",
            limit: COLUMNS_MAX,
            options: None,
            deadline,
        };
        let rows = sql.query(statement).await?;
        let columns: Vec<ForeignKeyColumn> =
            serde_json::from_str(&rows.records).map_err(|error| {
                let message = "the database lists no foreign keys";
                ConnectionError::new(FailureCode::UpstreamError, message).details(error)
            })?;
        Ok(joined(&columns))
    }
}

/// Puts the columns of each key together.
fn joined(columns: &[ForeignKeyColumn]) -> Vec<ForeignKey> {
    let same_key = |one: &ForeignKeyColumn, next: &ForeignKeyColumn| {
        (&one.source, &one.id) == (&next.source, &next.id)
    };
    let keys = columns.chunk_by(same_key).map(|key| ForeignKey {
        table: key[0].source.clone(),
        columns: key.iter().map(|column| column.own.clone()).collect(),
        other_table: key[0].target.clone(),
        other_columns: key.iter().map(|column| column.other.clone()).collect(),
    });
    keys.collect()
}
