//! Defines the form of keys: `weir_<id>_<secret>` for an agent, `weiradm_<id>_<secret>` for an admin, `weirses_…` for a
//! session of one, `weirlink_…` for a link that begins one. The secret has 256 random bits, so that one plain SHA-256 cannot
//! be inverted, and refusing a bad key is cheap.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

const ID_HEX: usize = 12;
const SECRET_HEX: usize = 64;
/// Prefixes of the credentials of the admin API and of its console, which are valid nowhere else.
const OF_STAFF: [&str; 3] = ["weiradm_", "weirses_", "weirlink_"];

/// The kinds of keys, each with its own prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    Agent,
    Admin,
    /// A session of an admin.
    Session,
    /// A link that begins a session.
    Link,
}

/// The credential of a request, which has not been checked yet.
#[derive(Clone, Copy)]
pub enum RequestCredential<'a> {
    None,
    Key(&'a str),
    /// A token that is bound to a key, with the scheme DPoP.
    Bound(&'a str),
    /// There is more than one header, another scheme, or no text.
    Malformed,
}

/// A new key. The text is shown once and never stored.
pub struct MintedSecret {
    pub id: String,
    pub text: String,
    pub hash: [u8; 32],
}

pub(super) struct SecretParts<'a> {
    pub id: &'a str,
    secret: &'a str,
}

impl SecretKind {
    fn prefix(self) -> &'static str {
        match self {
            Self::Agent => "weir_",
            Self::Admin => "weiradm_",
            Self::Session => "weirses_",
            Self::Link => "weirlink_",
        }
    }
}

impl<'a> RequestCredential<'a> {
    /// Reads the `Authorization` header, or each if there are several.
    pub fn of_header(mut values: impl Iterator<Item = &'a [u8]>) -> Self {
        let Some(first) = values.next() else {
            return Self::None;
        };
        let text = std::str::from_utf8(first)
            .ok()
            .filter(|_| values.next().is_none());
        let Some((scheme, credential)) = text.and_then(|text| text.split_once(' ')) else {
            return Self::Malformed;
        };
        match scheme {
            scheme if scheme.eq_ignore_ascii_case("bearer") => Self::Key(credential.trim()),
            scheme if scheme.eq_ignore_ascii_case("dpop") => Self::Bound(credential.trim()),
            _ => Self::Malformed,
        }
    }

    /// Returns `true` for a key of an admin or a session of the console.
    pub(super) fn is_of_staff(self) -> bool {
        let (Self::Key(text) | Self::Bound(text)) = self else {
            return false;
        };
        OF_STAFF.iter().any(|prefix| text.starts_with(prefix))
    }

    /// Returns the text if it is not a key, so that it may be a token.
    pub fn token(self) -> Option<&'a str> {
        let (Self::Key(text) | Self::Bound(text)) = self else {
            return None;
        };
        let is_of_staff = OF_STAFF.iter().any(|prefix| text.starts_with(prefix));
        let is_key = is_of_staff || text.starts_with(SecretKind::Agent.prefix());
        (!is_key && !text.is_empty()).then_some(text)
    }

    /// Returns the public part of what looks like a key, whether it is valid or not.
    pub fn id(self) -> Option<&'a str> {
        let (Self::Key(text) | Self::Bound(text)) = self else {
            return None;
        };
        let kinds = [
            SecretKind::Agent,
            SecretKind::Admin,
            SecretKind::Session,
            SecretKind::Link,
        ];
        let parts = kinds
            .into_iter()
            .find_map(|kind| SecretParts::read(text, kind));
        parts.map(|parts| parts.id)
    }
}

impl MintedSecret {
    /// Makes a key from random bits. `Err` means that the system has no randomness.
    pub fn new(kind: SecretKind) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; (ID_HEX + SECRET_HEX) / 2];
        getrandom::fill(&mut bytes)?;
        let (id, secret) = bytes.split_at(ID_HEX / 2);
        let (id, secret) = (hex::encode(id), hex::encode(secret));
        let hash = Sha256::digest(secret.as_bytes()).into();
        Ok(Self {
            text: format!("{}{id}_{secret}", kind.prefix()),
            id,
            hash,
        })
    }
}

impl MintedSecret {
    /// Reads an already minted key.
    pub fn read(text: &str, kind: SecretKind) -> Option<Self> {
        let parts = SecretParts::read(text, kind)?;
        let hash = Sha256::digest(parts.secret.as_bytes()).into();
        Some(Self {
            id: parts.id.to_owned(),
            text: text.to_owned(),
            hash,
        })
    }

    /// Compares with a stored hash, in constant time.
    pub fn matches(&self, hash: &[u8]) -> bool {
        self.hash[..].ct_eq(hash).into()
    }
}

impl<'a> SecretParts<'a> {
    pub(super) fn read(text: &'a str, kind: SecretKind) -> Option<Self> {
        let (id, secret) = text.strip_prefix(kind.prefix())?.split_once('_')?;
        let hex = |text: &str| {
            text.bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        (id.len() == ID_HEX && secret.len() == SECRET_HEX && hex(id) && hex(secret))
            .then_some(Self { id, secret })
    }

    /// Compares in constant time, whatever the hash is.
    pub(super) fn matches(&self, hash: &[u8; 32]) -> bool {
        let own: [u8; 32] = Sha256::digest(self.secret.as_bytes()).into();
        own.ct_eq(hash).into()
    }
}

/// Returns the id if `text` is the admin key of that id and hash.
pub fn admin_matches(text: &str, find: impl Fn(&str) -> Option<[u8; 32]>) -> Option<String> {
    let parts = SecretParts::read(text, SecretKind::Admin)?;
    let hash = find(parts.id);
    // A hash that no key has: an unknown id takes as long as a wrong secret.
    let matches = parts.matches(&hash.unwrap_or_default());
    (matches && hash.is_some()).then(|| parts.id.to_owned())
}
