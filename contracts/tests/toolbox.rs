//! Configurations of Toolbox become contracts, and what is not taken is reported.

use weir_contracts::{form, import::toolbox};

const FILE: &str = include_str!("import/toolbox.yaml");

#[test]
fn statements_are_translated_and_the_rest_is_told() {
    let imported =
        toolbox("tools.yaml", FILE, None).unwrap_or_else(|problems| panic!("{problems:?}"));
    let source =
        form::read("c.yaml", &imported.contract).unwrap_or_else(|problems| panic!("{problems:?}"));
    let tools: Vec<&str> = source.tools.iter().map(|tool| tool.tool.as_str()).collect();
    assert_eq!(
        tools,
        ["search-orders", "orders-of", "mark-paid", "count-by-city"]
    );
    let settings = |at: usize| &source.collections[at].settings;
    assert_eq!(
        settings(0)["query"],
        "SELECT id, city, total FROM orders\nWHERE city ILIKE '%' || :city || '%' AND total >= :least AND note <> '$1'\n\
         ORDER BY total DESC LIMIT :limit"
    );
    assert_eq!(
        settings(0)["parameters"]["least"],
        serde_json::json!({ "type": "number" })
    );
    assert_eq!(
        settings(1)["parameters"]["ids"],
        serde_json::json!({ "type": "list", "of": "integer", "required": true })
    );
    assert_eq!(
        settings(1)["query"],
        "SELECT id, city FROM orders WHERE id = ANY(:ids)"
    );
    assert_eq!(
        settings(2)["statement"],
        "UPDATE orders SET paid = 1, note = :note WHERE id = :order_id"
    );
    assert_eq!(
        settings(3)["query"],
        "SELECT city, count(*) AS orders FROM orders WHERE city IN (:first, :second) GROUP BY city"
    );
    // A list has an argument `limit` of its own.
    assert!(
        imported
            .contract
            .contains("{ name: limit_value, type: number, param: limit, required: true")
    );
    assert!(imported.contract.contains("default: 0"));

    let left_out: Vec<(&str, &str)> = imported
        .remarks
        .iter()
        .filter(|remark| remark.left_out)
        .map(|remark| (remark.place.as_str(), remark.reason))
        .collect();
    assert_eq!(
        left_out,
        [
            ("/authServices", "section"),
            ("/sources/warehouse", "source"),
            ("/tools/any-table", "template"),
            ("/tools/run-sql", "tool"),
            ("/tools/in-warehouse", "source"),
            ("/tools/my-orders", "parameter"),
            ("/tools/make-table", "statement"),
            ("/tools/too-few", "parameter"),
        ]
    );
    let notes: Vec<(&str, &str)> = imported
        .remarks
        .iter()
        .filter(|remark| !remark.left_out)
        .map(|remark| (remark.place.as_str(), remark.reason))
        .collect();
    assert_eq!(
        notes,
        [
            ("/tools/search-orders", "order"),
            ("/tools/mark-paid", "rows"),
            ("/toolsets/clerks", "toolset"),
            ("/toolsets/nothing", "toolset"),
            ("/sources/shop-pg", "password"),
        ]
    );
}

#[test]
fn connections_grants_and_views_are_written_without_secrets() {
    let imported = toolbox("tools.yaml", FILE, None).expect("it is translated");
    assert!(!imported.contract.contains("hunter2") && !imported.connection.contains("hunter2"));
    assert_eq!(
        imported.connection,
        r#"[connections.shop-pg]
kind = "postgresql"
url = "postgresql://agent:${env:SHOP_PG_PASSWORD}@db.example:5433/shop"

[connections.shop-file]
kind = "sqlite"
path = "data/shop.db"
write = true

[connections.shop-my]
kind = "mysql"
url = "mysql://${env:MYSQL_USER}:${env:MYSQL_PASSWORD}@${env:MYSQL_HOST}:3306/shop"

[plugins.sql.grants]
shop-pg = "read"
shop-file = "statements"
shop-my = "read"

[views.clerks]
tools = ["search-orders", "mark-paid"]
"#
    );
}

/// The later form has a document for each part.
#[test]
fn a_document_for_each_part_is_the_same() {
    let text = "kind: source\nname: shop\ntype: sqlite\ndatabase: shop.db\n---\nkind: tool\nname: one\ntype: sqlite-sql\nsource: shop\n\
                description: One order.\nparameters:\n  - name: id\n    type: integer\n    description: Its number.\n\
                statement: |\n  SELECT id\n  ---\n  FROM orders WHERE id = ?\n---\nkind: toolset\nname: all\ntools: [one]\n";
    let text = text.replace("  ---\n", "");
    let imported = toolbox("tools.yaml", &text, Some("shop"))
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!(
        imported.contract,
        "contract: shop
collections:
  one:
    adapter: sql
    settings:
      connection: shop
      query: |-
        SELECT id
        FROM orders WHERE id = :id
      parameters:
        id: { type: integer, required: true }
tools:
  - tool: one
    description: One order.
    verb: list
    collection: one
    fields:
      - { name: id, type: number, param: id, required: true, help: Its number. }
"
    );
    assert!(
        imported
            .connection
            .ends_with("[views.all]\ntools = [\"one\"]\n"),
        "{}",
        imported.connection
    );
}

/// A connection takes what begins with SELECT, and Toolbox a query whose parts are in parentheses.
#[test]
fn a_query_in_parentheses_is_one_of_another_query() {
    let text = "sources: { y: { kind: postgres, host: h, database: d, user: u, password: p } }\n\
                tools: { both: { kind: postgres-sql, source: y, description: Both., statement: \"(SELECT a FROM t) UNION ALL (SELECT b FROM u) ORDER BY 1;\" } }\n";
    let imported =
        toolbox("tools.yaml", text, None).unwrap_or_else(|problems| panic!("{problems:?}"));
    let source =
        form::read("c.yaml", &imported.contract).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!(
        source.collections[0].settings["query"],
        "SELECT * FROM (\n(SELECT a FROM t) UNION ALL (SELECT b FROM u) ORDER BY 1\n) AS answers"
    );
}

/// Clients that make a function of each tool in Python can call no argument `from`.
#[test]
fn a_parameter_named_by_a_word_of_python_has_another_argument() {
    let text = "sources: { y: { kind: sqlite, database: y.db } }\n\
                tools: { after: { kind: sqlite-sql, source: y, description: What comes after., statement: \"SELECT a FROM t WHERE a > ? AND b > ?\", \
                parameters: [{ name: from, type: integer, description: Where it begins. }, \
                { name: from_value, type: integer, description: A value. }] } }\n";
    let imported =
        toolbox("tools.yaml", text, None).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert!(
        imported
            .contract
            .contains("{ name: from_value_2, type: number, param: from, required: true"),
        "{}",
        imported.contract
    );
}

/// One tool that the adapter refuses would spoil the whole contract.
#[test]
fn writes_that_a_database_does_not_count_are_left_out() {
    let mysql = "{ kind: mysql, host: h, database: d, user: u, password: p }";
    for (source, statement, left_out) in [
        (mysql, "INSERT INTO t (a) VALUES (1)", None),
        (mysql, "INSERT INTO shop.t (a) SELECT b FROM u JOIN v", None),
        (
            mysql,
            "UPDATE `t` SET a = 1, b = 2 WHERE c IN (SELECT d FROM u, v);",
            None,
        ),
        (mysql, "UPDATE t SET duplicate = 1 WHERE a = 1", None),
        (mysql, "DELETE FROM t WHERE a = 1", None),
        (
            mysql,
            "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
            Some("is counted twice"),
        ),
        (
            mysql,
            "INSERT INTO t (a) VALUES (1) RETURNING a",
            Some("leave RETURNING out"),
        ),
        (
            mysql,
            "INSERT IGNORE INTO t (a) VALUES (1)",
            Some("IGNORE is not taken"),
        ),
        (
            mysql,
            "UPDATE LOW_PRIORITY t SET a = 1",
            Some("LOW_PRIORITY is not taken"),
        ),
        (mysql, "UPDATE t, u SET t.a = u.a", Some("one table")),
        (
            mysql,
            "UPDATE t JOIN u USING (a) SET t.a = 1",
            Some("one table"),
        ),
        (mysql, "DELETE t FROM t JOIN u USING (a)", Some("one table")),
        (
            mysql,
            "DELETE FROM t USING t, u WHERE t.a = u.a",
            Some("one table"),
        ),
        (
            mysql,
            "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
            Some("have no MERGE"),
        ),
        (SQLITE, "UPDATE t SET a = 1 RETURNING a", None),
        (
            SQLITE,
            "WITH n AS (SELECT 1 AS a) UPDATE t SET a = (SELECT a FROM n)",
            None,
        ),
        (
            SQLITE,
            "INSERT OR REPLACE INTO t (a) VALUES (1)",
            Some("OR REPLACE"),
        ),
        (
            SQLITE,
            "REPLACE INTO t (a) VALUES (1)",
            Some("neither reads nor changes rows"),
        ),
        (
            "{ kind: postgres, host: h, database: d, user: u, password: p }",
            "WITH gone AS (DELETE FROM t RETURNING a) INSERT INTO u SELECT a FROM gone",
            Some("DELETE inside another statement"),
        ),
    ] {
        let kind = match source {
            SQLITE => "sqlite-sql",
            source if source == mysql => "mysql-sql",
            _ => "postgres-sql",
        };
        let text = format!(
            "sources: {{ y: {source} }}\n\
             tools:\n  kept: {{ kind: {kind}, source: y, description: One., statement: SELECT 1 AS a }}\n  \
             written: {{ kind: {kind}, source: y, description: One., statement: \"{statement}\" }}\n"
        );
        let imported =
            toolbox("tools.yaml", &text, None).unwrap_or_else(|problems| panic!("{problems:?}"));
        let why = imported.remarks.iter().find(|remark| {
            remark.left_out && (&*remark.place, remark.reason) == ("/tools/written", "statement")
        });
        let is_said = match (left_out, why) {
            (Some(part), Some(remark)) => remark.message.contains(part),
            (expected, found) => expected.is_none() && found.is_none(),
        };
        assert!(is_said, "{statement}: {:?}", imported.remarks);
        let written = imported.contract.contains("      statement: ");
        assert_eq!(
            written,
            left_out.is_none(),
            "{statement}: {}",
            imported.contract
        );
    }
}

const SQLITE: &str = "{ kind: sqlite, database: shop.db }";

/// The file is a stranger's.
#[test]
fn what_is_no_configuration_is_refused() {
    for (text, why) in [
        ("a: 1", "not a configuration of Toolbox"),
        (
            "tools: { x: { kind: sqlite-sql, source: y, statement: SELECT 1 } }",
            "no tool could be imported",
        ),
        ("tools: [", ""),
        (
            "sources: { y: { kind: sqlite } }\ntools: { \"x\\ny: {\": { kind: sqlite-sql, source: y, statement: SELECT 1 } }",
            "no tool could be imported",
        ),
    ] {
        let problems = toolbox("tools.yaml", text, None).expect_err(text);
        assert!(
            problems.iter().any(|problem| problem.message.contains(why)),
            "{text}: {problems:?}"
        );
    }
    let nasty = "sources: { \"y]\\n[plugins.sql]\": { kind: sqlite, database: \"a\\\"\\nb\" } }\n\
                 tools: { x: { kind: sqlite-sql, source: \"y]\\n[plugins.sql]\", description: \"a\\n  verb: delete\", statement: \"SELECT 1 AS a\\n  write: true\" } }";
    let imported =
        toolbox("tools.yaml", nasty, None).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert!(
        imported
            .connection
            .starts_with("[connections.y---plugins-sql-]\nkind = \"sqlite\"\npath = \"ab\"\n"),
        "{}",
        imported.connection
    );
    let source =
        form::read("c.yaml", &imported.contract).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert!(!source.collections[0].write);
    assert_eq!(source.tools.len(), 1);
}
