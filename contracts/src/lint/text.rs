//! Checks the effect of a text on its reader: hidden characters, escapes, orders to the model, unreadable blocks.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::Value;

use super::{
    CONTROL_CHARACTERS, ENCODED_BLOCK, HIDDEN_TEXT, LOOKALIKE_LETTERS, LintFindings, LintedTool,
    MODEL_ORDERS, wording::words,
};
use crate::name;

/// A block of base64 this long is not an identifier, digest or example.
const BLOCK_CHARACTERS: usize = 80;

/// Tags that pretend to come from the client, and the marks of chat templates.
const TAGS: &[&str] = &[
    "<important",
    "</important",
    "<system>",
    "</system>",
    "<instructions>",
    "</instructions>",
    "<hidden>",
    "<override>",
    "[system]",
    "[inst]",
    "<<sys>>",
    "<|im_start|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
];

/// Files that a poisoned description asks for, and no honest one.
const FILES: &[&str] = &[
    "id_rsa",
    "id_ed25519",
    "claude_desktop_config.json",
    ".cursor/mcp.json",
    "/etc/shadow",
];

/// Words in a row; `a|b` is either, `?` may be left out.
const ORDERS: &[&str] = &[
    "ignore|disregard|forget|override ?all|any|every ?of ?the|your|my|these|those previous|prior|above|earlier|preceding \
     instructions|instruction|prompts|prompt|rules|directions|guidelines",
    "ignore|disregard|forget ?all|any|the|your|its system|developer prompt|prompts|instructions|message|messages",
    "ignore|disregard|forget ?everything|anything what ?the|your operator|user|developer|administrator ?has said|says|told|wants|asked",
    "do|must|should not tell|inform|mention|reveal|disclose ?this|it|that|any ?of ?this ?to ?the|your user|users|human",
    "dont|never tell|inform|mention|reveal|disclose ?this|it|that|any ?of ?this ?to ?the|your user|users|human",
    "without telling|informing ?the|your user|users|human",
    "keep|hide|conceal this|it|that ?secret|hidden ?away from the|your user|users|human",
    "reveal|print|repeat|leak|output|send ?me ?us ?the|your ?full|entire|whole|own system prompt|instructions",
    "before|after|prior ?to using|calling|invoking|running any|all|each|every ?of ?the ?these other|others tool|tools|function|functions",
    "before|after|prior ?to every|each|any ?other tool|function ?call|use",
    "must|should|always call|use|invoke|run this|it ?tool ?first before ?using|calling|doing|answering anything|everything",
    "decode|unbase64 ?and ?then follow|execute|run|obey ?the|this|these ?following base64",
    "base64 ?encoded instructions|orders",
    "decode|read ?the|this|these ?following ?text|block|string ?below ?from ?as base64 and|then ?and ?then follow|execute|obey|do|run",
    "you are now ?in|a|an ?a|an|the unrestricted|jailbroken|dan",
];

/// Checks every text of the tool, wherever in its schemas it is.
pub(super) fn check(tool: &LintedTool<'_>, whole: &Value, findings: &mut LintFindings) {
    texts(whole, "", "", false, &mut |field, key, text| {
        let place = LintLocation {
            tool: Some(tool.name),
            field,
        };
        place.check_seen(text, findings);
        place.check_orders(text, findings);
        if matches!(key, "description" | "title") {
            place.check_block(text, findings);
        }
        if matches!(key, "description" | "title" | "name" | "") {
            place.check_letters(text, findings);
        }
    });
}

pub(super) fn check_words(tool: Option<&str>, text: &str, findings: &mut LintFindings) {
    let place = LintLocation { tool, field: "" };
    place.check_seen(text, findings);
    place.check_orders(text, findings);
    place.check_block(text, findings);
    place.check_letters(text, findings);
}

/// Visits every text. `found` gets the property that the text describes, the key of the text (empty if it is itself a key),
/// and the text.
fn texts(
    value: &Value,
    field: &str,
    key: &str,
    is_properties: bool,
    found: &mut dyn FnMut(&str, &str, &str),
) {
    match value {
        Value::String(text) => found(field, key, text),
        Value::Array(items) => items
            .iter()
            .for_each(|item| texts(item, field, key, false, found)),
        Value::Object(members) => {
            for (member, value) in members {
                let inner = if is_properties {
                    super::schema::joined(field, member)
                } else {
                    field.to_owned()
                };
                found(&inner, "", member);
                texts(
                    value,
                    &inner,
                    member,
                    !is_properties && member == "properties",
                    found,
                );
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

struct LintLocation<'p> {
    tool: Option<&'p str>,
    field: &'p str,
}

impl LintLocation<'_> {
    fn check_seen(&self, text: &str, findings: &mut LintFindings) {
        let tags: String = text.chars().filter_map(tagged).collect();
        let hidden = text
            .char_indices()
            .find(|(at, character)| is_hidden(text, *at, *character));
        let message = match (tags.is_empty(), hidden) {
            (false, _) => Some(format!(
                "hides a text in Unicode tags: {}",
                name::quoted(&tags)
            )),
            (true, Some((_, character))) => Some(format!(
                "has the invisible character U+{:04X}",
                u32::from(character)
            )),
            (true, None) if text.contains("<!--") => {
                Some("has an HTML comment, which is not shown where it is rendered".to_owned())
            }
            (true, None) => None,
        };
        if let Some(message) = message {
            findings.add(self.tool, self.field, HIDDEN_TEXT, message);
        }
        let control = text
            .chars()
            .find(|character| character.is_control() && !matches!(character, '\n' | '\t' | '\r'));
        if let Some(character) = control {
            let what = if matches!(character, '\u{1b}' | '\u{9b}') {
                "terminal escape"
            } else {
                "control character"
            };
            let message = format!("has the {what} U+{:04X}", u32::from(character));
            findings.add(self.tool, self.field, CONTROL_CHARACTERS, message);
        }
    }

    fn check_orders(&self, text: &str, findings: &mut LintFindings) {
        let small = text.to_lowercase();
        let named = TAGS
            .iter()
            .chain(FILES)
            .find(|mark| small.contains(*mark))
            .map(|mark| (*mark).to_owned());
        let words = words(text);
        let order = |words: &[String]| ORDERS.iter().find_map(|order| found_in(order, words));
        let order = named
            .or_else(|| order(&words))
            .or_else(|| decoded(text).find_map(|hidden| order(&self::words(&hidden))));
        if let Some(order) = order {
            let message = format!(
                "speaks to the model behind the user's back: {}",
                name::quoted(&order)
            );
            findings.add(self.tool, self.field, MODEL_ORDERS, message);
        }
    }

    fn check_block(&self, text: &str, findings: &mut LintFindings) {
        let is_inside = |character: char| {
            character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '=')
        };
        let block = text
            .split(|character| !is_inside(character))
            .find(|block| is_base64(block));
        if let Some(block) = block {
            let message = format!(
                "has {} characters of base64: {}",
                block.len(),
                name::quoted(&block[..24])
            );
            findings.add(self.tool, self.field, ENCODED_BLOCK, message);
        }
    }

    fn check_letters(&self, text: &str, findings: &mut LintFindings) {
        let word = text
            .split(|character: char| !character.is_alphanumeric())
            .find(|word| {
                word.chars().any(|letter| letter.is_ascii_alphabetic())
                    && word.chars().any(|letter| CYRILLIC.contains(&letter))
            });
        if let Some(word) = word {
            let message = format!("mixes Latin and Cyrillic letters in {}", name::quoted(word));
            findings.add(self.tool, self.field, LOOKALIKE_LETTERS, message);
        }
    }
}

/// Cyrillic letters that look like Latin ones.
const CYRILLIC: &[char] = &[
    'а', 'е', 'о', 'р', 'с', 'у', 'х', 'і', 'ј', 'ѕ', 'һ', 'А', 'В', 'Е', 'К', 'М', 'Н', 'О', 'Р',
    'С', 'Т', 'Х', 'І', 'Ј', 'Ѕ',
];

/// Returns the character that a tag character encodes.
fn tagged(character: char) -> Option<char> {
    match u32::from(character) {
        code @ 0xe0020..=0xe007e => char::from_u32(code - 0xe0000),
        _ => None,
    }
}

/// Joiners are part of how some scripts and emoji are written.
fn is_hidden(text: &str, at: usize, character: char) -> bool {
    if character.is_control() || !name::is_invisible(character) {
        return false;
    }
    let before = text[..at].chars().next_back();
    let after = text[at + character.len_utf8()..].chars().next();
    let joins = matches!(character, '\u{200c}' | '\u{200d}')
        && [before, after]
            .iter()
            .all(|near| near.is_some_and(|near| !near.is_ascii()));
    !joins
}

fn is_base64(block: &str) -> bool {
    let count = |is: fn(&u8) -> bool| block.bytes().filter(is).count();
    block.len() >= BLOCK_CHARACTERS
        && count(u8::is_ascii_uppercase) > 0
        && count(u8::is_ascii_lowercase) > 0
        && count(u8::is_ascii_digit) > 0
        // A long path has a slash every few letters.
        && count(|byte| *byte == b'/') * 12 < block.len()
}

/// The characters of a block that can hold an order.
const ORDER_CHARACTERS: usize = 16;

/// Returns the texts that blocks of base64 hold.
fn decoded(text: &str) -> impl Iterator<Item = String> {
    let is_inside = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '-' | '_')
    };
    let blocks = text.split(move |character| !is_inside(character));
    let engine = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    blocks
        .filter(|block| block.len() >= ORDER_CHARACTERS)
        .filter_map(move |block| {
            let block = block.replace('-', "+").replace('_', "/");
            String::from_utf8(engine.decode(block).ok()?).ok()
        })
}

/// Returns the words that follow the order, if there are any.
fn found_in(order: &str, words: &[String]) -> Option<String> {
    let steps: Vec<&str> = order.split_whitespace().collect();
    let length =
        (0..words.len()).find_map(|start| Some((start, matched(&steps, &words[start..])?)));
    length.map(|(start, count)| words[start..start + count].join(" "))
}

/// Returns how many words the steps match, from the first on.
fn matched(steps: &[&str], words: &[String]) -> Option<usize> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(0);
    };
    let (is_optional, step) = step
        .strip_prefix('?')
        .map_or((false, *step), |step| (true, step));
    let taken = words
        .first()
        .filter(|word| step.split('|').any(|known| known == word.as_str()));
    let further = taken
        .and_then(|_| matched(rest, &words[1..]))
        .map(|count| count + 1);
    further.or_else(|| matched(rest, words).filter(|_| is_optional))
}
