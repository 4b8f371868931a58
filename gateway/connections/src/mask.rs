//! Masks secrets in texts of others: a credential that a service or a server repeats does not get into a log, an error or
//! an answer.
//!
//! Every secret that a configuration resolves is learned here ([`learn`]), and every text of others is masked here before it
//! leaves ([`mask`], [`masked`]). A secret is found as it is, with escapes of JSON, of URLs or of HTML, several layers of them
//! included, in hexadecimal digits, and inside base64, in one line or more. All but very long ones are also found in letters of one
//! case, in digits with separators, and inside base64 that holds them escaped or encoded. Values that are as short as words are
//! not secrets here ([`is_long_enough`]).

mod units;

use std::{
    borrow::Cow,
    ops::Range,
    path::Path,
    sync::{Arc, OnceLock},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::{
    Engine as _, alphabet,
    engine::{GeneralPurpose, GeneralPurposeConfig},
    prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD},
};
use memchr::{memchr, memchr_iter};
use parking_lot::RwLock;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use self::units::{UnitScanner, ends_line, unescaped, without_return};

/// The text in place of a secret.
const MASK: &str = "***";
const LENGTH_MIN: usize = 8;
/// Secrets that are known; beyond it the oldest is forgotten, which a reload has replaced long ago.
const SECRETS_MAX: usize = 1_024;
/// Layers of escapes that are looked through: JSON in a text of JSON, or a URL in it, has two.
const LAYERS_MAX: usize = 3;
/// The shortest value of a reference that is a secret without being named like one.
const UNNAMED_LENGTH_MIN: usize = 16;
/// The longest secret that is looked for in its rare forms, which take many times its length of memory.
const RARE_FORMS_LENGTH_MAX: usize = 256;
/// The bytes of all secrets that are looked for in these, the newest first: reloads have replaced the older ones.
const RARE_FORMS_BYTES_MAX: usize = 8_192;
/// Separators of the bytes in a dump of hexadecimal digits.
const DUMP_SEPARATORS: [&str; 3] = [":", " ", "-"];
/// Characters that a URL escapes wherever they are.
const ESCAPED_IN_URLS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Words of a header's or a variable's name that say that its value is a secret.
const SECRET_WORDS: [&str; 17] = [
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "dsn",
    "jwt",
    "pass",
    "passphrase",
    "passwd",
    "pat",
    "pwd",
    "secret",
    "secrets",
    "token",
];
/// Passwords and settings that are words, which are common in names and texts.
const COMMON_WORDS: [&str; 13] = [
    "anonymous",
    "changeit",
    "changeme",
    "development",
    "disabled",
    "optional",
    "passw0rd",
    "password",
    "postgres",
    "postgresql",
    "production",
    "required",
    "username",
];
/// Last words of a name whose value describes a secret instead of being one.
const DESCRIBING_WORDS: [&str; 14] = [
    "audience", "domain", "endpoint", "issuer", "method", "mode", "model", "name", "path",
    "provider", "scope", "type", "uri", "url",
];
/// Parts of such words.
const SECRET_PARTS: [&str; 3] = ["password", "secret", "token"];
/// Schemes of an `Authorization` header whose credentials are one word.
const SCHEMES: [&str; 5] = ["apikey", "basic", "bearer", "key", "token"];

static KNOWN: RwLock<KnownSecrets> = RwLock::new(KnownSecrets {
    secrets: Vec::new(),
    mask: OnceLock::new(),
});

struct KnownSecrets {
    /// The oldest first.
    secrets: Vec<String>,
    /// Made when a text is first masked.
    mask: OnceLock<Arc<SecretMask>>,
}

/// Finds some secrets in texts.
#[derive(Default)]
pub struct SecretMask {
    finder: Option<AhoCorasick>,
    /// A secret contains a character that JSON always escapes.
    is_escaped: bool,
    /// A secret contains a character that HTML escapes by a name.
    is_named: bool,
}

/// Learns a secret: it is masked from now on in every text that leaves.
pub fn learn(secret: &str) {
    learn_parts(parts(secret));
}

/// Learns a value that is written where it is used, if its name marks it as a secret; from any other value, the secrets of a URL.
pub fn learn_named(name: &str, value: &str) {
    if is_secret_name(name) {
        learn(value);
    } else {
        learn_url(value);
    }
}

/// Learns the value of a reference, such as `env:NAME`, in the header or variable `name`. If neither name marks it as a
/// secret, only a long value with digits and without blanks, `@` and `/` is one: any other may be a word, an address, a path
/// or a URL.
pub fn learn_referred(name: &str, reference: &str, value: &str) {
    let is_named = is_secret_name(name) || is_secret_name(reference);
    let is_unknown = value.len() >= UNNAMED_LENGTH_MIN
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && !value.contains([' ', '@', '/'])
        && !Path::new(value).exists();
    if is_named || is_unknown {
        learn(value);
    } else {
        learn_url(value);
    }
}

/// Learns the password of a URL, and what its query holds under the names of secrets.
pub fn learn_url(url: &str) {
    learn_parts(url_parts(url));
}

/// Secrets of one request. They are forgotten when this is dropped, except those that were known before.
pub struct PassingSecrets(Vec<String>);

impl PassingSecrets {
    /// Notes the values that a request is about to use.
    pub fn note<'v>(values: impl Iterator<Item = &'v str>) -> Self {
        let mut new: Vec<String> = values
            .flat_map(|value| [parts(value), url_parts(value)].concat())
            .collect();
        let known = KNOWN.read();
        new.retain(|part| !known.secrets.contains(part));
        Self(new)
    }
}

impl Drop for PassingSecrets {
    fn drop(&mut self) {
        let mut known = KNOWN.write();
        known.secrets.retain(|secret| !self.0.contains(secret));
        known.mask = OnceLock::new();
    }
}

fn learn_parts(mut parts: Vec<String>) {
    parts.retain(|part| is_long_enough(part));
    let is_known = |known: &KnownSecrets| parts.iter().all(|part| known.secrets.contains(part));
    if is_known(&KNOWN.read()) {
        return;
    }
    let mut known = KNOWN.write();
    for part in parts {
        if !known.secrets.contains(&part) {
            known.secrets.push(part);
        }
    }
    let over = known.secrets.len().saturating_sub(SECRETS_MAX);
    known.secrets.drain(..over);
    known.mask = OnceLock::new();
}

/// Masks every known secret in a text.
pub fn mask(text: &str) -> Cow<'_, str> {
    known().mask(text)
}

/// Masks every known secret in a text. A text without secrets is returned unchanged.
pub fn masked(text: String) -> String {
    match mask(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(masked) => masked,
    }
}

fn known() -> Arc<SecretMask> {
    let known = KNOWN.read();
    let secrets = known.secrets.iter().map(String::as_str);
    let mask = || Arc::new(SecretMask::with_rare_forms(secrets));
    known.mask.get_or_init(mask).clone()
}

/// Returns `true` if a value is masked at all. A shorter one, or a common word, would change texts that only look like it,
/// and digits alone would change numbers.
fn is_long_enough(secret: &str) -> bool {
    secret.len() >= LENGTH_MIN
        && !secret.bytes().all(|byte| byte.is_ascii_digit())
        && !COMMON_WORDS.contains(&&*secret.to_ascii_lowercase())
}

/// Returns `true` if what has this name, such as a column or a header, is likely a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|character: char| !character.is_ascii_alphanumeric());
    let last = words.clone().next_back();
    // The folder of a file may mark it as a secret, whatever its name ends with.
    let is_file = name.starts_with("file:");
    if !is_file && last.is_some_and(|last| DESCRIBING_WORDS.contains(&last)) {
        return false;
    }
    (name.ends_with("key") && !name.ends_with("partition-key"))
        || SECRET_PARTS.iter().any(|part| name.contains(part))
        || words.any(|word| SECRET_WORDS.contains(&word))
}

/// Returns the secret parts of a resolved value: the value itself, what follows the scheme of an `Authorization` header, the
/// credentials that base64 holds, and the parts of a URL, each also as it reads without the encoding of URLs.
fn parts(value: &str) -> Vec<String> {
    let value = value.trim();
    let mut parts = url_parts(value);
    let credentials = match value.split_once(' ') {
        Some((scheme, rest)) if SCHEMES.contains(&&*scheme.to_ascii_lowercase()) => rest.trim(),
        _ => value,
    };
    if let Some(pair) = basic(credentials) {
        let (_, password) = pair.split_once(':').unwrap_or_default();
        parts.push(password.to_owned());
        parts.push(pair);
    }
    parts.push(credentials.to_owned());
    parts.extend(decoded(credentials));
    parts.dedup();
    parts
}

fn url_parts(value: &str) -> Vec<String> {
    let Some((_, rest)) = value.split_once("://") else {
        return Vec::new();
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let user = place
        .split('/')
        .next()
        .and_then(|host| host.rsplit_once('@'));
    let password = user.and_then(|(user, _)| user.split_once(':'));
    let values = query.split('&').filter_map(|pair| pair.split_once('='));
    let values = values.filter(|(name, _)| is_secret_name(name));
    let found = password.into_iter().chain(values);
    found.flat_map(|(_, encoded)| decoded(encoded)).collect()
}

/// Returns what a service may read if this is in a URL: in a web form, a plus is a blank.
fn decoded(encoded: &str) -> [String; 2] {
    [encoded, encoded.replace('+', " ").as_str()].map(|text| {
        let read = percent_encoding::percent_decode_str(text);
        read.decode_utf8_lossy().into_owned()
    })
}

/// Returns the credentials of `Basic`: a name and a password that are encoded together.
fn basic(value: &str) -> Option<String> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent),
    );
    let pair = String::from_utf8(LENIENT.decode(value).ok()?).ok()?;
    (pair.contains(':') && !pair.contains(char::is_control)).then_some(pair)
}

/// Returns the forms in which a secret is found: as it is, in hexadecimal digits, as a form of the web writes its blanks, and
/// inside base64.
fn forms(secret: &str) -> Vec<String> {
    let lower: String = secret.bytes().map(hex).collect();
    let upper = lower.to_ascii_uppercase();
    let mut forms = vec![secret.to_owned(), lower, upper];
    if secret.contains(' ') {
        forms.push(secret.replace(' ', "+"));
    }
    forms.extend(inside_base64(secret));
    forms
}

/// Returns the forms that few services write.
fn rare_forms(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    let bytes: Vec<String> = secret.bytes().map(hex).collect();
    for separator in DUMP_SEPARATORS {
        let dump = bytes.join(separator);
        forms.extend([dump.to_ascii_uppercase(), dump]);
    }
    // A shorter one, or one of letters alone, may be written in another case without being meant.
    if secret.len() >= UNNAMED_LENGTH_MIN && secret.bytes().any(|byte| byte.is_ascii_digit()) {
        forms.extend([secret.to_ascii_lowercase(), secret.to_ascii_uppercase()]);
    }
    let json = serde_json::Value::from(secret).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let url = utf8_percent_encode(secret, ESCAPED_IN_URLS).to_string();
    for escaped in [json, url] {
        if escaped != secret {
            forms.extend(inside_base64(&escaped));
        }
    }
    for encoded in inside_base64(secret) {
        forms.extend(inside_base64(&encoded));
    }
    forms
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}")
}

/// Returns what stands for a text inside base64, where its first byte is the first, second or third of a group. Characters
/// that its neighbours decide are left out.
fn inside_base64(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for before in 0..3 {
        let bytes = [&[0; 2][..before], text.as_bytes()].concat();
        let (start, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for encoded in [
            BASE64_STANDARD_NO_PAD.encode(&bytes),
            BASE64_URL_SAFE_NO_PAD.encode(&bytes),
        ] {
            found.push(encoded[start..end].to_owned());
        }
    }
    found.dedup();
    found
}

impl SecretMask {
    /// Prepares the search for secrets, such as one token. Those that are too short are left out, and their rare forms.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let secrets = secrets.into_iter().filter(|secret| is_long_enough(secret));
        let forms: Vec<String> = secrets.flat_map(forms).collect();
        Self::from_forms(&forms)
    }

    /// Prepares the search for secrets in their rare forms too. The oldest secret comes first.
    fn with_rare_forms<'s>(secrets: impl Iterator<Item = &'s str>) -> Self {
        let secrets: Vec<&str> = secrets.filter(|secret| is_long_enough(secret)).collect();
        let mut forms: Vec<String> = secrets.iter().copied().flat_map(forms).collect();
        let mut left = RARE_FORMS_BYTES_MAX;
        let is_short = |secret: &&str| secret.len() <= RARE_FORMS_LENGTH_MAX;
        let newest = secrets.into_iter().rev().filter(is_short);
        let newest = newest.take_while(|secret| {
            left = left.saturating_sub(secret.len());
            left > 0
        });
        forms.extend(newest.flat_map(rare_forms));
        Self::from_forms(&forms)
    }

    fn from_forms(forms: &[String]) -> Self {
        if forms.is_empty() {
            return Self::default();
        }
        let finder = AhoCorasick::builder()
            // A DFA takes 512 bytes for each byte of a secret.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(forms);
        let always = |byte: u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        Self {
            finder: Some(finder.expect("secrets are few and short")),
            is_escaped: forms.iter().any(|form| form.bytes().any(always)),
            is_named: forms
                .iter()
                .any(|form| form.contains(['&', '<', '>', '"', '\''])),
        }
    }

    /// Replaces every secret in a text. JSON remains JSON: an escape is replaced as a whole or not at all.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(finder) = &self.finder else {
            return Cow::Borrowed(text);
        };
        let found = self.found(finder, text.as_bytes(), LAYERS_MAX);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = Vec::with_capacity(text.len());
        let mut ranges = merged(found).into_iter().peekable();
        for unit in UnitScanner::new(text.as_bytes()) {
            while ranges
                .next_if(|range| range.end <= unit.place.start)
                .is_some()
            {}
            match ranges.peek() {
                Some(range) if range.start < unit.place.end => {
                    if range.start >= unit.place.start {
                        masked.extend_from_slice(MASK.as_bytes());
                    }
                }
                _ => masked.extend_from_slice(&text.as_bytes()[unit.place]),
            }
        }
        let masked = String::from_utf8(masked);
        Cow::Owned(
            masked.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }
}

impl SecretMask {
    /// Returns the places of secrets in a text and beneath its escapes.
    fn found(&self, finder: &AhoCorasick, text: &[u8], layers: usize) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> =
            finder.find_iter(text).map(|found| found.range()).collect();
        if layers == 0 || !self.may_hide(text) {
            return found;
        }
        let bytes = unescaped(text);
        if bytes.len() == text.len() {
            return found; // nothing was escaped
        }
        let inner = self.found(finder, &bytes, layers - 1);
        if inner.is_empty() {
            return found;
        }
        // The place of each byte's unit is needed only now that there is a secret.
        let places: Vec<Range<usize>> = UnitScanner::new(text)
            .flat_map(|unit| std::iter::repeat_n(unit.place.clone(), unit.length))
            .collect();
        let outer = |range: &Range<usize>| {
            let (first, last) = (range.start, range.end.checked_sub(1)?);
            Some(places.get(first)?.start..places.get(last)?.end)
        };
        found.extend(inner.iter().filter_map(outer));
        found
    }

    /// Returns `true` if a character of a secret may be escaped in a text, or a line end be in it. Most escapes are of quotes and
    /// line ends, which most secrets do not have, and most ampersands are of queries.
    fn may_hide(&self, text: &[u8]) -> bool {
        let mut backslashes = memchr_iter(b'\\', text);
        let is_of_any = |at: usize| matches!(text.get(at + 1), Some(b'u' | b'/'));
        let is_entity = |at: usize| text.get(at + 1) == Some(&b'#') || self.is_named;
        memchr(b'%', text).is_some()
            || backslashes.any(|at| self.is_escaped || is_of_any(at) || ends_line(&text[..at]))
            || memchr_iter(b'&', text).any(is_entity)
            || memchr_iter(b'\n', text).any(|at| ends_line(without_return(&text[..at])))
    }
}

fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked_by(secrets: &[&str], text: &str) -> String {
        let parts: Vec<String> = secrets.iter().flat_map(|secret| parts(secret)).collect();
        SecretMask::with_rare_forms(parts.iter().map(String::as_str))
            .mask(text)
            .into_owned()
    }

    #[test]
    fn a_secret_is_found_in_every_form_that_others_write_it_in() {
        const SECRET: &str = "sk/live+7f=\"ü%q";
        let json = serde_json::to_string(SECRET).expect("a text");
        let in_json = json.trim_matches('"');
        let url = percent_encoding::utf8_percent_encode(SECRET, percent_encoding::NON_ALPHANUMERIC)
            .to_string();
        let twice = serde_json::to_string(&format!("{{\"a\":{json}}}")).expect("a text");
        let ascii: String = SECRET
            .encode_utf16()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect();
        let dump: Vec<String> = SECRET.bytes().map(hex).collect();
        let hex = dump.concat();
        let forms = [
            SECRET.to_owned(),
            in_json.to_owned(),
            in_json.replace('/', "\\/"),
            ascii,
            url.to_lowercase(),
            url.replace("%2F", "/"),
            SECRET.replace('"', "&quot;"),
            SECRET.replace('"', "&#34;").replace('/', "&#x2F;"),
            SECRET.replace('ü', "&#252;").replace('+', "&#X2b;"),
            in_json
                .replace("\\\"", "\\u0026quot;")
                .replace('/', "\\u0026#47;"),
            SECRET.replace('"', "%26quot%3B"),
            hex.to_ascii_uppercase(),
            hex,
            dump.join(":"),
            dump.join(" ").to_ascii_uppercase(),
            SECRET.to_ascii_uppercase(),
            twice.trim_matches('"').to_owned(),
        ];
        for form in forms {
            let masked = masked_by(&[&format!("Bearer {SECRET}")], &format!("a {form} b"));
            assert!(
                masked == "a *** b" || masked == "a {\\\"a\\\":\\\"***\\\"} b",
                "{form}: {masked}"
            );
        }
        for before in ["", "u:", "me:", "you:"] {
            let plain = format!("{before}{SECRET}");
            for encoded in [
                BASE64_STANDARD_NO_PAD.encode(&plain),
                BASE64_URL_SAFE_NO_PAD.encode(&plain),
            ] {
                let masked = masked_by(&[SECRET], &encoded);
                assert!(
                    masked.contains(MASK) && masked.len() < 12,
                    "{encoded}: {masked}"
                );
            }
        }
    }

    #[test]
    fn a_secret_is_found_in_base64_of_its_escapes_and_of_base64() {
        const SECRET: &str = "sk/live+7f=\"\\q&1";
        let json = serde_json::json!({ "Authorization": SECRET }).to_string();
        let url = format!("q={}", utf8_percent_encode(SECRET, ESCAPED_IN_URLS));
        let basic = format!(
            "auth:{}",
            BASE64_STANDARD_NO_PAD.encode(format!("me:{SECRET}"))
        );
        for plain in [json, url, basic] {
            for before in ["", "u", "me"] {
                let encoded = BASE64_STANDARD_NO_PAD.encode(format!("{before}{plain}"));
                let masked = masked_by(&[SECRET], &encoded);
                assert!(masked.contains(MASK), "{before}{plain}: {masked}");
            }
        }
    }

    /// Reloads add secrets, and the rare forms of one take a hundred times its length of memory.
    #[test]
    fn of_many_secrets_the_newest_are_found_in_rare_forms() {
        let secrets = (0..SECRETS_MAX).map(|number| format!("sk-{number:061}"));
        let secrets: Vec<String> = secrets.collect();
        let mask = SecretMask::with_rare_forms(secrets.iter().map(String::as_str));
        let forms = mask.finder.as_ref().expect("secrets").patterns_len();
        assert!(forms < 12_000, "{forms}");
        let (oldest, newest) = (&secrets[0], &secrets[SECRETS_MAX - 1]);
        let dump: Vec<String> = newest.bytes().map(hex).collect();
        for text in [oldest, newest, &dump.join(":")] {
            assert_eq!(mask.mask(text), MASK);
        }
    }

    #[test]
    fn a_secret_is_found_across_the_lines_of_base64() {
        const SECRET: &str = "sk-live-7f+22/and-so-on";
        for line in [60, 64, 76] {
            for before in 30..60 {
                let plain = format!("{}{SECRET}{}", "k".repeat(before), "z".repeat(60));
                let encoded = BASE64_STANDARD_NO_PAD.encode(plain);
                let lines: Vec<&str> = encoded
                    .as_bytes()
                    .chunks(line)
                    .map(|line| std::str::from_utf8(line).expect("ASCII"))
                    .collect();
                for end in ["\n", "\r\n", "\\n", "\\r\\n"] {
                    let masked = masked_by(&[SECRET], &format!("a\n{}{end}b", lines.join(end)));
                    let joined = masked.replace(end, "");
                    assert!(joined.contains(MASK), "{masked}");
                    for form in forms(SECRET) {
                        assert!(!joined.contains(&form[..8]), "{form}: {masked}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_blank_in_a_form_of_the_web_is_a_plus() {
        for text in ["q=correct+horse%21&b=1", "q=correct%20horse!&b=1"] {
            assert_eq!(masked_by(&["correct horse!"], text), "q=***&b=1");
        }
    }

    #[test]
    fn parts_of_credentials_are_secrets_too() {
        let basic = "Basic ZGFuYTpjb3JyZWN0IGhvcnNl";
        let read = masked_by(&[basic], "dana has correct horse");
        assert_eq!(read, "dana has ***");
        let url = "postgresql://dana:s%40crets9@host/db?sslmode=require&token=abcd1234";
        assert_eq!(
            masked_by(&[url], "s@crets9, abcd1234 and require"),
            "***, *** and require"
        );
        // The key is in a URL, and the service repeats what it reads there.
        let read = masked_by(&["k+ey%2F=live"], "k ey/=live, k+ey/=live, k+ey%2F=live");
        assert_eq!(read, "***, ***, ***");
    }

    #[test]
    fn names_say_what_is_a_secret() {
        for name in [
            "Authorization",
            "X-Api-Key",
            "GITHUB_TOKEN",
            "apiKey",
            "env:DB_PASS",
            "file:/run/secrets/x",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "X-Tenant",
            "GIT_AUTHOR_NAME",
            "AWS_REGION",
            "PATH",
            "KEYBOARD",
            "env:HOST",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn short_values_and_numbers_are_no_secrets() {
        for value in ["secret", "hunter2", "12345678901234567890", "on", ""] {
            let text = format!("x {value} y");
            assert_eq!(masked_by(&[value], &text), text);
        }
    }

    #[test]
    fn what_is_masked_stays_json() {
        for (secret, text) in [
            ("nabcdefgh", r#"{"a":"\nabcdefgh"}"#),
            ("0041abcdefgh", r#"{"a":"\u0041abcdefgh"}"#),
            ("abcdefgh\\", r#"{"a":"abcdefgh\\"}"#),
            (
                "abcdefgh",
                r#"{"a":"abcdefghabcdefgh","b":["abcdefgh"],"abcdefgh":1}"#,
            ),
        ] {
            let masked = masked_by(&[secret], text);
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(&masked);
            assert!(parsed.is_ok() && masked.contains(MASK), "{masked}");
        }
    }

    #[test]
    fn texts_without_a_secret_are_lent_as_they_are() {
        let mask = SecretMask::new(["abcdefgh"]);
        for text in [
            "",
            "plain",
            r#"{"a":"\n%20\u00e9"}"#,
            "a\r\nb\n",
            "%",
            "\\",
            "\\u12",
            "\\ud800x",
        ] {
            assert!(matches!(mask.mask(text), Cow::Borrowed(same) if same == text));
        }
        assert!(matches!(
            SecretMask::default().mask("abcdefgh"),
            Cow::Borrowed(_)
        ));
    }
}
