//! Texts as words that can be compared: split, small, plain letters, by their stem.

use std::{borrow::Cow, collections::HashSet, iter};

use bm25::Tokenizer;
use deunicode::deunicode;
use rust_stemmers::{Algorithm, Stemmer};

/// Words that do not describe a tool, or that begin every question.
const EMPTY: &str = "a about all also am an and any are as at be been but by can could did do does each every for from get \
    give had has have he her his how i if in into is it its just let like make me my need of on one only or our out please \
    she should so some such than that the their them then there these they this those to up use used using want was we were \
    what when where which who will with would you your";

pub(super) struct WordStemmer {
    empty: HashSet<&'static str>,
    stemmer: Stemmer,
}

impl Default for WordStemmer {
    fn default() -> Self {
        Self {
            empty: EMPTY.split_whitespace().collect(),
            stemmer: Stemmer::create(Algorithm::English),
        }
    }
}

impl Tokenizer for WordStemmer {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for run in runs(text) {
            if run.starts_with(is_unspaced) {
                words.extend(pairs(run));
            } else {
                self.add_plain(run, &mut words);
            }
        }
        words
    }
}

impl WordStemmer {
    /// Returns the empty words with which a name ends, as one word, for questions that consist of nothing else:
    /// `get_me`, `github_get_me`. `None` if it ends with another word.
    pub(super) fn join_last_empty_words(&self, name: &str) -> Option<String> {
        let words = plain_words(name);
        let is_empty = |word: &&String| self.empty.contains(word.as_str());
        let empty = words.iter().rev().take_while(is_empty).count();
        Some(words[words.len() - empty..].concat()).filter(|word| !word.is_empty())
    }

    /// Returns `true` if a question has only empty words.
    pub(super) fn has_only_empty_words(&self, question: &str) -> bool {
        let words = plain_words(question);
        question.is_ascii() && words.iter().all(|word| self.empty.contains(word.as_str()))
    }

    /// Adds the words of a text whose script puts spaces between them.
    fn add_plain(&self, text: &str, words: &mut Vec<String>) {
        let plain = if text.is_ascii() {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(deunicode(text))
        };
        let parts = plain
            .split(|char: char| !char.is_ascii_alphanumeric())
            .flat_map(with_humps);
        let plain = parts
            .map(str::to_ascii_lowercase)
            .filter(|word| !self.empty.contains(&**word));
        words.extend(plain.map(|word| self.stemmer.stem(&word).into_owned()));
    }
}

/// Returns the words of a name or a question in ASCII, as they are, in small letters.
fn plain_words(text: &str) -> Vec<String> {
    let parts = text.split(|char: char| !char.is_ascii_alphanumeric());
    let words = parts.flat_map(humps).map(str::to_ascii_lowercase);
    words.collect()
}

/// Returns `true` for letters of scripts that are written without spaces between words, and of Hangul, whose words end in
/// particles: Thai, Lao, Burmese, Khmer, kana, Han.
fn is_unspaced(char: char) -> bool {
    matches!(
        char,
        '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3041}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

/// Splits a text where one kind of script ends and the other begins.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    iter::from_fn(move || {
        let kind = is_unspaced(rest.chars().next()?);
        let end = rest.find(|char| is_unspaced(char) != kind);
        let (run, others) = rest.split_at(end.unwrap_or(rest.len()));
        rest = others;
        Some(run)
    })
}

/// Returns each letter with the one after it, which is how texts without spaces are compared; a single letter is a word.
fn pairs(run: &str) -> impl Iterator<Item = String> {
    let letters: Vec<char> = run.chars().collect();
    let size = letters.len().min(2);
    let pairs: Vec<String> = letters.windows(size).map(String::from_iter).collect();
    pairs.into_iter()
}

/// Returns the humps of a part, followed by the part itself if it has several: people write `YouTube` as one word too.
fn with_humps(part: &str) -> impl Iterator<Item = &str> {
    let humps = humps(part);
    let whole = (humps.len() > 1).then_some(part);
    humps.into_iter().chain(whole)
}

/// Returns the names such as `getUser` in a text, in small letters. `GitHub` is a single word, and not such a name.
pub(super) fn find_joined_names(text: &str) -> String {
    let parts = text.split(|char: char| !char.is_ascii_alphanumeric());
    let is_name = |part: &&str| {
        part.starts_with(|char: char| char.is_ascii_lowercase()) && humps(part).len() > 1
    };
    let names: Vec<String> = parts.filter(is_name).map(str::to_ascii_lowercase).collect();
    names.join(" ")
}

/// Splits humps: `readTextFile` is three words, and `HTTPServer` two.
fn humps(part: &str) -> Vec<&str> {
    let (mut words, mut from) = (Vec::new(), 0);
    let bytes = part.as_bytes();
    for at in 1..bytes.len() {
        if bytes[at].is_ascii_uppercase()
            && (bytes[at - 1].is_ascii_lowercase() || ends_acronym(bytes, at))
        {
            words.push(&part[from..at]);
            from = at;
        }
    }
    words.push(&part[from..]);
    words.retain(|word| !word.is_empty());
    words
}

/// Returns `true` if a word begins at a capital that follows others. A single small `s` after them makes a plural: `IDs`.
fn ends_acronym(bytes: &[u8], at: usize) -> bool {
    let is_small = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_lowercase);
    let is_plural = bytes.get(at + 1) == Some(&b's') && !is_small(at + 2);
    bytes[at - 1].is_ascii_uppercase() && is_small(at + 1) && !is_plural
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_empty_words_is_one_word() {
        for (name, expected) in [
            ("get_me", Some("getme")),
            ("github.get-me", Some("getme")),
            ("getMe", Some("getme")),
            ("who am I?", Some("whoami")),
            ("list_all", Some("all")),
            ("get_issue", None),
            ("", None),
        ] {
            let word = WordStemmer::default().join_last_empty_words(name);
            assert_eq!(word.as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn texts_are_compared_by_the_stems_of_their_words() {
        for (text, expected) in [
            ("list_pull_requests", "list pull request"),
            ("readTextFile", "read text file readtextfil"),
            ("HTTPServer", "http server httpserver"),
            ("YouTube, OAuth", "tube youtub o auth oauth"),
            ("userIDs", "user id userid"),
            ("Lists the files, which were changed!", "list file chang"),
            ("Größe des Flughafens", "gross des flughafen"),
            ("時間", "時間"),
            ("获取p4工单Liste", "获取 p4 工单 list"),
            ("天気を教えて", "天気 気を を教 教え えて"),
            ("날", "날"),
            ("Погода в Москве", "pogoda v moskv"),
            ("what is it", ""),
            ("\u{0} \u{202e}…", ""),
        ] {
            assert_eq!(
                WordStemmer::default().tokenize(text).join(" "),
                expected,
                "{text}"
            );
        }
    }
}
