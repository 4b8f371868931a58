//! Counts the tokens of a text by OpenAI's vocabulary o200k.

use std::{cmp::Reverse, collections::BinaryHeap, sync::LazyLock};

use ahash::AHashMap;
use regex::Regex;
use weir_files::embedded::EmbeddedFile;

/// The tokens in the order in which pairs are merged into them: a byte that holds the length, and the token. See
/// docs/decisions/search-by-words.md.
const TOKENS: EmbeddedFile =
    EmbeddedFile::new(1_597_668, include_bytes!("tokens/o200k.tokens.zlib"));
/// The length of the longest token.
const TOKEN_BYTES_MAX: usize = 128;

/// The pieces into which a text is cut before pairs are merged. The original has `\s+(?!\S)` before `\s+`, which
/// [`TokenVocabulary::pieces`] does.
const PIECE: &str = r"(?x)
    [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
  | [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
  | \p{N}{1,3}
  | [\ ]?[^\s\p{L}\p{N}]+[\r\n/]*
  | \s*[\r\n]+
  | \s+";

/// The tokens of the vocabulary, and the expression that cuts a text into pieces.
pub struct TokenVocabulary {
    ranks: AHashMap<&'static [u8], u32>,
    piece: Regex,
}

/// Returns the vocabulary. It is created on first use: most processes never count.
pub fn vocabulary() -> &'static TokenVocabulary {
    static MADE: LazyLock<TokenVocabulary> = LazyLock::new(TokenVocabulary::new);
    &MADE
}

impl TokenVocabulary {
    fn new() -> Self {
        let mut rest: &'static [u8] = TOKENS.read().leak();
        let tokens = std::iter::from_fn(|| {
            let (length, after) = rest.split_first()?;
            let (token, after) = after.split_at(usize::from(*length));
            rest = after;
            Some(token)
        });
        Self {
            ranks: tokens.zip(0..).collect(),
            piece: Regex::new(PIECE).expect("a valid expression"),
        }
    }

    /// Returns the number of tokens. Special tokens of a conversation, such as its end, count as plain text.
    pub fn count(&self, text: &str) -> usize {
        self.pieces(text)
            .map(|piece| self.count_piece(piece.as_bytes()))
            .sum()
    }

    fn pieces<'a>(&self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let mut piece = self.piece.find(rest)?.as_str();
            // Space before a word leaves its last character to the word.
            if piece.len() < rest.len()
                && !piece.ends_with(['\r', '\n'])
                && piece.chars().all(char::is_whitespace)
            {
                let last = piece.chars().next_back().map_or(0, char::len_utf8);
                if last < piece.len() {
                    piece = &piece[..piece.len() - last];
                }
            }
            rest = &rest[piece.len()..];
            Some(piece)
        })
    }

    /// Counts the parts that are left after the pair with the lowest rank has been merged repeatedly. A long piece costs
    /// little more than its length.
    fn count_piece(&self, piece: &[u8]) -> usize {
        if self.ranks.contains_key(piece) {
            return 1;
        }
        let mut count = piece.len();
        // Where the part that begins at a byte ends, and the reverse; 0 if no part begins or ends there.
        let mut ends: Vec<usize> = (1..=count).collect();
        let mut begins: Vec<Option<usize>> = (0..=count).map(|end| end.checked_sub(1)).collect();
        let mut pairs: BinaryHeap<_> = (2..=count)
            .filter_map(|end| self.pair(piece, end - 2, end))
            .collect();
        while let Some(Reverse((_, begin, end))) = pairs.pop() {
            let middle = ends[begin];
            // One of the two may be part of something longer by now.
            if middle == 0 || middle >= end || ends[middle] != end {
                continue;
            }
            (ends[begin], ends[middle]) = (end, 0);
            (begins[end], begins[middle]) = (Some(begin), None);
            count -= 1;
            pairs.extend(begins[begin].and_then(|before| self.pair(piece, before, end)));
            let after = ends.get(end).copied();
            pairs.extend(after.and_then(|after| self.pair(piece, begin, after)));
        }
        count
    }

    /// Returns the rank of what two neighbours would become, for a heap with the lowest first.
    fn pair(&self, piece: &[u8], begin: usize, end: usize) -> Option<Reverse<(u32, usize, usize)>> {
        let is_short = end - begin <= TOKEN_BYTES_MAX;
        let rank = self
            .ranks
            .get(piece.get(begin..end).filter(|_| is_short)?)?;
        Some(Reverse((*rank, begin, end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures are those of `tiktoken`.
    #[test]
    fn texts_have_as_many_tokens_as_the_vocabulary_says() {
        let vocabulary = vocabulary();
        let long = "x".repeat(20_000);
        for (text, tokens) in [
            ("", 0),
            ("a", 1),
            ("hello world", 2),
            ("The quick brown fox, it's 12345 lazy.", 11),
            ("{\"type\":\"object\"}", 5),
            ("  two\n\n lines ", 5),
            ("naïve café 日本語 🙂", 7),
            (&long, 2_500),
        ] {
            assert_eq!(vocabulary.count(text), tokens, "{text:?}");
        }
    }
}
