//! Compares `deny.toml` with every crate that is built: its licence, its source, and that it is not banned.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

/// The parts of `deny.toml` that are checked here.
#[derive(Deserialize)]
pub(crate) struct Policy {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: BTreeSet<String>,
}

impl Policy {
    pub(crate) fn read(text: &str) -> Self {
        toml::from_str(text).expect("deny.toml is what cargo-deny reads")
    }

    /// Returns what is wrong with one package of `cargo metadata`. A package of our own has no source.
    pub(crate) fn problems(&self, package: &Value) -> Vec<String> {
        let shown = format!("{} {}", text(&package["name"]), text(&package["version"]));
        let mut problems = Vec::new();
        if self.bans.deny.contains(text(&package["name"])) {
            problems.push(format!("{shown} is banned by deny.toml"));
        }
        if let Some(source) = package["source"].as_str() {
            let registry = source.strip_prefix("registry+").unwrap_or(source);
            if !self.sources.allow_registry.contains(registry) {
                problems.push(format!(
                    "{shown} comes from {source}, which deny.toml does not allow"
                ));
            }
        }
        match package["license"].as_str() {
            None => problems.push(format!("{shown} names no licence")),
            Some(license) if !self.allows(license) => {
                problems.push(format!(
                    "{shown} is under {license}, which deny.toml does not allow"
                ));
            }
            Some(_) => {}
        }
        problems
    }

    /// Returns `true` if allowed licences can meet an SPDX expression. In old ones, `/` means `OR`.
    fn allows(&self, expression: &str) -> bool {
        let spaced = expression
            .replace('(', " ( ")
            .replace(')', " ) ")
            .replace('/', " OR ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut at = 0;
        let is_met = self.any(&words, &mut at);
        is_met && at == words.len()
    }

    fn any(&self, words: &[&str], at: &mut usize) -> bool {
        let mut is_met = self.all(words, at);
        while words.get(*at) == Some(&"OR") {
            *at += 1;
            is_met |= self.all(words, at);
        }
        is_met
    }

    fn all(&self, words: &[&str], at: &mut usize) -> bool {
        let mut is_met = self.one(words, at);
        while words.get(*at) == Some(&"AND") {
            *at += 1;
            is_met &= self.one(words, at);
        }
        is_met
    }

    fn one(&self, words: &[&str], at: &mut usize) -> bool {
        let Some(word) = words.get(*at) else {
            return false;
        };
        *at += 1;
        if *word == "(" {
            let is_met = self.any(words, at);
            let is_closed = words.get(*at) == Some(&")");
            *at += 1;
            return is_met && is_closed;
        }
        match (words.get(*at), words.get(*at + 1)) {
            (Some(&"WITH"), Some(exception)) => {
                *at += 2;
                self.licenses
                    .allow
                    .contains(&format!("{word} WITH {exception}"))
            }
            _ => self.licenses.allow.contains(*word),
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy() -> Policy {
        Policy::read(
            "[licenses]\nallow = ['MIT', 'ISC', 'Apache-2.0 WITH LLVM-exception']\n[bans]\ndeny = ['openssl']\n\
             [sources]\nallow-registry = ['https://here']\n",
        )
    }

    #[test]
    fn an_expression_is_met_or_not() {
        for (expression, is_met) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("MIT AND (GPL-3.0 OR ISC)", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0 WITH other-exception OR GPL-3.0", false),
            ("MIT ISC", false),
            ("", false),
            ("(MIT", false),
        ] {
            assert_eq!(policy().allows(expression), is_met, "{expression}");
        }
    }

    #[test]
    fn a_crate_from_elsewhere_without_a_licence_or_banned_is_a_problem() {
        let package = |name: &str, source: Value, license: Value| {
            policy().problems(
                &json!({ "name": name, "version": "1.0.0", "source": source, "license": license }),
            )
        };
        assert_eq!(
            package("a", json!("registry+https://here"), json!("MIT")),
            [""; 0]
        );
        assert_eq!(package("ours", Value::Null, json!("MIT")), [""; 0]);
        assert_eq!(
            package("a", json!("git+https://there"), json!("MIT")).len(),
            1
        );
        assert_eq!(
            package("a", json!("registry+https://there"), Value::Null).len(),
            2
        );
        assert_eq!(
            package("openssl", json!("registry+https://here"), json!("MIT")).len(),
            1
        );
    }
}
