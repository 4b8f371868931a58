//! Cursors of list tools, and states of questions: sealed, and bound to tool, major version, conditions and agent.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};

/// The bound on a text; longer ones are not sealed.
pub const TEXT_MAX_BYTES: usize = 32 << 10;
/// The bound on sealed texts: a longer one is refused before any work is done on it.
const SEALED_MAX_BYTES: usize = (NONCE_BYTES + TEXT_MAX_BYTES + TAG_BYTES).div_ceil(3) * 4;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
/// The text to which messages between nodes are bound. A list or a session is bound to a digest, which is longer.
const MESSAGE: &[u8] = b"a message between nodes";

/// Seals and opens cursors and states with one key (XChaCha20-Poly1305).
#[derive(Clone)]
pub struct CursorCipher {
    cipher: XChaCha20Poly1305,
}

/// Why a text is not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorSealError {
    /// It takes more than [`TEXT_MAX_BYTES`].
    TooLong,
    NoRandomness,
}

/// The list that a cursor belongs to; another list cannot use it.
pub struct CursorScope([u8; 32]);

impl CursorScope {
    /// Creates the binding of a list: its tool with the major version, the agent, and the conditions as text.
    pub fn new(tool: &str, major: u32, agent: &str, conditions: &str) -> Self {
        let mut digest = Sha256::new();
        for part in [tool, &major.to_string(), agent, conditions] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        Self(digest.finalize().into())
    }
}

impl CursorCipher {
    /// Creates a key for the life of the process.
    pub fn ephemeral() -> std::io::Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self::with_key(&key))
    }

    /// Uses the key of the state, so that cursors survive a restart and are shared by all processes.
    pub fn with_key(key: &[u8; 32]) -> Self {
        Self {
            cipher: XChaCha20Poly1305::new(Key::from_slice(key)),
        }
    }

    /// Seals a cursor: whatever is sealed can be opened.
    pub fn seal(&self, bound: &CursorScope, cursor: &str) -> Result<String, CursorSealError> {
        if cursor.len() > TEXT_MAX_BYTES {
            return Err(CursorSealError::TooLong);
        }
        let mut sealed = vec![0; NONCE_BYTES];
        getrandom::fill(&mut sealed).map_err(|_| CursorSealError::NoRandomness)?;
        let payload = Payload {
            msg: cursor.as_bytes(),
            aad: &bound.0,
        };
        let text = self
            .cipher
            .encrypt(XNonce::from_slice(&sealed), payload)
            .expect("a text of bounded length");
        sealed.extend_from_slice(&text);
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Seals a few bytes under a random number that remains readable: it is the nonce, so it belongs to only one text.
    pub fn seal_under(&self, number: u128, bound: &CursorScope, bytes: &[u8]) -> Vec<u8> {
        let payload = Payload {
            msg: bytes,
            aad: &bound.0,
        };
        self.cipher
            .encrypt(&numbered_nonce(number), payload)
            .expect("a few bytes")
    }

    /// Opens a text that was sealed under the number; `None` as for [`Self::open_sealed`].
    pub fn open_under(&self, number: u128, bound: &CursorScope, sealed: &[u8]) -> Option<Vec<u8>> {
        let payload = Payload {
            msg: sealed,
            aad: &bound.0,
        };
        self.cipher.decrypt(&numbered_nonce(number), payload).ok()
    }

    /// Seals a message for other nodes. `None`: the system has no random numbers.
    pub fn seal_message(&self, content: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = vec![0; NONCE_BYTES];
        getrandom::fill(&mut sealed).ok()?;
        let payload = Payload {
            msg: content,
            aad: MESSAGE,
        };
        let content = self.cipher.encrypt(XNonce::from_slice(&sealed), payload);
        sealed.extend_from_slice(&content.ok()?);
        Some(sealed)
    }

    /// Opens a message of another node; `None` for one that is foreign or altered.
    pub fn open_message(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, content) = sealed.split_at_checked(NONCE_BYTES)?;
        let payload = Payload {
            msg: content,
            aad: MESSAGE,
        };
        self.cipher.decrypt(XNonce::from_slice(nonce), payload).ok()
    }

    /// Opens a cursor; `None` for a foreign, altered or stale one, without revealing which.
    pub fn open_sealed(&self, bound: &CursorScope, sealed: &str) -> Option<String> {
        if sealed.len() > SEALED_MAX_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = bytes.split_at_checked(NONCE_BYTES)?;
        let payload = Payload {
            msg: text,
            aad: &bound.0,
        };
        String::from_utf8(
            self.cipher
                .decrypt(XNonce::from_slice(nonce), payload)
                .ok()?,
        )
        .ok()
    }
}

fn numbered_nonce(number: u128) -> XNonce {
    let mut nonce = XNonce::default();
    nonce[..size_of::<u128>()].copy_from_slice(&number.to_be_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_belongs_to_one_list_of_one_agent() {
        let cursors = CursorCipher::ephemeral().expect("randomness");
        let bound = CursorScope::new("list_airports", 1, "dana", "{}");
        let sealed = cursors.seal(&bound, "[\"AAL\"]").expect("sealed");
        assert_eq!(
            cursors.open_sealed(&bound, &sealed).as_deref(),
            Some("[\"AAL\"]")
        );
        for other in [
            CursorScope::new("list_cities", 1, "dana", "{}"),
            CursorScope::new("list_airports", 2, "dana", "{}"),
            CursorScope::new("list_airports", 1, "eve", "{}"),
            CursorScope::new("list_airports", 1, "dana", "{\"country\":\"DE\"}"),
        ] {
            assert_eq!(cursors.open_sealed(&other, &sealed), None);
        }
        let mut altered = sealed.into_bytes();
        altered[40] ^= 1;
        assert_eq!(
            cursors.open_sealed(&bound, std::str::from_utf8(&altered).expect("ascii")),
            None
        );
    }

    #[test]
    fn the_longest_text_that_is_sealed_can_be_opened() {
        let cursors = CursorCipher::ephemeral().expect("randomness");
        let bound = CursorScope::new("t", 1, "a", "");
        for length in TEXT_MAX_BYTES - 2..=TEXT_MAX_BYTES {
            let text = "x".repeat(length);
            let sealed = cursors.seal(&bound, &text).expect("sealed");
            assert_eq!(cursors.open_sealed(&bound, &sealed), Some(text), "{length}");
        }
        let longer = "x".repeat(TEXT_MAX_BYTES + 1);
        assert_eq!(cursors.seal(&bound, &longer), Err(CursorSealError::TooLong));
    }
}
