//! PostgreSQL connections against a real server: what may run, what survives, what comes out.

mod server;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use server::Server;
use weir_connections::{
    Connection, ConnectionConfig, ConnectionError, Connections,
    sql::{Rows, SqlConnection, Statement},
};

#[tokio::test]
async fn a_database_is_read_and_written_under_its_rules() {
    let server = Server::started();
    server.script(
        "CREATE TYPE mood AS ENUM ('ok', 'bad');
         CREATE DOMAIN short AS varchar(5);
         CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL UNIQUE, g int CHECK (g < 10), small smallint);
         CREATE TABLE c (t int REFERENCES t);
         INSERT INTO t VALUES (1,'a',1),(2,'b',1); INSERT INTO c VALUES (1);",
    );
    let sql = open(&server.url(), true);
    values(&sql).await;
    rules(&sql).await;
    writes(&sql).await;
    interrupts(&sql).await;
    nothing_survives(&server).await;
    read_only(&server).await;
    alterations(&server, &sql).await;
    recovery(&server, &sql).await;
}

async fn values(sql: &SqlConnection) {
    let text = "SELECT true AS b, 1::int2 AS i2, -2 AS i4, 9007199254740993::int8 AS i8, 0.1::float4 AS f4, 0.1::float8 AS f8,
        'NaN'::float8 AS nan, 'a\"é😀' AS s, ''::varchar AS empty, 'x'::char(3) AS padded, NULL::int AS n, 'ok'::mood AS e,
        'dom'::short AS d, '{\"a\": 1.50}'::json AS j, '{\"b\":[1,2]}'::jsonb AS jb, '\\x00ff'::bytea AS y, 12.50::numeric::text AS m,
        '2024-05-06 07:08:09+02'::timestamptz::text AS at";
    assert_eq!(
        query(sql, text, "[]", 9).await.expect("values").records,
        concat!(
            r#"[{"b":true,"i2":1,"i4":-2,"i8":9007199254740993,"f4":0.1,"f8":0.1,"nan":null,"s":"a\"é😀","empty":"","padded":"x  ","#,
            r#""n":null,"e":"ok","d":"dom","j":{"a": 1.50},"jb":{"b": [1, 2]},"y":"AP8=","m":"12.50","at":"2024-05-06 05:08:09+00"}]"#
        )
    );
    let parameters = r#"[null, 7, 9007199254740993, 1.50, "x'; DROP TABLE t --", true, [1,"a"]]"#;
    let text = "SELECT $1::text AS a, $2::int4 AS b, $3::int8 AS c, $4::numeric::text AS d, $5::text AS e, $6::bool AS f, $7::jsonb AS g";
    assert_eq!(
        query(sql, text, parameters, 9).await.expect("bound").records,
        r#"[{"a":null,"b":7,"c":9007199254740993,"d":"1.50","e":"x'; DROP TABLE t --","f":true,"g":[1, "a"]}]"#
    );
    let rows = query(sql, "SELECT * FROM generate_series(1, 100000) AS n", "[]", 2).await.expect("cut");
    assert_eq!((rows.records.as_str(), rows.truncated), (r#"[{"n":1},{"n":2}]"#, true));
    assert_eq!(query(sql, "SELECT id FROM t WHERE false", "[]", 2).await.expect("none").records, "[]");
    let error = query(sql, "SELECT now() AS at", "[]", 9).await.expect_err("to be cast");
    assert_eq!((error.code, error.field.as_deref()), ("upstream_error", Some("at")));
    assert_eq!(query(sql, "SELECT repeat('x', 9000000) AS a", "[]", 9).await.expect_err("large").code, "too_large");
    assert_eq!(query(sql, "SELECT $1::text AS a", r#"["a\u0000b"]"#, 9).await.expect_err("NUL").code, "invalid");
    let described = Statement {
        options: Some(r#"{"describe":true}"#),
        ..statement("SELECT id, v, ARRAY[1] AS a, 'ok'::mood AS m FROM t", "[]", 0)
    };
    assert_eq!(
        sql.query(described).await.expect("described").records,
        concat!(
            r#"[{"name":"id","type":"int4","nullable":true},{"name":"v","type":"text","nullable":true},"#,
            r#"{"name":"a","type":"int4[]","nullable":true},{"name":"m","type":"enum","nullable":true}]"#
        )
    );
}

async fn rules(sql: &SqlConnection) {
    for text in [
        "INSERT INTO t VALUES (9,'z')",
        "UPDATE t SET v = 'z'",
        "DELETE FROM t",
        "WITH d AS (DELETE FROM t RETURNING id) SELECT * FROM d",
        "SELECT * INTO u FROM t",
        "SELECT id FROM t FOR UPDATE",
        "CREATE TABLE u (a int)",
        "COMMIT",
        "COMMIT; DROP TABLE t",
        "SET statement_timeout = 0",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        "COPY t TO STDOUT",
        "COPY t TO PROGRAM 'touch /tmp/x'",
        "DO $$ BEGIN DELETE FROM t; END $$",
        "PREPARE p AS SELECT 1",
        "LISTEN x",
        "LOAD 'x'",
        "DISCARD ALL",
        "CALL x()",
        "BEGIN",
        "",
        "-- only a comment",
        "SELECT nextval('s')",
        "SELECT set_config('transaction_read_only', 'off', false)",
    ] {
        let error = query(sql, text, "[]", 9).await.expect_err(text);
        assert!(matches!(error.code, "denied" | "source_changed" | "upstream_error"), "{text}: {error:?}");
        let message = error.message.to_lowercase();
        assert!(!message.contains("select") && !message.contains("weir"), "{text}: {error:?}");
    }
    for text in ["SELECT 1; SELECT 2", "SELECT 1; DELETE FROM t"] {
        assert_eq!(query(sql, text, "[]", 9).await.expect_err(text).code, "upstream_error", "{text}");
    }
    assert_eq!(query(sql, "SELECT count(*) AS n FROM t", "[]", 9).await.expect("whole").records, r#"[{"n":2}]"#);
}

async fn writes(sql: &SqlConnection) {
    let insert = statement("INSERT INTO t (id, v) VALUES ($1::int4, $2::text) RETURNING id, v", r#"[3,"c"]"#, 1);
    assert_eq!(sql.query_write(insert).await.expect("inserted").records, r#"[{"id":3,"v":"c"}]"#);
    for (text, code, field) in [
        ("INSERT INTO t (id, v) VALUES (1, 'z')", "conflict", Some("id")),
        ("INSERT INTO t (id, v) VALUES (9, 'a')", "conflict", Some("v")),
        ("INSERT INTO t (id, v) VALUES (9, NULL)", "invalid", Some("v")),
        ("INSERT INTO t (id, v, g) VALUES (9, 'z', 11)", "invalid", None),
        ("INSERT INTO t (id, v, small) VALUES (9, 'z', 70000)", "invalid", None),
        ("DELETE FROM t WHERE id = 1", "invalid", None),
        ("UPDATE t SET gone = 1", "source_changed", None),
        ("DELETE FROM gone", "source_changed", None),
        ("DROP TABLE t", "denied", None),
        ("SELECT 1", "denied", None),
    ] {
        let error = sql.execute(statement(text, "[]", 1)).await.expect_err(text);
        assert_eq!((error.code, error.field.as_deref()), (code, field), "{text}: {error:?}");
    }
    let one = |text| Statement { options: Some(r#"{"expect_rows":1,"write":true}"#), ..statement(text, "[]", 9) };
    assert_eq!(sql.execute(one("UPDATE t SET g = 2 WHERE g = 1")).await.expect_err("two").code, "conflict");
    assert_eq!(sql.execute(one("UPDATE t SET g = 2 WHERE g = 7")).await.expect_err("none").code, "not_found");
    assert_eq!(sql.execute(one("UPDATE t SET g = 3 WHERE id = 2")).await.expect("one"), 1);
    let rows = query(sql, "SELECT id, g FROM t ORDER BY id", "[]", 9).await.expect("rows");
    assert_eq!(rows.records, r#"[{"id":1,"g":1},{"id":2,"g":3},{"id":3,"g":null}]"#);
}

async fn interrupts(sql: &SqlConnection) {
    let begin = Instant::now();
    let soon = Statement {
        deadline: begin + Duration::from_millis(150),
        ..statement("SELECT pg_sleep(60)::text AS s", "[]", 1)
    };
    assert_eq!(sql.query(soon).await.expect_err("too slow").code, "timeout");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    // More lost readers than connections, each of which would hold one for a minute.
    for _ in 0..25 {
        let lost = sql.query(statement("SELECT pg_sleep(60)::text AS lost", "[]", 1));
        assert!(tokio::time::timeout(Duration::from_millis(20), lost).await.is_err());
    }
    let begin = Instant::now();
    let running = "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE '%AS lost' AND state = 'active'";
    while query(sql, running, "[]", 1).await.expect("free again").records != r#"[{"n":0}]"# {
        assert!(begin.elapsed() < Duration::from_secs(30), "reads nobody waits for go on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let slow = "INSERT INTO t SELECT 50, 'slow' FROM pg_sleep(0.3)";
    let lost = sql.execute(statement(slow, "[]", 0));
    assert!(tokio::time::timeout(Duration::from_millis(50), lost).await.is_err());
    let begin = Instant::now();
    while query(sql, "SELECT v FROM t WHERE id = 50", "[]", 1).await.expect("read").records != r#"[{"v":"slow"}]"# {
        assert!(begin.elapsed() < Duration::from_secs(30), "the write was lost");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// On a pool of one, the next call meets the same session.
async fn nothing_survives(server: &Server) {
    let config = ConnectionConfig::Postgresql { url: server.url(), write: false, pool_max: Some(1) };
    let sql = connection(config);
    query(&sql, "SELECT set_config('search_path', 'evil', false) AS s, pg_advisory_lock(7)::text AS l", "[]", 1)
        .await
        .expect("set");
    let after =
        "SELECT current_setting('search_path') AS s, (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS l";
    let records = query(&sql, after, "[]", 1).await.expect("read").records;
    assert_eq!(records, r#"[{"s":"\"$user\", public","l":0}]"#);
}

async fn read_only(server: &Server) {
    let sql = open(&server.url(), false);
    assert_eq!(sql.execute(statement("DELETE FROM t", "[]", 0)).await.expect_err("read-only").code, "denied");
}

async fn alterations(server: &Server, sql: &SqlConnection) {
    let read = || query(sql, "SELECT * FROM t WHERE id = 1", "[]", 1);
    assert_eq!(read().await.expect("before").records, r#"[{"id":1,"v":"a","g":1,"small":null}]"#);
    server.script("ALTER TABLE t ADD COLUMN added int DEFAULT 5");
    assert_eq!(read().await.expect("after").records, r#"[{"id":1,"v":"a","g":1,"small":null,"added":5}]"#);
}

async fn recovery(server: &Server, sql: &SqlConnection) {
    let read = || query(sql, "SELECT 1 AS a", "[]", 1);
    read().await.expect("up");
    server.stop();
    let begin = Instant::now();
    assert_eq!(read().await.expect_err("down").code, "unavailable");
    assert!(begin.elapsed() < Duration::from_secs(20));
    server.start();
    assert_eq!(read().await.expect("up again").records, r#"[{"a":1}]"#);
}

#[tokio::test]
async fn a_server_that_never_was_is_unavailable_and_not_named() {
    for url in ["postgresql://user:hunter2@127.0.0.1:1/db", "postgresql://user:hunter2@no-such-host.invalid/db"] {
        let sql = open(url, false);
        let begin = Instant::now();
        let error = query(&sql, "SELECT 1 AS a", "[]", 1).await.expect_err(url);
        assert_eq!(error.code, "unavailable");
        assert!(begin.elapsed() < Duration::from_secs(20));
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        assert!(!error.message.contains("127.0.0.1") && !error.message.contains("host"), "{error:?}");
    }
    let wrong = BTreeMap::from([(
        "db".to_owned(),
        ConnectionConfig::Postgresql { url: "hunter2".into(), write: false, pool_max: None },
    )]);
    let problems = Connections::new(&wrong, Path::new("/")).err().expect("refused");
    assert!(!problems[0].1.contains("hunter2"));
}

fn statement<'a>(text: &'a str, parameters: &'a str, limit: u32) -> Statement<'a> {
    Statement { text, parameters, limit, options: None, deadline: Instant::now() + Duration::from_secs(20) }
}

async fn query(sql: &SqlConnection, text: &str, parameters: &str, limit: u32) -> Result<Rows, ConnectionError> {
    sql.query(statement(text, parameters, limit)).await
}

fn open(url: &str, write: bool) -> Arc<SqlConnection> {
    connection(ConnectionConfig::Postgresql { url: url.to_owned(), write, pool_max: None })
}

fn connection(config: ConnectionConfig) -> Arc<SqlConnection> {
    let configs = BTreeMap::from([("db".to_owned(), config)]);
    match Connections::new(&configs, Path::new("/")).expect("a database").get("db") {
        Some(Connection::Sql(sql)) => sql.clone(),
        _ => unreachable!("it is a database"),
    }
}
