//! Writes that a person approves: planned by the first call, and applied once by the same call again, and by no other.

pub(crate) mod offers;
mod people;

use serde_json::{Value, json};
use weir_tests::{Admin, Gateway, House, Legacy, Modern, Postgres, answer_to, http, until};

use crate::repeated::ORDERS;

const TOOLS: &str = r#"
    columns: [id, subject, price, state]
    key: [id]
    write: true
tools:
  - tool: find_item
    description: Finds one item by its number.
    verb: lookup
    collection: items
    fields:
      - { name: id, type: number, required: true }
  - tool: reprice_item
    description: Changes the price of an item.
    verb: update
    collection: items
    approval: required
    returns: [id, price]
    fields:
      - { name: id, type: number, required: true }
      - { name: price, type: number, required: true }
      - { name: owner, from: tenant }
  - tool: retitle_item
    description: Changes the subject of an item.
    verb: update
    collection: items
    fields:
      - { name: id, type: number, required: true }
      - { name: subject, type: text, required: true }
  - tool: delete_item
    description: Deletes an item.
    verb: delete
    collection: items
    approval: required
    fields:
      - { name: id, type: number, required: true }
"#;

/// The settings of a shop whose items are a sheet.
pub(crate) const SHEET: &str = "{ connection: data, path: items.csv }";

pub(crate) const ADMIN: &str = "[admin]\nlisten = \"127.0.0.1:0\"";

struct Shop {
    house: House,
    gateway: Gateway,
    admin: Admin,
    /// Changes the subject of item 1 behind the gateway's back.
    touch: fn(&House),
}

pub(crate) const ITEMS: &str =
    "id,subject,price,state,owner\n1,lamp,12,open,home\n2,chair,30,,home\n3,desk,99,open,acme\n";

fn sheet() -> Shop {
    let house = House::new()
        .sheets()
        .config(ADMIN)
        .file("data/items.csv", ITEMS);
    let touch = |house: &House| {
        let path = house.path().join("data/items.csv");
        let text = std::fs::read_to_string(&path).expect("the sheet");
        house.write("data/items.csv", text.replace("lamp", "old lamp"));
    };
    serve(house, "sheet", SHEET, touch)
}

fn sqlite() -> Shop {
    let house = sqlite_house(
        "CREATE TABLE items (id INTEGER PRIMARY KEY, subject TEXT NOT NULL, price INTEGER NOT NULL, state TEXT, owner TEXT NOT NULL);
         INSERT INTO items VALUES (1, 'lamp', 12, 'open', 'home'), (2, 'chair', 30, NULL, 'home'), (3, 'desk', 99, 'open', 'acme');",
    );
    let touch = |house: &House| {
        let change = "UPDATE items SET subject = 'old lamp' WHERE id = 1";
        database(house).execute(change, ()).expect("changed");
    };
    serve(house, "sql", "{ connection: db, table: items }", touch)
}

/// Returns a house whose connection `db` is a writable SQLite database.
pub(crate) fn sqlite_house(statements: &str) -> House {
    let house = House::new().config(ADMIN).config(
        "[connections.db]\nkind = \"sqlite\"\npath = \"data/db.sqlite\"\nwrite = true\n[plugins.sql.grants]\ndb = \"write\"",
    );
    house.write("data/none", "");
    database(&house).execute_batch(statements).expect("tables");
    house
}

pub(crate) fn database(house: &House) -> rusqlite::Connection {
    let path = house.path().join("data/db.sqlite");
    rusqlite::Connection::open(path).expect("a file in the temporary folder")
}

/// Returns the contract of the shop, whose items are at the place that the settings name.
pub(crate) fn shop_contract(adapter: &str, settings: &str) -> String {
    let head = format!(
        "contract: shop\ncollections:\n  items:\n    adapter: {adapter}\n    settings: {settings}"
    );
    head + TOOLS
}

fn serve(house: House, adapter: &str, settings: &str, touch: fn(&House)) -> Shop {
    let house = house.file("contracts/shop.yaml", shop_contract(adapter, settings));
    let gateway = house.serve();
    let admin = Admin::of(&house);
    Shop {
        house,
        gateway,
        admin,
        touch,
    }
}

impl Shop {
    fn agent(&self, agent: &str, tenant: &str) -> Modern {
        let key = self.house.key(&["--agent", agent, "--tenant", tenant]);
        Modern::with_key(self.gateway.url(), &key)
    }

    fn person(&self, name: &str, role: &str) -> Admin {
        let words = ["admins", "create", "--name", name, "--role", role];
        let key = self.house.succeed(&words);
        Admin {
            key: key.trim().to_owned(),
            ..self.admin.clone()
        }
    }

    fn state(&self) -> rusqlite::Connection {
        let path = self.house.path().join("state/weir.db");
        rusqlite::Connection::open(path).expect("a state")
    }

    async fn price(&self, id: u32) -> Value {
        let client = self.agent("reader", "home");
        let found = client.call("find_item", json!({ "id": id })).await;
        found["structuredContent"]["price"].clone()
    }

    /// Approves a plan as it is now.
    async fn approve(&self, person: &Admin, id: &str) -> (u16, Value) {
        let (_, plan) = person.ask("GET", &format!("/v1/approvals/{id}"), "").await;
        let body = json!({ "fingerprint": plan["fingerprint"] }).to_string();
        let path = format!("/v1/approvals/{id}/approve");
        person.ask("POST", &path, body).await
    }
}

fn code(result: &Value) -> &str {
    result["structuredContent"]["code"]
        .as_str()
        .unwrap_or("none")
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

/// Returns the id of the plan that a call waits as.
fn plan(result: &Value) -> String {
    assert_eq!(code(result), "approval_required", "{result}");
    let id = result["structuredContent"]["plan"]["id"].as_str();
    id.expect("a plan").to_owned()
}

async fn reprice(client: &Modern, id: u32, price: u32) -> Value {
    let arguments = json!({ "id": id, "price": price });
    client.call("reprice_item", arguments).await
}

#[tokio::test]
async fn a_write_runs_after_a_person_approved_it_and_once() {
    for shop in [sheet(), sqlite()] {
        let (ann, bob) = (shop.agent("ann", "home"), shop.agent("bob", "home"));
        let asked = reprice(&ann, 1, 20).await;
        let id = plan(&asked);
        assert_eq!(
            asked["structuredContent"]["plan"]["changed"],
            json!(["price"]),
            "{asked}"
        );
        let text = asked["content"][0]["text"].as_str().expect("a text");
        assert!(
            text.contains(&id) && text.contains("repeat the same call"),
            "{text}"
        );
        assert_eq!(
            plan(&reprice(&ann, 1, 20).await),
            id,
            "the same call waits once"
        );
        assert_eq!(shop.price(1).await, 12);

        // What would change, for the person, on the terminal too.
        let shown = shop.house.run(&["approvals", "show", &id]).1;
        assert!(
            shown.contains("price: 12 → 20") && shown.contains("ann of home"),
            "{shown}"
        );
        let fingerprint = shop.house.json(&["approvals", "show", &id])["fingerprint"].clone();
        let fingerprint = fingerprint.as_str().expect("a fingerprint");
        let wrong = ["approvals", "approve", &id, "--fingerprint", "00"];
        let (code_wrong, _, err) = shop.house.run(&wrong);
        assert!(
            code_wrong == 1 && err.contains("a different fingerprint"),
            "{err}"
        );

        // Callers cannot approve their own writes.
        let own = shop.approve(&shop.person("ann", "operator"), &id).await;
        assert_eq!(own.0, 403, "{}", own.1);
        let eve = shop.person("eve", "approver");
        let body = json!({ "fingerprint": fingerprint }).to_string();
        let approved = eve
            .ask("POST", &format!("/v1/approvals/{id}/approve"), body)
            .await;
        assert_eq!(approved.0, 200, "{}", approved.1);
        let again = shop.approve(&eve, &id).await;
        assert_eq!(again.0, 409, "{}", again.1);

        // Neither other arguments nor another caller use it up.
        assert_ne!(plan(&reprice(&ann, 1, 21).await), id);
        assert_ne!(plan(&reprice(&bob, 1, 20).await), id);
        let ann_elsewhere = shop.agent("ann2", "acme");
        assert_eq!(code(&reprice(&ann_elsewhere, 1, 20).await), "not_found");
        assert_eq!(shop.price(1).await, 12);

        let done = reprice(&ann, 1, 20).await;
        assert_eq!(done["isError"], false, "{done}");
        assert_eq!(shop.price(1).await, 20);
        assert_ne!(plan(&reprice(&ann, 1, 20).await), id, "it was used");

        let (_, record) = shop
            .admin
            .ask(
                "GET",
                "/v1/audit?kind=call&tool=reprice_item&outcome=ok",
                "",
            )
            .await;
        let record = record.to_string();
        assert!(
            record.contains(&id) && record.contains("admin:eve"),
            "{record}"
        );
        let (_, acts) = shop
            .admin
            .ask("GET", "/v1/audit?kind=admin&text=plan_approve", "")
            .await;
        assert!(acts.to_string().contains(&id), "{acts}");
        let (_, ended) = eve.ask("GET", &format!("/v1/approvals/{id}"), "").await;
        assert_eq!(
            (&ended["status"], &ended["write"]),
            (&json!("applied"), &Value::Null)
        );
    }
}

#[tokio::test]
async fn a_record_that_moved_is_left_as_it_is() {
    for shop in [sheet(), sqlite()] {
        let (ann, eve) = (shop.agent("ann", "home"), shop.person("eve", "approver"));
        let id = plan(&reprice(&ann, 1, 20).await);
        assert_eq!(shop.approve(&eve, &id).await.0, 200);
        // The tool neither writes nor answers the subject: another call of it may have changed that.
        let asked = ann.call("delete_item", json!({ "id": 1 })).await;
        let delete = plan(&asked);
        assert_eq!(shop.approve(&eve, &delete).await.0, 200);
        (shop.touch)(&shop.house);
        let moved = ann.call("delete_item", json!({ "id": 1 })).await;
        assert_eq!(
            (code(&moved), &moved["structuredContent"]["reason"]),
            ("conflict", &json!("plan_is_stale")),
            "{moved}"
        );
        assert_eq!(shop.price(1).await, 12, "it is still there");
        let (_, stale) = eve.ask("GET", &format!("/v1/approvals/{delete}"), "").await;
        assert_eq!(stale["status"], "stale", "{stale}");
        assert_ne!(
            plan(&ann.call("delete_item", json!({ "id": 1 })).await),
            delete
        );
        let done = reprice(&ann, 1, 20).await;
        assert_eq!(
            done["isError"], false,
            "what was agreed to has not moved: {done}"
        );
        // An empty column has to remain empty too.
        let empty = plan(&ann.call("delete_item", json!({ "id": 2 })).await);
        assert_eq!(shop.approve(&eve, &empty).await.0, 200);
        let done = ann.call("delete_item", json!({ "id": 2 })).await;
        assert_eq!(done["isError"], false, "{done}");
    }
}

/// It does not matter for the approved record that another record already has the value.
#[tokio::test]
async fn a_conflict_with_another_record_leaves_no_stale_plan() {
    let shop = sqlite();
    let index = "CREATE UNIQUE INDEX prices ON items (price)";
    database(&shop.house).execute(index, ()).expect("an index");
    let (ann, eve) = (shop.agent("ann", "home"), shop.person("eve", "approver"));
    let id = plan(&reprice(&ann, 1, 30).await);
    assert_eq!(shop.approve(&eve, &id).await.0, 200);
    let refused = reprice(&ann, 1, 30).await;
    assert_eq!(code(&refused), "conflict", "{refused}");
    assert_ne!(
        refused["structuredContent"]["reason"], "plan_is_stale",
        "{refused}"
    );
    let (_, used) = eve.ask("GET", &format!("/v1/approvals/{id}"), "").await;
    assert_eq!(used["status"], "applied", "{used}");
}

#[tokio::test]
async fn a_plan_ends_with_its_time_its_version_and_a_no() {
    let shop = sheet();
    let (ann, eve) = (shop.agent("ann", "home"), shop.person("eve", "approver"));
    let database = shop.state();
    let expire = || {
        let set = "UPDATE plans SET expires_ms = created_ms";
        assert!(database.execute(set, ()).expect("set") > 0);
    };
    // Expired before and after the approval.
    let late = plan(&reprice(&ann, 1, 20).await);
    expire();
    let refused = shop.approve(&eve, &late).await;
    assert!(
        refused.0 == 409 && refused.1.to_string().contains("expired"),
        "{}",
        refused.1
    );
    let unused = plan(&reprice(&ann, 1, 20).await);
    assert_ne!(late, unused);
    assert_eq!(shop.approve(&eve, &unused).await.0, 200);
    expire();
    assert_ne!(plan(&reprice(&ann, 1, 20).await), unused);
    assert_eq!(shop.price(1).await, 12);

    let no = plan(&reprice(&ann, 2, 31).await);
    let (code_no, _, err) = shop
        .house
        .run(&["approvals", "reject", &no, "--reason", "Too dear."]);
    assert_eq!(code_no, 0, "{err}");
    let rejected = reprice(&ann, 2, 31).await;
    let text = rejected["content"][0]["text"].as_str().expect("a text");
    assert!(
        code(&rejected) == "forbidden" && text.contains("Too dear."),
        "{rejected}"
    );

    // Another version is another tool.
    let before = plan(&reprice(&ann, 2, 40).await);
    assert_eq!(shop.approve(&eve, &before).await.0, 200);
    let file =
        std::fs::read_to_string(shop.house.path().join("contracts/shop.yaml")).expect("the file");
    shop.house.write(
        "contracts/shop.yaml",
        file.replace("Finds one item", "Finds an item"),
    );
    shop.gateway.wait_for_log("1.0.1");
    assert_ne!(plan(&reprice(&ann, 2, 40).await), before);
    assert_eq!(shop.price(2).await, 30);
}

#[tokio::test]
async fn each_way_to_call_says_that_a_person_is_needed() {
    let shop = sheet();
    let key = shop.house.key(&["--agent", "ann", "--tenant", "home"]);
    let arguments = json!({ "id": 1, "price": 20 });
    let modern = Modern::with_key(shop.gateway.url(), &key);
    let id = plan(&modern.call("reprice_item", arguments.clone()).await);
    let legacy = Legacy::open_as(shop.gateway.url(), "2025-06-18", Some(&key)).await;
    assert_eq!(
        plan(&legacy.call("reprice_item", arguments.clone()).await),
        id
    );
    let rest = http()
        .post(format!("{}/rest/shop/reprice_item", shop.gateway.base))
        .bearer_auth(&key)
        .header("content-type", "application/json")
        .body(arguments.to_string());
    let answer = answer_to(rest).await;
    assert_eq!(answer.status(), 403);
    let problem: Value = serde_json::from_str(&answer.text().await.expect("a text")).expect("JSON");
    assert_eq!(
        (&problem["code"], &problem["plan"]["id"]),
        (&json!("approval_required"), &json!(id))
    );

    let tool = modern.tool("reprice_item").await;
    assert_eq!(tool["_meta"]["dev.weir/approval"], "required", "{tool}");
    let description = tool["description"].as_str().expect("a description");
    assert!(
        description.contains("A person approves each call"),
        "{description}"
    );
    // A trial makes no plan.
    let trial =
        json!({ "tool": "reprice_item", "agent": "ann", "arguments": { "id": 1, "price": 33 } });
    let (_, tried) = shop.admin.ask("POST", "/v1/calls", trial.to_string()).await;
    assert_eq!(
        tried["structured_content"]["code"], "approval_required",
        "{tried}"
    );
    let (_, plans) = shop.admin.ask("GET", "/v1/approvals", "").await;
    assert_eq!(plans.as_array().map(Vec::len), Some(1), "{plans}");
}

#[tokio::test]
async fn a_preview_does_nothing_and_asks_nobody() {
    for shop in [sheet(), sqlite()] {
        let ann = shop.agent("ann", "home");
        for (tool, arguments, approval) in [
            ("reprice_item", json!({ "id": 1, "price": 20 }), true),
            (
                "retitle_item",
                json!({ "id": 1, "subject": "torch" }),
                false,
            ),
            ("delete_item", json!({ "id": 1 }), true),
        ] {
            let params =
                json!({ "name": tool, "arguments": arguments, "_meta": { "dev.weir/plan": true } });
            let answer = ann.ask("tools/call", params).await.result().clone();
            assert_eq!(answer["isError"], false, "{answer}");
            let plan = &answer["_meta"]["dev.weir/plan"];
            assert_eq!(plan["approval"], approval, "{plan}");
            assert_eq!(plan["before"]["id"], 1, "{plan}");
            match tool {
                "reprice_item" => {
                    assert_eq!(plan["after"], json!({ "id": 1, "price": 20 }), "{plan}");
                    assert_eq!(plan["before"], json!({ "id": 1, "price": 12 }), "{plan}");
                }
                "retitle_item" => assert_eq!(plan["changed"], json!(["subject"]), "{plan}"),
                _ => assert_eq!(plan["after"], Value::Null, "{plan}"),
            }
        }
        let (_, plans) = shop.admin.ask("GET", "/v1/approvals", "").await;
        assert_eq!(plans, json!([]));
        assert_eq!(shop.price(1).await, 12);
        // A record of another tenant is not there for a preview either.
        let params = json!({ "name": "reprice_item", "arguments": { "id": 3, "price": 1 }, "_meta": { "dev.weir/plan": true } });
        let answer = ann.ask("tools/call", params).await.result().clone();
        assert_eq!(code(&answer), "not_found", "{answer}");
    }
}

#[tokio::test]
async fn the_plans_of_one_agent_are_bounded() {
    let shop = sheet();
    let (ann, bob) = (shop.agent("ann", "home"), shop.agent("bob", "home"));
    for price in 0..20 {
        plan(&reprice(&ann, 1, 100 + price).await);
    }
    let full = reprice(&ann, 1, 200).await;
    assert_eq!(code(&full), "rate_limited");
    assert!(
        text(&full).contains("20 calls of yours already wait"),
        "{full}"
    );
    plan(&reprice(&bob, 1, 200).await);

    // Nor do the agents of one tenant use up the room of all others.
    let copies = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 179) \
                  INSERT INTO plans SELECT id || i, caller || i, agent, tenant, subject, contract, tool, change, fingerprint, \
                  sealed, status, created_ms, expires_ms, decided_ms, decided_by, reason \
                  FROM (SELECT * FROM plans LIMIT 1), n";
    assert_eq!(shop.state().execute(copies, ()).expect("copies"), 179);
    let full = reprice(&bob, 1, 201).await;
    assert_eq!(code(&full), "rate_limited");
    assert!(
        text(&full).contains("200 calls of your tenant already wait"),
        "{full}"
    );
    plan(&reprice(&shop.agent("eve", "acme"), 3, 1).await);
}

#[tokio::test]
async fn what_has_ended_is_forgotten_though_nothing_is_called() {
    let shop = sqlite();
    let ann = shop.agent("ann", "home");
    let [soon, old] = [
        plan(&reprice(&ann, 1, 20).await),
        plan(&reprice(&ann, 1, 21).await),
    ];
    let keyed = json!({
        "name": "retitle_item", "arguments": { "id": 1, "subject": "torch" },
        "_meta": { "dev.weir/idempotency-key": "k1" },
    });
    ann.ask("tools/call", keyed).await;
    let state = shop.state();
    let set = |set: &str| assert_eq!(state.execute(set, ()).expect("set"), 1, "{set}");
    set(&format!(
        "UPDATE plans SET expires_ms = 1 WHERE id = '{old}'"
    ));
    set("UPDATE call_replies SET created_ms = 1, lease_ms = 1");
    let (_, plans) = shop.admin.ask("GET", "/v1/approvals", "").await;
    let listed: Vec<&Value> = plans
        .as_array()
        .expect("a list")
        .iter()
        .map(|plan| &plan["id"])
        .collect();
    assert_eq!(listed, [&json!(soon)]);
    let (status, _) = shop
        .admin
        .ask("GET", &format!("/v1/approvals/{old}"), "")
        .await;
    assert_eq!(status, 404);

    let Shop { house, gateway, .. } = shop;
    drop(gateway);
    let in_two_seconds = "unixepoch() * 1000 + 2000";
    set(&format!(
        "UPDATE plans SET expires_ms = {in_two_seconds} WHERE id = '{soon}'"
    ));
    let _gateway = house.serve();
    let kept = "SELECT (SELECT count(*) FROM plans), (SELECT count(sealed) FROM plans), (SELECT count(*) FROM call_replies)";
    let count = || {
        let counts = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let counted: (i64, i64, i64) = state.query_row(kept, (), counts).expect("counts");
        counted
    };
    until("what expired is gone", async || count() == (1, 0, 0)).await;
}

/// Starts a gateway with its state in a database, which is also its connection `db`.
pub(crate) fn node(server: &Postgres) -> (House, Gateway) {
    let url = server.url();
    let house = House::new()
        .config(&format!("[state]\nurl = \"{url}\"\n{ADMIN}"))
        .config(&format!(
            "[connections.db]\nkind = \"postgresql\"\nurl = \"{url}\"\nwrite = true\n[plugins.sql.grants]\ndb = \"write\""
        ));
    let gateway = house.serve();
    (house, gateway)
}

#[tokio::test]
async fn of_two_nodes_at_once_one_uses_an_approval() {
    let server = Postgres::start();
    server.sql("CREATE TABLE orders (id bigserial PRIMARY KEY, what text NOT NULL)");
    let (house, one) = node(&server);
    let (_other, two) = node(&server);
    let admin = Admin::of(&house);
    let source = json!({ "source": ORDERS }).to_string();
    admin.succeed("POST", "/v1/contracts", source).await;
    let key = house.key(&["--agent", "ann"]);
    let clients = [&one, &two].map(|gateway| Modern::with_key(gateway.url(), &key));
    for round in 0..10 {
        let order = || json!({ "what": format!("order {round}") });
        let id = plan(&clients[0].call("approved_order", order()).await);
        assert_eq!(plan(&clients[1].call("approved_order", order()).await), id);
        let path = format!("/v1/approvals/{id}");
        let (_, shown) = admin.ask("GET", &path, "").await;
        let body = json!({ "fingerprint": shown["fingerprint"] }).to_string();
        admin
            .succeed("POST", &format!("{path}/approve"), body)
            .await;
        let calls = clients
            .iter()
            .cycle()
            .take(6)
            .map(|client| client.call("approved_order", order()));
        let results = futures::future::join_all(calls).await;
        let done = results
            .iter()
            .filter(|result| result["isError"] == false)
            .count();
        assert_eq!(done, 1, "{results:?}");
        for refused in results.iter().filter(|result| result["isError"] == true) {
            assert!(
                ["approval_required", "conflict"].contains(&code(refused)),
                "{refused}"
            );
        }
    }
    assert_eq!(server.sql("SELECT count(*) FROM orders").trim(), "10");
}
