//! Related records of a lookup are the same from a file, from databases and from a web service.

use serde_json::{Value, json};
use weir_tests::{House, Postgres, upstream::JsonServer};

/// Writes a contract whose orders name customers, over sources with these settings and keys.
fn contract(adapter: &str, connection: &str, orders: &str, customers: &str, more: &str) -> String {
    format!(
        "contract: desk
collections:
  orders:
    adapter: {adapter}
    settings: {{ connection: {connection}, {orders} }}
    key: [id]{more}
    relations:
      customer: {{ collection: customers, columns: [customer_id] }}
  customers:
    adapter: {adapter}
    settings: {{ connection: {connection}, {customers} }}
    key: [id]{more}
    hide: [rating]
tools:
  - tool: get_order
    description: Finds one order by its number.
    verb: lookup
    collection: orders
    include: [customer]
    fields: [{{ name: id, type: number, required: true }}]
"
    )
}

const TABLES: &str = "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, item VARCHAR(20) NOT NULL);
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL, rating INTEGER NOT NULL);
    INSERT INTO orders VALUES (10, 1, 'tea'), (11, NULL, 'salt'), (12, 9, 'rice');
    INSERT INTO customers VALUES (1, 'Ann', 5), (2, 'Ben', 3)";

fn sheet() -> House {
    House::new()
        .sheets()
        .file(
            "data/orders.csv",
            "id,customer_id,item\n10,1,tea\n11,,salt\n12,9,rice\n",
        )
        .file("data/customers.csv", "id,name,rating\n1,Ann,5\n2,Ben,3\n")
        .file(
            "contracts/desk.yaml",
            contract(
                "sheet",
                "data",
                "path: orders.csv",
                "path: customers.csv",
                "\n    misfits: empty",
            ),
        )
}

fn sqlite() -> House {
    let house = House::new().config(
        "[connections.shop]\nkind = \"sqlite\"\npath = \"data/shop.db\"\n[plugins.sql.grants]\nshop = \"read\"",
    );
    let database = rusqlite::Connection::open(house.path().join("data/shop.db"));
    database
        .expect("a database")
        .execute_batch(TABLES)
        .expect("tables");
    house.file(
        "contracts/desk.yaml",
        contract("sql", "shop", "table: orders", "table: customers", ""),
    )
}

fn postgresql(server: &Postgres) -> House {
    server.sql(TABLES);
    House::new()
        .config(&format!(
            "[connections.shop]\nkind = \"postgresql\"\nurl = \"{}\"\n[plugins.sql.grants]\nshop = \"read\"",
            server.url()
        ))
        .file(
            "contracts/desk.yaml",
            contract("sql", "shop", "table: orders", "table: customers", ""),
        )
}

fn rest(server: &JsonServer) -> House {
    let orders = "key: [id], fields: { id: integer, customer_id: { type: integer, nullable: true }, item: string }, \
                  get: { path: '/orders/{id}' }";
    let customers = "key: [id], fields: { id: integer, name: string, rating: integer }, get: { path: '/customers/{id}' }";
    House::new()
        .config(&format!(
            "[connections.api]\nkind = \"http\"\nbase_url = \"{}\"\n[plugins.rest.grants]\napi = \"read\"",
            server.base
        ))
        .file("contracts/desk.yaml", contract("rest", "api", orders, customers, ""))
}

/// Asks the same of each source.
async fn asked(house: House, source: &str) {
    let (_gateway, client) = house.serve_client();
    let lookup = async |arguments: Value| client.call("get_order", arguments).await;
    let plain = lookup(json!({ "id": 10 })).await;
    let expected = json!({ "id": 10, "customer_id": 1, "item": "tea" });
    assert_eq!(plain["structuredContent"], expected, "{source}");
    let related = lookup(json!({ "id": 10, "include": ["customer"] })).await;
    let mut with = expected.clone();
    with["customer"] = json!({ "id": 1, "name": "Ann" });
    assert_eq!(
        related["structuredContent"], with,
        "{source}: what is hidden stays hidden"
    );
    // No relation is named, and one is named that does not exist.
    for id in [11, 12] {
        let none = lookup(json!({ "id": id, "include": ["customer"] })).await;
        let customer = none["structuredContent"].get("customer");
        assert_eq!(customer, Some(&Value::Null), "{source} {id}: {none}");
    }
    let absent = lookup(json!({ "id": 99, "include": ["customer"] })).await;
    assert_eq!(absent["structuredContent"]["code"], "not_found", "{source}");
    let unknown = lookup(json!({ "id": 10, "include": ["rating"] })).await;
    let errors = &unknown["structuredContent"]["errors"];
    assert_eq!(errors[0]["reason"], "not_in_enum", "{source}: {unknown}");
}

#[tokio::test]
async fn a_related_record_is_the_same_from_every_source() {
    asked(sheet(), "sheet").await;
    asked(sqlite(), "sqlite").await;
    let server = Postgres::start();
    asked(postgresql(&server), "postgresql").await;
    let records = json!({
        "orders": [
            { "id": 10, "customer_id": 1, "item": "tea" },
            { "id": 11, "customer_id": null, "item": "salt" },
            { "id": 12, "customer_id": 9, "item": "rice" },
        ],
        "customers": [{ "id": 1, "name": "Ann", "rating": 5 }, { "id": 2, "name": "Ben", "rating": 3 }],
    });
    let server = JsonServer::start(&records, "id");
    asked(rest(&server), "rest").await;
}

/// A record of another source must conform to its own shape.
#[tokio::test]
async fn a_related_record_is_checked() {
    let house = sqlite();
    let (_gateway, client) = house.serve_client();
    let database = rusqlite::Connection::open(house.path().join("data/shop.db"));
    let database = database.expect("the database");
    let renamed = database.execute_batch("ALTER TABLE customers RENAME COLUMN name TO label");
    renamed.expect("renamed");
    let refused = client
        .call("get_order", json!({ "id": 10, "include": ["customer"] }))
        .await;
    assert_eq!(
        refused["structuredContent"]["code"], "source_changed",
        "{refused}"
    );
    let plain = client.call("get_order", json!({ "id": 10 })).await;
    assert_eq!(plain["structuredContent"]["item"], "tea", "{plain}");
}
