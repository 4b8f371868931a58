//! Numbers that a sheet writes with their unit: drafted, asked for, added up and written back as the sheet has them.

use serde_json::{Value, json};
use weir_tests::House;

const PRICES: &str = "No;Article;Price;Weight;Discount;Fee\r\n\
    A-1;Tea;12,90 €;0,5 kg;12 %;$1,200.00\r\n\
    A-2;Rice;1.234,00 €;45 kg;0;-$3.50\r\n\
    A-3;Salt;-7,25 €;n/a;5 %;$12.00\r\n";

/// A contract over the same sheet, with the tools that a draft does not write.
const CONTRACT: &str = "contract: prices\ncollections:\n  prices:\n    adapter: sheet\n    settings: { connection: data, path: prices.csv }\n    \
    key: [No]\n    misfits: empty\n    write: true\n    shape:\n      Price: { type: number, decimal: \",\", grouping: \".\", unit: \"# €\" }\n      \
    Weight: { decimal: \",\", unit: \"# kg\" }\n      Discount: { type: integer, unit: \"# %\" }\n      Fee: { grouping: \",\", unit: \"$#\" }\n\
    tools:\n  - tool: set_price\n    description: Sets a price.\n    verb: update\n    collection: prices\n    fields:\n      \
    - { name: no, type: text, column: No, required: true }\n      - { name: price, type: number, column: Price }\n      \
    - { name: weight, type: number, column: Weight }\n      - { name: discount, type: number, column: Discount }\n      \
    - { name: fee, type: number, column: Fee }\n  \
    - { tool: sum_prices, description: Sums up prices., verb: summarize, collection: prices, measures: [\"sum(Price)\", \"max(Price)\", count], fields: [{ name: max_price, type: number, column: Price, match: at-most }] }\n  \
    - { tool: get_price, description: Finds a price., verb: lookup, collection: prices, fields: [{ name: no, type: text, column: No, required: true }] }\n";

fn draft(house: &House, file: &str) -> (String, String) {
    let plugins = house.plugins().display().to_string();
    let file = format!("data/{file}");
    let fixed = ["draft", &file, "--plugins", &plugins, "--state", "state"];
    let (code, contract, notes) = house.run(&fixed);
    assert_eq!(code, 0, "{notes}");
    (contract, notes)
}

#[tokio::test]
async fn a_draft_reads_filters_adds_and_writes_numbers_with_their_unit() {
    let house = House::new().sheets().file("data/prices.csv", PRICES);
    let (contract, notes) = draft(&house, "prices.csv");
    for line in [
        "      Price: { type: number, decimal: \",\", grouping: \".\", unit: \"# €\" }",
        "      Weight: { type: number, decimal: \",\", unit: \"# kg\" }",
        "      Discount: { type: integer, unit: \"# %\" }",
    ] {
        assert!(
            contract.lines().any(|known| known == line),
            "{line}:\n{contract}\n{notes}"
        );
    }
    assert!(contract.contains("help: \"Price in €."), "{contract}");
    assert!(
        notes.contains("The column \"Discount\" is read as numbers with their unit, `# %`; 1 cell without a unit is read like them."),
        "{notes}"
    );
    let house = house.file("contracts/draft.yaml", contract);
    let (_gateway, client) = house.serve_client();
    let list = client.tool("list_prices").await;
    let record = &list["outputSchema"]["properties"]["records"]["items"]["properties"];
    assert_eq!(record["Price"]["description"], "Price in €.", "{list}");

    let one = client.call("get_price", json!({ "no": "A-1" })).await;
    let expected = json!({ "No": "A-1", "Article": "Tea", "Price": 12.9, "Weight": 0.5, "Discount": 12, "Fee": 1200 });
    assert_eq!(one["structuredContent"], expected, "{one}");
    let found = client
        .call("list_prices", json!({ "max_price": 12.9 }))
        .await;
    let numbers: Vec<&Value> = found["structuredContent"]["records"]
        .as_array()
        .expect("records")
        .iter()
        .map(|record| &record["No"])
        .collect();
    assert_eq!(numbers, ["A-1", "A-3"], "{found}");
    let asked = json!({ "measures": ["sum(Price)", "avg(Fee)"] });
    let sums = client.call("summarize_prices", asked).await;
    let expected = json!([{ "sum(Price)": 1239.65, "avg(Fee)": 402.8333333333333 }]);
    assert_eq!(sums["structuredContent"]["records"], expected, "{sums}");

    let record = json!({ "no": "A-4", "article": "Oil", "price": -98765.4, "weight": 2, "discount": 7, "fee": -1234.5 });
    let created = client.call("create_price", record).await;
    assert_eq!(
        created["structuredContent"]["record"]["Price"], -98765.4,
        "{created}"
    );
    let text = std::fs::read_to_string(house.path().join("data/prices.csv")).expect("the sheet");
    assert_eq!(
        text,
        format!("{PRICES}A-4;Oil;-98.765,4 €;2 kg;7 %;-$1,234.5\r\n")
    );
}

#[tokio::test]
async fn an_update_spells_a_number_with_its_unit_as_it_was() {
    let house = House::new()
        .sheets()
        .file("data/prices.csv", PRICES)
        .file("contracts/prices.yaml", CONTRACT);
    let (_gateway, client) = house.serve_client();
    let changed = json!({ "no": "A-2", "price": 8000, "discount": 3, "fee": 4 });
    let changed = client.call("set_price", changed).await;
    assert_eq!(
        changed["structuredContent"]["record"]["Price"], 8000,
        "{changed}"
    );
    // What is already there is kept byte by byte.
    let same = json!({ "no": "A-1", "price": 12.9, "weight": 0.5, "discount": 12, "fee": 1200 });
    client.call("set_price", same).await;
    let text = std::fs::read_to_string(house.path().join("data/prices.csv")).expect("the sheet");
    let expected = PRICES.replace("1.234,00 €;45 kg;0;-$3.50", "8.000,00 €;45 kg;3;$4.00");
    assert_eq!(text, expected);
}

#[tokio::test]
async fn different_units_are_not_added() {
    let mixed = PRICES.replace("-7,25 €", "7,25 USD");
    let house = House::new()
        .sheets()
        .file("data/prices.csv", &mixed)
        .file("contracts/prices.yaml", CONTRACT);
    let (contract, notes) = draft(&house, "prices.csv");
    assert!(
        notes.contains("The column \"Price\" has numbers with several units, such as \"12,90 €\", and remains text: they cannot be added."),
        "{notes}"
    );
    assert!(!contract.contains("sum(Price)"), "{contract}");
    let (_gateway, client) = house.serve_client();
    for measure in ["sum(Price)", "max(Price)"] {
        let refused = client
            .call("sum_prices", json!({ "measures": [measure] }))
            .await;
        let text = refused["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(
            text.contains("number with another unit") && text.contains("7,25 USD"),
            "{refused}"
        );
    }
    // A count needs no unit, a record has null, and records of one unit are added.
    let count = client
        .call("sum_prices", json!({ "measures": ["count"] }))
        .await;
    assert_eq!(
        count["structuredContent"]["records"][0]["count"], 3,
        "{count}"
    );
    let one = client.call("get_price", json!({ "no": "A-3" })).await;
    assert_eq!(one["structuredContent"]["Price"], Value::Null, "{one}");
    let sum = client
        .call(
            "sum_prices",
            json!({ "measures": ["sum(Price)"], "max_price": 2000 }),
        )
        .await;
    assert_eq!(
        sum["structuredContent"]["records"][0]["sum(Price)"], 1246.9,
        "{sum}"
    );
}

#[test]
fn a_unit_is_checked_when_it_is_compiled() {
    let house = House::new().sheets().file("data/prices.csv", PRICES);
    let plugins = house.plugins().display().to_string();
    let compiled = |adapter: &str, shape: &str| {
        let contract = format!(
            "contract: prices\ncollections:\n  prices:\n    adapter: {adapter}\n    settings: {{ connection: data, path: prices.csv }}\n    \
             shape: {{ {shape} }}\ntools:\n  - {{ tool: list_prices, description: Lists prices., verb: list, collection: prices, fields: [] }}\n"
        );
        house.write("prices.yaml", contract);
        let described =
            json!({ "name": "prices", "fields": [{ "key": "Price", "type": "string" }] });
        house.write("prices.json", described.to_string());
        match adapter {
            "sheet" => house.run(&["compile", "prices.yaml", "--plugins", &plugins]),
            _ => house.run(&["compile", "prices.yaml", "--shape", "prices=prices.json"]),
        }
    };
    for (adapter, shape, expected) in [
        (
            "sheet",
            "Price: { unit: \"€\" }",
            "/collections/prices/shape/Price/unit: must have one # for the number",
        ),
        (
            "sheet",
            "Article: { type: string, unit: \"# €\" }",
            "/Article/unit: is for columns of type number, decimal or integer",
        ),
        (
            "sheet",
            "Price: { decimal: \".\", grouping: \",\", unit: \"# €\" }",
            "0 of 3 cells fit `decimal: \".\"`, `grouping: \",\"`, `unit: \"# €\"`; 3 fit `decimal: \",\"`, `grouping: \".\"`, `unit: \"# €\"`",
        ),
        (
            "sql",
            "Price: { unit: \"# €\" }",
            "the adapter 'sql' reads no column in a format of its own",
        ),
        (
            "rest",
            "Price: { unit: \"# €\" }",
            "the adapter 'rest' reads no column in a format of its own",
        ),
    ] {
        let (code, _, err) = compiled(adapter, shape);
        assert_ne!(code, 0, "{shape}: {err}");
        assert!(err.contains(expected), "{shape}: {err}");
    }
    let (code, _, err) = compiled(
        "sheet",
        "Price: { decimal: \",\", grouping: \".\", unit: \"# €\" }",
    );
    assert_eq!(code, 0, "{err}");
}
