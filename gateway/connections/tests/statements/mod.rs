//! Statements of a test, and the connection that runs them.

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

pub(crate) fn connect(config: ConnectionConfig) -> Arc<SqlConnection> {
    let configs = BTreeMap::from([("db".to_owned(), config)]);
    match ConnectionRegistry::new(&configs, Path::new("/"))
        .expect("a database")
        .get("db")
    {
        Some(ConnectionHandle::Sql(sql)) => sql.clone(),
        _ => unreachable!("it is a database"),
    }
}
