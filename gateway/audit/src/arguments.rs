//! Computes a digest of arguments, which shows whether two calls had the same, and nothing else about them.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The key for digests of arguments. Each installation has its own: an amount or a name could be guessed from a plain
/// digest by trying them all.
#[derive(Clone)]
pub struct ArgumentsKey(Hmac<Sha256>);

impl ArgumentsKey {
    /// Takes the key of the state. It is not in the trail, since a reader of the trail need not have it.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes a key of any length"))
    }

    /// Returns the HMAC-SHA256 of the arguments as they are handed to the adapter, in 64 hex digits.
    pub fn digest(&self, arguments: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(arguments);
        hex::encode(mac.finalize().into_bytes())
    }
}
