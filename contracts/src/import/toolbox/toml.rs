//! Writes the part of weir.toml that a translated configuration needs: connections, grants and views. No secret is copied.

use std::fmt::Write as _;

use serde_json::Value;
use weir_statements::SqlSyntax;

use super::{ToolboxSource, ToolboxTool, note, pointer};
use crate::import::ImportRemark;

pub(super) fn settings(
    sources: &[ToolboxSource<'_>],
    tools: &[ToolboxTool],
    toolsets: &[(String, Vec<String>)],
    remarks: &mut Vec<ImportRemark>,
) -> String {
    let mut text = String::new();
    let mut grants = String::new();
    for (at, source) in sources.iter().enumerate() {
        let mut used = tools.iter().filter(|tool| tool.source == at).peekable();
        if used.peek().is_none() {
            continue;
        }
        let writes = used.any(|tool| tool.statement.writes);
        let name = &source.name;
        let _ = writeln!(text, "[connections.{name}]");
        let _ = match source.syntax {
            SqlSyntax::Sqlite => {
                let path = word(source, "database").unwrap_or("data.db");
                writeln!(
                    text,
                    "kind = \"sqlite\"\npath = {}",
                    quoted(&referred(path))
                )
            }
            SqlSyntax::Postgresql => {
                let url = url(source, "postgresql", 5432, remarks);
                writeln!(text, "kind = \"postgresql\"\nurl = {}", quoted(&url))
            }
            SqlSyntax::Mysql => {
                let url = url(source, "mysql", 3306, remarks);
                writeln!(text, "kind = \"mysql\"\nurl = {}", quoted(&url))
            }
        };
        if writes {
            text.push_str("write = true\n");
        }
        text.push('\n');
        let grant = if writes { "statements" } else { "read" };
        let _ = writeln!(grants, "{name} = \"{grant}\"");
    }
    let _ = write!(text, "[plugins.sql.grants]\n{grants}");
    for (name, tools) in toolsets {
        let tools: Vec<String> = tools.iter().map(|tool| quoted(tool)).collect();
        let _ = write!(text, "\n[views.{name}]\ntools = [{}]\n", tools.join(", "));
    }
    text
}

/// Returns the address of a server. Its password is a reference, whatever the configuration has.
fn url(
    source: &ToolboxSource<'_>,
    scheme: &str,
    port: u64,
    remarks: &mut Vec<ImportRemark>,
) -> String {
    let part = |key: &str, default: &str| referred(word(source, key).unwrap_or(default));
    let port = match source.settings.get("port") {
        Some(Value::Number(number)) => number.as_u64().unwrap_or(port).to_string(),
        Some(Value::String(text)) => referred(text),
        _ => port.to_string(),
    };
    let password = match word(source, "password").map(str::trim) {
        Some(text) if text.starts_with("${") => referred(text),
        _ => {
            let variable: String = source
                .name
                .to_uppercase()
                .chars()
                .map(|next| if next == '-' { '_' } else { next })
                .collect();
            let message =
                format!("its password is not copied: set the variable {variable}_PASSWORD");
            let place = pointer("sources", &source.name);
            remarks.push(note(&place, &source.name, "password", &message));
            format!("${{env:{variable}_PASSWORD}}")
        }
    };
    format!(
        "{scheme}://{}:{password}@{}:{port}/{}",
        part("user", "user"),
        part("host", "127.0.0.1"),
        part("database", "")
    )
}

fn word<'s>(source: &ToolboxSource<'s>, key: &str) -> Option<&'s str> {
    source.settings.get(key).and_then(Value::as_str)
}

/// Writes Toolbox's references to variables as those of weir.toml. Of any other text the characters that an address
/// gives a meaning are left out.
fn referred(text: &str) -> String {
    let text = text.trim();
    match text
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
    {
        Some(name) => {
            let name: String = name
                .split(':')
                .next()
                .unwrap_or_default()
                .chars()
                .filter(|next| next.is_ascii_alphanumeric() || *next == '_')
                .collect();
            format!("${{env:{name}}}")
        }
        None => text
            .chars()
            .filter(|next| !next.is_control() && !"@:?#$\"\\{} ".contains(*next))
            .collect(),
    }
}

/// Writes a text of TOML.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}
