//! The endpoints as resources of OAuth: their URLs, their metadata (RFC 9728), and what a 401 or 403 asks for (RFC 6750).

use std::net::SocketAddr;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use hyper::ext::ReasonPhrase;
use serde_json::json;

use super::{access::own_authority, is_bound};
use crate::{
    config::GatewayConfig,
    identity::{AuthenticationError, TokenResource, TokenVerifier, WRITE_SCOPE},
    methods::CatalogueEndpoint,
};

/// The path prefix of the metadata, followed by the path of the endpoint.
pub(in crate::transport) const METADATA: &str = "/.well-known/oauth-protected-resource";
/// The scope for everything that only reads.
const READ_SCOPE: &str = "tools";

/// The accepted signature algorithms for proofs of tokens that are bound to a key.
const PROOF_ALGORITHMS: &str = "ES256 EdDSA RS256 PS256";

/// The authentication schemes that a refusal offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChallengeScheme {
    Bearer,
    Either,
    Dpop,
}

/// Marks an answer to a call that needs the scope for writing: the door adds what to request from the issuer.
#[derive(Clone, Copy, Debug)]
pub(in crate::transport) struct ScopeNeeded;

/// Returns the endpoint as clients of this request name it: below `public_url`, or at the address to which the request was sent.
pub(super) fn resource(
    config: &GatewayConfig,
    local: SocketAddr,
    headers: &HeaderMap,
    endpoint: &CatalogueEndpoint,
) -> TokenResource {
    let base = match &config.http.public_url {
        Some(url) => public_base(url).to_owned(),
        None => {
            let named = own_authority(headers, local);
            format!("http://{}", named.unwrap_or_else(|| local.to_string()))
        }
    };
    TokenResource {
        base,
        path: endpoint.to_string(),
    }
}

/// Returns the URL with which all endpoints begin. Some configurations include the endpoint in it, others do not.
pub(super) fn public_base(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.strip_suffix("/mcp").unwrap_or(url)
}

/// Returns the part of the public URL's path that precedes the endpoint.
fn public_prefix(config: &GatewayConfig) -> &str {
    let base = config.http.public_url.as_deref().map_or("", public_base);
    split(base).1
}

/// Returns the path that the listener serves. A proxy may pass on the prefix of the public URL.
pub(in crate::transport) fn below_prefix<'p>(config: &GatewayConfig, path: &'p str) -> &'p str {
    let below = path.strip_prefix(public_prefix(config));
    let below = below.filter(|rest| rest.is_empty() || rest.starts_with('/'));
    below.unwrap_or(path)
}

/// Returns the metadata of an endpoint. It is the same whether or not the endpoint exists.
pub(super) fn metadata(resource: &TokenResource, tokens: &TokenVerifier) -> Response {
    let issuers: Vec<_> = tokens.issuers().collect();
    let metadata = json!({
        "resource": resource.url(),
        "authorization_servers": issuers,
        "scopes_supported": [READ_SCOPE, WRITE_SCOPE],
        "bearer_methods_supported": ["header"],
        "dpop_signing_alg_values_supported": PROOF_ALGORITHMS.split(' ').collect::<Vec<_>>(),
        "dpop_bound_access_tokens_required": tokens.is_binding_needed(),
    });
    let mut response = Response::new(Body::from(metadata.to_string()));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    expose_to_all(headers);
    response
}

/// Lets a page of any origin read the answer, which is the same for everyone.
pub(super) fn expose_to_all(headers: &mut HeaderMap) {
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    );
}

impl ChallengeScheme {
    pub(super) fn new(
        refused: AuthenticationError,
        headers: &HeaderMap,
        tokens: &TokenVerifier,
    ) -> Self {
        let is_of_binding =
            matches!(refused, AuthenticationError::Token(fault) if fault.is_of_binding());
        let is_bound = is_of_binding || is_bound(headers) || tokens.is_binding_needed();
        match (is_bound, refused) {
            (true, _) => Self::Dpop,
            (false, AuthenticationError::Missing) => Self::Either,
            (false, _) => Self::Bearer,
        }
    }
}

/// Puts the challenge of OAuth into a refusal, before the one for people.
pub(super) fn challenge(
    response: &mut Response,
    resource: &TokenResource,
    refused: AuthenticationError,
    scheme: ChallengeScheme,
) {
    let mut challenge = format!(
        "resource_metadata=\"{}\", scope=\"{READ_SCOPE}\"",
        metadata_url(resource)
    );
    if refused != AuthenticationError::Missing {
        let (message, error) = (refused.message(), error_code(refused));
        challenge += &format!(", error=\"{error}\", error_description=\"{message}\"");
    } else {
        let phrase = b"Unauthorized: a key or a token is needed";
        let phrase = ReasonPhrase::from_static(phrase);
        response.extensions_mut().insert(phrase);
    }
    let algorithms = format!("DPoP algs=\"{PROOF_ALGORITHMS}\"");
    let challenges = match scheme {
        ChallengeScheme::Bearer => vec![format!("Bearer {challenge}")],
        // Some clients read only the first challenge.
        ChallengeScheme::Either => vec![format!("Bearer {challenge}"), algorithms],
        ChallengeScheme::Dpop => vec![format!("{algorithms}, {challenge}")],
    };
    insert(response.headers_mut(), &challenges);
}

fn error_code(refused: AuthenticationError) -> &'static str {
    match refused {
        AuthenticationError::Token(fault) if fault.is_of_proof() => "invalid_dpop_proof",
        _ => "invalid_token",
    }
}

/// Asks for the scope that a call needs, together with all scopes that the new token should have.
pub(super) fn ask_for_scope(response: &mut Response, resource: &TokenResource, is_bound: bool) {
    let scheme = match is_bound {
        true => format!("DPoP algs=\"{PROOF_ALGORITHMS}\","),
        false => "Bearer".to_owned(),
    };
    let challenge = format!(
        "{scheme} error=\"insufficient_scope\", scope=\"{READ_SCOPE} {WRITE_SCOPE}\", resource_metadata=\"{}\", \
         error_description=\"the tool writes\"",
        metadata_url(resource)
    );
    insert(response.headers_mut(), &[challenge]);
}

fn insert(headers: &mut HeaderMap, challenges: &[String]) {
    let basic = headers
        .remove(header::WWW_AUTHENTICATE)
        .filter(|known| known.as_bytes().starts_with(b"Basic "));
    headers.remove(header::WWW_AUTHENTICATE);
    for challenge in challenges {
        if let Ok(challenge) = HeaderValue::from_str(challenge) {
            headers.append(header::WWW_AUTHENTICATE, challenge);
        }
    }
    if let Some(basic) = basic {
        headers.append(header::WWW_AUTHENTICATE, basic);
    }
}

/// Returns the URL of the metadata, whose path is inserted between the host of the resource and its path.
fn metadata_url(resource: &TokenResource) -> String {
    let (origin, prefix) = split(&resource.base);
    format!("{origin}{METADATA}{prefix}{}", resource.path)
}

/// Splits a URL before its path.
fn split(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |at| at + 3);
    let path = url[host..].find('/').map_or(url.len(), |at| host + at);
    url.split_at(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_a_proxy_is_whole_segments() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut config = GatewayConfig::bare(folder.path());
        config.http.public_url = Some("https://mcp.example/weir".to_owned());
        for (path, below) in [
            ("/weir/mcp", "/mcp"),
            ("/weir", ""),
            ("/weirdo/mcp", "/weirdo/mcp"),
            ("/mcp", "/mcp"),
        ] {
            assert_eq!(below_prefix(&config, path), below);
        }
    }

    #[test]
    fn the_metadata_is_between_host_and_path() {
        let url = |public: &str, path: &str| {
            metadata_url(&TokenResource {
                base: public_base(public).to_owned(),
                path: path.to_owned(),
            })
        };
        let well_known = "https://mcp.example/.well-known/oauth-protected-resource";
        for public in [
            "https://mcp.example",
            "https://mcp.example/",
            "https://mcp.example/mcp",
        ] {
            assert_eq!(url(public, "/mcp/desk"), format!("{well_known}/mcp/desk"));
        }
        for public in ["https://mcp.example/weir", "https://mcp.example/weir/mcp/"] {
            assert_eq!(url(public, "/mcp"), format!("{well_known}/weir/mcp"));
        }
    }
}
