//! Reads answers that are not in UTF-8, as RFC 8259 has it, but in a charset that the service names.

use weir_plugin_sdk::http;

/// Names of the charset of western Windows. That of ISO 8859-1 is read as its part, as browsers do.
const WESTERN: [&str; 6] = [
    "windows-1252",
    "cp1252",
    "iso-8859-1",
    "iso8859-1",
    "iso_8859-1",
    "latin1",
];

/// The characters of the bytes from 0x80 on that Windows has in the place of control characters.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Returns the body as text, if it is not UTF-8 and its type names its charset.
pub(super) fn decode_body(response: &http::Response) -> Option<String> {
    let kind = response.header("content-type")?.to_ascii_lowercase();
    let mut parameters = kind.split(';').skip(1).map(str::trim);
    let named = parameters.find_map(|parameter| parameter.strip_prefix("charset="))?;
    let is_western = WESTERN.contains(&named.trim_matches('"'));
    if !is_western || str::from_utf8(&response.body).is_ok() {
        return None;
    }
    let character = |byte: &u8| match byte {
        0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
        byte => char::from(*byte),
    };
    Some(response.body.iter().map(character).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_in_the_charset_that_is_named() {
        let read = |kind: &str, body: &[u8]| {
            decode_body(&http::Response {
                status: 200,
                headers: vec![("Content-Type".to_owned(), kind.to_owned())],
                body: body.to_vec(),
            })
        };
        let western = b"[\"M\xfcller\", \"9 \x80\"]";
        for kind in [
            "application/json; charset=ISO-8859-1",
            "application/json;a=b; charset=\"windows-1252\"",
        ] {
            assert_eq!(
                read(kind, western).as_deref(),
                Some("[\"Müller\", \"9 €\"]")
            );
            assert_eq!(read(kind, "[\"Müller\"]".as_bytes()), None);
        }
        for kind in ["application/json", "application/json; charset=utf-8", ""] {
            assert_eq!(read(kind, western), None);
        }
    }
}
