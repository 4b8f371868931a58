//! A tool as a page with a form, for people: one control for each argument, with the bounds of the schema enforced by the
//! browser and by the server again.
//!
//! Pages are whole: style and script stand in them, nothing is loaded from elsewhere, and [`policy`] allows no more than
//! that. The script makes JSON of the form, sends it to the page's own address, and shows the answer; what the server
//! refuses is shown beside the control it is about.

mod control;
mod reference;

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use weir_contracts::Tool;
use weir_schema::reference::resolve;

pub(crate) use reference::reference;

const SCRIPT: &str = include_str!("pages/form.js");
const STYLE: &str = include_str!("pages/form.css");

/// Returns the page of one tool, which sends what is filled in to its own address.
pub(crate) fn tool(tool: &Tool) -> String {
    let title = tool.title.as_deref().unwrap_or(&tool.name);
    let schema = tool.input_schema.value();
    let writes = tool.annotations.read_only_hint != Some(true);
    let form = html! {
        nav { a href="./" { "All tools" } }
        h1 { (title) }
        p.lead { (tool.description) }
        form #form novalidate[true] {
            div #problem role="alert" tabindex="-1" hidden[true] {}
            (control::members(&schema, &schema, "", 0))
            button type="submit" { @if writes { "Run" } @else { "Ask" } }
        }
        section #answer aria-live="polite" aria-label="Answer" hidden[true] {
            h2 { "Answer" }
            div #result {}
        }
        noscript { p { "This page needs JavaScript to send what is filled in." } }
    };
    page(title, &form, true)
}

/// Returns the page that leads to those of the tools; their addresses follow its own.
pub(crate) fn index<'t>(
    title: &str,
    description: Option<&str>,
    tools: impl IntoIterator<Item = &'t Tool>,
) -> String {
    let list = html! {
        h1 { (title) }
        @if let Some(description) = description { p.lead { (description) } }
        ul.tools {
            @for tool in tools {
                li {
                    a href=(tool.name) { (tool.title.as_deref().unwrap_or(&tool.name)) }
                    p { (tool.description) }
                }
            }
        }
    };
    page(title, &list, true)
}

/// Returns the `Content-Security-Policy` of these pages.
pub(crate) fn policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
        format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            hash(SCRIPT),
            hash(STYLE)
        )
    });
    &POLICY
}

fn page(title: &str, content: &Markup, is_scripted: bool) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (content) }
                @if is_scripted { script { (PreEscaped(SCRIPT)) } }
            }
        }
    };
    page.into_string()
}

/// Returns the schema that a reference within `root` stands for, or the schema itself.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    resolve(root, schema).unwrap_or(schema)
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use weir_contracts::contract::{Annotations, Limits, Target};

    fn of(input_schema: Value) -> String {
        let tool = Tool {
            name: "t".to_owned(),
            title: None,
            description: "<script>alert(1)</script>".to_owned(),
            input_schema: input_schema.into(),
            output_schema: None,
            annotations: Annotations::default(),
            target: Target::Form,
            limits: Limits::default(),
            audit_clear: Vec::new(),
        };
        super::tool(&tool)
    }

    #[test]
    fn what_a_contract_says_is_text_and_no_markup() {
        let page = of(
            json!({ "properties": { "\"><img src=x>": { "type": "string", "default": "</textarea>" } } }),
        );
        assert!(
            !page.contains("<script>alert")
                && !page.contains("<img")
                && !page.contains("</textarea>"),
            "{page}"
        );
    }

    #[test]
    fn the_script_may_stand_in_a_page() {
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
    }

    #[test]
    fn bounds_are_those_of_the_schema() {
        let page = of(json!({
            "properties": {
                "count": { "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 9 }, { "type": "null" }] },
                "code": { "type": "string", "pattern": "^[A-Z]{3}$", "minLength": 3 },
                "day": { "$ref": "#/$defs/Day" },
            },
            "required": ["code"],
            "$defs": { "Day": { "type": "string", "format": "date" } },
        }));
        for control in [
            r#"type="number" step="1" min="1" max="9""#,
            r#"type="text" minlength="3" pattern="[A-Z]{3}" aria-describedby="error/code" required"#,
            r#"type="date""#,
        ] {
            assert!(page.contains(control), "{control}\n{page}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let node =
            json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } } });
        let page = of(
            json!({ "properties": { "first": { "$ref": "#/$defs/Node" } }, "$defs": { "Node": node } }),
        );
        assert!(page.contains("data-path=\"/first/next\"") && page.len() < 40_000);
    }
}
