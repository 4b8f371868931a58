//! `rename_all`, as serde renames.

use syn::LitStr;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RenameRule {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

const CASES: [(&str, RenameRule); 8] = [
    ("lowercase", RenameRule::Lower),
    ("UPPERCASE", RenameRule::Upper),
    ("PascalCase", RenameRule::Pascal),
    ("camelCase", RenameRule::Camel),
    ("snake_case", RenameRule::Snake),
    ("SCREAMING_SNAKE_CASE", RenameRule::ScreamingSnake),
    ("kebab-case", RenameRule::Kebab),
    ("SCREAMING-KEBAB-CASE", RenameRule::ScreamingKebab),
];

impl RenameRule {
    pub(crate) fn parse(text: &LitStr) -> syn::Result<Self> {
        let found = CASES
            .into_iter()
            .find(|(name, _)| *name == text.value())
            .map(|(_, case)| case);
        let names = || CASES.map(|(name, _)| name).join(", ");
        found.ok_or_else(|| {
            syn::Error::new(
                text.span(),
                format!("this case is unknown: write one of {}", names()),
            )
        })
    }

    /// Renames a field, which is written `in_snake_case`.
    pub(crate) fn field(self, name: &str) -> String {
        let pascal = || name.split('_').map(capital).collect::<String>();
        match self {
            Self::Lower | Self::Snake => name.to_owned(),
            Self::Upper | Self::ScreamingSnake => name.to_ascii_uppercase(),
            Self::Pascal => pascal(),
            Self::Camel => small(&pascal()),
            Self::Kebab => name.replace('_', "-"),
            Self::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// Renames a variant, which is written `InPascalCase`.
    pub(crate) fn variant(self, name: &str) -> String {
        let mut snake = String::new();
        for (at, letter) in name.char_indices() {
            if at > 0 && letter.is_uppercase() {
                snake.push('_');
            }
            snake.push(letter.to_ascii_lowercase());
        }
        match self {
            Self::Lower => name.to_ascii_lowercase(),
            Self::Upper => name.to_ascii_uppercase(),
            Self::Pascal => name.to_owned(),
            Self::Camel => small(name),
            other => other.field(&snake),
        }
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
        .unwrap_or_default()
}

fn small(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_ascii_lowercase().to_string() + letters.as_str())
        .unwrap_or_default()
}
