//! MySQL connections against a real MariaDB: what may run, what survives, what comes out.

mod mariadb;
mod statements;

use std::{
    fs,
    net::TcpListener,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use mariadb::MariadbServer;
use statements::{connect, query, statement};
use weir_connections::{
    ConnectionConfig, ConnectionHandle,
    browse::SourceQuery,
    sql::{SqlConnection, SqlStatement},
};

const TABLES: &str = "
    CREATE TABLE t (id int PRIMARY KEY, v varchar(20) NOT NULL UNIQUE, g int CHECK (g < 10), small smallint, m varchar(3));
    CREATE TABLE c (t int, FOREIGN KEY (t) REFERENCES t (id));
    INSERT INTO t VALUES (1, 'a', 1, NULL, NULL), (2, 'b', 1, NULL, NULL); INSERT INTO c VALUES (1);";

/// Returns a connection that may write to a database of its own with these tables.
fn filled(script: &str) -> (String, Arc<SqlConnection>) {
    let server = MariadbServer::shared();
    let url = server.database();
    server.script(&url, script);
    let sql = open(&url, true);
    (url, sql)
}

#[tokio::test]
async fn values_come_out_as_they_are() {
    let (_, sql) = filled(
        "CREATE TABLE v (b tinyint(1), i8 tinyint, u8 tinyint unsigned, i16 smallint, u16 smallint unsigned, i24 mediumint,
            i32 int, u32 int unsigned, i64 bigint, u64 bigint unsigned, f float, d double, n decimal(30,5), y year,
            c char(3), s varchar(20), l varchar(5) CHARACTER SET latin1, x longtext, e enum('ok', 'bad'), w set('p', 'q'),
            j json, y1 varbinary(5), y2 blob, bits bit(3));
         INSERT INTO v VALUES (1, -128, 255, -32768, 65535, -8388608, -2147483648, 4294967295, -9223372036854775808,
            18446744073709551615, 0.1, 5e-324, 12.50, 2024, 'x', 'a\"é😀', 'ü', '', 'bad', 'p,q', '{\"a\": 1.50}', x'00ff', x'', b'101');
         INSERT INTO v (b) VALUES (NULL);",
    );
    let text = "SELECT *, 'a' || 'b' AS joined, 1 = 1 AS yes, X'00ff' AS z FROM v ORDER BY b DESC";
    let rows = query(&sql, text, "[]", 1).await.expect("values");
    assert_eq!(
        rows.records,
        concat!(
            r#"[{"b":1,"i8":-128,"u8":255,"i16":-32768,"u16":65535,"i24":-8388608,"i32":-2147483648,"u32":4294967295,"#,
            r#""i64":-9223372036854775808,"u64":18446744073709551615,"f":0.1,"d":5e-324,"n":"12.50000","y":2024,"c":"x","#,
            r#""s":"a\"é😀","l":"ü","x":"","e":"bad","w":"p,q","j":"{\"a\": 1.50}","y1":"AP8=","y2":"","bits":"BQ==","#,
            r#""joined":"ab","yes":1,"z":"AP8="}]"#
        )
    );
    assert!(rows.truncated);
    let nulls = query(&sql, "SELECT * FROM v WHERE b IS NULL", "[]", 9).await;
    assert_eq!(nulls.expect("nulls").records.matches(":null").count(), 24);
    let parameters =
        r#"[null, 7, 9007199254740993, 1.5, "x'; DROP TABLE v --\\", true, [1,"a"], "a\u0000b"]"#;
    let text = "SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e, ? AS f, ? AS g, LENGTH(?) AS h";
    assert_eq!(
        query(&sql, text, parameters, 9)
            .await
            .expect("bound")
            .records,
        r#"[{"a":null,"b":7,"c":9007199254740993,"d":1.5,"e":"x'; DROP TABLE v --\\","f":1,"g":"[1,\"a\"]","h":3}]"#
    );
    for (text, code, field) in [
        ("SELECT NOW() AS at", "upstream_error", Some("at")),
        ("SELECT 1 AS a, 2 AS a", "invalid", Some("a")),
        ("SELECT ? AS a", "invalid", None),
        ("SELECT REPEAT('x', 9000000) AS a", "too_large", None),
        ("SELECT 1; SELECT 2", "upstream_error", None),
        ("SELECT nonsense FROM v", "source_changed", Some("nonsense")),
        ("SELECT 1 AS a FROM nowhere", "source_changed", None),
    ] {
        let error = query(&sql, text, "[]", 9).await.expect_err(text);
        assert_eq!(
            (error.code.word(), error.field.as_deref()),
            (code, field),
            "{text}: {error:?}"
        );
    }
    let many = "SELECT seq AS n FROM seq_1_to_100000";
    let rows = query(&sql, many, "[]", 2).await.expect("cut");
    assert_eq!(rows.records, r#"[{"n":1},{"n":2}]"#);
    assert!(rows.truncated);
    let described = SqlStatement {
        options: Some(r#"{"describe":true}"#),
        ..statement("SELECT b, u64, n, s, y2, e, 1 + 1 AS i FROM v", "[]", 0)
    };
    let described = sql.query(described).await.expect("described").records;
    let types: Vec<&str> = described
        .split("\"type\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let expected = [
        "tinyint(1)",
        "bigint unsigned",
        "decimal",
        "text",
        "blob",
        "enum",
        "int",
    ];
    assert_eq!(types, expected, "{described}");
}

#[tokio::test]
async fn a_read_changes_nothing_and_reaches_no_file() {
    let (url, sql) = filled(TABLES);
    let server = MariadbServer::shared();
    let file = server.folder().join("written");
    server.script(
        &url,
        "CREATE SEQUENCE s; CREATE FUNCTION put() RETURNS int MODIFIES SQL DATA
             RETURN (SELECT NEXTVAL(s));
         CREATE FUNCTION lock_it() RETURNS int RETURN GET_LOCK('kept', 1);",
    );
    for text in [
        "INSERT INTO t (id, v) VALUES (9, 'z')",
        "WITH d AS (SELECT 1) DELETE FROM t",
        "CREATE TABLE u (a int)",
        "COMMIT",
        "COMMIT; DROP TABLE t",
        "SET max_statement_time = 0",
        "SET STATEMENT max_statement_time = 0 FOR SELECT 1",
        "CALL x()",
        "BEGIN",
        "LOAD DATA INFILE '/etc/passwd' INTO TABLE t",
        "",
        "-- only a comment",
        "SELECT NEXTVAL(s) AS n",
        "SELECT put() AS p",
        "SELECT @a := 1 AS a",
        "SELECT LOAD_FILE('/etc/passwd') AS a",
        "SELECT GET_LOCK('a', 1) AS a",
        &format!("SELECT * FROM t INTO OUTFILE '{}'", file.display()),
        &format!("SELECT * FROM t /*! INTO OUTFILE '{}' */", file.display()),
    ] {
        let error = query(&sql, text, "[]", 9).await.expect_err(text);
        assert!(
            matches!(
                error.code.word(),
                "denied" | "source_changed" | "upstream_error"
            ),
            "{text}: {error:?}"
        );
        assert!(error.nothing_changed, "{text}: {error:?}");
        let message = error.message.to_lowercase();
        assert!(
            !message.contains("select") && !message.contains("weir"),
            "{text}: {error:?}"
        );
    }
    assert!(!file.exists());
    let count = query(&sql, "SELECT COUNT(*) AS n FROM t", "[]", 9).await;
    assert_eq!(count.expect("whole").records, r#"[{"n":2}]"#);
    // A lock that a function took does not outlive its call.
    let alone = connect(ConnectionConfig::Mysql {
        url: url.clone(),
        write: false,
        pool_max: Some(1),
    });
    query(&alone, "SELECT lock_it() AS l", "[]", 1)
        .await
        .expect("taken");
    let free = query(&alone, "SELECT IS_FREE_LOCK('kept') AS f", "[]", 1).await;
    assert_eq!(free.expect("asked").records, r#"[{"f":1}]"#);
    let read_only = open(&url, false);
    let error = read_only.execute(statement("DELETE FROM t", "[]", 0)).await;
    assert_eq!(error.expect_err("read-only").code.word(), "denied");
    let connection = ConnectionHandle::Sql(sql);
    let page = connection.sources(SourceQuery {
        text: "T",
        after: "",
        deadline: Instant::now() + Duration::from_secs(9),
    });
    let names: Vec<_> = page
        .await
        .expect("tables")
        .sources
        .into_iter()
        .map(|one| (one.name, one.kind))
        .collect();
    assert_eq!(names, [("t".to_owned(), "table".to_owned())]);
}

#[tokio::test]
async fn a_write_is_whole_or_nothing() {
    let (_, sql) = filled(TABLES);
    for (text, code, field) in [
        ("INSERT INTO t (id, v) VALUES (1, 'z')", "conflict", None),
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
        ("INSERT INTO t (id) VALUES (9)", "invalid", Some("v")),
        (
            "INSERT INTO t (id, v, g) VALUES (9, 'z', 11)",
            "invalid",
            Some("g"),
        ),
        (
            "INSERT INTO t (id, v, small) VALUES (9, 'z', 70000)",
            "invalid",
            Some("small"),
        ),
        (
            "INSERT INTO t (id, v, m) VALUES (9, 'z', 'long')",
            "invalid",
            Some("m"),
        ),
        (
            "INSERT INTO t (id, v, g) VALUES (9, 'z', 'x')",
            "invalid",
            Some("g"),
        ),
        ("DELETE FROM t WHERE id = 1", "invalid", None),
        ("INSERT INTO c VALUES (7)", "invalid", Some("t")),
        ("UPDATE t SET gone = 1", "source_changed", Some("gone")),
        ("DELETE FROM gone", "source_changed", None),
        ("DROP TABLE t", "denied", None),
        ("SELECT 1", "denied", None),
    ] {
        let error = sql.execute(statement(text, "[]", 1)).await.expect_err(text);
        assert_eq!(
            (error.code.word(), error.field.as_deref()),
            (code, field),
            "{text}: {error:?}"
        );
        assert!(error.nothing_changed, "{text}: {error:?}");
    }
    let one = |text| SqlStatement {
        options: Some(r#"{"expect_rows":1,"write":true}"#),
        ..statement(text, "[]", 9)
    };
    for (text, outcome) in [
        ("UPDATE t SET g = 2 WHERE g = 1", Err("conflict")),
        ("UPDATE t SET g = 2 WHERE g = 7", Err("not_found")),
        // A row that is found counts, though it stays as it was.
        ("UPDATE t SET g = 1 WHERE id = 2", Ok(1)),
        ("UPDATE t SET g = 3 WHERE id = 2", Ok(1)),
        ("INSERT INTO t (id, v) VALUES (3, 'c') RETURNING id", Ok(1)),
        ("DELETE FROM t WHERE id = 3 RETURNING id", Ok(1)),
    ] {
        let done = sql
            .execute(one(text))
            .await
            .map_err(|error| error.code.word());
        assert_eq!(done, outcome, "{text}");
    }
    let rows = query(&sql, "SELECT id, g FROM t ORDER BY id", "[]", 9).await;
    assert_eq!(
        rows.expect("rows").records,
        r#"[{"id":1,"g":1},{"id":2,"g":3}]"#
    );
    let with_read = |text, read: &str, when: &str| {
        let options = format!(
            r#"{{"write":true,"expect_rows":1,"returning":{{"text":"{read}","parameters":[2],"when":"{when}"}}}}"#
        );
        let sql = &sql;
        async move {
            let statement = SqlStatement {
                options: Some(&options),
                ..statement(text, "[]", 1)
            };
            sql.query_write(statement).await
        }
    };
    let read = "SELECT id, g FROM t WHERE id = ?";
    let after = with_read("UPDATE t SET g = 4 WHERE id = 2", read, "after").await;
    assert_eq!(after.expect("updated").records, r#"[{"id":2,"g":4}]"#);
    let unseen = with_read("UPDATE t SET id = 20 WHERE id = 2", read, "after").await;
    assert_eq!(unseen.expect_err("not shown").code.word(), "upstream_error");
    let refused = with_read(
        "DELETE FROM t WHERE id = 2",
        "SELECT 1 INTO OUTFILE '/x'",
        "before",
    )
    .await;
    assert_eq!(refused.expect_err("a file").code.word(), "denied");
    let before = with_read("DELETE FROM t WHERE id = 2", read, "before").await;
    assert_eq!(before.expect("deleted").records, r#"[{"id":2,"g":4}]"#);
    let left = query(&sql, "SELECT id FROM t", "[]", 9).await;
    assert_eq!(left.expect("rows").records, r#"[{"id":1}]"#);
}

/// Sessions of a pool serve one caller after the other.
#[tokio::test]
async fn a_caller_reads_no_number_of_another_one() {
    let (url, _) = filled("CREATE TABLE n (id int AUTO_INCREMENT PRIMARY KEY, v varchar(9))");
    let sql = connect(ConnectionConfig::Mysql {
        url,
        write: true,
        pool_max: Some(1),
    });
    let made = sql.execute(statement("INSERT INTO n (v) VALUES ('a')", "[]", 1));
    assert_eq!(made.await.expect("a row"), 1);
    let last = query(&sql, "SELECT LAST_INSERT_ID() AS n", "[]", 1).await;
    assert_eq!(last.expect("a number").records, r#"[{"n":0}]"#);
    let copied = "INSERT INTO n (v) VALUES (LAST_INSERT_ID())";
    sql.execute(statement(copied, "[]", 1))
        .await
        .expect("a row");
    let copied = query(&sql, "SELECT v FROM n WHERE id = 2", "[]", 1).await;
    assert_eq!(copied.expect("a row").records, r#"[{"v":"0"}]"#);
}

/// The sign of a number is that of its column, whatever the server calls the type.
/// A server may cut every answer, and says nothing of it.
#[tokio::test]
async fn no_setting_of_the_server_cuts_an_answer() {
    let limited = [
        "--skip-networking",
        "--init-connect=SET sql_select_limit = 2",
    ];
    let server = MariadbServer::started(&limited);
    let url = server.database();
    server.script(
        &url,
        "CREATE TABLE n (id int PRIMARY KEY); INSERT INTO n VALUES (1), (2), (3), (4)",
    );
    let sql = open(&url, false);
    let rows = query(&sql, "SELECT id FROM n ORDER BY id", "[]", 9).await;
    let rows = rows.expect("rows");
    assert_eq!(rows.records, r#"[{"id":1},{"id":2},{"id":3},{"id":4}]"#);
    assert!(!rows.truncated);
}

#[tokio::test]
async fn flags_without_a_sign_are_read_as_they_are() {
    let (_, sql) = filled(
        "CREATE TABLE f (a tinyint(1), b tinyint(1) unsigned); INSERT INTO f VALUES (-1, 255)",
    );
    let rows = query(&sql, "SELECT * FROM f", "[]", 1).await;
    assert_eq!(rows.expect("a row").records, r#"[{"a":-1,"b":255}]"#);
}

#[tokio::test]
async fn statements_end_with_their_time_and_their_callers() {
    let (url, sql) = filled(TABLES);
    let soon = |text| SqlStatement {
        deadline: Instant::now() + Duration::from_millis(200),
        ..statement(text, "[]", 1)
    };
    for _ in 0..3 {
        let error = sql
            .query(soon("SELECT SLEEP(60) AS s"))
            .await
            .expect_err("late");
        assert_eq!(error.code.word(), "timeout", "{error:?}");
    }
    let late = sql
        .execute(soon("UPDATE t SET g = 5 WHERE SLEEP(60) = 0"))
        .await;
    let late = late.expect_err("late");
    assert_eq!(late.code.word(), "timeout", "{late:?}");
    assert!(late.nothing_changed);
    // There are more lost readers than sessions, each of which would hold one for a minute.
    for _ in 0..25 {
        let lost = sql.query(statement("SELECT SLEEP(60) AS lost", "[]", 1));
        assert!(
            tokio::time::timeout(Duration::from_millis(20), lost)
                .await
                .is_err()
        );
    }
    let endless = "SELECT a.seq AS n FROM seq_1_to_1000000 a JOIN seq_1_to_1000000 b";
    assert!(query(&sql, endless, "[]", 2).await.expect("cut").truncated);
    let large = "SELECT REPEAT('x', 1000000) AS a FROM seq_1_to_1000000";
    let error = query(&sql, large, "[]", 1000).await.expect_err("8 MiB");
    assert_eq!(error.code.word(), "too_large");
    let begin = Instant::now();
    let running = "SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST
        WHERE (INFO LIKE '%AS lost%' OR INFO LIKE '%seq_1_to_1000000%') AND ID <> CONNECTION_ID()";
    while query(&sql, running, "[]", 1)
        .await
        .expect("free again")
        .records
        != r#"[{"n":0}]"#
    {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "reads go on without their callers"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // A write goes on without its caller.
    let slow = "INSERT INTO t (id, v) SELECT 50, 'slow' FROM (SELECT SLEEP(1)) AS s";
    let lost = sql.execute(statement(slow, "[]", 0));
    assert!(
        tokio::time::timeout(Duration::from_millis(50), lost)
            .await
            .is_err()
    );
    let begin = Instant::now();
    let made = "SELECT v FROM t WHERE id = 50";
    while query(&sql, made, "[]", 1).await.expect("read").records != r#"[{"v":"slow"}]"# {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "the write was lost"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // A table is altered while a session keeps its statement.
    let read = || query(&sql, "SELECT * FROM c", "[]", 1);
    assert_eq!(read().await.expect("before").records, r#"[{"t":1}]"#);
    MariadbServer::shared().script(&url, "ALTER TABLE c ADD COLUMN added int DEFAULT 5");
    assert_eq!(
        read().await.expect("after").records,
        r#"[{"t":1,"added":5}]"#
    );
}

/// A caller's own time says nothing of a server. Before, every caller was answered that it is away.
#[tokio::test]
async fn a_caller_with_little_time_closes_no_pool() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("an address");
    for config in [
        ConnectionConfig::Mysql {
            url: format!("mysql://user@{address}/db"),
            write: false,
            pool_max: None,
        },
        ConnectionConfig::Postgresql {
            url: format!("postgres://user@{address}/db"),
            write: false,
            pool_max: None,
        },
    ] {
        let sql = connect(config);
        for _ in 0..2 {
            let short = SqlStatement {
                deadline: Instant::now() + Duration::from_millis(100),
                ..statement("SELECT 1 AS a", "[]", 1)
            };
            let error = sql.query(short).await.expect_err("it is silent");
            assert_eq!(error.code.word(), "timeout", "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let mut server = MariadbServer::started(&["--skip-networking"]);
    let url = server.database();
    let sql = open(&url, true);
    let read = || query(&sql, "SELECT 1 AS a", "[]", 1);
    read().await.expect("up");
    server.stop();
    let begin = Instant::now();
    assert_eq!(read().await.expect_err("down").code.word(), "unavailable");
    assert!(begin.elapsed() < Duration::from_secs(20));
    server.start(&["--skip-networking"]);
    assert_eq!(read().await.expect("up again").records, r#"[{"a":1}]"#);
    for url in [
        "mysql://user:hunter2@127.0.0.1:1/db",
        "mariadb://user:hunter2@no-such-host.invalid/db",
    ] {
        let error = query(&open(url, false), "SELECT 1 AS a", "[]", 1)
            .await
            .expect_err(url);
        assert_eq!(error.code.word(), "unavailable");
        let printed = format!("{error:?}");
        assert!(!printed.contains("hunter2"), "{printed}");
        assert!(
            !error.message.contains("127.0.0.1") && !error.message.contains("host"),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn tls_passwords_and_rights_are_as_they_have_to_be() {
    let mut server = MariadbServer::new();
    let script = "set -e; umask 077; cd \"$1\"
        openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority
        openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
        echo subjectAltName=DNS:localhost > names
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names";
    let made = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(server.folder())
        .output();
    assert!(made.expect("a shell").status.success());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let folder = server.folder().display().to_string();
    server.start(&[
        "--bind-address=127.0.0.1",
        &format!("--port={port}"),
        &format!("--ssl-cert={folder}/server.pem"),
        &format!("--ssl-key={folder}/server.key"),
    ]);
    server.script(
        "",
        "CREATE DATABASE d; CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'p@ss/wörd'; GRANT SELECT ON d.* TO plain@'127.0.0.1';
         CREATE USER secure@'127.0.0.1' IDENTIFIED BY 'secure' REQUIRE SSL; GRANT SELECT ON d.* TO secure@'127.0.0.1';
         CREATE USER filer@'127.0.0.1'; GRANT FILE ON *.* TO filer@'127.0.0.1'; GRANT SELECT ON d.* TO filer@'127.0.0.1';
         CREATE USER boss@'127.0.0.1'; GRANT ALL ON *.* TO boss@'127.0.0.1';",
    );
    let plain = "plain:p%40ss%2Fw%C3%B6rd@";
    let full = format!("sslmode=verify-full&sslrootcert={folder}/ca.pem");
    for (login, host, parameters, expected) in [
        (plain, "localhost", "", Ok("true")),
        (plain, "localhost", "sslmode=require", Ok("true")),
        (plain, "localhost", "ssl-mode=REQUIRED", Ok("true")),
        (plain, "localhost", "sslmode=disable", Ok("false")),
        (plain, "localhost", full.as_str(), Ok("true")),
        (plain, "127.0.0.1", full.as_str(), Err("unavailable")),
        (
            plain,
            "localhost",
            "sslmode=verify-full",
            Err("unavailable"),
        ),
        (
            plain,
            "localhost",
            "sslmode=verify-full&sslrootcert=/gone.pem",
            Err("unavailable"),
        ),
        ("plain:hunter2@", "localhost", "", Err("upstream_error")),
        ("other:hunter2@", "localhost", "", Err("upstream_error")),
        ("secure:secure@", "localhost", "", Ok("true")),
        (
            "secure:secure@",
            "localhost",
            "sslmode=disable",
            Err("upstream_error"),
        ),
        ("filer@", "localhost", "", Err("denied")),
        ("boss@", "localhost", "", Err("denied")),
    ] {
        let url = format!("mysql://{login}{host}:{port}/d?{parameters}");
        let text = "SELECT VARIABLE_VALUE <> '' AS tls FROM information_schema.SESSION_STATUS
            WHERE VARIABLE_NAME = 'Ssl_cipher'";
        match (query(&open(&url, false), text, "[]", 1).await, expected) {
            (Ok(rows), Ok(tls)) => {
                let tls = format!(r#"[{{"tls":{}}}]"#, u8::from(tls == "true"));
                assert_eq!(rows.records, tls, "{url}");
            }
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
    }
    // One account has no right on a database of this name, and the other may see that there is none.
    for login in [plain, "boss@"] {
        let url = format!("mysql://{login}localhost:{port}/absent");
        let error = query(&open(&url, false), "SELECT 1 AS one", "[]", 1).await;
        let error = error.expect_err("no such database");
        assert_eq!(error.code.word(), "upstream_error", "{error:?}");
        assert!(
            error.message.contains("no database of the name"),
            "{error:?}"
        );
    }
    assert!(fs::exists(server.folder()).expect("a folder"));
    let folder = server.folder().to_owned();
    drop(server);
    assert!(
        !fs::exists(folder).expect("a folder"),
        "nothing is left of it"
    );
}

fn open(url: &str, write: bool) -> Arc<SqlConnection> {
    connect(ConnectionConfig::Mysql {
        url: url.to_owned(),
        write,
        pool_max: None,
    })
}
