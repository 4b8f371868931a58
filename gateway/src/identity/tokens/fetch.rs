//! Fetches the public keys of an issuer: from a file, from their URL, or from the URL in its metadata.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use url::Url;
use weir_connections::http::{FetchedDocument, fetch_document};

use crate::config::{IssuerConfig, is_address};

/// The maximum size of a document.
const DOCUMENT_MAX_BYTES: usize = 256 << 10;

/// The place of an issuer's keys.
#[derive(Debug)]
pub(super) enum KeyPlace {
    File(PathBuf),
    Url(String),
    /// The URL is in the metadata of the issuer.
    Metadata {
        issuer: String,
    },
}

/// The members that are read of the metadata of an authorization server (RFC 8414, OpenID Connect Discovery).
#[derive(Deserialize)]
struct IssuerMetadata {
    issuer: String,
    jwks_uri: String,
}

impl KeyPlace {
    pub(super) fn new(config: &IssuerConfig, base: &Path) -> Self {
        match &config.jwks {
            None => Self::Metadata {
                issuer: config.issuer.clone(),
            },
            Some(place) => match place.strip_prefix("file:") {
                Some(path) => Self::File(base.join(path)),
                None => Self::Url(place.clone()),
            },
        }
    }

    /// Fetches the keys. The error names what could not be fetched, and contains only the status of an answer.
    pub(super) async fn fetch(&self) -> Result<FetchedDocument, String> {
        match self {
            Self::File(path) => read_file(path).await,
            Self::Url(url) => get(url).await,
            Self::Metadata { issuer } => get(&discover(issuer).await?).await,
        }
    }

    /// Reads keys in a file without waiting; `None` if they are elsewhere, or cannot be read.
    pub(super) fn read_now(&self) -> Option<FetchedDocument> {
        let Self::File(path) = self else { return None };
        let metadata = std::fs::metadata(path).ok()?;
        (metadata.len() <= DOCUMENT_MAX_BYTES as u64).then_some(())?;
        let text = std::fs::read(path).ok()?;
        let kept_for = None;
        Some(FetchedDocument { text, kept_for })
    }
}

async fn read_file(path: &Path) -> Result<FetchedDocument, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let metadata = tokio::fs::metadata(path).await.map_err(failed)?;
    if metadata.len() > DOCUMENT_MAX_BYTES as u64 {
        return Err(format!("{} is too large", path.display()));
    }
    let text = tokio::fs::read(path).await.map_err(failed)?;
    let kept_for = None;
    Ok(FetchedDocument { text, kept_for })
}

/// Returns the URL of the keys from the issuer's metadata, which must name the same issuer.
async fn discover(issuer: &str) -> Result<String, String> {
    let mut failures = Vec::new();
    for url in metadata_urls(issuer) {
        let metadata = match get(&url).await {
            Ok(document) => serde_json::from_slice::<IssuerMetadata>(&document.text)
                .map_err(|_| format!("{url} has no `issuer` and `jwks_uri`")),
            Err(error) => Err(error),
        };
        match metadata {
            Ok(metadata) if metadata.issuer != issuer => {
                failures.push(format!("{url} is the metadata of another issuer"));
            }
            Ok(metadata) if !is_address(&metadata.jwks_uri) => {
                failures.push(format!(
                    "the `jwks_uri` in {url} is neither https nor on this machine"
                ));
            }
            Ok(metadata) => return Ok(metadata.jwks_uri),
            Err(error) => failures.push(error),
        }
    }
    Err(failures.join("; "))
}

/// Returns the possible URLs of an issuer's metadata: after its path (OpenID Connect), and before it (RFC 8414).
fn metadata_urls(issuer: &str) -> Vec<String> {
    let after = format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    );
    let before = Url::parse(issuer).ok().map(|mut url| {
        let path = url.path().trim_end_matches('/');
        let path = format!("/.well-known/oauth-authorization-server{path}");
        url.set_path(&path);
        url.to_string()
    });
    [after].into_iter().chain(before).collect()
}

async fn get(url: &str) -> Result<FetchedDocument, String> {
    if !is_address(url) {
        return Err(format!("{url} is neither https nor on this machine"));
    }
    fetch_document(url, DOCUMENT_MAX_BYTES).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_after_the_issuer_and_before_its_path() {
        assert_eq!(
            metadata_urls("https://login.example/tenant/v2"),
            [
                "https://login.example/tenant/v2/.well-known/openid-configuration",
                "https://login.example/.well-known/oauth-authorization-server/tenant/v2",
            ]
        );
        assert_eq!(
            metadata_urls("https://login.example/"),
            [
                "https://login.example/.well-known/openid-configuration",
                "https://login.example/.well-known/oauth-authorization-server",
            ]
        );
    }
}
