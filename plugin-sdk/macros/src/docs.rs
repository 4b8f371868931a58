//! Documentation comments: what a person wrote once is what an agent reads.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the text of the `///` lines, or `None` if there are none.
pub(crate) fn text(attributes: &[Attribute]) -> Option<String> {
    let mut lines = Vec::new();
    for attribute in attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
    {
        if let Meta::NameValue(doc) = &attribute.meta
            && let Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) = &doc.value
        {
            // `split` and not `lines`: an empty line is the end of a paragraph.
            let text = text.value();
            lines.extend(
                text.split('\n')
                    .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()),
            );
        }
    }
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns a function's title and description: the first paragraph, and the rest or else the first paragraph again.
pub(crate) fn title_and_description(text: &str) -> (String, String) {
    let (first, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let title = first.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let description = if rest.trim().is_empty() {
        title.clone()
    } else {
        rest.trim().to_owned()
    };
    (title, description)
}
