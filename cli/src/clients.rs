//! Ready configurations for the clients people have.

use serde_json::{Value, json};

/// Writes the entries for a server behind a URL.
pub(super) fn http(name: &str, url: &str) -> String {
    let cursor = json!({ "mcpServers": { name: { "url": url } } });
    let code = json!({ "servers": { name: { "type": "http", "url": url } } });
    format!(
        "\nClaude Code:  claude mcp add --transport http {name} {url}\n\nCursor (.cursor/mcp.json):\n{}\n\n\
         VS Code (.vscode/mcp.json):\n{}\n\n",
        pretty(&cursor),
        pretty(&code)
    )
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("plain JSON")
}
