//! People who sign in by an issuer, and what they may decide.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{Admin, House, foreign, upstream::free_port};

use super::{ITEMS, SHEET, Shop, serve};
use crate::oauth::{Issuer, sign_in_to_console};

/// Calls the tools of the shop by a client that ann signed in, and returns what the last call answered.
fn call_as_ann(shop: &Shop) -> Value {
    let calls = json!([
        { "tool": "find_item", "arguments": { "id": 2 } },
        { "tool": "delete_item", "arguments": { "id": 1 } },
    ]);
    let plan =
        json!({ "mode": "modern", "url": shop.gateway.contract_url("shop"), "calls": calls });
    let mut script = foreign::node_script("oauth2.mjs");
    script.arg(plan.to_string());
    let output = foreign::run(script, Duration::from_secs(180));
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    report["calls"][1]["structured"].clone()
}

/// A person with two roles reads as the one and decides as the other, but never about their own write.
#[tokio::test]
async fn roles_of_a_person_join_and_their_own_write_is_for_another() {
    let port = free_port();
    let issuer = Issuer::of_console(&format!("http://127.0.0.1:{port}/"));
    let url = &issuer.url;
    let house = House::new()
        .sheets()
        .file("data/items.csv", ITEMS)
        .file("client.secret", "console-secret-of-the-tests\n")
        .config(&format!(
            "[[identity.issuers]]\nissuer = \"{url}\"\n\
             grants = [{{ claim = \"groups\", has = \"airports\", contracts = [\"*\"] }}]\n\
             [admin]\nlisten = \"127.0.0.1:{port}\"\n[admin.oidc]\nissuer = \"{url}\"\nclient_id = \"console\"\n\
             client_secret = \"file:client.secret\"\nscopes = [\"openid\"]\nrole_claim = \"groups\"\n\
             roles = {{ airports = \"viewer\", writers = \"approver\" }}\n"
        ));
    let shop = serve(house, "sheet", SHEET, |_| ());
    let waiting = call_as_ann(&shop);
    let id = waiting["plan"]["id"].as_str();
    let id = id.unwrap_or_else(|| panic!("{waiting}"));

    let sign_in = async || Admin {
        key: sign_in_to_console(&shop.admin).await.expect("a session"),
        ..shop.admin.clone()
    };
    let ann = sign_in().await;
    let (status, session) = ann.ask("GET", "/v1/session", "").await;
    assert_eq!(
        (status, &session["role"], &session["approves"]),
        (200, &json!("viewer"), &json!(true)),
        "{session}"
    );
    assert_eq!(ann.ask("GET", "/v1/contracts", "").await.0, 200);
    let (status, plans) = ann.ask("GET", "/v1/approvals", "").await;
    assert_eq!((status, &plans[0]["id"]), (200, &json!(id)), "{plans}");

    let refusal = async |person: &Admin| {
        let (status, refused) = shop.approve(person, id).await;
        assert_eq!(status, 403, "{refused}");
        refused["detail"].as_str().expect("a text").to_owned()
    };
    let own = refusal(&ann).await;
    assert!(own.contains("asked for this write"), "{own}");
    // Under another name it is not known whether it is the same person.
    let file = shop.house.path().join("weir.toml");
    let config = std::fs::read_to_string(&file).expect("a configuration");
    let renamed = config.replace("role_claim", "name_claim = \"iss\"\nrole_claim");
    std::fs::write(&file, renamed).expect("it can be written");
    let reloaded = shop.house.weir_as_it_is(&["reload"]).output();
    assert!(reloaded.expect("weir starts").status.success());
    let unknown = refusal(&sign_in().await).await;
    assert!(unknown.contains("another claim than `sub`"), "{unknown}");
    let eve = shop.person("eve", "approver");
    assert_eq!(shop.approve(&eve, id).await.0, 200);
}
