//! Finds forms that ask for a secret. MCP forbids them: the answer would pass through the client and the model's context.

use serde_json::Value;
use weir_contracts::secret::is_named_like_one;

/// Words in the description of a field that asks for a secret, or in the message of a form.
const DESCRIBED: [&str; 6] = [
    "password",
    "passphrase",
    "api key",
    "access token",
    "secret key",
    "private key",
];
/// Verbs in a message that ask for something named a few words later.
const ASKING: [&str; 8] = [
    "enter", "type", "provide", "paste", "give", "input", "supply", "need",
];
/// Words before a secret that make it something else, such as the name of the secret.
const OTHERS: [&str; 9] = [
    "of", "for", "to", "about", "no", "not", "never", "without", "don't",
];
/// Words that may follow a secret. Before any other word, it is part of the name of something else.
const FOLLOWING: [&str; 10] = [
    "to", "for", "of", "and", "or", "so", "here", "below", "again", "in",
];

/// Returns the name of a field of a form that looks like a secret, on its own or because of the message above it.
pub(in crate::call) fn secret_field(params: Option<&Value>) -> Option<String> {
    let params = params?;
    let fields = params.pointer("/requestedSchema/properties")?.as_object()?;
    let message = params["message"].as_str().unwrap_or_default();
    let is_asked_for = asks_for_secret(message);
    let found = fields.iter().find(|(name, field)| {
        is_secret(name, field) || is_asked_for && takes_text(field) && field["format"].is_null()
    });
    let plain = |name: &str| {
        name.chars()
            .filter(|it| !it.is_control())
            .take(64)
            .collect()
    };
    found.map(|(name, _)| plain(name))
}

fn is_secret(name: &str, field: &Value) -> bool {
    let text = |member: &str| field[member].as_str().unwrap_or_default();
    let described = text("description").to_lowercase();
    text("format") == "password"
        || takes_text(field)
            && (is_named_like_one(name)
                || is_named_like_one(text("title"))
                || DESCRIBED.iter().any(|words| described.contains(words)))
}

/// Returns whether a person enters free text. A number may be a bound on tokens, and neither a
/// checkbox nor a choice from a list asks for a secret.
fn takes_text(field: &Value) -> bool {
    let listed = |member: &str| {
        let values = field.get(member).and_then(Value::as_array);
        values.filter(|values| !values.is_empty())
    };
    let is_constant = |value: &Value| value.get("const").is_some();
    let is_choice = listed("enum").is_some()
        || ["oneOf", "anyOf"]
            .iter()
            .any(|member| listed(member).is_some_and(|all| all.iter().all(is_constant)));
    let kind = field["type"].as_str().unwrap_or_default();
    !is_choice && !matches!(kind, "boolean" | "integer" | "number" | "array")
}

/// Returns whether a message asks for a secret. Some programs do so with forms whose only field is `value`.
fn asks_for_secret(message: &str) -> bool {
    let message = message.to_lowercase();
    DESCRIBED.iter().any(|words| {
        let mut found = message.match_indices(words);
        found.any(|(at, _)| is_asked_for(&message[..at], &message[at + words.len()..]))
    })
}

/// Returns whether a secret that is named between two parts of a message is asked for.
fn is_asked_for(before: &str, after: &str) -> bool {
    const WORDS_BETWEEN_MAX: usize = 3;
    let after = after.strip_prefix('s').unwrap_or(after);
    let next: String = after
        .trim_start()
        .chars()
        .take_while(|it| it.is_alphanumeric())
        .collect();
    let is_joined = after.starts_with(char::is_alphanumeric);
    if is_joined || !(next.is_empty() || FOLLOWING.contains(&next.as_str())) {
        return false;
    }
    let sentence = before.rsplit(['.', '?', '!', ':', ';', '\n']).next();
    let words = sentence.unwrap_or_default().split_whitespace().rev();
    let words: Vec<&str> = words.take(WORDS_BETWEEN_MAX + 2).collect();
    match words.iter().position(|word| ASKING.contains(word)) {
        Some(at) => {
            let is_refused = words.get(at + 1).is_some_and(|word| OTHERS.contains(word));
            at <= WORDS_BETWEEN_MAX && !is_refused && !has_other(&words[..at])
        }
        // Only a label, such as `GitHub password:`.
        None => words.len() <= 2 && matches!(after.trim(), "" | ":" | ".") && !has_other(&words),
    }
}

fn has_other(words: &[&str]) -> bool {
    words.iter().any(|word| OTHERS.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_looks_like_a_secret_is_found() {
        for (name, field, is_secret) in [
            ("password", json!({ "type": "string" }), true),
            ("apiKey", json!({ "type": "string" }), true),
            ("github_token", json!({}), true),
            (
                "value",
                json!({ "type": "string", "title": "API key" }),
                true,
            ),
            (
                "value",
                json!({ "type": "string", "format": "password" }),
                true,
            ),
            (
                "value",
                json!({ "type": "string", "description": "Your access token" }),
                true,
            ),
            ("max_tokens", json!({ "type": "integer" }), false),
            ("remember_password", json!({ "type": "boolean" }), false),
            (
                "commit",
                json!({ "type": "string", "description": "The hash to deploy" }),
                false,
            ),
            (
                "email",
                json!({ "type": "string", "format": "email" }),
                false,
            ),
        ] {
            let params = json!({ "requestedSchema": { "properties": { name: field } } });
            let expected = is_secret.then(|| name.to_owned());
            assert_eq!(secret_field(Some(&params)), expected, "{params}");
        }
        assert_eq!(secret_field(Some(&json!({ "message": "password" }))), None);
    }

    #[test]
    fn a_message_that_asks_for_a_secret_is_found() {
        let value = json!({ "value": { "type": "string", "title": "Value" } });
        for (message, is_secret) in [
            ("Enter your password", true),
            ("Please provide an OpenAI API key to continue.", true),
            ("Welcome! Paste the access token here", true),
            ("We need your GitHub password, please", true),
            ("GitHub password:", true),
            ("API key", true),
            ("Enter the name of the secret key", false),
            ("Enter a title for the password reset", false),
            ("Enter the API key name", false),
            ("Enter your name. Never enter your password", false),
            ("Your password was changed. Why?", false),
            ("Enter your name", false),
            ("Which passwords should be rotated, by whom?", false),
        ] {
            let params = json!({ "message": message, "requestedSchema": { "properties": value } });
            let expected = is_secret.then(|| "value".to_owned());
            assert_eq!(secret_field(Some(&params)), expected, "{message}");
        }
        let sure = json!({ "sure": { "type": "boolean" }, "mail": { "type": "string", "format": "email" } });
        let params =
            json!({ "message": "Enter your password", "requestedSchema": { "properties": sure } });
        assert_eq!(secret_field(Some(&params)), None);
    }
}
