//! SQLite connections on real files: nothing but the one database is reached, and values come out as they are.

mod database;
mod statements;

use std::time::{Duration, Instant};

use weir_connections::sql::SqlStatement;

use database::{create, database, open};
use statements::{query, statement};

#[tokio::test]
async fn values_come_out_as_they_are() {
    let (_folder, sql) = database(
        "CREATE TABLE t (i INTEGER, r REAL, s TEXT, b BLOB, n, status TEXT, code TEXT);
         INSERT INTO t VALUES (9223372036854775807, 0.1, 'a\"\u{1}é😀', x'00ff', NULL, '', '007'),
                              (-9223372036854775808, 9e999, CAST(x'c3a9' AS TEXT), x'', 1.0, 'x', 9007199254740993);",
        false,
    );
    let rows = query(
        &sql,
        "SELECT i, r, s, b, n, status, code FROM t ORDER BY rowid",
        "[]",
        10,
    )
    .await
    .expect("rows");
    assert_eq!(
        rows.records,
        concat!(
            r#"[{"i":9223372036854775807,"r":0.1,"s":"a\"\u0001é😀","b":"AP8=","n":null,"status":"","code":"007"},"#,
            r#"{"i":-9223372036854775808,"r":null,"s":"é","b":"","n":1.0,"status":"x","code":"9007199254740993"}]"#
        )
    );
    assert!(!rows.truncated);
    let rows = query(&sql, "SELECT status FROM t", "[]", 1)
        .await
        .expect("rows");
    assert_eq!(
        (rows.records.as_str(), rows.truncated),
        (r#"[{"status":""}]"#, true)
    );
    let rows = query(
        &sql,
        "SELECT ?1 AS a, ?2 AS b, ?3 AS c, ?4 AS d, ?5 AS e, ?6 AS f",
        r#"[null,true,7,1.5,"x",[1,"y"]]"#,
        9,
    );
    assert_eq!(
        rows.await.expect("rows").records,
        r#"[{"a":null,"b":1,"c":7,"d":1.5,"e":"x","f":"[1,\"y\"]"}]"#
    );
    let rows = query(
        &sql,
        "SELECT weir_datetime('2024-07-06 07:08:09', 'Europe/Vienna') AS l, '10' < '9' COLLATE weir_decimal AS d",
        "[]",
        9,
    )
    .await
    .expect("rows");
    assert_eq!(
        rows.records,
        r#"[{"l":"2024-07-06T05:08:09.000000000Z","d":0}]"#
    );
    let broken = query(&sql, "SELECT CAST(x'ff41' AS TEXT) AS broken", "[]", 9);
    assert_eq!(
        broken.await.expect("not UTF-8").records,
        "[{\"broken\":\"\u{fffd}A\"}]"
    );
    let twice = query(&sql, "SELECT 1 AS a, 2 AS a", "[]", 9)
        .await
        .expect_err("ambiguous");
    assert_eq!(
        (twice.code.word(), twice.field.as_deref()),
        ("invalid", Some("a"))
    );
    let large = query(
        &sql,
        "SELECT hex(zeroblob(4000000)) AS a UNION ALL SELECT hex(zeroblob(4000000))",
        "[]",
        9,
    )
    .await;
    assert_eq!(large.expect_err("too large").code.word(), "too_large");
    let described = SqlStatement {
        options: Some(r#"{"describe":true}"#),
        ..statement("SELECT i, r+1 AS more FROM t", "[]", 0)
    };
    assert_eq!(
        sql.query(described).await.expect("described").records,
        r#"[{"name":"i","type":"INTEGER","nullable":true},{"name":"more","type":null,"nullable":true}]"#
    );
}

/// A virtual table asks SQLite for more than the statement does; a read that would change one is refused.
#[tokio::test]
async fn virtual_tables_are_read() {
    for writable in [false, true] {
        let (_folder, sql) = database(
            "CREATE VIRTUAL TABLE notes USING fts5(title, body); INSERT INTO notes VALUES ('t', 'find me');
             CREATE VIRTUAL TABLE old USING fts4(body); INSERT INTO old VALUES ('find me');
             CREATE VIRTUAL TABLE places USING rtree(id, x0, x1); INSERT INTO places VALUES (1, 0, 2);",
            writable,
        );
        for (text, records) in [
            (
                "SELECT title FROM notes WHERE notes MATCH 'find'",
                r#"[{"title":"t"}]"#,
            ),
            (
                "SELECT body FROM old WHERE old MATCH 'find'",
                r#"[{"body":"find me"}]"#,
            ),
            (
                "SELECT id FROM places WHERE x0 <= 1 AND x1 >= 1",
                r#"[{"id":1}]"#,
            ),
        ] {
            let rows = query(&sql, text, "[]", 9).await.expect(text);
            assert_eq!(rows.records, records, "{text}");
        }
        for text in [
            "INSERT INTO places VALUES (2, 0, 2) RETURNING id",
            "DELETE FROM places_node RETURNING nodeno",
            "INSERT INTO notes VALUES ('a', 'b') RETURNING title",
            "SELECT optimize(old) AS o FROM old",
        ] {
            let refused = query(&sql, text, "[]", 9).await.expect_err(text);
            assert!(
                matches!(refused.code.word(), "denied" | "invalid" | "upstream_error"),
                "{text}: {refused:?}"
            );
        }
        let rows = query(&sql, "SELECT count(*) AS n FROM places", "[]", 9).await;
        assert_eq!(rows.expect("counted").records, r#"[{"n":1}]"#);
    }
}

/// SQLite parses the whole schema for any statement, so a wide table must not cost the others.
#[tokio::test]
async fn a_wide_table_is_read_and_so_is_what_stands_beside_it() {
    let columns: Vec<_> = (0..300)
        .map(|at| format!("c{at} INTEGER DEFAULT {at}"))
        .collect();
    let (_folder, sql) = database(
        &format!(
            "CREATE TABLE t (a); INSERT INTO t VALUES (1);
             CREATE TABLE wide ({}); CREATE INDEX w ON wide (c299); INSERT INTO wide DEFAULT VALUES",
            columns.join(", ")
        ),
        true,
    );
    assert_eq!(
        query(&sql, "SELECT a FROM t", "[]", 9)
            .await
            .expect("beside it")
            .records,
        r#"[{"a":1}]"#
    );
    let row = query(&sql, "SELECT * FROM wide WHERE c299 = 299", "[]", 9)
        .await
        .expect("wide")
        .records;
    assert!(
        row.starts_with(r#"[{"c0":0,"#) && row.ends_with(r#","c299":299}]"#),
        "{row}"
    );
    assert_eq!(
        sql.execute(statement("UPDATE wide SET c299 = 1", "[]", 0))
            .await
            .expect("written"),
        1
    );
}

/// SQLite's own searches compare at every place, in one step, which takes minutes for a value of a megabyte.
#[tokio::test]
async fn searches_in_texts_are_exact_and_quick() {
    let (_folder, sql) = database(
        "CREATE TABLE t (v TEXT); CREATE VIEW w AS SELECT instr(v, 'b') AS at FROM t;",
        true,
    );
    let one = |text: &'static str| {
        let sql = sql.clone();
        async move { query(&sql, text, "[]", 9).await.expect(text).records }
    };
    let found = "SELECT instr('añb', 'b') AS a, instr('abc', '') AS b, instr('abc', 'x') AS c, instr(NULL, 'a') AS d, \
                 instr(x'00ff01', x'01') AS e, instr(12.5, '.') AS f, instr(x'c3b162', 'b') AS g";
    assert_eq!(
        one(found).await,
        r#"[{"a":3,"b":1,"c":0,"d":null,"e":3,"f":3,"g":2}]"#
    );
    let replaced = "SELECT replace('aXbX', 'X', 'yy') AS a, replace('ab', '', 'c') AS b, replace('ab', 'a', NULL) AS c, \
                    trim('xxaxx', 'x') AS d, ltrim('xyab', 'yx') AS e, rtrim('abxy', 'yx') AS f, trim('  a ') AS g";
    let expected = r#"[{"a":"ayybyy","b":"ab","c":null,"d":"a","e":"ab","f":"ab","g":"a"}]"#;
    assert_eq!(one(replaced).await, expected);
    // A number is searched as SQLite itself would write it.
    let numbers = "WITH n(v) AS (VALUES (1.0), (0.1), (-2.5), (1e14), (1e15), (1e300), (-1e-5), (1e-4), (123456789.123456789), \
                   (9007199254740993.0), (0.0), (9e999), (1/3.0), (100.0)) \
                   SELECT v, replace(v, '~', '') AS ours, CAST(v AS TEXT) AS theirs FROM n WHERE ours IS NOT theirs";
    assert_eq!(one(numbers).await, "[]");

    let insert = "INSERT INTO t SELECT replace(hex(zeroblob(500000)), '0', 'a')";
    assert_eq!(
        sql.execute(statement(insert, "[]", 0))
            .await
            .expect("a large text"),
        1
    );
    let begin = Instant::now();
    assert_eq!(
        one("SELECT instr(v, substr(v, 500001) || 'b') AS at FROM t").await,
        r#"[{"at":0}]"#
    );
    assert_eq!(one("SELECT at FROM w").await, r#"[{"at":0}]"#);
    let trimmed = one("SELECT length(trim(v, substr(v, 1, 400000) || 'b')) AS n FROM t").await;
    assert_eq!(trimmed, r#"[{"n":0}]"#);
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
    let grown = query(&sql, "SELECT replace(v, 'a', v) AS v FROM t", "[]", 9).await;
    assert_eq!(grown.expect_err("a terabyte").code.word(), "too_large");
}

/// Each of these reached past the database, or changed it, through some server that only looked at the first word.
#[tokio::test]
async fn a_connection_reaches_its_database_only() {
    let (folder, reader) = database(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); CREATE INDEX v ON t (v); INSERT INTO t VALUES (1,'a')",
        false,
    );
    let writer = open(&folder.path().join("data.db"), true);
    let other = folder.path().join("other.db").display().to_string();
    let statements = [
        format!("ATTACH '{other}' AS o"),
        format!("VACUUM INTO '{other}'"),
        "VACUUM".to_owned(),
        "DETACH main".to_owned(),
        "PRAGMA journal_mode = DELETE".to_owned(),
        "PRAGMA writable_schema = ON".to_owned(),
        "PRAGMA temp_store_directory = '/'".to_owned(),
        "PRAGMA database_list".to_owned(),
        "SELECT * FROM pragma_database_list".to_owned(),
        "SELECT load_extension('x')".to_owned(),
        "CREATE TABLE u (a)".to_owned(),
        "CREATE TEMP TABLE u (a)".to_owned(),
        "CREATE VIRTUAL TABLE u USING fts5(a)".to_owned(),
        "DROP TABLE t".to_owned(),
        "ALTER TABLE t ADD COLUMN w".to_owned(),
        "REINDEX".to_owned(),
        "ANALYZE".to_owned(),
        "BEGIN".to_owned(),
        "COMMIT".to_owned(),
        "ROLLBACK".to_owned(),
        "SAVEPOINT s".to_owned(),
        "INSERT INTO sqlite_master VALUES (1,2,3,4,5)".to_owned(),
        "SELECT 1; DELETE FROM t".to_owned(),
        "SELECT 1; SELECT 2".to_owned(),
        "DELETE FROM t; --".to_owned() + "\nDELETE FROM t",
    ];
    for text in &statements {
        let error = query(&reader, text, "[]", 9).await.expect_err(text);
        assert!(
            matches!(error.code.word(), "denied" | "upstream_error"),
            "{text}: {error:?}"
        );
        let error = writer
            .execute(statement(text, "[]", 9))
            .await
            .expect_err(text);
        assert!(
            matches!(error.code.word(), "denied" | "upstream_error"),
            "{text}: {error:?}"
        );
    }
    for text in [
        "INSERT INTO t VALUES (2,'b')",
        "UPDATE t SET v = 'b'",
        "DELETE FROM t",
        "DELETE FROM t RETURNING id",
    ] {
        assert_eq!(
            query(&reader, text, "[]", 9)
                .await
                .expect_err(text)
                .code
                .word(),
            "denied",
            "{text}"
        );
        assert_eq!(
            query(&writer, text, "[]", 9)
                .await
                .expect_err(text)
                .code
                .word(),
            "denied",
            "a read on a writer: {text}"
        );
        assert_eq!(
            reader
                .execute(statement(text, "[]", 9))
                .await
                .expect_err(text)
                .code
                .word(),
            "denied",
            "{text}"
        );
    }
    assert_eq!(
        query(&reader, "SELECT count(*) AS n FROM t", "[]", 9)
            .await
            .expect("fine")
            .records,
        r#"[{"n":1}]"#
    );
    assert_eq!(
        query(&reader, "SELECT count(*) AS n FROM t; -- done", "[]", 9)
            .await
            .expect("fine")
            .records,
        r#"[{"n":1}]"#
    );
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("listed")
        .map(|e| e.expect("entry").file_name())
        .collect();
    assert_eq!(left, ["data.db"]);
    let columns = query(
        &reader,
        "SELECT name, type, pk FROM pragma_table_xinfo('t')",
        "[]",
        9,
    )
    .await
    .expect("the catalogue");
    assert_eq!(
        columns.records,
        r#"[{"name":"id","type":"INTEGER","pk":1},{"name":"v","type":"TEXT","pk":0}]"#
    );
}

/// RETURNING does not show what triggers do behind it.
#[tokio::test]
async fn a_write_is_answered_by_a_read_behind_it() {
    let (_folder, sql) = database(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
         CREATE TRIGGER loud AFTER INSERT ON t BEGIN UPDATE t SET v = upper(v) WHERE id = new.id; END;
         CREATE TRIGGER gone AFTER INSERT ON t WHEN new.v = 'gone' BEGIN DELETE FROM t WHERE id = new.id; END;",
        true,
    );
    let insert = "INSERT INTO t (v) VALUES (?1) RETURNING v";
    let read = "SELECT v FROM t WHERE id = last_insert_rowid()";
    for (when, value, answer) in [
        ("after", r#"["a"]"#, Some(r#"[{"v":"A"}]"#)),
        ("after", r#"["gone"]"#, Some(r#"[{"v":"gone"}]"#)),
        ("before", r#"["b"]"#, None),
    ] {
        let options = format!(
            r#"{{"write":true,"expect_rows":1,"returning":{{"text":"{read}","parameters":[],"when":"{when}"}}}}"#
        );
        let written = sql
            .query_write(SqlStatement {
                options: Some(&options),
                ..statement(insert, value, 1)
            })
            .await;
        let records = written.ok().map(|rows| rows.records);
        assert_eq!(records.as_deref(), answer, "{when} {value}");
    }
    let left = query(&sql, "SELECT v FROM t", "[]", 9).await;
    assert_eq!(left.expect("rows").records, r#"[{"v":"A"}]"#);
}

#[tokio::test]
async fn writes_are_whole_or_nothing() {
    let (_folder, sql) = database(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT NOT NULL UNIQUE, g INT, CHECK (g < 10));
         CREATE TABLE c (t INTEGER REFERENCES t(id));
         INSERT INTO t VALUES (1,'a',1),(2,'b',1); INSERT INTO c VALUES (1);",
        true,
    );
    let returning = sql
        .query_write(statement(
            "INSERT INTO t (v) VALUES (?1) RETURNING id, v",
            r#"["c"]"#,
            1,
        ))
        .await;
    assert_eq!(
        returning.expect("inserted").records,
        r#"[{"id":3,"v":"c"}]"#
    );
    for (text, code, field) in [
        (
            "INSERT INTO t (id, v) VALUES (1, 'z')",
            "conflict",
            Some("id"),
        ),
        ("INSERT INTO t (v) VALUES ('a')", "conflict", Some("v")),
        ("INSERT INTO t (v) VALUES (NULL)", "invalid", Some("v")),
        (
            "INSERT INTO t (v, g) VALUES ('g', 11)",
            "invalid",
            Some("g < 10"),
        ),
        ("DELETE FROM t WHERE id = 1", "invalid", None),
        ("INSERT INTO t (id, v) VALUES ('x', 'z')", "invalid", None),
        ("UPDATE t SET gone = 1", "source_changed", Some("gone")),
        ("UPDATE t SET v = \"gone\"", "source_changed", Some("gone")),
        ("DELETE FROM gone", "source_changed", None),
    ] {
        let error = sql.execute(statement(text, "[]", 1)).await.expect_err(text);
        assert_eq!(
            (error.code.word(), error.field.as_deref()),
            (code, field),
            "{text}: {error:?}"
        );
        assert!(
            !error.message.contains("INSERT") && !error.message.contains("t."),
            "{error:?}"
        );
    }
    let one = |text| SqlStatement {
        options: Some(r#"{"expect_rows":1}"#),
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
    let rows = query(&sql, "SELECT id, g FROM t ORDER BY id", "[]", 9)
        .await
        .expect("rows");
    assert_eq!(
        rows.records,
        r#"[{"id":1,"g":1},{"id":2,"g":3},{"id":3,"g":null}]"#
    );
}

#[tokio::test]
async fn deadlines_and_lost_callers_interrupt_reads() {
    let (_folder, sql) = database("CREATE TABLE t (a)", false);
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS m FROM n";
    let begin = Instant::now();
    let soon = SqlStatement {
        deadline: begin + Duration::from_millis(100),
        ..statement(endless, "[]", 1)
    };
    assert_eq!(
        sql.query(soon).await.expect_err("too slow").code.word(),
        "timeout"
    );
    assert!(begin.elapsed() < Duration::from_secs(20));
    // There are more lost callers than connections: unless they were interrupted, the last query would wait for them.
    for _ in 0..20 {
        let lost = tokio::time::timeout(
            Duration::from_millis(20),
            sql.query(statement(endless, "[]", 1)),
        );
        assert!(lost.await.is_err());
    }
    let begin = Instant::now();
    query(&sql, "SELECT 1 AS a", "[]", 1)
        .await
        .expect("free again");
    assert!(begin.elapsed() < Duration::from_secs(20));
}

/// One thread runs all of it: a read that waited on it would keep the writer from ending.
#[tokio::test]
async fn long_reads_and_waits_for_a_lock_leave_the_caller_free() {
    let (folder, sql) = database("CREATE TABLE t (a); INSERT INTO t VALUES (1)", false);
    let read = || query(&sql, "SELECT a FROM t", "[]", 9);
    read().await.expect("opened");
    let long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT max(i) AS m FROM n";
    let mut ticks = 0;
    let rows = tokio::select! {
        rows = query(&sql, long, "[]", 1) => rows,
        () = async { loop { ticks += 1; tokio::task::yield_now().await } } => unreachable!("it never ends"),
    };
    assert_eq!(rows.expect("counted").records, r#"[{"m":300000}]"#);
    assert!(ticks > 0, "nothing else could run meanwhile");
    let writer = rusqlite::Connection::open(folder.path().join("data.db")).expect("opened");
    writer
        .execute_batch("BEGIN EXCLUSIVE; UPDATE t SET a = 2")
        .expect("locked");
    let commit = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        writer.execute_batch("COMMIT").expect("written");
    };
    let (rows, ()) = tokio::join!(read(), commit);
    assert_eq!(rows.expect("waited").records, r#"[{"a":2}]"#);
}

#[tokio::test]
async fn a_write_outlives_its_caller() {
    let (_folder, sql) = database("CREATE TABLE t (a)", true);
    let slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) INSERT INTO t SELECT i FROM n";
    // The caller goes once it has asked.
    tokio::select! {
        biased;
        written = sql.execute(statement(slow, "[]", 0)) => panic!("{written:?}"),
        () = std::future::ready(()) => {}
    }
    let count = || query(&sql, "SELECT count(*) AS n FROM t", "[]", 1);
    let begin = Instant::now();
    while count().await.expect("counted").records != r#"[{"n":300000}]"# {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "the write was lost"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_missing_database_is_found_once_it_is_there_and_a_new_one_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data.db");
    let sql = open(&path, true);
    let read = || query(&sql, "SELECT a FROM t", "[]", 9);
    assert_eq!(read().await.expect_err("absent").code.word(), "unavailable");
    assert!(!path.exists());
    create(&path, "CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    assert_eq!(read().await.expect("there").records, r#"[{"a":1}]"#);
    create(
        &folder.path().join("new.db"),
        "CREATE TABLE t (a); INSERT INTO t VALUES (2)",
    );
    std::fs::rename(folder.path().join("new.db"), &path).expect("renamed");
    assert_eq!(read().await.expect("the new one").records, r#"[{"a":2}]"#);
    std::fs::write(
        &path,
        "this is not a database, only a longer text than a header",
    )
    .expect("written");
    assert_eq!(
        read().await.expect_err("garbage").code.word(),
        "upstream_error"
    );
}
