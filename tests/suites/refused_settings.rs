//! Settings that an adapter refuses: `weir compile` names the setting, what to write instead, and the source's message.

use std::process::Command;

use serde_json::{Value, json};
use weir_tests::{House, place};

/// A collection: its adapter and settings, and the report about them. The place is relative to `settings`.
struct RefusedCase {
    adapter: &'static str,
    settings: Value,
    place: &'static str,
    message: &'static str,
    hint: &'static str,
}

fn case(
    adapter: &'static str,
    settings: Value,
    place: &'static str,
    message: &'static str,
    hint: &'static str,
) -> RefusedCase {
    RefusedCase {
        adapter,
        settings,
        place,
        message,
        hint,
    }
}

const SQL: &str = "docs/adapters/sql.md";
const SHEET: &str = "docs/adapters/sheet.md";

fn databases() -> Vec<RefusedCase> {
    let sql = |mut settings: Value, place, message, hint| {
        settings["connection"] = "shop".into();
        case("sql", settings, place, message, hint)
    };
    let by_id = "SELECT id FROM orders WHERE id = :id";
    vec![
        sql(
            json!({}),
            "",
            "either `table`, `query` or `statement` is needed",
            SQL,
        ),
        sql(
            json!({ "table": "order" }),
            "/table",
            "There is no table or view \"order\"",
            "`weir draft --connection shop` lists the tables and views",
        ),
        sql(
            json!({ "table": "orders", "query": by_id }),
            "/query",
            "`table` and `query` exclude each other: keep one",
            SQL,
        ),
        sql(
            json!({ "query": by_id, "schema": "main" }),
            "/schema",
            "drop it next to a `query`",
            SQL,
        ),
        sql(
            json!({ "table": "orders", "parameters": { "id": "integer" } }),
            "/parameters",
            "drop it next to a `table`",
            SQL,
        ),
        sql(
            json!({ "table": "orders", "rows_max": 5 }),
            "/rows_max",
            "goes with `statement`",
            SQL,
        ),
        sql(
            json!({ "table": "" }),
            "/table",
            "a name is empty",
            "lists the tables",
        ),
        sql(
            json!({ "query": "SELECT absent_column FROM orders" }),
            "/query",
            "The query cannot be prepared",
            "the source says: no such column: absent_column",
        ),
        sql(
            json!({ "query": "SELECT id, id FROM orders" }),
            "/query",
            "name them with AS",
            SQL,
        ),
        sql(
            json!({ "query": by_id, "parameters": {} }),
            "/query",
            "it has `:id`, which `parameters` does not declare",
            SQL,
        ),
        sql(
            json!({ "query": "SELECT id FROM orders WHERE id = ?", "parameters": {} }),
            "/query",
            "write `:name` and declare the name",
            SQL,
        ),
        sql(
            json!({ "query": by_id, "parameters": { "id": "integer", "city": "string" } }),
            "/parameters",
            "\"city\", which is nowhere in it as `:city`",
            SQL,
        ),
        sql(
            json!({ "query": by_id, "parameters": { "id": "list" } }),
            "/parameters",
            "say of what with `of`",
            SQL,
        ),
        sql(
            json!({ "statement": by_id, "parameters": { "id": "integer" } }),
            "/statement",
            "what reads is a `query`",
            SQL,
        ),
        sql(
            json!({ "statement": "DELETE FROM orders; DELETE FROM orders" }),
            "/statement",
            "give each a collection of its own",
            SQL,
        ),
        sql(
            json!({ "statement": "DELETE FROM orders", "rows_max": 0 }),
            "/rows_max",
            "from 1 to 1,000",
            SQL,
        ),
        sql(
            json!({ "statement": "UPDATE orders SET absent_column = 1" }),
            "/statement",
            "The statement cannot be prepared",
            "the source says: no such column: absent_column",
        ),
        sql(
            json!({ "statement": "DELETE FROM orders", "table": "orders" }),
            "/statement",
            "excludes `table`",
            SQL,
        ),
        case(
            "sql",
            json!({ "connection": "shp", "table": "orders" }),
            "/connection",
            "cannot be described over the connection `shp`",
            "weir.toml has no connection `shp`; it has data, shop, web",
        ),
    ]
}

fn files() -> Vec<RefusedCase> {
    let sheet = |mut settings: Value, place, message, hint| {
        settings["connection"] = "data".into();
        case("sheet", settings, place, message, hint)
    };
    vec![
        sheet(
            json!({ "path": "orders.doc" }),
            "/path",
            "does not end in .csv",
            SHEET,
        ),
        sheet(
            json!({ "path": "orders.csv", "sheet": "Orders" }),
            "/sheet",
            "drop `sheet`",
            SHEET,
        ),
        sheet(
            json!({ "path": "orders.csv", "header_row": 0 }),
            "/header_row",
            "Rows are counted from 1",
            SHEET,
        ),
        sheet(
            json!({ "path": "orders.csv", "delimiter": "::" }),
            "/delimiter",
            "must be one ASCII character",
            SHEET,
        ),
        sheet(
            json!({ "path": "list.xlsx", "delimiter": "," }),
            "/delimiter",
            "drop `delimiter`",
            SHEET,
        ),
        sheet(
            json!({ "path": "list.xlsx", "sheet": "Price" }),
            "/sheet",
            "There is no sheet \"Price\"; there are: ",
            SHEET,
        ),
        sheet(
            json!({ "path": "list.xlsx", "index": "always" }),
            "/index",
            "save the sheet as CSV",
            SHEET,
        ),
        sheet(
            json!({ "path": "empty.csv" }),
            "?",
            "Write one with the names of its columns",
            SHEET,
        ),
        sheet(
            json!({ "path": "orders.csv", "heder_row": 1 }),
            "",
            "unknown field `heder_row`, expected one of",
            SHEET,
        ),
        case(
            "rest",
            json!({ "connection": "web", "list": { "path": "/orders" } }),
            "",
            "exactly one of `fields`, `sample: true` and `openapi`",
            "docs/adapters/rest.md",
        ),
    ]
}

fn house() -> House {
    let house = House::new()
        .config(
            "[connections.data]\nkind = \"files\"\npath = \"data\"\n\
             [connections.shop]\nkind = \"sqlite\"\npath = \"data/shop.db\"\nwrite = true\n\
             [connections.web]\nkind = \"http\"\nbase_url = \"http://127.0.0.1:1\"\n\
             [plugins.sheet.grants]\ndata = \"read\"\n[plugins.sql.grants]\nshop = \"statements\"\n\
             [plugins.rest.grants]\nweb = \"read\"",
        )
        .file("data/orders.csv", "id,city\n1,Wien\n")
        .file("data/empty.csv", "")
        .file(
            "data/list.xlsx",
            include_bytes!("../fixtures/two-sheets.xlsx"),
        );
    rusqlite::Connection::open(house.path().join("data/shop.db"))
        .and_then(|database| {
            database.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT)")
        })
        .expect("filled");
    house
}

#[test]
fn a_refused_setting_has_its_place_and_what_to_write_instead() {
    let house = house();
    let cases: Vec<RefusedCase> = databases().into_iter().chain(files()).collect();
    let collections = cases.iter().enumerate().map(|(at, case)| {
        let collection =
            json!({ "adapter": case.adapter, "settings": case.settings, "key": ["id"] });
        (format!("c{at}"), collection)
    });
    let collections: serde_json::Map<String, Value> = collections.collect();
    let tool = json!({ "tool": "list", "verb": "list", "collection": "c0", "fields": [] });
    let contract = json!({ "contract": "refused", "collections": collections, "tools": [tool] });
    house.write("contracts/refused.json", contract.to_string());
    let printed = house.json(&["compile", "contracts/refused.json"]);
    let problems = printed["problems"].as_array().expect("problems");
    for problem in problems {
        let has_all = problem["place"] != "" && problem["hint"].is_string();
        assert!(has_all, "{problem}");
    }
    for (at, case) in cases.iter().enumerate() {
        let place = match case.place {
            // The file itself is at fault.
            "?" => format!("/collections/c{at}"),
            place => format!("/collections/c{at}/settings{place}"),
        };
        let found = problems.iter().find(|problem| problem["place"] == *place);
        let found = found.unwrap_or_else(|| panic!("{} at {place}: {printed:#}", case.settings));
        for (member, part) in [("message", case.message), ("hint", case.hint)] {
            let text = found[member].as_str().unwrap_or_default();
            assert!(text.contains(part), "{}: {part}: {found}", case.settings);
        }
    }
}

/// A first contract is often served before there is a configuration: the hint names what to write.
#[test]
fn a_contract_without_a_configuration_is_refused_with_what_to_write() {
    let contract = json!({
        "contract": "orders",
        "collections": {
            "orders": {
                "adapter": "sheet",
                "settings": { "connection": "data", "path": "orders.csv" },
                "key": ["id"],
            },
        },
        "tools": [{ "tool": "list_orders", "verb": "list", "collection": "orders", "fields": [] }],
    });
    let house = House::new().file("contracts/orders.json", contract.to_string());
    let mut serve = Command::new(place::binary("weir"));
    serve
        .args(["serve", "--listen", "127.0.0.1:0", "--plugins"])
        .arg(house.plugins())
        .current_dir(house.path());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WEIR_")) {
        serve.env_remove(name);
    }
    let output = serve.output().expect("weir starts");
    let err = String::from_utf8_lossy(&output.stderr);
    let hint =
        "hint: there is no weir.toml: write one with [connections.data] and [plugins.sheet.grants]";
    assert!(!output.status.success() && err.contains(hint), "{err}");
}

/// A person who drafts a query sees what the database finds wrong in it.
#[test]
fn a_draft_says_in_the_words_of_the_database_why_a_query_cannot_be_prepared() {
    let house = house().file(
        "wrong.sql",
        "SELECT absent_column FROM orders WHERE id = :id",
    );
    let words = ["draft", "--connection", "shop", "--query", "wrong.sql"];
    let (code, _, err) = house.run(&words);
    let why = "wrong: invalid: The query cannot be prepared. The source says: no such column: absent_column";
    assert!(code != 0 && err.contains(why), "{err}");
}
