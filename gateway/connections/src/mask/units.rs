//! The units of a text: bytes as they are, escapes of JSON, of URLs and of HTML, and ends of lines within base64.

use std::ops::Range;

/// The shortest line of base64 that continues in the next one: programs break it after 60, 64 or 76 characters.
const LINE_MIN: usize = 60;
/// The longest name or number of an escape of HTML, with its semicolon.
const ENTITY_MAX: usize = 12;

/// Returns `true` if a text ends in a line of base64 that may continue in the next one.
pub(super) fn ends_line(text: &[u8]) -> bool {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let line = text.len().checked_sub(LINE_MIN).map(|at| &text[at..]);
    line.is_some_and(|line| line.iter().rev().all(is_base64))
}

pub(super) fn without_return(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\r").unwrap_or(text)
}

/// Decodes the escapes of one layer.
pub(super) fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut units = UnitScanner::new(text);
    let begins = |byte: &u8| matches!(byte, b'\\' | b'%' | b'&' | b'\n');
    while let Some(next) = text[units.at..].iter().position(begins) {
        // The end of a line may be two bytes.
        let plain = without_return(&text[units.at..units.at + next]);
        bytes.extend_from_slice(plain);
        units.at += plain.len();
        if let Some(unit) = units.next() {
            bytes.extend_from_slice(unit.bytes());
        }
    }
    bytes.extend_from_slice(&text[units.at..]);
    bytes
}

/// One byte, one escape of JSON, of a URL or of HTML, or the end of a line within base64, which has no bytes.
pub(super) struct TextUnit {
    pub(super) place: Range<usize>,
    bytes: [u8; 4],
    pub(super) length: usize,
}

impl TextUnit {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

pub(super) struct UnitScanner<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> UnitScanner<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the character of the escape at the place, and its length.
    fn escape(&self) -> Option<(char, usize)> {
        let byte = match self.text.get(self.at + 1)? {
            byte @ (b'"' | b'\\' | b'/') => *byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let first = self.hex(self.at + 2, 4)?;
                if let Some(character) = char::from_u32(first) {
                    return Some((character, 6));
                }
                let low = (self.text.get(self.at + 6..self.at + 8)? == b"\\u")
                    .then(|| self.hex(self.at + 8, 4))
                    .flatten()?;
                let pair = [u16::try_from(first).ok()?, u16::try_from(low).ok()?];
                let character = char::decode_utf16(pair).next()?.ok()?;
                return Some((character, 12));
            }
            _ => return None,
        };
        Some((char::from(byte), 2))
    }

    /// Returns the character of the escape of HTML at the place, and its length.
    fn entity(&self) -> Option<(char, usize)> {
        let text = &self.text[self.at + 1..];
        let length = text
            .iter()
            .take(ENTITY_MAX)
            .position(|byte| *byte == b';')?;
        let name = std::str::from_utf8(&text[..length]).ok()?;
        let character = match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let number = name.strip_prefix('#')?;
                let number = match number.strip_prefix(['x', 'X']) {
                    Some(digits) => u32::from_str_radix(digits, 16),
                    None => number.parse(),
                };
                char::from_u32(number.ok()?)?
            }
        };
        Some((character, length + 2))
    }

    /// Returns the length of the end of a line of base64 at the place.
    fn line_end(&self) -> Option<usize> {
        let length = match &self.text[self.at..] {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] => 1,
            _ => return None,
        };
        ends_line(&self.text[..self.at]).then_some(length)
    }

    fn hex(&self, at: usize, length: usize) -> Option<u32> {
        let digits = self.text.get(at..at + length)?;
        digits.iter().try_fold(0, |number, digit| {
            Some(number * 16 + char::from(*digit).to_digit(16)?)
        })
    }
}

impl Iterator for UnitScanner<'_> {
    type Item = TextUnit;

    fn next(&mut self) -> Option<TextUnit> {
        let byte = *self.text.get(self.at)?;
        let (mut bytes, start) = ([byte, 0, 0, 0], self.at);
        let (length, taken) = match byte {
            b'%' => match self.hex(start + 1, 2) {
                Some(decoded) => {
                    bytes[0] = decoded as u8;
                    (1, 3)
                }
                None => (1, 1),
            },
            b'\\' => match self.escape() {
                Some((character, taken)) => (character.encode_utf8(&mut bytes).len(), taken),
                None => (1, 1),
            },
            b'&' => match self.entity() {
                Some((character, taken)) => (character.encode_utf8(&mut bytes).len(), taken),
                None => (1, 1),
            },
            b'\r' | b'\n' => self.line_end().map_or((1, 1), |taken| (0, taken)),
            _ => (1, 1),
        };
        self.at += taken;
        Some(TextUnit {
            place: start..self.at,
            bytes,
            length,
        })
    }
}
