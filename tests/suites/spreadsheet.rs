//! The first minutes with a spreadsheet: the draft of it, as its reader sees it, and what its tools do.

use serde_json::{Value, json};
use weir_tests::{Gateway, House, Modern, read_output};

/// A sheet as a spreadsheet program saves it in much of Europe.
const INVOICES: &str = "\u{feff}Rechnung Nr.;Kunde;Amount (EUR);Paid?;Fällig;Город;商品\r\n\
    R-1;Müller;1.234,50;ja;28/2/2026;Вена;茶\r\n\
    R-2;Åse;12,00;nein;1/3/2026;Осло;米\r\n\
    R-3;Ann;-7,25;nein;;Рим;塩\r\n";

/// Returns what `weir draft` prints for a file: the contract and its notes.
fn draft(house: &House, file: &str) -> (String, String) {
    draft_with(house, file, &[])
}

/// Drafts a file with further arguments.
fn draft_with(house: &House, file: &str, arguments: &[&str]) -> (String, String) {
    let plugins = house.plugins().display().to_string();
    let file = format!("data/{file}");
    let fixed = ["draft", &file, "--plugins", &plugins, "--state", "state"];
    let (code, contract, notes) = house.run(&[&fixed[..], arguments].concat());
    assert_eq!(code, 0, "{notes}");
    (contract, notes)
}

/// Saves the draft in the contracts folder, and serves it.
fn served(house: House, file: &str) -> (House, Gateway) {
    let (contract, _) = draft(&house, file);
    let house = house.file("contracts/draft.yaml", contract);
    let gateway = house.serve();
    (house, gateway)
}

#[tokio::test]
async fn a_spreadsheet_from_europe_is_drafted_and_used() {
    let house = House::new()
        .sheets()
        .file("data/Rechnungen invoices 2026.csv", INVOICES);
    let (contract, notes) = draft(&house, "Rechnungen invoices 2026.csv");
    for line in [
        "contract: rechnungen-invoices-2026",
        "      Amount (EUR): { type: number, decimal: \",\", grouping: \".\" }",
        "      \"Fällig\": { type: date, date: \"%-d/%-m/%Y\" }",
        "  - tool: get_rechnungen_invoice",
        "  - tool: list_rechnungen_invoices",
    ] {
        assert!(
            contract.lines().any(|known| known == line),
            "{line}:\n{contract}\n{notes}"
        );
    }
    let (house, gateway) = served(house, "Rechnungen invoices 2026.csv");
    let client = Modern::new(gateway.url());
    let list = client.tool("list_rechnungen_invoices").await;
    let names: Vec<&str> = list["inputSchema"]["properties"]
        .as_object()
        .expect("inputs")
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "rechnung_nr",
        "kunde",
        "min_amount_eur",
        "max_amount_eur",
        "paid",
        "fallig_from",
        "fallig_to",
        "gorod",
        "shang_pin",
        "order_by",
        "limit",
        "cursor",
    ];
    assert_eq!(names, expected);
    assert_eq!(list["inputSchema"]["properties"]["gorod"]["title"], "Город");

    let one = client
        .call("get_rechnungen_invoice", json!({ "rechnung_nr": "R-1" }))
        .await;
    let expected = json!({ "Rechnung Nr.": "R-1", "Kunde": "Müller", "Amount (EUR)": 1234.5, "Paid?": "ja", "Fällig": "2026-02-28",
        "Город": "Вена", "商品": "茶" });
    assert_eq!(one["structuredContent"], expected);
    let found = async |arguments: Value| -> Vec<String> {
        let listed = client.call("list_rechnungen_invoices", arguments).await;
        let records = listed["structuredContent"]["records"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| panic!("{listed}"));
        records
            .iter()
            .map(|record| {
                record["Rechnung Nr."]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(found(json!({ "min_amount_eur": 12 })).await, ["R-1", "R-2"]);
    assert_eq!(
        found(json!({ "max_amount_eur": 12.5 })).await,
        ["R-2", "R-3"]
    );
    assert_eq!(found(json!({ "fallig_from": "2026-03-01" })).await, ["R-2"]);
    assert_eq!(
        found(json!({ "fallig_to": "2026-02-28", "kunde": "mül" })).await,
        ["R-1"]
    );
    assert_eq!(
        found(json!({ "gorod": "Ри", "shang_pin": "塩" })).await,
        ["R-3"]
    );

    let record = json!({ "rechnung_nr": "R-4", "kunde": "Ört; \"&\" Co", "amount_eur": 98765.4, "paid": "ja", "fallig": "2026-12-03",
        "gorod": "Прага", "shang_pin": "油" });
    let created = client.call("create_rechnungen_invoice", record).await;
    assert_eq!(
        created["structuredContent"]["record"]["Amount (EUR)"], 98765.4,
        "{created}"
    );
    let text = std::fs::read_to_string(house.path().join("data/Rechnungen invoices 2026.csv"))
        .expect("the sheet");
    assert_eq!(
        text,
        format!("{INVOICES}R-4;\"Ört; \"\"&\"\" Co\";98.765,4;ja;3/12/2026;Прага;油\r\n")
    );
    assert_eq!(
        found(json!({ "fallig_from": "2026-12-01", "min_amount_eur": 98765.4 })).await,
        ["R-4"]
    );
    // The text that a person reads names no hidden machinery either.
    let refused = client
        .call(
            "list_rechnungen_invoices",
            json!({ "fallig_from": "28/2/2026" }),
        )
        .await;
    assert_eq!(
        refused["structuredContent"]["code"], "invalid_arguments",
        "{refused}"
    );
}

#[test]
fn names_of_tools_come_from_the_file_in_its_singular_and_plural() {
    let house = House::new().sheets();
    for (file, tools) in [
        (
            "invoices 2026.csv",
            ["get_invoice", "list_invoices", "create_invoice"],
        ),
        (
            "2026-01-31_Order-Items_export.csv",
            ["get_order_item", "list_order_items", "create_order_item"],
        ),
        ("people.csv", ["get_person", "list_people", "create_person"]),
    ] {
        let house_file = format!("data/{file}");
        house.write(&house_file, "No,name\n1,a\n2,b\n");
        let (contract, notes) = draft(&house, file);
        for tool in tools {
            assert!(
                contract.contains(&format!("  - tool: {tool}\n")),
                "{tool}:\n{contract}\n{notes}"
            );
        }
        let one = tools[0].trim_start_matches("get_").replace('_', " ");
        assert!(
            contract.contains(&format!("description: Finds one {one} by No.\n")),
            "{contract}"
        );
    }
}

/// Amounts that happen to differ are not a key, and the draft asks about what can be read in two ways.
#[test]
fn a_draft_asks_for_what_the_file_cannot_tell() {
    let house = House::new().sheets().file(
        "data/sales.csv",
        "Amount (EUR);Due\n1,5;1/2/2026\n2,25;3/4/2026\n",
    );
    let (contract, notes) = draft(&house, "sales.csv");
    assert!(
        !contract.contains("verb: lookup") && notes.contains("note: There is no lookup"),
        "{contract}\n{notes}"
    );
    assert!(
        contract.contains("Amount (EUR): { type: number, decimal: \",\" }"),
        "{contract}"
    );
    assert!(
        notes.contains("date: \"%-d/%-m/%Y\"")
            && notes.contains("date: \"%-m/%-d/%Y\"")
            && notes.contains("'Due'"),
        "{notes}"
    );
    assert!(
        contract.contains("{ name: due, type: text, column: Due"),
        "{contract}"
    );
}

/// Columns whose names clients in Python can call no argument are drafted under others; where a person writes such names, or a
/// format that clients may be without, lint notes it.
#[tokio::test]
async fn names_that_clients_cannot_use_are_not_drafted_and_are_noted() {
    let trips = "id,from,class,e-mail.main,2024\n1,Oslo,A,a@x.no,5\n2,Rome,B,b@x.no,7\n";
    let house = House::new().sheets().file("data/trips.csv", trips);
    let (house, gateway) = served(house, "trips.csv");
    let client = Modern::new(gateway.url());
    let (tools, _) = client.list().await;
    for tool in &tools {
        let properties = tool["inputSchema"]["properties"].as_object();
        for name in properties.into_iter().flatten().map(|(name, _)| name) {
            let is_plain = name
                .chars()
                .all(|next| next == '_' || next.is_ascii_alphanumeric());
            let begins = name.starts_with(|first: char| !first.is_ascii_digit());
            assert!(
                is_plain && begins && !["from", "class"].contains(&name.as_str()),
                "{tool}"
            );
        }
    }
    let trip = json!({"from_value": "Oslo", "class_value": "A", "e_mail_main": "c@x.no", "column_2024": 9});
    client.succeed("create_trip", trip).await;
    let written = std::fs::read_to_string(house.path().join("data/trips.csv")).expect("a file");
    assert!(written.ends_with("3,Oslo,A,c@x.no,9\n"), "{written}");
    let (code, out, err) = house.run(&["lint", "contracts/draft.yaml"]);
    assert!(
        code == 0 && !out.contains("(parameter-keyword)"),
        "{out}{err}"
    );

    house.write(
        "own.yaml",
        "contract: own\ncollections:\n  trips: { adapter: sheet, settings: { connection: data, path: trips.csv } }\ntools:\n  \
         - tool: list_own_trips\n    description: Lists trips by where they begin.\n    verb: list\n    collection: trips\n    fields:\n      \
         - { name: from, type: text, help: Where it begins. }\n      \
         - { name: e-mail.main, type: email, help: Who goes. }\n",
    );
    let out = house.succeed(&["lint", "own.yaml"]);
    for (field, rule) in [
        ("from", "(parameter-keyword)"),
        ("e-mail.main", "(parameter-keyword)"),
        ("e-mail.main", "(format-email)"),
    ] {
        let place = format!("list_own_trips.{field}");
        let mut lines = out.lines();
        assert!(
            lines.any(|line| line.contains(&place) && line.contains(rule)),
            "{place} {rule}: {out}"
        );
    }
}

#[test]
fn a_format_that_cannot_be_is_refused_by_name() {
    let contract = "contract: c\ncollections:\n  rows:\n    adapter: sheet\n    settings: { connection: data, path: r.csv }\n    shape:\n      \
        a: { type: number, decimal: \";\" }\n      b: { date: \"%d/%m\" }\n      c: { type: string, grouping: \".\" }\n      \
        d: { decimal: \",\", grouping: \",\" }\ntools: []\n";
    let house = House::new()
        .sheets()
        .file("data/r.csv", "id,a,b,c,d\n1,x,x,x,x\n")
        .file("c.yaml", contract);
    let (code, out, err) = house.run(&["compile", "c.yaml"]);
    assert_eq!(code, 1, "{out}");
    for line in [
        "/collections/rows/shape/a/decimal: must be \".\" or \",\"",
        "/collections/rows/shape/b/date: must say the year (%Y)",
        "/collections/rows/shape/c/grouping: is for columns of type number, decimal or integer, and this one is string",
        "/collections/rows/shape/d/grouping: is also the decimal mark",
    ] {
        assert!(err.contains(line), "{line}:\n{err}");
    }
}

/// Texts are checked without a source, and with a gateway's recorded shapes if there are any.
#[tokio::test]
async fn lint_judges_a_contract_file_with_and_without_shapes() {
    let form = "contract: c\ncollections:\n  rows: { adapter: sheet, settings: { connection: data, path: gone.csv } }\ntools:\n  \
        - tool: list_rows\n    description: This tool lists rows.\n    verb: list\n    collection: rows\n    fields:\n      \
        - { name: min_price, type: number, column: price, match: at-least }\n";
    let house = House::new().sheets().file("c.yaml", form);
    let (code, out, err) = house.run(&["lint", "c.yaml"]);
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(
        out.contains("list_rows.min_price") && out.contains("(description-opening)"),
        "{out}\n{err}"
    );
    assert!(err.contains("the shape of rows is not known"), "{err}");

    house.write("contracts/c.yaml", form);
    house.write("data/gone.csv", "price,Api-Antwort\u{200b}\n1,x\n");
    let gateway = house.serve();
    drop(gateway);
    std::fs::remove_file(house.path().join("data/gone.csv")).expect("the sheet was there");
    let (_, out, err) = house.run(&["lint", "c.yaml"]);
    assert!(!err.contains("not known"), "{err}");
    assert!(
        out.contains("(hidden-text)"),
        "results are looked at with the recorded shape: {out}"
    );
}

/// A cell that is not a value of its column is named by its column and place, and the other records can be reached.
#[tokio::test]
async fn a_cell_that_does_not_fit_is_named_and_can_be_left_out() {
    let house = House::new()
        .sheets()
        .file("data/prices.csv", "id,price,shop\n1,2.5,north\n2,ask us,south\n3,4,north\n")
        .file(
            "contracts/prices.yaml",
            "contract: prices\ncollections:\n  prices:\n    adapter: sheet\n    \
             settings: { connection: data, path: prices.csv }\n    key: [id]\n    shape: { price: number }\n\
             tools:\n  - { tool: get_price, verb: lookup, collection: prices, description: Returns one price by its id., \
             fields: [{ name: id, type: number, required: true }] }\n  - { tool: list_prices, verb: list, \
             collection: prices, description: Lists prices., fields: [{ name: shop, type: text }] }\n",
        );
    let (_gateway, client) = house.serve_client();
    let text = async |tool: &str, arguments: Value| {
        let result = client.call(tool, arguments).await;
        result["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{result}"))
            .to_owned()
    };
    let all = text("list_prices", json!({})).await;
    assert!(
        all.contains("in `price` of record 2 (`id` 2) of this answer"),
        "{all}"
    );
    assert!(
        text("list_prices", json!({ "shop": "north" }))
            .await
            .starts_with("2 records")
    );
    let one = text("get_price", json!({ "id": 2 })).await;
    assert!(
        one.contains("in `price`.") && !one.contains("ask us"),
        "{one}"
    );
}

/// A file in another encoding is named, with the way to make it readable.
#[test]
fn a_file_that_is_not_utf_8_is_told_how_it_becomes_one() {
    let house = House::new().file("data/staedte.csv", b"id,name\n1,Z\xfcrich\n");
    let (code, _, err) = house.run(&["draft", "data/staedte.csv"]);
    assert!(
        code == 1 && err.contains("staedte.csv: ") && err.contains("iconv -f windows-1252"),
        "{err}"
    );
}

/// A pipe has nothing to read until a program writes to it, which a draft does not wait for.
#[test]
fn a_pipe_is_drafted_by_none() {
    let house = House::new().file("data/readme.txt", "");
    let pipe = house.path().join("data/prices.csv");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let (code, _, err) = house.run(&["draft", "data/prices.csv"]);
    assert!(
        code == 1 && err.contains("prices.csv is a pipe or a device"),
        "{err}"
    );
}

/// A table behind a read-only connection gets no tool that could not run; days are not a list of choices.
#[test]
fn a_table_is_drafted_as_the_connection_lets_it() {
    let house = House::new().own_plugins(&["sql"]);
    let database = rusqlite::Connection::open(house.path().join("stock.db")).expect("a database");
    let rows: Vec<String> = (0..30)
        .map(|id| {
            format!(
                "({id}, 'bolt {id}', '2025-01-{:02}', '{}')",
                id % 9 + 1,
                ["S", "M"][id % 2]
            )
        })
        .collect();
    let table = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, updated TEXT NOT NULL, size TEXT NOT NULL)";
    database
        .execute_batch(&format!(
            "{table}; INSERT INTO items VALUES {};",
            rows.join(",")
        ))
        .expect("rows");
    let connection = |write: bool, grant: &str| {
        format!(
            "[connections.stock]\nkind = \"sqlite\"\npath = \"stock.db\"\nwrite = {write}\n[plugins.sql.grants]\nstock = \"{grant}\""
        )
    };
    for (write, grant, writes) in [
        (false, "read", false),
        (true, "read", false),
        (true, "write", true),
    ] {
        let house = House::new()
            .own_plugins(&["sql"])
            .config(&connection(write, grant));
        std::fs::copy(
            database.path().expect("a file"),
            house.path().join("stock.db"),
        )
        .expect("copied");
        let (code, out, err) = house.run(&["draft", "--connection", "stock", "--table", "items"]);
        assert_eq!(code, 0, "{err}");
        assert_eq!(
            out.contains("create_item"),
            writes,
            "{write} {grant}: {out}{err}"
        );
        assert_eq!(
            out.contains("write: true"),
            writes,
            "{write} {grant}: {out}"
        );
        assert!(
            out.contains("choices: [M, S]") && !out.contains("choices: [2025"),
            "{out}"
        );
    }
}

/// Files from other programs can be called at once, or are refused with what is wrong with them.
#[test]
fn files_of_other_programs_are_called() {
    let utf_16: Vec<u8> = "id;name\n1;Müller\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let workbook = include_bytes!("../../plugins/sheet/tests/calc.ods");
    let hidden = include_bytes!("../../plugins/sheet/tests/hidden.xlsx");
    let chart = include_bytes!("../../plugins/sheet/tests/chart.xlsx");
    let leap = include_bytes!("../../plugins/sheet/tests/leap.xlsx");
    let range = include_bytes!("../../plugins/sheet/tests/range.xlsx");
    let head = include_bytes!("../../plugins/sheet/tests/head.xlsx");
    for (file, bytes, expected) in [
        (
            "parts.csv",
            "sep=;\nid;name;price\n1;bolt;2,50\n".as_bytes(),
            Ok(r#"{"id":1,"name":"bolt","price":2.5}"#),
        ),
        (
            "parts.csv",
            b"\xef\xbb\xbfsep=\t\r\nid\tname\r\n1\ta, b\r\n",
            Ok(r#"{"id":1,"name":"a, b"}"#),
        ),
        (
            "parts.csv",
            b"\"sep=;\"\r\nid;name\r\n1;a\r\n",
            Ok(r#"{"id":1,"name":"a"}"#),
        ),
        ("parts.ods", workbook, Ok(r#"{"id":2,"n":null}"#)),
        ("parts.xlsx", hidden, Ok(r#"{"id":1,"name":"a"}"#)),
        ("parts.xlsx", chart, Ok(r#"{"id":1,"name":"a"}"#)),
        (
            "parts.xlsx",
            leap,
            Ok(r#"{"id":1,"day":"2023-03-15"},{"id":2,"day":null}"#),
        ),
        (
            "parts.xlsx",
            range,
            Ok(r#"{"id":2,"day":null},{"id":3,"day":null}"#),
        ),
        ("parts.xlsx", head, Ok(r#"{"name":"x","2023-03-15":3}"#)),
        ("parts.csv", &utf_16, Err("UTF-16")),
        (
            "parts.csv",
            b"id,name\n1,\"abc\n2,def\n",
            Err("Row 2 has a quote that is never closed"),
        ),
        (
            "parts.csv",
            b"id,name,lat\n0,x,0.5\n1,\"Main St,1.5\n2,b,2.5\n3,\"ok\",3.5\n4,z,4.5\n",
            Err("Row 3 has a quote that is closed only in a later line"),
        ),
    ] {
        let house = House::new().sheets();
        let place = house.path().join("data").join(file);
        std::fs::create_dir_all(place.parent().expect("a folder")).expect("made");
        std::fs::write(&place, bytes).expect("written");
        let from = format!("data/{file}");
        let mut call = house.weir(&["call", "--file", &from, "--state", "state"]);
        let output = call.arg("list_parts").output().expect("weir starts");
        let (code, out, err) = read_output(output);
        match expected {
            Ok(record) => assert!(code == 0 && out.contains(record), "{file}: {out}{err}"),
            Err(part) => assert!(code != 0 && err.contains(part), "{file}: {out}{err}"),
        }
    }
}

/// A cell that is not a value of its column is null, and an answer states how many such cells a filter could not compare.
#[tokio::test]
async fn cells_that_fit_no_filter_are_counted() {
    let house = House::new()
        .sheets()
        .file("data/orders.csv", "id,amount\n1,5\n2,7\n3,9\n")
        .file(
            "contracts/orders.yaml",
            "contract: orders\ncollections:\n  orders:\n    adapter: sheet\n    settings: { connection: data, path: orders.csv }\n    \
             misfits: empty\n    null_words: [n/a]\ntools:\n  - tool: list_orders\n    description: Lists orders.\n    verb: list\n    \
             collection: orders\n    fields:\n      - { name: min_amount, type: number, column: amount, match: at-least }\n",
        );
    let gateway = house.serve();
    house.write(
        "data/orders.csv",
        "id,amount\n1,5\n2,unknown\n3,9\n4,n/a\n5,12 EUR\n",
    );
    let client = Modern::new(gateway.url());
    let all = client.call("list_orders", json!({})).await;
    let amounts: Vec<&Value> = all["structuredContent"]["records"]
        .as_array()
        .unwrap_or_else(|| panic!("{all}"))
        .iter()
        .map(|record| &record["amount"])
        .collect();
    assert_eq!(json!(amounts), json!([5, null, 9, null, null]), "{all}");
    assert_eq!(all["structuredContent"].get("skipped"), None);
    let some = client.call("list_orders", json!({ "min_amount": 6 })).await;
    assert_eq!(
        some["structuredContent"],
        json!({ "records": [{ "id": 3, "amount": 9 }], "next": null, "skipped": 2 })
    );
    let text = some["content"][0]["text"].as_str().unwrap_or_default();
    assert!(
        text.starts_with("1 record. 2 records could not be compared in `amount`; ask an operator."),
        "{text}"
    );
}

/// Cells that are not values come after all others, and an order by their column has each record once.
#[tokio::test]
async fn a_list_in_an_order_of_choice_meets_cells_that_fit_nothing_once() {
    let rows = "id,amount\n1,5\n2,unknown\n3,9\n4,\n5,12 EUR\n6,n/a\n7,5\n";
    let house = House::new()
        .sheets()
        .file("data/orders.csv", "id,amount\n1,5\n2,7\n")
        .file(
            "contracts/orders.yaml",
            "contract: orders\ncollections:\n  orders:\n    adapter: sheet\n    settings: { connection: data, path: orders.csv }\n    \
             misfits: empty\n    null_words: [n/a]\ntools:\n  - tool: list_orders\n    description: Lists orders.\n    verb: list\n    \
             collection: orders\n    order_by: [amount]\n    columns: [id]\n    with_total: true\n    fields: []\n",
        );
    let gateway = house.serve();
    house.write("data/orders.csv", rows);
    let client = Modern::new(gateway.url());
    for (direction, valued) in [("amount", ["1", "7", "3"]), ("-amount", ["3", "1", "7"])] {
        let (mut met, mut cursor) = (Vec::new(), Value::Null);
        for _ in 0..7 {
            let arguments = json!({ "order_by": [direction], "columns": ["id"], "with_total": true, "limit": 1, "cursor": cursor });
            let page = client.call("list_orders", arguments).await;
            assert_eq!(page["structuredContent"]["total"], 7, "{page}");
            let records = &page["structuredContent"]["records"];
            assert_eq!(records[0].as_object().map(|record| record.len()), Some(1));
            met.push(records[0]["id"].to_string());
            cursor = page["structuredContent"]["next"].clone();
        }
        assert_eq!(cursor, Value::Null, "{met:?}");
        assert_eq!(met[..3], valued, "{met:?}");
        met.sort();
        assert_eq!(met, ["1", "2", "3", "4", "5", "6", "7"]);
    }
}

/// A draft notes what it found and what a person should decide, and accepts the row of the header and the name of the records.
#[test]
fn a_messy_sheet_is_drafted_with_notes() {
    let rows: String = (1..=40)
        .map(|n| format!("{n},{n}.50,\"{n},90 €\",Oslo,2026-10-0{}\n", n % 9 + 1))
        .collect();
    let text = format!(
        "Export of 2026-11-01,,,,\nid,amount,price,city,placed\n{rows}41,n/a,\"1,00 €\", Oslo,2026-10-01\nTOTAL,820.00,,,\n"
    );
    let house = House::new().sheets().file("data/export (1).csv", &text);
    let (_, notes) = draft(&house, "export (1).csv");
    assert!(notes.contains("`header_row: 2`"), "{notes}");
    let arguments = ["--header-row", "2", "--name", "shop orders"];
    let (contract, notes) = draft_with(&house, "export (1).csv", &arguments);
    for expected in [
        "The last row looks like a total (\"TOTAL\")",
        "The column \"price\" is read as numbers with their unit, `# €`.",
        "The column \"city\": 1 cell has blanks around the text",
        "The column \"amount\" is read as number, with `n/a` for an empty cell",
    ] {
        assert!(notes.contains(expected), "{expected}: {notes}");
    }
    for line in [
        "contract: shop-orders",
        "    settings: { connection: data, path: export (1).csv, header_row: 2 }",
        "    null_words: [n/a]",
        "    group_by: [city, placed]",
        "    measures: [count, sum(amount), avg(amount), min(amount), max(amount), sum(price), avg(price), min(price), max(price)]",
    ] {
        assert!(
            contract.lines().any(|known| known == line),
            "{line}: {contract}"
        );
    }
}

/// A format that the cells do not have is refused with the one that they have, before any agent meets it.
#[test]
fn a_format_is_tried_on_the_cells() {
    let rows: String = (1..=300)
        .map(|n| match n {
            7 => "7,soon,x\n".to_owned(),
            n => format!(
                "{n},{:02}/{:02}/2026,\"1.234,{:02}\"\n",
                n % 12 + 1,
                n % 28 + 1,
                n % 99
            ),
        })
        .collect();
    let house = House::new()
        .sheets()
        .file("data/orders.csv", format!("id,placed,total\n{rows}"));
    let contract = |shape: &str| {
        format!(
            "contract: orders\ncollections:\n  orders:\n    adapter: sheet\n    settings: {{ connection: data, path: orders.csv }}\n    \
             shape: {{ {shape} }}\ntools:\n  - {{ tool: list_orders, description: Lists orders., verb: list, collection: orders, fields: [] }}\n"
        )
    };
    let plugins = house.plugins().display().to_string();
    let compiled = |shape: &str| {
        house.write("orders.yaml", contract(shape));
        house.run(&["compile", "orders.yaml", "--plugins", &plugins])
    };
    let (code, _, err) = compiled("placed: { date: \"%d.%m.%Y\" }");
    assert_ne!(code, 0, "{err}");
    assert!(
        err.contains(
            "/collections/orders/shape/placed: 0 of 300 cells fit `%d.%m.%Y`; 299 fit `%m/%d/%Y`"
        ),
        "{err}"
    );
    let (code, _, err) = compiled("total: { decimal: \".\", grouping: \",\" }");
    assert_ne!(code, 0, "{err}");
    assert!(err.contains("0 of 300 cells fit `decimal: \".\"`, `grouping: \",\"`; 299 fit `decimal: \",\"`, `grouping: \".\"`"), "{err}");
    let (code, _, err) = compiled("placed: { date: \"%m/%d/%Y\" }");
    assert_eq!(code, 0, "{err}");
    assert!(!err.contains("fit"), "{err}");
    // A few cells that fit nothing are a note; so are a tenth of them.
    let text: String = (1..=40)
        .map(|n| match n % 10 {
            0 => format!("{n},soon,x\n"),
            _ => format!("{n},05/06/2026,1\n"),
        })
        .collect();
    house.write("data/orders.csv", format!("id,placed,total\n{text}"));
    let (code, _, err) = compiled("placed: { date: \"%m/%d/%Y\" }");
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("36 of 40 cells fit `%m/%d/%Y`"), "{err}");
}
