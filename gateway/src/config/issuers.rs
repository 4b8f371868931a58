//! `[[identity.issuers]]`: the issuers whose tokens are accepted, and what the claims of a token grant.

use std::{collections::BTreeSet, net::IpAddr};

use serde::{Deserialize, Serialize};
use weir_contracts::name;

use super::GatewayConfig;

/// The name that means every contract in a grant.
pub const EVERY_CONTRACT: &str = "*";

const ISSUERS_MAX: usize = 16;
const GRANTS_MAX: usize = 256;
/// The most entries in one list.
const LIST_MAX: usize = 1000;
const TEXT_MAX: usize = 1024;

/// One issuer of access tokens (JWTs).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerConfig {
    /// The `iss` of its tokens, exactly as it writes it: an `https` URL, or a URL of this machine.
    pub issuer: String,
    /// Where its public keys are: a URL, or `file:PATH`. By default, the URL in its metadata.
    #[serde(default)]
    pub jwks: Option<String>,
    /// Further audiences (`aud`) to accept at every endpoint, in addition to the endpoint's own URL.
    #[serde(default)]
    pub audiences: Vec<String>,
    /// The claim that names the agent.
    #[serde(default = "subject_claim")]
    pub agent_claim: String,
    /// The claim that names the tenant; by default each agent is its own.
    #[serde(default)]
    pub tenant_claim: Option<String>,
    /// The claim that names the caller's groups for policies: one, or a list.
    #[serde(default)]
    pub groups_claim: Option<String>,
    /// The grants of tokens. A caller that no grant matches sees nothing.
    #[serde(default)]
    pub grants: Vec<ClaimGrant>,
}

/// Contracts and tools for the tokens with a claim.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimGrant {
    /// The name of the claim, or the path of a nested one: `realm_access.roles`.
    pub claim: String,
    /// The value that it must have, or that its list must contain.
    pub has: String,
    /// Whole contracts, by name; `*` means every contract.
    #[serde(default)]
    pub contracts: BTreeSet<String>,
    /// Single tools, by name.
    #[serde(default)]
    pub tools: BTreeSet<String>,
}

impl IssuerConfig {
    /// Returns an issuer of which only the keys are used, at the URL in its metadata.
    pub fn of_metadata(issuer: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            jwks: None,
            audiences: Vec::new(),
            agent_claim: subject_claim(),
            tenant_claim: None,
            groups_claim: None,
            grants: Vec::new(),
        }
    }
}

fn subject_claim() -> String {
    "sub".to_owned()
}

/// Returns the problems of the issuers: the place, the message, and a hint.
pub(super) fn check(config: &GatewayConfig) -> Vec<(String, String, &'static str)> {
    let issuers = &config.identity.issuers;
    let mut problems = Vec::new();
    let mut problem = |place: String, message: &str, hint| {
        problems.push((
            format!("/identity/issuers{place}"),
            message.to_owned(),
            hint,
        ));
    };
    if issuers.len() > ISSUERS_MAX {
        problem(
            String::new(),
            &format!("there are more than {ISSUERS_MAX} issuers"),
            "put one issuer in front of the others",
        );
    }
    let is_elsewhere = |listen: &std::net::SocketAddr| !listen.ip().is_loopback();
    if !issuers.is_empty()
        && config.http.public_url.is_none()
        && config.http.listen.as_ref().is_some_and(is_elsewhere)
    {
        problem(
            String::new(),
            "tokens are issued for a URL, and the URL that clients use is not configured",
            "set `public_url` under [http]",
        );
    }
    for (index, issuer) in issuers.iter().enumerate() {
        let place = format!("/{index}");
        if !is_address(&issuer.issuer) {
            problem(
                format!("{place}/issuer"),
                "must be an https URL without a query, or an http URL of this machine",
                "write it as the issuer writes `iss`, such as \"https://login.example.com/\"",
            );
        }
        if issuers[..index]
            .iter()
            .any(|other| other.issuer == issuer.issuer)
        {
            problem(
                format!("{place}/issuer"),
                "this issuer is configured twice",
                "put its grants into one [[identity.issuers]]",
            );
        }
        if let Some(keys) = &issuer.jwks
            && keys.strip_prefix("file:").is_none_or(str::is_empty)
            && !is_address(keys)
        {
            problem(
                format!("{place}/jwks"),
                "must be an https URL, an http URL of this machine, or file:PATH",
                "leave it out where the issuer publishes its metadata",
            );
        }
        let names = [Some(&issuer.agent_claim), issuer.tenant_claim.as_ref()];
        let mut texts = names.into_iter().flatten().chain(&issuer.audiences);
        if texts.any(|text| !is_text(text)) || issuer.audiences.len() > LIST_MAX {
            problem(
                place.clone(),
                "a claim or an audience is empty or too long",
                "write the name of the claim, and each audience as the issuer writes `aud`",
            );
        }
        if issuer.grants.is_empty() || issuer.grants.len() > GRANTS_MAX {
            problem(
                format!("{place}/grants"),
                &format!(
                    "an issuer has 1 to {GRANTS_MAX} grants: without one its tokens open nothing"
                ),
                "write grants = [{ claim = \"scope\", has = \"tools\", contracts = [\"*\"] }]",
            );
        }
        for (number, grant) in issuer.grants.iter().enumerate() {
            if let Some((message, hint)) = grant.fault() {
                problem(format!("{place}/grants/{number}"), message, hint);
            }
        }
    }
    problems
}

impl ClaimGrant {
    fn fault(&self) -> Option<(&'static str, &'static str)> {
        if !is_text(&self.claim) || !is_text(&self.has) {
            return Some((
                "`claim` or `has` is empty or too long",
                "name a claim of the token and the value that it must have",
            ));
        }
        if self.contracts.is_empty() && self.tools.is_empty() {
            return Some((
                "gives no access: it names no contract and no tool",
                "write contracts = [\"desk\"], tools = [\"find_part\"], or contracts = [\"*\"]",
            ));
        }
        let is_contract = |contract: &String| {
            contract == EVERY_CONTRACT || name::check_contract(contract).is_ok()
        };
        if !self.contracts.iter().all(is_contract)
            || self.contracts.len() + self.tools.len() > LIST_MAX
        {
            return Some((
                "names something that is not a contract, or too many contracts and tools",
                "name each contract as it is listed, or write contracts = [\"*\"]",
            ));
        }
        None
    }
}

/// Returns `true` for a URL that may be fetched: with https, or on this machine, so that no third party can change the answer.
pub fn is_address(text: &str) -> bool {
    let Ok(url) = url::Url::parse(text) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_here = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    let is_plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    let is_reachable = url.scheme() == "https" || (url.scheme() == "http" && is_here);
    is_text(text) && !host.is_empty() && is_plain && is_reachable
}

fn is_text(text: &str) -> bool {
    !text.is_empty() && text.len() <= TEXT_MAX
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::read;

    #[test]
    fn an_issuer_is_checked_where_it_is_written() {
        let places = |text: &str| {
            let problems = read("weir.toml", text, Path::new("."));
            let problems = problems.err().unwrap_or_default();
            let places = problems.iter().map(|problem| problem.place.clone());
            places.collect::<Vec<_>>()
        };
        let grants = "grants = [{ claim = 'scope', has = 'tools', contracts = ['*'] }]";
        let issuer = |rest: &str| format!("[[identity.issuers]]\n{rest}\n");
        let good = issuer(&format!("issuer = 'https://login.example/'\n{grants}"));
        assert_eq!(places(&good), [""; 0]);
        let of = "/identity/issuers/0";
        for (text, place) in [
            (
                format!("issuer = 'http://login.example/'\n{grants}"),
                "/issuer",
            ),
            (
                format!("issuer = 'https://login.example/?a=b'\n{grants}"),
                "/issuer",
            ),
            (format!("issuer = 'login'\n{grants}"), "/issuer"),
            (
                format!("issuer = 'http://127.0.0.1:1'\njwks = 'http://10.0.0.1/keys'\n{grants}"),
                "/jwks",
            ),
            ("issuer = 'https://login.example/'".to_owned(), "/grants"),
            (
                "issuer = 'https://a.example'\ngrants = [{ claim = 'a', has = 'b' }]".to_owned(),
                "/grants/0",
            ),
        ] {
            assert_eq!(places(&issuer(&text)), [format!("{of}{place}")], "{text}");
        }
        let twice = format!("{good}{good}");
        assert_eq!(places(&twice), ["/identity/issuers/1/issuer"]);
        let elsewhere = format!("[http]\nlisten = '10.0.0.5:80'\n{good}");
        assert_eq!(places(&elsewhere), ["/identity/issuers"]);
        let unknown = issuer(&format!(
            "issuer = 'https://a.example'\nscopes = []\n{grants}"
        ));
        assert_eq!(places(&unknown), ["/identity/issuers/0/scopes"]);
    }

    #[test]
    fn each_problem_of_issuers_has_its_own_line() {
        let good = "issuer = 'https://a.example'\ngrants = [{ claim = 'scope', has = 'tools', contracts = ['*'] }]";
        for (second, line, message, hint) in [
            (
                "issuer = 'login'\ngrants = [{ claim = 'a', has = 'b', contracts = ['*'] }]",
                5,
                "/identity/issuers/1/issuer: must be an https URL",
                "write it as the issuer writes `iss`",
            ),
            (
                "issuer = 'https://b.example'\ngrants = [\n  { claim = 'a', has = 'b', tools = ['c'] },\n  { claim = 'a', tools = ['c'] },\n]",
                8,
                "/identity/issuers/1/grants/1: `has` is missing",
                "write has = …",
            ),
            (
                "issuer = 'https://b.example'\njwk = 'file:keys.json'",
                6,
                "/identity/issuers/1/jwk: unknown key `jwk`",
                "did you mean `jwks`?",
            ),
            (
                "issuer = 'https://b.example'\ngrants = { claim = 'a', has = 'b', tools = ['c'] }",
                6,
                "/identity/issuers/1/grants: must be a list",
                "write it in brackets",
            ),
        ] {
            let text = format!("[[identity.issuers]]\n{good}\n[[identity.issuers]]\n{second}\n");
            let problems = read("weir.toml", &text, Path::new(".")).expect_err("refused");
            let shown = problems[0].to_string();
            let expected = format!("weir.toml:{line} at {message}");
            assert!(shown.starts_with(&expected), "{expected}: {shown}");
            assert!(shown.contains(hint), "{hint}: {shown}");
        }
        let single = format!("[identity.issuers]\n{good}\n");
        let problems = read("weir.toml", &single, Path::new(".")).expect_err("refused");
        let expected = "weir.toml:1 at /identity/issuers: must be a list\n  hint: write its header with two brackets on each side, as [[identity.issuers]]";
        assert_eq!(problems[0].to_string(), expected);
    }
}
