//! Columns that are named like secrets stay in the source until a person says otherwise.

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

/// Two words in a row.
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
const PARTS: &[&str] = &["password", "passwd", "secret", "apikey", "token", "credential", "creditcard"];

pub(super) fn is_named_like_one(name: &str) -> bool {
    let words = split(name);
    words.iter().any(|word| WORDS.contains(&word.as_str()) || PARTS.iter().any(|part| word.contains(part)))
        || words.windows(2).any(|pair| PAIRS.contains(&(pair[0].as_str(), pair[1].as_str())))
}

/// `userApiKey`, `user_api-key`, `API key` → user, api, key.
fn split(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for character in name.chars() {
        let starts = character.is_uppercase() && !last.is_uppercase();
        match character.is_alphanumeric() {
            true if starts || !last.is_alphanumeric() || words.is_empty() => {
                words.push(character.to_lowercase().collect());
            }
            true => {
                if let Some(word) = words.last_mut() {
                    word.extend(character.to_lowercase());
                }
            }
            false => {}
        }
        last = character;
    }
    words
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
