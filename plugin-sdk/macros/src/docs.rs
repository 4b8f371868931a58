//! Documentation comments: what a person wrote once is what an agent reads.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the text of the `///` lines, or `None` if there are no such lines.
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

/// The longest title that the gateway takes.
const TITLE_MAX: usize = 200;

/// Returns a function's title and description: the first paragraph, and the rest or else the first paragraph again. If
/// the paragraph is too long for a title, its first sentence is the title, if that is short enough.
pub(crate) fn title_and_description(text: &str) -> (Option<String>, String) {
    let (first, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let paragraph = first.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    if paragraph.chars().count() > TITLE_MAX {
        let end = paragraph
            .match_indices(['.', '!', '?'])
            .map(|(at, mark)| at + mark.len())
            .find(|end| paragraph[*end..].starts_with(' '));
        let sentence = end.map(|end| paragraph[..end].to_owned());
        let title = sentence.filter(|sentence| sentence.chars().count() <= TITLE_MAX);
        return (title, text.to_owned());
    }
    let description = match rest.trim() {
        "" => paragraph.clone(),
        rest => rest.to_owned(),
    };
    (Some(paragraph), description)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_paragraph_is_no_title() {
        let words = "the tickets of the desk ".repeat(20);
        for (text, title, description) in [
            ("Short.\n\nMore.", Some("Short."), "More."),
            ("Short.", Some("Short."), "Short."),
            (
                &format!("Search. By {words}"),
                Some("Search."),
                &format!("Search. By {words}"),
            ),
            (&format!("Search {words}"), None, &format!("Search {words}")),
        ] {
            let expected = (title.map(str::to_owned), description.to_owned());
            assert_eq!(title_and_description(text), expected);
        }
    }
}
