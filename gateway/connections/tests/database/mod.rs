//! A SQLite database of one test.

use std::{path::Path, sync::Arc};

use weir_connections::{ConnectionConfig, sql::SqlConnection};

use crate::statements::connect;

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
    connect(ConnectionConfig::Sqlite {
        path: path.into(),
        write,
    })
}
