//! Operators that are revoked: one stays.

use serde_json::json;
use weir_tests::Admin;

use crate::sample;

/// Two operators that revoke each other at the same moment: one of them is refused, and can make another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_operators_that_revoke_each_other_at_once_one_stays() {
    let house = sample::house();
    let _gateway = house.serve();
    let mut admin = Admin::of(&house);
    let (_, listed) = admin.ask("GET", "/v1/admins", "").await;
    let mut id = listed[0]["id"].as_str().expect("an id").to_owned();
    for round in 0..10 {
        let body = json!({"name": "ada", "role": "operator"}).to_string();
        let (status, made) = admin.ask("POST", "/v1/admins", body).await;
        assert_eq!(status, 201, "{made}");
        let other_id = made["id"].as_str().expect("an id").to_owned();
        let other = Admin {
            key: made["key"].as_str().expect("a key").to_owned(),
            ..admin.clone()
        };
        let (path, other_path) = (format!("/v1/admins/{id}"), format!("/v1/admins/{other_id}"));
        let ((mine, refusal), (theirs, other_refusal)) = tokio::join!(
            admin.ask("DELETE", &other_path, ""),
            other.ask("DELETE", &path, ""),
        );
        // The second one is refused as the last, or no longer known by the time that it asks.
        assert!(
            matches!((mine, theirs), (204, 401 | 409) | (401 | 409, 204)),
            "round {round}: {mine} {refusal}, {theirs} {other_refusal}"
        );
        if theirs == 204 {
            (admin, id) = (other, other_id);
        }
        assert_eq!(admin.ask("GET", "/v1/admins", "").await.0, 200);
    }
}
