//! Arguments as digest: tells whether two calls said the same, and nothing about what they said.

use std::{
    fs,
    io::{Error, ErrorKind, Result},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const KEY_BYTES: usize = 32;

/// Keyed per installation: an amount or a name could be guessed from a plain digest, by trying them all.
#[derive(Clone)]
pub struct ArgumentsKey(Hmac<Sha256>);

impl ArgumentsKey {
    /// The key `audit.key` in the state folder (not in the trail: who may read the trail need not have it), made on
    /// first use. Refused when others than its owner could read it.
    pub fn open(state: &Path) -> Result<Self> {
        let path = state.join("audit.key");
        if !path.exists() {
            make_key(&path)?;
        }
        let invalid = |what: &str| Error::new(ErrorKind::InvalidData, format!("{}: {what}", path.display()));
        if fs::metadata(&path)?.permissions().mode() & 0o077 != 0 {
            return Err(invalid("others can read this key; chmod 600 it, or delete it for a new one"));
        }
        let key = fs::read(&path)?;
        if key.len() != KEY_BYTES {
            return Err(invalid("this is not a key; delete it for a new one"));
        }
        Ok(Self(Hmac::new_from_slice(&key).expect("HMAC takes a key of any length")))
    }

    /// HMAC-SHA256 of the arguments as they are handed to the adapter, 64 hex digits.
    pub fn digest(&self, arguments: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(arguments);
        hex::encode(mac.finalize().into_bytes())
    }
}

/// Of several processes starting at once, one wins.
fn make_key(path: &Path) -> Result<()> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| Error::other(error.to_string()))?;
    weir_files::create_once(path, &key, weir_files::Readers::Owner).map(drop)
}
