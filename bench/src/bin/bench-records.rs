//! Serves many records as a REST service does: a list in pages by offset, which a status may narrow, and single records.
//!
//! `bench-records PORT RECORDS`

use std::collections::HashMap;

use axum::{
    Json, Router,
    extract::{Path, Query},
    http::StatusCode,
    routing::get,
};
use serde_json::{Value, json};

const STATUS: [&str; 3] = ["open", "closed", "new"];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, records] = &arguments[..] else {
        anyhow::bail!("bench-records PORT RECORDS")
    };
    let records: usize = records.parse()?;
    let record = move |number: usize| {
        json!({ "id": number, "name": format!("customer number {number} of group {}", number % 50),
                "status": STATUS[number % 3], "amount": number * 7 % records })
    };
    let list = move |Query(query): Query<HashMap<String, String>>| async move {
        let number = |name: &str| {
            query
                .get(name)
                .and_then(|value| value.parse::<usize>().ok())
        };
        let status = query.get("status").map(String::as_str);
        let meant =
            (1..=records).filter(|number| status.is_none_or(|status| STATUS[number % 3] == status));
        let page = meant
            .skip(number("offset").unwrap_or(0))
            .take(number("limit").unwrap_or(100).min(1_000));
        Json(Value::Array(page.map(record).collect()))
    };
    let one = move |Path(id): Path<usize>| async move {
        let found = (1..=records).contains(&id).then(|| Json(record(id)));
        found.ok_or(StatusCode::NOT_FOUND)
    };
    let router = Router::new()
        .route("/records", get(list))
        .route("/records/{id}", get(one));
    Ok(weir_bench::serve(port.parse()?, router).await?)
}
