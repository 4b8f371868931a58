//! Puts one server into a client's configuration, or removes it, without touching anything else: comments and order
//! stay.

use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::Value;
use toml_edit::{DocumentMut, Item, Table};

use super::Host;

/// Returns the configuration with the server in it.
pub(crate) fn put(host: Host, text: &str, name: &str, entry: &Value) -> Result<String, String> {
    if host == Host::Codex {
        let mut document = toml(text)?;
        let servers = document.entry(host.member()).or_insert_with(|| {
            let mut servers = Table::new();
            servers.set_implicit(true);
            Item::Table(servers)
        });
        let servers = servers.as_table_like_mut().ok_or_else(|| format!("`{}` is no table", host.member()))?;
        let mut table = Table::new();
        for (member, value) in entry.as_object().into_iter().flatten() {
            table.insert(member, toml_edit::value(toml_value(value)));
        }
        servers.insert(name, Item::Table(table));
        return Ok(document.to_string());
    }
    let root = json(text)?;
    let object = root.object_value_or_create().ok_or("it is no object")?;
    let member = host.member();
    let servers = object.object_value_or_create(member).ok_or_else(|| format!("`{member}` is no object"))?;
    match servers.get(name) {
        Some(before) => before.set_value(json_value(entry)),
        None => drop(servers.append(name, json_value(entry))),
    }
    let mut text = root.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Returns the configuration without the server; `None` if it is not in it.
pub(crate) fn remove(host: Host, text: &str, name: &str) -> Result<Option<String>, String> {
    if host == Host::Codex {
        let mut document = toml(text)?;
        let servers = document.get_mut(host.member()).and_then(Item::as_table_like_mut);
        let removed = servers.and_then(|servers| servers.remove(name));
        return Ok(removed.map(|_| document.to_string()));
    }
    let root = json(text)?;
    let servers = root.object_value().and_then(|object| object.object_value(host.member()));
    let Some(server) = servers.and_then(|servers| servers.get(name)) else { return Ok(None) };
    server.remove();
    Ok(Some(root.to_string()))
}

fn json(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &Default::default()).map_err(|error| error.to_string())
}

fn toml(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>().map_err(|error| error.message().to_owned())
}

fn json_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(json_value).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), json_value(value))).collect())
        }
    }
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Array(values) => values.iter().map(toml_value).collect::<toml_edit::Array>().into(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.as_str(), toml_value(value)));
            members.collect::<toml_edit::InlineTable>().into()
        }
        Value::String(value) => value.as_str().into(),
        Value::Bool(value) => (*value).into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_but_the_server_changes() {
        let entry = json!({ "command": "/bin/weir", "args": ["stdio"] });
        let zed = "// Zed\n{\n  \"theme\": \"One\", // kept\n  \"context_servers\": {\n    \"other\": { \"command\": \"o\" }\n  }\n}\n";
        let with = put(Host::Zed, zed, "weir", &entry).expect("put");
        for kept in ["// Zed", "\"One\", // kept", "\"other\": { \"command\": \"o\" }", "\"weir\""] {
            assert!(with.contains(kept), "{kept} in\n{with}");
        }
        assert_eq!(put(Host::Zed, &with, "weir", &entry).expect("put again"), with, "putting it twice changes nothing");
        let without = remove(Host::Zed, &with, "weir").expect("removed").expect("it was there");
        assert!(without.contains("// kept") && without.contains("other") && !without.contains("weir"), "{without}");
        assert_eq!(remove(Host::Zed, zed, "weir"), Ok(None));

        let codex = "# Codex\nmodel = \"m\" # kept\n\n[mcp_servers.other]\ncommand = \"o\"\n";
        let with = put(Host::Codex, codex, "weir", &entry).expect("put");
        assert!(with.starts_with(codex), "{with}");
        assert!(with.contains("[mcp_servers.weir]\ncommand = \"/bin/weir\"\nargs = [\"stdio\"]\n"), "{with}");
        assert_eq!(remove(Host::Codex, &with, "weir").expect("removed").expect("it was there").trim(), codex.trim());

        let made = put(Host::Cursor, "", "weir", &entry).expect("an empty file");
        let read: Value = serde_json::from_str(&made).expect("JSON");
        assert_eq!(read, json!({ "mcpServers": { "weir": entry } }));
    }

    #[test]
    fn what_is_no_configuration_is_left_alone() {
        for text in ["[]", "{\"mcpServers\": []}", "{\"mcpServers\": "] {
            assert!(put(Host::Cursor, text, "weir", &json!({})).is_err(), "{text}");
        }
        assert!(put(Host::Codex, "mcp_servers = 1", "weir", &json!({})).is_err());
    }
}
