//! A SQLite database of one test.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use weir_connections::{
    ConnectionConfig, ConnectionError, ConnectionHandle, ConnectionRegistry,
    sql::{SqlConnection, SqlRows, SqlStatement},
};

pub(crate) fn statement<'a>(text: &'a str, parameters: &'a str, limit: u32) -> SqlStatement<'a> {
    SqlStatement {
        text,
        parameters,
        limit,
        options: None,
        deadline: Instant::now() + Duration::from_secs(20),
    }
}

pub(crate) async fn query(
    sql: &SqlConnection,
    text: &str,
    parameters: &str,
    limit: u32,
) -> Result<SqlRows, ConnectionError> {
    sql.query(statement(text, parameters, limit)).await
}

pub(crate) fn database(script: &str, write: bool) -> (tempfile::TempDir, Arc<SqlConnection>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data.db");
    create(&path, script);
    (folder, open(&path, write))
}

pub(crate) fn create(path: &Path, script: &str) {
    rusqlite::Connection::open(path)
        .expect("opened")
        .execute_batch(script)
        .expect("created");
}

pub(crate) fn open(path: &Path, write: bool) -> Arc<SqlConnection> {
    let configs = BTreeMap::from([(
        "db".to_owned(),
        ConnectionConfig::Sqlite {
            path: path.into(),
            write,
        },
    )]);
    match ConnectionRegistry::new(&configs, Path::new("/"))
        .expect("a database")
        .get("db")
    {
        Some(ConnectionHandle::Sql(sql)) => sql.clone(),
        _ => unreachable!("it is a database"),
    }
}
