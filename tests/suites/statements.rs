//! Queries and statements of the operator's own, as `docs/adapters/sql.md` shows them, over both databases.

use serde_json::{Value, json};
use weir_tests::{Gateway, House, MariadbServer, Modern, Postgres, place};

const TABLE: &str = "
    CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT, total NUMERIC(10,2), placed DATE, paid BOOLEAN);
    INSERT INTO orders VALUES
    (1, 'Wien', 10.50, '2026-10-01', FALSE), (2, 'Graz', 99.99, '2026-10-02', FALSE), (3, 'Wien', 200, '2026-10-03', TRUE),
    (4, 'Linz', 0.5, '2026-10-04', FALSE), (5, NULL, 50, '2026-11-01', TRUE);";

/// Returns the contracts that the page shows whole.
fn contracts() -> Vec<String> {
    let page = std::fs::read_to_string(place::repository().join("docs/adapters/sql.md"));
    let page = page.expect("the page");
    let blocks = page.split("\n```yaml\n").skip(1);
    let blocks = blocks.filter_map(|rest| Some(rest.split_once("\n```")?.0.to_owned()));
    blocks
        .filter(|block| block.starts_with("contract:"))
        .collect()
}

/// A database with the orders, and a house whose plugin has a grant on it.
struct Shop {
    house: House,
    _postgres: Option<Postgres>,
}

impl Shop {
    fn sqlite(grant: &str) -> Self {
        let house = House::new().config(&format!(
            "[connections.shop]\nkind = \"sqlite\"\npath = \"data/shop.db\"\nwrite = true\n[plugins.sql.grants]\nshop = \"{grant}\""
        ));
        rusqlite::Connection::open(house.path().join("data/shop.db"))
            .and_then(|database| database.execute_batch(TABLE))
            .expect("filled");
        Self {
            house,
            _postgres: None,
        }
    }

    fn postgresql(grant: &str) -> Self {
        let cluster = Postgres::start();
        cluster.sql(TABLE);
        let house = House::new().config(&format!(
            "[connections.shop]\nkind = \"postgresql\"\nurl = \"{}\"\nwrite = true\n[plugins.sql.grants]\nshop = \"{grant}\"",
            cluster.url()
        ));
        Self {
            house,
            _postgres: Some(cluster),
        }
    }

    fn mariadb(grant: &str) -> Self {
        let server = MariadbServer::shared();
        let url = server.database();
        server.script(&url, TABLE);
        let house = House::new().config(&format!(
            "[connections.shop]\nkind = \"mysql\"\nurl = \"{url}\"\nwrite = true\n[plugins.sql.grants]\nshop = \"{grant}\""
        ));
        Self {
            house,
            _postgres: None,
        }
    }

    /// Serves the contracts of the page.
    fn serve(&self) -> (Gateway, Modern) {
        for (at, contract) in contracts().iter().enumerate() {
            self.house.write(&format!("contracts/{at}.yaml"), contract);
        }
        let (gateway, client) = self.house.serve_client();
        (gateway, client)
    }
}

/// Returns what a call answers, without the id of the call.
async fn answer(client: &Modern, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments).await;
    let mut content = result["structuredContent"].clone();
    if let Some(members) = content.as_object_mut() {
        members.remove("call_id");
        members.remove("next");
    }
    content
}

#[tokio::test]
async fn the_examples_of_the_page_run_over_both_databases() {
    for shop in [Shop::sqlite("statements"), Shop::postgresql("statements")] {
        let (gateway, client) = shop.serve();
        let list = |arguments: Value| answer(&client, "list_big_orders", arguments);
        let ids = |answer: Value| -> Vec<i64> {
            let records = answer["records"]
                .as_array()
                .unwrap_or_else(|| panic!("{answer}"));
            records
                .iter()
                .filter_map(|record| record["id"].as_i64())
                .collect()
        };
        assert_eq!(ids(list(json!({"least": 10})).await), [3, 2, 5, 1]);
        assert_eq!(
            ids(list(json!({"least": 10, "cities": ["Wien", "Linz"]})).await),
            [3, 1]
        );
        assert_eq!(
            ids(list(json!({"least": 10, "placed_since": "2026-10-03"})).await),
            [3, 5]
        );
        let first = client
            .call("list_big_orders", json!({"least": 10, "limit": 3}))
            .await;
        let cursor = first["structuredContent"]["next"].clone();
        assert!(cursor.is_string(), "{first}");
        let rest = list(json!({"least": 10, "limit": 3, "cursor": cursor})).await;
        assert_eq!(ids(rest), [1]);
        // A cursor belongs to its parameters.
        let other = list(json!({"least": 11, "limit": 3, "cursor": cursor})).await;
        assert_eq!(other["code"], "invalid_arguments", "{other}");
        for wrong in [
            json!({}),
            json!({"least": "1 OR 1=1"}),
            json!({"least": 1, "cities": ["x'"]}),
        ] {
            let refused = list(wrong.clone()).await;
            assert_eq!(refused["code"], "invalid_arguments", "{wrong} {refused}");
        }

        let tool = client.tool("mark_order_paid").await;
        assert_eq!(tool["annotations"]["destructiveHint"], true);
        let paid = answer(&client, "mark_order_paid", json!({"id": 2})).await;
        assert_eq!(
            paid,
            json!({"status": "done", "record": {"id": 2, "city": "Graz", "total": "99.99", "paid": true}})
        );
        // The constant of the form keeps it from orders of less.
        let small = answer(&client, "mark_order_paid", json!({"id": 4})).await;
        assert_eq!(small["code"], "not_found", "{small}");
        let intents = crate::audit::records(&shop.house, &["--kind", "intent"]);
        assert_eq!(intents.len(), 2, "each write is announced: {intents:?}");
        let linz = answer(&client, "mark_city_paid", json!({"city": "Linz"})).await;
        assert_eq!(linz, json!({"status": "done", "record": {"rows": 1}}));
        assert!(!gateway.log().contains("panicked"));
    }
}

/// Returns the contract of the page for a database that answers how many rows a statement has changed.
fn counted() -> String {
    contracts()[1].replace("        RETURNING id, city, total, paid\n", "")
}

/// MariaDB accepts the same statement without RETURNING, under the same grant, and changes at most the allowed number
/// of rows, or none.
#[tokio::test]
async fn a_statement_runs_on_mariadb_and_answers_its_rows() {
    let shop = Shop::mariadb("statements");
    shop.house.write("contracts/pay.yaml", counted());
    let all = counted()
        .replace("contract: payments", "contract: all-payments")
        .replace("mark_order_paid", "mark_all_paid")
        .replace("id = :id AND ", "id <> :id AND ");
    shop.house.write("contracts/all.yaml", &all);
    let (gateway, client) = shop.house.serve_client();
    let (tools, _) = client.list().await;
    let tool = tools.iter().find(|tool| tool["name"] == "mark_order_paid");
    let tool = tool.unwrap_or_else(|| panic!("{tools:?} {}", gateway.log()));
    assert_eq!(tool["annotations"]["destructiveHint"], true);
    for (id, rows) in [(2, 1), (4, 0), (99, 0)] {
        let paid = answer(&client, "mark_order_paid", json!({"id": id})).await;
        assert_eq!(paid, json!({"status": "done", "record": {"rows": rows}}));
    }
    let refused = answer(&client, "mark_all_paid", json!({"id": 99})).await;
    assert_eq!(refused["code"], "conflict", "{refused}");
    assert_eq!(
        refused["message"],
        "the statement would change 4 rows and may change 1, so nothing was changed"
    );
    let again = answer(&client, "mark_all_paid", json!({"id": 1})).await;
    assert_eq!(again["code"], "conflict", "nothing was changed: {again}");
    let intents = crate::audit::records(&shop.house, &["--kind", "intent"]);
    assert_eq!(intents.len(), 5, "each write is announced: {intents:?}");
}

/// A grant for writing does not permit the contract's own SQL texts.
#[tokio::test]
async fn a_statement_needs_the_grant_for_statements() {
    for (shop, statement) in [
        (Shop::sqlite("read"), contracts()[1].clone()),
        (Shop::sqlite("write"), contracts()[1].clone()),
        (Shop::mariadb("write"), counted()),
    ] {
        shop.house.write("contracts/pay.yaml", statement);
        let (code, _, printed) = shop.house.run(&["compile", "contracts/pay.yaml"]);
        assert_ne!(code, 0, "{printed}");
        assert!(
            printed.contains("needs the grant \"statements\" on the connection `shop`"),
            "{printed}"
        );
    }
    let shop = Shop::sqlite("statements");
    shop.house.write("contracts/pay.yaml", &contracts()[1]);
    shop.house.succeed(&["compile", "contracts/pay.yaml"]);
}

const QUERY: &str = "-- what a city owes
SELECT id, city, total, placed FROM orders
WHERE total BETWEEN :low AND :high AND (:city IS NULL OR city = :city) -- :not_one
LIMIT :most;
";

/// A file of SQL becomes a contract that is served as it is.
#[tokio::test]
async fn a_query_in_a_file_is_drafted_and_served() {
    for shop in [
        Shop::sqlite("read"),
        Shop::postgresql("read"),
        Shop::mariadb("read"),
    ] {
        shop.house.write("debts.sql", QUERY);
        let words = ["draft", "--connection", "shop", "--query", "debts.sql"];
        let (code, contract, printed) = shop.house.run(&words);
        assert_eq!(code, 0, "{printed}");
        for line in [
            "        SELECT id, city, total, placed FROM orders\n",
            "        low: { type: decimal, required: true }\n",
            "        city: { type: string }\n",
            "        most: { type: integer, required: true }\n",
            "      - { name: low, type: number, param: low, required: true }\n",
        ] {
            assert!(contract.contains(line), "{line}{contract}");
        }
        assert!(!printed.contains("ORDER BY"), "{printed}");
        let ordered = QUERY.replace("LIMIT", "ORDER BY total DESC LIMIT");
        shop.house.write("ordered.sql", ordered);
        let words = ["draft", "--connection", "shop", "--query", "ordered.sql"];
        let (code, _, printed) = shop.house.run(&words);
        assert!(
            code == 0
                && printed.contains(
                    "note: The ORDER BY of the query decides which records its LIMIT takes"
                ),
            "{printed}"
        );
        shop.house.write("contracts/debts.yaml", &contract);
        let (_gateway, client) = shop.house.serve_client();
        let arguments = json!({"low": 1, "high": 100.0, "city": "Graz", "most": 5});
        let found = answer(&client, "list_debts", arguments).await;
        assert_eq!(
            found["records"],
            json!([{"id": 2, "city": "Graz", "total": "99.99", "placed": "2026-10-02"}]),
            "{found}"
        );
        let most = answer(
            &client,
            "list_debts",
            json!({"low": 1, "high": 300, "most": 2}),
        )
        .await;
        assert_eq!(most["records"].as_array().map(Vec::len), Some(2), "{most}");
    }
}

const TOOLBOX: &str = "
sources:
  shop: { kind: sqlite, database: data/shop.db }
tools:
  orders-of-cities:
    kind: sqlite-sql
    source: shop
    description: Orders of two cities.
    parameters:
      - { name: one, type: string, description: A city. }
      - { name: other-city, type: string, description: Another. }
    statement: SELECT id, city FROM orders WHERE city IN (?, ?) AND city <> '?'
  mark-paid:
    kind: sqlite-sql
    source: shop
    description: Marks an order as paid.
    parameters: [{ name: id, type: integer, description: Its number. }]
    statement: UPDATE orders SET paid = 1 WHERE id = ?
  any-table:
    kind: sqlite-sql
    source: shop
    description: Any table.
    templateParameters: [{ name: table, type: string, description: Its name. }]
    statement: SELECT * FROM {{.table}}
toolsets:
  all: [orders-of-cities, mark-paid]
";

/// A configuration of Toolbox is translated, and what it lacks is reported.
#[tokio::test]
async fn a_configuration_of_toolbox_is_translated_and_served() {
    let shop = Shop::sqlite("statements");
    shop.house.write("tools.yaml", TOOLBOX);
    let (code, contract, printed) = shop.house.run(&["draft", "--toolbox", "tools.yaml"]);
    assert_eq!(code, 3, "{printed}");
    assert!(
        printed.contains("2 tools; 1 parts left out, 1 notes"),
        "{printed}"
    );
    assert!(printed.contains("at /tools/any-table"), "{printed}");
    assert!(printed.contains("[views.all]"), "{printed}");
    let connection = ["draft", "--toolbox", "tools.yaml", "--print", "connection"];
    let (_, connection, _) = shop.house.run(&connection);
    assert!(connection.contains("shop = \"statements\""), "{connection}");
    shop.house.write("contracts/toolbox.yaml", &contract);
    let (_gateway, client) = shop.house.serve_client();
    let found = answer(
        &client,
        "orders-of-cities",
        json!({"one": "Graz", "other_city": "Linz"}),
    )
    .await;
    assert_eq!(
        found["records"],
        json!([{"id": 2, "city": "Graz"}, {"id": 4, "city": "Linz"}]),
        "{found}"
    );
    let paid = answer(&client, "mark-paid", json!({"id": 2})).await;
    assert_eq!(paid, json!({"status": "done", "record": {"rows": 1}}));
    let old = ["import", "toolbox", "tools.yaml"];
    let (code, again, printed) = shop.house.run(&old);
    assert_eq!((code, again), (3, contract));
    assert!(
        printed.contains("weir draft --toolbox tools.yaml"),
        "{printed}"
    );
}

/// The package of Toolbox whose README has a configuration, and its digest.
const TOOLBOX_PACKAGE: (&str, &str) = (
    "@toolbox-sdk/server@1.12.0",
    "ea781db2a850629f429bebe5724e20c4e4c543169bcdfd55a5690cf4f90c9c40",
);

/// Returns the configuration that Toolbox shows in its own package, fetched once.
fn toolbox_example() -> String {
    let folder = place::cache().join("toolbox");
    let readme = folder.join("package/README.md");
    let (package, digest) = TOOLBOX_PACKAGE;
    if !readme.exists() {
        let fetch = "set -e; rm -rf \"$1\"; mkdir -p \"$1\"; cd \"$1\"; npm pack --silent --ignore-scripts \"$2\" >name; \
                     echo \"$3  $(cat name)\" | sha256sum --check --quiet; tar xzf \"$(cat name)\"";
        let fetched = std::process::Command::new("sh")
            .args(["-c", fetch, "sh"])
            .arg(&folder)
            .args([package, digest])
            .status()
            .expect("sh runs");
        assert!(fetched.success(), "{package} cannot be fetched");
    }
    let readme = std::fs::read_to_string(readme).expect("the page of the package");
    let block = readme.split("```yaml\n").nth(1).expect("an example");
    let block = block.split("```").next().expect("its end");
    block.to_owned()
}

/// Statements as the configurations that Toolbox has built in write them: in parentheses, with casts of parameters, explained, and
/// with variables for everything that a source needs.
const TOOLBOX_OF_SERVER: &str = "
sources:
  main:
    kind: postgres
    host: ${PG_HOST}
    port: ${PG_PORT}
    database: ${PG_DATABASE}
    user: ${PG_USER}
    password: ${PG_PASSWORD}
    queryParams: ${PG_QUERY_PARAMS:}
tools:
  list_sizes:
    kind: postgres-sql
    source: main
    description: Lists the sizes of two kinds.
    statement: |
      (
          SELECT name, pg_size_pretty((size::bigint * 1024)::bigint) size FROM kinds WHERE name IN ('a', 'b')
      )
      UNION ALL
      (SELECT name, pg_size_pretty(size::bigint) FROM kinds WHERE name = 'c')
      ORDER BY 1 DESC;
  list_kinds:
    kind: postgres-sql
    source: main
    description: |
      Lists kinds.
    statement: |
      SELECT name, size FROM kinds WHERE size IS NOT NULL
      ORDER BY size DESC
      LIMIT COALESCE($1::int, 50);
    parameters:
      - name: limit
        description: \"How many at most.\"
        type: integer
        default: 50
  move_kinds:
    kind: postgres-sql
    source: main
    description: Moves kinds elsewhere.
    statement: WITH gone AS (DELETE FROM kinds RETURNING name) INSERT INTO others SELECT name FROM gone
  get_plan:
    kind: postgres-sql
    source: main
    description: Explains a statement.
    statement: EXPLAIN (FORMAT JSON) {{.query}};
    templateParameters: [{ name: query, type: string, description: The statement., required: true }]
  execute_sql: { kind: postgres-execute-sql, source: main, description: Runs SQL. }
toolsets:
  all: [list_sizes, list_kinds, get_plan, execute_sql]
";

/// Toolbox's own examples are translated and answer: the one of its package, and its built-in statements.
#[tokio::test]
async fn what_toolbox_itself_shows_is_translated_and_served() {
    let cluster = Postgres::start();
    cluster.sql(
        "CREATE TABLE hotels (id INTEGER PRIMARY KEY, name TEXT, stars INTEGER);
         INSERT INTO hotels VALUES (1, 'Hilton Basel', 4), (2, 'Marriott', 5), (3, 'Basel Inn', 3);
         CREATE TABLE kinds (name TEXT, size INTEGER); INSERT INTO kinds VALUES ('a', 1), ('b', 2), ('c', 3);",
    );
    let house = House::new();
    house.write("example.yaml", toolbox_example());
    house.write("server.yaml", TOOLBOX_OF_SERVER);
    let translated = |file: &str, left_out: &[&str]| {
        let words = [
            "draft",
            "--toolbox",
            file,
            "--name",
            file.trim_end_matches(".yaml"),
        ];
        let (code, contract, printed) = house.run(&words);
        assert_eq!(code, 3, "{printed}");
        for part in left_out {
            assert!(printed.contains(part), "{part}: {printed}");
        }
        house.write(&format!("contracts/{file}"), contract);
        let connection = [&words[..], &["--print", "connection"]].concat();
        let (_, connection, _) = house.run(&connection);
        connection
    };
    let connection = translated("example.yaml", &["at /prompts", "at /resources"]);
    assert!(
        connection.contains("[connections.my-pg-source]\nkind = \"postgresql\"\nurl = \"postgresql://postgres:${env:MY_PG_SOURCE_PASSWORD}@127.0.0.1:5432/toolbox_db\""),
        "{connection}"
    );
    let connection = translated(
        "server.yaml",
        &[
            "at /tools/move_kinds",
            "at /tools/get_plan",
            "at /tools/execute_sql",
            "2 tools; 3 parts left out",
        ],
    );
    assert!(
        connection.contains("postgresql://${env:PG_USER}:${env:PG_PASSWORD}@${env:PG_HOST}:${env:PG_PORT}/${env:PG_DATABASE}"),
        "{connection}"
    );
    let url = cluster.url();
    let house = house.config(&format!(
        "[connections.my-pg-source]\nkind = \"postgresql\"\nurl = \"{url}\"\n[connections.main]\nkind = \"postgresql\"\nurl = \"{url}\"\n\
         [plugins.sql.grants]\nmy-pg-source = \"read\"\nmain = \"read\""
    ));
    let (gateway, client) = house.serve_client();
    for (tool, arguments, expected) in [
        (
            "search-hotels-by-name",
            json!({"name": "basel"}),
            json!([{"id": 1, "name": "Hilton Basel", "stars": 4}, {"id": 3, "name": "Basel Inn", "stars": 3}]),
        ),
        (
            "list_sizes",
            json!({}),
            json!([{"name": "a", "size": "1024 bytes"}, {"name": "b", "size": "2048 bytes"}, {"name": "c", "size": "3 bytes"}]),
        ),
        (
            "list_kinds",
            json!({"limit_value": 2}),
            json!([{"name": "b", "size": 2}, {"name": "c", "size": 3}]),
        ),
    ] {
        let found = answer(&client, tool, arguments).await;
        let mut records = found["records"].as_array().cloned().unwrap_or_default();
        // A query has no key, and so its records no order that is promised.
        records.sort_by_key(|record| record.to_string());
        assert_eq!(json!(records), expected, "{tool} {found} {}", gateway.log());
    }
}

const ASKED: &str = r#"
contract: asked
collections:
  notes:
    adapter: sql
    key: [id]
    settings:
      connection: shop
      query: SELECT id, city, total FROM orders WHERE city = :one OR city IN (:many)
      parameters: { one: string, many: { type: list, of: string } }
tools:
  - tool: list_notes
    description: Lists orders.
    verb: list
    collection: notes
    order_by: [id, city]
    columns: [city, total]
    fields:
      - { name: one, type: text, param: one }
      - { name: many, type: list, of: { type: text }, param: many }
      - { name: city, type: text, match: contains-ci }
  - tool: summarize_notes
    description: Sums orders up.
    verb: summarize
    collection: notes
    group_by: [city]
    measures: [count, max(id)]
    fields:
      - { name: one, type: text, param: one }
"#;

/// Texts that became code elsewhere, in every place of a call that a text can be in.
#[tokio::test]
async fn no_argument_becomes_code() {
    let corpus = include_str!("../fixtures/injections.txt");
    let texts: Vec<&str> = corpus
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    for shop in [
        Shop::sqlite("read"),
        Shop::postgresql("read"),
        Shop::mariadb("read"),
    ] {
        shop.house.write("contracts/asked.yaml", ASKED);
        let (gateway, client) = shop.house.serve_client();
        let nothing = json!({"records": []});
        let graz = json!({"records": [{"id": 2, "city": "Graz", "total": "99.99"}]});
        for text in &texts {
            let ask = |tool: &'static str, arguments: Value| answer(&client, tool, arguments);
            assert_eq!(
                ask("list_notes", json!({"one": text})).await,
                nothing,
                "{text}"
            );
            let many = json!({"many": [text, "Graz"]});
            assert_eq!(ask("list_notes", many).await, graz, "{text}");
            let both = json!({"many": ["Graz"], "city": text});
            assert_eq!(
                ask("list_notes", both).await["records"],
                nothing["records"],
                "{text}"
            );
            let summed = ask("summarize_notes", json!({"one": text})).await;
            assert_eq!(
                summed,
                json!({"records": [{"count": 0}], "more": false}),
                "{text}"
            );
            for (tool, arguments) in [
                ("list_notes", json!({"order_by": [text]})),
                ("list_notes", json!({"columns": [text]})),
                ("list_notes", json!({"cursor": text})),
                ("list_notes", json!({*text: "x"})),
                ("summarize_notes", json!({"group_by": [text]})),
                ("summarize_notes", json!({"measures": [text]})),
                ("summarize_notes", json!({"order_by": [text]})),
                (
                    "summarize_notes",
                    json!({"having": [{"measure": text, "at_least": 1}]}),
                ),
            ] {
                let refused = ask(tool, arguments.clone()).await;
                assert_eq!(
                    refused["code"], "invalid_arguments",
                    "{arguments} {refused}"
                );
            }
        }
        let all = json!({"many": ["Wien", "Graz", "Linz"]});
        let left = answer(&client, "list_notes", all).await;
        assert_eq!(left["records"].as_array().map(Vec::len), Some(4), "{left}");
        assert!(!gateway.log().contains("panicked"));
    }
}
