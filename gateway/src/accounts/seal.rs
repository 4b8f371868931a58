//! Seals the secrets of an account. A sealed text belongs to one place and cannot be opened for another.

use chacha20poly1305::{
    Key, KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use ring::hmac;
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

const NONCE_BYTES: usize = 24;

pub(super) struct SecretSeal {
    cipher: XChaCha20Poly1305,
    marking: hmac::Key,
}

impl SecretSeal {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        Self {
            cipher: XChaCha20Poly1305::new(Key::from_slice(key)),
            marking: hmac::Key::new(hmac::HMAC_SHA256, &digest(&["mark", &hex::encode(key)])),
        }
    }

    /// Returns a mark of a text that may hold a secret: it distinguishes the text from others, and reveals nothing else.
    pub(super) fn mark(&self, text: &str) -> String {
        format!(
            "hmac:{}",
            hex::encode(hmac::sign(&self.marking, text.as_bytes()))
        )
    }

    /// Seals a value for a place.
    pub(super) fn close(
        &self,
        place: &[&str],
        value: &impl Serialize,
    ) -> Result<Vec<u8>, getrandom::Error> {
        let mut sealed = vec![0; NONCE_BYTES];
        getrandom::fill(&mut sealed)?;
        let text = serde_json::to_vec(value).expect("plain data");
        let payload = Payload {
            msg: &text,
            aad: &digest(place),
        };
        let closed = self
            .cipher
            .encrypt(XNonce::from_slice(&sealed), payload)
            .expect("a text of bounded length");
        sealed.extend_from_slice(&closed);
        Ok(sealed)
    }

    /// Opens a value; `None` if it was sealed for another place or with another key, or was altered.
    pub(super) fn open<T: DeserializeOwned>(&self, place: &[&str], sealed: &[u8]) -> Option<T> {
        let (nonce, text) = sealed.split_at_checked(NONCE_BYTES)?;
        let payload = Payload {
            msg: text,
            aad: &digest(place),
        };
        let nonce = XNonce::from_slice(nonce);
        let text = self.cipher.decrypt(nonce, payload).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Returns a digest that is unique to these texts.
pub(super) fn digest(parts: &[&str]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_belongs_to_one_place() {
        let seal = SecretSeal::new(&[7; 32]);
        let sealed = seal.close(&["a", "b"], &"secret").expect("sealed");
        let opened = |seal: &SecretSeal, place: &[&str]| seal.open::<String>(place, &sealed);
        assert_eq!(opened(&seal, &["a", "b"]).as_deref(), Some("secret"));
        assert_eq!(opened(&seal, &["ab"]), None);
        assert_eq!(opened(&seal, &["b", "a"]), None);
        assert_eq!(opened(&SecretSeal::new(&[8; 32]), &["a", "b"]), None);
        assert_eq!(seal.open::<String>(&["a", "b"], &sealed[..20]), None);
        let plain = String::from_utf8_lossy(&sealed).into_owned();
        assert!(!plain.contains("secret"));
        let mark = seal.mark("a");
        assert_eq!(mark, seal.mark("a"));
        assert!(mark != seal.mark("b") && mark != SecretSeal::new(&[8; 32]).mark("a"));
    }
}
