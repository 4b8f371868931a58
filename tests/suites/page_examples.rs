//! The examples of the pages on contracts, values and adapters, served as they are.

use serde_json::{Value, json};
use weir_tests::{House, Modern, place, upstream::JsonServer};

/// Returns the blocks of YAML of a page.
fn blocks(page: &str) -> Vec<String> {
    let path = place::repository().join("docs").join(page);
    let text = std::fs::read_to_string(path).expect(page);
    let blocks = text.split("\n```yaml\n").skip(1);
    blocks
        .filter_map(|rest| Some(format!("{}\n", rest.split_once("\n```")?.0)))
        .collect()
}

/// Returns the block of a page that begins so.
fn block(page: &str, begin: &str) -> String {
    let mut blocks = blocks(page).into_iter();
    blocks
        .find(|block| block.starts_with(begin))
        .unwrap_or_else(|| panic!("{page} has no block that begins with {begin}"))
}

fn fill(house: &House, file: &str, script: &str) {
    let path = house.path().join("data").join(file);
    rusqlite::Connection::open(path)
        .and_then(|database| database.execute_batch(script))
        .expect(file);
}

async fn answer(client: &Modern, tool: &str, arguments: Value) -> Value {
    let result = client.succeed(tool, arguments).await;
    result["structuredContent"].clone()
}

#[tokio::test]
async fn the_examples_of_contracts_answer_as_the_page_says() {
    const CONTRACTS: &str = "contract-format.md";
    let house = House::new().config(
        "[connections.support-db]\nkind = \"sqlite\"\npath = \"data/support.db\"\nwrite = true\n\
         [connections.shop]\nkind = \"sqlite\"\npath = \"data/shop.db\"\n[plugins.sql.grants]\nsupport-db = \"write\"\nshop = \"read\"",
    );
    fill(
        &house,
        "support.db",
        "CREATE TABLE tickets (id INTEGER PRIMARY KEY, subject TEXT NOT NULL, priority INTEGER NOT NULL, status TEXT NOT NULL,
             notify BOOLEAN, created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP);
         INSERT INTO tickets VALUES (1, 'ink', 2, 'open', 0, '2026-10-01 09:00:00'), (2, 'door', 5, 'open', 1, '2026-10-02 09:00:00'),
             (3, 'lamp', 5, 'Closed', NULL, '2026-11-03 09:00:00');",
    );
    fill(
        &house,
        "shop.db",
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
         CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL);
         INSERT INTO customers VALUES (3, 'Cem'); INSERT INTO orders VALUES (10, 3), (11, 4);",
    );
    let tools = [
        "  - tool: list_tickets",
        "  - tool: count_tickets",
        "  - tool: summarize_tickets",
    ];
    let tools: String = tools.map(|begin| block(CONTRACTS, begin)).concat();
    let support = block(CONTRACTS, "contract: support");
    house.write("contracts/support.yaml", format!("{support}{tools}"));
    house.write("contracts/shop.yaml", block(CONTRACTS, "contract: shop"));
    let (_gateway, client) = house.serve_client();

    let asked = json!({ "order_by": ["-priority", "created_at"], "columns": ["subject", "priority"], "with_total": true, "limit": 2 });
    let listed = answer(&client, "sup_list_tickets", asked).await;
    let expected = json!([{ "id": 2, "subject": "door", "priority": 5 }, { "id": 3, "subject": "lamp", "priority": 5 }]);
    assert_eq!(listed["records"], expected, "{listed}");
    assert_eq!(listed["total"], 3, "{listed}");
    let tool = client.tool("sup_list_tickets").await;
    let limit = &tool["inputSchema"]["properties"]["limit"];
    assert_eq!(limit["default"], 20, "{limit}");
    for (asked, count) in [
        (json!({ "status": "open" }), 2),
        (json!({ "status": "closed" }), 1),
        (json!({ "no_notify": true }), 1),
        (json!({ "no_notify": false }), 2),
    ] {
        let counted = answer(&client, "sup_count_tickets", asked).await;
        assert_eq!(counted, json!({ "count": count }));
    }
    let asked = json!({ "group_by": ["month(created_at)"], "measures": ["count"], "order_by": ["-count"],
        "having": [{ "measure": "count", "at_least": 2 }], "limit": 12 });
    let summed = answer(&client, "sup_summarize_tickets", asked).await;
    assert_eq!(
        summed,
        json!({ "records": [{ "month(created_at)": "2026-10", "count": 2 }], "more": false })
    );
    for (id, customer) in [(10, json!({ "id": 3, "name": "Cem" })), (11, Value::Null)] {
        let order = answer(
            &client,
            "get_order",
            json!({ "id": id, "include": ["customer"] }),
        )
        .await;
        assert_eq!(order["customer"], customer, "{order}");
    }
}

#[tokio::test]
async fn the_examples_of_sheets_answer_as_the_page_says() {
    let tool = |name: &str, column: &str| {
        format!(
            "tools:\n  - {{ tool: list_{name}, description: Lists them., verb: list, collection: {name}, \
             fields: [{{ name: least, type: number, column: {column}, match: at-least }}] }}\n"
        )
    };
    let house = House::new()
        .config("[connections.desk]\nkind = \"files\"\npath = \"data\"\n[plugins.sheet.grants]\ndesk = \"read\"")
        .file("data/orders.csv", "id,amount\n1,5\n2,7\n")
        .file("data/tickets.csv", "id,amount\n1,5\n2,7\n")
        .file(
            "data/invoices.csv",
            "No;Amount;Due;Booked\n1;1.200,50 €;28/02/2026;05.10.2026 09:30\n2;7,00 €;01/03/2026;\n",
        )
        .file("data/list.xlsx", include_bytes!("../fixtures/two-sheets.xlsx"));
    for (page, name, column) in [
        ("values.md", "orders", "amount"),
        ("values.md", "invoices", "Amount"),
        ("adapters/sheet.md", "tickets", "amount"),
        ("adapters/sheet.md", "prices", "price"),
    ] {
        let collection = block(page, &format!("collections:\n  {name}:"));
        house.write(
            &format!("contracts/{name}.yaml"),
            format!("contract: {name}\n{collection}{}", tool(name, column)),
        );
    }
    let gateway = house.serve();
    house.write(
        "data/orders.csv",
        "id,amount\n1,5\n2,7\n3,n/a\n4,–\n5,12 EUR\n",
    );
    let client = Modern::new(gateway.url());
    let listed = answer(&client, "list_orders", json!({ "least": 6 })).await;
    assert_eq!(
        listed,
        json!({ "records": [{ "id": 2, "amount": 7 }], "next": null, "skipped": 1 })
    );
    let listed = answer(&client, "list_tickets", json!({ "least": 6 })).await;
    assert_eq!(listed["records"], json!([{ "id": 2, "amount": 7 }]));
    let listed = answer(&client, "list_invoices", json!({ "least": 8 })).await;
    assert_eq!(
        listed["records"],
        json!([{ "No": 1, "Amount": 1200.5, "Due": "2026-02-28", "Booked": "2026-10-05T09:30:00Z" }])
    );
    let listed = answer(&client, "list_prices", json!({ "least": 4 })).await;
    assert_eq!(listed["records"], json!([{ "sku": "b", "price": 4 }]));
}

/// The first contract over a web service, with the setting that hides the texts of its refusals.
#[tokio::test]
async fn the_examples_of_web_services_answer_as_the_page_says() {
    let server = JsonServer::start(&json!({ "posts": [{ "id": "1", "title": "one" }] }), "id");
    let hidden = block(
        "adapters/rest.md",
        "settings:\n  connection: blog\n  errors: hidden",
    );
    let hidden = hidden.lines().last().expect("a line").trim().to_owned();
    let contract = block("adapters/rest.md", "contract: blog");
    let contract = contract.replacen(
        "connection: blog\n",
        &format!("connection: blog\n      {hidden}\n"),
        1,
    );
    assert!(contract.contains("      errors: hidden\n"), "{contract}");
    let house = House::new()
        .config(&format!(
            "[connections.blog]\nkind = \"http\"\nbase_url = \"{}\"\nwrite = true\n[plugins.rest.grants]\nblog = \"write\"",
            server.base
        ))
        .file("contracts/blog.yaml", contract);
    let (_gateway, client) = house.serve_client();
    let post = answer(&client, "get_post", json!({ "id": "1" })).await;
    assert_eq!(post["title"], "one", "{post}");
}
