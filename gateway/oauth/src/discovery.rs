//! Finds the authorization server of a server: its metadata as a resource (RFC 9728), then that of the issuer it names
//! (RFC 8414, OpenID Connect Discovery).

use serde::Deserialize;
use url::Url;
use weir_connections::http::NetworkReach;

use crate::{OauthFault, request::get};

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";
/// The scopes that are read from a refusal, and the length of one.
const SCOPES_MAX: usize = 32;
const SCOPE_MAX_BYTES: usize = 128;

/// A server's description of itself as a resource.
#[derive(Clone, Debug)]
pub struct ProtectedResource {
    /// The name of the resource, which tokens are asked for with.
    pub resource: String,
    /// The issuers of its tokens; at least one.
    pub issuers: Vec<String>,
    /// The scopes that a token should have; empty if unknown.
    pub scopes: Vec<String>,
}

/// The metadata of an authorization server. Every address in it was checked.
#[derive(Clone, Debug, Deserialize)]
pub struct AuthorizationServerMetadata {
    pub issuer: String,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: String,
    pub registration_endpoint: Option<String>,
    pub jwks_uri: Option<String>,
    pub revocation_endpoint: Option<String>,
    #[serde(default)]
    pub scopes_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Vec<String>,
    /// The answers of a sign-in name the issuer (RFC 9207).
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
    /// A client may be named by the URL of its metadata.
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
}

#[derive(Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// Finds a server's metadata as a resource. `challenge` is the `WWW-Authenticate` of its 401. A server without metadata
/// issues its tokens itself, as MCP had it before 2025-06-18.
pub async fn find_resource(
    server: &Url,
    challenge: Option<&str>,
    reach: NetworkReach,
) -> Result<ProtectedResource, OauthFault> {
    let named = challenge.and_then(|challenge| parameter(challenge, "resource_metadata"));
    let scopes = challenge.and_then(|challenge| parameter(challenge, "scope"));
    let scopes: Option<Vec<String>> =
        scopes.map(|scopes| scopes.split_whitespace().map(str::to_owned).collect());
    let mut places = Vec::new();
    if let Some(named) = named {
        let same = Url::parse(&named).is_ok_and(|named| named.origin() == server.origin());
        if !same {
            return Err(OauthFault::unusable(
                "the server names its metadata at another host, which could be that of someone else",
            ));
        }
        places.push(named);
    }
    places.push(inserted(server, RESOURCE));
    places.push(at_root(server, RESOURCE));
    places.dedup();
    for place in places {
        let Some(metadata) = get::<ResourceMetadata>(&place, reach).await? else {
            continue;
        };
        if !covers(&metadata.resource, server) {
            return Err(OauthFault::unusable(format!(
                "{place} is the metadata of another resource than the server"
            )));
        }
        if metadata.authorization_servers.is_empty() {
            return Err(OauthFault::unusable(format!("{place} names no issuer")));
        }
        return Ok(ProtectedResource {
            resource: metadata.resource,
            issuers: metadata.authorization_servers,
            scopes: scopes.unwrap_or(metadata.scopes_supported),
        });
    }
    let mut resource = server.clone();
    resource.set_query(None);
    Ok(ProtectedResource {
        resource: resource.to_string(),
        issuers: vec![server.origin().ascii_serialization()],
        scopes: scopes.unwrap_or_default(),
    })
}

/// Returns `true` if a 401 states where the metadata of the resource is.
pub fn names_metadata(challenge: &str) -> bool {
    parameter(challenge, "resource_metadata").is_some()
}

/// Finds the metadata of an issuer, which has to name the same issuer.
pub async fn find_issuer(
    issuer: &str,
    reach: NetworkReach,
) -> Result<AuthorizationServerMetadata, OauthFault> {
    let url = reach.check(issuer).map_err(OauthFault::Unusable)?;
    let mut places = vec![inserted(&url, SERVER), inserted(&url, OPENID)];
    let after = format!("{}{OPENID}", issuer.trim_end_matches('/'));
    if !places.contains(&after) {
        places.push(after);
    }
    for place in &places {
        let Some(metadata) = get::<AuthorizationServerMetadata>(place, reach).await? else {
            continue;
        };
        let bare = |issuer: &str| issuer.trim_end_matches('/').to_owned();
        if bare(&metadata.issuer) != bare(issuer) {
            return Err(OauthFault::unusable(format!(
                "{place} is the metadata of another issuer than {issuer}"
            )));
        }
        metadata.check(place, reach)?;
        return Ok(metadata);
    }
    Err(OauthFault::unusable(format!(
        "{issuer} publishes no metadata as an issuer of tokens"
    )))
}

impl AuthorizationServerMetadata {
    fn check(&self, place: &str, reach: NetworkReach) -> Result<(), OauthFault> {
        let optional = [
            &self.authorization_endpoint,
            &self.registration_endpoint,
            &self.jwks_uri,
            &self.revocation_endpoint,
        ];
        let all = optional.into_iter().flatten().chain([&self.token_endpoint]);
        for url in all {
            let checked = reach.check(url);
            checked.map_err(|error| OauthFault::unusable(format!("in {place}, {error}")))?;
        }
        Ok(())
    }

    /// Returns `true` if a sign-in can be protected by PKCE with S256.
    pub(crate) fn has_pkce(&self) -> bool {
        let mut methods = self.code_challenge_methods_supported.iter();
        methods.any(|method| method == "S256")
    }
}

/// Returns whether a resource is the server, or one that it is below of, at the same host.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let path = resource.path().trim_end_matches('/');
    let below = server.path().strip_prefix(path);
    resource.origin() == server.origin()
        && resource.query().is_none()
        && resource.fragment().is_none()
        && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// Puts a well-known path between the host of a URL and its path.
fn inserted(url: &Url, well_known: &str) -> String {
    let path = url.path().trim_end_matches('/');
    at_root(url, &format!("{well_known}{path}"))
}

fn at_root(url: &Url, path: &str) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_path(path);
    url.to_string()
}

/// Returns the scopes that a server requires beyond those of the token that it refused with 403.
pub fn needed_scopes(challenge: &str) -> Option<Vec<String>> {
    let error = parameter(challenge, "error")?;
    let scopes = parameter(challenge, "scope").filter(|_| error == "insufficient_scope")?;
    let is_scope = |word: &&str| {
        let is_plain = |byte: u8| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~');
        word.len() <= SCOPE_MAX_BYTES && word.bytes().all(is_plain)
    };
    let scopes: Vec<&str> = scopes.split_whitespace().take(SCOPES_MAX + 1).collect();
    let is_good = (1..=SCOPES_MAX).contains(&scopes.len()) && scopes.iter().all(is_scope);
    is_good.then(|| scopes.into_iter().map(str::to_owned).collect())
}

/// Returns a parameter of the challenge `Bearer`, which may be one of several.
fn parameter(challenge: &str, wanted: &str) -> Option<String> {
    let lower = challenge.to_ascii_lowercase();
    let bearer = lower.find("bearer")?;
    let mut rest = challenge.get(bearer + "bearer".len()..)?;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_start_matches([',', ' ']).trim();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value.trim().to_owned());
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_names_where_the_metadata_is() {
        let quoted = r#"Bearer error="invalid_token", resource_metadata="https://a.example/m?x=1", scope="a b""#;
        assert_eq!(
            parameter(quoted, "resource_metadata").as_deref(),
            Some("https://a.example/m?x=1")
        );
        assert_eq!(parameter(quoted, "scope").as_deref(), Some("a b"));
        assert_eq!(parameter("bearer scope=a, x=y", "x").as_deref(), Some("y"));
        for other in ["Basic realm=\"x\"", "Bearer", "Bearer scope=\"a", ""] {
            assert_eq!(parameter(other, "resource_metadata"), None, "{other}");
        }
    }

    #[test]
    fn a_refusal_names_the_scopes_that_are_needed() {
        let needed = |scope: &str| {
            needed_scopes(&format!(
                "Bearer error=\"insufficient_scope\", scope=\"{scope}\""
            ))
        };
        assert_eq!(
            needed("a b:c"),
            Some(vec!["a".to_owned(), "b:c".to_owned()])
        );
        let long = "x".repeat(SCOPE_MAX_BYTES + 1);
        let many = "s ".repeat(SCOPES_MAX + 1);
        for bad in ["", "a\\b", "é", &long, &many] {
            assert_eq!(needed(bad), None, "{bad}");
        }
        assert_eq!(
            needed_scopes("Bearer error=\"invalid_token\", scope=\"a\""),
            None
        );
    }

    #[test]
    fn a_resource_is_at_the_server_and_not_beside_it() {
        let server = Url::parse("https://a.example/mcp/desk").expect("a URL");
        for resource in [
            "https://a.example",
            "https://a.example/mcp",
            "https://a.example/mcp/desk/",
        ] {
            assert!(covers(resource, &server), "{resource}");
        }
        for resource in [
            "https://b.example/mcp/desk",
            "http://a.example/mcp/desk",
            "https://a.example/mcp/des",
            "https://a.example/mcp?x",
            "urn:x",
        ] {
            assert!(!covers(resource, &server), "{resource}");
        }
        assert_eq!(
            inserted(&server, SERVER),
            "https://a.example/.well-known/oauth-authorization-server/mcp/desk"
        );
    }
}
