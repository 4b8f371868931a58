//! The rows of the large collections, and the contract over them.

use std::{
    fs,
    io::{BufWriter, Write as _},
    path::Path,
};

use serde_json::{Value, json};
use weir_bench::ticket;

pub(super) const STATUS: [&str; 3] = ["open", "closed", "new"];

/// Returns the fields of a row, which is numbered from 1.
pub(super) fn row(number: usize, rows: usize) -> (String, &'static str, String) {
    (
        format!("customer number {number} of group {}", number % 50),
        STATUS[number % 3],
        format!("{}.5", number * 7 % rows),
    )
}

pub(super) fn csv(path: &Path, rows: usize) -> anyhow::Result<()> {
    let mut file = BufWriter::new(fs::File::create(path)?);
    writeln!(file, "id,name,status,amount")?;
    for number in 1..=rows {
        let (name, status, amount) = row(number, rows);
        writeln!(file, "{number},{name},{status},{amount}")?;
    }
    Ok(file.flush()?)
}

/// Returns the contract with the tools of `QUESTIONS`, and one that creates.
pub(super) fn contract(adapter: &str, settings: &Value) -> Value {
    // A workbook is read-only.
    let writes = settings["path"] == "rows.csv";
    let tool = |name: &str, verb: &str, fields: Value| {
        json!({ "tool": name, "description": format!("Asks for {name}."), "verb": verb, "collection": "rows",
                "limits": { "rate": ticket::RATE, "timeout_ms": 20_000 }, "fields": fields })
    };
    let text = |name: &str| json!({ "name": name, "type": "text", "required": true });
    let part = || json!([{ "name": "name", "type": "text", "match": "contains" }]);
    let mut tools = vec![
        tool(
            "get_row",
            "lookup",
            json!([{ "name": "id", "type": "number", "required": true }]),
        ),
        tool("list_rows", "list", json!([])),
        tool(
            "list_by_status",
            "list",
            json!([{ "name": "status", "type": "dropdown", "choices": STATUS }]),
        ),
        tool(
            "list_by_amount",
            "list",
            json!([{ "name": "min_amount", "type": "number", "column": "amount", "match": "at-least" }]),
        ),
        tool("list_by_name", "list", part()),
        tool("list_by_no_name", "list", part()),
    ];
    if settings["list"].is_null() {
        let status = json!([{ "name": "status", "type": "dropdown", "choices": STATUS }]);
        let mut summary = tool("sum_by_status", "summarize", json!([]));
        summary["group_by"] = json!(["status"]);
        summary["measures"] = json!(["count", "sum(amount)"]);
        tools.extend([tool("count_by_status", "count", status), summary]);
    }
    if writes {
        let id = json!({ "name": "id", "type": "number", "required": true });
        let amount = json!({ "name": "amount", "type": "number", "required": true });
        tools.push(tool(
            "add_row",
            "create",
            json!([id, text("name"), text("status"), amount]),
        ));
    }
    json!({
        "contract": "rows",
        "collections": { "rows": { "adapter": adapter, "settings": settings, "key": ["id"], "write": writes } },
        "tools": tools,
    })
}

/// Returns the settings for the service `bench-records`.
pub(super) fn rest() -> Value {
    json!({
        "connection": "data",
        "fields": { "id": "integer", "name": "string", "status": "string", "amount": "number" },
        "key": ["id"],
        "list": { "path": "/records", "sorted_by": ["id"], "filters": { "status": { "equals": "status" } },
                  "pagination": { "style": "offset", "offset": "offset", "limit": "limit", "per_page": 100 } },
        "get": { "path": "/records/{id}" },
    })
}
