//! The words of an index by their parts, for a question without any of the words as a whole.
//!
//! Languages that join words (`Haftpflichtversicherung`), bend them (`новость`, `новости`) or put others in front (Hebrew's
//! article) share parts where English shares words.

use std::collections::BTreeSet;

/// The letters that words share at least.
const SHARED_LETTERS_MIN: usize = 5;
/// The length of a word that is compared.
const LETTERS_MAX: usize = 48;
/// The letters in which the endings of two forms of one word differ.
const ENDING_LETTERS_MAX: usize = 3;
/// Words that are looked at for one part.
const LOOKED_AT_MAX: usize = 256;
/// Words that one word of a question is related to.
const RELATED_MAX: usize = 16;

pub(super) struct WordParts {
    /// The words, in their order.
    words: Vec<String>,
    /// The number of a word and the place of a letter, for each place from which enough letters are left, in the order of
    /// those letters.
    parts: Vec<(u32, u8)>,
}

impl WordParts {
    pub(super) fn new(words: BTreeSet<String>) -> Self {
        let words: Vec<String> = words
            .into_iter()
            .filter(|word| Self::has_parts(word))
            .collect();
        let mut parts = Vec::new();
        for (number, word) in (0_u32..).zip(&words) {
            let places = (0_u8..).take(word.len() + 1 - SHARED_LETTERS_MIN);
            parts.extend(places.map(|place| (number, place)));
        }
        parts.sort_unstable_by(|a, b| letters(&words, *a).cmp(letters(&words, *b)));
        Self { words, parts }
    }

    /// Returns `true` for a word of letters that is long enough to have parts. Parts of numbers and ids mean nothing.
    pub(super) fn has_parts(word: &str) -> bool {
        (SHARED_LETTERS_MIN..=LETTERS_MAX).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_lowercase())
    }

    /// Returns the words that share a part with a word of a question, the closest first: those that have it in them, those
    /// that it has in it, and other forms of it.
    pub(super) fn related(&self, asked: &str) -> Vec<&str> {
        if !Self::has_parts(asked) {
            return Vec::new();
        }
        let longer = self.with_part(asked).map(|word| (asked.len(), word));
        let shorter = self.inside(asked).map(|word| (word.len(), word));
        let forms = self
            .forms(asked)
            .map(|word| (shared_beginning(asked, word), word));
        let related = longer.chain(shorter).chain(forms);
        let mut related: Vec<(usize, &str)> = related
            .map(|(shared, word)| (asked.len() + word.len() - 2 * shared, word))
            .collect();
        related.sort_unstable();
        related.dedup_by_key(|(_, word)| *word);
        related.truncate(RELATED_MAX);
        related.into_iter().map(|(_, word)| word).collect()
    }

    /// Returns words that have these letters in them.
    fn with_part(&self, asked: &str) -> impl Iterator<Item = &str> {
        let first = self
            .parts
            .partition_point(|part| letters(&self.words, *part) < asked);
        let parts = self.parts[first..].iter().take(LOOKED_AT_MAX);
        parts
            .take_while(move |part| letters(&self.words, **part).starts_with(asked))
            .map(|(number, _)| &*self.words[*number as usize])
    }

    /// Returns the words that are a part of this one.
    fn inside(&self, asked: &str) -> impl Iterator<Item = &str> {
        let from = 0..=asked.len() - SHARED_LETTERS_MIN;
        let parts = from.flat_map(move |from| {
            let ends = from + SHARED_LETTERS_MIN..=asked.len();
            ends.map(move |end| &asked[from..end])
        });
        parts.filter_map(|part| {
            let at = self
                .words
                .binary_search_by(|word| (**word).cmp(part))
                .ok()?;
            Some(&*self.words[at])
        })
    }

    /// Returns the words that begin like this one and differ in a short ending.
    fn forms(&self, asked: &str) -> impl Iterator<Item = &str> {
        let shortest = asked.len().saturating_sub(ENDING_LETTERS_MAX);
        let beginning = &asked[..shortest.max(SHARED_LETTERS_MIN)];
        let first = self.words.partition_point(|word| &**word < beginning);
        let words = self.words[first..].iter().take(LOOKED_AT_MAX);
        words
            .take_while(move |word| word.starts_with(beginning))
            .filter(move |word| is_form(asked, word))
            .map(|word| &**word)
    }
}

/// Returns the letters from a place on.
fn letters(words: &[String], (number, place): (u32, u8)) -> &str {
    &words[number as usize][usize::from(place)..]
}

/// Returns the number of letters with which both words begin.
fn shared_beginning(a: &str, b: &str) -> usize {
    let both = a.bytes().zip(b.bytes());
    both.take_while(|(a, b)| a == b).count()
}

fn is_form(a: &str, b: &str) -> bool {
    let (shared, longer) = (shared_beginning(a, b), a.len().max(b.len()));
    longer - shared <= ENDING_LETTERS_MAX && 3 * shared >= 2 * longer
}
