//! Fetches a small public document, such as the keys of an issuer.

use std::time::Duration;

use reqwest::{Client, header::CACHE_CONTROL, redirect::Policy};

use super::install_tls;

const TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A document as it was published, and how long it may be kept by its publisher's word.
pub struct FetchedDocument {
    pub text: Vec<u8>,
    pub kept_for: Option<Duration>,
}

/// Fetches a document of at most `size_max` bytes and follows no redirect. The error says what could not be had, and has no
/// more of an answer than its status. The caller decides which URLs may be fetched.
pub async fn fetch_document(url: &str, size_max: usize) -> Result<FetchedDocument, String> {
    let failed = |error: reqwest::Error| format!("{url}: {}", error.without_url());
    let client = client(url).map_err(failed)?;
    let mut response = client.get(url).send().await.map_err(failed)?;
    if response.status().as_u16() != 200 {
        return Err(format!("{url} answered {}", response.status().as_u16()));
    }
    let kept_for = response
        .headers()
        .get(CACHE_CONTROL)
        .and_then(|value| max_age(value.to_str().ok()?));
    let mut text = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        if text.len() + piece.len() > size_max {
            return Err(format!("{url} answered more than {size_max} bytes"));
        }
        text.extend_from_slice(&piece);
    }
    Ok(FetchedDocument { text, kept_for })
}

/// Returns a client that follows no redirect. A proxy of the environment is asked for hosts elsewhere alone.
fn client(url: &str) -> reqwest::Result<Client> {
    install_tls();
    let builder = Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT);
    match url.starts_with("http:") {
        true => builder.no_proxy().build(),
        false => builder.build(),
    }
}

fn max_age(value: &str) -> Option<Duration> {
    let mut directives = value.split(',').map(str::trim);
    let seconds = directives.find_map(|directive| directive.strip_prefix("max-age="))?;
    Some(Duration::from_secs(seconds.parse().ok()?))
}
