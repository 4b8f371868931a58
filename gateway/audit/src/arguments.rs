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

/// The key for digests of arguments. Each installation has its own: an amount or a name could be guessed from a plain
/// digest by trying them all.
#[derive(Clone)]
pub struct ArgumentsKey(Hmac<Sha256>);

impl ArgumentsKey {
    /// The name of its file in the state folder.
    pub const FILE: &str = "audit.key";

    /// Reads the key `audit.key` in the state folder, and makes it on first use. It is not in the trail, since whoever
    /// may read the trail need not have it. The key is refused if others than its owner could read it.
    pub fn open(state: &Path) -> Result<Self> {
        let path = state.join(Self::FILE);
        if !path.exists() {
            make_key(&path)?;
        }
        let invalid = |what: &str| {
            Error::new(
                ErrorKind::InvalidData,
                format!("{}: {what}", path.display()),
            )
        };
        if fs::metadata(&path)?.permissions().mode() & 0o077 != 0 {
            return Err(invalid(
                "others can read this key; chmod 600 it, or delete it for a new one",
            ));
        }
        let key = fs::read(&path)?;
        if key.len() != KEY_BYTES {
            return Err(invalid("this is not a key; delete it for a new one"));
        }
        Ok(Self(
            Hmac::new_from_slice(&key).expect("HMAC takes a key of any length"),
        ))
    }

    /// Returns the HMAC-SHA256 of the arguments as they are handed to the adapter, in 64 hex digits.
    pub fn digest(&self, arguments: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(arguments);
        hex::encode(mac.finalize().into_bytes())
    }
}

/// Makes the key. If several processes start at once, one of them wins.
fn make_key(path: &Path) -> Result<()> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| Error::other(error.to_string()))?;
    weir_files::create_once(path, &key, weir_files::Readers::Owner).map(drop)
}
