//! Shortens a text, by one rule for all messages and records.

use std::borrow::Cow;

/// Returns the text unchanged if it has at most `chars_max` characters, and otherwise that many characters and `…`.
pub fn shorten(text: &str, chars_max: usize) -> Cow<'_, str> {
    // A text has no more characters than bytes.
    if text.len() <= chars_max {
        return text.into();
    }
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        for (text, expected) in [
            ("", ""),
            ("abc", "abc"),
            ("abcd", "abc…"),
            ("åäö", "åäö"),
            ("åäöå", "åäö…"),
            ("👩🏽‍🚀", "👩🏽\u{200d}…"),
        ] {
            assert_eq!(shorten(text, 3), expected);
        }
    }

    #[test]
    fn a_text_that_fits_is_not_copied() {
        assert!(matches!(shorten("åäö", 3), Cow::Borrowed(_)));
    }
}
