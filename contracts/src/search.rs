//! Finding the tools that a question is about: BM25 over their names, titles, descriptions and arguments.
//!
//! Only words are compared: the same tools and the same question always have the same answer.

mod parts;
mod words;

use std::collections::{BTreeSet, HashMap, HashSet};

use bm25::{
    Embedder, EmbedderBuilder, Embedding, Scorer, TokenEmbedder, TokenEmbedding, Tokenizer,
};
use serde_json::Value;
use weir_schema::walk;

use self::{parts::WordParts, words::WordStemmer};

/// The weight of each part of a tool.
const NAME_WEIGHT: usize = 3;
const TITLE_WEIGHT: usize = 2;
/// The lengths that count of a description and of an argument's text. If everything were counted at length, nothing
/// would stand out.
const DESCRIPTION_CHARS_MAX: usize = 600;
const ARGUMENT_CHARS_MAX: usize = 120;
const ARGUMENTS_MAX: usize = 64;
/// The choices of a tool's arguments that are searched, and the length that counts of each.
const CHOICES_MAX: usize = 64;
const CHOICE_CHARS_MAX: usize = 60;
/// The depth in a schema at which choices are still looked for.
const CHOICE_DEPTH_MAX: usize = 12;
/// Words of one question.
const WORDS_MAX: usize = 64;
/// Words of one question that are compared by their parts.
const WORDS_IN_PARTS_MAX: usize = 16;
/// Tools that are examined closely: those with the rarest words of the question come first.
const CANDIDATES_MAX: usize = 1_000;
/// A tool is a strong match if the words that it shares with the question have this share of the weight of all its
/// words, by their rarity. A word that no tool has weighs most.
const STRONG_SHARE: f32 = 0.4;

/// One tool as the index reads it.
#[derive(Clone, Copy, Debug)]
pub struct IndexedTool<'t> {
    pub name: &'t str,
    pub title: Option<&'t str>,
    pub description: &'t str,
    /// The name and the first sentence of the contract that it belongs to.
    pub contract: &'t str,
    /// The tool's input schema.
    pub input: &'t Value,
}

/// An index over a list of tools. It is made once, and a question only reads it.
pub struct ToolIndex {
    embedder: Embedder<u32, WordStemmer>,
    scorer: Scorer<u32>,
    /// The number of tools that have a word.
    counts: HashMap<u32, usize>,
    tools: usize,
    stemmer: WordStemmer,
    parts: WordParts,
    /// The tools whose names end with words that are not searched, by these words.
    of_empty_words: HashMap<String, Vec<u32>>,
}

/// A tool that shares words with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolMatch {
    /// The place of the tool in the list that was indexed.
    pub number: usize,
    /// Set if it shares few of the words that distinguish the question from others, or only parts of words.
    pub is_weak: bool,
}

impl ToolIndex {
    /// Makes an index of the texts of all entries, as [`IndexedTool::text`] writes them.
    pub fn new(texts: &[String]) -> Self {
        let stemmer = WordStemmer::default();
        let (mut vocabulary, mut length) = (BTreeSet::new(), 0);
        for text in texts {
            let words = stemmer.tokenize(text);
            length += words.len();
            vocabulary.extend(words);
        }
        let embedder =
            EmbedderBuilder::<u32, WordStemmer>::with_avgdl(mean_length(length, texts.len()))
                .build();
        let (mut scorer, mut counts) = (Scorer::new(), HashMap::new());
        let mut of_empty_words: HashMap<String, Vec<u32>> = HashMap::new();
        for (number, text) in (0_u32..).zip(texts) {
            let name = text.lines().next().unwrap_or_default();
            if let Some(word) = stemmer.join_last_empty_words(name) {
                of_empty_words.entry(word).or_default().push(number);
            }
            let words = once_each(embedder.embed(text));
            words
                .indices()
                .for_each(|word| *counts.entry(*word).or_default() += 1);
            scorer.upsert(&number, words);
        }
        Self {
            embedder,
            scorer,
            counts,
            tools: texts.len(),
            stemmer,
            parts: WordParts::new(vocabulary),
            of_empty_words,
        }
    }

    /// Returns at most `most` entries that share a word with the question, the best first. If none does, these are the
    /// entries whose names end with its empty words, or that share parts of words with it, and all are weak.
    pub fn find(&self, question: &str, most: usize) -> Vec<ToolMatch> {
        let found = self.find_by_words(question, most);
        if !found.is_empty() {
            return found;
        }
        let numbers = match self.find_by_empty_words(question) {
            [] => self.find_by_parts(question, most),
            numbers => numbers.iter().take(most).copied().collect(),
        };
        let weak = numbers.into_iter().map(|number| ToolMatch {
            number: number.try_into().expect("an index of a list"),
            is_weak: true,
        });
        weak.collect()
    }

    /// Returns the entries whose names end with a question that has only empty words, such as `get_me`.
    fn find_by_empty_words(&self, question: &str) -> &[u32] {
        if !self.stemmer.has_only_empty_words(question) {
            return &[];
        }
        let asked = self.stemmer.join_last_empty_words(question);
        let named = asked.and_then(|word| self.of_empty_words.get(&word));
        named.map_or(&[], Vec::as_slice)
    }

    fn find_by_words(&self, question: &str, most: usize) -> Vec<ToolMatch> {
        let mut words = once_each(self.embedder.embed(question));
        // Its parts are there too, and a tool that has all parts is not a weak match for `getPrice`.
        let names = self.embedder.embed(&words::find_joined_names(question));
        let is_unknown_name = |word: &TokenEmbedding| {
            !self.counts.contains_key(&word.index)
                && names.iter().any(|name| name.index == word.index)
        };
        words.0.retain(|word| !is_unknown_name(word));
        self.keep_rarest(&mut words);
        let weight: f32 = words.iter().map(|word| self.rarity(word)).sum();
        let found = self.rank(&words, most).into_iter();
        let found = found.map(|number| ToolMatch {
            number: number.try_into().expect("an index of a list"),
            is_weak: self.shared_weight(number, &words) < STRONG_SHARE * weight,
        });
        found.collect()
    }

    /// Asks for the words of the index that are related to those of the question.
    fn find_by_parts(&self, question: &str, most: usize) -> Vec<u32> {
        let mut seen = HashSet::new();
        let asked = self.stemmer.tokenize(question).into_iter();
        let asked = asked.filter(|word| WordParts::has_parts(word) && seen.insert(word.clone()));
        let asked: Vec<String> = asked.take(WORDS_IN_PARTS_MAX).collect();
        let related = asked.iter().flat_map(|word| self.parts.related(word));
        let related = related.map(|word| TokenEmbedding {
            index: u32::embed(word),
            value: 1.0,
        });
        let mut words = once_each(Embedding(related.collect()));
        self.keep_rarest(&mut words);
        self.rank(&words, most)
    }

    /// Sorts words by the number of tools that have them, and keeps as many as one question may have.
    fn keep_rarest(&self, words: &mut Embedding) {
        words.sort_by_key(|word| self.counts.get(&word.index).copied().unwrap_or_default());
        words.truncate(WORDS_MAX);
    }

    /// Returns at most `most` of the entries that have some of these words, the best first. The rarest word is the first.
    fn rank(&self, words: &Embedding, most: usize) -> Vec<u32> {
        let mut found: Vec<(u32, f32)> = self
            .candidates(words)
            .into_iter()
            .filter_map(|number| Some((number, self.scorer.score(&number, words)?)))
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let numbers = found.into_iter().take(most).map(|(number, _)| number);
        numbers.collect()
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

    /// Returns the weight of the words that a tool shares with a question.
    fn shared_weight(&self, number: u32, words: &Embedding) -> f32 {
        let is_shared = |word: &&TokenEmbedding| {
            self.scorer
                .score(&number, &Embedding(vec![(*word).clone()]))
                .is_some_and(|score| score > 0.0)
        };
        let shared = words.iter().filter(is_shared);
        shared.map(|word| self.rarity(word)).sum()
    }

    /// Returns the weight of a word by the number of tools that have it, as BM25 counts it.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of tools are far below 2^24"
    )]
    fn rarity(&self, word: &TokenEmbedding) -> f32 {
        let count = self.counts.get(&word.index).copied().unwrap_or_default() as f32;
        ((self.tools as f32 - count + 0.5) / (count + 0.5)).ln_1p()
    }
}

/// Returns the mean length of texts in words.
#[expect(
    clippy::cast_precision_loss,
    reason = "the mean of so many words needs no more"
)]
fn mean_length(words: usize, texts: usize) -> f32 {
    words as f32 / texts.max(1) as f32
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

impl IndexedTool<'_> {
    /// Returns the text that is searched.
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
        let arguments = walk::members(self.input.get("properties"));
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
        add(self.contract, DESCRIPTION_CHARS_MAX, 1);
        let mut choices = Vec::new();
        collect_choices(self.input, CHOICE_DEPTH_MAX, &mut choices);
        for choice in choices {
            add(choice, CHOICE_CHARS_MAX, 1);
        }
        text
    }
}

/// Collects the texts that the `enum` and `const` keywords below a schema allow.
fn collect_choices<'t>(schema: &'t Value, depth: usize, choices: &mut Vec<&'t str>) {
    if depth == 0 {
        return;
    }
    match schema {
        Value::Object(members) => {
            for (keyword, value) in members {
                match (keyword.as_str(), value) {
                    ("enum", Value::Array(values)) => {
                        let room = CHOICES_MAX.saturating_sub(choices.len());
                        choices.extend(values.iter().filter_map(Value::as_str).take(room));
                    }
                    ("const", Value::String(value)) if choices.len() < CHOICES_MAX => {
                        choices.push(value);
                    }
                    ("default" | "examples", _) => {}
                    _ => collect_choices(value, depth - 1, choices),
                }
            }
        }
        Value::Array(schemas) => {
            for schema in schemas {
                collect_choices(schema, depth - 1, choices);
            }
        }
        _ => {}
    }
}
