//! A whole database at once: served without a configuration, and drafted as one contract.

use rusqlite::Connection;
use serde_json::{Value, json};
use weir_tests::{Gateway, House, MariadbServer, Modern, Postgres, gateway::read_output};

/// A shop with what databases have: keys and references, a view, records without a key, and columns of bytes.
const SHOP: &str = "
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers (id),
        status TEXT NOT NULL, total NUMERIC(10, 2) NOT NULL, ordered DATE NOT NULL);
    CREATE TABLE notes (author TEXT, words TEXT);
    CREATE VIEW paid AS SELECT id, total FROM orders WHERE status = 'paid';
    INSERT INTO customers VALUES (1, 'Ann', 'NO'), (2, 'Ben', 'NO'), (3, 'Cem', 'TR'), (4, 'Dee', 'NO'), (5, 'Eva', 'TR'),
        (6, 'Fil', 'NO');
    INSERT INTO orders VALUES (10, 1, 'paid', 12.5, '2026-10-01'), (11, 1, 'open', 7, '2026-10-02'),
        (12, 3, 'paid', 3, '2026-11-01'), (13, 3, 'open', 3, '2026-11-01'), (14, 3, 'paid', 3, '2026-11-01'),
        (15, 2, 'paid', 1, '2026-11-05');
    INSERT INTO notes VALUES ('Ann', 'called'), ('Ben', 'wrote');
";
/// More records than are served without a key.
const VISITS: &str = "
    CREATE TABLE visits (page TEXT, seconds INTEGER);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
        INSERT INTO visits SELECT '/' || i, i FROM n;
";

fn shop(house: House) -> House {
    let database = Connection::open(house.path().join("data/shop.db")).expect("a database");
    database.execute_batch(SHOP).expect("a shop");
    database.execute_batch(VISITS).expect("visits");
    drop(database);
    house
}

/// Returns the words of a command that needs no configuration.
fn alone<'w>(house: &'w House, words: &[&'w str]) -> Vec<String> {
    let plugins = house.plugins().display().to_string();
    let fixed = ["--plugins", &plugins, "--state", "state"];
    let all = words.iter().chain(fixed.iter());
    all.map(|word| (*word).to_owned()).collect()
}

fn serve(house: &House, words: &[&str]) -> Gateway {
    let words = alone(
        house,
        &[&["serve"], words, &["--listen", "127.0.0.1:0"]].concat(),
    );
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Gateway::start(house.weir(&words))
}

fn run(house: &House, words: &[&str]) -> (i32, String, String) {
    let words = alone(house, words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    house.run(&words)
}

async fn tool_names(client: &Modern) -> Vec<String> {
    let (tools, _) = client.list().await;
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_database_file_is_served_at_once_and_says_what_it_is() {
    let house = shop(House::new());
    let gateway = serve(&house, &["data/shop.db"]);
    gateway.wait_for_log("Claude Code");
    let screen = gateway.log();
    for line in [
        "shop: 4 of 5 tables and views served by 10 tools, which only read.",
        "  customers: 3 columns, key 'id'; get_customer, list_customers, summarize_customers",
        "  notes: 2 columns, no key; list_notes, summarize_notes",
        "  visits: it has no key, and more than 1000 records.",
    ] {
        assert!(
            screen.lines().any(|known| known == line),
            "{line}\n{screen}"
        );
    }
    let client = Modern::new(gateway.url());
    let names = tool_names(&client).await;
    let expected = [
        "get_customer",
        "get_order",
        "list_customers",
        "list_notes",
        "list_orders",
        "list_paids",
        "summarize_customers",
        "summarize_notes",
        "summarize_orders",
        "summarize_paids",
    ];
    assert_eq!(names, expected, "nothing writes");
    let order = client
        .call("get_order", json!({ "id": 12, "include": ["customer"] }))
        .await;
    assert_eq!(order["structuredContent"]["customer_id"], 3, "{order}");
    let cem = json!({ "id": 3, "name": "Cem", "country": "TR" });
    assert_eq!(order["structuredContent"]["customer"], cem, "{order}");
    let paid = client
        .call(
            "summarize_orders",
            json!({ "status": "paid", "measures": ["count", "sum(total)"] }),
        )
        .await;
    let expected = json!([{ "count": 4, "sum(total)": "19.50" }]);
    let records = &paid["structuredContent"]["records"];
    assert_eq!(records[0]["count"], expected[0]["count"], "{paid}");
    assert!(
        records[0]["sum(total)"]
            .as_str()
            .is_some_and(|sum| sum.starts_with("19.5")),
        "{paid}"
    );
}

#[tokio::test]
async fn tables_are_chosen_and_written_where_asked_for() {
    let house = shop(House::new());
    let (code, _, err) = run(
        &house,
        &["serve", "data/shop.db", "--tables", "customers,order"],
    );
    assert_ne!(code, 0);
    assert!(
        err.contains("there is no table or view `order`; there are `customers`, `notes`, `orders`, `paid`, `visits`"),
        "{err}"
    );
    let gateway = serve(
        &house,
        &["data/shop.db", "--tables", "customers", "--write"],
    );
    let client = Modern::new(gateway.url());
    let expected = [
        "create_customer",
        "delete_customer",
        "get_customer",
        "list_customers",
        "summarize_customers",
        "update_customer",
    ];
    assert_eq!(tool_names(&client).await, expected);
    let changed = client
        .call("update_customer", json!({ "id": 2, "country": "TR" }))
        .await;
    assert_eq!(
        changed["structuredContent"]["record"]["country"], "TR",
        "{changed}"
    );
    let deleted = client.call("delete_customer", json!({ "id": 6 })).await;
    assert_eq!(
        deleted["structuredContent"]["status"], "deleted",
        "{deleted}"
    );
    let database = Connection::open(house.path().join("data/shop.db")).expect("the database");
    let left: i64 = database
        .query_row("SELECT count(*) FROM customers", [], |row| row.get(0))
        .expect("a number");
    assert_eq!(left, 5);
}

/// A record is found only by a key of plain values. A table without such a key is left out, and the others are served.
#[tokio::test]
async fn a_table_with_a_key_of_documents_leaves_the_others_served() {
    let postgres = Postgres::start();
    postgres.sql(
        "CREATE TABLE parts (id integer PRIMARY KEY, name text NOT NULL);
         CREATE TABLE shapes (spec jsonb PRIMARY KEY, name text NOT NULL);
         CREATE TABLE sums (digest bytea PRIMARY KEY, name text NOT NULL);
         INSERT INTO parts VALUES (1, 'bolt'); INSERT INTO shapes VALUES ('{}', 'none'); INSERT INTO sums VALUES ('\\x00', 'zero')",
    );
    let house = House::new();
    let gateway = serve(&house, &[&postgres.url()]);
    gateway.wait_for_log("Claude Code");
    let screen = gateway.log();
    assert!(
        screen.contains("  shapes: its key has the column \"spec\", which holds no plain values"),
        "{screen}"
    );
    let client = Modern::new(gateway.url());
    let names = tool_names(&client).await;
    let served = [
        "get_part",
        "list_parts",
        "list_sums",
        "summarize_parts",
        "summarize_sums",
    ];
    assert_eq!(names, served);
    let sums = client.call("list_sums", json!({})).await;
    assert_eq!(
        sums["structuredContent"]["records"],
        json!([{ "name": "zero" }]),
        "{sums}"
    );
}

/// A row of orders changes nothing of a source that is served without `--write`.
#[tokio::test]
async fn postgresql_is_served_by_its_url_and_keeps_the_password_to_itself() {
    const PASSWORD: &str = "kingfisher-7-lantern";
    let postgres = Postgres::start();
    postgres.sql(
        "CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL);
         CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers, total numeric(10, 2));
         CREATE SCHEMA archive; CREATE TABLE archive.orders (id integer PRIMARY KEY, total numeric(10, 2));
         INSERT INTO customers VALUES (1, 'Ann'); INSERT INTO orders VALUES (10, 1, 12.50); INSERT INTO archive.orders VALUES (1, 2)",
    );
    let url = postgres
        .url()
        .replacen("weir@", &format!("weir:{PASSWORD}@"), 1);
    let house = House::new();
    let gateway = serve(&house, &[&url]);
    gateway.wait_for_log("Claude Code");
    let client = Modern::new(gateway.url());
    let names = tool_names(&client).await;
    for name in [
        "get_order",
        "get_archive_order",
        "list_customers",
        "summarize_archive_orders",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    let order = client
        .call("get_order", json!({ "id": 10, "include": ["customer"] }))
        .await;
    assert_eq!(order["structuredContent"]["total"], "12.5", "{order}");
    let customer = &order["structuredContent"]["customer"];
    assert_eq!(customer["name"], "Ann", "{order}");
    gateway.wait_for_log("postgres: 3 of 3 tables and views served");
    let screen = gateway.log();
    assert!(!screen.contains(PASSWORD), "{screen}");
    drop(gateway);
    assert_kept_out(&house.path().join("state"), PASSWORD);

    // A URL in the environment is in no list of processes either.
    let words = alone(&house, &["draft", "env:SHOP_URL", "--all"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut named = house.weir(&words);
    named.env("SHOP_URL", &url);
    let output = read_output(named.output().expect("weir starts"));
    assert_eq!(output.0, 0, "{}", output.2);
    assert!(!output.1.contains(PASSWORD) && !output.2.contains(PASSWORD));
    assert!(output.2.contains("url = \"env:SHOP_URL\""), "{}", output.2);
}

/// MySQL and MariaDB are served by their URL: keys, relations, questions, and the comments of the catalogue.
#[tokio::test]
async fn mariadb_is_served_by_its_url() {
    let server = MariadbServer::shared();
    let url = server.database();
    server.script(
        &url,
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(80) NOT NULL COMMENT 'As on the invoice.');
         CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, total DECIMAL(10,2),
             FOREIGN KEY (customer_id) REFERENCES customers (id));
         CREATE VIEW large AS SELECT id, total FROM orders WHERE total > 5;
         CREATE TABLE visits (page VARCHAR(20), seconds INTEGER);
         INSERT INTO visits SELECT seq, seq FROM seq_1_to_1200;
         INSERT INTO customers VALUES (1, 'Ann'), (2, 'Ben');
         INSERT INTO orders VALUES (10, 1, 12.50), (11, 1, 3), (12, 2, 4.50)",
    );
    let house = House::new();
    for url in [url.clone(), url.replacen("mysql://", "mariadb://", 1)] {
        let gateway = serve(&house, &[&url]);
        gateway.wait_for_log("Claude Code");
        let screen = gateway.log();
        assert!(
            screen.contains("3 of 4 tables and views served")
                && screen.contains("  visits: it has no key, and more than 1000 records."),
            "{screen}"
        );
        let client = Modern::new(gateway.url());
        let served = [
            "get_customer",
            "get_order",
            "list_customers",
            "list_larges",
            "list_orders",
            "summarize_customers",
            "summarize_larges",
            "summarize_orders",
        ];
        assert_eq!(tool_names(&client).await, served);
        let list = client.tool("list_customers").await;
        let list = list.to_string();
        assert!(list.contains("As on the invoice."), "{list}");
        let order = client
            .call("get_order", json!({ "id": 10, "include": ["customer"] }))
            .await;
        assert_eq!(
            order["structuredContent"]["customer"],
            json!({ "id": 1, "name": "Ann" }),
            "{order}"
        );
        let sums = client
            .call(
                "summarize_orders",
                json!({ "customer_id": 1, "measures": ["count", "sum(total)"] }),
            )
            .await;
        assert_eq!(
            sums["structuredContent"]["records"],
            json!([{ "count": 2, "sum(total)": "15.5" }]),
            "{sums}"
        );
    }
}

/// Checks that no file of a folder has a text in it.
fn assert_kept_out(folder: &std::path::Path, text: &str) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_kept_out(&path, text);
            continue;
        }
        let content = std::fs::read(&path).unwrap_or_default();
        let has_it = content
            .windows(text.len())
            .any(|bytes| bytes == text.as_bytes());
        assert!(!has_it, "{} has it", path.display());
    }
}

#[tokio::test]
async fn a_draft_of_every_table_is_one_contract_that_is_served() {
    let house = shop(House::new()).config(
        "[connections.desk]\nkind = \"sqlite\"\npath = \"data/shop.db\"\n[plugins.sql.grants]\ndesk = \"read\"",
    );
    let (code, contract, notes) = house.run(&["draft", "--connection", "desk", "--all"]);
    assert_eq!(code, 0, "{notes}");
    assert!(notes.contains("left out: visits: it has no key"), "{notes}");
    let again = house.run(&["draft", "--connection", "desk", "--all"]);
    assert_eq!(again.1, contract, "the same source gives the same contract");
    assert!(contract.starts_with("contract: desk\n"), "{contract}");
    let house = house.file("contracts/desk.yaml", &contract);
    let (_gateway, client) = house.serve_client();
    assert_eq!(tool_names(&client).await.len(), 10);
    let listed = client
        .call("list_orders", json!({ "status": "open" }))
        .await;
    let records = listed["structuredContent"]["records"]
        .as_array()
        .map(Vec::len);
    assert_eq!(records, Some(2), "{listed}");
}

#[test]
fn a_draft_lists_the_tables_where_none_or_a_wrong_one_is_named() {
    let house = shop(House::new());
    let there = "there are `customers`, `notes`, `orders`, `paid`, `visits`";
    for (words, expected) in [
        (
            &["draft", "data/shop.db"][..],
            "name a table with --table, or take every one with --all",
        ),
        (
            &["draft", "data/shop.db", "--table", "custmers"],
            "there is no table or view `custmers`",
        ),
    ] {
        let (code, _, err) = run(&house, words);
        assert_ne!(code, 0, "{err}");
        assert!(err.contains(expected) && err.contains(there), "{err}");
    }
    let (code, contract, err) = run(&house, &["draft", "data/shop.db", "--table", "orders"]);
    assert_eq!(code, 0, "{err}");
    assert!(contract.contains("  - tool: list_orders\n"), "{contract}");
    assert!(
        err.contains("kind = \"sqlite\"") && err.contains("shop = \"read\""),
        "{err}"
    );
}

/// More tables than an agent reads the tools of are left out by name.
#[tokio::test]
async fn a_database_of_many_tables_is_bounded() {
    let house = House::new();
    let database = Connection::open(house.path().join("data/wide.sqlite")).expect("a database");
    for at in 1..=40 {
        let table =
            format!("CREATE TABLE part_{at:02}s (id INTEGER PRIMARY KEY, name TEXT NOT NULL)");
        database.execute_batch(&table).expect("a table");
    }
    drop(database);
    let gateway = serve(&house, &["data/wide.sqlite"]);
    gateway.wait_for_log("Claude Code");
    let screen = gateway.log();
    assert!(
        screen.contains("wide: 33 of 40 tables and views served by 99 tools"),
        "{screen}"
    );
    assert!(
        screen.contains("  part_40s: the contract has 99 tools without it, and 100 are the most."),
        "{screen}"
    );
    let (tools, _) = Modern::new(gateway.url()).list().await;
    assert_eq!(tools.len(), 99);
    assert!(
        tools
            .iter()
            .all(|tool: &Value| tool["outputSchema"].is_object())
    );
}

/// The named sheets of a workbook are served, and one sheet is served from its header on.
#[tokio::test]
async fn sheets_of_a_workbook_are_served_at_once() {
    let workbook = include_bytes!("../fixtures/two-sheets.xlsx");
    let house = House::new().file("data/book.xlsx", workbook);
    let gateway = serve(
        &house,
        &["data/book.xlsx", "--sheet", "Orders", "--sheet", "Prices"],
    );
    gateway.wait_for_log("Claude Code");
    let line = "  Orders: 2 columns, key 'id'; get_order, list_orders, summarize_orders";
    assert!(gateway.log().lines().any(|known| known == line));
    let client = Modern::new(gateway.url());
    let order = client.call("get_order", json!({ "id": 2 })).await;
    assert_eq!(order["structuredContent"]["item"], "salt", "{order}");
    drop(gateway);
    let words = ["data/book.xlsx", "--sheet", "Prices", "--header-row", "2"];
    let gateway = serve(&house, &[&words[..], &["--name", "tariffs"]].concat());
    let client = Modern::new(gateway.url());
    let tariff = client.call("get_tariff", json!({ "sku": "a" })).await;
    assert_eq!(tariff["structuredContent"]["price"], 3.5, "{tariff}");
}

/// Without a word about sheets, each that has a table is served, and the others are left out by name and reason.
#[tokio::test]
async fn every_sheet_with_a_table_is_served_and_drafted() {
    let workbook = include_bytes!("../fixtures/many-sheets.xlsx");
    let house = House::new().sheets().file("data/shop.xlsx", workbook);
    let gateway = serve(&house, &["data/shop.xlsx"]);
    gateway.wait_for_log("Claude Code");
    let log = gateway.log();
    for line in [
        "shop: 3 of 8 sheets served by 9 tools, which only read.",
        "  Orders: 3 columns, key 'id'; get_order, list_orders, summarize_orders",
        "    The column \"price\" is read as numbers with their unit, `# €`.",
        "Left out; `--sheet` names those that are to be served:",
        "  Cover: its first row has one cell, which is a title rather than a header.",
        "  Empty: it has no cells.",
        "  Headings: it has no rows below its header.",
        "  Salaries: it is hidden.",
        "  Chart: it has no cells, such as a chart.",
    ] {
        assert!(log.lines().any(|known| known == line), "{line}\n{log}");
    }
    let client = Modern::new(gateway.url());
    let (tools, _) = client.list().await;
    let mut names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "no name twice");
    let order = client.call("get_order", json!({ "id": 1 })).await;
    assert_eq!(order["structuredContent"]["price"], 12.9, "{order}");
    drop(gateway);

    let plugins = house.plugins().display().to_string();
    let fixed = [
        "draft",
        "data/shop.xlsx",
        "--plugins",
        &plugins,
        "--state",
        "state",
    ];
    let (code, contract, notes) = house.run(&fixed);
    assert_eq!(code, 0, "{notes}");
    assert_eq!(
        contract.matches("    adapter: sheet\n").count(),
        3,
        "{contract}"
    );
    assert!(
        notes.contains("left out: Salaries: it is hidden.\n"),
        "{notes}"
    );
    assert!(
        notes.contains("note: no tool writes: XLSX files are read-only."),
        "{notes}"
    );
    house.write("contracts/shop.yaml", &contract);
    house.succeed(&["compile", "contracts/shop.yaml", "--plugins", &plugins]);
    // Only the named sheet is drafted, whatever it is.
    let contract = house.succeed(&[&fixed[..], &["--sheet", "Salaries"]].concat());
    assert!(contract.contains("sheet: Salaries"), "{contract}");
}

/// A web service is served by its URL. Its records are found in the answer, or at the place that `--records` names.
#[tokio::test(flavor = "multi_thread")]
async fn a_web_service_is_served_at_once() {
    let items = json!([{ "id": 1, "item": "tea" }, { "id": 2, "item": "salt" }]);
    let others = json!([{ "id": 3, "item": "oil" }]);
    let answers = [
        ("items", items.clone()),
        (
            "wrapped",
            json!({ "meta": { "count": 2 }, "data": { "results": items, "next": [] } }),
        ),
        ("several", json!({ "items": items, "others": others })),
        ("nothing", json!({ "count": 0, "names": ["a"] })),
    ];
    let router = answers
        .into_iter()
        .fold(axum::Router::new(), |router, (name, answer)| {
            let answer = axum::Json(answer);
            router.route(
                &format!("/{name}"),
                axum::routing::get(|| async move { answer }),
            )
        });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });

    let house = House::new();
    for (path, more, tool, expected) in [
        ("items", &[][..], "list_items", &items),
        ("wrapped", &[], "list_wrappeds", &items),
        (
            "several",
            &["--records", "/others"],
            "list_severals",
            &others,
        ),
    ] {
        let url = format!("{base}/{path}");
        let gateway = serve(&house, &[&[url.as_str()], more].concat());
        let client = Modern::new(gateway.url());
        let listed = client.call(tool, json!({})).await;
        assert_eq!(
            &listed["structuredContent"]["records"], expected,
            "{listed}"
        );
    }
    for (path, expected) in [
        (
            "several",
            "There are records at `/items`, `/others`: name the place by `records`.",
        ),
        (
            "nothing",
            "It has no list of records; name where it is by `records`.",
        ),
    ] {
        let (code, _, err) = run(&house, &["draft", "--url", &format!("{base}/{path}")]);
        assert_ne!(code, 0, "{err}");
        assert!(err.contains(expected), "{err}");
    }
    let (code, contract, err) = run(&house, &["draft", "--url", &format!("{base}/wrapped")]);
    assert_eq!(code, 0, "{err}");
    assert!(
        contract.contains("records: \"/data/results\""),
        "{contract}"
    );
    assert!(
        err.contains("note: The records are read from `/data/results` of the answer."),
        "{err}"
    );
}
