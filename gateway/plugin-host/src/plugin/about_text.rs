//! Reads the `about` text of a plugin. It is read strictly, since the rest of the gateway shows its parts and uses
//! them as keys.

use serde::Deserialize;
use serde_json::Value;
use weir_text::shorten;

const TEXT_MAX_BYTES: usize = 256 << 10;
const ADAPTERS_MAX: usize = 32;

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PluginDescription {
    pub(crate) name: String,
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) adapters: Vec<AboutAdapter>,
}

/// An adapter, written either as only a name or with the schema of its settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "AdapterText")]
pub(crate) struct AboutAdapter {
    pub(crate) name: String,
    /// JSON Schema.
    pub(crate) settings: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AdapterText {
    Name(String),
    Full {
        name: String,
        settings: Option<Value>,
    },
}

impl From<AdapterText> for AboutAdapter {
    fn from(text: AdapterText) -> Self {
        match text {
            AdapterText::Name(name) => Self {
                name,
                settings: None,
            },
            AdapterText::Full { name, settings } => Self { name, settings },
        }
    }
}

impl PluginDescription {
    /// Parses the text. Unknown members are ignored, since later versions may add some. `collections` means that the
    /// component exports that interface, and so must name its adapters.
    pub(crate) fn parse(text: &str, collections: bool) -> Result<Self, String> {
        if text.len() > TEXT_MAX_BYTES {
            return Err(format!(
                "`about` answered {} bytes; at most {TEXT_MAX_BYTES}",
                text.len()
            ));
        }
        let about: Self = serde_json::from_str(text)
            .map_err(|error| format!("`about` did not answer what it should: {error}"))?;
        check_name("name", &about.name)?;
        if about.version.is_empty()
            || about.version.len() > 64
            || !about.version.chars().all(|c| c.is_ascii_graphic())
        {
            return Err(
                "the `version` in `about` must be 1 to 64 printable ASCII characters".into(),
            );
        }
        if !collections && !about.adapters.is_empty() {
            return Err(
                "`about` names adapters, but the component does not export `collections`".into(),
            );
        }
        if collections && (about.adapters.is_empty() || about.adapters.len() > ADAPTERS_MAX) {
            return Err(format!("`about` must name 1 to {ADAPTERS_MAX} adapters"));
        }
        for (index, adapter) in about.adapters.iter().enumerate() {
            check_name("name of an adapter", &adapter.name)?;
            if about.adapters[..index]
                .iter()
                .any(|earlier| earlier.name == adapter.name)
            {
                return Err(format!(
                    "`about` names the adapter `{}` twice",
                    adapter.name
                ));
            }
            if adapter
                .settings
                .as_ref()
                .is_some_and(|settings| !settings.is_object() && !settings.is_boolean())
            {
                return Err(format!(
                    "the `settings` of the adapter `{}` must be a JSON Schema",
                    adapter.name
                ));
            }
        }
        Ok(about)
    }
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    let mut characters = name.chars();
    let starts = characters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase());
    let goes_on =
        characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
    if starts && goes_on && name.len() <= 64 {
        return Ok(());
    }
    let shown = shorten(name, 64);
    Err(format!(
        "the {what} in `about` must match [a-z][a-z0-9_-]{{0,63}}, not {shown:?}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_alone_and_with_settings_are_read() {
        let text = r#"{"name": "a", "version": "1", "adapters": ["x", {"name": "y", "settings": {}}], "later": 1}"#;
        let about = PluginDescription::parse(text, true).expect("a good text");
        assert_eq!(
            about
                .adapters
                .iter()
                .map(|a| a.name.as_str())
                .collect::<Vec<_>>(),
            ["x", "y"]
        );
        let refusal =
            PluginDescription::parse(text, false).expect_err("nothing behind the adapters");
        assert!(
            refusal.contains("does not export `collections`"),
            "{refusal}"
        );
        PluginDescription::parse(r#"{"name": "a", "version": "1"}"#, false)
            .expect("tools alone need no adapter");
    }

    #[test]
    fn a_text_out_of_bounds_is_refused_with_the_reason() {
        for (text, reason) in [
            ("[]", "did not answer"),
            (
                r#"{"name": "A", "version": "1", "adapters": ["x"]}"#,
                "the name",
            ),
            (
                r#"{"name": "a", "version": "", "adapters": ["x"]}"#,
                "`version`",
            ),
            (r#"{"name": "a", "version": "1"}"#, "1 to 32 adapters"),
            (
                r#"{"name": "a", "version": "1", "adapters": ["x", "x"]}"#,
                "twice",
            ),
            (
                r#"{"name": "a", "version": "1", "adapters": ["../x"]}"#,
                "name of an adapter",
            ),
            (
                r#"{"name": "a", "version": "1", "adapters": [{"name": "x", "settings": 1}]}"#,
                "JSON Schema",
            ),
        ] {
            let refusal = PluginDescription::parse(text, true).expect_err(text);
            assert!(refusal.contains(reason), "{text}: {refusal}");
        }
    }
}
