//! Patterns that a vendor's engine does not read.

const LOOKS: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];

/// Returns `true` if a regular expression looks ahead or behind. What is escaped, or within a class, is only text.
pub(super) fn looks_around(pattern: &str) -> bool {
    let (mut rest, mut is_in_class) = (pattern, false);
    while let Some(char) = rest.chars().next() {
        if !is_in_class && LOOKS.iter().any(|look| rest.starts_with(*look)) {
            return true;
        }
        match char {
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            _ => {}
        }
        let taken = if char == '\\' { 2 } else { 1 };
        let taken: usize = rest.chars().take(taken).map(char::len_utf8).sum();
        rest = &rest[taken..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_around_is_left_out() {
        for (pattern, expected) in [
            ("^(?!x).*$", true),
            ("(?=.*@)", true),
            ("(?<=a)b", true),
            (r"\\(?<!a)b", true),
            ("[a](?=b)", true),
            (r"[\]](?=b)", true),
            ("(?:a)(?<name>b)(c)", false),
            (r"\(?=b", false),
            ("[(?=]", false),
            (r"[\](?=]", false),
            ("é(", false),
            (r"a\", false),
        ] {
            assert_eq!(looks_around(pattern), expected, "{pattern}");
        }
    }
}
