//! Requests that are wrong: what is at fault is named.

use serde_json::{Value, json};
use weir_tests::Admin;

use crate::sample;

#[tokio::test]
async fn a_number_in_a_path_is_refused_by_its_name() {
    let house = sample::house();
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    for (method, path, body, name) in [
        (
            "PUT",
            "/v1/versions/api/x",
            json!({"sunset": null}),
            "major",
        ),
        (
            "PUT",
            "/v1/versions/api/4294967296",
            json!({"sunset": null}),
            "major",
        ),
        ("GET", "/v1/audit/chains/a/-1", Value::Null, "segment"),
        (
            "DELETE",
            "/v1/upstreams/a/accounts/one",
            Value::Null,
            "number",
        ),
    ] {
        let (status, refused) = admin.ask(method, path, body.to_string()).await;
        let detail = refused["detail"].as_str().unwrap_or_default();
        let begin = format!("`{name}` in the path must be a whole number");
        assert!(
            status == 400 && detail.starts_with(&begin),
            "{method} {path}: {status} {refused}"
        );
    }
}
