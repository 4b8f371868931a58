//! Checks what a guest may reach: nothing that was not granted, and what was granted only for its purpose.

use std::{collections::BTreeMap, time::Duration};

use weir_connections::ConnectionConfig;
use weir_plugin_host::{AdapterFailure, ConnectionGrant};

use crate::workbench::{Workbench, collection, config, context, query, sqlite};

/// Makes a database with a table of one row, and a folder with one file.
async fn bench(grants: &[(&str, ConnectionGrant)], write: bool) -> Workbench {
    let sources = tempfile::TempDir::new().expect("a folder").keep();
    let database = sources.join("data.sqlite");
    let tables = rusqlite::Connection::open(&database).expect("a database");
    tables
        .execute_batch("CREATE TABLE t (a UNIQUE)")
        .expect("a table");
    std::fs::create_dir(sources.join("root")).expect("a folder");
    std::fs::write(sources.join("root/file"), b"old").expect("writable");
    let connections = BTreeMap::from([
        ("db".to_owned(), sqlite(&database, write)),
        (
            "root".to_owned(),
            ConnectionConfig::Files {
                path: sources.join("root"),
                write,
                uploads: false,
            },
        ),
    ]);
    Workbench::with(config(grants), connections).await
}

#[tokio::test]
async fn without_a_grant_everything_is_denied() {
    let bench = bench(&[], true).await;
    for options in [
        r#"{"do": "query"}"#,
        r#"{"do": "execute"}"#,
        r#"{"do": "get"}"#,
        r#"{"do": "post"}"#,
        r#"{"do": "stat", "connection": "root"}"#,
        r#"{"do": "read-file", "connection": "root"}"#,
        r#"{"do": "replace", "connection": "root"}"#,
        // An unknown name answers the same.
        r#"{"do": "query", "connection": "nowhere"}"#,
    ] {
        assert_eq!(bench.code(options).await, "denied", "{options}");
    }
}

#[tokio::test]
async fn a_read_grant_reads_and_does_not_write() {
    let bench = bench(
        &[
            ("db", ConnectionGrant::Read),
            ("root", ConnectionGrant::Read),
        ],
        true,
    )
    .await;
    let rows = bench.records(r#"{"do": "query"}"#).await;
    assert!(rows.contains("one"), "{rows}");
    assert_eq!(
        bench.records(r#"{"do": "query-many", "count": 20}"#).await,
        r#"[{"asked":20,"good":20}]"#
    );
    assert_eq!(
        bench.records(r#"{"do": "query-many", "count": 65}"#).await,
        r#"[{"asked":65,"good":0}]"#
    );
    assert_eq!(
        bench
            .records(r#"{"do": "read-file", "connection": "root"}"#)
            .await,
        r#"[{"length":3}]"#
    );
    for options in [
        r#"{"do": "execute", "text": "INSERT INTO t VALUES (9)"}"#,
        r#"{"do": "query", "text": "INSERT INTO t VALUES (9)", "write": true}"#,
        r#"{"do": "replace", "connection": "root"}"#,
    ] {
        let failure = bench.write(options).await.expect_err(options);
        assert!(
            matches!(&failure.failure, AdapterFailure::Guest(error) if error.code == "denied"),
            "{failure:?}"
        );
        assert!(!failure.handed_over, "{options}");
    }
    // The wrong kind of connection is not a way round either.
    assert_eq!(
        bench.code(r#"{"do": "query", "connection": "root"}"#).await,
        "invalid"
    );
    assert_eq!(
        bench.code(r#"{"do": "get", "connection": "db"}"#).await,
        "invalid"
    );
}

#[tokio::test]
async fn only_a_write_writes_and_its_outcome_is_known() {
    let bench = bench(
        &[
            ("db", ConnectionGrant::Write),
            ("root", ConnectionGrant::Write),
        ],
        true,
    )
    .await;
    let insert = r#"{"do": "execute", "text": "INSERT INTO t VALUES (1)"}"#;
    assert_eq!(
        bench.code(insert).await,
        "denied",
        "a read is refused although the plugin may write"
    );
    assert_eq!(
        bench.write(insert).await.expect("written"),
        r#"[{"changed":1}]"#
    );
    let failure = bench.write(insert).await.expect_err("it is there already");
    assert!(!failure.handed_over, "the source has refused: {failure:?}");
    let trap = r#"{"do": "execute-trap", "text": "INSERT INTO t VALUES (2)"}"#;
    let failure = bench
        .write(trap)
        .await
        .expect_err("it traps after the write");
    assert!(
        matches!(failure.failure, AdapterFailure::Failed(_)) && failure.handed_over,
        "{failure:?}"
    );
    let nothing = r#"{"do": "execute-trap", "text": "UPDATE t SET a = 3 WHERE a = 99"}"#;
    assert!(
        !bench
            .write(nothing)
            .await
            .expect_err("it traps")
            .handed_over,
        "no row was changed"
    );
    bench
        .write(r#"{"do": "replace", "connection": "root"}"#)
        .await
        .expect("the grant allows it");
}

#[tokio::test]
async fn a_read_only_connection_stays_so_whatever_is_granted() {
    let bench = bench(
        &[
            ("db", ConnectionGrant::Write),
            ("root", ConnectionGrant::Write),
        ],
        false,
    )
    .await;
    for options in [
        r#"{"do": "execute", "text": "INSERT INTO t VALUES (9)"}"#,
        r#"{"do": "replace", "connection": "root"}"#,
    ] {
        let failure = bench.write(options).await.expect_err(options);
        assert!(
            matches!(failure.failure, AdapterFailure::Guest(_)) && !failure.handed_over,
            "{failure:?}"
        );
    }
}

#[tokio::test]
async fn a_slow_source_ends_with_the_callers_deadline() {
    let bench = bench(&[("db", ConnectionGrant::Read)], false).await;
    let mut context = context("tenant");
    context.deadline = std::time::Instant::now() + Duration::from_millis(150);
    let slow = r#"{"do": "query", "text": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x) FROM c"}"#;
    let started = std::time::Instant::now();
    bench
        .host
        .read(&context, &collection(), &query(slow))
        .await
        .expect_err("no end");
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}
