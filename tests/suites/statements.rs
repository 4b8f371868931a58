//! Queries and statements of the operator's own, as `docs/adapters/sql.md` shows them, over both databases.

use serde_json::{Value, json};
use weir_tests::{Gateway, House, Modern, Postgres, place};

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

    /// Serves the contracts of the page.
    fn serve(&self) -> (Gateway, Modern) {
        for (at, contract) in contracts().iter().enumerate() {
            self.house.write(&format!("contracts/{at}.yaml"), contract);
        }
        let gateway = self.house.serve();
        let client = Modern::new(gateway.url());
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

        let (tools, _) = client.list().await;
        let tool = tools
            .iter()
            .find(|tool| tool["name"] == "mark_order_paid")
            .expect("the tool");
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
        assert!(!gateway.log().contains("panicked"));
    }
}

/// A grant for writing is none for texts of the contract's own.
#[tokio::test]
async fn a_statement_needs_the_grant_for_statements() {
    for grant in ["read", "write"] {
        let shop = Shop::sqlite(grant);
        let statement = &contracts()[1];
        shop.house.write("contracts/pay.yaml", statement);
        let (code, _, said) = shop.house.run(&["compile", "contracts/pay.yaml"]);
        assert_ne!(code, 0, "{said}");
        assert!(
            said.contains("needs the grant \"statements\" on the connection `shop`"),
            "{said}"
        );
    }
    let shop = Shop::sqlite("statements");
    shop.house.write("contracts/pay.yaml", &contracts()[1]);
    let (code, _, said) = shop.house.run(&["compile", "contracts/pay.yaml"]);
    assert_eq!(code, 0, "{said}");
}
