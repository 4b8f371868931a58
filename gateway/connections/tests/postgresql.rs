//! PostgreSQL connections against a real server: what may run, what survives, what comes out.

mod proxy;
mod server;
mod statements;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use proxy::{Proxy, Spoil};
use server::Server;
use statements::{connect, query, statement};
use weir_connections::{
    ConnectionConfig, ConnectionRegistry,
    sql::{SqlConnection, SqlStatement},
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
        query(sql, text, parameters, 9)
            .await
            .expect("bound")
            .records,
        r#"[{"a":null,"b":7,"c":9007199254740993,"d":"1.50","e":"x'; DROP TABLE t --","f":true,"g":[1, "a"]}]"#
    );
    let rows = query(
        sql,
        "SELECT * FROM generate_series(1, 100000) AS n",
        "[]",
        2,
    )
    .await
    .expect("cut");
    assert_eq!(
        (rows.records.as_str(), rows.truncated),
        (r#"[{"n":1},{"n":2}]"#, true)
    );
    assert_eq!(
        query(sql, "SELECT id FROM t WHERE false", "[]", 2)
            .await
            .expect("none")
            .records,
        "[]"
    );
    // The server shortens a long name, and notices it before the rows are described.
    let long = format!("SELECT 1 AS {}", "n".repeat(70));
    assert_eq!(
        query(sql, &long, "[]", 9).await.expect("noticed").records,
        format!(r#"[{{"{}":1}}]"#, "n".repeat(63))
    );
    let error = query(sql, "SELECT now() AS at", "[]", 9)
        .await
        .expect_err("to be cast");
    assert_eq!(
        (error.code.word(), error.field.as_deref()),
        ("upstream_error", Some("at"))
    );
    assert_eq!(
        query(sql, "SELECT repeat('x', 9000000) AS a", "[]", 9)
            .await
            .expect_err("large")
            .code
            .word(),
        "too_large"
    );
    let bare = "SELECT FROM generate_series(1, 3000000)";
    assert_eq!(
        query(sql, bare, "[]", u32::MAX)
            .await
            .expect_err("of no columns")
            .code
            .word(),
        "too_large"
    );
    assert_eq!(
        query(sql, "SELECT $1::text AS a", r#"["a\u0000b"]"#, 9)
            .await
            .expect_err("NUL")
            .code
            .word(),
        "invalid"
    );
    let described = SqlStatement {
        options: Some(r#"{"describe":true}"#),
        ..statement(
            "SELECT id, v, ARRAY[1] AS a, 'ok'::mood AS m FROM t",
            "[]",
            0,
        )
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
        assert!(
            matches!(
                error.code.word(),
                "denied" | "source_changed" | "upstream_error"
            ),
            "{text}: {error:?}"
        );
        let message = error.message.to_lowercase();
        assert!(
            !message.contains("select") && !message.contains("weir"),
            "{text}: {error:?}"
        );
    }
    for text in ["SELECT 1; SELECT 2", "SELECT 1; DELETE FROM t"] {
        assert_eq!(
            query(sql, text, "[]", 9).await.expect_err(text).code.word(),
            "upstream_error",
            "{text}"
        );
    }
    assert_eq!(
        query(sql, "SELECT count(*) AS n FROM t", "[]", 9)
            .await
            .expect("whole")
            .records,
        r#"[{"n":2}]"#
    );
}

async fn writes(sql: &SqlConnection) {
    let insert = statement(
        "INSERT INTO t (id, v) VALUES ($1::int4, $2::text) RETURNING id, v",
        r#"[3,"c"]"#,
        1,
    );
    assert_eq!(
        sql.query_write(insert).await.expect("inserted").records,
        r#"[{"id":3,"v":"c"}]"#
    );
    for (text, code, field) in [
        (
            "INSERT INTO t (id, v) VALUES (1, 'z')",
            "conflict",
            Some("id"),
        ),
        (
            "INSERT INTO t (id, v) VALUES (9, 'a')",
            "conflict",
            Some("v"),
        ),
        (
            "INSERT INTO t (id, v) VALUES (9, NULL)",
            "invalid",
            Some("v"),
        ),
        (
            "INSERT INTO t (id, v, g) VALUES (9, 'z', 11)",
            "invalid",
            Some("t_g_check"),
        ),
        (
            "INSERT INTO t (id, v, small) VALUES (9, 'z', 70000)",
            "invalid",
            None,
        ),
        ("DELETE FROM t WHERE id = 1", "invalid", Some("id")),
        ("UPDATE t SET gone = 1", "source_changed", Some("gone")),
        ("DELETE FROM gone", "source_changed", None),
        (
            "UPDATE t SET g = 1 WHERE v = 1::int8",
            "source_changed",
            None,
        ),
        ("UPDATE t SET g = true", "source_changed", None),
        ("DROP TABLE t", "denied", None),
        ("SELECT 1", "denied", None),
    ] {
        let error = sql.execute(statement(text, "[]", 1)).await.expect_err(text);
        assert_eq!(
            (error.code.word(), error.field.as_deref()),
            (code, field),
            "{text}: {error:?}"
        );
    }
    let one = |text| SqlStatement {
        options: Some(r#"{"expect_rows":1,"write":true}"#),
        ..statement(text, "[]", 9)
    };
    assert_eq!(
        sql.execute(one("UPDATE t SET g = 2 WHERE g = 1"))
            .await
            .expect_err("two")
            .code
            .word(),
        "conflict"
    );
    assert_eq!(
        sql.execute(one("UPDATE t SET g = 2 WHERE g = 7"))
            .await
            .expect_err("none")
            .code
            .word(),
        "not_found"
    );
    assert_eq!(
        sql.execute(one("UPDATE t SET g = 3 WHERE id = 2"))
            .await
            .expect("one"),
        1
    );
    let rows = query(sql, "SELECT id, g FROM t ORDER BY id", "[]", 9)
        .await
        .expect("rows");
    assert_eq!(
        rows.records,
        r#"[{"id":1,"g":1},{"id":2,"g":3},{"id":3,"g":null}]"#
    );
}

async fn interrupts(sql: &SqlConnection) {
    let begin = Instant::now();
    let soon = SqlStatement {
        deadline: begin + Duration::from_millis(150),
        ..statement("SELECT pg_sleep(60)::text AS s", "[]", 1)
    };
    assert_eq!(
        sql.query(soon).await.expect_err("too slow").code.word(),
        "timeout"
    );
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
    // There are more lost readers than connections, each of which would hold one for a minute.
    for _ in 0..25 {
        let lost = sql.query(statement("SELECT pg_sleep(60)::text AS lost", "[]", 1));
        assert!(
            tokio::time::timeout(Duration::from_millis(20), lost)
                .await
                .is_err()
        );
    }
    let begin = Instant::now();
    let running = "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE '%AS lost' AND state = 'active'";
    while query(sql, running, "[]", 1)
        .await
        .expect("free again")
        .records
        != r#"[{"n":0}]"#
    {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "reads that no one waits for go on"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let slow = "INSERT INTO t SELECT 50, 'slow' FROM pg_sleep(3)";
    let lost = sql.execute(statement(slow, "[]", 0));
    assert!(
        tokio::time::timeout(Duration::from_millis(50), lost)
            .await
            .is_err()
    );
    let begin = Instant::now();
    while query(sql, "SELECT v FROM t WHERE id = 50", "[]", 1)
        .await
        .expect("read")
        .records
        != r#"[{"v":"slow"}]"#
    {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "the write was lost"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Checks, on a pool of one, that the next call meets the same session without the traces of the last.
async fn nothing_survives(server: &Server) {
    let config = ConnectionConfig::Postgresql {
        url: server.url(),
        write: false,
        pool_max: Some(1),
    };
    let sql = connect(config);
    let after = "SELECT current_setting('search_path') AS s, (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS l";
    // The second time the server keeps the statement that releases locks.
    for _ in 0..2 {
        query(
            &sql,
            "SELECT set_config('search_path', 'evil', false) AS s, pg_advisory_lock(7)::text AS l",
            "[]",
            1,
        )
        .await
        .expect("set");
        let records = query(&sql, after, "[]", 1).await.expect("read").records;
        assert_eq!(records, r#"[{"s":"\"$user\", public","l":0}]"#);
    }
    // A write that is kept leaves its rows and nothing else.
    let config = ConnectionConfig::Postgresql {
        url: server.url(),
        write: true,
        pool_max: Some(1),
    };
    let sql = connect(config);
    server.script("CREATE TABLE kept (v text); CREATE ROLE other");
    for (set, name) in [
        ("'search_path', 'evil'", "search_path"),
        ("'role', 'other'", "role"),
    ] {
        let before = query(
            &sql,
            &format!("SELECT current_setting('{name}') AS s"),
            "[]",
            1,
        )
        .await
        .expect("before");
        let write = format!("INSERT INTO kept SELECT set_config({set}, false)");
        assert_eq!(
            sql.execute(statement(&write, "[]", 0)).await.expect(&write),
            1
        );
        let after = query(
            &sql,
            &format!("SELECT current_setting('{name}') AS s"),
            "[]",
            1,
        )
        .await
        .expect("after");
        assert_eq!(after.records, before.records, "{name}");
    }
    let shadow = "WITH x AS (SELECT 'shadow'::text AS v) SELECT * INTO TEMP kept FROM x";
    sql.execute(statement(shadow, "[]", 0))
        .await
        .expect("a table of the session");
    let records = query(&sql, "SELECT v FROM kept", "[]", 9)
        .await
        .expect("the table itself")
        .records;
    assert_eq!(records, r#"[{"v":"evil"},{"v":"other"}]"#);
}

async fn read_only(server: &Server) {
    let sql = open(&server.url(), false);
    assert_eq!(
        sql.execute(statement("DELETE FROM t", "[]", 0))
            .await
            .expect_err("read-only")
            .code
            .word(),
        "denied"
    );
}

async fn alterations(server: &Server, sql: &SqlConnection) {
    let read = || query(sql, "SELECT * FROM t WHERE id = 1", "[]", 1);
    assert_eq!(
        read().await.expect("before").records,
        r#"[{"id":1,"v":"a","g":1,"small":null}]"#
    );
    server.script("ALTER TABLE t ADD COLUMN added int DEFAULT 5");
    assert_eq!(
        read().await.expect("after").records,
        r#"[{"id":1,"v":"a","g":1,"small":null,"added":5}]"#
    );
}

async fn recovery(server: &Server, sql: &SqlConnection) {
    let read = || query(sql, "SELECT 1 AS a", "[]", 1);
    read().await.expect("up");
    server.stop();
    let begin = Instant::now();
    assert_eq!(read().await.expect_err("down").code.word(), "unavailable");
    assert!(begin.elapsed() < Duration::from_secs(20));
    server.start();
    assert_eq!(read().await.expect("up again").records, r#"[{"a":1}]"#);
}

#[tokio::test]
async fn a_server_that_never_was_is_unavailable_and_not_named() {
    for url in [
        "postgresql://user:hunter2@127.0.0.1:1/db",
        "postgresql://user:hunter2@no-such-host.invalid/db",
    ] {
        let sql = open(url, false);
        let begin = Instant::now();
        let error = query(&sql, "SELECT 1 AS a", "[]", 1).await.expect_err(url);
        assert_eq!(error.code.word(), "unavailable");
        assert!(begin.elapsed() < Duration::from_secs(20));
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        assert!(
            !error.message.contains("127.0.0.1") && !error.message.contains("host"),
            "{error:?}"
        );
    }
    let wrong = BTreeMap::from([(
        "db".to_owned(),
        ConnectionConfig::Postgresql {
            url: "hunter2".into(),
            write: false,
            pool_max: None,
        },
    )]);
    let problems = ConnectionRegistry::new(&wrong, Path::new("/"))
        .err()
        .expect("refused");
    assert!(!problems[0].1.contains("hunter2"));
}

/// The requests to the server are checked: a read is one request and leaves nothing behind, whatever happens to it.
#[tokio::test]
async fn a_read_is_one_request() {
    let server = Server::started();
    server.script(
        "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a');
         CREATE FUNCTION put() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (2, 'b'); RETURN 1; END $$;
         CREATE FUNCTION exchange() RETURNS int LANGUAGE plpgsql AS $$
             DECLARE known text;
             BEGIN
                 FOR known IN SELECT name FROM pg_prepared_statements UNION SELECT 'weir_unlock' LOOP
                     BEGIN EXECUTE format('DEALLOCATE %I', known); EXCEPTION WHEN OTHERS THEN NULL; END;
                     EXECUTE format('PREPARE %I AS SELECT 1 FROM nowhere_at_all', known);
                 END LOOP;
                 RETURN 1;
             EXCEPTION WHEN undefined_table THEN
                 EXECUTE 'PREPARE weir_unlock AS DELETE FROM t'; RETURN 2;
             END $$;",
    );
    let proxy = Proxy::before(server.folder());
    let sql = alone(&proxy.url(), true);
    one_request(&proxy, &sql).await;
    failed_begin(&proxy, &sql).await;
    exchanged_statements(&sql).await;
    cut(&sql).await;
    dropped(&sql).await;
    late(&sql).await;
    dead(&server, &proxy, &sql).await;
    unknown_commit(&proxy, &sql).await;
}

async fn one_request(proxy: &Proxy, sql: &SqlConnection) {
    let read = || query(sql, "SELECT v FROM t WHERE id = $1::int4", "[1]", 1);
    // Another statement opens the session, and this one is new to it.
    process(sql).await;
    proxy.requests();
    assert_eq!(read().await.expect("read").records, r#"[{"v":"a"}]"#);
    let requests = proxy.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    let sent = String::from_utf8_lossy(&requests[0]);
    let order = [
        "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
        "SET LOCAL statement_timeout",
        "SELECT v FROM t",
        "pg_advisory_unlock_all",
        "ROLLBACK",
    ];
    let places: Vec<_> = order
        .iter()
        .map(|text| sent.find(text).expect(text))
        .collect();
    assert!(places.is_sorted(), "{sent}");
    // There is one Sync, which is last: nothing behind a failure is run.
    assert!(requests[0].ends_with(b"S\0\0\0\x04"));
    assert_eq!(
        requests[0]
            .windows(5)
            .filter(|bytes| bytes == b"S\0\0\0\x04")
            .count(),
        1
    );
}

async fn failed_begin(proxy: &Proxy, sql: &SqlConnection) {
    let put = || query(sql, "SELECT put() AS p", "[]", 1);
    assert_eq!(put().await.expect_err("READ ONLY").code.word(), "denied");
    proxy.spoil(Spoil::Begin);
    let error = put().await.expect_err("no BEGIN");
    assert_eq!(error.code.word(), "upstream_error", "{error:?}");
    assert!(error.details.expect("details").contains("BEGAN"));
    let error = sql
        .execute(statement("INSERT INTO t VALUES (3, 'c')", "[]", 0))
        .await
        .expect_err("no BEGIN");
    assert_eq!(error.code.word(), "upstream_error", "{error:?}");
    proxy.spoil(Spoil::Nothing);
    let rows = query(sql, "SELECT count(*) AS n FROM t", "[]", 1)
        .await
        .expect("read");
    assert_eq!(rows.records, r#"[{"n":1}]"#);
}

/// Checks that a function finds no statement of the session's that it could exchange, and that what it leaves behind
/// changes nothing.
async fn exchanged_statements(sql: &SqlConnection) {
    let kept = "SELECT count(*) AS n FROM pg_prepared_statements";
    let rows = query(sql, kept, "[]", 1).await.expect("counted");
    assert_eq!(rows.records, r#"[{"n":0}]"#);
    let count = || query(sql, "SELECT count(*) AS n FROM t", "[]", 1);
    let exchanged = query(sql, "SELECT exchange() AS e", "[]", 1).await;
    assert_eq!(exchanged.expect("called").records, r#"[{"e":2}]"#);
    let put = query(sql, "SELECT put() AS p", "[]", 1).await;
    assert_eq!(put.expect_err("READ ONLY").code.word(), "denied");
    assert_eq!(count().await.expect("read").records, r#"[{"n":1}]"#);
}

async fn cut(sql: &SqlConnection) {
    let before = process(sql).await;
    let some = query(sql, "SELECT generate_series(1, 1000) AS n", "[]", 2)
        .await
        .expect("cut");
    assert_eq!(
        (some.records.as_str(), some.truncated),
        (r#"[{"n":1},{"n":2}]"#, true)
    );
    assert_eq!(process(sql).await, before, "the connection is kept");
    let begin = Instant::now();
    let many = "SELECT generate_series(1, 1000000000) AS n";
    assert!(query(sql, many, "[]", 2).await.expect("cut").truncated);
    let large = "SELECT repeat('x', 1000000) AS a FROM generate_series(1, 1000000)";
    assert_eq!(
        query(sql, large, "[]", 1000)
            .await
            .expect_err("8 MiB")
            .code
            .word(),
        "too_large"
    );
    let huge = "SELECT repeat('x', 20000000) AS a";
    assert_eq!(
        query(sql, huge, "[]", 1)
            .await
            .expect_err("one row")
            .code
            .word(),
        "too_large"
    );
    let running = "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE '%generate_series%' AND state = 'active'
        AND pid <> pg_backend_pid()";
    assert_eq!(
        query(sql, running, "[]", 1).await.expect("free").records,
        r#"[{"n":0}]"#
    );
    assert!(
        begin.elapsed() < Duration::from_secs(15),
        "{:?}",
        begin.elapsed()
    );
}

async fn dropped(sql: &SqlConnection) {
    let before = process(sql).await;
    let lost = query(
        sql,
        "SELECT pg_advisory_lock(1)::text AS l, pg_sleep(60)::text AS s",
        "[]",
        1,
    );
    assert!(
        tokio::time::timeout(Duration::from_millis(100), lost)
            .await
            .is_err()
    );
    // The pool has one place: it is free once the statement was cancelled, and the session is the same.
    let begin = Instant::now();
    assert_eq!(process(sql).await, before);
    assert!(
        begin.elapsed() < Duration::from_secs(15),
        "{:?}",
        begin.elapsed()
    );
    let locks = "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory'";
    assert_eq!(
        query(sql, locks, "[]", 1).await.expect("read").records,
        r#"[{"n":0}]"#
    );
}

async fn late(sql: &SqlConnection) {
    let soon = |text| SqlStatement {
        deadline: Instant::now() + Duration::from_millis(150),
        ..statement(text, "[]", 1)
    };
    // The server counts for itself; on a machine that is busy we may come first.
    let mut counted = false;
    for _ in 0..10 {
        let error = sql
            .query(soon("SELECT pg_sleep(60)::text AS s"))
            .await
            .expect_err("late");
        assert_eq!(error.code.word(), "timeout");
        counted |= error
            .details
            .is_some_and(|details| details.contains("57014"));
    }
    assert!(counted, "the server has no statement_timeout");
    let error = sql
        .execute(soon("INSERT INTO t SELECT 9, 'late' FROM pg_sleep(60)"))
        .await
        .expect_err("late");
    assert_eq!(error.code.word(), "timeout");
    assert!(error.nothing_changed, "{error:?}");
    let refused = sql.execute(statement("INSERT INTO t VALUES (9, 'x'::nothing)", "[]", 0));
    let refused = refused.await.expect_err("refused");
    assert_eq!(refused.code.word(), "upstream_error");
    assert!(refused.nothing_changed, "{refused:?}");
    assert_eq!(
        query(sql, "SELECT id FROM t WHERE id = 9", "[]", 1)
            .await
            .expect("read")
            .records,
        "[]"
    );
}

async fn dead(server: &Server, proxy: &Proxy, sql: &SqlConnection) {
    let before = process(sql).await;
    server.script(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
    );
    tokio::time::sleep(Duration::from_millis(100)).await;
    let after = process(sql).await;
    assert_ne!(after, before);
    // Nothing tells that this session is dead before it is used.
    proxy.spoil(Spoil::Request);
    let second = process(sql).await;
    assert_ne!(second, after);
    proxy.spoil(Spoil::Request);
    assert_eq!(
        sql.execute(statement("INSERT INTO t VALUES (4, 'd')", "[]", 0))
            .await
            .expect("written once"),
        1
    );
}

async fn unknown_commit(proxy: &Proxy, sql: &SqlConnection) {
    // The commit has to be on its way by then: a silent server is waited for, and one that hangs up is not.
    for (spoil, id, seconds) in [(Spoil::CommitAnswer, 5, 20), (Spoil::Silence, 6, 5)] {
        proxy.spoil(spoil);
        let text = format!("INSERT INTO t VALUES ({id}, 'unknown')");
        let soon = SqlStatement {
            deadline: Instant::now() + Duration::from_secs(seconds),
            ..statement(&text, "[]", 0)
        };
        let error = sql.execute(soon).await.expect_err("unknown");
        assert_eq!(error.code.word(), "unavailable", "{error:?}");
        assert!(error.message.contains("unknown"), "{error:?}");
        assert!(!error.nothing_changed, "{error:?}");
        let made = format!("SELECT count(*) AS n FROM t WHERE id = {id}");
        let begin = Instant::now();
        while query(sql, &made, "[]", 1).await.expect("read").records != r#"[{"n":1}]"# {
            assert!(
                begin.elapsed() < Duration::from_secs(15),
                "it was passed on"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A table is altered while a session is open: its statements are of the table as it is.
#[tokio::test]
async fn after_an_alteration_a_read_is_still_one_request() {
    let server = Server::started();
    server.script("CREATE TABLE altered (id int); INSERT INTO altered VALUES (1)");
    let proxy = Proxy::before(server.folder());
    let sql = alone(&proxy.url(), true);
    let text = "SELECT * FROM altered";
    query(&sql, text, "[]", 1).await.expect(text);
    for (change, records) in [
        ("ADD COLUMN a int", r#"[{"id":1,"a":null}]"#),
        ("ALTER COLUMN id TYPE text", r#"[{"id":"1","a":null}]"#),
        ("DROP COLUMN a", r#"[{"id":"1"}]"#),
    ] {
        server.script(&format!("ALTER TABLE altered {change}"));
        proxy.requests();
        let rows = query(&sql, text, "[]", 1).await.expect(change);
        assert_eq!(rows.records, records);
        assert_eq!(proxy.requests().len(), 1, "{change}");
    }
    // A type that the session has not met is looked up, and the write is made once.
    server
        .script("CREATE TYPE mood AS ENUM ('ok', 'bad'); CREATE TABLE moods (id serial, m mood);");
    let written = "INSERT INTO moods (m) VALUES ('bad') RETURNING m";
    let rows = sql.query_write(statement(written, "[]", 1)).await;
    assert_eq!(rows.expect("written").records, r#"[{"m":"bad"}]"#);
    let count = query(&sql, "SELECT count(*) AS n FROM moods", "[]", 1).await;
    assert_eq!(count.expect("counted").records, r#"[{"n":1}]"#);
}

/// A function may go on though its call has ended: its backend counts until it ends too.
#[tokio::test]
async fn abandoned_backends_count_until_they_end() {
    let server = Server::started();
    server.script(
        "CREATE TABLE t AS SELECT 1 AS a; CREATE FUNCTION stubborn() RETURNS int LANGUAGE plpgsql AS $$
             DECLARE till timestamptz := clock_timestamp() + interval '6 seconds';
             BEGIN
                 WHILE clock_timestamp() < till LOOP
                     BEGIN PERFORM pg_sleep(0.05); EXCEPTION WHEN query_canceled THEN NULL; END;
                 END LOOP;
                 RETURN 1;
             END $$;",
    );
    let sql = Arc::new(connect(ConnectionConfig::Postgresql {
        url: server.url(),
        write: true,
        pool_max: Some(2),
    }));
    let watch = open(&server.url(), false);
    let at_work = async || {
        let text = "SELECT count(*)::int4 AS n FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%stubborn()%'
            AND pid <> pg_backend_pid()";
        let rows = query(&watch, text, "[]", 1).await.expect("watched");
        rows.records
            .trim_start_matches("[{\"n\":")
            .trim_end_matches("}]")
            .parse::<u32>()
            .expect("a number")
    };
    let mut most = 0;
    for round in 0..6 {
        let soon = |text| SqlStatement {
            deadline: Instant::now() + Duration::from_millis(300),
            ..statement(text, "[]", 1)
        };
        let given_up = sql.query(soon("SELECT stubborn() AS s"));
        let dropped = tokio::time::timeout(Duration::from_millis(200), given_up).await;
        assert!(
            dropped.is_err() || dropped.is_ok_and(|rows| rows.is_err()),
            "{round}"
        );
        let late = sql
            .execute(soon("DELETE FROM t WHERE stubborn() = 0"))
            .await;
        assert!(late.is_err(), "{round}");
        // The cleanup gives up after two seconds, if it does.
        tokio::time::sleep(Duration::from_millis(if round == 1 { 2500 } else { 50 })).await;
        most = most.max(at_work().await);
    }
    assert!(
        (1..=2).contains(&most),
        "{most} backends are at work for two places"
    );
    let begin = Instant::now();
    while query(&sql, "SELECT 1 AS a", "[]", 1).await.is_err() {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "the places come back"
        );
    }
}

#[tokio::test]
async fn tls_and_passwords_are_as_the_url_says() {
    let server = Server::new();
    let port = server.start_with_tls();
    server.script(
        "CREATE ROLE scram LOGIN PASSWORD 'p@ss/wörd'; CREATE ROLE plain LOGIN PASSWORD 'plain';
         SET password_encryption = 'md5'; CREATE ROLE md5 LOGIN PASSWORD 'md5';",
    );
    let ca = server.folder().join("ca.pem");
    let ca = ca.display();
    let scram = "scram:p%40ss%2Fw%C3%B6rd@";
    let check = async |login: &str, host: &str, parameters: &str, expected: Result<bool, &str>| {
        let url = format!("postgresql://{login}{host}:{port}/postgres?{parameters}");
        let text = "SELECT ssl AS tls, current_setting('application_name') AS name FROM pg_stat_ssl \
            WHERE pid = pg_backend_pid()";
        match (query(&alone(&url, false), text, "[]", 1).await, expected) {
            (Ok(rows), Ok(tls)) => assert_eq!(
                rows.records,
                format!(r#"[{{"tls":{tls},"name":"weir"}}]"#),
                "{url}"
            ),
            (Err(error), Err(code)) => {
                assert_eq!(error.code.word(), code, "{url}: {error:?}");
                let printed = format!("{error:?}");
                assert!(
                    !error.message.contains("127.0.0.1") && !error.message.contains("host"),
                    "{printed}"
                );
                assert!(
                    !printed.contains("wörd") && !printed.contains("hunter2"),
                    "{printed}"
                );
            }
            (result, _) => panic!("{url}: {result:?}"),
        }
    };
    for (login, tls) in [(scram, true), ("md5:md5@", true), ("plain:plain@", true)] {
        check(login, "localhost", "", Ok(tls)).await;
        check(login, "localhost", "sslmode=require", Ok(tls)).await;
    }
    check("plain:plain@", "localhost", "sslmode=disable", Ok(false)).await;
    check(scram, "localhost", "sslmode=disable", Err("upstream_error")).await;
    check("scram:hunter2@", "localhost", "", Err("upstream_error")).await;
    check("md5:hunter2@", "localhost", "", Err("upstream_error")).await;
    check(
        scram,
        "localhost",
        &format!("sslmode=verify-full&sslrootcert={ca}"),
        Ok(true),
    )
    .await;
    check(
        scram,
        "127.0.0.1",
        &format!("sslmode=verify-full&sslrootcert={ca}"),
        Err("unavailable"),
    )
    .await;
    check(
        scram,
        "127.0.0.1",
        &format!("sslmode=verify-ca&sslrootcert={ca}"),
        Ok(true),
    )
    .await;
    check(
        scram,
        "localhost",
        "sslmode=verify-full",
        Err("unavailable"),
    )
    .await;
    check(scram, "localhost", "sslmode=verify-ca", Err("unavailable")).await;
    check(
        scram,
        "localhost",
        "sslmode=verify-full&sslrootcert=/gone.pem",
        Err("unavailable"),
    )
    .await;
    check(
        scram,
        "localhost",
        "sslmode=require&sslrootcert=/gone.pem",
        Err("unavailable"),
    )
    .await;
    // The server proves that it sees the same connection, or there is no login.
    for binding in [
        "channel_binding=require",
        "channel_binding=prefer",
        "channel_binding=disable",
    ] {
        check(scram, "localhost", binding, Ok(true)).await;
    }
    check(
        "scram:hunter2@",
        "localhost",
        "channel_binding=require",
        Err("upstream_error"),
    )
    .await;
    for unbound in ["md5:md5@", "plain:plain@"] {
        check(
            unbound,
            "localhost",
            "channel_binding=require",
            Err("unavailable"),
        )
        .await;
        check(unbound, "localhost", "channel_binding=prefer", Ok(true)).await;
    }
    // A server without TLS, where it is asked for.
    let folder = server.folder().display();
    for mode in ["require", "verify-ca", "verify-full"] {
        let url =
            format!("postgresql://weir@localhost:{port}/postgres?host={folder}&sslmode={mode}");
        assert_eq!(
            query(&alone(&url, false), "SELECT 1 AS a", "[]", 1)
                .await
                .expect_err(mode)
                .code
                .word(),
            "unavailable"
        );
    }
}

fn open(url: &str, write: bool) -> Arc<SqlConnection> {
    connect(ConnectionConfig::Postgresql {
        url: url.to_owned(),
        write,
        pool_max: None,
    })
}

/// Makes a connection with one session, which the next call meets again.
fn alone(url: &str, write: bool) -> Arc<SqlConnection> {
    connect(ConnectionConfig::Postgresql {
        url: url.to_owned(),
        write,
        pool_max: Some(1),
    })
}

/// Returns the server's process behind the session.
async fn process(sql: &SqlConnection) -> String {
    query(sql, "SELECT pg_backend_pid() AS pid", "[]", 1)
        .await
        .expect("a process")
        .records
}
