//! Mistakes of an author: collected, so that all of an item are reported at once.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Error, Ident, meta::ParseNestedMeta};

#[derive(Default)]
pub(crate) struct MacroErrors(Option<Error>);

impl MacroErrors {
    /// Adds a mistake at these tokens.
    pub(crate) fn add(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(Error::new_spanned(tokens, message));
    }

    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0
            .map(|error| error.to_compile_error())
            .unwrap_or_default()
    }
}

/// Reads the key of `attribute` that comes next: one of `known` that is not `seen` yet.
pub(crate) fn new_key(
    meta: &ParseNestedMeta<'_>,
    attribute: &str,
    known: &[&str],
    seen: &mut Vec<String>,
) -> syn::Result<Ident> {
    let Some(key) = meta.path.get_ident().cloned() else {
        return Err(meta.error(format!("write a key of `{attribute}`")));
    };
    let name = key.to_string();
    if !known.contains(&name.as_str()) {
        return Err(Error::new(key.span(), unknown(&name, attribute, known)));
    }
    if seen.contains(&name) {
        let message = format!("`{name}` is given twice: write it once");
        return Err(Error::new(key.span(), message));
    }
    seen.push(name);
    Ok(key)
}

/// Returns the sentence about an unknown key: which key was meant, or else all keys there are.
pub(crate) fn unknown(key: &str, attribute: &str, known: &[&str]) -> String {
    let begins =
        |known: &&str| known.len() > 1 && (key.starts_with(*known) || known.starts_with(key));
    if let Some(known) = known.iter().find(|known| key.len() > 1 && begins(known)) {
        return format!("`{key}` is no key of `{attribute}`: did you mean `{known}`?");
    }
    let near = known
        .iter()
        .map(|known| (distance(key, known), known))
        .min();
    match near {
        Some((distance, known)) if distance <= 2.max(known.len() / 3) => {
            format!("`{key}` is no key of `{attribute}`: did you mean `{known}`?")
        }
        _ => format!(
            "`{key}` is no key of `{attribute}`: write one of {}",
            known.join(", ")
        ),
    }
}

/// Returns how many letters differ (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for column in 0..right.len() {
            let changed = diagonal + usize::from(letter != right[column]);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
