//! Operators are revoked, except for the last.

use serde_json::json;
use weir_tests::{Admin, Postgres};

use super::serve_sample;
use crate::sample;

/// Has two operators revoke each other at the same moment, several times. `admin` asks one gateway, and the other operator the
/// gateway at `other_url`: one of the two is refused, and can make another operator.
async fn revoke_each_other(mut admin: Admin, other_url: &str) {
    let (_, listed) = admin.ask("GET", "/v1/admins", "").await;
    let mut id = listed[0]["id"].as_str().expect("an id").to_owned();
    for round in 0..10 {
        let body = json!({"name": "ada", "role": "operator"}).to_string();
        let (status, made) = admin.ask("POST", "/v1/admins", body).await;
        assert_eq!(status, 201, "{made}");
        let other_id = made["id"].as_str().expect("an id").to_owned();
        let other = Admin {
            url: other_url.to_owned(),
            key: made["key"].as_str().expect("a key").to_owned(),
        };
        let (path, other_path) = (format!("/v1/admins/{id}"), format!("/v1/admins/{other_id}"));
        let ((mine, refusal), (theirs, other_refusal)) = tokio::join!(
            admin.ask("DELETE", &other_path, ""),
            other.ask("DELETE", &path, ""),
        );
        // The second request is refused because it would revoke the last operator, or because its own operator is
        // already revoked. Where a state is shared, 200 means that the change holds everywhere.
        assert!(
            matches!(
                (mine, theirs),
                (200 | 204, 401 | 409) | (401 | 409, 200 | 204)
            ),
            "round {round}: {mine} {refusal}, {theirs} {other_refusal}"
        );
        if theirs < 300 {
            id = other_id;
            admin.key = other.key;
        }
        assert_eq!(admin.ask("GET", "/v1/admins", "").await.0, 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_operators_that_revoke_each_other_at_once_one_stays() {
    let (_house, _gateway, admin) = serve_sample();
    let url = admin.url.clone();
    revoke_each_other(admin, &url).await;
}

/// The same at two gateways that share their state.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_operators_at_two_nodes_that_revoke_each_other_at_once_one_stays() {
    let server = Postgres::start();
    let shared = format!(
        "[state]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"",
        server.url()
    );
    let [first, second] = [(); 2].map(|()| sample::house().config(&shared));
    let _gateways = (first.serve(), second.serve());
    let other_url = std::fs::read_to_string(second.path().join("state/admin.url"));
    revoke_each_other(Admin::of(&first), &other_url.expect("it serves")).await;
}
