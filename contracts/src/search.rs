//! Finding the tools that a question is about: BM25 over their names, titles, descriptions and arguments.
//!
//! Nothing but words is compared: the same tools and the same question have the same answer, whoever asks and whenever.

mod words;

use std::collections::{HashMap, HashSet};

use bm25::{Embedder, EmbedderBuilder, Embedding, Scorer, TokenEmbedding};
use serde_json::Value;

use self::words::Words;

/// The weight of each part of a tool.
const NAME_WEIGHT: usize = 3;
const TITLE_WEIGHT: usize = 2;
/// The lengths that count of a description and of an argument's text. If everything were counted at length, nothing
/// would stand out.
const DESCRIPTION_CHARS_MAX: usize = 600;
const ARGUMENT_CHARS_MAX: usize = 120;
const ARGUMENTS_MAX: usize = 64;
/// Words of one question.
const WORDS_MAX: usize = 64;
/// Tools that are looked at closely: those with the rarest words of the question come first.
const CANDIDATES_MAX: usize = 1_000;
/// A tool is found where it has this many words of the question, or most of them; two fifths are enough where one of them is in
/// its name. One common word finds nothing.
const WORDS_ENOUGH: usize = 3;

/// One tool as the index reads it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'t> {
    pub name: &'t str,
    pub title: Option<&'t str>,
    pub description: &'t str,
    /// The tool's input schema.
    pub input: &'t Value,
}

/// An index over a list of tools. It is made once, and a question only reads it.
pub struct Index {
    embedder: Embedder<u32, Words>,
    scorer: Scorer<u32>,
    /// The number of tools that have a word.
    counts: HashMap<u32, usize>,
    /// The words of each tool's name.
    names: Vec<HashSet<u32>>,
}

impl Index {
    /// Makes an index of the texts of all entries, as [`Entry::text`] writes them.
    pub fn new(texts: &[String]) -> Self {
        let corpus: Vec<&str> = texts.iter().map(String::as_str).collect();
        let embedder = EmbedderBuilder::<u32, Words>::with_tokenizer_and_fit_to_corpus(
            Words::default(),
            &corpus,
        )
        .build();
        let (mut scorer, mut counts) = (Scorer::new(), HashMap::new());
        for (number, text) in (0_u32..).zip(texts) {
            let words = once_each(embedder.embed(text));
            words
                .indices()
                .for_each(|word| *counts.entry(*word).or_default() += 1);
            scorer.upsert(&number, words);
        }
        let name = |text: &String| {
            embedder
                .embed(text.lines().next().unwrap_or_default())
                .indices()
                .copied()
                .collect()
        };
        let names = texts.iter().map(name).collect();
        Self {
            embedder,
            scorer,
            counts,
            names,
        }
    }

    /// Returns the numbers of at most `most` entries that the question is about, the best first.
    pub fn find(&self, question: &str, most: usize) -> Vec<usize> {
        let mut asked = once_each(self.embedder.embed(question));
        asked
            .0
            .sort_by_key(|word| self.counts.get(&word.index).copied().unwrap_or_default());
        asked.0.truncate(WORDS_MAX);
        let mut found: Vec<(u32, f32)> = self
            .candidates(&asked)
            .into_iter()
            .filter_map(|number| Some((number, self.scorer.score(&number, &asked)?)))
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let found = found
            .into_iter()
            .map(|(number, _)| number)
            .filter(|number| self.is_about(*number, &asked));
        found
            .take(most)
            .filter_map(|number| usize::try_from(number).ok())
            .collect()
    }

    /// Returns the entries with the rarest words, for as many words as there is room. A word that most tools have
    /// distinguishes none, and counts only if another word was found.
    fn candidates(&self, asked: &Embedding) -> Vec<u32> {
        let (mut rarest, mut room) = (Vec::new(), CANDIDATES_MAX);
        for word in asked.iter() {
            let count = self.counts.get(&word.index).copied().unwrap_or_default();
            if count > room && !rarest.is_empty() {
                break;
            }
            room = room.saturating_sub(count);
            rarest.extend((count > 0).then(|| word.clone()));
        }
        self.scorer
            .matches(&Embedding(rarest))
            .into_iter()
            .map(|found| found.id)
            .collect()
    }

    fn is_about(&self, number: u32, asked: &Embedding) -> bool {
        let has = |word: &&TokenEmbedding| {
            self.scorer
                .score(&number, &Embedding(vec![(*word).clone()]))
                .is_some_and(|score| score > 0.0)
        };
        let shared: Vec<&TokenEmbedding> = asked.iter().filter(has).collect();
        let name = usize::try_from(number)
            .ok()
            .and_then(|number| self.names.get(number));
        let is_named = || {
            shared
                .iter()
                .any(|word| name.is_some_and(|name| name.contains(&word.index)))
        };
        let count = shared.len();
        count >= WORDS_ENOUGH
            || count * 2 > asked.len()
            || (count * 5 >= asked.len() * 2 && is_named())
    }
}

fn once_each(words: Embedding) -> Embedding {
    let mut seen = HashSet::new();
    Embedding(
        words
            .0
            .into_iter()
            .filter(|word| seen.insert(word.index))
            .collect(),
    )
}

impl Entry<'_> {
    /// Returns the text that is searched; the tool's name stands in its first line.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut add = |part: &str, chars_max: usize, times: usize| {
            for _ in 0..times {
                text.extend(part.chars().take(chars_max));
                text.push('\n');
            }
        };
        add(self.name, DESCRIPTION_CHARS_MAX, NAME_WEIGHT);
        add(
            self.title.unwrap_or_default(),
            DESCRIPTION_CHARS_MAX,
            TITLE_WEIGHT,
        );
        add(self.description, DESCRIPTION_CHARS_MAX, 1);
        let arguments = self
            .input
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        for (name, schema) in arguments.take(ARGUMENTS_MAX) {
            add(name, ARGUMENT_CHARS_MAX, 1);
            add(
                schema
                    .get("description")
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
                ARGUMENT_CHARS_MAX,
                1,
            );
        }
        text
    }
}
