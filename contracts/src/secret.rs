//! Recognizes names of secrets. Such columns do not leave the source until a person decides otherwise, and such arguments are
//! never recorded in clear.

use crate::name;

/// Whole words of a name.
const WORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "pass",
    "secret",
    "secrets",
    "token",
    "tokens",
    "apikey",
    "hash",
    "salt",
    "ssn",
    "pin",
    "cvv",
    "cvc",
    "iban",
    "otp",
    "totp",
    "mfa",
    "credential",
    "credentials",
    "privatekey",
    "auth",
    "cookie",
    "signature",
    "passport",
];

/// Pairs of words that stand in a row.
const PAIRS: &[(&str, &str)] = &[
    ("api", "key"),
    ("access", "key"),
    ("private", "key"),
    ("secret", "key"),
    ("encryption", "key"),
    ("session", "id"),
    ("session", "key"),
    ("credit", "card"),
    ("card", "number"),
    ("social", "security"),
    ("tax", "id"),
];

/// Parts of one word, long enough not to occur by chance.
const PARTS: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "apikey",
    "token",
    "credential",
    "creditcard",
];

/// Returns whether a name, or a short title, is that of a secret.
pub fn is_named_like_one(text: &str) -> bool {
    let words = name::words(text);
    words
        .iter()
        .any(|word| WORDS.contains(&word.as_str()) || PARTS.iter().any(|part| word.contains(part)))
        || words
            .windows(2)
            .any(|pair| PAIRS.contains(&(pair[0].as_str(), pair[1].as_str())))
}

#[cfg(test)]
mod tests {
    use super::is_named_like_one;

    #[test]
    fn names() {
        for secret in [
            "password",
            "user_password",
            "PasswordHash",
            "API_KEY",
            "apiKey",
            "access-token",
            "SSN",
            "userpassword",
            "authToken",
            "Credit Card",
        ] {
            assert!(is_named_like_one(secret), "{secret}");
        }
        for plain in [
            "id",
            "name",
            "passenger",
            "compass",
            "key",
            "spin",
            "author",
            "shipping",
            "hashtag",
            "keyboard",
            "assignment",
        ] {
            assert!(!is_named_like_one(plain), "{plain}");
        }
    }
}
