//! A tool as a page with a form, for people. The console's own parts draw the form from the schema in the page. The form is sent
//! to the page's own address, and the gateway's errors are shown next to their fields (docs/decisions/one-way-to-draw-a-form.md).
//!
//! The other pages are self-contained: they include their style, load nothing, and need no script.

mod reference;

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use weir_contracts::ContractTool;
use weir_schema::reference::resolve;

pub(crate) use reference::reference;

use crate::web_files::find_name;

const STYLE: &str = include_str!("pages/page.css");
/// The folder of the form's files among those built into the program.
pub(crate) const FORM_FILES: &str = "form";
/// The path at which a page of a tool finds them. No contract has this name.
const FORM_PATH: &str = "../_assets/";

/// Returns the page of one tool, which sends its form to its own address.
pub(crate) fn tool(tool: &ContractTool) -> String {
    let title = tool.title.as_deref().unwrap_or(&tool.name);
    let writes = tool.annotations.read_only_hint != Some(true);
    let given = json!({ "inputSchema": tool.input_schema.value(), "writes": writes });
    let form = html! {
        nav { a href="./" { "All tools" } }
        h1 { (title) }
        p.lead { (tool.description) }
        div #form {}
        @if find_name(FORM_FILES, ".js").is_none() {
            p role="alert" { "This program was built without its forms: run " code { "cargo xtask console" } " and build it again." }
        }
        noscript { p { "This page needs JavaScript to show its form and send what is filled in." } }
        (data_block("tool", &given))
    };
    page(title, &form, true)
}

/// Writes JSON where a script of the page finds it. Browsers do not run such a block, and nothing in it can end it.
fn data_block(id: &str, value: &Value) -> Markup {
    let text = value.to_string().replace('<', "\\u003c");
    html! { script id=(id) type="application/json" { (PreEscaped(text)) } }
}

/// Returns the page that links those of the tools; their addresses follow its own.
pub(crate) fn index<'t>(
    title: &str,
    description: Option<&str>,
    tools: impl IntoIterator<Item = &'t ContractTool>,
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
    page(title, &list, false)
}

/// A page with a message, and optionally a button that posts to the page's own address.
pub(crate) struct NoticePage<'n> {
    pub title: &'n str,
    pub lines: &'n [String],
    pub button: Option<&'n str>,
}

pub(crate) fn notice(notice: &NoticePage<'_>) -> String {
    let content = html! {
        h1 { (notice.title) }
        @for line in notice.lines { p { (line) } }
        @if let Some(button) = notice.button {
            form method="post" { button type="submit" { (button) } }
        }
    };
    page(notice.title, &content, false)
}

/// Returns the `Content-Security-Policy` of such a page. A form may lead to any site, since browsers check where an answer
/// redirects.
pub(crate) fn notice_policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let style = STANDARD.encode(Sha256::digest(STYLE));
        format!(
            "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; frame-ancestors 'none'"
        )
    });
    &POLICY
}

/// Returns the `Content-Security-Policy` of these pages.
pub(crate) fn policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let hash = STANDARD.encode(Sha256::digest(STYLE));
        format!(
            "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{hash}'; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
        )
    });
    &POLICY
}

/// `has_form` pages load the style and the script of forms.
fn page(title: &str, content: &Markup, has_form: bool) -> String {
    let find = |end| find_name(FORM_FILES, end).filter(|_| has_form);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                @match find(".css") {
                    Some(style) => link rel="stylesheet" href={ (FORM_PATH) (style) };,
                    None => style { (PreEscaped(STYLE)) }
                }
                // A library adds a style element with this id unless it exists.
                @if has_form { meta id="react-aria-pressable-style"; }
            }
            body {
                main { (content) }
                @if let Some(script) = find(".js") { script type="module" src={ (FORM_PATH) (script) } {} }
            }
        }
    };
    page.into_string()
}

/// Returns the target of a reference within `root`, or the schema itself.
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
    use weir_contracts::contract::{CallLimits, CallTarget, ToolAnnotations};

    fn page_of(input_schema: Value) -> String {
        let tool = ContractTool {
            name: "t".to_owned(),
            title: None,
            description: "<script>alert(1)</script>".to_owned(),
            input_schema: input_schema.into(),
            output_schema: None,
            annotations: ToolAnnotations::default(),
            target: CallTarget::Form,
            limits: CallLimits::default(),
            audit_clear: Vec::new(),
            approval: None,
        };
        super::tool(&tool)
    }

    #[test]
    fn what_a_contract_says_is_text_and_no_markup() {
        let page = page_of(
            json!({ "properties": { "\"><img src=x>": { "type": "string", "default": "</script><!-- <script>" } } }),
        );
        assert!(
            !page.contains("<script>") && !page.contains("<img") && !page.contains("<!--"),
            "{page}"
        );
        assert_eq!(page.matches("</script>").count(), 1, "{page}");
        assert!(page.contains(r#"\u003c/script>"#), "{page}");
    }

    /// Unit tests embed no files, so this is a program without them.
    #[test]
    fn a_program_without_its_forms_says_how_to_make_them() {
        assert!(page_of(json!({})).contains("cargo xtask console"));
    }
}
