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

/// Writes the entries for a server that the client starts itself.
pub(super) fn stdio(name: &str, command: &str, arguments: &[String]) -> String {
    let entry = json!({ "command": command, "args": arguments });
    let claude = json!({ "mcpServers": { name: entry } });
    let code = json!({ "servers": { name: { "type": "stdio", "command": command, "args": arguments } } });
    format!(
        "Claude Desktop (claude_desktop_config.json) and Cursor (.cursor/mcp.json):\n{}\n\nVS Code (.vscode/mcp.json):\n{}\n",
        pretty(&claude),
        pretty(&code)
    )
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("plain JSON")
}
