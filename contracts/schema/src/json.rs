//! The strict JSON reader, for arguments, guest records and contract files.
//!
//! Refuses duplicate keys, depth over 64, lone surrogates, integers outside ±(2^53−1) however they are written, and
//! numbers that are not finite. An integer has one form afterwards: `5.0` and `5e0` are read as `5`, so that what was
//! validated is what is sent.
//!
//! Others decide what numbers their tools take and answer: [`read_wide`] takes integers of 64 bits, and [`read_answer`]
//! passes over odd members.

mod mend;

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Containers inside each other; the outermost counts as one.
pub const DEPTH_MAX: usize = 64;
/// The depth bound for what the gateway stores: a schema with the contract around it. The text reader ends at 128.
const KEPT_DEPTH_MAX: usize = DEPTH_MAX + 32;
/// The most faults that are reported for one document. Further ones are skipped.
const FAULTS_MAX: usize = 32;
/// Bytes of the path of a fault. One that is longer ends at the last value around it that it reaches.
const PATH_MAX: usize = 1024;
/// 2^53−1: the largest integer that every JSON implementation reads alike.
pub const INTEGER_MAX: i64 = 9_007_199_254_740_991;

/// Why a text is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    /// JSON Pointer to the value at fault, as far as it is known, of at most [`PATH_MAX`] bytes.
    pub path: String,
    pub message: String,
    pub fault: JsonFault,
}

impl JsonError {
    /// Returns the message with the place of the value, unless that is the document itself.
    pub fn placed(&self) -> String {
        match self.path.is_empty() {
            true => self.message.clone(),
            false => format!("{} at {}", self.message, self.path),
        }
    }
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFault {
    /// The text is not JSON at all, or something follows it.
    Syntax,
    DuplicateKey,
    TooDeep,
    /// An integer outside ±(2^53−1) or a number too large for a double.
    NumberOutOfRange,
}

/// Reads one JSON document; the error is the first fault.
pub fn read(text: &str) -> Result<Value, JsonError> {
    read_quickly(text).ok_or_else(|| {
        let (_, mut faults) = read_all(text);
        if faults.is_empty() {
            syntax(String::new(), "not valid JSON".to_owned())
        } else {
            faults.remove(0)
        }
    })
}

/// Reads a document for a reader that takes integers of 64 bits. Whole numbers that are written with an exponent pass too;
/// an integer with more digits would be rounded and is refused.
pub fn read_wide(text: &str) -> Result<Value, JsonError> {
    let walk = JsonWalk {
        numbers: NumberRange::All,
        ..JsonWalk::quick()
    };
    match walk.read(text) {
        Some(value) if !walk.has_large_double.get() || !mend::has_long_integer(text) => Ok(value),
        _ => {
            let (_, mut faults) = read_all_wide(text);
            match faults.is_empty() {
                true => Err(syntax(String::new(), "not valid JSON".to_owned())),
                false => Err(faults.remove(0)),
            }
        }
    }
}

/// Reads as far as it goes, as [`read_all`] does, by the rules of [`read_wide`].
pub fn read_all_wide(text: &str) -> (Option<Value>, Vec<JsonError>) {
    JsonWalk {
        numbers: NumberRange::wide(text),
        ..JsonWalk::reporting(DEPTH_MAX)
    }
    .read_all(text)
}

/// Reads another server's answer, by the rules of [`read_wide`]. One odd member does not invalidate the answer: of two with
/// one name the last is kept, values that are nested too deep and numbers that are not finite become null, a lone surrogate
/// becomes U+FFFD, and a number with more than 64 bits is the nearest double. Each change is listed along with the value,
/// with its place.
pub fn read_answer(text: &str) -> Result<(Value, Vec<JsonError>), JsonError> {
    if let Ok(value) = read_wide(text) {
        return Ok((value, Vec::new()));
    }
    let mended = mend::mended(text);
    let read = JsonWalk {
        numbers: NumberRange::wide(text),
        is_lenient: true,
        ..JsonWalk::reporting(DEPTH_MAX)
    }
    .read_all(mended.as_deref().unwrap_or(text));
    match read {
        (Some(value), mut faults) => {
            if mended.is_some() {
                let message = "a number is not finite, or a text holds half a character";
                faults.push(JsonError {
                    path: String::new(),
                    message: message.to_owned(),
                    fault: JsonFault::NumberOutOfRange,
                });
            }
            Ok((value, faults))
        }
        (None, mut faults) if !faults.is_empty() => Err(faults.remove(0)),
        (None, _) => Err(syntax(String::new(), "not valid JSON".to_owned())),
    }
}

/// Writes numbers that are not finite as null, and lone surrogates as U+FFFD; `None` if there are none.
pub fn mended(text: &str) -> Option<String> {
    mend::mended(text)
}

/// The mark before the digits of an integer in [`with_marked_digits`]: a code point that is not a character.
pub const DIGITS_MARK: char = '\u{10fffe}';

/// Writes integers of more than 64 bits, which a reader of numbers would round, as texts after [`DIGITS_MARK`]; `None` if there
/// are none.
pub fn with_marked_digits(text: &str) -> Option<String> {
    mend::marked(text)
}

/// Reads what the gateway itself wrote around a document, which may be a few levels deeper than the document was.
pub fn read_kept(text: &str) -> Result<Value, JsonError> {
    let (value, faults) = read_to(text, KEPT_DEPTH_MAX);
    match (value, faults.into_iter().next()) {
        (_, Some(fault)) => Err(fault),
        (Some(value), None) => Ok(value),
        (None, None) => Err(syntax(String::new(), "not valid JSON".to_owned())),
    }
}

/// Reads as far as it goes and reports every fault, but no more than [`FAULTS_MAX`]. The value is present unless the text is not
/// JSON or too deep; of duplicate keys it has the last, and numbers out of range become the nearest double.
pub fn read_all(text: &str) -> (Option<Value>, Vec<JsonError>) {
    read_to(text, DEPTH_MAX)
}

fn read_to(text: &str, depth_max: usize) -> (Option<Value>, Vec<JsonError>) {
    JsonWalk::reporting(depth_max).read_all(text)
}

/// The value with every fault that we found; or the first such fault, if any, with the place and the format's own error.
pub type OtherRead<E> = Result<(Value, Vec<JsonError>), (Option<JsonError>, String, E)>;

/// Reads a document of another format by the same rules, as [`read_all`] does for JSON.
pub fn read_other<'de, D: Deserializer<'de>>(deserializer: D) -> OtherRead<D::Error> {
    let walk = JsonWalk::reporting(DEPTH_MAX);
    let outcome = JsonSeed {
        walk: &walk,
        depth: 0,
    }
    .deserialize(deserializer);
    let place = walk.pointer();
    let faults = walk.faults.into_inner();
    match outcome {
        Ok(value) => Ok((value, faults)),
        Err(error) => Err((faults.into_iter().next(), place, error)),
    }
}

/// Appends one reference token to a JSON Pointer.
pub fn push_pointer(pointer: &mut String, token: &str) {
    pointer.push('/');
    for character in token.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Returns the tokens of a JSON Pointer, unescaped.
pub fn pointer_tokens(pointer: &str) -> Vec<Cow<'_, str>> {
    let plain = |token: &str| token.replace("~1", "/").replace("~0", "~");
    let tokens = pointer.split('/').skip(1);
    tokens
        .map(|token| {
            if token.contains('~') {
                plain(token).into()
            } else {
                token.into()
            }
        })
        .collect()
}

/// Decodes the percent signs of a URI fragment, as JSON Pointers in `$ref` have them.
pub fn percent_decoded(fragment: &str) -> String {
    if !fragment.contains('%') {
        return fragment.to_owned();
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = (*first == b'%').then(|| tail.get(..2)).flatten();
        let byte = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Encodes a JSON Pointer as a URI fragment.
pub fn percent_encoded(pointer: &str) -> String {
    let mut encoded = String::with_capacity(pointer.len());
    for byte in pointer.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Returns the one form of a double: integers within ±(2^53−1) are integers, so never `1.0` or `-0`.
pub fn canonical(number: f64) -> Option<Number> {
    let limit = INTEGER_MAX as f64;
    if number.fract() == 0.0 && number.abs() <= limit {
        return Some(Number::from(number as i64));
    }
    Number::from_f64(number)
}

/// Returns `true` if every number in the value can be sent as it is.
pub fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => number
            .as_f64()
            .is_some_and(|number| number.abs() <= INTEGER_MAX as f64),
        Value::Array(values) => values.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
        _ => true,
    }
}

/// Returns how deep the value of a JSON text is nested.
pub fn depth(text: &str) -> usize {
    let (mut open, mut deepest, mut in_string) = (0_usize, 0, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => _ = bytes.next(),
            b'[' | b'{' if !in_string => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Reads a text as every call does: no places are kept, and the first fault ends it.
fn read_quickly(text: &str) -> Option<Value> {
    JsonWalk::quick().read(text)
}

fn syntax(path: String, message: String) -> JsonError {
    JsonError {
        path,
        message,
        fault: JsonFault::Syntax,
    }
}

/// The whole numbers that pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberRange {
    /// Numbers within ±(2^53−1).
    Safe,
    /// Integers of 64 bits.
    Integers,
    /// Larger ones too, such as `1e20`.
    All,
}

impl NumberRange {
    /// Returns those that pass in a text for a reader of integers of 64 bits: larger ones unless some are written with
    /// digits that a double does not hold.
    fn wide(text: &str) -> Self {
        match mend::has_long_integer(text) {
            true => Self::Integers,
            false => Self::All,
        }
    }
}

struct JsonWalk {
    /// The place of the reader; kept only if faults are to be reported.
    place: Option<RefCell<Vec<String>>>,
    faults: RefCell<Vec<JsonError>>,
    depth_max: usize,
    numbers: NumberRange,
    /// Whether values that are nested too deep are read as null instead of refused.
    is_lenient: bool,
    /// A whole number beyond ±(2^53−1) has passed that was read as a double.
    has_large_double: Cell<bool>,
}

impl JsonWalk {
    /// Keeps no places; the first fault ends the reading.
    fn quick() -> Self {
        Self {
            place: None,
            faults: RefCell::default(),
            depth_max: DEPTH_MAX,
            numbers: NumberRange::Safe,
            is_lenient: false,
            has_large_double: Cell::new(false),
        }
    }

    fn reporting(depth_max: usize) -> Self {
        Self {
            place: Some(RefCell::default()),
            depth_max,
            ..Self::quick()
        }
    }

    fn read(&self, text: &str) -> Option<Value> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let seed = JsonSeed {
            walk: self,
            depth: 0,
        };
        let value = seed.deserialize(&mut deserializer).ok()?;
        deserializer.end().ok()?;
        Some(value)
    }

    fn read_all(self, text: &str) -> (Option<Value>, Vec<JsonError>) {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let outcome = JsonSeed {
            walk: &self,
            depth: 0,
        }
        .deserialize(&mut deserializer);
        let place = self.pointer();
        let mut faults = self.faults.into_inner();
        faults.dedup();
        match outcome.and_then(|value| deserializer.end().map(|()| value)) {
            Ok(value) => (Some(value), faults),
            Err(_) if faults.iter().any(|fault| fault.fault == JsonFault::TooDeep) => {
                (None, faults)
            }
            Err(error) if error.to_string().starts_with("number out of range") => {
                let large = JsonError {
                    path: place,
                    message: "a number is too large".to_owned(),
                    fault: JsonFault::NumberOutOfRange,
                };
                let again = Self {
                    numbers: self.numbers,
                    is_lenient: self.is_lenient,
                    ..Self::reporting(self.depth_max)
                };
                let (value, mut faults) = match mend::clamped(text) {
                    Some(clamped) => again.read_all(&clamped),
                    None => (None, faults),
                };
                let is_same = |fault: &&mut JsonError| {
                    (&fault.path, fault.fault) == (&large.path, large.fault)
                };
                match faults.iter_mut().find(is_same) {
                    Some(fault) => *fault = large,
                    None => faults.push(large),
                }
                (value, faults)
            }
            Err(error) => {
                faults.push(syntax(place, error.to_string()));
                (None, faults)
            }
        }
    }

    /// Notes a fault and continues, or, when places are not kept, ends the reading.
    fn fault<E: serde::de::Error>(
        &self,
        fault: JsonFault,
        message: impl Into<String>,
    ) -> Result<(), E> {
        let message = message.into();
        let mut faults = self.faults.borrow_mut();
        if self.place.is_none() || (fault == JsonFault::TooDeep && !self.is_lenient) {
            faults.push(JsonError {
                path: self.pointer(),
                message: message.clone(),
                fault,
            });
            return Err(E::custom(message));
        }
        if faults.iter().filter(|other| other.fault == fault).count() < FAULTS_MAX {
            faults.push(JsonError {
                path: self.pointer(),
                message,
                fault,
            });
        }
        Ok(())
    }

    fn enter(&self, token: impl FnOnce() -> String) {
        if let Some(place) = &self.place {
            place.borrow_mut().push(token());
        }
    }

    fn leave(&self) {
        if let Some(place) = &self.place {
            place.borrow_mut().pop();
        }
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        if let Some(place) = &self.place {
            for token in place.borrow().iter() {
                if pointer.len() + 1 + token.len() > PATH_MAX {
                    break;
                }
                push_pointer(&mut pointer, token);
            }
        }
        pointer
    }
}

struct JsonSeed<'w> {
    walk: &'w JsonWalk,
    depth: usize,
}

impl JsonSeed<'_> {
    fn deeper<E: serde::de::Error>(&self) -> Result<Self, E> {
        let most = self.walk.depth_max;
        if self.depth >= most {
            self.walk.fault(
                JsonFault::TooDeep,
                format!("nested deeper than {most} levels"),
            )?;
        }
        Ok(Self {
            walk: self.walk,
            depth: self.depth + 1,
        })
    }

    fn out_of_range<E: serde::de::Error>(&self) -> Result<(), E> {
        let message = match self.walk.numbers {
            NumberRange::Safe => "an integer is outside ±(2^53−1)",
            NumberRange::Integers | NumberRange::All => "an integer has more than 64 bits",
        };
        self.walk.fault(JsonFault::NumberOutOfRange, message)
    }

    fn is_too_deep(&self) -> bool {
        self.walk.is_lenient && self.depth >= self.walk.depth_max
    }
}

impl<'de> DeserializeSeed<'de> for JsonSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonSeed<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value < -INTEGER_MAX && self.walk.numbers == NumberRange::Safe {
            self.out_of_range()?;
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value > INTEGER_MAX as u64 && self.walk.numbers == NumberRange::Safe {
            self.out_of_range()?;
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        if !value.is_finite() {
            self.walk
                .fault(JsonFault::NumberOutOfRange, "a number is not finite")?;
            let nearest = value.clamp(f64::MIN, f64::MAX);
            return Ok(Number::from_f64(nearest).map_or(Value::Null, Value::Number));
        }
        if value.fract() == 0.0 && value.abs() > INTEGER_MAX as f64 {
            self.walk.has_large_double.set(true);
            if self.walk.numbers != NumberRange::All {
                self.out_of_range()?;
            }
        }
        Ok(canonical(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        self.deeper::<A::Error>()?;
        if self.is_too_deep() {
            while access.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        loop {
            self.walk.enter(|| items.len().to_string());
            let Some(item) = access.next_element_seed(self.deeper()?)? else {
                self.walk.leave();
                return Ok(Value::Array(items));
            };
            self.walk.leave();
            items.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        // The depth is checked before the first member: an empty object at the last level is a level too.
        let mut map = Map::new();
        self.deeper::<A::Error>()?;
        if self.is_too_deep() {
            while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        while let Some(key) = access.next_key::<String>()? {
            self.walk.enter(|| key.clone());
            let value = access.next_value_seed(self.deeper()?)?;
            if map.contains_key(&key) {
                self.walk
                    .fault(JsonFault::DuplicateKey, "a key occurs twice")?;
            }
            self.walk.leave();
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (JsonFault, String) {
        let error = read(text).expect_err(text);
        (error.fault, error.path)
    }

    #[test]
    fn refusals_name_the_place() {
        let placed = |text: &str| read(text).expect_err(text).placed();
        assert_eq!(
            placed("9007199254740993"),
            "an integer is outside ±(2^53−1)"
        );
        assert_eq!(
            placed("[9007199254740993]"),
            "an integer is outside ±(2^53−1) at /0"
        );
        assert_eq!(
            fault(r#"{"a":1,"a":2}"#),
            (JsonFault::DuplicateKey, "/a".into())
        );
        assert_eq!(
            fault(r#"{"a":[{"b/c":1,"b/c":2}]}"#),
            (JsonFault::DuplicateKey, "/a/0/b~1c".into())
        );
        assert_eq!(
            fault(r#"{"a":1,"\u0061":2}"#),
            (JsonFault::DuplicateKey, "/a".into())
        );
        assert_eq!(
            fault(r#"{"n":9007199254740992}"#),
            (JsonFault::NumberOutOfRange, "/n".into())
        );
        assert_eq!(
            fault(r#"{"n":-9007199254740992}"#),
            (JsonFault::NumberOutOfRange, "/n".into())
        );
        assert_eq!(
            fault(r#"{"n":99999999999999999999}"#),
            (JsonFault::NumberOutOfRange, "/n".into())
        );
        assert_eq!(
            fault(r#"{"n":1e20}"#),
            (JsonFault::NumberOutOfRange, "/n".into())
        );
        assert_eq!(
            fault(r#"{"n":[1e400]}"#),
            (JsonFault::NumberOutOfRange, "/n/0".into())
        );
        assert_eq!(fault(r#"{"s":"\ud800"}"#).0, JsonFault::Syntax);
        assert_eq!(fault(r#"{"s":"\udc00\ud800"}"#).0, JsonFault::Syntax);
        assert_eq!(fault(r#"{"\ud800":1}"#).0, JsonFault::Syntax);
        for text in [
            "",
            "  ",
            "{",
            "[1,]",
            "{}x",
            "{} {}",
            "NaN",
            "Infinity",
            "01",
            "\"\u{1}\"",
            "{a:1}",
            "\u{feff}{}",
        ] {
            assert_eq!(fault(text).0, JsonFault::Syntax, "{text:?}");
        }
    }

    #[test]
    fn integers_of_64_bits_are_read_for_those_who_take_them() {
        for text in [
            r#"{"n":[9223372036854775807,-9223372036854775808,18446744073709551615]}"#,
            r#"{"n":9007199254740993}"#,
        ] {
            assert_eq!(read_wide(text).expect(text).to_string(), text);
        }
        assert_eq!(
            read_wide("[1e20,5.0]").expect("exact").to_string(),
            "[1e+20,5]"
        );
        for text in [
            r#"{"n":99999999999999999999}"#,
            r#"{"a":1e20,"n":-9223372036854775809}"#,
            r#"{"n":1e400}"#,
        ] {
            let error = read_wide(text).expect_err(text);
            assert_eq!(error.fault, JsonFault::NumberOutOfRange, "{text}");
        }
        assert_eq!(
            read_wide(r#"{"n":99999999999999999999}"#)
                .expect_err("long")
                .path,
            "/n"
        );
        assert_eq!(
            read_wide(r#"{"a":1,"a":2}"#).expect_err("twice").fault,
            JsonFault::DuplicateKey
        );
    }

    #[test]
    fn one_odd_member_does_not_cost_an_answer() {
        let deep = format!("{}1{}", "[".repeat(80), "]".repeat(80));
        for (odd, left, path) in [
            (r#""x":1,"x":2"#, r#""x":2"#, "/x"),
            (r#""x":-1e400"#, r#""x":null"#, ""),
            (r#""x":"a\ud800b""#, "\"x\":\"a\u{fffd}b\"", ""),
            (r#""x":99999999999999999999"#, r#""x":1e+20"#, "/x"),
        ] {
            let (value, odd) =
                read_answer(&format!("{{\"a\":1234567890123456789,{odd}}}")).expect(odd);
            assert_eq!(
                value.to_string(),
                format!("{{\"a\":1234567890123456789,{left}}}")
            );
            assert_eq!(odd.iter().map(|odd| &*odd.path).collect::<Vec<_>>(), [path]);
        }
        let (value, odd) = read_answer(&format!("{{\"a\":{deep},\"b\":1}}")).expect("deep");
        assert_eq!((&value["b"], odd.len()), (&Value::from(1), 1));
        assert!(read_answer("{\"a\":NaN}").is_err() && read_answer("{").is_err());
    }

    #[test]
    fn depth_is_bounded_exactly() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = |depth: usize| {
                let inner = if open == "[" { "[]" } else { "{}" };
                format!(
                    "{}{inner}{}",
                    open.repeat(depth - 1),
                    close.repeat(depth - 1)
                )
            };
            assert!(read(&nested(DEPTH_MAX)).is_ok());
            assert_eq!(fault(&nested(DEPTH_MAX + 1)).0, JsonFault::TooDeep);
            assert!(read(&nested(50_000)).is_err());
        }
    }

    #[test]
    fn integers_have_one_form() {
        let value =
            read(r#"[5.0, 5e0, -0, -0.0, 0.1, 9007199254740991, 0.30000000000000004, 1E2]"#)
                .expect("valid");
        assert_eq!(
            value.to_string(),
            "[5,5,0,0,0.1,9007199254740991,0.30000000000000004,100]"
        );
    }

    #[test]
    fn all_faults_are_told() {
        let (value, faults) = read_all(r#"{"a":1,"a":2,"b":9007199254740993,"c":true}"#);
        assert_eq!(faults.len(), 2);
        assert_eq!(value.expect("read")["a"], 2);
        let (value, faults) = read_all(r#"{"a":[-1e400,1e999],"b":9007199254740993,"c":"1e400"}"#);
        assert_eq!(
            value.expect("read")["a"],
            serde_json::json!([f64::MIN, f64::MAX])
        );
        let places: Vec<_> = faults.iter().map(|fault| &*fault.path).collect();
        assert_eq!(places, ["/a/0", "/a/1", "/b"]);
        assert_eq!(faults[0].message, "a number is too large");
    }

    #[test]
    fn what_is_told_of_many_faults_is_bounded() {
        let twice = r#""a":0,"#.repeat(100_000);
        let long = "x".repeat(1 << 20);
        let (value, faults) = read_all(&format!(
            r#"{{"{long}":{{{twice}"a":1}},"b":[{{{twice}"a":2}}]}}"#
        ));
        assert_eq!(value.expect("read")["b"][0]["a"], 2);
        assert_eq!(
            faults.iter().map(|fault| &*fault.path).collect::<Vec<_>>(),
            [""]
        );
        let numbers: Vec<_> = (0..1000).map(|_| "1e300").collect();
        let (_, faults) = read_all(&format!("[{}]", numbers.join(",")));
        assert_eq!(faults.len(), FAULTS_MAX);
        assert_eq!(faults[31].path, "/31");
    }
}
