//! Looks at the text of a document, where the reader of numbers and strings cannot continue.

/// Digits of the largest integer of 64 bits.
const DIGITS_MIN: usize = 19;
/// The largest double.
const LARGEST: &str = "1.7976931348623157e308";

/// Returns `true` if an integer is written with all its digits and takes more than 64 bits.
pub(super) fn has_long_integer(text: &str) -> bool {
    LenientTokenizer(text)
        .any(|token| matches!(token, LenientToken::Number(number) if is_long(number)))
}

fn is_long(number: &str) -> bool {
    number.len() >= DIGITS_MIN
        && !number.contains(['.', 'e', 'E'])
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
}

/// Writes each integer of more than 64 bits as a text after [`super::DIGITS_MARK`]; `None` if there is no such integer, or if
/// a text has the mark already.
pub(super) fn marked(text: &str) -> Option<String> {
    let has_mark =
        || text.contains(super::DIGITS_MARK) || text.to_ascii_lowercase().contains("\\udbff");
    if !has_long_integer(text) || has_mark() {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for token in LenientTokenizer(text) {
        match token {
            LenientToken::Number(number) if is_long(number) => {
                out.push('"');
                out.push(super::DIGITS_MARK);
                out.push_str(number);
                out.push('"');
            }
            LenientToken::String(text) | LenientToken::Number(text) | LenientToken::Other(text) => {
                out.push_str(text)
            }
        }
    }
    Some(out)
}

/// Writes numbers that are too large for a double as the largest one; `None` if there are none.
pub(super) fn clamped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut is_clamped = false;
    for token in LenientTokenizer(text) {
        match token {
            LenientToken::Number(number) if is_infinite(number) => {
                out.push_str(if number.starts_with('-') { "-" } else { "" });
                out.push_str(LARGEST);
                is_clamped = true;
            }
            LenientToken::String(text) | LenientToken::Number(text) | LenientToken::Other(text) => {
                out.push_str(text)
            }
        }
    }
    is_clamped.then_some(out)
}

fn is_infinite(number: &str) -> bool {
    number.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// Writes numbers that are not finite as null, and lone surrogates as U+FFFD; `None` if there are none.
pub(super) fn mended(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut is_mended = false;
    for token in LenientTokenizer(text) {
        match token {
            LenientToken::Number(number) if is_infinite(number) => {
                out.push_str("null");
                is_mended = true;
            }
            LenientToken::String(string) => is_mended |= push_whole(string, &mut out),
            LenientToken::Number(text) | LenientToken::Other(text) => out.push_str(text),
        }
    }
    is_mended.then_some(out)
}

/// Appends a JSON string. Returns `true` if it contained half of a surrogate pair.
fn push_whole(string: &str, out: &mut String) -> bool {
    let (mut rest, mut is_mended) = (string, false);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let unit = |at: usize| {
            let digits = escape.get(at..)?.strip_prefix("\\u")?.get(..4)?;
            u32::from_str_radix(digits, 16).ok()
        };
        let (length, is_half) = match (unit(0), unit(6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, false),
            (Some(0xd800..=0xdfff), _) => (6, true),
            _ => (2, false),
        };
        match is_half {
            true => out.push('\u{fffd}'),
            false => out.push_str(escape.get(..length).unwrap_or(escape)),
        }
        is_mended |= is_half;
        rest = escape.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    is_mended
}

enum LenientToken<'t> {
    /// With its quotation marks.
    String(&'t str),
    Number(&'t str),
    Other(&'t str),
}

/// Cuts a text where its strings and numbers begin and end. It need not be JSON.
struct LenientTokenizer<'t>(&'t str);

impl<'t> Iterator for LenientTokenizer<'t> {
    type Item = LenientToken<'t>;

    fn next(&mut self) -> Option<LenientToken<'t>> {
        let begins_number = |byte: u8| byte == b'-' || byte.is_ascii_digit();
        let bytes = self.0.as_bytes();
        let first = *bytes.first()?;
        let end = |ends: &dyn Fn(u8) -> bool| {
            bytes
                .iter()
                .position(|byte| ends(*byte))
                .unwrap_or(bytes.len())
        };
        let make: fn(&'t str) -> LenientToken<'t>;
        let length = match first {
            b'"' => {
                make = LenientToken::String;
                string_length(bytes)
            }
            first if begins_number(first) => {
                make = LenientToken::Number;
                end(&|byte| !byte.is_ascii_digit() && !b"+-.eE".contains(&byte))
            }
            _ => {
                make = LenientToken::Other;
                end(&|byte| byte == b'"' || begins_number(byte))
            }
        };
        let (token, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(make(token))
    }
}

/// Returns the length of the string that a text begins with, or all of it if the string does not end.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}
