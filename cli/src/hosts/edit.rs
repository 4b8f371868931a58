//! Puts one server into a client's configuration, or removes it, without touching anything else: comments and order
//! are kept.

use std::collections::BTreeSet;

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstNode, CstObject, CstRootNode, ObjectPropName},
};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::McpHost;

/// The members for how a server is reached, by the names that all clients use.
const ADDRESS: [&str; 7] = [
    "type",
    "transport",
    "command",
    "args",
    "url",
    "httpUrl",
    "serverUrl",
];
const URLS: [&str; 3] = ["url", "httpUrl", "serverUrl"];
/// Keys that only a command has. Codex refuses them together with a URL.
const OF_COMMANDS: [&str; 4] = ["env", "env_vars", "envFile", "cwd"];
/// Keys that only a URL has. Codex refuses them together with a command.
const OF_URLS: [&str; 4] = [
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
];

/// JSON as clients read it. The parser would also accept what no client does, such as members without a comma between them.
const JSON: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// What a file has besides its text: editors on Windows begin it with a mark, and end each line with two characters.
pub(crate) struct TextForm {
    has_mark: bool,
    has_returns: bool,
}

impl TextForm {
    /// Returns the form of a text, and the text without its mark.
    pub(crate) fn split(text: &str) -> (Self, &str) {
        let plain = text.strip_prefix('\u{feff}');
        let form = Self {
            has_mark: plain.is_some(),
            has_returns: text.contains("\r\n") && !text.replace("\r\n", "").contains('\n'),
        };
        (form, plain.unwrap_or(text))
    }

    /// Gives an edited text the form back.
    pub(crate) fn restore(&self, text: String) -> String {
        let mut text = match self.has_returns {
            true => text.replace("\r\n", "\n").replace('\n', "\r\n"),
            false => text,
        };
        if self.has_mark {
            text.insert(0, '\u{feff}');
        }
        text
    }
}

/// Returns the server as the configuration has it; `None` if it is not in it.
pub(crate) fn find(host: McpHost, text: &str, name: &str) -> Result<Option<Value>, String> {
    let (_, text) = TextForm::split(text);
    let config: Value = match host {
        McpHost::Codex => toml::from_str(text).map_err(|error| error.message().to_owned())?,
        _ => jsonc_parser::parse_to_serde_value(text, &JSON).map_err(|error| error.to_string())?,
    };
    Ok(config[host.member()].get(name).cloned())
}

/// Returns the configuration with the server in it. Members of its entry that others wrote, such as a key, are kept,
/// except a different address and its members.
pub(crate) fn put(host: McpHost, text: &str, name: &str, entry: &Value) -> Result<String, String> {
    let nothing = Map::new();
    let members = entry.as_object().unwrap_or(&nothing);
    let before = find(host, text, name)?.unwrap_or_default();
    let (form, text) = TextForm::split(text);
    if host == McpHost::Codex {
        let mut document = toml(text)?;
        let servers = document.entry(host.member()).or_insert_with(|| {
            let mut servers = Table::new();
            servers.set_implicit(true);
            Item::Table(servers)
        });
        let servers = servers
            .as_table_like_mut()
            .ok_or_else(|| format!("`{}` is not a table", host.member()))?;
        if !servers.contains_key(name) {
            servers.insert(name, Item::Table(Table::new()));
        }
        let there = servers.get_mut(name).and_then(Item::as_table_like_mut);
        let there = there.ok_or_else(|| format!("`{name}` is not a table"))?;
        for member in contradicting(&before, members) {
            there.remove(member);
        }
        if members.contains_key("bearer_token_env_var") {
            for member in ["http_headers", "env_http_headers"] {
                remove_key(there, member);
            }
        }
        merge_table(there, members);
        return Ok(form.restore(document.to_string()));
    }
    let root = json(text)?;
    let object = root.object_value_or_create().ok_or("it is not an object")?;
    let member = host.member();
    let servers = object
        .object_value_or_create(member)
        .ok_or_else(|| format!("`{member}` is not an object"))?;
    match servers.get(name) {
        Some(server) => {
            let there = server.object_value_or_set();
            for member in contradicting(&before, members)
                .into_iter()
                .filter_map(|member| there.get(member))
            {
                member.remove();
            }
            merge_object(&there, &before, members);
        }
        None => drop(servers.append(name, json_value(entry))),
    }
    let mut text = root.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(form.restore(text))
}

/// Returns the configuration without the server; `None` if it is not in it.
pub(crate) fn remove(host: McpHost, text: &str, name: &str) -> Result<Option<String>, String> {
    let (form, text) = TextForm::split(text);
    if host == McpHost::Codex {
        let mut document = toml(text)?;
        let servers = document
            .get_mut(host.member())
            .and_then(Item::as_table_like_mut);
        let removed = servers.and_then(|servers| servers.remove(name));
        return Ok(removed.map(|_| form.restore(document.to_string())));
    }
    let root = json(text)?;
    let servers = root
        .object_value()
        .and_then(|object| object.object_value(host.member()));
    let Some(server) = servers.and_then(|servers| servers.get(name)) else {
        return Ok(None);
    };
    server.remove();
    Ok(Some(form.restore(root.to_string())))
}

/// Returns the members that would contradict the entry if they stayed in it. A key is never sent to another host than its
/// own.
fn contradicting(before: &Value, members: &Map<String, Value>) -> Vec<&'static str> {
    let other = if members.contains_key("command") {
        OF_URLS
    } else {
        OF_COMMANDS
    };
    let mut found: Vec<_> = ADDRESS
        .into_iter()
        .chain(other)
        .filter(|member| !members.contains_key(*member))
        .collect();
    let new = origin(|name| members.get(name));
    if new.is_some() && new != origin(|name| before.get(name)) {
        found.extend(OF_URLS);
    }
    found
}

/// Removes a key from the headers that a client of the server sends, since a variable holds it from now on.
fn remove_key(server: &mut dyn TableLike, member: &str) {
    let Some(headers) = server.get_mut(member).and_then(Item::as_table_like_mut) else {
        return;
    };
    let is_key = |name: &&str| name.eq_ignore_ascii_case("authorization");
    let Some(name) = headers
        .iter()
        .map(|(name, _)| name)
        .find(is_key)
        .map(str::to_owned)
    else {
        return;
    };
    headers.remove(&name);
    if headers.is_empty() {
        server.remove(member);
    }
}

/// Returns the host of a server, with its scheme and port.
fn origin<'v>(member: impl Fn(&str) -> Option<&'v Value>) -> Option<reqwest::Url> {
    let url = URLS
        .into_iter()
        .find_map(|name| reqwest::Url::parse(member(name)?.as_str()?).ok())?;
    url.join("/").ok()
}

/// Merges an object. `before` is its present value. A value that is already there is kept as it is written.
fn merge_object(there: &CstObject, before: &Value, members: &Map<String, Value>) {
    for (name, value) in members {
        let before = &before[name];
        match (there.get(name), value) {
            (None, _) => drop(there.append(name, json_value(value))),
            (Some(_), _) if before == value => {}
            (Some(member), Value::Object(members)) => {
                merge_object(&member.object_value_or_set(), before, members)
            }
            (Some(member), _) => member.set_value(json_value(value)),
        }
    }
}

fn merge_table(there: &mut dyn TableLike, members: &Map<String, Value>) {
    for (name, value) in members {
        match (there.get_mut(name), value) {
            (Some(Item::Value(before)), _) if !(before.is_inline_table() && value.is_object()) => {
                // A comment next to the value is kept.
                let decor = before.decor().clone();
                *before = toml_value(value);
                *before.decor_mut() = decor;
            }
            (Some(before), Value::Object(members)) if before.is_table_like() => {
                if let Some(before) = before.as_table_like_mut() {
                    merge_table(before, members);
                }
            }
            _ => drop(there.insert(name, toml_edit::value(toml_value(value)))),
        }
    }
}

/// Refuses a text with a duplicate member: clients read the last one, and the first one would be edited.
fn json(text: &str) -> Result<CstRootNode, String> {
    let root = CstRootNode::parse(text, &JSON).map_err(|error| error.to_string())?;
    if let Some(twice) = root.value().and_then(|value| member_twice(&value)) {
        return Err(format!("`{twice}` occurs twice in one object: leave one"));
    }
    Ok(root)
}

/// Returns the name of a member that an object has twice.
fn member_twice(value: &CstNode) -> Option<String> {
    if let Some(array) = value.as_array() {
        return array.elements().iter().find_map(member_twice);
    }
    let mut names = BTreeSet::new();
    for member in value.as_object()?.properties() {
        let name = match member.name()? {
            ObjectPropName::String(name) => name.decoded_value().unwrap_or_default(),
            ObjectPropName::Word(name) => name.to_string(),
        };
        if let Some(twice) = member.value().as_ref().and_then(member_twice) {
            return Some(twice);
        }
        if let Some(twice) = names.replace(name) {
            return Some(twice);
        }
    }
    None
}

fn toml(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>()
        .map_err(|error| error.message().to_owned())
}

fn json_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(json_value).collect()),
        Value::Object(members) => CstInputValue::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), json_value(value)))
                .collect(),
        ),
    }
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Array(values) => values
            .iter()
            .map(toml_value)
            .collect::<toml_edit::Array>()
            .into(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.as_str(), toml_value(value)));
            members.collect::<toml_edit::InlineTable>().into()
        }
        Value::String(value) => value.as_str().into(),
        Value::Bool(value) => (*value).into(),
        Value::Number(value) => match value.as_i64() {
            Some(whole) => whole.into(),
            None => value.as_f64().unwrap_or_default().into(),
        },
        // TOML has no null.
        Value::Null => "".into(),
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
        let with = put(McpHost::Zed, zed, "weir", &entry).expect("put");
        for kept in [
            "// Zed",
            "\"One\", // kept",
            "\"other\": { \"command\": \"o\" }",
            "\"weir\"",
        ] {
            assert!(with.contains(kept), "{kept} in\n{with}");
        }
        assert_eq!(
            put(McpHost::Zed, &with, "weir", &entry).expect("put again"),
            with,
            "putting it twice changes nothing"
        );
        let without = remove(McpHost::Zed, &with, "weir")
            .expect("removed")
            .expect("it was there");
        assert!(
            without.contains("// kept") && without.contains("other") && !without.contains("weir"),
            "{without}"
        );
        assert_eq!(remove(McpHost::Zed, zed, "weir"), Ok(None));

        let codex = "# Codex\nmodel = \"m\" # kept\n\n[mcp_servers.other]\ncommand = \"o\"\n";
        let with = put(McpHost::Codex, codex, "weir", &entry).expect("put");
        assert!(with.starts_with(codex), "{with}");
        assert!(
            with.contains("[mcp_servers.weir]\ncommand = \"/bin/weir\"\nargs = [\"stdio\"]\n"),
            "{with}"
        );
        assert_eq!(
            remove(McpHost::Codex, &with, "weir")
                .expect("removed")
                .expect("it was there")
                .trim(),
            codex.trim()
        );

        let made = put(McpHost::Cursor, "", "weir", &entry).expect("an empty file");
        let read: Value = serde_json::from_str(&made).expect("JSON");
        assert_eq!(read, json!({ "mcpServers": { "weir": entry } }));
    }

    #[test]
    fn what_somebody_else_wrote_into_the_entry_stays_but_for_another_address() {
        let command = json!({ "command": "/bin/weir", "args": ["stdio"], "env": { "WEIR_KEY": "${WEIR_KEY}" } });
        let url = json!({ "url": "http://127.0.0.1/mcp" });
        let zed = r#"{"context_servers": {"weir": {
  // mine
  "command": "/bin/weir",
  "args": [ "serve" ],
  "enabled": false,
  "env": { "LANG": "nb" } // theirs
}}}
"#;
        let with = put(McpHost::Zed, zed, "weir", &command).expect("put");
        assert!(
            with.contains("// mine") && with.contains("// theirs"),
            "{with}"
        );
        let mut expected = command.clone();
        expected["enabled"] = false.into();
        expected["env"]["LANG"] = "nb".into();
        assert_eq!(find(McpHost::Zed, &with, "weir"), Ok(Some(expected)));
        let with = put(McpHost::Zed, &with, "weir", &url).expect("put");
        assert_eq!(
            find(McpHost::Zed, &with, "weir"),
            Ok(Some(json!({ "enabled": false, "url": url["url"] })))
        );

        let codex = r#"[mcp_servers.weir]
command = "/bin/weir" # mine
startup_timeout_sec = 20.0
enabled_tools = ["a"]

[mcp_servers.weir.env]
LANG = "nb"
"#;
        let with = put(McpHost::Codex, codex, "weir", &command).expect("put");
        assert!(
            with.starts_with("[mcp_servers.weir]\ncommand = \"/bin/weir\" # mine\n"),
            "{with}"
        );
        let mut expected = command.clone();
        expected["startup_timeout_sec"] = json!(20.0);
        expected["enabled_tools"] = json!(["a"]);
        expected["env"]["LANG"] = "nb".into();
        assert_eq!(
            find(McpHost::Codex, &with, "weir"),
            Ok(Some(expected.clone()))
        );
        // The entry that was found can be put into another client.
        let other = put(McpHost::Codex, "", "weir", &expected).expect("put");
        assert_eq!(find(McpHost::Codex, &other, "weir"), Ok(Some(expected)));
        let with = put(McpHost::Codex, &with, "weir", &url).expect("put");
        let expected =
            json!({ "startup_timeout_sec": 20.0, "enabled_tools": ["a"], "url": url["url"] });
        assert_eq!(find(McpHost::Codex, &with, "weir"), Ok(Some(expected)));
    }

    #[test]
    fn a_key_that_a_variable_holds_does_not_stay_beside_it() {
        let codex = "[mcp_servers.weir]\nurl = \"http://127.0.0.1/mcp\"\n\n[mcp_servers.weir.http_headers]\nauthorization = \"Bearer mine\"\n";
        let entry = json!({ "url": "http://127.0.0.1/mcp", "bearer_token_env_var": "WEIR_KEY" });
        let with = put(McpHost::Codex, codex, "weir", &entry).expect("put");
        assert_eq!(find(McpHost::Codex, &with, "weir"), Ok(Some(entry.clone())));
        let with = put(
            McpHost::Codex,
            &format!("{codex}X-Team = \"a\"\n"),
            "weir",
            &entry,
        )
        .expect("put");
        let mut expected = entry;
        expected["http_headers"] = json!({ "X-Team": "a" });
        assert_eq!(find(McpHost::Codex, &with, "weir"), Ok(Some(expected)));
    }

    #[test]
    fn a_member_that_stands_twice_is_refused() {
        let server = json!({ "command": "s" });
        for (text, twice) in [
            (r#"{"mcpServers": {}, "mcpServers": {}}"#, "mcpServers"),
            (r#"{"mcpServers": {}, "mcp\u0053ervers": {}}"#, "mcpServers"),
            (r#"{"mcpServers": {"weir": {}, "weir": {}}}"#, "weir"),
            (
                r#"{"mcpServers": {"weir": {"command": "a", "command": "b"}}}"#,
                "command",
            ),
            (r#"{"theme": [{"a": 1, "a": 2}]}"#, "a"),
        ] {
            let expected = format!("`{twice}` occurs twice in one object: leave one");
            let put = put(McpHost::Cursor, text, "weir", &server);
            assert_eq!(put.as_ref(), Err(&expected), "{text}");
            let removed = remove(McpHost::Cursor, text, "weir");
            assert_eq!(removed.as_ref(), Err(&expected), "{text}");
        }
    }

    #[test]
    fn a_mark_and_ends_of_lines_of_windows_stay() {
        let entry = json!({ "command": "/bin/weir" });
        let codex = "model = \"m\" # kept\r\n[mcp_servers.other]\r\ncommand = \"o\"\r\n";
        let cursor =
            "{\r\n  \"mcpServers\": {\r\n    \"other\": { \"command\": \"o\" }\r\n  }\r\n}\r\n";
        for (host, text) in [(McpHost::Codex, codex), (McpHost::Cursor, cursor)] {
            for mark in ["", "\u{feff}"] {
                let text = format!("{mark}{text}");
                let with = put(host, &text, "weir", &entry).expect("put");
                assert!(with.starts_with(mark), "{with:?}");
                assert_eq!(
                    with.matches('\n').count(),
                    with.matches("\r\n").count(),
                    "{with:?}"
                );
                assert_eq!(
                    find(host, &with, "weir"),
                    Ok(Some(entry.clone())),
                    "{with:?}"
                );
                let without = remove(host, &with, "weir").expect("removed");
                let without = without.expect("it was there");
                assert_eq!(without.trim_end(), text.trim_end());
            }
        }
    }

    #[test]
    fn what_is_no_configuration_is_left_alone() {
        for text in [
            "[]",
            "{\"mcpServers\": []}",
            "{\"mcpServers\": ",
            "{\"mcpServers\": {\"a\": {} \"b\": {}}}",
            "{mcpServers: {}}",
            "{'mcpServers': {}}",
            "{\"mcpServers\": {}, \"n\": 0x10}",
            "{\"mcpServers\": {}, \"n\": NaN}",
        ] {
            assert!(
                put(McpHost::Cursor, text, "weir", &json!({})).is_err(),
                "{text}"
            );
        }
        assert!(put(McpHost::Codex, "mcp_servers = 1", "weir", &json!({})).is_err());
    }
}
