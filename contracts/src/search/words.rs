//! Texts as words that can be compared: split, small, plain letters, by their stem.

use std::{borrow::Cow, collections::HashSet};

use bm25::Tokenizer;
use deunicode::deunicode;
use rust_stemmers::{Algorithm, Stemmer};

/// Words that say nothing about a tool, or that begin every question.
const EMPTY: &str = "a about all also am an and any are as at be been but by can could did do does each every for from get \
    give had has have he her his how i if in into is it its just let like make me my need of on one only or our out please \
    she should so some such than that the their them then there these they this those to up use used using want was we were \
    what when where which who will with would you your";

pub(super) struct Words {
    empty: HashSet<&'static str>,
    stemmer: Stemmer,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            empty: EMPTY.split_whitespace().collect(),
            stemmer: Stemmer::create(Algorithm::English),
        }
    }
}

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let plain = if text.is_ascii() {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(deunicode(text))
        };
        let parts = plain
            .split(|char: char| !char.is_ascii_alphanumeric())
            .flat_map(humps);
        let words = parts
            .map(str::to_ascii_lowercase)
            .filter(|word| !self.empty.contains(&**word));
        words
            .map(|word| self.stemmer.stem(&word).into_owned())
            .collect()
    }
}

/// Splits humps: `readTextFile` is three words.
fn humps(part: &str) -> Vec<&str> {
    let (mut words, mut from) = (Vec::new(), 0);
    let bytes = part.as_bytes();
    for at in 1..bytes.len() {
        if bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase() {
            words.push(&part[from..at]);
            from = at;
        }
    }
    words.push(&part[from..]);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_by_the_stems_of_their_words() {
        for (text, expected) in [
            ("list_pull_requests", "list pull request"),
            ("readTextFile", "read text file"),
            ("Lists the files, which were changed!", "list file chang"),
            ("Größe des Flughafens", "gross des flughafen"),
            ("時間", "shi jian"),
            ("what is it", ""),
            ("\u{0} \u{202e}…", ""),
        ] {
            assert_eq!(
                Words::default().tokenize(text).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
