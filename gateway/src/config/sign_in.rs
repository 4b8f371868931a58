//! Signing in to the console by an issuer of OpenID Connect.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_state::Role;

use super::issuers::is_address;

const TEXT_MAX: usize = 1024;
const LIST_MAX: usize = 100;

/// `[admin.oidc]`: the provider that signs people in, and the role that each gets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AdminOidc {
    /// The issuer, exactly as its ID tokens write `iss`: an `https` URL, or a URL of this machine.
    pub issuer: String,
    /// The id of the console as a client of the issuer.
    pub client_id: String,
    /// The secret of that client, `env:NAME` or `file:path`; none for a public client.
    #[serde(default)]
    pub client_secret: Option<String>,
    /// The requested scopes.
    #[serde(default = "usual_scopes")]
    pub scopes: Vec<String>,
    /// The claim that names a person in the trail. People with the same value are one admin.
    #[serde(default = "subject_claim")]
    pub name_claim: String,
    /// The claim with the role, or the path of a nested one: `realm_access.roles`.
    pub role_claim: String,
    /// The role for each value of that claim. A person has all matching roles; one without any is refused.
    pub roles: BTreeMap<String, Role>,
}

fn usual_scopes() -> Vec<String> {
    ["openid", "profile", "email"].map(str::to_owned).into()
}

fn subject_claim() -> String {
    "sub".to_owned()
}

/// Returns its problems: the place, the message, and a hint.
pub(super) fn check(oidc: Option<&AdminOidc>) -> Vec<(String, String, &'static str)> {
    let Some(oidc) = oidc else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let mut problem = |key: &str, message: &str, hint| {
        problems.push((format!("/admin/oidc/{key}"), message.to_owned(), hint));
    };
    if !is_address(&oidc.issuer) {
        problem(
            "issuer",
            "must be an https URL without a query, or an http URL of this machine",
            "write it as the issuer writes `iss`, such as \"https://login.example.com/\"",
        );
    }
    let names = [
        ("client_id", &oidc.client_id),
        ("name_claim", &oidc.name_claim),
        ("role_claim", &oidc.role_claim),
    ];
    for (key, text) in names {
        if text.is_empty() || text.len() > TEXT_MAX {
            problem(
                key,
                "must have 1 to 1024 characters",
                "write it as the issuer has it",
            );
        }
    }
    let is_reference = |secret: &String| secret.starts_with("env:") || secret.starts_with("file:");
    if !oidc.client_secret.as_ref().is_none_or(is_reference) {
        problem(
            "client_secret",
            "must be `env:NAME` or `file:path`",
            "keep the secret out of this file; leave the key out for a public client",
        );
    }
    if !oidc.scopes.iter().any(|scope| scope == "openid") || oidc.scopes.len() > LIST_MAX {
        problem(
            "scopes",
            "must have `openid`, and at most 100 scopes",
            "without it there is no ID token",
        );
    }
    if oidc.roles.is_empty() || oidc.roles.len() > LIST_MAX {
        problem(
            "roles",
            "must have 1 to 100 values",
            "write { \"VALUE OF THE CLAIM\" = \"operator\" }",
        );
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::read;

    fn problems(keys: &str) -> Vec<String> {
        let text = format!(
            "[admin.oidc]\nissuer = \"https://id.example\"\nrole_claim = \"groups\"\n{keys}"
        );
        match read("weir.toml", &text, Path::new(".")) {
            Ok(config) => {
                let oidc = config.admin.oidc.expect("it was read");
                assert_eq!((&*oidc.name_claim, oidc.roles.len()), ("sub", 1));
                Vec::new()
            }
            Err(problems) => problems
                .into_iter()
                .map(|problem| problem.to_string())
                .collect(),
        }
    }

    #[test]
    fn a_sign_in_needs_a_client_a_claim_and_roles_and_no_secret_in_clear() {
        let whole = "client_id = \"weir\"\nroles = { staff = \"viewer\" }\n";
        assert_eq!(
            problems(&format!("{whole}client_secret = \"env:SECRET\"")),
            Vec::<String>::new()
        );
        for (keys, place) in [
            (
                format!("{whole}client_secret = \"hunter2\""),
                "client_secret",
            ),
            (format!("{whole}scopes = [\"email\"]"), "scopes"),
            ("client_id = \"weir\"\nroles = {}".to_owned(), "roles"),
            (
                "client_id = \"\"\nroles = { a = \"viewer\" }".to_owned(),
                "client_id",
            ),
        ] {
            let refused = problems(&keys).join("\n");
            assert!(
                refused.contains(&format!("/admin/oidc/{place}")),
                "{refused}"
            );
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }
}
