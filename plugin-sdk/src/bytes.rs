//! Bytes as JSON carries them: base64.

/// Bytes that travel as base64 (RFC 4648, with padding). A `Vec<u8>` would be a list of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bytes(pub Vec<u8>);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl Bytes {
    /// Returns the bytes as base64.
    pub fn to_base64(&self) -> String {
        let mut out = String::with_capacity(self.0.len().div_ceil(3) * 4);
        for chunk in self.0.chunks(3) {
            let [first, second, third] =
                [0, 1, 2].map(|at| u32::from(chunk.get(at).copied().unwrap_or(0)));
            let bits = first << 16 | second << 8 | third;
            for place in 0..4 {
                let digit = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63];
                out.push(if place <= chunk.len() {
                    char::from(digit)
                } else {
                    '='
                });
            }
        }
        out
    }

    /// Reads base64; `None` if the text is not base64.
    pub fn from_base64(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if !bytes.len().is_multiple_of(4) {
            return None;
        }
        let digits = text.trim_end_matches('=').len();
        if bytes.len() - digits > 2 {
            return None;
        }
        let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
        for chunk in bytes[..digits].chunks(4) {
            let mut bits = 0;
            for digit in chunk {
                bits = bits << 6 | ALPHABET.iter().position(|known| known == digit)? as u32;
            }
            bits <<= 6 * (4 - chunk.len());
            out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
        }
        Some(Self(out))
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let known = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let encoded = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        for (text, base64) in known.into_iter().zip(encoded) {
            let bytes = Bytes::from(text.as_bytes());
            assert_eq!(bytes.to_base64(), base64);
            assert_eq!(Bytes::from_base64(base64), Some(bytes));
        }
        for wrong in ["Z", "Zg=", "Z===", "Zm9v!m9v", "====", "Zg==Zg==", "Zm9vé"] {
            assert_eq!(Bytes::from_base64(wrong), None, "{wrong}");
        }
    }
}
