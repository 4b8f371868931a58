//! Says in words what a contract offers: all that an operator agrees to, as agents will read it.

use std::fmt::Write as _;

use serde::Deserialize as _;
use serde_json::Value;
use weir::catalogue::arguments_in_words;
use weir_contracts::contract::ToolAnnotations;

/// The lists of a compiled document, with a word for one of their entries and the member that names it.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools", "tool", "name"),
    ("prompts", "prompt", "name"),
    ("resources", "resource", "uri"),
    ("resourceTemplates", "template", "uriTemplate"),
];

/// Describes the entries of a compiled document whose names `is_wanted` accepts.
pub(super) fn described(document: &Value, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    for (list, kind, named) in LISTS {
        for entry in document[list].as_array().into_iter().flatten() {
            let called = entry[named].as_str().unwrap_or_default();
            if !is_wanted(called) {
                continue;
            }
            let effect = if kind == "tool" {
                effect(&entry["annotations"])
            } else {
                String::new()
            };
            let _ = writeln!(out, "  {kind} {}{effect}", safe(called));
            if let Some(text) = entry["description"].as_str() {
                let _ = writeln!(out, "      {}", indented(text, "      "));
            }
            if let Some(title) = entry["title"].as_str() {
                let _ = writeln!(out, "      title: {}", indented(title, "      "));
            }
            for argument in arguments_in_words(&entry["inputSchema"]).lines() {
                let _ = writeln!(out, "      {}", safe(argument));
            }
            for argument in entry["arguments"].as_array().into_iter().flatten() {
                let text = |member: &str| argument[member].as_str().unwrap_or_default();
                let need = if argument["required"] == true {
                    "required"
                } else {
                    "may be absent"
                };
                let _ = writeln!(
                    out,
                    "      - `{}` ({need}): {}",
                    safe(text("name")),
                    safe(text("description"))
                );
            }
        }
    }
    out
}

/// Returns the text after a tool's name about what a call may do.
fn effect(annotations: &Value) -> String {
    let annotations = ToolAnnotations::deserialize(annotations).unwrap_or_default();
    format!(" ({})", annotations.effect())
}

/// Returns a text of several lines, each further one after the same indentation.
pub(super) fn indented(text: &str, indentation: &str) -> String {
    safe(text).replace('\n', &format!("\n{indentation}"))
}

/// Returns a foreign text as a terminal may print it: no character of it moves the cursor or hides.
pub(super) fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            _ if character.is_control() || weir_contracts::name::is_invisible(character) => {
                out.extend(character.escape_unicode());
            }
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_that_models_read_is_printed_and_nothing_moves_the_cursor() {
        let document = json!({
            "tools": [{"name": "read", "description": "Reads.\u{1b}[2J\nTwice.", "annotations": {"readOnlyHint": true},
                "inputSchema": {"type": "object", "properties": {"why": {"type": "string", "description": "Say why."}},
                    "required": ["why"]}}],
            "prompts": [{"name": "plan", "arguments": [{"name": "goal", "description": "The goal.", "required": true}]}],
            "resources": [{"uri": "notes://all", "name": "all", "description": "All notes."}],
        });
        let text = described(&document, |_| true);
        let expected = "  tool read (only reads)\n      Reads.\\u{1b}[2J\n      Twice.\n      - `why` (string; required): Say why.\n  \
                        prompt plan\n      - `goal` (required): The goal.\n  resource notes://all\n      All notes.\n";
        assert_eq!(text, expected);
        assert_eq!(
            described(&document, |called| called == "plan")
                .lines()
                .count(),
            2
        );
    }
}
